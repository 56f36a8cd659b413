"""Dispatchers over one implementation or another, which write down what they ask of Python."""

import numpy as np

#: The types whose codes `typeof_init` is told.
CODES = {
    name: 100 + position
    for position, name in enumerate(
        ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
        + ["float32", "float64", "complex64", "complex128"]
    )
}
INT64, FLOAT32, FLOAT64 = CODES["int64"], CODES["float32"], CODES["float64"]

LAUNCH_CONFIG = "__numba_cuda_launch_config__"


class OmittedArg:
    """An argument left out."""

    def __init__(self, value):
        self.value = value


class Type:
    """A type as dispatchers see it: an object with a code."""

    def __init__(self, code):
        self._code = code


#: What `typeof_pyval` has answered, by what it takes for the same type. For as long as the process lives, as codes are.
_types = {}


def typeof(value):
    """The type of a value, as numba-cuda's `typeof` would tell types apart."""
    return _types.setdefault(_key(value), Type(1000 + len(_types)))


def _key(value):
    if isinstance(value, np.ndarray):
        flags = value.flags
        layout = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
        return np.ndarray, isinstance(value, np.ma.MaskedArray), _key(value.dtype), value.ndim, layout, flags.writeable
    if isinstance(value, np.dtype):
        return np.dtype, value.isalignedstruct, value.str, str(value.descr if value.names else value)
    if isinstance(value, np.generic):
        return np.generic, _key(value.dtype)
    if isinstance(value, tuple):
        return type(value), *map(_key, value)
    if isinstance(value, list | set):
        return type(value), _key(next(iter(value)))
    if isinstance(value, int) and not isinstance(value, bool):
        return type(value), -(2**63) < value < 2**63
    if isinstance(value, memoryview | bytearray | bytes):
        view = memoryview(value)
        return type(value), view.format, view.ndim, view.c_contiguous, view.f_contiguous, view.readonly
    return type(value)


class Implementation:
    """The modules `_typeconv` and `_dispatcher` of one implementation."""

    def __init__(self, typeconv, dispatcher, base=None):
        self.typeconv = typeconv
        self.module = dispatcher
        self.base = base or dispatcher.Dispatcher
        self.class_ = logging_class(self.base)
        # C++ keeps no references to these, nor to what is inserted.
        self.keep = [OmittedArg, CODES]
        dispatcher.typeof_init(OmittedArg, CODES)

    def manager(self, conversions=()):
        """A type manager that knows `(from, to, how)`, where how is one of "psu"."""
        manager = self.typeconv.new_type_manager()
        for from_code, to_code, how in conversions:
            self.typeconv.set_compatible(manager, from_code, to_code, ord(how))
        return manager

    def dispatcher(self, count, overloads=(), *, class_=None, manager=None, can_compile=True, **options):
        """A dispatcher of a function with `count` parameters, with overloads as `(signature, object)`."""
        manager = manager or self.manager()
        dispatcher = (class_ or self.class_)(*self.arguments(manager, count, **options))
        dispatcher.manager = manager
        dispatcher.log = []
        for signature, implementation in overloads:
            self.keep.append(implementation)
            dispatcher._insert(signature, implementation, cuda=True)
        dispatcher._can_compile = can_compile
        return dispatcher

    def arguments(
        self, manager, count, *, fold=False, names=None, defaults=(), can_fall_back=True, further=False, exact=False
    ):
        """The arguments of `Dispatcher.__init__`."""
        pointer = self.typeconv.get_pointer(manager)
        names = tuple("abcdefgh"[:count]) if names is None else names
        return pointer, count, fold, names, defaults, can_fall_back, further, exact


def logging_class(base):
    class Logging(base):
        """Answers callbacks as it is told to, and logs them."""

        new_conversions = False
        explain = None

        def typeof_pyval(self, value):
            self.log.append(("typeof", type(value)))
            return typeof(value)

        def _compile_for_args(self, *args, **kws):
            self.log.append(("compile", len(args), kws))
            return "compiled"

        def _search_new_conversions(self, *args, **kws):
            self.log.append(("search", len(args), kws))
            if isinstance(self.new_conversions, BaseException):
                raise self.new_conversions
            return self.new_conversions

        def _explain_matching_error(self, *args, **kws):
            self.log.append(("explain matching", len(args), kws))
            if self.explain:
                raise self.explain

        def _explain_ambiguous(self, *args, **kws):
            self.log.append(("explain ambiguous", len(args), kws))
            if self.explain:
                raise self.explain

    return Logging
