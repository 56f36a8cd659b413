//! `cuwheel new`: what is written where, for which options; names and places that are refused.

use std::path::Path;
use std::process::Command;

use expect_test::{expect, expect_file};
use serde_json::Value;

use crate::support::{Ran, Tree, cuwheel, interpreter, repository, run};

fn new(tree: &Tree, arguments: &[&str]) -> Ran {
    run(cuwheel(&tree.root).arg("new").args(arguments))
}

/// The plan of a project, as JSON.
fn plan(arguments: &[&str]) -> Value {
    let tree = Tree::new();
    let ran = new(&tree, &[&["--dry-run", "--json"], arguments].concat()).expect_code(0);
    assert_eq!(std::fs::read_dir(&tree.root).unwrap().count(), 0, "a plan writes nothing");
    ran.json()["plan"].take()
}

fn names_in(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Every set of options that changes what is written.
const OPTIONS: &[&[&str]] = &[
    &[],
    &["--no-shim"],
    &["--cuda", "12"],
    &["--cuda", "13,12"],
    &["--cuda", "12,13", "--wheels", "merged", "--no-shim"],
    &["--license", "MIT"],
    &["--license", "apache-2.0"],
    &["--license", "BSD-3-Clause"],
    &["--license", "Proprietary"],
    &["--cuwheel", "0.1.0"],
    &["--ci", "none"],
    &["--ci", "github,gitlab,slurm", "--cuda", "12,13"],
];

#[test]
fn a_project_has_these_files() {
    let files: Vec<String> = serde_json::from_value(plan(&["My.Ext-2"])["files"].take()).unwrap();
    expect![[r#"
        .cargo/config.toml
        .github/actions/setup/action.yml
        .github/copy-pr-bot.yaml
        .github/workflows/build.yml
        .github/workflows/ci.yml
        .github/workflows/test-gpu.yml
        .gitignore
        Cargo.toml
        LICENSE-APACHE
        LICENSE-MIT
        README.md
        build.rs
        ci/matrix.yml
        kernels/saxpy.cu
        kernels/sum.cu
        pyproject.toml
        python/my_ext_2/__init__.py
        python/my_ext_2/_native.pyi
        python/my_ext_2/py.typed
        src/device.rs
        src/grid.rs
        src/host.rs
        src/kernels.rs
        src/lib.rs
        src/shim.c
        tests/cpu/test_host_sum.py
        tests/cpu/test_package.py
        tests/gpu/conftest.py
        tests/gpu/test_kernels.py
        tests/grid.rs
        xtask/Cargo.toml
        xtask/src/main.rs"#]]
    .assert_eq(&files.join("\n"));
    let without: Vec<String> = serde_json::from_value(plan(&["My.Ext-2", "--no-shim"])["files"].take()).unwrap();
    let left_out: Vec<&String> = files.iter().filter(|file| !without.contains(file)).collect();
    assert_eq!(left_out, ["src/host.rs", "src/shim.c", "tests/cpu/test_host_sum.py"]);
}

#[test]
fn the_plan_says_what_becomes_of_each_option() {
    let tree = Tree::new();
    let arguments =
        ["--dry-run", "x", "--cuda", "13,12", "--license", "mit", "--cuwheel", "0.1.0", "--no-git", "--ci", "slurm"];
    let ran = new(&tree, &arguments).expect_code(0);
    let text = ran.stdout.replace(tree.root.to_str().unwrap(), "[tree]");
    let (head, _) = text.split_once("writes").unwrap();
    expect![[r#"
        project    x, package x
        directory  [tree]/x
        CUDA       12, 13, wheels: suffix
        shim       over the C API of NumPy
        license    MIT
        cuwheel    version 0.1.0
        ci         slurm
        git        none
    "#]]
    .assert_eq(head);
    let json = plan(&["x", "--cuwheel", repository().to_str().unwrap()]);
    assert_eq!(
        (&json["cuwheel"]["path"], &json["cuda"]),
        (&repository().to_str().unwrap().into(), &serde_json::json!([13]))
    );
    // A program of a checkout that is still there makes projects that use it.
    assert_eq!(plan(&["x"])["cuwheel"], json["cuwheel"]);
}

#[test]
fn the_options_are_in_pyproject() {
    for (options, expected) in [
        (&["--cuda", "12,13", "--license", "BSD-3-Clause"][..], expect_file!["new/pyproject-cuda-12-13.toml"]),
        (
            &["--cuda", "12", "--no-shim", "--license", "Proprietary"],
            expect_file!["new/pyproject-cuda-12-no-shim.toml"],
        ),
    ] {
        let tree = Tree::new();
        new(&tree, &[&["my-ext", "--no-git"], options].concat()).expect_code(0);
        expected.assert_eq(&std::fs::read_to_string(tree.root.join("my-ext/pyproject.toml")).unwrap());
    }
}

#[test]
fn the_readme_has_the_two_commands_and_says_what_has_to_be_installed() {
    for (options, expected) in [
        (&["--cuda", "13"][..], &["no CUDA, no\nGPU"][..]),
        (&["--cuda", "12"], &["install the CUDA Toolkit 12, and let CUDA_PATH name it"]),
        (&["--cuda", "12,13"], &["install the CUDA Toolkit 12", "That of CUDA 13 is a requirement"]),
    ] {
        let tree = Tree::new();
        new(&tree, &[&["x", "--no-git"], options].concat()).expect_code(0);
        let text = std::fs::read_to_string(tree.root.join("x/README.md")).unwrap();
        for expected in [&["cargo xtask build-wheel ", "cargo xtask test "], expected].concat() {
            assert!(text.contains(expected), "{expected:?} is not in:\n{text}");
        }
        assert_eq!(text.contains("no CUDA, no\nGPU"), options == ["--cuda", "13"]);
    }
}

/// A checkout whose path has whatever a path may have.
#[test]
fn paths_of_a_checkout_are_quoted_in_manifests() {
    let tree = Tree::new();
    let checkout = tree.root.join("a \"b\" \\c ü");
    for package in ["cuwheel", "cuwheel-build", "cuwheel-dispatcher", "cuwheel-exchange"] {
        let directory = checkout.join("crates").join(package);
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("Cargo.toml"), "").unwrap();
    }
    new(&tree, &["x", "--no-git", "--cuwheel", checkout.to_str().unwrap()]).expect_code(0);
    for (manifest, table, name) in
        [("Cargo.toml", "build-dependencies", "cuwheel-build"), ("xtask/Cargo.toml", "dependencies", "cuwheel")]
    {
        let text = std::fs::read_to_string(tree.root.join("x").join(manifest)).unwrap();
        let document: toml_edit::DocumentMut = text.parse().unwrap();
        let path = document[table][name]["path"].as_str().unwrap();
        assert_eq!(Path::new(path), checkout.join("crates").join(name));
    }
    assert!(std::fs::read_to_string(tree.root.join("x/Cargo.toml")).unwrap().contains("are those of the checkout"));
}

/// The files are what their tools take, and are formatted as these would.
#[test]
fn every_set_of_options_gives_files_that_can_be_read() {
    for options in OPTIONS {
        let tree = Tree::new();
        new(&tree, &[&["My.Ext-2", "--no-git"], *options].concat()).expect_code(0);
        let root = tree.root.join("My.Ext-2");
        let files = cuwheel::files::read_tree(&root).unwrap();
        for (path, content) in &files {
            let text = String::from_utf8(content.clone()).unwrap();
            assert!(!["{=", "=}", "{%", "%}", "{##"].iter().any(|mark| text.contains(mark)), "{path}:\n{text}");
            assert!(!text.lines().any(|line| line.ends_with(' ')), "{path} has spaces at the end of a line");
            assert!(text.is_empty() || text.ends_with('\n') && !text.ends_with("\n\n"), "{path} ends in one line");
            if Path::new(path).extension().is_some_and(|extension| extension == "toml") {
                text.parse::<toml_edit::DocumentMut>().unwrap_or_else(|error| panic!("{path}: {error}"));
            }
        }
        let named =
            |extension: &str| files.keys().filter(|path| path.ends_with(extension)).cloned().collect::<Vec<_>>();
        // In its usual settings, as a user has it.
        let mut rustfmt = Command::new("rustfmt");
        run(rustfmt
            .args(["--check", "--edition", "2024", "--config-path", "/dev/null"])
            .args(named(".rs"))
            .current_dir(&root))
        .expect_code(0);
        let parse =
            "import ast, sys\nfor path in sys.argv[1:]:\n    ast.parse(open(path, encoding='utf-8').read(), path)\n";
        let mut python = Command::new(interpreter().base_executable);
        python.args(["-c", parse]).args(named(".py")).args(named(".pyi"));
        run(python.current_dir(&root)).expect_code(0);
    }
}

#[test]
fn the_workflows_are_what_ci_render_makes_and_nothing_is_wrong_with_them() {
    for options in OPTIONS {
        let tree = Tree::new();
        new(&tree, &[&["My.Ext-2", "--no-git"], *options].concat()).expect_code(0);
        let root = tree.root.join("My.Ext-2");
        if options == &["--ci", "none"] {
            assert!(!root.join(".github").exists() && !root.join("ci").exists());
            continue;
        }
        run(cuwheel(&root).args(["ci", "check"])).expect_code(0);
        let ran = run(cuwheel(&root).args(["ci", "lint", "--json"])).expect_code(0).json();
        assert_eq!(ran["repositories"][0]["findings"], serde_json::json!([]), "{options:?}");
        let script = root.join("ci/test-gpu.slurm.sh");
        assert_eq!(cuwheel::files::is_executable(&script), options.contains(&"github,gitlab,slurm"));
    }
}

#[test]
fn doctor_finds_nothing_whatever_the_options() {
    for options in OPTIONS {
        let tree = Tree::new();
        new(&tree, &[&["My.Ext-2", "--no-git"], *options].concat()).expect_code(0);
        let ran = run(cuwheel(&tree.root.join("My.Ext-2")).args(["doctor", "--no-machine"]));
        assert!(ran.code == Some(0) && ran.stdout.contains("findings  none"), "{options:?}\n{}", ran.stdout);
    }
}

#[test]
fn a_project_is_a_git_repository_with_nothing_committed() {
    let tree = Tree::new();
    let ran = new(&tree, &["x"]).expect_code(0);
    assert!(ran.stdout.ends_with("next\n  cd x\n  cargo xtask build-wheel\n  cargo xtask test\n"), "{}", ran.stdout);
    assert!(tree.root.join("x/.git/HEAD").is_file());
    assert!(!run(Command::new("git").args(["rev-parse", "HEAD"]).current_dir(tree.root.join("x"))).code.eq(&Some(0)));
    // Inside of a repository, none of its own; with --no-git, none at all.
    new(&tree, &["y", "--path", "x/y"]).expect_code(0);
    new(&tree, &["z", "--no-git"]).expect_code(0);
    assert!(!tree.root.join("x/y/.git").exists() && !tree.root.join("z/.git").exists());
    // Without git, a warning.
    let mut without = cuwheel(&tree.root);
    without.args(["new", "w", "--json"]).env("PATH", tree.root.join("nothing"));
    let ran = run(&mut without).expect_code(0);
    assert!(ran.stderr.contains("there is no git on PATH"), "{}", ran.stderr);
    assert!(tree.root.join("w/Cargo.toml").is_file());
}

#[test]
fn the_path_names_the_directory_itself_and_what_is_above_it_is_made() {
    let tree = Tree::new();
    let ran = new(&tree, &["x", "--no-git", "--path", "deep/er/sp ace ü", "--json"]).expect_code(0).json();
    assert_eq!(ran["directory"], tree.root.join("deep/er/sp ace ü").to_str().unwrap());
    assert!(tree.root.join("deep/er/sp ace ü/pyproject.toml").is_file());
    assert_eq!(names_in(&tree.root.join("deep/er")), ["sp ace ü"]);
    // The mode is that of any directory, not that of a private one.
    let mode = |path: &Path| std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(path).unwrap().permissions());
    assert_eq!(mode(&tree.root.join("deep/er/sp ace ü")), mode(&tree.root.join("deep/er")));
}

#[test]
fn a_directory_without_files_is_filled_and_one_with_files_is_left_alone() {
    let tree = Tree::new();
    // The shell of whoever runs `new x --path .` stays where it is.
    let directory = tree.root.join("empty");
    std::fs::create_dir(&directory).unwrap();
    run(Command::new("git").args(["init", "--quiet"]).current_dir(&directory)).expect_code(0);
    let identity = std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(&directory).unwrap());
    let ran = run(cuwheel(&directory).args(["new", "x", "--path", "."])).expect_code(0);
    assert!(ran.stdout.contains("  cd .\n"), "{}", ran.stdout);
    assert_eq!(std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(&directory).unwrap()), identity);
    assert!(directory.join("pyproject.toml").is_file() && directory.join(".git/HEAD").is_file());
    assert!(names_in(&directory).iter().all(|name| !name.starts_with(".cuwheel-new-")));

    let before = cuwheel::files::read_tree(&directory).unwrap();
    let ran = new(&tree, &["x", "--path", "empty"]).expect_code(2);
    assert!(
        ran.stderr.contains("is not empty\n  it has .cargo, .github, .gitignore, Cargo.toml, LICENSE-APACHE and "),
        "{}",
        ran.stderr
    );
    assert_eq!(cuwheel::files::read_tree(&directory).unwrap(), before);
}

#[test]
fn what_is_in_the_way_is_named() {
    let tree = Tree::new();
    tree.write("file", "text");
    std::os::unix::fs::symlink("/no/where", tree.root.join("dangling")).unwrap();
    for (path, message) in [
        ("file", "is in the way, and is no directory"),
        ("dangling", "is in the way, and is no directory"),
        ("file/inside", "is no directory"),
        ("/", "is not empty"),
    ] {
        let ran = new(&tree, &["x", "--path", path]).expect_code(2);
        assert!(ran.stderr.contains(message) && ran.stderr.contains("fix: "), "{path}: {}", ran.stderr);
    }
    assert_eq!(names_in(&tree.root), ["dangling", "file"]);
}

#[test]
fn nothing_is_left_of_a_project_that_could_not_be_written() {
    let tree = Tree::new();
    // A small limit on the size of files stands for a full disk.
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' XFSZ; ulimit -f 1; exec \"$0\" \"$@\""]).arg(env!("CARGO_BIN_EXE_cuwheel"));
    command.args(["new", "x", "--no-git", "--path", "deep/x"]).current_dir(&tree.root);
    let ran = run(&mut command);
    assert!(ran.code != Some(0) && ran.stderr.contains("error: "), "{:?} {}", ran.code, ran.stderr);
    assert_eq!(names_in(&tree.root), Vec::<String>::new());
    // Nor of one in a directory that was there.
    std::fs::create_dir(tree.root.join("there")).unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' XFSZ; ulimit -f 1; exec \"$0\" \"$@\""]).arg(env!("CARGO_BIN_EXE_cuwheel"));
    command.args(["new", "x", "--no-git", "--path", "there"]).current_dir(&tree.root);
    assert_ne!(run(&mut command).code, Some(0));
    assert_eq!(names_in(&tree.root.join("there")), Vec::<String>::new());
}

#[test]
fn a_project_inside_of_a_workspace_of_cargo_is_its_own() {
    let tree = Tree::new();
    tree.write("Cargo.toml", "[workspace]\nmembers = ['one']\n")
        .write("one/Cargo.toml", "[package]\nname = 'one'\nversion = '0.1.0'\n")
        .write("one/src/lib.rs", "");
    new(&tree, &["x"]).expect_code(0);
    let mut cargo = Command::new("cargo");
    cargo.args(["metadata", "--no-deps", "--offline", "--format-version", "1"]).current_dir(tree.root.join("x"));
    let metadata = run(&mut cargo).expect_code(0).json();
    assert_eq!(metadata["workspace_root"], tree.root.join("x").to_str().unwrap());
    let mut packages: Vec<&str> =
        metadata["packages"].as_array().unwrap().iter().map(|package| package["name"].as_str().unwrap()).collect();
    packages.sort_unstable();
    assert_eq!(packages, ["x", "xtask"]);
}
