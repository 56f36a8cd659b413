"""Builds PROJECT again before it is imported, when what it was made from changed.

Made by `develop --rebuild-on-import`, and imported by a .pth file at the start of Python, so nothing is imported here that
was not before. CUWHEEL_REBUILD_ON_IMPORT=0 turns it off.

What is compared on import is what the file system says of each source: that a file is another one costs a millisecond to
see, and whether its content changed is then for the tool to say.
"""

import _thread
import os
import sys

STATE = "@STATE@"
PROJECT = "@PROJECT@"
GATES = frozenset(@GATES@)
REMEDY = "@REMEDY@"


def is_unchanged(lines):
    for line in lines:
        expected, _, path = line.partition("\t")
        try:
            found = os.stat(path)
        except OSError:
            if expected != "absent":
                return False
            continue
        if expected != f"{found.st_size} {found.st_mtime_ns} {found.st_ctime_ns} {found.st_ino}":
            return False
    return True


def warn(reason):
    print(f"warning: {PROJECT} is imported as it was last built: {reason}\nfix: {REMEDY}", file=sys.stderr)


def rebuild(command):
    import importlib
    import json
    import subprocess

    try:
        tool = subprocess.run(json.loads(command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    except OSError as error:
        return warn(f"its sources changed, and the tool that builds it does not run ({error})")
    try:
        problem = json.loads(tool.stdout)["error"]
    except (ValueError, KeyError):
        problem = {"kind": "failed", "message": f"the tool ended with {tool.returncode}", "details": [], "remedy": None}
    if tool.returncode == 0:
        # What lies beside the sources may be new.
        return importlib.invalidate_caches()
    if problem["kind"] == "machine":
        return warn(problem["message"])
    lines = [f"{PROJECT} was not built again: {problem['message']}", *problem["details"]]
    raise ImportError("\n".join(lines + [f"fix: {problem['remedy'] or REMEDY}"]), name=PROJECT)


class Gate:
    """A finder that finds nothing: it only sees the first import of the project."""

    def __init__(self):
        self.lock = _thread.RLock()
        self.is_open = os.environ.get("CUWHEEL_REBUILD_ON_IMPORT") == "0"

    def find_spec(self, name, path=None, target=None):
        if name in GATES and not self.is_open:
            with self.lock:
                self.enter()
        return None

    def enter(self):
        if self.is_open:
            return
        # Building may import too.
        self.is_open = True
        try:
            with open(STATE, encoding="utf-8", errors="surrogateescape") as stream:
                command, *lines = stream.read().rstrip("\n").split("\n")
        except (OSError, ValueError):
            return warn("what it was made from is no longer known")
        try:
            if not is_unchanged(lines):
                rebuild(command)
        except BaseException:
            # Whoever mends the sources may import again.
            self.is_open = False
            raise


sys.meta_path.insert(0, Gate())
