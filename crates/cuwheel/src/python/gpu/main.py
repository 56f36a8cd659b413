"""The command line of a bundle's `run`, which `test-gpu` uses as well.

Exit codes: 0 done, 1 a test failed or the run was not of the wheel, 2 bad usage or input, 3 the machine lacks something.
"""

import argparse
import json
import os
import signal
import sys
import tempfile
from pathlib import Path

from . import Problem, baseline, report, sanitizer
from .job import Job

RESULTS = "results"
"""Where a bundle's run writes its reports, in the working directory."""


POLICIES = ("required", "auto", "off")
"""Whether GPU tests have to run; `--gpus` takes these words as well as devices."""


def _seconds(text):
    value = int(text)
    if not 1 <= value <= 10_000_000:
        raise argparse.ArgumentTypeError("give whole seconds, from 1 on")
    return value


def _count(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("give a number from 1 on")
    return value


def _parser():
    parser = argparse.ArgumentParser(
        prog="run",
        description="Runs the GPU tests of this bundle against its wheel. Arguments after -- go to pytest.",
        allow_abbrev=False,
    )
    parser.add_argument("--gpu", choices=POLICIES, default="required", help="whether GPU tests must run")
    parser.add_argument("--gpus", default="all", metavar="all|N|LIST", help="the devices to use: all, a number, or 0,2")
    parser.add_argument("--workers", type=_count, default=1, metavar="N", help="processes that share each device's tests")
    parser.add_argument("--system-site-packages", action="store_true", help="let the tests see this Python's packages")
    parser.add_argument("--keep-env", action="store_true", help="allow CUDA libraries from other places")
    parser.add_argument("--sanitizer", choices=sanitizer.TOOLS, help="run the tests under compute-sanitizer")
    parser.add_argument("--timeout", type=_seconds, metavar="SECONDS", help="how long one test may take")
    parser.add_argument("--total-timeout", type=_seconds, metavar="SECONDS", help="how long the run may take")
    parser.add_argument("--results", metavar="DIR", help=f"where the reports are written (default: {RESULTS})")
    parser.add_argument("--junit", metavar="FILE", help="write a JUnit report")
    parser.add_argument("--report", metavar="FILE", help="write the report as JSON")
    parser.add_argument("--html", metavar="FILE", help="write the report as one HTML page")
    parser.add_argument("--baseline", metavar="FILE", help="compare with an earlier report: what failed there may fail")
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    # What `test-gpu` says: an environment that is ready, and that the arguments of pytest name paths.
    parser.add_argument("--environment", help=argparse.SUPPRESS)
    parser.add_argument("--has-paths", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--from-report", help=argparse.SUPPRESS)
    # The report's only other place, for `test-gpu`, which then shows it.
    parser.add_argument("--result", help=argparse.SUPPRESS)
    return parser


def parse(argv):
    """The arguments, with what follows `--` as `pytest`."""
    split = argv.index("--") if "--" in argv else len(argv)
    arguments = _parser().parse_args(argv[:split])
    arguments.pytest = argv[split + 1 :]
    if arguments.gpus in POLICIES:
        arguments.gpu, arguments.gpus = arguments.gpus, "all"
    if not arguments.result:
        # Bare names of files in the bundle replace the paths that it was made with, as they do for pytest.
        stage = Path(__file__).resolve().parents[2] / "tests"
        bare = [text.partition("::")[0] for text in arguments.pytest if not text.startswith("-")]
        arguments.has_paths = any("." in text and (stage / text).exists() for text in bare)
        arguments.results = arguments.results or RESULTS
    return arguments


def _say(arguments, text):
    if not arguments.quiet:
        print(text, file=sys.stderr, flush=True)


def _show_machine(arguments, machine, lacking):
    if lacking is not None:
        _say(arguments, f"warning: no GPU test can run: {lacking.message}\n  {lacking.remedy}")
    for line in report.device_lines(machine):
        _say(arguments, line)


def _show_test(arguments, test):
    line = f"{test['outcome']:8} {test['seconds']:8.2f} s  {test['id']}"
    _say(arguments, line)


def run(root, arguments):
    """Runs the tests under `root`; the report is returned, also when the machine lacks something."""
    with tempfile.TemporaryDirectory(prefix="cuwheel-gpu-", ignore_cleanup_errors=True) as directory:
        manifest = json.loads((root / "environment.json").read_text(encoding="utf-8"))
        base = {
            **{name: manifest[name] for name in ("project", "version", "wheels")},
            "policy": arguments.gpu,
            "gpus": arguments.gpus,
            "problem": None,
        }
        try:
            job = Job(root, manifest, arguments, directory)
            document = job.execute(
                lambda machine, lacking: _show_machine(arguments, machine, lacking),
                lambda test: _show_test(arguments, test),
            )
        except Problem as problem:
            return {"schema": 1, **base, "problem": problem.document(), "exit_code": problem.exit_code}
        return {**base, **document}


def _write(arguments, document):
    """Writes the reports that were asked for."""
    targets = {"report": arguments.report, "junit": arguments.junit, "html": arguments.html}
    if arguments.results:
        names = {"report": "report.json", "junit": "junit.xml", "html": "report.html"}
        targets = {kind: targets[kind] or os.path.join(arguments.results, name) for kind, name in names.items()}
    for kind, path in targets.items():
        if path:
            text = {"report": report.as_json, "junit": report.as_junit, "html": report.as_html}[kind](document)
            try:
                Path(path).parent.mkdir(parents=True, exist_ok=True)
                Path(path).write_text(text, encoding="utf-8", errors="backslashreplace")
            except OSError as error:
                raise Problem("no-space", f"a report cannot be written: {error}", "give another place for it") from None


def _read(directory):
    """The report that a run has left in a directory."""
    path = Path(directory) / "report.json"
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        message = f"{path} is no report: {error}"
        raise Problem("no-report", message, "give the directory `results` of a run", (), 2) from None


def _finish(arguments, document):
    """Shows the report, or hands it to `test-gpu`, which shows it; the exit code is returned."""
    if arguments.result:
        Path(arguments.result).write_text(report.as_json(document), encoding="utf-8", errors="backslashreplace")
    else:
        sys.stdout.write(document["summary"])
        if document["problem"]:
            sys.stderr.write(report.problem_text(document["problem"]))
    return document["exit_code"]


def main(root, argv):
    """Runs the command line; the exit code is returned."""
    arguments = parse(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        document = _read(arguments.from_report) if arguments.from_report else run(Path(root), arguments)
        if arguments.baseline or not arguments.from_report:
            baseline.judge(document, arguments.baseline)
        document["summary"] = report.summary(document)
        _write(arguments, document)
    except Problem as problem:
        document = {"summary": "", "problem": problem.document(), "exit_code": problem.exit_code}
    except KeyboardInterrupt:
        return baseline.INTERRUPTED
    return _finish(arguments, document)
