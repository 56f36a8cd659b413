"""From the arguments of a call to the overload that is for them.

Internal: base classes for dispatchers written in Python.
"""

from collections.abc import Iterable
from typing import Self, SupportsIndex

__all__ = [
    "Dispatcher",
    "LaunchingDispatcher",
    "PlainDispatcher",
    "compute_fingerprint",
    "get_current_launch_args",
    "get_current_launch_config",
    "launch_stats",
    "swap_current_launch_args",
    "typeof_init",
]

class Dispatcher:
    """Base class of dispatchers: chooses the overload that is for the arguments of a call.

    `__init__(tm_pointer, argct, fold_args, argnames, defargs, can_fallback, has_stararg=0, exact_match_required=0)`
    must be called before anything else. Its arguments are positional; keywords are ignored, and so are all arguments of
    `__new__`. Called again, it forgets all overloads.

    Args:
        tm_pointer: What `get_pointer` of the `_typeconv` beside this module returned.
        argct: The number of parameters.
        fold_args: Whether arguments by name and defaults are brought into the order of the parameters.
        argnames: The tuple of the parameters' names.
        defargs: The tuple of the defaults of the last parameters.
        can_fallback: Whether an argument that cannot be typed fits no overload, instead of raising an exception.
        has_stararg: Whether the last parameter is a tuple of further arguments.
        exact_match_required: Whether arguments are never converted.

    Raises:
        TypeError: An argument is of the wrong type, or their number is wrong.
        ValueError: `tm_pointer` is no type manager, or `argct` negative.
        OverflowError: An integer does not fit.
    """

    _can_compile: bool
    """Whether overloads are compiled for arguments of new types."""

    def __new__(cls, *_args: object, **_kwargs: object) -> Self: ...
    def __init__(
        self,
        tm_pointer: SupportsIndex,
        argct: SupportsIndex,
        fold_args: SupportsIndex,
        argnames: tuple[str, ...],
        defargs: tuple[object, ...],
        can_fallback: SupportsIndex,
        has_stararg: SupportsIndex = 0,
        exact_match_required: SupportsIndex = 0,
        /,
        **_kwargs: object,
    ) -> None: ...
    def _clear(self) -> None:
        """Forget all overloads."""

    def _cuda_call(self, *args: object, __numba_cuda_launch_config__: object = None, **kwargs: object) -> object:
        """Return the overload that is for these arguments; nothing is launched.

        The keyword `__numba_cuda_launch_config__` is none of the function's: what it holds is what
        `get_current_launch_config` returns while `_compile_for_args` runs.

        If none fits, the methods `_compile_for_args`, `_search_new_conversions`, `_explain_matching_error` and
        `_explain_ambiguous` are looked up on the instance and called with the arguments.
        """

    def _insert(
        self, sig: Iterable[SupportsIndex], func: object, objectmode: SupportsIndex = 0, cuda: object = False
    ) -> None:
        """Add an overload.

        Args:
            sig: The codes of the types of its parameters.
            func: What `_cuda_call` returns for arguments of these types; it is kept alive.
            objectmode: Whether `func` is also called when nothing fits and nothing can be compiled.
            cuda: Whether `func` may be any object; otherwise it must be a function written in C.

        Raises:
            TypeError: `func` is no such function, or `sig` no iterable of integers.
            ValueError: `sig` has another number of types than there are parameters.
            OverflowError: A code does not fit in 31 bits.
        """

class LaunchingDispatcher(Dispatcher):
    """A `Dispatcher` for kernels of numba-cuda: what is inserted gets a `launch` of this library where it can have one, and
    arrays with an exchange table are typed without asking Python about each.
    """

    def _insert(
        self, sig: Iterable[SupportsIndex], func: object, objectmode: SupportsIndex = 0, cuda: object = False
    ) -> None:
        """Add an overload, and see to its launches.

        Args:
            sig, func, objectmode, cuda: As for `Dispatcher`. Where `func` is a kernel of numba-cuda and `cuda` is true, it
                gets an attribute `launch`, and the dispatcher an attribute `call`, unless the environment variable `CUWHEEL_NUMBA_LAUNCH` is 0.

        Raises:
            What `Dispatcher._insert` raises.
        """

class PlainDispatcher(Dispatcher):
    """A `Dispatcher` that knows no keyword for the launch configuration: every keyword is one of the function's."""

    def _cuda_call(self, *args: object, **kwargs: object) -> object:
        """Return the overload that is for these arguments; nothing is launched.

        If none fits, the methods `_compile_for_args`, `_search_new_conversions`, `_explain_matching_error` and
        `_explain_ambiguous` are looked up on the instance and called with the arguments.
        """

def compute_fingerprint(obj: object, /) -> bytes:
    """Return bytes that are equal for values of equal type.

    They mean something in this process only.

    Args:
        obj: None, a number, bytes, a NumPy array, scalar or data type, an object that exports a buffer, or a tuple, list
            or set of such; of lists and sets the first item is looked at.

    Raises:
        NotImplementedError: `obj` is something else.
        ValueError: `obj` is, or holds, an empty list or set.
        RecursionError: `obj` is nested too deeply, or contains itself.
        ImportError: NumPy cannot be imported.
    """

def get_current_launch_args() -> object | None:
    """Return the arguments of the launch that this thread is in, or None."""

def get_current_launch_config() -> object | None:
    """Return the launch configuration for which this thread compiles, or None.

    It is set while `Dispatcher._cuda_call` runs `_compile_for_args`, and belongs to the thread.
    """

def launch_stats() -> dict[str, int | dict[str, int]]:
    """Return how many launches of the kernels that have a `launch` of this library took which way.

    Returns:
        A dictionary: "native" is the number of launches that no Python code had a part in, "python" a dictionary with the
        number of the others by their reason.
    """

def swap_current_launch_args(args: object, /) -> object | None:
    """Set the arguments of the launch that this thread is in.

    Args:
        args: Any object; None for no launch.

    Returns:
        What was set before, or None.
    """

def typeof_init(omitted_type: type, codes: dict[str, int], /) -> None:
    """Say what the basic types are. To be called before arguments are typed.

    Called again, it holds for dispatchers that were not called with arguments yet.

    Args:
        omitted_type: The class of arguments that were left out; instances have the default as `value`.
        codes: The codes of the types "int8", "int16", "int32", "int64", the same with "u", "float32", "float64",
            "complex64" and "complex128".

    Raises:
        TypeError: `omitted_type` is no class, `codes` no dictionary, or a code no integer.
        ValueError: A code is missing.
        OverflowError: A code does not fit in 31 bits.
        ImportError: NumPy cannot be imported.
    """
