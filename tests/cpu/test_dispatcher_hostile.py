"""Calls that crash, corrupt or leak the C++ module that `cuwheel._dispatcher` replaces.

Tests are named after the faults. Nothing here is tried with the C++ module.
"""

import gc
import sys
import tracemalloc
import weakref
from pathlib import Path

import fresh_python
import numpy as np
import pytest
from cuwheel import _dispatcher, _typeconv
from dispatching import CODES, FLOAT64, INT64, LAUNCH_CONFIG, Implementation, OmittedArg, Type, typeof
from outcomes import Outcome, outcome
from values import VALUES, Attribute, Raising

Dispatcher = _dispatcher.Dispatcher


@pytest.fixture(scope="module")
def ours():
    return Implementation(_typeconv, _dispatcher)


class Implemented:
    """Something to insert that can be watched."""


def test_h1_a_failing_init_changes_nothing(ours):
    dispatcher, manager = ours.dispatcher(1, [([INT64], "found")]), ours.manager()
    names, defaults = ("".join(["a"]),), ("".join(["b"]),)
    before = sys.getrefcount(names), sys.getrefcount(defaults)
    pointer = ours.typeconv.get_pointer(manager)
    for wrong, expected in [
        ((names, [], 1), (TypeError, "argument 5 must be tuple, not list")),
        ((None, defaults, 1), (TypeError, "argument 4 must be tuple, not None")),
        ((names, defaults, "x"), (TypeError, "'str' object cannot be interpreted as an integer")),
        ((names, defaults, 1, 0, 2**31), (OverflowError, "signed integer is greater than maximum")),
    ]:
        assert outcome(dispatcher.__init__, pointer, 1, 0, *wrong)[1:] == expected
    del wrong
    assert (sys.getrefcount(names), sys.getrefcount(defaults)) == before
    assert dispatcher._cuda_call(1) == "found"
    del dispatcher
    assert (sys.getrefcount(names), sys.getrefcount(defaults)) == before


def test_h1_init_may_be_called_again_and_leaks_nothing(ours):
    implemented = Implemented()
    alive = weakref.ref(implemented)
    dispatcher = ours.dispatcher(1)
    dispatcher._insert([INT64], implemented, cuda=True)
    names = ("first",)
    before = sys.getrefcount(names)
    for _ in range(10):
        dispatcher.__init__(*ours.arguments(dispatcher.manager, 1, names=names))
    assert sys.getrefcount(names) == before + 1
    del implemented
    assert alive() is None
    assert dispatcher._cuda_call(1) == "compiled"


@pytest.mark.parametrize("pointer", [0, 1, 4096, -1, 2**64 - 1, 2**63])
def test_h2_numbers_that_are_no_type_manager(pointer):
    expected = OverflowError if pointer < 0 else ValueError
    assert outcome(Dispatcher, pointer, 1, 0, ("a",), (), 1).exception is expected


def test_h2_a_type_manager_that_is_gone(ours):
    pointer = ours.typeconv.get_pointer(ours.manager())
    with pytest.raises(ValueError, match="or one that is gone"):
        Dispatcher(pointer, 1, 0, ("a",), (), 1)


def test_h2_a_dispatcher_keeps_its_conversions(ours):
    manager = ours.manager([(INT64, FLOAT64, "s")])
    dispatcher = ours.dispatcher(1, [([FLOAT64], "float64")], manager=manager, can_compile=False)
    del dispatcher.manager, manager
    gc.collect()
    assert dispatcher._cuda_call(1) == "float64"


@pytest.mark.parametrize("class_", [Dispatcher, _dispatcher.PlainDispatcher])
def test_h2_before_init(class_):
    raw = class_.__new__(class_, "ignored", also="ignored")
    for call in [raw._cuda_call, lambda: raw._cuda_call(1), lambda: raw._insert([], len)]:
        with pytest.raises(RuntimeError, match="call Dispatcher.__init__ first"):
            call()
    raw._clear()
    raw._can_compile = True
    del raw
    gc.collect()


@pytest.mark.parametrize("argct", [-1, -(2**31)])
def test_h2_a_negative_number_of_parameters(ours, argct):
    with pytest.raises(ValueError, match="argct must be the number of parameters"):
        ours.dispatcher(argct)


def test_h3_cycles_are_collected(ours):
    dispatcher = ours.dispatcher(1)
    implemented = Implemented()
    implemented.dispatcher = dispatcher
    dispatcher._insert([INT64], implemented, cuda=True)
    names = Names(["a"])
    names.dispatcher = dispatcher
    dispatcher.__init__(*ours.arguments(dispatcher.manager, 1, names=names))
    dispatcher._insert([INT64], implemented, cuda=True)
    alive = weakref.ref(dispatcher), weakref.ref(implemented)
    del dispatcher, implemented, names
    gc.collect()
    assert [each() for each in alive] == [None, None]


class Names(tuple):
    """A tuple that can be part of a cycle."""


def test_h3_what_is_inserted_is_seen_by_the_garbage_collector(ours):
    implemented = Implemented()
    dispatcher = ours.dispatcher(1)
    dispatcher._insert([INT64], implemented, cuda=True)
    dispatcher._insert([FLOAT64], len, objectmode=1)
    assert {id(implemented), id(len)} <= set(map(id, gc.get_referents(dispatcher)))


@pytest.mark.parametrize(
    ("signature", "exception"),
    [
        (5, TypeError),
        (None, TypeError),
        (["x"], TypeError),
        ([1.5], TypeError),
        ([None], TypeError),
        ([2**31], OverflowError),
        ([2**70], OverflowError),
        ([], ValueError),
        ([1, 2], ValueError),
        (iter([1, 2, 3]), ValueError),
    ],
)
def test_h4_signatures_are_checked_before_anything_is_added(ours, signature, exception):
    dispatcher = ours.dispatcher(1, [([INT64], "found")])
    implemented = Implemented()
    assert outcome(dispatcher._insert, signature, implemented, 0, True).exception is exception
    assert sys.getrefcount(implemented) == 2
    assert dispatcher._cuda_call(1) == "found"
    assert len([each for each in gc.get_referents(dispatcher) if isinstance(each, Implemented)]) == 0


def test_h4_any_iterable_will_do(ours):
    for signature in (iter([INT64]), range(INT64, INT64 + 1), {INT64: 1}, (code for code in [INT64])):
        dispatcher = ours.dispatcher(1)
        dispatcher._insert(signature, "found", cuda=True)
        assert dispatcher._cuda_call(1) == "found"


def test_h6_what_is_inserted_is_kept_and_given_up(ours):
    implemented = Implemented()
    alive = weakref.ref(implemented)
    dispatcher = ours.dispatcher(1)
    dispatcher._insert([INT64], implemented, cuda=True)
    del implemented
    gc.collect()
    assert dispatcher._cuda_call(1) is alive()
    dispatcher._clear()
    assert alive() is None
    assert dispatcher._cuda_call(1) == "compiled"


def test_h6_clear_forgets_the_fallback(ours):
    dispatcher = ours.dispatcher(1, can_compile=False)
    dispatcher._insert([INT64], "{}".format, objectmode=1)
    assert dispatcher._cuda_call(()) == "()"
    dispatcher._clear()
    assert outcome(dispatcher._cuda_call, ()).exception is RuntimeError


def test_h6_clear_while_what_is_removed_comes_back(ours):
    dispatcher = ours.dispatcher(1)

    class Returning:
        def __del__(self):
            dispatcher._insert([INT64], "from __del__", cuda=True)
            dispatcher._clear()
            dispatcher._insert([FLOAT64], "again", cuda=True)

    dispatcher._insert([INT64], Returning(), cuda=True)
    dispatcher._clear()
    assert (dispatcher._cuda_call(1), dispatcher._cuda_call(1.5)) == ("compiled", "again")


@pytest.mark.parametrize("fallback", [5, None, "text", lambda value, **kws: (value, kws), dict])
def test_h7_a_fallback_of_any_kind(ours, fallback):
    dispatcher = ours.dispatcher(1, can_compile=False)
    dispatcher._insert([INT64], fallback, objectmode=1, cuda=1)
    expected = outcome(lambda: fallback([(1, 2)], x=5))
    assert outcome(lambda: dispatcher._cuda_call([(1, 2)], x=5)) == expected


@pytest.mark.parametrize("can_compile", [True, False])
def test_h8_arguments_are_counted(ours, can_compile):
    manager = ours.manager([(INT64, FLOAT64, "s")])
    for count in (0, 1, 2, 3, 26):
        overload = ([INT64] * count, "found")
        dispatcher = ours.dispatcher(count, [overload], manager=manager, can_compile=can_compile)
        dispatcher.explain = TypeError("no match")
        for actual in (0, 1, 2, 3, 20, 24, 25, 26, 27, 100):
            if actual == count:
                assert dispatcher._cuda_call(*[1] * actual) == "found"
            elif can_compile:
                assert dispatcher._cuda_call(*[1] * actual) == "compiled"
            else:
                assert outcome(dispatcher._cuda_call, *[1] * actual)[1:] == (TypeError, "no match")


def test_h8_a_function_with_any_number_of_parameters(ours):
    dispatcher = ours.dispatcher(1, further=True)
    for count in range(4):
        dispatcher._insert([INT64] * count, count, cuda=True)
    assert [dispatcher._cuda_call(*[1] * count) for count in range(5)] == [0, 1, 2, 3, "compiled"]


def test_h9_arguments_survive_errors(ours):
    argument, key = object(), "".join(["key", "word"])
    dispatcher = ours.dispatcher(2, fold=True, can_fall_back=False, can_compile=False)
    before = sys.getrefcount(argument), sys.getrefcount(key)
    for _ in range(50):
        outcome(lambda: dispatcher._cuda_call(argument, **{key: argument}))
        outcome(lambda: dispatcher._cuda_call(argument, argument, argument))
        outcome(lambda: dispatcher._cuda_call(argument, argument, **{LAUNCH_CONFIG: argument}))
        outcome(lambda: Dispatcher.__new__(Dispatcher)._cuda_call(argument))
    assert (sys.getrefcount(argument), sys.getrefcount(key)) == before


class Name(str):
    """A name that does not like to be compared."""

    __hash__ = str.__hash__

    def __eq__(self, other):
        raise RuntimeError("compared")


def test_names_of_arguments_are_compared_as_text(ours):
    dispatcher = ours.dispatcher(1, [([INT64], "found")])
    for config in ("".join(LAUNCH_CONFIG), Name(LAUNCH_CONFIG)):
        assert dispatcher._cuda_call(1, **{config: 5}) == "found"
        assert dispatcher._cuda_call("text", **{config: 5}) == "compiled"
        assert dispatcher.log[-1] == ("compile", 1, {})
    for other in (LAUNCH_CONFIG + "_", "\ud800"):
        assert dispatcher._cuda_call("text", **{other: 5}) == "compiled"
        assert dispatcher.log[-1] == ("compile", 1, {other: 5})


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3), MemoryError(), GeneratorExit()], ids=repr)
def test_h10_interrupts_are_not_swallowed(ours, error):
    dispatcher = ours.dispatcher(1, can_fall_back=True)
    assert outcome(dispatcher._cuda_call, Raising(error)).exception is type(error)

    def typeof_pyval(value):
        raise error

    dispatcher.typeof_pyval = typeof_pyval
    assert outcome(dispatcher._cuda_call, "text").exception is type(error)
    assert outcome(dispatcher._cuda_call, VALUES["array O"]()).exception is type(error)
    explaining = type("Explaining", (Dispatcher,), {"_search_new_conversions": lambda *args: False,
                                                    "_explain_matching_error": property(lambda self: typeof_pyval(0))})  # fmt: skip
    dispatcher = ours.dispatcher(1, class_=explaining, can_compile=False)
    assert outcome(dispatcher._cuda_call, 1).exception is type(error)


@pytest.mark.parametrize("error", [ValueError("mine"), RecursionError(), AttributeError("mine"), ImportError("mine")])
def test_h10_ordinary_errors_are_left_to_compiling(ours, error):
    dispatcher = ours.dispatcher(1, can_fall_back=True)
    dispatcher.typeof_pyval = lambda value: Raising(error)._numba_type_
    assert dispatcher._cuda_call("text") == "compiled"
    dispatcher.__init__(*ours.arguments(dispatcher.manager, 1, can_fall_back=False))
    assert outcome(dispatcher._cuda_call, "text") == Outcome(None, type(error), str(error))


def test_t5_values_that_contain_themselves(ours):
    endless = []
    endless.append(endless)
    mutual = [()]
    mutual[0] = (mutual,)
    deep = ()
    for _ in range(100_000):
        deep = (deep,)
    for value in (endless, mutual, deep):
        # Either the stack ends first or what is worth remembering.
        assert outcome(ours.module.compute_fingerprint, value).exception in {RecursionError, NotImplementedError}
        dispatcher = ours.dispatcher(1)
        dispatcher.typeof_pyval = lambda value: Type(1)
        assert dispatcher._cuda_call(value) == "compiled"
    while deep:
        [deep] = deep


def test_t7_long_fingerprints_are_none(ours):
    assert outcome(ours.module.compute_fingerprint, (1,) * 100_000).exception is NotImplementedError
    wide = ()
    for _ in range(60):
        wide = (wide, wide)
    assert outcome(ours.module.compute_fingerprint, wide).exception is NotImplementedError


def test_a_default_whose_text_python_refuses_is_typed_by_python(ours):
    dispatcher = ours.dispatcher(1, [([typeof(OmittedArg(0))._code], "found")], can_fall_back=False)
    assert dispatcher._cuda_call(OmittedArg(10**5000)) == "found"
    assert outcome(ours.module.compute_fingerprint, OmittedArg(10**5000)).exception is NotImplementedError


def test_deeply_nested_structures(ours):
    # Many more, and NumPy itself crashes.
    dtype = np.dtype([("a", "i4")])
    for _ in range(20_000):
        dtype = np.dtype([("a", dtype)])
    value = np.zeros(1, dtype)
    assert outcome(ours.module.compute_fingerprint, value).exception is RecursionError
    dispatcher = ours.dispatcher(1)
    dispatcher.typeof_pyval = lambda value: Type(1)
    assert dispatcher._cuda_call(value) == "compiled"


def test_t8_classes_with_one_address_are_told_apart(ours):
    seen = set()
    for _ in range(50):
        class_ = type("Point", (tuple,), {"_fields": ("x",)})
        seen.add(ours.module.compute_fingerprint(class_((1,))))
        del class_
        gc.collect()
    assert len(seen) == 50


def test_t8_a_data_type_whose_names_change_is_another_one(ours):
    dtype = np.dtype([("a", "i4")])
    values = np.zeros(3, dtype)
    first = ours.module.compute_fingerprint(values)
    values.dtype.names = ("b",)
    renamed = ours.module.compute_fingerprint(values)
    values.dtype.names = ("a",)
    assert ours.module.compute_fingerprint(values) == first != renamed
    assert ours.module.compute_fingerprint(np.zeros(3, [("a", "i4")])) == first


def new_kinds(ours, count=6000):
    """Values of ever new types: more than are remembered."""
    dispatcher = ours.dispatcher(1)
    dispatcher.typeof_pyval = lambda value: Type(7)
    dispatcher._insert([7], "found", cuda=True)
    for number in range(count):
        assert dispatcher._cuda_call(np.zeros(1, [(f"field {number}", "i4")])) == "found"
        class_ = type("Point", (tuple,), {"_fields": ("x",)})
        assert dispatcher._cuda_call(class_((1,))) == "found"
        assert dispatcher._cuda_call(type("Opaque", (), {})()) == "found"


def test_t8_what_is_remembered_is_bounded(ours):
    new_kinds(ours)
    gc.collect()
    tracemalloc.start()
    try:
        new_kinds(ours)
        gc.collect()
        # Up to 4096 classes of about 1 kB each may be remembered more than before.
        assert tracemalloc.get_traced_memory()[0] < 16_000_000
    finally:
        tracemalloc.stop()


def test_t9_t10_failures_are_not_remembered(ours):
    # Types are remembered across dispatchers: values of types that no other test has.
    for value in [np.zeros((1,) * 9, "M8[13ns]"), np.datetime64(1, "17ns"), (True, np.dtype("m8[19ns]")),
                  np.zeros(1, [("t9", "i4")]), memoryview(np.zeros((1,) * 9, "i2"))]:  # fmt: skip
        attempts = []

        def typeof_pyval(value, attempts=attempts):
            attempts.append(value)
            if len(attempts) < 3:
                raise ValueError("not yet")
            return Type(7)

        dispatcher = ours.dispatcher(1, [([7], "found")])
        dispatcher.typeof_pyval = typeof_pyval
        assert [dispatcher._cuda_call(value) for _ in range(5)] == ["compiled", "compiled", *["found"] * 3]
        assert len(attempts) == 3


def test_t9_typing_may_come_back(ours):
    dispatcher = ours.dispatcher(1, [([7], "found")])
    value = (1, (2, (3, (4.0, None))))

    def typeof_pyval(value):
        if len(dispatcher.log) < 5:
            dispatcher.log.append("nested")
            assert dispatcher._cuda_call(value) == "found"
        return Type(7)

    dispatcher.typeof_pyval = typeof_pyval
    assert dispatcher._cuda_call(value) == "found"


BEFORE_INIT = """
from cuwheel import _dispatcher, _typeconv
manager = _typeconv.new_type_manager()
dispatcher = _dispatcher.Dispatcher(_typeconv.get_pointer(manager), 1, 0, ("a",), (), 1)
nothing = _dispatcher.Dispatcher(_typeconv.get_pointer(manager), 0, 0, (), (), 1)
nothing._insert([], len)
assert nothing._cuda_call() is len
for value in (1, 1.5, "text", None):
    try:
        dispatcher._cuda_call(value)
    except RuntimeError as error:
        assert "typeof_init()" in str(error)
    else:
        raise AssertionError
import numpy
for value in (numpy.float32(1), numpy.zeros(3), (1, 2), numpy.dtype("f4")):
    assert type(_dispatcher.compute_fingerprint(value)) is bytes
print("done")
"""


def test_t12_before_typeof_init():
    assert fresh_python.run(BEFORE_INIT) == "done\n"


def test_t12_wrong_arguments_of_typeof_init_change_nothing(ours):
    dispatcher = ours.dispatcher(1, [([INT64], "int64")])
    before = sys.getrefcount(OmittedArg)
    for wrong, exception in [
        ({}, ValueError),
        ({**CODES, "int64": "x"}, TypeError),
        ({**CODES, "float32": 2**31}, OverflowError),
        ({name: code for name, code in CODES.items() if name != "complex128"}, ValueError),
        (None, TypeError),
    ]:
        assert outcome(ours.module.typeof_init, OmittedArg, wrong).exception is exception
        assert outcome(ours.module.typeof_init, "class", CODES).exception is TypeError
    assert sys.getrefcount(OmittedArg) == before
    assert dispatcher._cuda_call(1) == "int64"
    assert ours.dispatcher(1, [([INT64], "int64")])._cuda_call(1) == "int64"


def test_t12_typeof_init_may_be_called_again(ours):
    known = ours.dispatcher(1, [([INT64], "int64")])
    assert known._cuda_call(1) == "int64"
    try:
        ours.module.typeof_init(OmittedArg, {**CODES, "int64": 5})
        assert known._cuda_call(1) == "int64"
        assert ours.dispatcher(1, [([5], "five")])._cuda_call(1) == "five"
    finally:
        ours.module.typeof_init(OmittedArg, CODES)


def test_h13_one_file_under_two_names(tmp_path):
    """H13: what the two tell `typeof_init` went into the same place."""
    (tmp_path / "alias").symlink_to(Path(_dispatcher.__file__).parent, target_is_directory=True)
    printed = fresh_python.run(
        """
        import sys
        sys.path.append(sys.argv[1])
        from cuwheel import _dispatcher as first, _typeconv
        from alias import _dispatcher as second
        manager = _typeconv.new_type_manager()
        names = [prefix + str(bits) for prefix in ("int", "uint") for bits in (8, 16, 32, 64)]
        names += ["float32", "float64", "complex64", "complex128"]
        for module, code in ((first, 1), (second, 2)):
            module.typeof_init(int, {**dict.fromkeys(names, 0), "int64": code})
            dispatcher = module.Dispatcher(_typeconv.get_pointer(manager), 1, 0, ("a",), (), 1)
            for known in (1, 2):
                dispatcher._insert([known], known, cuda=True)
            assert dispatcher._cuda_call(5) == code
            if module is first:
                kept = dispatcher
        assert kept._cuda_call(5) == 1
        print("done")
        """,
        tmp_path,
    )
    assert printed == "done\n"


@pytest.mark.parametrize("code", [2**31, -(2**31) - 1, 2**32 + INT64, 2**70])
def test_t13_codes_are_never_cut(ours, code):
    dispatcher = ours.dispatcher(1, [([INT64], "int64")], can_fall_back=False)
    assert outcome(dispatcher._cuda_call, Attribute(Type(code))).exception is OverflowError
    assert outcome(dispatcher._insert, [code], "x", 0, True).exception is OverflowError


def test_an_unknown_type_never_matches(ours):
    dispatcher = ours.dispatcher(1, [([-1], "minus one")])
    dispatcher.typeof_pyval = lambda value: 1 // 0
    assert dispatcher._cuda_call("text") == "compiled"
    assert dispatcher._cuda_call(Attribute(Type(-1))) == "minus one"


def test_classes_that_change_are_typed_rightly(ours):
    """That instances of a class have nothing to tell their type by is remembered; it may cease to be so."""

    class Changing:
        pass

    dispatcher = ours.dispatcher(1, [([7], "attribute"), ([typeof(Changing())._code], "python")])
    value = Changing()
    assert [dispatcher._cuda_call(value) for _ in range(3)] == ["python"] * 3
    value._numba_type_ = Type(7)
    assert dispatcher._cuda_call(value) == "attribute"
    Changing._numba_type_ = property(lambda self: Type(8))
    assert dispatcher._cuda_call(value) == "compiled"
    del Changing._numba_type_
    assert dispatcher._cuda_call(value) == "attribute"


def everything_once(ours, keep):
    dispatcher = ours.dispatcher(2, defaults=(5,), names=("a", "b"))
    for number in range(20):
        dispatcher._insert([INT64, number], keep, cuda=True)
    for value in VALUES.values():
        outcome(dispatcher._cuda_call, value(), value())
        outcome(ours.module.compute_fingerprint, value())
    outcome(dispatcher._insert, [INT64], 5)
    dispatcher._cuda_call(keep, 1, **{LAUNCH_CONFIG: keep})
    dispatcher._clear()
    outcome(ours.module.typeof_init, int, {})
    ours.module.swap_current_launch_args(keep)
    ours.module.swap_current_launch_args(None)


def test_references_are_balanced(ours):
    keep = Implemented()
    tracemalloc.start()
    try:
        # Until what is remembered of classes is at its limit: some classes are new each time.
        for _ in range(300):
            everything_once(ours, keep)
        gc.collect()
        before = sys.getrefcount(keep), sys.getrefcount(Type), sys.getrefcount(ours.class_)
        size = tracemalloc.get_traced_memory()[0]
        for _ in range(20):
            everything_once(ours, keep)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - size
    finally:
        tracemalloc.stop()
    assert grown < 10_000
    after = sys.getrefcount(keep), sys.getrefcount(Type), sys.getrefcount(ours.class_)
    assert all(abs(second - first) < 5 for first, second in zip(before, after, strict=True))
