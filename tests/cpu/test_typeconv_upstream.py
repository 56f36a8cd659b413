"""`cuwheel._typeconv` beside the C++ module of numba-cuda: the same results, exceptions and messages.

What makes the C++ module crash is in test_typeconv_hostile.py.
"""

import types

import pytest
from hypothesis import given
from hypothesis import strategies as st
from outcomes import outcome

codes = st.integers(0, 5) | st.sampled_from([2**31 - 1, 10**6])
conversions = st.lists(st.tuples(codes, codes, st.sampled_from("psu")), max_size=25)


def test_the_public_names_are_the_same(ours, theirs):
    public = {name for name in vars(theirs.typeconv) if not name.startswith("_")}
    assert public == set(ours.typeconv.__all__)


def test_type_managers_are_capsules(ours, theirs):
    for implementation in (ours, theirs):
        manager = implementation.typeconv.new_type_manager("ignored", 5)
        assert type(manager).__name__ == "PyCapsule"
        assert '"*tm"' in repr(manager)
        assert type(implementation.typeconv.get_pointer(manager)) is int
        assert outcome(lambda module=implementation.typeconv: module.new_type_manager(x=1)).exception is TypeError


@given(conversions, codes, codes)
def test_conversions(ours, theirs, conversions, from_code, to_code):
    seen = [
        implementation.typeconv.check_compatible(implementation.manager(conversions), from_code, to_code)
        for implementation in (ours, theirs)
    ]
    assert seen[0] == seen[1]


@given(conversions, st.integers(0, 3), st.data(), st.booleans(), st.booleans())
def test_choices(ours, theirs, conversions, count, data, allow_unsafe, exact):
    signature = st.lists(codes, min_size=count, max_size=count)
    arguments = data.draw(signature)
    overloads = data.draw(st.lists(signature.map(tuple) | signature, max_size=8))
    seen = [
        outcome(
            implementation.typeconv.select_overload,
            implementation.manager(conversions), arguments, overloads, allow_unsafe, exact,
        )
        for implementation in (ours, theirs)
    ]  # fmt: skip
    assert seen[0] == seen[1]


NUMBERS = [0, -1, True, 2**31 - 1, 2**31, -(2**31) - 1, 2**70, 1.5, None, "1"]


def test_wrong_arguments(ours, theirs):
    def calls(implementation):
        module, manager = implementation.typeconv, implementation.manager()
        for number in NUMBERS:
            yield outcome(module.set_compatible, manager, number, 1, ord("p"))
            yield outcome(module.set_compatible, manager, 1, number, ord("p"))
            yield outcome(module.set_compatible, manager, 1, 2, number)
            yield outcome(module.check_compatible, manager, number, 1)
            yield outcome(module.check_compatible, manager, 1, number)
            yield outcome(module.select_overload, manager, (), (), number, 0)
            yield outcome(module.select_overload, manager, (), (), 0, number)
        for capsule in (None, 5, types.SimpleNamespace()):
            yield outcome(module.set_compatible, capsule, 1, 2, ord("p"))
            yield outcome(module.set_compatible, capsule, 1, 2, ord("x"))

    assert list(calls(ours)) == list(calls(theirs))


@pytest.mark.parametrize("function", ["set_compatible", "check_compatible", "select_overload", "get_pointer"])
def test_wrong_calls_raise_the_same_types(ours, theirs, function):
    for arguments in [(), (1,), (1, 2, 3, 4, 5, 6)]:
        seen = {outcome(getattr(each.typeconv, function), *arguments).exception for each in (ours, theirs)}
        # get_pointer of something else is a SystemError in C++.
        assert seen - {SystemError} == {TypeError}
