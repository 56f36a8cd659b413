"""Proves, from inside a pytest run, that the tests ran against the installed wheel.

`cuwheel test` copies this file into the fresh environment and loads it with `-p`. It reads the file that CUWHEEL_PROOF
names and writes what it finds beside it; `cuwheel test` judges. Each process of the run reports for itself.
"""

import hashlib
import importlib.util
import json
import os
import sys
from pathlib import Path

import pytest

with open(os.environ["CUWHEEL_PROOF"], encoding="utf-8") as _stream:
    _EXPECTED = json.load(_stream)
_DIRECTORY = Path(os.environ["CUWHEEL_PROOF"]).parent
_SITE_PACKAGES = os.path.realpath(_EXPECTED["site_packages"])
_RUNNING = _DIRECTORY / f"running-{os.getpid()}"


def _hash(path):
    try:
        with open(path, "rb") as stream:
            return hashlib.sha256(stream.read()).hexdigest()
    except OSError:
        return None


def _sys_path_entry(file):
    """The entry of sys.path through which a file was found: the longest that holds it."""
    file = os.path.realpath(file)
    entries = [entry for entry in sys.path if file.startswith(os.path.join(os.path.realpath(entry or "."), ""))]
    return max(entries, key=lambda entry: len(os.path.realpath(entry)), default=None)


def _check_file(what, file):
    """What is wrong with a file of the package under test, or None."""
    resolved = os.path.realpath(file)
    inside = os.path.relpath(resolved, _SITE_PACKAGES).replace(os.sep, "/")
    expected = _EXPECTED["files"].get(inside)
    if expected is None:
        entry = _sys_path_entry(file)
        found = "an import hook" if entry is None else f"the sys.path entry {entry or os.getcwd()!r}"
        return f"{what} comes from {file}, found through {found}"
    if _hash(resolved) != expected:
        return f"{what} comes from {file}, which is not the file of the wheel any more"
    return None


def _check_installed():
    problems = []
    for path, expected in _EXPECTED["files"].items():
        found = _hash(os.path.join(_SITE_PACKAGES, path))
        if found is None:
            problems.append(f"{path} was installed and is gone")
        elif found != expected:
            problems.append(f"{path} was installed from the wheel and is another file now")
    return problems


def _check_specs():
    """Where the packages would be imported from, without importing them."""
    problems = []
    for package in _EXPECTED["packages"]:
        spec = sys.modules[package].__spec__ if package in sys.modules else importlib.util.find_spec(package)
        if spec is None:
            problems.append(f"the package {package} cannot be imported")
        elif spec.has_location and spec.origin:
            problems.append(_check_file(f"the package {package}", spec.origin))
    return [problem for problem in problems if problem]


def _check_modules():
    problems, count = [], 0
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] not in _EXPECTED["packages"] or module is None:
            continue
        count += 1
        file = getattr(module, "__file__", None)
        if isinstance(file, str):
            problems.append(_check_file(f"the module {name}", file))
    return [problem for problem in problems if problem], count


def _write(name, document):
    temporary = _DIRECTORY / f".{name}-{os.getpid()}"
    temporary.write_text(json.dumps(document), encoding="utf-8")
    temporary.replace(_DIRECTORY / name)


def _prove(moment):
    problems, count = _check_modules()
    problems = _check_installed() + _check_specs() + problems
    if problems:
        _write(f"violation-{os.getpid()}.json", {"moment": moment, "problems": problems})
        pytest.exit(f"this run does not test the wheel: {problems[0]}", returncode=1)
    _write(f"proof-{os.getpid()}.json", {"moment": moment, "modules": count})


class _Counts:
    """Outcomes of whole tests, from the reports of their phases."""

    def __init__(self):
        self.outcomes = {}
        self.errors = 0

    def add(self, report):
        expected_to_fail = hasattr(report, "wasxfail")
        if report.failed:
            outcome = "failed"
        elif report.skipped:
            outcome = "xfailed" if expected_to_fail else "skipped"
        elif report.when == "call":
            outcome = "xpassed" if expected_to_fail else "passed"
        else:
            return
        # A failure in the teardown of a passed test makes it a failed one; nothing makes a failed one better.
        if self.outcomes.get(report.nodeid) != "failed":
            self.outcomes[report.nodeid] = outcome

    def document(self):
        names = ["passed", "failed", "skipped", "xfailed", "xpassed"]
        counts = {name: sum(outcome == name for outcome in self.outcomes.values()) for name in names}
        return {**counts, "errors": self.errors}


_counts = _Counts()


def pytest_sessionstart(session):
    _prove("start")


def pytest_collection_finish(session):
    _prove("collection")


@pytest.hookimpl(tryfirst=True, wrapper=True)
def pytest_runtest_protocol(item, nextitem):
    # The watcher outside compares the file's time with the time-out: it can end a test that holds every lock in here.
    _RUNNING.write_text(item.nodeid, encoding="utf-8")
    try:
        return (yield)
    finally:
        _RUNNING.unlink(missing_ok=True)


def pytest_runtest_logreport(report):
    _counts.add(report)


def pytest_collectreport(report):
    if report.failed:
        _counts.errors += 1


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session, exitstatus):
    if not hasattr(session.config, "workerinput"):
        _write("counts.json", _counts.document())
    _prove("end")
