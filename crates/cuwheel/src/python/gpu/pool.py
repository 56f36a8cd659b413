"""Hands tests out to workers, one or several per device, and replaces those that hang, crash or ruin their CUDA context.

Tests of one file go to one worker, in their order, as long as it lives. Tests that need several devices run after the
others, in a worker that sees all of them. What a worker ran when it went is the culprit: that test failed, and the rest of
its tests go on in a new worker.
"""

import collections
import selectors
import time

from . import Problem, preflight, sanitizer
from .worker import Worker

END_S = 60
"""How long a worker may take to tear its fixtures down and to prove that it tested the wheel."""

ENDINGS = (0, 1, 5)
"""The exit codes of pytest that say that it came to its end: with success, with failed tests, without tests."""

COLLECT_S = 120
"""How long a worker may take to start, and to import one file of tests: a time-out of tests may be shorter."""

LOOK_S = 0.1
REPLACEMENTS_WITHOUT_A_TEST = 2
"""How often a worker may be replaced on a device without having run anything."""


class Pool:
    """The workers of a run and the tests that are left.

    `job` says how workers are started (see `main`), `records` takes what happens (see `records`).
    """

    def __init__(self, job, devices, records):
        self.job = job
        self.devices = devices
        self.records = records
        self.workers = []
        self.started = 0
        self.tests = None
        self.units = {False: collections.deque(), True: collections.deque()}
        self.lost_devices = set()
        self.fruitless = collections.Counter()
        self.is_stopped = False
        self.selector = selectors.DefaultSelector()
        self.ends_at = time.monotonic() + job.total_timeout_s

    def run(self):
        """Runs all tests. Fails with a `Problem` only when not even collecting them worked."""
        try:
            groups = [[device] for device in self.devices] or [[]]
            # The second worker of a device comes after the first of each.
            self._run_groups(groups * self.job.arguments.workers, several=False)
            if self.units[True] and not self.is_stopped:
                alive = [device for device in self.devices if device["index"] not in self.lost_devices]
                self._run_groups([alive] if alive else [], several=True)
        finally:
            for worker in list(self.workers):
                worker.kill()
                self._forget(worker)
            self.selector.close()
        for units in self.units.values():
            for unit in units:
                self.records.not_run(unit)

    def _run_groups(self, groups, several):
        waiting = groups[1:]
        for devices in groups[:1]:
            self._start(devices, several)
        while self.workers:
            # The first worker's collection shows how many more are worth starting.
            if waiting and self.tests is not None:
                for devices in waiting[: len(self.units[several])]:
                    self._start(devices, several)
                waiting = []
            for key, _ in self.selector.select(LOOK_S):
                self._listen(key.data)
            for worker in list(self.workers):
                self._look_after(worker)
            if time.monotonic() > self.ends_at:
                running = [worker.current for worker in self.workers if worker.current]
                meanwhile = f", while {', '.join(running)} ran" if running else ""
                message = f"the run took longer than {self.job.total_timeout_s:g} s{meanwhile}"
                self.records.incident("total-timeout", None, message)
                self.is_stopped = True
                return

    def _start(self, devices, several):
        self.started += 1
        name = f"worker-{self.started}"
        gpus = len(devices) if several else len(self.devices)
        findings = sanitizer.Log(self.job.directory / f"{name}.findings")
        settings = {
            "devices": devices,
            "gpus": gpus,
            "without_gpu": self.job.without_gpu,
            "findings": str(findings.path),
        }
        launch = self.job.launch([device["index"] for device in devices], findings.path)
        worker = Worker(name, (devices, several), self.job.directory, launch, settings)
        worker.findings = findings
        self.workers.append(worker)
        self.selector.register(worker.events, selectors.EVENT_READ, worker)

    def _listen(self, worker):
        for event in worker.received():
            kind = event.pop("event")
            getattr(self, f"_on_{kind}")(worker, **event)

    def _on_collecting(self, worker, path, log_start):
        worker.begin(path, log_start)

    def _on_collection_error(self, worker, path, text):
        self.records.collection_error(path, text)

    def _on_collected(self, worker, tests):
        worker.is_collecting = False
        worker.current = None
        worker.touch()
        if self.tests is not None:
            return
        self.tests = {name: (needed, markers) for name, needed, markers in tests}
        self.records.collected(self.tests)
        units = {}
        for name, (needed, _) in self.tests.items():
            several = 1 < needed <= len(self.devices)
            units.setdefault((several, name.partition("::")[0]), []).append(name)
        for (several, _), names in units.items():
            self.units[several].append(names)

    def _on_more(self, worker):
        worker.touch()
        units = self.units[worker.several]
        if self.is_stopped or not units:
            worker.end = worker.end or time.monotonic()
            worker.send(end=True)
            return
        unit = units.popleft()
        worker.waiting.extend(unit)
        worker.send(run=unit)

    def _on_start(self, worker, id, log_start):
        if worker.waiting and worker.waiting[0] == id:
            worker.waiting.pop(0)
        worker.begin(id, log_start)

    def _on_report(self, worker, **report):
        self.records.report(worker, report)

    def _on_finish(self, worker, id, findings_end):
        self.records.findings(id, worker.findings.new_findings(findings_end))
        worker.executed += 1
        worker.current = None
        worker.touch()
        self.records.finished(worker, id)

    def _on_ruined(self, worker, id, error):
        self.records.findings(id, worker.findings.new_findings())
        self.records.culprit(worker, "ruined", id, f"its CUDA context was ruined: {error}", worker.tail())
        worker.executed += 1
        worker.current = None
        worker.ruined = True

    def _on_stopped(self, worker, reason):
        self.records.incident("stopped", None, reason)
        self.is_stopped = True
        self._give_back(worker)

    def _on_end(self, worker, libraries, driver):
        worker.said_end = True
        self.records.ended(worker, libraries, driver)

    def _give_back(self, worker):
        if worker.waiting:
            self.units[worker.several].appendleft(worker.waiting)
            worker.waiting = []

    def _look_after(self, worker):
        """Replaces a worker that is gone, and ends one that hangs or that does not test the wheel."""
        if worker.has_ended():
            self._listen(worker)
            self._bury(worker)
            return
        limit = self.job.timeout_s
        if worker.is_collecting:
            limit = max(limit, COLLECT_S)
        elif worker.current is None:
            limit = max(limit, END_S)
        if time.monotonic() - worker.since > limit:
            self._end_hung(worker, limit)

    def _end_hung(self, worker, limit):
        ended = worker.kill()
        self._listen(worker)
        text = f"took longer than {limit:g} s" + ("" if ended else ", and its process does not end")
        if worker.is_collecting:
            what = f"collecting {worker.current or 'the tests'}"
            self.records.incident("hang", worker.current, f"{what} {text}", worker.tail())
        elif worker.current is None:
            self.records.incident("hang", None, f"the end of {worker.name} {text}", worker.tail())
        else:
            self.records.culprit(worker, "hang", worker.current, text, worker.tail())
            worker.executed += 1
        self._replace(worker)

    def _bury(self, worker):
        """Judges how a process ended."""
        code = worker.process.returncode
        if self.job.violations():
            self.is_stopped = True
        elif worker.ruined:
            pass
        elif worker.current is not None and not worker.is_collecting:
            how = f"the process crashed: {worker.how_it_ended()}"
            self.records.culprit(worker, "crash", worker.current, how, worker.tail())
            worker.executed += 1
        elif worker.is_collecting:
            self._explain_early_end(worker)
        elif not worker.said_end or code not in ENDINGS:
            how = worker.how_it_ended()
            self.records.incident(
                "crash", None, f"{worker.name} crashed between or after its tests: {how}", worker.tail()
            )
        self._replace(worker)

    def _explain_early_end(self, worker):
        """A worker that ended before it knew its tests: exit codes are those of pytest's documentation."""
        how = worker.how_it_ended()
        place = f" while {worker.current} was collected" if worker.current else ""
        message = f"pytest ended{place}: {how}"
        if self.tests is None and worker.process.returncode == 4:
            raise Problem("usage", "pytest refuses its arguments", "mend what it names", worker.tail().splitlines(), 2)
        self.records.incident("crash", worker.current, message, worker.tail())

    def _replace(self, worker):
        self._give_back(worker)
        self._forget(worker)
        devices, several = worker.devices, worker.several
        if worker.executed == 0:
            self.fruitless[worker.name_of_devices()] += 1
        is_done = self.tests is not None and not self.units[several]
        if self.is_stopped or is_done or self.fruitless[worker.name_of_devices()] >= REPLACEMENTS_WITHOUT_A_TEST:
            return
        if self.tests is None and worker.is_collecting and worker.current is not None:
            # The same file would end the next worker as well.
            self.is_stopped = True
            return
        if all(self._answers(device) for device in devices):
            self._start(devices, several)

    def _answers(self, device):
        """Whether a device still works after what a worker did to it."""
        index = device["index"]
        try:
            answer = preflight.ask(self.job.python, {index}, environment=self.job.environment(None))
            preflight.check_driver(answer)
            preflight.check_device(answer["devices"][index])
        except Problem as problem:
            self.lost_devices.add(index)
            self.records.incident("device-lost", None, f"device {index} is used no more: {problem.message}")
            return False
        return True

    def _forget(self, worker):
        self.records.findings(None if worker.is_collecting else worker.current, worker.findings.new_findings())
        self.workers.remove(worker)
        self.selector.unregister(worker.events)
        self.records.worker(worker)
        worker.close()
