//! Writes a new project: all of it, or nothing. The existing one is only read.

use std::path::{Path, PathBuf};

use fs_err as fs;

use super::plan::Port;
use crate::error::{Failure, Result};
use crate::files;
use crate::new::destination::Destination;
use crate::process::check_interrupted;

/// The place of the new project: one that does not exist, or an empty directory; `./NAME-cuwheel` where none is given.
pub fn destination(name: &str, given: Option<&Path>, source: &Path) -> Result<Destination> {
    let path = given.map_or_else(|| PathBuf::from(format!("{name}-cuwheel")), Path::to_path_buf);
    let path = files::absolute(&path)?;
    // Through links too: what is inside of the old project would change it, and be part of it the next time.
    let above = Destination::examine(&path)?;
    if path.starts_with(source) || files::resolved(&above.nearest_directory()).starts_with(files::resolved(source)) {
        return Err(Failure::usage(format!(
            "{} is inside of the existing project, which is not changed",
            path.display()
        ))
        .remedy("name another directory with --path")
        .into());
    }
    Ok(above)
}

/// Writes the project beside its place, and gives it its name in one step.
pub fn write(port: &Port, destination: &Destination) -> Result<()> {
    destination.fill(&port.files, |project| {
        for (from, to) in &port.copies {
            check_interrupted()?;
            debug_assert!(files::is_inside(to), "{to} leaves the project");
            let to = project.join(to);
            fs::create_dir_all(to.parent().unwrap_or(project))?;
            fs::copy(port.source.join(from), to)?;
        }
        Ok(())
    })
}
