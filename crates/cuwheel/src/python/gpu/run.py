#!/usr/bin/env python3
"""Runs the GPU tests beside this file against the wheel beside this file; `./run --help` says how."""

import os
import sys

if sys.version_info < (3, 11):
    sys.stderr.write("error: CPython 3.11 or newer is needed\nfix: run this file with another Python\n")
    sys.exit(3)

ROOT = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(ROOT, "runner"))
sys.dont_write_bytecode = True

from _cuwheel_gpu.main import main  # noqa: E402

sys.exit(main(ROOT, sys.argv[1:]))
