//! Whose the library in the target directory is.
//!
//! Cargo gives a `cdylib` no name of its own: of two projects that share a target directory and a library's name, one
//! overwrites the other's, which cargo then still holds for fresh. Not for locking: the target directory is locked while
//! this is used.

use std::path::PathBuf;

use fs_err as fs;

use crate::error::Result;
use crate::files;
use crate::project::Project;

/// The libraries that a build leaves in the target directory, with a note on who left them.
#[derive(Debug)]
pub struct LibraryOwner {
    libraries: Vec<PathBuf>,
    note: PathBuf,
    project: String,
}

impl LibraryOwner {
    /// Of a project, whose libraries are below `profile_directories`.
    pub fn of(project: &Project, profile_directories: &[PathBuf]) -> Self {
        let name = project.manifest.library_name();
        Self {
            libraries: profile_directories
                .iter()
                .map(|profile| profile.join("deps").join(format!("lib{name}.so")))
                .collect(),
            note: project.work_directory().join(format!("lib{name}.owner")),
            project: project.manifest.path().display().to_string(),
        }
    }

    /// Who made the libraries that are there now, if it was us.
    fn text(&self) -> String {
        let hash = |library: &PathBuf| files::sha256_of_file(library).unwrap_or_default();
        format!("{}\n{:?}\n", self.project, self.libraries.iter().map(hash).collect::<Vec<_>>())
    }

    /// Removes libraries that this project's last build did not leave, so that cargo makes them again.
    pub fn take_over(&self) -> Result<()> {
        if fs::read_to_string(&self.note).is_ok_and(|noted| noted == self.text()) {
            return Ok(());
        }
        self.libraries.iter().filter(|library| library.is_file()).try_for_each(|library| Ok(fs::remove_file(library)?))
    }

    /// Notes that the libraries are this project's.
    pub fn remember(&self) -> Result<()> {
        files::write_if_changed(&self.note, self.text().as_bytes()).map(drop)
    }
}
