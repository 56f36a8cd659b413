"""The types of the native module; what it does is in its docstrings."""

from typing import Protocol
{% if shim %}

from numpy import float32
from numpy.typing import NDArray
{% endif %}

__version__: str

class CudaError(RuntimeError):
    """The CUDA driver cannot be used, or reports an error."""

    name: str | None
    code: int | None

class _Dlpack(Protocol):
    """An array with DLPack, such as those of torch and CuPy."""

    def __dlpack__(self, *, stream: int | None = None) -> object: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...

class _CudaInterface(Protocol):
    """An array with the CUDA array interface, such as those of CuPy and numba."""

    @property
    def __cuda_array_interface__(self) -> dict[str, object]: ...

def saxpy(a: float, x: _Dlpack | _CudaInterface, y: _Dlpack | _CudaInterface, out: _Dlpack | _CudaInterface) -> None:
    """Write a * x + y into out. Arrays of float32 of one shape, contiguous, on one GPU."""

def sum(x: _Dlpack | _CudaInterface, out: _Dlpack | _CudaInterface) -> None:
    """Write the sums of x along its last axis into out. Arrays of float32, contiguous, on one GPU."""
{% if shim %}

def host_sum(array: NDArray[float32]) -> float:
    """Return the sum of all elements of a NumPy array, in double precision."""
{% endif %}
