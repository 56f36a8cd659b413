"""`cuwheel._dispatcher` beside the C++ module of numba-cuda: the same results, exceptions, messages and callbacks.

Where ours differs on purpose is at the end, and in docs/overlay.md. What makes the C++ module crash is in
test_dispatcher_hostile.py.
"""

import sys

import numpy as np
import pytest
from dispatching import CODES, FLOAT64, INT64, LAUNCH_CONFIG, OmittedArg, typeof
from hypothesis import given
from hypothesis import strategies as st
from outcomes import Outcome, outcome
from values import VALUES, DeviceArray, Other, Point

#: NumPy's bytes are a subclass of Python's, and have another type; C++ takes the two for the same.
DIFFERENT = {"scalar S3"}
SAME = sorted({*VALUES} - DIFFERENT)
KNOWN_CODES = [CODES["int32"], INT64, CODES["float32"], FLOAT64, 1000, 1001, 2001, 2002]
names = st.sampled_from(SAME)
codes = st.sampled_from(KNOWN_CODES)
conversions = st.lists(st.tuples(codes, codes, st.sampled_from("psu")), max_size=12)
ERRORS = [None, TypeError("explained"), KeyError("explained")]
SEARCHES = [False, True, 1, None, ValueError("searched")]


def test_the_public_names_are_the_same(ours, theirs):
    public = {name for name in vars(theirs.module) if not name.startswith("_")}
    # Ours have what all releases need.
    later = {"get_current_launch_args", "get_current_launch_config", "swap_current_launch_args"}
    own = {"LaunchingDispatcher", "PlainDispatcher", "launch_stats"}
    assert set(ours.module.__all__) - own - later <= public <= set(ours.module.__all__)


def test_the_class_has_the_same_shape(ours, theirs):
    first, second = ours.base, theirs.base
    assert {name for name in vars(second) if not name.startswith("__")} <= set(dir(first))
    assert type(first) is type(second) is type
    for attribute in ("__itemsize__", "__dictoffset__", "__weakrefoffset__"):
        assert getattr(first, attribute) == getattr(second, attribute)
    is_base_type, has_gc = 1 << 10, 1 << 14
    assert first.__flags__ & second.__flags__ & is_base_type & has_gc == is_base_type & has_gc
    for class_ in (first, second):
        raw = class_.__new__(class_, 1, 2, three=3)
        assert raw._can_compile is False
        assert outcome(setattr, raw, "_can_compile", 1)[1:] == (TypeError, "attribute value type must be bool")
        assert outcome(delattr, raw, "_can_compile")[1:] == (TypeError, "can't delete numeric/char attribute")
        assert outcome(setattr, raw, "other", 1).exception is AttributeError


#: From 3.13 on Python reports the exceptions that C++ swallows while it asks for an attribute.
swallowing = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@swallowing
@given(st.data())
def test_calls(ours, theirs, data):
    count = data.draw(st.integers(0, 3))
    signature = st.lists(codes, min_size=count, max_size=count)
    overloads = [(each, f"overload {at}") for at, each in enumerate(data.draw(st.lists(signature, max_size=5)))]
    known = data.draw(conversions)
    options = {
        name: data.draw(st.booleans()) for name in ("can_compile", "can_fall_back", "exact", "fold")
    }
    search, explain = data.draw(st.sampled_from(SEARCHES)), data.draw(st.sampled_from(ERRORS))
    calls = data.draw(st.lists(st.lists(names, min_size=count, max_size=count), min_size=1, max_size=4))
    keywords = {} if options["fold"] else data.draw(st.sampled_from([{}, {"x": 1}, {LAUNCH_CONFIG: None}]))

    def run(implementation):
        manager = implementation.manager(known)
        dispatcher = implementation.dispatcher(count, overloads, manager=manager, **options)
        dispatcher.new_conversions, dispatcher.explain = search, explain
        for call in calls:
            arguments = [VALUES[name]() for name in call]
            yield outcome(lambda: dispatcher._cuda_call(*arguments, **keywords)), list(dispatcher.log)
            dispatcher.log.clear()

    assert list(run(ours)) == list(run(theirs))


@swallowing
@pytest.mark.parametrize("name", SAME)
def test_every_value_has_the_same_type(ours, theirs, name):
    """By the code that it matches, and by how often Python is asked for it."""
    candidates = sorted({*KNOWN_CODES, *CODES.values(), 2003})
    value = VALUES[name]
    try:
        candidates = sorted({*candidates, typeof(value())._code})
    except (StopIteration, ValueError):
        pass

    def run(implementation):
        for can_fall_back in (True, False):
            overloads = [([code], code) for code in candidates]
            dispatcher = implementation.dispatcher(1, overloads, can_fall_back=can_fall_back)
            for _ in range(3):
                yield outcome(dispatcher._cuda_call, value()), list(dispatcher.log)

    assert list(run(ours)) == list(run(theirs))


def test_every_value_has_a_fingerprint_or_not_as_before(ours, theirs):
    def kind(implementation, value):
        result = outcome(implementation.module.compute_fingerprint, value)
        return result._replace(result=None), type(result.result)

    for name in SAME:
        if name != "huge int":
            value = VALUES[name]
            assert kind(ours, value()) == kind(theirs, value()), name


@pytest.mark.parametrize("name", ["None", "tuple", "nested tuple", "float subclass", "0-d array f", "scalar M8[25us]",
                                  "strided array", "repeated array", "list of lists", "set", "dtype f"])  # fmt: skip
def test_fingerprints_are_the_same_where_they_tell_enough(ours, theirs, name):
    value = VALUES[name]()
    assert ours.module.compute_fingerprint(value) == theirs.module.compute_fingerprint(value)


def test_fingerprints_never_tell_less_apart(ours, theirs):
    def classes(implementation):
        seen = {}
        for name, value in VALUES.items():
            result = outcome(implementation.module.compute_fingerprint, value())
            if result.exception is None:
                seen.setdefault(result.result, set()).add(name)
        return [frozenset(names) for names in seen.values()]

    coarse = classes(theirs)
    assert all(any(fine <= each for each in coarse) or "huge int" in fine for fine in classes(ours))


@given(st.data())
def test_arguments_by_name_and_default(ours, theirs, data):
    count = data.draw(st.integers(1, 4))
    further = data.draw(st.booleans())
    named = count - further
    options = {
        "fold": True,
        "further": further,
        "defaults": tuple(data.draw(st.lists(st.integers(), max_size=named))),
    }
    arguments = data.draw(st.lists(st.integers(0, 9) | st.just(1.5), max_size=count + 2))
    keywords = data.draw(st.dictionaries(st.sampled_from("abcdz"), st.integers(0, 9), max_size=3))

    def run(implementation):
        dispatcher = implementation.dispatcher(count, [([INT64] * count, "found")], **options)
        seen = []
        dispatcher._compile_for_args = lambda *args, **kws: seen.append((args, kws)) or "compiled"
        return outcome(lambda: dispatcher._cuda_call(*arguments, **keywords)), seen

    assert run(ours) == run(theirs)


INTEGERS = [0, 1, -1, True, 2**31, 2**70, 1.5, None, "1"]


def test_wrong_arguments_of_init(ours, theirs):
    def calls(implementation):
        class_, manager = implementation.base, implementation.manager()
        pointer = implementation.typeconv.get_pointer(manager)
        good = (pointer, 1, 0, ("a",), (), 1, 0, 0)
        for count in range(10):
            yield outcome(class_.__init__, class_.__new__(class_), *(good + (0,))[:count])
        # What is wrong with a later argument crashes C++ when the object is freed.
        for position in (1, 2):
            for value in INTEGERS:
                if (position, value) != (1, -1):
                    wrong = (*good[:position], value, *good[position + 1 :])
                    yield outcome(class_.__init__, class_.__new__(class_), *wrong)
        yield outcome(lambda: class_.__init__(class_.__new__(class_), *good, ignored=1))

    assert list(calls(ours)) == list(calls(theirs))


def test_wrong_arguments_of_insert(ours, theirs):
    def calls(implementation):
        dispatcher = implementation.dispatcher(1)
        for implementation_ in (5, None, lambda: None, int, len, [].append):
            yield outcome(dispatcher._insert, [1], implementation_)
            yield outcome(dispatcher._insert, [1], implementation_, 0)
        for value in INTEGERS:
            yield outcome(dispatcher._insert, [1], len, value)
            yield outcome(dispatcher._insert, [1], len, 0, value)
        yield outcome(lambda: dispatcher._insert(sig=[1], func=len, objectmode=0, cuda=1))

    assert list(calls(ours)) == list(calls(theirs))
    for arguments in [(), ([1],), ([1], len, 0, 0, 0)]:
        seen = {outcome(each.dispatcher(1)._insert, *arguments).exception for each in (ours, theirs)}
        assert seen == {TypeError}
    functions = set(ours.module.__all__) & set(vars(theirs.module)) - {"Dispatcher"}
    for name in sorted(functions):
        # Not with a class as the first argument of typeof_init: C++ would keep it.
        for arguments in [(1,) * 5, (5, {})]:
            seen = [outcome(getattr(each.module, name), *arguments).exception for each in (ours, theirs)]
            assert seen == [TypeError] * 2
    seen = [outcome(each.module.typeof_init, None, {}) for each in (ours, theirs)]
    assert seen[0] == seen[1]


def test_callbacks_that_are_missing(ours, theirs):
    def calls(implementation):
        for can_compile in (True, False):
            for overloads in ([], [([INT64], "one"), ([INT64], "two")]):
                bare = type("Bare", (implementation.base,), {})
                dispatcher = implementation.dispatcher(1, overloads, class_=bare, can_compile=can_compile)
                yield outcome(dispatcher._cuda_call, 1)
                dispatcher._search_new_conversions = lambda *args: False
                yield outcome(dispatcher._cuda_call, 1)
                yield outcome(dispatcher._cuda_call, "untyped")

    ours, theirs = list(calls(ours)), list(calls(theirs))
    for first, second in zip(ours, theirs, strict=True):
        assert first == second


def test_callbacks_are_looked_up_on_the_instance(ours, theirs):
    for implementation in (ours, theirs):
        dispatcher = implementation.dispatcher(1)
        dispatcher._compile_for_args = lambda *args, **kws: ("instance", args, kws)
        assert dispatcher._cuda_call(1, x=2) == ("instance", (1,), {"x": 2})
        dispatcher.typeof_pyval = lambda value: typeof(1.5j)
        dispatcher._insert([typeof(1.5j)._code], "found", cuda=True)
        assert dispatcher._cuda_call("text") == "found"
        assert implementation.base._cuda_call(dispatcher, "text") == "found"


def test_the_fallback_is_called_last(ours, theirs):
    # C++ passes a tuple and a dictionary, whatever the function takes: with `len` it would be the length of the tuple.
    fallback = "called with {}".format

    def calls(implementation):
        dispatcher = implementation.dispatcher(1)
        dispatcher._insert([INT64], fallback, 1)
        for can_compile in (True, False):
            dispatcher._can_compile = can_compile
            yield outcome(dispatcher._cuda_call, 5), list(dispatcher.log)
            yield outcome(dispatcher._cuda_call, [1, 2]), list(dispatcher.log)

    assert list(calls(ours)) == list(calls(theirs))


def test_the_launch_configuration_is_seen_while_compiling(ours, theirs):
    if not hasattr(theirs.module, "get_current_launch_config"):
        pytest.skip("this release has no launch configuration")

    def run(implementation):
        current, seen = implementation.module.get_current_launch_config, []

        def compile_(value, **kws):
            seen.append((value, current(), kws))
            if value == 1:
                dispatcher._cuda_call(2.5, **{LAUNCH_CONFIG: "inner"})
                dispatcher._cuda_call(3.5)
                dispatcher._cuda_call(4.5, **{LAUNCH_CONFIG: None})
                seen.append(current())
                raise ZeroDivisionError
            return "compiled"

        dispatcher = implementation.dispatcher(1)
        dispatcher._compile_for_args = compile_
        seen.append(outcome(lambda: dispatcher._cuda_call(1, x=5, **{LAUNCH_CONFIG: "outer"})))
        swap = implementation.module.swap_current_launch_args
        return seen, current(), [swap(each) for each in ("a", "b", None, "c", None)]

    assert run(ours) == run(theirs)


def test_references_are_balanced_on_hits_and_misses(ours, theirs):
    """With C++ on hits only: it keeps a reference for each type that it remembers."""
    for implementation in (ours, theirs):
        values = [VALUES[name]() for name in ("device array", "array f", "tuple", "scalar f", "str", "float")]
        overload, config = object(), object()
        for value in values:
            dispatcher = implementation.dispatcher(1, [([2001], overload), ([FLOAT64], overload)])
            for _ in range(3):
                dispatcher._cuda_call(value)
            watched = [value, overload, config, dispatcher, dispatcher.manager]
            before = [sys.getrefcount(each) for each in watched]
            for _ in range(100):
                dispatcher._cuda_call(value, **{LAUNCH_CONFIG: config})
            dispatcher.log.clear()
            after = [sys.getrefcount(each) for each in watched]
            assert before == after, value


# What differs on purpose.


def test_t2_byte_orders_are_told_apart(ours, theirs):
    """T2: a read-only array in the other byte order was taken for one in the machine's."""
    little, big = np.frombuffer(b"12345678", "<i4"), np.frombuffer(b"12345678", ">i4")
    results = []
    for implementation in (ours, theirs):
        dispatcher = implementation.dispatcher(1)
        dispatcher._cuda_call(little)
        dispatcher._insert([typeof(little)._code], "little", cuda=True)
        results.append(dispatcher._cuda_call(big))
    assert results == ["compiled", "little"]


def test_t3_masked_arrays_are_no_arrays(ours, theirs):
    masked, plain = np.ma.zeros(3, "f4"), np.zeros(3, "f4")
    results = []
    for implementation in (ours, theirs):
        dispatcher = implementation.dispatcher(1)
        dispatcher._cuda_call(plain)
        dispatcher._insert([typeof(plain)._code], "plain", cuda=True)
        results.append(dispatcher._cuda_call(masked))
    assert results == ["compiled", "plain"]


def test_t11_the_type_attribute_is_evaluated_once(ours, theirs):
    class Counting:
        count = 0

        @property
        def _numba_type_(self):
            self.count += 1
            return typeof(1.5j)

    counts = []
    for implementation in (ours, theirs):
        counting = Counting()
        implementation.dispatcher(1)._cuda_call(counting)
        counts.append(counting.count)
    assert counts == [1, 2]


def test_t11_a_type_attribute_of_none_is_no_type(ours, theirs):
    value = type("Value", (), {"_numba_type_": None})()
    seen = []
    for implementation in (ours, theirs):
        dispatcher = implementation.dispatcher(1, can_fall_back=False)
        seen.append((outcome(dispatcher._cuda_call, value), dispatcher.log))
    assert seen[0] == (Outcome("compiled"), [("typeof", type(value)), ("compile", 1, {})])
    assert seen[1] == (Outcome(None, AttributeError, "'NoneType' object has no attribute '_code'"), [])


def test_t13_codes_beyond_31_bits_are_refused(ours, theirs):
    value = type("Value", (), {"_numba_type_": type("Type", (), {"_code": 2**32 + INT64})})()
    results = []
    for implementation in (ours, theirs):
        dispatcher = implementation.dispatcher(1, [([INT64], "int64")], can_fall_back=False)
        results.append(outcome(dispatcher._cuda_call, value))
    assert (results[0].exception, results[1].result) == (OverflowError, "int64")


def test_t4_huge_integers_are_int64_as_before(ours, theirs):
    for implementation in (ours, theirs):
        dispatcher = implementation.dispatcher(1, [([INT64], "int64")])
        assert [dispatcher._cuda_call(value) for value in (2**63, 2**70, -(2**70))] == ["int64"] * 3


def fingerprints(implementation, *values):
    return len({implementation.module.compute_fingerprint(value) for value in values})


def test_other_values_that_are_told_apart(ours, theirs):
    aligned = np.dtype("i4,i8", align=True)
    unaligned = np.dtype({"names": ["f0", "f1"], "formats": ["i4", "i8"], "offsets": [0, 8], "itemsize": 16})
    subclass = type("Bytes", (bytes,), {})
    for pair in [
        (np.zeros(1, aligned), np.zeros(1, unaligned)),
        (np.zeros(1, [("n", aligned)]), np.zeros(1, [("n", unaligned)])),
        ((1,), (2**63,)),
        (b"bytes", subclass(b"bytes")),
        (OmittedArg(1), OmittedArg(2)),
        (np.dtype("<M8[s]"), np.dtype(">M8[s]")),
    ]:
        assert (fingerprints(ours, *pair), fingerprints(theirs, *pair)) == (2, 1), pair
    assert fingerprints(ours, Point(1, 2), Other(1, 2), (1, 2)) == 3
    twin = type("Point", (Point,), {})
    assert (fingerprints(ours, Point(1, 2), twin(1, 2)), fingerprints(theirs, Point(1, 2), twin(1, 2))) == (2, 1)
    assert fingerprints(ours, DeviceArray().__class__.__name__.encode(), b"") == 1
