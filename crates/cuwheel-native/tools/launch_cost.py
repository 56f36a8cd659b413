"""What a launch costs without the driver: nanoseconds of `kernel[grid, block](a, b, c)` and its variants.

    python launch_cost.py target/debug/libcuda.so

The argument is the stand-in driver; the installed cuwheel is measured. The two functions that a launch calls are replaced by
ones that do nothing, so that neither a driver's time nor the stand-in's is in the figures. What stays is Python's own: the loop
and a call of a method that does nothing are printed for comparison. Each figure is the best of many short runs, which other
programs disturb the least.

Needs `cc`.
"""

import ctypes
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

int cuLaunchKernelEx(const void *config, void *function, void **each, void **extra) {
    return 0;
}

int cuCtxGetCurrent(void **context) {
    static __thread void *known;
    int result = 0;
    if (!known) {
        result = ((int (*)(void **))dlsym(RTLD_NEXT, "cuCtxGetCurrent"))(&known);
    }
    *context = known;
    return result;
}
"""

PTX = """
.version 7.8
.target sm_80
.address_size 64
.visible .entry arrays(.param .u64 a, .param .u64 b, .param .u64 c) { ret; }
.visible .entry mixed(.param .u64 a, .param .u32 b, .param .f32 c) { ret; }
"""


def start_again(stand_in: Path) -> None:
    """Run this script with the replaced driver in front of the loader."""
    with tempfile.TemporaryDirectory() as directory:
        # A name of the same length for the stand-in, which the replacement depends on.
        behind = Path(directory, "libcudb.so.1")
        behind.write_bytes(stand_in.read_bytes().replace(b"libcuda.so.1\0", b"libcudb.so.1\0"))
        Path(directory, "shim.c").write_text(SHIM)
        options = ["-O2", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-Wl,--no-as-needed", "-Wl,-rpath,$ORIGIN"]
        command = ["cc", *options, "shim.c", "-o", "libcuda.so.1", "-L.", "-l:libcudb.so.1"]
        subprocess.run(command, cwd=directory, check=True)
        environment = {**os.environ, "LD_LIBRARY_PATH": directory}
        sys.exit(subprocess.run([sys.executable, __file__], env=environment).returncode)


def best(run, calls=300, runs=2000) -> float:
    """The least time of a call in nanoseconds."""
    times = []
    for _ in range(runs):
        start = time.perf_counter_ns()
        run(calls)
        times.append(time.perf_counter_ns() - start)
    return min(times) / calls


def make_a_context_current() -> None:
    """As programs with torch have one: the replaced function says that it stays so."""
    driver, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
    for code in (
        driver.cuInit(0),
        driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0),
        driver.cuCtxSetCurrent(context),
    ):
        assert code == 0, f"the driver gave {code}"


def measure() -> None:
    make_a_context_current()
    import cuwheel

    module = cuwheel.Module.from_bytes(PTX)
    arrays = module.kernel("arrays", ("float32*", "const float32*", "const float32*"))
    configured, unsigned = arrays[1, 32], module.kernel("arrays")[1, 32]
    mixed = module.kernel("mixed", ("float32*", "int32", "float32"))[1, 32]
    dispatched = cuwheel.Dispatcher(lambda *types: arrays)[1, 32] if hasattr(cuwheel, "Dispatcher") else configured
    a, b, c = (cuwheel.zeros(64, "float32") for _ in range(3))

    def loop(calls):
        for _ in range(calls):
            pass

    def method(calls):
        for _ in range(calls):
            a.__dlpack_device__()

    def three_arrays(calls):
        for _ in range(calls):
            configured(a, b, c)

    def three_arrays_without_signature(calls):
        for _ in range(calls):
            unsigned(a, b, c)

    def three_arrays_dispatched_by_type(calls):
        for _ in range(calls):
            dispatched(a, b, c)

    def array_and_two_numbers(calls):
        for _ in range(calls):
            mixed(a, 1, 2.0)

    def three_arrays_configured_in_the_call(calls):
        for _ in range(calls):
            arrays[1, 32](a, b, c)

    runs = (
        loop,
        method,
        three_arrays,
        three_arrays_without_signature,
        three_arrays_dispatched_by_type,
        array_and_two_numbers,
        three_arrays_configured_in_the_call,
    )
    for run in runs:
        print(f"{run.__name__:40} {best(run):6.1f} ns")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        start_again(Path(sys.argv[1]))
    measure()
