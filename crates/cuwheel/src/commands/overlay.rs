//! `overlay`: a released wheel, rebuilt with its native modules replaced by this project's.
//!
//! Not for publishing, and not for knowing any distribution: what is replaced is in `[tool.cuwheel.overlay]`.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Instant;

use cuwheel_inspect::rules::{self, ExaminedWheel, Policy, Severity};
use cuwheel_inspect::wheel::Wheel;
use fs_err as fs;
use serde_json::{Value, json};

use crate::cache::Cache;
use crate::cargo_manifest::Abi3;
use crate::cli::{Common, Outcome};
use crate::commands::build_wheel::{self, Built};
use crate::environment::Access;
use crate::error::{Failure, Result};
use crate::files;
use crate::findings;
use crate::inspection;
use crate::interpreter::{self, Interpreter, Request};
use crate::manifest::WheelReport;
use crate::output::Output;
use crate::overlay::compose::{self, Accepted, Additions, Changed, Overlay};
use crate::overlay::entry::{self, OverlayEntry};
use crate::overlay::proof::{self, Level, Machine};
use crate::overlay::upstream::{Store, Upstream, Wanted};
use crate::process::check_interrupted;
use crate::project::Project;
use crate::uv::Uv;
use crate::wheel_check;

/// The arguments of `overlay`.
#[derive(clap::Args, Clone, Debug)]
pub struct Arguments {
    /// What every command takes.
    #[command(flatten)]
    pub common: Common,
    /// The release to rebuild, or the path of its wheel
    #[arg(value_name = "NAME==VERSION|WHEEL")]
    pub wanted: Wanted,
    /// Take the release's wheel for this Python, and prove the overlay with it: a version or a path
    #[arg(long, value_name = "VERSION|PATH")]
    pub python: Option<Request>,
    /// The SHA-256 that the released wheel must have
    #[arg(long, value_name = "HASH", value_parser = sha256)]
    pub sha256: Option<String>,
    /// How much is proven: modules, or full, which installs what the wheel requires too
    #[arg(long, value_name = "LEVEL", value_enum, default_value = "modules", hide_possible_values = true)]
    pub prove: Level,
    /// Fail instead of resolving the requirements of the build again
    #[arg(long)]
    pub locked: bool,
}

fn sha256(text: &str) -> Result<String, String> {
    let digits = text.strip_prefix("sha256:").or_else(|| text.strip_prefix("sha256=")).unwrap_or(text);
    if digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        Ok(digits.to_ascii_lowercase())
    } else {
        Err("a SHA-256 has 64 hexadecimal digits".to_owned())
    }
}

/// What will be rebuilt, from what, and how it is proven.
#[derive(Debug)]
pub struct Plan {
    project: Project,
    wanted: Wanted,
    sha256: Option<String>,
    entry: OverlayEntry,
    interpreter: Interpreter,
    native: build_wheel::Plan,
    level: Level,
    access: Access,
    cache: Cache,
}

/// A finished overlay.
#[derive(Debug)]
pub struct Made {
    /// Where it is.
    pub path: PathBuf,
    /// What it is.
    pub report: WheelReport,
    /// What differs from the released wheel.
    pub changed: Changed,
    /// The released wheel.
    pub upstream: Upstream,
    /// The project's own wheel.
    pub native: Built,
    seconds: f64,
}

/// Runs the command.
pub fn execute(project: Project, arguments: &Arguments, output: &Output) -> Result<Outcome> {
    let plan = Plan::new(project, arguments, output)?;
    if arguments.common.dry_run {
        return Ok(Outcome::done(plan.render(), plan.to_json()));
    }
    let made = plan.run(output)?;
    Ok(Outcome::done(plan.table(&made), plan.made_to_json(&made)))
}

impl Plan {
    /// Decides everything that can be decided without fetching, compiling or installing.
    pub fn new(project: Project, arguments: &Arguments, output: &Output) -> Result<Self> {
        let entry =
            entry::choose(&project.settings.overlays, arguments.wanted.distribution(), arguments.wanted.version())?;
        check_crate(entry, &project)?;
        let interpreter = interpreter::find(arguments.python.as_ref(), output)?;
        // One abi3 library serves every interpreter; only what has none needs its own.
        let needs_own = interpreter.gil_disabled || project.abi3 == Abi3::No;
        let native = build_wheel::Arguments {
            common: arguments.common.clone(),
            python: arguments.python.iter().filter(|_| needs_own).cloned().collect(),
            abi3: false,
            cuda: Vec::new(),
            compatibility: None,
            sdist: false,
            force: false,
            locked: arguments.locked,
        };
        Ok(Self {
            wanted: arguments.wanted.clone(),
            sha256: arguments.sha256.clone(),
            entry: entry.clone(),
            interpreter,
            native: build_wheel::Plan::new(project.clone(), &native, output)?,
            level: arguments.prove,
            access: Access { offline: arguments.common.offline, locked: arguments.locked },
            cache: Cache::locate()?,
            project,
        })
    }

    fn store(&self) -> Store<'_> {
        Store::new(&self.cache, &self.interpreter)
    }

    fn state_of_upstream(&self) -> &'static str {
        match &self.wanted {
            Wanted::File { .. } => "a file",
            Wanted::Release { .. } if self.store().find(&self.wanted).is_some() => "in the cache",
            Wanted::Release { .. } => "to be fetched",
        }
    }

    /// The plan as a person reads it.
    pub fn render(&self) -> String {
        let Self { entry, interpreter, .. } = self;
        let mut text = format!("overlay      {} for {} {}\n", entry.name, entry.distribution, entry.versions);
        let _ = writeln!(text, "released     {} ({}), for {interpreter}", self.wanted, self.state_of_upstream());
        let _ = writeln!(text, "native       dist/{}, from build-wheel", self.native.files().join(", dist/"));
        let _ = writeln!(text, "replaces     {} in {}", entry.modules.join(", "), entry.package);
        let _ = writeln!(text, "with         {} and the native library", entry.files);
        let _ = writeln!(text, "inspect      the rules of check-wheel, on the released wheel and on the overlay");
        let _ = writeln!(text, "prove        install it alone, import the modules under their names, uninstall it");
        if self.level == Level::Full {
            let requires = [vec!["what it requires".to_owned()], entry.requires.clone()].concat();
            let _ = writeln!(text, "             install {}; import {}", requires.join(", "), entry.imports.join(", "));
        }
        text + "writes       dist/overlay/\n"
    }

    /// The plan for machines.
    pub fn to_json(&self) -> Value {
        json!({ "plan": {
            "overlay": self.entry.name,
            "released": self.wanted.to_string(),
            "released_is": self.state_of_upstream(),
            "interpreter": self.interpreter,
            "native": self.native.files(),
            "package": self.entry.package,
            "modules": self.entry.modules,
            "files": self.entry.files,
            "full_proof": self.level == Level::Full,
        }})
    }

    /// Fetches, builds, composes, inspects, proves and writes.
    pub fn run(&self, output: &Output) -> Result<Made> {
        let started = Instant::now();
        let uv = || Uv::find(&self.interpreter, &self.cache, &self.project.root, self.access.offline, output);
        let upstream = self.store().get(&self.wanted, self.sha256.as_deref(), &uv, self.access.offline, output)?;
        let archive = fs::read(&upstream.path)?;
        let file = upstream.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let examined = ExaminedWheel::from_bytes(&file, archive.clone()).map_err(inspection::unreadable)?;
        let accepted = Accepted::new(&self.entry, examined.wheel(), self.interpreter.machine())?;
        check_released(&examined, &accepted)?;
        let files = compose::entry_files(&self.project.root, &self.entry)?;
        let native = self.build_native(output)?;
        check_interrupted()?;
        let native_wheel = Wheel::open(&native.path).map_err(inspection::unreadable)?;
        let distribution = self.project.distribution();
        let machine = self.interpreter.machine();
        let additions = Additions { native: &native_wheel, files, name: &distribution, machine };
        let version = additions.version(self.wanted.version())?;
        let overlay = compose::compose(&accepted, &archive, &version, &additions)?;
        output.step("package", &overlay.file);
        let report = self.inspect_and_prove(&overlay, &uv()?, output)?;
        let path = self.project.dist().join("overlay").join(&overlay.file);
        files::write_atomically(&path, &overlay.bytes)?;
        let seconds = started.elapsed().as_secs_f64();
        Ok(Made { path, report, changed: overlay.changed, upstream, native, seconds })
    }

    fn build_native(&self, output: &Output) -> Result<Built> {
        let (built, _) = self.native.run(output)?;
        Ok(built.into_iter().next().expect("a plan without --python is for one wheel"))
    }

    fn inspect_and_prove(&self, overlay: &Overlay, uv: &Uv, output: &Output) -> Result<WheelReport> {
        let examined =
            ExaminedWheel::from_bytes(&overlay.file, overlay.bytes.clone()).map_err(inspection::unreadable)?;
        // The project's modules are those of its own wheel.
        let policy = wheel_check::policy(&self.project.settings.check).with_budget(None);
        inspection::check_with(&examined, &policy, output)?;
        let scratch = self.cache.scratch("overlay")?;
        let path = scratch.path().join(&overlay.file);
        fs::write(&path, &overlay.bytes)?;
        let machine = Machine { cache: &self.cache, interpreter: &self.interpreter, uv };
        let imported = proof::prove(&path, examined.wheel(), &self.entry, self.level, machine, output)?;
        Ok(inspection::report(&examined, &self.interpreter, imported))
    }

    /// The short table of what was made.
    fn table(&self, made: &Made) -> String {
        let Made { report, changed, upstream, native, .. } = made;
        let file = upstream.path.file_name().unwrap_or_default().to_string_lossy();
        let current = if native.was_current { " (nothing changed)" } else { "" };
        let mut text = format!("wheel        dist/overlay/{}\n", report.file);
        let _ = writeln!(text, "overlay      {}", self.entry.name);
        let _ = writeln!(text, "released     {file}");
        let _ = writeln!(text, "             sha256 {}", upstream.sha256);
        let _ = writeln!(text, "native       dist/{}{current}", native.report.file);
        let _ = writeln!(
            text,
            "files        {} removed, {} added, {} rewritten; overlay.json in the wheel lists them",
            changed.removed.len(),
            changed.added.len(),
            changed.rewritten.len()
        );
        let _ = writeln!(text, "tags         {}", report.tags.join(", "));
        let _ = writeln!(text, "size         {}", files::human_size(report.size_bytes));
        let _ = writeln!(text, "sha256       {}", report.sha256);
        let _ = writeln!(text, "glibc floor  {}", report.glibc_floor.as_deref().unwrap_or("none"));
        let _ = writeln!(text, "proven       {} imported on {}", report.imported.join(", "), report.proven_on);
        let _ = writeln!(text, "time         {:.1} s", made.seconds);
        text
    }

    fn made_to_json(&self, made: &Made) -> Value {
        let mut wheel = json!(made.report);
        wheel["path"] = json!(made.path);
        json!({
            "wheel": wheel,
            "overlay": self.entry.name,
            "released": {
                "name": self.wanted.distribution(),
                "version": self.wanted.version().to_string(),
                "path": made.upstream.path,
                "sha256": made.upstream.sha256,
            },
            "native": { "file": made.native.report.file, "sha256": made.native.report.sha256 },
            "changed": made.changed,
            "seconds": made.seconds,
        })
    }
}

/// An entry may say which cargo package its library is of, and has to be right.
fn check_crate(entry: &OverlayEntry, project: &Project) -> Result<()> {
    let (Some(named), built) = (&entry.crate_name, project.manifest.package_name().unwrap_or_default()) else {
        return Ok(());
    };
    if named == built {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "the overlay {} takes its library from {named}; this project builds {built}",
        entry.name
    ))
    .remedy(format!(
        "set tool.cuwheel.overlay.{}.crate to the package of tool.maturin.manifest-path, or leave it out",
        entry.name
    ))
    .into())
}

/// Refuses a released wheel that is broken in what would be taken over.
fn check_released(examined: &ExaminedWheel, accepted: &Accepted<'_>) -> Result<()> {
    let is_taken_over = |path: Option<&str>| path.is_none_or(|path| !accepted.removed().contains(path));
    let errors: Vec<_> = rules::check(examined, &Policy::default())
        .into_iter()
        .filter(|finding| finding.severity() == Severity::Error && is_taken_over(finding.path()))
        .collect();
    if errors.is_empty() {
        return Ok(());
    }
    Err(Failure::usage(format!("{} is broken as it is", examined.wheel().file_name()))
        .details(findings::render(&errors, true).lines().map(str::to_owned))
        .remedy("take another release, or a wheel that was not damaged; check-wheel says more")
        .into())
}
