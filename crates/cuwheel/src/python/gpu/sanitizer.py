"""Workers under compute-sanitizer, and its findings, each with the test that ran when it was written.

The tool's text is read and not its XML: it is written as findings come, so that a worker that is ended leaves them.
"""

import os
import shutil

from . import Problem

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
PROGRAM = "compute-sanitizer"
MARK = "========="
# Lines of the tool that are no findings: its greeting, its counts, and how the program ended, which is judged elsewhere.
NO_FINDINGS = ("COMPUTE-SANITIZER", "ERROR SUMMARY", "RACECHECK SUMMARY", "LEAK SUMMARY", "Target application returned")


def find():
    """The program, from PATH or where toolkits are installed."""
    places = os.pathsep.join([os.environ.get("PATH", ""), "/usr/local/cuda/bin"])
    program = shutil.which(PROGRAM, path=places)
    if program is None:
        raise Problem(
            "no-sanitizer",
            f"there is no {PROGRAM} on PATH or in /usr/local/cuda/bin",
            "install the CUDA toolkit's package cuda-sanitizer, or put its directory on PATH",
        )
    return program


def wrapped(program, tool, log, command):
    """The command line of a worker under the tool."""
    options = ["--tool", tool, "--target-processes", "all", "--check-exit-code", "no"]
    if tool == "memcheck":
        # Calls that fail are for the tests to judge: some make them fail on purpose.
        options += ["--report-api-errors", "no"]
    return [program, *options, "--log-file", str(log), *command]


class Log:
    """What the tool has written for one worker."""

    def __init__(self, path):
        self.path = path
        self.position = 0

    def new_findings(self, end=None):
        """The findings since the last call: a line each, with the lines that belong to it.

        `end` is the size that the log had at the moment that is asked for; None is now.
        """
        if not self.path.exists():
            return []
        with open(self.path, "rb") as stream:
            stream.seek(self.position)
            data = stream.read(-1 if end is None else max(end - self.position, 0))
        # A line that is being written is read with the next ones.
        data = data[: data.rfind(b"\n") + 1]
        self.position += len(data)
        return parse(data.decode(errors="replace"))


def parse(text):
    """Findings in the tool's text: their first lines are not indented behind the mark, what belongs to them is."""
    findings = []
    is_open = False
    for line in text.splitlines():
        if not line.startswith(MARK):
            continue
        content = line[len(MARK) :].removeprefix(" ")
        if not content.strip():
            is_open = False
        elif content.startswith((" ", "\t")):
            if is_open:
                findings[-1]["details"].append(content.strip())
        elif not content.startswith(NO_FINDINGS):
            findings.append({"message": content.strip(), "details": []})
            is_open = True
    return findings


def text_of(finding):
    """A finding as it is shown to a person."""
    return "\n".join([finding["message"], *(f"  {detail}" for detail in finding["details"])])
