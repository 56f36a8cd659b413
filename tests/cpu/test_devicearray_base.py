"""The base class of device arrays of numba-cuda up to 0.22.2, and how its instances are typed."""

import ctypes
import gc
import sys

import numpy as np
import pytest
from cuwheel import _dispatcher, _native, _typeconv
from dispatching import Implementation, Type

module = _native._devicearray_base
CAPSULE = b"cuwheel._devicearray._DEVICEARRAY_API"


@pytest.fixture(scope="module")
def ours():
    return Implementation(_typeconv, _dispatcher, _dispatcher.PlainDispatcher)


def pointer_in(capsule, name):
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return get(capsule, name)


def test_the_capsule_has_the_name_of_where_it_is_found():
    address = pointer_in(module._DEVICEARRAY_API, CAPSULE)
    assert ctypes.c_void_p.from_address(address).value == id(module.DeviceArray)
    with pytest.raises(ValueError, match="incorrect name"):
        pointer_in(module._DEVICEARRAY_API, b"numba_cuda._devicearray._DEVICEARRAY_API")


def test_the_class_has_no_members_and_takes_any_arguments():
    class_ = module.DeviceArray
    assert (class_.__module__, class_.__name__) == ("cuwheel._devicearray", "DeviceArray")
    assert class_.__basicsize__ == object.__basicsize__
    has_gc, is_base_type = 1 << 14, 1 << 10
    assert class_.__flags__ & is_base_type
    assert type("Sub", (class_,), {}).__flags__ & has_gc
    assert type(class_(1, two=2)) is class_
    with pytest.raises(AttributeError):
        class_().attribute = 1


def test_a_class_may_derive_from_it_and_from_numpy_arrays():
    class Mapped(module.DeviceArray, np.ndarray):
        pass

    mapped = np.zeros((2, 3)).view(Mapped)
    assert isinstance(mapped, module.DeviceArray)
    assert mapped.sum() == 0
    del mapped
    gc.collect()


class Fake(module.DeviceArray):
    """A device array as those of numba-cuda, around a host array."""

    def __init__(self, values, **attributes):
        self.flags = {name: values.flags[name] for name in ("C_CONTIGUOUS", "F_CONTIGUOUS")}
        self.ndim, self.dtype, self.strides, self.size = values.ndim, values.dtype, values.strides, values.size
        self.asked = 0
        self.__dict__.update(attributes)

    @property
    def _numba_type_(self):
        self.asked += 1
        repeated = 0 in self.strides and self.size != 0
        layout = "A" if repeated else "C" if self.flags["C_CONTIGUOUS"] else "F" if self.flags["F_CONTIGUOUS"] else "A"
        return TYPES.setdefault((str(self.dtype), self.ndim, layout), Type(5000 + len(TYPES)))


TYPES = {}


def kinds():
    for dtype in ("f4", "f8", "i4", "c16", ">f4", "e", "?", "i4,f8"):
        for ndim in range(7):
            values = np.zeros((2,) * ndim, dtype)
            yield from (values, values.T, values[..., None], np.broadcast_to(values, (3, *values.shape)))
            if ndim:
                yield values[::2]


def test_attributes_tell_the_type_that_the_array_would(ours):
    dispatcher = ours.dispatcher(1)
    for code in range(5000, 5400):
        dispatcher._insert([code], code, cuda=True)
    for values in kinds():
        for _ in range(2):
            array = Fake(values)
            assert dispatcher._cuda_call(array) == array._numba_type_._code


def test_arrays_of_numbers_are_asked_once(ours):
    dispatcher = ours.dispatcher(1)

    class Own(Fake):
        """A class of its own: what is known of another class's arrays does not count."""

    first, second = Own(np.zeros((2, 3))), Own(np.ones((5, 5)))
    dispatcher._cuda_call(first)
    dispatcher._cuda_call(second)
    assert (first.asked, second.asked) == (1, 0)


@pytest.mark.parametrize(
    "attributes",
    [{"flags": None}, {"flags": {}}, {"ndim": "x"}, {"ndim": -1}, {"ndim": 2**40}, {"dtype": 5}, {"strides": 5}],
    ids=str,
)
def test_arrays_with_odd_attributes_are_asked(ours, attributes):
    type_ = Type(4999)

    class Odd(Fake):
        _numba_type_ = type_

    dispatcher = ours.dispatcher(1, [([4999], "asked")])
    assert dispatcher._cuda_call(Odd(np.zeros(3), **attributes)) == "asked"
    array = Odd(np.zeros(3))
    del array.flags
    assert dispatcher._cuda_call(array) == "asked"


def test_interrupts_are_not_swallowed(ours):
    class Interrupted(Fake):
        ndim = property(lambda self: raise_(KeyboardInterrupt), lambda self, value: None)

    with pytest.raises(KeyboardInterrupt):
        ours.dispatcher(1)._cuda_call(Interrupted(np.zeros(3)))


def raise_(error):
    raise error


def test_references_are_balanced(ours):
    dispatcher, array = ours.dispatcher(1), Fake(np.zeros((2, 3)))
    watched = [array, array.flags, array.dtype, array.strides, Fake]
    for _ in range(3):
        dispatcher._cuda_call(array)
    gc.collect()
    before = [sys.getrefcount(each) for each in watched]
    for _ in range(100):
        dispatcher._cuda_call(array)
    assert [sys.getrefcount(each) for each in watched] == before
