//! `cuwheel test-gpu` on the stand-in driver: policy, proof, workers that go, and reports.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::support::{GpuProject, Ran, run};

/// Loads the driver as a library under test would, with a context.
const CUDA: &str = "\
import ctypes, os, pytest, time, matpkg

def cuda():
    driver = ctypes.CDLL('libcuda.so.1')
    assert driver.cuInit(0) == 0
    assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(ctypes.c_void_p()), 0) == 0
    return driver

def test_of_the_gpu():
    cuda()
    assert matpkg.SOURCE == 'wheel'

";

fn project(more: &str) -> GpuProject {
    GpuProject::new(&format!("{CUDA}{more}"))
}

/// Outcomes by the names of the tests.
fn outcomes(report: &Value) -> BTreeMap<&str, &str> {
    let tests = report["tests"].as_array().unwrap().iter();
    tests
        .map(|test| (test["id"].as_str().unwrap().rsplit(':').next().unwrap(), test["outcome"].as_str().unwrap()))
        .collect()
}

fn report(ran: &Ran) -> Value {
    ran.json()["report"].take()
}

#[test]
fn a_run_reports_devices_counts_and_proof_in_every_form() {
    let project = project("@pytest.mark.memory_gib(100)\ndef test_large():\n    pass\n");
    let file = |name: &str| project.project.tree.beside(name);
    let mut command = project.test_gpu(&["--json"]);
    for name in ["junit", "report", "html"] {
        command.arg(format!("--{name}")).arg(file(name));
    }
    let ran = run(&mut command).expect_code(0);
    let report = report(&ran);
    assert_eq!((&report["counts"]["passed"], &report["executed_gpu_tests"]), (&1.into(), &1.into()));
    assert_eq!(report["machine"]["devices"][0]["compute_capability"], serde_json::json!([9, 0]));
    assert_eq!(report["modules_proven"], 1);
    let reason = "needs 100 GiB of GPU memory; cuda-stub stand-in for NVIDIA H200 has 1.0";
    assert_eq!(report["skips"], serde_json::json!([{ "count": 1, "reason": reason }]));
    let text = |name: &str| std::fs::read_to_string(file(name)).unwrap();
    let written: Value = serde_json::from_str(&text("report")).unwrap();
    assert_eq!(written["tests"], report["tests"]);
    assert!(text("junit").contains("tests=\"2\" failures=\"0\" errors=\"0\" skipped=\"1\""), "{}", text("junit"));
    let page = text("html");
    assert!(page.contains("GPU tests passed") && page.contains(reason) && !page.contains("src="), "{page}");
}

#[test]
fn pk_68_required_asks_for_executed_gpu_tests() {
    for (test, fault) in [
        ("import pytest\n\n@pytest.mark.skip\ndef test_it():\n    pass\n", "no GPU test was executed"),
        ("def test_it():\n    pass\n", "no test loaded the CUDA driver"),
        (
            &format!("{CUDA}def test_it():\n    pytest.skip('CUDA is not available')\n"),
            "test_it was skipped for want of a GPU: CUDA is not available",
        ),
        (&format!("{CUDA}@pytest.mark.gpu\n@pytest.mark.skip\ndef test_it():\n    pass\n"), "no GPU test was executed"),
        ("", "no GPU test was executed"),
    ] {
        let ran = run(&mut GpuProject::new(test).test_gpu(&[])).expect_code(1);
        assert!(ran.stdout.contains(fault), "{fault}: {}", ran.stdout);
    }
}

#[test]
fn what_a_run_without_a_gpu_is_worth_is_a_matter_of_policy() {
    let test = "import pytest\n\n@pytest.mark.gpu\ndef test_gpu():\n    assert False\n\ndef test_other():\n    pass\n";
    let project = GpuProject::new(test);
    for (policy, code, skip) in [
        ("required", 3, None),
        ("auto", 0, Some("needs a GPU; this machine has none that is fit")),
        ("off", 0, Some("needs a GPU; --gpu off")),
    ] {
        let mut command = project.test_gpu(&["--gpu", policy, "--json"]);
        let ran = run(command.env("CUDA_STUB", "no_device")).expect_code(code);
        match skip {
            Some(reason) => assert_eq!(report(&ran)["skips"][0]["reason"], reason),
            None => assert_eq!(ran.json()["error"]["message"], "the CUDA driver is present, but it has no device"),
        }
    }
    // Without a marker `gpu` in the whole run, all tests are GPU tests.
    let unmarked = GpuProject::new("def test_it():\n    assert False\n");
    let ran = run(unmarked.test_gpu(&["--gpus", "off", "--json"]).env("CUDA_STUB", "no_device")).expect_code(0);
    assert_eq!(report(&ran)["skips"][0]["reason"], "needs a GPU; --gpu off");
    // Where there is a GPU, `auto` is `required`.
    run(project.test_gpu(&["--gpu", "auto"]).env("CUDA_STUB", "")).expect_code(1);
}

#[test]
fn what_takes_its_worker_along_is_named_and_the_rest_is_run() {
    let project = project(
        "\
def test_hangs():
    time.sleep(600)

def test_crashes():
    ctypes.string_at(1)

def test_ruins():
    assert cuda().cuMemFree_v2(ctypes.c_uint64(1)) == 700

def test_exits():
    os._exit(0)

def test_after():
    cuda()
",
    );
    let mut command = project.test_gpu(&["--json", "--timeout", "4"]);
    command.env("CUDA_STUB", "sticky=cuMemFree:1:CUDA_ERROR_ILLEGAL_ADDRESS");
    let report = report(&run(&mut command).expect_code(1));
    let expected = BTreeMap::from([
        ("test_of_the_gpu", "passed"),
        ("test_hangs", "failed"),
        ("test_crashes", "failed"),
        ("test_ruins", "failed"),
        ("test_exits", "failed"),
        ("test_after", "passed"),
    ]);
    assert_eq!(outcomes(&report), expected);
    let incidents = report["incidents"].as_array().unwrap();
    let said = |index: usize| incidents[index]["message"].as_str().unwrap();
    assert_eq!(said(0), "took longer than 4 s");
    assert!(incidents[0]["log"].as_str().unwrap().contains("in test_hangs"), "the stack is in {}", incidents[0]["log"]);
    assert_eq!(said(1), "the process crashed: SIGSEGV");
    assert!(incidents[1]["log"].as_str().unwrap().contains("in test_crashes"), "{}", incidents[1]["log"]);
    assert_eq!(said(2), "its CUDA context was ruined: CUDA_ERROR_ILLEGAL_ADDRESS");
    assert_eq!(said(3), "the process crashed: exit code 0");
    assert_eq!(report["workers"].as_array().unwrap().len(), 5);
}

#[test]
fn a_run_that_takes_too_long_ends_with_what_it_knows() {
    let project = project("def test_hangs():\n    time.sleep(600)\n\ndef test_after():\n    pass\n");
    let ran = run(&mut project.test_gpu(&["--json", "--total-timeout", "6"])).expect_code(1);
    let report = report(&ran);
    assert_eq!(outcomes(&report)["test_of_the_gpu"], "passed");
    assert_eq!(outcomes(&report)["test_after"], "not-run");
    assert_eq!(
        report["faults"][0],
        "total-timeout: the run took longer than 6 s, while tests/gpu/test_it.py::test_hangs ran"
    );
}

#[test]
fn files_are_shared_out_to_devices_and_tests_of_several_run_apart() {
    let project = project("");
    let test = "import os, pytest\n\ndef test_one():\n    print(os.environ['CUDA_VISIBLE_DEVICES'])\n    assert False\n\n\
                @pytest.mark.multi_gpu(2)\ndef test_two():\n    assert os.environ['CUDA_VISIBLE_DEVICES'] == '0,1'\n\n\
                @pytest.mark.multi_gpu(3)\ndef test_three():\n    pass\n";
    for name in ["a", "b"] {
        project.project.write(&format!("tests/gpu/test_{name}.py"), test);
    }
    let ran = run(project.test_gpu(&["--json"]).env("CUDA_STUB", "devices=2")).expect_code(1);
    let report = report(&ran);
    let tests = report["tests"].as_array().unwrap();
    for test in tests.iter().filter(|test| test["id"].as_str().unwrap().ends_with("test_one")) {
        // The worker saw the device that the report names, and no other.
        assert_eq!(test["output"][0][1], format!("{}\n", test["devices"][0]));
    }
    let two = tests.iter().filter(|test| test["outcome"] == "passed" && test["devices"] == serde_json::json!([0, 1]));
    assert_eq!(two.count(), 2);
    assert_eq!(report["skips"][0]["reason"], "needs 3 GPUs; the run has 2");
    let devices: Vec<&Value> = report["workers"].as_array().unwrap().iter().map(|worker| &worker["devices"]).collect();
    assert!(devices.len() == 3 && devices.contains(&&serde_json::json!([1])), "{devices:?}");
}

#[test]
fn pk_66_a_test_that_replaces_the_installed_package_is_found() {
    let project = project("def test_it():\n    open(matpkg.__file__, 'a').write('# another build')\n");
    let ran = run(&mut project.test_gpu(&[])).expect_code(1);
    let message = "matpkg/__init__.py was installed from the wheel and is another file now";
    assert!(ran.stderr.contains(message), "{}", ran.stderr);
}

#[test]
fn the_source_tree_is_not_tested() {
    let project = project("");
    let tree = project.project.tree.root.display().to_string();
    project
        .project
        .write("tests/gpu/conftest.py", &format!("import sys\nsys.path.insert(0, {tree:?})\nimport matpkg\n"));
    let ran = run(&mut project.test_gpu(&[])).expect_code(1);
    assert!(ran.stderr.contains(&format!("found through the sys.path entry '{tree}'")), "{}", ran.stderr);
}

#[test]
fn mistakes_in_tests_and_arguments_are_told_apart() {
    let project = project("");
    project.project.write("tests/gpu/test_bad.py", "import no_such_module\n");
    let report = report(&run(&mut project.test_gpu(&["--json"])).expect_code(1));
    assert_eq!((&report["counts"]["errors"], &report["counts"]["passed"]), (&1.into(), &1.into()));
    let ran = run(&mut project.test_gpu(&["--", "--no-such-option"])).expect_code(2);
    assert!(ran.stderr.contains("pytest refuses its arguments"), "{}", ran.stderr);
    let ran = run(&mut project.test_gpu(&["--", "tests/gpu/test_it.py", "-k", "of_the_gpu"])).expect_code(0);
    assert!(ran.stdout.contains("1 passed, 0 failed, 0 skipped"), "{}", ran.stdout);
}

#[test]
fn pk_67_73_a_cuda_library_from_elsewhere_is_named() {
    let project = project(
        "\
def test_loads_a_copy():
    import shutil, sysconfig
    owner = os.path.join(sysconfig.get_path('purelib'), 'nvidia', 'libcudart_it.so.12')
    shutil.copy(os.environ['COPY'] + '/libcudart_it.so.12', os.path.dirname(owner))
    ctypes.CDLL(os.environ['COPY'] + '/libcudart_it.so.12')
",
    );
    let copy = project.project.tree.beside("copy");
    std::fs::create_dir(&copy).unwrap();
    std::fs::copy(project.driver().join("libcuda.so.1"), copy.join("libcudart_it.so.12")).unwrap();
    let library = std::fs::read(project.driver().join("libcuda.so.1")).unwrap();
    let name = "matpkg-0.1.0-py3-none-any.whl";
    let wheel = cuwheel_inspect::testing::WheelBuilder::new(name)
        .file("matpkg/__init__.py", "SOURCE = 'wheel'\n")
        .file("nvidia/libcudart_it.so.12", library);
    std::fs::write(&project.project.wheel, wheel.build()).unwrap();
    for (arguments, code) in [(&["--json"][..], 1), (&["--json", "--keep-env"], 0)] {
        let ran = run(project.test_gpu(arguments).env("COPY", &copy)).expect_code(code);
        let report = report(&ran);
        let named = report["faults"].to_string();
        let intruder = format!("{}/libcudart_it.so.12 was loaded instead of", copy.display());
        assert_eq!(named.contains(&intruder), code == 1, "{named}");
    }
}

/// Runs what it is given, and lets the tests write what the true program would.
const SANITIZER: &str = "#!/bin/sh
[ \"$1 $2\" = '--tool racecheck' ] || exit 9
while [ \"$1\" != --log-file ]; do shift; done
export FINDINGS=\"$2\"
shift 2
echo '========= COMPUTE-SANITIZER' > \"$FINDINGS\"
\"$@\"
code=$?
echo '========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)' >> \"$FINDINGS\"
exit $code
";

#[test]
fn findings_of_the_sanitizer_are_those_of_the_test_that_ran() {
    let project = project(
        "\
def test_races():
    with open(os.environ['FINDINGS'], 'a') as log:
        log.write('========= Error: Race reported between Write access at k+0x10\\n')
        log.write('=========     and Read access at k+0x20 [4 hazards]\\n=========\\n')

def test_after():
    pass
",
    );
    let tools = project.project.tree.beside("tools");
    std::fs::create_dir(&tools).unwrap();
    let arguments = ["--json", "--sanitizer", "racecheck"];
    if !std::path::Path::new("/usr/local/cuda/bin/compute-sanitizer").exists() {
        let ran = run(&mut project.test_gpu(&arguments)).expect_code(3);
        assert!(ran.stderr.contains("there is no compute-sanitizer on PATH"), "{}", ran.stderr);
    }
    let program = tools.join("compute-sanitizer");
    std::fs::write(&program, SANITIZER).unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut command = project.test_gpu(&arguments);
    command.env("PATH", std::env::join_paths([tools.as_path(), "/usr/bin".as_ref(), "/bin".as_ref()]).unwrap());
    command.env("CUWHEEL_PYTHON", crate::support::interpreter().base_executable);
    let report = report(&run(&mut command).expect_code(1));
    assert_eq!(report["sanitizer"], "racecheck");
    let outcomes = outcomes(&report);
    assert_eq!((outcomes["test_of_the_gpu"], outcomes["test_after"]), ("passed", "passed"));
    let races = report["tests"].as_array().unwrap().iter().find(|test| test["outcome"] == "failed").unwrap();
    let expected = serde_json::json!([{
        "message": "Error: Race reported between Write access at k+0x10",
        "details": ["and Read access at k+0x20 [4 hazards]"],
    }]);
    assert_eq!(races["findings"], expected);
}
