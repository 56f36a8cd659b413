"""The shared library of this package. Its members are what the package's modules of the same names are made of; import
those instead.
"""

from types import ModuleType

__all__ = ["__version__", "_numpy", "mviewbuf"]

__version__: str
_numpy: ModuleType
mviewbuf: ModuleType
