"""Sizes and limits of C types, and the address of a function that finds the characters of a string.

Internal: for code generators.
"""

from . import _native

__all__ = [
    "c_helpers",
    "long_max",
    "long_min",
    "py_buffer_size",
    "py_gil_state_size",
    "py_unicode_1byte_kind",
    "py_unicode_2byte_kind",
    "py_unicode_4byte_kind",
]

c_helpers = _native._helperlib.c_helpers
long_max = _native._helperlib.long_max
long_min = _native._helperlib.long_min
py_buffer_size = _native._helperlib.py_buffer_size
py_gil_state_size = _native._helperlib.py_gil_state_size
py_unicode_1byte_kind = _native._helperlib.py_unicode_1byte_kind
py_unicode_2byte_kind = _native._helperlib.py_unicode_2byte_kind
py_unicode_4byte_kind = _native._helperlib.py_unicode_4byte_kind

# Before Python 3.12 only.
if hasattr(_native._helperlib, "py_unicode_wchar_kind"):
    py_unicode_wchar_kind = _native._helperlib.py_unicode_wchar_kind
