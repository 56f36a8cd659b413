"""How long it takes to exchange an array, beside the other libraries that are installed.

    python exchange.py [--json FILE] [--rounds N]

Needs cuwheel; torch, CuPy, cuda.core and tvm-ffi are measured where they are installed. With a CUDA device the arrays are in
its memory. Without one (a stand-in driver), arrays in memory that the host sees take their place, and the report says so:
then only what the libraries do themselves is measured, and torch takes no part.

All contenders take turns in short rounds in one process; the median of the rounds counts. A round of Python code is a loop
of calls, each with the end of what it made; the row `id` is the same loop around a function that does nothing.
"""

import argparse
import importlib
import itertools
import json
import platform
import statistics
import sys
import time

# A round is a loop of about this long: short beside the time slice of a busy machine.
ROUND_NS = 500_000
SHAPE = (64, 32)


class Contender:
    """One row: `measure(repetitions)` is the mean time of one call, in nanoseconds."""

    def __init__(self, section, name, measure):
        self.section, self.name, self.measure = section, name, measure
        self.rounds, self.repetitions, self.reason = [], 1, None

    def prepare(self):
        """Find out whether it works, and how many calls make a round."""
        try:
            self.measure(10)
            self.repetitions = max(1, int(ROUND_NS / max(1.0, self.measure(100))))
        except Exception as error:  # a library may refuse the array in any way
            self.reason = f"{type(error).__name__}: {str(error).splitlines()[0][:100]}"

    @property
    def median_ns(self):
        return statistics.median(self.rounds)

    def report(self):
        row = {"section": self.section, "name": self.name}
        if self.reason is not None:
            return {**row, "not_measured": self.reason}
        lower, median, upper = statistics.quantiles(self.rounds, n=4)
        return {**row, "median_ns": median, "quartiles_ns": [lower, upper], "least_ns": min(self.rounds)}


def calls(function, argument):
    """The time of calls from Python."""

    def measure(repetitions):
        started = time.perf_counter_ns()
        for _ in itertools.repeat(None, repetitions):
            function(argument)
        return (time.perf_counter_ns() - started) / repetitions

    return measure


def steps(native, array, step):
    """The time of a step, looped in native code."""
    return lambda repetitions: native._time_exchange(array, step, repetitions)


def installed(*modules):
    """The modules of the list that can be imported, by name."""
    found = {}
    for name in modules:
        try:
            found[name] = importlib.import_module(name)
        except Exception as error:  # a broken installation raises anything
            print(f"{name} is left out: {type(error).__name__}: {error}", file=sys.stderr)
    return found


def consumers(cuwheel, native, peers, array):
    """Every way of taking `array` over, by name; ours first."""
    yield "cuwheel, as a typed argument", native._take_argument
    yield "cuwheel.from_dlpack", cuwheel.from_dlpack
    if "tvm_ffi" in peers:
        yield "tvm_ffi.from_dlpack", peers["tvm_ffi"].from_dlpack
    if "cuda.core.utils" in peers:
        view = peers["cuda.core.utils"].StridedMemoryView
        yield "StridedMemoryView.from_any_interface", lambda array: view.from_any_interface(array, stream_ptr=-1)
    if "cupy" in peers:
        yield "cupy.from_dlpack", peers["cupy"].from_dlpack
    if "torch" in peers:
        yield "torch.from_dlpack", peers["torch"].from_dlpack
    yield "id", id


def arrays(cuwheel, peers, has_device):
    """What is exchanged, by name; the first is what imports are measured with."""
    found = {}
    if has_device and "torch" in peers:
        found["torch.Tensor"] = peers["torch"].ones(SHAPE, device="cuda")
    ours = cuwheel.zeros(SHAPE, "float32", kind="device" if has_device else "pinned")
    if not has_device and "tvm_ffi" in peers:
        found["tvm_ffi.Tensor"] = peers["tvm_ffi"].from_dlpack(ours)
    if "cuda.core.utils" in peers:
        found["StridedMemoryView"] = peers["cuda.core.utils"].StridedMemoryView.from_any_interface(ours, stream_ptr=-1)
    found["DeviceArray"] = ours
    return found


def contenders(cuwheel, peers, has_device):
    """Every row of the report, in order."""
    native = cuwheel._native._devicearray
    found = arrays(cuwheel, peers, has_device)
    for source in dict.fromkeys([next(iter(found)), "DeviceArray"]):
        section = f"import of a {source}"
        for name, function in consumers(cuwheel, native, peers, found[source]):
            yield Contender(section, name, calls(function, found[source]))
    for step, what in [
        ("view", "export through the exchange table: dltensor"),
        ("managed", "export through the exchange table: managed tensor and its deleter"),
        ("stream", "current_work_stream"),
        ("argument", "typed argument, without the call from Python"),
        ("import", "import, without the call from Python and its object"),
    ]:
        for name in ["DeviceArray", *(name for name in found if name != "DeviceArray")]:
            yield Contender(what, name, steps(native, found[name], step))


def bars(rows):
    """What is promised, and what was measured: name, nanoseconds, at most."""
    medians = {(row["section"], row["name"]): row["median_ns"] for row in rows if "median_ns" in row}
    argument = medians.get(("typed argument, without the call from Python", "torch.Tensor"))
    view = medians.get(("export through the exchange table: dltensor", "DeviceArray"))
    ours = medians.get(("import of a DeviceArray", "torch.from_dlpack"))
    theirs = medians.get(("import of a torch.Tensor", "torch.from_dlpack"))
    promised = [
        ("import of a torch CUDA tensor", argument, 120.0),
        ("export through the exchange table", view, 20.0),
        ("torch.from_dlpack of ours, no slower than of torch's own", ours, theirs),
    ]
    return [
        {"what": what, "measured_ns": measured, "at_most_ns": most, "holds": measured <= most}
        for what, measured, most in promised
        if measured is not None and most is not None
    ]


def table(report):
    """The report as Markdown."""
    lines = [f"{report['device']}; {', '.join(f'{name} {version}' for name, version in report['versions'].items())}"]
    for section, rows in itertools.groupby(report["rows"], key=lambda row: row["section"]):
        rows = list(rows)
        first = next((row["median_ns"] for row in rows if "median_ns" in row), None)
        lines += ["", f"| {section} | median | ratio | middle half |", "|---|---|---|---|"]
        for row in rows:
            if "not_measured" in row:
                lines.append(f"| {row['name']} | not measured: {row['not_measured']} | | |")
                continue
            lower, upper = row["quartiles_ns"]
            ratio = row["median_ns"] / first
            lines.append(f"| {row['name']} | {row['median_ns']:.1f} ns | {ratio:.2f}× | {lower:.1f} to {upper:.1f} ns |")
    if report["bars"]:
        lines += ["", "| bar | measured | |", "|---|---|---|"]
    for bar in report["bars"]:
        holds = "holds" if bar["holds"] else "does not hold"
        lines.append(f"| {bar['what']} ≤ {bar['at_most_ns']:.1f} ns | {bar['measured_ns']:.1f} ns | {holds} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", metavar="FILE", help="write the report there as JSON")
    parser.add_argument("--rounds", type=int, default=101, help="rounds that every contender takes part in")
    arguments = parser.parse_args()

    import cuwheel

    device = cuwheel.Device(0).name
    has_device = "stand-in" not in device
    peers = installed("tvm_ffi", "cuda.core.utils", *(("cupy", "torch") if has_device else ()))
    rows = list(contenders(cuwheel, peers, has_device))
    for row in rows:
        row.prepare()
    taking_part = [row for row in rows if row.reason is None]
    # One round to warm up.
    for number in range(arguments.rounds + 1):
        for row in taking_part:
            took_ns = row.measure(row.repetitions)
            if number:
                row.rounds.append(took_ns)
    where = device if has_device else f"no GPU: arrays in host-visible memory of the {device}"
    modules = {"cuwheel": cuwheel, **{name.removesuffix(".utils"): module for name, module in peers.items()}}
    if "cuda.core" in modules:
        modules["cuda.core"] = importlib.import_module("cuda.core")
    report = {
        "device": where,
        "is_stand_in": not has_device,
        "versions": {
            "Python": platform.python_version(),
            **{name: getattr(module, "__version__", "?") for name, module in modules.items()},
        },
        "rounds": arguments.rounds,
        "rows": [row.report() for row in rows],
    }
    report["bars"] = bars(report["rows"])
    print(table(report))
    if arguments.json is not None:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(report, file, indent=2)
            file.write("\n")


if __name__ == "__main__":
    main()
