"""Values of a setup.py that is read and not run: what is known, and what only running it would tell.

The first half of one program with `setup_reader.py`, which gives values to expressions. Nothing here touches anything but the
names and the contents of the project's own files.
"""

import ast
import copy
import glob
import itertools
import json
import os
import re
import sys

ROOT = ""
MOST_STEPS = 200000
MOST_ITEMS = 2000
MOST_MEMORY = 2 << 30
LARGEST_FILE = 1 << 20
LARGEST_TEXT = 4 << 20
LONGEST_SOURCE = 160


class Leaf:
    """A value that is shared and never changed."""

    def __deepcopy__(self, memo):
        return self


class Unknown(Leaf):
    """What cannot be known without running: the source of the expression, and where it is."""

    def __init__(self, source, file, line, why=""):
        self.source, self.file, self.line, self.why = source, file, line, why

    def __eq__(self, other):
        return isinstance(other, Unknown) and (self.source, self.file, self.line) == (other.source, other.file, other.line)

    __hash__ = None


class Symbol(Leaf):
    """A name of a module that is not part of the project, such as `setuptools.Extension`."""

    def __init__(self, name):
        self.name = name

    def __eq__(self, other):
        return isinstance(other, Symbol) and self.name == other.name

    __hash__ = None


class Made(Leaf):
    """What a call of such a name gives: an extension module, a command, a path of headers."""

    def __init__(self, name, arguments, keywords, file, line):
        self.name, self.arguments, self.keywords, self.file, self.line = name, arguments, keywords, file, line

    def __eq__(self, other):
        return isinstance(other, Made) and self.__dict__ == other.__dict__

    __hash__ = None


class Function(Leaf):
    def __init__(self, node, module):
        self.node, self.module = node, module


class Module(Leaf):
    """A file that is read: its names and their values."""

    def __init__(self, file, source):
        self.file, self.lines, self.names = file, source, {}


class Command(Leaf):
    """A class of the script: its name, what it is derived from, its methods."""

    def __init__(self, name, bases, methods, file, line):
        self.name, self.bases, self.methods, self.file, self.line = name, bases, methods, file, line


class Conditional:
    """An item of a list, or an entry of a dictionary, that is there under a condition."""

    def __init__(self, when, value):
        self.when, self.value = when, value

    def __eq__(self, other):
        return isinstance(other, Conditional) and (self.when, self.value) == (other.when, other.value)

    __hash__ = None


class Spread(Leaf):
    """Items of a list that cannot be known."""

    def __init__(self, unknown):
        self.unknown = unknown

    def __eq__(self, other):
        return isinstance(other, Spread) and self.unknown == other.unknown

    __hash__ = None


class Text(str):
    """The content of a file of the project, or a part of it that was taken by a pattern."""

    origin = ""
    is_whole = True

    @classmethod
    def of(cls, text, origin, is_whole=True):
        made = cls(text)
        made.origin, made.is_whole = origin, is_whole
        return made

    def __deepcopy__(self, memo):
        return self


class Handle(Leaf):
    def __init__(self, path):
        self.path = path


class Place(str):
    """A path, as pathlib has it; relative to the root of the project."""


class Absent(Exception):
    """A file that is read is not there."""


class TooLong(Exception):
    """The script takes more steps than a reader should."""


def inside(path):
    """A path in the project, or None for one that leads out of it."""
    path = os.path.normpath(str(path) or ".")
    if os.path.isabs(path) or path.split(os.sep)[0] == "..":
        return None
    return "" if path == "." else path


def content(path):
    """The text of a file of the project."""
    inner = inside(path)
    full = os.path.join(ROOT, inner or "")
    if inner is None or not os.path.isfile(full):
        raise Absent(path)
    if os.path.getsize(full) > LARGEST_FILE:
        return None
    with open(full, encoding="utf-8", errors="replace") as stream:
        return Text.of(stream.read(), inner)


def matching(pattern, recursive=False):
    """Files of the project that a pattern names, in the order of their names."""
    inner = inside(pattern)
    if inner is None:
        return None
    found = glob.glob(os.path.join(glob.escape(ROOT), inner), recursive=recursive)
    return sorted(os.path.relpath(path, ROOT) for path in found[:MOST_ITEMS])


def is_known(value):
    """Whether a value is made of texts, numbers and collections of them only."""
    if isinstance(value, (list, tuple, set)):
        return all(is_known(item) for item in value)
    if isinstance(value, dict):
        return all(is_known(item) for item in value.values())
    return value is None or isinstance(value, (str, bytes, int, float, re.Match))


def merged(when, one, other, unknown):
    """One value for what two branches of a condition leave."""
    if type(one) is type(other) and one == other:
        return one
    if isinstance(one, list) and isinstance(other, list):
        shared = 0
        while shared < min(len(one), len(other)) and one[shared] == other[shared]:
            shared += 1
        ours = [under(when, item) for item in one[shared:]]
        return one[:shared] + ours + [under("not (" + when + ")", item) for item in other[shared:]]
    if isinstance(one, dict) and isinstance(other, dict):
        result = {}
        for key in list(one) + [key for key in other if key not in one]:
            if key in one and key in other:
                result[key] = merged(when, one[key], other[key], unknown)
            elif key in one:
                result[key] = merged(when, one[key], [], unknown) if isinstance(one[key], list) else under(when, one[key])
            else:
                result[key] = merged(when, [], other[key], unknown) if isinstance(other[key], list) else under("not (" + when + ")", other[key])
        return result
    # A value that takes the place of nothing is the interesting one.
    for empty, value in ((one, other), (other, one)):
        if empty is None or (isinstance(empty, (list, dict)) and not empty and isinstance(value, (list, dict, Made, Unknown))):
            if isinstance(value, (list, dict, Made)):
                return value
    return unknown


def under(when, item):
    if isinstance(item, Conditional):
        return Conditional(when + " and " + item.when, item.value)
    return Conditional(when, item)


def bare(value):
    return value.value if isinstance(value, Conditional) else value


def encoded(value, depth=0):
    """A value as JSON: an object with its kind."""
    if depth > 12:
        return {"kind": "unknown", "source": "…", "file": "setup.py", "line": 1, "why": "it is nested too deeply"}
    inner = lambda item: encoded(item, depth + 1)
    if value is None:
        return {"kind": "none"}
    if isinstance(value, bool):
        return {"kind": "flag", "value": value}
    if isinstance(value, Text):
        return {"kind": "file", "path": value.origin, "text": str(value)[:20000], "is_whole": value.is_whole}
    if isinstance(value, str):
        return {"kind": "text", "value": str(value)}
    if isinstance(value, (int, float)):
        return {"kind": "text", "value": repr(value)}
    if isinstance(value, (list, tuple)):
        return {"kind": "list", "items": [inner(item) for item in value]}
    if isinstance(value, dict):
        pairs = [[str(key), inner(item)] for key, item in value.items() if isinstance(key, str)]
        return {"kind": "table", "entries": pairs}
    if isinstance(value, Conditional):
        return {"kind": "conditional", "when": value.when, "value": inner(value.value)}
    if isinstance(value, Spread):
        return {"kind": "spread", "of": inner(value.unknown)}
    if isinstance(value, Unknown):
        return {"kind": "unknown", "source": value.source, "file": value.file, "line": value.line, "why": value.why}
    if isinstance(value, Symbol):
        return {"kind": "symbol", "name": value.name}
    if isinstance(value, Command):
        return {"kind": "command", "name": value.name, "bases": value.bases, "methods": value.methods, "file": value.file, "line": value.line}
    if isinstance(value, Made):
        keywords = [[key, inner(item)] for key, item in value.keywords.items()]
        arguments = [inner(item) for item in value.arguments]
        return {"kind": "made", "name": value.name, "arguments": arguments, "keywords": keywords, "file": value.file, "line": value.line}
    return {"kind": "unknown", "source": type(value).__name__.lower(), "file": "setup.py", "line": 1, "why": ""}
