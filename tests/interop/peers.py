"""The libraries that arrays are exchanged with: how each makes an array, takes one of ours, and tells what is in it.

Values are compared as bytes, so that every data type can be tested in the same way, also those that NumPy does not have.
"""

import functools
import importlib.util
import math
from pathlib import Path

import cuwheel
import numpy as np
import pytest

INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
FLOATS = ["float16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]
NUMPY = ["bool", *INTEGERS, *FLOATS, *COMPLEX]
FLOAT8 = ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"]


@functools.cache
def no_device():
    """Why there is no CUDA device, or an empty text."""
    try:
        name = cuwheel.Device(0).name
    except RuntimeError as error:
        return f"there is no CUDA device: {error}"
    return "the driver is a stand-in" if "stand-in" in name else ""


@functools.cache
def _imported(module):
    # A package that is broken by what is installed beside it raises anything.
    try:
        return importlib.import_module(module), ""
    except Exception as error:
        return None, f"{module} cannot be imported: {type(error).__name__}: {error}"


def library(module):
    """A module, or the skipping of the test."""
    found, reason = _imported(module)
    if found is None:
        pytest.skip(reason)
    if module == "numba.cuda" and not hasattr(np, "row_stack") and "row_stack" in _text_of("numba.cuda.np.arrayobj"):
        pytest.skip("this numba-cuda compiles nothing with NumPy 2.5 or newer")
    return found


@functools.cache
def _text_of(module):
    """The text of a module's file, or an empty one."""
    spec = importlib.util.find_spec(module)
    return Path(spec.origin).read_text() if spec and spec.origin else ""


def ready(peer):
    """The peer, or the skipping of the test."""
    library(peer.module)
    if peer.needs_device and no_device():
        pytest.skip(no_device())
    return peer


def pattern(shape, itemsize, dtype):
    """Bytes for elements of a type: all different as far as that goes, and finite numbers."""
    count = math.prod(shape) * itemsize
    values = np.arange(count, dtype="uint32") * 37 % 101
    return (values % 2 if dtype == "bool" else values).astype("uint8").reshape(*shape[:-1], shape[-1] * itemsize)


def ours(shape, dtype, **where):
    """A device array of ours, and the bytes in it."""
    itemsize = cuwheel.DType(dtype).itemsize
    values = pattern(shape, itemsize, dtype)
    return cuwheel.from_host(values, **where).view(dtype), values


def bytes_of(array):
    """The bytes of a device array of ours in C order."""
    return array.copy_to_device().reshape(-1).view("uint8").copy_to_host()


class Peer:
    """A library. What is not overridden is what the array API standard has."""

    name: str
    module: str
    dtypes: list[str]
    needs_device = True
    # Whether arrays can have gaps between their elements, and be indexed without a copy.
    is_strided = True
    # Whether the library has memory of its own.
    makes_arrays = True
    takes_negative_strides = False

    def take(self, array):
        """The library's array over the memory of ours."""
        raise NotImplementedError

    def make(self, values, dtype):
        """An array of the library's that holds these bytes."""
        raise NotImplementedError

    def pointer(self, array):
        """The address of the first element."""
        return array.__cuda_array_interface__["data"][0]

    def bytes_of(self, array):
        """The bytes in C order."""
        raise NotImplementedError

    def shape(self, array):
        return tuple(array.shape)


class Torch(Peer):
    name = module = "torch"
    # Shell types of unsigned integers and the 8-bit floats are made by viewing bytes.
    dtypes = [*NUMPY, "bfloat16", *FLOAT8, "float8_e8m0fnu", "float4_e2m1fn_x2"]

    def take(self, array):
        return library("torch").from_dlpack(array)

    def make(self, values, dtype):
        torch = library("torch")
        return torch.from_numpy(values).cuda().view(getattr(torch, dtype))

    def pointer(self, array):
        return array.data_ptr()

    def bytes_of(self, array):
        torch = library("torch")
        # A copy, since a dimension of one element may keep any stride, which stands in the way of viewing bytes.
        flat = torch.empty(array.numel(), dtype=array.dtype, device=array.device)
        flat.copy_(array.reshape(-1))
        return flat.view(torch.uint8).cpu().numpy()


class Cupy(Peer):
    name = module = "cupy"
    dtypes = NUMPY
    takes_negative_strides = True

    def take(self, array):
        return library("cupy").from_dlpack(array)

    def make(self, values, dtype):
        return library("cupy").asarray(values).view(dtype)

    def pointer(self, array):
        return array.data.ptr

    def bytes_of(self, array):
        return library("cupy").ascontiguousarray(array).reshape(-1).view("uint8").get()


class CupyInterface(Cupy):
    """CuPy by the CUDA array interface."""

    name = "cupy-interface"

    def take(self, array):
        return library("cupy").asarray(array)


class Jax(Peer):
    name = module = "jax"
    dtypes = [*NUMPY, "bfloat16"]
    is_strided = False

    def _jax(self):
        jax = library("jax")
        jax.config.update("jax_enable_x64", True)
        return jax

    def take(self, array):
        return self._jax().dlpack.from_dlpack(array)

    def make(self, values, dtype):
        if dtype == "bfloat16":
            dtype = library("ml_dtypes").bfloat16
        jax = self._jax()
        return jax.device_put(values.view(dtype), jax.devices("gpu")[0]).block_until_ready()

    def pointer(self, array):
        return array.unsafe_buffer_pointer()

    def bytes_of(self, array):
        return np.ascontiguousarray(np.asarray(array)).reshape(-1).view("uint8")


class Numba(Peer):
    name = "numba-cuda"
    module = "numba.cuda"
    dtypes = NUMPY

    def take(self, array):
        return library("numba.cuda").as_cuda_array(array)

    def make(self, values, dtype):
        return library("numba.cuda").to_device(values.view(dtype))

    def bytes_of(self, array):
        return np.ascontiguousarray(array.copy_to_host()).reshape(-1).view("uint8")


class MemoryView(Peer):
    """cuda.core's StridedMemoryView, which looks at the memory of others."""

    name = "cuda.core"
    module = "cuda.core.utils"
    dtypes = NUMPY
    needs_device = False
    makes_arrays = False
    takes_negative_strides = True

    def take(self, array):
        return library("cuda.core.utils").StridedMemoryView.from_any_interface(array, stream_ptr=-1)

    def pointer(self, array):
        return array.ptr

    def bytes_of(self, array):
        return bytes_of(cuwheel.from_dlpack(array))


class TvmFfi(Peer):
    name = "tvm-ffi"
    module = "tvm_ffi"
    # It does not know DLPack's complex numbers.
    dtypes = ["bool", *INTEGERS, *FLOATS, "bfloat16", *FLOAT8]
    needs_device = False
    makes_arrays = False

    def take(self, array):
        return library("tvm_ffi").from_dlpack(array)

    def pointer(self, array):
        return array.data_ptr()

    def bytes_of(self, array):
        return bytes_of(cuwheel.from_dlpack(array))


ALL = [Torch(), Cupy(), CupyInterface(), Jax(), Numba(), MemoryView(), TvmFfi()]
MAKERS = [peer for peer in ALL if peer.makes_arrays and peer.name != "cupy-interface"]


def cases(peers):
    """Every data type of every peer, for `pytest.mark.parametrize`."""
    return [pytest.param(peer, dtype, id=f"{peer.name}-{dtype}") for peer in peers for dtype in peer.dtypes]
