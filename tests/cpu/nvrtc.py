"""Compilers for tests: the one in `nvrtc.c`, which looks at no C++, and NVRTC itself where it is installed."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import cuwheel
import pytest

SOURCE = Path(__file__).with_name("nvrtc.c")


class Compiler:
    """A library made of `nvrtc.c`."""

    def __init__(self, path: Path):
        self.path = path
        self.library = ctypes.CDLL(str(path))

    @property
    def compiled(self) -> int:
        """How often it has compiled."""
        return self.library.fakeCompiled()

    @property
    def alive(self) -> int:
        """Programs that were made and not destroyed."""
        return self.library.fakeAlive()


def build(path: Path, major: int = 13, minor: int = 0, *options: str) -> Path:
    """Make the library, or skip the test where there is no compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs cc to compile a stand-in for NVRTC")
    path.parent.mkdir(parents=True, exist_ok=True)
    flags = ["-shared", "-fPIC", "-pthread", "-Wall", "-Wextra", f"-DMAJOR={major}", f"-DMINOR={minor}", *options]
    subprocess.run([compiler, *flags, str(SOURCE), "-o", str(path)], check=True)
    return path


def need_nvrtc() -> None:
    """Skip the test where NVRTC itself is not to be had."""
    try:
        cuwheel.Module.from_source("", architecture="sm_90", cache=False)
    except cuwheel.CompileError as error:
        pytest.skip(f"needs NVRTC: {error}")
