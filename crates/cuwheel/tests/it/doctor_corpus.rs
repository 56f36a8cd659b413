//! Projects and machines with one fault each, and sound ones beside them: for the tests of `doctor`, and for the pages of
//! its rules.
//!
//! Inputs are small and made up. What was reduced from projects that exist is in `doctor_projects.rs`.

use std::path::{Path, PathBuf};

use cuwheel::doctor::machine::{self, Compiler, Disk, Driver, Family, Machine, Needs, Toolkit, UvOnPath};
use cuwheel::doctor::{Found, ProjectFacts, check_project};
use cuwheel::interpreter::Interpreter;
use cuwheel_inspect::rules::Policy;

/// What a rule is broken by, or kept by.
pub(crate) struct Case {
    pub(crate) rule: &'static str,
    pub(crate) what: &'static str,
    pub(crate) subject: Subject,
}

/// A project as the text of its files, or a machine with what is asked of it.
pub(crate) enum Subject {
    Project(&'static str),
    Machine(Box<Machine>, Needs),
}

const fn project(rule: &'static str, what: &'static str, files: &'static str) -> Case {
    Case { rule, what, subject: Subject::Project(files) }
}

fn machine(rule: &'static str, what: &'static str, change: impl FnOnce(&mut Machine, &mut Needs)) -> Case {
    let (mut machine, mut needs) = sound_machine();
    change(&mut machine, &mut needs);
    Case { rule, what, subject: Subject::Machine(Box::new(machine), needs) }
}

/// Writes the files of a text, each after a line `=== PATH`, below a directory.
pub(crate) fn write(directory: &Path, files: &str) {
    for part in files.split("=== ").filter(|part| !part.trim().is_empty()) {
        let (path, content) = part.split_once('\n').expect("a path on a line of its own");
        let path = directory.join(path.trim());
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
}

/// What is found in a subject; Python files are read with `python`.
pub(crate) fn examine(subject: &Subject, python: &Path) -> Vec<Found> {
    match subject {
        Subject::Project(files) => {
            let directory = tempfile::tempdir().unwrap();
            write(directory.path(), files);
            let facts = ProjectFacts::read(directory.path(), Some(python)).unwrap();
            check_project(&facts).under(&Policy::default())
        }
        Subject::Machine(machine, needs) => machine::check(machine, needs).under(&Policy::default()),
    }
}

/// The findings as a person reads them.
pub(crate) fn shown(found: &[Found]) -> Vec<String> {
    found.iter().map(|found| format!("{}: {}", found.finding.rule().id(), found.finding)).collect()
}

/// A machine with nothing wrong.
pub(crate) fn sound() -> Subject {
    let (machine, needs) = sound_machine();
    Subject::Machine(Box::new(machine), needs)
}

fn sound_machine() -> (Machine, Needs) {
    let machine = Machine {
        python: Some(Interpreter {
            implementation: "cpython".into(),
            version: (3, 12, 1),
            release_level: "final".into(),
            abi: "cpython-312-x86_64-linux-gnu".into(),
            gil_disabled: false,
            platform: "linux-x86_64".into(),
            base_executable: "/usr/bin/python3".into(),
            base_prefix: "/usr".into(),
            include: "/usr/include/python3.12".into(),
            has_headers: true,
        }),
        toolkits: vec![toolkit("CUDA_HOME", "/opt/cuda-13.0", (13, 0))],
        searched: vec!["CUDA_HOME".into(), "PATH".into()],
        compiler: Some(compiler(14)),
        driver: Some(Driver {
            library: Some("/usr/lib/libcuda.so.1".into()),
            cuda_version: Some((13, 0)),
            ..Driver::default()
        }),
        disks: vec![Disk { path: "/home".into(), free_bytes: 50 << 30 }],
        available_memory_bytes: Some(64 << 30),
        jobs: 8,
        jobs_from: "processors".into(),
        uv: Some(UvOnPath { path: "/usr/bin/uv".into(), version: Some((0, 9, 0)) }),
        ..Machine::default()
    };
    let needs = Needs { has_cuda_sources: true, architectures: vec![(90, "90".into(), "CMakeLists.txt".into(), 3)] };
    (machine, needs)
}

fn toolkit(found_by: &str, root: &str, version: (u32, u32)) -> Toolkit {
    Toolkit {
        found_by: found_by.into(),
        root: root.into(),
        nvcc: Some(PathBuf::from(root).join("bin/nvcc")),
        version: Some(version),
        newest_gcc: Some(15),
        newest_clang: Some(20),
        architectures: vec![75, 80, 86, 89, 90, 100, 120],
    }
}

fn compiler(major: u32) -> Compiler {
    let (path, version) = (format!("/usr/bin/g++-{major}").into(), format!("{major}.1.0"));
    Compiler { found_by: "PATH".into(), path, family: Family::Gcc, major, version }
}

/// Subjects that break a rule, in the order of the catalog.
pub(crate) fn faulty() -> Vec<Case> {
    let mut cases = faulty_builds();
    cases.extend(faulty_sources());
    cases.extend(faulty_machines());
    cases
}

fn faulty_builds() -> Vec<Case> {
    vec![
        project("build/unreadable", "a pyproject.toml that is no TOML", "=== pyproject.toml\n[project\n"),
        project("build/unreadable", "a setup.py for Python 2", "=== setup.py\nprint 'building'\n"),
        project(
            "build/requirement-undeclared",
            "a C source that includes NumPy's headers (PK-30)",
            "=== pyproject.toml\n[build-system]\nrequires = [\"setuptools\"]\n[project]\nname = \"demo\"\nversion = \"1\"\ndependencies = [\"numpy>=1.26\"]\n\
             === setup.py\nfrom setuptools import Extension, setup\nsetup(ext_modules=[Extension(\"demo._m\", [\"demo/_m.c\"])])\n\
             === demo/_m.c\n#include <Python.h>\n#include <numpy/arrayobject.h>\n",
        ),
        project(
            "build/requirement-undeclared",
            "a setup.py that imports torch, and no pyproject.toml (PK-31)",
            "=== setup.py\nfrom setuptools import setup\nfrom torch.utils.cpp_extension import CUDAExtension\nsetup()\n",
        ),
        project(
            "build/requirement-undeclared",
            "a CMake file that has to find pybind11",
            "=== pyproject.toml\n[build-system]\nrequires = [\"scikit-build-core\"]\nbuild-backend = \"scikit_build_core.build\"\n\
             === CMakeLists.txt\nfind_package(pybind11 CONFIG REQUIRED)\npybind11_add_module(_m m.cpp)\n=== m.cpp\nint x;\n",
        ),
        project(
            "build/requirement-conditional",
            "an import where a variable is set",
            "=== pyproject.toml\n[build-system]\nrequires = [\"setuptools\"]\n=== setup.py\nimport os\nif os.environ.get(\"FAST\"):\n    import psutil\n",
        ),
        project(
            "build/editable-command",
            "a list of commands without editable_wheel",
            "=== pyproject.toml\n[build-system]\nrequires = [\"setuptools\"]\n\
             === setup.py\nimport sys\nfrom setuptools import setup\nCOMMANDS = [\"build\", \"build_ext\", \"bdist_wheel\", \"install\", \"develop\"]\n\n\
             def is_building():\n    return any(command in sys.argv[1:] for command in COMMANDS)\n\nsetup(ext_modules=[] if is_building() else None)\n",
        ),
        project(
            "build/editable-command",
            "a class for develop alone",
            "=== setup.py\nfrom setuptools import setup\nfrom setuptools.command.develop import develop\n\nclass Develop(develop):\n    pass\n\nsetup(cmdclass={\"develop\": Develop})\n",
        ),
        project(
            "build/numpy-floor",
            "numpy without a lower bound (PK-34)",
            "=== pyproject.toml\n[build-system]\nrequires = [\"setuptools\", \"numpy>=2.0\"]\n[project]\nname = \"demo\"\nversion = \"1\"\nrequires-python = \">=3.11\"\ndependencies = [\"numpy\"]\n\
             === setup.py\nfrom setuptools import Extension, setup\nsetup(ext_modules=[Extension(\"demo._m\", [\"m.c\"])])\n=== m.c\n#include <numpy/arrayobject.h>\n",
        ),
        project(
            "build/numpy-floor",
            "a target that is newer than the floor",
            "=== pyproject.toml\n[build-system]\nrequires = [\"setuptools\", \"numpy>=2.0\"]\n[project]\nname = \"demo\"\nversion = \"1\"\ndependencies = [\"numpy>=1.21\"]\n\
             === setup.py\nfrom setuptools import Extension, setup\nsetup(ext_modules=[Extension(\"demo._m\", [\"m.c\"])])\n=== m.c\n#define NPY_TARGET_VERSION NPY_1_23_API_VERSION\n#include <numpy/arrayobject.h>\n",
        ),
        project(
            "build/numpy-major",
            "a build with NumPy 1 for whatever NumPy there is",
            "=== pyproject.toml\n[build-system]\nrequires = [\"setuptools\", \"oldest-supported-numpy\", \"numpy<2\"]\n[project]\nname = \"demo\"\nversion = \"1\"\ndependencies = [\"numpy>=1.22\"]\n\
             === setup.py\nfrom setuptools import Extension, setup\nsetup(ext_modules=[Extension(\"demo._m\", [\"m.c\"])])\n=== m.c\n#include <numpy/arrayobject.h>\n",
        ),
        project(
            "build/abi3-python",
            "a feature of PyO3 that is newer than requires-python",
            "=== pyproject.toml\n[build-system]\nrequires = [\"maturin\"]\nbuild-backend = \"maturin\"\n[project]\nname = \"demo\"\nrequires-python = \">=3.9\"\n\
             === Cargo.toml\n[package]\nname = \"demo\"\nversion = \"0.1.0\"\n[dependencies]\npyo3 = { version = \"0.30\", features = [\"abi3-py311\"] }\n=== src/lib.rs\n",
        ),
        project(
            "build/abi3-python",
            "py_limited_api without the macro",
            "=== pyproject.toml\n[build-system]\nrequires = [\"setuptools\"]\n=== setup.py\nfrom setuptools import Extension, setup\nsetup(ext_modules=[Extension(\"m\", [\"m.c\"], py_limited_api=True)])\n=== m.c\n#include <Python.h>\n",
        ),
        project(
            "build/abi3-python",
            "a tag that is older than the limited API (PK-57)",
            "=== setup.cfg\n[bdist_wheel]\npy_limited_api = cp38\n=== setup.py\nfrom setuptools import Extension, setup\nsetup(ext_modules=[Extension(\"m\", [\"m.c\"], py_limited_api=True, define_macros=[(\"Py_LIMITED_API\", \"0x030B0000\")])])\n",
        ),
        project(
            "build/redirector",
            "a .pth file that no file of the build names",
            "=== pyproject.toml\n[build-system]\nrequires = [\"setuptools\"]\n=== demo.pth\nimport _demo_redirector\n",
        ),
        project(
            "build/redirector",
            "a .pth file that is copied where editable installs do not come by (PK-36)",
            "=== setup.py\nfrom setuptools import setup\nfrom setuptools.command.build_py import build_py\n\nclass WithRedirector(build_py):\n    def run(self):\n        super().run()\n        self.copy_file(\"demo.pth\", self.build_lib)\n\nsetup(cmdclass={\"build_py\": WithRedirector})\n=== demo.pth\nimport os\n",
        ),
    ]
}

fn faulty_sources() -> Vec<Case> {
    vec![
        project(
            "import/hack",
            "an extension that is loaded by hand",
            "=== pyproject.toml\n=== demo/__init__.py\nimport importlib.util\nimport sys\n\nspec = importlib.util.spec_from_file_location(\"demo._m\", \"/build/_m.so\")\nmodule = importlib.util.module_from_spec(spec)\nsys.modules[\"demo._m\"] = module\n",
        ),
        project(
            "import/hack",
            "a package that looks for its modules elsewhere",
            "=== pyproject.toml\n=== demo/__init__.py\nimport os\nimport sys\n\n__path__.append(os.path.join(os.path.dirname(__file__), \"build\"))\nsys.path.insert(0, os.path.dirname(__file__))\n",
        ),
        project(
            "test/imports-tree",
            "a conftest.py at the root, and tests that are a package (PK-63)",
            "=== pyproject.toml\n[project]\nname = \"demo\"\n=== setup.py\nfrom setuptools import Extension, setup\nsetup(ext_modules=[Extension(\"demo._m\", [\"m.c\"])])\n=== m.c\nint x;\n=== demo/__init__.py\n=== conftest.py\n=== tests/__init__.py\n=== tests/test_it.py\n",
        ),
        project(
            "test/imports-tree",
            "pythonpath in the settings of pytest",
            "=== pyproject.toml\n[project]\nname = \"demo\"\n[tool.pytest.ini_options]\naddopts = \"--import-mode=importlib\"\npythonpath = [\"src\"]\n=== setup.py\nfrom setuptools import Extension, setup\nsetup(ext_modules=[Extension(\"demo._m\", [\"m.c\"])])\n=== m.c\nint x;\n=== src/demo/__init__.py\n",
        ),
        project(
            "test/imports-tree",
            "python -m pytest in a workflow",
            "=== pyproject.toml\n[project]\nname = \"demo\"\n=== setup.py\nfrom setuptools import Extension, setup\nsetup(ext_modules=[Extension(\"demo._m\", [\"m.c\"])])\n=== m.c\nint x;\n=== demo/__init__.py\n=== .github/workflows/test.yml\njobs:\n  test:\n    steps:\n      - run: pip install dist/*.whl\n      - run: python -m pytest tests\n",
        ),
        project(
            "native/capsule-name",
            "a capsule in C that is named after another module",
            "=== pyproject.toml\n=== setup.py\nfrom setuptools import Extension, setup\nsetup(ext_modules=[Extension(\"demo.cext._array\", [\"demo/cext/_array.c\"])])\n\
             === demo/cext/_array.c\n#include <Python.h>\n#define NAME \"demo._array._API\"\nPyMODINIT_FUNC PyInit__array(void)\n{\n    return PyCapsule_New(&table, NAME, NULL);\n}\n",
        ),
        project(
            "native/capsule-name",
            "a capsule in Rust that is named after another module",
            "=== pyproject.toml\n[build-system]\nrequires = [\"maturin\"]\nbuild-backend = \"maturin\"\n[tool.maturin]\nmodule-name = \"demo._native\"\n=== Cargo.toml\n[package]\nname = \"demo\"\n\
             === src/lib.rs\nconst NAME: &CStr = c\"demo._native2._API\";\n#[pymodule]\nfn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {\n    module.add(\"_API\", PyCapsule::new(py, TABLE, Some(NAME.into()))?)\n}\n",
        ),
        project(
            "native/capsule-name",
            "an import from a module that is not there",
            "=== pyproject.toml\n=== setup.py\nfrom setuptools import Extension, setup\nsetup(ext_modules=[Extension(\"demo._a\", [\"demo/_a.cpp\"])])\n=== demo/__init__.py\n=== demo/_a.cpp\nstatic void *api = PyCapsule_Import(\"demo._gone._API\", 0);\n",
        ),
        project(
            "gpu/stale-architecture",
            "a list for GPUs that CUDA 13 does not compile for (PK-24)",
            "=== pyproject.toml\n[build-system]\nbuild-backend = \"scikit_build_core.build\"\nrequires = []\n=== CMakeLists.txt\nset(CMAKE_CUDA_ARCHITECTURES \"60;70;80;90\")\n",
        ),
        project(
            "gpu/stale-architecture",
            "options of nvcc in setup.py",
            "=== pyproject.toml\n=== setup.py\nFLAGS = [\"-gencode=arch=compute_70,code=sm_70\", \"-gencode=arch=compute_90,code=compute_90\"]\n",
        ),
        project(
            "gpu/no-ptx",
            "machine code only (PK-29)",
            "=== pyproject.toml\n=== setup.py\nFLAGS = [\"-gencode=arch=compute_80,code=sm_80\", \"-gencode=arch=compute_90,code=sm_90\"]\n",
        ),
        project(
            "gpu/architecture-of-machine",
            "a build script that runs nvidia-smi (PK-27)",
            "=== pyproject.toml\n=== setup.py\nimport subprocess\n\nARCHITECTURE = subprocess.check_output([\"nvidia-smi\", \"--query-gpu=compute_cap\"])\n",
        ),
        project(
            "gpu/architecture-of-machine",
            "a CUDA part that is left out without a GPU",
            "=== pyproject.toml\n[build-system]\nrequires = [\"setuptools\", \"torch\"]\n=== setup.py\nimport torch\n\nWITH_CUDA = False\nif torch.cuda.is_available():\n    WITH_CUDA = True\n",
        ),
        project(
            "gpu/bare-libcuda",
            "a driver that is loaded without its number (PK-09)",
            "=== pyproject.toml\n=== demo/driver.py\nimport ctypes\n\nlibrary = ctypes.CDLL(\"libcuda.so\")\n",
        ),
        project(
            "gpu/bare-libcuda",
            "the number as the second choice",
            "=== pyproject.toml\n=== driver.cpp\nvoid *open() {\n    void *library = dlopen(\"libcuda.so\", RTLD_NOW);\n    return library ? library : dlopen(\"libcuda.so.1\", RTLD_NOW);\n}\n",
        ),
        project(
            "gpu/links-driver",
            "libraries of an extension (PK-14)",
            "=== pyproject.toml\n=== setup.py\nfrom setuptools import Extension, setup\n\nsetup(ext_modules=[Extension(\"demo._m\", [\"m.c\"], libraries=[\"cuda\", \"cudart\"])])\n",
        ),
        project(
            "gpu/links-driver",
            "a target of CMake, and a build script of cargo",
            "=== pyproject.toml\n=== CMakeLists.txt\ntarget_link_libraries(_m PRIVATE CUDA::cudart CUDA::cuda_driver)\n=== build.rs\nfn main() {\n    println!(\"cargo:rustc-link-lib=dylib=cuda\");\n}\n",
        ),
        project(
            "uv/cache-keys",
            "a Rust project that uv does not look into (PK-39)",
            "=== pyproject.toml\n[build-system]\nrequires = [\"maturin\"]\nbuild-backend = \"maturin\"\n[project]\nname = \"demo\"\n=== uv.lock\n=== Cargo.toml\n[package]\nname = \"demo\"\n=== src/lib.rs\n=== src/kernel.cu\n",
        ),
        project(
            "uv/cache-keys",
            "keys that leave the lock file out",
            "=== pyproject.toml\n[build-system]\nrequires = [\"maturin\"]\nbuild-backend = \"maturin\"\n[tool.uv]\ncache-keys = [{ file = \"pyproject.toml\" }, { file = \"**/Cargo.toml\" }, { file = \"src/**/*.rs\" }]\n=== Cargo.toml\n[package]\nname = \"demo\"\n=== Cargo.lock\n=== src/lib.rs\n=== build.rs\n",
        ),
        project(
            "settings/unknown-key",
            "names with mistakes",
            "=== pyproject.toml\n[tool.cuwheel]\nmodule = [\"demo._m\"]\n[tool.cuwheel.test]\ntimeout = 5\n",
        ),
        project(
            "settings/invalid-value",
            "a text where an array belongs",
            "=== pyproject.toml\n[tool.cuwheel]\nmodules = \"demo._m\"\n",
        ),
    ]
}

fn faulty_machines() -> Vec<Case> {
    vec![
        machine("machine/python", "no Python that builds", |machine, _| {
            machine.python = None;
            machine.python_problem = Some("no CPython 3.11 or newer was found".into());
        }),
        machine("machine/python", "no headers", |machine, _| {
            machine.python.as_mut().unwrap().has_headers = false;
        }),
        machine("machine/no-toolkit", "CUDA sources and no nvcc (PK-20)", |machine, needs| {
            machine.toolkits.clear();
            needs.architectures.clear();
        }),
        machine("machine/toolkits", "a variable and PATH that disagree (PK-18)", |machine, _| {
            machine.toolkits.push(toolkit("PATH", "/opt/cuda-12.4", (12, 4)));
        }),
        machine("machine/compiler", "a GCC that nvcc does not take (PK-22)", |machine, _| {
            machine.compiler = Some(compiler(16));
            machine.other_compilers = vec![compiler(16), compiler(14), compiler(13)];
        }),
        machine("machine/architecture", "an older nvcc than the list (PK-23)", |machine, _| {
            machine.toolkits[0].architectures = vec![50, 60, 70, 75, 80];
        }),
        machine("machine/driver", "the stub of the toolkit", |machine, _| {
            let answer = r#"{"library": "/opt/cuda/lib64/stubs/libcuda.so.1", "error": {"function": "cuInit", "name": "CUDA_ERROR_STUB_LIBRARY"}}"#;
            machine.driver = Some(serde_json::from_str(answer).unwrap());
        }),
        machine("machine/driver-old", "a driver of the major version before (PK-28)", |machine, _| {
            machine.driver.as_mut().unwrap().cuda_version = Some((12, 4));
        }),
        machine("machine/disk", "a full disk", |machine, _| {
            machine.disks.push(Disk { path: "/tmp".into(), free_bytes: 800 << 20 });
        }),
        machine("machine/memory", "more jobs than memory (PK-81)", |machine, _| {
            (machine.jobs, machine.jobs_from) = (64, "MAX_JOBS".into());
        }),
        machine("machine/uv", "none", |machine, _| machine.uv = None),
        machine("machine/uv", "an old one", |machine, _| {
            machine.uv.as_mut().unwrap().version = Some((0, 4, 30));
        }),
    ]
}
