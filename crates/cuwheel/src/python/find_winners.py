"""For each module, the files that Python would load for it, the one that wins first.

Arguments: a directory that a second search starts with, as that of a process that was started in it; then names of modules.
Each line of stdout has three fields, separated by tabs: `everywhere` or `in-directory`, the module, and a file. Without
modules there is one line: `site-packages`, nothing, and the directory where packages with native modules are installed.

Nothing is imported and no code of a package runs. Where a package hides the one with the module, its own file is named.
It runs whenever somebody asks whether an install is current, so it imports next to nothing.
"""

import importlib.machinery as machinery
import os
import sys

SUFFIXES = machinery.EXTENSION_SUFFIXES + machinery.SOURCE_SUFFIXES + machinery.BYTECODE_SUFFIXES


def files_of(directory, name):
    """The package and the modules that a directory has for a name, in the order in which Python prefers them."""
    package = os.path.join(directory, name)
    for suffix in SUFFIXES:
        init = os.path.join(package, "__init__" + suffix)
        if os.path.isfile(init):
            yield init, [package]
            break
    for suffix in SUFFIXES:
        file = package + suffix
        if os.path.isfile(file):
            yield file, None


def in_place(place, name, full_name):
    """The same for anything that may be in a search path, with what a namespace package has there."""
    directory = place or os.getcwd()
    if os.path.isdir(directory):
        found = list(files_of(directory, name))
        portion = os.path.join(directory, name)
        return found, [portion] if not found and os.path.isdir(portion) else []
    spec = machinery.PathFinder.find_spec(full_name, [place])
    if spec is None or spec.origin is None:
        return [], []
    return [(spec.origin, spec.submodule_search_locations)], []


def search(full_name, depth, places):
    """The files for a module, below the packages that its first `depth` names are."""
    names = full_name.split(".")
    candidates, portions = [], []
    for place in places:
        found, namespace = in_place(place, names[depth], ".".join(names[: depth + 1]))
        portions += namespace
        for file, locations in found:
            candidates += below(full_name, depth, file, locations)
    if portions and depth + 1 < len(names):
        candidates += search(full_name, depth + 1, portions)
    return candidates


def below(full_name, depth, file, locations):
    """What a package or module means for a module that is looked for."""
    if depth + 1 == len(full_name.split(".")):
        return [file]
    inner = search(full_name, depth + 1, list(locations)) if locations else []
    # A package without the module hides every later one.
    return inner or [file]


def by_other_finders(full_name):
    """What finders answer that are asked before the search path is."""
    candidates = []
    for finder in sys.meta_path:
        if finder is machinery.PathFinder:
            break
        if finder in (machinery.BuiltinImporter, machinery.FrozenImporter):
            continue
        try:
            spec = finder.find_spec(full_name.partition(".")[0], None)
        except Exception:
            continue
        if spec is not None:
            candidates += below(full_name, 0, spec.origin or str(finder), spec.submodule_search_locations)
    return candidates


def write(lines):
    # Names of files are bytes, whatever the locale is.
    sys.stdout.buffer.write(os.fsencode("".join("\t".join(line) + "\n" for line in lines)))


def main(directory, *modules):
    if not modules:
        import sysconfig

        return write([("site-packages", "", sysconfig.get_path("platlib"))])
    searches = {"everywhere": sys.path, "in-directory": [directory, *sys.path]}
    write(
        (where, name, file)
        for where, places in searches.items()
        for name in modules
        for file in by_other_finders(name) + search(name, 0, places)
    )


main(*sys.argv[1:])
