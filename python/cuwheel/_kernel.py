"""Device code, its kernels, and their launches."""

from . import _native

__all__ = [
    "ArgumentType",
    "CompileError",
    "ConfiguredDispatcher",
    "ConfiguredKernel",
    "Dispatcher",
    "Kernel",
    "Module",
]

ArgumentType = _native._kernel.ArgumentType
CompileError = _native._kernel.CompileError
ConfiguredDispatcher = _native._kernel.ConfiguredDispatcher
ConfiguredKernel = _native._kernel.ConfiguredKernel
Dispatcher = _native._kernel.Dispatcher
Kernel = _native._kernel.Kernel
Module = _native._kernel.Module
_rebuild = _native._kernel._rebuild
_rebuild_dispatcher = _native._kernel._rebuild_dispatcher
