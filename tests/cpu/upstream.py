"""The C and C++ extension modules of a released numba-cuda, loaded straight from their files: the reference for behaviour.

CUWHEEL_UPSTREAM names a folder with the files of another release, as `pip install --no-deps --target` leaves it.
"""

import importlib.machinery
import importlib.metadata
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

DISTRIBUTION = "numba-cuda"


class NotInstalled(Exception):
    """The reference is not there to compare with."""


def load_dispatcher() -> ModuleType:
    """Load `_dispatcher`, and what it imports from its package up to 0.22.2."""
    try:
        sys.modules["numba.cuda.cext._devicearray"] = load("_devicearray")
    except NotInstalled:
        return load("_dispatcher")
    for package in ("numba", "numba.cuda", "numba.cuda.cext"):
        sys.modules.setdefault(package, ModuleType(package))
    return load("_dispatcher")


def load(name: str) -> ModuleType:
    """Load an extension module without importing the package around it, which would need a CUDA installation."""
    suffixes = tuple(importlib.machinery.EXTENSION_SUFFIXES)
    paths = [path for path in _files() if path.name.startswith(f"{name}.") and path.name.endswith(suffixes)]
    if not paths:
        raise NotInstalled(f"this release of {DISTRIBUTION} has no module {name}")
    loader = importlib.machinery.ExtensionFileLoader(name, str(paths[0]))
    spec = importlib.util.spec_from_loader(name, loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def _files() -> list[Path]:
    if folder := os.environ.get("CUWHEEL_UPSTREAM"):
        return sorted(Path(folder).rglob("cext/*"))
    try:
        distribution = importlib.metadata.distribution(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        raise NotInstalled(f"{DISTRIBUTION} is not installed; there is nothing to compare with") from None
    return [Path(distribution.locate_file(file)) for file in distribution.files]
