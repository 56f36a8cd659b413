"""Sizes and limits of C types, and the address of a function that finds the characters of a string.

Internal: for code generators.
"""

import sys

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

c_helpers: dict[str, int]
"""The address of `void *extract_unicode(PyObject *string, Py_ssize_t *length, int *kind, unsigned *ascii, Py_hash_t *hash)`.

It returns where the characters of a string are, for as long as the string is alive, and sets how many there are, of how
many bytes each, whether all are ASCII, and the string's hash. It returns null for what is no string, and for strings of
subclasses with other than ASCII characters. The thread need not be attached to the interpreter.
"""
long_max: int
long_min: int
"""The limits of C's `long`."""
py_buffer_size: int
"""The size of `Py_buffer` in bytes."""
py_gil_state_size: int
"""The size of `PyGILState_STATE` in bytes."""
py_unicode_1byte_kind: int
py_unicode_2byte_kind: int
py_unicode_4byte_kind: int
"""What `extract_unicode` sets `kind` to."""

if sys.version_info < (3, 12):
    py_unicode_wchar_kind: int
