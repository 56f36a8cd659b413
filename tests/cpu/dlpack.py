"""DLPack from outside: its structures, tensors and tables as any library may hand them out, and calls of ours.

Source: `dlpack.h` of DLPack 1.3.
"""

import ctypes
from ctypes import CFUNCTYPE, POINTER, PYFUNCTYPE, Structure, py_object
from ctypes import c_char_p, c_int, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13
READ_ONLY, IS_COPIED, IS_SUBBYTE_TYPE_PADDED = 1, 2, 4
FLOAT32 = (2, 32, 1)
#: Code, bits and lanes of each type, as `dlpack.h` numbers them.
DTYPES = {
    **{f"int{bits}": (0, bits, 1) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": (1, bits, 1) for bits in (8, 16, 32, 64)},
    **{f"float{bits}": (2, bits, 1) for bits in (16, 32, 64)},
    **{f"complex{bits}": (5, bits, 1) for bits in (64, 128)},
    "bool": (6, 8, 1),
    "bfloat16": (4, 16, 1),
    "float8_e3m4": (7, 8, 1),
    "float8_e4m3": (8, 8, 1),
    "float8_e4m3b11fnuz": (9, 8, 1),
    "float8_e4m3fn": (10, 8, 1),
    "float8_e4m3fnuz": (11, 8, 1),
    "float8_e5m2": (12, 8, 1),
    "float8_e5m2fnuz": (13, 8, 1),
    "float8_e8m0fnu": (14, 8, 1),
    "float6_e2m3fn": (15, 6, 1),
    "float6_e3m2fn": (16, 6, 1),
    "float4_e2m1fn": (17, 4, 1),
    "float4_e2m1fn_x2": (17, 4, 2),
}
TABLE, VERSIONED, LEGACY = b"dlpack_exchange_api", b"dltensor_versioned", b"dltensor"


class DLPackVersion(Structure):
    _fields_ = [("major", c_uint32), ("minor", c_uint32)]


class DLDevice(Structure):
    _fields_ = [("type", c_int32), ("id", c_int32)]


class DLDataType(Structure):
    _fields_ = [("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16)]


class DLTensor(Structure):
    _fields_ = [
        ("data", c_void_p),
        ("device", DLDevice),
        ("ndim", c_int32),
        ("dtype", DLDataType),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]

    def values(self) -> dict:
        """The fields as plain values; None for null pointers."""
        numbers = lambda pointer: tuple(pointer[: self.ndim]) if pointer else None  # noqa: E731
        return {
            "data": self.data,
            "device": (self.device.type, self.device.id),
            "dtype": (self.dtype.code, self.dtype.bits, self.dtype.lanes),
            "shape": numbers(self.shape),
            "strides": numbers(self.strides),
            "byte_offset": self.byte_offset,
        }


Deleter = CFUNCTYPE(None, c_void_p)


class DLManagedTensor(Structure):
    _fields_ = [("dl_tensor", DLTensor), ("manager_ctx", c_void_p), ("deleter", c_void_p)]


class DLManagedTensorVersioned(Structure):
    _fields_ = [
        ("version", DLPackVersion),
        ("manager_ctx", c_void_p),
        ("deleter", c_void_p),
        ("flags", c_uint64),
        ("dl_tensor", DLTensor),
    ]


class DLPackExchangeAPI(Structure):
    _fields_ = [
        ("version", DLPackVersion),
        ("prev_api", c_void_p),
        ("allocator", c_void_p),
        ("managed_from_object", c_void_p),
        ("object_from_managed", c_void_p),
        ("view_from_object", c_void_p),
        ("current_work_stream", c_void_p),
    ]


SetError = CFUNCTYPE(None, c_void_p, c_char_p, c_char_p)
#: The types of the functions in a table; `PYFUNCTYPE` raises what a function that is called has set.
SIGNATURES = {
    "allocator": CFUNCTYPE(c_int, POINTER(DLTensor), POINTER(c_void_p), c_void_p, SetError),
    "managed_from_object": PYFUNCTYPE(c_int, py_object, POINTER(c_void_p)),
    "object_from_managed": PYFUNCTYPE(c_int, c_void_p, POINTER(c_void_p)),
    "view_from_object": PYFUNCTYPE(c_int, py_object, POINTER(DLTensor)),
    "current_work_stream": PYFUNCTYPE(c_int, c_int, c_int32, POINTER(c_void_p)),
}

_new = ctypes.pythonapi.PyCapsule_New
_new.restype, _new.argtypes = py_object, [c_void_p, c_char_p, c_void_p]
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = c_void_p, [py_object, c_char_p]
_name = ctypes.pythonapi.PyCapsule_GetName
_name.restype, _name.argtypes = c_char_p, [py_object]
_rename = ctypes.pythonapi.PyCapsule_SetName
_rename.restype, _rename.argtypes = c_int, [py_object, c_char_p]

#: Names of capsules must outlive them, and so must tensors that nobody has deleted.
_KEPT = {name: name for name in (TABLE, VERSIONED, LEGACY, b"used_" + VERSIONED, b"used_" + LEGACY, b"else")}
_TENSORS = set()


def forget_tensors() -> None:
    """Let go of tensors that were made, and that nobody will delete."""
    for tensor in _TENSORS:
        tensor.owner = None
    _TENSORS.clear()


def capsule(address: int, name: bytes) -> object:
    return _new(address, _KEPT[name], None)


def name_of(a_capsule: object) -> str:
    return _name(a_capsule).decode()


def address_in(a_capsule: object) -> int:
    return _pointer(a_capsule, _name(a_capsule))


class Tensor:
    """A tensor that another library hands out. It keeps `owner` until its deleter is called, which `deleted` counts."""

    def __init__(
        self,
        data=0,
        shape=(3,),
        strides=(1,),
        dtype=FLOAT32,
        device=(CUDA, 0),
        ndim=None,
        byte_offset=0,
        flags=0,
        version=(1, 3),
        versioned=True,
        has_deleter=True,
        owner=None,
    ):
        self.deleted = 0
        self.owner = owner if has_deleter else None
        self.versioned = versioned
        self._deleter = Deleter(self._delete)
        self._shape, self._strides = (
            (c_int64 * len(numbers))(*numbers) if numbers else None for numbers in (shape, strides)
        )
        self.structure = DLManagedTensorVersioned() if versioned else DLManagedTensor()
        if versioned:
            self.structure.version = DLPackVersion(*version)
            self.structure.flags = flags
        if has_deleter:
            self.structure.deleter = ctypes.cast(self._deleter, c_void_p).value
            _TENSORS.add(self)
        else:
            _KEPT[self] = self
        self.structure.dl_tensor = DLTensor(
            data,
            DLDevice(*device),
            len(shape) if ndim is None else ndim,
            DLDataType(*dtype),
            ctypes.cast(self._shape, POINTER(c_int64)),
            ctypes.cast(self._strides, POINTER(c_int64)),
            byte_offset,
        )

    def _delete(self, address):
        assert address == self.address
        self.deleted += 1
        self.owner = None
        _TENSORS.discard(self)

    @property
    def address(self) -> int:
        return ctypes.addressof(self.structure)

    def capsule(self) -> object:
        return capsule(self.address, VERSIONED if self.versioned else LEGACY)


def tensor_of(array, **fields) -> Tensor:
    """A tensor that describes a `cuwheel.DeviceArray` and keeps it alive, with some fields changed."""
    fields = {
        "owner": array,
        "data": array.pointer,
        "shape": array.shape,
        "strides": array.element_strides,
        "device": array.__dlpack_device__(),
    } | fields
    return Tensor(**fields)


class Foreign:
    """An array of another library, which speaks `__dlpack__`. `requests` are the arguments that it was called with."""

    def __init__(self, tensor: Tensor):
        self.tensor = tensor
        self.requests = []

    def __dlpack__(self, **arguments):
        self.requests.append(arguments)
        return self.tensor.capsule()

    def __dlpack_device__(self):
        device = self.tensor.structure.dl_tensor.device
        return device.type, device.id


def raises(_object, _out):
    """Stands for a function of a table that fails with what the object's `__len__` raises."""


#: `PyObject_Size` is a C function that returns -1 and leaves an exception, which a callback of `ctypes` cannot.
_RAISES = ctypes.cast(ctypes.pythonapi.PyObject_Size, c_void_p).value


class Table:
    """An exchange table whose functions are those given, or null. It is kept for ever, as DLPack asks."""

    def __init__(self, version=(1, 3), prev: "Table | None" = None, **functions):
        self.structure = DLPackExchangeAPI(DLPackVersion(*version), prev and prev.address)
        _KEPT[self] = prev
        for name, function in functions.items():
            if function is raises:
                setattr(self.structure, name, _RAISES)
            elif function is not None:
                setattr(self, name, SIGNATURES[name](function))
                setattr(self.structure, name, ctypes.cast(getattr(self, name), c_void_p).value)

    @property
    def address(self) -> int:
        return ctypes.addressof(self.structure)

    def type(self, name: str = "Foreign", bases: tuple = (), **attributes) -> type:
        """A new class that has this table."""
        return type(name, bases, {"__dlpack_c_exchange_api__": capsule(self.address, TABLE)} | attributes)


def managed(an_object, out) -> int:
    """Hands out `an_object.tensor`."""
    out[0] = an_object.tensor.address
    return 0


def view(an_object, out) -> int:
    """Describes `an_object.tensor`."""
    ctypes.memmove(out, ctypes.byref(an_object.tensor.structure.dl_tensor), ctypes.sizeof(DLTensor))
    return 0


def stream(handle: int):
    """A function of a table: its library works on a stream. `asked` are the devices that it was asked for."""

    def current_work_stream(device_type, device_id, out) -> int:
        current_work_stream.asked.append((device_type, device_id))
        out[0] = handle
        return 0

    current_work_stream.asked = []
    return current_work_stream


def exchanging(tensor: Tensor, table: Table | None = None, handle: int = 0, **attributes) -> object:
    """An array of another library, which has an exchange table."""
    if table is None:
        table = Table(managed_from_object=managed, view_from_object=view, current_work_stream=stream(handle))
    array = table.type(**attributes)()
    array.tensor = tensor
    return array


class Exchange:
    """The exchange table of a class, and its functions as Python functions that raise what they set."""

    def __init__(self, a_type: type):
        self.table = DLPackExchangeAPI.from_address(address_in(a_type.__dlpack_c_exchange_api__))

    def _call(self, name, *arguments) -> None:
        assert SIGNATURES[name](getattr(self.table, name))(*arguments) == 0

    def managed(self, array) -> DLManagedTensorVersioned:
        out = c_void_p()
        self._call("managed_from_object", array, ctypes.byref(out))
        return DLManagedTensorVersioned.from_address(out.value)

    def view(self, array) -> DLTensor:
        out = DLTensor()
        self._call("view_from_object", array, ctypes.byref(out))
        return out

    def wrap(self, address: int | None) -> object:
        out = c_void_p()
        self._call("object_from_managed", address, ctypes.byref(out))
        wrapped = ctypes.cast(out, py_object).value
        ctypes.pythonapi.Py_DecRef(py_object(wrapped))
        return wrapped

    def current_stream(self, device_type: int, device_id: int) -> int:
        out = c_void_p(-1)
        self._call("current_work_stream", device_type, device_id, ctypes.byref(out))
        return out.value or 0

    def allocate(self, prototype: DLTensor, errors: list | None = None) -> DLManagedTensorVersioned | None:
        """A new tensor; None on failure, of which `errors` gets the kinds and messages."""
        set_error = SetError(lambda _context, kind, message: errors.append((kind.decode(), message.decode())))
        out = c_void_p()
        status = SIGNATURES["allocator"](self.table.allocator)(ctypes.byref(prototype), ctypes.byref(out), 7, set_error)
        assert (status == 0) == bool(out.value)
        return DLManagedTensorVersioned.from_address(out.value) if out.value else None


def delete(tensor: DLManagedTensor | DLManagedTensorVersioned) -> None:
    """Call the deleter of a tensor, with the thread detached from Python."""
    Deleter(tensor.deleter)(ctypes.addressof(tensor))


def take(a_capsule: object) -> DLManagedTensor | DLManagedTensorVersioned:
    """The tensor in a capsule, taken as a consumer does."""
    name = _name(a_capsule)
    structure = {VERSIONED: DLManagedTensorVersioned, LEGACY: DLManagedTensor}[name]
    tensor = structure.from_address(_pointer(a_capsule, name))
    assert _rename(a_capsule, _KEPT[b"used_" + name]) == 0
    return tensor
