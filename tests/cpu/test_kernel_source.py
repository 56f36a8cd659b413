"""CUDA C++ as a source of modules: what the compiler is told, which one it is, what it refuses, and what is kept."""

import contextlib
import fcntl
import os
import pickle
import resource
import shutil
import signal
from pathlib import Path

import cuwheel
import fresh_python
import kernels
import nvrtc
import pytest
from at_once import at_once

SOURCE = "// parameters: .param .u64 x\n"


def module(source: str = SOURCE, **options) -> cuwheel.Module:
    return cuwheel.Module.from_source(source, **{"architecture": "sm_90", **options})


def told(log: str, what: str) -> list[str]:
    return [line.removeprefix(f"{what}: ") for line in log.splitlines() if line.startswith(f"{what}: ")]


def test_a_kernel_is_found_by_the_expression_that_names_it(driver, compiler):
    made = module(names=["scale<float, 4>", "ns::plain"])
    assert made.names == {"scale<float, 4>": "_Zscale_float__4_", "ns::plain": "_Zns__plain"}
    x = cuwheel.zeros(4, "float32")
    made.kernel("scale<float, 4>", ["float32*"])[1, 32](x)
    assert kernels.last_launch(driver)["function"] == "_Zscale_float__4_"
    twin = pickle.loads(pickle.dumps(made.kernel("ns::plain", ["float32* x"])))
    twin[1, 32](x)
    assert kernels.last_launch(driver)["function"] == "_Zns__plain"
    assert (twin.name, twin.module, twin.module.log) == ("ns::plain", made, made.log)
    assert repr(twin) == "<Kernel ns::plain(float32* x)>"
    with pytest.raises(cuwheel.CudaError, match=r'no kernel "other" in the PTX: .*the image has ns::plain, scale<float, 4>; C\+\+ mangles'):
        made.kernel("other")[1, 1]()
    assert made != module()
    assert cuwheel.Module.from_bytes(kernels.HEAD).names == {}


def test_the_compiler_is_told_what_was_asked_for(compiler, tmp_path):
    made = module(
        options=["--std=c++20", "-DX=1"], include_dirs=[tmp_path / "a b ä"], headers={"x.h": "int x;"}, filename="the name"
    )
    options = told(made.log, "option")
    assert options[:2] == ["--gpu-architecture=sm_90", f"--include-path={tmp_path / 'a b ä'}"]
    assert f"--include-path={cuwheel.get_include()}" in options
    assert options[-2:] == ["--std=c++20", "-DX=1"]
    assert told(made.log, "header") == ["x.h=int x;"]
    assert made.architectures == ("compute_90 (PTX)",)


def test_a_file_is_compiled_with_the_headers_beside_it(compiler, tmp_path):
    path = tmp_path / "a kernel.cu"
    path.write_text("// fail: ä\n", encoding="utf-8")
    with pytest.raises(cuwheel.CompileError) as raised:
        module(path)
    assert raised.value.filename == str(path)
    assert told(raised.value.log, "option")[1] == f"--include-path={tmp_path}"
    with pytest.raises(FileNotFoundError):
        module(tmp_path / "none.cu")
    path.write_bytes(b"\xff")
    with pytest.raises(UnicodeDecodeError):
        module(path)


DEVICES = [(75, "sm_75"), (90, "sm_90"), (89, "compute_80"), (120, "compute_90"), (70, "NVRTC 13.0 knows architectures from 7.5 on, and the device has 7.0")]  # fmt: skip


@pytest.mark.parametrize(("capability", "expected"), DEVICES)
def test_code_is_for_the_current_device(driver, compiler, capability, expected):
    code = """
        import cuwheel
        try:
            print(cuwheel.Module.from_source("").log)
        except cuwheel.CompileError as error:
            print(error)
    """
    assert expected in fresh_python.run(code, environment={"CUDA_STUB": f"compute={capability}"})


def test_no_driver_is_asked_where_the_architecture_is_named(compiler):
    code = """
        import cuwheel
        for architecture in ("sm_90", "compute_80"):
            print(cuwheel.Module.from_source("", architecture=architecture).architectures)
        try:
            cuwheel.Module.from_source("")
        except cuwheel.CudaError as error:
            print(type(error).__name__, error)
    """
    printed = fresh_python.run(code, environment={"LD_LIBRARY_PATH": ""})
    assert printed.splitlines()[:2] == ["('compute_90 (PTX)',)", "('compute_80 (PTX)',)"]
    assert "there is no device to compile for: no CUDA driver was found" in printed
    assert printed.rstrip().endswith('or name an architecture, such as "sm_90"')


def test_what_the_compiler_refuses_is_raised_with_its_log(compiler):
    with pytest.raises(cuwheel.CompileError) as raised:
        module("// fail: expected a ';'\n", filename="my kernel.cu")
    for error in (raised.value, pickle.loads(pickle.dumps(raised.value))):
        assert isinstance(error, cuwheel.CudaError)
        assert (error.name, error.code, error.filename) == ("NVRTC_ERROR_COMPILATION", 6, "my kernel.cu")
        assert error.log.endswith("my kernel.cu(1): error: expected a ';'\n")
        assert str(error).startswith("my kernel.cu was not compiled for sm_90: nvrtcCompileProgram of NVRTC 13.0 failed with NVRTC_ERROR_COMPILATION (6):\n")  # fmt: skip
        assert error.log.rstrip() in str(error)
    with pytest.raises(cuwheel.CompileError, match="NVRTC_ERROR_INVALID_OPTION"):
        module(options=["--no-such-option"])
    with pytest.raises(cuwheel.CompileError, match="NVRTC 13.0 made something else than code: .*it looks like text"):
        module("// garbage")
    assert (cuwheel.CompileError("x").log, cuwheel.CompileError("x").filename, cuwheel.CompileError("x").code) == ("", None, None)
    assert cuwheel.CompileError.__module__ == "cuwheel._kernel"


REFUSED = [
    ({"architecture": "90"}, ValueError, '"90" is no architecture; write "sm_90" for machine code, or "compute_90" for PTX'),
    ({"options": ["-arch=sm_80"]}, ValueError, 'the option "-arch=sm_80" is not for here: name the architecture by `architecture`'),
    ({"options": ["--relocatable-device-code=true"]}, ValueError, 'the option "--relocatable-device-code=true" is not for here: code that is to be linked cannot be loaded'),
    ({"source": "a\0b"}, ValueError, "the source has a zero character in it, which the compiler takes for the end; remove it"),
    ({"names": ["k<\0>"]}, ValueError, "a name has a zero character in it, which the compiler takes for the end; remove it"),
    ({"headers": {"a.h": "\0"}}, ValueError, "a header has a zero character in it, which the compiler takes for the end; remove it"),
    ({"names": "k<float>"}, TypeError, "a tuple or a list of strings is needed, not str"),
    ({"options": 1}, TypeError, "a tuple or a list of strings is needed, not int"),
    ({"include_dirs": "/usr"}, TypeError, "a tuple or a list of paths is needed, not str"),
    ({"source": b"x"}, TypeError, "a source is CUDA C++ as a string, or a path object, not bytes"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "error", "message"), REFUSED)
def test_what_cannot_be_meant_is_refused(compiler, options, error, message):
    with pytest.raises(error) as raised:
        module(**options)
    assert str(raised.value).removeprefix("argument 'names': ").removeprefix("argument 'source': ") == message


# Which compiler


def packages(root: Path, *versions: int) -> Path:
    """A directory of packages with compilers of these versions, as NVIDIA's packages have them."""
    for major in versions:
        directory = root / "nvidia" / ("cuda_nvrtc" if major == 12 else f"cu{major}") / "lib"
        nvrtc.build(directory / f"libnvrtc.so.{major}", major, 4)
    return root


def found(root: Path, driver: str = "12080", **variables: str) -> str:
    """Which compiler a new interpreter finds, and with which headers."""
    code = """
        import sys
        sys.path.insert(0, sys.argv[1])
        import cuwheel
        try:
            print(cuwheel.Module.from_source("// fail: x", architecture="sm_90"))
        except cuwheel.CompileError as error:
            print(error)
    """
    environment = {"CUWHEEL_NVRTC": "", "CUDA_PATH": "", "CUDA_HOME": "", "CUDA_STUB": f"driver={driver}", **variables}
    return fresh_python.run(code, root, environment=environment)


@pytest.mark.parametrize(("version", "expected"), [("12080", "NVRTC 12.4"), ("13000", "NVRTC 13.4")])
def test_of_two_packages_the_one_for_the_driver_is_used(compiler, driver, tmp_path, version, expected):
    assert expected in found(packages(tmp_path, 12, 13), version)


def test_headers_are_those_of_the_compilers_own_version(compiler, tmp_path):
    def header(path):
        path = tmp_path / "nvidia" / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")

    packages(tmp_path, 12, 13)
    header("cu13/include/cuda_fp16.h")
    header("cu13/include/crt/host_defines.h")
    header("cu13/include/cccl/cuda/std/version")
    header("cuda_runtime/include/cuda_fp16.h")
    header("cuda_runtime/include/crt/host_defines.h")
    header("cuda_cccl/include/cuda/std/version")
    root = tmp_path / "nvidia"
    ours = [cuwheel.get_include()]
    for variable, expected in [
        (root / "cu13" / "lib" / "libnvrtc.so.13", [root / "cu13/include/cccl", root / "cu13/include"]),
        (root / "cuda_nvrtc" / "lib", [root / "cuda_cccl/include", root / "cuda_runtime/include"]),
    ]:
        options = told(found(tmp_path, CUWHEEL_NVRTC=str(variable)), "option")
        include_dirs = [option.removeprefix("--include-path=") for option in options if option.startswith("--include")]
        assert include_dirs == ours + [str(path) for path in expected]


def test_a_toolkit_is_found_by_its_variable_and_its_headers_are_used_if_they_fit(compiler, tmp_path):
    toolkit = tmp_path / "toolkit"
    include = toolkit / "targets" / "x86_64-linux" / "include"
    (include / "cuda" / "std").mkdir(parents=True)
    (include / "cuda" / "std" / "version").write_text("")
    for version, used in [(12060, True), (13000, False)]:
        (include / "cuda.h").write_text(f"/* */\n#define CUDA_VERSION {version}\n")
        printed = found(nvrtc.build(tmp_path / "lib" / "libnvrtc.so.12", 12, 6).parent, CUDA_PATH=str(toolkit), CUWHEEL_NVRTC=str(tmp_path / "lib"))  # fmt: skip
        assert (f"--include-path={include}\n" in printed) == used
    nvrtc.build(toolkit / "lib64" / "libnvrtc.so.12", 12, 6)
    assert "NVRTC 12.6" in found(packages(tmp_path, 13), "12080", CUDA_PATH=str(toolkit))


def test_a_library_that_was_named_is_used_or_it_is_an_error(compiler, tmp_path):
    old = nvrtc.build(tmp_path / "old" / "libnvrtc.so.11", 11, 8)
    partial = nvrtc.build(tmp_path / "partial" / "libnvrtc.so.13", 13, 0, "-DWITHOUT_NAMES")
    cases = [
        (old, "it is of CUDA 11.8, and 12.2 or newer is needed"),
        (partial, "it has no function nvrtcAddNameExpression"),
        (tmp_path / "none.so", "cannot open shared object file"),
        (tmp_path, "there is no libnvrtc.so in it"),
    ]
    for path, reason in cases:
        printed = found(packages(tmp_path / "packages", 13), CUWHEEL_NVRTC=str(path))
        assert printed.startswith(f'CUWHEEL_NVRTC is "{path}", which cannot be used: ')
        assert reason in printed
        assert printed.rstrip().endswith("name a libnvrtc.so, or its directory")


# The cache


def test_what_was_compiled_is_not_compiled_again(compiler, kernel_cache):
    before = compiler.compiled
    first = module(names=["k"])
    second = module(names=["k"])
    assert (first, first.log, first.names) == (second, second.log, second.names)
    assert compiler.compiled == before + 1
    [file] = kernel_cache.iterdir()
    assert kernel_cache.stat().st_mode & 0o777 == 0o700
    # Another process finds it too.
    code = 'import cuwheel; cuwheel.Module.from_source("// parameters: .param .u64 x\\n", names=["k"], architecture="sm_90")'
    fresh_python.run(code)
    assert [path.name for path in kernel_cache.iterdir()] == [file.name]


def test_everything_that_decides_makes_a_difference(compiler, kernel_cache, tmp_path):
    (tmp_path / "one").mkdir()
    options = [
        {},
        {"source": SOURCE + " "},
        {"names": ["k"]},
        {"names": ["k", "l"]},
        {"names": ["kl"]},
        {"options": ["-DA"]},
        {"options": ["-D", "A"]},
        {"architecture": "sm_80"},
        {"architecture": "compute_90"},
        {"filename": "x.cu"},
        {"headers": {"a.h": ""}},
        {"headers": {"a.h": "b"}},
        {"include_dirs": [tmp_path / "one"]},
    ]
    before = compiler.compiled
    for _ in range(2):
        for each in options:
            module(**each)
    assert compiler.compiled == before + len(options) == before + len(list(kernel_cache.iterdir()))


def test_a_header_that_changes_is_noticed_wherever_it_is(compiler, tmp_path):
    near, far = tmp_path / "near", tmp_path / "far"
    near.mkdir(), far.mkdir()
    source = "#include <a.h>\n#if __has_include(<maybe.h>)\n#endif\n"

    def compiles() -> bool:
        before = compiler.compiled
        module(source, include_dirs=[near, far])
        return compiler.compiled > before

    changes = [
        lambda: None,
        lambda: (far / "a.h").write_text('#include "b.h"'),
        lambda: (far / "b.h").write_text("1"),
        lambda: (far / "b.h").write_text("2"),
        # One that is found before the other.
        lambda: (near / "a.h").write_text(""),
        lambda: (far / "maybe.h").write_text(""),
        lambda: (near / "a.h").unlink(),
    ]
    for change in changes:
        change()
        assert compiles(), change
        # The last makes what it was before the last but two.
        assert not compiles(), change
    (far / "unrelated.h").write_text("")
    assert not compiles()
    (far / "b.h").write_text("1")
    assert compiles()


@pytest.mark.parametrize("unknown", ["#define H <a.h>\n#include H", "#embed <a>"])
def test_what_reads_unknown_files_is_not_kept(compiler, kernel_cache, unknown):
    before = compiler.compiled
    module(unknown), module(unknown)
    assert compiler.compiled == before + 2
    for option in (["-I/usr"], ["--pre-include=a.h"], ["-time=x"], ["-include", "a.h"]):
        module(options=option)
    assert not kernel_cache.exists()


def test_another_build_of_the_compiler_is_another_compiler(compiler, kernel_cache, tmp_path, monkeypatch):
    module()
    same, other = tmp_path / "same" / "libnvrtc.so.13", tmp_path / "other" / "libnvrtc.so.13"
    same.parent.mkdir()
    shutil.copy(compiler.path, same)
    nvrtc.build(other, 13, 0, "-O2")
    for path, files in [(same, 1), (other, 2)]:
        monkeypatch.setenv("CUWHEEL_NVRTC", str(path))
        module()
        assert len(list(kernel_cache.iterdir())) == files


def test_the_cache_can_be_turned_off(compiler, kernel_cache, monkeypatch):
    before = compiler.compiled
    module(cache=False), module(cache=False)
    monkeypatch.setenv("CUWHEEL_KERNEL_CACHE_MIB", "0")
    module(), module()
    assert compiler.compiled == before + 4
    assert not kernel_cache.exists()


def test_the_cache_is_where_caches_are(compiler, tmp_path, monkeypatch):
    monkeypatch.delenv("CUWHEEL_CACHE_DIR")
    for variables, directory in [
        ({"XDG_CACHE_HOME": str(tmp_path / "xdg")}, tmp_path / "xdg/cuwheel/kernels"),
        ({"XDG_CACHE_HOME": "relative", "HOME": str(tmp_path / "home")}, tmp_path / "home/.cache/cuwheel/kernels"),
    ]:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        module()
        assert len(list(directory.iterdir())) == 1


def test_the_cache_stays_within_its_size(compiler, kernel_cache, monkeypatch):
    monkeypatch.setenv("CUWHEEL_KERNEL_CACHE_MIB", "1")
    for number in range(8):
        # The header is in the log, and so in the file.
        module(headers={"a.h": f"{number}" * 12_000}, options=[f"-D{number}"])
    for number in range(100):
        (kernel_cache / f"{number}.kernel").write_bytes(bytes(20_000))
    module(options=["-DLAST"])
    assert sum(path.stat().st_size for path in kernel_cache.iterdir()) <= 1024 * 1024
    before = compiler.compiled
    module(options=["-DLAST"])
    assert compiler.compiled == before


def test_a_cache_that_cannot_be_written_or_read_is_no_failure(compiler, kernel_cache, tmp_path, monkeypatch):
    kernel_cache.parent.mkdir()
    kernel_cache.write_text("a file")
    assert module(names=["k"]).names == {"k": "_Zk"}
    kernel_cache.unlink()
    module(names=["k"])
    [file] = kernel_cache.iterdir()
    for content in (b"", file.read_bytes()[:-1], b"cuwheel kernel 1\n" + bytes(100)):
        file.write_bytes(content)
        before = compiler.compiled
        assert module(names=["k"]).names == {"k": "_Zk"}
        assert compiler.compiled == before + 1
    # What replaced it is whole.
    module(names=["k"])
    assert compiler.compiled == before + 1
    for directory in ("/proc/none", "/dev/null/x"):
        monkeypatch.setenv("CUWHEEL_CACHE_DIR", directory)
        module()


@contextlib.contextmanager
def files_of_at_most(size):
    """As on a disk that is full."""
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)


def test_a_full_disk_is_no_failure_and_leaves_nothing(compiler, kernel_cache):
    with files_of_at_most(64):
        assert module(names=["k"]).names == {"k": "_Zk"}
    assert list(kernel_cache.iterdir()) == []


def test_threads_and_processes_share_the_cache(compiler, kernel_cache):
    made = []
    at_once(lambda: made.extend(module(names=[f"k{number % 3}"]).names for number in range(30)))
    assert len(made) == 120
    code = """
        import os, cuwheel
        children = []
        for _ in range(4):
            child = os.fork()
            if child == 0:
                for number in range(30):
                    module = cuwheel.Module.from_source("", names=[f"k{number}"], architecture="sm_90")
                    assert module.names == {f"k{number}": f"_Zk{number}"}
                os._exit(0)
            children.append(child)
        print([os.waitpid(child, 0)[1] for child in children])
    """
    assert fresh_python.run(code) == "[0, 0, 0, 0]\n"
    assert {path.suffix for path in kernel_cache.iterdir()} == {".kernel"}
    assert len(list(kernel_cache.iterdir())) == 33
