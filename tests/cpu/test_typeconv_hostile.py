"""Arguments that crash the C++ module that `cuwheel._typeconv` replaces; handles; leaks.

Nothing here is tried with the C++ module, but for its capsules, which are no more than looked at.
"""

import ctypes
import gc
import tracemalloc

import pytest
from cuwheel import _typeconv
from dispatching import Implementation
from outcomes import outcome

MESSAGE = "1st argument not TypeManager"


def capsule(address, name):
    """A capsule of someone else's."""
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(address, name, None)


@pytest.fixture
def manager():
    return _typeconv.new_type_manager()


@pytest.mark.parametrize("wrong", [None, 5, object(), capsule(4096, b"other"), capsule(4096, None)], ids=repr)
def test_c1_c3_what_is_no_type_manager(wrong):
    """C1: select_overload crashed. C3: get_pointer raised SystemError."""
    for arguments in [(_typeconv.select_overload, wrong, (1,), ((1,),), 0, 0), (_typeconv.get_pointer, wrong),
                      (_typeconv.check_compatible, wrong, 1, 2), (_typeconv.set_compatible, wrong, 1, 2, 112)]:  # fmt: skip
        assert outcome(*arguments)[1:] == (TypeError, MESSAGE)


@pytest.mark.parametrize(
    ("sig", "ovsigs", "exception"),
    [
        ((1, 2), ((1,),), ValueError),
        ((1,), ((1, 2),), ValueError),
        ((), ((1,),), ValueError),
        (5, (), TypeError),
        ((1,), 5, TypeError),
        ((1,), (5,), TypeError),
        ((1,), (("x",),), TypeError),
        ((1.5,), ((1,),), TypeError),
        ((2**31,), ((1,),), OverflowError),
        ((1,), ((-(2**31) - 1,),), OverflowError),
        ((1,), ((2**70,),), OverflowError),
    ],
)
def test_c2_sequences_are_counted_and_their_items_checked(manager, sig, ovsigs, exception):
    """C2: short overloads and iterators crashed; items that are no integers were taken for some."""
    assert outcome(_typeconv.select_overload, manager, sig, ovsigs, 0, 0).exception is exception


def test_c2_any_iterable_will_do(manager):
    assert _typeconv.select_overload(manager, iter([1, 2]), ((code, 2) for code in range(3)), 0, 0) == 1
    assert _typeconv.select_overload(manager, {1: "x"}, [range(1, 2)], 0, 0) == 0


def test_c2_iterables_that_raise_or_change(manager):
    def raising(*items):
        yield from items
        raise ZeroDivisionError

    for arguments in [(raising(1), ()), ((1,), raising((1,))), ((1,), [raising(1)])]:
        assert outcome(_typeconv.select_overload, manager, *arguments, 0, 0).exception is ZeroDivisionError
    signatures = [[1]]

    class Clearing:
        def __index__(self):
            signatures.clear()
            return 1

    signatures[0].append(Clearing())
    with pytest.raises(ValueError, match="signature 0 has 2 types for 1 arguments"):
        _typeconv.select_overload(manager, (1,), signatures, 0, 0)


def test_c5_capsules_of_another_copy_are_refused(theirs):
    """C5: an address was followed wherever it came from."""
    foreign = theirs.manager()
    for call in [(_typeconv.get_pointer, foreign), (_typeconv.check_compatible, foreign, 1, 2),
                 (_typeconv.select_overload, foreign, (), (), 0, 0), (_typeconv.set_compatible, foreign, 1, 2, 112)]:  # fmt: skip
        assert outcome(*call).exception is ValueError
    stolen = capsule(4096, b"*tm")
    with pytest.raises(ValueError, match="0x1000 is no type manager of this package"):
        _typeconv.get_pointer(stolen)


def test_c5_handles_are_never_given_out_twice():
    seen = {_typeconv.get_pointer(_typeconv.new_type_manager()) for _ in range(100)}
    assert len(seen) == 100
    # No process has memory there.
    assert all(handle >> 57 for handle in seen)


def test_c4_type_managers_do_not_leak():
    implementation = Implementation.__new__(Implementation)
    implementation.typeconv = _typeconv

    def work():
        implementation.manager([(from_code, 5, "p") for from_code in range(100)])

    for _ in range(10):
        work()
    gc.collect()
    tracemalloc.start()
    try:
        for _ in range(500):
            work()
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] < 50_000
    finally:
        tracemalloc.stop()
