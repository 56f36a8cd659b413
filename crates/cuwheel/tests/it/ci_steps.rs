//! Steps of the rendered workflows, run as a runner runs them: scripts in bash, with expressions filled in.
//!
//! Steps that use actions are left to GitHub, but what uploads name has to be there. Nothing of the network of GitHub is played.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;

use cuwheel::ci::yaml::{self, Node};
use serde_json::{Value, json};

use crate::ci_render::project;
use crate::support::{EditableProject, Ran, Tree, cuwheel, driver_directory, interpreter, run, scrub};

/// Every script of a workflow or an action.
pub(crate) fn scripts(text: &str) -> Vec<String> {
    fn collect(node: &Node, scripts: &mut Vec<String>) {
        let steps = node.get("steps").map(|steps| steps.items()).unwrap_or_default();
        scripts.extend(steps.iter().filter_map(|step| step.text_of("run")).map(str::to_owned));
        node.items().iter().for_each(|item| collect(item, scripts));
        node.entries().iter().for_each(|(_, value)| collect(value, scripts));
    }
    let mut scripts = Vec::new();
    collect(&yaml::parse(text).unwrap().unwrap(), &mut scripts);
    scripts
}

/// The script of each job of GitLab.
pub(crate) fn gitlab_scripts(text: &str) -> Vec<String> {
    let root = yaml::parse(text).unwrap().unwrap();
    let scripts = root.entries().iter().filter_map(|(_, job)| job.get("script"));
    scripts.map(|script| script.texts().join("\n")).collect()
}

/// A job, with what its expressions stand for.
struct Job {
    node: Rc<Node>,
    values: BTreeMap<String, String>,
    /// Variables of GitHub.
    variables: Vec<(&'static str, String)>,
    /// A directory for programs of the test, and the runner's own files.
    programs: PathBuf,
}

impl Job {
    fn of(tree: &Tree, workflow: &str, job: &str) -> Self {
        let text = std::fs::read_to_string(tree.root.join(".github/workflows").join(workflow)).unwrap();
        let root = yaml::parse(&text).unwrap().unwrap();
        let node = Rc::clone(root.get("jobs").unwrap().get(job).unwrap());
        let programs = tree.beside("programs");
        std::fs::create_dir_all(programs.join("temp")).unwrap();
        Self { node, values: BTreeMap::new(), variables: Vec::new(), programs }
    }

    fn value(mut self, name: &str, value: impl Into<String>) -> Self {
        self.values.insert(name.to_owned(), value.into());
        self
    }

    fn variable(mut self, name: &'static str, value: &str) -> Self {
        self.variables.push((name, value.to_owned()));
        self
    }

    /// A program that comes first on PATH.
    fn program(self, name: &str, text: &str) -> Self {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.programs.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        self
    }

    fn steps(&self) -> Vec<Rc<Node>> {
        self.node.get("steps").unwrap().items().to_vec()
    }

    fn step(&self, name: &str) -> Rc<Node> {
        self.steps()
            .into_iter()
            .find(|step| step.text_of("name") == Some(name))
            .unwrap_or_else(|| panic!("no step {name}"))
    }

    /// The text with its expressions filled in.
    fn filled(&self, text: &str) -> String {
        let mut parts = text.split("${{");
        let mut filled = parts.next().unwrap().to_owned();
        for part in parts {
            let (expression, rest) = part.split_once("}}").unwrap();
            let value = self.values.get(expression.trim()).unwrap_or_else(|| panic!("no value of {expression}"));
            filled += &(value.clone() + rest);
        }
        filled
    }

    fn run(&self, directory: &Path, step: &Node) -> Ran {
        let script = self.programs.join("temp/step.sh");
        std::fs::write(&script, step.get("run").unwrap().text().unwrap()).unwrap();
        let mut bash = Command::new("bash");
        scrub(&mut bash);
        bash.args(["--noprofile", "--norc", "-e", "-o", "pipefail"]).arg(&script).current_dir(directory);
        let before = [self.programs.clone(), Path::new(env!("CARGO_BIN_EXE_cuwheel")).parent().unwrap().to_owned()];
        let path = std::env::var_os("PATH").unwrap();
        bash.env("PATH", std::env::join_paths(before.into_iter().chain(std::env::split_paths(&path))).unwrap());
        bash.env("RUNNER_TEMP", self.programs.join("temp"));
        for file in ["GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_ENV"] {
            bash.env(file, self.programs.join(file));
        }
        bash.envs(self.variables.iter().map(|(name, value)| (*name, value)));
        for env in [self.node.get("env"), step.get("env")].into_iter().flatten() {
            for (name, value) in env.entries() {
                bash.env(name.text().unwrap(), self.filled(value.text().unwrap()));
            }
        }
        run(&mut bash)
    }

    fn written(&self, file: &str) -> String {
        std::fs::read_to_string(self.programs.join(file)).unwrap_or_default()
    }
}

fn has_jq() -> bool {
    let has = Command::new("jq").arg("--version").output().is_ok_and(|output| output.status.success());
    if !has {
        eprintln!("not run: there is no jq, which runners of GitHub have");
    }
    has
}

fn python(job: Job) -> Job {
    let program = format!("#!/bin/sh\nexec '{}' \"$@\"\n", interpreter().base_executable.display());
    job.program("python", &program)
}

/// A project that compiles in seconds, with tests, and tests that need a GPU.
fn small_project() -> EditableProject {
    let project = EditableProject::new();
    let text = std::fs::read_to_string(project.path("pyproject.toml")).unwrap();
    let more = "[tool.cuwheel.test]\nrust = false\npaths = ['tests/cpu']\n[tool.cuwheel.ci]\ncommand = 'cuwheel'\nproviders = ['github', 'gitlab', 'slurm']\n[dependency-groups]\ntest = ['pytest']\ntest-gpu = ['pytest']\n";
    project
        .tree
        .write("pyproject.toml", text + more)
        .write("tests/cpu/test_small.py", "import small\n\n\ndef test_value():\n    assert small.VALUE == 1\n");
    project.tree.write(
        "tests/gpu/test_gpu.py",
        "import ctypes\n\n\ndef test_gpu():\n    assert ctypes.CDLL('libcuda.so.1').cuInit(0) == 0\n",
    );
    run(&mut project.command("lock", &[])).expect_code(0);
    run(&mut project.command("ci", &["render"])).expect_code(0);
    project
}

#[test]
fn the_build_job_makes_what_it_hands_over() {
    if !has_jq() {
        return;
    }
    let project = small_project();
    let (major, minor, _) = interpreter().version;
    let version = format!("{major}.{minor}");
    let rows =
        json!([{ "arch": "amd64", "python": version, "wheel": version, "gpu": "l4", "driver": "latest", "count": 1 }]);
    let job = Job::of(&project.tree, "build.yml", "build")
        .value("matrix.arch", "amd64")
        .value("matrix.python", &version)
        .value("matrix.abi3", "true")
        .value("matrix.sdist", "true")
        .value("inputs.gpu", rows.to_string())
        .variable("CARGO_TARGET_DIR", &target(&project));
    let job = python(job);
    let mut uploads = 0;
    for step in job.steps() {
        if step.get("run").is_some() {
            job.run(&project.tree.root, &step).expect_code(0);
        } else if step.text_of("uses").unwrap().starts_with("actions/upload-artifact@") {
            uploads += 1;
            let with = step.get("with").unwrap();
            assert_eq!(with.text_of("if-no-files-found"), Some("error"));
            for pattern in job.filled(with.text_of("path").unwrap()).lines() {
                assert!(is_there(&project.tree.root, pattern), "nothing is at {pattern}");
            }
        }
    }
    assert_eq!(uploads, 3);
    let summary = job.written("GITHUB_STEP_SUMMARY");
    assert!(summary.contains(": 1 tests, 0 failures, 0 errors, 0 skipped"), "{summary}");
    without_a_gpu(&project, &version);
    with_a_gpu(&project, &version);
    on_gitlab(&project, &version);
}

/// Where all small projects are compiled.
fn target(project: &EditableProject) -> String {
    let command = project.command("build-wheel", &[]);
    let mut variables = command.get_envs();
    let found = variables.find(|(name, _)| *name == "CARGO_TARGET_DIR").and_then(|(_, value)| value).unwrap();
    found.to_str().unwrap().to_owned()
}

fn is_there(root: &Path, pattern: &str) -> bool {
    let Some((directory, ending)) = pattern.split_once("/*") else {
        let path = root.join(pattern);
        return path.is_file() || std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some());
    };
    let mut entries = std::fs::read_dir(root.join(directory)).unwrap();
    entries.any(|entry| entry.unwrap().file_name().to_str().unwrap().ends_with(ending))
}

/// The jobs that test what the build made, on machines without a GPU.
fn without_a_gpu(project: &EditableProject, version: &str) {
    let other = Tree::new();
    cuwheel::files::copy_tree(&project.path("dist"), &other.root.join("wheel")).unwrap();
    let import = python(Job::of(&project.tree, "build.yml", "import"));
    let imported = import.run(&other.root, &import.step("Install the wheel by its path, and import it")).expect_code(0);
    let text = &imported.stdout;
    assert!(text.contains("programs/temp/small-0.1.0-") && text.contains("small/__init__.py"), "{text}");

    std::fs::rename(project.path("dist"), project.path("wheel")).unwrap();
    let test = python(Job::of(&project.tree, "build.yml", "test"))
        .value("matrix.python", version)
        .value("matrix.dependencies", "locked")
        .variable("CARGO_TARGET_DIR", &target(project));
    for step in test.steps().iter().filter(|step| step.get("run").is_some()) {
        if step.text_of("if").is_none_or(|condition| condition.contains("always()")) {
            test.run(&project.tree.root, step).expect_code(0);
        }
    }
    std::fs::remove_dir_all(project.path("wheel")).unwrap();

    let editable =
        python(Job::of(&project.tree, "build.yml", "editable")).variable("CARGO_TARGET_DIR", &target(project));
    let step = editable.step("Install for editing, and prove that what was built is loaded");
    editable.run(&project.tree.root, &step).expect_code(0);
}

/// The job with a GPU, which the stand-in driver plays, and the same bundle under Slurm.
fn with_a_gpu(project: &EditableProject, version: &str) {
    let (machine, driver) = (Tree::new(), driver_directory());
    std::fs::rename(project.path("bundles"), machine.root.join("bundles")).unwrap();
    let gpu = python(Job::of(&project.tree, "test-gpu.yml", "test"))
        .program("nvidia-smi", "#!/bin/sh\n")
        .value("matrix.python", version)
        .value("matrix.count", "1")
        .variable("LD_LIBRARY_PATH", driver.path().to_str().unwrap())
        .variable("CUDA_STUB", "");
    let _ = std::fs::remove_file(gpu.programs.join("GITHUB_STEP_SUMMARY"));
    for step in gpu.steps().iter().filter(|step| step.get("run").is_some()) {
        gpu.run(&machine.root, step).expect_code(0);
    }
    let summary = gpu.written("GITHUB_STEP_SUMMARY");
    assert!(summary.contains(": 1 tests, 0 failures, 0 errors, 0 skipped"), "{summary}");

    let directory = bundle_in(&machine.root.join("bundles").join(version));
    let programs = gpu.programs.clone();
    let slurm = || {
        let mut script = Command::new(project.path("ci/test-gpu.slurm.sh"));
        scrub(&mut script);
        let path = std::env::var_os("PATH").unwrap();
        let path = std::env::join_paths(std::iter::once(programs.clone()).chain(std::env::split_paths(&path))).unwrap();
        script.arg("python").current_dir(&directory).env("PATH", path).env("SLURM_JOB_ID", "7");
        run(script.env("LD_LIBRARY_PATH", driver.path()).env("CUDA_STUB", "").env_remove("CUDA_VISIBLE_DEVICES"))
    };
    slurm().expect_code(0);
    assert!(directory.join("results-7/report.json").is_file());

    // Without a driver nothing is skipped to green, and what was changed on the way is not run.
    let without = gpu.variable("LD_LIBRARY_PATH", "/nonexistent");
    let refused = without.run(&machine.root, &without.step("Test the wheel"));
    assert_ne!(refused.code, Some(0), "{}", refused.stdout);
    std::fs::write(directory.join("gpu-tests.tar.gz"), "other").unwrap();
    without.run(&machine.root, &without.step("Check that they are those that were packed")).expect_code(1);
    slurm().expect_code(1);
}

/// The one directory with a bundle, with its hash beside it.
fn bundle_in(directory: &Path) -> PathBuf {
    let mut entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let bundle = entries.find(|path| path.is_dir()).unwrap();
    let hash = cuwheel::files::sha256_of_file(&bundle.join("gpu-tests.tar.gz")).unwrap();
    std::fs::write(bundle.join("SHA256SUMS"), format!("{hash}  gpu-tests.tar.gz\n")).unwrap();
    bundle
}

/// The script of GitLab's build, which does the same.
fn on_gitlab(project: &EditableProject, version: &str) {
    let text = std::fs::read_to_string(project.path(".gitlab-ci.yml")).unwrap();
    let script = yaml::parse(&text).unwrap().unwrap().get("build").unwrap().get("script").unwrap().texts().join("\n");
    let job = Job::of(&project.tree, "build.yml", "build");
    let mut bash = Command::new("bash");
    scrub(&mut bash);
    let path = std::env::var_os("PATH").unwrap();
    let before = [job.programs.clone(), Path::new(env!("CARGO_BIN_EXE_cuwheel")).parent().unwrap().to_owned()];
    bash.env("PATH", std::env::join_paths(before.into_iter().chain(std::env::split_paths(&path))).unwrap());
    bash.args(["--noprofile", "--norc", "-e", "-o", "pipefail", "-c", &script]).current_dir(&project.tree.root);
    bash.envs([("ARCH", "amd64"), ("PYTHON", version), ("ABI3", "true"), ("SDIST", "false"), ("BUNDLES", version)]);
    run(bash.env("CARGO_TARGET_DIR", target(project))).expect_code(0);
    for path in [format!("handover/amd64/wheel-{version}/SHA256SUMS"), format!("handover/amd64/{version}/SHA256SUMS")] {
        assert!(project.path(&path).is_file(), "{path}");
    }
}

/// `yq` of Go, as runners have it, played by a YAML reader that is here.
fn plan(tree: &Tree) -> Job {
    let rows = std::fs::read_to_string(tree.root.join("ci/matrix.yml")).unwrap();
    let document = to_json(&yaml::parse(&rows).unwrap().unwrap());
    let job = Job::of(tree, "ci.yml", "plan");
    job.program(
        "yq",
        &format!(
            "#!/bin/sh\n[ \"$*\" = '--output-format=json . ci/matrix.yml' ] || exit 9\ncat <<'END'\n{document}\nEND\n"
        ),
    )
}

fn to_json(node: &Node) -> Value {
    match &node.value {
        yaml::Value::Text(text, true) if ["true", "false"].contains(&text.as_str()) => json!(text == "true"),
        yaml::Value::Text(text, true) if text.parse::<u64>().is_ok() => json!(text.parse::<u64>().unwrap()),
        yaml::Value::Text(text, _) | yaml::Value::Block(text) => json!(text),
        yaml::Value::List(items) => items.iter().map(|item| to_json(item)).collect(),
        yaml::Value::Map(entries) => {
            Value::Object(entries.iter().map(|(key, value)| (key.text().unwrap().to_owned(), to_json(value))).collect())
        }
    }
}

fn rows(tree: &Tree, filter: &str, nightly: bool) -> Result<BTreeMap<String, Value>, String> {
    let nightly_expression =
        "github.event_name == 'schedule' || github.event_name == 'workflow_dispatch' || github.ref_type == 'tag'";
    let job = plan(tree).value("inputs.filter", filter).value(nightly_expression, nightly.to_string());
    let _ = std::fs::remove_file(job.programs.join("GITHUB_OUTPUT"));
    let ran = job.run(&tree.root, &job.step("Read ci/matrix.yml"));
    if ran.code != Some(0) {
        return Err(ran.stderr);
    }
    let output = job.written("GITHUB_OUTPUT");
    let line = |line: &str| {
        let (key, value) = line.split_once('=').unwrap();
        (key.to_owned(), serde_json::from_str(value).unwrap_or_else(|_| json!(value)))
    };
    Ok(output.lines().map(line).collect())
}

#[test]
fn the_plan_gives_each_row_its_wheel_and_refuses_an_empty_matrix() {
    if !has_jq() {
        return;
    }
    let tree = project("");
    run(cuwheel(&tree.root).args(["ci", "render"])).expect_code(0);
    let by_day = rows(&tree, "", false).unwrap();
    let count = |rows: &BTreeMap<String, Value>, key: &str| rows[key].as_array().unwrap().len();
    assert_eq!((count(&by_day, "build"), count(&by_day, "test"), count(&by_day, "gpu")), (3, 3, 3));
    assert_eq!(by_day["runner"], "ubuntu-24.04");
    let wheels = |rows: &Value| -> Vec<String> {
        rows.as_array()
            .unwrap()
            .iter()
            .map(|row| format!("{} {}", row["python"].as_str().unwrap(), row["wheel"].as_str().unwrap()))
            .collect()
    };
    assert_eq!(wheels(&by_day["test"]), ["3.14 3.11", "3.14 3.11", "3.14t 3.14t"]);
    assert_eq!(wheels(&by_day["gpu"]), ["3.14 3.11", "3.11 3.11", "3.14 3.11"]);
    let by_night = rows(&tree, "", true).unwrap();
    assert_eq!((count(&by_night, "test"), count(&by_night, "gpu")), (4, 5));
    assert_eq!(count(&rows(&tree, "h100", true).unwrap(), "gpu"), 1);
    let error = rows(&tree, "b200", true).unwrap_err();
    assert!(error.contains("ci/matrix.yml has no row for gpu"), "{error}");

    let text = std::fs::read_to_string(tree.root.join("ci/matrix.yml")).unwrap();
    tree.write(
        "ci/matrix.yml",
        text.replace(
            "arm64, runner: ubuntu-24.04-arm, python: \"3.11\"",
            "arm64, runner: ubuntu-24.04-arm, python: \"3.12t\"",
        )
        .replace("\"3.12t\", abi3: true", "\"3.12t\", abi3: false"),
    );
    let error = rows(&tree, "", false).unwrap_err();
    assert!(error.contains("ci/matrix.yml builds no wheel for"), "{error}");
}

#[test]
fn nothing_is_built_for_documentation_and_on_request_and_forks_get_no_gpu() {
    let tree = project("pull-requests = 'pull_request'\n");
    run(cuwheel(&tree.root).args(["ci", "render"])).expect_code(0);
    let scope = |reference: &str, number: &str, fork: &str, title: &str, files: &str| {
        let gh = format!(
            "#!/bin/sh\ncase \"$*\" in\n  'api repos/a/b/pulls/7 --jq .title') echo '{title}';;\n  \
             'api --paginate repos/a/b/pulls/7/files --jq .[].filename') printf '{files}';;\n  *) exit 9;;\nesac\n"
        );
        let job = Job::of(&tree, "ci.yml", "plan")
            .program("gh", &gh)
            .value("github.token", "")
            .value("github.event.number", number)
            .value("github.event.pull_request.head.repo.fork", fork)
            .variable("GITHUB_REPOSITORY", "a/b")
            .variable("GITHUB_REF_NAME", reference);
        let _ = std::fs::remove_file(job.programs.join("GITHUB_OUTPUT"));
        job.run(&tree.root, &job.step("See whether anything has to be built")).expect_code(0);
        job.written("GITHUB_OUTPUT").replace('\n', " ")
    };
    let (all, nothing) = ("run=true run-gpu=true ", "run=false run-gpu=false ");
    assert_eq!(scope("main", "", "", "", ""), all);
    assert_eq!(scope("pull-request/7", "", "", "Speed up", "src/lib.rs\\nREADME.md\\n"), all);
    assert_eq!(scope("7/merge", "7", "false", "Speed up", "src/README.md\\n"), all);
    assert_eq!(scope("7/merge", "7", "true", "Speed up", "src/lib.rs\\n"), "run=true run-gpu=false ");
    assert_eq!(scope("pull-request/7", "", "", "Notes [no-ci]", "src/lib.rs\\n"), nothing);
    assert_eq!(scope("pull-request/7", "", "", "Words", "docs/a.md\\nREADME.md\\n"), nothing);
    assert_eq!(scope("7/merge", "7", "false", "`$(exit 3)` \"; exit 3", "src/lib.rs\\n"), all);
}

#[test]
fn pk_88_the_gate_takes_only_success_and_what_the_plan_left_out() {
    if !has_jq() {
        return;
    }
    let tree = project("checks = ['true']\n");
    run(cuwheel(&tree.root).args(["ci", "render"])).expect_code(0);
    let gate = |results: [&str; 4], run: &str, run_gpu: &str| {
        let names = ["plan", "checks", "build", "test-gpu"];
        let mut needs: serde_json::Map<String, Value> = names
            .iter()
            .zip(results)
            .map(|(name, result)| ((*name).to_owned(), json!({ "result": result, "outputs": {} })))
            .collect();
        needs["plan"]["outputs"] = json!({ "run": run, "run-gpu": run_gpu });
        let job = Job::of(&tree, "ci.yml", "gate").value("toJSON(needs)", Value::Object(needs).to_string());
        job.run(&tree.root, &job.step("Every job has to have succeeded")).code
    };
    let all = ["success"; 4];
    assert_eq!(gate(all, "true", "true"), Some(0));
    for result in ["failure", "cancelled", "skipped"] {
        for place in 0..4 {
            let mut results = all;
            results[place] = result;
            assert_eq!(gate(results, "true", "true"), Some(1), "{results:?}");
        }
    }
    let skipped = ["success", "skipped", "skipped", "skipped"];
    assert_eq!(gate(skipped, "false", "false"), Some(0));
    assert_eq!(gate(["success", "success", "success", "skipped"], "true", "false"), Some(0));
    assert_eq!(gate(["success", "success", "success", "success"], "true", "false"), Some(1));
    assert_eq!(gate(["success", "failure", "skipped", "skipped"], "false", "false"), Some(1));
    // The plan itself failed, and says nothing.
    assert_eq!(gate(["failure", "skipped", "skipped", "skipped"], "", ""), Some(1));
}

/// What two builds of version 0.1.0 hand over.
fn write_artifacts(place: &Tree) {
    for (name, sdist) in [("amd64-3.11", true), ("arm64-3.11", false)] {
        let wheel = format!("demo-0.1.0-cp311-abi3-{}.whl", &name[..5]);
        let mut files = vec![wheel.clone()];
        files.extend(sdist.then(|| "demo-0.1.0.tar.gz".to_owned()));
        let hash = |file: &str| cuwheel::files::sha256(file.as_bytes());
        let sums: Vec<String> = files.iter().map(|file| format!("{}  {file}", hash(file))).collect();
        let listed = json!({ "file": "demo-0.1.0.tar.gz", "sha256": hash("demo-0.1.0.tar.gz") });
        let manifest = json!({
            "version": "0.1.0",
            "wheels": [{ "file": wheel, "sha256": hash(&wheel) }],
            "sdist": if sdist { listed } else { Value::Null },
        });
        let directory = format!("artifacts/demo-wheel-{name}");
        for file in &files {
            place.write(&format!("{directory}/{file}"), file);
        }
        place
            .write(&format!("{directory}/SHA256SUMS"), sums.join("\n"))
            .write(&format!("{directory}/manifest.json"), manifest.to_string());
    }
}

/// The message that is expected, what is changed before, and the tag.
type Change<'test> = (&'test str, &'test dyn Fn(&Tree), &'test str);

#[test]
fn pk_62_what_is_published_is_all_that_was_built_and_nothing_else() {
    if !has_jq() {
        return;
    }
    let tree = project("publish = true\n");
    run(cuwheel(&tree.root).args(["ci", "render"])).expect_code(0);
    let check = |change: &dyn Fn(&Tree), tag: &str, builds: &Value| {
        let place = Tree::new();
        write_artifacts(&place);
        change(&place);
        let job = Job::of(&tree, "ci.yml", "publish")
            .value("needs.plan.outputs.build", builds.to_string())
            .variable("GITHUB_REF_NAME", tag);
        let ran =
            job.run(&place.root, &job.step("Check that they are those that were built, all of them, of this version"));
        (ran.code, ran.stdout + &ran.stderr, std::fs::read_dir(place.root.join("dist")).map_or(0, Iterator::count))
    };
    let both = json!([{ "sdist": true }, { "sdist": false }]);
    let (code, text, files) = check(&|_| (), "v0.1.0", &both);
    assert_eq!((code, files), (Some(0), 3), "{text}");
    // One artifact alone is unpacked into the directory itself.
    let alone = |place: &Tree| {
        let artifacts = place.root.join("artifacts");
        std::fs::rename(artifacts.join("demo-wheel-amd64-3.11"), place.root.join("one")).unwrap();
        std::fs::remove_dir_all(&artifacts).unwrap();
        std::fs::rename(place.root.join("one"), artifacts).unwrap();
    };
    let (code, text, files) = check(&alone, "v0.1.0", &json!([{ "sdist": true }]));
    assert_eq!((code, files), (Some(0), 2), "{text}");
    let wheel = "artifacts/demo-wheel-amd64-3.11/demo-0.1.0-cp311-abi3-amd64.whl";
    let cases: [Change<'_>; 5] = [
        ("the tag is v0.2.0", &|_| (), "v0.2.0"),
        (
            "FAILED",
            &|place| {
                place.write(wheel, "changed");
            },
            "v0.1.0",
        ),
        (
            "builds and sdists: 1 1, where ci/matrix.yml asks for 2 1",
            &|place| std::fs::remove_dir_all(place.root.join("artifacts/demo-wheel-arm64-3.11")).unwrap(),
            "v0.1.0",
        ),
        ("No such file", &|place| std::fs::remove_file(place.root.join(wheel)).unwrap(), "v0.1.0"),
        (
            "two builds made",
            &|place| {
                let again = place.root.join("artifacts/demo-wheel-again");
                cuwheel::files::copy_tree(&place.root.join("artifacts/demo-wheel-amd64-3.11"), &again).unwrap();
            },
            "v0.1.0",
        ),
    ];
    for (message, change, tag) in cases {
        let (code, text, _) = check(change, tag, &both);
        assert!(code != Some(0) && text.contains(message), "{message}: {text}");
    }
}
