"""Copies between host and device, between devices and kinds of memory, and the order in which streams make them."""

import cuwheel
import numpy as np
import pytest
from cuwheel import Device, Stream
from device_arrays import HOST_VISIBLE, KINDS, Described, contents, read_only

pytestmark = pytest.mark.usefixtures("driver")

SYNCHRONISATIONS = ("cuStreamSynchronize", "cuCtxSynchronize", "cuEventSynchronize")
VALUES = np.arange(24, dtype="int32").reshape(4, 6)


@pytest.mark.parametrize("kind", KINDS)
def test_copy_from_host_broadcasts_and_converts(kind):
    array = cuwheel.zeros((2, 3), "float32", kind=kind)
    assert array.copy_from_host([1, 2, 3]) is None
    assert contents(array) == [[1, 2, 3]] * 2
    array[:, ::2].copy_from_host(np.array([[7], [8]], "int16"))
    assert contents(array) == [[7, 2, 7], [8, 2, 8]]
    array.copy_from_host(np.arange(6.0).reshape(3, 2).T, stream=Stream())
    assert contents(array) == [[0, 2, 4], [1, 3, 5]]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("key", [..., (slice(None), 1), (slice(None, None, -1), slice(None, None, 2)), (0, 0)], ids=str)
def test_copy_to_host_fills_what_is_given(kind, key):
    part = cuwheel.asarray(VALUES, kind=kind)[key]
    for out in (
        np.zeros(part.shape, "int32"),
        np.zeros((*part.shape, 2), "int32")[..., 1],
        np.zeros(part.shape[::-1], "int32").T,
    ):
        assert part.copy_to_host(out, stream=Stream()) is out
        assert out.tolist() == VALUES[key].tolist()
    assert type(part.copy_to_host()) is np.ndarray


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("source", KINDS)
@pytest.mark.parametrize("device", [0, 1])
@pytest.mark.parametrize("strided", [False, True])
def test_copies_go_from_any_memory_to_any(source, kind, device, strided):
    array, peer = cuwheel.asarray(VALUES, kind=source), VALUES
    if strided:
        array, peer = array.T[::2, 1:], peer.T[::2, 1:]
    copy = array.copy_to_device(device, kind=kind)
    assert (copy.kind, copy.device, copy.flags.c_contiguous) == (kind, Device(device), True)
    assert contents(copy) == peer.tolist()
    copy[...] = array
    assert contents(copy) == peer.tolist()


def test_copies_have_the_stream_asked_for():
    one, two, other = Stream(), Stream(), Stream(device=1)
    array = cuwheel.zeros(3, stream=one)
    assert array.copy_to_device().stream == one
    assert array.copy_to_device(stream=two).stream == two
    assert array.copy_to_device(1).stream == Stream(0, device=1)
    assert array.copy_to_device(1, stream=other).stream == other


def test_asarray_takes_what_is_there():
    array = cuwheel.asarray(VALUES)
    assert cuwheel.asarray(array) is array
    assert cuwheel.asarray(array, "int32", device=0, copy=False) is array
    for other, shares in (
        (cuwheel.asarray(array, copy=True), False),
        (cuwheel.asarray(array, device=1), False),
        (cuwheel.asarray(array, stream=Stream()), True),
        (cuwheel.asarray(Described(array)), True),
        (cuwheel.asarray(Described(array), copy=False), True),
        (cuwheel.asarray(Described(array), copy=True, kind="pinned"), False),
        (cuwheel.from_dlpack(array), True),
        (cuwheel.from_dlpack(array, copy=True), False),
        (cuwheel.from_dlpack(array, device=1), False),
        (cuwheel.from_dlpack(array, device=0, copy=False), True),
    ):
        assert (other.pointer == array.pointer) == shares
        assert contents(other) == VALUES.tolist()


def test_asarray_prefers_the_device_where_the_data_is():
    array = cuwheel.asarray(VALUES, device=1)
    assert cuwheel.asarray(Described(array)).device == Device(1)
    assert cuwheel.asarray(VALUES, device=1).device == Device(1)


@pytest.mark.parametrize("kind", HOST_VISIBLE)
def test_memory_that_both_see_needs_no_copy(kind):
    array = cuwheel.asarray(VALUES, kind=kind)
    assert cuwheel.from_dlpack(Described(array)).kind == ("pinned" if kind == "mapped" else kind)
    assert np.asarray(array).tolist() == VALUES.tolist()


def test_a_copy_to_the_host_is_behind_what_is_on_the_arrays_stream(driver):
    stream, other = Stream(), Stream()
    array = cuwheel.empty(64, "uint8", stream=stream)
    array[...] = 5
    # Read on another stream: it waits for the array's, and the host for it.
    assert set(contents(cuwheel.from_dlpack(array, stream=other))) == {5}
    assert set(array.copy_to_host(stream=other)) == {5}


@pytest.mark.parametrize("to", ["legacy", "own", "per-thread"])
@pytest.mark.parametrize("source", ["legacy", "own", "per-thread"])
@pytest.mark.parametrize("device", [0, 1])
def test_copies_among_arrays_come_behind_the_streams_of_both(to, source, device, driver):
    """The record of the stand-in would show a race; and the host waits for nothing."""
    streams = {"legacy": lambda **_: Stream(0), "own": Stream, "per-thread": lambda **_: Stream(2)}
    target_stream, source_stream = streams[to](), streams[source](device=device)
    target = cuwheel.empty(64, "int32", stream=target_stream)
    value = cuwheel.full(64, 3, "int32", device=device, stream=source_stream)
    target[...] = 1
    driver.reset()
    target[...] = value
    value[...] = 4
    target[32:] = 5
    assert driver.calls(*SYNCHRONISATIONS) == 0
    assert contents(target) == [3] * 32 + [5] * 32
    assert driver.violations() == []


def test_memory_that_is_dropped_is_used_up_first(driver):
    """What is dropped goes back to the pool in the order of its stream, behind the copy that reads it on another."""
    one, two = Stream(), Stream()
    target = cuwheel.empty(64, "int32", stream=two)
    for number in range(4):
        value = cuwheel.full(64, number, "int32", stream=one)
        target[...] = value
        del value
    assert contents(target) == [3] * 64


def test_a_race_is_seen_by_the_stand_in(driver):
    """The tests above would see one: this is how it looks."""
    one, two = Stream(), Stream()
    array = cuwheel.empty(64, "uint8", stream=one)
    array[...] = 1
    driver.fill(array, two)
    [violation] = driver.violations()
    assert f"writes {array.pointer:#x} on stream {two.handle:#x} with nothing that orders it after" in violation
    del array
    driver.reset()


CAPTURED = [
    (lambda array: array.copy_to_host(), "copied between a device and ordinary host memory"),
    (lambda array: array.copy_from_host(0), "copied between a device and ordinary host memory"),
    (lambda array: array.copy_to_device(), "memory cannot be allocated on a stream that is being captured"),
    (
        lambda array: cuwheel.empty(3, stream=array.stream),
        "memory cannot be allocated on a stream that is being captured",
    ),
]


@pytest.mark.parametrize(("call", "message"), CAPTURED, ids=range(len(CAPTURED)))
def test_what_cannot_be_captured_is_refused_and_the_capture_survives(call, message, driver):
    array = cuwheel.zeros(16, "int32", stream=Stream())
    with driver.capture(array.stream), pytest.raises(RuntimeError, match=message):
        call(array)
    assert contents(array) == [0] * 16


def test_copies_among_arrays_can_be_captured(driver):
    stream = Stream()
    target = cuwheel.zeros(16, "int32", stream=stream)
    value = cuwheel.full(16, 3, "int32", stream=stream)
    with driver.capture(stream):
        target[...] = value
        target[0] = value[1]
    assert contents(target) == [0] * 16


def test_memory_dropped_during_a_capture_is_freed_afterwards(driver):
    stream = Stream()
    array = cuwheel.zeros(16, "uint8", stream=stream)
    with driver.capture(stream):
        del array
        assert driver.allocations() == [("device", 16)]
    cuwheel.empty(1)
    assert driver.allocations() == []


def test_other_streams_may_allocate_during_a_capture(driver):
    stream = Stream()
    with driver.capture(stream):
        arrays = [cuwheel.empty(4, stream=Stream(), kind=kind) for kind in KINDS]
        del arrays
    assert driver.allocations() == []


def test_read_only_arrays_are_copied_and_not_written():
    array = read_only(3, kind="managed")
    assert contents(array) == [0, 0, 0]
    assert array.copy_to_device().flags.writeable
    assert not np.asarray(array).flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1
