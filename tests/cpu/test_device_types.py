"""Data types, devices and streams of device arrays: what they are taken from, and what they are shown as."""

import ctypes
import pickle
import sys
import threading
from types import SimpleNamespace

import cuwheel
import ml_dtypes
import numpy as np
import pytest
from cuwheel import Device, DType, Stream
from device_arrays import contents

pytestmark = pytest.mark.usefixtures("driver")

NUMPYS = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
NUMPYS += ["float16", "float32", "float64", "complex64", "complex128"]
ADDED = ["bfloat16", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz"]
ADDED += ["float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"]
#: The bits of each type that is packed, or that nothing else has.
OWN = {"float6_e2m3fn": 6, "float6_e3m2fn": 6, "float4_e2m1fn": 4, "float4_e2m1fn_x2": 8}
OPAQUE = ["M8[s]", "m8[ms]", "S5", "U3", "V7", [("a", "i4"), ("b", "f8", 2)]]


def numpy_dtype(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, name))


@pytest.mark.parametrize("name", [*NUMPYS, *ADDED])
def test_types_of_numpy_and_ml_dtypes(name):
    peer = numpy_dtype(name)
    for spelling in (name, peer, peer.type, DType(name)):
        assert DType(spelling) == DType(name)
        assert cuwheel.empty(2, spelling).dtype == peer
    dtype = DType(name)
    assert (dtype.name, str(dtype), repr(dtype)) == (name, name, f"DType('{name}')")
    assert (dtype.itemsize, dtype.bits, dtype.numpy) == (peer.itemsize, peer.itemsize * 8, peer)
    assert type(cuwheel.empty(2, name).dtype) is type(peer)
    values = np.arange(8).reshape(2, 4).astype(peer)
    array = cuwheel.asarray(values)
    assert array.dtype == peer
    assert array[:, 1::2].copy_to_host().tobytes() == values[:, 1::2].tobytes()
    assert array.copy_to_device().copy_to_host(np.empty((2, 4), peer)).tobytes() == values.tobytes()


@pytest.mark.parametrize("name", OWN)
def test_types_of_its_own(name):
    dtype, array = DType(name), cuwheel.empty(8, name)
    assert array.dtype == dtype == pickle.loads(pickle.dumps(dtype))
    assert (dtype.bits, array.nbytes, array.size) == (OWN[name], OWN[name], 8)
    assert dtype.itemsize == array.itemsize == (1 if OWN[name] == 8 else None)
    assert hash(DType(name)) == hash(dtype)
    assert array.element_strides == (1,)
    bytes_of = cuwheel.asarray(np.arange(array.nbytes, dtype="uint8"))
    assert contents(bytes_of.view(name).view("uint8")) == contents(bytes_of)


@pytest.mark.parametrize("dtype", OPAQUE, ids=str)
def test_types_without_meaning_here_are_bytes(dtype):
    peer = np.dtype(dtype)
    values = np.frombuffer(bytes(range(peer.itemsize * 4)), peer)
    array = cuwheel.asarray(values)
    assert array.dtype == np.dtype(f"V{peer.itemsize}")
    assert repr(array) == f"DeviceArray(shape=(4,), dtype=opaque[{peer.itemsize}], device=cuda:0, kind=device)"
    assert array[::-1].copy_to_host().view(peer).tobytes() == values[::-1].tobytes()
    assert DType(dtype) == DType(f"opaque[{peer.itemsize}]") == DType(peer)


@pytest.mark.parametrize(
    ("spelling", "name"),
    [(bool, "bool"), (int, "int64"), (float, "float64"), (complex, "complex128"), ("<i2", "int16"), ("f8", "float64")]
    + [("|b1", "bool"), (np.float16, "float16"), (np.dtype("u4"), "uint32"), ("half", "float16"), (None, "float64")],
    ids=str,
)
def test_other_spellings(spelling, name):
    assert DType(spelling) == DType(name)


def test_types_of_torch_are_known_by_name():
    torch_dtype = type("dtype", (), {"__module__": "torch", "__str__": lambda self: "torch.bfloat16"})
    assert DType(torch_dtype()) == DType("bfloat16")
    torch_dtype.__str__ = lambda self: "torch.qint8"
    with pytest.raises(TypeError, match='there is no element type named "qint8"'):
        DType(torch_dtype())


def test_python_numbers_become_any_integer_that_holds_them():
    assert contents(cuwheel.asarray([1, 2], "uint8")) == [1, 2]
    assert contents(cuwheel.asarray([1, 2], "bfloat16")) == [1, 2]
    assert contents(cuwheel.asarray(1.1, "float32")) == np.float32(1.1)


def test_devices(driver):
    assert Device.count() == 2
    device = Device(1)
    assert (device.id, str(device), repr(device)) == (1, "cuda:1", "Device('cuda:1')")
    assert device == Device("cuda:1") == Device(device) == pickle.loads(pickle.dumps(device)) != Device()
    assert len({Device(1), Device(1), Device("cuda")}) == 2
    assert Device() == Device("cuda") == Device("cuda:0")
    assert device.name
    assert device.compute_capability == (9, 0)
    free, total = device.memory_info()
    array = cuwheel.empty(1 << 20, "uint8", device=1)
    assert device.memory_info() == (free - array.nbytes, total)


@pytest.mark.parametrize(
    "device",
    [
        1,
        np.int32(1),
        "cuda:1",
        SimpleNamespace(type="cuda", index=1),
        SimpleNamespace(id=1),
        SimpleNamespace(device_id=1),
    ],
    ids=["number", "NumPy's number", "text", "torch", "CuPy", "cuda.core"],
)
def test_devices_of_other_libraries(device):
    assert Device(device) == Device(1)
    assert cuwheel.empty(1, device=device).device == Device(1)


def test_a_device_of_torch_without_number_is_the_first_and_its_cpu_is_none():
    assert Device(SimpleNamespace(type="cuda", index=None)) == Device(0)
    with pytest.raises(ValueError, match='"cpu" is no CUDA device'):
        Device(SimpleNamespace(type="cpu", index=0))


def test_the_device_of_the_current_context_is_the_default(driver):
    with driver.context(1):
        assert cuwheel.empty(1).device == Device(1)
        assert Stream().device == cuwheel.current_stream().device == Device(1)
    assert cuwheel.empty(1).device == Device(0)


class Protocol:
    def __init__(self, handle):
        self.handle_of_it = handle

    def __cuda_stream__(self):
        return 0, self.handle_of_it


@pytest.mark.parametrize(
    "wrap",
    [
        int,
        np.uint64,
        Protocol,
        lambda handle: SimpleNamespace(__cuda_stream__=(0, handle)),
        lambda handle: SimpleNamespace(cuda_stream=handle),
        lambda handle: SimpleNamespace(ptr=handle),
        lambda handle: SimpleNamespace(handle=ctypes.c_void_p(handle)),
        lambda handle: SimpleNamespace(handle=handle),
        lambda handle: Stream(handle),
    ],
    ids=["number", "NumPy", "protocol", "pair", "torch", "CuPy", "numba", "cuda.core", "ours"],
)
@pytest.mark.parametrize("handle", [0, 1, 2, None])
def test_streams_of_other_libraries(wrap, handle):
    own = Stream()
    number = own.handle if handle is None else handle
    stream = Stream(wrap(number))
    assert stream.handle == number
    assert (stream == own) == (handle is None)
    assert cuwheel.empty(2, stream=wrap(number)).stream == stream


def test_streams():
    stream = Stream()
    assert stream == Stream(stream)
    assert hash(stream) == hash(Stream(stream.handle))
    assert stream != Stream()
    assert stream != Stream(stream.handle, device=1)
    assert Stream(0) == Stream(1) != Stream(2)
    assert hash(Stream(0)) == hash(Stream(1))
    assert (Stream(0) == 0) is False
    assert stream.__cuda_stream__() == (0, stream.handle)
    assert repr(stream) == f"<Stream {stream.handle:#x} of cuda:0>"
    assert [repr(Stream(handle, device=1)) for handle in (0, 2)] == [
        "<Stream legacy default of cuda:1>",
        "<Stream per-thread default of cuda:1>",
    ]


def test_streams_live_as_long_as_what_uses_them(driver):
    array = cuwheel.empty(3, stream=Stream())
    assert driver.alive()["streams"] == 1
    view = array[1:]
    del array
    assert driver.alive()["streams"] == 1
    del view
    assert driver.alive()["streams"] == 0


def test_a_stream_object_of_another_library_is_kept(driver):
    owner = Protocol(2)
    array = cuwheel.empty(3, stream=owner)
    count = sys.getrefcount(owner)
    del array
    assert sys.getrefcount(owner) == count - 1


def test_a_stream_waits_for_another(driver):
    one, two = Stream(), Stream()
    array = cuwheel.zeros(4, "uint8", stream=one)
    two.wait(one)
    cuwheel.from_dlpack(array).copy_to_host(stream=two)
    one.wait(two)
    assert driver.calls("cuStreamWaitEvent") >= 2
    driver.reset()
    one.wait(one)
    assert driver.report()["calls"] == {}
    one.synchronize()
    assert driver.calls("cuStreamSynchronize") == 1


def test_the_current_stream_is_the_threads_and_the_devices():
    one, two = Stream(), Stream(device=1)
    seen = []
    with cuwheel.use_stream(one) as entered:
        assert entered == one == cuwheel.current_stream() == cuwheel.current_stream(0)
        assert cuwheel.current_stream(1) == Stream(0, device=1)
        with cuwheel.use_stream(two):
            assert cuwheel.current_stream(1) == two
            assert cuwheel.current_stream() == one
            with cuwheel.use_stream(2):
                assert cuwheel.current_stream() == Stream(2)
            assert cuwheel.empty(1).stream == one
            assert cuwheel.empty(1, device=1).stream == two
        thread = threading.Thread(target=lambda: seen.append(cuwheel.current_stream()))
        thread.start()
        thread.join()
    assert seen == [Stream(0)] == [cuwheel.current_stream()]
    assert cuwheel.current_stream(1) == Stream(0, device=1)


def test_contexts_can_be_entered_again_and_end_with_errors():
    context = cuwheel.use_stream(2)
    with context, context:
        assert cuwheel.current_stream().handle == 2
    with pytest.raises(ZeroDivisionError), context:
        raise ZeroDivisionError
    assert cuwheel.current_stream() == Stream(0)


def test_use_stream_takes_the_streams_of_other_libraries_and_a_device():
    stream = Stream(device=1)
    with cuwheel.use_stream(Protocol(stream.handle), device=1):
        assert cuwheel.current_stream(1) == stream
