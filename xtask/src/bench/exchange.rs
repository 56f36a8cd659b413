//! `bench exchange`: how long it takes to hand an array from one library to another, measured by a Python script in one
//! process with every peer that is installed.
//!
//! The script also runs by itself, on machines that have a GPU and no Rust.

use std::path::{Path, PathBuf};

use cuwheel::cache::Cache;
use cuwheel::cli::{Common, Outcome};
use cuwheel::commands::build_wheel;
use cuwheel::environment::{Access, FreshEnvironment};
use cuwheel::error::Result;
use cuwheel::files;
use cuwheel::interpreter::{self, Interpreter};
use cuwheel::output::Output;
use cuwheel::process::Process;
use cuwheel::project::Project;
use cuwheel::requirements::Lock;
use cuwheel::test_libraries;
use cuwheel::uv::Uv;

use super::succeed;

/// The arguments of `bench exchange`.
#[derive(clap::Args, Debug)]
pub(super) struct Arguments {
    /// Measure the peers that are installed for this interpreter; by default those of the tests' lock
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
    /// Measure this wheel instead of building one
    #[arg(long, value_name = "PATH")]
    wheel: Option<PathBuf>,
    /// Write the report there as JSON
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
}

const SCRIPT: &str = include_str!("exchange.py");
const ACCESS: Access = Access { offline: false, locked: true };

/// Measures, and returns what the script reports.
pub(super) fn execute(arguments: &Arguments, output: &Output) -> Result<Outcome> {
    let project = Project::find(Path::new("."))?;
    let interpreter = match &arguments.python {
        Some(python) => Interpreter::probe(python)?,
        None => interpreter::find(None, output)?,
    };
    let wheel = match &arguments.wheel {
        Some(wheel) => files::absolute(wheel)?,
        None => built(&project, output)?,
    };
    let cache = Cache::locate()?;
    let uv = Uv::find(&interpreter, &cache, &project.root, ACCESS.offline, output)?;
    let environment = FreshEnvironment::create(&cache, &interpreter, &uv)?;
    if arguments.python.is_none() {
        let lock = Lock::of_tests(&project, None)?;
        lock.ensure(ACCESS.policy(), &|| Ok(uv.clone()), output)?;
        uv.sync(&environment.path(), &lock.path)?;
    }
    uv.install_wheel(&environment.path(), &wheel)?;

    // The wheel comes from the fresh environment in any case; the peers are where the interpreter finds them.
    let python = arguments.python.clone().unwrap_or_else(|| environment.python());
    let packages = environment.site_packages()?;
    let run = |arguments: &[&str]| {
        Process::new(&python)
            .args(arguments.iter().copied())
            .env("PYTHONPATH", &packages)
            .directory(environment.neutral_directory())
    };
    let has_device = run(&["-c", "import cuwheel; cuwheel.Device(0).name"]).capture()?.status.success();
    let (script, report) = (environment.beside("exchange.py"), environment.beside("report.json"));
    std::fs::write(&script, SCRIPT)?;
    let mut process = run(&[]).arg(&script).arg("--json").arg(&report);
    if !has_device {
        let directory = environment.beside("libraries");
        test_libraries::lay_out(&test_libraries::build(&project, &interpreter, ACCESS, output)?, &directory)?;
        process = process.env("LD_LIBRARY_PATH", directory);
    }
    output.step("measure", if has_device { "on the GPU" } else { "without a GPU, on the stand-in driver" });
    let finished = succeed(&process)?;
    let json = std::fs::read_to_string(&report)?;
    if let Some(path) = &arguments.save {
        std::fs::write(path, &json)?;
    }
    Ok(Outcome::done(finished.stdout, serde_json::from_str(&json)?))
}

/// The wheel of this checkout.
fn built(project: &Project, output: &Output) -> Result<PathBuf> {
    let common = Common {
        project: project.root.clone(),
        dry_run: false,
        json: false,
        offline: ACCESS.offline,
        verbose: false,
        quiet: false,
    };
    let arguments = build_wheel::Arguments {
        common,
        python: Vec::new(),
        abi3: false,
        compatibility: None,
        sdist: false,
        force: false,
        locked: ACCESS.locked,
    };
    let plan = build_wheel::Plan::new(project.clone(), &arguments, output)?;
    Ok(plan.run(output)?.0.remove(0).path)
}
