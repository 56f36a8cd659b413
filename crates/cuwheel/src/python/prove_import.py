"""Imports modules in a fresh interpreter and writes, as JSON, where each loaded file came from.

Arguments: the file to write, then the module names. Runs with `-I` from a neutral directory.
"""

import hashlib
import importlib
import json
import sys
import traceback


def describe(name, module):
    file = getattr(module, "__file__", None)
    sha256 = None
    if file is not None:
        with open(file, "rb") as stream:
            sha256 = hashlib.sha256(stream.read()).hexdigest()
    return {"name": name, "file": file, "sha256": sha256}


def main(path, names):
    gil_before = getattr(sys, "_is_gil_enabled", lambda: True)()
    failures = []
    for name in names:
        try:
            importlib.import_module(name)
        except BaseException:
            failures.append({"name": name, "traceback": traceback.format_exc()})
    packages = {name.partition(".")[0] for name in names}
    loaded = [(name, module) for name, module in list(sys.modules.items()) if name.partition(".")[0] in packages]
    report = {
        "failures": failures,
        "modules": [describe(name, module) for name, module in sorted(loaded, key=lambda item: item[0])],
        "gil_was_enabled": getattr(sys, "_is_gil_enabled", lambda: True)() and not gil_before,
    }
    # A file, since modules may print what they like while they are imported and at exit.
    with open(path, "w", encoding="utf-8") as stream:
        json.dump(report, stream)


main(sys.argv[1], sys.argv[2:])
