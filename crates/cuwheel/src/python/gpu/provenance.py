"""Where the shared libraries of a process come from, and whether they are those of the installed distributions.

A library that a distribution in the test environment owns has to be mapped from there: another copy of it, from the system
or through LD_LIBRARY_PATH, would be tested in its place.
"""

import os
import re
from pathlib import Path

_LIBRARY = re.compile(r"/lib(cu|nccl|npp|nv)[^/]*\.so(\.[0-9]+)*$")
"""The libraries of CUDA, by how their names begin."""

TOOLKIT_VARIABLES = ("CUDA_HOME", "CUDA_PATH", "CUDA_ROOT", "CUDA_TOOLKIT_ROOT_DIR")
"""Variables through which packages find a toolkit of the system instead of the libraries that they depend on."""


def mapped_libraries():
    """The CUDA libraries that this process has mapped, by their paths."""
    found = set()
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as stream:
        for line in stream:
            path = line[line.find("/") :].rstrip("\n") if "/" in line else ""
            if _LIBRARY.search(path):
                found.add(path)
    return sorted(found)


def owned_libraries(site_packages):
    """The CUDA libraries of the distributions in an environment: file name → the places of its owners."""
    root = Path(site_packages)
    owned = {}
    for record in root.glob("*.dist-info/RECORD"):
        for line in record.read_text(encoding="utf-8", errors="replace").splitlines():
            path = line.rsplit(",", 2)[0].strip('"')
            if _LIBRARY.search(f"/{path}"):
                owned.setdefault(os.path.basename(path), []).append(os.path.realpath(root / path))
    return owned


def intruders(mapped, site_packages):
    """What was mapped in the place of an owned library: pairs of the intruder's path and the owner's."""
    owned = owned_libraries(site_packages)
    found = []
    for path in mapped:
        owners = owned.get(os.path.basename(path))
        if owners and os.path.realpath(path) not in owners:
            found.append((path, owners[0]))
    return found
