//! The call of maturin: a process for one wheel or for the sdist, and what its output says.
//!
//! Not for what happens to the wheel afterwards: see [`crate::wheel_writer`] and [`crate::inspection`].

use std::path::{Path, PathBuf};

use fs_err as fs;

use crate::cargo;
use crate::cargo_manifest::Abi3;
use crate::env_vars;
use crate::environment::{Access, BuildEnvironment, path_with};
use crate::error::{Failure, Result};
use crate::floor;
use crate::interpreter::Interpreter;
use crate::library_owner::LibraryOwner;
use crate::output::Output;
use crate::process::{Finished, Process};
use crate::project::Project;
use crate::rustflags::{self, Rustc};
use crate::settings::Linker;

/// 1980-01-01: the first moment that a zip archive can hold.
const DEFAULT_EPOCH: &str = "315532800";

/// Which Pythons a wheel is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WheelAbi {
    /// Every CPython from a version on.
    Abi3 {
        /// The oldest: `(3, 11)`.
        floor: (u8, u8),
    },
    /// The interpreter that builds. `features` are the crate's features without the limited API, if it has to be left out.
    Specific {
        /// What to pass instead of the default features.
        features: Option<Vec<String>>,
    },
}

/// What the command line asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbiRequest {
    /// Nothing: abi3 where the crate has it.
    Default,
    /// `--abi3`.
    Abi3,
    /// `--python` alone.
    Specific,
}

impl WheelAbi {
    /// Chooses for a crate and an interpreter.
    pub fn choose(project: &Project, interpreter: &Interpreter, request: AbiRequest) -> Result<Self> {
        let specific = request == AbiRequest::Specific;
        match (&project.abi3, specific) {
            (Abi3::No, _) if request == AbiRequest::Abi3 => {
                Err(Failure::usage("the crate does not ask for the limited API")
                    .remedy("add a default feature abi3 = [\"pyo3/abi3-py311\"], or leave --abi3 out")
                    .into())
            }
            (Abi3::No, _) => Ok(Self::Specific { features: None }),
            (Abi3::ByFeature { .. }, true) if project.features_from_pyproject => {
                Err(Failure::usage("tool.maturin.features decides the features, so the limited API cannot be left out")
                    .remedy("turn the features on by default in the crate's Cargo.toml instead")
                    .into())
            }
            (Abi3::ByFeature { without, .. }, true) => Ok(Self::Specific { features: Some(without.clone()) }),
            (Abi3::Always { .. }, true) => Err(Failure::usage("the crate asks for the limited API in every build")
                .remedy(
                    "move pyo3's abi3 feature from the dependency to a default feature: abi3 = [\"pyo3/abi3-py311\"]",
                )
                .into()),
            (Abi3::ByFeature { floor, .. } | Abi3::Always { floor }, false) => {
                Self::check_abi3(*floor, interpreter)?;
                Ok(Self::Abi3 { floor: *floor })
            }
        }
    }

    fn check_abi3(floor: (u8, u8), interpreter: &Interpreter) -> Result<()> {
        if interpreter.gil_disabled {
            let (major, minor) = interpreter.minor_version();
            return Err(Failure::usage(format!("an abi3 wheel cannot be built for {interpreter}"))
                .detail("free-threaded CPython has no limited API: its objects are laid out differently")
                .remedy(format!("build a version-specific wheel: --python {major}.{minor}t without --abi3"))
                .into());
        }
        if interpreter.minor_version() < floor {
            return Err(Failure::usage(format!(
                "the abi3 wheel needs CPython {}.{} or newer, {interpreter} builds it",
                floor.0, floor.1
            ))
            .remedy("name a newer interpreter with --python")
            .into());
        }
        Ok(())
    }

    /// The first two parts of the wheel's tag.
    pub fn tag(&self, interpreter: &Interpreter) -> String {
        match self {
            Self::Abi3 { floor } => format!("cp{}{}-abi3", floor.0, floor.1),
            Self::Specific { .. } => interpreter.specific_tag(),
        }
    }
}

/// What a compilation is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose<'a> {
    /// A wheel for anyone: optimised, stripped as the project says, without paths of this machine.
    Wheel,
    /// An editable install on this machine: nothing is taken out that helps to find a fault, and cargo works with the
    /// user's own flags, so that it shares what it compiled with `cargo build`.
    Editable {
        /// The profile of cargo.
        profile: &'a str,
    },
}

impl Purpose<'_> {
    fn arguments(self) -> Vec<&'static str> {
        match self {
            Self::Wheel => vec!["--release"],
            Self::Editable { .. } => vec!["--strip", "false", "--compression-method", "stored"],
        }
    }

    /// The directory that cargo names after the profile.
    fn directory(self) -> PathBuf {
        match self {
            Self::Wheel | Self::Editable { profile: "release" | "bench" } => "release".into(),
            Self::Editable { profile: "dev" | "test" } => "debug".into(),
            Self::Editable { profile } => profile.into(),
        }
    }
}

/// One compilation: everything that decides what comes out.
#[derive(Clone, Debug)]
pub struct Compilation<'a> {
    /// What it is for.
    pub purpose: Purpose<'a>,
    /// What is compiled.
    pub project: &'a Project,
    /// Whose headers are compiled against.
    pub interpreter: &'a Interpreter,
    /// Where maturin, zig and NumPy come from.
    pub environment: &'a BuildEnvironment,
    /// The compiler.
    pub rustc: &'a Rustc,
    /// Which Pythons the wheel is for.
    pub abi: &'a WheelAbi,
    /// The major version of CUDA whose compiler is used; `None` for whatever there is.
    pub cuda_major: Option<u32>,
    /// The platform tag, such as `manylinux_2_28`.
    pub compatibility: &'a str,
    /// Who links.
    pub linker: Linker,
    /// Whether the network is forbidden.
    pub offline: bool,
    /// Whether Cargo.lock must fit as it is. That of an sdist names crates that the sdist leaves out.
    pub locked: bool,
    /// Where the whole output of the compilation is kept.
    pub log: PathBuf,
}

/// A wheel as maturin left it.
#[derive(Debug)]
pub struct Compiled {
    /// Where it is.
    pub wheel: PathBuf,
    /// How many crates cargo compiled: 0 when everything was fresh.
    pub compiled_crates: usize,
}

impl Compilation<'_> {
    /// The arguments for maturin, without those that hold paths of this machine.
    pub fn arguments(&self) -> Vec<String> {
        let how = (self.compatibility, self.linker);
        let mut arguments = arguments(self.project, self.purpose, self.abi, how, self.offline);
        arguments.retain(|argument| self.locked || argument != "--locked");
        arguments
    }

    /// Compiles into an empty directory.
    pub fn run(&self, into: &Path, output: &Output) -> Result<Compiled> {
        let mut process = self.process("build", output)?;
        process =
            process.args(self.arguments()).arg("--interpreter").arg(self.environment.python()).arg("--out").arg(into);
        let owner = LibraryOwner::of(self.project, &profile_directories(self.project, self.purpose, self.rustc));
        owner.take_over()?;
        output.step("compile", &format!("{} with {}", self.project.name, self.rustc.short_version()));
        let finished = process.stream(&mut |line| output.live(line))?;
        keep_log(&self.log, &process, &finished)?;
        if !finished.status.success() {
            return Err(self.explain(&finished));
        }
        owner.remember()?;
        let compiled_crates =
            finished.stderr.lines().filter(|line| line.trim_start().starts_with("Compiling ")).count();
        Ok(Compiled { wheel: only_file(into, "whl")?, compiled_crates })
    }

    fn process(&self, command: &str, output: &Output) -> Result<Process> {
        let mut process = base_process(self.project, self.environment, command);
        if let Some(major) = self.cuda_major {
            process = process.env(env_vars::CUWHEEL_CUDA_MAJOR.name, major.to_string());
        }
        if self.purpose == Purpose::Wheel {
            process = process.env("CARGO_ENCODED_RUSTFLAGS", rustflags::encoded(self.project, self.rustc, output)?);
        }
        cargo::with_headers(process, self.interpreter, self.environment)
    }

    fn explain(&self, finished: &Finished) -> anyhow::Error {
        if let Some(failure) = floor::explain_link_failure(&finished.stderr, self) {
            return failure.into();
        }
        if finished.stderr.contains("No space left on device") {
            let place = self.project.target_directory.display();
            return Failure::machine("the disk is full").remedy(format!("make room for {place}")).into();
        }
        if finished.stderr.contains("linker `cc` not found") {
            return Failure::machine("there is no C compiler, which Rust needs to link")
                .remedy("install gcc or clang")
                .into();
        }
        Failure::failed("the compilation failed")
            .details(first_errors(&finished.stderr))
            .remedy(format!("the whole output is in {}", self.log.display()))
            .into()
    }
}

/// The arguments of `maturin build` that the plan shows.
pub fn arguments(
    project: &Project,
    purpose: Purpose<'_>,
    abi: &WheelAbi,
    (compatibility, linker): (&str, Linker),
    offline: bool,
) -> Vec<String> {
    let mut arguments = purpose.arguments();
    if let Purpose::Editable { profile } = purpose {
        arguments.extend(["--profile", profile]);
    }
    // The audit is ours: maturin's would also graft what a driver brings.
    arguments.extend(["--auditwheel", "skip", "--compatibility", compatibility]);
    if linker == Linker::Zig {
        arguments.push("--zig");
    }
    if project.manifest.workspace_root().join("Cargo.lock").is_file() {
        arguments.push("--locked");
    }
    if offline {
        arguments.push("--offline");
    }
    let mut arguments: Vec<String> = arguments.into_iter().map(str::to_owned).collect();
    if let WheelAbi::Specific { features: Some(features) } = abi {
        arguments.push("--no-default-features".to_owned());
        if !features.is_empty() {
            arguments.push("--features".to_owned());
            arguments.push(features.join(","));
        }
    }
    arguments
}

/// Where cargo leaves what it compiled for a wheel, with its notes on what it read.
pub fn profile_directories(project: &Project, purpose: Purpose<'_>, rustc: &Rustc) -> [PathBuf; 2] {
    let (target, profile) = (&project.target_directory, purpose.directory());
    [target.join(rustc.host()).join(&profile), target.join(profile)]
}

/// Resolves the crates where that was never done, so that the first build reads what the second one will.
pub fn ensure_cargo_lock(project: &Project, access: Access, output: &Output) -> Result<()> {
    let lock = project.manifest.workspace_root().join("Cargo.lock");
    if lock.is_file() {
        return Ok(());
    }
    if access.locked {
        return Err(Failure::usage(format!("{} does not exist, and --locked forbids to write it", lock.display()))
            .remedy("run the command once without --locked and commit the file")
            .into());
    }
    output.warn(format!("{} does not exist: resolving it now, commit the file", lock.display()));
    let process = cargo::process().arg("generate-lockfile").directory(project.manifest.workspace_root());
    let finished =
        if access.offline { process.arg("--offline") } else { process }.stream(&mut |line| output.live(line))?;
    if finished.status.success() {
        return Ok(());
    }
    Err(Failure::failed("cargo could not resolve the crates").details(finished.tail(12)).into())
}

/// Writes the sdist into an empty directory. Nothing is compiled.
pub fn sdist(
    project: &Project,
    environment: &BuildEnvironment,
    into: &Path,
    log: &Path,
    output: &Output,
) -> Result<PathBuf> {
    output.step("sdist", &project.name);
    let process = base_process(project, environment, "sdist").arg("--out").arg(into);
    let finished = process.stream(&mut |line| output.live(line))?;
    keep_log(log, &process, &finished)?;
    if !finished.status.success() {
        return Err(Failure::failed("the sdist could not be made")
            .details(first_errors(&finished.stderr))
            .remedy(format!("the whole output is in {}", log.display()))
            .into());
    }
    only_file(into, "gz")
}

fn base_process(project: &Project, environment: &BuildEnvironment, command: &str) -> Process {
    let bin = environment.directory().join("bin");
    let epoch = env_vars::SOURCE_DATE_EPOCH.get().unwrap_or_else(|| DEFAULT_EPOCH.into());
    let process = Process::new(environment.maturin())
        .arg(command)
        .directory(&project.root)
        .env("PATH", path_with(&bin))
        .env("CARGO_TERM_PROGRESS_WHEN", "never")
        .env("CARGO_TERM_COLOR", "never")
        .env(env_vars::SOURCE_DATE_EPOCH.name, epoch)
        // Importing the project from a build script must not build it again.
        .env(env_vars::CUWHEEL_REBUILD_ON_IMPORT.name, "0")
        // An active environment says nothing about this build.
        .env_remove("VIRTUAL_ENV")
        .env_remove("CONDA_PREFIX")
        .env_remove("PYTHONPATH")
        .env_remove("PYTHONHOME");
    cargo::without_variables_of_cargo_run(process)
}

fn keep_log(log: &Path, process: &Process, finished: &Finished) -> Result<()> {
    if let Some(directory) = log.parent() {
        fs::create_dir_all(directory)?;
    }
    fs::write(log, format!("$ {}\n{}{}", process.describe(), finished.stderr, finished.stdout))?;
    Ok(())
}

/// The compiler's first complaints; what follows them is mostly their consequence.
fn first_errors(stderr: &str) -> Vec<String> {
    const SHOWN: usize = 15;
    // What a build script prints for cargo says nothing about why it failed.
    let noise = |line: &&str| line.trim_start().starts_with("cargo:") || line.trim_start().starts_with("--- std");
    let lines: Vec<&str> = stderr.lines().filter(|line| !noise(line)).collect();
    let first = lines.iter().position(|line| {
        let line = line.trim_start();
        line.starts_with("error") || line.contains("💥") || line.contains("panicked at")
    });
    let start = first.unwrap_or_else(|| lines.len().saturating_sub(SHOWN));
    // What maturin adds to a compiler's errors is the command line, which the log has.
    let from_compiler = |line: &&&str| !line.starts_with("💥");
    let shown = lines[start..].iter().filter(|line| !line.trim().is_empty());
    let mut shown: Vec<String> = shown.clone().take_while(from_compiler).take(SHOWN).map(ToString::to_string).collect();
    if shown.is_empty() {
        shown = lines[start..].iter().take(SHOWN).map(|line| line.chars().take(200).collect()).collect();
    }
    shown
}

fn only_file(directory: &Path, extension: &str) -> Result<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
    match found.len() {
        1 => Ok(found.remove(0)),
        count => Err(Failure::failed(format!("maturin wrote {count} files instead of one"))
            .details(found.iter().map(|path| path.display().to_string()))
            .into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_profile_compiles_is_where_cargo_puts_it() {
        let places =
            ["dev", "test", "release", "bench", "fast"].map(|profile| Purpose::Editable { profile }.directory());
        assert_eq!(places, ["debug", "debug", "release", "release", "fast"].map(PathBuf::from));
        assert_eq!(Purpose::Wheel.directory(), PathBuf::from("release"));
    }

    #[test]
    fn the_first_error_and_what_explains_it_are_shown() {
        let stderr =
            "   Compiling a\nwarning: x\nerror[E0425]: cannot find value\n --> src/lib.rs:1:1\n\nerror: aborting";
        assert_eq!(first_errors(stderr), ["error[E0425]: cannot find value", " --> src/lib.rs:1:1", "error: aborting"]);
        assert_eq!(first_errors("only\nthis"), ["only", "this"]);
        assert_eq!(first_errors("error: x\n💥 maturin failed\n  Caused by: y"), ["error: x"]);
        assert_eq!(first_errors("💥 maturin failed\n  Caused by: y"), ["💥 maturin failed", "  Caused by: y"]);
    }
}
