"""Device arrays, kernel dispatch and memory-view buffers for CUDA, written in Rust.

Importing the package needs neither NumPy nor a CUDA driver. Its modules, and the native library that they are made of,
are loaded when they are first used.
"""

from . import mviewbuf as mviewbuf
from ._devicearray import (
    CudaError as CudaError,
    DType as DType,
    Device as Device,
    DeviceArray as DeviceArray,
    Stream as Stream,
    asarray as asarray,
    current_stream as current_stream,
    empty as empty,
    from_dlpack as from_dlpack,
    from_host as from_host,
    full as full,
    use_stream as use_stream,
    zeros as zeros,
)
from ._kernel import (
    ArgumentType as ArgumentType,
    CompileError as CompileError,
    Dispatcher as Dispatcher,
    Kernel as Kernel,
    Module as Module,
)
from ._native import __version__ as __version__

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

def get_include() -> str:
    """Return the directory to include `cuwheel/device_array.h` from, the C API for extension modules."""
