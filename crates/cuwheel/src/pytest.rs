//! One run of pytest against an installed wheel: staged outside of the tree, watched, and proven.
//!
//! Not for choosing wheels, interpreters and variants: see [`crate::commands::test`].

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant, SystemTime};

use cuwheel_inspect::wheel::Wheel;
use fs_err as fs;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::env_vars;
use crate::environment::FreshEnvironment;
use crate::error::{Failure, Result};
use crate::files;
use crate::output::Output;
use crate::process::{self, Watch};
use crate::project::Project;
use crate::test_libraries;

/// The plugin that proves that the tests ran against the wheel.
pub const PLUGIN: &str = include_str!("python/_cuwheel_proof.py");
/// Its import name.
pub const PLUGIN_NAME: &str = "_cuwheel_proof";

/// What configures pytest at the root of a project.
const CONFIGURATION: &[&str] = &[
    "conftest.py",
    "pytest.toml",
    ".pytest.toml",
    "pytest.ini",
    ".pytest.ini",
    "pyproject.toml",
    "tox.ini",
    "setup.cfg",
];

/// How often the watcher looks at the files of the run.
const WATCH_INTERVAL: Duration = Duration::from_millis(200);

/// What is run.
#[derive(Debug)]
pub struct Run<'a> {
    /// Whose tests.
    pub project: &'a Project,
    /// The wheel under test, as it was read.
    pub wheel: &'a Wheel,
    /// Where it is installed.
    pub environment: &'a FreshEnvironment,
    /// Shared libraries that the tests load.
    pub libraries: &'a [PathBuf],
    /// Arguments for pytest.
    pub arguments: &'a [String],
    /// Where to write a JUnit report, absolute.
    pub junit: Option<&'a Path>,
    /// How long one test may take.
    pub timeout: Duration,
    /// How long the run may take.
    pub total_timeout: Duration,
}

/// How many tests ended how.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
pub struct Counts {
    /// Tests that passed.
    pub passed: u64,
    /// Tests that failed.
    pub failed: u64,
    /// Tests that were skipped.
    pub skipped: u64,
    /// Tests that failed as they were expected to.
    pub xfailed: u64,
    /// Tests that passed and were expected to fail.
    pub xpassed: u64,
    /// Test files that could not be collected.
    pub errors: u64,
}

impl Counts {
    /// Tests that ran.
    pub const fn executed(&self) -> u64 {
        self.passed + self.failed + self.xfailed + self.xpassed
    }
}

/// A run that ended, of the wheel.
#[derive(Clone, Copy, Debug)]
pub struct Proven {
    /// The outcomes.
    pub counts: Counts,
    /// How many modules of the wheel were loaded by the tests.
    pub modules: u64,
    /// Whether pytest was content.
    pub succeeded: bool,
}

#[derive(Deserialize)]
struct Violation {
    problems: Vec<String>,
}

#[derive(Deserialize)]
struct ProcessProof {
    moment: String,
    modules: u64,
}

enum Ending {
    Violated,
    TestTimedOut(String),
    RunTimedOut,
}

impl Run<'_> {
    /// Copies the tests out of the tree, runs them and judges what the plugin reports.
    pub fn execute(&self, output: &Output) -> Result<Proven> {
        let stage = self.environment.beside("tests");
        stage_tests(self.project, &self.project.settings.test.paths, &stage)?;
        let reports = self.environment.beside("proof");
        fs::create_dir(&reports)?;
        let expectation = reports.join("expected.json");
        fs::write(&expectation, self.expectation()?.to_string())?;
        fs::write(self.environment.site_packages()?.join(format!("{PLUGIN_NAME}.py")), PLUGIN)?;

        let mut process = self
            .environment
            .isolated_python()
            .directory(&stage)
            .env(env_vars::CUWHEEL_PROOF.name, &expectation)
            .args(["-m", "pytest", "-p", PLUGIN_NAME, "--rootdir"])
            .arg(&stage)
            .args(["-o", &format!("faulthandler_timeout={}", self.timeout.as_secs_f64() * 0.9)])
            .args(&self.project.settings.test.pytest_args);
        if let Some(path) = self.library_path()? {
            process = process.env(env_vars::LD_LIBRARY_PATH.name, path);
        }
        if let Some(junit) = self.junit {
            process = process.arg("--junitxml").arg(junit);
        }
        if output.is_quiet() {
            process = process.arg("-q");
        }
        let (arguments, has_paths) = arguments_in(self.project, self.arguments, &stage)?;
        // Paths of the user's replace those of the settings, as they do for pytest.
        if !has_paths {
            process = process.args(&self.project.settings.test.paths);
        }
        process = process.args(arguments);

        let mut watcher = Watcher::new(&reports, self.timeout, self.total_timeout);
        let status = process.attached(output.is_json(), &mut || watcher.look())?;
        judge(&reports, status, watcher.ending)
    }

    /// Where the loader finds the libraries of the tests, and then what it would have found.
    fn library_path(&self) -> Result<Option<OsString>> {
        if self.libraries.is_empty() {
            return Ok(None);
        }
        let directory = self.environment.beside("libraries");
        test_libraries::lay_out(self.libraries, &directory)?;
        let mut path = directory.into_os_string();
        if let Some(others) = env_vars::LD_LIBRARY_PATH.get() {
            path.push(":");
            path.push(others);
        }
        Ok(Some(path))
    }

    /// What the plugin compares with.
    fn expectation(&self) -> Result<serde_json::Value> {
        let mut expectation = expectation_of(self.wheel);
        expectation["site_packages"] = json!(self.environment.site_packages()?);
        Ok(expectation)
    }
}

/// The user's arguments, with paths of tests in the tree turned into those of their copies, and whether there are any.
pub fn arguments_in(project: &Project, given: &[String], stage: &Path) -> Result<(Vec<String>, bool)> {
    let (mut arguments, mut has_paths) = (Vec::new(), false);
    let mut after_option = false;
    for argument in given {
        let (path, rest) =
            argument.split_once("::").map_or((argument.as_str(), None), |(path, rest)| (path, Some(rest)));
        // After an option a bare word is its value, such as the expression of -k.
        let may_be_path = !argument.starts_with('-') && (!after_option || path.contains('/') || is_importable(path));
        let copy = if may_be_path { inside(project, path, stage)? } else { None };
        has_paths |= copy.is_some();
        arguments.push(match (copy, rest) {
            (Some(copy), Some(rest)) => format!("{}::{rest}", copy.display()),
            (Some(copy), None) => copy.display().to_string(),
            (None, _) => argument.clone(),
        });
        after_option = argument.starts_with('-') && !argument.contains('=');
    }
    Ok((arguments, has_paths))
}

/// The path inside the project of what was copied, named from the working directory or from the project.
fn inside(project: &Project, path: &str, stage: &Path) -> Result<Option<PathBuf>> {
    let named = [files::absolute(Path::new(path))?, project.root.join(path)];
    let inside = named.iter().filter_map(|named| named.strip_prefix(&project.root).ok());
    Ok(inside.map(Path::to_path_buf).find(|inside| stage.join(inside).exists()))
}

/// Copies tests of a project and pytest's configuration into the new directory `stage`.
pub fn stage_tests(project: &Project, paths: &[String], stage: &Path) -> Result<()> {
    fs::create_dir(stage)?;
    let root = &project.root;
    for path in paths {
        let (source, target) = (root.join(path), stage.join(path));
        if source.is_dir() {
            files::copy_tree(&source, &target)?;
        } else {
            fs::create_dir_all(target.parent().unwrap_or(stage))?;
            fs::copy(&source, &target)?;
        }
    }
    for name in CONFIGURATION {
        let source = root.join(name);
        if source.is_file() && !stage.join(name).exists() {
            fs::copy(source, stage.join(name))?;
        }
    }
    Ok(())
}

/// What the plugin compares with, but for where it is installed: hashes from the wheel itself, not from what an installer
/// wrote.
pub fn expectation_of(wheel: &Wheel) -> serde_json::Value {
    let record = format!("{}/RECORD", wheel.dist_info());
    let data = format!("{}.data/", wheel.dist_info().trim_end_matches(".dist-info"));
    let installed: BTreeMap<&str, String> = wheel
        .entries()
        .iter()
        .filter(|entry| entry.path() != record && !entry.path().starts_with(&data) && !entry.is_directory())
        .map(|entry| (entry.path(), entry.sha256().to_string()))
        .collect();
    let mut packages: Vec<&str> = installed.keys().filter_map(|path| top_level(path)).collect();
    packages.dedup();
    json!({ "files": installed, "packages": packages })
}

/// The import name that a file of a wheel belongs to, if it can be imported at all.
fn top_level(path: &str) -> Option<&str> {
    match path.split_once('/') {
        Some((directory, _)) if directory.contains('.') => None,
        Some((directory, rest)) => (is_importable(rest)).then_some(directory),
        None if is_importable(path) => path.split('.').next(),
        None => None,
    }
}

fn is_importable(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension == "py" || extension == "so")
}

/// Looks at what the plugin writes while pytest runs, and decides when the run has to end.
struct Watcher<'a> {
    reports: &'a Path,
    timeout: Duration,
    total_timeout: Duration,
    started: Instant,
    looked: Instant,
    /// When each process was first seen with the test that it still runs. The clock of the files may jump.
    running: BTreeMap<String, (SystemTime, Instant)>,
    ending: Option<Ending>,
}

impl<'a> Watcher<'a> {
    fn new(reports: &'a Path, timeout: Duration, total_timeout: Duration) -> Self {
        let now = Instant::now();
        Self { reports, timeout, total_timeout, started: now, looked: now, running: BTreeMap::new(), ending: None }
    }

    fn look(&mut self) -> Watch {
        if self.looked.elapsed() < WATCH_INTERVAL {
            return Watch::Continue;
        }
        self.looked = Instant::now();
        self.ending = self.reason_to_end();
        if self.ending.is_some() { Watch::Stop } else { Watch::Continue }
    }

    fn reason_to_end(&mut self) -> Option<Ending> {
        if self.started.elapsed() > self.total_timeout {
            return Some(Ending::RunTimedOut);
        }
        for entry in std::fs::read_dir(self.reports).ok()?.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with("violation-") {
                return Some(Ending::Violated);
            }
            let Some(process) = name.strip_prefix("running-") else { continue };
            let Ok(since) = entry.metadata().and_then(|data| data.modified()) else { continue };
            let seen = self.running.entry(process.to_owned()).or_insert((since, self.looked));
            if seen.0 != since {
                *seen = (since, self.looked);
            }
            // A worker that crashed leaves its note behind, and xdist replaces it.
            if seen.1.elapsed() > self.timeout && process::is_alive(process) {
                return Some(Ending::TestTimedOut(std::fs::read_to_string(entry.path()).unwrap_or_default()));
            }
        }
        None
    }
}

fn judge(reports: &Path, status: Option<ExitStatus>, ending: Option<Ending>) -> Result<Proven> {
    let violations: Vec<Violation> = read_all(reports, "violation-")?;
    if !violations.is_empty() {
        let mut problems: Vec<String> = violations.into_iter().flat_map(|violation| violation.problems).collect();
        problems.sort();
        problems.dedup();
        return Err(Failure::failed("the tests did not run against the installed wheel")
            .details(problems)
            .remedy("remove what puts another copy of the package before the installed one, or what replaces it")
            .into());
    }
    match ending {
        Some(Ending::TestTimedOut(test)) => {
            return Err(Failure::failed(format!("{test} took longer than a test may; the run was ended"))
                .remedy("make it faster, or raise tool.cuwheel.test.timeout-s or --timeout")
                .into());
        }
        Some(Ending::RunTimedOut) => {
            return Err(Failure::failed("the tests took longer than a run may; it was ended")
                .remedy("raise tool.cuwheel.test.total-timeout-s or --total-timeout")
                .into());
        }
        Some(Ending::Violated) | None => {}
    }
    let status = status.ok_or_else(|| Failure::failed("the tests were ended"))?;
    let proofs: Vec<ProcessProof> = read_all(reports, "proof-")?;
    let counts = match fs::read(reports.join("counts.json")) {
        Ok(counts) => serde_json::from_slice(&counts)?,
        Err(_) => return Err(explain_early_end(status, &proofs).into()),
    };
    // A worker that crashed proves nothing in the end, but then pytest is not content either.
    let proven_to_the_end = |proof: &ProcessProof| proof.moment == "end";
    if status.success() && !proofs.iter().all(proven_to_the_end) {
        return Err(Failure::failed("a process of the run did not prove in the end that it tested the wheel").into());
    }
    let modules = proofs.iter().map(|proof| proof.modules).max().unwrap_or(0);
    Ok(Proven { counts, modules, succeeded: status.success() })
}

/// Why pytest ended before it could count: exit codes are those of pytest's documentation.
fn explain_early_end(status: ExitStatus, proofs: &[ProcessProof]) -> Failure {
    match status.code() {
        None | Some(128..) => Failure::failed(format!("pytest crashed: {status}"))
            .remedy("a crash in a test is a bug in a native module: run that test under a debugger"),
        Some(4) => Failure::usage("pytest refused its arguments or its configuration; it says why above").remedy(
            "mend the arguments after --, tool.cuwheel.test.pytest-args, pytest's configuration or a conftest.py",
        ),
        Some(_) if proofs.is_empty() => Failure::failed("no process of the run proved that it tested the wheel")
            .remedy("the plugin _cuwheel_proof must not be disabled"),
        Some(code) => {
            Failure::failed(format!("pytest ended with exit code {code} before the tests did; it says why above"))
                .remedy("mend the plugin, the configuration or the conftest.py that pytest names")
        }
    }
}

fn read_all<T: for<'de> Deserialize<'de>>(directory: &Path, prefix: &str) -> Result<Vec<T>> {
    let mut documents = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(prefix) {
            documents.push(serde_json::from_slice(&fs::read(entry.path())?)?);
        }
    }
    Ok(documents)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn import_names_are_those_of_packages_and_modules() {
        let cases = [
            ("pkg/__init__.py", Some("pkg")),
            ("pkg/inner/x.abi3.so", Some("pkg")),
            ("pkg/data.txt", None),
            ("single.py", Some("single")),
            ("_native.cpython-312-x86_64-linux-gnu.so", Some("_native")),
            ("pkg-1.0.dist-info/licenses/setup.py", None),
            ("redirector.pth", None),
        ];
        for (path, expected) in cases {
            assert_eq!(top_level(path), expected, "{path}");
        }
    }
}
