//! `lock`: resolves the requirements of the build and of the tests into committed files.
//!
//! Not for installing them: environments are made from the locks when they are needed.

use std::fmt::Write as _;

use serde_json::json;

use crate::cache::Cache;
use crate::cli::{Common, Outcome};
use crate::error::{Failure, Result};
use crate::interpreter::{self, Request};
use crate::output::Output;
use crate::process::check_interrupted;
use crate::project::Project;
use crate::requirements::Lock;
use crate::uv::Uv;

/// The arguments of `lock`.
#[derive(clap::Args, Clone, Debug)]
pub struct Arguments {
    /// What every command takes.
    #[command(flatten)]
    pub common: Common,
    /// Take the newest versions that fit, instead of keeping those of the present locks
    #[arg(long)]
    pub upgrade: bool,
    /// Resolve with this Python: a version or a path
    #[arg(long, value_name = "VERSION|PATH")]
    pub python: Option<Request>,
    /// Change nothing; fail when a lock does not fit pyproject.toml
    #[arg(long, conflicts_with = "upgrade")]
    pub check: bool,
}

/// Runs the command.
pub fn execute(project: &Project, arguments: &Arguments, output: &Output) -> Result<Outcome> {
    let locks = Lock::all(project)?;
    if arguments.common.dry_run {
        return Ok(plan(&locks));
    }
    if arguments.check {
        return check(&locks);
    }
    let interpreter = interpreter::find(arguments.python.as_ref(), output)?;
    let uv = Uv::find(&interpreter, &Cache::locate()?, &project.root, arguments.common.offline, output)?;
    let (mut text, mut files) = (String::new(), Vec::new());
    for lock in &locks {
        check_interrupted()?;
        let changed = lock.update(&uv, arguments.upgrade, output)?;
        let _ = writeln!(text, "{:10} {}", if changed { "written" } else { "unchanged" }, lock.path.display());
        files.push(json!({ "path": lock.path, "changed": changed }));
    }
    Ok(Outcome::done(text, json!({ "locks": files })))
}

fn plan(locks: &[Lock]) -> Outcome {
    let mut text = String::new();
    for lock in locks {
        let state = if lock.is_current() { "current" } else { "to resolve" };
        let _ = writeln!(text, "{:10} {}\n           from {}", state, lock.path.display(), lock.inputs().join(", "));
    }
    let files: Vec<_> = locks
        .iter()
        .map(|lock| json!({ "path": lock.path, "inputs": lock.inputs(), "current": lock.is_current() }))
        .collect();
    Outcome::done(text, json!({ "locks": files }))
}

fn check(locks: &[Lock]) -> Result<Outcome> {
    let stale: Vec<String> =
        locks.iter().filter(|lock| !lock.is_current()).map(|lock| lock.path.display().to_string()).collect();
    if stale.is_empty() {
        return Ok(Outcome::done(
            format!("{} locks fit pyproject.toml\n", locks.len()),
            json!({ "locks": locks.len() }),
        ));
    }
    Err(Failure::failed("locks do not fit pyproject.toml")
        .details(stale)
        .remedy("run `lock` and commit the files")
        .into())
}
