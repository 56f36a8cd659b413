"""Faults of other libraries' exchanges that were reported in public, each of which does not happen here.

A test is named after the report that it comes from, or the first of several. Reports on streams are in
`test_exchange_streams.py`, those on the end of the process in `test_device_c_api.py`.
"""

import cuwheel
import dlpack
import ml_dtypes
import numpy as np
import pytest
from cuwheel._devicearray import forget_types
from device_arrays import KINDS, Described, contents, raw, read_only
from dlpack import (
    CPU,
    CUDA,
    CUDA_HOST,
    CUDA_MANAGED,
    IS_COPIED,
    READ_ONLY,
    Exchange,
    Foreign,
    Table,
    exchanging,
    tensor_of,
)

pytestmark = pytest.mark.usefixtures("driver")

#: Each form of tensor that an array can come in.
FORMS = {
    "table": exchanging,
    "versioned": Foreign,
    "legacy": Foreign,
}


def made() -> cuwheel.DeviceArray:
    return cuwheel.asarray(np.arange(12, dtype="float32").reshape(3, 4))


def imported(form: str, owner: cuwheel.DeviceArray, **fields) -> cuwheel.DeviceArray:
    return cuwheel.from_dlpack(FORMS[form](tensor_of(owner, versioned=form != "legacy", **fields)))


each_form = pytest.mark.parametrize("form", FORMS)


# The offset in bytes.


@each_form
@pytest.mark.parametrize("in_pointer", [True, False], ids=["in the pointer", "in byte_offset"])
def test_pytorch_182924_byte_offset_is_added(form, in_pointer):
    """tvm-ffi#578, cutlass#3450, pytorch#193213, cuda-python#2592, cuda-python#2594: ignored, or asserted zero."""
    owner = made()
    part = owner[1:, 2:]
    offset = part.pointer - owner.pointer
    place = {"data": part.pointer} if in_pointer else {"data": owner.pointer, "byte_offset": offset}
    array = imported(form, owner, shape=part.shape, **place)
    assert array.pointer == part.pointer
    assert contents(array) == [[6, 7], [10, 11]]


@pytest.mark.parametrize("key", [(slice(1, None), slice(2, None)), (slice(None, None, -1),), (2, 3)], ids=str)
def test_pytorch_168177_exports_have_no_byte_offset(key):
    """pytorch#170432, iree#21153, flashinfer#193, warp: consumers ignore it."""
    array = made()[key]
    exchange = Exchange(cuwheel.DeviceArray)
    tensors = [
        exchange.managed(array),
        dlpack.take(array.__dlpack__()),
        dlpack.take(array.__dlpack__(max_version=(1, 3))),
    ]
    for tensor in (exchange.view(array), *(tensor.dl_tensor for tensor in tensors)):
        assert (tensor.data, tensor.byte_offset) == (array.pointer, 0)
    for tensor in tensors:
        dlpack.delete(tensor)


# Strides.


@each_form
@pytest.mark.parametrize("version", [(1, 0), (1, 1), (1, 2), (1, 3)], ids=str)
def test_dlpack_178_null_strides_are_c_order(form, version):
    """MatX#1157, arrow#51122: legal before DLPack 1.2, a crash where it was not expected."""
    owner = made()
    array = imported(form, owner, strides=None, version=version)
    assert (array.strides, contents(array)) == (owner.strides, contents(owner))


@pytest.mark.parametrize("shape", [(3,), (0, 3), (1, 1), (2, 3, 4)], ids=str)
def test_dlpack_178_null_strides_are_not_produced(shape):
    tensor = Exchange(cuwheel.DeviceArray).view(cuwheel.empty(shape))
    assert tensor.strides and tensor.shape


@each_form
@pytest.mark.parametrize("stride", [0, 1, 7, -5, 2**62, -(2**63)])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_pytorch_83069_strides_of_dimensions_of_one_element_do_not_matter(form, stride, axis):
    """pytorch#83158, pytorch#99803, pytorch#163282, triton-server#6102, tvm#13121, tvm#14797, tilelang#1968."""
    owner = made()
    shape, strides = list(owner.shape), list(owner.element_strides)
    shape.insert(axis, 1)
    strides.insert(axis, stride)
    array = imported(form, owner, shape=shape, strides=strides)
    assert array.flags.c_contiguous
    assert not array.flags.f_contiguous
    assert array.reshape(12, copy=False).pointer == owner.pointer
    assert contents(array.squeeze()) == contents(owner)


# Arrays without elements.


@each_form
@pytest.mark.parametrize("data", [0, 4096])
@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0, 2)], ids=str)
def test_pytorch_41182_arrays_without_elements_are_taken(form, data, shape):
    """cccl#11605, cuda-python#1396, arrow#38472: a null pointer was refused."""
    array = imported(form, cuwheel.empty(shape, "float32"), data=data)
    assert (array.shape, array.pointer, array.nbytes) == (shape, 0, 0)
    array[...] = 1
    assert contents(array) == np.empty(shape).tolist()
    assert array.copy_to_device().shape == shape


@each_form
def test_pytorch_117273_the_deleter_runs_for_arrays_without_elements(form):
    tensor = tensor_of(cuwheel.empty((0, 3), "float32"), versioned=form != "legacy")
    array = cuwheel.from_dlpack(FORMS[form](tensor))
    assert tensor.deleted == 0
    del array
    assert tensor.deleted == 1


def test_cccl_11605_arrays_without_elements_are_produced_with_a_null_pointer():
    array = made()[:, 4:]
    assert Exchange(cuwheel.DeviceArray).view(array).data is None
    assert array.__cuda_array_interface__["data"] == (0, False)


# Arrays that must not be written.


@pytest.mark.parametrize("form", ["table", "versioned"])
def test_nanobind_1122_read_only_is_honoured(form):
    """MatX#1157, dpctl#1755, array-api#191: the flag was ignored. zarrista#108: writable and shared is unsound."""
    owner = made()
    array = imported(form, owner, flags=READ_ONLY)
    assert not array.flags.writeable
    for write in (
        lambda: array.__setitem__(..., 1),
        lambda: array[1:].copy_from_host(1),
        lambda: array.T.__setitem__(0, owner[:, 0]),
    ):
        with pytest.raises(ValueError, match="the array is read-only"):
            write()
    assert contents(array) == contents(made())


def test_pytorch_188554_a_description_that_cannot_say_read_only_is_refused():
    """Consumers then take the way that can: a table without flags cannot know."""
    array = read_only(3)
    with pytest.raises(BufferError):
        Exchange(cuwheel.DeviceArray).view(array)
    tensor = Exchange(cuwheel.DeviceArray).managed(array)
    assert tensor.flags == READ_ONLY
    dlpack.delete(tensor)


@pytest.mark.parametrize("kind", ["pinned", "managed"])
def test_numpy_28600_a_tensor_without_flags_is_writable(kind):
    owner = cuwheel.zeros(3, "float32", kind=kind)
    assert imported("legacy", owner).flags.writeable


def test_cudnn_frontend_506_read_only_probes_need_no_synchronisation(driver):
    array = read_only(3)
    driver.reset()
    dlpack.delete(Exchange(cuwheel.DeviceArray).managed(array))
    assert driver.report()["calls"] == {}


# The life of tensors.


@each_form
def test_numba_cuda_mlir_the_deleter_runs_after_the_last_use_and_once(form, driver):
    """cutile-python#88: it was called before the launch."""
    owner = made()
    tensor = tensor_of(owner, versioned=form != "legacy")
    array = cuwheel.from_dlpack(FORMS[form](tensor))
    driver.fill(array, array.stream)
    view, copy = array[1:].T, array.copy_to_device()
    del array
    assert tensor.deleted == 0
    driver.fill(view.T, view.stream)
    del view
    assert tensor.deleted == 1
    assert copy.size == 12


@each_form
def test_iree_20849_consumed_tensors_are_deleted(form, driver):
    """TensorRT-LLM#18310, onnxruntime#32732: they never were, until memory ran out."""
    for _ in range(50):
        owner = cuwheel.empty(1 << 26, "uint8")
        tensor = dlpack.take(owner.__dlpack__(max_version=None if form == "legacy" else (1, 3)))
        del owner
        dlpack.delete(tensor)
    assert driver.allocations() == []


def test_quadrants_598_capsules_that_nobody_takes_are_freed(driver):
    for arguments in ({}, {"max_version": (1, 3)}, {"dl_device": (CPU, 0)}, {"copy": True}):
        made().__dlpack__(**arguments)
    assert driver.allocations() == []


def test_pytorch_56789_a_capsule_is_renamed_before_anything_can_fail():
    """What is taken and then refused is deleted once, by who took it."""
    for versioned in (True, False):
        tensor = tensor_of(made(), dtype=(3, 64, 1), versioned=versioned)
        capsule = tensor.capsule()
        producer = type("OneCapsule", (Foreign,), {"__dlpack__": lambda self, **_: self.capsule})(tensor)
        producer.capsule = capsule
        with pytest.raises(BufferError):
            cuwheel.from_dlpack(producer)
        assert dlpack.name_of(capsule).startswith("used_")
        assert tensor.deleted == 1


def test_pytorch_171820_an_export_that_fails_leaks_nothing(driver):
    """pytorch#172611."""
    exchange = Exchange(cuwheel.DeviceArray)
    exports = [exchange.view, type(read_only(3)).__dlpack__, lambda array: array.__dlpack__(dl_device=(77, 0))]
    for array, failing in ((cuwheel.empty(3, "V7"), [*exports, exchange.managed]), (read_only(3), exports)):
        for export in failing:
            with pytest.raises(BufferError):
                export(array)
    del array
    assert driver.allocations() == []


# Devices.


@pytest.mark.parametrize("device", [0, 1])
@pytest.mark.parametrize("given", [0, 1])
@pytest.mark.parametrize("kind", KINDS)
def test_dlpack_70_the_device_is_found_by_the_address(kind, given, device):
    """pytorch#96318, cuda-python#1863, MatX#1240, cuvs#2239, pyamrex#454: managed memory was
    refused, or another kind; pinned memory was refused; the number was always 0, or that of the true device, as CuPy
    gives for managed memory."""
    owner = cuwheel.zeros(3, "float32", kind=kind, device=device)
    device_type, own = owner.__dlpack_device__()
    number = own if kind == "device" else given
    for form in FORMS:
        array = imported(form, owner, device=(device_type, number))
        assert (array.kind, array.device) == ("pinned" if kind == "mapped" else kind, cuwheel.Device(device))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("device", [0, 1])
def test_cuvs_2239_the_device_is_found_by_the_address_for_the_cuda_array_interface_too(kind, device):
    owner = cuwheel.zeros(3, kind=kind, device=device)
    array = cuwheel.from_dlpack(Described(owner))
    assert (array.kind, array.device) == ("pinned" if kind == "mapped" else kind, cuwheel.Device(device))


@each_form
def test_pytorch_136250_memory_that_is_said_to_be_the_cpus_is_refused(form):
    owner = cuwheel.zeros(3, "float32", kind="pinned")
    with pytest.raises(ValueError, match=r"the array is in host memory; copy it to a device with asarray\(\)"):
        imported(form, owner, device=(CPU, 0))


# Data types.


@each_form
def test_jax_4719_truth_values_have_a_code_of_their_own(form):
    """jax#19352, pytorch#67081, pytorch#94463, pytorch#114673, warp#1619, dlpack#75, cupy#7307: bytes, or refused."""
    owner = cuwheel.asarray([True, False, True])
    assert contents(imported(form, owner, dtype=(6, 8, 1))) == [True, False, True]
    assert contents(imported(form, owner, dtype=(1, 8, 1))) == [1, 0, 1]
    assert Exchange(cuwheel.DeviceArray).view(owner).values()["dtype"] == (6, 8, 1)


FLOATS = [name for name in dlpack.DTYPES if name == "bfloat16" or name.startswith("float8")]


@each_form
@pytest.mark.parametrize("name", FLOATS)
def test_dlpack_156_small_floats_are_taken(name, form):
    """cupy#8801, cuda-python#1624, numbast#34, pytorch#150691: refused, or a crash."""
    values = np.array([1, 2, 4], getattr(ml_dtypes, name))
    array = imported(form, cuwheel.asarray(values), dtype=dlpack.DTYPES[name])
    assert array.dtype == values.dtype
    assert array.copy_to_host().tobytes() == values.tobytes()


@each_form
def test_pytorch_148791_packed_floats_are_taken_with_lanes_and_without(form):
    """dlpack#158, torchao#2939, torchao#3123, cudnn-frontend#1035: the order of halves, and lanes left out."""
    owner = cuwheel.asarray(np.array([0x21, 0x43, 0x65], "uint8"))
    pairs = imported(form, owner, dtype=(17, 4, 2))
    assert (str(pairs.dtype), pairs.shape, pairs.itemsize, raw(pairs)) == ("float4_e2m1fn_x2", (3,), 1, b"\x21\x43\x65")
    packed = imported(form, owner, dtype=(17, 4, 1), shape=(6,))
    assert (str(packed.dtype), packed.shape, packed.nbytes) == ("float4_e2m1fn", (6,), 3)
    assert contents(packed.view("uint8")) == [0x21, 0x43, 0x65]


@each_form
@pytest.mark.parametrize(
    "dtype",
    [
        (5, 32, 1),
        (2, 32, 2),
        (2, 32, 4),
        (2, 32, 0),
        (2, 128, 1),
        (0, 4, 1),
        (1, 1, 1),
        (6, 1, 1),
        (4, 32, 1),
        (3, 64, 1),
        (18, 8, 1),
    ]
    + [(255, 255, 65535), (2, 0, 1), (17, 4, 4), (17, 8, 1)],
    ids=str,
)
def test_cupy_8801_other_types_are_refused_and_crash_nothing(form, dtype):
    """complex32, lanes, bits: a closed table."""
    code, bits, lanes = dtype
    with pytest.raises(BufferError) as caught:
        imported(form, made(), dtype=dtype)
    assert str(caught.value).startswith(
        f"an element type of DLPack code {code}, {bits} bits and {lanes} lanes is not supported; "
    )


def test_numba_cuda_824_types_that_dlpack_lacks_come_by_the_cuda_array_interface():
    """numba-cuda#825: datetimes."""

    class Datetimes(Described):
        def __dlpack_device__(self):
            return CUDA, 0

        def __dlpack__(self, **_):
            raise BufferError("DLPack has no datetimes")

    values = np.array(["2024-01-01", "NaT", "1969-07-20"], "M8[s]")
    owner = cuwheel.asarray(values)
    array = cuwheel.from_dlpack(Datetimes(owner, typestr="<M8[s]"))
    assert array.copy_to_host().view("M8[s]").tolist() == values.tolist()


# Versions, and what is asked for.


@pytest.mark.parametrize("asked", ["knows max_version", "does not"])
@pytest.mark.parametrize("versioned", [True, False])
def test_cutlass_3359_the_name_of_the_capsule_tells_what_is_in_it(asked, versioned):
    """cuda-python#285, cuda-python#292, array-api#602, DALI#6307: a producer may ignore max_version, either way."""
    tensor = tensor_of(made(), versioned=versioned)
    producer = Foreign(tensor)
    if asked == "does not":
        producer.__class__ = type("Old", (Foreign,), {"__dlpack__": lambda self, *, stream: self.tensor.capsule()})
    assert contents(cuwheel.from_dlpack(producer)) == contents(made())
    assert tensor.deleted == 1


def test_cupynumeric_1239_only_what_is_needed_is_asked_for():
    """dl_device and copy are TypeErrors to many."""
    producer = Foreign(tensor_of(made()))
    cuwheel.from_dlpack(producer, device=0, copy=True)
    assert producer.requests == [{"stream": 1, "max_version": (1, 3)}]


@pytest.mark.parametrize("form", ["table", "versioned"])
def test_copies_that_the_producer_made_are_taken(form):
    assert imported(form, made(), flags=IS_COPIED).flags.writeable


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("wanted", [(CPU, 0), (CUDA, 0), (CUDA, 1)], ids=str)
def test_copies_are_made_to_any_device_that_can_be_copied_to(kind, wanted):
    """CuPy copies to the CPU only, cuda.core and tvm-ffi never."""
    array = cuwheel.asarray(np.arange(3.0), kind=kind)
    tensor = dlpack.take(array.__dlpack__(dl_device=wanted, copy=True, max_version=(1, 3)))
    assert tensor.dl_tensor.values()["device"] == wanted
    assert tensor.flags == IS_COPIED
    dlpack.delete(tensor)


# What torch's table does not tell.


class Lazy:
    """As torch's tensors: the table gives the memory, which is not always what the tensor shows."""

    conjugated = negated = False
    requires_grad = False

    def is_conj(self):
        return self.conjugated

    def is_neg(self):
        return self.negated

    def __dlpack_device__(self):
        return CUDA, 0

    def __dlpack__(self, **_):
        if self.requires_grad or self.conjugated or self.negated:
            raise BufferError("Can't export tensors like this one")
        return self.tensor.capsule()


LAZY = Table(
    managed_from_object=dlpack.managed, view_from_object=dlpack.view, current_work_stream=dlpack.stream(0)
).type("Lazy", (Lazy,))


def lazy(owner, dtype, shape, strides, **attributes):
    array = LAZY()
    array.tensor = tensor_of(owner, dtype=dtype, shape=shape, strides=strides)
    vars(array).update(attributes)
    return array


@pytest.mark.parametrize(
    ("dtype", "shape", "strides", "attribute"),
    [
        ((5, 64, 1), (3, 2), (2, 1), "conjugated"),
        ((5, 64, 1), (3, 2), (2, 1), "negated"),
        ((2, 32, 1), (3, 2), (4, 2), "negated"),
        ((2, 32, 1), (1,), (1,), "negated"),
        ((2, 32, 1), (), (), "negated"),
    ],
    ids=str,
)
def test_flydsl_1099_lazily_conjugated_and_negated_tensors_are_refused(dtype, shape, strides, attribute):
    """vllm#56161, pytorch#169804: the table exports them as the memory that they are made of."""
    tensor = lazy(made(), dtype, shape, strides, **{attribute: True})
    with pytest.raises(BufferError) as caught:
        cuwheel.from_dlpack(tensor)
    remedy = {"conjugated": "resolve_conj", "negated": "resolve_neg"}[attribute]
    assert (
        str(caught.value)
        == f"the tensor is {attribute} lazily, and its memory holds other values; call .{remedy}() first"
    )
    assert tensor.tensor.deleted == 1
    resolved = lazy(made(), dtype, shape, strides)
    assert cuwheel.from_dlpack(resolved).shape == shape


def test_flydsl_1099_tensors_that_require_a_gradient_are_taken():
    """FlyDSL#409: no gradient flows through here, and the memory is the tensor's."""
    tensor = lazy(made(), (2, 32, 1), (3, 4), (4, 1), requires_grad=True)
    assert contents(cuwheel.from_dlpack(tensor)) == contents(made())


def test_tvm_ffi_644_an_add_on_may_bring_a_table_later():
    """And a faulty table can be switched off, see `test_tables_can_be_switched_off`."""
    cls = type("Tensor", (Foreign,), {})
    assert cuwheel.from_dlpack(cls(tensor_of(made()))).shape == (3, 4)
    table = Table(managed_from_object=dlpack.managed, view_from_object=dlpack.view)
    cls.__dlpack_c_exchange_api__ = dlpack.capsule(table.address, dlpack.TABLE)
    forget_types()
    late = cls(tensor_of(made()))
    assert cuwheel.from_dlpack(late).shape == (3, 4)
    assert late.requests == []


def test_managed_memory_is_exported_with_the_number_that_dlpack_has_for_it():
    for kind, device_type in (("pinned", CUDA_HOST), ("mapped", CUDA_HOST), ("managed", CUDA_MANAGED)):
        assert cuwheel.empty(3, kind=kind, device=1).__dlpack_device__() == (device_type, 0)
