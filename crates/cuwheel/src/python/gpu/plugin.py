"""The pytest plugin of a worker: the markers and their policy, and tests that come one by one from `pool`.

The worker collects like any pytest run and then runs what it is told to. It writes what happens as JSON lines into a pipe;
`pool` decides. The file that CUWHEEL_GPU_WORKER names says what the worker has: the pipes, the devices and the policy.
"""

import collections
import ctypes
import json
import os
import signal

import pytest

from . import NEEDS, driver, provenance

with open(os.environ["CUWHEEL_GPU_WORKER"], encoding="utf-8") as _stream:
    _SETTINGS = json.load(_stream)

MARKERS = {
    "gpu": "gpu: the test needs a GPU",
    "multi_gpu": "multi_gpu(n): the test needs n GPUs (2 without a number) and runs apart from others",
    "memory_gib": "memory_gib(n): the test needs a GPU with n GiB of memory",
    "compute_capability": "compute_capability(x): the test needs a GPU of this compute capability or a newer one",
}

_ALL_NEED_GPU = pytest.StashKey()
"""Whether tests without a marker need a GPU too."""


class _Pipes:
    """The worker's ends of the two pipes. What the tests start does not inherit them."""

    def __init__(self, events, commands):
        os.set_inheritable(events, False)
        os.set_inheritable(commands, False)
        self.owner = os.getpid()
        self.events = events
        self.commands = os.fdopen(commands, encoding="utf-8")
        self.waiting = b""

    def note(self, event, **fields):
        """Says something together with what is said next."""
        self.waiting += json.dumps({"event": event, **fields}).encode() + b"\n"

    def say(self, event, **fields):
        # A fork of a test that goes on as pytest must not speak for the worker.
        if os.getpid() != self.owner:
            return
        self.note(event, **fields)
        data, self.waiting = self.waiting, b""
        while data:
            data = data[os.write(self.events, data) :]

    def hear(self):
        line = self.commands.readline()
        return json.loads(line) if line else {"end": True}


def _end_with_parent():
    """Has the kernel end this process with the one that hands out tests, which may be killed without a word."""
    death_signal = 1  # PR_SET_PDEATHSIG
    ctypes.CDLL(None).prctl(death_signal, signal.SIGKILL)


_end_with_parent()
_pipes = _Pipes(_SETTINGS["events"], _SETTINGS["commands"])


def _gpus_needed(item):
    marker = item.get_closest_marker("multi_gpu")
    if marker is None:
        return 1
    return int(marker.args[0] if marker.args else marker.kwargs.get("n", 2))


def _argument(marker):
    """The one argument of a marker, by position or by name."""
    values = [*marker.args, *marker.kwargs.values()]
    if len(values) != 1:
        raise pytest.UsageError(f"the marker {marker.name} takes one argument: {MARKERS[marker.name]}")
    return values[0]


def _capability(value):
    """(9, 0) from 9, 9.0, "9.0" or (9, 0)."""
    if isinstance(value, (tuple, list)):
        return tuple(value)
    major, _, minor = str(value).partition(".")
    return int(major), int(minor or 0)


def _unmet_need(item):
    """Why the devices of this run are not what the test's markers ask for, or None."""
    devices = _SETTINGS["devices"]
    if not devices:
        needs = item.config.stash[_ALL_NEED_GPU] or any(item.get_closest_marker(name) for name in MARKERS)
        return f"needs a GPU; {_SETTINGS['without_gpu']}" if needs else None
    needed = _gpus_needed(item)
    if needed > _SETTINGS["gpus"]:
        return f"needs {needed} GPUs; the run has {_SETTINGS['gpus']}"
    marker = item.get_closest_marker("memory_gib")
    if marker is not None:
        largest = max(devices, key=lambda device: device["memory_bytes"])
        if largest["memory_bytes"] < float(_argument(marker)) * 2**30:
            has = f"{largest['name']} has {largest['memory_bytes'] / 2**30:.1f}"
            return f"needs {_argument(marker)} GiB of GPU memory; {has}"
    marker = item.get_closest_marker("compute_capability")
    if marker is not None:
        wanted = _capability(_argument(marker))
        oldest = min(devices, key=lambda device: device["compute_capability"])
        if tuple(oldest["compute_capability"]) < wanted:
            has = "{}.{}".format(*oldest["compute_capability"])
            return f"needs compute capability {wanted[0]}.{wanted[1]}; {oldest['name']} has {has}"
    return None


def _describe_skip(report):
    """The reason of a skip, without pytest's prefix."""
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr or "")
    return reason.removeprefix("Skipped: ").strip()


def pytest_configure(config):
    for line in MARKERS.values():
        config.addinivalue_line("markers", line)
    if getattr(config.option, "numprocesses", None) or getattr(config.option, "dist", "no") != "no":
        raise pytest.UsageError(
            "tests are shared out over devices already: leave -n out, and choose devices with --gpus"
        )


def pytest_collection_finish(session):
    # As in the counts of `records`: where nothing has the marker `gpu`, everything needs one.
    session.config.stash[_ALL_NEED_GPU] = not any(item.get_closest_marker("gpu") for item in session.items)


@pytest.hookimpl(tryfirst=True)
def pytest_make_collect_report(collector):
    if isinstance(collector, pytest.File):
        _pipes.say("collecting", path=collector.nodeid, log_start=_size("log"))


def pytest_collectreport(report):
    if report.failed:
        _pipes.say("collection_error", path=report.nodeid, text=report.longreprtext)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    unmet = _unmet_need(item)
    if unmet is not None:
        pytest.skip(NEEDS + unmet)


def pytest_runtest_logreport(report):
    fields = {
        "id": report.nodeid,
        "when": report.when,
        "outcome": report.outcome,
        "seconds": report.duration,
        "xfail": hasattr(report, "wasxfail"),
    }
    if report.skipped:
        fields["reason"] = getattr(report, "wasxfail", None) or _describe_skip(report)
    elif report.failed:
        fields["text"] = report.longreprtext
        fields["output"] = [[name, text] for name, text in report.sections if text.strip()]
    _pipes.note("report", **fields)


def _size(name):
    """The size of one of the worker's logs, which may not exist yet."""
    try:
        return os.path.getsize(_SETTINGS[name])
    except OSError:
        return 0


class _Session:
    """The loop of a worker. One test more than runs is always known, since fixtures live as long as the next needs them."""

    def __init__(self, session):
        self.session = session
        self.items = {}
        for item in session.items:
            self.items.setdefault(item.nodeid, item)
        self.waiting = collections.deque()
        self.ended = False
        self.driver = None

    def describe(self):
        """The tests as `pool` knows them."""
        return [
            [name, _gpus_needed(item), [marker for marker in MARKERS if item.get_closest_marker(marker)]]
            for name, item in self.items.items()
        ]

    def ask(self):
        """Asks for tests until there are more than one or the run has none left."""
        while not self.ended and len(self.waiting) < 2:
            _pipes.say("more")
            command = _pipes.hear()
            self.ended = bool(command.get("end"))
            self.waiting.extend(self.items[name] for name in command.get("run", ()))

    def loop(self):
        while True:
            self.ask()
            if not self.waiting:
                return
            item = self.waiting.popleft()
            following = self.waiting[0] if self.waiting else None
            # Sizes, since what a test writes may be in a log before its events are read.
            _pipes.say("start", id=item.nodeid, log_start=_size("log"))
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            self.look_at_context(item)
            _pipes.say("finish", id=item.nodeid, findings_end=_size("findings"))
            stop = self.session.shouldfail or self.session.shouldstop
            if stop:
                _pipes.say("stopped", reason=str(stop))
                return

    def look_at_context(self, item):
        """Ends the process when its CUDA context is ruined: every later test would fail for what this one did."""
        self.driver = self.driver or driver.loaded_driver()
        error = driver.sticky_error(self.driver) if self.driver else None
        if error:
            _pipes.say("ruined", id=item.nodeid, error=error)
            os._exit(0)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session):
    run = _Session(session)
    _pipes.say("collected", tests=run.describe())
    run.loop()
    return True


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session, exitstatus):
    _pipes.say("end", libraries=provenance.mapped_libraries(), driver=driver.mapped_path())
