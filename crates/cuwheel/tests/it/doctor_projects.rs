//! Build files of public projects, reduced to what `doctor` has to say of them: names are replaced, and everything that is
//! not needed is gone. docs/real-projects.md has what it says of the projects themselves.

use expect_test::{Expect, expect};

use crate::doctor_corpus::{Subject, examine, shown};
use crate::support::interpreter;

#[track_caller]
fn check(files: &'static str, expected: &Expect) {
    let found = shown(&examine(&Subject::Project(files), &interpreter().base_executable));
    let end = if found.is_empty() { "" } else { "\n" };
    expected.assert_eq(&(found.join("\n") + end));
}

/// A compiler of kernels with extension modules in C, as it was when an editable install had none of them.
#[test]
fn extensions_that_are_gated_on_a_list_of_commands() {
    check(
        r#"=== pyproject.toml
[build-system]
requires = ["setuptools", "wheel"]
[project]
name = "kernelsmith"
version = "1"
requires-python = ">=3.11"
dependencies = ["numba>=0.60"]
=== setup.py
import pathlib
import sys

from setuptools import Extension, setup
from setuptools.command.build_py import build_py

REDIRECTOR = "_kernelsmith.pth"


def extensions():
    import numpy as np

    return [
        Extension(
            name="kernelsmith.cuda.cext._array",
            sources=["kernelsmith/cuda/cext/_array.cpp"],
            include_dirs=[np.get_include()],
        ),
    ]


def is_building():
    if len(sys.argv) < 2:
        return True
    build_commands = ["build", "build_py", "build_ext", "install", "sdist", "bdist_wheel", "develop"]
    return any(command in sys.argv[1:] for command in build_commands)


class WithRedirector(build_py):
    def run(self):
        super().run()
        self.copy_file(str(pathlib.Path("site-packages") / REDIRECTOR), self.build_lib)


setup(cmdclass={"build_py": WithRedirector}, ext_modules=extensions() if is_building() else [])
=== site-packages/_kernelsmith.pth
import _kernelsmith_redirector
=== site-packages/_kernelsmith_redirector.py
=== kernelsmith/__init__.py
=== kernelsmith/cuda/cext/__init__.py
=== kernelsmith/cuda/cext/_array.cpp
#include <Python.h>
#include <numpy/ndarrayobject.h>
#include "_array.h"
PyMODINIT_FUNC PyInit__array(void)
{
    PyObject *module = PyModule_Create(&definition);
    PyModule_AddObject(module, "_ARRAY_API", PyCapsule_New(api, ARRAY_API, NULL));
    return module;
}
=== kernelsmith/cuda/cext/_array.h
#define ARRAY_API "smith._array._ARRAY_API"
"#,
        &expect![[r#"
            build/requirement-undeclared: setup.py:11: the imported module numpy comes from numpy, which build-system.requires does not list
            build/editable-command: setup.py:26: sys.argv is looked through for build, build_ext, bdist_wheel, install, develop, and not for editable_wheel
            native/capsule-name: kernelsmith/cuda/cext/_array.cpp:7: the capsule smith._array._ARRAY_API is named after smith._array, and the module is kernelsmith.cuda.cext._array
            build/redirector: setup.py:7: _kernelsmith.pth is copied by a command that editable installs do not run
            build/redirector: site-packages/_kernelsmith.pth:1: it imports _kernelsmith_redirector, and no file of the build names _kernelsmith_redirector.py
        "#]],
    );
}

/// The same kind of project today, with a simulator that stands in for modules, and a driver that is opened by name.
#[test]
fn a_simulator_that_takes_the_place_of_modules() {
    check(
        r#"=== pyproject.toml
[build-system]
requires = ["setuptools", "numpy"]
[project]
name = "kernelsmith"
=== setup.py
import sys
from setuptools import Extension, setup
from setuptools.command.editable_wheel import editable_wheel

def extensions():
    import numpy as np
    return [Extension("kernelsmith.cext.view", ["kernelsmith/cext/view.c"])]

build_commands = ["build_ext", "bdist_wheel", "develop", "editable_wheel"]
setup(
    cmdclass={"editable_wheel": editable_wheel},
    ext_modules=extensions() if any(name in sys.argv for name in build_commands) else [],
)
=== kernelsmith/simulator/__init__.py
import sys
from . import api, fake
sys.modules["kernelsmith.api"] = api
sys.modules["kernelsmith.driver"] = fake
=== kernelsmith/driver/open.py
import sys

def names():
    if sys.platform == "win32":
        return ["nvcuda.dll"]
    return ["libcuda.so", "libcuda.so.1"]
=== kernelsmith/driver/report.py
def mapped(lines):
    return {line for line in lines if "libcuda.so" in line}
"#,
        &expect![[r#"
            import/hack: kernelsmith/simulator/__init__.py:3: sys.modules[kernelsmith.api] is set
            import/hack: kernelsmith/simulator/__init__.py:4: sys.modules[kernelsmith.driver] is set
            gpu/bare-libcuda: kernelsmith/driver/open.py:6: libcuda.so is tried before libcuda.so.1
        "#]],
    );
}

/// An array library whose build is a package of its own in a directory that setup.py adds to sys.path.
#[test]
fn a_builder_package_in_the_tree() {
    check(
        r#"=== pyproject.toml
[build-system]
requires = ["setuptools>=77", "wheel", "Cython>=3.2,<3.3", "numpy>=2.0"]
build-backend = "setuptools.build_meta"
[project]
name = "gpuarrays"
requires-python = ">=3.10"
dynamic = ["version", "dependencies"]
=== setup.py
import os
import sys
from setuptools import setup

root = os.path.abspath(os.path.dirname(__file__))
sys.path.append(os.path.join(root, "install"))

import builder
from builder import setup_build

context = builder.Context(root)
if not builder.preflight(context):
    sys.exit(1)
requirements = ["numpy>=2.0,<2.6"]
setup(ext_modules=setup_build.extensions(context), install_requires=requirements)
=== install/builder/__init__.py
from builder._context import Context
from builder._preflight import preflight
=== install/builder/_context.py
import dataclasses
=== install/builder/_preflight.py
import shutil

def preflight(context):
    return shutil.which("nvcc") is not None
=== install/builder/setup_build.py
import setuptools

def extensions(context):
    from Cython.Build import cythonize
    flags = ["-gencode=arch=compute_{},code=sm_{}".format(arch, arch) for arch in context.architectures]
    return cythonize([setuptools.Extension("gpuarrays._core", ["gpuarrays/_core.pyx"], extra_compile_args=flags)])
=== gpuarrays/__init__.py
import sys
if sys.platform.startswith("win32"):
    import os
=== gpuarrays/_core.pyx
cimport numpy
"#,
        &expect![[""]],
    );
}

/// Kernels for torch, released as wheels that setup.py fetches, without a pyproject.toml.
#[test]
fn attention_kernels_without_a_pyproject() {
    check(
        r#"=== setup.py
import os
import subprocess
from packaging.version import Version, parse
from setuptools import find_packages, setup
from wheel.bdist_wheel import bdist_wheel

import torch
from torch.utils.cpp_extension import BuildExtension, CUDAExtension, CUDA_HOME

def gencodes(flags, archs, version):
    if "80" in archs:
        flags += ["-gencode", "arch=compute_80,code=sm_80"]
    if version >= Version("11.8") and "90" in archs:
        flags += ["-gencode", "arch=compute_90,code=sm_90"]
    newest = max(archs, key=int)
    flags += ["-gencode", f"arch=compute_{newest},code=compute_{newest}"]
    return flags

class NinjaBuild(BuildExtension):
    def __init__(self, *args, **kwargs):
        if not os.environ.get("MAX_JOBS"):
            import psutil
            os.environ["MAX_JOBS"] = str(psutil.cpu_count() // 2)
        super().__init__(*args, **kwargs)

class CachedWheel(bdist_wheel):
    pass

setup(
    name="attend",
    packages=find_packages(),
    ext_modules=[CUDAExtension("attend_cuda", ["csrc/attend.cu"], extra_compile_args={"nvcc": gencodes([], ["80", "90"], parse("12.4"))})],
    cmdclass={"bdist_wheel": CachedWheel, "build_ext": NinjaBuild},
    install_requires=["torch", "einops"],
)
=== csrc/attend.cu
#include <torch/extension.h>
=== attend/__init__.py
"#,
        &expect![[r#"
            build/requirement-undeclared: setup.py:3: the imported module packaging comes from packaging, which build-system.requires does not list, and there is no pyproject.toml
            build/requirement-undeclared: setup.py:5: the imported module wheel comes from wheel, which build-system.requires does not list, and there is no pyproject.toml
            build/requirement-undeclared: setup.py:7: the imported module torch comes from torch, which build-system.requires does not list, and there is no pyproject.toml
            build/requirement-conditional: setup.py:22: the imported module psutil comes from psutil, which build-system.requires does not list, and there is no pyproject.toml
        "#]],
    );
}

/// Operators whose CUDA part is built where the machine of the build has a GPU.
#[test]
fn operators_that_ask_for_a_gpu() {
    check(
        r#"=== pyproject.toml
[build-system]
requires = ["setuptools", "torch"]
build-backend = "setuptools.build_meta"
=== setup.py
import os
import setuptools
import torch
from torch.utils.cpp_extension import CppExtension, CUDAExtension, CUDA_HOME
try:
    from wheel.bdist_wheel import bdist_wheel
except ImportError:
    bdist_wheel = None

def extensions():
    extension, sources = CppExtension, ["ops/csrc/cpu.cpp"]
    if (torch.cuda.is_available() and CUDA_HOME is not None) or os.getenv("FORCE_CUDA", "0") == "1":
        extension, sources = CUDAExtension, sources + ["ops/csrc/gpu.cu"]
    return [extension("ops._C", sources)]

setuptools.setup(name="ops", ext_modules=extensions())
=== ops/__init__.py
=== ops/csrc/cpu.cpp
int x;
=== tests/__init__.py
=== tests/test_ops.py
=== .github/workflows/gpu_test.yml
jobs:
  gpu:
    steps:
      - run: |
          python -m pip install -e .
          python -m pytest -x tests
"#,
        &expect![[r#"
            test/imports-tree: .github/workflows/gpu_test.yml:6: `python -m pytest` puts the working directory, the tree, first on sys.path
            test/imports-tree: tests/__init__.py:1: tests that are a package put the directory above it, the tree, first on sys.path
            gpu/architecture-of-machine: setup.py:12: torch.cuda.is_available() decides what is built: without a GPU, the CUDA part may be left out
        "#]],
    );
}

/// Extensions that are chosen by options of one's own on the command line.
#[test]
fn options_of_ones_own_on_the_command_line() {
    check(
        r#"=== pyproject.toml
[build-system]
requires = ["setuptools", "wheel"]
build-backend = "setuptools.build_meta"
=== setup.py
import os
import sys
from packaging.version import parse
from setuptools import setup
import torch
from torch.utils.cpp_extension import CUDAExtension, BuildExtension

for variable, flag in {"MIXED_CUDA": "--cuda_ext"}.items():
    if os.environ.get(variable) == "1" and flag not in sys.argv:
        sys.argv.append(flag)

modules = []
if "--cuda_ext" in sys.argv:
    sys.argv.remove("--cuda_ext")
    flags = []
    version = parse(torch.version.cuda)
    if version >= parse("12.8"):
        flags += ["-gencode=arch=compute_100,code=sm_100", "-gencode=arch=compute_120,code=compute_120"]
    modules.append(CUDAExtension("mixed_C", ["csrc/mixed.cu"], extra_compile_args=flags))
setup(name="mixed", ext_modules=modules, cmdclass={"build_ext": BuildExtension})
=== mixed/__init__.py
=== csrc/mixed.cu
"#,
        &expect![[r#"
            build/requirement-undeclared: setup.py:3: the imported module packaging comes from packaging, which build-system.requires does not list
            build/requirement-undeclared: setup.py:5: the imported module torch comes from torch, which build-system.requires does not list
        "#]],
    );
}

/// A rasterizer whose tests are run in the checkout.
#[test]
fn a_rasterizer_whose_tests_see_the_checkout() {
    check(
        r#"=== pyproject.toml
[build-system]
requires = ["setuptools", "torch", "ninja"]
build-backend = "setuptools.build_meta"
=== setup.py
import os
from setuptools import setup

def extensions():
    from torch.utils.cpp_extension import CUDAExtension
    return [CUDAExtension("splat.csrc", ["splat/cuda/csrc/x.cu"])]

setup(name="splat", ext_modules=extensions(), install_requires=["ninja", "numpy", "torch>=2.7"])
=== pytest.ini
[pytest]
testpaths = tests
pythonpath = .
addopts = -p pytest_check
=== conftest.py
import pytest
=== splat/__init__.py
=== splat/cuda/csrc/x.cu
=== tests/__init__.py
"#,
        &expect![[r#"
            test/imports-tree: conftest.py:1: a conftest.py beside the package puts the tree first on sys.path
            test/imports-tree: pytest.ini:3: pythonpath has ., where the package lies: the tree is imported in every mode
            test/imports-tree: tests/__init__.py:1: tests that are a package put the directory above it, the tree, first on sys.path
        "#]],
    );
}

/// A simulation library whose native part is built by a script of its own, and only packed by setup.py.
#[test]
fn native_parts_that_setup_py_only_packs() {
    check(
        r#"=== pyproject.toml
[build-system]
requires = ["setuptools>=61", "build", "wheel"]
build-backend = "setuptools.build_meta"
[project]
name = "particles"
requires-python = ">=3.10"
dependencies = ["numpy"]
[tool.uv]
default-groups = []
=== setup.py
import argparse
import setuptools
from wheel.bdist_wheel import bdist_wheel

class Packed(bdist_wheel):
    def get_tag(self):
        return "py3", "none", "manylinux_2_28_x86_64"

setuptools.setup(cmdclass={"bdist_wheel": Packed})
=== CMakeLists.txt
add_library(particles SHARED particles/native/util.cpp)
=== particles/__init__.py
=== particles/native/util.cpp
#include <dlfcn.h>
bool init()
{
    static void *driver = dlopen("libcuda.so", RTLD_NOW);
    if (driver == NULL)
        driver = dlopen("libcuda.so.1", RTLD_NOW);
    return driver != NULL;
}
"#,
        &expect![[r#"
            gpu/bare-libcuda: particles/native/util.cpp:4: libcuda.so is tried before libcuda.so.1
        "#]],
    );
}

/// Layers for several frameworks: a `CMake` library that is linked to the driver, loaded by hand.
#[test]
fn layers_that_are_linked_to_the_driver_and_loaded_by_hand() {
    check(
        r#"=== pyproject.toml
[build-system]
requires = ["setuptools>=61.0", "cmake>=3.21", "ninja", "torch>=2.1"]
backend-path = ["."]
build-backend = "setuptools.build_meta"
=== setup.py
import setuptools
from build_tools.build_ext import CMakeExtension
from build_tools.utils import archs
from build_tools.framework import setup_framework

if archs() == "native":
    import subprocess
    subprocess.check_output(["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"])
setuptools.setup(name="layers", ext_modules=[CMakeExtension("layers"), setup_framework()])
=== build_tools/__init__.py
=== build_tools/build_ext.py
import subprocess
import setuptools

class CMakeExtension(setuptools.Extension):
    pass
=== build_tools/utils.py
import os

def archs():
    return os.getenv("LAYERS_ARCHS", "native")
=== build_tools/framework.py
from packaging import version

def setup_framework():
    import pybind11
    from torch.utils.cpp_extension import CppExtension
    return CppExtension("layers_torch", ["layers/pytorch/csrc/x.cpp"])
=== layers/__init__.py
=== layers/common/__init__.py
import importlib.util
import sys

def load(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
=== layers/common/CMakeLists.txt
add_library(layers SHARED x.cu)
target_link_libraries(layers PUBLIC CUDA::cublas CUDA::cudart CUDA::cuda_driver)
=== layers/pytorch/csrc/x.cpp
#include <pybind11/pybind11.h>
"#,
        &expect![[r#"
            build/requirement-undeclared: build_tools/framework.py:1: the imported module packaging comes from packaging, which build-system.requires does not list
            import/hack: layers/common/__init__.py:5: spec_from_file_location loads a module from a file by hand
            import/hack: layers/common/__init__.py:7: sys.modules[name] is set
            gpu/links-driver: layers/common/CMakeLists.txt:2: CUDA::cuda_driver is the driver's library
        "#]],
    );
}

/// A state-space model whose list of GPUs grows with the compiler, without PTX.
#[test]
fn a_list_of_gpus_that_grows_with_the_compiler() {
    check(
        r#"=== pyproject.toml
[build-system]
requires = ["setuptools>=61.0.0", "wheel", "torch", "packaging", "ninja"]
build-backend = "setuptools.build_meta"
=== setup.py
from packaging.version import Version, parse
from setuptools import setup
import torch
from torch.utils.cpp_extension import CUDAExtension, BuildExtension

bare_metal_version = parse(torch.version.cuda)
flags = []
if bare_metal_version < Version("13.0"):
    flags += ["-gencode", "arch=compute_62,code=sm_62", "-gencode", "arch=compute_70,code=sm_70"]
flags.append("-gencode")
flags.append("arch=compute_80,code=sm_80")
if bare_metal_version >= Version("12.8"):
    flags.append("-gencode")
    flags.append("arch=compute_100,code=sm_100")
setup(name="states", ext_modules=[CUDAExtension("scan_cuda", ["csrc/scan.cu"], extra_compile_args={"nvcc": flags})])
=== csrc/scan.cu
"#,
        &expect![[r#"
            gpu/no-ptx: setup.py:14: the newest architecture is sm_100, and there is no PTX: GPUs from 11.0 on run nothing of it
        "#]],
    );
}

/// Bindings in Rust whose limited API is newer than what the metadata promise.
#[test]
fn bindings_in_rust_that_promise_older_pythons() {
    check(
        r#"=== pyproject.toml
[project]
name = "tensors-rs"
requires-python = ">=3.7"
dynamic = ["version"]
[build-system]
requires = ["maturin>=1.0,<2.0"]
build-backend = "maturin"
[tool.maturin]
python-source = "py_src"
module-name = "tensors.tensors"
bindings = "pyo3"
features = ["pyo3/extension-module"]
=== Cargo.toml
[package]
name = "tensors-pyo3"
version = "0.1.0"
[lib]
crate-type = ["cdylib"]
[dependencies]
pyo3 = { version = "0.27", features = ["extension-module", "abi3-py313"] }
=== src/lib.rs
#[pymodule]
fn tensors(module: &Bound<'_, PyModule>) -> PyResult<()> { Ok(()) }
=== py_src/tensors/__init__.py
from .tensors import *
=== tests/test_it.py
"#,
        &expect![[r#"
            build/abi3-python: Cargo.toml:7: abi3-py313 is asked for, and requires-python is >=3.7
        "#]],
    );
}

/// Networks in a file of CUDA C++, for the GPU of the machine, linked to the driver.
#[test]
fn networks_for_the_gpu_of_the_machine() {
    check(
        r#"=== setup.py
import os
import torch
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension

if "NETS_ARCHITECTURES" in os.environ:
    capabilities = [int(x) for x in os.environ["NETS_ARCHITECTURES"].split(",")]
elif torch.cuda.is_available():
    major, minor = torch.cuda.get_device_capability()
    capabilities = [major * 10 + minor]
else:
    raise EnvironmentError("unknown architecture")

flags = [f"-gencode=arch=compute_{c},code={kind}_{c}" for c in capabilities for kind in ["compute", "sm"]]
setup(
    name="nets",
    ext_modules=[CUDAExtension("nets._C", ["nets/bindings.cpp"], extra_compile_args=flags, libraries=["cuda", "nvrtc"])],
    cmdclass={"build_ext": BuildExtension},
)
=== nets/bindings.cpp
"#,
        &expect![[r#"
            build/requirement-undeclared: setup.py:2: the imported module torch comes from torch, which build-system.requires does not list, and there is no pyproject.toml
            gpu/architecture-of-machine: setup.py:8: torch.cuda.is_available() decides what is built: without a GPU, the CUDA part may be left out
            gpu/architecture-of-machine: setup.py:9: torch.cuda.get_device_capability asks the GPU of the machine
            gpu/links-driver: setup.py:17: the extension is linked to libcuda
        "#]],
    );
}

/// Point clouds, with a list of GPUs from long ago.
#[test]
fn a_list_of_gpus_from_long_ago() {
    check(
        r#"=== setup.py
import os
from setuptools import find_packages, setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension

os.environ["TORCH_CUDA_ARCH_LIST"] = "3.7+PTX;5.0;6.0;6.1;7.0;7.5"
setup(name="points", packages=find_packages(), ext_modules=[CUDAExtension("points._ext", ["points/x.cu"])],
      install_requires=["torch>=1.4"])
=== points/__init__.py
=== points/x.cu
"#,
        &expect![[r#"
            build/requirement-undeclared: setup.py:3: the imported module torch comes from torch, which build-system.requires does not list, and there is no pyproject.toml
            gpu/stale-architecture: setup.py:5: 3.7, 5.0, 6.0, 6.1, 7.0 are older than sm_75
        "#]],
    );
}

/// A foreign-function interface in C++ and Cython, with settings for uv.
#[test]
fn settings_for_uv_without_keys() {
    check(
        r#"=== pyproject.toml
[project]
name = "ffi-bridge"
requires-python = ">=3.9"
dependencies = ["typing-extensions>=4.5"]
[build-system]
requires = ["scikit-build-core>=0.10.0", "cython>=3.0"]
build-backend = "scikit_build_core.build"
[tool.scikit-build]
wheel.py-api = "cp312"
wheel.packages = ["python/ffi_bridge"]
[tool.uv]
exclude-newer = "14 days"
=== CMakeLists.txt
find_package(Python COMPONENTS Interpreter Development.Module REQUIRED)
add_library(ffi_bridge SHARED src/ffi/object.cc)
=== src/ffi/object.cc
#include <bridge/object.h>
=== include/bridge/object.h
=== rust/bridge/Cargo.toml
[package]
name = "bridge"
=== rust/bridge/src/lib.rs
=== python/ffi_bridge/__init__.py
=== python/ffi_bridge/cython/core.pyx
from libc.stdint cimport int32_t
=== tests/python/test_it.py
"#,
        &expect![[r#"
            uv/cache-keys: pyproject.toml:11: tool.uv.cache-keys is not set: uv does not look at pyproject.toml, **/*.h, **/*.cc, **/*.pyx, **/CMakeLists.txt
        "#]],
    );
}

/// A memory manager behind an adapter that writes requirements itself, and a library that is fetched by `CMake`.
#[test]
fn a_backend_behind_an_adapter() {
    check(
        r#"=== pyproject.toml
[build-system]
build-backend = "matrix_build_backend.build"
requires = ["matrix-build-backend>=0.4.0,<0.5.0", "scikit-build-core[pyproject]>=0.11.0"]
[project]
name = "pools"
dynamic = ["version"]
requires-python = ">=3.11"
dependencies = ["cuda-python>=13.0.1,<14.0", "numpy>=2.0,<3.0"]
[tool.pytest.ini_options]
addopts = "--tb=native"
[tool.scikit-build]
cmake.version = "CMakeLists.txt"
ninja.make-fallback = true
=== CMakeLists.txt
cmake_minimum_required(VERSION 3.30.4 FATAL_ERROR)
include(../../cmake/config.cmake)
rapids_cuda_init_architectures(pools)
add_subdirectory(pools/cython)
=== pools/__init__.py
from pools._version import __version__
=== pools/cython/buffer.pyx
from libc.stdint cimport uintptr_t
=== pools/tests/__init__.py
=== pools/tests/conftest.py
import pytest
"#,
        &expect![[""]],
    );
}

/// Names of the driver for each platform, from before there were numbers.
#[test]
fn names_of_the_driver_for_each_platform() {
    check(
        r#"=== setup.py
from setuptools import setup
setup(name="oldcuda", install_requires=["numpy>=1.2.0"])
=== oldcuda/cudadrv.py
import ctypes
import sys

if "linux" in sys.platform:
    names = ["libcuda.so"]
elif sys.platform == "darwin":
    names = ["libcuda.dylib"]
else:
    raise RuntimeError("unsupported platform")
library = ctypes.cdll.LoadLibrary(names[0])
"#,
        &expect![[r#"
            gpu/bare-libcuda: oldcuda/cudadrv.py:5: libcuda.so is loaded, and libcuda.so.1 is not tried
        "#]],
    );
}

/// Sparse tensors: NumPy in a helper of setup.py, and a package that appends itself to sys.path.
#[test]
fn a_package_that_appends_itself_to_the_path() {
    check(
        r#"=== setup.py
import sys
import torch
from setuptools import setup
from torch.utils.cpp_extension import CUDAExtension, CppExtension

CPU_ONLY = not torch.cuda.is_available()
if not torch.cuda.is_available():
    CPU_ONLY = True
Extension = CppExtension if CPU_ONLY else CUDAExtension

from numpy import get_include
setup(name="sparse", ext_modules=[Extension("sparse._C", ["src/x.cpp"], include_dirs=[get_include()])])
=== sparse/__init__.py
import os
import sys

sys.path.append(os.path.dirname(os.path.abspath(__file__)))
=== src/x.cpp
"#,
        &expect![[r#"
            build/requirement-undeclared: setup.py:2: the imported module torch comes from torch, which build-system.requires does not list, and there is no pyproject.toml
            build/requirement-undeclared: setup.py:11: the imported module numpy comes from numpy, which build-system.requires does not list, and there is no pyproject.toml
            import/hack: sparse/__init__.py:4: sys.path.append changes where everyone's modules are looked for
            gpu/architecture-of-machine: setup.py:6: torch.cuda.is_available() decides what is built: without a GPU, the CUDA part may be left out
        "#]],
    );
}

/// Mathematics behind bindings that are generated in Cython, which load everything by its numbered name.
#[test]
fn generated_bindings_that_load_numbered_names() {
    check(
        r#"=== pyproject.toml
[build-system]
requires = ["setuptools>=77.0.0", "cython>=3.0.4", "wheel>=0.34.0"]
build-backend = "build_helper"
backend-path = ["builder"]
[project]
name = "maths"
requires-python = ">=3.10"
dependencies = ["numpy>=1.25"]
=== builder/build_helper.py
import os
from setuptools import build_meta as _build_meta
from utils import extensions

prepare_metadata_for_build_wheel = _build_meta.prepare_metadata_for_build_wheel

def build_wheel(*arguments):
    from Cython.Build import cythonize
    return _build_meta.build_wheel(*arguments)
=== builder/utils.py
import sysconfig

def extensions():
    return []
=== setup.py
import os
import sys
from Cython.Build import cythonize
from setuptools import Extension, setup

sys.path.append(os.path.dirname(os.path.abspath(__file__)))
from builder import utils
setup(ext_modules=cythonize([Extension("maths.bindings.fft", ["maths/bindings/fft.pyx"])]))
=== builder/__init__.py
=== maths/__init__.py
=== maths/bindings/fft.pyx
from libc.stdint cimport intptr_t

cdef void* load() except NULL:
    handle = dlopen('libcuda.so.1', 2)
    return handle
"#,
        &expect![[""]],
    );
}
