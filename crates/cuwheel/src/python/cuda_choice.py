"""Which of the native modules in this wheel are for the CUDA that is here.

`MAJOR` is the major version whose modules are imported. The variable named by `VARIABLE` decides; without it, it is the
newest version that the driver runs, of those whose libraries are installed where the wheel asks for any. A machine without
a driver gets the newest.
"""

import ctypes
import os
from importlib import metadata

VARIABLE = "NAME_CUDA_MAJOR"
#: The distributions that each version's modules are linked to.
LIBRARIES = {0: ["library"]}


def _driver_major():
    """The newest major version that the driver runs, or None without a driver."""
    try:
        get_version = ctypes.CDLL("libcuda.so.1").cuDriverGetVersion
    except (OSError, AttributeError):
        return None
    version = ctypes.c_int()
    return version.value // 1000 if get_version(ctypes.byref(version)) == 0 else None


def _are_installed(names):
    try:
        return all(metadata.distribution(name) is not None for name in names)
    except metadata.PackageNotFoundError:
        return False


def choose(asked, driver_major):
    """The version for what the variable says, if anything, and a driver, if there is one."""
    known = sorted(LIBRARIES)
    if asked:
        if asked not in map(str, known):
            versions = ", ".join(map(str, known))
            raise ImportError(f"{VARIABLE} is set to {asked!r}: this wheel has modules for CUDA {versions}")
        return int(asked)
    # A driver that is older than all cannot run any: the first launch says what it needs.
    usable = [major for major in known if driver_major is None or major <= driver_major] or known[:1]
    installed = [major for major in usable if _are_installed(LIBRARIES[major])]
    return (installed or usable)[-1]


_asked = os.environ.get(VARIABLE)
MAJOR = choose(_asked, None if _asked else _driver_major())
