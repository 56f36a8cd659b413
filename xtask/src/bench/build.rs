//! `bench build`: how long this repository takes to build, beside maturin and pip on the same sources in the same run.

use std::path::Path;

use cuwheel::cli::Outcome;
use cuwheel::environment::{Access, BuildEnvironment, path_with};
use cuwheel::error::Result;
use cuwheel::interpreter;
use cuwheel::output::Output;
use cuwheel::process::Process;
use cuwheel::project::Project;

use super::contender::{self, Contender};

/// Measures, and makes a table of it.
pub(super) fn execute(output: &Output) -> Result<Outcome> {
    let project = Project::find(Path::new("."))?;
    let scratch = contender::empty_directory(&project)?;
    let interpreter = interpreter::find(None, output)?;
    let environment = BuildEnvironment::ready(&project, &interpreter, Access { offline: false, locked: true }, output)?;

    let mut rows = Vec::new();
    for contender in contenders(&project.root, &scratch, &environment, &interpreter.base_executable)? {
        rows.push(contender.measure(output)?);
        std::fs::remove_dir_all(&contender.checkout)?;
    }
    std::fs::remove_dir_all(&scratch)?;
    Ok(contender::outcome(&rows, "one Rust file"))
}

fn contenders(root: &Path, scratch: &Path, environment: &BuildEnvironment, python: &Path) -> Result<Vec<Contender>> {
    let checkout = |name: &str| contender::checkout(root, scratch, name);
    let quiet = contender::in_checkout;

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
            touched: contender::TOUCHED,
            remembers: true,
            name: "cargo xtask build-wheel",
            fresh: quiet(Process::new("cargo").args(["xtask", "build-wheel"]), &ours),
            again: quiet(Process::new(ours.join("target/debug/xtask")).arg("build-wheel"), &ours),
            checkout: ours,
        },
        Contender {
            touched: contender::TOUCHED,
            remembers: true,
            name: "maturin build --zig",
            fresh: maturin.clone(),
            again: maturin,
            checkout: maturin_checkout,
        },
        Contender {
            touched: contender::TOUCHED,
            remembers: true,
            name: "pip wheel .",
            fresh: pip.clone(),
            again: pip,
            checkout: pip_checkout,
        },
    ])
}
