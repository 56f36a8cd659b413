"""CUDA kernels on arrays of any library: torch, CuPy, and whatever has DLPack or the CUDA array interface.

Importing this needs neither a CUDA driver nor a GPU; calling a function with an array does.
"""

{% if shim %}
from ._native import CudaError, __version__, host_sum, saxpy, sum

__all__ = ["CudaError", "__version__", "host_sum", "saxpy", "sum"]
{% else %}
from ._native import CudaError, __version__, saxpy, sum

__all__ = ["CudaError", "__version__", "saxpy", "sum"]
{% endif %}
