"""Work on several streams: who waits for whom, without this library stopping the host for it."""

import time

import cuwheel
import numpy as np
import pytest

COUNT = 1 << 20


def side_stream(torch):
    """A stream of torch's, which does not wait for the legacy default stream, nor that for it."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    return stream


def test_an_import_waits_for_the_producers_stream(torch, busy):
    side = side_stream(torch)
    tensor = torch.zeros(COUNT, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        busy(side)
        tensor.fill_(7)
        array = cuwheel.from_dlpack(tensor)
    assert array.stream == cuwheel.current_stream()
    assert (array.copy_to_host() == 7).all()


def test_an_import_onto_a_named_stream_waits_there(torch, busy):
    side, stream = side_stream(torch), cuwheel.Stream()
    tensor = torch.zeros(COUNT, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        busy(side)
        tensor.fill_(5)
        array = cuwheel.from_dlpack(tensor, stream=stream)
    assert array.stream == stream
    assert (array.copy_to_host() == 5).all()


def test_importing_does_not_stop_the_host(torch, busy):
    side = side_stream(torch)
    with torch.cuda.stream(side):
        tensor = torch.zeros(COUNT, device="cuda")
        cuwheel.from_dlpack(tensor)
        busy(side)
        started = time.perf_counter()
        array = cuwheel.from_dlpack(tensor)
        took_s = time.perf_counter() - started
        assert not side.query()
    assert took_s < 0.02
    array.stream.synchronize()


def test_torch_waits_for_an_array_of_ours(torch, busy):
    stream = cuwheel.Stream()
    array = cuwheel.zeros(COUNT, "float32", stream=stream)
    stream.synchronize()
    busy(torch.cuda.ExternalStream(stream.handle))
    array[...] = 3
    tensor = torch.from_dlpack(array)
    assert bool((tensor == 3).all())


def test_torch_on_a_side_stream_waits_for_an_array_of_ours(torch, busy):
    stream, side = cuwheel.Stream(), side_stream(torch)
    array = cuwheel.zeros(COUNT, "float32", stream=stream)
    stream.synchronize()
    busy(torch.cuda.ExternalStream(stream.handle))
    array[...] = 4
    with torch.cuda.stream(side):
        doubled = torch.from_dlpack(array) * 2
        assert bool((doubled == 8).all())


def test_copies_among_arrays_wait_for_both_streams(torch, busy):
    first, second = cuwheel.Stream(), cuwheel.Stream()
    source = cuwheel.zeros(COUNT, "float32", stream=first)
    target = cuwheel.zeros(COUNT, "float32", stream=second)
    for stream in (first, second):
        stream.synchronize()
    busy(torch.cuda.ExternalStream(first.handle))
    source[...] = 6
    target[...] = source
    # The source must not be overwritten before it was read.
    source[...] = 1
    assert (target.copy_to_host() == 6).all()


def test_a_stream_that_waits_is_behind_the_other(torch, busy):
    stream = cuwheel.Stream()
    tensor = torch.zeros(COUNT, device="cuda")
    array = cuwheel.from_dlpack(tensor, stream=stream)
    busy()
    tensor.fill_(9)
    stream.wait(torch.cuda.current_stream())
    assert (array.copy_to_host() == 9).all()


@pytest.mark.parametrize("kind", ["pinned", "mapped", "managed"])
def test_a_copy_to_the_host_is_complete_when_it_returns(torch, busy, kind):
    stream = cuwheel.Stream()
    array = cuwheel.zeros(COUNT, "float32", kind=kind, stream=stream)
    stream.synchronize()
    busy(torch.cuda.ExternalStream(stream.handle))
    array[...] = 2
    assert (array.copy_to_host() == 2).all()


def test_use_stream_makes_new_arrays_and_imports_use_it(torch):
    side = side_stream(torch)
    with cuwheel.use_stream(side) as stream:
        assert stream.handle == side.cuda_stream
        array = cuwheel.full(COUNT, 2, "float32")
        imported = cuwheel.from_dlpack(torch.ones(COUNT, device="cuda"))
    assert array.stream == imported.stream == stream
    # torch works on the stream, so nothing else has to be ordered.
    with torch.cuda.stream(side):
        total = torch.from_dlpack(array) + torch.from_dlpack(imported)
        assert bool((total == 3).all())


class TestCapture:
    """Arrays that come and go while torch records a CUDA graph: nothing is synchronised, and the replay is right."""

    @pytest.fixture
    def side(self, torch):
        stream = side_stream(torch)
        torch.cuda.synchronize()
        return stream

    def test_imports_and_exports_are_recorded(self, torch, side):
        source = torch.zeros(64, device="cuda")
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph, stream=side):
            array = cuwheel.from_dlpack(source * 2)
            assert array.stream.handle == side.cuda_stream
            result = torch.from_dlpack(array) + 1
        for value in (20, -3):
            source.fill_(value)
            graph.replay()
            assert bool((result == 2 * value + 1).all())

    def test_copies_of_ours_are_recorded(self, torch, side):
        source = torch.zeros((8, 8), device="cuda")
        target = cuwheel.zeros((8, 4), "float32", stream=side)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=side):
            doubled = source * 2
            target[...] = cuwheel.from_dlpack(doubled)[:, ::2]
        source.copy_(torch.arange(64.0).reshape(8, 8))
        graph.replay()
        torch.cuda.synchronize()
        np.testing.assert_array_equal(target.copy_to_host(), np.arange(64).reshape(8, 8)[:, ::2] * 2)

    def test_taking_an_argument_is_not_noticed(self, torch, side):
        source = torch.zeros(64, device="cuda")
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph, stream=side):
            result = source + 1
            cuwheel._native._devicearray._take_argument(result)
        source.fill_(1)
        graph.replay()
        assert bool((result == 2).all())

    def test_an_allocation_is_refused_and_the_recording_goes_on(self, torch, side):
        source = torch.zeros(64, device="cuda")
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph, stream=side):
            result = source + 1
            with pytest.raises(RuntimeError, match="captured into a graph"):
                cuwheel.empty(64, "float32", stream=side)
        source.fill_(4)
        graph.replay()
        assert bool((result == 5).all())
