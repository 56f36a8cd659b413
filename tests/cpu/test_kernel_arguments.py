"""Values of Python as parameters of kernels: what each becomes, and what is refused in which words."""

import struct
import sys
import weakref

import cuwheel
import kernels
import numpy as np
import pytest

HUGE = 10**400

pytestmark = pytest.mark.usefixtures("first_and_later_launches")


class Described:
    """An array of another library, by the CUDA array interface."""

    def __init__(self, owner, read_only=False):
        interface = owner.__cuda_array_interface__
        self.owner = owner
        self.__cuda_array_interface__ = {**interface, "data": (interface["data"][0], read_only)}


class Exporting:
    """An array of another library, by DLPack's method."""

    def __init__(self, owner):
        self.owner = owner

    def __dlpack_device__(self):
        return self.owner.__dlpack_device__()

    def __dlpack__(self, **arguments):
        return self.owner.__dlpack__(**arguments)


def packed(driver, kernel, *arguments):
    kernel[1, 1](*arguments)
    return kernels.parameters(driver)


NUMBERS = [
    ("bool", True, b"\x01"),
    ("bool", np.False_, b"\x00"),
    ("int8", -128, b"\x80"),
    ("int16", np.int8(-2), b"\xfe\xff"),
    ("int32", -5, struct.pack("<i", -5)),
    ("int32", True, struct.pack("<i", 1)),
    ("int32", np.bool_(True), struct.pack("<i", 1)),
    ("int64", -(2**63), struct.pack("<q", -(2**63))),
    ("uint8", 255, b"\xff"),
    ("uint16", np.uint64(65535), b"\xff\xff"),
    ("uint32", 2**32 - 1, b"\xff" * 4),
    ("uint64", 2**64 - 1, b"\xff" * 8),
    ("uint64", np.uint64(2**64 - 1), b"\xff" * 8),
    ("float32", 0.1, struct.pack("<f", 0.1)),
    ("float32", 2**24, struct.pack("<f", 2.0**24)),
    ("float32", np.float16(0.5), struct.pack("<f", 0.5)),
    ("float32", np.int64(3), struct.pack("<f", 3)),
    ("float32", float("inf"), struct.pack("<f", float("inf"))),
    ("float64", -1.0, struct.pack("<d", -1.0)),
    ("float64", 2**63, struct.pack("<d", 2.0**63)),
    ("float64", np.float32(0.25), struct.pack("<d", 0.25)),
    ("float16", 65504, struct.pack("<e", 65504)),
    ("float16", 1e-8, struct.pack("<e", 1e-8)),
    ("bfloat16", 1.0, b"\x80\x3f"),
    ("bfloat16", 256, b"\x80\x43"),
    ("complex64", 1 + 2j, struct.pack("<ff", 1, 2)),
    ("complex64", 3, struct.pack("<ff", 3, 0)),
    ("complex128", np.complex64(1j), struct.pack("<dd", 0, 1)),
    ("complex128", 0.5, struct.pack("<dd", 0.5, 0)),
]


@pytest.mark.parametrize(("kind", "value", "expected"), NUMBERS, ids=[f"{kind}-{value!r}" for kind, value, _ in NUMBERS])
def test_a_number_becomes_the_bytes_of_its_parameter(driver, kind, value, expected):
    # The bytes around it show where it lies.
    before, result, after = packed(driver, kernels.typed("uint8", kind, "uint8"), 255, value, 255)
    assert (before, result, after) == (b"\xff", expected, b"\xff")


def test_every_float16_is_what_numpy_has(driver):
    kernel = kernels.typed(*["float16"] * 200)
    values = np.arange(0, 2**16, 7, dtype="uint16").view("float16")
    wide = values[np.isfinite(values)].astype("float64")
    # Values between two neighbours, ties among them, and what is rounded to zero and to the largest.
    more = np.concatenate([[5.9e-8, 2.98e-8, 2.99e-8, 65519.9, 1e-320], wide, (wide[1:] + wide[:-1]) / 2, np.zeros(199)])
    for first in range(0, len(more) - 199, 200):
        values = more[first : first + 200]
        assert b"".join(packed(driver, kernel, *values.tolist())) == values.astype("float16").tobytes()


def test_bfloat16_is_rounded_as_ml_dtypes_does(driver):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    kernel = kernels.typed("bfloat16")
    for value in [1.00390625, 1.01171875, 1.005, 3.14159, -2.5, 1e-40, 3.3e38, float("inf")]:
        assert packed(driver, kernel, value) == [ml_dtypes.bfloat16(value).tobytes()], value


REFUSED = [
    ("bool", 1, TypeError, "1 is int, and the parameter is bool; pass bool(x) if that is meant"),
    ("int8", 128, OverflowError, "128 does not fit int8, which holds -128 to 127"),
    ("int32", 2**40, OverflowError, "1099511627776 does not fit int32, which holds -2147483648 to 2147483647"),
    ("uint32", -1, OverflowError, "-1 does not fit uint32, which holds 0 to 4294967295"),
    ("uint64", -1, OverflowError, "-1 does not fit uint64, which holds 0 to 18446744073709551615"),
    ("int64", 2**63, OverflowError, "9223372036854775808 does not fit int64, which holds -9223372036854775808 to 9223372036854775807"),
    ("uint64", HUGE, OverflowError, "1000000000000000000000000000000000000000… does not fit uint64, which holds 0 to 18446744073709551615"),
    ("int32", 1.0, TypeError, "1.0 is float, and the parameter is int32; pass int(x) if that is meant"),
    ("int32", np.float32(1), TypeError, "np.float32(1.0) is numpy.float32, and the parameter is int32; pass int(x) if that is meant"),
    ("int32", 1j, TypeError, "1j is complex, and the parameter is int32; pass x.real if that is meant"),
    ("float32", 1j, TypeError, "1j is complex, and the parameter is float32; pass x.real if that is meant"),
    ("float32", 1e39, OverflowError, "1e+39 does not fit float32"),
    ("float32", 2**24 + 1, OverflowError, "16777217 is no number that float32 has; pass float(x) to have it rounded"),
    ("float64", 2**53 + 1, OverflowError, "9007199254740993 is no number that float64 has; pass float(x) to have it rounded"),
    ("float64", HUGE, OverflowError, "1000000000000000000000000000000000000000… does not fit float64"),
    ("float16", 65536.0, OverflowError, "65536.0 does not fit float16"),
    ("float16", 2049, OverflowError, "2049 is no number that float16 has; pass float(x) to have it rounded"),
    ("bfloat16", 257, OverflowError, "257 is no number that bfloat16 has; pass float(x) to have it rounded"),
    ("complex64", 1e39, OverflowError, "1e+39 does not fit complex64"),
    ("complex64", 2**24 + 1, OverflowError, "16777217 is no number that complex64 has; pass float(x) to have it rounded"),
    ("float32", "1", TypeError, "str is no number, and the parameter is float32"),
    ("int32", None, TypeError, "NoneType is no number, and the parameter is int32"),
    ("int32", np.str_("1"), TypeError, "numpy.str_ is no number, and the parameter is int32"),
    ("int32", np.zeros(1), TypeError, "numpy.ndarray is no number, and the parameter is int32"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "value", "error", "message"), REFUSED, ids=[f"{r[0]}-{i}" for i, r in enumerate(REFUSED)])
def test_what_is_not_exactly_the_parameter_is_refused(driver, kind, value, error, message):
    named = kernels.module(kernels.entry("k", kind)).kernel("k", [f"{kind} n"])
    with pytest.raises(error) as raised:
        named[1, 1](value)
    if np.__version__ < "2":
        message = message.replace("np.float32(1.0)", "1.0")
    assert str(raised.value) == f'argument 0 (n) of kernel "k": {message}'
    assert driver.report()["launch_count"] == 0


UNTYPED = [
    (".u8", True, b"\x01"),
    (".u8", 200, b"\xc8"),
    (".u8", -1, b"\xff"),
    (".u16", 0.5, struct.pack("<e", 0.5)),
    (".u32", -1, b"\xff" * 4),
    (".u32", 2**32 - 1, b"\xff" * 4),
    (".u32", 0.5, struct.pack("<f", 0.5)),
    (".u64", -2, struct.pack("<q", -2)),
    (".u64", 2**64 - 1, b"\xff" * 8),
    (".u64", 0.5, struct.pack("<d", 0.5)),
    (".u64", 1 + 2j, struct.pack("<ff", 1, 2)),
    ("complex128", 1 + 2j, struct.pack("<dd", 1, 2)),
    (".u16", np.float16(2), struct.pack("<e", 2)),
    (".u32", np.uint32(7), struct.pack("<I", 7)),
    (".u64", np.float64(0.1), struct.pack("<d", 0.1)),
]


@pytest.mark.parametrize(("kind", "value", "expected"), UNTYPED, ids=[f"{k}-{v!r}" for k, v, _ in UNTYPED])
def test_without_a_signature_a_number_has_the_size_of_its_parameter(driver, kind, value, expected):
    assert packed(driver, kernels.untyped(kind), value) == [expected]


UNTYPED_REFUSED = [
    (".u8", 256, OverflowError, "256 does not fit an integer of 1 bytes, signed or unsigned"),
    (".u32", 2**32, OverflowError, "4294967296 does not fit an integer of 4 bytes, signed or unsigned"),
    (".u32", -(2**31) - 1, OverflowError, "-2147483649 does not fit an integer of 4 bytes, signed or unsigned"),
    (".u64", HUGE, OverflowError, "1000000000000000000000000000000000000000… does not fit an integer of 8 bytes, signed or unsigned"),
    (".u8", 0.5, TypeError, "float is not passed in 1 bytes; give the kernel a signature, or pass a NumPy scalar of that size"),
    ("view[float32, 1]", 1, TypeError, "int is not passed in 24 bytes; give the kernel a signature, or pass a NumPy scalar of that size"),
    (".u32", np.int64(1), TypeError, "numpy.int64 takes 8 bytes, and the parameter 4; pass a scalar of the kernel's type"),
    (".u32", 1e39, OverflowError, "1e+39 does not fit float32"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "value", "error", "message"), UNTYPED_REFUSED)
def test_without_a_signature_the_rest_is_refused(driver, kind, value, error, message):
    with pytest.raises(error) as raised:
        kernels.untyped(kind)[1, 1](value)
    assert str(raised.value) == f'argument 0 of kernel "k": {message}'


@pytest.mark.parametrize("wrap", [lambda array: array, Described, Exporting])
@pytest.mark.parametrize("kind", ["float32*", "const float32*", "void*", None])
def test_an_array_becomes_its_address(driver, wrap, kind):
    kernel = kernels.typed(kind) if kind else kernels.untyped(".u64")
    array = cuwheel.zeros((4, 6), "float32")[1:, 2:]
    assert packed(driver, kernel, wrap(array)) == [array.pointer.to_bytes(8, "little")]


@pytest.mark.parametrize("wrap", [lambda array: array, Described, Exporting])
def test_a_view_becomes_address_shape_and_strides(driver, wrap):
    array = cuwheel.zeros((4, 6), "float32")[::2, 5:1:-1]
    kernel = kernels.typed("int8", "view[float32, 2]")
    assert packed(driver, kernel, 1, wrap(array))[1] == struct.pack("<Q4q", array.pointer, 2, 4, 12, -1)
    scalar = cuwheel.zeros((), "int64")
    assert packed(driver, kernels.typed("view[const int64, 0]"), wrap(scalar)) == [scalar.pointer.to_bytes(8, "little")]


def test_an_array_without_elements_has_no_address(driver):
    assert packed(driver, kernels.typed("float32*"), cuwheel.empty(0, "float32")) == [bytes(8)]


def test_memory_that_a_device_sees_is_memory_for_kernels(driver):
    kernel = kernels.typed("float32*", "float32*", "float32*", "float32*")
    arrays = [cuwheel.zeros(4, "float32", kind=kind) for kind in ("pinned", "device", "mapped", "managed")]
    assert packed(driver, kernel, *arrays) == [array.pointer.to_bytes(8, "little") for array in arrays]


def array_refusals():
    x = cuwheel.zeros(4, "float32")
    read_only = cuwheel.from_dlpack(Described(x, read_only=True))
    return [
        (("float32*",), (cuwheel.zeros(4, "float64"),), TypeError, "the array has elements of type float64, and the parameter is float32*"),
        (("view[float32, 2]",), (x,), TypeError, "a 1-dimensional array of float32 was given, and the parameter is view[float32, 2]"),
        (("view[int32, 1]",), (x,), TypeError, "a 1-dimensional array of float32 was given, and the parameter is view[int32, 1]"),
        (("int32",), (x,), TypeError, "an array is no number, and the parameter is int32"),
        (("float32*",), (1,), TypeError, "int is no array, and the parameter is float32*"),
        (("float32*",), (None,), TypeError, "NoneType is no array, and the parameter is float32*"),
        (("float32*",), (read_only,), ValueError, 'the array is read-only, and the kernel may write to it; if it does not, say so in the signature: "const float32*"'),
        (("view[float32, 1]",), (read_only,), ValueError, 'the array is read-only, and the kernel may write to it; if it does not, say so in the signature: "view[const float32, 1]"'),
        (("void*",), (Described(x, read_only=True),), ValueError, 'the array is read-only, and the kernel may write to it; if it does not, say so in the signature: "const void*"'),
    ]  # fmt: skip


@pytest.mark.parametrize("case", range(9))
def test_an_array_that_is_not_what_the_parameter_says_is_refused(driver, case):
    kinds, arguments, error, message = array_refusals()[case]
    with pytest.raises(error) as raised:
        kernels.typed(*kinds)[1, 1](*arguments)
    assert str(raised.value) == f'argument 0 of kernel "k": {message}'


def test_without_a_signature_arrays_need_eight_bytes_and_must_be_writable(driver):
    x = cuwheel.zeros(4, "float32")
    with pytest.raises(TypeError, match=r"takes 8 bytes, and the parameter takes 24; give the kernel a signature"):
        kernels.untyped("view[float32, 1]")[1, 1](x)
    with pytest.raises(ValueError, match=r"read-only.*const void\*"):
        kernels.untyped(".u64")[1, 1](Described(x, read_only=True))


def test_a_kernel_that_only_reads_takes_read_only_arrays(driver):
    x = cuwheel.zeros(4, "float32")
    for kind in ("const float32*", "const void*", "view[const float32, 1]"):
        kernels.typed(kind)[1, 1](Described(x, read_only=True))
    assert driver.report()["launch_count"] == 3


def test_an_array_that_its_producer_refuses_says_which_argument_it_was(driver):
    with pytest.raises(ValueError, match="host memory") as raised:
        kernels.module(kernels.entry("k", "float32*")).kernel("k", ["float32* x"])[1, 1](np.zeros(3, "float32"))
    assert raised.value.__notes__ == ['argument 0 (x) of kernel "k"']
    with pytest.raises(TypeError, match="is no array on a device") as raised:
        kernels.untyped(".u64")[1, 1](object())
    assert raised.value.__notes__ == ['argument 0 of kernel "k"']


def test_the_number_of_arguments_is_that_of_the_parameters(driver):
    x = cuwheel.zeros(4, "float32")
    cases = [
        (kernels.typed("float32*", "int32"), (x,), 'kernel "k" takes 2 arguments (float32*, int32), and 1 was given'),
        (kernels.untyped(".u64"), (x, 1), 'kernel "k" takes 1 argument, and 2 were given'),
        (kernels.typed(), (1,), 'kernel "k" takes 0 arguments, and 1 was given'),
    ]
    for kernel, arguments, message in cases:
        with pytest.raises(TypeError) as raised:
            kernel[1, 1](*arguments)
        assert str(raised.value) == message


def test_many_parameters_are_packed_too(driver):
    kinds = ["view[float32, 3]"] * 26
    arrays = [cuwheel.zeros((1, 2, position + 1), "float32") for position in range(26)]
    result = packed(driver, kernels.typed(*kinds), *arrays)
    assert [struct.unpack("<Q3q", value[:32]) for value in result] == [(array.pointer, *array.shape) for array in arrays]


def test_an_exception_of_a_value_is_raised_as_it_is(driver):
    class Interrupting:
        @property
        def __cuda_array_interface__(self):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        kernels.typed("float32*")[1, 1](Interrupting())


@pytest.mark.parametrize("kind", [Described, Exporting])
@pytest.mark.parametrize("dispatches", [False, True])
@pytest.mark.parametrize("release_gil", [False, True])
def test_arrays_are_let_go_of_with_the_launch(driver, kind, dispatches, release_gil):
    kernel = cuwheel.Module.from_bytes(kernels.HEAD + kernels.entry("k", "float32*", "int32")).kernel("k", ("float32*", "int32"))
    launcher = cuwheel.Dispatcher(lambda *types: kernel) if dispatches else kernel
    configured = launcher.configure(1, 32, release_gil=release_gil)
    array = cuwheel.zeros(4, "float32")
    foreign = kind(array)
    counted = sys.getrefcount(foreign), sys.getrefcount(array)
    configured(foreign, 1)
    assert (sys.getrefcount(foreign), sys.getrefcount(array)) == counted
    mistakes = (lambda: configured(foreign, "x"), lambda: configured(foreign, 1, 2), lambda: configured("x", 1))
    for mistake in mistakes:
        with pytest.raises(TypeError):
            mistake()
        assert (sys.getrefcount(foreign), sys.getrefcount(array)) == counted
    with driver.faults("fail=cuLaunchKernelEx:1:LAUNCH_OUT_OF_RESOURCES"), pytest.raises(cuwheel.CudaError):
        configured(foreign, 1)
    assert (sys.getrefcount(foreign), sys.getrefcount(array)) == counted
    gone = weakref.ref(foreign)
    del foreign, mistakes, mistake
    assert gone() is None
