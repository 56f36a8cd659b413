"""What `cuwheel.mviewbuf` promises, by tables of known answers and against NumPy."""

import ctypes
import sys

import numpy as np
import pytest
from cuwheel import mviewbuf
from exporters import ADDRESS, MEMORY, LoggingExporter, Number, mem_alloc, raw_exporter
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

try:
    from numpy.lib.array_utils import byte_bounds
except ImportError:  # NumPy 1.26
    from numpy import byte_bounds

PYBUF_RECORDS, PYBUF_RECORDS_RO = 0x1D, 0x1C


@pytest.mark.parametrize(
    ("arguments", "extents"),
    [
        (((), (), 0, 8), (0, 8)),
        (((4,), (8,), 1, 8), (0, 32)),
        (((3, 4), (32, 8), 2, 8), (0, 96)),
        (((3, 4), (-32, 8), 2, 8), (-64, 32)),
        (((3, 4), (-32, -8), 2, 8), (-88, 8)),
        (((3,), (0,), 1, 8), (0, 8)),
        (((3, 0), (-8, 4), 2, 4), (0, 0)),
        (((2**62, 0), (8, 8), 2, 8), (0, 0)),
        # Values past ndim are not looked at.
        (((3, "x"), (8, None), 1, 4), (0, 20)),
        # Any iterable will do, and any integer.
        ((iter([3]), {8}, 1, 8), (0, 24)),
        ((b"\x03", np.array([8]), True, np.int64(8)), (0, 24)),
    ],
)
def test_extents_info(arguments, extents):
    assert mviewbuf.memoryview_get_extents_info(*arguments) == extents


@pytest.mark.parametrize(
    ("arguments", "exception", "message"),
    [
        ((5, 5, -1, 0), ValueError, "ndim is negative"),
        ((5, 5, 0, 0), ValueError, "ndim <= 0"),
        ((5, 5, 0, 8), TypeError, "shape is not a sequence"),
        (((), 5, 0, 8), TypeError, "strides is not a sequence"),
        (((3,), (8,), 2, 8), ValueError, "shape has 1 values, fewer than ndim = 2"),
        (((3, 4), (8,), 2, 8), ValueError, "strides has 1 values, fewer than ndim = 2"),
        (((), (), 2**31 - 1, 8), ValueError, "shape has 0 values"),
        ((("a",), (8,), 1, 8), TypeError, "'str' object cannot be interpreted as an integer"),
        (((3.0,), (8,), 1, 8), TypeError, "'float' object cannot be interpreted as an integer"),
        (((2**70,), (8,), 1, 8), OverflowError, "cannot fit 'int' into an index-sized integer"),
        (((3,), (2**70,), 1, 8), OverflowError, "cannot fit 'int' into an index-sized integer"),
        (((2**62,), (8,), 1, 8), OverflowError, "do not fit in 64 bits"),
        (((-(2**63),), (8,), 1, 8), OverflowError, "do not fit in 64 bits"),
        (((2**40, 2**40), (2**40, 1), 2, 1), OverflowError, "do not fit in 64 bits"),
        (((), (), 2**31, 8), OverflowError, ""),
        (((), (), 0, 2**63), OverflowError, ""),
    ],
)
def test_extents_info_refuses(arguments, exception, message):
    with pytest.raises(exception) as caught:
        mviewbuf.memoryview_get_extents_info(*arguments)
    assert message in str(caught.value)


def test_the_note_names_the_argument_that_the_message_does_not():
    with pytest.raises(ValueError) as caught:
        mviewbuf.memoryview_get_extents_info((), (), 0, -3)
    assert str(caught.value) == "ndim <= 0"
    assert caught.value.__notes__ == ["itemsize must be positive, not -3"]


@st.composite
def strided_arrays(draw):
    """Views of every kind of stride over memory that is large enough for them."""
    shape = draw(st.lists(st.integers(0, 4), max_size=4))
    itemsize = draw(st.sampled_from([1, 2, 4, 8, 16]))
    strides = [itemsize * draw(st.integers(-5, 5)) for _ in shape]
    memory = np.zeros(4 * 4 * 5 * 16 * 2 + 16, np.uint8)
    start = memory[memory.size // 2 :][:itemsize].view(f"V{itemsize}")
    return as_strided(start, shape, strides)


@given(strided_arrays())
def test_extents_agree_with_numpy(values):
    low, high = byte_bounds(values) if values.size else (values.ctypes.data,) * 2
    assert mviewbuf.memoryview_get_extents(values) == (low, high)
    relative = mviewbuf.memoryview_get_extents_info(values.shape, values.strides, values.ndim, values.itemsize)
    offset = values.ctypes.data if values.size else 0
    assert relative == ((low - offset, high - offset) if values.size else (0, 0))


@pytest.mark.parametrize("dtype", ["?", "i1", "<u2", ">i4", "f8", "c16", "S3", "U2", "V5", "V0", "i4,f8"])
@pytest.mark.parametrize("shape", [(), (3,), (0,), (2, 3), (3, 0, 2)])
def test_extents_for_every_kind_of_item(dtype, shape):
    values = np.zeros(shape, dtype)
    start = values.ctypes.data
    assert mviewbuf.memoryview_get_extents(values) == (start, start + values.nbytes)
    assert mviewbuf.memoryview_get_buffer(values) == start


def test_broadcast_arrays_cover_one_item():
    values = np.broadcast_to(np.float64(1), (1000, 1000))
    assert mviewbuf.memoryview_get_extents(values) == (values.ctypes.data, values.ctypes.data + 8)


def test_get_buffer_asks_for_writable_memory_unless_told_otherwise():
    constant = b"constant"
    address = mviewbuf.memoryview_get_buffer(constant, 0, 1)
    assert ctypes.string_at(address, len(constant)) == constant
    assert mviewbuf.memoryview_get_buffer(constant, 1) == address
    assert mviewbuf.memoryview_get_buffer(constant, -1, 0) == address
    with pytest.raises(BufferError, match="Object is not writable"):
        mviewbuf.memoryview_get_buffer(constant)


@pytest.mark.parametrize(
    ("obj", "exception", "message"),
    [
        (5, TypeError, "a bytes-like object is required, not 'int'"),
        (np.zeros(3, "M8[s]"), ValueError, "cannot include dtype 'M' in a buffer"),
    ],
)
def test_the_errors_of_exporters_pass_through(obj, exception, message):
    for function in (mviewbuf.memoryview_get_buffer, mviewbuf.memoryview_get_extents):
        with pytest.raises(exception, match=message):
            function(obj)


@pytest.mark.parametrize(
    ("exporter", "extents"),
    [
        (raw_exporter(0), (ADDRESS, ADDRESS + 1)),
        (raw_exporter(2, (2, 3), (-24, 8), 8), (ADDRESS - 24, ADDRESS + 24)),
        (raw_exporter(65, [1] * 65, [8] * 65, 8), (ADDRESS, ADDRESS + 8)),
        (raw_exporter(1, (0,), (8,), 8, None), (0, 0)),
        (raw_exporter(-1, (1,), (8,)), (ValueError, "buffer ndim < 0")),
        (raw_exporter(1, None, (8,)), (ValueError, "buffer shape is not defined")),
        (raw_exporter(1, (1,), None), (ValueError, "buffer strides is not defined")),
        (raw_exporter(1, (1,), (8,), -8), (ValueError, "item size is negative: -8")),
        (raw_exporter(1, (2**62,), (8,)), (OverflowError, "do not fit in 64 bits")),
        (raw_exporter(1, (2,), (-8,), 8, None), (OverflowError, "lies outside the address space")),
    ],
)
def test_extents_of_unusual_exporters(exporter, extents):
    if isinstance(extents[0], int):
        assert mviewbuf.memoryview_get_extents(exporter) == extents
    else:
        with pytest.raises(extents[0], match=extents[1]):
            mviewbuf.memoryview_get_extents(exporter)


def test_addresses_are_never_negative():
    for address in (2**63, 2**64 - 16):
        for exporter in (mem_alloc(mviewbuf, address, 8), raw_exporter(1, (8,), (1,), 1, address)):
            assert mviewbuf.memoryview_get_extents(exporter) == (address, address + 8)
            assert mviewbuf.memoryview_get_buffer(exporter) == address


def test_arguments_are_positional():
    for function, arguments in [
        (mviewbuf.memoryview_get_buffer, {"obj": b""}),
        (mviewbuf.memoryview_get_extents, {"obj": b""}),
        (mviewbuf.memoryview_get_extents_info, {"shape": (), "strides": (), "ndim": 0, "itemsize": 1}),
    ]:
        with pytest.raises(TypeError):
            function(**arguments)
        with pytest.raises(TypeError):
            function()


@pytest.mark.skipif(sys.version_info < (3, 12), reason="classes written in Python export buffers from 3.12 on")
@pytest.mark.parametrize(
    ("obj", "arguments", "flags"),
    [
        (bytearray(4), (), [PYBUF_RECORDS]),
        (bytearray(4), (1,), [PYBUF_RECORDS]),
        (bytearray(4), (0, 1), [PYBUF_RECORDS_RO]),
        (bytearray(4), (1, 1), [PYBUF_RECORDS_RO]),
        (b"read", (1,), [PYBUF_RECORDS, PYBUF_RECORDS_RO]),
        (b"read", (0, 1), [PYBUF_RECORDS_RO]),
    ],
)
def test_requests_to_exporters(obj, arguments, flags):
    exporter = LoggingExporter(obj)
    mviewbuf.memoryview_get_buffer(exporter, *arguments)
    assert exporter.flags == flags
    exporter = LoggingExporter(obj)
    mviewbuf.memoryview_get_extents(exporter)
    assert exporter.flags == [PYBUF_RECORDS_RO]
    assert exporter.released == 1


@pytest.mark.skipif(sys.version_info < (3, 12), reason="classes written in Python export buffers from 3.12 on")
def test_force_does_not_swallow_an_interrupt():
    for interrupt in (KeyboardInterrupt, SystemExit, GeneratorExit):
        with pytest.raises(interrupt):
            mviewbuf.memoryview_get_buffer(LoggingExporter(b"read", interrupt()), 1)
    with pytest.raises(RuntimeError):
        mviewbuf.memoryview_get_buffer(LoggingExporter(b"read", RuntimeError()), 0)
    assert mviewbuf.memoryview_get_buffer(LoggingExporter(b"read", RuntimeError()), 1)


def test_buffers_are_released():
    memory = bytearray(8)
    mviewbuf.memoryview_get_buffer(memory)
    mviewbuf.memoryview_get_extents(memory)
    memory.extend(b"this fails while a buffer is held")


def test_mem_alloc_offers_bytes_that_are_writable_on_request():
    view = memoryview(mem_alloc(mviewbuf))
    properties = (view.format, view.itemsize, view.ndim, view.shape, view.strides, view.readonly, view.contiguous)
    assert properties == ("B", 1, 1, (64,), (1,), True, True)
    assert bytes(view) == bytes(MEMORY)
    values = np.ndarray(64, np.uint8, buffer=mem_alloc(mviewbuf))
    assert values.flags.writeable
    assert values.ctypes.data == ADDRESS


def test_mem_alloc_reads_attributes_each_time_in_order():
    log = []
    allocation = mem_alloc(mviewbuf, Number(ADDRESS, log), Number(8, log), log)
    memoryview(allocation)
    memoryview(allocation)
    assert log == ["_buflen_", "_bufptr_", "index", "int"] * 2


def test_mem_alloc_attributes_may_come_from_anywhere():
    class Proxy(mviewbuf.MemAlloc):
        def __getattr__(self, name):
            return {"_bufptr_": ctypes.c_void_p(ADDRESS).value, "_buflen_": 4}[name]

    class Slots(mviewbuf.MemAlloc):
        __slots__ = ("_buflen_", "_bufptr_")

    slots = Slots()
    slots._bufptr_, slots._buflen_ = ADDRESS, 4
    assert bytes(memoryview(Proxy())) == bytes(memoryview(slots)) == bytes(MEMORY)[:4]


@pytest.mark.parametrize("pointer", [ADDRESS, float(ADDRESS), str(ADDRESS), np.uint64(ADDRESS), Number(ADDRESS)])
def test_mem_alloc_pointer_is_whatever_int_takes(pointer):
    assert mviewbuf.memoryview_get_buffer(mem_alloc(mviewbuf, pointer, 8)) == ADDRESS


@pytest.mark.parametrize(
    ("pointer", "size", "exception", "message"),
    [
        (0, 0, ValueError, "null buffer pointer"),
        (0, -1, ValueError, "negative buffer size"),
        (Number(RuntimeError("not asked")), -1, ValueError, "negative buffer size"),
        (ADDRESS, 8.0, TypeError, "'float' object cannot be interpreted as an integer"),
        (ADDRESS, None, TypeError, "'NoneType' object cannot be interpreted as an integer"),
        (ADDRESS, 2**70, OverflowError, "cannot fit 'int' into an index-sized integer"),
        (2**64, 0, OverflowError, "too large to convert"),
        (-(2**63) - 1, 0, OverflowError, "too large to convert"),
        (2**64 - 8, 8, OverflowError, "ends outside the address space"),
        (-1, 2, OverflowError, "ends outside the address space"),
    ],
)
def test_mem_alloc_refuses(pointer, size, exception, message):
    with pytest.raises(exception, match=message):
        memoryview(mem_alloc(mviewbuf, pointer, size))


def test_mem_alloc_is_a_plain_base_class():
    assert mviewbuf.MemAlloc.__basicsize__ == object.__basicsize__
    assert type(mviewbuf.MemAlloc) is type
    assert isinstance(mviewbuf.MemAlloc(1, two=2), mviewbuf.MemAlloc)
    with pytest.raises(AttributeError):
        mviewbuf.MemAlloc().attribute = 1
    with pytest.raises(AttributeError, match="_buflen_"):
        memoryview(mviewbuf.MemAlloc())

    class Both(mviewbuf.MemAlloc, np.ndarray):
        pass

    assert issubclass(Both, np.ndarray)
