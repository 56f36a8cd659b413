"""Conversions between types that are known by number, and the choice of the signature that fits best.

Internal: what `_dispatcher` is told conversions by.
"""

from . import _native

__all__ = ["check_compatible", "get_pointer", "new_type_manager", "select_overload", "set_compatible"]

check_compatible = _native._typeconv.check_compatible
get_pointer = _native._typeconv.get_pointer
new_type_manager = _native._typeconv.new_type_manager
select_overload = _native._typeconv.select_overload
set_compatible = _native._typeconv.set_compatible
