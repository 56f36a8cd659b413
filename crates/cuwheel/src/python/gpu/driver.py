"""The few questions that are asked of the CUDA driver, through ctypes.

Run as a program it answers all of them, one JSON object a line, the last being the answer; the lines before say what is
asked next. A driver may hang or crash at any of them, which is why the program is a process of its own: see `preflight`.
"""

import ctypes
import json
import os
import sys
import uuid

LIBRARY = "libcuda.so.1"
SUCCESS = 0

# Errors after which every call in the context fails: CUDA's documentation says that the process has to be started again.
STICKY = {
    214: "CUDA_ERROR_ECC_UNCORRECTABLE",
    220: "CUDA_ERROR_NVLINK_UNCORRECTABLE",
    226: "CUDA_ERROR_CONTAINED",
    700: "CUDA_ERROR_ILLEGAL_ADDRESS",
    702: "CUDA_ERROR_LAUNCH_TIMEOUT",
    710: "CUDA_ERROR_ASSERT",
    714: "CUDA_ERROR_HARDWARE_STACK_ERROR",
    715: "CUDA_ERROR_ILLEGAL_INSTRUCTION",
    716: "CUDA_ERROR_MISALIGNED_ADDRESS",
    717: "CUDA_ERROR_INVALID_ADDRESS_SPACE",
    718: "CUDA_ERROR_INVALID_PC",
    719: "CUDA_ERROR_LAUNCH_FAILED",
    721: "CUDA_ERROR_TENSOR_MEMORY_LEAK",
}

# Values of CUdevice_attribute in cuda.h.
COMPUTE_MODE = 20
CAPABILITY_MAJOR = 75
CAPABILITY_MINOR = 76


class DriverError(Exception):
    """A call that did not give CUDA_SUCCESS."""

    def __init__(self, function, code, name):
        super().__init__(f"{function} gives {name}")
        self.function, self.code, self.name = function, code, name

    def document(self):
        return {"function": self.function, "code": self.code, "name": self.name}


class Driver:
    """The driver's library; a call that fails is a `DriverError`."""

    def __init__(self, mode=ctypes.DEFAULT_MODE):
        self.library = ctypes.CDLL(LIBRARY, mode=mode)

    def code(self, function, *arguments):
        """The CUresult of a call."""
        try:
            pointer = getattr(self.library, function)
        except AttributeError:
            return 500  # CUDA_ERROR_NOT_FOUND
        return pointer(*arguments)

    def call(self, function, *arguments):
        code = self.code(function, *arguments)
        if code != SUCCESS:
            raise DriverError(function, code, self.name_of(code))

    def name_of(self, code):
        """The name of a CUresult."""
        name = ctypes.c_char_p()
        found = self.code("cuGetErrorName", ctypes.c_int(code), ctypes.byref(name)) == SUCCESS and name.value
        return name.value.decode() if found else f"CUDA error {code}"

    def number(self, function, *arguments):
        """The int that a call writes through its first argument."""
        value = ctypes.c_int()
        self.call(function, ctypes.byref(value), *arguments)
        return value.value

    def attribute(self, attribute, device):
        return self.number("cuDeviceGetAttribute", ctypes.c_int(attribute), ctypes.c_int(device))


def mapped_path():
    """The file that the driver's library was loaded from, or None."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as stream:
            paths = (line.split(None, 5)[5].strip() for line in stream if line.count("/"))
            return next((path for path in paths if os.path.basename(path).startswith("libcuda.so")), None)
    except OSError:
        return None


def loaded_driver():
    """The driver's library when this process has loaded it already, else None."""
    try:
        return Driver(mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
    except OSError:
        return None


def sticky_error(driver):
    """Waits for the work in the contexts of this process; the name of the error that has ruined one, or None.

    Nothing is waited for where there is no context, and none is made.
    """
    context = ctypes.c_void_p()
    if driver.code("cuCtxGetCurrent", ctypes.byref(context)) != SUCCESS:
        return None
    if context.value:
        return STICKY.get(driver.code("cuCtxSynchronize"))
    try:
        count = driver.number("cuDeviceGetCount")
    except DriverError:
        return None
    for device in range(count):
        flags, active = ctypes.c_uint(), ctypes.c_int()
        state = driver.code("cuDevicePrimaryCtxGetState", device, ctypes.byref(flags), ctypes.byref(active))
        if state == SUCCESS and active.value:
            found = STICKY.get(_synchronize_primary(driver, device))
            if found:
                return found
    return None


def _synchronize_primary(driver, device):
    context = ctypes.c_void_p()
    code = driver.code("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    if code != SUCCESS:
        return code
    code = driver.code("cuCtxPushCurrent_v2", context)
    if code == SUCCESS:
        code = driver.code("cuCtxSynchronize")
        driver.code("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))
    driver.code("cuDevicePrimaryCtxRelease_v2", device)
    return code


def _say(document):
    print(json.dumps(document), flush=True)


def _describe(driver, index, probe):
    """One device: what it is, and with `probe` whether a context can be made on it."""
    device = driver.number("cuDeviceGet", ctypes.c_int(index))
    name = ctypes.create_string_buffer(256)
    driver.call("cuDeviceGetName", name, len(name), device)
    total = ctypes.c_size_t()
    driver.call("cuDeviceTotalMem_v2", ctypes.byref(total), device)
    identity = (ctypes.c_ubyte * 16)()
    has_identity = driver.code("cuDeviceGetUuid_v2", identity, device) == SUCCESS
    text = name.value.decode(errors="replace")
    document = {
        "index": index,
        "name": text,
        "uuid": str(uuid.UUID(bytes=bytes(identity))) if has_identity else None,
        "compute_capability": [driver.attribute(CAPABILITY_MAJOR, device), driver.attribute(CAPABILITY_MINOR, device)],
        "memory_bytes": total.value,
        # The driver names an instance of a partitioned device after the device and the instance's profile.
        "mig": " MIG " in text,
        "compute_mode": driver.attribute(COMPUTE_MODE, device),
        "free_bytes": None,
        "error": None,
    }
    if probe:
        _say({"asking": f"for a context on device {index}"})
        try:
            document["free_bytes"] = _free_memory(driver, device)
        except DriverError as error:
            document["error"] = error.document()
    return document


def _free_memory(driver, device):
    context = ctypes.c_void_p()
    driver.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    try:
        driver.call("cuCtxPushCurrent_v2", context)
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        driver.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        driver.call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))
        return free.value
    finally:
        driver.code("cuDevicePrimaryCtxRelease_v2", device)


def _kernel_module():
    """The version of the driver's kernel module, as the kernel tells it, or None."""
    try:
        with open("/sys/module/nvidia/version", encoding="ascii", errors="replace") as stream:
            return stream.read().strip()
    except OSError:
        return None


def main(probed):
    """Answers; a context is made on the devices of `probed`, or on all of them when it is None."""
    answer = {"library": None, "load_error": None, "error": None, "cuda_version": None, "devices": []}
    answer["kernel_module"] = _kernel_module()
    _say({"asking": f"for {LIBRARY}"})
    try:
        driver = Driver()
    except OSError as error:
        _say({**answer, "load_error": str(error)})
        return
    answer["library"] = mapped_path()
    try:
        _say({"asking": "cuInit"})
        driver.call("cuInit", 0)
        version = driver.number("cuDriverGetVersion")
        answer["cuda_version"] = [version // 1000, version % 1000 // 10]
        count = driver.number("cuDeviceGetCount")
        for index in range(count):
            _say({"asking": f"about device {index}"})
            answer["devices"].append(_describe(driver, index, probed is None or index in probed))
    except DriverError as error:
        answer["error"] = error.document()
    _say(answer)


if __name__ == "__main__":
    main(None if sys.argv[1:] == [] else {int(index) for index in sys.argv[1].split(",") if index})
