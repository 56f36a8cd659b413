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
        include_str!("doctor/projects/extensions_that_are_gated_on_a_list_of_commands.txt"),
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
        include_str!("doctor/projects/a_simulator_that_takes_the_place_of_modules.txt"),
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
    check(include_str!("doctor/projects/a_builder_package_in_the_tree.txt"), &expect![[""]]);
}

/// Kernels for torch, released as wheels that setup.py fetches, without a pyproject.toml.
#[test]
fn attention_kernels_without_a_pyproject() {
    check(
        include_str!("doctor/projects/attention_kernels_without_a_pyproject.txt"),
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
        include_str!("doctor/projects/operators_that_ask_for_a_gpu.txt"),
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
        include_str!("doctor/projects/options_of_ones_own_on_the_command_line.txt"),
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
        include_str!("doctor/projects/a_rasterizer_whose_tests_see_the_checkout.txt"),
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
        include_str!("doctor/projects/native_parts_that_setup_py_only_packs.txt"),
        &expect![[r#"
            gpu/bare-libcuda: particles/native/util.cpp:4: libcuda.so is tried before libcuda.so.1
        "#]],
    );
}

/// Layers for several frameworks: a `CMake` library that is linked to the driver, loaded by hand.
#[test]
fn layers_that_are_linked_to_the_driver_and_loaded_by_hand() {
    check(
        include_str!("doctor/projects/layers_that_are_linked_to_the_driver_and_loaded_by_hand.txt"),
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
        include_str!("doctor/projects/a_list_of_gpus_that_grows_with_the_compiler.txt"),
        &expect![[r#"
            gpu/no-ptx: setup.py:14: the newest architecture is sm_100, and there is no PTX: GPUs from 11.0 on run nothing of it
        "#]],
    );
}

/// Bindings in Rust whose limited API is newer than what the metadata promise.
#[test]
fn bindings_in_rust_that_promise_older_pythons() {
    check(
        include_str!("doctor/projects/bindings_in_rust_that_promise_older_pythons.txt"),
        &expect![[r#"
            build/abi3-python: Cargo.toml:7: abi3-py313 is asked for, and requires-python is >=3.7
        "#]],
    );
}

/// Networks in a file of CUDA C++, for the GPU of the machine, linked to the driver.
#[test]
fn networks_for_the_gpu_of_the_machine() {
    check(
        include_str!("doctor/projects/networks_for_the_gpu_of_the_machine.txt"),
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
        include_str!("doctor/projects/a_list_of_gpus_from_long_ago.txt"),
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
        include_str!("doctor/projects/settings_for_uv_without_keys.txt"),
        &expect![[r#"
            uv/cache-keys: pyproject.toml:11: tool.uv.cache-keys is not set: uv does not look at pyproject.toml, **/*.h, **/*.cc, **/*.pyx, **/CMakeLists.txt
        "#]],
    );
}

/// A memory manager behind an adapter that writes requirements itself, and a library that is fetched by `CMake`.
#[test]
fn a_backend_behind_an_adapter() {
    check(include_str!("doctor/projects/a_backend_behind_an_adapter.txt"), &expect![[""]]);
}

/// Names of the driver for each platform, from before there were numbers.
#[test]
fn names_of_the_driver_for_each_platform() {
    check(
        include_str!("doctor/projects/names_of_the_driver_for_each_platform.txt"),
        &expect![[r#"
            gpu/bare-libcuda: oldcuda/cudadrv.py:5: libcuda.so is loaded, and libcuda.so.1 is not tried
        "#]],
    );
}

/// Sparse tensors: NumPy in a helper of setup.py, and a package that appends itself to sys.path.
#[test]
fn a_package_that_appends_itself_to_the_path() {
    check(
        include_str!("doctor/projects/a_package_that_appends_itself_to_the_path.txt"),
        &expect![[r#"
            build/requirement-undeclared: setup.py:2: the imported module torch comes from torch, which build-system.requires does not list, and there is no pyproject.toml
            build/requirement-undeclared: setup.py:9: the imported module numpy comes from numpy, which build-system.requires does not list, and there is no pyproject.toml
            import/hack: sparse/__init__.py:4: sys.path.append changes where everyone's modules are looked for
            gpu/architecture-of-machine: setup.py:6: torch.cuda.is_available() decides what is built: without a GPU, the CUDA part may be left out
        "#]],
    );
}

/// Mathematics behind bindings that are generated in Cython, which load everything by its numbered name.
#[test]
fn generated_bindings_that_load_numbered_names() {
    check(include_str!("doctor/projects/generated_bindings_that_load_numbered_names.txt"), &expect![[""]]);
}

/// Bindings whose hooks put everything off that needs a toolkit, in a namespace that other projects share.
#[test]
fn hooks_that_put_off_what_needs_a_toolkit() {
    check(include_str!("doctor/projects/hooks_that_put_off_what_needs_a_toolkit.txt"), &expect![[""]]);
}
