//! `cuwheel test-gpu` of suites that are no part of the project, and comparison with earlier reports.

use cuwheel_inspect::testing::WheelBuilder;
use serde_json::{Value, json};

use crate::support::{GpuProject, run};

const SUITE: &str = "\
import ctypes
import otherpkg
from otherpkg.inside.tests import helper

def test_steady():
    assert __name__ == 'otherpkg.inside.tests.test_it'

def test_steady_too():
    assert ctypes.CDLL('libcuda.so.1').cuInit(0) == 0

def test_changes():
    assert otherpkg.NUMBER == 1

def test_never():
    assert False
";

/// A wheel of another project, with its tests inside.
fn other_wheel(project: &GpuProject, number: u32) -> std::path::PathBuf {
    let name = "otherpkg-2.0-py3-none-any.whl";
    // `inside` is a namespace package: tests below are imported by their full names all the same.
    let builder = WheelBuilder::new(name)
        .file("otherpkg/__init__.py", format!("NUMBER = {number}\n"))
        .file("otherpkg/inside/tests/__init__.py", "")
        .file("otherpkg/inside/tests/helper.py", "")
        .file("otherpkg/inside/tests/test_it.py", SUITE);
    let path = project.project.tree.beside(name);
    std::fs::write(&path, builder.build()).unwrap();
    path
}

#[test]
fn the_suite_of_another_wheel_is_compared_with_an_earlier_report() {
    let project = GpuProject::new("");
    let wheel = other_wheel(&project, 1);
    let report = project.project.tree.beside("baseline.json");
    let suite = |arguments: &[&str]| {
        let mut command = project.test_gpu_of(&wheel, &[]);
        command.args(["--suite", "otherpkg.inside.tests", "--json"]).args(arguments);
        command
    };
    let mut first = suite(&["--report"]);
    first.arg(&report);
    run(&mut first).expect_code(1);
    let mut again = suite(&["--baseline"]);
    let found = run(again.arg(&report)).expect_code(0).json()["report"]["baseline"].take();
    let never = "otherpkg/inside/tests/test_it.py::test_never";
    assert_eq!(found["known_failures"], json!([never]));
    assert_eq!((&found["regressions"], &found["tests"]), (&json!([]), &json!(4)));
    other_wheel(&project, 2);
    let mut worse = suite(&["--baseline"]);
    let found = run(worse.arg(&report)).expect_code(1).json()["report"]["baseline"].take();
    let regression = json!({ "id": "otherpkg/inside/tests/test_it.py::test_changes", "was": "passed", "is": "failed" });
    assert_eq!(found["regressions"], json!([regression]));
}

/// What a project's configuration gives its tests is in no wheel: a plugin stands in for it, here and in a bundle.
#[test]
fn a_plugin_brings_what_a_suite_expects_and_workers_share_a_device() {
    let project = GpuProject::new("");
    // The first test ends when the third has run, which takes another worker: each has one in hand.
    let tests = "\
import ctypes, os, time

def test_it(pid_file):
    assert ctypes.CDLL('libcuda.so.1').cuInit(0) == 0
    pid_file.write_text(str(os.getpid()))
    end = time.monotonic() + 60
    while pid_file.stem == 'test_0' and not pid_file.with_name('test_2').exists():
        assert time.monotonic() < end
        time.sleep(0.05)
";
    let plugin = "import pathlib, pytest\n\n@pytest.fixture\ndef pid_file(request):\n    \
                  return pathlib.Path(r'FOLDER', request.path.stem)\n";
    let suite = project.project.tree.beside("suite");
    let pids = project.project.tree.beside("pids");
    std::fs::create_dir(&suite).unwrap();
    std::fs::create_dir(&pids).unwrap();
    for number in 0..3 {
        std::fs::write(suite.join(format!("test_{number}.py")), tests).unwrap();
    }
    let path = project.project.tree.beside("pids_for_tests.py");
    std::fs::write(&path, plugin.replace("FOLDER", pids.to_str().unwrap())).unwrap();
    let mut command = project.test_gpu(&["--json", "--workers", "2", "--suite"]);
    let ran = run(command.arg(&suite).arg("--plugin").arg(&path)).expect_code(0);
    assert_eq!(ran.json()["report"]["counts"]["passed"], 3);
    let written =
        std::fs::read_dir(&pids).unwrap().map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap());
    let processes: std::collections::BTreeSet<String> = written.collect();
    assert_eq!(processes.len(), 2);
    for wrong in ["no-plugin.py", "with-dash.py", "plugin.txt"] {
        let mut command = project.test_gpu(&["--suite"]);
        let ran = run(command.arg(&suite).args(["--plugin", wrong])).expect_code(2);
        assert!(ran.stderr.contains(&format!("{wrong} is no plugin of pytest")), "{}", ran.stderr);
    }
}

#[test]
fn a_directory_is_a_suite_and_its_tests_are_copied() {
    let project = GpuProject::new("");
    let suite = project.project.tree.beside("suite");
    std::fs::create_dir(&suite).unwrap();
    let test = "import ctypes, matpkg\n\ndef test_it():\n    assert ctypes.CDLL('libcuda.so.1').cuInit(0) == 0\n    \
                assert matpkg.SOURCE == 'wheel' and 'suite' in __file__\n";
    std::fs::write(suite.join("test_it.py"), test).unwrap();
    let ran = run(project.test_gpu(&["--json", "--suite"]).arg(&suite)).expect_code(0);
    assert_eq!(ran.json()["report"]["tests"][0]["id"], "suite/test_it.py::test_it");
    for (arguments, message) in [
        (&["--suite", "no/such/tests"][..], "there are no tests at no/such/tests, and it is no name of a package"),
        (&["--baseline", "no-report.json"], "no-report.json is no report of tests to compare with"),
    ] {
        let ran = run(&mut project.test_gpu(arguments)).expect_code(2);
        assert!(ran.stderr.contains(message), "{}", ran.stderr);
    }
    let none: Value = json!([]);
    assert_eq!(ran.json()["report"]["faults"], none);
}
