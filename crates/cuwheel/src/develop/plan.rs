//! What an editable install is made of, and how: decided before anything is compiled or installed.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::destination::Destination;
use super::note::{Notes, Options};
use super::site;
use crate::cache::Cache;
use crate::env_vars;
use crate::environment::{Access, BuildEnvironment};
use crate::error::{Failure, Result};
use crate::maturin::{self, AbiRequest, Purpose, WheelAbi};
use crate::output::Output;
use crate::project::Project;
use crate::requirements::Lock;
use crate::rustflags::Rustc;
use crate::settings::Linker;
use crate::uv::Uv;

/// The platform tag of what is for this machine only.
const COMPATIBILITY: &str = "linux";

/// What will be installed, where and how.
#[derive(Debug)]
pub struct Plan {
    /// The project.
    pub project: Project,
    /// The environment.
    pub destination: Destination,
    /// What the command line said.
    pub options: Options,
    /// Which Pythons the library is for.
    pub abi: WheelAbi,
    /// Whether the network may be used and locks may be written.
    pub access: Access,
    /// Whether to build when nothing changed.
    pub force: bool,
    /// Whether the import hook asks: then no environment is made.
    pub on_import: bool,
    /// The lock of the build.
    pub lock: Lock,
    /// The tool's cache.
    pub cache: Cache,
    /// What is remembered of the checkout.
    pub notes: Notes,
}

/// What the command line leaves to be decided.
#[derive(Clone, Debug)]
pub struct Request {
    /// What the command line said.
    pub options: Options,
    /// Whether it said nothing of how to install: then an earlier install decides.
    pub as_before: bool,
    /// Whether the network may be used and locks may be written.
    pub access: Access,
    /// `--force`.
    pub force: bool,
    /// `--on-import`.
    pub on_import: bool,
}

impl Plan {
    /// Decides everything that can be decided without compiling or installing.
    pub fn new(project: Project, destination: Destination, request: Request) -> Result<Self> {
        let interpreter = &destination.interpreter;
        if project.python_floor.is_some_and(|floor| interpreter.minor_version() < floor) {
            return Err(Failure::usage(format!("{} does not run on {interpreter}", project.name))
                .remedy("name a newer interpreter with --python, for an environment that does not exist yet")
                .into());
        }
        let abi_request = if interpreter.gil_disabled { AbiRequest::Specific } else { AbiRequest::Default };
        let abi = WheelAbi::choose(&project, interpreter, abi_request)?;
        let cache = Cache::locate()?;
        let notes = Notes::of(&cache, &project)?;
        let Request { mut options, as_before, access, force, on_import } = request;
        if as_before && let Some(note) = notes.read(&destination) {
            options = note.options;
        }
        Ok(Self {
            abi,
            lock: Lock::of_build(&project),
            access,
            force,
            on_import,
            options,
            cache,
            notes,
            destination,
            project,
        })
    }

    /// What is compiled for.
    pub fn purpose(&self) -> Purpose<'_> {
        Purpose::Editable { profile: &self.options.profile }
    }

    /// The platform tag, and the linker: an editable install is for this machine.
    pub fn how(&self) -> (&'static str, Linker) {
        (COMPATIBILITY, Linker::System)
    }

    fn arguments(&self, offline: bool) -> Vec<String> {
        maturin::arguments(&self.project, self.purpose(), &self.abi, self.how(), offline)
    }

    /// The environment of the build.
    pub fn environment(&self) -> Result<BuildEnvironment> {
        BuildEnvironment::locate(&self.cache, &self.destination.interpreter, &self.lock)
    }

    /// uv, found when it is needed.
    pub fn uv(&self, output: &Output) -> Result<Uv> {
        Uv::find(&self.destination.interpreter, &self.cache, &self.project.root, self.access.offline, output)
    }

    /// Everything beside the contents of files that decides what is installed, by names that a person reads.
    /// `variables` are those that build scripts asked for.
    pub fn facts(&self, rustc: &Rustc, variables: &[String]) -> Result<BTreeMap<String, String>> {
        let interpreter = &self.destination.interpreter;
        let options = &self.options;
        let environment = if self.lock.is_current() { self.environment()?.key } else { "to be resolved".to_owned() };
        let mut facts: BTreeMap<String, String> = [
            ("the interpreter", interpreter.to_string()),
            ("the ABI of the interpreter", interpreter.abi.clone()),
            ("the place of the interpreter", interpreter.base_prefix.display().to_string()),
            ("the version of the tool", env!("CARGO_PKG_VERSION").to_owned()),
            ("the compiler", rustc.verbose_version.clone()),
            ("the build environment", environment),
            ("the call of maturin", self.arguments(false).join(" ")),
            ("--rebuild-on-import", options.rebuild_on_import.to_string()),
            ("--extra", options.extras.join(", ")),
            ("--group", options.groups.join(", ")),
            ("the installation of dependencies", options.dependencies.to_string()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        for (name, value) in env_vars::build_variables() {
            facts.insert(format!("the variable {name}"), value.to_string_lossy().into_owned());
        }
        for name in variables {
            let value = std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
            facts.extend(value.map(|value| (format!("the variable {name}"), value)));
        }
        Ok(facts)
    }

    /// The plan as a person reads it.
    pub fn render(&self) -> String {
        let (project, destination) = (&self.project, &self.destination);
        let mut text = format!("project       {} {} in {}\n", project.name, project.version, project.root.display());
        let state = if destination.exists { "" } else { ", to be created" };
        let place = destination.directory.display();
        let _ = writeln!(text, "environment   {place} ({}{state})", destination.origin);
        let interpreter = &destination.interpreter;
        let _ = writeln!(text, "  interpreter {interpreter} at {}", interpreter.base_executable.display());
        let state = if self.lock.is_current() { "current" } else { "to be resolved" };
        let _ = writeln!(text, "lock          {} ({state})", self.lock.path.display());
        let _ = writeln!(text, "compile       maturin build {}", self.arguments(self.access.offline).join(" "));
        // Without a setting of its own the directory is the root, with an empty name after it.
        let sources: PathBuf = project.python_source.components().collect();
        let _ = writeln!(text, "place         the native library beside the sources in {}", sources.display());
        let _ = writeln!(text, "install       {}, and what of the wheel is not in the tree", site::pth_name(project));
        if self.options.dependencies {
            text += "  requires    what the project requires, where it is missing\n";
        }
        if self.options.rebuild_on_import {
            let _ = writeln!(text, "  hook        {}.py, which builds again on import", site::hook_module(project));
        }
        text + "prove         nothing else wins the import; a fresh process loads what was built\n"
    }

    /// The plan for machines.
    pub fn to_json(&self) -> Value {
        json!({ "plan": {
            "project": self.project.name,
            "version": self.project.version,
            "environment": self.destination.to_json(),
            "requirements": self.lock.inputs(),
            "lock_is_current": self.lock.is_current(),
            "arguments": self.arguments(self.access.offline),
            "rebuild_on_import": self.options.rebuild_on_import,
        }})
    }
}
