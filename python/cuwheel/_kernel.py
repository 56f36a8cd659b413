"""Device code, its kernels, and their launches."""

from . import _native

__all__ = ["ConfiguredKernel", "Kernel", "Module"]

ConfiguredKernel = _native._kernel.ConfiguredKernel
Kernel = _native._kernel.Kernel
Module = _native._kernel.Module
_rebuild = _native._kernel._rebuild
