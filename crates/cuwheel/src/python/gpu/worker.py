"""One worker: a pytest process that runs the tests that it is given, and what is known of it from outside.

The process is a group of its own and writes into a log. It is never waited for without a deadline, since native code that
hangs holds every lock that Python has, and a process that waits for the device may not even end when it is killed.
"""

import collections
import contextlib
import json
import os
import signal
import subprocess
import time

GRACE_S = 5
"""How long a process is waited for that was killed."""


Launch = collections.namedtuple("Launch", ["command", "environment", "directory"])
"""How a worker is started: its command line, its variables and the directory that it works in."""


class Worker:
    """A pytest process with its pipes.

    `devices` are those that it sees, and `several` says whether it runs the tests that need more than one; `waiting` are
    the tests that it was given and has not begun.
    """

    def __init__(self, name, group, directory, launch, settings):
        self.name = name
        self.devices, self.several = group
        self.ruined = False
        self.findings = None
        self.waiting = []
        self.current = None
        self.executed = 0
        self.is_collecting = True
        self.said_end = False
        self.end = None
        self.since = time.monotonic()
        self.log = directory / f"{name}.log"
        self.buffer = b""
        self.log_start = 0
        self._start(directory, launch, settings)

    def _start(self, directory, launch, settings):
        self.events, events = os.pipe()
        commands, self.commands = os.pipe()
        os.set_blocking(self.events, False)
        path = directory / f"{self.name}.json"
        path.write_text(
            json.dumps({**settings, "log": str(self.log), "events": events, "commands": commands}), encoding="utf-8"
        )
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                launch.command,
                cwd=launch.directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**launch.environment, "CUWHEEL_GPU_WORKER": str(path)},
                pass_fds=(events, commands),
                start_new_session=True,
            )
        os.close(events)
        os.close(commands)

    def received(self):
        """The events that have come, as objects."""
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self.events, 1 << 16):
                self.buffer += data
        *lines, self.buffer = self.buffer.split(b"\n")
        return [json.loads(line) for line in lines]

    def send(self, **command):
        """Tells the worker something. One that is gone is found out by its end."""
        with contextlib.suppress(BrokenPipeError):
            os.write(self.commands, json.dumps(command).encode() + b"\n")

    def begin(self, what, log_start):
        """Notes what runs now, since when, and where its output begins in the log."""
        self.current = what
        self.touch()
        self.log_start = log_start

    def touch(self):
        self.since = time.monotonic()

    def name_of_devices(self):
        """The indices of its devices, as text."""
        return ",".join(str(device["index"]) for device in self.devices)

    def has_ended(self):
        return self.process.poll() is not None

    def how_it_ended(self):
        """The exit of the process in words."""
        code = self.process.returncode
        if code is None:
            return "does not end"
        if code >= 0:
            return f"exit code {code}"
        with contextlib.suppress(ValueError):
            return signal.Signals(-code).name
        return f"signal {-code}"

    def tail(self, lines=60):
        """What was written to the log since the current test began."""
        with open(self.log, "rb") as stream:
            stream.seek(self.log_start)
            text = stream.read().decode(errors="replace")
        return "\n".join(text.splitlines()[-lines:])

    def kill(self):
        """Ends the process with all that it started. Whether it did end is returned."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        try:
            self.process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            return False
        return True

    def close(self):
        """Closes the pipes."""
        os.close(self.events)
        os.close(self.commands)
