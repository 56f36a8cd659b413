//! Writes a new project: all of it, or nothing. The existing one is only read.

use std::path::{Path, PathBuf};

use fs_err as fs;

use super::plan::Port;
use crate::error::{Failure, Result};
use crate::files;
use crate::process::check_interrupted;

/// The place of the new project: one that does not exist, or an empty directory.
pub fn destination(port_name: &str, given: Option<&Path>, source: &Path) -> Result<PathBuf> {
    let path = given.map_or_else(|| PathBuf::from(format!("{port_name}-cuwheel")), Path::to_path_buf);
    let path = files::absolute(&path)?;
    files::utf8(&path)?;
    if path.starts_with(source) {
        return Err(Failure::usage(format!(
            "{} is inside of the existing project, which is not changed",
            path.display()
        ))
        .remedy("name another directory with --path")
        .into());
    }
    let Ok(data) = std::fs::symlink_metadata(&path) else { return Ok(path) };
    let is_empty = data.is_dir() && fs::read_dir(&path)?.next().is_none();
    if is_empty {
        return Ok(path);
    }
    let what = if data.is_dir() { "is not empty" } else { "is in the way, and is no directory" };
    Err(Failure::usage(format!("{} {what}", path.display())).remedy("name another directory with --path").into())
}

/// Writes the project beside its place, and gives it its name in one step.
pub fn write(port: &Port, destination: &Path) -> Result<()> {
    let parent = destination.parent().unwrap_or(destination);
    fs::create_dir_all(parent)?;
    let temporary = tempfile::Builder::new()
        .prefix(".cuwheel-new-")
        .tempdir_in(parent)
        .map_err(|error| anyhow::Error::new(error).context(format!("creating a directory in {}", parent.display())))?;
    let project = temporary.path().join("project");
    fs::create_dir(&project)?;
    let place = |path: &str| -> Result<PathBuf> {
        check_interrupted()?;
        debug_assert!(files::is_inside(path), "{path} leaves the project");
        let path = project.join(path);
        fs::create_dir_all(path.parent().unwrap_or(&project))?;
        Ok(path)
    };
    for (from, to) in &port.copies {
        fs::copy(port.source.join(from), place(to)?)?;
    }
    for file in &port.files {
        fs::write(place(&file.path)?, &file.text)?;
    }
    if destination.exists() {
        fs::remove_dir(destination)?;
    }
    fs::rename(&project, destination)?;
    Ok(())
}
