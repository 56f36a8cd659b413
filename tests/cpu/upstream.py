"""The C extension modules of a released numba-cuda, loaded straight from their files: the reference for behaviour."""

import importlib.machinery
import importlib.metadata
import importlib.util
from types import ModuleType

DISTRIBUTION = "numba-cuda"


class NotInstalled(Exception):
    """The reference is not there to compare with."""


def load_mviewbuf() -> ModuleType:
    """Load `mviewbuf` without importing the package around it, which would need a CUDA installation."""
    try:
        distribution = importlib.metadata.distribution(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        raise NotInstalled(f"{DISTRIBUTION} is not installed; there is nothing to compare with") from None
    suffixes = tuple(importlib.machinery.EXTENSION_SUFFIXES)
    [path] = [file for file in distribution.files if file.name.startswith("mviewbuf.") and file.name.endswith(suffixes)]
    loader = importlib.machinery.ExtensionFileLoader("mviewbuf", str(distribution.locate_file(path)))
    spec = importlib.util.spec_from_loader("mviewbuf", loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module
