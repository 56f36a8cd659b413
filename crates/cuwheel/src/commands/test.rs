//! `test`: the Rust tests, then the Python tests against the installed wheel.
//!
//! Not for tests that need a GPU.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use cuwheel_inspect::wheel::Wheel;
use serde_json::{Value, json};

use super::build_wheel;
use crate::cache::Cache;
use crate::cli::{Common, Outcome};
use crate::env_vars;
use crate::environment::{BuildEnvironment, FreshEnvironment};
use crate::error::{Failure, Result};
use crate::files;
use crate::interpreter::{self, Interpreter, Request};
use crate::output::Output;
use crate::process::{Process, check_interrupted};
use crate::project::Project;
use crate::pytest::{Counts, Proven, Run};
use crate::requirements::{Lock, LockPolicy};
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
    #[arg(long, value_name = "SECONDS")]
    pub timeout: Option<u64>,
    /// Seconds that a run of the Python tests may take
    #[arg(long, value_name = "SECONDS")]
    pub total_timeout: Option<u64>,
    /// Fail instead of resolving requirements again
    #[arg(long)]
    pub locked: bool,
    /// Arguments for pytest
    #[arg(last = true, value_name = "PYTEST ARGS")]
    pub pytest: Vec<String>,
}

/// The name of the run without extra requirements.
const DEFAULT_VARIANT: &str = "default";

/// What will be run, and how.
#[derive(Debug)]
struct Plan<'a> {
    project: &'a Project,
    arguments: &'a Arguments,
    interpreter: Interpreter,
    rust: bool,
    runs: Vec<PlannedRun>,
    lock_policy: LockPolicy,
}

#[derive(Debug)]
struct PlannedRun {
    name: String,
    lock: Lock,
    junit: Option<PathBuf>,
}

/// A wheel by its path, as it was read before it was installed.
#[derive(Debug)]
struct WheelUnderTest {
    path: PathBuf,
    wheel: Wheel,
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
    let wheel = plan.wheel(output)?;
    for run in &plan.runs {
        check_interrupted()?;
        rows.push(plan.run_python(run, &wheel, output)?);
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
        let mut runs = Vec::new();
        for name in names {
            let lock = Lock::of_tests(project, name)?;
            let junit = arguments.junit.as_deref().map(files::absolute).transpose()?;
            let junit = junit.map(|path| match name {
                Some(name) => path
                    .with_file_name(format!("{}-{name}.xml", path.file_stem().unwrap_or_default().to_string_lossy())),
                None => path,
            });
            runs.push(PlannedRun { name: name.unwrap_or(DEFAULT_VARIANT).to_owned(), lock, junit });
        }
        let refuse = arguments.locked || arguments.common.offline;
        Ok(Self {
            project,
            arguments,
            interpreter: interpreter::find(arguments.python.as_ref(), output)?,
            rust: project.settings.test.rust && !arguments.no_rust,
            runs,
            lock_policy: if refuse { LockPolicy::Refuse } else { LockPolicy::Update },
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
            None => text += "wheel         from build-wheel\n",
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
        json!({ "plan": { "rust": self.rust, "wheel": self.arguments.wheel, "interpreter": self.interpreter, "runs": runs } })
    }

    fn uv(&self, output: &Output) -> Result<Uv> {
        Uv::find(&self.interpreter, &Cache::locate()?, self.arguments.common.offline, output)
    }

    /// `cargo test`, with what build scripts need.
    fn run_rust(&self, output: &Output) -> Result<Row> {
        let cache = Cache::locate()?;
        let lock = Lock::of_build(self.project);
        // The same interpreter as `build-wheel` takes, so that both share an environment.
        let interpreter = interpreter::find(None, output)?;
        let uv = || Uv::find(&interpreter, &cache, self.arguments.common.offline, output);
        lock.ensure(self.lock_policy, &uv, output)?;
        let environment = BuildEnvironment::locate(&cache, &interpreter, &lock)?;
        environment.provision(&cache, &interpreter, &lock, &uv, output)?;
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut process = cargo_process(&cargo, &interpreter, &environment)?
            .directory(&self.project.root)
            .arg("test")
            .args(&self.project.settings.test.cargo_args);
        if self.arguments.common.offline {
            process = process.arg("--offline");
        }
        output.step("test", &format!("cargo test {}", self.project.settings.test.cargo_args.join(" ")));
        let mut counts = Counts::default();
        let finished = process.stream(&mut |line| {
            eprintln!("{line}");
            add_rust_result(line, &mut counts);
        })?;
        Ok(Row { name: "rust".to_owned(), counts, succeeded: finished.status.success(), note: "cargo test".to_owned() })
    }

    /// The wheel that was given, or the one that `build-wheel` makes.
    fn wheel(&self, output: &Output) -> Result<WheelUnderTest> {
        let path = if let Some(path) = &self.arguments.wheel {
            path.clone()
        } else {
            // An abi3 wheel serves every interpreter but the free-threaded ones, which get a wheel of their own.
            let python = if self.project.abi3.floor().is_none() || self.interpreter.gil_disabled {
                vec![Request::Path(self.interpreter.base_executable.clone())]
            } else {
                Vec::new()
            };
            let arguments = build_wheel::Arguments {
                common: self.arguments.common.clone(),
                python,
                abi3: false,
                compatibility: None,
                sdist: false,
                force: false,
                locked: self.arguments.locked,
            };
            let plan = build_wheel::Plan::new(self.project.clone(), &arguments, output)?;
            plan.run(output)?.0.remove(0).path
        };
        if !path.is_file() {
            return Err(Failure::usage(format!("there is no wheel at {}", path.display()))
                .remedy("give the path of a wheel, or leave --wheel out to build one")
                .into());
        }
        let path = files::absolute(&path)?;
        Ok(WheelUnderTest { wheel: Wheel::open(&path)?, path })
    }

    fn run_python(&self, run: &PlannedRun, under_test: &WheelUnderTest, output: &Output) -> Result<Row> {
        let WheelUnderTest { wheel, path } = under_test;
        let uv = self.uv(output)?;
        run.lock.ensure(self.lock_policy, &|| Ok(uv.clone()), output)?;
        output.step("test", &format!("{} ({}) on {}", wheel.file_name(), run.name, self.interpreter));
        let environment = FreshEnvironment::create(&self.interpreter, &uv)?;
        uv.sync(&environment.path(), &run.lock.path)?;
        uv.install_wheel(&environment.path(), path)?;
        let test = &self.project.settings.test;
        let proven = Run {
            project: self.project,
            wheel,
            environment: &environment,
            arguments: &self.arguments.pytest,
            junit: run.junit.as_deref(),
            timeout: Duration::from_secs(self.arguments.timeout.unwrap_or(test.timeout_s)),
            total_timeout: Duration::from_secs(self.arguments.total_timeout.unwrap_or(test.total_timeout_s)),
        }
        .execute(output)?;
        if proven.counts.executed() == 0 && proven.counts.errors == 0 {
            return Err(Failure::failed(format!("no test was executed ({} skipped)", proven.counts.skipped))
                .remedy(
                    "a suite without tests proves nothing: check the paths, the selection and the reasons of the skips",
                )
                .into());
        }
        Ok(self.row(run, proven))
    }

    fn row(&self, run: &PlannedRun, proven: Proven) -> Row {
        let note = format!("{}, {} modules proven", self.interpreter, proven.modules);
        Row { name: run.name.clone(), counts: proven.counts, succeeded: proven.succeeded, note }
    }
}

/// Cargo with the environment that build scripts of `cuwheel-build` read.
pub fn cargo_process(
    cargo: &std::ffi::OsStr,
    interpreter: &Interpreter,
    environment: &BuildEnvironment,
) -> Result<Process> {
    let mut process = Process::new(cargo)
        .env(env_vars::CUWHEEL_PYTHON.name, environment.python())
        .env(env_vars::CUWHEEL_PYTHON_INCLUDE.name, &interpreter.include);
    if let Some(include) = environment.numpy_include()? {
        process = process.env(env_vars::CUWHEEL_NUMPY_INCLUDE.name, include);
    }
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(env_vars::is_set_by_cargo_run) {
            process = process.env_remove(name);
        }
    }
    Ok(process)
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
