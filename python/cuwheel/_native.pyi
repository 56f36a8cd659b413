"""The shared library of this package. Its members are what the package's modules of the same names are made of; import
those instead.
"""

from types import ModuleType

__all__ = [
    "__version__",
    "_devicearray",
    "_devicearray_base",
    "_dispatcher",
    "_helperlib",
    "_kernel",
    "_numpy",
    "_typeconv",
    "mviewbuf",
]

__version__: str
_devicearray: ModuleType
_devicearray_base: ModuleType
_dispatcher: ModuleType
_helperlib: ModuleType
_kernel: ModuleType
_numpy: ModuleType
_typeconv: ModuleType
mviewbuf: ModuleType
