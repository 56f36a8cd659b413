"""Device arrays, and the data types, devices and streams that go with them."""

from collections.abc import Iterable, Iterator
from types import EllipsisType
from typing import Any, ClassVar, Literal, Never, Protocol, Self, SupportsIndex, SupportsInt, TypeAlias, final

import numpy as np
import numpy.typing as npt
from typing_extensions import CapsuleType

__all__ = [
    "CudaError",
    "DType",
    "Device",
    "DeviceArray",
    "Flags",
    "Stream",
    "asarray",
    "current_stream",
    "empty",
    "forget_types",
    "from_dlpack",
    "from_host",
    "full",
    "use_stream",
    "zeros",
]

class _CudaStream(Protocol):
    """A stream by the protocol that libraries share."""

    def __cuda_stream__(self) -> tuple[int, int]: ...

class _TorchStream(Protocol):
    @property
    def cuda_stream(self) -> int: ...

class _CupyStream(Protocol):
    @property
    def ptr(self) -> int: ...

class _NumbaStream(Protocol):
    @property
    def handle(self) -> Any: ...

class _TorchDevice(Protocol):
    @property
    def type(self) -> str: ...
    @property
    def index(self) -> int | None: ...

class _CupyDevice(Protocol):
    @property
    def id(self) -> SupportsInt: ...

class _CudaCoreDevice(Protocol):
    @property
    def device_id(self) -> int: ...

_StreamLike: TypeAlias = SupportsIndex | _CudaStream | _TorchStream | _CupyStream | _NumbaStream
_DeviceLike: TypeAlias = SupportsIndex | str | Device | _TorchDevice | _CupyDevice | _CudaCoreDevice
_DTypeLike: TypeAlias = DType | npt.DTypeLike
_Shape: TypeAlias = SupportsIndex | Iterable[SupportsIndex]
_Index: TypeAlias = SupportsIndex | slice | EllipsisType | None
_Kind: TypeAlias = Literal["device", "pinned", "mapped", "managed"]
_Order: TypeAlias = Literal["C", "F"]

@final
class DeviceArray:
    """An array in memory of a CUDA device, or in memory that one sees: a shape, a data type, and a place.

    Arrays are made by `empty`, `zeros`, `full`, `asarray`, `from_host` and `from_dlpack`. Other libraries take them over
    without a copy: `torch.from_dlpack(x)`, `cupy.from_dlpack(x)`; that is also the way to do arithmetic.
    """

    @staticmethod
    def empty(
        shape: _Shape,
        dtype: _DTypeLike = "float64",
        *,
        device: _DeviceLike | None = None,
        kind: _Kind = "device",
        order: _Order = "C",
        stream: _StreamLike | None = None,
    ) -> DeviceArray:
        """Return a new array whose elements have unspecified values.

        Args:
            shape: The number of elements along each dimension: an integer or a tuple.
            dtype: The data type of the elements: a name, a NumPy data type, or a `DType`.
            device: The device; that of the thread's current context by default.
            kind: "device", "pinned" (host memory for fast copies), "mapped" (host memory that kernels read and write) or
                "managed" (memory that moves to whoever touches it).
            order: "C" or "F".
            stream: In whose order the memory is allocated, used and freed; the current stream by default.

        Raises:
            ValueError: A dimension is negative, there are too many elements, or there is no such device.
            TypeError: There is no such data type.
            MemoryError: There is not enough memory; the message says how much was asked for and how much is free.
            RuntimeError: There is no driver that can be used, or it reports an error.
        """
    @staticmethod
    def zeros(
        shape: _Shape,
        dtype: _DTypeLike = "float64",
        *,
        device: _DeviceLike | None = None,
        kind: _Kind = "device",
        order: _Order = "C",
        stream: _StreamLike | None = None,
    ) -> DeviceArray:
        """Return a new array of zeros.

        Args:
            shape, dtype, device, kind, order, stream: As for `empty`.

        Raises:
            What `empty` raises.
        """
    @staticmethod
    def full(
        shape: _Shape,
        fill_value: npt.ArrayLike,
        dtype: _DTypeLike | None = None,
        *,
        device: _DeviceLike | None = None,
        kind: _Kind = "device",
        order: _Order = "C",
        stream: _StreamLike | None = None,
    ) -> DeviceArray:
        """Return a new array in which every element is `fill_value`.

        Args:
            shape, device, kind, order, stream: As for `empty`.
            fill_value: A number, or whatever else NumPy converts to the data type.
            dtype: The data type; by default the one that NumPy gives `fill_value`.

        Raises:
            TypeError, ValueError, OverflowError: The value does not fit the data type.
            What `empty` raises.
        """
    @staticmethod
    def asarray(
        obj: object,
        /,
        dtype: _DTypeLike | None = None,
        *,
        device: _DeviceLike | None = None,
        copy: bool | None = None,
        kind: _Kind = "device",
        stream: _StreamLike | None = None,
    ) -> DeviceArray:
        """Return an array of anything that is like one, on a device or in host memory.

        An array that a device already sees is taken over without a copy, if its type and device are those asked for.

        Args:
            obj: A `DeviceArray`; an array of another library; a NumPy array, a number, a nested list, or whatever else
                NumPy makes an array of.
            dtype: The data type to convert to, in host memory; by default that of `obj`. Data on a device is not converted.
            device: The device; by default where the data is, or that of the thread's current context.
            copy: True for a copy in any case, False to refuse one, None for a copy if need be.
            kind: The kind of new memory, as for `empty`.
            stream: For which the data is to be ready; the current stream by default.

        Raises:
            TypeError: NumPy makes no array of `obj`, or the data would have to be converted on a device.
            ValueError: `copy` is False and a copy is needed.
            BufferError: The array cannot be described to another library.
            What `empty` raises.
        """
    @staticmethod
    def from_host(
        obj: npt.ArrayLike,
        /,
        dtype: _DTypeLike | None = None,
        *,
        device: _DeviceLike | None = None,
        kind: _Kind = "device",
        stream: _StreamLike | None = None,
    ) -> DeviceArray:
        """Return a copy of host data on a device.

        Args:
            obj: A NumPy array, a number, a nested list, or whatever else NumPy makes an array of.
            dtype: The data type to convert to; by default that of `obj`.
            device, kind, stream: As for `empty`.

        Raises:
            TypeError: NumPy makes no array of `obj`, or cannot convert it.
            What `empty` raises.
        """
    @staticmethod
    def from_dlpack(
        obj: object,
        /,
        *,
        device: _DeviceLike | None = None,
        copy: bool | None = None,
        stream: _StreamLike | None = None,
    ) -> DeviceArray:
        """Return an array that shares the memory of another library's array.

        DLPack's C exchange is tried first, then `__dlpack__`, then `__cuda_array_interface__`. Work that is put on the
        stream afterwards finds the data ready.

        Args:
            obj: An array on a CUDA device or in memory that one sees.
            device: The device that the array is wanted on; by default where it is.
            copy: True for a copy, False to refuse one, None for a copy if the array is on another device than `device`.
            stream: For which the data is to be ready, and the stream of the result; the current stream by default.

        Raises:
            TypeError: `obj` is no array.
            BufferError: Its data cannot be described, or is lazily conjugated or negated.
            ValueError: It is in host memory, or a copy is needed and `copy` is False.
        """
    def copy_from_host(self, obj: npt.ArrayLike, /, *, stream: _StreamLike | None = None) -> None:
        """Copy host data into this array.

        Args:
            obj: What NumPy makes an array of; it is broadcast to the shape and converted to the data type if that is safe
                or of the same kind.
            stream: In whose order to copy; the array's stream by default.

        Raises:
            ValueError: The shapes do not fit, or this array is read-only.
            TypeError: NumPy makes no array of `obj`, or cannot convert it.
            RuntimeError: The driver reports an error.
        """
    def copy_to_host(self, out: npt.NDArray[Any] | None = None, stream: _StreamLike | None = None) -> npt.NDArray[Any]:
        """Return a copy in host memory, as a NumPy array. The copy is complete when the method returns.

        Args:
            out: A writable NumPy array of the same shape and data type to copy to; a new one by default.
            stream: In whose order to copy; the array's stream by default.

        Returns:
            `out`, or the new array.

        Raises:
            ValueError: `out` has another shape or data type, or is read-only.
            TypeError: NumPy has no such data type.
            RuntimeError: The driver reports an error.
        """
    def copy_to_device(
        self, device: _DeviceLike | None = None, *, kind: _Kind = "device", stream: _StreamLike | None = None
    ) -> DeviceArray:
        """Return a copy on a device, in C order.

        Args:
            device: The device; that of the array by default.
            kind: The kind of the new memory, as for `empty`.
            stream: In whose order to copy, and the stream of the copy; the array's stream by default.

        Raises:
            ValueError: There is no such device.
            MemoryError: There is not enough memory.
            RuntimeError: The driver reports an error.
        """
    @property
    def shape(self) -> tuple[int, ...]:
        """The number of elements along each dimension."""
    @property
    def strides(self) -> tuple[int, ...]:
        """The bytes from one element to the next along each dimension.

        Raises:
            TypeError: Several elements share a byte; see `element_strides`.
        """
    @property
    def element_strides(self) -> tuple[int, ...] | None:
        """The elements from one to the next along each dimension, or None if the strides are no whole numbers of elements."""
    @property
    def dtype(self) -> np.dtype[Any] | DType:
        """The data type: NumPy's if NumPy is installed and it, or `ml_dtypes`, has it; a `DType` otherwise."""
    @property
    def ndim(self) -> int:
        """The number of dimensions."""
    @property
    def size(self) -> int:
        """The number of elements."""
    @property
    def itemsize(self) -> int | None:
        """The bytes of an element, or None if several share a byte."""
    @property
    def nbytes(self) -> int:
        """The bytes of all elements, without gaps."""
    @property
    def pointer(self) -> int:
        """The address of the first element as an integer; 0 if there is none."""
    @property
    def device(self) -> Device:
        """The device that the memory is on or belongs to."""
    @property
    def kind(self) -> _Kind:
        """The kind of the memory: "device", "pinned", "mapped" or "managed"."""
    @property
    def stream(self) -> Stream:
        """The stream in whose order the memory is used."""
    @property
    def flags(self) -> Flags:
        """What holds of the memory: `c_contiguous`, `f_contiguous`, `writeable`."""
    @property
    def T(self) -> DeviceArray:
        """The array with its axes in reverse order, sharing its memory."""
    def transpose(self, *axes: _Shape | None) -> DeviceArray:
        """Return a view with the axes in another order.

        Args:
            *axes: The axes in their new order, or one tuple of them; reversed without.

        Raises:
            ValueError: An axis does not exist, is named twice, or is missing.
        """
    def reshape(self, *shape: _Shape, copy: bool | None = None) -> DeviceArray:
        """Return a view with another shape and the same elements in C order.

        Args:
            *shape: The new numbers of elements, or one tuple of them; one of them may be -1.
            copy: True for a copy, False to refuse one; None for a copy where no view has the shape.

        Raises:
            ValueError: The number of elements is another, or a copy is needed and `copy` is False.
        """
    def ravel(self) -> DeviceArray:
        """Return the elements in one dimension, as a view if they lie in C order without gaps, else as a copy."""
    def squeeze(self, axis: _Shape | None = None) -> DeviceArray:
        """Return a view without dimensions of one element.

        Args:
            axis: The axis or axes to leave out; all of one element by default.

        Raises:
            ValueError: An axis does not exist or has not one element.
        """
    def view(self, dtype: _DTypeLike, /) -> DeviceArray:
        """Return a view that reads the same bytes as elements of another type.

        Args:
            dtype: The other type. If its size differs, the last axis changes, and its elements must lie side by side.

        Raises:
            ValueError: The bytes do not divide into elements of that type.
            TypeError: There is no such data type.
        """
    def __len__(self, /) -> int: ...
    def __bool__(self, /) -> Never: ...
    def __getitem__(self, key: _Index | tuple[_Index, ...], /) -> DeviceArray: ...
    def __setitem__(self, key: _Index | tuple[_Index, ...], value: object, /) -> None: ...
    def __iter__(self, /) -> Iterator[DeviceArray]: ...
    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """Return a NumPy array of the same memory, for kinds that the host sees.

        Args:
            dtype: A data type to convert to; that of the array by default.
            copy: True for a copy, False to refuse one, None for a copy if need be.

        Raises:
            TypeError: The memory is the device's, see `copy_to_host`; or NumPy has no such data type.
            ValueError: A conversion is asked for, and `copy` is False.
        """
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __release_buffer__(self, buffer: memoryview, /) -> None: ...
    __dlpack_c_exchange_api__: ClassVar[CapsuleType]
    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType:
        """Return a capsule by which another library shares the memory, as the array API standard has it.

        Args:
            stream: For which the data is to be ready: None or 1 for the legacy default stream, 2 for the per-thread default
                stream, -1 for no synchronisation, else a handle.
            max_version: The newest DLPack version that the caller reads.
            dl_device: The DLPack device to export to; by default where the array is.
            copy: True for a copy, False to refuse one, None for a copy if need be.

        Raises:
            BufferError: DLPack cannot describe the array, or a copy is needed and `copy` is False.
            ValueError: The stream is 0, which could be either default stream.
        """
    def __dlpack_device__(self) -> tuple[int, int]:
        """Return the DLPack device, `(type, number)`: 2 is a CUDA device, 3 host memory that one sees, 13 managed memory."""
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The CUDA array interface, version 3."""

class CudaError(RuntimeError):
    """The CUDA driver cannot be used, or reports an error.

    Attributes:
        name: The name of the error in CUDA, such as "CUDA_ERROR_INVALID_VALUE"; None if the driver was not asked.
        code: The number of the error, or None.
    """

    name: str | None
    code: int | None

@final
class DType:
    """A data type of device arrays: one of NumPy's, or one that NumPy does not have, such as `bfloat16`, `float8_e4m3fn` or
    `float4_e2m1fn`.

    Equal to others of its name; `DType(dtype)` makes one of a name or a data type of NumPy, `ml_dtypes` or torch.

    Args:
        dtype: A name, a NumPy data type or scalar type, `bool`, `int`, `float`, `complex`, or a data type of `ml_dtypes`
            or torch.

    Raises:
        TypeError: It is none of these, or names a type that device arrays do not have.
    """

    def __new__(cls, dtype: _DTypeLike, /) -> Self: ...
    @property
    def name(self) -> str:
        """The name, as NumPy and `ml_dtypes` have it; `opaque[n]` for n bytes of unknown meaning."""
    @property
    def bits(self) -> int:
        """The bits of an element, with all of its lanes."""
    @property
    def itemsize(self) -> int | None:
        """The bytes of an element, or None if several share a byte."""
    @property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy data type.

        Raises:
            TypeError: Neither NumPy nor `ml_dtypes`, if it is installed, has this type.
            ImportError: NumPy is not installed.
        """

@final
class Device:
    """A CUDA device, by its number in this process.

    Args:
        device: A number from 0 on, `"cuda"` for device 0, `"cuda:1"`, or a device object of torch, CuPy or cuda.core.

    Raises:
        ValueError: The text or the number names no device.
        TypeError: It is something else.
    """

    def __new__(cls, device: _DeviceLike = 0, /) -> Self: ...
    @staticmethod
    def count() -> int:
        """How many devices the driver shows to this process.

        Raises:
            RuntimeError: There is no driver that can be used.
        """
    @property
    def id(self) -> int:
        """The number of the device."""
    @property
    def name(self) -> str:
        """The name that the driver gives it, such as "NVIDIA H200".

        Raises:
            ValueError: There is no such device.
            RuntimeError: There is no driver that can be used.
        """
    @property
    def compute_capability(self) -> tuple[int, int]:
        """The compute capability, `(major, minor)`.

        Raises:
            ValueError: There is no such device.
            RuntimeError: There is no driver that can be used.
        """
    def memory_info(self) -> tuple[int, int]:
        """Return the free and the total memory of the device, in bytes.

        Raises:
            ValueError: There is no such device.
            RuntimeError: There is no driver that can be used.
        """

@final
class Stream:
    """A CUDA stream: work that is put on it is done in order.

    A new one is non-blocking: it does not wait for the legacy default stream, nor that for it.

    Args:
        stream: A stream of another library or an integer handle, to be used as it is; a new stream is created without.
        device: The device of a new stream; that of the thread's current context by default.

    Raises:
        TypeError: `stream` is no stream.
        RuntimeError: No stream can be created.
    """

    def __new__(cls, stream: _StreamLike | None = None, /, *, device: _DeviceLike | None = None) -> Self: ...
    @property
    def handle(self) -> int:
        """The `CUstream` as an integer; 0 is the legacy default stream, 2 the per-thread one."""
    @property
    def device(self) -> Device:
        """The device of the stream."""
    def synchronize(self) -> None:
        """Wait until all work on the stream is done.

        Raises:
            RuntimeError: The driver reports an error, perhaps of work that was put on the stream before.
        """
    def wait(self, other: _StreamLike, /) -> None:
        """Make work that is put on this stream from now on wait for what is on another stream now.

        Args:
            other: A stream of any library, or an integer handle, of the same device.

        Raises:
            TypeError: `other` is no stream.
            RuntimeError: The driver reports an error.
        """
    def __cuda_stream__(self) -> tuple[int, int]:
        """The protocol by which libraries take each other's streams: version 0, and the handle."""

@final
class use_stream:
    """A context in which a stream is the current one of this thread and its device.

    Libraries that take arrays from this one through DLPack's exchange table work on that stream too.

    Args:
        stream: A stream of any library, or an integer handle.
        device: The device of the stream; that of the thread's current context by default.

    Raises:
        TypeError: `stream` is no stream.
        RuntimeError: There is no driver that can be used; or the context is left on another thread than it was entered
            on.
    """

    def __new__(cls, stream: _StreamLike, /, *, device: _DeviceLike | None = None) -> Self: ...
    def __enter__(self) -> Stream: ...
    def __exit__(self, *_exception: object) -> None: ...

@final
class Flags:
    """What holds of the memory of an array: attributes, or keys as in NumPy, such as `flags["C_CONTIGUOUS"]`."""

    @property
    def c_contiguous(self) -> bool:
        """Whether the elements lie side by side in C order."""
    @property
    def f_contiguous(self) -> bool:
        """Whether the elements lie side by side in Fortran order."""
    @property
    def writeable(self) -> bool:
        """Whether the elements may be written."""
    @property
    def forc(self) -> bool:
        """Whether the elements lie side by side in either order."""
    def __getitem__(self, key: str, /) -> bool: ...

def current_stream(device: _DeviceLike | None = None, /) -> Stream:
    """Return the stream that new arrays and imports of this thread use where none is named.

    It is the legacy default stream unless `use_stream` is in effect.

    Args:
        device: The device; that of the thread's current context by default.

    Raises:
        RuntimeError: There is no driver that can be used.
    """

def forget_types() -> None:
    """Ask every type again whether it takes part in DLPack's C exchange.

    Types that do not are remembered too. Call this after a package gave an exchange table to a type whose arrays were
    already used.
    """

empty = DeviceArray.empty
zeros = DeviceArray.zeros
full = DeviceArray.full
asarray = DeviceArray.asarray
from_host = DeviceArray.from_host
from_dlpack = DeviceArray.from_dlpack
