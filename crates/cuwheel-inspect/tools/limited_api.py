"""Writes src/rules/limited_api.txt: the symbols of CPython's limited API, by the version that added them.

The facts are CPython's own (Misc/stable_abi.toml), taken from the package abi3info on PyPI. To bring them up to date:

    python -m venv v && v/bin/pip install abi3info
    v/bin/python crates/cuwheel-inspect/tools/limited_api.py > crates/cuwheel-inspect/src/rules/limited_api.txt
"""

import collections
import importlib.metadata

import abi3info

by_version = collections.defaultdict(set)
for entry in (*abi3info.FUNCTIONS.values(), *abi3info.DATAS.values()):
    # Nothing in use is older than 3.7, so that what 3.2 to 3.6 added needs no telling apart.
    by_version[max(entry.added.minor, 6)].add(entry.symbol.name)
print(f"# Made by tools/limited_api.py from abi3info {importlib.metadata.version('abi3info')}; [N] heads what 3.N added.")
for minor in sorted(by_version):
    print(f"[{minor}]", *sorted(by_version[minor]), sep="\n")
