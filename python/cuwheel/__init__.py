"""Device arrays, kernel dispatch and memory-view buffers for CUDA, written in Rust.

Importing the package needs neither NumPy nor a CUDA driver, and imports no module outside the package.
"""

from ._native import __version__  # creates the package's other native modules
from . import mviewbuf

__all__ = ["__version__", "mviewbuf"]
