"""Addresses and byte extents of buffers, and buffers over bare pointers.

Addresses are plain integers: nothing here keeps the memory alive that they point to.
"""

from . import _native

__all__ = ["MemAlloc", "memoryview_get_buffer", "memoryview_get_extents", "memoryview_get_extents_info"]

MemAlloc = _native.mviewbuf.MemAlloc
memoryview_get_buffer = _native.mviewbuf.memoryview_get_buffer
memoryview_get_extents = _native.mviewbuf.memoryview_get_extents
memoryview_get_extents_info = _native.mviewbuf.memoryview_get_extents_info
