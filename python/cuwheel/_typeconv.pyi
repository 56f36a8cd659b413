"""Conversions between types that are known by number, and the choice of the signature that fits best.

Internal: what `_dispatcher` is told conversions by.
"""

from collections.abc import Iterable
from typing import Literal, SupportsIndex

__all__ = ["check_compatible", "get_pointer", "new_type_manager", "select_overload", "set_compatible"]

def check_compatible(
    tm: object, from_code: SupportsIndex, to_code: SupportsIndex, /
) -> Literal["exact", "promote", "safe", "unsafe"] | None:
    """Return how one type converts to another.

    Args:
        tm: What `new_type_manager` returned.
        from_code: The code of the type that is converted.
        to_code: The code of the type that it is converted to.

    Returns:
        "exact" if the types are the same, or else "promote", "safe" or "unsafe", as `set_compatible` was told, or else
        None.

    Raises:
        TypeError: `tm` is no type manager, or a code no integer.
        OverflowError: A code does not fit in 31 bits.
        ValueError: `tm` belongs to another package.
    """

def get_pointer(tm: object, /) -> int:
    """Return the number by which `_dispatcher.Dispatcher` knows a type manager.

    It is no address, and good for as long as `tm` is alive.

    Args:
        tm: What `new_type_manager` returned.

    Raises:
        TypeError: `tm` is no type manager.
        ValueError: `tm` belongs to another package.
    """

def new_type_manager(*_args: object) -> object:
    """Return a new type manager: a table of conversions, in which each type converts to itself only.

    Arguments are ignored.
    """

def select_overload(
    tm: object,
    sig: Iterable[SupportsIndex],
    ovsigs: Iterable[Iterable[SupportsIndex]],
    allow_unsafe: SupportsIndex,
    exact_match_required: SupportsIndex,
    /,
) -> int:
    """Return which of several signatures fits arguments best.

    The signature with the fewest unsafe conversions is the best, among those the one with the fewest safe conversions,
    and among those the one with the fewest promotions.

    Args:
        tm: What `new_type_manager` returned.
        sig: The codes of the arguments' types.
        ovsigs: For each signature the codes of its types.
        allow_unsafe: Whether unsafe conversions may be used.
        exact_match_required: Whether only the same types fit.

    Returns:
        The position of the signature in `ovsigs`.

    Raises:
        TypeError: No signature fits, or several fit equally well; or an argument is of another type than it should be.
        OverflowError: A code does not fit in 31 bits.
        ValueError: A signature has another number of types than `sig`, or `tm` belongs to another package.
    """

def set_compatible(tm: object, from_code: SupportsIndex, to_code: SupportsIndex, by: SupportsIndex, /) -> None:
    """Say how one type converts to another, in place of what was said before.

    Args:
        tm: What `new_type_manager` returned.
        from_code: The code of the type that is converted.
        to_code: The code of the type that it is converted to.
        by: `ord("p")` for a promotion, `ord("s")` for a safe conversion, `ord("u")` for an unsafe one.

    Raises:
        TypeError: `tm` is no type manager, or another argument no integer.
        OverflowError: A code does not fit in 31 bits.
        ValueError: `by` is something else, or `tm` belongs to another package.
    """
