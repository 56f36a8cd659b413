//! The sdist: written, unpacked into an empty directory, and built into the same wheel again.
//!
//! Not for what goes into it: `[tool.maturin]` decides that.

use std::collections::BTreeSet;
use std::path::Path;

use cuwheel_inspect::sdist::Sdist;
use cuwheel_inspect::wheel::Wheel;

use crate::commands::build_wheel::Built;
use crate::environment::BuildEnvironment;
use crate::error::{Failure, Result};
use crate::files;
use crate::inspection;
use crate::manifest::SdistReport;
use crate::maturin;
use crate::output::Output;
use crate::project::Project;

/// Writes the sdist into `dist`, after a wheel was rebuilt from it by `compile` and holds the files of `built`.
pub fn write_and_rebuild(
    project: &Project,
    built: &Built,
    environment: &BuildEnvironment,
    output: &Output,
    compile: &mut dyn FnMut(&Project) -> Result<Vec<u8>>,
) -> Result<SdistReport> {
    let scratch = tempfile::tempdir()?;
    let log = project.work_directory().join("sdist.log");
    let path = maturin::sdist(project, environment, scratch.path(), &log, output)?;
    let sdist = Sdist::open(&path)?;
    refuse_results(&sdist)?;
    let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();

    output.step("rebuild", &format!("the wheel from {file}"));
    let unpacked = scratch.path().join("unpacked");
    fs_err::create_dir(&unpacked)?;
    let rebuilt = compile(&open_unpacked(&sdist.unpack_to(&unpacked)?, &file)?)?;
    let original = fs_err::read(&built.path)?;
    compare(
        &inspection::open(&built.report.file, &original)?,
        &inspection::open(&built.report.file, &rebuilt)?,
        &file,
    )?;

    let report = SdistReport {
        sha256: files::sha256_of_file(&path)?,
        size_bytes: fs_err::metadata(&path)?.len(),
        rebuilds_identically: rebuilt == original,
        file,
    };
    files::copy_atomically(&path, &project.dist().join(&report.file))?;
    Ok(report)
}

/// Refuses an sdist that swallowed what earlier builds made.
fn refuse_results(sdist: &Sdist) -> Result<()> {
    let is_result = |path: &str| {
        let extension = Path::new(path).extension();
        path.starts_with("target/") || extension.is_some_and(|extension| extension == "whl" || extension == "so")
    };
    let results: Vec<String> =
        sdist.entries().iter().map(|entry| entry.path().to_owned()).filter(|path| is_result(path)).collect();
    if results.is_empty() {
        return Ok(());
    }
    Err(Failure::failed("the sdist holds results of earlier builds")
        .details(results)
        .remedy(
            "let git track Cargo.toml and ignore /target/, /dist/ and *.so, or list them under tool.maturin.exclude",
        )
        .into())
}

fn open_unpacked(root: &Path, file: &str) -> Result<Project> {
    Project::open(root).map_err(|error| error.context(format!("reading the project inside {file}")))
}

/// Refuses an sdist from which a wheel with other files is built.
fn compare(original: &Wheel, rebuilt: &Wheel, file: &str) -> Result<()> {
    let paths =
        |wheel: &Wheel| -> BTreeSet<String> { wheel.entries().iter().map(|entry| entry.path().to_owned()).collect() };
    let (original, rebuilt) = (paths(original), paths(rebuilt));
    let missing = original.difference(&rebuilt).map(|path| format!("missing: {path}"));
    let extra = rebuilt.difference(&original).map(|path| format!("extra: {path}"));
    let differences: Vec<String> = missing.chain(extra).collect();
    if differences.is_empty() {
        return Ok(());
    }
    Err(Failure::failed(format!("the wheel from {file} does not hold the files of the wheel from the checkout"))
        .details(differences)
        .remedy("list what the sdist lacks under tool.maturin.include; files that git ignores are left out by default")
        .into())
}
