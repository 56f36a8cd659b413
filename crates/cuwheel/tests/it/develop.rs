//! `develop`: where it installs, when it is current, and that it is safe at any moment.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::{EditableProject, interpreter, is_built_with, python_of, quiet, run, site_packages, uv};

const LOADED: &str = "import small; print(small._native.__file__)";

#[test]
fn python_files_stay_live_and_the_library_is_the_one_that_was_built() {
    let project = EditableProject::new();
    let installed = project.develop(&["--json"]).expect_code(0).json();
    assert_eq!(installed["environment"]["path"], project.path(".venv").to_str().unwrap());
    assert_eq!(
        (&installed["environment"]["origin"], &installed["environment"]["created"]),
        (&"project".into(), &true.into())
    );
    assert_eq!(
        installed["warnings"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|w| !w.as_str().unwrap().starts_with("waiting"))
            .count(),
        0
    );
    let module = &installed["modules"][0];
    assert_eq!((module["name"].as_str(), module["file"].as_str()), (Some("small._native"), project.library().to_str()));
    assert_eq!(module["sha256"], cuwheel::files::sha256_of_file(&project.library()).unwrap());
    assert_eq!(project.prints(LOADED), project.library().to_str().unwrap());

    project.tree.write("python/small/live.py", "VALUE = 2\n").write("python/small/new.py", "");
    assert_eq!(project.prints("import small.new; print(small.VALUE)"), "2");
    // That was no reason to build.
    assert_eq!(project.reasons(), Vec::<String>::new());
    let again = project.develop(&["--json"]).expect_code(0).json();
    assert_eq!((&again["was_current"], &again["compiled_crates"]), (&true.into(), &0.into()));
    let list = Command::new(uv().program())
        .args(["pip", "list", "--format", "json", "--python"])
        .arg(project.path(".venv/bin/python"))
        .output()
        .unwrap();
    let list: serde_json::Value = serde_json::from_slice(&list.stdout).unwrap();
    assert_eq!(list[0]["editable_project_location"], project.tree.root.to_str().unwrap());
}

#[test]
fn the_environment_is_the_given_one_then_the_active_one() {
    let project = EditableProject::new();
    let (active, given) = (project.tree.beside("active"), project.tree.beside("given one"));
    uv().create_environment(&interpreter(), &active).unwrap();
    let mut develop = project.command("develop", &[]);
    let ran = run(develop.env("VIRTUAL_ENV", &active)).expect_code(0);
    assert!(
        ran.stdout.starts_with(&format!("environment  {} (active by VIRTUAL_ENV)\n", active.display())),
        "{}",
        ran.stdout
    );
    let mut develop = project.command("develop", &["--venv"]);
    let ran = run(develop.arg(&given).env("VIRTUAL_ENV", &active)).expect_code(0);
    assert!(ran.stdout.starts_with(&format!("environment  {} (given by --venv)\n", given.display())), "{}", ran.stdout);
    assert!(!project.path(".venv").exists());
    // Both are current: environments of one checkout do not disturb each other.
    for environment in [&active, &given] {
        assert_eq!(
            run(python_of(environment).args(["-c", LOADED])).expect_code(0).stdout.trim(),
            project.library().to_str().unwrap()
        );
        run(project.command("develop", &["--check", "--venv"]).arg(environment)).expect_code(0);
    }
}

#[test]
fn what_is_no_environment_is_refused() {
    let project = EditableProject::new();
    let refused = |develop: &mut Command, expected: &str| {
        let ran = run(develop).expect_code(2);
        assert!(ran.stderr.contains(expected) && ran.stderr.contains("\nfix: "), "{}", ran.stderr);
    };
    refused(project.command("develop", &["--venv", "src"]).arg("--check"), "is no virtual environment");
    let system = interpreter().base_prefix;
    let message = format!("VIRTUAL_ENV names {}, which is no virtual environment", system.display());
    refused(project.command("develop", &[]).env("VIRTUAL_ENV", &system), &message);
    refused(project.command("develop", &[]).env("VIRTUAL_ENV", "/no/where"), "which does not exist any more");
    refused(&mut project.command("develop", &["--python", "/no/python"]), "is no interpreter");
    assert!(!project.path(".venv").exists());
}

#[test]
fn pk_39_and_pk_43_what_counts_is_content() {
    let project = EditableProject::new();
    assert_eq!(project.reasons(), [format!("there is no environment at {}", project.path(".venv").display())]);
    project.develop(&[]).expect_code(0);
    assert_eq!(project.reasons(), Vec::<String>::new());
    // The same content at another time, within the second of the install.
    let library = std::fs::read(project.path("src/lib.rs")).unwrap();
    project.tree.write("src/lib.rs", &library).write("README.md", "nothing that is compiled");
    assert_eq!(project.reasons(), Vec::<String>::new());
    // Another content at the old time.
    let before = std::fs::metadata(project.path("src/lib.rs")).unwrap().modified().unwrap();
    project.change_source("other");
    std::fs::File::options().append(true).open(project.path("src/lib.rs")).unwrap().set_modified(before).unwrap();
    assert_eq!(project.reasons(), ["src/lib.rs changed"]);
    let ran = run(project.command("develop", &["--check"]).env("CFLAGS", "-O1")).expect_code(1);
    assert!(ran.stdout.ends_with(" is stale\n  the variable CFLAGS is new\n  src/lib.rs changed\n"), "{}", ran.stdout);
    project.tree.write("src/lib.rs", &library);
    for (path, text) in
        [("src/shim.c", "int one;"), ("src/kernel.cu", ""), ("build.rs", "fn main() {}"), ("rust-toolchain", "")]
    {
        project.tree.write(path, text);
        assert_eq!(project.reasons(), [format!("{path} is new")]);
        std::fs::remove_file(project.path(path)).unwrap();
    }
    let lock = std::fs::read_to_string(project.path("Cargo.lock")).unwrap();
    project.tree.write("Cargo.lock", format!("{lock}\n# changed\n"));
    assert_eq!(project.reasons(), ["Cargo.lock changed"]);
}

#[test]
fn pk_48_what_is_missing_is_noticed_though_metadata_says_that_it_is_installed() {
    let project = EditableProject::new();
    let target = project.tree.beside("target");
    let develop = |arguments: &[&str]| {
        let mut develop = project.command("develop", arguments);
        run(develop.env("CARGO_TARGET_DIR", &target))
    };
    develop(&[]).expect_code(0);
    // Nothing that is imported lies in the build directory.
    std::fs::remove_dir_all(&target).unwrap();
    assert_eq!(project.prints(LOADED), project.library().to_str().unwrap());
    develop(&["--check"]).expect_code(0);
    std::fs::remove_file(project.library()).unwrap();
    let ran = develop(&["--check"]).expect_code(1);
    assert!(ran.stdout.contains("python/small/_native.abi3.so is missing\n"), "{}", ran.stdout);
    develop(&[]).expect_code(0);
    assert_eq!(project.prints(LOADED), project.library().to_str().unwrap());
    // Somebody else's install takes the place of ours.
    let pth = site_packages(&project.path(".venv")).join("__editable__.small-0.1.0.pth");
    std::fs::remove_file(&pth).unwrap();
    let ran = develop(&["--check"]).expect_code(1);
    assert!(ran.stdout.contains("small._native is not on the search path\n"), "{}", ran.stdout);
    develop(&[]).expect_code(0);
    assert!(pth.is_file());
}

#[test]
fn pk_40_an_older_library_that_wins_the_import_is_removed_when_it_is_ours() {
    let project = EditableProject::new();
    let manifest = std::fs::read_to_string(project.path("Cargo.toml")).unwrap();
    project.tree.write("Cargo.toml", manifest.replace("default = ['abi3']", "default = []"));
    let specific =
        project.develop(&["--json"]).expect_code(0).json()["modules"][0]["file"].as_str().unwrap().to_owned();
    assert!(specific.contains("/_native.cpython-3"), "{specific}");
    project.tree.write("Cargo.toml", manifest);
    let installed = project.develop(&["--json"]).expect_code(0).json();
    assert_eq!(installed["removed"], serde_json::json!([specific]));
    assert_eq!(project.prints(LOADED), project.library().to_str().unwrap());
}

#[test]
fn pk_40_whatever_else_wins_the_import_is_named_and_not_touched() {
    let project = EditableProject::new();
    project.develop(&[]).expect_code(0);
    let specific = project.path(&format!("python/small/_native.{}.so", interpreter().abi));
    let site = site_packages(&project.path(".venv"));
    // Beside the library; a package instead of a module; a copy in site-packages; one earlier on the path.
    let elsewhere = project.tree.beside("elsewhere/small/__init__.py");
    let cases = [
        (specific.clone(), specific),
        (project.path("python/small/_native/__init__.py"), project.path("python/small/_native/__init__.py")),
        (site.join("small/__init__.py"), site.join("small/__init__.py")),
        (elsewhere.clone(), elsewhere),
    ];
    for (file, winner) in cases {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, "not ours").unwrap();
        let develop = |arguments: &[&str]| {
            let mut develop = project.command("develop", arguments);
            run(develop.env("PYTHONPATH", project.tree.beside("elsewhere")))
        };
        let reason = format!("small._native is imported from {}", winner.display());
        let checked = develop(&["--check"]).expect_code(1);
        assert!(checked.stdout.contains(&reason), "{}", checked.stdout);
        let ran = develop(&[]).expect_code(1);
        assert!(ran.stderr.contains("what was built of small is not what Python imports"), "{}", ran.stderr);
        assert!(ran.stderr.contains(&reason), "{}", ran.stderr);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "not ours");
        std::fs::remove_file(&file).unwrap();
        let _ = std::fs::remove_dir(file.parent().unwrap());
    }
    // A finder that another tool left: it is asked before the search path is.
    let finder = "import importlib.util as u, sys\nclass Finder:\n    def find_spec(self, name, path=None, target=None):\n        \
                  if name == 'small': return u.spec_from_file_location(name, '/build/small/__init__.py')\n\
                  sys.meta_path.insert(0, Finder())\n";
    std::fs::write(site.join("other_tool.py"), finder).unwrap();
    std::fs::write(site.join("other_tool.pth"), "import other_tool\n").unwrap();
    assert_eq!(project.reasons()[0], "the last install did not get to its end");
    let ran = project.develop(&[]).expect_code(1);
    assert!(ran.stderr.contains("small._native is imported from /build/small/__init__.py"), "{}", ran.stderr);
    std::fs::remove_file(site.join("other_tool.pth")).unwrap();
    project.develop(&[]).expect_code(0);
}

#[test]
fn pk_41_another_interpreter_in_the_environment_is_noticed() {
    let project = EditableProject::new();
    let manifest = std::fs::read_to_string(project.path("Cargo.toml")).unwrap();
    project.tree.write("Cargo.toml", manifest.replace("default = ['abi3']", "default = []"));
    project.develop(&[]).expect_code(0);
    let first = project.path(&format!("python/small/_native.{}.so", interpreter().abi));
    assert!(first.is_file());
    let other = [(3, 12), (3, 13), (3, 11)].into_iter().find_map(|version| {
        let request = cuwheel::interpreter::Request::Version { version, free_threaded: false };
        cuwheel::interpreter::find(Some(&request), &quiet()).ok().filter(|found| found.abi != interpreter().abi)
    });
    // Where there is one interpreter only, there is nothing to make the environment anew with.
    let Some(other) = other else { return };
    std::fs::remove_dir_all(project.path(".venv")).unwrap();
    uv().create_environment(&other, &project.path(".venv")).unwrap();
    let reasons = project.reasons();
    let expected = format!("the interpreter was {} and is {other}", interpreter());
    assert!(reasons.contains(&expected), "{reasons:?}");
    let installed = project.develop(&["--json"]).expect_code(0).json();
    assert_eq!(installed["removed"], serde_json::json!([first]));
    let second = project.path(&format!("python/small/_native.{}.so", other.abi));
    assert_eq!(project.prints(LOADED), second.to_str().unwrap());
}

#[test]
fn pk_37_a_process_with_the_former_library_goes_on_and_is_named() {
    let project = EditableProject::new();
    project.change_source("one");
    project.develop(&[]).expect_code(0);
    let mut running = project
        .python()
        .args(["-c", "import small; print('ready', flush=True); input(); import small._native as n; print(n.__name__)"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(running.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    project.change_source("two");
    let ran = project.develop(&["--json"]).expect_code(0);
    let found = &ran.json()["running"][0];
    assert_eq!(found["pid"], running.id());
    assert_eq!(found["reason"], "has the former _native.abi3.so loaded");
    let hint = format!("warning: process {} (", running.id());
    assert!(ran.stderr.contains(&hint) && ran.stderr.contains("start it again"), "{}", ran.stderr);
    // What it has mapped is not touched.
    running.stdin.take().unwrap().write_all(b"\n").unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "small._native");
    assert!(running.wait().unwrap().success());
    assert!(is_built_with(&project.library(), "two"));
}

#[test]
fn pk_37_a_kernel_that_lacks_what_was_installed_is_named() {
    let project = EditableProject::new();
    uv().create_environment(&interpreter(), &project.path(".venv")).unwrap();
    let mut kernel = project
        .python()
        .args(["-c", "input()", "ipykernel_launcher"])
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let running = project.develop(&["--json"]).expect_code(0).json()["running"].clone();
    assert_eq!((&running[0]["pid"], running.as_array().unwrap().len()), (&kernel.id().into(), 1), "{running}");
    assert_eq!(running[0]["reason"], "is a kernel that started before the install");
    // Nothing that it reads at its start changed.
    project.change_source("again");
    assert_eq!(project.develop(&["--json"]).expect_code(0).json()["running"], serde_json::json!([]));
    drop(kernel.stdin.take());
    kernel.wait().unwrap();
}

#[test]
fn a_link_in_the_place_of_the_library_is_replaced_and_not_written_through() {
    let project = EditableProject::new();
    let outside = project.tree.beside("outside.so");
    std::fs::write(&outside, "of somebody else").unwrap();
    std::os::unix::fs::symlink(&outside, project.library()).unwrap();
    project.develop(&[]).expect_code(0);
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "of somebody else");
    assert!(!project.library().is_symlink());
    // A link to the environment is another name for it, and stays one.
    let link = project.tree.beside("link");
    std::os::unix::fs::symlink(project.path(".venv"), &link).unwrap();
    let again = run(project.command("develop", &["--json", "--venv"]).arg(&link)).expect_code(0).json();
    assert_eq!((&again["was_current"], again["environment"]["path"].as_str()), (&true.into(), link.to_str()));
}

#[test]
fn killed_at_any_moment_it_leaves_an_install_that_imports_and_is_mended_by_the_next() {
    let project = EditableProject::new();
    let pyproject = std::fs::read_to_string(project.path("pyproject.toml")).unwrap();
    project.develop(&[]).expect_code(0);
    for (round, delay_ms) in [60, 250, 400, 500, 600, 700, 900].into_iter().enumerate() {
        project.change_source(&format!("round {round}"));
        // Every second time uv replaces what lies in site-packages too.
        let version = format!("version = '0.{}.0'", 1 + round / 2);
        project.tree.write("pyproject.toml", pyproject.replace("version = '0.1.0'", &version));
        let mut develop = project.command("develop", &["--json"]);
        let mut child = develop.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(delay_ms));
        let _ = child.kill();
        child.wait().unwrap();
        assert_eq!(project.prints(LOADED), project.library().to_str().unwrap());
    }
    project.change_source("last");
    // What a killed process may leave beside the library.
    project.tree.write("python/small/.cuwheel-new-_native.abi3.so", "half");
    project.develop(&[]).expect_code(0);
    assert!(is_built_with(&project.library(), "last"));
    assert_eq!(project.reasons(), Vec::<String>::new());
    let mut names: Vec<_> =
        std::fs::read_dir(project.path("python/small")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.retain(|name| name != "__pycache__");
    names.sort();
    assert_eq!(names, ["__init__.py", "_native.abi3.so", "live.py"]);
    let site = std::fs::read_dir(site_packages(&project.path(".venv"))).unwrap();
    let editable =
        site.filter(|entry| entry.as_ref().unwrap().file_name().to_str().unwrap().starts_with("__editable__"));
    assert_eq!(editable.count(), 1);
}

#[test]
fn what_does_not_compile_leaves_the_install_as_it_was() {
    let project = EditableProject::new();
    project.develop(&[]).expect_code(0);
    let library = std::fs::read(project.library()).unwrap();
    project.tree.write("src/lib.rs", "fn broken( {");
    let ran = project.develop(&[]).expect_code(1);
    assert!(ran.stderr.contains("this file contains an unclosed delimiter"), "{}", ran.stderr);
    assert_eq!(std::fs::read(project.library()).unwrap(), library);
    assert_eq!(project.prints(LOADED), project.library().to_str().unwrap());
    assert_eq!(project.reasons(), ["src/lib.rs changed"]);
}

#[test]
fn a_library_that_git_does_not_ignore_is_named() {
    let project = EditableProject::new();
    project.tree.write(".gitignore", "/target\n.venv\n");
    let ran = project.develop(&[]).expect_code(0);
    assert!(
        ran.stderr.contains("python/small/_native.abi3.so is a result of the build that git does not ignore"),
        "{}",
        ran.stderr
    );
}

#[test]
fn the_plan_names_the_environment_and_writes_nothing() {
    let project = EditableProject::new();
    let plan = project.develop(&["--dry-run", "--json", "--rebuild-on-import"]).expect_code(0).json();
    let environment = &plan["plan"]["environment"];
    assert_eq!((&environment["origin"], &environment["created"]), (&"project".into(), &true.into()));
    assert_eq!(plan["plan"]["rebuild_on_import"], true);
    assert!(!project.path(".venv").exists() && !project.library().exists());
    // Without any environment only on request.
    let plan = project.develop(&["--dry-run", "--json", "--system"]).expect_code(0).json();
    let environment = &plan["plan"]["environment"];
    let prefix = interpreter().base_prefix;
    assert_eq!((&environment["origin"], environment["path"].as_str()), (&"system".into(), prefix.to_str()));
}
