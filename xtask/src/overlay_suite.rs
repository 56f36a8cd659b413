//! `overlay-suite`: the tests of a released wheel before and after its native modules are replaced, test by test.
//!
//! Apart from `test`, since it downloads hundreds of megabytes and runs thousands of tests of another project. Without a
//! GPU most of them fail at the driver, in the same way before and after; those that pass need none.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use cuwheel::cache::Cache;
use cuwheel::cli::Outcome;
use cuwheel::commands::overlay::{Arguments as OverlayArguments, Made, Plan};
use cuwheel::environment::FreshEnvironment;
use cuwheel::error::{Failure, Result};
use cuwheel::files;
use cuwheel::inspection;
use cuwheel::interpreter;
use cuwheel::output::Output;
use cuwheel::process;
use cuwheel::project::Project;
use cuwheel::uv::Uv;
use cuwheel_inspect::wheel::Wheel;
use serde::Deserialize;
use serde_json::json;

/// The arguments of `overlay-suite`.
#[derive(clap::Args, Debug)]
#[group(id = "overlay-suite")]
pub(crate) struct Arguments {
    #[command(flatten)]
    overlay: OverlayArguments,
    /// Run the tests in this many processes
    #[arg(long, value_name = "COUNT")]
    workers: Option<u16>,
}

impl Arguments {
    /// Where results go.
    pub(crate) fn output(&self) -> Output {
        self.overlay.common.output()
    }
}

/// The tests of one release, and what they run with.
struct Suite {
    release: &'static str,
    tests: &'static str,
    requires: &'static [&'static str],
    /// How many pass without a GPU. Fewer mean that the environment lacks something, which would hide differences.
    passed_without_gpu: usize,
}

const SUITES: &[Suite] = &[
    Suite {
        release: "numba-cuda==0.30.4",
        tests: "numba.cuda.tests",
        requires: &[
            "numba-cuda[cu13]",
            "numba==0.66.0",
            "numpy==2.4.6",
            "cuda-core==1.0.1",
            "cuda-bindings==13.2.0",
            "pytest>=8,<9",
            "pytest-benchmark",
            "pytest-xdist",
            "filecheck",
            "ml_dtypes",
            "cffi",
        ],
        passed_without_gpu: 260,
    },
    Suite {
        release: "numba-cuda==0.22.2",
        tests: "numba.cuda.tests",
        requires: &[
            "numba-cuda[cu13]",
            "numba==0.63.1",
            "numpy==2.3.5",
            "cuda-core==0.5.1",
            "pytest>=8,<9",
            "pytest-benchmark",
            "pytest-xdist",
            "filecheck",
            "ml_dtypes",
            "cffi",
        ],
        passed_without_gpu: 243,
    },
];

/// A plugin and no conftest.py: pytest offers the fixtures of a conftest.py to tests below its directory only.
const PLUGIN: &str = include_str!("python/overlay_suite.py");
const PLUGIN_NAME: &str = "overlay_suite";
/// Warnings stay warnings: many are given once in a process, so which test gets them is a matter of its worker.
const PYTEST_INI: &str = "[pytest]\nconsider_namespace_packages = true\n";

/// What one process of a run wrote.
#[derive(Deserialize)]
struct Report {
    outcomes: BTreeMap<String, String>,
    modules: Vec<LoadedModule>,
}

#[derive(Deserialize)]
struct LoadedModule {
    name: String,
    file: PathBuf,
    sha256: String,
}

/// What became of each test, and how many modules of the wheel were loaded in all processes together.
struct Run {
    outcomes: BTreeMap<String, String>,
    modules: usize,
}

/// Runs the command.
pub(crate) fn execute(arguments: &Arguments, output: &Output) -> Result<Outcome> {
    process::install_interrupt_handler()?;
    let common = &arguments.overlay.common;
    let wanted = &arguments.overlay.wanted;
    let release = format!("{}=={}", wanted.distribution(), wanted.version());
    let suite = find(&release)?;
    let project = Project::find(&common.project)?;
    let plan = Plan::new(project.clone(), &arguments.overlay, output)?;
    if common.dry_run {
        let text = format!(
            "{}tests        {} before and after, with {}\n",
            plan.render(),
            suite.tests,
            suite.requires.join(", ")
        );
        return Ok(Outcome::done(text, plan.to_json()));
    }
    let made = plan.run(output)?;

    let interpreter = interpreter::find(arguments.overlay.python.as_ref(), output)?;
    let cache = Cache::locate()?;
    let uv = Uv::find(&interpreter, &cache, &project.root, common.offline, output)?;
    let environment = FreshEnvironment::create(&cache, &interpreter, &uv)?;
    let requires: Vec<String> = suite.requires.iter().map(ToString::to_string).collect();
    output.step("install", &format!("{release} and what its tests require"));
    uv.install_with_dependencies(&environment.path(), &made.upstream.path, &[], &requires)?;
    let reports = project.work_directory().join("overlay-suite");
    let run = |name: &str, wheel: &Path| suite.run(wheel, &environment, arguments.workers, &reports.join(name), output);
    let before = run("released", &made.upstream.path)?;
    // Over the released wheel, so that everything else stays what it was.
    uv.install_wheel(&environment.path(), &made.path)?;
    let after = run("overlay", &made.path)?;
    suite.judge(&made, &before, &after)
}

fn find(release: &str) -> Result<&'static Suite> {
    SUITES.iter().find(|suite| suite.release == release).ok_or_else(|| {
        let known: Vec<&str> = SUITES.iter().map(|suite| suite.release).collect();
        Failure::usage(format!("it is not known how the tests of {release} are run"))
            .remedy(format!("take one of {}, or describe another in xtask/src/overlay_suite.rs", known.join(", ")))
            .into()
    })
}

impl Suite {
    /// Runs the tests of the wheel that is installed.
    fn run(
        &self,
        wheel: &Path,
        environment: &FreshEnvironment,
        workers: Option<u16>,
        directory: &Path,
        output: &Output,
    ) -> Result<Run> {
        output.step("test", &format!("{} of {}", self.tests, wheel.display()));
        if directory.exists() {
            std::fs::remove_dir_all(directory)?;
        }
        std::fs::create_dir_all(directory)?;
        std::fs::write(directory.join("pytest.ini"), PYTEST_INI)?;
        std::fs::write(environment.site_packages()?.join(format!("{PLUGIN_NAME}.py")), PLUGIN)?;
        let mut process = environment
            .isolated_python()
            .directory(directory)
            .env("OVERLAY_SUITE_REPORTS", directory)
            .args(["-m", "pytest", "-q", "--continue-on-collection-errors", "--benchmark-disable", "--tb=line"])
            .args(["-p", "no:cacheprovider", "-p", PLUGIN_NAME, "--noconftest", "--pyargs", self.tests]);
        if let Some(workers) = workers {
            process = process.args(["-n", &workers.to_string(), "--dist", "loadscope"]);
        }
        let finished = process.stream(&mut |line| output.live(line))?;
        files::write_atomically(&directory.join("pytest.log"), finished.stdout.as_bytes())?;
        let (mut outcomes, mut modules) = (BTreeMap::new(), Vec::new());
        for entry in std::fs::read_dir(directory)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "json") {
                let report: Report = serde_json::from_slice(&std::fs::read(path)?)?;
                outcomes.extend(report.outcomes);
                modules.extend(report.modules);
            }
        }
        if outcomes.is_empty() {
            return Err(Failure::failed(format!("pytest ended with {} and ran nothing", finished.status))
                .details(finished.tail(20))
                .remedy(format!("the whole output is in {}", directory.join("pytest.log").display()))
                .into());
        }
        check_loaded(&modules, wheel, environment)?;
        Ok(Run { outcomes, modules: modules.len() })
    }

    /// The same tests have to have the same outcomes.
    fn judge(&self, made: &Made, before: &Run, after: &Run) -> Result<Outcome> {
        let passed = counts(&before.outcomes).get("passed").copied().unwrap_or_default();
        if passed < self.passed_without_gpu {
            return Err(Failure::failed(format!(
                "{passed} tests of {} pass before anything is replaced, and {} did",
                self.release, self.passed_without_gpu
            ))
            .remedy("the environment lacks something: pytest.log says what")
            .into());
        }
        let differences = differences(&before.outcomes, &after.outcomes);
        let mut text = format!("tests        {} of {}\n", self.tests, self.release);
        let _ = writeln!(text, "overlay      {}", made.report.file);
        let _ = writeln!(text, "outcome      released  overlay");
        let (old, new) = (counts(&before.outcomes), counts(&after.outcomes));
        let mut kinds: Vec<&str> = old.keys().chain(new.keys()).copied().collect();
        kinds.sort_unstable();
        kinds.dedup();
        for kind in kinds {
            let count = |counts: &BTreeMap<&str, usize>| counts.get(kind).copied().unwrap_or_default();
            let _ = writeln!(text, "  {kind:13} {:5}  {:7}", count(&old), count(&new));
        }
        let _ = writeln!(text, "modules      {} and {} loaded, every one the wheel's", before.modules, after.modules);
        let _ = writeln!(text, "differences  {}", if differences.is_empty() { "none" } else { "" });
        for difference in &differences {
            let _ = writeln!(text, "  {difference}");
        }
        let json = json!({
            "release": self.release,
            "overlay": made.report.file,
            "released_counts": old,
            "overlay_counts": new,
            "differences": differences,
        });
        Ok(Outcome { text, json, succeeded: differences.is_empty() })
    }
}

/// Every native module that a process loaded, and every file that stands for one, has to be the wheel's.
fn check_loaded(modules: &[LoadedModule], wheel: &Path, environment: &FreshEnvironment) -> Result<()> {
    let opened = Wheel::open(wheel).map_err(inspection::unreadable)?;
    let site_packages = environment.site_packages()?;
    let resolved = std::fs::canonicalize(&site_packages)?;
    let is_of_wheel = |module: &LoadedModule| {
        let inside = module.file.strip_prefix(&site_packages).or_else(|_| module.file.strip_prefix(&resolved));
        let recorded =
            inside.ok().and_then(|path| opened.entry(path.to_str()?)).map(|entry| entry.sha256().to_string());
        recorded.as_ref() == Some(&module.sha256)
    };
    let strangers = modules.iter().filter(|module| !is_of_wheel(module));
    let strangers: Vec<String> =
        strangers.map(|module| format!("{} was loaded from {}", module.name, module.file.display())).collect();
    if strangers.is_empty() && !modules.is_empty() {
        return Ok(());
    }
    Err(Failure::failed(format!("the tests did not run with the native modules of {}", opened.file_name()))
        .details(strangers)
        .remedy("another copy of the package is installed, or nothing of it was imported")
        .into())
}

fn counts(outcomes: &BTreeMap<String, String>) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for outcome in outcomes.values() {
        *counts.entry(outcome.as_str()).or_default() += 1;
    }
    counts
}

fn differences(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> Vec<String> {
    let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
    names.sort();
    names.dedup();
    let outcome = |outcomes: &BTreeMap<String, String>, name: &str| {
        outcomes.get(name).map_or_else(|| "absent".to_owned(), Clone::clone)
    };
    names
        .into_iter()
        .map(|name| (name, outcome(before, name), outcome(after, name)))
        .filter(|(_, before, after)| before != after)
        .map(|(name, before, after)| format!("{name}: {before}, then {after}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_named_test_by_test() {
        let outcomes = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(name, outcome)| ((*name).to_owned(), (*outcome).to_owned())).collect::<BTreeMap<_, _>>()
        };
        let before = outcomes(&[("a", "passed"), ("b", "failed"), ("c", "passed")]);
        let after = outcomes(&[("a", "passed"), ("b", "passed"), ("d", "passed")]);
        assert_eq!(
            differences(&before, &after),
            ["b: failed, then passed", "c: passed, then absent", "d: absent, then passed"]
        );
        assert_eq!(counts(&before), BTreeMap::from([("failed", 1), ("passed", 2)]));
    }
}
