"""What happened in a run, test by test, and the verdict on it.

Nothing here starts or shows anything: `pool` reports to it, and `report` shows what it holds.
"""

import collections
import platform
import re
import time

from . import NEEDS, SCHEMA, sanitizer

# How tests say that there is no GPU at all, as opposed to a GPU that lacks something.
_NO_GPU = re.compile(
    r"\bno (cuda|gpu|nvidia|device|driver)|\bwithout (a |an |any )?(cuda|gpu|nvidia)"
    r"|\b(cuda|gpu|driver|device)s?( device| driver| gpu| support)?s?( is| are)? (not|un)[ -]?"
    r"(available|found|present|supported|usable|installed)"
    r"|\b(requires?|needs?|need) (a |an |any )?(working )?(cuda|nvidia|gpu)[ -]?(gpu|device|driver)?s?\W*$",
    re.IGNORECASE,
)

OUTCOMES = ("passed", "failed", "skipped", "xfailed", "xpassed", "not-run")


def is_for_want_of_gpu(reason):
    """Whether a skip's reason says that there is no GPU."""
    return not reason.startswith(NEEDS) and bool(_NO_GPU.search(reason))


class Records:
    """The tests of a run with their outcomes, and what went wrong beside them."""

    def __init__(self, on_finish):
        self.began = time.monotonic()
        self.tests = {}
        self.collection_errors = []
        self.incidents = []
        self.workers = []
        self.libraries = set()
        self.drivers = set()
        self.on_finish = on_finish

    def collected(self, tests):
        for name, (needed, markers) in tests.items():
            self.tests[name] = {
                "id": name,
                "outcome": "not-run",
                "seconds": 0.0,
                "gpus": needed,
                "markers": markers,
                "devices": [],
                "reason": None,
                "text": None,
                "output": [],
            }

    def collection_error(self, path, text):
        # Every worker collects for itself and fails where the first did.
        if all(error["path"] != path for error in self.collection_errors):
            self.collection_errors.append({"path": path, "text": text})

    def report(self, worker, report):
        """One phase of a test: a failure in any phase makes the test a failed one, and nothing makes it better."""
        test = self.tests.get(report["id"])
        if test is None:
            return
        test["seconds"] = round(test["seconds"] + report["seconds"], 6)
        test["devices"] = [device["index"] for device in worker.devices]
        if report["outcome"] == "failed":
            outcome = "failed"
        elif report["outcome"] == "skipped":
            outcome = "xfailed" if report["xfail"] else "skipped"
        elif report["when"] == "call":
            outcome = "xpassed" if report["xfail"] else "passed"
        else:
            return
        if test["outcome"] == "failed" and outcome != "failed":
            return
        test["outcome"] = outcome
        test["reason"] = report.get("reason")
        if outcome == "failed":
            test["text"] = "\n".join(filter(None, [test["text"], report["text"]]))
            test["output"] += report["output"]

    def finished(self, worker, name):
        self.on_finish(self.tests[name])

    def culprit(self, worker, kind, name, message, log):
        """A test that took its worker with it."""
        test = self.tests[name]
        test["outcome"] = "failed"
        test["devices"] = [device["index"] for device in worker.devices]
        test["seconds"] = round(test["seconds"] + time.monotonic() - worker.since, 3)
        test["text"] = "\n".join(filter(None, [test["text"], message]))
        if log:
            test["output"].append(["log of the worker", log])
        self.incidents.append({"kind": kind, "test": name, "message": message, "log": log})
        self.on_finish(test)

    def findings(self, name, found):
        """Findings of the sanitizer: the test that ran has failed; those beside tests are incidents."""
        for finding in found:
            if name is None:
                self.incident("sanitizer", None, finding["message"], sanitizer.text_of(finding))
        test = self.tests.get(name)
        if test is None or not found:
            return
        test["outcome"] = "failed"
        test["findings"] = test.get("findings", []) + found
        test["text"] = "\n".join(filter(None, [test["text"], found[0]["message"]]))
        test["output"].append(["sanitizer", "\n".join(map(sanitizer.text_of, found))])

    def incident(self, kind, place, message, log=""):
        """Something that no test is to blame for, as far as is known."""
        self.incidents.append({"kind": kind, "test": place, "message": message, "log": log})

    def not_run(self, names):
        """Tests that nobody was left to run."""
        for name in names:
            self.tests[name]["outcome"] = "not-run"

    def ended(self, worker, libraries, driver):
        self.libraries.update(libraries)
        if driver:
            self.drivers.add(driver)

    def worker(self, worker):
        self.workers.append(
            {
                "name": worker.name,
                "devices": [device["index"] for device in worker.devices],
                "executed": worker.executed,
                "ending": worker.how_it_ended(),
            }
        )

    def counts(self):
        found = collections.Counter(test["outcome"] for test in self.tests.values())
        counts = {outcome.replace("-", "_"): found[outcome] for outcome in OUTCOMES}
        counts["errors"] = len(self.collection_errors)
        return counts

    def executed_gpu_tests(self):
        """How many GPU tests ran. All tests are, unless some have the marker `gpu`: then only those with a marker are."""
        ran = [test for test in self.tests.values() if test["outcome"] not in ("skipped", "not-run")]
        is_marked = any("gpu" in test["markers"] for test in self.tests.values())
        return sum(bool(test["markers"]) or not is_marked for test in ran)

    def skips(self):
        """The reasons of skips with their counts, the most frequent first."""
        reasons = collections.Counter(
            (test["reason"] or "no reason given").removeprefix(NEEDS)
            for test in self.tests.values()
            if test["outcome"] == "skipped"
        )
        return [{"reason": reason, "count": count} for reason, count in reasons.most_common()]

    def faults(self, policy, intruders):
        """Why the run failed, beside tests that failed: each as a line."""
        counts = self.counts()
        faults = [
            f"{incident['kind']}: {incident['message']}" for incident in self.incidents if incident["test"] is None
        ]
        for name, one, many in [
            ("errors", "test file could not be collected", "test files could not be collected"),
            ("not_run", "test was not run", "tests were not run"),
        ]:
            if counts[name]:
                faults.append(f"{counts[name]} {one if counts[name] == 1 else many}")
        for path, owner in intruders:
            faults.append(f"{path} was loaded instead of {owner}")
        if policy == "required":
            faults += self._faults_of_policy()
        elif not self.tests:
            faults.append("there are no tests")
        return faults

    def _faults_of_policy(self):
        faults = []
        if self.executed_gpu_tests() == 0:
            faults.append("no GPU test was executed, and --gpu required asks for some")
        elif not self.drivers and not self.incidents:
            faults.append("no test loaded the CUDA driver, and --gpu required asks for GPU tests")
        unwanted = [
            test
            for test in self.tests.values()
            if test["outcome"] == "skipped" and is_for_want_of_gpu(test["reason"] or "")
        ]
        faults += [f"{test['id']} was skipped for want of a GPU: {test['reason']}" for test in unwanted[:10]]
        if len(unwanted) > 10:
            faults.append(f"{len(unwanted) - 10} more tests were skipped for want of a GPU")
        return faults

    def document(self):
        """The report's part that is about tests."""
        return {
            "schema": SCHEMA,
            "host": {"python": platform.python_version(), "platform": platform.platform(), "name": platform.node()},
            "seconds": round(time.monotonic() - self.began, 3),
            "counts": self.counts(),
            "executed_gpu_tests": self.executed_gpu_tests(),
            "tests": list(self.tests.values()),
            "skips": self.skips(),
            "collection_errors": self.collection_errors,
            "incidents": self.incidents,
            "workers": self.workers,
            "libraries": {"driver": sorted(self.drivers), "mapped": sorted(self.libraries)},
        }
