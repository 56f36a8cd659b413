"""Arrays that change hands with NumPy, apache-tvm-ffi and cuda.core, as far as these need no GPU."""

import cuwheel
import numpy as np
import pytest
from cuwheel import Device, Stream
from device_arrays import HOST_VISIBLE, KINDS, contents, read_only

pytestmark = pytest.mark.usefixtures("driver")

tvm_ffi = pytest.importorskip("tvm_ffi")
cuda_core = pytest.importorskip("cuda.core")
StridedMemoryView = pytest.importorskip("cuda.core.utils").StridedMemoryView

NUMPY = tuple(map(int, np.__version__.split(".")[:2]))
VALUES = np.arange(24, dtype="float32").reshape(4, 6)
#: Types that every library here knows.
COMMON = [
    "bool",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float16",
    "float32",
    "float64",
]
PARTS = {
    "all": ...,
    "a part": (slice(1, None), slice(None, None, 2)),
    "backwards": (slice(None, None, -1),),
    "one element": (2, 3),
    "nothing": (slice(0, 0),),
}


@pytest.mark.parametrize("kind", HOST_VISIBLE)
@pytest.mark.parametrize("part", PARTS)
def test_numpy_takes_memory_that_the_host_sees(kind, part):
    array = cuwheel.asarray(VALUES, kind=kind)[PARTS[part]]
    seen = np.from_dlpack(array)
    assert seen.tolist() == VALUES[PARTS[part]].tolist()
    assert seen.size == 0 or seen.__array_interface__["data"][0] == array.pointer
    del array
    assert seen.tolist() == VALUES[PARTS[part]].tolist()


@pytest.mark.skipif(NUMPY < (2, 1), reason="NumPy asks for a device from 2.1 on")
@pytest.mark.parametrize("kind", KINDS)
def test_numpy_gets_a_copy_of_any_memory(kind):
    array = cuwheel.asarray(VALUES, kind=kind)
    assert np.from_dlpack(array, device="cpu").tolist() == VALUES.tolist()
    assert np.from_dlpack(array, device="cpu", copy=True).__array_interface__["data"][0] != array.pointer
    if kind == "device":
        with pytest.raises(BufferError, match="copy=False forbids it"):
            np.from_dlpack(array, device="cpu", copy=False)


@pytest.mark.skipif(NUMPY < (2, 1), reason="NumPy reads flags from 2.1 on")
def test_numpy_honours_read_only():
    assert not np.from_dlpack(read_only(3, kind="pinned")).flags.writeable
    assert np.from_dlpack(cuwheel.zeros(3, kind="pinned")).flags.writeable


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part", PARTS)
def test_tvm_ffi_takes_arrays_and_gives_them_back(kind, part):
    array = cuwheel.asarray(VALUES, kind=kind)[PARTS[part]]
    tensor = tvm_ffi.from_dlpack(array)
    assert (tuple(tensor.shape), tuple(tensor.strides)) == (array.shape, array.element_strides)
    device = {"device": "cuda", "managed": "cuda_managed"}.get(kind, "cuda_host")
    assert (tensor.device.type, tensor.device.index) == (device, 0)
    again = cuwheel.from_dlpack(tensor)
    del array, tensor
    assert (contents(again), again.kind) == (
        VALUES[PARTS[part]].tolist(),
        "pinned" if kind == "mapped" and again.size else again.kind,
    )


@pytest.mark.parametrize(
    "dtype", [*COMMON, "bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn", "float4_e2m1fn_x2"]
)
def test_tvm_ffi_has_the_same_types(dtype):
    array = cuwheel.zeros(8, dtype)
    again = cuwheel.from_dlpack(tvm_ffi.from_dlpack(array))
    assert (again.dtype, again.pointer) == (array.dtype, array.pointer)


def test_functions_of_tvm_ffi_take_arrays_and_return_them(driver):
    """Arguments go through our exchange table, and results come back through it."""
    array = cuwheel.asarray(VALUES, stream=Stream())
    driver.reset()
    echoed = tvm_ffi.get_global_func("testing.echo")(array)
    assert driver.report()["calls"] == {}, "nothing synchronises"
    assert (type(echoed), echoed.pointer) == (cuwheel.DeviceArray, array.pointer)
    del array
    assert contents(echoed) == VALUES.tolist()


def test_host_tensors_of_tvm_ffi_are_copied_to_the_device():
    tensor = tvm_ffi.from_dlpack(VALUES.copy())
    array = cuwheel.asarray(tensor)
    assert (array.kind, contents(array)) == ("device", VALUES.tolist())
    array[0] = tvm_ffi.from_dlpack(np.ones(6, "float32"))
    assert contents(array[0]) == [1] * 6
    with pytest.raises(ValueError, match="the array is in host memory"):
        cuwheel.from_dlpack(tensor)


VIEWS = {
    "any": StridedMemoryView.from_any_interface,
    "DLPack": StridedMemoryView.from_dlpack,
    "CUDA array interface": StridedMemoryView.from_cuda_array_interface,
}


@pytest.mark.parametrize("way", VIEWS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part", PARTS)
def test_strided_memory_views_are_of_arrays_and_arrays_of_them(way, kind, part, driver):
    array = cuwheel.asarray(VALUES, kind=kind)[PARTS[part]]
    # cuda.core asks for the device of the current context where there is no address.
    with driver.context():
        view = VIEWS[way](array, stream_ptr=-1)
    assert (view.ptr, view.shape, view.readonly) == (array.pointer, array.shape, False)
    assert view.strides in (array.element_strides, None)
    if way == "CUDA array interface" and array.size == 0:
        # cuda.core takes no address for an address of the host.
        return
    again = cuwheel.from_dlpack(view)
    assert (again.pointer, again.shape, contents(again)) == (array.pointer, array.shape, contents(array))
    del array, view
    assert again.shape == VALUES[PARTS[part]].shape


@pytest.mark.parametrize("dtype", COMMON)
def test_strided_memory_views_have_the_same_types(dtype):
    array = cuwheel.zeros(3, dtype)
    view = StridedMemoryView.from_any_interface(array, stream_ptr=-1)
    assert view.dtype == array.dtype == cuwheel.from_dlpack(view).dtype


def test_strided_memory_views_are_read_only_both_ways():
    view = StridedMemoryView.from_dlpack(read_only(3), stream_ptr=-1)
    assert view.readonly
    assert not cuwheel.from_dlpack(view).flags.writeable


def test_strided_memory_views_wait_for_the_arrays_stream(driver):
    one, two = Stream(), Stream()
    array = cuwheel.empty(64, "uint8", stream=one)
    driver.fill(array, one)
    view = StridedMemoryView.from_dlpack(array, stream_ptr=two.handle)
    driver.fill(array, two)
    assert driver.violations() == []
    one.wait(two)
    del view


def test_streams_devices_and_buffers_of_cuda_core(driver):
    device = cuda_core.Device(0)
    device.set_current()
    try:
        stream = device.create_stream()
        own = Stream(stream)
        assert (own.handle, own.device) == (int(stream.handle), Device(0))
        assert Device(device) == Device(0)
        array = cuwheel.zeros(16, "uint8", device=device, stream=stream)
        buffer = device.memory_resource.allocate(16, stream=stream)
        taken = cuwheel.from_dlpack(buffer, stream=stream)
        assert taken.nbytes == 16
        taken.view("uint8")[...] = 5
        array[...] = taken.view("uint8")
        assert contents(array) == [5] * 16
        del taken, array, own
        buffer.close()
        stream.close()
    finally:
        driver.call("cuCtxSetCurrent", None)
