//! What the commands print: help, plans and mistakes, as transcripts in `tests/cmd`.

use crate::support::{PureProject, cuwheel, run};

#[test]
fn help_and_mistakes_of_usage() {
    trycmd::TestCases::new()
        .default_bin_path(env!("CARGO_BIN_EXE_cuwheel"))
        .env("NO_COLOR", "1")
        .case("tests/cmd/*.trycmd");
}

/// A transcript whose machine-dependent parts are replaced.
#[track_caller]
fn check(project: &PureProject, arguments: &[&str], code: i32, expected: &expect_test::Expect) {
    let interpreter = crate::support::interpreter();
    let cache = project.tree.beside("cache");
    let ran = run(cuwheel(&project.tree.root).args(arguments).env("CUWHEEL_CACHE_DIR", &cache)).expect_code(code);
    let text = format!("{}{}", ran.stdout, ran.stderr)
        .replace(project.tree.root.to_str().unwrap(), "[PROJECT]")
        .replace(cache.to_str().unwrap(), "[CACHE]")
        .replace(interpreter.base_executable.to_str().unwrap(), "[PYTHON]")
        .replace(&interpreter.to_string(), "[CPYTHON]");
    let text: Vec<&str> = text.lines().filter(|line| !line.contains("[CACHE]/environments")).collect();
    expected.assert_eq(&(text.join("\n") + "\n"));
}

#[test]
fn pk_32_a_plan_needs_neither_compiler_nor_numpy_nor_network() {
    let project = PureProject::new();
    let cargo = "[package]\nname = 'matpkg'\nversion = '0.1.0'\n[features]\ndefault = ['abi3', 'fast']\nabi3 = ['pyo3/abi3-py311']\nfast = []\n";
    project.write("Cargo.toml", cargo);
    project.write("tests/test_it.py", "");
    let mut command = cuwheel(&project.tree.root);
    command.args(["build-wheel", "--dry-run", "--offline"]).env("PATH", "/nonexistent");
    command.env("CUWHEEL_CACHE_DIR", project.tree.beside("untouched"));
    run(command.env("CUWHEEL_PYTHON", &crate::support::interpreter().base_executable)).expect_code(0);
    let mut develop = cuwheel(&project.tree.root);
    develop.args(["develop", "--dry-run", "--offline"]).env("PATH", "/nonexistent");
    develop.env("CUWHEEL_CACHE_DIR", project.tree.beside("untouched"));
    run(develop.env("CUWHEEL_PYTHON", &crate::support::interpreter().base_executable)).expect_code(0);
    assert!(!project.tree.beside("untouched").exists(), "a plan writes nothing");
    assert!(!project.tree.root.join("target").exists() && !project.tree.root.join("requirements/build.txt").exists());
    check(
        &project,
        &["build-wheel", "--dry-run", "--sdist"],
        0,
        &expect_test::expect![[r#"
        project       matpkg 0.1.0 in [PROJECT]
        requirements  maturin
        lock          [PROJECT]/requirements/build.txt (to be resolved)
        wheel         dist/matpkg-0.1.0-cp311-abi3-manylinux_2_28_x86_64.whl
          interpreter [CPYTHON] at [PYTHON]
          compile     maturin build --release --auditwheel skip --compatibility manylinux_2_28 --zig
          inspect     the rules of check-wheel, symbol versions up to manylinux_2_28
          prove       install in a fresh environment, import from a neutral directory
        sdist         write it, rebuild the wheel from it in an empty directory, compare the files
        writes        dist/manifest.json
    "#]],
    );
    check(
        &project,
        &["develop", "--dry-run", "--rebuild-on-import"],
        0,
        &expect_test::expect![[r#"
            project       matpkg 0.1.0 in [PROJECT]
            environment   [PROJECT]/.venv (of the project, as none is active, to be created)
              interpreter [CPYTHON] at [PYTHON]
            lock          [PROJECT]/requirements/build.txt (to be resolved)
            compile       maturin build --strip false --compression-method stored --profile dev --auditwheel skip --compatibility linux
            place         the native library beside the sources in [PROJECT]
            install       __editable__.matpkg-0.1.0.pth, and what of the wheel is not in the tree
              requires    what the project requires, where it is missing
              hook        _cuwheel_rebuild_matpkg.py, which builds again on import
            prove         nothing else wins the import; a fresh process loads what was built
        "#]],
    );
    check(
        &project,
        &["test", "--dry-run"],
        0,
        &expect_test::expect![[r#"
        project       matpkg 0.1.0 in [PROJECT]
        rust          cargo test --workspace
        wheel         from build-wheel
        python tests  default on [CPYTHON]
          requires    pytest, pytest-xdist
          lock        [PROJECT]/requirements/test.txt (current)
          tests       tests, copied out of the tree
          proof       loaded modules and files of the wheel, before the first test and after the last
    "#]],
    );
}

#[test]
fn pk_30_31_35_all_undeclared_requirements_are_named_at_once_with_the_lines_to_add() {
    let project = PureProject::new();
    let pyproject =
        "[build-system]\nrequires = []\nbuild-backend = 'maturin'\n[project]\nname = 'matpkg'\nversion = '0.1.0'\n";
    project
        .write("pyproject.toml", pyproject)
        .write(
            "src/shim.c",
            "#include <Python.h>\n#include <numpy/arrayobject.h>\n#include \"vendored/pybind11/pybind11.h\"\n",
        )
        .write("src/kernel.cu", "#include <pybind11/numpy.h>\n#include <cub/cub.cuh>\n")
        .write("third_party/pybind11/numpy.h", "")
        .write("tests/data.c", "#include <torch/extension.h>\n")
        .write("setup.py", "from torch.utils.cpp_extension import CUDAExtension\n");
    check(
        &project,
        &["build-wheel"],
        2,
        &expect_test::expect![[r#"
        error: 5 build requirements are used but not declared
          maturin: build-system.build-backend is "maturin"
          numpy: src/shim.c:2 uses numpy/arrayobject.h
          nvidia-cuda-cccl: src/kernel.cu:2 uses cub/cub.cuh
          torch: setup.py:1 uses torch
          ziglang: tool.cuwheel.linker is "zig"
        fix: in pyproject.toml, write
             [build-system]
             requires = ["maturin", "numpy>=2.0", "nvidia-cuda-cccl", "torch"]
             [tool.cuwheel]
             build-requires = ["ziglang"]
    "#]],
    );
    // What is fast when it fails: nothing was fetched or compiled for it.
    assert!(!project.tree.beside("cache").join("environments").exists());
}

#[test]
fn an_abi3_wheel_for_a_free_threaded_interpreter_is_refused_with_the_reason() {
    let project = PureProject::new();
    project.write(
        "Cargo.toml",
        "[package]\nname = 'matpkg'\nversion = '0.1.0'\n[features]\ndefault = ['pyo3/abi3-py311']\n",
    );
    let mut interpreter = crate::support::interpreter();
    interpreter.gil_disabled = true;
    interpreter.version = (3, 14, 0);
    let answer = serde_json::to_string(&interpreter).unwrap();
    project.write("python3.14t", &format!("#!/bin/sh\ncat <<'END'\n{answer}\nEND\n"));
    let path = project.tree.root.join("python3.14t");
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    check(
        &project,
        &["build-wheel", "--abi3", "--python", "./python3.14t"],
        2,
        &expect_test::expect![[r#"
        error: an abi3 wheel cannot be built for CPython 3.14.0t
          free-threaded CPython has no limited API: its objects are laid out differently
        fix: build a version-specific wheel: --python 3.14t without --abi3
    "#]],
    );
    // Without --abi3 it is a version-specific wheel.
    let ran =
        run(cuwheel(&project.tree.root).args(["build-wheel", "--dry-run", "--json", "--python", "./python3.14t"]))
            .expect_code(0);
    assert_eq!(ran.json()["plan"]["wheels"][0]["file"], "matpkg-0.1.0-cp314-cp314t-manylinux_2_28_x86_64.whl");
}

#[test]
fn pk_84_a_path_that_is_no_utf_8_is_refused_without_a_panic() {
    use std::os::unix::ffi::OsStrExt as _;
    let project = PureProject::new();
    let moved = project.tree.root.with_file_name(std::ffi::OsStr::from_bytes(b"pro\xffject"));
    std::fs::rename(&project.tree.root, &moved).unwrap();
    let ran = run(cuwheel(&moved).args(["build-wheel", "--dry-run"])).expect_code(2);
    assert!(ran.stderr.contains("is not valid UTF-8\nfix: move the project"), "{}", ran.stderr);
}

#[test]
fn unknown_names_are_answered_with_the_nearest_one() {
    let project = PureProject::new();
    let text = std::fs::read_to_string(project.tree.root.join("pyproject.toml")).unwrap();
    project.write("pyproject.toml", &format!("{text}[tool.cuwheel]\nmodule = ['x']\n"));
    check(
        &project,
        &["test"],
        2,
        &expect_test::expect![[r#"
        error: tool.cuwheel.module is not a setting
        fix: did you mean tool.cuwheel.modules?
    "#]],
    );
    project.write("pyproject.toml", &format!("{text}[tool.cuwheel.test.variants]\noldest = []\n"));
    check(
        &project,
        &["test", "--variant", "olderst"],
        2,
        &expect_test::expect![[r#"
        error: there is no test variant olderst
        fix: did you mean oldest?
    "#]],
    );
    check(
        &project,
        &["build-wheel", "--compatibility", "manylinux-2-28"],
        2,
        &expect_test::expect![[r#"
        error: manylinux-2-28 is no platform tag
        fix: use manylinux_2_28, any other from manylinux_2_17 on, or linux for this machine's
    "#]],
    );
    check(
        &project,
        &["build-wheel", "--compatibility", "manylinux_2_5"],
        2,
        &expect_test::expect![[r#"
        error: manylinux_2_5 promises glibc 2.5; Rust needs 2.17
        fix: use manylinux_2_28, any other from manylinux_2_17 on, or linux for this machine's
    "#]],
    );
    check(
        &project,
        &["build-wheel", "--compatibility", "musllinux_1_2"],
        2,
        &expect_test::expect![[r#"
        error: wheels for musl are not built yet
        fix: use manylinux_2_28, any other from manylinux_2_17 on, or linux for this machine's
    "#]],
    );
}

#[test]
fn json_is_one_document_whatever_the_mistake() {
    let project = PureProject::new();
    for arguments in [&["build-wheel", "--json", "--no-such-flag"][..], &["test", "--json", "--variant", "none"]] {
        let ran = run(cuwheel(&project.tree.root).args(arguments)).expect_code(2);
        let document = ran.json();
        assert_eq!((&document["ok"], &document["error"]["kind"]), (&false.into(), &"usage".into()));
    }
}

#[test]
fn a_result_that_cannot_be_written_is_a_failure_and_lost_progress_is_none() {
    let project = PureProject::new();
    let full = || std::fs::File::options().write(true).open("/dev/full").unwrap();
    let plan = |arguments: &[&str]| {
        let mut command = cuwheel(&project.tree.root);
        command.args(["lock", "--dry-run"]).args(arguments);
        command
    };
    let lost = crate::support::Ran::of(&plan(&["--json"]).stdout(full()).output().unwrap()).expect_code(3);
    assert!(lost.stderr.contains("the result cannot be written to stdout"), "{}", lost.stderr);
    let status = plan(&["--verbose"]).stderr(full()).stdout(std::process::Stdio::null()).status().unwrap();
    assert_eq!(status.code(), Some(0));
}

#[test]
fn an_abi3_wheel_of_a_crate_without_the_limited_api_is_refused() {
    let project = PureProject::new();
    check(
        &project,
        &["build-wheel", "--abi3"],
        2,
        &expect_test::expect![[r#"
        error: the crate does not ask for the limited API
        fix: add a default feature abi3 = ["pyo3/abi3-py311"], or leave --abi3 out
    "#]],
    );
}

#[test]
fn the_plan_of_a_gpu_run_says_where_it_runs() {
    let project = PureProject::new();
    project.write("tests/gpu/test_it.py", "");
    check(
        &project,
        &["test-gpu", "--dry-run", "--gpus", "2"],
        0,
        &expect_test::expect![[r#"
            project       matpkg 0.1.0 in [PROJECT]
            wheel         from build-wheel
            requires      pytest
            lock          [PROJECT]/requirements/test-gpu.txt (to be resolved)
            tests         tests/gpu, copied out of the tree
            python        [CPYTHON]
            preflight     driver, devices and the wheel's GPU code
            gpu           required, devices: 2
        "#]],
    );
    let bundle = ["--bundle", "gpu.tar.zst", "--for-python", "3.12", "--platform", "manylinux_2_28_x86_64"];
    check(
        &project,
        &[&["test-gpu", "--dry-run", "--suite", "numba.cuda.tests", "--with", "psutil"][..], &bundle].concat(),
        0,
        &expect_test::expect![[r#"
            project       matpkg 0.1.0 in [PROJECT]
            wheel         from build-wheel
            requires      what the wheel depends on, pytest, psutil
            tests         the installed package numba.cuda.tests
            bundle        [PROJECT]/gpu.tar.zst for CPython 3.12 on manylinux_2_28_x86_64
        "#]],
    );
}
