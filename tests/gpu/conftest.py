"""Settings and fixtures of the tests that need a CUDA device. Without one they are skipped, and the reason is given.

They import the installed package; nothing here may put the source tree on the path.
"""

import fcntl
import gc
import importlib
import os
import tempfile

import cuwheel
import pytest

#: Tests of several processes share a device, but for those that are alone on it. As in `tests/interop`.
LOCK = os.path.join(tempfile.gettempdir(), f"cuwheel-device-{os.getuid()}.lock")


def pytest_configure(config):
    config.addinivalue_line("markers", "gpu: needs a CUDA device")
    config.addinivalue_line("markers", "multi_gpu(n): needs n CUDA devices")


def _missing(wanted):
    """Why there are not as many devices, or an empty text."""
    try:
        count = cuwheel.Device.count()
        name = cuwheel.Device(0).name if count else ""
    except RuntimeError as error:
        return f"there is no CUDA device: {error}"
    if "stand-in" in name:
        return "the driver is a stand-in"
    return f"{wanted} CUDA devices are needed, and there are {count}" if count < wanted else ""


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.is_relative_to(__file__.removesuffix("conftest.py")):
            item.add_marker(pytest.mark.gpu)


def pytest_runtest_setup(item):
    if item.get_closest_marker("gpu") is None:
        return
    multi = item.get_closest_marker("multi_gpu")
    if reason := _missing(multi.args[0] if multi else 1):
        pytest.skip(reason)


@pytest.fixture(autouse=True)
def on_the_device():
    """The lock that a test holds together with those of other processes."""
    with open(LOCK, "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        yield lock


@pytest.fixture
def alone_on_the_device(on_the_device):
    """No test of another process runs meanwhile: a driver that is asked for more memory than there is takes all for a moment."""
    fcntl.flock(on_the_device, fcntl.LOCK_EX)
    yield
    # Only then has the device the memory back.
    gc.collect()
    cuwheel.current_stream().synchronize()


@pytest.fixture
def torch():
    try:
        torch = importlib.import_module("torch")
    except Exception as error:  # what a broken installation raises is anything
        pytest.skip(f"torch cannot be imported: {type(error).__name__}: {error}")
    if not torch.cuda.is_available():
        pytest.skip("this torch was built without CUDA, or finds no device")
    return torch


@pytest.fixture
def cupy():
    try:
        cupy = importlib.import_module("cupy")
    except Exception as error:  # as above
        pytest.skip(f"cupy cannot be imported: {type(error).__name__}: {error}")
    if not cupy.cuda.is_available():
        pytest.skip("this CuPy finds no device")
    return cupy


@pytest.fixture
def busy(torch):
    """A function that keeps a stream busy for a while, so that work which does not wait for it comes too early."""

    def busy(stream=None):
        # About a tenth of a second at 2 GHz.
        with torch.cuda.stream(stream):
            torch.cuda._sleep(200_000_000)

    return busy
