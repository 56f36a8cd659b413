"""The environment of a bundle's run: made afresh from the wheels of the bundle, with no network and without pip.

Also what is checked of any environment: that the installed files are those of the wheel under test.
"""

import csv
import hashlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

from . import Problem


def digest(path):
    """The SHA-256 of a file, or None for one that cannot be read."""
    try:
        with open(path, "rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return None


def check_bundle(root, manifest):
    """Raises the `Problem` of a bundle whose wheels are not those that it was made with, or that is for another Python."""
    for part in ("wheels", "wheelhouse"):
        for wheel in manifest[part]:
            path = root / part / wheel["file"]
            if digest(path) != wheel["sha256"]:
                raise Problem(
                    "damaged-bundle",
                    f"{path} is not the file that the bundle was made with",
                    "unpack the bundle again, or make it again",
                    exit_code=2,
                )
    wanted = manifest["for_python"]
    found = f"{sys.version_info.major}.{sys.version_info.minor}"
    if wanted and found != wanted:
        raise Problem(
            "wrong-python",
            f"the bundle is for CPython {wanted}, and this is {found} ({sys.executable})",
            f"run it with that one (python{wanted} run), or make it with --for-python {found}",
        )


def create(root, manifest, directory, system_site_packages):
    """A virtual environment with every wheel of the bundle, the wheel under test last. Its interpreter is returned."""
    venv.EnvBuilder(system_site_packages=system_site_packages, symlinks=True).create(directory)
    python = Path(directory) / "bin" / "python"
    site_packages = site_packages_of(python)
    if system_site_packages and sys.prefix != sys.base_prefix:
        _show_active_environment(Path(site_packages))
    names = [("wheelhouse", wheel["file"]) for wheel in manifest["wheelhouse"]]
    names += [("wheels", wheel["file"]) for wheel in manifest["wheels"]]
    for part, name in names:
        install(root / part / name, Path(site_packages), Path(directory))
    check_expected(python, manifest["expects"])
    return str(python)


def _show_active_environment(site_packages):
    """Lets a new environment see the packages of the one that this program runs in, behind all others."""
    active = sysconfig.get_path("purelib")
    line = f"import site; site.addsitedir({active!r})\n"
    (site_packages / "zz_cuwheel_active_environment.pth").write_text(line, encoding="utf-8")


def site_packages_of(python):
    """Where an interpreter's own packages are."""
    return _ask(python, "import sysconfig; print(sysconfig.get_path('purelib'))").strip()


def _ask(python, code, *arguments):
    command = [str(python), "-I", "-c", code, *arguments]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    if finished.returncode != 0:
        raise Problem(
            "broken-python", f"{python} does not work", "use another Python", finished.stderr.splitlines()[-5:]
        )
    return finished.stdout


def check_expected(python, expected):
    """Raises the `Problem` of packages that were left out of the bundle because the machine was said to have them."""
    code = (
        "import importlib.metadata as m, json, sys\n"
        "def version(name):\n"
        "    try:\n        return m.version(name)\n"
        "    except m.PackageNotFoundError:\n        return None\n"
        "print(json.dumps({name: version(name) for name in sys.argv[1:]}))"
    )
    found = json.loads(_ask(python, code, *expected)) if expected else {}
    missing = [name for name, version in found.items() if version is None]
    if missing:
        raise Problem(
            "missing-packages",
            f"this machine lacks packages that were left out of the bundle: {', '.join(missing)}",
            "install them, or make the bundle without them in --exclude-present",
        )


def install(wheel, site_packages, prefix):
    """Unpacks a wheel, as the specification of the format says, with RECORD for what was written."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/")]
        data = next((name.split("/")[0] + "/" for name in names if name.split("/")[0].endswith(".data")), None)
        moved = {}
        for name in names:
            target = _target(name, data, site_packages, prefix)
            if not target.resolve().is_relative_to(prefix.resolve()):
                raise Problem(
                    "damaged-bundle", f"{wheel.name} would write {name} outside", "make the bundle again", (), 2
                )
            target.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(name) as source, open(target, "wb") as stream:
                shutil.copyfileobj(source, stream)
            if archive.getinfo(name).external_attr >> 16 & 0o111:
                target.chmod(0o755)
            if data and name.startswith(data):
                moved[name] = os.path.relpath(target, site_packages)
    if moved:
        _rewrite_record(next(site_packages.glob(f"{data[: -len('.data/')]}.dist-info/RECORD")), moved)


def _target(name, data, site_packages, prefix):
    """Where a file of a wheel goes: those of `NAME.data/SCHEME/` into the scheme's directory."""
    if data is None or not name.startswith(data):
        return site_packages / name
    scheme, _, rest = name[len(data) :].partition("/")
    directories = {"purelib": site_packages, "platlib": site_packages, "data": prefix, "scripts": prefix / "bin"}
    return directories.get(scheme, prefix / "include" / data.partition("-")[0]) / rest


def _rewrite_record(record, moved):
    with open(record, newline="", encoding="utf-8") as stream:
        rows = [[moved.get(row[0], row[0]), *row[1:]] for row in csv.reader(stream) if row]
    with open(record, "w", newline="", encoding="utf-8") as stream:
        csv.writer(stream, lineterminator="\n").writerows(rows)


def installed_problems(site_packages, files):
    """What of the files of the wheel under test is not in the environment as it was in the wheel."""
    problems = []
    for path, expected in files.items():
        found = digest(os.path.join(site_packages, path))
        if found is None:
            problems.append(f"{path} was installed and is gone")
        elif found != expected:
            problems.append(f"{path} was installed from the wheel and is another file now")
    return problems
