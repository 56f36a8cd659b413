//! `test-gpu`: the GPU tests against the installed wheel: here, or from a bundle on the machine that has the GPU.
//!
//! Not for how tests are run and judged: see [`crate::gpu`] and `python/gpu`, which bundles take along.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use cuwheel_inspect::wheel::Wheel;
use fs_err as fs;
use serde_json::{Value, json};

use super::test::{WheelUnderTest, seconds};
use crate::cache::Cache;
use crate::cli::{Common, Outcome};
use crate::cuda::{self, CudaTarget};
use crate::environment::{Access, FreshEnvironment, isolated};
use crate::error::{Failure, Result};
use crate::files;
use crate::gpu::archive::{self, Format};
use crate::gpu::layout::{self, Contents, Parts};
use crate::gpu::suite::Suite;
use crate::gpu::target::{Platform, Target};
use crate::gpu::wheelhouse;
use crate::inspection;
use crate::interpreter::{self, Interpreter, Request};
use crate::output::Output;
use crate::process::{Process, Watch};
use crate::project::Project;
use crate::pytest;
use crate::requirements::{Lock, LockPolicy};
use crate::uv::Uv;

/// The arguments of `test-gpu`.
#[derive(clap::Args, Clone, Debug)]
pub struct Arguments {
    /// What every command takes.
    #[command(flatten)]
    pub common: Common,
    /// Test this wheel instead of building one
    #[arg(long, value_name = "PATH")]
    pub wheel: Option<PathBuf>,
    /// Run the tests of this file, directory or installed package instead of the project's; with --wheel, of any wheel
    #[arg(long, value_name = "PATH|PACKAGE")]
    pub suite: Option<String>,
    /// With --suite: a requirement of its tests beside those of the wheel; repeatable
    #[arg(long, value_name = "REQUIREMENT", requires = "suite")]
    pub with: Vec<String>,
    /// With --suite: a pytest plugin in this file, with what the suite expects of its project's configuration
    #[arg(long, value_name = "FILE", requires = "suite")]
    pub plugin: Option<PathBuf>,
    /// Test the wheel for this major version of CUDA, of those that the project has wheels for; default the newest
    #[arg(long, value_name = "MAJOR", value_parser = cuda::parse_major, conflicts_with = "wheel")]
    pub cuda: Option<u32>,
    /// Test on this Python: a version (3.12, 3.13t) or a path
    #[arg(long, value_name = "VERSION|PATH")]
    pub python: Option<Request>,
    /// Fail instead of resolving requirements again
    #[arg(long)]
    pub locked: bool,
    /// How tests are run.
    #[command(flatten)]
    pub run: RunArguments,
    /// Where the tests are run.
    #[command(flatten)]
    pub elsewhere: ElsewhereArguments,
    /// Arguments for pytest
    #[arg(last = true, value_name = "PYTEST ARGS")]
    pub pytest: Vec<String>,
}

/// How tests are run, in the words that a bundle's `run` takes as well.
#[derive(clap::Args, Clone, Debug)]
pub struct RunArguments {
    /// Whether GPU tests must run, as they must by default, run where they can, or are left out
    #[arg(
        long,
        value_name = "required|auto|off",
        default_value = "required",
        hide_default_value = true,
        hide_possible_values = true
    )]
    pub gpu: Policy,
    /// The devices to use: all, a number of them, or a list of indices such as 0,2
    #[arg(long, value_name = "all|N|LIST", default_value = "all", hide_default_value = true)]
    pub gpus: String,
    /// Processes that share the tests of each device
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..), default_value = "1",
          hide_default_value = true)]
    pub workers: u16,
    /// Let the tests see the packages that the Python has installed, behind those of the environment
    #[arg(long)]
    pub system_site_packages: bool,
    /// Allow CUDA libraries that are not those of the environment's packages
    #[arg(long)]
    pub keep_env: bool,
    /// Run the tests under this tool of compute-sanitizer
    #[arg(long, value_name = "memcheck|racecheck|initcheck|synccheck", hide_possible_values = true)]
    pub sanitizer: Option<Sanitizer>,
    /// Seconds that one test may take
    #[arg(long, value_name = "SECONDS", value_parser = seconds())]
    pub timeout: Option<u64>,
    /// Seconds that the whole run may take
    #[arg(long, value_name = "SECONDS", value_parser = seconds())]
    pub total_timeout: Option<u64>,
    /// Compare with an earlier report: tests that failed there may fail
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// Write a JUnit report
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Write the report as JSON
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Write the report as one HTML page
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// Where the tests are run, if not here and now.
#[derive(clap::Args, Clone, Debug)]
pub struct ElsewhereArguments {
    /// Write everything that the tests need into a .tar.zst or .tar.gz instead of running them
    #[arg(long, value_name = "FILE", requires = "for_python", conflicts_with = "from_report")]
    pub bundle: Option<PathBuf>,
    /// With --bundle: the Python that it is for, such as 3.12
    #[arg(long, value_name = "VERSION", requires = "bundle")]
    pub for_python: Option<Request>,
    /// With --bundle: the platform that it is for, such as `manylinux_2_28_x86_64`
    #[arg(long, value_name = "TAG", requires = "bundle")]
    pub platform: Option<Platform>,
    /// With --bundle: packages that the machine has, by names with commas or in a file of `pip freeze`
    #[arg(long, value_name = "LIST", requires = "bundle")]
    pub exclude_present: Option<String>,
    /// Show the report that a run elsewhere left in this directory
    #[arg(long, value_name = "DIR")]
    pub from_report: Option<PathBuf>,
}

/// What a run without a GPU is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Policy {
    /// Nothing: without an executed GPU test it fails.
    Required,
    /// GPU tests run where there is a GPU.
    Auto,
    /// GPU tests are left out.
    Off,
}

/// A tool of compute-sanitizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Sanitizer {
    /// Accesses out of bounds and misaligned.
    Memcheck,
    /// Hazards between accesses to shared memory.
    Racecheck,
    /// Reads of memory that nobody has written.
    Initcheck,
    /// Wrong uses of barriers.
    Synccheck,
}

impl Sanitizer {
    const fn name(self) -> &'static str {
        match self {
            Self::Memcheck => "memcheck",
            Self::Racecheck => "racecheck",
            Self::Initcheck => "initcheck",
            Self::Synccheck => "synccheck",
        }
    }
}

impl Policy {
    const fn name(self) -> &'static str {
        match self {
            Self::Required => "required",
            Self::Auto => "auto",
            Self::Off => "off",
        }
    }
}

/// What will be done.
#[derive(Debug)]
struct Plan<'a> {
    project: &'a Project,
    arguments: &'a Arguments,
    interpreter: Interpreter,
    cuda: CudaTarget,
    suite: Suite,
    lock: Lock,
    access: Access,
    bundle: Option<Bundle>,
}

#[derive(Debug)]
struct Bundle {
    path: PathBuf,
    target: Target,
}

/// Runs the command. A report from elsewhere needs no project.
pub fn execute(project: &dyn Fn() -> Result<Project>, arguments: &Arguments, output: &Output) -> Result<Outcome> {
    if let Some(directory) = &arguments.elsewhere.from_report {
        return show_report(directory, arguments, output);
    }
    let project = project()?;
    let plan = Plan::new(&project, arguments, output)?;
    if arguments.common.dry_run {
        return Ok(Outcome::done(plan.render(), plan.to_json()));
    }
    let wheel = plan.wheel(output)?;
    match &plan.bundle {
        Some(bundle) => plan.make_bundle(bundle, &wheel, output),
        None => plan.run_here(&wheel, output),
    }
}

impl<'a> Plan<'a> {
    fn new(project: &'a Project, arguments: &'a Arguments, output: &Output) -> Result<Self> {
        let suite = Suite::parse(arguments.suite.as_deref())?;
        let cuda = cuda::under_test(project, arguments.cuda, arguments.wheel.as_deref())?;
        let lock = Lock::of_gpu_tests(project, &cuda);
        let access = Access { offline: arguments.common.offline, locked: arguments.locked };
        check_early(project, arguments, (&suite, &lock), access)?;
        let elsewhere = &arguments.elsewhere;
        // A wheel without the limited API is built by the Python that it is for.
        let is_specific = project.abi3.floor().is_none() && arguments.wheel.is_none();
        let wanted = elsewhere.for_python.as_ref().filter(|_| is_specific).or(arguments.python.as_ref());
        let interpreter = interpreter::find(wanted, output)?;
        let bundle = match (&elsewhere.bundle, &elsewhere.for_python) {
            (Some(path), Some(python)) => {
                Format::of(path)?;
                let target = Target::new(python, elsewhere.platform.as_ref(), &interpreter)?;
                Some(Bundle { path: files::absolute(path)?, target })
            }
            _ => None,
        };
        Ok(Self { project, arguments, interpreter, cuda, suite, lock, access, bundle })
    }

    /// The wheel under test: with a suite it may be any wheel.
    fn wheel(&self, output: &Output) -> Result<WheelUnderTest> {
        match (&self.suite, &self.arguments.wheel) {
            (Suite::Path(_) | Suite::Package(_), Some(path)) => WheelUnderTest::open(files::absolute(path)?),
            (_, given) => {
                let with = (&self.cuda, &self.interpreter, self.access.locked);
                WheelUnderTest::get(self.project, given.as_deref(), &self.arguments.common, with, output)
            }
        }
    }

    /// The lock of what is installed beside the wheel: the committed one, or one for a suite, made in `scratch`.
    fn ready_lock(&self, wheel: &Wheel, scratch: &Path, uv: &Uv, output: &Output) -> Result<Lock> {
        if self.suite == Suite::Project {
            self.lock.ensure(self.access.policy(), &|| Ok(uv.clone()), output)?;
            return Ok(self.lock.clone());
        }
        let inputs = Suite::requirements(self.project, &self.cuda, wheel, &self.arguments.with);
        let lock = Lock::of_suite(self.project, scratch.join("suite.txt"), inputs);
        lock.update(uv, false, output)?;
        Ok(lock)
    }

    fn tests(&self) -> String {
        match &self.suite {
            Suite::Package(name) => format!("the installed package {name}"),
            Suite::Path(path) => format!("{}, copied", path.display()),
            Suite::Project => format!("{}, copied out of the tree", self.suite.paths(self.project).join(", ")),
        }
    }

    fn contents<'w>(&'w self, under_test: &'w WheelUnderTest) -> Contents<'w> {
        let (settings, run) = (&self.project.settings.test_gpu, &self.arguments.run);
        Contents {
            project: self.project,
            wheel: (&under_test.wheel, &under_test.path),
            suite: &self.suite,
            plugin: self.arguments.plugin.as_deref(),
            timeout_s: run.timeout.unwrap_or(settings.timeout_s),
            total_timeout_s: run.total_timeout.unwrap_or(settings.total_timeout_s),
        }
    }

    fn render(&self) -> String {
        let project = self.project;
        let mut text = format!("project       {} {} in {}\n", project.name, project.version, project.root.display());
        match &self.arguments.wheel {
            Some(path) => _ = writeln!(text, "wheel         {}", path.display()),
            None => _ = writeln!(text, "wheel         from build-wheel{}", self.cuda),
        }
        if self.suite == Suite::Project {
            let state = if self.lock.is_current() { "current" } else { "to be resolved" };
            let _ = writeln!(text, "requires      {}", self.lock.inputs().join(", "));
            let _ = writeln!(text, "lock          {} ({state})", self.lock.path.display());
        } else {
            text += "requires      what the wheel depends on, pytest";
            for requirement in &self.arguments.with {
                let _ = write!(text, ", {requirement}");
            }
            text += "\n";
        }
        let _ = writeln!(text, "tests         {}", self.tests());
        if let Some(bundle) = &self.bundle {
            let _ = writeln!(text, "bundle        {} for {}", bundle.path.display(), bundle.target);
        } else {
            let run = &self.arguments.run;
            let _ = writeln!(text, "python        {}", self.interpreter);
            let _ = writeln!(text, "preflight     driver, devices and the wheel's GPU code");
            let _ = writeln!(text, "gpu           {}, devices: {}", run.gpu.name(), run.gpus);
        }
        text
    }

    fn to_json(&self) -> Value {
        json!({ "plan": {
            "wheel": self.arguments.wheel,
            "interpreter": self.interpreter,
            "requirements": self.lock.inputs(),
            "lock_is_current": self.lock.is_current(),
            "paths": self.suite.paths(self.project),
            "package": self.suite.package(),
            "gpu": self.arguments.run.gpu.name(),
            "gpus": self.arguments.run.gpus,
            "bundle": self.bundle.as_ref().map(|bundle| json!({
                "path": bundle.path,
                "for_python": bundle.target.version_text(),
                "platform": bundle.target.platform.to_string(),
            })),
        } })
    }

    /// Makes the environment, lays the run out beside it and hands over to it.
    fn run_here(&self, under_test: &WheelUnderTest, output: &Output) -> Result<Outcome> {
        let cache = Cache::locate()?;
        let uv = Uv::find(&self.interpreter, &cache, &self.project.root, self.access.offline, output)?;
        output.step("test-gpu", &format!("{} on {}", under_test.wheel.file_name(), self.interpreter));
        let environment = if self.arguments.run.system_site_packages {
            FreshEnvironment::create_on_system(&cache, &self.interpreter, &uv)?
        } else {
            FreshEnvironment::create(&cache, &self.interpreter, &uv)?
        };
        let lock = self.ready_lock(&under_test.wheel, &environment.neutral_directory(), &uv, output)?;
        uv.sync(&environment.path(), &lock.path)?;
        uv.install_wheel(&environment.path(), &under_test.path)?;
        let root = environment.beside("gpu");
        self.contents(under_test).lay_out(&root)?;
        let (pytest, has_paths) = pytest::arguments_in(self.project, &self.arguments.pytest, &root.join("tests"))?;
        let mut arguments: Vec<OsString> = vec!["--environment".into(), environment.python().into()];
        arguments.extend(has_paths.then(|| "--has-paths".into()));
        arguments.extend(run_arguments(&self.arguments.run, output)?);
        arguments.push("--".into());
        arguments.extend(pytest.into_iter().map(OsString::from));
        hand_over(environment.isolated_python(), &root, self.arguments, &arguments)
    }

    fn make_bundle(&self, bundle: &Bundle, under_test: &WheelUnderTest, output: &Output) -> Result<Outcome> {
        let Bundle { path, target } = bundle;
        let wheel = &under_test.wheel;
        let tags: Vec<String> = wheel.name().tags().iter().map(ToString::to_string).collect();
        if !tags.iter().any(|tag| target.accepts(tag)) {
            return Err(Failure::usage(format!("{} does not install on {target}", wheel.file_name()))
                .remedy("give the wheel for that Python and platform, or another --for-python or --platform")
                .into());
        }
        let cache = Cache::locate()?;
        let uv = Uv::find(&self.interpreter, &cache, &self.project.root, self.access.offline, output)?;
        let present = match &self.arguments.elsewhere.exclude_present {
            Some(list) => wheelhouse::present_packages(list)?,
            None => std::collections::BTreeSet::new(),
        };
        let scratch = cache.scratch("bundle")?;
        let tools = (&uv, &self.interpreter);
        let lock = self.ready_lock(wheel, scratch.path(), &uv, output)?;
        let house =
            wheelhouse::collect(&lock, target, (&present, wheel.metadata().name()), scratch.path(), tools, output)?;
        let root = scratch.path().join("root");
        output.step("bundle", &path.display().to_string());
        let parts = self.contents(under_test).lay_out_bundle(&root, target, &house)?;
        let top = format!("{}-{}-gpu-tests", wheel.name().distribution(), wheel.name().version());
        archive::write(&root, &top, path)?;
        describe_bundle(path, &top, wheel, &parts)
    }
}

fn describe_bundle(path: &Path, top: &str, wheel: &Wheel, parts: &Parts) -> Result<Outcome> {
    let size_bytes = fs::metadata(path)?.len();
    let sha256 = files::sha256_of_file(path)?;
    let mut text = format!("{}  {}\n", path.display(), files::human_size(size_bytes));
    for (what, bytes) in [
        ("wheel", parts.wheels_bytes),
        ("wheelhouse", parts.wheelhouse_bytes),
        ("tests", parts.tests_bytes),
        ("runner", parts.runner_bytes),
    ] {
        let _ = writeln!(text, "  {what:10}  {}", files::human_size(bytes));
    }
    let _ = writeln!(text, "unpack it there, then run {top}/run");
    let json = json!({ "bundle": {
        "path": path,
        "sha256": sha256,
        "size_bytes": size_bytes,
        "directory": top,
        "wheel": wheel.file_name(),
        "parts": parts,
    } });
    Ok(Outcome::done(text, json))
}

/// Shows what a run elsewhere left.
fn show_report(directory: &Path, arguments: &Arguments, output: &Output) -> Result<Outcome> {
    let interpreter = interpreter::find(arguments.python.as_ref(), output)?;
    let scratch = Cache::locate()?.scratch("report")?;
    layout::lay_out_runner(scratch.path())?;
    let mut given: Vec<OsString> = vec!["--from-report".into(), files::absolute(directory)?.into()];
    given.extend(run_arguments(&arguments.run, output)?);
    let python = isolated(Process::new(&interpreter.base_executable)).directory(scratch.path());
    hand_over(python, scratch.path(), arguments, &given)
}

/// The arguments that the runner shares with this command; files by their absolute paths.
fn run_arguments(run: &RunArguments, output: &Output) -> Result<Vec<OsString>> {
    let mut arguments: Vec<OsString> =
        vec!["--gpu".into(), run.gpu.name().into(), "--gpus".into(), run.gpus.clone().into()];
    arguments.extend(["--workers".into(), run.workers.to_string().into()]);
    for (name, seconds) in [("--timeout", run.timeout), ("--total-timeout", run.total_timeout)] {
        arguments.extend(seconds.into_iter().flat_map(|seconds| [name.into(), seconds.to_string().into()]));
    }
    let files =
        [("--baseline", &run.baseline), ("--junit", &run.junit), ("--report", &run.report), ("--html", &run.html)];
    for (name, path) in files {
        if let Some(path) = path {
            arguments.extend([name.into(), files::absolute(path)?.into()]);
        }
    }
    arguments.extend(run.sanitizer.into_iter().flat_map(|tool| ["--sanitizer".into(), tool.name().into()]));
    arguments.extend(run.keep_env.then(|| "--keep-env".into()));
    arguments.extend(output.is_quiet().then(|| "--quiet".into()));
    Ok(arguments)
}

/// Runs the runner that was laid out in `root`, and gives its report as the outcome of the command.
fn hand_over(python: Process, root: &Path, arguments: &Arguments, given: &[OsString]) -> Result<Outcome> {
    let result = root.join("result.json");
    let process = python.arg(root.join("run")).arg("--result").arg(&result).args(given);
    let status = process.attached(true, &mut || Watch::Continue)?;
    let Ok(text) = fs::read_to_string(&result) else {
        let how = status.map_or_else(|| "was ended".to_owned(), |status| format!("ended with {status}"));
        return Err(Failure::failed(format!("the runner of the GPU tests {how}; it says why above"))
            .remedy("mend what it names")
            .into());
    };
    outcome(serde_json::from_str(&text)?, arguments.common.json)
}

/// What the runner's report is for the command: a result, or the failure that it names.
fn outcome(mut report: Value, json: bool) -> Result<Outcome> {
    let text = report["summary"].as_str().unwrap_or_default().to_owned();
    let problem = report["problem"].take();
    let Some(message) = problem["message"].as_str() else {
        let succeeded = report["exit_code"] == 0;
        let json = if json { report } else { Value::Null };
        return Ok(Outcome { text, json: json!({ "report": json }), succeeded });
    };
    let failure = match problem["exit_code"].as_u64() {
        Some(2) => Failure::usage(message),
        Some(3) => Failure::machine(message),
        _ => Failure::failed(message),
    };
    let details = problem["details"].as_array().into_iter().flatten();
    let details = details.filter_map(|detail| detail.as_str().map(str::to_owned));
    Err(failure.details(details).remedy(problem["remedy"].as_str().unwrap_or_default()).into())
}

/// Refuses what would only be noticed after minutes of work.
fn check_early(project: &Project, arguments: &Arguments, (suite, lock): (&Suite, &Lock), access: Access) -> Result<()> {
    inspection::check_wheel_to_test(project, arguments.wheel.as_deref())?;
    if let Some(plugin) = &arguments.plugin {
        layout::plugin_name(plugin)?;
    }
    if *suite != Suite::Project {
        return Ok(());
    }
    for path in project.settings.test_gpu.paths.iter().map(|path| project.root.join(path)) {
        if !path.exists() {
            return Err(Failure::usage(format!("there are no GPU tests at {}", path.display()))
                .remedy("set tool.cuwheel.test-gpu.paths in pyproject.toml to where they are")
                .into());
        }
    }
    if access.policy() == LockPolicy::Refuse && !arguments.common.dry_run {
        lock.refuse_unless_current()?;
    }
    Ok(())
}
