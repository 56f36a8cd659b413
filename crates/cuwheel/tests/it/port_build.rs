//! What `new --from-setuptools` writes is a project that cargo and `doctor` take, and that becomes a wheel.

use std::path::Path;
use std::process::Command;

use crate::doctor_corpus::write;
use crate::support::{Tree, cuwheel, python_of, run, scrub, uv};

/// The project of a text, and the new one beside it.
fn ported(files: &str) -> (Tree, std::path::PathBuf) {
    let tree = Tree::new();
    write(&tree.root, files);
    let place = tree.beside("new");
    let mut command = cuwheel(&tree.root);
    run(command.args(["new", "--from-setuptools", ".", "--path"]).arg(&place)).expect_code(0);
    (tree, place)
}

/// All but the one whose kernels need a CUDA compiler.
const PROJECTS: &[(&str, &str, &str)] = &[
    ("plain C", include_str!("port/plain_c.txt"), "checksums-native"),
    ("NumPy", include_str!("port/numpy_c.txt"), "gridsum-native"),
    ("pybind11", include_str!("port/pybind11.txt"), "geometry-tools-native"),
    ("Cython", include_str!("port/cython.txt"), "fastmath-native"),
    ("several", include_str!("port/several.txt"), "signals-native"),
    ("src", include_str!("port/src_layout.txt"), "acme-codec-native"),
    ("setup.cfg", include_str!("port/setup_cfg.txt"), "ring-buffer-native"),
    ("pyproject", include_str!("port/pyproject_only.txt"), "parcel-native"),
    ("commands", include_str!("port/cmdclass_override.txt"), "lexer-native"),
    ("computed", include_str!("port/computed_version.txt"), "tide-native"),
    ("tags", include_str!("port/scm_version.txt"), "tagged-native"),
    ("Rust", include_str!("port/rust_extensions.txt"), "quick-rs"),
    ("CMake", include_str!("port/cmake_extension.txt"), "mesh-native"),
];

#[test]
fn doctor_finds_no_errors_in_what_is_written() {
    let cuda = ("CUDA", include_str!("port/cuda_extension.txt"), "");
    let mut wrong = String::new();
    for (name, files, _) in PROJECTS.iter().chain([&cuda]) {
        let (tree, place) = ported(files);
        let ran = run(cuwheel(&tree.root).args(["doctor", "--no-machine"]).arg(&place));
        if ran.code != Some(0) || ran.stdout.contains("build/") {
            wrong.extend([name, ":\n", ran.stdout.as_str(), ran.stderr.as_str()]);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Each crate alone: the toolkit in xtask is compiled by the tests of this repository already.
#[test]
fn cargo_takes_what_is_written() {
    // Kept in cargo's folder for tests: what the projects depend on is compiled by the first run only.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ported");
    let environment = numpy_environment();
    for (name, files, package) in PROJECTS {
        let (_tree, place) = ported(files);
        let mut check = Command::new("cargo");
        scrub(&mut check);
        check.args(["check", "--quiet", "--package", package]).current_dir(&place);
        check.env("CARGO_TARGET_DIR", &target).env("RUSTFLAGS", "-Dwarnings");
        check.env("PYO3_PYTHON", environment.join("bin/python")).env("CUWHEEL_PYTHON", environment.join("bin/python"));
        let ran = run(&mut check);
        assert_eq!(ran.code, Some(0), "{name}: {}", ran.stderr);
    }
}

/// An environment with the headers of NumPy.
fn numpy_environment() -> std::path::PathBuf {
    static ENVIRONMENT: std::sync::OnceLock<tempfile::TempDir> = std::sync::OnceLock::new();
    let directory = ENVIRONMENT.get_or_init(|| {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("venv");
        uv().create_environment(&crate::support::interpreter(), &place).unwrap();
        let mut install = Command::new(uv().program());
        install.args(["pip", "install", "--quiet", "numpy>=2", "--python"]).arg(place.join("bin/python"));
        run(&mut install).expect_code(0);
        directory
    });
    directory.path().join("venv")
}

#[test]
fn several_modules_become_a_wheel_whose_functions_say_that_they_are_not_ported() {
    let (tree, place) = ported(include_str!("port/several.txt"));
    run(cuwheel(&place).arg("build-wheel")).expect_code(0);
    let wheel = std::fs::read_dir(place.join("dist"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|kind| kind == "whl"))
        .unwrap();
    let environment = tree.beside("venv");
    uv().create_environment(&crate::support::interpreter(), &environment).unwrap();
    let mut install = Command::new(uv().program());
    install
        .args(["pip", "install", "--quiet", "--offline", "--python"])
        .arg(environment.join("bin/python"))
        .arg(&wheel);
    run(&mut install).expect_code(0);
    let code = "import signals, signals.filters._fir, _signals_legacy, pickle\n\
                for function in (signals._fft.forward, signals.filters.apply, _signals_legacy.old):\n    \
                try:\n        function(1, x=2)\n    except NotImplementedError as error:\n        print(error)\n\
                print(signals._fft.forward.__doc__)\n";
    let ran = run(python_of(&environment).args(["-c", code])).expect_code(0);
    assert_eq!(
        ran.stdout,
        "signals._fft.forward is not ported yet: it was the function fft_forward in native/fft.c:2\n\
         signals.filters._fir.apply is not ported yet: it was the function fir_apply in native/fir.c:2\n\
         _signals_legacy.old is not ported yet: it was the function legacy_old in native/legacy.c:2\n\
         forward(x)\n"
    );
}
