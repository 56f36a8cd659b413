//! The preflight of `test-gpu`: each thing that can be wrong with a machine is one message, before any test starts.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::support::{driver_directory, interpreter, run};

/// Asks the preflight in a process of its own, as the runner does; what it raises is printed as a person sees it.
const ASK: &str = "
import json, sys
sys.path.insert(0, sys.argv[1])
from _cuwheel_gpu import Problem, preflight
question = json.loads(sys.argv[2])
try:
    machine = preflight.examine(question['python'], [question['wheel']], question['gpus'], question['deadline_s'])
    print(*(device['index'] for device in machine['devices']))
except Problem as problem:
    print(problem.text() + f'exit code {problem.exit_code}')
";

fn question() -> Value {
    let wheel = json!({ "file": "pkg.whl", "gpu": null });
    json!({ "python": interpreter().base_executable, "wheel": wheel, "gpus": "all", "deadline_s": 60 })
}

/// A wheel with GPU code.
fn with_code(sass: &[&str], ptx: &[&str], toolkit: &str) -> Value {
    let mut question = question();
    question["wheel"]["gpu"] = json!({ "sass": sass, "ptx": ptx, "toolkit": toolkit });
    question
}

fn ask(question: &Value, library_path: &Path, stub: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    cuwheel::gpu::layout::lay_out_runner(directory.path()).unwrap();
    let mut command = Command::new(interpreter().base_executable);
    command.args(["-I", "-c", ASK]).arg(directory.path().join("runner")).arg(question.to_string());
    command.env("LD_LIBRARY_PATH", library_path).env("CUDA_STUB", stub).env_remove("CUDA_VISIBLE_DEVICES");
    let ran = run(&mut command).expect_code(0);
    ran.stdout.replace(&*library_path.to_string_lossy(), "[LIBRARIES]")
}

#[track_caller]
fn check(question: &Value, stub: &str, expected: &Expect) {
    let driver = driver_directory();
    expected.assert_eq(&ask(question, driver.path(), stub));
}

#[test]
fn a_machine_without_a_driver_is_told_so() {
    let directory = tempfile::tempdir().unwrap();
    // So that a machine with a driver cannot find it either.
    std::fs::write(directory.path().join("libcuda.so.1"), "no library").unwrap();
    let answer = ask(&question(), directory.path(), "");
    expect![[r#"
        error: there is no CUDA driver: libcuda.so.1 cannot be loaded
          [LIBRARIES]/libcuda.so.1: file too short
        fix: install the NVIDIA driver; in a container, start it with the GPUs (docker run --gpus all, or the NVIDIA Container Toolkit's runtime)
        exit code 3
    "#]]
    .assert_eq(&answer);
}

#[test]
fn pk_09_the_stub_of_the_toolkit_is_no_driver() {
    let driver = driver_directory();
    let stubs = driver.path().join("stubs");
    std::fs::create_dir(&stubs).unwrap();
    std::fs::rename(driver.path().join("libcuda.so.1"), stubs.join("libcuda.so.1")).unwrap();
    expect![[r#"
        error: [LIBRARIES]/libcuda.so.1 is the stub that programs are linked with, not the driver
          libcuda.so.1 was loaded from [LIBRARIES]/libcuda.so.1
        fix: take the toolkit's directory `stubs` off LD_LIBRARY_PATH and out of ld.so.conf
        exit code 3
    "#]]
    .assert_eq(&ask(&question(), &stubs, "fail=cuInit:1+:CUDA_ERROR_STUB_LIBRARY"));
}

#[test]
fn a_driver_without_a_device_and_devices_that_are_taken_are_told_apart() {
    check(
        &question(),
        "no_device",
        &expect![[r#"
            error: the CUDA driver is present, but it has no device
              libcuda.so.1 was loaded from [LIBRARIES]/libcuda.so.1
            fix: use a machine with an NVIDIA GPU, or hand one to this container or job; check CUDA_VISIBLE_DEVICES
            exit code 3
        "#]],
    );
    check(
        &question(),
        "fail=cuDevicePrimaryCtxRetain:1+:CUDA_ERROR_DEVICE_UNAVAILABLE",
        &expect![[r#"
            error: device 0 (cuda-stub stand-in for NVIDIA H200) is busy: another process holds it for itself
            fix: find who holds it with nvidia-smi, wait, or choose another device with --gpus
            exit code 3
        "#]],
    );
    check(
        &question(),
        "fail=cuDevicePrimaryCtxRetain:1+:CUDA_ERROR_OUT_OF_MEMORY",
        &expect![[r#"
            error: device 0 (cuda-stub stand-in for NVIDIA H200) has not enough free memory for a context
            fix: find who holds it with nvidia-smi, wait, or choose another device with --gpus
            exit code 3
        "#]],
    );
}

#[test]
fn pk_28_91_a_driver_that_is_too_old_names_the_version_that_is_needed() {
    check(
        &with_code(&["sm_80"], &["compute_80"], "12.4"),
        "driver=12020",
        // Machine code of the same major version runs: only for PTX is the driver too old.
        &expect![[r#"
            error: the driver is too old for pkg.whl: its PTX, which is all that it has for device 0 (cuda-stub stand-in for NVIDIA H200, compute capability 9.0), is of CUDA 12.4, the driver's is 12.2
              the wheel has sm_80, compute_80
            fix: update the driver to one for CUDA 12.4 or newer, or build the wheel with a toolkit of CUDA 12.2
            exit code 3
        "#]],
    );
    check(
        &with_code(&["sm_90"], &["compute_90"], "13.1"),
        "driver=12080",
        &expect![[r#"
            error: the driver is too old for pkg.whl: its compiled code is of CUDA 13.1, the driver's is 12.8
              the wheel has sm_90, compute_90
            fix: update the driver to one for CUDA 13.0 or newer, or build the wheel with a toolkit of CUDA 12.8
            exit code 3
        "#]],
    );
    check(&with_code(&["sm_90"], &[], "12.9"), "driver=12020", &expect![["0\n"]]);
}

#[test]
fn pk_29_a_wheel_without_code_for_the_device_is_refused() {
    for (sass, ptx, runs) in [
        (&["sm_80"][..], &[][..], false),
        (&["sm_90a"], &[], true),
        (&["sm_100f"], &["compute_100"], false),
        (&["sm_75", "sm_80"], &["compute_75"], true),
        (&[], &["compute_80a"], false),
        (&[], &[], true),
    ] {
        let driver = driver_directory();
        let answer = ask(&with_code(sass, ptx, "12.4"), driver.path(), "compute=90;driver=12040");
        assert_eq!(answer == "0\n", runs, "{sass:?} {ptx:?}: {answer}");
        assert_eq!(answer.contains("has no kernel image for device 0"), !runs, "{answer}");
    }
}

#[test]
fn devices_are_chosen_by_number_or_by_list() {
    let driver = driver_directory();
    for (gpus, answer) in [
        ("all", "0 1 2\n"),
        ("2", "0 1\n"),
        ("2,0", "2 0\n"),
        ("1,", "1\n"),
        ("4", "error: --gpus 4 asks for more devices than the 3 that this machine has"),
        ("0", "error: --gpus 0 asks for more devices"),
        ("first", "error: --gpus first names no devices"),
    ] {
        let mut question = question();
        question["gpus"] = gpus.into();
        let found = ask(&question, driver.path(), "devices=3");
        assert!(found.starts_with(answer), "{gpus}: {found}");
    }
}

#[test]
fn a_driver_that_hangs_or_crashes_is_one_message() {
    let directory = tempfile::tempdir().unwrap();
    for (end, expected) in [
        ("sleep 60", "error: the CUDA driver did not answer within 1 s when it was asked cuInit\n"),
        ("kill -SEGV $$", "error: the CUDA driver ended the process (signal 11) when it was asked cuInit\n"),
    ] {
        let program = directory.path().join("python");
        std::fs::write(&program, format!("#!/bin/sh\necho '{{\"asking\": \"cuInit\"}}'\n{end}\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let mut question = question();
        question["python"] = program.to_str().into();
        question["deadline_s"] = 1.into();
        let answer = ask(&question, directory.path(), "");
        assert!(answer.starts_with(expected) && answer.ends_with("exit code 3\n"), "{answer}");
    }
}
