"""torch and CuPy behind one set of functions, for tests that hold for both. Tests of one that is not installed are skipped."""

import contextlib
import importlib

import numpy as np
import pytest


class Torch:
    def __init__(self, torch):
        self.torch = torch

    def array(self, values):
        return self.torch.from_numpy(np.array(values, order="C")).cuda()

    def host(self, array):
        return array.cpu().numpy()

    @contextlib.contextmanager
    def stream(self):
        """Makes a new stream the current one, behind what was done so far."""
        stream = self.torch.cuda.Stream()
        stream.wait_stream(self.torch.cuda.current_stream())
        with self.torch.cuda.stream(stream):
            yield
        self.torch.cuda.current_stream().wait_stream(stream)

    def captured(self, work):
        """Captures what `work` launches into a graph, and returns what runs it."""
        graph = self.torch.cuda.CUDAGraph()
        with self.torch.cuda.graph(graph):
            work()
        return graph.replay

    def synchronize(self):
        self.torch.cuda.synchronize()


class CuPy:
    def __init__(self, cupy):
        self.cupy = cupy

    def array(self, values):
        return self.cupy.asarray(np.array(values, order="C"))

    def host(self, array):
        return self.cupy.asnumpy(array)

    @contextlib.contextmanager
    def stream(self):
        before = self.cupy.cuda.get_current_stream()
        stream = self.cupy.cuda.Stream(non_blocking=True)
        stream.wait_event(before.record())
        with stream:
            yield
        before.wait_event(stream.record())

    def captured(self, work):
        stream = self.cupy.cuda.Stream(non_blocking=True)
        with stream:
            stream.begin_capture()
            work()
            graph = stream.end_capture()
        return graph.launch

    def synchronize(self):
        self.cupy.cuda.Device().synchronize()


def pytest_configure(config):
    config.addinivalue_line("markers", "gpu: needs a CUDA device")


@pytest.fixture(params=["torch", "cupy"])
def library(request):
    try:
        module = importlib.import_module(request.param)
    except Exception as error:  # a broken installation raises anything
        pytest.skip(f"{request.param} cannot be imported: {type(error).__name__}: {error}")
    if request.param == "torch":
        if not module.cuda.is_available():
            pytest.skip("this torch was built without CUDA, or finds no device")
        return Torch(module)
    return CuPy(module)
