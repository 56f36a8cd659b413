//! Every rule of `ci lint`: its name, how bad a breach is by default, why it matters and what to do about it.
//!
//! The pages of rules in the documentation are made from this list. How breaches are found is in the files beside.

use cuwheel_inspect::rules::{Rule, Severity};

macro_rules! catalog {
    ($($name:ident = $id:literal, $severity:ident, $title:literal, $why:literal, $remedy:literal;)*) => {
        $(pub(super) static $name: Rule = Rule::new($id, Severity::$severity, $title, $why, $remedy);)*

        /// Every rule, in the order of the documentation.
        pub static RULES: &[&Rule] = &[$(&$name),*];
    };
}

catalog! {
    UNREADABLE = "file/unreadable", Error,
        "workflows and actions can be read",
        "GitHub refuses the file, and the checks that it stands for never run.",
        "mend the YAML at that place";

    GATE_MISSING = "gate/missing", Note,
        "workflows of several jobs for pull requests end in one that judges them",
        "Branch protection names checks one by one: a job that is added or renamed is required by nobody.",
        "add a job with `if: always()` that needs all others and compares each result with `success`, and require it alone";
    GATE_INCOMPLETE = "gate/incomplete", Error,
        "the job that judges the others needs all of them",
        "What it does not need may fail while the one required check is green.",
        "list every job of the workflow in `needs`";
    GATE_CONDITIONAL = "gate/conditional", Error,
        "the job that judges the others always runs",
        "Without `if: always()` it is skipped when a job fails, and a skipped check counts as passed.",
        "give it `if: always()`";
    GATE_SKIPPED = "gate/accepts-skipped", Error,
        "the job that judges the others takes nothing but success for success",
        "A build fails that it does not need itself, the tests that it does need are skipped, and the required check is green.",
        "compare each result with `success`, and let `skipped` pass only where the workflow decided so by itself";

    PERMISSIONS_MISSING = "permissions/missing", Warning,
        "workflows say what their token may do",
        "Without `permissions` the token has what the repository's settings give, which may be everything, and an action that \
         was taken over has it too.",
        "add `permissions: contents: read` at the top, and more on the jobs that need it";
    PERMISSIONS_WRITE = "permissions/write-for-all", Warning,
        "rights to write are given to single jobs",
        "Every step of every job holds them, those that run the code of dependencies included.",
        "move the right to the job that needs it, and leave `contents: read` at the top";

    PUBLISH_REUSABLE = "publish/reusable", Error,
        "publishing is in the workflow that is started",
        "Trusted publishing compares the workflow that was started, and attestations name the one that the job is in: from a \
         reusable workflow the index refuses them.",
        "move the job that publishes to the entry workflow";
    PUBLISH_BUILDS = "publish/builds", Warning,
        "the job that may publish only publishes",
        "Build scripts and tests of all dependencies run beside the right to publish in the project's name.",
        "build and test in other jobs, hand the files over, and give `id-token: write` to one that uploads them";

    PIN_BRANCH = "pin/branch", Warning,
        "actions and workflows are not taken from a branch",
        "What runs changes with every push to that branch, without a change here.",
        "pin the commit, with the version in a comment";
    PIN_TAG = "pin/tag", Note,
        "actions are pinned by commit",
        "Tags can be moved, and were, to commits that print secrets.",
        "pin the commit, with the version in a comment";
    PIN_LATEST = "pin/latest-download", Warning,
        "downloads have a version",
        "The newest release changes builds from one day to the next: a cache of compilers went that way and builds took five \
         times as long.",
        "name a version, and check the hash";
    PIN_PIPED = "pin/piped-script", Warning,
        "what is downloaded is not run unseen",
        "Whoever can change the script, or stop its transfer half-way, decides what runs.",
        "download a release by version, check its hash, and run that";
    PIN_UNCHECKED = "pin/unchecked-download", Note,
        "archives and programs that are downloaded are compared with a hash",
        "A file that was replaced under the same name is taken.",
        "compare with a hash that is in the repository: sha256sum --check";

    CREDENTIALS = "checkout/credentials", Note,
        "checkouts leave no credentials behind",
        "The token stays in .git/config, where every later step and every artifact that holds the checkout finds it.",
        "give actions/checkout `persist-credentials: false`, unless the job pushes";
    INJECTION = "injection/expression", Error,
        "texts of strangers are not put into scripts",
        "GitHub replaces the expression before the shell reads the script: a title or a branch name becomes code.",
        "hand it over in `env`, and use the variable in quotes";
    TARGET = "injection/pull-request-target", Error,
        "code of pull requests is not run with the rights of the repository",
        "pull_request_target and workflow_run have the secrets; what is checked out there is the stranger's.",
        "use pull_request, or do not check out the head";
    FORK_RUNNER = "runner/reachable-by-forks", Warning,
        "code of strangers does not reach one's own runners",
        "A pull request from a fork runs what it likes on a machine that stays, with its GPU and its network.",
        "run what a maintainer approved (copy-pr-bot), or compare github.event.pull_request.head.repo.full_name with \
         github.repository in `if`";

    GPU_TIMEOUT = "gpu/no-timeout", Warning,
        "jobs on GPUs have a time-out",
        "A kernel that hangs holds the runner for six hours.",
        "give the job `timeout-minutes`";
    GPU_PREFLIGHT = "gpu/no-preflight", Warning,
        "jobs on GPUs look at the driver first",
        "With a driver that is too old or a device that fell off, hundreds of tests fail for one reason, or all are skipped.",
        "begin with `nvidia-smi`, or run the tests by `test-gpu`, which asks the driver first";
    GPU_SKIPS = "gpu/may-skip", Warning,
        "on GPUs, tests that did not run are a failure",
        "pytest is green when every test was skipped, so that a broken driver looks like a pass.",
        "run them by `test-gpu`, whose policy is `required`, or fail when nothing was executed";

    CONTINUE = "test/continue-on-error", Warning,
        "tests that fail, fail the run",
        "With `continue-on-error` the job is green whatever the tests say, and so is all that needs it.",
        "remove it; expect single failures in the tests, where they are seen when they go";
    FIND_LINKS = "test/by-name", Warning,
        "the package under test is installed by the path of its wheel",
        "By name, pip takes the newest it finds: a release of the index instead of what was built.",
        "install the file: pip install ./dist/*.whl";
    TREE = "test/imports-tree", Warning,
        "tests import the installed package",
        "`python -m pytest` puts the checkout first on sys.path: what is tested is not what is shipped.",
        "run `pytest`, or `python -P -m pytest`, or leave the checkout first; `test` and `test-gpu` prove it";

    NOTHING_FOUND = "artifact/nothing-found", Warning,
        "an upload without files is a failure",
        "By default it is a warning, and the next job fails far from the cause or tests something else.",
        "add `if-no-files-found: error`";
    ARTIFACT_UNCHECKED = "artifact/unchecked", Note,
        "wheels that another job made are compared with a hash",
        "Artifacts are found by name: a second upload or a run of another commit gives other files.",
        "upload SHA256SUMS beside the wheels, and run `sha256sum --check --strict` before installing";

    MATRIX_EMPTY = "matrix/may-be-empty", Warning,
        "a matrix that is computed is checked for rows",
        "With none the job is skipped, or fails without saying why.",
        "end the job that computes it with an error when there is no row";
    CONCURRENCY = "concurrency/missing", Note,
        "a new push ends the runs for the last one",
        "Runners with GPUs are few, and queues fill with runs that nobody waits for.",
        "add `concurrency` with the workflow and the ref as the group, and `cancel-in-progress`";

    WHEEL_DRIVER = "wheel/grafts-driver", Warning,
        "the CUDA driver stays out of repaired wheels",
        "auditwheel, and maturin by default, copy libcuda.so.1 of the build machine into the wheel, where it does not fit \
         the kernel module of any other.",
        "exclude it: auditwheel repair --exclude 'libcuda.so.*', or maturin --auditwheel check";
    WHEEL_UNCHECKED = "wheel/unchecked", Note,
        "wheels are checked before they are handed over",
        "Wrong tags, missing files and grafted libraries are found by users.",
        "run `check-wheel` on what was built";
}
