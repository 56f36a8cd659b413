//! Python environments: the persistent one that builds, and fresh ones that prove and test.
//!
//! Not for choosing what goes into them: see [`crate::requirements`].

use std::path::{Path, PathBuf};

use fs_err as fs;
use serde_json::json;

use crate::cache::{Cache, Scratch};
use crate::error::{Failure, Result};
use crate::files;
use crate::interpreter::Interpreter;
use crate::lock_file::FileLock;
use crate::output::Output;
use crate::process::Process;
use crate::project::Project;
use crate::requirements::{Lock, LockPolicy};
use crate::uv::Uv;

/// Counted up when environments are made in another way, so that old ones are no longer used.
const LAYOUT: u32 = 1;
const STAMP: &str = "cuwheel.json";

/// Where the environment of a lock and an interpreter is, whether it exists or not.
#[derive(Clone, Debug)]
pub struct BuildEnvironment {
    directory: PathBuf,
    /// The content address: it changes with the lock and with the interpreter's ABI.
    pub key: String,
}

impl BuildEnvironment {
    /// Computes the address. Nothing of the project's place is in it, so that a moved checkout finds it again.
    pub fn locate(cache: &Cache, interpreter: &Interpreter, lock: &Lock) -> Result<Self> {
        let text = json!({ "layout": LAYOUT, "interpreter": interpreter.identity(), "lock": lock.text()? }).to_string();
        let key = files::key(text.as_bytes());
        Ok(Self { directory: cache.path("environments").join(&key), key })
    }

    /// Its root directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Its interpreter.
    pub fn python(&self) -> PathBuf {
        self.directory.join("bin/python")
    }

    /// The environment of a project's build for an interpreter, made if need be.
    pub fn ready(project: &Project, interpreter: &Interpreter, access: Access, output: &Output) -> Result<Self> {
        let (cache, lock) = (Cache::locate()?, Lock::of_build(project));
        let uv = || Uv::find(interpreter, &cache, &project.root, access.offline, output);
        lock.ensure(access.policy(), &uv, output)?;
        let environment = Self::locate(&cache, interpreter, &lock)?;
        environment.provision(&cache, interpreter, &lock, &uv, output)?;
        Ok(environment)
    }

    /// maturin in it.
    pub fn maturin(&self) -> PathBuf {
        self.directory.join("bin/maturin")
    }

    /// Whether it is complete and its interpreter still exists.
    pub fn is_ready(&self) -> bool {
        let programs = [self.python(), self.maturin()];
        self.directory.join(STAMP).is_file() && programs.iter().all(|program| files::is_executable(program))
    }

    /// Makes it exist. Two processes make it once; one that is killed leaves nothing that looks finished.
    pub fn provision(
        &self,
        cache: &Cache,
        interpreter: &Interpreter,
        lock: &Lock,
        uv: &dyn Fn() -> Result<Uv>,
        output: &Output,
    ) -> Result<()> {
        if self.is_ready() {
            return Ok(());
        }
        fs::create_dir_all(cache.directory("environments")?)?;
        let _lock = FileLock::acquire(&self.directory.with_extension("lock"), "creating a build environment", output)?;
        if self.is_ready() {
            return Ok(());
        }
        cache.remove_abandoned();
        output.step("provision", &format!("{} for {interpreter}", lock.inputs().join(", ")));
        let uv = uv()?;
        let scratch = cache.scratch("environment")?;
        let made = scratch.path().join("made");
        uv.create_environment(interpreter, &made)?;
        uv.sync(&made, &lock.path)?;
        if !files::is_executable(&made.join("bin/maturin")) {
            return Err(Failure::usage(format!("the lock {} holds no maturin", lock.path.display()))
                .remedy("run `lock` and commit the file")
                .into());
        }
        let stamp = json!({ "interpreter": interpreter, "requirements": lock.inputs() });
        fs::write(made.join(STAMP), format!("{stamp:#}\n"))?;
        if self.directory.exists() {
            fs::remove_dir_all(&self.directory)?;
        }
        fs::rename(&made, &self.directory)?;
        Ok(())
    }

    /// The header directory of the NumPy in it, if NumPy is in it.
    pub fn numpy_include(&self) -> Result<Option<PathBuf>> {
        for library in fs::read_dir(self.directory.join("lib"))? {
            let packages = library?.path().join("site-packages/numpy");
            // NumPy 2 and NumPy 1 keep their headers in different places.
            let found = ["_core/include", "core/include"].iter().map(|inner| packages.join(inner));
            if let Some(include) = found.into_iter().find(|include| include.join("numpy/arrayobject.h").is_file()) {
                return Ok(Some(include));
            }
        }
        Ok(None)
    }
}

/// Whether the network may be used and locks may be written.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// No network.
    pub offline: bool,
    /// No lock may change.
    pub locked: bool,
}

impl Access {
    /// What to do with a lock that does not fit.
    pub fn policy(self) -> LockPolicy {
        if self.offline || self.locked { LockPolicy::Refuse } else { LockPolicy::Update }
    }
}

/// A virtual environment in a directory of its own, removed when it is dropped. A killed process leaves one that the next
/// process removes.
#[derive(Debug)]
pub struct FreshEnvironment {
    directory: Scratch,
}

impl FreshEnvironment {
    /// Creates an empty one, outside of any project.
    pub fn create(cache: &Cache, interpreter: &Interpreter, uv: &Uv) -> Result<Self> {
        let environment = Self::reserve(cache)?;
        uv.create_environment(interpreter, &environment.path())?;
        Ok(environment)
    }

    /// Creates one that sees the packages of the interpreter, behind its own.
    pub fn create_on_system(cache: &Cache, interpreter: &Interpreter, uv: &Uv) -> Result<Self> {
        let environment = Self::reserve(cache)?;
        uv.create_environment_on_system(interpreter, &environment.path())?;
        Ok(environment)
    }

    fn reserve(cache: &Cache) -> Result<Self> {
        cache.remove_abandoned();
        let environment = Self { directory: cache.scratch("fresh")? };
        fs::create_dir(environment.neutral_directory())?;
        Ok(environment)
    }

    /// The environment's root.
    pub fn path(&self) -> PathBuf {
        self.directory.path().join("environment")
    }

    /// An empty directory beside it, to run things in.
    pub fn neutral_directory(&self) -> PathBuf {
        self.directory.path().join("neutral")
    }

    /// A path beside the environment, for files that live as long as it does.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Its interpreter.
    pub fn python(&self) -> PathBuf {
        self.path().join("bin/python")
    }

    /// Where packages are installed.
    pub fn site_packages(&self) -> Result<PathBuf> {
        for library in fs::read_dir(self.path().join("lib"))? {
            let packages = library?.path().join("site-packages");
            if packages.is_dir() {
                return Ok(packages);
            }
        }
        Err(Failure::machine("a virtual environment without site-packages was created").into())
    }

    /// A Python process in it that sees nothing of the user's: not the working directory, not PYTHONPATH, not the user's
    /// packages, and no active environment.
    pub fn isolated_python(&self) -> Process {
        isolated(Process::new(self.python()))
            .directory(self.neutral_directory())
            .env("PATH", path_with(&self.path().join("bin")))
            .env("VIRTUAL_ENV", self.path())
    }
}

/// A Python process that sees nothing of the user's but its working directory.
pub fn isolated(python: Process) -> Process {
    scrubbed(python.arg("-I"))
}

/// Takes out of a process's environment what would let Python find modules elsewhere.
fn scrubbed(process: Process) -> Process {
    [
        "PYTHONPATH",
        "PYTHONHOME",
        "PYTHONSTARTUP",
        "PYTHONUSERBASE",
        "PYTHONPLATLIBDIR",
        "CONDA_PREFIX",
        "PYTEST_ADDOPTS",
        "PYTEST_PLUGINS",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD",
    ]
    .into_iter()
    .fold(process, Process::env_remove)
    .env("PYTHONNOUSERSITE", "1")
}

/// PATH with a directory in front.
pub fn path_with(first: &Path) -> std::ffi::OsString {
    let rest = crate::env_vars::PATH.get().unwrap_or_default();
    let all = std::iter::once(first.to_path_buf()).chain(std::env::split_paths(&rest));
    std::env::join_paths(all).unwrap_or(rest)
}
