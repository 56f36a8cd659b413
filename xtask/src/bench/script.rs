//! Benchmarks that are Python scripts: each measures the wheel beside its peers in one process, and reports as JSON.
//!
//! The scripts also run by themselves, on machines that have no Rust.

use std::path::{Path, PathBuf};

use cuwheel::cache::Cache;
use cuwheel::cli::{Common, Outcome};
use cuwheel::commands::build_wheel;
use cuwheel::cuda::CudaTarget;
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

/// The arguments of a benchmark that is a script.
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

pub(super) const ACCESS: Access = Access { offline: false, locked: true };

/// Where a script runs: with the wheel, and with the peers.
pub(super) struct Place {
    pub(super) project: Project,
    interpreter: Interpreter,
    pub(super) environment: FreshEnvironment,
    python: PathBuf,
    packages: PathBuf,
    save: Option<PathBuf>,
}

impl Place {
    /// A fresh environment with the wheel in it.
    pub(super) fn prepare(arguments: &Arguments, output: &Output) -> Result<Self> {
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
            let lock = Lock::of_tests(&project, None, &CudaTarget::Any)?;
            lock.ensure(ACCESS.policy(), &|| Ok(uv.clone()), output)?;
            uv.sync(&environment.path(), &lock.path)?;
        }
        uv.install_wheel(&environment.path(), &wheel)?;
        // The wheel comes from the fresh environment in any case; the peers are where the interpreter finds them.
        let python = arguments.python.clone().unwrap_or_else(|| environment.python());
        let packages = environment.site_packages()?;
        Ok(Self { project, interpreter, environment, python, packages, save: arguments.save.clone() })
    }

    /// A process of Python that finds the wheel and the peers.
    pub(super) fn python(&self) -> Process {
        Process::new(&self.python).env("PYTHONPATH", &self.packages).directory(self.environment.neutral_directory())
    }

    /// The same process where there is a device, and one on the stand-in driver where there is none; and which it is.
    pub(super) fn on_a_device(&self, process: Process, output: &Output) -> Result<(Process, bool)> {
        let probe = self.python().args(["-c", "import cuwheel; cuwheel.Device(0).name"]);
        if probe.capture()?.status.success() {
            return Ok((process, true));
        }
        Ok((self.on_stand_in(process, output)?, false))
    }

    /// The same process on the stand-in driver.
    pub(super) fn on_stand_in(&self, process: Process, output: &Output) -> Result<Process> {
        let directory = self.environment.beside("libraries");
        let libraries = test_libraries::build(&self.project, &self.interpreter, ACCESS, output)?;
        test_libraries::lay_out(&libraries, &directory)?;
        Ok(process.env("LD_LIBRARY_PATH", directory))
    }

    /// Runs a script in such a process, and returns what it reports.
    pub(super) fn measure(&self, script: &str, process: Process) -> Result<Outcome> {
        self.measure_with(script, process, |process| process)
    }

    /// The same with further arguments for the script.
    pub(super) fn measure_with(
        &self,
        script: &str,
        process: Process,
        arguments: impl FnOnce(Process) -> Process,
    ) -> Result<Outcome> {
        let (path, report) = (self.environment.beside("benchmark.py"), self.environment.beside("report.json"));
        std::fs::write(&path, script)?;
        let finished = succeed(&arguments(process.arg(&path).arg("--json").arg(&report)))?;
        let json = std::fs::read_to_string(&report)?;
        if let Some(path) = &self.save {
            std::fs::write(path, &json)?;
        }
        Ok(Outcome::done(finished.stdout, serde_json::from_str(&json)?))
    }
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
        cuda: Vec::new(),
        compatibility: None,
        sdist: false,
        force: false,
        locked: ACCESS.locked,
    };
    let plan = build_wheel::Plan::new(project.clone(), &arguments, output)?;
    Ok(plan.run(output)?.0.remove(0).path)
}
