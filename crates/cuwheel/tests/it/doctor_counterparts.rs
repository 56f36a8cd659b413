//! Sound counterparts of the faulty projects: what is close to a fault and none.

use crate::doctor_corpus::{Case, Subject};

const fn project(rule: &'static str, what: &'static str, files: &'static str) -> Case {
    Case { rule, what, subject: Subject::Project(files) }
}

/// Projects in which nothing is found, at least one for each rule on projects.
pub(crate) fn sound() -> Vec<Case> {
    let mut cases = sound_builds();
    cases.extend(sound_sources());
    cases
}

fn sound_builds() -> Vec<Case> {
    vec![
        project(
            "build/unreadable",
            "files that Python and TOML can read",
            "=== pyproject.toml\n[project]\nname = \"demo\"\n=== setup.py\nprint('building')\n",
        ),
        project(
            "build/requirement-undeclared",
            "requirements that are declared; modules of the project, of the standard library and of setuptools; an import \
             whose failure is caught",
            "=== pyproject.toml\n[build-system]\nrequires = [\"setuptools\", \"NumPy >= 2.0\", \"cython\"]\n[project]\nname = \"demo\"\nversion = \"1\"\ndependencies = [\"numpy>=1.26\"]\n\
             === setup.py\nimport os, sys\nimport distutils.util\nimport pkg_resources\nimport numpy as np\nfrom setuptools import Extension, setup\nfrom Cython.Build import cythonize\nsys.path.insert(0, \"tools\")\nimport version_helper\nimport demo.version\ntry:\n    import ninja\nexcept ImportError:\n    ninja = None\nsetup(ext_modules=cythonize([Extension(\"demo._m\", [\"demo/_m.c\"])]))\n\
             === tools/version_helper.py\nimport re\n=== demo/__init__.py\n=== demo/version.py\n=== demo/_m.c\n#include <numpy/arrayobject.h>\n",
        ),
        project(
            "build/requirement-conditional",
            "an import under a condition, declared",
            "=== pyproject.toml\n[build-system]\nrequires = [\"setuptools\", \"psutil\"]\n=== setup.py\nimport os\nif os.environ.get(\"FAST\"):\n    import psutil\n",
        ),
        project(
            "build/editable-command",
            "a list with editable_wheel; options of one's own in sys.argv; a class for build_ext",
            "=== setup.py\nimport sys\nfrom setuptools import setup\nfrom setuptools.command.build_ext import build_ext\nfrom setuptools.command.develop import develop\n\nif any(command in sys.argv for command in (\"build_ext\", \"bdist_wheel\", \"editable_wheel\")):\n    pass\nif \"--with-cuda\" in sys.argv:\n    sys.argv.remove(\"--with-cuda\")\nif \"sdist\" in sys.argv or \"clean\" in sys.argv:\n    pass\nsetup(cmdclass={\"build_ext\": build_ext, \"develop\": develop})\n",
        ),
        project(
            "build/numpy-floor",
            "a floor that is as new as the target",
            "=== pyproject.toml\n[build-system]\nrequires = [\"setuptools\", \"numpy>=2.0\"]\n[project]\nname = \"demo\"\nversion = \"1\"\ndependencies = [\"numpy>=1.23,<3\"]\n\
             === setup.py\nfrom setuptools import Extension, setup\nsetup(ext_modules=[Extension(\"demo._m\", [\"m.c\"])])\n=== m.c\n#define NPY_TARGET_VERSION NPY_1_23_API_VERSION\n#include <numpy/arrayobject.h>\n",
        ),
        project(
            "build/numpy-major",
            "a build with NumPy 1 for NumPy 1",
            "=== pyproject.toml\n[build-system]\nrequires = [\"setuptools\", \"numpy<2\"]\n[project]\nname = \"demo\"\nversion = \"1\"\ndependencies = [\"numpy>=1.22,<2\"]\n\
             === setup.py\nfrom setuptools import Extension, setup\nsetup(ext_modules=[Extension(\"demo._m\", [\"m.c\"])])\n=== m.c\n#include <numpy/arrayobject.h>\n",
        ),
        project(
            "build/abi3-python",
            "one oldest Python everywhere",
            "=== pyproject.toml\n[build-system]\nrequires = [\"maturin\"]\nbuild-backend = \"maturin\"\n[project]\nname = \"demo\"\nrequires-python = \">=3.11\"\n\
             === Cargo.toml\n[package]\nname = \"demo\"\nversion = \"0.1.0\"\n[dependencies]\npyo3 = { version = \"0.30\", features = [\"abi3-py311\"] }\n=== src/lib.rs\n",
        ),
        project(
            "build/abi3-python",
            "a tag, a macro and requires-python of setuptools that agree",
            "=== pyproject.toml\n[build-system]\nrequires = [\"setuptools\"]\n[project]\nname = \"demo\"\nrequires-python = \">=3.11\"\n[tool.distutils.bdist_wheel]\npy-limited-api = \"cp311\"\n=== setup.py\nfrom setuptools import Extension, setup\nsetup(ext_modules=[Extension(\"m\", [\"m.c\"], py_limited_api=True, define_macros=[(\"Py_LIMITED_API\", \"0x030B0000\")])])\n",
        ),
        project(
            "build/redirector",
            "files that go into the wheel and into editable installs",
            "=== setup.py\nfrom setuptools import setup\nfrom setuptools.command.build_py import build_py\nfrom setuptools.command.editable_wheel import editable_wheel\n\nFILES = [\"demo.pth\", \"_demo_redirector.py\"]\nsetup(cmdclass={\"build_py\": build_py, \"editable_wheel\": editable_wheel})\n=== demo.pth\nimport _demo_redirector\n=== _demo_redirector.py\n",
        ),
    ]
}

fn sound_sources() -> Vec<Case> {
    vec![
        project(
            "import/hack",
            "imports by name; a lazy module in its own place; pkgutil's namespace; modules that are only looked at",
            "=== pyproject.toml\n=== demo/__init__.py\nimport sys\nfrom pkgutil import extend_path\n\n__path__ = extend_path(__path__, __name__)\nfrom . import _m\nif \"torch\" in sys.modules:\n    torch = sys.modules[\"torch\"]\nsys.modules[__name__] = object()\n=== demo/tests/__init__.py\nimport sys\nsys.path.insert(0, \".\")\n",
        ),
        project(
            "test/imports-tree",
            "packages in src, and tests beside it; workflows that leave the tree",
            "=== pyproject.toml\n[project]\nname = \"demo\"\n=== setup.py\nfrom setuptools import Extension, setup\nsetup(ext_modules=[Extension(\"demo._m\", [\"m.c\"])])\n=== m.c\nint x;\n=== src/demo/__init__.py\n=== conftest.py\n=== tests/__init__.py\n=== .github/workflows/test.yml\n      - run: |\n          cd $(mktemp -d)\n          python -m pytest --pyargs demo\n",
        ),
        project(
            "test/imports-tree",
            "a flat layout with --import-mode=importlib",
            "=== pyproject.toml\n[project]\nname = \"demo\"\n[tool.pytest.ini_options]\naddopts = [\"--import-mode=importlib\"]\n=== setup.py\nfrom setuptools import Extension, setup\nsetup(ext_modules=[Extension(\"demo._m\", [\"m.c\"])])\n=== m.c\nint x;\n=== demo/__init__.py\n=== conftest.py\n=== tests/__init__.py\n",
        ),
        project(
            "native/capsule-name",
            "true names, and names that are of no module",
            "=== pyproject.toml\n=== setup.py\nfrom setuptools import Extension, setup\nsetup(ext_modules=[Extension(\"demo.cext._array\", [\"demo/cext/_array.c\"])])\n=== demo/__init__.py\n\
             === demo/cext/_array.c\n#include <Python.h>\nPyMODINIT_FUNC PyInit__array(void)\n{\n    PyCapsule_New(a, \"dltensor\", NULL);\n    PyCapsule_New(b, \"demo handle\", NULL);\n    PyCapsule_Import(\"datetime.datetime_CAPI\", 0);\n    return PyCapsule_New(&table, \"demo.cext._array._API\", NULL);\n}\n",
        ),
        project(
            "gpu/stale-architecture",
            "old GPUs for the compilers that know them",
            "=== pyproject.toml\n=== setup.py\nFLAGS = [\"-gencode=arch=compute_90,code=compute_90\"]\nif cuda_version < (13, 0):\n    FLAGS.append(\"-gencode=arch=compute_70,code=sm_70\")\n=== CMakeLists.txt\nif(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 13)\n  list(APPEND FLAGS -gencode=arch=compute_60,code=sm_60)\nendif()\n",
        ),
        project(
            "gpu/no-ptx",
            "machine code, and PTX of the newest",
            "=== pyproject.toml\n=== setup.py\nFLAGS = [\"-gencode=arch=compute_80,code=sm_80\", \"-gencode=arch=compute_90,code=[sm_90,compute_90]\"]\n",
        ),
        project(
            "gpu/architecture-of-machine",
            "a list, and the machine's GPU for those who ask for native",
            "=== pyproject.toml\n[build-system]\nrequires = [\"setuptools\", \"torch\"]\n=== setup.py\nimport os\nimport subprocess\nimport torch\n\nARCHITECTURES = os.environ.get(\"DEMO_ARCHITECTURES\", \"80;90\")\nif ARCHITECTURES == \"native\":\n    ARCHITECTURES = subprocess.check_output([\"nvidia-smi\", \"--query-gpu=compute_cap\"])\nprint(torch.cuda.is_available())\n",
        ),
        project(
            "gpu/bare-libcuda",
            "the number first; names that are only compared with",
            "=== pyproject.toml\n=== demo/driver.py\nNAMES = [\"libcuda.so.1\", \"libcuda.so\"]\nfound = [line for line in open(\"/proc/self/maps\") if \"libcuda.so\" in line]\n",
        ),
        project(
            "gpu/links-driver",
            "the runtime, and the driver's import library on Windows",
            "=== pyproject.toml\n=== setup.py\nimport sys\nfrom setuptools import Extension, setup\n\nlibraries = [\"cudart\"]\nif sys.platform == \"win32\":\n    libraries += [\"cuda\"]\nsetup(ext_modules=[Extension(\"demo._m\", [\"m.c\"], libraries=libraries)])\n=== CMakeLists.txt\ntarget_link_libraries(_m PRIVATE CUDA::cudart)\n",
        ),
        project(
            "uv/cache-keys",
            "keys for everything that is read",
            "=== pyproject.toml\n[build-system]\nrequires = [\"maturin\"]\nbuild-backend = \"maturin\"\n[tool.uv]\ncache-keys = [{ file = \"pyproject.toml\" }, { file = \"Cargo.lock\" }, { file = \"**/*.{rs,toml}\" }]\n=== Cargo.toml\n[package]\nname = \"demo\"\n=== Cargo.lock\n=== src/lib.rs\n=== build.rs\n",
        ),
        project(
            "settings/unknown-key",
            "settings that there are",
            "=== pyproject.toml\n[tool.cuwheel]\nmodules = [\"demo._m\"]\n[tool.cuwheel.doctor]\nallow = [\"test/\"]\n",
        ),
        project(
            "settings/invalid-value",
            "values as the settings take them",
            "=== pyproject.toml\n[tool.cuwheel]\nmodules = [\"demo._m\"]\ntest.timeout-s = 5\n",
        ),
    ]
}
