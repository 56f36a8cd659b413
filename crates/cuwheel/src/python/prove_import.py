"""Imports modules in a fresh interpreter and writes, as JSON, where each loaded file came from.

Argument: the path of a JSON object with

- `report`: the file to write;
- `names`: the modules to import;
- `bare`: packages whose own code must not run, outermost first: they are found where they are installed, so that modules
  in them are imported under their true names, without what the packages would import;
- `package`: null, or the directory of a package that `names` import under a name of their choice; only modules from files
  in it are reported;
- `modules`: modules of that package to import.

Runs with `-I` from a neutral directory.
"""

import ctypes
import hashlib
import importlib
import importlib.machinery
import importlib.util
import json
import os
import sys
import traceback


def create_bare(name):
    parent = sys.modules.get(name.rpartition(".")[0])
    spec = importlib.machinery.PathFinder.find_spec(name, parent and parent.__path__)
    if spec is None:
        raise ModuleNotFoundError(f"there is no package {name}")
    # Created and not executed: it has a path to find modules in, and none of its code has run.
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    if parent is not None:
        setattr(parent, name.rpartition(".")[2], module)


def import_from(directory, modules):
    """Imports the modules under every name that the package in `directory` has by now."""
    packages = [
        name
        for name, module in list(sys.modules.items())
        if any(os.path.samefile(path, directory) for path in getattr(module, "__path__", []) if os.path.isdir(path))
    ]
    if not packages:
        raise ModuleNotFoundError(f"nothing imported the package in {directory}")
    for package in packages:
        for module in modules:
            importlib.import_module(f"{package}.{module}")


def describe(name, module):
    file = getattr(module, "__file__", None)
    sha256 = None
    if file is not None:
        with open(file, "rb") as stream:
            sha256 = hashlib.sha256(stream.read()).hexdigest()
    return {"name": name, "file": file, "sha256": sha256, "capsules": capsules(module)}


def capsules(module):
    """The names that capsules of a module have inside, by attribute; None for one without a name."""
    get_name = ctypes.pythonapi.PyCapsule_GetName
    get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    named = {}
    for attribute, value in list(vars(module).items()):
        if type(value).__name__ == "PyCapsule":
            name = get_name(value)
            named[attribute] = name if name is None else name.decode("utf-8", "replace")
    return named


def is_reported(name, module, plan, packages):
    if plan["package"] is None:
        return name.partition(".")[0] in packages
    file = getattr(module, "__file__", None)
    return file is not None and os.path.samefile(os.path.dirname(file), plan["package"])


def main(path):
    with open(path, encoding="utf-8") as stream:
        plan = json.load(stream)
    gil_before = getattr(sys, "_is_gil_enabled", lambda: True)()
    failures = []

    def attempt(name, action, *arguments):
        try:
            action(*arguments)
        except BaseException:
            failures.append({"name": name, "traceback": traceback.format_exc()})

    for name in plan["bare"]:
        attempt(name, create_bare, name)
    for name in plan["names"]:
        attempt(name, importlib.import_module, name)
    if plan["package"] is not None and not failures:
        attempt(plan["package"], import_from, plan["package"], plan["modules"])
    packages = {name.partition(".")[0] for name in plan["names"]}
    loaded = [item for item in list(sys.modules.items()) if is_reported(*item, plan, packages)]
    report = {
        "failures": failures,
        "modules": [describe(name, module) for name, module in sorted(loaded, key=lambda item: item[0])],
        "gil_was_enabled": getattr(sys, "_is_gil_enabled", lambda: True)() and not gil_before,
    }
    # A file, since modules may print what they like while they are imported and at exit.
    with open(plan["report"], "w", encoding="utf-8") as stream:
        json.dump(report, stream)


main(sys.argv[1])
