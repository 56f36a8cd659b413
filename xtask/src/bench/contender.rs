//! Ways to build this repository, each in a checkout of its own, measured side by side.
//!
//! Not for what they are: see [`super::build`] and [`super::develop`].

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use cuwheel::cli::Outcome;
use cuwheel::error::Result;
use cuwheel::output::Output;
use cuwheel::process::Process;
use cuwheel::project::Project;
use serde_json::json;

use super::succeed;

/// How often a run in which nothing changed is repeated; the median counts.
const UNCHANGED_RUNS: usize = 9;
/// The file of this repository that is changed.
pub(super) const TOUCHED: &str = "crates/cuwheel-native/src/mviewbuf.rs";

/// One way to build.
pub(super) struct Contender {
    pub(super) name: &'static str,
    pub(super) checkout: PathBuf,
    /// The file in it that is changed.
    pub(super) touched: &'static str,
    /// The first run.
    pub(super) fresh: Process,
    /// Every further one.
    pub(super) again: Process,
    /// Whether it leaves out what it did before; otherwise each run takes as long, and one is enough.
    pub(super) remembers: bool,
}

/// How long it took.
pub(super) struct Measured {
    name: &'static str,
    fresh_s: f64,
    unchanged_s: f64,
    touched_s: f64,
}

impl Contender {
    pub(super) fn measure(&self, output: &Output) -> Result<Measured> {
        output.step("measure", self.name);
        let fresh_s = seconds(&self.fresh)?;
        let unchanged_s = if self.remembers { median_seconds(&self.again)? } else { seconds(&self.again)? };
        let touched = self.checkout.join(self.touched);
        let text = std::fs::read_to_string(&touched)?;
        std::fs::write(&touched, format!("{text}\n// One more line.\n"))?;
        let touched_s = seconds(&self.again)?;
        Ok(Measured { name: self.name, fresh_s, unchanged_s, touched_s })
    }
}

/// A directory beside the checkout, so that both are on one file system, and outside of any git checkout's index.
pub(super) fn empty_directory(project: &Project) -> Result<PathBuf> {
    let directory = project.target_directory.join("bench");
    if directory.exists() {
        std::fs::remove_dir_all(&directory)?;
    }
    std::fs::create_dir_all(&directory)?;
    Ok(directory)
}

/// What is committed, in a directory of its own.
pub(super) fn checkout(root: &Path, scratch: &Path, name: &str) -> Result<PathBuf> {
    let directory = scratch.join(name);
    succeed(&Process::new("git").args(["clone", "--quiet"]).arg(root).arg(&directory))?;
    Ok(directory)
}

/// A process that works in a checkout and compiles there.
pub(super) fn in_checkout(process: Process, directory: &Path) -> Process {
    process.directory(directory).env_remove("CARGO_TARGET_DIR")
}

fn seconds(process: &Process) -> Result<f64> {
    let started = Instant::now();
    succeed(process)?;
    Ok(started.elapsed().as_secs_f64())
}

/// How long a process takes that is run again and again.
pub(super) fn median_seconds(process: &Process) -> Result<f64> {
    let mut runs: Vec<f64> = (0..UNCHANGED_RUNS).map(|_| seconds(process)).collect::<Result<_>>()?;
    runs.sort_by(f64::total_cmp);
    Ok(runs[UNCHANGED_RUNS / 2])
}

/// The table of them, with ours first. `touched` says what was changed.
pub(super) fn outcome(rows: &[Measured], touched: &str) -> Outcome {
    let json = rows.iter().map(|row| {
        json!({ "name": row.name, "fresh_s": row.fresh_s, "unchanged_s": row.unchanged_s, "touched_s": row.touched_s })
    });
    Outcome::done(table(rows, touched), json!({ "rows": json.collect::<Vec<_>>() }))
}

fn table(rows: &[Measured], touched: &str) -> String {
    let ours = &rows[0];
    let mut text = format!("| | fresh | nothing changed | {touched} changed |\n|---|---|---|---|\n");
    for row in rows {
        let cell = |seconds: f64, ours: f64| format!("{seconds:.2} s ({:.2}×)", seconds / ours);
        let _ = writeln!(
            text,
            "| `{}` | {} | {} | {} |",
            row.name,
            cell(row.fresh_s, ours.fresh_s),
            cell(row.unchanged_s, ours.unchanged_s),
            cell(row.touched_s, ours.touched_s)
        );
    }
    text
}
