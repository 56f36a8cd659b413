"""What the native code of this package sees of NumPy objects.

Internal: for bug reports and tests. It may change in any release.
"""

from typing import Literal, TypedDict, type_check_only

__all__ = ["describe"]

@type_check_only
class _ArrayDescription(TypedDict):
    exact: bool
    """Whether the type is `numpy.ndarray` itself and no subclass."""
    address: int
    """The address of the item whose indices are all zero."""
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """In bytes."""
    flags: int
    """As `numpy.ndarray.flags.num`."""
    c_contiguous: bool
    f_contiguous: bool
    aligned: bool
    writeable: bool
    behaved: bool
    """Aligned, writeable and in this machine's byte order."""

@type_check_only
class _Description(TypedDict):
    kind: Literal["array", "scalar", "dtype"]
    single_value: bool
    """Whether this is a scalar or an array without dimensions."""
    type_number: int
    """As `numpy.dtype.num`."""
    type_kind: str
    """As `numpy.dtype.kind`."""
    byte_order: str
    """As `numpy.dtype.byteorder`."""
    native_byte_order: bool
    """Whether the byte order is this machine's, or there is none, as for structures."""
    itemsize: int
    """In bytes."""
    alignment: int
    """In bytes."""
    datetime: tuple[str | None, int] | None
    """As `numpy.datetime_data`, for dates and durations; the unit is None if this package does not know it."""
    array: _ArrayDescription | None
    """None unless `kind` is "array"."""

def describe(obj: object, /) -> _Description:
    """Return what native code sees of a NumPy array, scalar or data type.

    NumPy is imported if it was not yet.

    Args:
        obj: A `numpy.ndarray`, a `numpy.generic` or a `numpy.dtype`, or an instance of a subclass.

    Returns:
        A dictionary with the keys of `_Description` in the stub `_numpy.pyi`. Addresses, sizes and strides are in
        bytes; what exists for arrays only is under the key "array", which is None for others.

    Raises:
        TypeError: `obj` is something else.
        ImportError: NumPy cannot be imported. Running out of memory or of stack meanwhile is reported as what it is.
    """
