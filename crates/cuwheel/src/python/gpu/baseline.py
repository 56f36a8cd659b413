"""The verdict on a run, and its comparison with an earlier report by the names of the tests."""

import json

from . import Problem

INTERRUPTED = 130
GOOD = ("passed", "xfailed", "xpassed")


def read(path):
    """The tests of an earlier report: name → outcome."""
    try:
        with open(path, encoding="utf-8") as stream:
            return {test["id"]: test["outcome"] for test in json.load(stream)["tests"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        message = f"{path} is no report of tests to compare with: {error!r}"
        raise Problem("no-baseline", message, "give a file that --report wrote", (), 2) from None


def compare(tests, earlier):
    """What changed: a test that was good and is not any more, or is not there any more, is a regression."""
    now = {test["id"]: test["outcome"] for test in tests}
    lost = {name: now.get(name, "absent") for name, was in earlier.items() if was in GOOD and now.get(name) not in GOOD}
    return {
        "tests": len(earlier),
        "regressions": [{"id": name, "was": earlier[name], "is": outcome} for name, outcome in lost.items()],
        "known_failures": sorted(
            name for name, is_ in now.items() if is_ == "failed" and earlier.get(name) == "failed"
        ),
        "new_failures": sorted(name for name, is_ in now.items() if is_ == "failed" and name not in earlier),
        "mended": sorted(name for name, is_ in now.items() if is_ in GOOD and earlier.get(name) == "failed"),
    }


def judge(document, path=None):
    """Puts the comparison with the report at `path`, if one is given, and the exit code into the document.

    Without a comparison every failed test counts; with one, regressions and tests that are new and failed.
    """
    if document["problem"]:
        return
    bad = document["counts"]["failed"]
    if path:
        document["baseline"] = found = compare(document["tests"], read(path))
        bad = len(found["regressions"]) + len(found["new_failures"])
    interrupted = any(incident["kind"] == "interrupted" for incident in document["incidents"])
    document["exit_code"] = INTERRUPTED if interrupted else int(bool(document["faults"]) or bad > 0)
