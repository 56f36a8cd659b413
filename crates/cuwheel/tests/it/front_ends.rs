//! Plain front ends, without the toolkit: pip, uv and build, from a checkout and from the sdist.
//!
//! `pip install -e .` that built nothing is where this project comes from.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::support::{Tree, copy_of_repository, interpreter, run, scrub, uv};

/// A checkout, its sdist, and one directory for what all front ends compile.
struct Sources {
    checkout: Tree,
    sdist: PathBuf,
    target: PathBuf,
}

fn sources() -> &'static Sources {
    static SOURCES: OnceLock<Sources> = OnceLock::new();
    SOURCES.get_or_init(|| {
        let checkout = copy_of_repository();
        let target = checkout.beside("target");
        let dist = checkout.beside("dist");
        let venv = Venv::new();
        let mut build = front_end(&venv, &target);
        run(build.args(["-m", "build", "--sdist", "--outdir"]).arg(&dist).arg(&checkout.root)).expect_code(0);
        let sdist = std::fs::read_dir(&dist).unwrap().next().unwrap().unwrap().path();
        Sources { checkout, sdist, target }
    })
}

/// Maturin moves the library inside the target directory that these tests share: one builds at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A throw-away environment with pip and build.
struct Venv {
    tree: Tree,
}

impl Venv {
    fn new() -> Self {
        let tree = Tree::new();
        let venv = Self { tree };
        uv().create_environment(&interpreter(), &venv.directory()).unwrap();
        let mut install = Command::new(uv().program());
        install.args(["pip", "install", "--quiet", "pip", "build", "--python"]).arg(venv.python());
        run(&mut install).expect_code(0);
        venv
    }

    fn directory(&self) -> PathBuf {
        self.tree.beside("venv")
    }

    fn python(&self) -> PathBuf {
        self.directory().join("bin/python")
    }

    /// The file of the native module that is imported in a fresh process, away from the sources.
    #[track_caller]
    fn imports(&self) -> PathBuf {
        let mut python = Command::new(self.python());
        python.args([
            "-I",
            "-c",
            "import cuwheel.mviewbuf as m; m.MemAlloc; print(__import__('cuwheel')._native.__file__)",
        ]);
        let ran = run(python.current_dir(&self.tree.root)).expect_code(0);
        PathBuf::from(ran.stdout.trim_end())
    }
}

/// Python in an environment, as a user without the toolkit has it.
fn front_end(venv: &Venv, target: &Path) -> Command {
    let mut command = Command::new(venv.python());
    scrub(&mut command);
    for variable in ["CUWHEEL_PYTHON", "PYTHONPATH"] {
        command.env_remove(variable);
    }
    command.current_dir(&venv.tree.root);
    compiles_quickly(&mut command, target);
    command
}

/// Whether the library is small and fast is not what these tests are about.
fn compiles_quickly(command: &mut Command, target: &Path) {
    command.env("CARGO_TARGET_DIR", target);
    for (setting, value) in [("LTO", "off"), ("CODEGEN_UNITS", "16"), ("OPT_LEVEL", "0")] {
        command.env(format!("CARGO_PROFILE_RELEASE_{setting}"), value);
    }
}

fn pip_install(venv: &Venv, arguments: &[&str], what: &Path) -> usize {
    let mut pip = front_end(venv, &sources().target);
    let ran = run(pip.args(["-m", "pip", "install", "--verbose"]).args(arguments).arg(what)).expect_code(0);
    ran.stdout.lines().filter(|line| line.trim_start().starts_with("Compiling ")).count()
}

#[test]
fn pip_installs_a_checkout_and_compiles_nothing_the_second_time() {
    let _alone = alone();
    let checkout = &sources().checkout.root;
    let first = Venv::new();
    pip_install(&first, &[], checkout);
    assert!(first.imports().starts_with(first.directory()));
    // PK-76: another throw-away environment, and pip's own isolated one is new each time.
    let second = Venv::new();
    assert_eq!(pip_install(&second, &[], checkout), 0);
    second.imports();
}

#[test]
fn pip_installs_the_sdist() {
    let _alone = alone();
    let venv = Venv::new();
    pip_install(&venv, &[], &sources().sdist);
    assert!(venv.imports().starts_with(venv.directory()));
}

#[test]
fn an_editable_install_has_the_native_module() {
    let _alone = alone();
    // A checkout of its own: the library is written into its sources.
    let checkout = copy_of_repository();
    let venv = Venv::new();
    pip_install(&venv, &["--editable"], &checkout.root);
    assert_eq!(venv.imports(), checkout.root.join("python/cuwheel/_native.abi3.so"));
}

#[test]
fn an_editable_install_of_the_unpacked_sdist_has_the_native_module() {
    let _alone = alone();
    let venv = Venv::new();
    let unpacked = cuwheel_inspect::sdist::Sdist::open(&sources().sdist).unwrap().unpack_to(&venv.tree.root).unwrap();
    pip_install(&venv, &["--editable"], &unpacked);
    assert_eq!(venv.imports(), unpacked.join("python/cuwheel/_native.abi3.so"));
}

/// Builds a wheel into a directory of the environment and installs it.
#[track_caller]
fn builds(venv: &Venv, command: &mut Command) {
    run(command).expect_code(0);
    let wheels = venv.tree.root.join("wheels");
    let wheel = std::fs::read_dir(wheels).unwrap().map(|entry| entry.unwrap().path());
    let wheel = wheel.into_iter().find(|path| path.extension().is_some_and(|extension| extension == "whl")).unwrap();
    uv().install_wheel(&venv.directory(), &wheel).unwrap();
    assert!(venv.imports().starts_with(venv.directory()));
}

#[test]
fn python_m_build_builds_a_checkout_by_way_of_its_sdist() {
    let _alone = alone();
    let venv = Venv::new();
    let mut build = front_end(&venv, &sources().target);
    builds(&venv, build.args(["-m", "build", "--outdir", "wheels"]).arg(&sources().checkout.root));
}

/// `uv build` with further arguments.
#[track_caller]
fn uv_builds(arguments: &[&str], what: &Path) {
    let venv = Venv::new();
    let mut build = Command::new(uv().program());
    scrub(&mut build);
    build.current_dir(&venv.tree.root);
    compiles_quickly(&mut build, &sources().target);
    builds(
        &venv,
        build.arg("build").args(arguments).args(["--out-dir", "wheels", "--python"]).arg(venv.python()).arg(what),
    );
}

#[test]
fn uv_builds_a_checkout_by_way_of_its_sdist() {
    let _alone = alone();
    uv_builds(&[], &sources().checkout.root);
}

#[test]
fn uv_builds_the_sdist() {
    let _alone = alone();
    uv_builds(&["--wheel"], &sources().sdist);
}

#[test]
fn pk_32_metadata_and_sdist_need_no_numpy_and_no_compiler() {
    let _alone = alone();
    let venv = Venv::new();
    let checkout = copy_of_repository();
    let mut install = Command::new(uv().program());
    run(install.args(["pip", "install", "--quiet", "maturin==1.16.0", "--python"]).arg(venv.python())).expect_code(0);
    // Only cargo and Python can be found: no C compiler, no linker, no zig.
    let tools = venv.tree.beside("tools");
    std::fs::create_dir(&tools).unwrap();
    for name in ["cargo", "rustc"] {
        std::os::unix::fs::symlink(cuwheel::process::find_program(name).unwrap(), tools.join(name)).unwrap();
    }
    let path = std::env::join_paths([tools, venv.directory().join("bin")]).unwrap();
    let hooks = "import sys, os, maturin\nos.chdir(sys.argv[1])\n\
                 assert maturin.prepare_metadata_for_build_wheel('.').endswith('.dist-info')\n\
                 assert maturin.build_sdist('.').endswith('.tar.gz')\n";
    let mut python = front_end(&venv, &venv.tree.beside("unused target"));
    run(python.env("PATH", path).args(["-c", hooks]).arg(&checkout.root)).expect_code(0);
    // What is there are maturin's own notes.
    let compiled =
        cuwheel::process::Process::new("find").arg(venv.tree.beside("unused target")).args(["-name", "deps"]);
    assert_eq!(compiled.capture().unwrap().stdout, "", "something was compiled");
}
