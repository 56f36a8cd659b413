//! Files beside the sources: native libraries as they load from there, put in place without disturbing who uses them.
//!
//! Not for site-packages: see [`super::site`].

use std::path::{Component, Path, PathBuf};

use cuwheel_inspect::elf::ElfFile;
use fs_err as fs;

use super::layout::{Layout, Placed};
use super::note::{FileNote, Note};
use crate::error::{Failure, Result};
use crate::files;
use crate::patchelf::{Edit, Patchelf};
use crate::project::Project;
use crate::repair::difference;

/// Gives each library a search path for the place where it lies: what the released one looks for beside itself in
/// site-packages is named by its absolute path. `patchelf` is asked for only when there is something to edit.
pub fn adapt_search_paths(
    layout: &mut Layout,
    project: &Project,
    site_packages: &Path,
    patchelf: &dyn Fn() -> Result<Patchelf>,
) -> Result<()> {
    let scratch = tempfile::tempdir()?;
    for placed in &mut layout.placed {
        let Some(run_path) = development_run_path(placed, project, site_packages)? else { continue };
        let edit = Edit { run_path: Some(run_path), ..Edit::default() };
        let edited = patchelf()?.edit(&placed.entry, &placed.content, &edit, scratch.path())?;
        difference::check(&placed.entry, &placed.content, &edited, &edit)?;
        placed.content = edited;
    }
    Ok(())
}

/// The search path of a library where it lies, if it has one that is another there.
fn development_run_path(placed: &Placed, project: &Project, site_packages: &Path) -> Result<Option<Vec<String>>> {
    if !placed.content.starts_with(b"\x7fELF") {
        return Ok(None);
    }
    let library = ElfFile::parse(&placed.content).map_err(|error| {
        Failure::failed(format!("{} cannot be read: {error}", placed.entry)).remedy("build it again with --force")
    })?;
    let entries: Vec<&str> = library.runpath().or(library.rpath()).unwrap_or_default().split(':').collect();
    let directory = Path::new(&placed.entry).parent().unwrap_or(Path::new(""));
    let adapted: Vec<String> =
        entries.iter().map(|entry| adapted(entry, directory, (&project.python_source, site_packages))).collect();
    Ok((adapted != entries).then_some(adapted))
}

/// An entry of a search path, for a library whose place in the wheel is `directory`. What lies in a package of the tree
/// stays relative; everything else is where it is installed.
fn adapted(entry: &str, directory: &Path, (tree, site_packages): (&Path, &Path)) -> String {
    let Some(inside) = entry.strip_prefix("$ORIGIN").or_else(|| entry.strip_prefix("${ORIGIN}")) else {
        return entry.to_owned();
    };
    let path = normalise(&site_packages.join(directory).join(inside.trim_start_matches('/')));
    let package = path.strip_prefix(site_packages).ok().and_then(|path| path.components().next());
    match package {
        Some(package) if tree.join(package).is_dir() => entry.to_owned(),
        _ => path.display().to_string(),
    }
}

/// Removes `.` and `..` by name only.
fn normalise(path: &Path) -> PathBuf {
    let mut result = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => _ = result.pop(),
            Component::CurDir => {}
            other => result.push(other),
        }
    }
    result
}

/// The files as they are remembered.
pub fn notes(layout: &Layout) -> Vec<FileNote> {
    let note = |placed: &Placed| FileNote { path: placed.path.clone(), sha256: files::sha256(&placed.content) };
    layout.placed.iter().map(note).collect()
}

/// Puts the files in place. Those that had another content are returned.
pub fn put(layout: &Layout) -> Result<Vec<PathBuf>> {
    let mut replaced = Vec::new();
    for placed in &layout.placed {
        let was_there = placed.path.exists();
        if files::replace(&placed.path, &placed.content, placed.mode)? && was_there {
            replaced.push(placed.path.clone());
        }
    }
    Ok(replaced)
}

/// Removes what an earlier install of the same environment put beside the sources, and this one did not, unless another
/// environment needs it. What was changed since is nobody's.
pub fn remove_outdated(before: Option<&Note>, now: &[FileNote], others: &[Note]) -> Result<Vec<PathBuf>> {
    let mut removed = Vec::new();
    for file in before.into_iter().flat_map(|note| &note.placed) {
        let is_used = |known: &FileNote| known.path == file.path;
        let is_needed = now.iter().any(is_used) || others.iter().any(|note| note.placed.iter().any(is_used));
        if !is_needed && file.holds() {
            fs::remove_file(&file.path)?;
            removed.push(file.path.clone());
        }
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pk_45_a_search_path_of_the_release_is_made_one_of_the_machine() {
        let tree = tempfile::tempdir().unwrap();
        fs::create_dir_all(tree.path().join("pkg/cu13")).unwrap();
        let site = Path::new("/venv/lib/python3.11/site-packages");
        let entry = |entry: &str| adapted(entry, Path::new("pkg/cu13"), (tree.path(), site));
        assert_eq!(entry("$ORIGIN/../../nvidia/cu13/lib"), "/venv/lib/python3.11/site-packages/nvidia/cu13/lib");
        assert_eq!(entry("${ORIGIN}/../../../../"), "/venv/lib");
        for same in ["$ORIGIN", "$ORIGIN/../lib", "/opt/cuda/lib64", ""] {
            assert_eq!(entry(same), same);
        }
    }
}
