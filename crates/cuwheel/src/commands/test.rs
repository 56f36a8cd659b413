//! `test`: the Rust tests, then the Python tests against the installed wheel.
//!
//! Not for tests that need a GPU.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cuwheel_inspect::wheel::Wheel;
use serde_json::{Value, json};

use super::build_wheel;
use crate::cache::Cache;
use crate::cargo;
use crate::cli::{Common, Outcome};
use crate::cuda::{self, CudaTarget};
use crate::environment::{Access, BuildEnvironment, FreshEnvironment};
use crate::error::{Failure, Result};
use crate::files;
use crate::inspection;
use crate::interpreter::{self, Interpreter, Request};
use crate::output::Output;
use crate::process::check_interrupted;
use crate::project::Project;
use crate::pytest::{Counts, Proven, Run};
use crate::requirements::{Lock, LockPolicy};
use crate::settings::LARGEST_COUNT;
use crate::test_libraries;
use crate::uv::Uv;

/// The arguments of `test`.
#[derive(clap::Args, Clone, Debug)]
pub struct Arguments {
    /// What every command takes.
    #[command(flatten)]
    pub common: Common,
    /// Test this wheel instead of building one
    #[arg(long, value_name = "PATH")]
    pub wheel: Option<PathBuf>,
    /// Test the wheel for this major version of CUDA, of those that the project has wheels for; default the newest
    #[arg(long, value_name = "MAJOR", value_parser = cuda::parse_major, conflicts_with = "wheel")]
    pub cuda: Option<u32>,
    /// Test on this Python: a version (3.12, 3.13t) or a path
    #[arg(long, value_name = "VERSION|PATH")]
    pub python: Option<Request>,
    /// Run one variant of the Python tests only; `default` is the one without a name
    #[arg(long, value_name = "NAME")]
    pub variant: Option<String>,
    /// Leave out the Rust tests
    #[arg(long)]
    pub no_rust: bool,
    /// Write a JUnit report of the Python tests
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Seconds that one Python test may take
    #[arg(long, value_name = "SECONDS", value_parser = seconds())]
    pub timeout: Option<u64>,
    /// Seconds that a run of the Python tests may take
    #[arg(long, value_name = "SECONDS", value_parser = seconds())]
    pub total_timeout: Option<u64>,
    /// Fail instead of resolving requirements again
    #[arg(long)]
    pub locked: bool,
    /// Arguments for pytest
    #[arg(last = true, value_name = "PYTEST ARGS")]
    pub pytest: Vec<String>,
}

/// As many seconds as the settings allow.
pub(super) fn seconds() -> clap::builder::RangedU64ValueParser<u64> {
    clap::value_parser!(u64).range(1..=LARGEST_COUNT)
}

/// The name of the run without extra requirements.
const DEFAULT_VARIANT: &str = "default";

/// What will be run, and how.
#[derive(Debug)]
struct Plan<'a> {
    project: &'a Project,
    arguments: &'a Arguments,
    interpreter: Interpreter,
    cuda: CudaTarget,
    rust: bool,
    runs: Vec<PlannedRun>,
    access: Access,
}

#[derive(Debug)]
struct PlannedRun {
    name: String,
    lock: Lock,
    junit: Option<PathBuf>,
}

/// A wheel by its path, as it was read before it was installed.
#[derive(Debug)]
pub(super) struct WheelUnderTest {
    pub(super) path: PathBuf,
    pub(super) wheel: Wheel,
}

impl WheelUnderTest {
    /// The wheel that was given, or the one that `build-wheel` makes for the interpreter.
    pub(super) fn get(
        project: &Project,
        given: Option<&Path>,
        common: &Common,
        (cuda, interpreter, locked): (&CudaTarget, &Interpreter, bool),
        output: &Output,
    ) -> Result<Self> {
        let path = match given {
            Some(path) => path.to_path_buf(),
            None => build(project, common, (cuda, interpreter, locked), output)?,
        };
        let path = files::absolute(&path)?;
        let under_test = Self::open(path)?;
        if !under_test.wheel.name().is_distribution(&cuda.distribution(project)) {
            return Err(Failure::usage(format!("{} is no wheel of {}", under_test.wheel.file_name(), project.name))
                .remedy("give a wheel of the project whose tests are run")
                .into());
        }
        Ok(under_test)
    }

    /// Any wheel.
    pub(super) fn open(path: PathBuf) -> Result<Self> {
        let wheel = Wheel::open(&path).map_err(inspection::unreadable)?;
        Ok(Self { path, wheel })
    }
}

fn build(
    project: &Project,
    common: &Common,
    (cuda, interpreter, locked): (&CudaTarget, &Interpreter, bool),
    output: &Output,
) -> Result<PathBuf> {
    // An abi3 wheel serves every interpreter but the free-threaded ones, which get a wheel of their own.
    let is_specific = project.abi3.floor().is_none() || interpreter.gil_disabled;
    let builder = if is_specific { interpreter.clone() } else { default_interpreter(interpreter, output) };
    let arguments = build_wheel::Arguments {
        common: common.clone(),
        python: vec![Request::Path(builder.base_executable)],
        abi3: !is_specific,
        cuda: cuda.asked(),
        compatibility: None,
        sdist: false,
        force: false,
        locked,
    };
    let plan = build_wheel::Plan::new(project.clone(), &arguments, output)?;
    Ok(plan.run(output)?.0.remove(0).path)
}

/// The interpreter that builds: the default one, so that `build-wheel` and the Rust tests share an environment, or the
/// one that tests where there is no other.
fn default_interpreter(tests: &Interpreter, output: &Output) -> Interpreter {
    interpreter::find(None, output).unwrap_or_else(|_| tests.clone())
}

/// One row of the summary.
#[derive(Debug)]
struct Row {
    name: String,
    counts: Counts,
    succeeded: bool,
    note: String,
}

/// Runs the command.
pub fn execute(project: &Project, arguments: &Arguments, output: &Output) -> Result<Outcome> {
    let plan = Plan::new(project, arguments, output)?;
    if arguments.common.dry_run {
        return Ok(Outcome::done(plan.render(), plan.to_json()));
    }
    let mut rows = Vec::new();
    if plan.rust {
        rows.push(plan.run_rust(output)?);
        if !rows[0].succeeded {
            return Ok(outcome(&rows, None));
        }
    }
    let with = (&plan.cuda, &plan.interpreter, plan.access.locked);
    let wheel = WheelUnderTest::get(project, arguments.wheel.as_deref(), &arguments.common, with, output)?;
    let builder = default_interpreter(&plan.interpreter, output);
    let libraries = test_libraries::build(project, &builder, plan.access, output)?;
    for run in &plan.runs {
        check_interrupted()?;
        rows.push(plan.run_python(run, &wheel, &libraries, output)?);
    }
    Ok(outcome(&rows, Some(&wheel.wheel)))
}

impl<'a> Plan<'a> {
    fn new(project: &'a Project, arguments: &'a Arguments, output: &Output) -> Result<Self> {
        let mut names: Vec<Option<&str>> = vec![None];
        names.extend(project.settings.test.variants.keys().map(|name| Some(name.as_str())));
        if let Some(chosen) = arguments.variant.as_deref() {
            names = vec![Some(chosen).filter(|name| *name != DEFAULT_VARIANT)];
        }
        let cuda = cuda::under_test(project, arguments.cuda, arguments.wheel.as_deref())?;
        let mut runs = Vec::new();
        for name in names {
            let lock = Lock::of_tests(project, name, &cuda)?;
            let junit = arguments.junit.as_deref().map(files::absolute).transpose()?;
            let junit = junit.map(|path| match name {
                Some(name) => path
                    .with_file_name(format!("{}-{name}.xml", path.file_stem().unwrap_or_default().to_string_lossy())),
                None => path,
            });
            runs.push(PlannedRun { name: name.unwrap_or(DEFAULT_VARIANT).to_owned(), lock, junit });
        }
        let access = Access { offline: arguments.common.offline, locked: arguments.locked };
        check_early(project, arguments, &runs, access)?;
        Ok(Self {
            project,
            arguments,
            interpreter: interpreter::find(arguments.python.as_ref(), output)?,
            cuda,
            rust: project.settings.test.rust && !arguments.no_rust,
            runs,
            access,
        })
    }

    fn render(&self) -> String {
        let mut text = format!(
            "project       {} {} in {}\n",
            self.project.name,
            self.project.version,
            self.project.root.display()
        );
        if self.rust {
            let _ = writeln!(text, "rust          cargo test {}", self.project.settings.test.cargo_args.join(" "));
        }
        match &self.arguments.wheel {
            Some(path) => _ = writeln!(text, "wheel         {}", path.display()),
            None => _ = writeln!(text, "wheel         from build-wheel{}", self.cuda),
        }
        let libraries = &self.project.settings.test.libraries;
        if !libraries.is_empty() {
            let _ = writeln!(text, "libraries     {}, for the Python tests", libraries.join(", "));
        }
        for run in &self.runs {
            let state = if run.lock.is_current() { "current" } else { "to be resolved" };
            let _ = writeln!(text, "python tests  {} on {}", run.name, self.interpreter);
            let _ = writeln!(text, "  requires    {}", run.lock.inputs().join(", "));
            let _ = writeln!(text, "  lock        {} ({state})", run.lock.path.display());
            let _ =
                writeln!(text, "  tests       {}, copied out of the tree", self.project.settings.test.paths.join(", "));
            text += "  proof       loaded modules and files of the wheel, before the first test and after the last\n";
        }
        text
    }

    fn to_json(&self) -> Value {
        let runs: Vec<Value> = self
            .runs
            .iter()
            .map(|run| json!({ "name": run.name, "requirements": run.lock.inputs(), "lock_is_current": run.lock.is_current() }))
            .collect();
        json!({ "plan": {
            "rust": self.rust,
            "wheel": self.arguments.wheel,
            "interpreter": self.interpreter,
            "libraries": self.project.settings.test.libraries,
            "runs": runs,
        } })
    }

    /// `cargo test`, with what build scripts need.
    fn run_rust(&self, output: &Output) -> Result<Row> {
        let interpreter = default_interpreter(&self.interpreter, output);
        let environment = BuildEnvironment::ready(self.project, &interpreter, self.access, output)?;
        let test = &self.project.settings.test;
        let process = cargo::with_headers(cargo::process(), &interpreter, &environment)?
            .directory(&self.project.root)
            .arg("test")
            .args(self.access.offline.then_some("--offline"))
            .args(&test.cargo_args)
            .deadline(self.total_timeout());
        output.step("test", &format!("cargo test {}", test.cargo_args.join(" ")));
        let mut counts = Counts::default();
        let finished = process.stream(&mut |line| {
            output.line(line);
            add_rust_result(line, &mut counts);
        })?;
        if !finished.status.success() && counts.failed == 0 {
            return Err(Failure::failed(format!("cargo test ended with {}", finished.status))
                .details(finished.tail(if output.is_quiet() { 40 } else { 4 }))
                .remedy("mend what cargo says; `--no-rust` leaves the Rust tests out")
                .into());
        }
        Ok(Row { name: "rust".to_owned(), counts, succeeded: finished.status.success(), note: "cargo test".to_owned() })
    }

    fn total_timeout(&self) -> Duration {
        Duration::from_secs(self.arguments.total_timeout.unwrap_or(self.project.settings.test.total_timeout_s))
    }

    fn run_python(
        &self,
        run: &PlannedRun,
        under_test: &WheelUnderTest,
        libraries: &[PathBuf],
        output: &Output,
    ) -> Result<Row> {
        let WheelUnderTest { wheel, path } = under_test;
        let cache = Cache::locate()?;
        let uv = Uv::find(&self.interpreter, &cache, &self.project.root, self.access.offline, output)?;
        run.lock.ensure(self.access.policy(), &|| Ok(uv.clone()), output)?;
        output.step("test", &format!("{} ({}) on {}", wheel.file_name(), run.name, self.interpreter));
        let environment = FreshEnvironment::create(&cache, &self.interpreter, &uv)?;
        uv.sync(&environment.path(), &run.lock.path)?;
        uv.install_wheel(&environment.path(), path)?;
        let timeout_s = self.arguments.timeout.unwrap_or(self.project.settings.test.timeout_s);
        let proven = Run {
            project: self.project,
            wheel,
            environment: &environment,
            libraries,
            arguments: &self.arguments.pytest,
            junit: run.junit.as_deref(),
            timeout: Duration::from_secs(timeout_s),
            total_timeout: self.total_timeout(),
        }
        .execute(output)?;
        if proven.counts.executed() == 0 && proven.counts.errors == 0 {
            return Err(Failure::failed(format!("no test was executed ({} skipped)", proven.counts.skipped))
                .remedy(
                    "a suite without tests proves nothing: check the paths, the selection and the reasons of the skips",
                )
                .into());
        }
        if proven.modules == 0 {
            output.warn(format!("no test imported {}: the run says nothing about it", self.project.name));
        }
        Ok(self.row(run, proven))
    }

    fn row(&self, run: &PlannedRun, proven: Proven) -> Row {
        let note = format!("{}, {} modules proven", self.interpreter, proven.modules);
        Row { name: run.name.clone(), counts: proven.counts, succeeded: proven.succeeded, note }
    }
}

/// Refuses what would only be noticed after minutes of work.
fn check_early(project: &Project, arguments: &Arguments, runs: &[PlannedRun], access: Access) -> Result<()> {
    inspection::check_wheel_to_test(project, arguments.wheel.as_deref())?;
    for path in project.settings.test.paths.iter().map(|path| project.root.join(path)) {
        if !path.exists() {
            return Err(Failure::usage(format!("there are no tests at {}", path.display()))
                .remedy("set tool.cuwheel.test.paths in pyproject.toml to where the Python tests are")
                .into());
        }
    }
    if access.policy() == LockPolicy::Refuse && !arguments.common.dry_run {
        runs.iter().try_for_each(|run| run.lock.refuse_unless_current())?;
    }
    Ok(())
}

/// Adds a line such as `test result: ok. 3 passed; 0 failed; 1 ignored; …`.
fn add_rust_result(line: &str, counts: &mut Counts) {
    let Some(rest) = line.trim_start().strip_prefix("test result: ") else { return };
    let number = |name: &str| {
        let before = rest.split(';').find_map(|part| part.trim().strip_suffix(name))?;
        before.split_whitespace().last()?.parse::<u64>().ok()
    };
    counts.passed += number("passed").unwrap_or(0);
    counts.failed += number("failed").unwrap_or(0);
    counts.skipped += number("ignored").unwrap_or(0);
}

fn outcome(rows: &[Row], wheel: Option<&Wheel>) -> Outcome {
    let mut text = String::new();
    let mut total = Counts::default();
    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
    for Row { name, counts, note, .. } in rows {
        let _ = write!(
            text,
            "{name:width$}  {} passed, {} failed, {} skipped",
            counts.passed, counts.failed, counts.skipped
        );
        for (count, what) in [(counts.xfailed, "xfailed"), (counts.xpassed, "xpassed"), (counts.errors, "errors")] {
            if count > 0 {
                let _ = write!(text, ", {count} {what}");
            }
        }
        let _ = writeln!(text, "  ({note})");
        total.passed += counts.passed;
        total.failed += counts.failed + counts.errors;
        total.skipped += counts.skipped;
    }
    let _ = writeln!(text, "{} passed, {} failed, {} skipped", total.passed, total.failed, total.skipped);
    let runs: Vec<Value> = rows
        .iter()
        .map(|row| json!({ "name": row.name, "counts": row.counts, "succeeded": row.succeeded, "note": row.note }))
        .collect();
    let wheel = wheel.map(|wheel| json!({ "file": wheel.file_name(), "sha256": wheel.sha256().to_string() }));
    let succeeded = rows.iter().all(|row| row.succeeded);
    Outcome { text, json: json!({ "runs": runs, "wheel": wheel }), succeeded }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_cargo_test_are_added_up() {
        let mut counts = Counts::default();
        for line in [
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s",
            "test tests::x ... ok",
            "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s",
        ] {
            add_rust_result(line, &mut counts);
        }
        assert_eq!((counts.passed, counts.failed, counts.skipped), (4, 2, 1));
    }
}
