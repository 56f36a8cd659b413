//! `check-wheel`: inspects any wheel, from anywhere, by named rules.
//!
//! Nothing is installed and nothing of the wheel is run unless `--import` asks for it. A project is not needed; the
//! settings of one that is found are used.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use cuwheel_inspect::rules::{
    self, DeclaredArchitecture, ExaminedWheel, Finding, InstalledLibraries, ListedWheel, Policy, RuleSelector,
};
use cuwheel_inspect::wheel::{Wheel, WheelName, normalize_distribution};
use serde_json::{Value, json};

use crate::byte_size;
use crate::cache::Cache;
use crate::cli::{Common, Outcome};
use crate::error::{self, Failure, FailureKind, Result};
use crate::files::{self, human_size};
use crate::findings::{self, Counts};
use crate::html_report;
use crate::inspection;
use crate::interpreter::{self, Request};
use crate::output::Output;
use crate::process::check_interrupted;
use crate::project::{self, Declared};
use crate::proof::{self, Dependencies};
use crate::sarif;
use crate::uv::Uv;
use crate::wheel_check::{self, WheelCheck};

/// The arguments of `check-wheel`.
#[derive(clap::Args, Clone, Debug)]
pub struct Arguments {
    /// What every command takes.
    #[command(flatten)]
    pub common: Common,
    /// Wheels, or directories with wheels
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<PathBuf>,
    /// Make breaches of this rule, or of a group such as `archive/`, errors; repeatable
    #[arg(long, value_name = "RULE", value_parser = wheel_check::parse_selector)]
    pub deny: Vec<RuleSelector>,
    /// Do not report breaches of this rule or group; repeatable
    #[arg(long, value_name = "RULE", value_parser = wheel_check::parse_selector)]
    pub allow: Vec<RuleSelector>,
    /// The most that a wheel may have, such as 100MB
    #[arg(long, value_name = "SIZE", value_parser = byte_size::parse)]
    pub budget: Option<u64>,
    /// Write the findings as SARIF to this file, for code scanning
    #[arg(long, value_name = "FILE")]
    pub sarif: Option<PathBuf>,
    /// Write a page with the findings and treemaps of the sizes to this file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Install each wheel in a fresh environment, with what it requires, and import its top-level modules
    #[arg(long)]
    pub import: bool,
    /// With --import: the interpreter, as a path or a version such as 3.12
    #[arg(long, value_name = "PYTHON", requires = "import")]
    pub python: Option<Request>,
    /// A wheel that the checked ones may require, or a directory with such; it is only looked into; repeatable
    #[arg(long = "with", value_name = "PATH")]
    pub dependencies: Vec<PathBuf>,
    /// GPU code that every file with some has to hold, such as 90, 90a or 90+PTX; repeatable
    #[arg(long = "architecture", value_name = "ARCHITECTURE")]
    pub architectures: Vec<DeclaredArchitecture>,
}

/// Which wheels are checked, and by what.
#[derive(Debug)]
pub struct Plan {
    places: Vec<Place>,
    dependencies: Vec<PathBuf>,
    policy: Policy,
    budget_bytes: Option<u64>,
    project: Option<Declared>,
    arguments: Arguments,
}

/// Wheels in one directory.
#[derive(Debug)]
struct Place {
    wheels: Vec<PathBuf>,
    manifest: Option<Manifest>,
}

/// A manifest that lies beside wheels.
#[derive(Debug)]
struct Manifest {
    path: PathBuf,
    wheels: Vec<ListedWheel>,
    /// Whether the whole directory is checked, so that wheels may be missed.
    is_complete: bool,
}

/// Runs the command.
pub fn execute(arguments: &Arguments, output: &Output) -> Result<Outcome> {
    let plan = Plan::new(arguments)?;
    if arguments.common.dry_run {
        return Ok(Outcome::done(plan.render(), plan.to_json()));
    }
    plan.run(output)
}

impl Plan {
    /// Finds the wheels and the settings.
    pub fn new(arguments: &Arguments) -> Result<Self> {
        let project = project::declared_near(&arguments.common.project)?;
        let mut policy = Policy::default();
        let mut budget_bytes = arguments.budget;
        if let Some(declared) = &project {
            policy = wheel_check::policy(&declared.settings.check);
            budget_bytes = budget_bytes.or(declared.settings.check.budget_bytes);
        }
        policy = policy.with(arguments.deny.clone(), arguments.allow.clone()).with_budget(budget_bytes);
        let mut places = Vec::new();
        for path in &arguments.paths {
            let place = Place::find(path)?;
            if !places.iter().any(|other: &Place| other.wheels == place.wheels) {
                places.push(place);
            }
        }
        let mut dependencies = Vec::new();
        for path in &arguments.dependencies {
            dependencies.extend(Place::find(path)?.wheels);
        }
        Ok(Self { places, dependencies, policy, budget_bytes, project, arguments: arguments.clone() })
    }

    fn wheels(&self) -> impl Iterator<Item = &PathBuf> {
        self.places.iter().flat_map(|place| &place.wheels)
    }

    /// The plan as a person reads it.
    pub fn render(&self) -> String {
        let mut text = String::new();
        for place in &self.places {
            for wheel in &place.wheels {
                let _ = writeln!(text, "wheel     {}", wheel.display());
            }
            if let Some(manifest) = &place.manifest {
                let _ = writeln!(text, "manifest  {}", manifest.path.display());
            }
        }
        if let Some(declared) = &self.project {
            let _ = writeln!(text, "settings  {}", declared.path.display());
        }
        for wheel in &self.dependencies {
            let _ = writeln!(text, "with      {}", wheel.display());
        }
        for (name, selectors) in [("deny", &self.arguments.deny), ("allow", &self.arguments.allow)] {
            for selector in selectors {
                let _ = writeln!(text, "{name:9} {}", selector.as_str());
            }
        }
        for architecture in &self.arguments.architectures {
            let _ = writeln!(text, "GPU code  {}", architecture.as_str());
        }
        if let Some(budget) = self.budget_bytes {
            let _ = writeln!(text, "budget    {}", human_size(budget));
        }
        text
    }

    /// The plan for machines.
    pub fn to_json(&self) -> Value {
        let names = |selectors: &[RuleSelector]| -> Value { selectors.iter().map(RuleSelector::as_str).collect() };
        json!({ "plan": {
            "wheels": self.wheels().collect::<Vec<_>>(),
            "with": self.dependencies,
            "settings": self.project.as_ref().map(|declared| &declared.path),
            "deny": names(&self.arguments.deny),
            "allow": names(&self.arguments.allow),
            "budget_bytes": self.budget_bytes,
            "architectures": self.arguments.architectures.iter().map(DeclaredArchitecture::as_str).collect::<Vec<_>>(),
        }})
    }

    /// Checks every wheel, then all of them together.
    pub fn run(&self, output: &Output) -> Result<Outcome> {
        let dependencies = self.read_dependencies(output)?;
        let (mut checks, mut installed, mut together) = (Vec::new(), Vec::new(), Vec::new());
        for place in &self.places {
            let mut found = Vec::new();
            for path in &place.wheels {
                check_interrupted()?;
                output.step("check", &path.display().to_string());
                let policy = self.policy_for(path, &dependencies);
                let (mut check, files) = WheelCheck::of_file(path, &policy)?;
                if self.arguments.import && check.is_readable() {
                    check.add(self.import(path, output)?, &policy);
                }
                found.push(ListedWheel { file: check.file(), sha256: check.sha256().to_owned() });
                installed.extend(files);
                checks.push(check);
            }
            if let Some(manifest) = &place.manifest {
                together.extend(rules::check_manifest(&manifest.wheels, &found, manifest.is_complete, &self.policy));
            }
        }
        together.extend(rules::check_set(&installed, &self.policy));
        self.write_reports(&checks, &together)?;
        Ok(self.outcome(&checks, &together))
    }

    fn write_reports(&self, checks: &[WheelCheck], together: &[Finding]) -> Result<()> {
        if let Some(path) = &self.arguments.sarif {
            let document = sarif::document(checks, together, &files::absolute(Path::new("."))?);
            files::write_atomically(&files::absolute(path)?, format!("{document:#}\n").as_bytes())?;
        }
        if let Some(path) = &self.arguments.html {
            files::write_atomically(&files::absolute(path)?, html_report::page(checks, together).as_bytes())?;
        }
        Ok(())
    }

    /// What went wrong when the wheel at `path` was imported.
    fn import(&self, path: &Path, output: &Output) -> Result<Option<String>> {
        let wheel = Wheel::open(path).map_err(inspection::unreadable)?;
        let mut modules = proof::top_level_modules(&wheel);
        modules.extend(self.own(path).map_or_else(Vec::new, |declared| declared.settings.modules.clone()));
        let interpreter = interpreter::find(self.arguments.python.as_ref(), output)?;
        let cache = Cache::locate()?;
        let uv = Uv::find(&interpreter, &cache, Path::new("."), self.arguments.common.offline, output)?;
        let directories: Vec<&Path> = self.dependencies.iter().filter_map(|wheel| wheel.parent()).collect();
        let dependencies = Dependencies::Resolved(&directories);
        let machine = (&cache, &interpreter, &uv);
        match proof::prove_import(path, &wheel, &modules, machine, dependencies, output) {
            Ok(_) => Ok(None),
            Err(error) if error::kind_of(&error) == FailureKind::Failed => Ok(Some(in_one_line(&error))),
            Err(error) => Err(error),
        }
    }

    fn read_dependencies(&self, output: &Output) -> Result<Vec<InstalledLibraries>> {
        let mut libraries = Vec::new();
        for path in &self.dependencies {
            check_interrupted()?;
            output.step("read", &path.display().to_string());
            libraries.push(InstalledLibraries::of(&ExaminedWheel::open(path).map_err(inspection::unreadable)?));
        }
        Ok(libraries)
    }

    /// The settings name modules and architectures of the project's own wheels only.
    fn policy_for(&self, path: &Path, dependencies: &[InstalledLibraries]) -> Policy {
        let (modules, mut architectures) = self.own(path).map_or_else(Default::default, |declared| {
            (declared.settings.modules.clone(), declared.settings.check.architectures.clone())
        });
        if !self.arguments.architectures.is_empty() {
            architectures.clone_from(&self.arguments.architectures);
        }
        let policy = self.policy.clone().with_dependencies(dependencies.to_vec());
        policy.with_modules(modules).with_architectures(&architectures)
    }

    /// The project, if the wheel at `path` is its own.
    fn own(&self, path: &Path) -> Option<&Declared> {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let name: Option<WheelName> = file.parse().ok();
        self.project.as_ref().filter(|declared| {
            let project = declared.name.as_deref().map(normalize_distribution);
            project.is_some() && project == name.map(|name| normalize_distribution(name.distribution()))
        })
    }

    fn outcome(&self, checks: &[WheelCheck], together: &[Finding]) -> Outcome {
        let verbose = self.arguments.common.verbose;
        let mut parts: Vec<String> = checks.iter().map(|check| check.render(verbose)).collect();
        if !together.is_empty() {
            let heading = format!("together     {}\n", Counts::of(together).describe());
            parts.push(heading + &findings::render(together, verbose));
        }
        let counts = Counts::of(checks.iter().flat_map(WheelCheck::findings).chain(together));
        if checks.len() > 1 {
            parts.push(format!("{} wheels: {}\n", checks.len(), counts.describe()));
        }
        let json = json!({
            "wheels": checks.iter().map(WheelCheck::to_json).collect::<Vec<_>>(),
            "set_findings": findings::to_json(together),
            "counts": { "errors": counts.errors, "warnings": counts.warnings, "notes": counts.notes },
        });
        Outcome { text: parts.join("\n"), json, succeeded: counts.errors == 0 }
    }
}

/// The failure of an import, with the last line of each traceback.
fn in_one_line(error: &anyhow::Error) -> String {
    let evidence = error::failure_in(error).map_or(&[][..], Failure::evidence);
    let lines: Vec<&str> = evidence.iter().filter_map(|text| text.trim_end().lines().last()).collect();
    if lines.is_empty() { error.to_string() } else { format!("{error}: {}", lines.join("; ")) }
}

/// The wheels at a path that was given: a wheel, or a directory with some.
pub(crate) fn wheels_at(path: &Path) -> Result<Vec<PathBuf>> {
    Place::find(path).map(|place| place.wheels)
}

impl Place {
    fn find(path: &Path) -> Result<Self> {
        let path = files::absolute(path)?;
        let is_wheel = |path: &Path| path.extension().is_some_and(|extension| extension == "whl");
        if path.is_dir() {
            let mut wheels = Vec::new();
            for entry in fs_err::read_dir(&path)? {
                let entry = entry?.path();
                if is_wheel(&entry) && entry.is_file() {
                    wheels.push(entry);
                }
            }
            wheels.sort();
            if wheels.is_empty() {
                return Err(Failure::usage(format!("there is no wheel in {}", path.display()))
                    .remedy("give wheels, or a directory that holds some")
                    .into());
            }
            return Ok(Self { manifest: Manifest::in_directory(&path, true), wheels });
        }
        if !path.is_file() {
            return Err(Failure::usage(format!("{} does not exist", path.display()))
                .remedy("give wheels, or a directory that holds some")
                .into());
        }
        if !is_wheel(&path) {
            return Err(Failure::usage(format!("{} is no wheel: its name does not end in .whl", path.display()))
                .remedy("give wheels, or a directory that holds some")
                .into());
        }
        let manifest = path.parent().and_then(|directory| Manifest::in_directory(directory, false));
        Ok(Self { wheels: vec![path], manifest })
    }
}

impl Manifest {
    /// The manifest of `build-wheel` in a directory. Other files of that name are of other programs.
    fn in_directory(directory: &Path, is_complete: bool) -> Option<Self> {
        let path = directory.join("manifest.json");
        let document: Value = serde_json::from_slice(&std::fs::read(&path).ok()?).ok()?;
        let listed = |wheel: &Value| {
            let text = |key: &str| wheel.get(key)?.as_str().map(str::to_owned);
            Some(ListedWheel { file: text("file")?, sha256: text("sha256")? })
        };
        let wheels = document.get("schema").and(document.get("wheels"))?.as_array()?;
        let wheels = wheels.iter().map(listed).collect::<Option<_>>()?;
        Some(Self { path, wheels, is_complete })
    }
}
