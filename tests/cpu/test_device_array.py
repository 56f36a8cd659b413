"""`cuwheel.DeviceArray`: what it is made of, what it says of itself, and what the host sees of it."""

import copy
import ctypes
import gc
import pickle
import weakref

import cuwheel
import numpy as np
import pytest
from device_arrays import HOST_VISIBLE, KINDS, contents, raw, read_only, used_strides

pytestmark = pytest.mark.usefixtures("driver")

SHAPES = [(), (0,), (1,), (7,), (2, 3), (3, 0, 2), (1, 1, 4), (2, 1, 3, 2)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_zeros_have_the_shape_and_type_asked_for(shape, kind, driver):
    array = cuwheel.zeros(shape, "int16", kind=kind)
    peer = np.zeros(shape, "int16")
    assert (array.shape, array.ndim, array.size) == (peer.shape, peer.ndim, peer.size)
    assert used_strides(array) == used_strides(peer)
    assert (array.nbytes, array.itemsize, array.dtype, array.kind) == (peer.nbytes, 2, peer.dtype, kind)
    assert array.element_strides == tuple(stride // 2 for stride in array.strides)
    assert contents(array) == peer.tolist()
    assert (array.pointer == 0) == (peer.size == 0)
    assert driver.allocations() == ([] if peer.size == 0 else [("pinned" if kind == "mapped" else kind, peer.nbytes)])


@pytest.mark.parametrize("shape", [*SHAPES, 3, np.int64(3), [2, 3], range(2, 4)], ids=str)
@pytest.mark.parametrize("order", ["C", "F"])
def test_shapes_and_orders_are_numpys(shape, order):
    array, peer = cuwheel.empty(shape, "float32", order=order), np.empty(shape, "float32", order=order)
    assert (array.shape, used_strides(array)) == (peer.shape, used_strides(peer))
    assert (array.flags.c_contiguous, array.flags.f_contiguous) == (peer.flags.c_contiguous, peer.flags.f_contiguous)


def test_the_default_type_is_numpys():
    assert cuwheel.empty(1).dtype == cuwheel.zeros(1).dtype == np.empty(1).dtype


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (7, None),
        (2.5, None),
        (True, None),
        (1 + 2j, None),
        (np.float32(3), None),
        (3, "uint8"),
        (b"ab", None),
        (1, "complex128"),
    ],
    ids=str,
)
def test_full_is_numpys(value, dtype, order):
    array, peer = cuwheel.full((2, 3), value, dtype, order=order), np.full((2, 3), value, dtype)
    result = array.copy_to_host()
    assert result.dtype == (peer.dtype if peer.dtype.kind != "S" else np.dtype("V2"))
    assert result.tobytes() == peer.tobytes()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("make", [cuwheel.from_host, cuwheel.asarray], ids=["from_host", "asarray"])
@pytest.mark.parametrize(
    "data",
    [
        np.arange(24, dtype="float32").reshape(2, 3, 4)[:, ::-1, 1::2],
        np.asfortranarray(np.arange(6).reshape(2, 3)),
        np.broadcast_to(np.arange(3.0), (2, 3)),
        np.frombuffer(b"read-only", "uint8"),
        np.array(5),
        [[1, 2], [3, 4]],
        range(4),
        2.5,
        memoryview(b"bytes"),
    ],
    ids=str,
)
def test_host_data_arrives_as_it_is(data, make, kind):
    array = make(data, kind=kind)
    peer = np.asarray(data)
    assert (array.dtype, array.shape, contents(array)) == (peer.dtype, peer.shape, peer.tolist())
    assert array.flags.c_contiguous
    assert array.flags.writeable


@pytest.mark.parametrize("kind", KINDS)
def test_device_and_stream_are_those_asked_for(kind, driver):
    stream = cuwheel.Stream(device=1)
    array = cuwheel.empty(4, "int32", device="cuda:1", kind=kind, stream=stream)
    assert (array.device, array.stream) == (cuwheel.Device(1), stream)
    [allocation] = driver.alive()["allocations"]
    assert allocation["device"] == 1
    if kind == "device":
        assert allocation["stream"] == stream.handle


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (lambda: cuwheel.empty(()), "DeviceArray(shape=(), dtype=float64, device=cuda:0, kind=device)"),
        (lambda: cuwheel.empty(3, "bfloat16"), "DeviceArray(shape=(3,), dtype=bfloat16, device=cuda:0, kind=device)"),
        (
            lambda: cuwheel.empty((2, 0), "V5", device=1, kind="managed"),
            "DeviceArray(shape=(2, 0), dtype=opaque[5], device=cuda:1, kind=managed)",
        ),
        (
            lambda: read_only((2,), kind="pinned"),
            "DeviceArray(shape=(2,), dtype=float64, device=cuda:0, kind=pinned, read-only)",
        ),
    ],
    ids=range(4),
)
def test_repr_looks_at_no_memory(array, text, driver):
    array = array()
    driver.reset()
    assert repr(array) == str(array) == text
    assert driver.report()["calls"] == {}


def test_flags_are_attributes_and_keys():
    array = cuwheel.empty((2, 3), order="F")
    flags = array.flags
    assert (flags.c_contiguous, flags.f_contiguous, flags.forc, flags.writeable) == (False, True, True, True)
    keys = ["C_CONTIGUOUS", "C", "CONTIGUOUS", "F_CONTIGUOUS", "F", "FORTRAN", "FORC", "WRITEABLE", "W"]
    assert [flags[key] for key in keys] == [False] * 3 + [True] * 6
    assert repr(flags) == "  C_CONTIGUOUS : False\n  F_CONTIGUOUS : True\n  WRITEABLE : True"
    assert flags == array.flags != cuwheel.empty((2, 3)).flags
    assert not read_only((2, 3)).flags.writeable


def test_length_truth_and_iteration():
    array = cuwheel.asarray(np.arange(6).reshape(3, 2))
    assert len(array) == 3
    assert [contents(row) for row in array] == [[0, 1], [2, 3], [4, 5]]
    iterator = iter(cuwheel.empty((0, 2)))
    assert iter(iterator) is iterator
    assert [next(iterator, "end") for _ in range(2)] == ["end", "end"]


def test_arrays_can_be_referred_to_weakly_and_not_subclassed():
    array = cuwheel.empty(3)
    reference = weakref.ref(array)
    assert reference() is array
    del array
    assert reference() is None
    with pytest.raises(TypeError, match="not an acceptable base type"):
        type("Sub", (cuwheel.DeviceArray,), {})
    with pytest.raises(TypeError, match="No constructor defined|cannot create"):
        cuwheel.DeviceArray()


def test_views_keep_the_memory(driver):
    view = cuwheel.asarray(np.arange(6.0))[2:4].T.reshape(2, 1)
    assert driver.allocations() == [("device", 48)]
    assert contents(view) == [[2.0], [3.0]]
    del view
    assert driver.allocations() == []


PICKLED = [
    lambda: cuwheel.asarray(np.arange(6, dtype="int16").reshape(2, 3))[:, ::-2],
    lambda: cuwheel.zeros((), "complex64", kind="pinned"),
    lambda: cuwheel.zeros((0, 3), "bfloat16"),
    lambda: cuwheel.zeros(5, "float4_e2m1fn", kind="mapped"),
    lambda: cuwheel.zeros(3, "V12", device=1, kind="managed"),
    lambda: read_only(3, "float32"),
]


@pytest.mark.parametrize("make", PICKLED, ids=range(len(PICKLED)))
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickling_is_by_value(make, protocol):
    array = make()
    again = pickle.loads(pickle.dumps(array, protocol))
    assert repr(again) == repr(array)
    assert again.flags.c_contiguous
    if array.itemsize is not None:
        assert raw(again) == raw(array.copy_to_device())
    assert again.pointer != array.pointer or array.size == 0


def test_copies_are_of_the_same_value_and_not_of_the_same_memory():
    array = cuwheel.asarray([1, 2, 3])
    for other in (copy.copy(array), copy.deepcopy(array), array.copy_to_device()):
        assert contents(other) == [1, 2, 3]
        assert other.pointer != array.pointer


def test_what_pickle_reads_is_checked():
    rebuild = cuwheel.DeviceArray.zeros(2, "int8").__reduce__()[0]
    cases = [
        (
            ((3,), "int32", 0, "device", False, b"short"),
            ValueError,
            "5 bytes are not the elements of an array of shape [3] and type int32",
        ),
        (
            ((-1,), "int32", 0, "device", False, b""),
            ValueError,
            "the size of dimension 0 is -1; sizes must not be negative",
        ),
        (((1,), "int33", 0, "device", False, b""), TypeError, 'there is no element type named "int33"'),
        (((1,), "int8", 0, "nowhere", False, b"x"), ValueError, '"nowhere" is no kind of memory'),
    ]
    for arguments, exception, message in cases:
        with pytest.raises(exception) as caught:
            rebuild(*arguments)
        assert message in str(caught.value)
    # A device that this machine does not have is replaced.
    assert rebuild((1,), "int8", 77, "device", False, b"x").device == cuwheel.Device(0)


@pytest.mark.parametrize("kind", HOST_VISIBLE)
def test_numpy_sees_the_same_memory(kind):
    array = cuwheel.zeros((2, 3), "int32", kind=kind)
    seen = np.asarray(array)
    seen[:, 1] = [5, 6]
    assert contents(array) == [[0, 5, 0], [0, 6, 0]]
    assert seen.__array_interface__["data"] == (array.pointer, False)
    assert np.asarray(array.T[::-1]).tolist() == seen.T[::-1].tolist()
    assert np.array(array).__array_interface__["data"][0] != array.pointer
    assert np.asarray(array, dtype="float64").dtype == "float64"


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "V7"])
def test_numpy_sees_types_that_buffers_have_no_letters_for(dtype):
    array = cuwheel.zeros((3,), dtype, kind="pinned")
    assert array.__array__().dtype == array.dtype
    assert memoryview(array).format == f"{array.itemsize}x"


def test_array_converts_and_copies_only_if_allowed():
    array = cuwheel.asarray([1.5, 2.5], kind="managed")
    assert array.__array__("int64").tolist() == [1, 2]
    assert array.__array__(copy=False).__array_interface__["data"][0] == array.pointer
    assert array.__array__(copy=True).__array_interface__["data"][0] != array.pointer
    with pytest.raises(ValueError, match="copy=False forbids to convert"):
        array.__array__("int64", copy=False)


def test_views_of_numpy_keep_the_memory(driver):
    seen = np.asarray(cuwheel.zeros(4, "uint8", kind="pinned"))
    gc.collect()
    assert driver.allocations() == [("pinned", 4)]
    assert seen.tolist() == [0] * 4
    del seen


class _Buffer(ctypes.Structure):
    """`Py_buffer`."""

    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.py_object),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
        ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
        ("suboffsets", ctypes.POINTER(ctypes.c_ssize_t)),
        ("internal", ctypes.c_void_p),
    ]


SIMPLE, WRITABLE, FORMAT, ND, STRIDES, C, F, ANY = 0, 1, 4, 8, 24, 56, 88, 152


@pytest.mark.parametrize(
    ("make", "flags", "served"),
    [
        (lambda: cuwheel.zeros((2, 3), "int32", kind="pinned"), SIMPLE, True),
        (lambda: cuwheel.zeros((2, 3), "int32", kind="pinned"), WRITABLE | ND, True),
        (lambda: cuwheel.zeros((2, 3), "int32", kind="pinned"), FORMAT | C, True),
        (lambda: cuwheel.zeros((2, 3), "int32", kind="pinned"), F, False),
        (lambda: cuwheel.zeros((2, 3), "int32", kind="pinned", order="F"), F, True),
        (lambda: cuwheel.zeros((2, 3), "int32", kind="pinned", order="F"), C, False),
        (lambda: cuwheel.zeros((2, 3), "int32", kind="pinned", order="F"), ANY, True),
        (lambda: cuwheel.zeros((2, 3), "int32", kind="pinned", order="F"), ND, False),
        (lambda: cuwheel.zeros((2, 3), "int32", kind="pinned")[:, ::2], STRIDES, True),
        (lambda: cuwheel.zeros((2, 3), "int32", kind="pinned")[:, ::2], ANY, False),
        (lambda: cuwheel.zeros((2, 3), "int32", kind="pinned")[:, ::2], SIMPLE, False),
        (lambda: read_only((2, 3), "int32", kind="pinned"), STRIDES, True),
        (lambda: read_only((2, 3), "int32", kind="pinned"), WRITABLE, False),
        (lambda: cuwheel.zeros((0, 3), "int32", kind="pinned"), FORMAT | ND, True),
        (lambda: cuwheel.zeros((), "int32", kind="pinned"), FORMAT | STRIDES, True),
    ],
    ids=range(15),
)
def test_buffers_give_what_is_asked_for(make, flags, served):
    array, view = make(), _Buffer()
    get, release = ctypes.pythonapi.PyObject_GetBuffer, ctypes.pythonapi.PyBuffer_Release
    arguments = (ctypes.py_object(array), ctypes.byref(view), flags)
    if not served:
        with pytest.raises(BufferError):
            get(*arguments)
        return
    assert get(*arguments) == 0
    try:
        assert ((view.buf or 0), view.obj, view.len, view.itemsize) == (array.pointer, array, array.nbytes, 4)
        assert (view.readonly, view.ndim) == (not array.flags.writeable, array.ndim)
        assert view.format == (b"i" if flags & FORMAT else None)
        for asked, numbers, expected in ((ND, view.shape, array.shape), (STRIDES, view.strides, array.strides)):
            assert bool(numbers) == (flags & asked == asked)
            assert not numbers or tuple(numbers[: array.ndim]) == expected
    finally:
        release(ctypes.byref(view))


def test_buffers_wait_for_the_stream(driver):
    stream = cuwheel.Stream()
    array = cuwheel.zeros(4, "int32", kind="managed", stream=stream)
    driver.reset()
    memoryview(array)
    assert driver.calls("cuStreamSynchronize") == 1
