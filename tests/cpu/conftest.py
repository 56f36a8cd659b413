"""Settings and fixtures of the tests that need no GPU.

They import the installed package; nothing here may put the source tree on the path. Modules without `test_` in their name
are helpers, which pytest lets the tests import by name.
"""

import importlib.util
import os
import textwrap
from pathlib import Path

import fresh_python
import numba_kernels
import nvrtc
import pytest
import stand_in
import upstream
from dispatching import Implementation
from hypothesis import settings

# The same examples in every run: a failure is never a matter of luck, nor of the speed of the machine. On demand others,
# and as many as one likes.
EXAMPLES = os.environ.get("CUWHEEL_TEST_EXAMPLES")
settings.register_profile("cuwheel", derandomize=True, deadline=None, max_examples=200, database=None)
settings.register_profile("more", derandomize=False, deadline=None, max_examples=int(EXAMPLES or 1), database=None)
settings.load_profile("more" if EXAMPLES else "cuwheel")


def pytest_configure(config):
    config.addinivalue_line("filterwarnings", "error")


def load_upstream(name):
    try:
        return upstream.load_dispatcher() if name == "_dispatcher" else upstream.load(name)
    except upstream.NotInstalled as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def upstream_mviewbuf():
    """The C module that ours replaces."""
    return load_upstream("mviewbuf")


@pytest.fixture(scope="session")
def upstream_helperlib():
    """The C module that ours replaces."""
    return load_upstream("_helperlib")


@pytest.fixture(scope="session")
def theirs():
    """The C++ modules that ours replace."""
    typeconv, dispatcher = load_upstream("_typeconv"), load_upstream("_dispatcher")
    return Implementation(typeconv, dispatcher)


@pytest.fixture(scope="session")
def ours(theirs):
    """What replaces them: with the class that is for the release that we compare with."""
    from cuwheel import _dispatcher, _typeconv

    has_launch_config = hasattr(theirs.module, "get_current_launch_config")
    return Implementation(_typeconv, _dispatcher, None if has_launch_config else _dispatcher.PlainDispatcher)


@pytest.fixture
def driver():
    """The stand-in driver. A test that leaves something alive in it, or breaks its rules, fails."""
    try:
        driver = stand_in.load()
    except stand_in.NotInUse as reason:
        pytest.skip(str(reason))
    with driver.watched():
        yield driver


@pytest.fixture(params=["first launch", "later launch"])
def first_and_later_launches(request, monkeypatch):
    """What holds of a kernel's first launch holds of later ones, which take a shorter way."""
    monkeypatch.setattr("kernels.ARE_KNOWN", request.param == "later launch")


@pytest.fixture(scope="session")
def compiler_library(tmp_path_factory):
    return nvrtc.Compiler(nvrtc.build(tmp_path_factory.mktemp("nvrtc") / "libnvrtc.so.13"))


@pytest.fixture
def kernel_cache(tmp_path, monkeypatch):
    """An empty cache of compiled kernels, which a test has for itself."""
    monkeypatch.setenv("CUWHEEL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("CUWHEEL_KERNEL_CACHE_MIB", raising=False)
    return tmp_path / "cache" / "kernels"


@pytest.fixture
def compiler(compiler_library, kernel_cache, monkeypatch):
    """A stand-in for NVRTC, with an empty cache. A test that leaves a program alive fails."""
    monkeypatch.setenv("CUWHEEL_NVRTC", str(compiler_library.path))
    yield compiler_library
    assert compiler_library.alive == 0


@pytest.fixture
def real_compiler(kernel_cache, monkeypatch):
    """NVRTC itself, with an empty cache."""
    monkeypatch.delenv("CUWHEEL_NVRTC", raising=False)
    nvrtc.need_nvrtc()


@pytest.fixture(scope="session")
def numba_overlay(tmp_path_factory):
    """numba-cuda with our modules in place of its C++ ones: a folder for `sys.path`."""
    for needed in ("numba", "numba_cuda", "cuda.core"):
        if importlib.util.find_spec(needed) is None:
            pytest.skip(f"{needed} is not installed")
    try:
        stand_in.load()
    except stand_in.NotInUse as reason:
        pytest.skip(str(reason))
    return numba_kernels.overlay(tmp_path_factory.mktemp("overlay"))


@pytest.fixture
def run(numba_overlay):
    """Runs code in a process of its own, behind `numba_kernels.HEAD`."""

    def run(code, *arguments, **options):
        code = numba_kernels.HEAD + textwrap.dedent(code)
        return fresh_python.run(code, numba_overlay, Path(__file__).parent, *arguments, timeout=300, **options)

    return run
