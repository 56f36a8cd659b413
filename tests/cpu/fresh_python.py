"""Runs code in a new interpreter, for what can be tried only once in a process, or may end it."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path


def site_packages() -> Path:
    """The folder that holds the installed package."""
    import cuwheel

    return Path(cuwheel.__file__).parents[1]


def run(code: str, *arguments: object, site: bool = True, timeout: float = 60, environment: dict | None = None) -> str:
    """Run `code` with `arguments` as `sys.argv[1:]` and `environment` beside the variables of this process, and return
    what it prints.

    Without `site`, no module is imported at start but those that Python itself needs; the code can reach the installed
    package through `sys.argv[1]`.
    """
    options = ["-I", "-X", "faulthandler"] if site else ["-I", "-S", "-X", "faulthandler"]
    first = [] if site else [site_packages()]
    command = [sys.executable, *options, "-c", textwrap.dedent(code), *map(os.fspath, first), *map(str, arguments)]
    variables = os.environ | (environment or {})
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, cwd="/", env=variables)
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout
