"""Device arrays, kernel dispatch and memory-view buffers for CUDA, written in Rust.

Importing the package needs neither NumPy nor a CUDA driver. Its modules, and the native library that they are made of,
are loaded when they are first used.
"""

from . import mviewbuf as mviewbuf
from ._native import __version__ as __version__

__all__ = ["__version__", "mviewbuf"]
