//! The environment that an editable install goes to: given, active, or the project's own, created when it is absent.
//!
//! Not for the environment that builds: see [`crate::environment::BuildEnvironment`].

use std::fmt;
use std::path::{Path, PathBuf};

use fs_err as fs;
use serde_json::{Value, json};

use crate::cache::Cache;
use crate::env_vars;
use crate::error::{Failure, Result};
use crate::files;
use crate::interpreter::{self, Interpreter, Request};
use crate::output::Output;
use crate::uv::Uv;

/// The name of a project's own environment.
const OWN: &str = ".venv";

/// Why it is this environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// `--venv`.
    Given,
    /// The variable that says which one is active.
    Active(&'static str),
    /// None is active: the one in the project.
    Project,
    /// `--system`: none at all.
    System,
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Given => write!(formatter, "given by --venv"),
            Self::Active(variable) => write!(formatter, "active by {variable}"),
            Self::Project => write!(formatter, "of the project, as none is active"),
            Self::System => write!(formatter, "no environment, as --system asks"),
        }
    }
}

/// What the command line says of it.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// `--venv`.
    pub venv: Option<&'a Path>,
    /// `--python`.
    pub python: Option<&'a Request>,
    /// `--system`.
    pub system: bool,
}

/// Where to install.
#[derive(Clone, Debug)]
pub struct Destination {
    /// The root of the environment, or the prefix of the interpreter; links are kept as they are.
    pub directory: PathBuf,
    /// The executable that is installed for.
    pub python: PathBuf,
    /// Why it is this one.
    pub origin: Origin,
    /// The interpreter of the environment, or the one that it will be made from.
    pub interpreter: Interpreter,
    /// Whether it is there.
    pub exists: bool,
}

impl Destination {
    /// Chooses it: the given one, the active one, the project's.
    pub fn choose(project: &Path, asked: Asked<'_>, output: &Output) -> Result<Self> {
        if asked.system {
            let interpreter = interpreter::find(asked.python, output)?;
            let (directory, python) = (interpreter.base_prefix.clone(), interpreter.base_executable.clone());
            return Ok(Self { directory, python, origin: Origin::System, interpreter, exists: true });
        }
        let (directory, origin) = match (asked.venv, active(output)?) {
            (Some(given), _) => (files::absolute(given)?, Origin::Given),
            (None, Some((variable, directory))) => (directory, Origin::Active(variable)),
            (None, None) => (project.join(OWN), Origin::Project),
        };
        let python = directory.join("bin/python");
        let exists = is_there(&directory, &python)?;
        let interpreter = if exists {
            Interpreter::remembered(&Cache::locate()?, &python)?.if_fit(&python)?
        } else {
            interpreter::find(asked.python, output)?
        };
        let chosen = Self { directory, python, origin, interpreter, exists };
        chosen.check_request(asked.python, output)?;
        Ok(chosen)
    }

    /// An environment is made once: another interpreter means another environment.
    fn check_request(&self, request: Option<&Request>, output: &Output) -> Result<()> {
        let Some(request) = request.filter(|_| self.exists) else { return Ok(()) };
        let asked = interpreter::find(Some(request), output)?;
        if asked.identity() == self.interpreter.identity() {
            return Ok(());
        }
        let place = self.directory.display();
        Err(Failure::usage(format!("{place} has {}, and --python asks for {asked}", self.interpreter))
            .remedy(format!("remove {place} to have it made anew, or name another directory with --venv"))
            .into())
    }

    /// Creates it when it is absent, in one step: a killed process leaves none that looks finished.
    pub fn create(&self, uv: &Uv, output: &Output) -> Result<()> {
        if self.exists {
            return Ok(());
        }
        output.step("create", &format!("{} with {}", self.directory.display(), self.interpreter));
        let name = self.directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let made = self.directory.with_file_name(format!(".cuwheel-new-{name}"));
        if made.exists() {
            fs::remove_dir_all(&made)?;
        }
        uv.create_environment(&self.interpreter, &made)?;
        // An empty directory gives way to a rename; no other one was let through.
        fs::rename(&made, &self.directory)?;
        Ok(())
    }

    /// What tells it apart, whatever name it is called by.
    pub fn key(&self) -> String {
        let resolved = fs::canonicalize(&self.directory).unwrap_or_else(|_| {
            // As it will be called once it is there.
            let parent = self.directory.parent().and_then(|parent| fs::canonicalize(parent).ok());
            parent.unwrap_or_default().join(self.directory.file_name().unwrap_or_default())
        });
        files::key(resolved.as_os_str().as_encoded_bytes())
    }

    /// The arguments with which the command finds it again.
    pub fn arguments(&self) -> Vec<String> {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        match self.origin {
            Origin::System => vec!["--system".to_owned(), "--python".to_owned(), text(&self.python)],
            _ => vec!["--venv".to_owned(), text(&self.directory)],
        }
    }

    /// For machines.
    pub fn to_json(&self) -> Value {
        let origin = match self.origin {
            Origin::Given => "given",
            Origin::Active(_) => "active",
            Origin::Project => "project",
            Origin::System => "system",
        };
        json!({ "path": self.directory, "origin": origin, "created": !self.exists, "interpreter": self.interpreter })
    }
}

/// The active environment, with the variable that says so. With two of them the first wins, with a warning.
fn active(output: &Output) -> Result<Option<(&'static str, PathBuf)>> {
    let set = |variable: &'static env_vars::Variable| Some((variable.name, PathBuf::from(variable.get()?)));
    let (venv, conda) = (set(&env_vars::VIRTUAL_ENV), set(&env_vars::CONDA_PREFIX));
    if let (Some((_, venv)), Some(_)) = (&venv, &conda) {
        output.warn(format!("VIRTUAL_ENV and CONDA_PREFIX are both set: using {}", venv.display()));
    }
    let Some((variable, directory)) = venv.or(conda) else { return Ok(None) };
    let directory = files::absolute(&directory)?;
    if is_environment(&directory) {
        return Ok(Some((variable, directory)));
    }
    let place = directory.display();
    let problem =
        if directory.exists() { "is no virtual environment, which others share" } else { "does not exist any more" };
    Err(Failure::usage(format!("{variable} names {place}, which {problem}"))
        .remedy("deactivate it, name one with --venv DIRECTORY, or give --system to install for an interpreter itself")
        .into())
}

/// A virtual environment, or one of conda's that is not its base.
fn is_environment(directory: &Path) -> bool {
    let is_conda = directory.join("conda-meta").is_dir() && !directory.join("condabin").is_dir();
    directory.join("pyvenv.cfg").is_file() || is_conda
}

/// Whether the environment is there; what is there and is none is refused.
fn is_there(directory: &Path, python: &Path) -> Result<bool> {
    let place = directory.display();
    if is_environment(directory) {
        return if files::is_executable(python) {
            Ok(true)
        } else {
            Err(Failure::usage(format!("the environment {place} has lost its interpreter"))
                .remedy(format!("remove {place} to have it made anew, or name another directory with --venv"))
                .into())
        };
    }
    let is_free = match std::fs::read_dir(directory) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound && !directory.is_symlink(),
    };
    if is_free {
        return Ok(false);
    }
    Err(Failure::usage(format!("{place} is no virtual environment"))
        .remedy(
            "name one with --venv, or a directory that does not exist yet; --system installs for an interpreter itself",
        )
        .into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_environments_and_free_places_are_taken() {
        let scratch = tempfile::tempdir().unwrap();
        let place = |name: &str| scratch.path().join(name);
        let there =
            |name: &str| is_there(&place(name), &place(name).join("bin/python")).map_err(|error| error.to_string());
        assert_eq!(there("absent"), Ok(false));
        fs::create_dir(place("empty")).unwrap();
        assert_eq!(there("empty"), Ok(false));
        files::write_atomically(&place("project/setup.py"), b"").unwrap();
        assert!(there("project").unwrap_err().ends_with("is no virtual environment"));
        std::os::unix::fs::symlink("/no/where", place("link")).unwrap();
        assert!(there("link").is_err());
        files::write_atomically(&place("broken/pyvenv.cfg"), b"").unwrap();
        assert!(there("broken").unwrap_err().ends_with("has lost its interpreter"));
    }
}
