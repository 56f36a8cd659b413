"""Our arrays as other libraries take them: the exchange table, `__dlpack__`, and the CUDA array interface."""

import ctypes
import gc
import sys
import weakref

import cuwheel
import dlpack
import numpy as np
import pytest
from cuwheel import Stream
from device_arrays import KINDS, contents, read_only
from dlpack import CPU, CUDA, CUDA_HOST, CUDA_MANAGED, DTYPES, IS_COPIED, READ_ONLY, DLTensor, Exchange

pytestmark = pytest.mark.usefixtures("driver")

DEVICES = {"device": (CUDA, 0), "pinned": (CUDA_HOST, 0), "mapped": (CUDA_HOST, 0), "managed": (CUDA_MANAGED, 0)}
READ_ONLY_MESSAGE = "the array is read-only, which this form of export cannot say; ask for max_version=(1, 0) or newer"


@pytest.fixture(scope="module")
def exchange():
    return Exchange(cuwheel.DeviceArray)


def test_the_table_is_whole(exchange):
    table = exchange.table
    assert (table.version.major, table.version.minor, table.prev_api) == (1, 3, None)
    assert all(getattr(table, name) for name, _ in dlpack.DLPackExchangeAPI._fields_[2:])
    assert dlpack.name_of(cuwheel.DeviceArray.__dlpack_c_exchange_api__) == "dlpack_exchange_api"
    assert cuwheel.empty(1).__dlpack_c_exchange_api__ is cuwheel.DeviceArray.__dlpack_c_exchange_api__


ARRAYS = {
    "a matrix": lambda: cuwheel.empty((2, 3)),
    "a part": lambda: cuwheel.empty((4, 6))[1:, 2::3],
    "backwards": lambda: cuwheel.empty((4, 6))[::-1, ::-1],
    "transposed": lambda: cuwheel.empty((4, 6)).T,
    "a new axis": lambda: cuwheel.empty((4,))[:, None],
    "many dimensions": lambda: cuwheel.empty((1,) * 30),
}


def described(tensor: DLTensor, array, device=None) -> None:
    """The tensor says what the array is."""
    assert tensor.values() == {
        "data": array.pointer or None,
        "device": device or array.__dlpack_device__(),
        "dtype": DTYPES[str(array.dtype)],
        "shape": array.shape or None,
        "strides": array.element_strides or None,
        "byte_offset": 0,
    }


@pytest.mark.parametrize("make", ARRAYS.values(), ids=ARRAYS)
def test_each_way_describes_the_same(make, exchange, driver):
    array = make()
    driver.reset()
    described(exchange.view(array), array)
    managed = exchange.managed(array)
    described(managed.dl_tensor, array)
    assert (managed.version.major, managed.version.minor, managed.flags) == (1, 3, 0)
    assert driver.report()["calls"] == {}, "nothing here synchronises"
    dlpack.delete(managed)
    versioned = dlpack.take(array.__dlpack__(max_version=(1, 0)))
    described(versioned.dl_tensor, array)
    assert ((versioned.version.major, versioned.version.minor), versioned.flags) == ((1, 3), 0)
    legacy = dlpack.take(array.__dlpack__())
    described(legacy.dl_tensor, array)
    for tensor in (versioned, legacy):
        dlpack.delete(tensor)


@pytest.mark.parametrize("dtype", DTYPES)
def test_types_have_dlpacks_numbers(dtype, exchange):
    array = cuwheel.empty(8, dtype)
    described(exchange.view(array), array)
    assert cuwheel.from_dlpack(dlpack.exchanging(dlpack.tensor_of(array, dtype=DTYPES[dtype]))).dtype == array.dtype


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("device", [0, 1])
def test_places_have_dlpacks_numbers(kind, device, exchange):
    """The number of a device is given for device memory only."""
    array = cuwheel.empty(3, kind=kind, device=device)
    expected = (CUDA, device) if kind == "device" else DEVICES[kind]
    assert array.__dlpack_device__() == expected
    described(exchange.view(array), array, expected)


REFUSED = {
    "a type of no library": (
        lambda: cuwheel.empty(3, "V7"),
        'DLPack has no data type for opaque[7]; view the array as bytes first: array.view("uint8")',
    ),
    "strides between elements": (
        lambda: cuwheel.empty((3, 6), "uint8")[:, :4].view("int32"),
        "DLPack counts strides in elements, and those of this array are no whole number of them; copy the array first",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_dlpack_cannot_describe_is_a_buffer_error_in_each_way(case, exchange):
    make, message = REFUSED[case]
    array = make()
    for export in (
        exchange.view,
        exchange.managed,
        type(array).__dlpack__,
        lambda array: array.__dlpack__(max_version=(1, 3)),
    ):
        with pytest.raises(BufferError) as caught:
            export(array)
        assert str(caught.value) == message


def test_read_only_arrays_are_exported_only_where_that_can_be_said(exchange):
    array = read_only(3)
    for export in (exchange.view, type(array).__dlpack__, lambda array: array.__dlpack__(max_version=(0, 8))):
        with pytest.raises(BufferError) as caught:
            export(array)
        assert str(caught.value) == READ_ONLY_MESSAGE
    for tensor in (exchange.managed(array), dlpack.take(array.__dlpack__(max_version=(1, 0)))):
        assert tensor.flags == READ_ONLY
        dlpack.delete(tensor)
    assert array.__cuda_array_interface__["data"] == (array.pointer, True)


def test_functions_of_the_table_check_what_they_are_given(exchange):
    for function in (exchange.view, exchange.managed):
        with pytest.raises(TypeError, match="the exchange table of DeviceArray was called with list"):
            function([])
    with pytest.raises(TypeError, match="there is no tensor to make an array of"):
        exchange.wrap(None)


def test_tensors_that_are_made_arrays_are_stolen(exchange):
    owner = cuwheel.asarray(np.arange(6.0).reshape(2, 3), kind="managed")
    tensor = dlpack.tensor_of(owner, dtype=(2, 64, 1), flags=READ_ONLY)
    with cuwheel.use_stream(2):
        array = exchange.wrap(tensor.address)
    assert (contents(array), array.kind, array.stream) == ([[0, 1, 2], [3, 4, 5]], "managed", Stream(2))
    assert not array.flags.writeable
    assert tensor.deleted == 0
    del array
    assert tensor.deleted == 1


@pytest.mark.parametrize(
    "fields", [{"version": (2, 0)}, {"dtype": (9, 9, 9)}, {"device": (CPU, 0)}, {"ndim": -1}], ids=str
)
def test_tensors_that_cannot_be_made_arrays_are_stolen_too(fields, exchange):
    """Who deletes the tensor upon failure is not written; it is treated as stolen."""
    owner = cuwheel.empty(3)
    tensor = dlpack.tensor_of(owner, **fields)
    with pytest.raises(BufferError):
        exchange.wrap(tensor.address)
    assert tensor.deleted == 1


@pytest.mark.parametrize("device", [(CUDA, 0), (CUDA, 1), (CUDA_HOST, 0), (CUDA_MANAGED, 0), (CPU, 0)], ids=str)
def test_the_current_stream_is_the_threads(device, exchange):
    assert exchange.current_stream(*device) == 0
    with cuwheel.use_stream(Stream(device=1)) as one, cuwheel.use_stream(Stream()) as zero:
        expected = {(CUDA, 1): one.handle, (CPU, 0): 0}.get(device, zero.handle)
        assert exchange.current_stream(*device) == expected


@pytest.mark.parametrize("device", [(CUDA, 1), (CUDA_HOST, 0), (CUDA_MANAGED, 0)], ids=str)
@pytest.mark.parametrize("shape", [(2, 3), (), (0, 3)], ids=str)
def test_the_allocator_allocates(device, shape, exchange, driver):
    """Only type, dimensions, shape and device of the prototype count."""
    prototype = dlpack.Tensor(
        data=5, shape=shape, strides=None, device=device, byte_offset=7, dtype=(1, 8, 1)
    ).structure.dl_tensor
    stream = Stream(device=device[1])
    with cuwheel.use_stream(stream):
        tensor = exchange.allocate(prototype)
    size = int(np.prod(shape))
    assert [allocated[1] for allocated in driver.allocations()] == ([size] if size else [])
    values = tensor.dl_tensor.values()
    assert (values["device"], values["dtype"], values["shape"] or ()) == (device, (1, 8, 1), shape)
    assert (values["byte_offset"], tensor.version.major, tensor.flags) == (0, 1, 0)
    if device[0] == CUDA and size:
        assert driver.alive()["allocations"][0]["stream"] == stream.handle
    dlpack.delete(tensor)


ALLOCATOR_ERRORS = [
    (
        {"device": (CPU, 0)},
        "BufferError",
        "this library allocates memory of CUDA devices and memory that they see; ask a library for the CPU",
    ),
    ({"device": (10, 0)}, "BufferError", "the tensor is on a ROCm device; move it to a CUDA device first"),
    (
        {"device": (CUDA, 9)},
        "ValueError",
        "there is no device 9: the driver shows 2; devices are counted from 0, and CUDA_VISIBLE_DEVICES can hide some",
    ),
    ({"shape": (-1,)}, "BufferError", "the tensor says that dimension 0 has -1 elements; its producer is at fault"),
    (
        {"dtype": (3, 64, 1)},
        "BufferError",
        "an element type of DLPack code 3, 64 bits and 1 lanes is not supported; convert the array to a type "
        "that NumPy or "
        "ml_dtypes has before passing it on",
    ),
    ({"shape": (2**50,)}, "MemoryError", None),
]


@pytest.mark.parametrize(
    ("fields", "kind", "message"), ALLOCATOR_ERRORS, ids=[str(error[0]) for error in ALLOCATOR_ERRORS]
)
def test_the_allocator_says_once_why_it_failed(fields, kind, message, exchange, driver):
    prototype = dlpack.Tensor(**{"device": (CUDA, 0), "dtype": (1, 8, 1)} | fields).structure.dl_tensor
    errors = []
    assert exchange.allocate(prototype, errors) is None
    [(said_kind, said)] = errors
    assert said_kind == kind
    assert said == message or message is None and said.startswith("out of device memory: 1125899906842624 bytes")


@pytest.mark.parametrize("max_version", [None, (0, 8), (1, 0), (1, 3), (2, 0)], ids=str)
def test_capsules_are_versioned_if_the_consumer_reads_that(max_version):
    capsule = cuwheel.empty(3).__dlpack__(max_version=max_version)
    versioned = max_version is not None and max_version >= (1, 0)
    assert dlpack.name_of(capsule) == ("dltensor_versioned" if versioned else "dltensor")


@pytest.mark.parametrize("arguments", [{}, {"max_version": (1, 3)}], ids=str)
def test_capsules_keep_the_memory_until_they_or_what_was_taken_goes(arguments, driver):
    """quadrants#598: capsules that nobody takes leak; pytorch#56789: those that are taken are deleted twice."""
    capsule = cuwheel.empty(3).__dlpack__(**arguments)
    assert len(driver.allocations()) == 1
    del capsule
    assert driver.allocations() == []
    capsule = cuwheel.empty(3).__dlpack__(**arguments)
    tensor = dlpack.take(capsule)
    del capsule
    assert len(driver.allocations()) == 1
    dlpack.delete(tensor)
    assert driver.allocations() == []


COPIES = [
    # What the array is on, what is asked for, whether that takes a copy, and on which device the result is.
    ("device", None, False, (CUDA, 0)),
    ("device", (CUDA, 0), False, (CUDA, 0)),
    ("device", (CUDA, 1), True, (CUDA, 1)),
    ("device", (CPU, 0), True, (CPU, 0)),
    ("pinned", None, False, (CUDA_HOST, 0)),
    ("pinned", (CPU, 0), False, (CPU, 0)),
    ("pinned", (CUDA, 1), True, (CUDA, 1)),
    ("mapped", (CPU, 0), False, (CPU, 0)),
    ("mapped", (CUDA_HOST, 0), False, (CUDA_HOST, 0)),
    ("managed", (CPU, 0), False, (CPU, 0)),
    ("managed", (CUDA, 0), False, (CUDA, 0)),
    ("managed", (CUDA_MANAGED, 0), False, (CUDA_MANAGED, 0)),
]


@pytest.mark.parametrize("copy", [None, False, True])
@pytest.mark.parametrize(("kind", "wanted", "takes_copy", "device"), COPIES, ids=str)
def test_copies_are_made_where_the_standard_says(kind, wanted, takes_copy, device, copy):
    array = cuwheel.asarray(np.arange(6.0).reshape(2, 3), kind=kind).T
    arguments = {"dl_device": wanted, "copy": copy, "max_version": (1, 3)}
    if takes_copy and copy is False:
        with pytest.raises(BufferError) as caught:
            array.__dlpack__(**arguments)
        assert (
            str(caught.value)
            == "the data would have to be copied to that device, and copy=False forbids it; leave copy out"
        )
        return
    tensor = dlpack.take(array.__dlpack__(**arguments))
    copied = takes_copy or copy is True
    assert tensor.flags == (IS_COPIED if copied else 0)
    assert tensor.dl_tensor.values()["device"] == device
    assert (tensor.dl_tensor.data == array.pointer) == (not copied)
    if device == (CPU, 0):
        seen = np.ctypeslib.as_array(ctypes.cast(tensor.dl_tensor.data, ctypes.POINTER(ctypes.c_double)), (6,))
        assert seen.tolist() == ([0, 3, 1, 4, 2, 5] if copied else [0, 1, 2, 3, 4, 5])
    dlpack.delete(tensor)


@pytest.mark.parametrize("device", [(CUDA_HOST, 0), (10, 0), (CPU, 1), (CUDA, -1), (2**31 - 1, 0)], ids=str)
def test_devices_that_nobody_can_copy_to_are_refused(device):
    with pytest.raises(BufferError) as caught:
        cuwheel.empty(3).__dlpack__(dl_device=device)
    assert str(caught.value) == (
        f"an array cannot be exported to the DLPack device {device}; ask for (2, 0), for (1, 0), which is the "
        f"CPU, or for a "
        "CUDA device"
    )


def test_a_read_only_array_is_writable_in_a_copy():
    tensor = dlpack.take(read_only(3).__dlpack__(copy=True, max_version=(1, 3)))
    assert tensor.flags == IS_COPIED
    dlpack.delete(tensor)


@pytest.mark.parametrize(
    "make",
    [
        lambda: cuwheel.zeros((2, 3)),
        lambda: cuwheel.zeros((4, 6), "int16")[1:, ::2],
        lambda: cuwheel.empty(()),
        lambda: cuwheel.empty((0, 3)),
    ]
    + [
        lambda: cuwheel.zeros(3, "V5"),
        lambda: cuwheel.zeros(3, "bool", kind="managed", device=1),
        lambda: cuwheel.zeros((3, 2), order="F"),
    ],
    ids=range(7),
)
@pytest.mark.parametrize("stream", [0, 1, 2, None])
def test_the_cuda_array_interface(make, stream):
    with cuwheel.use_stream(Stream() if stream is None else stream) as current:
        array = make()
    if array.device.id == 1:
        current = Stream(0)
    assert array.__cuda_array_interface__ == {
        "version": 3,
        "typestr": array.dtype.str,
        "data": (array.pointer, False),
        "shape": array.shape,
        "strides": None if array.flags.c_contiguous else array.strides,
        "stream": max(current.handle, 1),
    }


@pytest.mark.parametrize("dtype", ["bfloat16", "float4_e2m1fn"])
def test_the_cuda_array_interface_has_no_name_for_types_that_numpy_lacks(dtype):
    with pytest.raises(BufferError) as caught:
        _ = cuwheel.empty(4, dtype).__cuda_array_interface__
    assert str(caught.value) == f"{dtype} has no name in the CUDA array interface; use DLPack"


def test_exports_are_of_the_array_and_not_of_the_object(driver):
    """A tensor shares the memory natively: it keeps no Python object, and needs none to be deleted."""
    array = cuwheel.empty(3)
    reference, count = weakref.ref(array), sys.getrefcount(array)
    tensor = Exchange(cuwheel.DeviceArray).managed(array)
    assert sys.getrefcount(array) == count
    del array
    gc.collect()
    assert reference() is None
    assert len(driver.allocations()) == 1
    dlpack.delete(tensor)
