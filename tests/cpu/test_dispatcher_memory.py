"""Memory over very many dispatches, hits and misses alike.

What is measured is the process's resident memory: what Rust allocates is not seen by tracemalloc.
CUWHEEL_TEST_DISPATCHES says how many dispatches of each kind; a million take some seconds for each.
"""

import gc
import os
import sys
from itertools import count, repeat
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from cuwheel import _dispatcher, _typeconv
from dispatching import FLOAT64, INT64, LAUNCH_CONFIG, Implementation, Type, typeof
from outcomes import outcome
from values import Attribute, Raising

DISPATCHES = int(os.environ.get("CUWHEEL_TEST_DISPATCHES", "100_000"))
# More than are remembered of anything.
WARM_UP = 10_000
# No object is smaller than 16 bytes, so that one that is left behind by each dispatch takes three times as much.
MOST_BYTES = 512 * 1024


@pytest.fixture(scope="module")
def ours():
    return Implementation(_typeconv, _dispatcher)


SOME = Type(7)


class Quiet(_dispatcher.Dispatcher):
    """Answers callbacks, and keeps nothing of them."""

    def typeof_pyval(self, value):
        if value is Ellipsis:
            raise ValueError("no type")
        # The helper keeps each type that it made.
        return SOME if isinstance(value, np.ndarray) and value.dtype.names else typeof(value)

    def _compile_for_args(self, *args, **kws):
        return _dispatcher.get_current_launch_config(), args, kws

    def _search_new_conversions(self, *args, **kws):
        return False

    def _explain_matching_error(self, *args, **kws):
        raise TypeError("no match")

    def _explain_ambiguous(self, *args, **kws):
        raise TypeError("ambiguous")


class Opaque:
    """Nothing but `typeof_pyval` knows its type."""


HITS = {
    "nothing": (),
    "an int and a float": (1, 2.0),
    "a huge int": (2**70,),
    "a value that says its type": (Attribute(Type(900)),),
    "a value that Python types": (Opaque(),),
    "arrays": (np.zeros(3), np.zeros((2, 2), "f4").T, np.zeros(2, ">i4")),
    "structures": (np.zeros(3, "i4,f4"), np.zeros((), "i4,f4")[()]),
    "scalars": (np.float32(1), np.datetime64(1, "s"), np.bool_(True)),
    "containers": ((1, (2.0, None)), [1], {2.0}),
    "buffers": (bytearray(3), memoryview(b"abc"), b"abc"),
    "more arguments than have room without memory": (1.5,) * 40,
}


def code_of(value):
    if type(value) in (int, float, np.float32):
        return {int: INT64, float: FLOAT64, np.float32: 108}[type(value)]
    return (getattr(value, "_numba_type_", None) or Quiet.typeof_pyval(None, value))._code


def check(work):
    """`work`, many times, does not need more memory than before."""
    for _ in repeat(None, WARM_UP):
        work()
    gc.collect()
    before = resident_bytes()
    for _ in repeat(None, DISPATCHES):
        work()
    gc.collect()
    assert resident_bytes() - before < MOST_BYTES


def resident_bytes():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def test_a_leak_would_be_seen():
    kept = []
    with pytest.raises(AssertionError):
        # More than what earlier tests have left free for small objects, which is used first.
        check(lambda: kept.append(bytearray(1000)))


@pytest.mark.parametrize("keywords", [{}, {LAUNCH_CONFIG: Opaque(), "x": 1}], ids=["", "keywords"])
@pytest.mark.parametrize("name", HITS)
def test_hits(ours, name, keywords):
    arguments, found = HITS[name], Opaque()
    signature = [code_of(argument) for argument in arguments]
    dispatcher = ours.dispatcher(len(arguments), [(signature, found)], class_=Quiet)
    assert dispatcher._cuda_call(*arguments, **keywords) is found
    watched = found, dispatcher, *arguments, *keywords.values()
    before = [sys.getrefcount(each) for each in watched]
    check(lambda: dispatcher._cuda_call(*arguments, **keywords))
    after = [sys.getrefcount(each) for each in watched]
    assert all(abs(now - then) < 50 for then, now in zip(before, after, strict=True))


@pytest.fixture
def dispatchers(ours):
    """Dispatchers for which there is nothing that fits."""
    manager = ours.manager([(INT64, FLOAT64, "s")])
    twice = [([FLOAT64], "first"), ([FLOAT64], "second")]
    return SimpleNamespace(
        arguments=ours.arguments(manager, 1),
        manager=manager,
        open=ours.dispatcher(1, class_=Quiet),
        closed=ours.dispatcher(1, twice, class_=Quiet, manager=manager, can_compile=False),
        strict=ours.dispatcher(1, class_=Quiet, can_fall_back=False),
        folding=ours.dispatcher(2, class_=Quiet, fold=True, names=("a", "b"), defaults=(5,)),
        numbers=count(),
    )


MISSES = {
    "compiled": lambda each: each.open._cuda_call(1, x=2, **{LAUNCH_CONFIG: "config"}),
    "too many arguments": lambda each: each.open._cuda_call(1, 2, 3),
    "without a type, compiled": lambda each: each.open._cuda_call(...),
    "without a type, raised": lambda each: outcome(each.strict._cuda_call, ...),
    "typing is interrupted": lambda each: outcome(each.open._cuda_call, Raising(KeyboardInterrupt())),
    "no match": lambda each: outcome(each.closed._cuda_call, ()),
    "ambiguous": lambda each: outcome(each.closed._cuda_call, 1),
    "folded": lambda each: each.folding._cuda_call(a=1),
    "not folded": lambda each: outcome(each.folding._cuda_call),
    "ever new structures": lambda each: each.open._cuda_call(np.zeros(1, [(f"field {next(each.numbers)}", "i4")])),
    "not initialised": lambda each: outcome(Quiet.__new__(Quiet)._cuda_call, 1),
    "initialised again": lambda each: each.open.__init__(*each.arguments),
    "inserted and cleared": lambda each: (each.open._insert([INT64], len, 1), each.open._clear()),
    "refused": lambda each: outcome(each.open._insert, [INT64, 2**40], len),
    "no fingerprint": lambda each: outcome(_dispatcher.compute_fingerprint, [(1, [])]),
}


@pytest.mark.parametrize("name", MISSES)
def test_misses(dispatchers, name):
    work = MISSES[name]
    check(lambda: work(dispatchers))
