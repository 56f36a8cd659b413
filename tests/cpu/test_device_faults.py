"""What the driver may do wrong, or not have: each is said clearly, and nothing is lost but what has to be."""

import ctypes
import gc
import re
import threading
from pathlib import Path

import cuwheel
import fresh_python
import numpy as np
import pytest
import stand_in
from cuwheel import Stream
from device_arrays import KINDS, contents

pytestmark = pytest.mark.usefixtures("driver")

ALLOCATES = {
    "device": "cuMemAllocAsync",
    "pinned": "cuMemHostAlloc",
    "mapped": "cuMemHostAlloc",
    "managed": "cuMemAllocManaged",
}
FREES = {"device": "cuMemFreeAsync", "pinned": "cuMemFreeHost", "mapped": "cuMemFreeHost", "managed": "cuMemFree"}
UNKNOWN = (
    "CUDA_ERROR_UNKNOWN (999): unknown; run again with CUDA_LAUNCH_BLOCKING=1 or under compute-sanitizer to find the "
    "cause"
)


@pytest.mark.parametrize(
    "make", [cuwheel.empty, cuwheel.zeros, lambda shape, **arguments: cuwheel.from_host(np.zeros(shape), **arguments)]
)
@pytest.mark.parametrize("kind", KINDS)
def test_out_of_memory_says_how_much_was_asked_and_is_free(kind, make, driver):
    where = (
        "and N of the host's N are free"
        if kind in ("pinned", "mapped")
        else "on device 1, where N of 1073741824 are free"
    )
    comma = "," if kind in ("pinned", "mapped") else ""
    with driver.faults(f"fail={ALLOCATES[kind]}:1:OUT_OF_MEMORY"), pytest.raises(MemoryError) as caught:
        make((10, 100), kind=kind, device=1)
    expected = (
        f"out of {kind} memory: 8000 bytes were asked for{comma} {where}; release arrays that are no longer "
        f"needed, or work "
        "on smaller pieces"
    )
    assert re.fullmatch(re.escape(expected).replace("N", r"\d+"), str(caught.value))
    assert driver.allocations() == []
    assert contents(cuwheel.zeros(2, kind=kind, device=1)) == [0, 0]


def test_memory_that_is_really_used_up():
    kept = [cuwheel.empty(1 << 28, "uint8") for _ in range(3)]
    with pytest.raises(
        MemoryError, match="268435457 bytes were asked for on device 0, where 268435456 of 1073741824 are free"
    ):
        cuwheel.empty((1 << 28) + 1, "uint8")
    kept.pop()
    assert cuwheel.empty(1 << 28, "uint8").nbytes == 1 << 28


def sample(kind="device", stream=None):
    return cuwheel.from_host(np.arange(12, dtype="int16").reshape(3, 4), kind=kind, stream=stream)


def exported():
    array = sample(stream=Stream())
    array.__dlpack__(stream=2, max_version=(1, 3))
    array.__dlpack__(dl_device=(1, 0), max_version=(1, 3))


#: Work that makes every kind of call to the driver.
WORK = {
    "empty": lambda: [cuwheel.empty(3, kind=kind, stream=Stream()) for kind in KINDS],
    "from_host": lambda: [sample(kind) for kind in KINDS],
    "full": lambda: cuwheel.full((3, 4), 1 + 2j, order="F")[:, ::2].__setitem__(..., 2j),
    "copy_to_host": lambda: contents(sample(stream=Stream())[:, ::2]),
    "copy_to_device": lambda: sample().T.copy_to_device(1, kind="managed"),
    "device array to device array": lambda: sample().__setitem__(slice(None), sample(stream=Stream())[::-1]),
    "overlapping": lambda: (lambda array: array.__setitem__(slice(1, None), array[:-1]))(sample()),
    "reshape": lambda: sample().T.reshape(12),
    "buffer": lambda: np.asarray(sample("pinned")),
    "export": exported,
    "import": lambda: cuwheel.from_dlpack(sample(stream=Stream()), stream=Stream()),
    "wait": lambda: Stream().wait(Stream()),
    "describe": lambda: (cuwheel.Device().name, cuwheel.Device().compute_capability, cuwheel.Device().memory_info()),
}
#: Where these fail, something stays as it is: see below.
ENDS = {*FREES.values(), "cuStreamDestroy", "cuEventDestroy", "cuCtxPopCurrent"}
ANSWERS = {"cuGetErrorName", "cuGetErrorString"}


@pytest.mark.parametrize("work", WORK)
def test_any_call_of_the_driver_may_fail(work, driver):
    """Each call of a piece of work fails in turn: nothing leaks, and the work can be done again."""
    WORK[work]()
    driver.reset()
    WORK[work]()
    calls = {name: count for name, count in driver.report()["calls"].items() if name not in ENDS | ANSWERS}
    assert calls
    for name, count in calls.items():
        for number in range(1, count + 1):
            with driver.faults(f"fail={name}:{number}:UNKNOWN"):
                try:
                    WORK[work]()
                except RuntimeError as error:
                    assert f"{name}" in str(error) and UNKNOWN in str(error)
            # What failed in a destructor is said by the next call, and only then something is left.
            try:
                cuwheel.Device().memory_info()
            except RuntimeError as error:
                assert "an error that could not be reported when it happened" in str(error)
                free_leftovers(driver)
            WORK[work]()
            assert driver.alive()["allocations"] == [], (name, number)
            assert driver.violations() == []


def free_leftovers(driver):
    """Takes back what a destructor could not."""
    for device in range(stand_in.DEVICES):
        driver.call("cuDevicePrimaryCtxReset_v2", device)


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_of_a_destructor_is_said_by_the_next_call(kind, driver):
    array = cuwheel.empty(7, kind=kind)
    with driver.faults(f"fail={FREES[kind]}:1:UNKNOWN"):
        del array
        with pytest.raises(RuntimeError) as caught:
            cuwheel.empty(3)
    said = re.escape(f"an error that could not be reported when it happened, while freeing memory: {FREES[kind]}")
    assert re.fullmatch(rf"{said}(_v2)? failed with {re.escape(UNKNOWN)}", str(caught.value))
    # It is said once, and the memory is the driver's to free.
    assert cuwheel.zeros(3).size == 3
    assert len(driver.allocations()) == 1
    free_leftovers(driver)


def test_a_lost_context_is_said_with_every_call_until_the_process_ends(driver):
    array = sample()
    lost = (
        "a kernel that ran earlier is the likely cause, and the device stays unusable for this process; find it with "
        "compute-sanitizer and restart"
    )
    with driver.faults("sticky=cuMemcpyDtoHAsync:1:ILLEGAL_ADDRESS;sticky=cuMemcpyAsync:1:ILLEGAL_ADDRESS"):
        for call in (array.copy_to_host, lambda: cuwheel.empty(3), lambda: array.__setitem__(0, 1)):
            with pytest.raises(RuntimeError) as caught:
                call()
            assert "CUDA_ERROR_ILLEGAL_ADDRESS (700)" in str(caught.value)
            assert lost in str(caught.value)
    assert contents(array)[0] == [0, 1, 2, 3]


def test_virtual_gpus_without_memory_pools(driver):
    with driver.faults("fail=cuMemAllocAsync:1+:NOT_SUPPORTED"):
        array = cuwheel.asarray([1, 2, 3])
        assert contents(array[1:]) == [2, 3]
        del array
        assert driver.allocations() == []
        assert driver.calls("cuMemFree") == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("device", [0, 1])
def test_the_last_reference_may_go_on_any_thread(kind, device, driver):
    """Where another context is current, and the per-thread stream is another one."""
    held = [cuwheel.zeros(9, kind=kind, device=device, stream=stream) for stream in (0, 2, Stream(device=device))]

    def drop():
        with driver.context(1 - device):
            held.clear()
            gc.collect()

    thread = threading.Thread(target=drop)
    thread.start()
    thread.join()
    assert driver.allocations() == []


def test_contexts_are_left_as_they_were_found(driver):
    def current():
        context = ctypes.c_void_p()
        driver.call("cuCtxGetCurrent", ctypes.byref(context))
        return context.value

    with driver.context(0) as outer:
        for work in WORK.values():
            work()
            cuwheel.empty(2, device=1)[0] = 1
            assert current() == outer.value


DIED = """
import sys, cuwheel
try:
    print(repr(cuwheel.empty(3)))
except Exception as error:
    print(type(error).__name__, error, sep=": ")
"""

INIT = "CudaError: cuInit failed with "
SETTINGS = {
    "driver=12020": "DeviceArray(shape=(3,), dtype=float64, device=cuda:0, kind=device)",
    "driver=12010": "CudaError: the driver is for CUDA 12.1, and 12.2 or newer is needed; update NVIDIA's driver",
    "no_device": INIT + "CUDA_ERROR_NO_DEVICE (100): no device; see that `nvidia-smi` lists a GPU and that "
    "CUDA_VISIBLE_DEVICES does not hide it",
    "fail=cuInit:1:SYSTEM_NOT_READY": INIT
    + "CUDA_ERROR_SYSTEM_NOT_READY (802): system not ready; start the fabric manager, "
    "or wait until it has started",
    "fail=cuInit:1:SYSTEM_DRIVER_MISMATCH": INIT
    + "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803): system driver mismatch; the "
    "driver's library and kernel module are of different versions; restart the machine, or the container with the "
    "libraries of this machine's driver",
    "fail=cuInit:1:UNKNOWN": INIT + UNKNOWN,
    "fail=cuDeviceGetCount:1:UNKNOWN": f"CudaError: cuDeviceGetCount failed with {UNKNOWN}",
    "fail=cuDevicePrimaryCtxRetain:1:OUT_OF_MEMORY": "MemoryError: cuDevicePrimaryCtxRetain failed with "
    "CUDA_ERROR_OUT_OF_MEMORY (2): out of memory; release arrays that are no longer needed, or work on smaller pieces",
}


@pytest.mark.parametrize("settings", SETTINGS)
def test_drivers_that_do_not_start(settings):
    printed = fresh_python.run(DIED, environment={"CUDA_STUB": settings})
    assert printed == SETTINGS[settings] + "\n"


WITHOUT_DRIVER = """
import ctypes, sys, cuwheel
for name in ("libcuda.so.1", "libcuda.so"):
    try:
        ctypes.CDLL(name)
        sys.exit(print("a driver"))
    except OSError:
        pass
for work in (
    lambda: cuwheel.empty(3), lambda: cuwheel.asarray([1]), cuwheel.Device.count, lambda: cuwheel.Device(1).name,
    cuwheel.current_stream, cuwheel.Stream, lambda: cuwheel.use_stream(0),
):
    try:
        work()
    except RuntimeError as error:
        print(error)
# What needs none works.
print(cuwheel.DType("bfloat16"), cuwheel.Device(1), cuwheel._devicearray.forget_types())
"""


@pytest.mark.parametrize("content", [None, b"", b"no library"], ids=["none", "empty file", "text"])
def test_without_a_driver_everything_works_but_its_use(tmp_path, content):
    if content is not None:
        for name in ("libcuda.so.1", "libcuda.so"):
            (tmp_path / name).write_bytes(content)
    printed = fresh_python.run(WITHOUT_DRIVER, environment={"LD_LIBRARY_PATH": str(tmp_path)})
    if printed == "a driver\n":
        pytest.skip("this machine has a driver of its own")
    *errors, last = printed.splitlines()
    expected = (
        r"no CUDA driver was found \(.*libcuda\.so\.1: .*; .*libcuda\.so: .*\); install NVIDIA's driver, or pass "
    )
    expected += r"the GPU into the container, for example with `--gpus all`"
    assert len(errors) == 7
    assert all(re.fullmatch(expected, error) for error in errors), errors
    assert last == "bfloat16 cuda:1 None"


def loaded_stand_in() -> Path:
    """The file of the stand-in that this process has loaded."""
    paths = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "libcuda.so" in line}
    return Path(*paths)


MISSING = {
    "cuMemAllocAsync": ("cuwheel.empty(3)", "device memory in the order of a stream"),
    "cuMemHostAlloc": ("cuwheel.empty(3, kind='pinned')", "pinned host memory"),
    "cuMemAllocManaged": ("cuwheel.empty(3, kind='managed')", "managed memory"),
    "cuStreamCreate": ("cuwheel.Stream()", "streams"),
    "cuEventCreate": ("cuwheel.Stream(1).wait(2)", "ordering streams by events"),
    "cuPointerGetAttributes": ("cuwheel.from_dlpack(Described())", "finding out about an address"),
    "cuDeviceGetName": ("cuwheel.Device().name", "describing a device"),
    "cuInit": ("cuwheel.Device.count()", "starting CUDA"),
}


@pytest.mark.parametrize("name", MISSING)
def test_a_function_that_a_driver_lacks_is_named_by_what_needs_it(name, tmp_path):
    library = loaded_stand_in().read_bytes()
    # The loader finds names by a hash, `h * 33 + character`: this one has the same, so that the library finds its own.
    renamed = name[:2] + chr(ord(name[2]) + 1) + chr(ord(name[3]) - 33) + name[4:]
    assert name.encode() + b"\0" in library
    (tmp_path / "libcuda.so.1").write_bytes(library.replace(name.encode() + b"\0", renamed.encode() + b"\0"))
    printed = fresh_python.run(
        """
        import sys, cuwheel
        class Described:
            __cuda_array_interface__ = {"version": 3, "typestr": "<f4", "data": (4096, False), "shape": (3,)}
        for _ in range(2):
            try:
                eval(sys.argv[1])
            except RuntimeError as error:
                print(error)
        if sys.argv[2] != "cuInit":
            for kind in ("device", "pinned", "managed"):
                try:
                    cuwheel.empty(3, kind=kind)
                except RuntimeError:
                    print(kind)
        """,
        MISSING[name][0],
        name,
        environment={"LD_LIBRARY_PATH": str(tmp_path)},
    )
    version = "0.0" if name == "cuInit" else "13.1"
    expected = (
        f"the driver, which is for CUDA {version}, has no function {name}, which is needed for "
        f"{MISSING[name][1]}; update "
        "NVIDIA's driver"
    )
    only = [kind for kind in ("device", "pinned", "managed") if ALLOCATES[kind] == name]
    assert printed.splitlines() == [expected] * 2 + only
    (tmp_path / "libcuda.so.1").unlink()
