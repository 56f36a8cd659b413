//! `cuwheel test`: what is a run of the wheel, what is not, and how runs end.

use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::{PureProject, run};

const PASSES: &str = "import matpkg\n\ndef test_it():\n    assert matpkg.SOURCE == 'wheel'\n";

/// A run that has to be refused as no test of the wheel; the text that stderr has to hold.
#[track_caller]
fn refused(project: &PureProject, arguments: &[&str], message: &str) {
    let ran = run(&mut project.test(arguments)).expect_code(1);
    assert!(ran.stderr.contains(message), "{message:?} is not in:\n{}\n{}", ran.stderr, ran.stdout);
}

#[test]
fn a_conftest_that_puts_the_tree_first_is_named_with_its_entry() {
    let project = PureProject::new();
    let tree = project.tree.root.display().to_string();
    project
        .write("tests/conftest.py", &format!("import sys\nsys.path.insert(0, {tree:?})\nimport matpkg\n"))
        .write("tests/test_it.py", PASSES);
    refused(
        &project,
        &[],
        &format!("the package matpkg comes from {tree}/matpkg/__init__.py, found through the sys.path entry '{tree}'"),
    );
}

#[test]
fn a_module_that_is_loaded_from_the_tree_during_a_test_is_found_in_the_end() {
    let project = PureProject::new();
    let file = project.tree.root.join("matpkg/inner.py").display().to_string();
    let test = format!(
        "import importlib.util, sys\n\ndef test_it():\n    spec = importlib.util.spec_from_file_location('matpkg.inner', {file:?})\n    \
         sys.modules['matpkg.inner'] = module = importlib.util.module_from_spec(spec)\n    spec.loader.exec_module(module)\n"
    );
    project.write("tests/test_it.py", &test);
    refused(&project, &[], &format!("the module matpkg.inner comes from {file}"));
}

#[test]
fn pk_66_a_test_that_replaces_the_installed_package_is_found() {
    let project = PureProject::new();
    project.write(
        "tests/test_it.py",
        "import matpkg\n\ndef test_it():\n    open(matpkg.__file__, 'a').write('# another build')\n",
    );
    refused(&project, &[], "matpkg/__init__.py was installed from the wheel and is another file now");
}

#[test]
fn pk_66_a_test_that_uninstalls_a_file_is_found() {
    let project = PureProject::new();
    project.write(
        "tests/test_it.py",
        "import os, matpkg\n\ndef test_it():\n    os.unlink(matpkg.__file__.replace('__init__', 'inner'))\n",
    );
    refused(&project, &[], "matpkg/inner.py was installed and is gone");
}

#[test]
fn pk_65_the_wheel_is_taken_by_path_though_an_index_has_a_newer_version() {
    let project = PureProject::new();
    let index = project.tree.beside("index");
    std::fs::create_dir(&index).unwrap();
    let name = "matpkg-9.9.9-py3-none-any.whl";
    let newer = cuwheel_inspect::testing::WheelBuilder::new(name).file("matpkg/__init__.py", "SOURCE = 'index'\n");
    std::fs::write(index.join(name), newer.build()).unwrap();
    project.write("tests/test_it.py", PASSES);
    let mut command = project.test(&["--json"]);
    command.env("UV_FIND_LINKS", &index).env("PIP_FIND_LINKS", &index);
    let ran = run(&mut command).expect_code(0);
    let expected = cuwheel::files::sha256_of_file(&project.wheel).unwrap();
    assert_eq!(ran.json()["wheel"]["sha256"], expected.as_str());
}

#[test]
fn every_worker_of_xdist_proves_its_modules() {
    let project = PureProject::new();
    let tree = project.tree.root.display().to_string();
    project.write("tests/test_it.py", &PASSES.repeat(3).replace("def test_it", "def test_it_again"));
    run(&mut project.test(&["--", "-n", "2"])).expect_code(0);
    let test = format!(
        "import os, sys\nif 'PYTEST_XDIST_WORKER' in os.environ:\n    sys.path.insert(0, {tree:?})\nimport matpkg\n\ndef test_it():\n    pass\n"
    );
    project.write("tests/test_it.py", &test);
    refused(&project, &["--", "-n", "2"], "the module matpkg comes from");
}

#[test]
fn a_suite_without_an_executed_test_fails() {
    let project = PureProject::new();
    project.write("tests/test_it.py", "import pytest\n\n@pytest.mark.skip\ndef test_it():\n    pass\n");
    refused(&project, &[], "no test was executed (1 skipped)");
    project.write("tests/test_it.py", "");
    refused(&project, &[], "no test was executed (0 skipped)");
}

#[test]
fn outcomes_are_counted_and_a_failure_is_exit_code_1() {
    let project = PureProject::new();
    project.write(
        "tests/test_it.py",
        "import pytest\n\ndef test_passes():\n    pass\n\ndef test_fails():\n    assert False\n\n\
         @pytest.mark.skip\ndef test_skipped():\n    pass\n\n@pytest.mark.xfail\ndef test_xfail():\n    assert False\n\n\
         @pytest.fixture\ndef broken():\n    raise ValueError\n\ndef test_error(broken):\n    pass\n",
    );
    let junit = project.tree.beside("reports/junit.xml");
    std::fs::create_dir(junit.parent().unwrap()).unwrap();
    let ran = run(project.test(&["--json", "--junit"]).arg(&junit)).expect_code(1);
    let expected =
        serde_json::json!({ "passed": 1, "failed": 2, "skipped": 1, "xfailed": 1, "xpassed": 0, "errors": 0 });
    assert_eq!(ran.json()["runs"][0]["counts"], expected);
    assert!(std::fs::read_to_string(junit).unwrap().contains("tests=\"5\""));
    let chosen = run(&mut project.test(&["--", "-k", "passes or skipped"])).expect_code(0);
    assert!(chosen.stdout.ends_with("1 passed, 0 failed, 1 skipped\n"), "{}", chosen.stdout);
    let by_path = run(&mut project.test(&["--", "tests/test_it.py::test_passes"])).expect_code(0);
    assert!(by_path.stdout.ends_with("1 passed, 0 failed, 0 skipped\n"), "{}", by_path.stdout);
}

#[test]
fn a_test_file_that_cannot_be_imported_fails_the_run() {
    let project = PureProject::new();
    project.write("tests/test_bad.py", "import no_such_module\n").write("tests/test_it.py", PASSES);
    let ran = run(&mut project.test(&["--json"])).expect_code(1);
    assert_eq!(ran.json()["runs"][0]["counts"]["errors"], 1);
}

#[test]
fn pk_69_a_hanging_test_is_named_and_takes_its_descendants_along() {
    let project = PureProject::new();
    let alive = project.tree.beside("alive").display().to_string();
    let test = format!(
        "import subprocess, sys, time\n\ndef test_hangs():\n    code = 'import time, pathlib\\nwhile True:\\n  pathlib.Path({alive:?}).write_text(str(time.time()))\\n  time.sleep(0.05)'\n    \
         subprocess.Popen([sys.executable, '-c', code])\n    time.sleep(600)\n"
    );
    project.write("tests/test_it.py", &test);
    let started = Instant::now();
    refused(&project, &["--timeout", "2"], "tests/test_it.py::test_hangs took longer than a test may");
    assert!(started.elapsed() < Duration::from_mins(1));
    let last = std::fs::read_to_string(&alive).unwrap();
    std::thread::sleep(Duration::from_millis(400));
    assert_eq!(std::fs::read_to_string(&alive).unwrap(), last, "a descendant of the test is alive");
}

#[test]
fn pk_69_the_whole_run_has_a_time_out_too() {
    let project = PureProject::new();
    project.write(
        "tests/test_it.py",
        "import pytest, time\n\n@pytest.mark.parametrize('n', range(500))\ndef test_it(n):\n    time.sleep(0.3)\n",
    );
    refused(&project, &["--total-timeout", "3"], "the tests took longer than a run may");
}

#[test]
fn a_crash_of_the_interpreter_is_no_success() {
    let project = PureProject::new();
    project.write("tests/test_it.py", "import os\n\ndef test_it():\n    os.abort()\n");
    refused(&project, &[], "pytest crashed: signal: 6 (SIGABRT)");
}

#[test]
fn a_plugin_that_is_turned_off_proves_nothing() {
    let project = PureProject::new();
    project.write("tests/test_it.py", PASSES);
    refused(&project, &["--", "-p", "no:_cuwheel_proof"], "no process of the run proved that it tested the wheel");
}

#[test]
fn a_mistake_in_the_arguments_for_pytest_is_one_of_usage() {
    let project = PureProject::new();
    project.write("tests/test_it.py", PASSES);
    let ran = run(&mut project.test(&["--", "--no-such-option"])).expect_code(2);
    assert!(ran.stderr.contains("pytest refused its arguments or its configuration"), "{}", ran.stderr);
}

#[test]
fn paths_of_tests_are_those_of_the_tree_from_wherever_they_are_named() {
    let project = PureProject::new();
    project.write("tests/test_it.py", PASSES).write("tests/inner/test_other.py", "def test_other():\n    pass\n");
    let absolute = project.tree.root.join("tests/test_it.py").display().to_string();
    for (directory, argument) in [("tests", "test_it.py"), ("tests/inner", "../test_it.py::test_it"), ("", &absolute)] {
        let mut command = project.test(&["--", "-k", "tests", argument]);
        let ran = run(command.current_dir(project.tree.root.join(directory))).expect_code(0);
        assert!(ran.stdout.ends_with("1 passed, 0 failed, 0 skipped\n"), "{}", ran.stdout);
    }
}

#[test]
fn a_process_that_a_test_left_behind_ends_with_the_run() {
    let project = PureProject::new();
    let alive = project.tree.beside("alive").display().to_string();
    let test = format!(
        "import os, time, pathlib\n\ndef test_forks():\n    if os.fork() == 0:\n        while True:\n            \
         pathlib.Path({alive:?}).write_text(str(time.time()))\n            time.sleep(0.05)\n    time.sleep(0.5)\n"
    );
    project.write("tests/test_it.py", &test);
    run(&mut project.test(&[])).expect_code(0);
    let last = std::fs::read_to_string(&alive).unwrap();
    std::thread::sleep(Duration::from_millis(400));
    assert_eq!(std::fs::read_to_string(&alive).unwrap(), last);
}

#[test]
fn a_worker_that_crashed_is_not_taken_for_a_hanging_test() {
    let project = PureProject::new();
    project.write(
        "tests/test_it.py",
        "import os, time, pytest\n\ndef test_crashes():\n    os._exit(1)\n\n\
         @pytest.mark.parametrize('n', range(4))\ndef test_slow(n):\n    time.sleep(1.5)\n",
    );
    let ran = run(&mut project.test(&["--json", "--timeout", "2", "--", "-n", "2"])).expect_code(1);
    assert_eq!(ran.json()["runs"][0]["counts"]["passed"], 4, "{}", ran.stderr);
}

#[test]
fn a_second_ctrl_c_ends_a_test_that_ignores_the_first() {
    let project = PureProject::new();
    let process = project.tree.beside("pid");
    let test = format!(
        "import os, signal, time\n\ndef test_ignores():\n    signal.signal(signal.SIGINT, signal.SIG_IGN)\n    \
         open({:?}, 'w').write(str(os.getpid()))\n    time.sleep(600)\n",
        process.display().to_string()
    );
    project.write("tests/test_it.py", &test);
    let mut child = project.test(&[]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let read = || std::fs::read_to_string(&process).ok().filter(|text| !text.is_empty());
    let started = Instant::now();
    while read().is_none() {
        assert!(started.elapsed() < Duration::from_mins(2), "the test was not reached");
        std::thread::sleep(Duration::from_millis(20));
    }
    let ours = Pid::from_raw(child.id().try_into().unwrap());
    for _ in 0..2 {
        kill(ours, Signal::SIGINT).unwrap();
        std::thread::sleep(Duration::from_millis(200));
    }
    assert_eq!(child.wait().unwrap().code(), Some(130));
    std::thread::sleep(Duration::from_millis(300));
    assert!(!cuwheel::process::is_alive(&read().unwrap()), "pytest is still running");
}

#[test]
fn a_run_that_never_imports_the_package_says_so() {
    let project = PureProject::new();
    project.write("tests/test_it.py", "def test_it():\n    pass\n");
    let ran = run(&mut project.test(&["--json"])).expect_code(0);
    assert_eq!(ran.json()["warnings"], serde_json::json!(["no test imported matpkg: the run says nothing about it"]));
}

#[test]
fn a_wheel_that_is_none_or_another_project_s_is_a_mistake_of_usage() {
    let mut project = PureProject::new();
    project.write("tests/test_it.py", PASSES);
    std::fs::write(&project.wheel, "no archive").unwrap();
    run(&mut project.test(&[])).expect_code(2);
    let name = "other-0.1.0-py3-none-any.whl";
    project.wheel = project.tree.beside(name);
    std::fs::write(&project.wheel, cuwheel_inspect::testing::WheelBuilder::new(name).build()).unwrap();
    let ran = run(&mut project.test(&[])).expect_code(2);
    assert!(ran.stderr.contains("other-0.1.0-py3-none-any.whl is no wheel of matpkg"), "{}", ran.stderr);
}

#[test]
fn a_wheel_that_is_not_there_is_a_mistake_of_usage() {
    let project = PureProject::new();
    project.write("tests/test_it.py", PASSES);
    std::fs::remove_file(&project.wheel).unwrap();
    let ran = run(&mut project.test(&[])).expect_code(2);
    assert!(ran.stderr.contains("there is no wheel at"), "{}", ran.stderr);
}

#[test]
fn libraries_of_the_workspace_are_found_by_the_tests_before_those_of_the_system() {
    let project = PureProject::new();
    let pyproject = std::fs::read_to_string(project.tree.root.join("pyproject.toml")).unwrap();
    project
        .write("pyproject.toml", &format!("{pyproject}\n[tool.cuwheel.test]\nlibraries = ['stand-in']\n"))
        .write("Cargo.toml", "[package]\nname = 'matpkg'\nversion = '0.1.0'\n[workspace]\nmembers = ['stand-in']\n")
        .write(
            "stand-in/Cargo.toml",
            "[package]\nname = 'stand-in'\nversion = '0.1.0'\nedition = '2024'\n[lib]\nname = 'crypt'\ncrate-type = ['cdylib']\n",
        )
        .write(
            "stand-in/build.rs",
            "fn main() { println!(\"cargo::rustc-cdylib-link-arg=-Wl,-soname,libcrypt.so.1\"); }",
        )
        .write("stand-in/src/lib.rs", "#[unsafe(no_mangle)]\npub extern \"C\" fn stands_in() -> i32 { 42 }\n")
        .write(
            "tests/test_it.py",
            "import ctypes, matpkg\n\ndef test_it():\n    for name in ['libcrypt.so', 'libcrypt.so.1']:\n        \
             assert ctypes.CDLL(name).stands_in() == 42\n",
        );
    run(&mut project.test(&[])).expect_code(0);

    project.write("stand-in/src/lib.rs", "no rust");
    let ran = run(&mut project.test(&[])).expect_code(1);
    assert!(ran.stderr.contains("the library stand-in of the tests does not compile"), "{}", ran.stderr);

    project
        .write("stand-in/src/lib.rs", "")
        .write("stand-in/Cargo.toml", "[package]\nname = 'stand-in'\nversion = '0.1.0'\nedition = '2024'\n");
    let ran = run(&mut project.test(&[])).expect_code(2);
    assert!(ran.stderr.contains("stand-in of tool.cuwheel.test.libraries makes no shared library"), "{}", ran.stderr);
}
