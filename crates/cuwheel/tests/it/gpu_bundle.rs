//! Bundles of `cuwheel test-gpu`: made here, run where there is neither network nor tree.

use std::path::{Path, PathBuf};
use std::process::Command;

use cuwheel::files::sha256_of_file;

use crate::support::{GpuProject, Ran, Tree, interpreter, run, uv};

const TEST: &str = "\
import ctypes, matpkg

def test_it():
    assert ctypes.CDLL('libcuda.so.1').cuInit(0) == 0
    assert matpkg.SOURCE == 'wheel'
";

fn python_version() -> String {
    let (major, minor, _) = interpreter().version;
    format!("{major}.{minor}")
}

fn bundle(project: &GpuProject, name: &str) -> (PathBuf, serde_json::Value) {
    let path = project.project.tree.beside(name);
    let mut command = project.test_gpu(&["--json", "--for-python", &python_version(), "--bundle"]);
    let ran = run(command.arg(&path)).expect_code(0);
    let document = ran.json()["bundle"].take();
    (path, document)
}

/// An empty directory with an unpacked bundle in it, as on another machine.
struct Elsewhere {
    tree: Tree,
    root: PathBuf,
}

impl Elsewhere {
    fn unpack(archive: &Path) -> Self {
        let tree = Tree::new();
        let mut unpack = Command::new("tar");
        unpack.arg("--extract").arg("--file").arg(archive).current_dir(&tree.root);
        run(&mut unpack).expect_code(0);
        let root = std::fs::read_dir(&tree.root).unwrap().next().unwrap().unwrap().path();
        Self { tree, root }
    }

    /// `run` of the bundle with no network: in a name space of its own where the system allows it, and in any case without
    /// an index that could be asked.
    fn run(&self, project: &GpuProject, arguments: &[&str]) -> Ran {
        let alone = Command::new("unshare").args(["-rn", "true"]).output().is_ok_and(|ran| ran.status.success());
        let mut command = Command::new(if alone { "unshare" } else { "env" });
        if alone {
            command.args(["-rn", "env"]);
        }
        command
            .args(["-i", "PATH=/usr/bin:/bin", "CUDA_STUB=", "PIP_NO_INDEX=1"])
            .arg(format!("LD_LIBRARY_PATH={}", project.driver().display()))
            .arg(interpreter().base_executable)
            .arg(self.root.join("run"))
            .args(arguments)
            .current_dir(&self.tree.root);
        run(&mut command)
    }
}

#[test]
fn a_bundle_runs_without_network_and_tree_and_its_report_comes_back() {
    let project = GpuProject::new(TEST);
    let (archive, document) = bundle(&project, "gpu.tar.gz");
    assert_eq!(document["sha256"], sha256_of_file(&archive).unwrap());
    for part in ["wheels_bytes", "wheelhouse_bytes", "tests_bytes", "runner_bytes"] {
        assert!(document["parts"][part].as_u64().unwrap() > 0, "{document}");
    }
    let elsewhere = Elsewhere::unpack(&archive);
    std::fs::rename(&project.project.tree.root, project.project.tree.beside("away")).unwrap();
    let there = elsewhere.run(&project, &[]).expect_code(0);
    assert!(there.stdout.contains("1 passed, 0 failed, 0 skipped"), "{}", there.stdout);
    let modules = std::fs::read_dir(elsewhere.root.join("tests/tests/gpu")).unwrap().count();
    assert_eq!(modules, 1, "something was written beside the tests");
    let results = elsewhere.tree.root.join("results");
    assert!(results.join("junit.xml").is_file() && results.join("report.html").is_file());
    let page = project.project.tree.beside("page.html");
    let here = run(crate::support::cuwheel(&std::env::temp_dir())
        .args(["test-gpu", "--from-report"])
        .arg(&results)
        .arg("--html")
        .arg(&page))
    .expect_code(0);
    assert_eq!(here.stdout, there.stdout);
    assert_eq!(std::fs::read(page).unwrap(), std::fs::read(results.join("report.html")).unwrap());
}

#[test]
fn the_same_inputs_give_the_same_bundle_in_either_format() {
    let project = GpuProject::new(TEST);
    for suffix in ["tar.gz", "tar.zst"] {
        let (first, _) = bundle(&project, &format!("one.{suffix}"));
        let (second, _) = bundle(&project, &format!("another.{suffix}"));
        assert_eq!(sha256_of_file(&first).unwrap(), sha256_of_file(&second).unwrap());
    }
}

#[test]
fn exit_codes_of_a_bundle_are_those_of_the_command() {
    let project = GpuProject::new(&format!("{TEST}\ndef test_fails():\n    assert False\n"));
    let (archive, _) = bundle(&project, "gpu.tar.gz");
    let elsewhere = Elsewhere::unpack(&archive);
    elsewhere.run(&project, &[]).expect_code(1);
    elsewhere.run(&project, &["--", "-k", "not fails"]).expect_code(0);
    elsewhere.run(&project, &["--no-such-option"]).expect_code(2);
    let lacking = elsewhere.run(&project, &["--gpus", "2"]).expect_code(3);
    assert!(lacking.stderr.contains("asks for more devices than the 1"), "{}", lacking.stderr);
    let results = elsewhere.tree.root.join("results");
    let command = &mut crate::support::cuwheel(&std::env::temp_dir());
    let shown = run(command.args(["test-gpu", "--from-report"]).arg(&results)).expect_code(3);
    assert!(shown.stderr.contains("asks for more devices than the 1"), "{}", shown.stderr);
    let wheel = std::fs::read_dir(elsewhere.root.join("wheels")).unwrap().next().unwrap().unwrap().path();
    std::fs::write(wheel, "another").unwrap();
    let damaged = elsewhere.run(&project, &[]).expect_code(2);
    assert!(damaged.stderr.contains("is not the file that the bundle was made with"), "{}", damaged.stderr);
}

#[test]
fn what_the_machine_has_is_left_out_and_asked_for() {
    let project = GpuProject::new(TEST);
    let path = project.project.tree.beside("gpu.tar.gz");
    let mut command = project.test_gpu(&["--for-python", &python_version(), "--exclude-present", "pluggy,torch"]);
    run(command.arg("--bundle").arg(&path)).expect_code(0);
    let elsewhere = Elsewhere::unpack(&path);
    let manifest = std::fs::read_to_string(elsewhere.root.join("environment.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    assert_eq!(manifest["expects"], serde_json::json!(["pluggy"]));
    assert!(!manifest["wheelhouse"].to_string().contains("pluggy"));
}

#[test]
fn packages_of_the_machine_are_seen_behind_the_wheel() {
    let test = "\nimport ctypes, hostpkg, matpkg\n\ndef test_it():\n    \
                assert ctypes.CDLL('libcuda.so.1').cuInit(0) == 0 and matpkg.SOURCE == 'wheel'\n";
    let project = GpuProject::new(test);
    let (archive, _) = bundle(&project, "gpu.tar.gz");
    let elsewhere = Elsewhere::unpack(&archive);
    let host = elsewhere.tree.beside("host");
    uv().create_environment(&interpreter(), &host).unwrap();
    let packages = host.join(format!("lib/python{}/site-packages", python_version()));
    std::fs::create_dir(packages.join("matpkg")).unwrap();
    std::fs::write(packages.join("matpkg/__init__.py"), "SOURCE = 'host'\n").unwrap();
    std::fs::write(packages.join("hostpkg.py"), "").unwrap();
    for (arguments, code) in [(&[][..], 1), (&["--system-site-packages"], 0)] {
        let mut command = Command::new(host.join("bin/python"));
        command.arg(elsewhere.root.join("run")).args(arguments).current_dir(&elsewhere.tree.root);
        command.env("LD_LIBRARY_PATH", project.driver()).env("CUDA_STUB", "").env_remove("CUDA_VISIBLE_DEVICES");
        run(&mut command).expect_code(code);
    }
}

#[test]
fn a_bundle_that_could_not_run_is_not_made() {
    let project = GpuProject::new(TEST);
    for (arguments, message) in [
        (&["--bundle", "x.zip", "--for-python", "3.12"][..], "x.zip is no name of a bundle"),
        (&["--bundle", "x.tar.gz"], "the following required arguments were not provided"),
        (&["--bundle", "x.tar.gz", "--for-python", "/usr/bin/python3"], "--for-python takes a version"),
        (&["--bundle", "x.tar.gz", "--for-python", "3.12", "--platform", "linux"], "linux is no platform"),
    ] {
        let ran = run(&mut project.test_gpu(arguments)).expect_code(2);
        assert!(ran.stderr.contains(message), "{message}: {}", ran.stderr);
    }
}

#[test]
fn a_job_that_is_ended_from_outside_leaves_a_report_and_no_process() {
    let test = format!(
        "{TEST}\ndef test_hangs():\n    import os, time\n    open('pid', 'w').write(str(os.getpid()))\n    time.sleep(600)\n"
    );
    let project = GpuProject::new(&test);
    let (archive, _) = bundle(&project, "gpu.tar.gz");
    let elsewhere = Elsewhere::unpack(&archive);
    let mut command = Command::new(interpreter().base_executable);
    command.arg(elsewhere.root.join("run")).current_dir(&elsewhere.tree.root);
    command.env("LD_LIBRARY_PATH", project.driver()).env("CUDA_STUB", "").env_remove("CUDA_VISIBLE_DEVICES");
    let mut child = command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap();
    let pid = elsewhere.root.join("tests/pid");
    let written = || std::fs::read_to_string(&pid).ok().filter(|pid| !pid.is_empty());
    while written().is_none() {
        assert!(child.try_wait().unwrap().is_none(), "the run ended before the test began");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let runner = nix::unistd::Pid::from_raw(child.id().try_into().unwrap());
    nix::sys::signal::kill(runner, nix::sys::signal::Signal::SIGTERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let report = std::fs::read_to_string(elsewhere.tree.root.join("results/report.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["tests"][0]["outcome"], "passed");
    assert_eq!(report["faults"][0], "interrupted: the run was ended from outside");
    assert!(!cuwheel::process::is_alive(&written().unwrap()), "the worker still runs");
}
