"""Settings and fixtures of the tests of arrays that go from one library to another and back.

Every peer is optional: what is not installed, or does not work with what is installed beside it, is skipped with the
reason. Most tests need a CUDA device; those of libraries that also work without one run on the stand-in driver too.
"""

import fcntl
import os
import tempfile

import peers
import pytest

#: As in `tests/gpu`.
LOCK = os.path.join(tempfile.gettempdir(), f"cuwheel-device-{os.getuid()}.lock")

# jax would else take most of the device's memory for itself.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


def pytest_configure(config):
    config.addinivalue_line("markers", "gpu: needs a CUDA device, not a stand-in for one")


def pytest_runtest_setup(item):
    if item.get_closest_marker("gpu") is not None and (reason := peers.no_device()):
        pytest.skip(reason)


@pytest.fixture(autouse=True)
def on_the_device():
    """Not while a test of another process is alone on the device."""
    with open(LOCK, "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        yield


@pytest.fixture
def torch():
    return peers.library("torch")


@pytest.fixture
def cupy():
    return peers.library("cupy")


@pytest.fixture(params=peers.ALL, ids=lambda peer: peer.name)
def peer(request):
    """Each peer in turn."""
    return peers.ready(request.param)
