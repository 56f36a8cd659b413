"""`cuwheel._helperlib` beside the C module of numba-cuda, and `extract_unicode` without a thread state."""

import ctypes
import sys

import pytest
from at_once import at_once
from cuwheel import _helperlib

PROTOTYPE = (ctypes.c_void_p, ctypes.py_object, *[ctypes.c_void_p] * 4)


def extract(module, text, prototype=ctypes.CFUNCTYPE):
    """Characters with the null after them, length, kind, whether ASCII, and hash, as numba-cuda asks for them."""
    function = prototype(*PROTOTYPE)(module.c_helpers["extract_unicode"])
    length, kind, ascii_, hash_ = ctypes.c_ssize_t(-5), ctypes.c_int(-5), ctypes.c_uint(5), ctypes.c_ssize_t(-5)
    data = function(text, *map(ctypes.byref, (length, kind, ascii_, hash_)))
    if data is None:
        return None
    size = (length.value + 1) * kind.value
    return ctypes.string_at(data, size), length.value, kind.value, ascii_.value, hash_.value


TEXTS = ["", "a", "ascii", "\x7f", "\x80", "é", "naïve", "Ā", "\uffff", "snow ☃", "\U00010000", "🐍", "a\0b", "\ud800",
         "é" * 1000, "🐍" * 1000, "x" * 10_000]  # fmt: skip


@pytest.mark.parametrize("prototype", [ctypes.CFUNCTYPE, ctypes.PYFUNCTYPE])
@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_characters_are_those_that_python_keeps(upstream_helperlib, text, prototype):
    # With a hash: only then do the two tell the same.
    hash(text)
    assert extract(_helperlib, text, prototype) == extract(upstream_helperlib, text, prototype)


def test_a_string_that_is_not_ascii():
    assert extract(_helperlib, "é") == (b"\xe9\x00", 1, 1, 0, hash("é"))


def test_the_hash_is_computed_if_need_be(upstream_helperlib):
    # The C module tells -1 for a string that was not hashed yet.
    fresh = [extract(module, "".join(["é", "new"]))[4] for module in (_helperlib, upstream_helperlib)]
    assert fresh == [hash("énew"), -1]


class Text(str):
    """Says of itself what is not true."""

    def __hash__(self):
        raise AssertionError

    def __sizeof__(self):
        return 2**40


def test_subclasses():
    # Their characters lie elsewhere; only ASCII ones can be found.
    assert extract(_helperlib, Text("ascii")) == (b"ascii\0", 5, 1, 1, -1)
    assert extract(_helperlib, Text("é")) is None


@pytest.mark.parametrize("value", [None, 5, b"bytes", [], object()])
def test_what_is_no_string_has_no_characters(value):
    assert extract(_helperlib, value) is None


def test_null_pointers_are_not_followed():
    function = ctypes.CFUNCTYPE(ctypes.c_void_p, *[ctypes.c_void_p] * 5)(_helperlib.c_helpers["extract_unicode"])
    assert function(None, None, None, None, None) is None
    assert function(id("text"), None, None, None, None) is not None


def test_threads_need_not_be_attached():
    def work():
        for _ in range(200):
            for text in TEXTS:
                assert extract(_helperlib, text)[4] == hash(text)

    at_once(work)


def test_constants_are_the_same(upstream_helperlib):
    def constants(module):
        return {name: value for name, value in vars(module).items() if type(value) is int}

    assert constants(_helperlib) == constants(upstream_helperlib)
    assert list(_helperlib.c_helpers) == list(upstream_helperlib.c_helpers)
    assert hasattr(_helperlib, "py_unicode_wchar_kind") == (sys.version_info < (3, 12))


def test_references_are_balanced():
    text = "".join(["é", "counted"])
    before = sys.getrefcount(text)
    for _ in range(100):
        extract(_helperlib, text)
    assert sys.getrefcount(text) == before
