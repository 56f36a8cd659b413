//! `bench check`: how long `check-wheel` takes and how much memory, beside `auditwheel show` on the same wheels in the same
//! run.
//!
//! A benchmark and no test: nothing fails because it is slow.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use cuwheel::cache::Cache;
use cuwheel::cli::Outcome;
use cuwheel::environment::FreshEnvironment;
use cuwheel::error::{Failure, Result};
use cuwheel::files::human_size;
use cuwheel::interpreter;
use cuwheel::output::Output;
use cuwheel::process::Process;
use cuwheel::uv::Uv;
use serde_json::json;

/// The arguments of `bench check`.
#[derive(clap::Args, Debug)]
pub(super) struct Arguments {
    /// The wheels to measure with
    #[arg(value_name = "WHEEL", required = true)]
    pub(super) wheels: Vec<PathBuf>,
}

const RUNS: usize = 3;
const PEER: &str = "auditwheel==6.8.2";
/// Runs a program and writes its wall-clock time and its time on processors, in seconds, and the most memory that it had,
/// in kilobytes.
const MEASURE: &str = "import resource, subprocess, sys, time
started = time.perf_counter()
subprocess.run(sys.argv[2:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
seconds = time.perf_counter() - started
used = resource.getrusage(resource.RUSAGE_CHILDREN)
with open(sys.argv[1], 'w') as file:
    print(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss, file=file)";

/// The median of some runs.
struct Measured {
    seconds: f64,
    /// On all processors together: it does not depend on what else the machine does.
    processor_seconds: f64,
    peak_bytes: u64,
}

struct Row {
    wheel: String,
    size_bytes: u64,
    ours: Measured,
    peer: Measured,
}

/// Measures both on each wheel.
pub(super) fn run(wheels: &[PathBuf], output: &Output) -> Result<Outcome> {
    let (cache, interpreter) = (Cache::locate()?, interpreter::find(None, output)?);
    let uv = Uv::find(&interpreter, &cache, Path::new("."), false, output)?;
    let environment = FreshEnvironment::create(&cache, &interpreter, &uv)?;
    let install = Process::new(uv.program()).args(["pip", "install", "--quiet", "--python"]).arg(environment.python());
    succeed(&install.arg(PEER))?;
    output.step("build", "cuwheel, with optimisation");
    succeed(&Process::new("cargo").args(["build", "--quiet", "--release", "--package", "cuwheel"]))?;
    let program = release_binary()?;
    let mut rows = Vec::new();
    for wheel in wheels {
        output.step("measure", &wheel.display().to_string());
        let ours = [program.as_os_str(), "check-wheel".as_ref(), "--quiet".as_ref(), wheel.as_os_str()];
        let auditwheel = environment.path().join("bin/auditwheel");
        let peer = [auditwheel.as_os_str(), "show".as_ref(), wheel.as_os_str()];
        rows.push(Row {
            wheel: wheel.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            size_bytes: std::fs::metadata(wheel)?.len(),
            ours: measure(&environment, &ours)?,
            peer: measure(&environment, &peer)?,
        });
    }
    let json = rows.iter().map(|row| {
        json!({
            "wheel": row.wheel, "size_bytes": row.size_bytes,
            "check_wheel_s": row.ours.seconds, "check_wheel_processor_s": row.ours.processor_seconds, "check_wheel_peak_bytes": row.ours.peak_bytes,
            "auditwheel_s": row.peer.seconds, "auditwheel_processor_s": row.peer.processor_seconds, "auditwheel_peak_bytes": row.peer.peak_bytes,
        })
    });
    Ok(Outcome::done(table(&rows), json!({ "rows": json.collect::<Vec<_>>() })))
}

/// Where cargo put the program that was just built.
fn release_binary() -> Result<PathBuf> {
    let finished = Process::new("cargo").args(["metadata", "--no-deps", "--format-version", "1"]).capture()?;
    let metadata: serde_json::Value = serde_json::from_str(&finished.stdout).context("reading cargo's metadata")?;
    let target = metadata["target_directory"].as_str().context("cargo names no target directory")?;
    Ok(Path::new(target).join("release/cuwheel"))
}

/// Findings are no failures here, so that the exit code does not matter.
fn measure(environment: &FreshEnvironment, command: &[&std::ffi::OsStr]) -> Result<Measured> {
    let report = environment.beside("peak");
    let process = environment.isolated_python().args(["-c", MEASURE]).arg(&report);
    let process = command.iter().fold(process, Process::arg);
    let mut runs = Vec::new();
    for _ in 0..RUNS {
        succeed(&process)?;
        let text = std::fs::read_to_string(&report)?;
        let mut numbers = text.split_whitespace();
        let mut next = || numbers.next().context("a report of a run is too short");
        runs.push(Measured {
            seconds: next()?.parse()?,
            processor_seconds: next()?.parse()?,
            peak_bytes: next()?.parse::<u64>()? * 1024,
        });
    }
    runs.sort_by(|left, right| left.seconds.total_cmp(&right.seconds));
    Ok(runs.swap_remove(RUNS / 2))
}

fn succeed(process: &Process) -> Result<()> {
    let finished = process.capture()?;
    if finished.status.success() {
        return Ok(());
    }
    Err(Failure::failed(format!("{} failed", process.describe())).details(finished.tail(12)).into())
}

fn table(rows: &[Row]) -> String {
    let mut text = String::from(
        "| wheel | size | `check-wheel` | on processors | peak memory | `auditwheel show` | on processors | peak memory | \
         ratio | on processors |\n|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for Row { wheel, size_bytes, ours, peer } in rows {
        let name: Vec<&str> = wheel.splitn(3, '-').take(2).collect();
        let cells = |measured: &Measured| {
            let Measured { seconds, processor_seconds, peak_bytes } = measured;
            format!("{seconds:.2} s | {processor_seconds:.2} s | {}", human_size(*peak_bytes))
        };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {:.1}× | {:.1}× |",
            name.join(" "),
            human_size(*size_bytes),
            cells(ours),
            cells(peer),
            peer.seconds / ours.seconds,
            peer.processor_seconds / ours.processor_seconds
        );
    }
    text
}
