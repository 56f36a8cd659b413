//! uv: found on PATH or bootstrapped, and the few of its commands that the tool uses.
//!
//! Not for deciding what is installed: see [`crate::requirements`] and [`crate::environment`].

use std::path::{Path, PathBuf};

use fs_err as fs;

use crate::cache::Cache;
use crate::error::{Failure, Result};
use crate::interpreter::Interpreter;
use crate::lock_file::FileLock;
use crate::output::Output;
use crate::process::{Finished, Process, find_program};

/// The release that is bootstrapped, with the hashes of its files, in pip's format.
const BOOTSTRAP: &str = include_str!("uv.txt");

/// The oldest uv on PATH that is used: the first with everything that is called here.
const OLDEST: (u32, u32, u32) = (0, 5, 0);

/// A uv that works.
#[derive(Clone, Debug)]
pub struct Uv {
    program: PathBuf,
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
    pub fn find(interpreter: &Interpreter, cache: &Cache, offline: bool, output: &Output) -> Result<Self> {
        if let Some(program) = find_program("uv") {
            match version_of(&program) {
                Some(version) if version >= OLDEST => return Ok(Self { program, offline }),
                _ => output.warn(format!("{} is too old or does not run: using a uv of our own", program.display())),
            }
        }
        let program = bootstrapped(interpreter, cache, offline, output)?;
        Ok(Self { program, offline })
    }

    /// The executable.
    #[must_use]
    pub fn program(&self) -> &Path {
        &self.program
    }

    fn process(&self) -> Process {
        // An active environment must not become the one that is written to, and projects of the directory we are in do
        // not matter here.
        let process = Process::new(&self.program)
            .env_remove("VIRTUAL_ENV")
            .env_remove("CONDA_PREFIX")
            .env("UV_NO_PROGRESS", "1")
            .env("UV_PYTHON_DOWNLOADS", "never");
        if self.offline { process.env("UV_OFFLINE", "1") } else { process }
    }

    fn run(&self, process: &Process, purpose: &str) -> Result<Finished> {
        let finished = process.capture()?;
        if finished.status.success() {
            return Ok(finished);
        }
        let mut failure = Failure::machine(format!("uv could not {purpose}")).details(finished.tail(12));
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
        if let Some(preferred) = options.preferred {
            fs::copy(preferred, &lock)?;
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
        process = process.arg(&lock);
        if options.preferred.is_none() {
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

    /// Creates a virtual environment that may be moved.
    pub fn create_environment(&self, interpreter: &Interpreter, directory: &Path) -> Result<()> {
        let process = self.process().args(["venv", "--quiet", "--relocatable", "--no-project", "--python"]);
        let process = process.arg(&interpreter.base_executable).arg(directory);
        self.run(&process, "create a virtual environment").map(drop)
    }

    /// Makes an environment hold exactly what a lock names, with hashes checked.
    pub fn sync(&self, environment: &Path, lock: &Path) -> Result<()> {
        let process = self.pip(environment, "sync").arg("--require-hashes").arg(lock);
        self.run(&process, &format!("install {}", lock.display())).map(drop)
    }

    /// Installs one wheel by its path and nothing else.
    pub fn install_wheel(&self, environment: &Path, wheel: &Path) -> Result<()> {
        let process = self.pip(environment, "install").arg("--no-deps").arg(wheel);
        self.run(&process, &format!("install {}", wheel.display())).map(drop)
    }

    fn pip(&self, environment: &Path, command: &str) -> Process {
        self.process().args(["pip", command, "--quiet", "--python"]).arg(environment.join("bin/python"))
    }
}

fn version_of(program: &Path) -> Option<(u32, u32, u32)> {
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
    let _lock = FileLock::acquire(&home.with_extension("lock"), "installing uv", output)?;
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
    fs::rename(&target, &home)?;
    Ok(program)
}

/// The interpreter's pip, or that of a scratch environment where the interpreter has none.
fn pip(interpreter: &Interpreter, scratch: &Path) -> Result<Process> {
    let own = Process::new(&interpreter.base_executable).args(["-I", "-m", "pip"]);
    if own.clone().arg("--version").capture()?.status.success() {
        return Ok(own);
    }
    let environment = scratch.join("environment");
    let created = Process::new(&interpreter.base_executable).args(["-I", "-m", "venv"]).arg(&environment).capture()?;
    if !created.status.success() {
        return Err(Failure::machine(format!(
            "uv is not on PATH, and {interpreter} has neither pip nor ensurepip to fetch it"
        ))
        .details(created.tail(4))
        .remedy("install uv, or pip for that interpreter (python3-venv on Debian and Ubuntu)")
        .into());
    }
    Ok(Process::new(environment.join("bin/python")).args(["-I", "-m", "pip"]))
}
