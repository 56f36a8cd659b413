"""Device arrays, kernel dispatch and memory-view buffers for CUDA, written in Rust.

Importing the package needs neither NumPy nor a CUDA driver. Its modules, and the native library that they are made of,
are loaded when they are first used.
"""

__all__ = [
    "ArgumentType",
    "CompileError",
    "CudaError",
    "DType",
    "Device",
    "DeviceArray",
    "Dispatcher",
    "Kernel",
    "Module",
    "Stream",
    "__version__",
    "asarray",
    "current_stream",
    "empty",
    "from_dlpack",
    "from_host",
    "full",
    "get_include",
    "mviewbuf",
    "use_stream",
    "zeros",
]


def get_include():
    """Return the directory to include `cuwheel/device_array.h` from, the C API for extension modules."""
    import os

    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "include")


# The package imports nothing while it is imported: a thread that imports a module of it by name locks that module first
# and then the package, so that a package that imports its modules would lock in the opposite order.
def __getattr__(name):
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    if name == "mviewbuf":
        return importlib.import_module(f".{name}", __name__)
    kernels = dict.fromkeys(("ArgumentType", "CompileError", "Dispatcher", "Kernel", "Module"), "._kernel")
    home = {"__version__": "._native", **kernels}.get(name, "._devicearray")
    module = importlib.import_module(home, __name__)
    # Found at once from now on: a look-up that ends here costs more than many a call.
    value = globals()[name] = getattr(module, name)
    return value


def __dir__():
    return sorted({*globals(), *__all__})
