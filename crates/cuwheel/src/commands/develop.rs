//! `develop`: an editable install, proven: what Python loads is what was just built.
//!
//! Not for wheels, and not for installing what others will use.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::{Value, json};

use super::build_wheel::build_lock;
use crate::cli::{Common, Outcome};
use crate::develop::destination::{Asked, Destination};
use crate::develop::examination::Examination;
use crate::develop::install::{self, Done};
use crate::develop::note::{Note, Options};
use crate::develop::plan::{self, Plan};
use crate::environment::Access;
use crate::error::{self, Result};
use crate::interpreter::Request;
use crate::lock_file::FileLock;
use crate::output::Output;
use crate::project::Project;

/// The arguments of `develop`.
#[derive(clap::Args, Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line are booleans")]
pub struct Arguments {
    /// What every command takes.
    #[command(flatten)]
    pub common: Common,
    /// Install into this environment, created when it is absent; by default the active one, then .venv of the project
    #[arg(long, value_name = "DIRECTORY")]
    pub venv: Option<PathBuf>,
    /// Create the environment with this Python: a version (3.12, 3.13t) or a path
    #[arg(long, value_name = "VERSION|PATH")]
    pub python: Option<Request>,
    /// Install for the interpreter itself, outside of any environment
    #[arg(long, conflicts_with = "venv")]
    pub system: bool,
    /// Only say whether the install is current: exit code 1 when it is not
    #[arg(long)]
    pub check: bool,
    /// Build again on import, when the sources changed
    #[arg(long)]
    pub rebuild_on_import: bool,
    /// Compile with optimisation, as for a wheel
    #[arg(long, conflicts_with = "profile")]
    pub release: bool,
    /// Compile with this profile of cargo; by default dev
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,
    /// Also install what this extra of the project requires; repeatable
    #[arg(long, value_name = "NAME")]
    pub extra: Vec<String>,
    /// Also install this dependency group; repeatable
    #[arg(long, value_name = "NAME")]
    pub group: Vec<String>,
    /// Install nothing that the project requires
    #[arg(long)]
    pub no_deps: bool,
    /// Build and install again even if nothing changed
    #[arg(long)]
    pub force: bool,
    /// Fail instead of resolving requirements again
    #[arg(long)]
    pub locked: bool,
    /// The import hook asks: install as before, and make no environment
    #[arg(long, hide = true)]
    pub on_import: bool,
}

impl Arguments {
    fn request(&self) -> plan::Request {
        let profile = self.profile.clone().or(self.release.then(|| "release".to_owned()));
        plan::Request {
            // A question is about what was installed; so is the wish of the hook.
            as_before: self.on_import || self.check,
            options: Options {
                profile: profile.unwrap_or_else(|| "dev".to_owned()),
                rebuild_on_import: self.rebuild_on_import,
                extras: self.extra.clone(),
                groups: self.group.clone(),
                dependencies: !self.no_deps,
            },
            access: Access { offline: self.common.offline, locked: self.locked || self.on_import },
            force: self.force,
            on_import: self.on_import,
        }
    }
}

/// Runs the command.
pub fn execute(project: Project, arguments: &Arguments, output: &Output) -> Result<Outcome> {
    let asked = Asked { venv: arguments.venv.as_deref(), python: arguments.python.as_ref(), system: arguments.system };
    let destination = Destination::choose(&project.root, asked, output)?;
    let plan = Plan::new(project, destination, arguments.request())?;
    if arguments.common.dry_run {
        return Ok(Outcome::done(plan.render(), plan.to_json()));
    }
    if arguments.check {
        return Ok(checked(&plan, &Examination::of(&plan)?));
    }
    match run(&plan, output) {
        // The hook says it, in its own way.
        Err(failure) if plan.on_import => {
            Ok(Outcome { text: String::new(), json: json!({ "error": error::to_json(&failure) }), succeeded: false })
        }
        outcome => outcome,
    }
}

/// Looks, and installs when that is not current. Whoever waits for another one to build looks again.
fn run(plan: &Plan, output: &Output) -> Result<Outcome> {
    let started = Instant::now();
    if let Some(outcome) = current(plan, &Examination::of(plan)?, started)? {
        return Ok(outcome);
    }
    install::check_environment(plan)?;
    let _lock = FileLock::acquire(&build_lock(&plan.cache, &plan.project)?, "develop", output)?;
    // Maturin moves the library inside the target directory, which checkouts may share.
    let _target = FileLock::acquire(&plan.project.work_directory().join("lock"), "develop", output)?;
    let examination = Examination::of(plan)?;
    if let Some(outcome) = current(plan, &examination, started)? {
        return Ok(outcome);
    }
    let done = install::run(plan, &examination, output)?;
    for running in &done.running {
        output.warn(format!("process {} ({}) {}: start it again", running.pid, running.command, running.reason));
    }
    Ok(installed(plan, &done, &examination.reasons, started))
}

fn current(plan: &Plan, examination: &Examination, started: Instant) -> Result<Option<Outcome>> {
    let (Some(note), true) = (&examination.note, examination.reasons.is_empty() && !plan.force) else {
        return Ok(None);
    };
    install::make_looking_quick(plan, &examination.snapshot)?;
    let seconds = started.elapsed().as_secs_f64();
    let text = table(plan, note, &format!("{seconds:.1} s (nothing changed)"));
    let mut json = to_json(plan, note);
    json["was_current"] = json!(true);
    json["compiled_crates"] = json!(0);
    json["seconds"] = json!(seconds);
    Ok(Some(Outcome::done(text, json)))
}

fn installed(plan: &Plan, done: &Done, reasons: &[String], started: Instant) -> Outcome {
    let seconds = started.elapsed().as_secs_f64();
    let mut text = table(plan, &done.note, &format!("{seconds:.1} s"));
    for path in &done.removed {
        let _ = writeln!(text, "removed      {}", path.display());
    }
    let mut json = to_json(plan, &done.note);
    json["was_current"] = json!(false);
    json["reasons"] = json!(reasons);
    json["compiled_crates"] = json!(done.compiled_crates);
    json["removed"] = json!(done.removed);
    json["running"] = json!(done.running);
    json["seconds"] = json!(seconds);
    Outcome::done(text, json)
}

/// The answer to `--check`.
fn checked(plan: &Plan, examination: &Examination) -> Outcome {
    let is_current = examination.reasons.is_empty();
    let place = plan.destination.directory.display();
    let mut text = format!("{} in {place} is {}\n", plan.project.name, if is_current { "current" } else { "stale" });
    for reason in &examination.reasons {
        let _ = writeln!(text, "  {reason}");
    }
    let json = json!({
        "environment": plan.destination.to_json(),
        "current": is_current,
        "reasons": examination.reasons,
        "inputs": examination.snapshot.hashes.len(),
    });
    Outcome { text, json, succeeded: is_current }
}

fn table(plan: &Plan, note: &Note, time: &str) -> String {
    let destination = &plan.destination;
    let mut text = format!("environment  {} ({})\n", destination.directory.display(), destination.origin);
    for (module, file) in &note.modules {
        let _ = writeln!(text, "module       {module} from {}", shown(&plan.project.root, file));
    }
    let _ = writeln!(text, "proven       {} imported on {}", note.imported.join(", "), destination.interpreter);
    if note.options.rebuild_on_import {
        text += "on import    builds again when the sources changed\n";
    }
    let _ = writeln!(text, "time         {time}");
    text
}

fn shown(root: &Path, file: &Path) -> String {
    file.strip_prefix(root).unwrap_or(file).display().to_string()
}

fn to_json(plan: &Plan, note: &Note) -> Value {
    let hashes: BTreeMap<&Path, &str> =
        note.placed.iter().chain(&note.site).map(|file| (file.path.as_path(), file.sha256.as_str())).collect();
    let module =
        |(name, file): (&String, &PathBuf)| json!({ "name": name, "file": file, "sha256": hashes.get(file.as_path()) });
    json!({
        "environment": plan.destination.to_json(),
        "modules": note.modules.iter().map(module).collect::<Vec<_>>(),
        "imported": note.imported,
        "profile": note.options.profile,
        "rebuild_on_import": note.options.rebuild_on_import,
        "reasons": [],
        "removed": [],
        "running": [],
    })
}
