"""How long the host takes to launch a kernel that does nothing, beside the other libraries that are installed.

    python launch.py [--json FILE] [--svg FILE] [--rounds N] [--numba NAME=FOLDER …]

Needs cuwheel and a C compiler; torch, CuPy, cuda.core, triton and tvm-ffi are measured where they are installed. Without a CUDA
device (a stand-in driver) only what needs no kernel of its own is measured, and the report says so.

"Raw" is a loop in C around `cuLaunchKernel`, with parameters packed into a block of as many bytes as the kernel takes. It takes
its turn in the same process as every other contender: what counts is how much more those take. Cuwheel, each numba-cuda and
the other libraries have processes of their own, since a launch takes longer, raw too, the more libraries a process has loaded.
All contenders take turns in short rounds, which begin with launches that are not measured; the median of the rounds counts, and
for what is over raw the median of the differences within the rounds. A round of Python code is a loop of calls; between rounds
the device is waited for.

Each `--numba` is a folder with a numba-cuda, as `pip install --target` leaves it, measured in a process of its own with the
folder before the installed packages; without any, the numba-cuda that is installed is measured. A further folder may follow
with a colon, for example with the NumPy that a release needs.
"""

import argparse
import ctypes
import importlib
import itertools
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

# A round is about this long, and of at most so many launches: few enough that the driver never waits for the device. It comes
# after launches that are not measured, since whoever has had the turn before has filled the processor's caches.
ROUND_NS = 5_000_000
MOST_LAUNCHES = 800
WARMING = 0.25
GRID, BLOCK = 1, 32

RAW = r"""
#include <stddef.h>
#include <time.h>
#include <pthread.h>

typedef int (*launch_t)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
typedef int (*set_t)(void *);

static double launch(launch_t call, void *function, size_t bytes, long count) {
    static char block[4096];
    void *extra[] = {(void *)1, block, (void *)2, &bytes, NULL};
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (long i = 0; i < count; i++) {
        if (call(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, extra)) {
            return -1;
        }
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    return ((end.tv_sec - start.tv_sec) * 1e9 + (end.tv_nsec - start.tv_nsec)) / count;
}

double raw(launch_t call, void *function, size_t bytes, long count) { return launch(call, function, bytes, count); }

struct work { launch_t call; set_t set; void *context, *function; size_t bytes; long count; };

static void *body(void *argument) {
    struct work *work = argument;
    work->set(work->context);
    launch(work->call, work->function, work->bytes, work->count);
    return NULL;
}

/* Nanoseconds for each launch of `threads` threads together. */
double raw_threads(launch_t call, set_t set, void *context, void *function, size_t bytes, long count, int threads) {
    pthread_t ids[64];
    struct work work = {call, set, context, function, bytes, count};
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (int i = 0; i < threads; i++) pthread_create(&ids[i], NULL, body, &work);
    for (int i = 0; i < threads; i++) pthread_join(ids[i], NULL);
    clock_gettime(CLOCK_MONOTONIC, &end);
    return ((end.tv_sec - start.tv_sec) * 1e9 + (end.tv_nsec - start.tv_nsec)) / (count * threads);
}

static void launch_one(launch_t call, void *function, size_t bytes) {
    static char block[4096];
    void *extra[] = {(void *)1, block, (void *)2, &bytes, NULL};
    call(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, extra);
}

/* Functions for Python that launch and look at none of their arguments: the least that any library can take. */
struct method { const char *name; void *function; int flags; const char *doc; };
extern void *PyEval_SaveThread(void), PyEval_RestoreThread(void *), Py_IncRef(void *), *PyCFunction_NewEx(struct method *, void *, void *);

static launch_t the_call;
static void *the_function, *the_answer;
static size_t the_bytes;

static void *attached(void *self, void *const *arguments, size_t count) {
    launch_one(the_call, the_function, the_bytes);
    Py_IncRef(the_answer);
    return the_answer;
}

static void *detached(void *self, void *const *arguments, size_t count) {
    void *thread = PyEval_SaveThread();
    launch_one(the_call, the_function, the_bytes);
    PyEval_RestoreThread(thread);
    Py_IncRef(the_answer);
    return the_answer;
}

/* The same for arrays with the exchange table `the_table`: each is described, and for the first its library is asked for its
   stream. */
struct tensor { void *data; int device_type, device, ndim; unsigned type; long *shape, *strides; unsigned long offset; };
struct table {
    unsigned version[2]; void *older, *allocate, *from, *to;
    int (*describe)(void *, struct tensor *);
    int (*stream)(int, int, void **);
};
static struct table *the_table;

static int look(void *const *arguments, size_t count) {
    void *stream;
    for (size_t i = 0; i < count; i++) {
        struct tensor tensor;
        if (the_table->describe(arguments[i], &tensor)) return -1;
        if (i == 0 && the_table->stream(tensor.device_type, tensor.device, &stream)) return -1;
    }
    return 0;
}

static void *looking_attached(void *self, void *const *arguments, size_t count) {
    return look(arguments, count) ? 0 : attached(self, arguments, count);
}

static void *looking_detached(void *self, void *const *arguments, size_t count) {
    return look(arguments, count) ? 0 : detached(self, arguments, count);
}

/* 128 is METH_FASTCALL. */
static struct method methods[2][2] = {
    {{"attached", attached, 128, 0}, {"detached", detached, 128, 0}},
    {{"attached", looking_attached, 128, 0}, {"detached", looking_detached, 128, 0}},
};

void *least(int is_detached, launch_t call, void *function, size_t bytes, void *answer, struct table *table) {
    the_call = call, the_function = function, the_bytes = bytes, the_answer = answer;
    if (table) the_table = table;
    return PyCFunction_NewEx(&methods[table != NULL][is_detached], 0, 0);
}
"""

#: The kernels that do nothing: their parameters are so many 64-bit words, or what follows the name.
KERNELS = {"none": 0, "pointers3": 3, "words21": 21, "words182": 182}
SCALARS = ".param .u64 p0, .param .f64 p1"


def ptx():
    """The text of all kernels."""
    entries = [".version 7.8", ".target sm_80", ".address_size 64"]
    for name, count in KERNELS.items():
        parameters = ", ".join(f".param .u64 {name}_{index}" for index in range(count))
        entries.append(f".visible .entry {name}({parameters}) {{ ret; }}")
    entries.append(f".visible .entry scalars({SCALARS}) {{ ret; }}")
    return "\n".join(entries) + "\n"


class Raw:
    """The loop in C, and the kernels for it, in the primary context of device 0, which is current from here on."""

    def __init__(self):
        with tempfile.TemporaryDirectory() as folder:
            source, library = Path(folder, "raw.c"), Path(folder, "raw.so")
            source.write_text(RAW)
            subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-pthread", source, "-o", library], check=True)
            self.library = ctypes.CDLL(os.fspath(library))
        self.driver = ctypes.CDLL("libcuda.so.1")
        self.library.raw.restype = self.library.raw_threads.restype = ctypes.c_double
        self.context, self.module = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), 0)
        self.call("cuCtxSetCurrent", self.context)
        self.call("cuModuleLoadData", ctypes.byref(self.module), ptx().encode())
        self.launch = ctypes.cast(self.driver.cuLaunchKernel, ctypes.c_void_p)
        self.set = ctypes.cast(self.driver.cuCtxSetCurrent, ctypes.c_void_p)

    def call(self, name, *arguments):
        code = getattr(self.driver, name)(*arguments)
        if code:
            raise RuntimeError(f"{name} gave {code}")

    def function(self, name):
        function = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(function), self.module, name.encode())
        return function

    def synchronize(self):
        self.call("cuCtxSynchronize")

    def measure(self, name, words):
        """A contender's measure, of launches of the kernel of this name."""
        function = self.function(name)
        return lambda count: self.library.raw(
            self.launch, function, ctypes.c_size_t(8 * words), ctypes.c_long(count)
        )

    def least(self, name, words, is_detached, looks_at=None):
        """A function for Python that launches and does nothing else, with the thread detached from the interpreter or not. With
        a class of arrays it looks at its arguments, through the exchange table of the class, before it does so."""
        make = ctypes.PyDLL(self.library._name, handle=self.library._handle).least
        make.restype = ctypes.py_object
        make.argtypes = [ctypes.c_int, *[ctypes.c_void_p] * 2, ctypes.c_size_t, ctypes.py_object, ctypes.c_void_p]
        table = None
        if looks_at is not None:
            pointer = ctypes.pythonapi.PyCapsule_GetPointer
            pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
            table = pointer(looks_at.__dlpack_c_exchange_api__, b"dlpack_exchange_api")
        return make(is_detached, self.launch, self.function(name), 8 * words, None, table)

    def measure_threads(self, name, words, threads):
        function = self.function(name)
        return lambda count: self.library.raw_threads(
            self.launch, self.set, self.context, function, ctypes.c_size_t(8 * words), ctypes.c_long(count), threads
        )


class Contender:
    """One row: `measure(count)` is the mean time of a launch, in nanoseconds. `raw` is the row that it is compared with, round
    by round, since what disturbs a round disturbs its neighbours too."""

    def __init__(self, section, name, measure):
        self.section, self.name, self.measure = section, name, measure
        self.rounds, self.launches, self.reason, self.raw = [], 1, None, None

    def prepare(self):
        """Find out whether it works, and how many launches make a round."""
        try:
            self.measure(20)
            self.launches = max(20, min(MOST_LAUNCHES, int(ROUND_NS / max(1.0, self.measure(50)))))
        except Exception as error:  # a library may refuse in any way
            self.reason = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:100]}"

    def report(self):
        row = {"section": self.section, "name": self.name}
        if self.reason is not None:
            return {**row, "not_measured": self.reason}
        lower, median, upper = statistics.quantiles(self.rounds, n=4)
        row |= {"median_ns": median, "quartiles_ns": [lower, upper], "least_ns": min(self.rounds)}
        if self.raw is not None and self.raw.reason is None:
            over = [own - raw for own, raw in zip(self.rounds, self.raw.rounds, strict=True)]
            row["over_raw_ns"] = statistics.median(over)
        return row


def calls(function, *arguments):
    """The time of calls from Python."""

    def measure(count):
        started = time.perf_counter_ns()
        for _ in itertools.repeat(None, count):
            function(*arguments)
        return (time.perf_counter_ns() - started) / count

    # A call with its arguments spread out takes longer than one that names them, which is what programs have.
    if len(arguments) == 3:
        first, second, third = arguments

        def measure(count):
            started = time.perf_counter_ns()
            for _ in itertools.repeat(None, count):
                function(first, second, third)
            return (time.perf_counter_ns() - started) / count

    elif len(arguments) == 2:
        first, second = arguments

        def measure(count):
            started = time.perf_counter_ns()
            for _ in itertools.repeat(None, count):
                function(first, second)
            return (time.perf_counter_ns() - started) / count

    return measure


def run(contenders, raw, rounds):
    """Let all take turns."""
    raw_of = {}
    for row in contenders:
        row.prepare()
        if row.name.startswith("raw"):
            raw_of[row.section] = row
        else:
            row.raw = raw_of.get(row.section)
    taking_part = [row for row in contenders if row.reason is None]
    # One round to warm up.
    for number in range(rounds + 1):
        for row in taking_part:
            raw.synchronize()
            row.measure(int(row.launches * WARMING))
            took_ns = row.measure(row.launches)
            if number:
                row.rounds.append(took_ns)
    raw.synchronize()
    return [row.report() for row in contenders]


def threads(function, *arguments, count_of_threads=4):
    """The time for each launch of several threads together."""

    def measure(count):
        def work():
            start.wait()
            for _ in itertools.repeat(None, count):
                function(*arguments)

        start = threading.Barrier(count_of_threads + 1)
        workers = [threading.Thread(target=work) for _ in range(count_of_threads)]
        for worker in workers:
            worker.start()
        start.wait()
        started = time.perf_counter_ns()
        for worker in workers:
            worker.join()
        return (time.perf_counter_ns() - started) / (count * count_of_threads)

    return measure


#: The process with what is measured of this library.
OURS = "cuwheel"

#: The same while other threads of Python wait: `release_gil=False`.
HOLDING, FOUR_HOLDING = "cuwheel, configured once, holding the GIL", "cuwheel, four threads, holding the GIL"

ONCE, IN_THE_CALL = "cuwheel, configured once", "cuwheel, configured in the call"

#: What takes the least that a function for Python can take.
LEAST, LEAST_DETACHED = "a function in C that launches only", "the same, detached meanwhile"

ARRAYS, TENSORS, NUMBERS = "three device arrays", "three tensors of torch", "two numbers"
MANY, THREADS = "26 device arrays", "three device arrays, four threads"


def installed(*modules):
    """The modules of the list that can be imported, by name."""
    found = {}
    for name in modules:
        try:
            found[name] = importlib.import_module(name)
        except Exception as error:  # a broken installation raises anything
            print(f"{name} is left out: {type(error).__name__}: {error}", file=sys.stderr)
    return found


def ours(cuwheel, raw, tensors):
    """The rows of cuwheel, each after the raw one that it is compared with, in a process with torch."""
    module = cuwheel.Module.from_bytes(ptx())
    arrays = [cuwheel.zeros(64, "float32") for _ in range(3)]
    kernel = module.kernel("pointers3", ("float32*", "float32*", "float32*"))
    configured = kernel[GRID, BLOCK]
    holding = kernel.configure(GRID, BLOCK, release_gil=False)
    scalars = module.kernel("scalars", ("int64", "float64"))
    yield Contender(ARRAYS, "raw", raw.measure("pointers3", 3))
    yield Contender(ARRAYS, ONCE, calls(configured, *arrays))
    yield Contender(ARRAYS, HOLDING, calls(holding, *arrays))
    for is_detached, name in enumerate((LEAST, LEAST_DETACHED)):
        yield Contender(ARRAYS, name, calls(raw.least("pointers3", 3, is_detached), *arrays))

    first, second, third = arrays

    def in_the_call(count):
        started = time.perf_counter_ns()
        for _ in itertools.repeat(None, count):
            kernel[GRID, BLOCK](first, second, third)
        return (time.perf_counter_ns() - started) / count

    yield Contender(ARRAYS, IN_THE_CALL, in_the_call)
    yield Contender(ARRAYS, "cuwheel, without a signature", calls(module.kernel("pointers3")[GRID, BLOCK], *arrays))
    yield Contender(ARRAYS, "a function of Python that does nothing", calls(lambda first, second, third: None, *arrays))
    yield Contender(NUMBERS, "raw", raw.measure("scalars", 2))
    yield Contender(NUMBERS, ONCE, calls(scalars[GRID, BLOCK], 1, 2.0))
    yield Contender(NUMBERS, HOLDING, calls(scalars.configure(GRID, BLOCK, release_gil=False), 1, 2.0))
    if tensors:
        yield Contender(TENSORS, "raw", raw.measure("pointers3", 3))
        yield Contender(TENSORS, ONCE, calls(configured, *tensors))
        yield Contender(TENSORS, HOLDING, calls(holding, *tensors))
        looks_at = type(tensors[0])
        if hasattr(looks_at, "__dlpack_c_exchange_api__"):
            for is_detached, name in enumerate((LEAST, LEAST_DETACHED)):
                yield Contender(TENSORS, name, calls(raw.least("pointers3", 3, is_detached, looks_at), *tensors))
    yield Contender(THREADS, "raw, one thread", raw.measure_threads("pointers3", 3, 1))
    yield Contender(THREADS, "raw, four threads", raw.measure_threads("pointers3", 3, 4))
    yield Contender(THREADS, "cuwheel, four threads", threads(configured, *arrays))
    yield Contender(THREADS, FOUR_HOLDING, threads(holding, *arrays))


def peers(found, raw, tensors):
    """The rows of other libraries."""
    yield Contender(ARRAYS, "raw, beside other libraries", raw.measure("pointers3", 3))
    if tensors:
        yield Contender(TENSORS, "raw, beside other libraries", raw.measure("pointers3", 3))
    if "cuda.core" in found:
        core = found["cuda.core"]
        device = core.Device(0)
        device.set_current()
        stream = core.Stream.from_handle(0)
        of_core = core.ObjectCode.from_ptx(ptx().encode()).get_kernel("pointers3")
        config = core.LaunchConfig(grid=GRID, block=BLOCK)
        pointers = [tensor.data_ptr() for tensor in tensors or []] or [0, 0, 0]

        def launch(first, second, third):
            core.launch(stream, config, of_core, first, second, third)

        yield Contender(ARRAYS, "cuda.core, bare pointers", calls(launch, *pointers))
    if "cupy" in found:
        cupy = found["cupy"]
        arrays = [cupy.zeros(64, "float32") for _ in range(3)]
        raw_kernel = cupy.RawKernel('extern "C" __global__ void nothing(float* a, float* b, float* c) {}', "nothing")

        def launch_cupy(first, second, third):
            raw_kernel((GRID,), (BLOCK,), (first, second, third))

        yield Contender(ARRAYS, "CuPy RawKernel, arrays of CuPy", calls(launch_cupy, *arrays))
    if "triton" in found and tensors:
        yield Contender(TENSORS, "Triton", calls(triton_kernel(found["triton"])[(GRID,)], *tensors))
    if "tvm_ffi" in found and tensors:
        # A function in C++ that does nothing.
        function = found["tvm_ffi"].get_global_func("testing.nop")
        yield Contender(TENSORS, "tvm-ffi, a call without a launch", calls(function, *tensors))


def triton_kernel(triton):
    """A kernel of Triton that does nothing; Triton wants it in a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "nothing_for_triton.py")
        path.write_text("import triton\n@triton.jit\ndef nothing(a, b, c):\n    pass\n")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        import torch

        tensor = torch.zeros(64, device="cuda")
        module.nothing[(GRID,)](tensor, tensor, tensor)
        return module.nothing


def numba(name, raw, tensors):
    """The rows of the numba-cuda that this process imports."""
    import numpy
    from numba import cuda

    arrays = [cuda.device_array(64, numpy.float32) for _ in range(26)]
    kernels = {}
    for count in (2, 3, 26):
        names = ", ".join(f"a{index}" for index in range(count))
        exec(f"def kernel({names}): pass", kernels)
        kernels[count] = cuda.jit(kernels["kernel"])
    three, many, numbers = (kernels[count][GRID, BLOCK] for count in (3, 26, 2))
    yield Contender(ARRAYS, f"raw, beside {name}", raw.measure("words21", 21))
    yield Contender(ARRAYS, name, calls(three, *arrays[:3]))
    yield Contender(NUMBERS, f"raw, beside {name}", raw.measure("scalars", 2))
    yield Contender(NUMBERS, name, calls(numbers, 1, 2.0))
    if tensors:
        yield Contender(TENSORS, f"raw, beside {name}", raw.measure("words21", 21))
        yield Contender(TENSORS, name, calls(three, *tensors))
    yield Contender(MANY, f"raw, beside {name}", raw.measure("words182", 182))
    yield Contender(MANY, name, calls(many, *arrays))


def torch_tensors():
    """Three tensors on the device, if torch is installed and sees it."""
    try:
        import torch

        return [torch.zeros(64, device="cuda") for _ in range(3)]
    except Exception as error:  # torch without a device, or none at all
        print(f"torch is left out: {type(error).__name__}: {error}", file=sys.stderr)
        return None


def rows_of(name, folders, rounds):
    """The rows of one contender, measured in a process of its own."""
    paths = os.pathsep.join([*folders, *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": paths}
    command = [sys.executable, __file__, "--child", name, "--rounds", str(rounds)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
        return [{"section": ARRAYS, "name": name, "not_measured": reason[:160]}], {}
    report = json.loads(done.stdout.splitlines()[-1])
    return report["rows"], report["versions"]


def child(name, rounds):
    """What a process for one contender does."""
    import warnings

    warnings.simplefilter("ignore")
    raw = Raw()
    if name == OURS:
        import cuwheel

        has_device = "stand-in" not in cuwheel.Device(0).name
        contenders, versions = ours(cuwheel, raw, torch_tensors() if has_device else None), {}
    else:
        from importlib.metadata import version

        contenders, versions = numba(name, raw, torch_tensors()), {name: version("numba-cuda")}
    print(json.dumps({"rows": run(list(contenders), raw, rounds), "versions": versions}))


OURS_AT_MOST = {TENSORS: 300, ARRAYS: 100, NUMBERS: 100}
BARS = [
    *((section, name, most) for section, most in OURS_AT_MOST.items() for name in (ONCE, HOLDING)),
    (ARRAYS, "overlay", 1500),
    (TENSORS, "overlay", 2000),
    (MANY, "overlay", 4000),
]


def bars(rows):
    """What is promised, and what was measured."""
    over = {(row["section"], row["name"]): row["over_raw_ns"] for row in rows if "over_raw_ns" in row}
    found = [(section, name, over.get((section, name)), most) for section, name, most in BARS]
    in_the_call, once = (over.get((ARRAYS, name)) for name in (IN_THE_CALL, ONCE))
    if in_the_call is not None and once is not None:
        found.append((ARRAYS, "configured in the call, over configured once", in_the_call - once, 100))
    medians = {(row["section"], row["name"]): row["median_ns"] for row in rows if "median_ns" in row}
    for threads_of_raw in ("one thread", "four threads"):
        for name in ("cuwheel, four threads", FOUR_HOLDING):
            ours, theirs = (medians.get((THREADS, one)) for one in (name, f"raw, {threads_of_raw}"))
            if ours and theirs:
                found.append((THREADS, f"{name}, for each launch, over raw in {threads_of_raw}", ours - theirs, 0))
    return [
        {"section": section, "name": name, "over_raw_ns": value, "at_most_ns": most, "holds": value <= most}
        for section, name, value, most in found
        if value is not None
    ]


def table(report):
    """The report as Markdown."""
    lines = [f"{report['device']}; {', '.join(f'{name} {version}' for name, version in report['versions'].items())}"]
    for section in dict.fromkeys(row["section"] for row in report["rows"]):
        lines += ["", f"| {section} | median | over raw | middle half |", "|---|---|---|---|"]
        for row in (row for row in report["rows"] if row["section"] == section):
            if "not_measured" in row:
                lines.append(f"| {row['name']} | not measured: {row['not_measured']} | | |")
                continue
            lower, upper = row["quartiles_ns"]
            over = f"{row['over_raw_ns'] / 1000:+.2f} µs" if "over_raw_ns" in row else ""
            middle = f"{lower / 1000:.2f} to {upper / 1000:.2f} µs"
            lines.append(f"| {row['name']} | {row['median_ns'] / 1000:.2f} µs | {over} | {middle} |")
    if report["bars"]:
        lines += ["", "| over raw, where nothing else is said | bar | measured | |", "|---|---|---|---|"]
    for bar in report["bars"]:
        holds = "holds" if bar["holds"] else "does not hold"
        most, measured = bar["at_most_ns"] / 1000, bar["over_raw_ns"] / 1000
        lines.append(f"| {bar['section']}, {bar['name']} | {most:+.2f} µs | {measured:+.2f} µs | {holds} |")
    return "\n".join(lines)


def svg(report):
    """The medians as bars, with the scale of a logarithm: what is compared differs by powers of ten."""
    import math

    rows = [row for row in report["rows"] if "median_ns" in row]
    height, left, right, line = 16, 360, 700, []
    most = max(row["median_ns"] for row in rows)
    low, high = math.log10(500), math.log10(most)
    y = 24
    section = None
    for row in rows:
        if row["section"] != section:
            section = row["section"]
            y += 10
            line.append(f'<text x="8" y="{y + 12}" font-weight="bold">{section}</text>')
            y += height + 4
        width = max(2, (math.log10(max(row["median_ns"], 501)) - low) / (high - low) * (right - left))
        kind = "raw" if row["name"].startswith("raw") else "own" if row["name"].startswith(("cuwheel", "overlay")) else "peer"
        line.append(f'<text x="{left - 8}" y="{y + 12}" text-anchor="end">{row["name"]}</text>')
        line.append(f'<rect class="{kind}" x="{left}" y="{y + 2}" width="{width:.1f}" height="{height - 4}"/>')
        line.append(f'<text x="{left + width + 6:.1f}" y="{y + 12}">{row["median_ns"] / 1000:.2f} µs</text>')
        y += height
    style = "text{font:12px sans-serif;fill:#333}.raw{fill:#999}.own{fill:#2a78b8}.peer{fill:#d9a441}"
    title = f"Host time of a launch, medians, logarithmic scale: {report['device']}"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="800" height="{y + 16}" viewBox="0 0 800 {y + 16}">'
    return "\n".join([head, f"<style>{style}</style>", f'<text x="8" y="16">{title}</text>', *line, "</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", metavar="FILE", help="write the report there as JSON")
    parser.add_argument("--svg", metavar="FILE", help="draw the medians there")
    parser.add_argument("--rounds", type=int, default=101, help="rounds that every contender takes part in")
    parser.add_argument("--numba", metavar="NAME=FOLDER[:FOLDER]", action="append", help="a numba-cuda to measure")
    parser.add_argument("--child", metavar="NAME", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments.child, arguments.rounds)
        return

    import cuwheel

    device = cuwheel.Device(0).name
    has_device = "stand-in" not in device
    raw = Raw()
    found = installed("cuda.core", "tvm_ffi", *(("cupy", "torch", "triton") if has_device else ()))
    tensors = torch_tensors() if has_device else None
    rows, _ = rows_of(OURS, [], arguments.rounds)
    rows += run(list(peers(found, raw, tensors)), raw, arguments.rounds)
    versions = {"Python": platform.python_version(), "cuwheel": cuwheel.__version__}
    versions |= {name: getattr(module, "__version__", "?") for name, module in found.items()}
    for numba_cuda in arguments.numba or ["numba-cuda="]:
        name, _, folders = numba_cuda.partition("=")
        measured, version = rows_of(name, [folder for folder in folders.split(":") if folder], arguments.rounds)
        rows += measured
        versions |= version
    report = {
        "device": device if has_device else f"no GPU: the {device}",
        "is_stand_in": not has_device,
        "versions": versions,
        "rounds": arguments.rounds,
        "rows": rows,
    }
    report["bars"] = bars(report["rows"])
    print(table(report))
    if arguments.json is not None:
        Path(arguments.json).write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    if arguments.svg is not None:
        Path(arguments.svg).write_text(svg(report), encoding="utf-8")


if __name__ == "__main__":
    main()
