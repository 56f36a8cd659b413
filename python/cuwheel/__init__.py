"""Device arrays, kernel dispatch and memory-view buffers for CUDA, written in Rust.

Importing the package needs neither NumPy nor a CUDA driver. Its modules, and the native library that they are made of,
are loaded when they are first used.
"""

__all__ = ["__version__", "mviewbuf"]


# The package imports nothing while it is imported: a thread that imports a module of it by name locks that module first
# and then the package, so that a package that imports its modules would lock in the opposite order.
def __getattr__(name):
    if name == "__version__":
        from ._native import __version__

        return __version__
    if name in __all__:
        import importlib

        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *__all__})
