"""Arguments that crash, or corrupt, the C module that `cuwheel.mviewbuf` replaces; leaks; and threads.

Nothing here is tried with the C module.
"""

import gc
import itertools
import os
import sys
import tracemalloc
from pathlib import Path

import fresh_python
import numpy as np
import pytest
from at_once import at_once
from cuwheel import mviewbuf
from exporters import ADDRESS, Number, mem_alloc
from outcomes import outcome


@pytest.mark.parametrize(
    ("shape", "strides", "ndim"),
    [
        ((), (), 1),
        ((1,), (8,), 64),
        ((1,), (8,), 2**31 - 1),
        ([], range(2**40), 1000),
        (iter(()), iter(()), 5),
        ({1, 2, 3}, (8,), 3),
    ],
)
def test_more_dimensions_than_values(shape, strides, ndim):
    with pytest.raises(ValueError, match="fewer than ndim"):
        mviewbuf.memoryview_get_extents_info(shape, strides, ndim, 8)


@pytest.mark.parametrize("pointer", ["not a number", b"\xff", None, [], object(), 1j, float("nan"), float("inf")])
def test_a_pointer_that_is_no_number(pointer):
    """The C module reads through a null pointer here."""
    exception = outcome(memoryview, mem_alloc(mviewbuf, pointer)).exception
    assert exception is outcome(int, pointer).exception


@pytest.mark.parametrize("error", [ValueError("mine"), KeyboardInterrupt(), MemoryError(), SystemExit(3)])
def test_conversions_that_raise(error):
    for allocation in (
        mem_alloc(mviewbuf, Number(error)),
        mem_alloc(mviewbuf, ADDRESS, Number(error)),
    ):
        with pytest.raises(type(error)):
            memoryview(allocation)
    with pytest.raises(type(error)):
        mviewbuf.memoryview_get_extents_info((Number(error),), (8,), 1, 8)


@pytest.mark.parametrize("value", [None, "text", 1.5, [], 2**200])
def test_conversions_that_return_something_else(value):
    with pytest.raises((TypeError, OverflowError)):
        memoryview(mem_alloc(mviewbuf, Number(value)))
    with pytest.raises((TypeError, OverflowError)):
        mviewbuf.memoryview_get_extents_info((Number(value),), (8,), 1, 8)


def test_attributes_that_change_between_reads():
    addresses = itertools.cycle([ADDRESS, 0, "text", None])
    sizes = itertools.cycle([8, -1, 2**70])

    class Changing(mviewbuf.MemAlloc):
        _bufptr_ = property(lambda self: next(addresses))
        _buflen_ = property(lambda self: next(sizes))

    seen = {outcome(lambda: memoryview(Changing()).nbytes)[:2] for _ in range(12)}
    assert seen == {(8, None), (None, ValueError), (None, OverflowError), (None, TypeError)}


def test_a_list_that_shrinks_while_it_is_read():
    shape = [3, 4, 5]

    class Shrinking:
        def __index__(self):
            shape.clear()
            return 2

    shape[0] = Shrinking()
    with pytest.raises(ValueError, match="fewer than ndim"):
        mviewbuf.memoryview_get_extents_info(shape, [8, 8, 8], 3, 8)


def test_iterators_without_end_are_read_as_far_as_needed():
    ones = itertools.repeat(1)
    assert mviewbuf.memoryview_get_extents_info(ones, ones, 10_000, 8) == (0, 8)


def test_iterators_without_end_can_be_interrupted():
    printed = fresh_python.run(
        """
        import itertools, signal
        from cuwheel import mviewbuf
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        try:
            mviewbuf.memoryview_get_extents_info(itertools.repeat(1), itertools.repeat(1), 2**31 - 1, 8)
        except KeyboardInterrupt:
            print("interrupted")
        """,
        timeout=20,
    )
    assert printed == "interrupted\n"


def test_iterators_that_recurse_or_raise():
    class Endless:
        def __iter__(self):
            return iter(self)

    with pytest.raises(RecursionError):
        mviewbuf.memoryview_get_extents_info(Endless(), (), 0, 8)
    with pytest.raises(ZeroDivisionError):
        mviewbuf.memoryview_get_extents_info((1 // 0 for _ in "x"), (8,), 1, 8)


def test_attribute_access_that_destroys_the_object_or_its_class():
    class Vanishing(mviewbuf.MemAlloc):
        @property
        def _buflen_(self):
            del Vanishing._bufptr_
            return 8

        _bufptr_ = ADDRESS

    with pytest.raises(AttributeError, match="_bufptr_"):
        memoryview(Vanishing())


def test_uninitialised_and_wrong_receivers():
    raw = mviewbuf.MemAlloc.__new__(mviewbuf.MemAlloc)
    with pytest.raises(AttributeError):
        memoryview(raw)
    if sys.version_info >= (3, 12):
        with pytest.raises(TypeError):
            mviewbuf.MemAlloc.__buffer__(object(), 0)
        with pytest.raises(AttributeError):
            raw.__buffer__(0x1D)
        for flags in (0, 1, 0x1C, 0x11D, 0x38, 0x58, 0x98):
            assert mem_alloc(mviewbuf).__buffer__(flags).nbytes == 64


def test_a_view_keeps_the_object_alive():
    class Tracked(mviewbuf.MemAlloc):
        __slots__ = ("__weakref__",)
        _bufptr_, _buflen_ = ADDRESS, 4
        alive = 0

        def __new__(cls):
            cls.alive += 1
            return super().__new__(cls)

        def __del__(self):
            Tracked.alive -= 1

    view = memoryview(Tracked())
    gc.collect()
    assert Tracked.alive == 1
    assert view.tobytes() == bytes(range(4))
    del view
    gc.collect()
    assert Tracked.alive == 0


def everything_once(allocation, values, constant):
    """Every function, on success and on failure."""
    memoryview(allocation)
    mviewbuf.memoryview_get_buffer(values)
    mviewbuf.memoryview_get_buffer(constant, 1)
    mviewbuf.memoryview_get_extents(values)
    mviewbuf.memoryview_get_extents(allocation)
    mviewbuf.memoryview_get_extents_info((3, 4), [-32, 8], 2, 8)
    mviewbuf.MemAlloc(1, two=2)
    outcome(mviewbuf.memoryview_get_buffer, constant)
    outcome(mviewbuf.memoryview_get_buffer, 5, 1)
    outcome(mviewbuf.memoryview_get_extents_info, (3,), (8,), 2, 8)
    outcome(mviewbuf.memoryview_get_extents_info, (3,), (8,), 1, 0)
    outcome(mviewbuf.memoryview_get_extents_info, ("x",), (8,), 1, 1)
    outcome(memoryview, mviewbuf.MemAlloc())


def test_references_are_balanced():
    pointer, size = int(f"{ADDRESS}"), int("40")
    allocation = mem_alloc(mviewbuf, pointer, size)
    values, constant = np.zeros((3, 4)), bytes(range(100, 105))
    objects = (allocation, pointer, values, constant, mviewbuf.MemAlloc, type(allocation))
    for _ in range(3):
        everything_once(allocation, values, constant)
    before = [sys.getrefcount(obj) for obj in objects]
    for _ in range(500):
        everything_once(allocation, values, constant)
    gc.collect()
    after = [sys.getrefcount(obj) for obj in objects]
    # A few references may come and go elsewhere; a leak would show up 500 times.
    assert all(abs(now - then) < 50 for then, now in zip(before, after, strict=True)), (before, after)


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def test_memory_does_not_grow():
    class Address:
        def __int__(self):
            return ADDRESS + 0  # an integer that no one else holds

    allocation = mem_alloc(mviewbuf, Address(), 40)
    values, constant = np.zeros((3, 4)), bytes(range(5))
    for _ in range(500):
        everything_once(allocation, values, constant)
    resident = resident_bytes()
    tracemalloc.start()
    try:
        everything_once(allocation, values, constant)
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(2000):
            everything_once(allocation, values, constant)
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 20_000
    for _ in range(5000):
        everything_once(allocation, values, constant)
    assert resident_bytes() - resident < 4 << 20


def test_threads():
    allocation = mem_alloc(mviewbuf)
    values, constant = np.zeros((3, 4))[::-1], b"constant"
    low = values.ctypes.data - 64

    def work():
        for _ in range(300):
            everything_once(allocation, values, constant)
            assert mviewbuf.memoryview_get_extents(values) == (low, low + 96)
            assert memoryview(allocation)[5] == 5

    at_once(work)
