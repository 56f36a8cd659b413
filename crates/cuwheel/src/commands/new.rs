//! `new`: a project that builds, tests and packages CUDA kernels for Python, made from templates; or from one of setuptools.
//!
//! Not for what is in it: see [`crate::new`], and [`crate::port`] for `--from-setuptools`.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::ci::settings::Provider;
use crate::cli::{Common, Outcome};
use crate::cuda::Packaging;
use crate::error::{Failure, Result};
use crate::new::destination::Destination;
use crate::new::license::{LICENSES, License};
use crate::new::name::ProjectName;
use crate::new::origin::Origin;
use crate::new::rendering::{self, ProjectOptions, RenderedFile};
use crate::output::Output;
use crate::port::command::{self, Request};
use crate::process::{self, Process, find_program};

/// The arguments of `new`.
#[derive(clap::Args, Clone, Debug)]
pub struct Arguments {
    /// What every command takes.
    #[command(flatten)]
    pub common: Common,
    /// The name of the distribution; the package is called the same, in lower case and with _ for dots and dashes
    #[arg(value_name = "NAME", required_unless_present = "from_setuptools")]
    pub name: Option<String>,
    /// The directory of the project; by default ./NAME
    #[arg(long, value_name = "DIRECTORY")]
    pub path: Option<PathBuf>,
    /// Make it from this project, which setuptools builds: pyproject.toml, crates, and a list of what a human has to port;
    /// NAME is that of the old project, and the directory ./NAME-cuwheel, unless they are given
    #[arg(long, value_name = "PATH", conflicts_with_all = ["cuda", "wheels", "no_shim", "license", "ci", "no_git"])]
    pub from_setuptools: Option<PathBuf>,
    /// The majors of CUDA, 12 and 13, divided by commas
    #[arg(long, value_name = "MAJORS", value_delimiter = ',', default_value = "13", value_parser = major)]
    pub cuda: Vec<u32>,
    /// With several majors of CUDA: a wheel for each (suffix), or one for all (merged)
    #[arg(long, value_name = "HOW", hide_possible_values = true)]
    pub wheels: Option<Packaging>,
    /// Without the C shim over the C API of NumPy
    #[arg(long)]
    pub no_shim: bool,
    /// The licence
    #[arg(long, value_name = "SPDX", default_value = LICENSES[0].name, value_parser = License::parse)]
    pub license: License,
    /// The systems to write workflows for: github, gitlab, slurm, divided by commas, or none
    #[arg(long, value_name = "SYSTEMS", value_delimiter = ',', default_value = "github", value_parser = provider)]
    pub ci: Vec<Option<Provider>>,
    /// Make no git repository
    #[arg(long)]
    pub no_git: bool,
    /// Where the crates of cuwheel come from: a version, or a checkout; by default that of this program
    #[arg(long, value_name = "VERSION|PATH")]
    pub cuwheel: Option<String>,
}

/// A major of CUDA that projects can be for.
fn major(text: &str) -> Result<u32, String> {
    match text {
        "12" => Ok(12),
        "13" => Ok(13),
        _ => Err("projects are for CUDA 12, 13, or 12,13".to_owned()),
    }
}

/// A system that workflows are for; `None` for none.
fn provider(text: &str) -> Result<Option<Provider>, String> {
    if text == "none" { Ok(None) } else { text.parse().map(Some) }
}

/// What is made, and where.
#[derive(Debug)]
pub struct Plan {
    options: ProjectOptions,
    destination: Destination,
    git: Git,
    files: Vec<RenderedFile>,
}

/// What happens with git.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Git {
    /// A repository is made.
    Initialise,
    /// The directory has one.
    Present,
    /// The directory is inside of one.
    Inside(PathBuf),
    /// It was not asked for.
    Off,
    /// There is no git.
    Missing,
}

/// Runs the command.
pub fn execute(arguments: &Arguments, output: &Output) -> Result<Outcome> {
    if let Some(source) = &arguments.from_setuptools {
        let request = Request {
            source,
            name: arguments.name.as_deref(),
            path: arguments.path.as_deref(),
            is_dry_run: arguments.common.dry_run,
            origin: Origin::choose(arguments.cuwheel.as_deref())?,
        };
        return command::execute(&request, output);
    }
    let plan = Plan::new(arguments)?;
    if arguments.common.dry_run {
        return Ok(Outcome::done(plan.render(), plan.to_json()));
    }
    plan.run(output)
}

impl Plan {
    /// Decides everything; writes nothing.
    pub fn new(arguments: &Arguments) -> Result<Self> {
        // The command line asks for it, unless there is a project to take it from.
        let given = arguments.name.as_deref().unwrap_or_default();
        let name = ProjectName::parse(given)?;
        let mut cuda = arguments.cuda.clone();
        cuda.sort_unstable();
        cuda.dedup();
        if let (Some(wheels), [only]) = (arguments.wheels, cuda.as_slice()) {
            return Err(Failure::usage(format!(
                "--wheels {} is for several majors of CUDA, and {only} is one",
                wheels.name()
            ))
            .remedy("name them: --cuda 12,13")
            .into());
        }
        let directory = arguments.path.clone().unwrap_or_else(|| PathBuf::from(given));
        let destination = Destination::examine(&directory)?;
        let git = Git::choose(&destination, arguments.no_git);
        let options = ProjectOptions {
            name,
            cuda,
            wheels: arguments.wheels.unwrap_or_default(),
            shim: !arguments.no_shim,
            license: arguments.license,
            origin: Origin::choose(arguments.cuwheel.as_deref())?,
            ci: arguments.ci.iter().copied().flatten().collect(),
        };
        let files = rendering::render(&options)?;
        Ok(Self { options, destination, git, files })
    }

    /// The plan as a person reads it.
    pub fn render(&self) -> String {
        let ProjectOptions { name, cuda, wheels, shim, license, origin, ci } = &self.options;
        let systems: Vec<&str> = ci.iter().map(|provider| provider.name()).collect();
        let majors: Vec<String> = cuda.iter().map(ToString::to_string).collect();
        let wheels = if cuda.len() > 1 { format!(", wheels: {}", wheels.name()) } else { String::new() };
        let mut text = format!("project    {}, package {}\n", name.distribution(), name.package());
        let _ = writeln!(text, "directory  {}", self.destination.directory.display());
        let _ = writeln!(text, "CUDA       {}{wheels}", majors.join(", "));
        let _ = writeln!(text, "shim       {}", if *shim { "over the C API of NumPy" } else { "none" });
        let _ = writeln!(text, "license    {}", license.expression);
        let _ = writeln!(text, "cuwheel    {origin}");
        let _ = writeln!(text, "ci         {}", if ci.is_empty() { "none".to_owned() } else { systems.join(", ") });
        let _ = writeln!(text, "git        {}", self.git.describe());
        for (index, file) in self.files.iter().enumerate() {
            let _ = writeln!(text, "{:10} {}", if index == 0 { "writes" } else { "" }, file.path);
        }
        text
    }

    /// The plan for machines.
    pub fn to_json(&self) -> Value {
        json!({ "plan": self.describe() })
    }

    fn describe(&self) -> Value {
        let ProjectOptions { name, cuda, wheels, shim, license, origin, ci } = &self.options;
        let paths: Vec<&str> = self.files.iter().map(|file| file.path.as_str()).collect();
        json!({
            "name": name.distribution(),
            "package": name.package(),
            "crate": name.crate_name(),
            "directory": self.destination.directory,
            "cuda": cuda,
            "wheels": wheels.name(),
            "shim": shim,
            "license": license.expression,
            "cuwheel": match origin {
                Origin::Checkout(root) => json!({ "path": root }),
                Origin::Version(version) => json!({ "version": version }),
            },
            "ci": ci.iter().map(|provider| provider.name()).collect::<Vec<_>>(),
            "git": self.git == Git::Initialise,
            "files": paths,
        })
    }

    /// Makes the project.
    pub fn run(&self, output: &Output) -> Result<Outcome> {
        if self.git == Git::Missing {
            output.warn("there is no git on PATH: the project is no repository; run `git init` later");
        }
        self.destination.fill(&self.files, |directory| {
            if self.git == Git::Initialise {
                initialise(directory, output);
            }
            Ok(())
        })?;
        let directory = &self.destination.directory;
        let mut text = format!("created  {} ({} files)\n", directory.display(), self.files.len());
        let _ = writeln!(text, "cuwheel  {}", self.options.origin);
        let _ = writeln!(text, "\nnext\n  cd {}", process::quote(&from_here(directory)));
        if self.options.cuda.contains(&12) {
            text += "  export CUDA_PATH=…         # the CUDA Toolkit 12, which no Python package brings\n";
        }
        text += "  cargo xtask build-wheel\n  cargo xtask test\n";
        Ok(Outcome::done(text, self.describe()))
    }
}

/// A path as it is short to type where the command was run.
fn from_here(directory: &Path) -> std::ffi::OsString {
    let here = std::env::current_dir().unwrap_or_default();
    match directory.strip_prefix(here) {
        Ok(inside) if inside == Path::new("") => OsStr::new(".").to_owned(),
        Ok(inside) => inside.as_os_str().to_owned(),
        Err(_) => directory.as_os_str().to_owned(),
    }
}

impl Git {
    fn choose(destination: &Destination, is_off: bool) -> Self {
        if is_off {
            return Self::Off;
        }
        if destination.has_git {
            return Self::Present;
        }
        let Some(git) = find_program("git") else { return Self::Missing };
        let above = destination.nearest_directory();
        let asked = git_process(&git, &above).args(["rev-parse", "--show-toplevel"]).capture();
        match asked {
            Ok(finished) if finished.status.success() => Self::Inside(finished.stdout.trim_end().into()),
            _ => Self::Initialise,
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::Initialise => "a new repository, with nothing committed".to_owned(),
            Self::Present => "the repository of the directory".to_owned(),
            Self::Inside(root) => format!("the repository {}", root.display()),
            Self::Off => "none".to_owned(),
            Self::Missing => "none: there is no git on PATH".to_owned(),
        }
    }
}

/// Variables of a surrounding call of git would name another repository.
fn git_process(git: &Path, directory: &Path) -> Process {
    let variables = ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"];
    variables.iter().fold(Process::new(git), Process::env_remove).directory(directory)
}

/// A project without a repository is one all the same.
fn initialise(directory: &Path, output: &Output) {
    let Some(git) = find_program("git") else { return };
    match git_process(&git, directory).args(["init", "--quiet"]).capture() {
        Ok(finished) if finished.status.success() => {}
        Ok(finished) => output.warn(format!("`git init` failed: {}", finished.tail(1).join(" "))),
        Err(error) => output.warn(format!("`git init` failed: {error:#}")),
    }
}
