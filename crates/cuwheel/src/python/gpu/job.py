"""What one run does: where its parts are, how its workers are started, and in which environment."""

import json
import os
from pathlib import Path

from . import Problem, environment, pool, preflight, provenance, sanitizer
from .records import Records
from .worker import Launch

HIDDEN = (
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONSTARTUP",
    "PYTHONUSERBASE",
    "PYTHONPLATLIBDIR",
    "PYTEST_ADDOPTS",
    "PYTEST_PLUGINS",
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD",
    "PYTEST_CURRENT_TEST",
)
"""Variables through which a user's shell would change what is tested."""


class Job:
    """A run of the tests under `root`, as `arguments` (see `main`) and the manifest (`environment.json`) say."""

    def __init__(self, root, manifest, arguments, directory):
        self.root = root
        self.manifest = manifest
        self.arguments = arguments
        self.directory = Path(directory)
        self.timeout_s = arguments.timeout or self.manifest["timeout_s"]
        self.total_timeout_s = arguments.total_timeout or self.manifest["total_timeout_s"]
        self.without_gpu = "--gpu off" if arguments.gpu == "off" else "this machine has none that is fit"
        self.sanitizer = sanitizer.find() if arguments.sanitizer else None
        self.python = None
        self.site_packages = None

    def make_environment(self):
        """Finds or makes the interpreter that runs the tests, and lays the plugins beside the wheel."""
        given = self.arguments.environment
        if given:
            self.python = given
        else:
            environment.check_bundle(self.root, self.manifest)
            visible = self.arguments.system_site_packages or bool(self.manifest["expects"])
            self.python = environment.create(self.root, self.manifest, self.directory / "environment", visible)
        self.site_packages = environment.site_packages_of(self.python)
        for name in ("_cuwheel_gpu", "_cuwheel_proof.py"):
            link = Path(self.site_packages) / name
            if not link.exists():
                link.symlink_to(self.root / "runner" / name)
        if plugin := self.manifest["plugin"]:
            link = Path(self.site_packages) / f"{plugin}.py"
            if link.exists():
                message = f"the plugin {plugin}.py has the name of an installed module"
                raise Problem("usage", message, "rename the file that --plugin gives", exit_code=2)
            link.symlink_to(self.root / "runner" / link.name)
        (self.directory / "empty").mkdir()
        proof = self.directory / "proof"
        proof.mkdir()
        expected = {"site_packages": self.site_packages, **self.manifest["proof"]}
        (proof / "expected.json").write_text(json.dumps(expected), encoding="utf-8")
        self.check_identity("before the tests")

    def check_identity(self, moment):
        """Raises the `Problem` of an environment that does not hold the wheel under test."""
        problems = environment.installed_problems(self.site_packages, self.manifest["proof"]["files"])
        if problems:
            raise _not_the_wheel(problems, moment)

    def violations(self):
        """What the proof plugin found in the workers, without repetitions."""
        found = set()
        for path in (self.directory / "proof").glob("violation-*.json"):
            found.update(json.loads(path.read_text(encoding="utf-8"))["problems"])
        return sorted(found)

    def check_violations(self):
        """Raises the `Problem` of tests that did not run against the wheel."""
        problems = self.violations()
        if problems:
            raise _not_the_wheel(problems, "while the tests ran")

    def modules(self):
        """How many modules of the wheel were proven, in the worker that loaded the most."""
        proofs = (
            json.loads(path.read_text(encoding="utf-8")) for path in (self.directory / "proof").glob("proof-*.json")
        )
        return max((proof["modules"] for proof in proofs), default=0)

    def launch(self, indices, log):
        """How a worker is started that sees the devices of these indices; the sanitizer's log is written to `log`."""
        arguments = self.manifest["pytest_args"] + self.arguments.pytest
        package = self.manifest["package"]
        paths = ["--pyargs", package] if package else self.manifest["paths"]
        # Names of tests are relative to this directory, and have to be the same wherever the environment is.
        base = self.site_packages if package else str(self.root / "tests")
        directory = self.directory / "empty" if package else self.root / "tests"
        command = [
            # Nothing is written beside the tests, which may be where nothing can be. Another place for what Python compiles
            # would have it compile all of torch again, which takes seconds.
            *(self.python, "-I", "-B"),
            *("-m", "pytest", "-p", "_cuwheel_proof", "-p", "_cuwheel_gpu.plugin"),
            *("--rootdir", base, "-q", "-o", f"cache_dir={self.directory / 'cache'}"),
            *("-o", f"faulthandler_timeout={self.timeout_s * 0.9}"),
            *(["-p", self.manifest["plugin"]] if self.manifest["plugin"] else []),
            # The tests of a package are imported under its name, also where a package above has no `__init__.py`.
            *(["-o", "consider_namespace_packages=true"] if package else []),
            *([] if self.arguments.has_paths else paths),
            *arguments,
        ]
        if self.sanitizer:
            command = sanitizer.wrapped(self.sanitizer, self.arguments.sanitizer, log, command)
        return Launch(command, self.environment(indices), directory)

    def environment(self, indices):
        """The variables of a process that sees the devices of these indices."""
        variables = {name: value for name, value in os.environ.items() if name not in HIDDEN}
        if indices is not None:
            variables["CUDA_VISIBLE_DEVICES"] = preflight.visible_devices(indices)
        bin_directory = os.path.dirname(self.python)
        variables["PATH"] = os.pathsep.join(filter(None, [bin_directory, variables.get("PATH")]))
        variables["VIRTUAL_ENV"] = os.path.dirname(bin_directory)
        variables["PYTHONNOUSERSITE"] = "1"
        variables["CUWHEEL_PROOF"] = str(self.directory / "proof" / "expected.json")
        if not self.arguments.keep_env and self.site_packages and provenance.owned_libraries(self.site_packages):
            for name in provenance.TOOLKIT_VARIABLES:
                variables.pop(name, None)
        return variables

    def execute(self, on_machine, on_finish):
        """Runs everything; the report is returned. Raises a `Problem` where there is nothing to report."""
        self.make_environment()
        machine, lacking = self.examine()
        on_machine(machine, lacking)
        records = Records(on_finish)
        try:
            pool.Pool(self, machine["devices"] if machine else [], records).run()
        except KeyboardInterrupt:
            # What ran until then is worth a report: a scheduler ends jobs this way.
            records.incident("interrupted", None, "the run was ended from outside")
        self.check_violations()
        self.check_identity("after the tests")
        intruders = [] if self.arguments.keep_env else provenance.intruders(records.libraries, self.site_packages)
        faults = records.faults(self.policy(machine), intruders)
        document = records.document()
        document["machine"] = machine
        document["lacking"] = lacking.document() if lacking else None
        document["modules_proven"] = self.modules()
        document["libraries"]["intruders"] = [list(pair) for pair in intruders]
        document["sanitizer"] = self.arguments.sanitizer
        document["faults"] = faults
        return document

    def examine(self):
        """The machine, or None with the `Problem` that it has, where the policy allows to go on without a GPU."""
        policy = self.arguments.gpu
        if policy == "off":
            return None, None
        try:
            variables = self.environment(None)
            wheels = self.manifest["wheels"]
            return preflight.examine(self.python, wheels, self.arguments.gpus, environment=variables), None
        except Problem as problem:
            if policy == "required" or problem.exit_code != 3:
                raise
            return None, problem

    def policy(self, machine):
        """`required` also where `auto` has found a GPU: then its tests have to run."""
        return "required" if machine else "off"


def _not_the_wheel(problems, moment):
    return Problem(
        "not-the-wheel",
        f"the tests did not run against the wheel: found {moment}",
        "remove what puts another copy of the package before the installed one, or what replaces it",
        problems,
        exit_code=1,
    )
