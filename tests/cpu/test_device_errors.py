"""Every message that a mistake with device arrays can cause: exception class and text, exactly."""

import ctypes

import cuwheel
import ml_dtypes
import numpy as np
import pytest
from cuwheel import Device, DType, Stream
from device_arrays import read_only

pytestmark = pytest.mark.usefixtures("driver")

NO_DTYPE = ' is no data type; pass a name such as "float32", a NumPy data type, or a cuwheel.DType'
NO_DEVICE = ' is no device; pass a number, "cuda:0", or a device object of torch, CuPy or cuda.core'
NO_STREAM = (
    " is no stream; pass a stream of torch, CuPy, cuda.core or numba, an object with __cuda_stream__, or an integer "
    "handle"
)
NO_INDEX = (
    "a device array cannot be indexed with {}; only integers, slices (`:`), ellipsis (`...`) and None (a new axis) are "
    "indices. For masks and lists of indices, hand the array to CuPy or torch: cupy.from_dlpack(array)"
)
NO_SUCH_DEVICE = (
    "there is no device {}: the driver shows 2; devices are counted from 0, and CUDA_VISIBLE_DEVICES can hide some"
)
TOO_LARGE = "the array would be too large to be addressed; use smaller sizes or strides"
READ_ONLY = "the array is read-only; write to a copy of it"
PASS_OUT = "; pass a writable array of the same shape and type, or leave out to get a new one"


OBJECTS = 'the type string "|O" is not supported; convert the array to a type of fixed size without objects'
FOREIGN = (
    'elements of type "{}" are in the byte order of another machine; convert them first, for example with '
    "`a.astype(a.dtype.newbyteorder('='))`"
)
#: The message is NumPy's, which changes it.
NUMPYS = None


def a(shape=(2, 3), dtype="float32", **arguments):
    return cuwheel.empty(shape, dtype, **arguments)


class VersionOne:
    def __cuda_stream__(self):
        return 1, 2


class NotAPair:
    __cuda_stream__ = 5


def assign(array, key, value):
    array[key] = value


def bytes_of(array):
    """Asks for a buffer in C order."""
    view = ctypes.create_string_buffer(200)
    return ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(array), view, 56)


#: What is done, the class of the exception, and its message.
MISTAKES = {
    "a negative size": (lambda: a((2, -1)), ValueError, "the size of dimension 1 is -1; sizes must not be negative"),
    "too many bytes": (
        lambda: a((2**31, 2**31), "float64"),
        ValueError,
        "4611686018427387904 elements of type float64 are more than the address space holds; ask for a smaller array",
    ),
    "too many elements": (lambda: a((2**62, 2**62)), ValueError, TOO_LARGE),
    "a size beyond 64 bits": (lambda: a(2**70), IndexError, "cannot fit 'int' into an index-sized integer"),
    "too many dimensions": (
        lambda: a((1,) * 65),
        ValueError,
        "an array of 65 dimensions is not supported; it can have up to 64",
    ),
    "a shape of text": (lambda: a("ab"), TypeError, "'str' object cannot be interpreted as an integer"),
    "a shape that is none": (lambda: a(2.5), TypeError, "'float' object is not iterable"),
    "no dtype": (
        lambda: a(2, "float33"),
        TypeError,
        'there is no element type named "float33"; names are those of NumPy and ml_dtypes, such as "float32"',
    ),
    "an object as dtype": (lambda: a(2, {"x"}), TypeError, "{'x'}" + NO_DTYPE),
    "a list as dtype": (lambda: a(2, ["x"]), TypeError, "['x']" + NO_DTYPE),
    "a class as dtype": (lambda: a(2, dict), TypeError, OBJECTS),
    "objects": (lambda: a(2, "O"), TypeError, OBJECTS),
    "bytes of another machine": (
        lambda: a(2, ">f4"),
        TypeError,
        FOREIGN.format(">f4"),
    ),
    "host data of another machine": (lambda: cuwheel.asarray(np.array([1], ">i8")), TypeError, FOREIGN.format(">i8")),
    "datetimes of another machine": (lambda: a(2, ">M8[s]"), TypeError, FOREIGN.format(">M8[s]")),
    "text of another machine": (lambda: a(2, np.dtype(">U3")), TypeError, FOREIGN.format(">U3")),
    "out of another machine": (lambda: a().copy_to_host(np.empty((2, 3), ">f4")), TypeError, FOREIGN.format(">f4")),
    "long doubles": (
        lambda: a(2, np.longdouble),
        TypeError,
        'the type string "<f16" is not supported; convert the array to a type of fixed size without objects',
    ),
    "no bytes": (
        lambda: DType("opaque[0]"),
        ValueError,
        "elements of 0 bytes are not supported; an element has between 1 and 4294967295 bytes",
    ),
    "no order": (lambda: a(2, order="A"), ValueError, '"A" is no order of elements; write "C" or "F"'),
    "an order that is no text": (lambda: a(2, order=1), TypeError, "'int' object is not an instance of 'str'"),
    "no kind": (
        lambda: a(2, kind="unified"),
        ValueError,
        '"unified" is no kind of memory; the kinds are "device", "pinned", "mapped" and "managed"',
    ),
    "no such device": (lambda: a(2, device=2), ValueError, NO_SUCH_DEVICE.format(2)),
    "no such device for views": (lambda: Device(9).name, ValueError, NO_SUCH_DEVICE.format(9)),
    "a negative device": (lambda: Device(-1), ValueError, "-1 is no number of a device; they count from 0"),
    "a huge device": (lambda: Device(2**40), ValueError, "1099511627776 is no number of a device; they count from 0"),
    "the CPU": (lambda: Device("cpu"), ValueError, '"cpu" is no CUDA device; write "cuda:0", or "cuda" for the first'),
    "a device without number": (
        lambda: Device("cuda:x"),
        ValueError,
        '"cuda:x" is no CUDA device; write "cuda:0", or "cuda" for the first',
    ),
    "no device": (lambda: Device(2.5), TypeError, "float" + NO_DEVICE),
    "a truth value as device": (lambda: Device(True), TypeError, "bool" + NO_DEVICE),
    "no stream": (lambda: Stream("x"), TypeError, "str" + NO_STREAM),
    "a negative stream": (
        lambda: Stream(-1),
        ValueError,
        "-1 is no handle of a stream: handles are addresses, or 0, 1 and 2",
    ),
    "a stream protocol of the future": (
        lambda: Stream(VersionOne()),
        ValueError,
        "version 1 of __cuda_stream__ is not known; this library reads version 0",
    ),
    "a stream protocol that is none": (
        lambda: Stream(NotAPair()),
        TypeError,
        "'int' object is not an instance of 'tuple'",
    ),
    "a fill value that is many": (
        lambda: cuwheel.full(2, [1, 2]),
        ValueError,
        "fill_value has the shape [2]; it must be a single value",
    ),
    "a fill value that does not fit": (
        lambda: cuwheel.full(2, 300, "uint8"),
        OverflowError,
        "the values do not all fit in uint8; pass a wider dtype",
    ),
    "a fill value that is of another kind": (
        lambda: cuwheel.full(2, 1.5, "int32"),
        TypeError,
        NUMPYS,
    ),
    "a fill value without a type": (
        lambda: cuwheel.full(2, object()),
        TypeError,
        OBJECTS,
    ),
    "a fill value for packed elements": (
        lambda: cuwheel.full(2, 1.0, "float4_e2m1fn"),
        TypeError,
        'NumPy has no packed elements such as float4_e2m1fn; view the array as bytes first: array.view("uint8")',
    ),
    "an index too large": (
        lambda: a()[2],
        IndexError,
        "index 2 is out of bounds for axis 0 with size 2; use -2 to 1",
    ),
    "an index into nothing": (
        lambda: a((0, 3))[0],
        IndexError,
        "index 0 is out of bounds for axis 0 with size 0; use a slice, for it has no element",
    ),
    "an index beyond 64 bits": (lambda: a()[2**70], IndexError, "cannot fit 'int' into an index-sized integer"),
    "too many indices": (
        lambda: a()[0, 0, 0],
        IndexError,
        "too many indices: the array has 2 dimensions, but 3 were indexed; leave some out",
    ),
    "two ellipses": (
        lambda: a()[..., ...],
        IndexError,
        "an index can have only one ellipsis ('...'); write out the dimensions that the others stand for",
    ),
    "too many new axes": (
        lambda: a()[(None,) * 63],
        IndexError,
        "the index would make 65 dimensions; an array can have up to 64",
    ),
    "a mask": (lambda: a()[True], IndexError, NO_INDEX.format("bool")),
    "a list of indices": (lambda: a()[[0, 1]], IndexError, NO_INDEX.format("list")),
    "a field": (lambda: a()["field"], IndexError, NO_INDEX.format("str")),
    "a step of zero": (
        lambda: a()[::0],
        ValueError,
        "the step of a slice cannot be zero; leave it out to take every element",
    ),
    "a bound that is none": (lambda: a()["a":], TypeError, "'str' object cannot be interpreted as an integer"),
    "a reshape to another size": (
        lambda: a().reshape(4),
        ValueError,
        "an array of 6 elements cannot take the shape (4,); the sizes must multiply to 6",
    ),
    "two open sizes": (
        lambda: a().reshape(-1, -1),
        ValueError,
        "the shape (-1, -1) leaves more than one size open; only one can be negative",
    ),
    "a reshape that needs a copy": (
        lambda: a().T.reshape(6, copy=False),
        ValueError,
        "an array of shape (3, 2) and these strides cannot take the shape (6,) without a copy; copy it first, "
        "or allow a copy",
    ),
    "an axis too many": (
        lambda: a().transpose(0, 2),
        ValueError,
        "axis 2 is out of bounds for an array of 2 dimensions; axes are counted from 0, or back from -1",
    ),
    "too few axes": (lambda: a().transpose(0), ValueError, "1 axes were given for 2 dimensions; name each once"),
    "an axis twice": (lambda: a().transpose(0, -2), ValueError, "axis -2 is given twice; name each once"),
    "a squeeze of many": (
        lambda: a().squeeze(1),
        ValueError,
        "dimension 1 has 3 elements; only a dimension of one element can be squeezed out",
    ),
    "a view across gaps": (
        lambda: a()[:, ::2].view("int8"),
        ValueError,
        "to view float32 as int8, which has another size, the last dimension must be contiguous; copy the array first",
    ),
    "a view of a part": (
        lambda: a().view("float64"),
        ValueError,
        "3 elements of type float32 in the last dimension cannot be viewed as float64; a smaller type must go into the "
        "larger one without rest, and the last dimension must be a whole number of elements",
    ),
    "a view of a scalar": (
        lambda: a(()).view("float64"),
        ValueError,
        "an array without dimensions cannot be viewed as float64 instead of float32, which has another size; "
        "reshape it first",
    ),
    "a beginning inside of a byte": (
        lambda: a(4, "float4_e2m1fn")[1:],
        BufferError,
        "an array cannot begin inside of a byte, which holds several elements of type float4_e2m1fn; choose a "
        "beginning "
        "that is a whole number of bytes, or view the array as uint8 first",
    ),
    "bytes between packed elements": (
        lambda: a(4, "float4_e2m1fn").strides,
        BufferError,
        "elements of type float4_e2m1fn share bytes, so that the step from one to the next is no number of "
        "bytes; view the "
        "array as uint8 first",
    ),
    "packed elements to the host": (
        lambda: a(4, "float6_e3m2fn").copy_to_host(),
        TypeError,
        'NumPy has no packed elements such as float6_e3m2fn; view the array as bytes first: array.view("uint8")',
    ),
    "pairs of floats to the host": (
        lambda: a(4, "float4_e2m1fn_x2").copy_to_host(),
        TypeError,
        'NumPy has no data type float4_e2m1fn_x2; install ml_dtypes, or view the array as bytes: array.view("uint8")',
    ),
    "a deletion": (lambda: a().__delitem__(0), NotImplementedError, "can't delete item"),
    "the length of a scalar": (
        lambda: len(a(())),
        TypeError,
        "an array without dimensions has no length; see its size",
    ),
    "iteration over a scalar": (
        lambda: iter(a(())),
        TypeError,
        "an array without dimensions has no length; see its size",
    ),
    "truth": (
        lambda: bool(a(1)),
        TypeError,
        "whether a device array is true would take a copy to the host; ask for its size, or copy it with "
        "copy_to_host()",
    ),
    "no such flag": (
        lambda: a().flags["ALIGNED"],
        KeyError,
        "'there is no flag \"ALIGNED\"; the flags are C_CONTIGUOUS, F_CONTIGUOUS, FORC and WRITEABLE'",
    ),
    "values of another shape": (
        lambda: assign(a(), ..., [1, 2]),
        ValueError,
        "an array of shape (2,) cannot be broadcast to the shape (2, 3); from the last dimension on, each size "
        "must be the "
        "same or 1",
    ),
    "a device array of another shape": (
        lambda: assign(a(), ..., a(2)),
        ValueError,
        "an array of shape (2,) cannot be broadcast to the shape (2, 3); from the last dimension on, each size "
        "must be the "
        "same or 1",
    ),
    "a device array of another type": (
        lambda: assign(a(), ..., a(3, "int32")),
        TypeError,
        "elements of type int32 cannot be assigned to an array of type float32: converting them on a device is "
        "arithmetic; "
        "convert the value first",
    ),
    "a value of another kind": (
        lambda: assign(a(2, "int8"), 0, 1.5),
        TypeError,
        NUMPYS,
    ),
    "a value that does not fit": (
        lambda: assign(a(2, "int8"), 0, 128),
        OverflowError,
        "the values do not all fit in int8; pass a wider dtype",
    ),
    "writing to a read-only array": (lambda: assign(read_only(3), 0, 1), ValueError, READ_ONLY),
    "copying to a read-only array": (lambda: read_only(3).copy_from_host([1, 2, 3]), ValueError, READ_ONLY),
    "a device array to a read-only array": (lambda: assign(read_only(3), ..., a(3, "float64")), ValueError, READ_ONLY),
    "out of another type": (
        lambda: a().copy_to_host(np.empty((2, 3), "int8")),
        ValueError,
        "out has elements of type int8, and the array of type float32" + PASS_OUT,
    ),
    "out of another shape": (
        lambda: a().copy_to_host(np.empty((3, 2), "float32")),
        ValueError,
        "out has the shape [3, 2], and the array [2, 3]" + PASS_OUT,
    ),
    "out that is read-only": (
        lambda: a(4, "uint8").copy_to_host(np.frombuffer(b"four", "uint8")),
        ValueError,
        "out is read-only" + PASS_OUT,
    ),
    "out that is no array": (lambda: a().copy_to_host([0] * 6), TypeError, "expected a NumPy array, not list"),
    "NumPy of device memory": (
        lambda: np.asarray(a()),
        TypeError,
        "the array is in the memory of cuda:0, and NumPy would have to copy it without saying so; use copy_to_host()",
    ),
    "a buffer of device memory": (
        lambda: memoryview(a(device=1)),
        BufferError,
        "the array is in the memory of cuda:1, which the host cannot read; copy it with copy_to_host()",
    ),
    "a buffer of packed elements": (
        lambda: memoryview(a(4, "float4_e2m1fn", kind="pinned")),
        BufferError,
        'buffers have no packed elements such as float4_e2m1fn; view the array as bytes: array.view("uint8")',
    ),
    "a writable buffer of a read-only array": (
        lambda: cuwheel.mviewbuf.memoryview_get_buffer(read_only(3, kind="pinned")),
        BufferError,
        "the array is read-only; ask for a read-only buffer",
    ),
    "a buffer of another order": (
        lambda: bytes_of(a(kind="pinned").T),
        BufferError,
        "the elements do not lie in the order that was asked for; ask for a strided buffer, or copy the array",
    ),
    "a conversion without a copy": (
        lambda: a(kind="pinned").__array__("int64", copy=False),
        ValueError,
        "the array has the type float32, and copy=False forbids to convert it; leave copy out",
    ),
    "a conversion on the device": (
        lambda: cuwheel.asarray(a(), "float64"),
        TypeError,
        "the array has elements of type float32, and converting them to float64 on a device is arithmetic; "
        "convert it with "
        "the library that it comes from first",
    ),
    "host data without a copy": (
        lambda: cuwheel.asarray([1], copy=False),
        ValueError,
        "the data is in host memory, and copy=False forbids the copy to a device; leave copy out",
    ),
    "another device without a copy": (
        lambda: cuwheel.from_dlpack(a(), device=1, copy=False),
        ValueError,
        "the array is on cuda:0, and copy=False forbids the copy to cuda:1; leave copy out",
    ),
    "host data through DLPack": (
        lambda: cuwheel.from_dlpack(np.zeros(3)),
        ValueError,
        "the array is in host memory; copy it to a device with asarray()",
    ),
    "no array": (
        lambda: cuwheel.from_dlpack(5),
        TypeError,
        "int is no array on a device: it has neither __dlpack__ nor __cuda_array_interface__; arrays in host "
        "memory are "
        "copied by asarray",
    ),
    "host data without a type": (
        lambda: cuwheel.asarray([object()]),
        TypeError,
        OBJECTS,
    ),
    "unpacked elements from the host": (
        lambda: cuwheel.asarray(np.zeros(3, ml_dtypes.float4_e2m1fn)),
        TypeError,
        "the host array holds one float4_e2m1fn in each byte, and device arrays pack them; pack the elements "
        "into uint8, and "
        'view the device array of that: array.view("float4_e2m1fn")',
    ),
    "a type that NumPy lacks": (
        lambda: DType("float4_e2m1fn").numpy,
        TypeError,
        'NumPy has no packed elements such as float4_e2m1fn; view the array as bytes first: array.view("uint8")',
    ),
    "a context left and not entered": (
        lambda: cuwheel.use_stream(0).__exit__(None, None, None),
        RuntimeError,
        "the context is left on a thread that did not enter it; use one `with` statement on one thread",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_messages(mistake):
    call, exception, message = MISTAKES[mistake]
    with pytest.raises(exception) as caught:
        call()
    assert type(caught.value) is exception
    assert message is None or str(caught.value) == message
