"""How long `_cuda_call` takes on a hit: ours beside the C++ module of numba-cuda, in one process.

    python dispatch.py [--json FILE] [--rounds N]

Needs cuwheel, NumPy and the files of numba-cuda: no GPU, and nothing that numba-cuda depends on.

Both take turns in short rounds; the median of the rounds counts. The caller's own work, a call with `*args`, is part of
both times. Releases from 0.30 on pass a launch configuration with each call: each row is measured with and without one.
"""

import argparse
import functools
import importlib.machinery
import importlib.metadata
import importlib.util
import json
import platform
import statistics
import sys
import timeit

import numpy as np
from cuwheel import _dispatcher, _typeconv

UPSTREAM = "numba-cuda"
LAUNCH_CONFIG = "__numba_cuda_launch_config__"
AT_MOST = {"1 device array": 0.5, "4 device arrays": 0.5}
# A round is about this long: short beside the time slice of a busy machine.
ROUND_S = 0.0005

NUMBERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
NUMBERS += ["float32", "float64", "complex64", "complex128"]
CODES = {name: 100 + position for position, name in enumerate(NUMBERS)}
KNOWN = {int: CODES["int64"], float: CODES["float64"], np.float32: CODES["float32"]}


class Type:
    """A type as dispatchers see it: an object with a code."""

    def __init__(self, code):
        self._code = code


class OmittedArg:
    """The class of arguments left out."""


DEVICE_ARRAY = Type(900)


class DeviceArray:
    """Typed as the device arrays of numba-cuda are."""

    @functools.cached_property
    def _numba_type_(self):
        return DEVICE_ARRAY


@functools.cache
def type_of_kind(kind):
    return Type(1000 + hash(kind) % 2**20)


def typeof(value):
    """The type of a value: of those that are measured, no two kinds have the same class."""
    return getattr(value, "_numba_type_", None) or type_of_kind((type(value), str(getattr(value, "dtype", ""))))


class Implementation:
    """The modules `_typeconv` and `_dispatcher` of one implementation."""

    def __init__(self, typeconv, dispatcher):
        self.base = dispatcher.Dispatcher
        self.class_ = type("Timed", (self.base,), {"typeof_pyval": staticmethod(typeof)})
        self.manager = typeconv.new_type_manager()
        self.pointer = typeconv.get_pointer(self.manager)
        # C++ keeps no references, neither to what is inserted nor to the class of arguments left out.
        self.overload = object()
        dispatcher.typeof_init(OmittedArg, CODES)

    def caller(self, arguments, keywords):
        """A function that makes one call, which is a hit."""
        count = len(arguments)
        dispatcher = self.class_(self.pointer, count, False, tuple(map(str, range(count))), (), True)
        signature = [KNOWN.get(type(argument)) or typeof(argument)._code for argument in arguments]
        dispatcher._insert(signature, self.overload, cuda=True)
        call = self.base._cuda_call
        # The first time the type is asked for.
        found = [call(dispatcher, *arguments, **keywords) for _ in range(3)]
        if any(each is not self.overload for each in found):
            sys.exit(f"{self.base} does not find the overload for {arguments}")
        return (lambda: call(dispatcher, *arguments, **keywords)) if keywords else lambda: call(dispatcher, *arguments)


def upstream():
    """The C++ implementation, loaded from its files: the package around it would need a CUDA installation."""
    try:
        files = importlib.metadata.distribution(UPSTREAM).files
    except importlib.metadata.PackageNotFoundError:
        sys.exit(f"there is nothing to compare with; run: pip install --no-deps {UPSTREAM}==0.30.4")
    modules = []
    for name in ("_typeconv", "_dispatcher"):
        paths = [file for file in files if file.parent.name == "cext" and file.name.startswith(f"{name}.cpython")]
        if not paths:
            sys.exit(f"the {UPSTREAM} that is installed has no {name} in C++; install a release, not an overlay")
        loader = importlib.machinery.ExtensionFileLoader(name, str(paths[0].locate()))
        module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
        loader.exec_module(module)
        modules.append(module)
    return Implementation(*modules)


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


def measure(name, functions, has_config, rounds):
    """One row: the medians of both, in nanoseconds. Their rounds take turns, after one to warm up."""
    timers, times = [timeit.Timer(function) for function in functions], [[], []]
    calls = [max(1, int(ROUND_S / (min(timer.repeat(5, 20)) / 20))) for timer in timers]
    for number in range(rounds + 1):
        for timer, count, taken in zip(timers, calls, times, strict=True):
            nanoseconds = timer.timeit(count) / count * 1e9
            if number:
                taken.append(nanoseconds)
    theirs, ours = map(statistics.median, times)
    row = {"arguments": name, "launch_configuration": has_config, "upstream_ns": theirs, "ours_ns": ours}
    return {**row, "ratio": ours / theirs, "least_ratio": min(times[1]) / min(times[0])}


def bars(rows):
    """What is promised, and what was measured."""
    for row in rows:
        at_most = AT_MOST.get(row["arguments"])
        if at_most is not None:
            how = "with" if row["launch_configuration"] else "without"
            what = f"a hit with {row['arguments']}, {how} launch configuration"
            yield {"what": what, "measured": row["ratio"], "at_most": at_most, "holds": row["ratio"] <= at_most}


def table(report):
    """The report as Markdown."""
    lines = [", ".join(f"{name} {version}" for name, version in report["versions"].items()), ""]
    lines += ["| arguments | C++ | ours | | with launch configuration: C++ | ours | |", "|---|---|---|---|---|---|---|"]
    for plain, configured in zip(report["rows"][::2], report["rows"][1::2], strict=True):
        cells = [plain["arguments"]]
        for row in (plain, configured):
            cells += [f"{row['upstream_ns']:.0f} ns", f"{row['ours_ns']:.0f} ns", f"{row['ratio']:.2f}×"]
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", "| bar | measured | |", "|---|---|---|"]
    for bar in report["bars"]:
        holds = "holds" if bar["holds"] else "does not hold"
        lines.append(f"| {bar['what']} ≤ {bar['at_most']} of the C++ module | {bar['measured']:.2f} | {holds} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", metavar="FILE", help="write the report there as JSON")
    parser.add_argument("--rounds", type=int, default=201, help="rounds that both take part in")
    arguments = parser.parse_args()

    both = [upstream(), Implementation(_typeconv, _dispatcher)]
    rows = []
    for name, values in cases().items():
        for keywords in ({}, {LAUNCH_CONFIG: object()}):
            functions = [implementation.caller(values, keywords) for implementation in both]
            rows.append(measure(name, functions, bool(keywords), arguments.rounds))
    versions = {"Python": platform.python_version()}
    versions |= {name: importlib.metadata.version(name) for name in ("numpy", UPSTREAM, "cuwheel")}
    report = {"versions": versions, "rounds": arguments.rounds, "rows": rows, "bars": list(bars(rows))}
    print(table(report))
    if arguments.json is not None:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(report, file, indent=2)
            file.write("\n")


if __name__ == "__main__":
    main()
