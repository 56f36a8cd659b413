"""Arguments of every kind that Python and NumPy have, made anew at each call."""

import array
import collections
import ctypes
import enum
import functools

import numpy as np
from dispatching import Type

Point = collections.namedtuple("Point", "x y")
Other = collections.namedtuple("Other", "x y")
STRUCTURE = np.dtype([("a", "i4"), ("b", "f8")])


class Float(float):
    pass


class List(list):
    pass


class PlainTuple(tuple):
    pass


class Array(np.ndarray):
    pass


class Number(enum.IntEnum):
    ONE = 1


class DeviceArray:
    """As device arrays are from numba-cuda 0.23 on."""

    @functools.cached_property
    def _numba_type_(self):
        return TYPES["cached"]


class Property:
    _numba_type_ = property(lambda self: TYPES["property"])


class Attribute:
    def __init__(self, value):
        self._numba_type_ = value


class Raising:
    def __init__(self, error):
        self.error = error

    @property
    def _numba_type_(self):
        raise self.error


TYPES = {"cached": Type(2001), "property": Type(2002), "attribute": Type(2003)}

_PYTHON = {
    "None": lambda: None,
    "bool": lambda: True,
    "int": lambda: 1,
    "negative int": lambda: -(2**40),
    "huge int": lambda: 2**70,
    "float": lambda: 1.5,
    "float subclass": lambda: Float(1.5),
    "complex": lambda: 1j,
    "enum": lambda: Number.ONE,
    "str": lambda: "text",
    "bytes": lambda: b"bytes",
    "bytearray": lambda: bytearray(b"bytes"),
    "empty tuple": lambda: (),
    "tuple": lambda: (1, 2.0),
    "nested tuple": lambda: (1, (2, (True, None))),
    "namedtuple": lambda: Point(1, 2.0),
    "tuple subclass": lambda: PlainTuple((1, 2)),
    "tuple of unknown": lambda: (object(),),
    "empty list": lambda: [],
    "list": lambda: [1, "text"],
    "list of lists": lambda: [[1.5]],
    "list subclass": lambda: List([1]),
    "tuple with an empty list": lambda: (1, []),
    "empty set": set,
    "set": lambda: {1},
    "frozenset": lambda: frozenset([1]),
    "dict": lambda: {1: 2},
    "type": lambda: int,
    "object": object,
    "ellipsis": lambda: ...,
    "slice": lambda: slice(1),
    "memoryview": lambda: memoryview(b"bytes"),
    "writable memoryview": lambda: memoryview(bytearray(6)),
    "strided memoryview": lambda: memoryview(bytearray(6))[::2],
    "cast memoryview": lambda: memoryview(bytearray(24)).cast("i", (2, 3)),
    "array.array": lambda: array.array("i", [1, 2]),
    "ctypes array": lambda: (ctypes.c_int * 3)(),
    "ctypes scalar": lambda: ctypes.c_double(1),
    "device array": DeviceArray,
    "object with a property": Property,
    "object with an attribute": lambda: Attribute(TYPES["attribute"]),
    "object whose type has no code": lambda: Attribute(object()),
    "object whose type has a bad code": lambda: Attribute(Type("code")),
    "object that raises": lambda: Raising(RuntimeError("mine")),
    "object that lacks": lambda: Raising(AttributeError("mine")),
}

_DTYPES = ["?", "b", "B", "h", "H", "i", "I", "l", "L", "q", "Q", "e", "f", "d", "g", "F", "D", "G", "M8[s]", "M8[25us]",
           "m8[ns]", "m8", "S3", "U3", "V5", "O", STRUCTURE]  # fmt: skip

_NUMPY = {
    **{f"scalar {dtype}": lambda dtype=dtype: np.zeros(1, dtype)[0] for dtype in _DTYPES},
    **{f"array {dtype}": lambda dtype=dtype: np.zeros(3, dtype) for dtype in _DTYPES},
    **{f"0-d array {dtype}": lambda dtype=dtype: np.zeros((), dtype) for dtype in _DTYPES},
    **{f"dtype {dtype}": lambda dtype=dtype: np.dtype(dtype) for dtype in _DTYPES},
    **{f"{ndim}-d array": lambda ndim=ndim: np.zeros((2,) * ndim, "f4") for ndim in range(2, 8)},
    "Fortran array": lambda: np.zeros((2, 3), order="F"),
    "strided array": lambda: np.zeros((4, 6))[::2, ::3],
    "repeated array": lambda: np.broadcast_to(np.zeros(3), (2, 3)),
    "read-only array": lambda: np.frombuffer(b"12345678"),
    "unaligned array": lambda: np.frombuffer(bytearray(17), "f8", 2, 1),
    "empty array": lambda: np.zeros((0, 3)),
    "array subclass": lambda: np.zeros(3).view(Array),
    "recarray": lambda: np.zeros(3, STRUCTURE).view(np.recarray),
    "matrix": lambda: np.zeros((2, 2)).view(np.matrix),
    "strided structures": lambda: np.zeros(6, STRUCTURE)[::2],
    "tuple of arrays": lambda: (np.zeros(3), np.zeros((2, 2), "i4")),
    "list of scalars": lambda: [np.float32(1)],
    "tuple of structures": lambda: (np.zeros(3, STRUCTURE), np.zeros(3, STRUCTURE)[0]),
}

#: Name -> function that makes the value.
VALUES = {**_PYTHON, **_NUMPY}
