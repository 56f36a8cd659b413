"""A run's report for people and for machines: a summary for the console, JSON, JUnit and one HTML page.

All are made from the one document that `main` puts together, so that they say the same.
"""

import html
import json
import re
from xml.etree import ElementTree

SLOWEST = 5
INCIDENT_LINES = 12
# What XML 1.0 cannot hold, such as the escapes of coloured output.
_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _gib(size_bytes):
    return f"{size_bytes / 2**30:.1f}"


def device_lines(machine):
    """A line for every device that is used."""
    if not machine:
        return []
    version = "{}.{}".format(*machine["cuda_version"])
    module = machine["kernel_module"]
    driver = f"driver {module}, CUDA {version}" if module else f"driver for CUDA {version}"
    lines = []
    for device in machine["devices"]:
        capability = "{}.{}".format(*device["compute_capability"])
        free = "" if device["free_bytes"] is None else f", {_gib(device['free_bytes'])} free"
        instance = ", MIG" if device["mig"] else ""
        memory = f"{_gib(device['memory_bytes'])} GiB{free}{instance}"
        lines.append(f"gpu {device['index']}    {device['name']}, compute capability {capability}, {memory}, {driver}")
    return lines


def problem_text(problem):
    """A problem of the document as it is shown to a person."""
    lines = [
        f"error: {problem['message']}",
        *(f"  {detail}" for detail in problem["details"]),
        f"fix: {problem['remedy']}",
    ]
    return "\n".join(lines) + "\n"


def counts_line(document):
    counts = document["counts"]
    text = f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped"
    for name in ("xfailed", "xpassed", "not_run", "errors"):
        if counts[name]:
            text += f", {counts[name]} {name.replace('_', ' ')}"
    return f"{text} in {document['seconds']:.1f} s"


def gpu_line(wheel):
    """What is known of the GPU code of a wheel."""
    gpu = wheel["gpu"]
    if gpu is None:
        return "GPU code not examined"
    code = ", ".join(gpu["sass"] + gpu["ptx"])
    if not code:
        return "no GPU code"
    return f"{code}, CUDA {gpu['toolkit']}" if gpu["toolkit"] else code


def first_line(text):
    """The line of a failure's text that says the most: the last of pytest's `E` lines' beginning, or the last line."""
    lines = [line for line in (text or "").splitlines() if line.strip()]
    errors = [line[1:].strip() for line in lines if line.startswith("E ")]
    return (errors or lines[-1:] or [""])[0]


def summary(document):
    """The text for the console."""
    lines = [f"wheel    {wheel['file']} ({gpu_line(wheel)})" for wheel in document["wheels"]]
    if document["problem"]:
        return "\n".join([*lines, "no test was run"]) + "\n"
    lines += device_lines(document["machine"])
    if document["lacking"]:
        lines.append(f"no GPU   {document['lacking']['message']}")
    lines.append(f"proof    {document['modules_proven']} modules and every installed file are the wheel's")
    for skip in document["skips"]:
        lines.append(f"skipped  {skip['count']:4}  {skip['reason']}")
    slow = sorted(document["tests"], key=lambda test: -test["seconds"])[:SLOWEST]
    lines += [f"slow     {test['seconds']:8.2f} s  {test['id']}" for test in slow if test["seconds"] >= 1]
    for test in document["tests"]:
        if test["outcome"] == "failed":
            lines.append(f"failed   {test['id']}: {first_line(test['text'])}")
    lines += [f"error    {error['path']}: {first_line(error['text'])}" for error in document["collection_errors"]]
    lines += _baseline_lines(document.get("baseline"))
    lines += [f"fault    {fault}" for fault in document["faults"]]
    for incident in document["incidents"]:
        if incident["test"] is None and incident["log"]:
            lines += [f"  {line}" for line in incident["log"].splitlines()[-INCIDENT_LINES:]]
    lines.append(counts_line(document) + f" ({document['executed_gpu_tests']} GPU tests executed)")
    return "\n".join(lines) + "\n"


def _baseline_lines(found):
    """What changed since an earlier report."""
    if not found:
        return []
    lines = [f"worse    {test['id']}: was {test['was']}, is {test['is']}" for test in found["regressions"]]
    counts = (
        (len(found["regressions"]), "regressed"),
        (len(found["new_failures"]), "new and failed"),
        (len(found["known_failures"]), "failed before as well"),
        (len(found["mended"]), "mended"),
    )
    text = ", ".join(f"{count} {what}" for count, what in counts)
    return [*lines, f"baseline {text}, of {found['tests']} tests then"]


def as_json(document):
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _printable(text):
    return _NO_XML.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


def _output(test):
    return "\n".join(f"--- {name} ---\n{text}" for name, text in test["output"])


def as_junit(document):
    """The report in the form that CI systems read."""
    root = ElementTree.Element("testsuites")
    tests = document.get("tests", [])
    counts = document.get("counts", {"failed": 0, "skipped": 0, "errors": 0, "xfailed": 0, "not_run": 0})
    errors = counts["errors"] + bool(document["problem"])
    suite = ElementTree.SubElement(
        root,
        "testsuite",
        name=document["project"],
        tests=str(len(tests) + errors),
        failures=str(counts["failed"]),
        errors=str(errors),
        skipped=str(counts["skipped"] + counts["xfailed"] + counts["not_run"]),
        time=str(document.get("seconds", 0)),
    )
    properties = ElementTree.SubElement(suite, "properties")
    facts = [("wheel", wheel["sha256"]) for wheel in document["wheels"]]
    facts += [("device", line) for line in device_lines(document.get("machine"))]
    facts += [("executed_gpu_tests", str(document.get("executed_gpu_tests", 0)))]
    facts += [("fault", fault) for fault in document.get("faults", [])]
    for name, value in facts:
        ElementTree.SubElement(properties, "property", name=name, value=_printable(value))
    for test in tests:
        _junit_case(suite, test)
    for error in document.get("collection_errors", []):
        case = ElementTree.SubElement(suite, "testcase", classname=error["path"], name="collection", time="0")
        ElementTree.SubElement(case, "error", message=_printable(first_line(error["text"]))).text = _printable(
            error["text"]
        )
    if document["problem"]:
        case = ElementTree.SubElement(suite, "testcase", classname="cuwheel", name="run", time="0")
        text = _printable(problem_text(document["problem"]))
        ElementTree.SubElement(case, "error", message=_printable(document["problem"]["message"])).text = text
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _junit_case(suite, test):
    file, _, name = test["id"].partition("::")
    classname = file.removesuffix(".py").replace("/", ".")
    case = ElementTree.SubElement(
        suite, "testcase", classname=classname, name=_printable(name), time=f"{test['seconds']:.6f}"
    )
    reason = _printable(test["reason"] or "")
    if test["outcome"] == "failed":
        message = _printable(first_line(test["text"]))
        ElementTree.SubElement(case, "failure", message=message).text = _printable(test["text"] or "")
    elif test["outcome"] == "not-run":
        ElementTree.SubElement(case, "skipped", message="not run")
    elif test["outcome"] in ("skipped", "xfailed"):
        ElementTree.SubElement(case, "skipped", message=reason)
    if test["output"]:
        ElementTree.SubElement(case, "system-out").text = _printable(_output(test))


_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;color:#1c1c1c;background:#fff}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}table{border-collapse:collapse}
td,th{text-align:left;padding:.2rem .9rem .2rem 0;vertical-align:top;border-bottom:1px solid #ddd}
pre{background:#f5f5f5;padding:.8rem;overflow-x:auto;font-size:13px}code{font-size:13px}
.good{color:#17662b}.bad{color:#a31515}summary{cursor:pointer}
"""


def _table(head, rows):
    cells = lambda tag, row: "".join(f"<{tag}>{html.escape(str(cell))}</{tag}>" for cell in row)  # noqa: E731
    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f"<table><tr>{cells('th', head)}</tr>{body}</table>"


def _details(title, text):
    """A failure that can be folded away."""
    return f"<details open><summary class=bad>{html.escape(title)}</summary><pre>{html.escape(text)}</pre></details>"


def as_html(document):
    """One page that needs nothing else: the verdict, the devices, the counts, the slowest tests and the failures."""
    good = document["exit_code"] == 0
    verdict = "passed" if good else "did not pass"
    title = f"{document['project']} {document['version']}: GPU tests {verdict}"
    parts = [f"<h1 class={'good' if good else 'bad'}>{html.escape(title)}</h1>"]
    rows = [(wheel["file"], gpu_line(wheel), wheel["sha256"]) for wheel in document["wheels"]]
    parts.append(_table(("wheel", "GPU code", "SHA-256"), rows))
    if document["problem"]:
        parts.append(f"<pre>{html.escape(problem_text(document['problem']))}</pre>")
    else:
        parts += _html_of_run(document)
    head = (
        f"<!DOCTYPE html><html lang=en><meta charset=utf-8><title>{html.escape(title)}</title><style>{_STYLE}</style>"
    )
    return head + "\n".join(parts) + "\n</html>\n"


def _html_of_run(document):
    parts = []
    machine = document["machine"]
    if machine:
        driver = "{}.{}".format(*machine["cuda_version"])
        rows = [
            (
                device["index"],
                device["name"],
                "{}.{}".format(*device["compute_capability"]),
                _gib(device["memory_bytes"]),
                "" if device["free_bytes"] is None else _gib(device["free_bytes"]),
                f"{machine['kernel_module'] or ''} (CUDA {driver})",
            )
            for device in machine["devices"]
        ]
        head = ("GPU", "name", "compute capability", "memory, GiB", "free, GiB", "driver")
        parts += ["<h2>Devices</h2>", _table(head, rows)]
    counts = f"{counts_line(document)}, {document['executed_gpu_tests']} GPU tests executed"
    parts += ["<h2>Tests</h2>", f"<p>{html.escape(counts)}</p>"]
    if document["faults"]:
        parts.append("<ul>" + "".join(f"<li class=bad>{html.escape(fault)}" for fault in document["faults"]) + "</ul>")
    failed = [test for test in document["tests"] if test["outcome"] == "failed"]
    for test in failed:
        text = "\n".join(filter(None, [test["text"], _output(test)]))
        parts.append(_details(f"{test['id']}: {first_line(test['text'])}", text))
    for error in document["collection_errors"]:
        parts.append(_details(error["path"], error["text"]))
    if document.get("baseline"):
        changes = "\n".join(_baseline_lines(document["baseline"]))
        parts += ["<h2>Since the baseline</h2>", f"<pre>{html.escape(changes)}</pre>"]
    if document["skips"]:
        rows = [(skip["count"], skip["reason"]) for skip in document["skips"]]
        parts += ["<h2>Skipped</h2>", _table(("tests", "reason"), rows)]
    slow = sorted(document["tests"], key=lambda test: -test["seconds"])[:20]
    parts += [
        "<h2>Slowest</h2>",
        _table(("seconds", "test"), [(f"{test['seconds']:.3f}", test["id"]) for test in slow]),
    ]
    rows = [(worker["name"], worker["devices"], worker["executed"], worker["ending"]) for worker in document["workers"]]
    parts += ["<h2>Workers</h2>", _table(("worker", "devices", "tests", "ended with"), rows)]
    return parts
