"""Runs another project's tests from its installed wheel, and writes what became of each.

`overlay-suite` puts this plugin into the environment: wheels carry tests, and not the configuration they run in.
"""

import hashlib
import json
import os
import sys

import pytest

@pytest.fixture(scope="class")
def initialize_from_pytest_config(request):
    """What the suite of numba-cuda expects of its configuration: no dumps of failed checks."""
    request.cls._dump_failed_filechecks = False


def pytest_configure(config):
    config.pluginmanager.register(Outcomes(), "outcomes")


def native_modules():
    """The modules under test that this process loaded, with the content of their files."""
    loaded = []
    for name, module in sorted(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if ".cext." in f"{name}." and file is not None:
            with open(file, "rb") as stream:
                loaded.append({"name": name, "file": file, "sha256": hashlib.sha256(stream.read()).hexdigest()})
    return loaded


class Outcomes:
    """What became of each test, by its name."""

    def __init__(self):
        self.outcomes = {}

    def pytest_collectreport(self, report):
        if report.failed:
            self.outcomes[report.nodeid] = "not collected"
        elif report.skipped:
            self.outcomes[report.nodeid] = "skipped"

    def pytest_runtest_logreport(self, report):
        expected_to_fail = hasattr(report, "wasxfail")
        if report.failed:
            outcome = "failed" if report.when == "call" else "error"
        elif report.skipped:
            outcome = "xfailed" if expected_to_fail else "skipped"
        elif report.when == "call":
            outcome = "xpassed" if expected_to_fail else "passed"
        else:
            return
        # A teardown that fails has the last word; a test that was skipped or failed before has no call.
        self.outcomes[report.nodeid] = outcome

    def pytest_sessionfinish(self, session):
        # Workers of xdist hand their results to the main process.
        worker = getattr(session.config, "workerinput", {}).get("workerid")
        report = {"outcomes": {} if worker else self.outcomes, "modules": native_modules()}
        name = f"report-{worker or 'main'}.json"
        with open(os.path.join(os.environ["OVERLAY_SUITE_REPORTS"], name), "w", encoding="utf-8") as stream:
            json.dump(report, stream)
