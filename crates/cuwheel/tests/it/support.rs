//! Projects in temporary directories, and the binary to run in them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use cuwheel_inspect::testing::WheelBuilder;
use tempfile::TempDir;

/// The repository that these tests belong to.
pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_path_buf()
}

/// The binary, in an environment that says nothing of the run that these tests are part of.
pub(crate) fn cuwheel(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cuwheel"));
    command.current_dir(directory);
    scrub(&mut command);
    command.env("PATH", path_with_uv());
    command
}

/// PATH with a uv on it, so that a test with a cache of its own need not fetch one.
fn path_with_uv() -> std::ffi::OsString {
    static UV: OnceLock<PathBuf> = OnceLock::new();
    let program = UV.get_or_init(|| uv().program().to_path_buf());
    cuwheel::environment::path_with(program.parent().unwrap())
}

/// The uv that the tool uses.
pub(crate) fn uv() -> cuwheel::uv::Uv {
    let cache = cuwheel::cache::Cache::locate().unwrap();
    cuwheel::uv::Uv::find(&interpreter(), &cache, &std::env::temp_dir(), false, &quiet()).unwrap()
}

pub(crate) fn quiet() -> cuwheel::output::Output {
    cuwheel::output::Output::new(cuwheel::output::Verbosity::Quiet, false)
}

/// Removes what the surrounding `cargo xtask test` set.
pub(crate) fn scrub(command: &mut Command) {
    let set_by_cargo = |name: &str| {
        ["CARGO_MANIFEST_", "CARGO_PKG_", "CARGO_BIN_", "CARGO_CRATE_"].iter().any(|prefix| name.starts_with(prefix))
    };
    for (name, _) in std::env::vars() {
        if set_by_cargo(&name)
            || ["CUWHEEL_PYTHON_INCLUDE", "CUWHEEL_NUMPY_INCLUDE", "VIRTUAL_ENV", "CONDA_PREFIX"]
                .contains(&name.as_str())
        {
            command.env_remove(name);
        }
    }
}

/// What a command wrote and how it ended, with paths of this run replaced.
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
    }

    #[track_caller]
    pub(crate) fn expect_code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error} in {}", self.stdout))
    }
}

pub(crate) fn run(command: &mut Command) -> Ran {
    Ran::of(&command.output().unwrap())
}

/// The interpreter that these tests use, as the tool finds it.
pub(crate) fn interpreter() -> cuwheel::interpreter::Interpreter {
    cuwheel::interpreter::find(None, &quiet()).unwrap()
}

/// A directory tree that is removed in the end.
pub(crate) struct Tree {
    _directory: TempDir,
    pub(crate) root: PathBuf,
}

impl Tree {
    /// An empty one. Its name has a space and a letter outside of ASCII, as users' directories do.
    pub(crate) fn new() -> Self {
        let directory = tempfile::Builder::new().prefix("it ünï ").tempdir().unwrap();
        // The name of a linked temporary directory would differ from what Python reports.
        let root = directory.path().canonicalize().unwrap().join("project");
        std::fs::create_dir(&root).unwrap();
        Self { _directory: directory, root }
    }

    pub(crate) fn write(&self, path: &str, content: impl AsRef<[u8]>) -> &Self {
        let path = self.root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
        self
    }

    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.root.with_file_name(name)
    }
}

const PYPROJECT: &str = "\
[build-system]
requires = ['maturin']
build-backend = 'maturin'

[project]
name = 'matpkg'
version = '0.1.0'
requires-python = '>=3.11'

[dependency-groups]
test = ['pytest', 'pytest-xdist']
";

/// A project with a package that says where it was imported from: `matpkg.SOURCE` is `tree` or `wheel`. Nothing of it is
/// compiled: its wheel is made here.
pub(crate) struct PureProject {
    pub(crate) tree: Tree,
    pub(crate) wheel: PathBuf,
}

impl PureProject {
    pub(crate) fn new() -> Self {
        let tree = Tree::new();
        tree.write("pyproject.toml", PYPROJECT)
            .write("Cargo.toml", "[package]\nname = 'matpkg'\nversion = '0.1.0'\n")
            .write("src/lib.rs", "")
            .write("matpkg/__init__.py", "SOURCE = 'tree'\n")
            .write("matpkg/inner.py", "")
            .write("requirements/test.txt", test_lock());
        let name = "matpkg-0.1.0-py3-none-any.whl";
        let wheel = tree.beside(name);
        let builder =
            WheelBuilder::new(name).file("matpkg/__init__.py", "SOURCE = 'wheel'\n").file("matpkg/inner.py", "");
        std::fs::write(&wheel, builder.build()).unwrap();
        Self { tree, wheel }
    }

    pub(crate) fn write(&self, path: &str, content: &str) -> &Self {
        self.tree.write(path, content);
        self
    }

    /// `cuwheel test` of the wheel; `arguments` go to it.
    pub(crate) fn test(&self, arguments: &[&str]) -> Command {
        let mut command = cuwheel(&self.tree.root);
        command.args(["test", "--no-rust", "--wheel"]).arg(&self.wheel).args(arguments);
        command
    }
}

/// The lock of the tests of [`PureProject`], resolved once.
pub(crate) fn test_lock() -> &'static str {
    static LOCK: OnceLock<String> = OnceLock::new();
    LOCK.get_or_init(|| {
        let tree = Tree::new();
        tree.write("pyproject.toml", PYPROJECT).write("Cargo.toml", "[package]\nname = 'matpkg'\nversion = '0.1.0'\n");
        run(cuwheel(&tree.root).arg("lock")).expect_code(0);
        std::fs::read_to_string(tree.root.join("requirements/test.txt")).unwrap()
    })
}

/// A [`PureProject`] with the lock of its GPU tests, and the stand-in driver to run them with.
pub(crate) struct GpuProject {
    pub(crate) project: PureProject,
    driver: TempDir,
}

impl GpuProject {
    /// With one file of GPU tests.
    pub(crate) fn new(test: &str) -> Self {
        let project = PureProject::new();
        project.write("requirements/test-gpu.txt", gpu_test_lock()).write("tests/gpu/test_it.py", test);
        Self { project, driver: driver_directory() }
    }

    /// `cuwheel test-gpu` of the wheel, on the stand-in driver with its default settings; `arguments` go to it.
    pub(crate) fn test_gpu(&self, arguments: &[&str]) -> Command {
        self.test_gpu_of(&self.project.wheel, arguments)
    }

    /// The same of any wheel.
    pub(crate) fn test_gpu_of(&self, wheel: &Path, arguments: &[&str]) -> Command {
        let mut command = cuwheel(&self.project.tree.root);
        command.args(["test-gpu", "--wheel"]).arg(wheel).args(arguments);
        command.env("LD_LIBRARY_PATH", self.driver.path()).env("CUDA_STUB", "");
        command.env_remove("CUDA_VISIBLE_DEVICES");
        command
    }

    /// Where the stand-in driver is.
    pub(crate) fn driver(&self) -> &Path {
        self.driver.path()
    }
}

/// A directory with the stand-in driver under the name by which it is asked for.
pub(crate) fn driver_directory() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    std::fs::copy(cuda::control::path().unwrap(), directory.path().join("libcuda.so.1")).unwrap();
    directory
}

/// The lock of the GPU tests of [`GpuProject`], resolved once.
fn gpu_test_lock() -> &'static str {
    static LOCK: OnceLock<String> = OnceLock::new();
    LOCK.get_or_init(|| {
        let tree = Tree::new();
        tree.write("pyproject.toml", format!("{PYPROJECT}test-gpu = ['pytest']\n"))
            .write("Cargo.toml", "[package]\nname = 'matpkg'\nversion = '0.1.0'\n");
        run(cuwheel(&tree.root).arg("lock")).expect_code(0);
        std::fs::read_to_string(tree.root.join("requirements/test-gpu.txt")).unwrap()
    })
}

/// A project with a native module that compiles in seconds: the bare C API of Python, without PyO3's macros.
pub(crate) fn native_project() -> Tree {
    let tree = Tree::new();
    let library = "\
//! A module with nothing in it.
use std::ptr;
use pyo3_ffi::*;

static mut MODULE: PyModuleDef = PyModuleDef {
    m_base: PyModuleDef_HEAD_INIT,
    m_name: c\"_native\".as_ptr(),
    m_doc: ptr::null(),
    m_size: 0,
    m_methods: ptr::null_mut(),
    m_slots: ptr::null_mut(),
    m_traverse: None,
    m_clear: None,
    m_free: None,
};

#[unsafe(no_mangle)]
pub unsafe extern \"C\" fn PyInit__native() -> *mut PyObject {
    used();
    unsafe { PyModuleDef_Init(&raw mut MODULE) }
}

pub fn used() {}
";
    tree.write(
        "pyproject.toml",
        "[build-system]\nrequires = ['maturin==1.16.0']\nbuild-backend = 'maturin'\n\
         [project]\nname = 'small'\nversion = '0.1.0'\nrequires-python = '>=3.11'\n\
         [tool.maturin]\nmodule-name = 'small._native'\npython-source = 'python'\nbindings = 'pyo3-ffi'\n\
         [tool.cuwheel]\nbuild-requires = ['ziglang==0.17.1']\n",
    )
    .write(
        "Cargo.toml",
        "[package]\nname = 'small'\nversion = '0.1.0'\nedition = '2024'\n[lib]\nname = '_native'\ncrate-type = ['cdylib']\n\
         [features]\ndefault = ['abi3']\nabi3 = ['pyo3-ffi/abi3-py311']\n[dependencies]\npyo3-ffi = '0.30'\n[workspace]\n",
    )
    .write("src/lib.rs", library)
    .write("python/small/__init__.py", "from . import _native\n")
    .write(".gitignore", "/target\n/dist\n");
    make_git_checkout(&tree);
    tree
}

/// What git tracks and ignores decides what cargo and maturin package.
fn make_git_checkout(tree: &Tree) {
    for arguments in [&["init", "--quiet"][..], &["add", "--all"]] {
        assert!(Command::new("git").args(arguments).current_dir(&tree.root).status().unwrap().success());
    }
}

/// A copy of this repository's sources, without what git ignores.
pub(crate) fn copy_of_repository() -> Tree {
    let tree = Tree::new();
    let list = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(repository())
        .output()
        .unwrap();
    assert!(list.status.success(), "the tests of the repository need its git checkout");
    for path in String::from_utf8(list.stdout).unwrap().split_terminator('\0') {
        // A file that is removed and not yet committed is still listed.
        if let Ok(content) = std::fs::read(repository().join(path)) {
            tree.write(path, content);
        }
    }
    make_git_checkout(&tree);
    tree
}

/// A [`native_project`] that is installed editable in about a second: what it is compiled from is shared by all of them,
/// in one target directory, and its locks are resolved once.
pub(crate) struct EditableProject {
    pub(crate) tree: Tree,
}

const EDITABLE: &str = "\
[build-system]
requires = ['maturin==1.16.0']
build-backend = 'maturin'

[project]
name = 'small'
version = '0.1.0'
requires-python = '>=3.11'

[tool.maturin]
module-name = 'small._native'
python-source = 'python'
bindings = 'pyo3-ffi'

[tool.cuwheel]
linker = 'system'
compatibility = 'linux'
";

impl EditableProject {
    pub(crate) fn new() -> Self {
        static LOCKS: OnceLock<[(&str, String); 2]> = OnceLock::new();
        let project = Self::without_locks();
        let locks = LOCKS.get_or_init(|| {
            let project = Self::without_locks();
            project.develop(&[]).expect_code(0);
            ["Cargo.lock", "requirements/build.txt"]
                .map(|path| (path, std::fs::read_to_string(project.tree.root.join(path)).unwrap()))
        });
        for (path, text) in locks {
            project.tree.write(path, text);
        }
        project
    }

    fn without_locks() -> Self {
        let tree = native_project();
        let manifest = std::fs::read_to_string(tree.root.join("Cargo.toml")).unwrap();
        tree.write("Cargo.toml", format!("{manifest}[profile.dev]\ndebug = false\n"))
            .write("pyproject.toml", EDITABLE)
            .write("python/small/__init__.py", "from . import _native\nfrom .live import *\n")
            .write("python/small/live.py", "VALUE = 1\n")
            .write(".gitignore", "/target\n/dist\n*.so\n.venv\n");
        Self { tree }
    }

    /// With another name of the native module, and its package where that name says.
    pub(crate) fn with_module(module: &str) -> Self {
        let project = Self::new();
        project.tree.write("pyproject.toml", EDITABLE.replace("small._native", module));
        std::fs::remove_dir_all(project.tree.root.join("python/small")).unwrap();
        let package = module.rsplit_once('.').unwrap().0.replace('.', "/");
        project.tree.write(&format!("python/{package}/__init__.py"), "from . import _native\n");
        project
    }

    /// A command in the project, with the target directory that all of them share.
    pub(crate) fn command(&self, name: &str, arguments: &[&str]) -> Command {
        static TARGET: OnceLock<TempDir> = OnceLock::new();
        let mut command = cuwheel(&self.tree.root);
        command.arg(name).args(arguments);
        for variable in ["PYTHONPATH", "CUWHEEL_REBUILD_ON_IMPORT"] {
            command.env_remove(variable);
        }
        command.env("CARGO_TARGET_DIR", TARGET.get_or_init(|| tempfile::tempdir().unwrap()).path());
        command
    }

    pub(crate) fn develop(&self, arguments: &[&str]) -> Ran {
        run(&mut self.command("develop", arguments))
    }

    /// What `--check` says: whether the install is current, and why not.
    #[track_caller]
    pub(crate) fn reasons(&self) -> Vec<String> {
        let ran = self.develop(&["--check", "--json"]);
        let answer = ran.json();
        assert_eq!((answer["current"].as_bool(), ran.code), (Some(ran.code == Some(0)), ran.code), "{answer}");
        answer["reasons"].as_array().unwrap().iter().map(|reason| reason.as_str().unwrap().to_owned()).collect()
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.tree.root.join(path)
    }

    /// The environment that is made where none is active.
    pub(crate) fn python(&self) -> Command {
        python_of(&self.path(".venv"))
    }

    /// Runs Python code away from the sources, and gives what it prints.
    #[track_caller]
    pub(crate) fn prints(&self, code: &str) -> String {
        run(self.python().args(["-c", code])).expect_code(0).stdout.trim_end().to_owned()
    }

    /// Changes the native source, and with it the library.
    pub(crate) fn change_source(&self, mark: &str) {
        let library = std::fs::read_to_string(self.path("src/lib.rs")).unwrap();
        let (code, _) = library.split_once("pub fn used() {").unwrap();
        self.tree.write("src/lib.rs", format!("{code}pub fn used() {{ std::hint::black_box(\"MARK-{mark}\"); }}\n"));
    }

    pub(crate) fn library(&self) -> PathBuf {
        self.path("python/small/_native.abi3.so")
    }
}

/// Whether a library was built from the source with that mark.
pub(crate) fn is_built_with(library: &Path, mark: &str) -> bool {
    let (content, mark) = (std::fs::read(library).unwrap(), format!("MARK-{mark}"));
    content.windows(mark.len()).any(|window| window == mark.as_bytes())
}

/// Python in an environment, as a user runs it.
pub(crate) fn python_of(environment: &Path) -> Command {
    let mut python = Command::new(environment.join("bin/python"));
    scrub(&mut python);
    for variable in ["PYTHONPATH", "CUWHEEL_REBUILD_ON_IMPORT", "CUWHEEL_PYTHON"] {
        python.env_remove(variable);
    }
    python.current_dir(std::env::temp_dir());
    python
}

/// Where an environment keeps what is installed.
pub(crate) fn site_packages(environment: &Path) -> PathBuf {
    let libraries = std::fs::read_dir(environment.join("lib")).unwrap();
    libraries.map(|entry| entry.unwrap().path().join("site-packages")).find(|path| path.is_dir()).unwrap()
}
