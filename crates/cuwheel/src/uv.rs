//! uv: found on PATH or bootstrapped, and the few of its commands that the tool uses.
//!
//! Not for deciding what is installed: see [`crate::requirements`] and [`crate::environment`].

use std::path::{Path, PathBuf};

use fs_err as fs;

use crate::cache::Cache;
use crate::error::{Failure, Result};
use crate::files;
use crate::interpreter::Interpreter;
use crate::lock_file::FileLock;
use crate::output::Output;
use crate::process::{Finished, Process, find_program};

/// The release that is bootstrapped, with the hashes of its files, in pip's format.
const BOOTSTRAP: &str = include_str!("uv.txt");

/// The oldest uv on PATH that is used: one that writes pylock.toml, the newest of what is called here.
pub const OLDEST: (u32, u32, u32) = (0, 6, 17);

/// A uv that works.
#[derive(Clone, Debug)]
pub struct Uv {
    program: PathBuf,
    python: PathBuf,
    directory: PathBuf,
    offline: bool,
}

/// What to resolve, and how.
#[derive(Clone, Copy, Debug)]
pub struct CompileOptions<'a> {
    /// An earlier lock whose versions are kept where they still fit.
    pub preferred: Option<&'a Path>,
    /// The oldest Python that the lock has to serve.
    pub python_floor: Option<(u8, u8)>,
    /// Whether dependencies are resolved too.
    pub with_dependencies: bool,
}

impl Uv {
    /// Takes uv from PATH when it is recent enough, else from the cache, where it is installed when it is missing.
    ///
    /// It works in the directory of the project, whose `uv.toml` and `[tool.uv]` say which index to use.
    pub fn find(
        interpreter: &Interpreter,
        cache: &Cache,
        project: &Path,
        offline: bool,
        output: &Output,
    ) -> Result<Self> {
        let on_path = find_program("uv").filter(|program| {
            let is_recent = version_of(program).is_some_and(|version| version >= OLDEST);
            if !is_recent {
                output.warn(format!("{} is too old or does not run: using a uv of our own", program.display()));
            }
            is_recent
        });
        let program = match on_path {
            Some(program) => program,
            None => bootstrapped(interpreter, cache, offline, output)?,
        };
        let (python, directory) = (interpreter.base_executable.clone(), project.to_path_buf());
        Ok(Self { program, python, directory, offline })
    }

    /// The executable.
    pub fn program(&self) -> &Path {
        &self.program
    }

    fn process(&self) -> Process {
        let process = SETTINGS_OF_OTHER_INSTALLS
            .iter()
            .fold(Process::new(&self.program).directory(&self.directory), Process::env_remove)
            .env("UV_NO_PROGRESS", "1")
            .env("UV_PYTHON_DOWNLOADS", "never")
            // A test that writes to an installed file must not write to uv's cache, and a link is found where it leads.
            .env("UV_LINK_MODE", "copy");
        if self.offline { process.env("UV_OFFLINE", "1") } else { process }
    }

    fn run(&self, process: &Process, purpose: &str) -> Result<Finished> {
        let finished = process.capture()?;
        if finished.status.success() {
            return Ok(finished);
        }
        let message = format!("uv could not {purpose}");
        // uv's own words for what no other machine could do either.
        let is_mistake =
            ["No solution found", "not found in the package registry", "is incompatible with the current platform"]
                .iter()
                .any(|words| finished.stderr.contains(words));
        let failure = if is_mistake && !self.offline { Failure::usage(message) } else { Failure::machine(message) };
        let mut failure = failure.details(finished.tail(12));
        if self.offline {
            failure = failure.remedy("run the command once without --offline, so that the packages are in uv's cache");
        }
        Err(failure.into())
    }

    /// Resolves requirements for every platform, with hashes; the lock's lines are returned.
    pub fn compile(&self, inputs: &[String], options: &CompileOptions<'_>) -> Result<String> {
        let directory = tempfile::tempdir()?;
        let (input, lock) = (directory.path().join("requirements.in"), directory.path().join("requirements.txt"));
        fs::write(&input, inputs.join("\n") + "\n")?;
        // What is no text is no lock whose versions could be kept.
        let preferred = options.preferred.and_then(|preferred| fs::read_to_string(preferred).ok());
        if let Some(preferred) = &preferred {
            fs::write(&lock, preferred)?;
        }
        let mut process = self.process().args([
            "pip",
            "compile",
            "--quiet",
            "--universal",
            "--generate-hashes",
            "--no-header",
            "--no-annotate",
            "--output-file",
        ]);
        process = process.arg(&lock).arg("--python").arg(&self.python);
        if preferred.is_none() {
            process = process.arg("--upgrade");
        }
        if !options.with_dependencies {
            process = process.arg("--no-deps");
        }
        if let Some((major, minor)) = options.python_floor {
            process = process.args(["--python-version", &format!("{major}.{minor}")]);
        }
        self.run(&process.arg(&input), &format!("resolve {}", inputs.join(", ")))?;
        Ok(fs::read_to_string(&lock)?)
    }

    /// The wheels of one release that this interpreter loads, as a lock of the form pylock.toml (PEP 751), with hashes.
    pub fn wheels_of(&self, requirement: &str) -> Result<String> {
        let directory = tempfile::tempdir()?;
        let (input, lock) = (directory.path().join("requirements.in"), directory.path().join("pylock.toml"));
        fs::write(&input, format!("{requirement}\n"))?;
        let process = self
            .process()
            .args(["pip", "compile", "--quiet", "--no-deps", "--only-binary", ":all:", "--generate-hashes"])
            .args(["--no-header", "--output-file"])
            .arg(&lock)
            .arg("--python")
            .arg(&self.python)
            .arg(&input);
        self.run(&process, &format!("find {requirement}"))?;
        Ok(fs::read_to_string(&lock)?)
    }

    /// Whether the network may not be used.
    pub const fn is_offline(&self) -> bool {
        self.offline
    }

    /// The requirements of a lock that hold for another Python and platform, with hashes.
    pub fn resolve_for(&self, lock: &Path, python_version: &str, platform: &str) -> Result<String> {
        let directory = tempfile::tempdir()?;
        let resolved = directory.path().join("requirements.txt");
        let process = self
            .process()
            .args(["pip", "compile", "--quiet", "--no-deps", "--generate-hashes", "--no-header", "--no-annotate"])
            .args(["--only-binary", ":all:", "--python-version", python_version, "--python-platform", platform])
            .arg("--python")
            .arg(&self.python)
            .arg("--output-file")
            .arg(&resolved)
            .arg(lock);
        self.run(&process, &format!("resolve {} for Python {python_version}", lock.display()))?;
        Ok(fs::read_to_string(&resolved)?)
    }

    /// Creates a virtual environment that may be moved.
    pub fn create_environment(&self, interpreter: &Interpreter, directory: &Path) -> Result<()> {
        self.venv(interpreter, directory, None)
    }

    /// Creates a virtual environment that may be moved, and that sees the interpreter's packages behind its own.
    pub fn create_environment_on_system(&self, interpreter: &Interpreter, directory: &Path) -> Result<()> {
        self.venv(interpreter, directory, Some("--system-site-packages"))
    }

    fn venv(&self, interpreter: &Interpreter, directory: &Path, option: Option<&str>) -> Result<()> {
        let process = self.process().args(["venv", "--quiet", "--relocatable", "--no-project"]).args(option);
        let process = process.arg("--python").arg(&interpreter.base_executable).arg(directory);
        self.run(&process, "create a virtual environment").map(drop)
    }

    /// Makes an environment hold exactly what a lock names, with hashes checked.
    pub fn sync(&self, environment: &Path, lock: &Path) -> Result<()> {
        let process = self.pip(environment, "sync").arg("--require-hashes").arg(lock);
        self.run(&process, &format!("install {}", lock.display())).map(drop)
    }

    /// Installs one wheel by its path with everything that it requires, from the index and from the wheels in `directories`,
    /// and `further` requirements.
    pub fn install_with_dependencies(
        &self,
        environment: &Path,
        wheel: &Path,
        directories: &[&Path],
        further: &[String],
    ) -> Result<()> {
        let wheel = files::absolute(wheel)?;
        let install = self.pip(environment, "install").arg(&wheel).args(further);
        let process = directories.iter().fold(install, |process, directory| process.arg("--find-links").arg(directory));
        self.run(&process, &format!("install {} with what it requires", wheel.display())).map(drop)
    }

    /// Installs one wheel by its path and nothing else.
    pub fn install_wheel(&self, environment: &Path, wheel: &Path) -> Result<()> {
        let wheel = files::absolute(wheel)?;
        let process = self.pip(environment, "install").arg("--no-deps").arg(&wheel);
        self.run(&process, &format!("install {}", wheel.display())).map(drop)
    }

    /// Installs `requirements` for an interpreter, in whatever environment it is of, in place of the distribution `name` that
    /// may be there.
    pub fn install_over(&self, python: &Path, name: &str, requirements: &[String], dependencies: bool) -> Result<()> {
        let install = self.process().args(["pip", "install", "--quiet", "--python"]).arg(python);
        let install = install.args(["--reinstall-package", name]).args((!dependencies).then_some("--no-deps"));
        self.run(&install.args(requirements), &format!("install {name} into {}", python.display())).map(drop)
    }

    /// Removes a distribution from an environment.
    pub fn uninstall(&self, environment: &Path, distribution: &str) -> Result<()> {
        let process = self.pip(environment, "uninstall").arg(distribution);
        self.run(&process, &format!("uninstall {distribution}")).map(drop)
    }

    /// Fails when what is installed does not fit together.
    pub fn check(&self, environment: &Path) -> Result<()> {
        let finished = self.pip(environment, "check").capture()?;
        if finished.status.success() {
            return Ok(());
        }
        Err(Failure::failed("what is installed does not fit together")
            .details(finished.tail(12))
            .remedy("the requirements of the wheel contradict what is installed beside it")
            .into())
    }

    fn pip(&self, environment: &Path, command: &str) -> Process {
        self.process().args(["pip", command, "--quiet", "--python"]).arg(environment.join("bin/python"))
    }
}

/// Variables with which a user or a CI system steers other installs: an active environment must not become the one that
/// is written to, and constraints of theirs are not part of our locks. Those for indexes, proxies and certificates stay.
const SETTINGS_OF_OTHER_INSTALLS: &[&str] = &[
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "UV_REQUIRE_HASHES",
    "UV_CONSTRAINT",
    "UV_OVERRIDE",
    "UV_EXCLUDE",
    "UV_BUILD_CONSTRAINT",
    "UV_NO_BINARY",
    "UV_NO_BUILD",
    "UV_SYSTEM_PYTHON",
    "UV_BREAK_SYSTEM_PACKAGES",
    "UV_PYTHON",
    "UV_TARGET",
    "UV_PREFIX",
    "UV_PROJECT",
    "UV_WORKING_DIRECTORY",
    "UV_RESOLUTION",
    "UV_PRERELEASE",
    "PIP_REQUIRE_VIRTUALENV",
    "PIP_USER",
    "PIP_TARGET",
    "PIP_PREFIX",
    "PIP_ROOT",
    "PIP_CONSTRAINT",
    "PIP_REQUIREMENT",
    "PIP_NO_BINARY",
];

/// What a uv says its version is.
pub fn version_of(program: &Path) -> Option<(u32, u32, u32)> {
    let finished = Process::new(program).arg("--version").capture().ok()?;
    let mut numbers = finished.stdout.split_whitespace().nth(1)?.split('.').map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??, numbers.next()??))
}

/// The uv of our own: installed by pip, with hashes checked, and moved into place in one step.
fn bootstrapped(interpreter: &Interpreter, cache: &Cache, offline: bool, output: &Output) -> Result<PathBuf> {
    let version = BOOTSTRAP.lines().find_map(|line| line.strip_prefix("uv==")?.split_whitespace().next());
    let version = version.expect("the bootstrap lock names uv");
    let home = cache.directory("uv")?.join(format!("{version}-{}", interpreter.platform));
    let program = home.join("bin/uv");
    if program.is_file() {
        return Ok(program);
    }
    if offline {
        return Err(Failure::machine("uv is not on PATH, and --offline forbids to fetch it")
            .remedy("install uv, or run the command once without --offline")
            .into());
    }
    let mut lock = home.clone().into_os_string();
    lock.push(".lock");
    let _lock = FileLock::acquire(Path::new(&lock), "installing uv", output)?;
    if program.is_file() {
        return Ok(program);
    }
    output.step("bootstrap", &format!("uv {version}"));
    let scratch = cache.scratch("uv")?;
    let requirements = scratch.path().join("uv.txt");
    fs::write(&requirements, BOOTSTRAP)?;
    let target = scratch.path().join("home");
    let finished = pip(interpreter, scratch.path())?
        .args(["install", "--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes"])
        .args(["--only-binary", ":all:", "--target"])
        .arg(&target)
        .arg("--requirement")
        .arg(&requirements)
        .capture()?;
    if !finished.status.success() {
        return Err(Failure::machine("pip could not install uv")
            .details(finished.tail(8))
            .remedy("install uv and put it on PATH, or check the network and pip's settings")
            .into());
    }
    if home.exists() {
        fs::remove_dir_all(&home)?;
    }
    fs::rename(&target, &home)?;
    Ok(program)
}

/// Fetches one wheel by its URL into `scratch`. Its hash is for the caller to check. uv installs wheels and keeps none
/// whole, so this is pip's work.
pub fn download_wheel(interpreter: &Interpreter, url: &str, scratch: &Path) -> Result<PathBuf> {
    let directory = scratch.join("downloaded");
    let finished = pip(interpreter, scratch)?
        .args(["download", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:", "--dest"])
        .arg(&directory)
        .arg(url)
        .capture()?;
    if !finished.status.success() {
        return Err(Failure::machine(format!("pip could not fetch {url}"))
            .details(finished.tail(8))
            .remedy("check the network and pip's settings, or give the path of the wheel")
            .into());
    }
    let mut wheels = fs::read_dir(&directory)?.collect::<Result<Vec<_>, _>>()?;
    match (wheels.pop(), wheels.is_empty()) {
        (Some(only), true) => Ok(only.path()),
        _ => Err(Failure::machine(format!("pip fetched something else than one wheel from {url}")).into()),
    }
}

/// The interpreter's pip, or that of a scratch environment where the interpreter has none.
pub fn pip(interpreter: &Interpreter, scratch: &Path) -> Result<Process> {
    let clean = |process: Process| SETTINGS_OF_OTHER_INSTALLS.iter().fold(process, Process::env_remove);
    let own = clean(Process::new(&interpreter.base_executable)).args(["-I", "-m", "pip"]);
    if own.clone().arg("--version").capture()?.status.success() {
        return Ok(own);
    }
    let environment = scratch.join("environment");
    let created = Process::new(&interpreter.base_executable).args(["-I", "-m", "venv"]).arg(&environment).capture()?;
    if !created.status.success() {
        return Err(Failure::machine(format!(
            "pip is needed, and {interpreter} has neither pip nor ensurepip"
        ))
        .details(created.tail(4))
        .remedy("install pip for that interpreter (python3-venv on Debian and Ubuntu); a uv on PATH spares it unless a bundle is made")
        .into());
    }
    Ok(clean(Process::new(environment.join("bin/python"))).args(["-I", "-m", "pip"]))
}
