//! The proof that a wheel works: installed in a fresh environment, imported from a neutral directory, and every file
//! that was loaded is the wheel's, by content.
//!
//! Not for running tests: see [`crate::commands::test`], which keeps up the same proof while they run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use cuwheel_inspect::wheel::{ExtensionModule, Wheel};
use fs_err as fs;
use serde::{Deserialize, Serialize};

use crate::cache::Cache;
use crate::environment::FreshEnvironment;
use crate::error::{Failure, Result};
use crate::files;
use crate::interpreter::Interpreter;
use crate::output::Output;
use crate::process::Process;
use crate::requirements::Lock;
use crate::uv::Uv;

/// An import that takes longer hangs.
const DEADLINE: Duration = Duration::from_mins(5);

const SCRIPT: &str = include_str!("python/prove_import.py");

/// What is imported in an environment.
#[derive(Debug, Default, Serialize)]
pub struct Imports {
    /// Modules to import.
    pub names: Vec<String>,
    /// Packages whose own code must not run, outermost first.
    pub bare: Vec<String>,
    /// The directory of a package that `names` import under a name of their choice. Only its modules are judged then.
    pub package: Option<PathBuf>,
    /// Modules of that package to import.
    pub modules: Vec<String>,
}

/// What was loaded, and is the wheel's.
#[derive(Deserialize)]
pub struct Report {
    failures: Vec<ImportFailure>,
    modules: Vec<Loaded>,
    gil_was_enabled: bool,
}

#[derive(Deserialize)]
struct ImportFailure {
    name: String,
    traceback: String,
}

#[derive(Deserialize)]
struct Loaded {
    name: String,
    file: Option<String>,
    sha256: Option<String>,
    capsules: BTreeMap<String, Option<String>>,
}

impl Report {
    /// How many modules were loaded.
    pub fn count(&self) -> usize {
        self.modules.len()
    }

    /// Every loaded module that has a file: its name, the file, and the hash of that.
    pub fn files(&self) -> impl Iterator<Item = (&str, &Path, Option<&str>)> {
        self.modules.iter().filter_map(|loaded| {
            Some((loaded.name.as_str(), Path::new(loaded.file.as_deref()?), loaded.sha256.as_deref()))
        })
    }

    /// The loaded modules of a file.
    pub fn modules_of<'a>(&'a self, path: &'a Path) -> impl Iterator<Item = &'a str> {
        let same = move |file: &str| files::is_same(Path::new(file), path);
        self.modules.iter().filter(move |module| module.file.as_deref().is_some_and(same)).map(|module| &*module.name)
    }

    /// Capsules that `PyCapsule_Import` does not find: those whose name is not where they are.
    pub fn misnamed_capsules(&self) -> Vec<String> {
        let of_module = |module: &'_ Loaded| -> Vec<String> {
            let expected = |attribute: &str| format!("{}.{attribute}", module.name);
            let wrong = module.capsules.iter().filter(|(attribute, name)| **name != Some(expected(attribute)));
            wrong
                .map(|(attribute, name)| {
                    format!("{} is called {}", expected(attribute), name.as_deref().unwrap_or("nothing"))
                })
                .collect()
        };
        self.modules.iter().flat_map(of_module).collect()
    }
}

/// The modules that prove a wheel: its packages, its extension modules and those that the settings name.
pub fn modules_to_import(wheel: &Wheel, declared: &[String]) -> Vec<String> {
    let mut modules: BTreeSet<String> = declared.iter().cloned().collect();
    for entry in wheel.entries() {
        if let Some(package) = entry.path().strip_suffix("/__init__.py").filter(|package| !package.contains('/')) {
            modules.insert(package.to_owned());
        }
    }
    modules.extend(wheel.extension_modules().into_iter().map(|module| module.module().to_owned()));
    modules.into_iter().collect()
}

/// The modules that anyone who installs a wheel can be expected to import: its top-level packages and modules. What lies
/// deeper may need what this machine lacks.
pub fn top_level_modules(wheel: &Wheel) -> Vec<String> {
    let mut modules = BTreeSet::new();
    for entry in wheel.entries() {
        let path = entry.path();
        let name = path.strip_suffix("/__init__.py").or_else(|| path.strip_suffix(".py"));
        modules.extend(name.filter(|name| !name.contains(['/', '.'])).map(str::to_owned));
    }
    let extensions = wheel.extension_modules();
    modules
        .extend(extensions.iter().map(ExtensionModule::module).filter(|name| !name.contains('.')).map(str::to_owned));
    modules.into_iter().collect()
}

/// Where the packages come from that a wheel requires.
#[derive(Clone, Copy, Debug)]
pub enum Dependencies<'a> {
    /// There are none.
    None,
    /// From a lock.
    Locked(&'a Lock),
    /// From the index and from directories with wheels, whatever fits.
    Resolved(&'a [&'a Path]),
}

/// Installs the wheel at `path`, which was read as `wheel`, and imports `modules`. The number of loaded modules is
/// returned.
pub fn prove_import(
    path: &Path,
    wheel: &Wheel,
    modules: &[String],
    (cache, interpreter, uv): (&Cache, &Interpreter, &Uv),
    dependencies: Dependencies<'_>,
    output: &Output,
) -> Result<usize> {
    output.step("prove", &format!("{} on {interpreter}", modules.join(", ")));
    let environment = FreshEnvironment::create(cache, interpreter, uv)?;
    match dependencies {
        Dependencies::None => uv.install_wheel(&environment.path(), path)?,
        Dependencies::Locked(lock) => {
            uv.sync(&environment.path(), &lock.path)?;
            uv.install_wheel(&environment.path(), path)?;
        }
        Dependencies::Resolved(directories) => {
            uv.install_with_dependencies(&environment.path(), path, directories, &[])?;
        }
    }
    let imports = Imports { names: modules.to_vec(), ..Imports::default() };
    Ok(import(&environment, interpreter, &imports, wheel)?.count())
}

/// Imports in an environment that `wheel` is installed in, and checks that every file that was loaded is the wheel's.
pub fn import(
    environment: &FreshEnvironment,
    interpreter: &Interpreter,
    imports: &Imports,
    wheel: &Wheel,
) -> Result<Report> {
    let report = run(environment.isolated_python(), interpreter, imports, &environment.beside(""), wheel.file_name())?;
    let site_packages = environment.site_packages()?;
    // The interpreter may know the environment by another name: a temporary directory can be a link.
    let resolved = files::resolved(&site_packages);
    judge(&report, wheel.file_name(), &|_, file, sha256| {
        let inside = file.strip_prefix(&site_packages).or_else(|_| file.strip_prefix(&resolved));
        let recorded = inside.ok().and_then(|path| wheel.entry(path.to_str()?)).map(|entry| entry.sha256().to_string());
        recorded.is_some() && recorded.as_deref() == sha256
    })?;
    Ok(report)
}

/// Imports in a process of Python, with files in `scratch`. `subject` is what the modules are of, in messages.
pub fn run(
    process: Process,
    interpreter: &Interpreter,
    imports: &Imports,
    scratch: &Path,
    subject: &str,
) -> Result<Report> {
    // What Python caches is nothing that a wheel brings or that uninstalling removes.
    let mut process = process.arg("-B");
    if interpreter.gil_disabled {
        // A module that turns the lock on again says so with this warning only.
        process = process.args(["-W", "error:The global interpreter lock:RuntimeWarning"]);
    }
    let (plan, report) = (scratch.join("plan.json"), scratch.join("report.json"));
    let mut text = serde_json::to_value(imports)?;
    text["report"] = serde_json::to_value(&report)?;
    fs::write(&plan, text.to_string())?;
    let finished = process.args(["-c", SCRIPT]).arg(&plan).deadline(DEADLINE).capture()?;
    let Ok(report) = std::fs::read_to_string(&report) else {
        let remedy = if finished.status.success() {
            "a module that ends the process while it is imported cannot be used: find who calls os._exit"
        } else {
            "a crash while importing is a bug in a native module: run the import under a debugger"
        };
        return Err(Failure::failed(format!("importing {subject} ended Python with {}", finished.status))
            .details(finished.tail(20))
            .remedy(remedy)
            .into());
    };
    serde_json::from_str(&report).context("reading the report of the import")
}

/// Says of a loaded module whether its file, which has a hash, is one that it may be loaded from.
pub type IsExpected<'a> = dyn Fn(&str, &Path, Option<&str>) -> bool + 'a;

/// Refuses failures, and modules from other files than the subject's.
pub fn judge(report: &Report, subject: &str, is_expected: &IsExpected<'_>) -> Result<()> {
    if !report.failures.is_empty() {
        let names: Vec<&str> = report.failures.iter().map(|failure| failure.name.as_str()).collect();
        return Err(Failure::failed(format!("{subject} does not import: {}", names.join(", ")))
            .details(report.failures.iter().map(|failure| failure.traceback.clone()))
            .remedy(
                "a wheel must import in an environment that holds it and its dependencies, on a machine without a GPU",
            )
            .into());
    }
    if report.gil_was_enabled {
        return Err(Failure::failed(format!("importing {subject} turned the global interpreter lock on"))
            .remedy("declare every native module as not needing it: #[pymodule(gil_used = false)]")
            .into());
    }
    let is_stranger = |(name, file, sha256): &(&str, &Path, Option<&str>)| !is_expected(name, file, *sha256);
    let strangers: Vec<String> = report
        .files()
        .filter(is_stranger)
        .map(|(name, file, _)| format!("{name} was loaded from {}", file.display()))
        .collect();
    if strangers.is_empty() {
        return Ok(());
    }
    Err(Failure::failed(format!("modules were loaded that are not those of {subject}"))
        .details(strangers)
        .remedy("another file wins the import: remove it from the package, or from what its import hooks search")
        .into())
}
