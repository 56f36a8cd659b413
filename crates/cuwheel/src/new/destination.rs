//! Where a new project appears: all of it, or nothing.
//!
//! Not for what is in it.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use fs_err as fs;
use tempfile::TempDir;

use super::rendering::RenderedFile;
use crate::error::{Failure, Result};
use crate::files;
use crate::process::check_interrupted;

/// A directory that a project may be put into: one that does not exist, or one with nothing of a user's in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// The directory, absolute.
    pub directory: PathBuf,
    /// Whether it is there already.
    pub exists: bool,
    /// Whether it is the root of a git checkout, without a file yet.
    pub has_git: bool,
}

/// What a directory may hold that is to become a project.
const GIT: &str = ".git";
/// How many names of what is in the way are shown.
const SHOWN: usize = 5;

impl Destination {
    /// Looks at the place.
    pub fn examine(directory: &Path) -> Result<Self> {
        let directory = files::absolute(directory)?;
        files::utf8(&directory)?;
        let Ok(data) = std::fs::symlink_metadata(&directory) else {
            return Self::new(directory);
        };
        if !(data.is_dir() || data.is_symlink() && directory.is_dir()) {
            return Err(Failure::usage(format!("{} is in the way, and is no directory", directory.display()))
                .remedy("name another directory with --path")
                .into());
        }
        let mut names: Vec<String> = fs::read_dir(&directory)?
            .map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()))
            .collect::<Result<_, _>>()?;
        names.sort();
        let has_git = names.iter().any(|name| name == GIT);
        names.retain(|name| name != GIT);
        if names.is_empty() {
            return Ok(Self { directory, exists: true, has_git });
        }
        let more = names.len().saturating_sub(SHOWN);
        names.truncate(SHOWN);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        Err(Failure::usage(format!("{} is not empty", directory.display()))
            .detail(format!("it has {}{more}", names.join(", ")))
            .remedy("name another directory with --path, or empty this one")
            .into())
    }

    /// One that does not exist: the first directory above it that does has to be a directory.
    fn new(directory: PathBuf) -> Result<Self> {
        let above = nearest(&directory);
        if above.is_dir() && directory.file_name().is_some() {
            return Ok(Self { directory, exists: false, has_git: false });
        }
        Err(Failure::usage(format!("{} cannot be made: {} is no directory", directory.display(), above.display()))
            .remedy("name another directory with --path")
            .into())
    }

    /// The nearest directory that exists: this one, or one above it.
    pub fn nearest_directory(&self) -> PathBuf {
        nearest(&self.directory)
    }

    /// Writes the files into a directory beside the place, has `finish` do the rest there, and moves everything to where it
    /// belongs in one step. If anything fails, nothing is left.
    pub fn fill(&self, files: &[RenderedFile], finish: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
        let made = Made::parents_of(&self.directory)?;
        // Inside of a directory that exists: the one above it may be another file system, or not writable.
        let place = if self.exists { self.directory.as_path() } else { made.parent.as_path() };
        let temporary = tempfile::Builder::new().prefix(".cuwheel-new-").tempdir_in(place).map_err(|error| {
            anyhow::Error::new(error).context(format!("creating a directory in {}", place.display()))
        })?;
        let project = temporary.path().join("project");
        fs::create_dir(&project)?;
        for file in files {
            check_interrupted()?;
            let path = project.join(&file.path);
            fs::create_dir_all(path.parent().unwrap_or(&project))?;
            fs::write(&path, &file.text)?;
            if file.is_executable {
                fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))?;
            }
        }
        finish(&project)?;
        check_interrupted()?;
        if self.exists {
            move_into(&project, &self.directory)?;
        } else {
            fs::rename(&project, &self.directory)?;
        }
        made.keep();
        close(temporary);
        Ok(())
    }
}

/// What is left of it is empty; that it cannot be removed changes nothing about the project.
fn close(temporary: TempDir) {
    let _ = temporary.close();
}

fn nearest(directory: &Path) -> PathBuf {
    let there = |path: &&Path| std::fs::symlink_metadata(path).is_ok();
    directory.ancestors().find(there).unwrap_or(directory).to_path_buf()
}

/// Moves what is in one directory into another. What was moved before a failure is removed again.
fn move_into(from: &Path, to: &Path) -> Result<()> {
    let mut moved: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if let Err(error) = fs::rename(entry.path(), &target) {
            for path in moved {
                let _ = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            }
            return Err(error.into());
        }
        moved.push(target);
    }
    Ok(())
}

/// The directories above a project that were made for it; removed again unless they are kept.
struct Made {
    parent: PathBuf,
    /// The innermost comes first.
    created: Vec<PathBuf>,
}

impl Made {
    fn parents_of(directory: &Path) -> Result<Self> {
        let parent = directory.parent().unwrap_or(directory).to_path_buf();
        let created = parent.ancestors().take_while(|path| !path.exists()).map(Path::to_path_buf).collect();
        let made = Self { parent, created };
        fs::create_dir_all(&made.parent)?;
        Ok(made)
    }

    fn keep(mut self) {
        self.created.clear();
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        for directory in &self.created {
            // Someone else may have put something there meanwhile.
            let _ = fs::remove_dir(directory);
        }
    }
}
