"""How long `_cuda_call` takes on a hit: ours beside the C++ module of numba-cuda, in one process.

Run it with a Python that has the wheel, NumPy and the files of numba-cuda (no GPU, and nothing that numba-cuda depends on):

    python tests/bench/dispatch.py

The least of many short runs counts, ours and theirs in turn, so that what else the machine does is left out. The caller's
own work, a call with `*args`, is part of both times.
"""

import functools
import sys
import timeit
from pathlib import Path

import numpy as np
from cuwheel import _dispatcher, _typeconv

sys.path.insert(0, str(Path(__file__).parents[1] / "cpu"))

import upstream
from dispatching import LAUNCH_CONFIG, Implementation, Type, typeof

CALLS, REPEATS = 1000, 250
_types = {}


class DeviceArray:
    """Typed as the device arrays of numba-cuda are."""

    @functools.cached_property
    def _numba_type_(self):
        return _types.setdefault("device array", Type(900))


def code_of(value):
    """The code that a dispatcher finds for the value."""
    numbers = {int: 103, float: 109, np.float32: 108}
    if type(value) in numbers:
        return numbers[type(value)]
    return getattr(value, "_numba_type_", None)._code if hasattr(value, "_numba_type_") else typeof(value)._code


def cases():
    """Arguments by name."""
    arrays, values = [DeviceArray() for _ in range(26)], np.zeros((3, 4), np.float32)
    return {
        "no arguments": (),
        "1 device array": arrays[:1],
        "4 device arrays": arrays[:4],
        "26 device arrays": arrays,
        "3 device arrays, 2 ints, 1 float": (*arrays[:3], 1, 2, 3.0),
        "1 int": (1,),
        "4 ints": (1, 2, 3, 4),
        "1 float": (1.0,),
        "1 NumPy array": (values,),
        "4 NumPy arrays": (values,) * 4,
        "1 NumPy scalar": (np.float32(1),),
        "1 bool": (True,),
        "1 tuple": ((1, 2.0),),
        "1 datetime64": (np.datetime64(1, "s"),),
        "1 array of structures": (np.zeros(3, "i4,f4"),),
        "1 bytearray": (bytearray(3),),
    }


def nanoseconds(functions):
    """The least time of a call of each function."""
    least = [float("inf")] * len(functions)
    for _ in range(REPEATS):
        for position, function in enumerate(functions):
            seconds = timeit.timeit(function, number=CALLS) / CALLS
            least[position] = min(least[position], seconds * 1e9)
    return least


def caller(implementation, arguments, keywords):
    """A function that makes one call, which is a hit."""
    overload = object()
    signature = [code_of(argument) for argument in arguments]
    dispatcher = implementation.dispatcher(len(arguments), [(signature, overload)])
    call = implementation.base._cuda_call
    for _ in range(3):
        found = call(dispatcher, *arguments)
    assert found is overload, arguments
    return (lambda: call(dispatcher, *arguments, **keywords)) if keywords else lambda: call(dispatcher, *arguments)


def main():
    """Print a table."""
    theirs = Implementation(upstream.load("_typeconv"), upstream.load_dispatcher())
    ours = Implementation(_typeconv, _dispatcher)
    print("| arguments | C++ | ours | | with launch configuration: C++ | ours | |\n|---|---|---|---|---|---|---|")
    for name, arguments in cases().items():
        row = []
        for keywords in ({}, {LAUNCH_CONFIG: object()}):
            before, after = nanoseconds([caller(each, arguments, keywords) for each in (theirs, ours)])
            row += [f"{before:.0f} ns", f"{after:.0f} ns", f"{after / before:.2f}×"]
        print("|", " | ".join([name, *row]), "|", flush=True)


if __name__ == "__main__":
    main()
