"""How many instructions a launch takes in cuwheel's own library, counted by callgrind.

    python instructions.py [--json FILE] [--baseline FILE [--accept]]

Needs cuwheel, cuda.core, valgrind and a driver that runs no kernels: the stand-in driver on LD_LIBRARY_PATH. What Python, the C library and
the driver take is not counted, so that the count depends on the library alone: it is the same on a loaded machine, and a change
of it is a change of the library or of its compiler. One process makes no launch, and one for each case makes many; the
difference is what they take.

With a baseline, a count that differs from it by more than the tolerance fails, whichever way: what got faster is accepted with
`--accept`, which writes the file.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

LAUNCHES = 2000
TOLERANCE = 0.03

#: What a process runs, by the name of the case. The first makes no launch.
CASES = {
    "no launch": "pass",
    "three device arrays": "configured(a, b, c)",
    "three arrays with an exchange table": "configured(x, y, z)",
    "two numbers": "numbers(1, 2.0)",
    "three device arrays, configured in the call": "kernel[1, 32](a, b, c)",
}

PROGRAM = """
import cuwheel
ptx = (
    ".version 7.8\\n.target sm_80\\n.address_size 64\\n"
    ".visible .entry arrays(.param .u64 a, .param .u64 b, .param .u64 c) { ret; }\\n"
    ".visible .entry numbers(.param .s64 a, .param .f64 b) { ret; }\\n"
)
module = cuwheel.Module.from_bytes(ptx)
kernel = module.kernel("arrays", ("float32*", "float32*", "float32*"))
configured = kernel[1, 32]
numbers = module.kernel("numbers", ("int64", "float64"))[1, 32]
a, b, c = (cuwheel.zeros(64, "float32") for _ in range(3))
from cuda.core.utils import StridedMemoryView
x, y, z = (StridedMemoryView.from_any_interface(array, stream_ptr=-1) for array in (a, b, c))

def launches(count):
    for _ in range(count):
        %s

# What is remembered is remembered by now.
launches(10)
launches(%d)
"""


class Failed(Exception):
    """There is nothing to count, and why."""


def own_instructions(profile: Path) -> int:
    """The instructions in cuwheel's library: source, callgrind's format of profiles."""
    names, counted, total, of_call = {}, None, 0, False
    for line in profile.read_text().splitlines():
        if found := re.match(r"c?ob=\((\d+)\)(?: (.*))?", line):
            number, name = found.groups()
            if name is not None:
                names[number] = name
            if line.startswith("ob="):
                counted = "/cuwheel/_native" in names[number]
        elif line.startswith("calls="):
            # The next line is what the callee took.
            of_call = True
        elif re.match(r"[+*\-\d]", line):
            if counted and not of_call:
                total += int(line.split()[1])
            of_call = False
    if not total:
        raise Failed("callgrind saw no instruction of cuwheel's library")
    return total


def count(statement: str) -> int:
    """The instructions of a process with many launches."""
    with tempfile.TemporaryDirectory() as folder:
        profile = Path(folder, "profile")
        tool = ["valgrind", "--tool=callgrind", "--dump-instr=no", f"--callgrind-out-file={profile}"]
        program = PROGRAM % (statement, LAUNCHES)
        # The order of hashed things is part of what is counted.
        environment = {**os.environ, "PYTHONHASHSEED": "0"}
        done = subprocess.run([*tool, sys.executable, "-c", program], env=environment, capture_output=True, text=True)
        if done.returncode:
            raise Failed("\n".join(done.stderr.splitlines()[-8:]))
        return own_instructions(profile)


def drift(counts: dict, baseline: dict) -> list[str]:
    """What differs from the baseline."""
    found = []
    for case, counted in counts.items():
        expected = baseline.get(case)
        if expected is None or abs(counted - expected) > TOLERANCE * expected:
            found.append(f"{case}: {counted} instructions, and {expected} in the baseline")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", metavar="FILE", help="write the counts there as JSON")
    parser.add_argument("--baseline", metavar="FILE", type=Path, help="compare with the counts in this file")
    parser.add_argument("--accept", action="store_true", help="write the counts to the baseline")
    arguments = parser.parse_args()
    try:
        nothing, *counted = [count(statement) for statement in CASES.values()]
    except FileNotFoundError:
        sys.exit("valgrind is not installed, and it counts the instructions; install the package valgrind")
    except Failed as reason:
        sys.exit(f"nothing was counted: {reason}")
    counts = {case: round((total - nothing) / LAUNCHES) for case, total in zip(list(CASES)[1:], counted, strict=True)}
    print("| launch | instructions in the library |\n|---|---|")
    for case, number in counts.items():
        print(f"| {case} | {number} |")
    if arguments.json is not None:
        Path(arguments.json).write_text(json.dumps(counts, indent=2) + "\n", encoding="utf-8")
    if arguments.baseline is not None and arguments.accept:
        arguments.baseline.write_text(json.dumps(counts, indent=2) + "\n", encoding="utf-8")
    elif arguments.baseline is not None and (found := drift(counts, json.loads(arguments.baseline.read_text()))):
        sys.exit("\n".join([*found, "find out why, and accept what is meant with --accept"]))


if __name__ == "__main__":
    main()
