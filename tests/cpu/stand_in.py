"""The stand-in driver that these tests run on: its settings, its faults, and its record of what was done with it.

`cargo xtask test` lays it on LD_LIBRARY_PATH as `libcuda.so.1`, before a driver that the machine may have.
"""

import contextlib
import ctypes
import functools
import gc
import json

#: What a process may keep for its whole life.
KEPT = {"contexts", "contexts_pushed"}
DEVICES = 2


class NotInUse(Exception):
    """There is no driver here, or it is a real one."""


class StandIn:
    """The stand-in as this process has loaded it."""

    def __init__(self):
        try:
            self.library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise NotInUse(f"the stand-in driver is not on LD_LIBRARY_PATH: {error}") from error
        if not hasattr(self.library, "cudaStubReport"):
            raise NotInUse("libcuda.so.1 is a real driver here, and these tests need the stand-in before it")
        self.library.cudaStubReport.restype = ctypes.c_char_p
        self._violations = []

    def configure(self, settings: str) -> None:
        """Apply settings, in the grammar of the variable CUDA_STUB."""
        if self.library.cudaStubConfigure(settings.encode()):
            raise ValueError(f"the stand-in refuses the settings {settings!r}")

    def report(self) -> dict:
        """What is alive, and what was done since the last reset."""
        return json.loads(self.library.cudaStubReport())

    def reset(self) -> None:
        """Forget the record and the faults; what is alive stays so."""
        self._violations = []
        self.library.cudaStubReset()

    def alive(self) -> dict:
        """What was made and not destroyed."""
        return {kind: objects for kind, objects in self.report()["alive"].items() if kind not in KEPT}

    def allocations(self) -> list[tuple[str, int]]:
        """The kind and the size in bytes of each allocation that is alive."""
        return [(allocation["kind"], allocation["size"]) for allocation in self.alive()["allocations"]]

    def violations(self) -> list[str]:
        """What broke the rules of the driver since the last reset."""
        return self._violations + self.report()["violations"]

    def calls(self, *names: str) -> int:
        """How often functions were called since the last reset."""
        return sum(self.report()["calls"].get(name, 0) for name in names)

    @contextlib.contextmanager
    def faults(self, settings: str):
        """Let functions fail as `settings` say, until the block is left."""
        self.configure(settings)
        try:
            yield
        finally:
            violations = self.violations()
            self.reset()
            self._violations = violations

    def call(self, name: str, *arguments: object) -> None:
        """Call a function of the driver, which must succeed."""
        code = getattr(self.library, name)(*arguments)
        assert code == 0, f"{name} gave {code}"

    @contextlib.contextmanager
    def context(self, device: int = 0):
        """The primary context of a device, current in the block."""
        context = ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxPushCurrent_v2", context)
        try:
            yield context
        finally:
            self.call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))
            self.call("cuDevicePrimaryCtxRelease_v2", device)

    def fill(self, array: object, stream: object) -> None:
        """Write to an array on a stream, as somebody's kernel would: this orders nothing."""
        size, device = ctypes.c_size_t(array.nbytes), array.device.id
        with self.context(device):
            self.call("cuMemsetD8Async", ctypes.c_uint64(array.pointer), 7, size, ctypes.c_void_p(stream.handle))

    @contextlib.contextmanager
    def capture(self, stream: object):
        """A stream of cuwheel, captured into a graph in the block. Fails if the capture did not survive it."""
        graph, handle = ctypes.c_void_p(), ctypes.c_void_p(stream.handle)
        with self.context(stream.device.id):
            self.call("cuStreamBeginCapture_v2", handle, 0)
        yield
        with self.context(stream.device.id):
            self.call("cuStreamEndCapture", handle, ctypes.byref(graph))
            self.call("cuGraphDestroy", graph)

    @contextlib.contextmanager
    def watched(self):
        """For one test: what the block leaves alive, or does against the rules, fails it."""
        before = self.alive()
        self.reset()
        yield
        violations, after = self.violations(), self.alive()
        if after != before:
            gc.collect()
            after = self.alive()
        self.reset()
        assert violations == [], f"broke the rules of the driver: {violations}"
        assert after == before, f"alive: {after}, and before: {before}"


@functools.cache
def load() -> StandIn:
    """The stand-in, with two devices; or `NotInUse`."""
    stand_in = StandIn()
    # What is there by now is no test's, and is not looked through after each of them.
    gc.collect()
    gc.freeze()
    stand_in.configure(f"devices={DEVICES};at_exit=fail")
    return stand_in
