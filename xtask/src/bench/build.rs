//! `bench build`: how long this repository takes to build, beside maturin and pip on the same sources in the same run.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use cuwheel::cli::Outcome;
use cuwheel::environment::{Access, BuildEnvironment, path_with};
use cuwheel::error::Result;
use cuwheel::interpreter;
use cuwheel::output::Output;
use cuwheel::process::Process;
use cuwheel::project::Project;
use serde_json::json;

use super::succeed;

/// How often a run in which nothing changed is repeated; the median counts.
const UNCHANGED_RUNS: usize = 9;
/// The file that is changed.
const TOUCHED: &str = "crates/cuwheel-native/src/mviewbuf.rs";

/// One way to build a wheel.
struct Contender {
    name: &'static str,
    checkout: PathBuf,
    fresh: Process,
    again: Process,
}

struct Measured {
    name: &'static str,
    fresh_s: f64,
    unchanged_s: f64,
    touched_s: f64,
}

/// Measures, and makes a table of it.
pub(super) fn execute(output: &Output) -> Result<Outcome> {
    let project = Project::find(Path::new("."))?;
    let scratch = empty_directory(&project)?;
    let interpreter = interpreter::find(None, output)?;
    let environment = BuildEnvironment::ready(&project, &interpreter, Access { offline: false, locked: true }, output)?;

    let mut rows = Vec::new();
    for contender in contenders(&project.root, &scratch, &environment, &interpreter.base_executable)? {
        rows.push(contender.measure(output)?);
        std::fs::remove_dir_all(&contender.checkout)?;
    }
    std::fs::remove_dir_all(&scratch)?;
    let json = rows.iter().map(|row| {
        json!({ "name": row.name, "fresh_s": row.fresh_s, "unchanged_s": row.unchanged_s, "touched_s": row.touched_s })
    });
    Ok(Outcome::done(table(&rows), json!({ "rows": json.collect::<Vec<_>>() })))
}

/// Beside the checkout, so that both are on one file system, and outside of any git checkout's index.
fn empty_directory(project: &Project) -> Result<PathBuf> {
    let directory = project.target_directory.join("bench");
    if directory.exists() {
        std::fs::remove_dir_all(&directory)?;
    }
    std::fs::create_dir_all(&directory)?;
    Ok(directory)
}

fn contenders(root: &Path, scratch: &Path, environment: &BuildEnvironment, python: &Path) -> Result<Vec<Contender>> {
    let checkout = |name: &str| -> Result<PathBuf> {
        let directory = scratch.join(name);
        let clone = Process::new("git").args(["clone", "--quiet"]).arg(root).arg(&directory);
        succeed(&clone)?;
        Ok(directory)
    };
    let quiet = |process: Process, directory: &Path| process.directory(directory).env_remove("CARGO_TARGET_DIR");

    let ours = checkout("cuwheel")?;
    let maturin_checkout = checkout("maturin")?;
    let bin = environment.directory().join("bin");
    let maturin = Process::new(environment.maturin())
        .args([
            "build",
            "--release",
            "--zig",
            "--compatibility",
            "manylinux_2_28",
            "--auditwheel",
            "skip",
            "--interpreter",
        ])
        .arg(environment.python())
        .env("PATH", path_with(&bin));
    let maturin = quiet(maturin, &maturin_checkout);
    let pip_checkout = checkout("pip")?;
    let pip = quiet(
        Process::new(python).args(["-m", "pip", "wheel", "--no-deps", "--wheel-dir", "dist", "."]),
        &pip_checkout,
    );
    Ok(vec![
        Contender {
            name: "cargo xtask build-wheel",
            fresh: quiet(Process::new("cargo").args(["xtask", "build-wheel"]), &ours),
            again: quiet(Process::new(ours.join("target/debug/xtask")).arg("build-wheel"), &ours),
            checkout: ours,
        },
        Contender { name: "maturin build --zig", fresh: maturin.clone(), again: maturin, checkout: maturin_checkout },
        Contender { name: "pip wheel .", fresh: pip.clone(), again: pip, checkout: pip_checkout },
    ])
}

impl Contender {
    fn measure(&self, output: &Output) -> Result<Measured> {
        output.step("measure", self.name);
        let fresh_s = seconds(&self.fresh)?;
        let mut unchanged: Vec<f64> = (0..UNCHANGED_RUNS).map(|_| seconds(&self.again)).collect::<Result<_>>()?;
        unchanged.sort_by(f64::total_cmp);
        let touched = self.checkout.join(TOUCHED);
        let text = std::fs::read_to_string(&touched)?;
        std::fs::write(&touched, format!("{text}\n// One more line.\n"))?;
        let touched_s = seconds(&self.again)?;
        Ok(Measured { name: self.name, fresh_s, unchanged_s: unchanged[UNCHANGED_RUNS / 2], touched_s })
    }
}

fn seconds(process: &Process) -> Result<f64> {
    let started = Instant::now();
    succeed(process)?;
    Ok(started.elapsed().as_secs_f64())
}

fn table(rows: &[Measured]) -> String {
    let ours = &rows[0];
    let mut text = String::from("| | fresh checkout | nothing changed | one Rust file changed |\n|---|---|---|---|\n");
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
