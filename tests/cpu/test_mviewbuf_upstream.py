"""`cuwheel.mviewbuf` beside the C module of numba-cuda: the same results, exceptions and messages.

Where the C module's arithmetic wraps around, or it reports its own mistakes as SystemError, ours must raise a proper
exception instead. What makes it crash is in test_mviewbuf_hostile.py.
"""

import ctypes
import sys
from array import array

import numpy as np
import pytest
from cuwheel import mviewbuf
from exporters import ADDRESS, LoggingExporter, Number, mem_alloc, raw_exporter
from hypothesis import given
from hypothesis import strategies as st
from outcomes import Outcome, outcome

FUNCTIONS = ["memoryview_get_buffer", "memoryview_get_extents", "memoryview_get_extents_info"]


def test_the_public_names_are_the_same(upstream_mviewbuf):
    public = {name for name in vars(upstream_mviewbuf) if not name.startswith("_")}
    assert public == set(mviewbuf.__all__)


def test_mem_alloc_has_the_same_shape(upstream_mviewbuf):
    ours, theirs = mviewbuf.MemAlloc, upstream_mviewbuf.MemAlloc
    # Apart from what the two offer to Python 3.12 and newer, only the docstring and the module's name differ.
    assert set(vars(ours)) - {"__module__"} == set(vars(theirs))
    for attribute in ("__basicsize__", "__itemsize__", "__dictoffset__", "__weakrefoffset__", "__mro__"):
        first, second = getattr(ours, attribute), getattr(theirs, attribute)
        assert first == second or first[1:] == second[1:]
    is_base_type, is_immutable, has_gc = 1 << 10, 1 << 8, 1 << 14
    assert ours.__flags__ & theirs.__flags__ & is_base_type
    # As documented.
    assert (ours.__flags__ & is_immutable, theirs.__flags__ & is_immutable) == (0, is_immutable)
    assert (ours.__flags__ & has_gc, theirs.__flags__ & has_gc) == (has_gc, 0)


class NotIterable:
    """Fails to be iterated, in the way it is told to."""

    def __init__(self, error):
        self.error = error

    def __iter__(self):
        raise self.error


SEQUENCES = [(), [], (3,), [3, 4], (0,), (-3, 4), range(1, 5), b"\x03", {3: 4}, np.array([2, 3]), 5, None, "",
             NotIterable(TypeError("no")), NotIterable(RuntimeError("no"))]  # fmt: skip


@pytest.mark.parametrize("ndim", [-1, 0, 1])
@pytest.mark.parametrize("itemsize", [-1, 0, 1, 8])
def test_extents_info_over_every_pair_of_sequences(upstream_mviewbuf, ndim, itemsize):
    for shape in SEQUENCES:
        for strides in SEQUENCES:
            if any(hasattr(values, "__len__") and len(values) < ndim for values in (shape, strides)):
                continue
            arguments = (shape, strides, ndim, itemsize)
            assert outcome(mviewbuf.memoryview_get_extents_info, *arguments) == outcome(
                upstream_mviewbuf.memoryview_get_extents_info, *arguments
            ), arguments


dimensions = st.tuples(st.integers(-4, 1000), st.integers(-(2**20), 2**20))


@given(st.lists(dimensions, max_size=5), st.integers(-2, 64), st.data())
def test_extents_info_of_modest_arrays(upstream_mviewbuf, dimensions, itemsize, data):
    shape, strides = [size for size, _ in dimensions], [stride for _, stride in dimensions]
    ndim = data.draw(st.integers(-2, len(shape)))
    arguments = (shape, strides, ndim, itemsize)
    assert outcome(mviewbuf.memoryview_get_extents_info, *arguments) == outcome(
        upstream_mviewbuf.memoryview_get_extents_info, *arguments
    )


sizes = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(st.tuples(sizes, sizes), max_size=4), st.integers(1, 2**63 - 1))
def test_extents_info_where_the_reference_wraps_around(upstream_mviewbuf, dimensions, itemsize):
    shape, strides = [size for size, _ in dimensions], [stride for _, stride in dimensions]
    arguments = (shape, strides, len(shape), itemsize)
    theirs = outcome(upstream_mviewbuf.memoryview_get_extents_info, *arguments)
    ours = outcome(mviewbuf.memoryview_get_extents_info, *arguments)
    assert ours == theirs or ours.exception is OverflowError
    if ours.exception is None and 0 not in shape:
        start = sum((size - 1) * stride for size, stride in dimensions if stride <= 0)
        end = sum((size - 1) * stride for size, stride in dimensions if stride > 0) + itemsize
        assert ours.result == (start, end)


@pytest.mark.parametrize(
    ("shape", "strides", "exception"),
    [
        (("a",), (1,), TypeError),
        ((3,), (None,), TypeError),
        ((3.0,), (8,), TypeError),
        ((2**70,), (8,), OverflowError),
        ((3,), (-(2**70),), OverflowError),
        ((Number(KeyError("mine")),), (8,), KeyError),
        ((3,), (Number(KeyError("mine")),), KeyError),
    ],
)
def test_bad_values_are_no_system_error(upstream_mviewbuf, shape, strides, exception):
    arguments = (shape, strides, 1, 8)
    assert outcome(upstream_mviewbuf.memoryview_get_extents_info, *arguments).exception is SystemError
    assert outcome(mviewbuf.memoryview_get_extents_info, *arguments).exception is exception


def released_view():
    view = memoryview(b"released")
    view.release()
    return view


class Aligned(ctypes.Structure):
    _fields_ = [("one", ctypes.c_char), ("two", ctypes.c_double)]


def exporters():
    values = np.arange(24.0).reshape(2, 3, 4)
    yield from (b"", b"bytes", bytearray(), bytearray(5), memoryview(b"view"), memoryview(bytearray(5))[::-2])
    yield from (values, values.T, values[::-1], values[:, ::-2, 1:3], values[:0], values[0, 0, 0], values[..., None])
    yield from (np.broadcast_to(values, (5, 2, 3, 4)), np.zeros((), "i4,f8"), np.zeros(3, "V0"), np.zeros(2, ">i2"))
    yield from (np.float32(1), np.str_("text"), np.bytes_(b"text"), np.datetime64(1, "s"), np.zeros(3, "M8[s]"))
    yield from (np.array([object()]), np.ma.zeros(3), np.recarray(2, dtype=[("x", "f4")]), np.matrix("1 2; 3 4"))
    yield from (array("d", [1, 2]), array("b"), array("u", "text"))
    yield from (ctypes.c_int(5), (ctypes.c_int * 3)(), (ctypes.c_int * 0)(), ((ctypes.c_int * 2) * 3)(), Aligned())
    yield from (5, None, "text", [1], object(), int, released_view())


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::PendingDeprecationWarning")
@pytest.mark.parametrize("function", ["memoryview_get_buffer", "memoryview_get_extents"])
def test_exporters(upstream_mviewbuf, function):
    ours, theirs = getattr(mviewbuf, function), getattr(upstream_mviewbuf, function)
    options = [(), (0,), (1,), (0, 1), (1, 1), (-5,), (True, False)] if function == "memoryview_get_buffer" else [()]
    for exporter in exporters():
        for arguments in options:
            assert outcome(ours, exporter, *arguments) == outcome(theirs, exporter, *arguments), (exporter, arguments)


@pytest.mark.parametrize("itemsize", [0, 1, 8])
@pytest.mark.parametrize("address", [None, ADDRESS, 2**62])
def test_raw_exporters(upstream_mviewbuf, itemsize, address):
    layouts = [(-1, None, None), (-(2**31), (), ()), (0, (), ()), (1, None, (8,)), (1, (3,), None), (1, None, None)]
    layouts += [(1, (3,), (8,)), (2, (2, 0), (-8, 8)), (2, (3, 4), (0, 8)), (65, [1] * 65, [8] * 65)]
    for layout in layouts:
        exporter = raw_exporter(*layout, itemsize, address)
        for name in ("memoryview_get_buffer", "memoryview_get_extents"):
            ours, theirs = (outcome(getattr(module, name), exporter) for module in (mviewbuf, upstream_mviewbuf))
            assert ours == theirs, (name, layout)


def test_raw_exporters_that_are_answered_differently_on_purpose(upstream_mviewbuf):
    seen = {
        name: [outcome(module.memoryview_get_extents, exporter) for module in (mviewbuf, upstream_mviewbuf)]
        for name, exporter in {
            "no strides, and none needed": raw_exporter(0, (), None, 8),
            "negative item size": raw_exporter(1, (1,), (8,), -8),
            "upper half": raw_exporter(1, (8,), (1,), 1, 2**63),
        }.items()
    }
    assert seen == {
        "no strides, and none needed": [
            Outcome((ADDRESS, ADDRESS + 8)),
            Outcome(None, ValueError, "buffer strides is not defined"),
        ],
        "negative item size": [
            Outcome(None, ValueError, "item size is negative: -8"),
            Outcome((ADDRESS, ADDRESS - 8)),
        ],
        "upper half": [Outcome((2**63, 2**63 + 8)), Outcome((-(2**63), -(2**63) + 8))],
    }


@pytest.mark.skipif(sys.version_info < (3, 12), reason="classes written in Python export buffers from 3.12 on")
@pytest.mark.parametrize("obj", [b"constant", bytearray(b"writable")])
@pytest.mark.parametrize("refusal", [None, BufferError("no"), RuntimeError("no")])
def test_requests(upstream_mviewbuf, obj, refusal):
    for arguments in [(), (0,), (1,), (0, 1), (1, 1)]:
        seen = []
        for module in (mviewbuf, upstream_mviewbuf):
            exporter = LoggingExporter(obj, refusal)
            first = outcome(module.memoryview_get_buffer, exporter, *arguments)
            seen.append((first, outcome(module.memoryview_get_extents, exporter), exporter.flags, exporter.released))
        assert seen[0] == seen[1]


def attributes_of(view: memoryview) -> tuple:
    names = ("format", "itemsize", "ndim", "shape", "strides", "suboffsets", "nbytes", "readonly", "contiguous")
    return tuple(getattr(view, name) for name in names)


POINTERS = [ADDRESS, 1, 0, -1, True, 2**64 - 1, 2**63, -(2**63), 2**64, -(2**63) - 1, 2**200, 4096.5, "4096", b"4096"]
SIZES = [0, 1, 64, -1, -(2**63), 2**63 - 1, 2**63, True, 1.0, None, "1"]


def test_mem_alloc_over_pointers_and_sizes(upstream_mviewbuf):
    for pointer in POINTERS:
        for size in SIZES:
            ours = outcome(lambda: attributes_of(memoryview(mem_alloc(mviewbuf, pointer, size))))
            theirs = outcome(lambda: attributes_of(memoryview(mem_alloc(upstream_mviewbuf, pointer, size))))
            if ours != theirs:
                # The one difference: memory that would end outside the address space.
                assert theirs.exception is None, (pointer, size)
                assert ours.exception is OverflowError, (pointer, size)
                assert int(pointer) % 2**64 + size >= 2**64, (pointer, size)


@given(st.integers(-(2**65), 2**65), st.integers(-(2**64), 2**64))
def test_mem_alloc_over_generated_pointers_and_sizes(upstream_mviewbuf, pointer, size):
    theirs = outcome(lambda: attributes_of(memoryview(mem_alloc(upstream_mviewbuf, pointer, size))))
    if theirs.exception is None and pointer % 2**64 + size >= 2**64:
        theirs = Outcome(exception=OverflowError)
    ours = outcome(lambda: attributes_of(memoryview(mem_alloc(mviewbuf, pointer, size))))
    assert ours[:2] == theirs[:2]
    assert theirs.message is None or ours.message == theirs.message


@pytest.mark.parametrize(
    ("pointer", "size"),
    [
        (ADDRESS, 5),
        (ADDRESS, -5),
        (ADDRESS, KeyError("mine")),
        (ADDRESS, "text"),
        # The C module crashes when it looks at such a pointer; before a bad size it does not look.
        (KeyError("mine"), -5),
        ("text", "text"),
    ],
)
def test_mem_alloc_reads_in_the_same_order(upstream_mviewbuf, pointer, size):
    seen = []
    for module in (mviewbuf, upstream_mviewbuf):
        log = []
        allocation = mem_alloc(module, Number(pointer, log), Number(size, log), log)
        seen.append((outcome(lambda allocation=allocation: memoryview(allocation).nbytes), log))
    assert seen[0] == seen[1]


def test_mem_alloc_without_attributes(upstream_mviewbuf):
    for missing in ("_buflen_", "_bufptr_"):
        seen = []
        for module in (mviewbuf, upstream_mviewbuf):
            allocation = mem_alloc(module)
            delattr(allocation, missing)
            seen.append(outcome(memoryview, allocation))
        assert seen[0] == seen[1]
        assert seen[0].exception is AttributeError
    assert outcome(memoryview, mviewbuf.MemAlloc()) == outcome(memoryview, upstream_mviewbuf.MemAlloc())


@pytest.mark.parametrize("function", FUNCTIONS)
def test_wrong_calls_raise_the_same_types(upstream_mviewbuf, function):
    ours, theirs = getattr(mviewbuf, function), getattr(upstream_mviewbuf, function)
    calls = [(), (b"",), (b"", 1.5), (b"", None), (b"", 2**31), (b"", "1"), (b"", 1, 1, 1, 1), ((), (), "0", 1)]
    calls += [((), (), 0, 1.0), ((), (), 2**31, 1), ((), (), 0, 2**63), (b"", Number(KeyError("mine")))]
    for arguments in calls:
        assert outcome(ours, *arguments).exception is outcome(theirs, *arguments).exception, arguments


@pytest.mark.parametrize("value", [1.5, None, "1", 2**31, -(2**31) - 1, 2**63, -(2**63) - 1, Number(KeyError("mine"))])
def test_wrong_integers_raise_the_same_messages(upstream_mviewbuf, value):
    calls = [("memoryview_get_buffer", (b"", value)), ("memoryview_get_buffer", (b"", 0, value))]
    calls += [("memoryview_get_extents_info", ((), (), value, 1))]
    if not isinstance(value, int) or abs(value) >= 2**63:
        calls += [("memoryview_get_extents_info", ((), (), 0, value))]
    for name, arguments in calls:
        ours, theirs = (outcome(getattr(module, name), *arguments) for module in (mviewbuf, upstream_mviewbuf))
        assert ours == theirs, (name, arguments)


def test_a_note_names_the_argument_that_is_no_integer():
    with pytest.raises(TypeError) as caught:
        mviewbuf.memoryview_get_buffer(b"", 0, None)
    assert caught.value.__notes__ == ["while processing 'readonly'"]
