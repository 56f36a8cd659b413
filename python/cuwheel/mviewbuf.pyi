"""Addresses and byte extents of buffers, and buffers over bare pointers.

Addresses are plain integers: nothing here keeps the memory alive that they point to.
"""

from collections.abc import Iterable
from typing import Self, SupportsIndex

from typing_extensions import Buffer

__all__ = ["MemAlloc", "memoryview_get_buffer", "memoryview_get_extents", "memoryview_get_extents_info"]

def memoryview_get_buffer(obj: Buffer, force: SupportsIndex = 0, readonly: SupportsIndex = 0, /) -> int:
    """Return the address of the first item of a buffer.

    The buffer is released before the function returns. The address is good for as long as the caller keeps `obj` alive
    and does not resize it.

    Args:
        obj: Any object that exports a buffer; it is asked for `PyBUF_RECORDS`, or `PyBUF_RECORDS_RO` if read-only.
        force: If true, an object without a writable buffer is asked for a read-only one.
        readonly: If true, only a read-only buffer is asked for.

    Returns:
        The address as a non-negative integer.

    Raises:
        TypeError: `obj` exports no buffer.
        BufferError: The buffer is not writable, and neither `force` nor `readonly` is true.
        Exception: Whatever else the exporter raises.
    """

def memoryview_get_extents(obj: Buffer, /) -> tuple[int, int]:
    """Return the half-open range of addresses that a buffer covers.

    Negative strides are taken into account: the range may start before the first item. Memory between items counts as
    covered.

    Args:
        obj: Any object that exports a buffer; it is asked for `PyBUF_RECORDS_RO`.

    Returns:
        `(start, end)` as non-negative integers; equal if the buffer has no items.

    Raises:
        TypeError: `obj` exports no buffer.
        ValueError: The exporter gives no shape or no strides, as `ctypes` arrays do.
        OverflowError: The range lies outside the address space.
        Exception: Whatever else the exporter raises.
    """

def memoryview_get_extents_info(
    shape: Iterable[SupportsIndex],
    strides: Iterable[SupportsIndex],
    ndim: SupportsIndex,
    itemsize: SupportsIndex,
    /,
) -> tuple[int, int]:
    """Return the half-open range of byte offsets that an array covers, relative to its first item.

    Args:
        shape: The number of items along each dimension. Only the first `ndim` values are read.
        strides: The bytes from one item to the next along each dimension. Only the first `ndim` values are read.
        ndim: The number of dimensions, zero or more.
        itemsize: The size of an item in bytes, one or more.

    Returns:
        `(start, end)`, for example `(-64, 32)` for shape `(3, 4)`, strides `(-32, 8)` and itemsize 8; `(0, 0)` if a
        dimension has size 0.

    Raises:
        ValueError: `ndim` is negative, `itemsize` is not positive (the message is "ndim <= 0" all the same, as it
            always was), or there are fewer than `ndim` sizes or strides.
        TypeError: `shape` or `strides` is not a sequence of integers.
        OverflowError: A value or an offset does not fit in 64 bits.
    """

class MemAlloc:
    """Base class of objects that offer memory known by address and length as a buffer.

    A subclass, or its instances, has the attributes `_buflen_`, the length in bytes (an integer), and `_bufptr_`, the
    address (anything that `int()` takes). Both are read, in this order and by ordinary attribute access, each time a
    buffer is asked for.

    The buffer is one-dimensional, contiguous, of format "B". It is writable if and only if the consumer asks for a
    writable one: `memoryview(obj).readonly` is true, while `numpy.ndarray(n, "u1", buffer=obj)` is writable. It keeps
    the object alive, not the memory: that is for the subclass to ensure.

    Constructor arguments are ignored.

    Raises, when a buffer is asked for:
        AttributeError: An attribute is missing.
        TypeError: An attribute is not a number.
        ValueError: The length is negative or the address is null.
        OverflowError: A value does not fit in 64 bits, or the memory would end outside the address space.
    """

    def __new__(cls, *_args: object, **_kwargs: object) -> Self: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __release_buffer__(self, buffer: memoryview, /) -> None: ...
