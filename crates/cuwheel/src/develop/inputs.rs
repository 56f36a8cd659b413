//! What the native part of an editable install was made from, by content: what cargo noted that it read, and what
//! compilers of C and CUDA may read.
//!
//! Python files are none of it: they are live. Not for wheels, which hold all of the tree: see [`crate::sources`].

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::cargo_config::CargoConfig;
use crate::error::Result;
use crate::files;
use crate::project::Project;
use crate::sources;

/// What the file system says of a file that cannot stay the same when its content changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Its size.
    pub size_bytes: u64,
    /// The time of its last modification, in nanoseconds.
    pub modified_ns: i128,
    /// The time of its last change, which no program can set.
    pub changed_ns: i128,
    /// Its number in the file system.
    pub inode: u64,
}

impl Stat {
    /// Asks for it; `None` for what is absent.
    pub fn of(path: &Path) -> Option<Self> {
        let data = std::fs::metadata(path).ok()?;
        let nanoseconds = |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
        Some(Self {
            size_bytes: data.size(),
            modified_ns: nanoseconds(data.mtime(), data.mtime_nsec()),
            changed_ns: nanoseconds(data.ctime(), data.ctime_nsec()),
            inode: data.ino(),
        })
    }
}

/// The hash of a file, or `None` for one that is absent.
pub type Hashes = BTreeMap<PathBuf, Option<String>>;

/// Files as they were read: with hashes, and with what the file system said just before.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// The contents.
    pub hashes: Hashes,
    /// What the file system said.
    pub stats: BTreeMap<PathBuf, Option<Stat>>,
}

impl Snapshot {
    /// Reads files, several at a time.
    pub fn take(paths: &BTreeSet<PathBuf>) -> Self {
        let paths: Vec<&PathBuf> = paths.iter().collect();
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(8);
        let read = |path: &&PathBuf| {
            let stat = Stat::of(path);
            ((*path).clone(), stat, files::sha256_of_file(path).ok())
        };
        let seen: Vec<(PathBuf, Option<Stat>, Option<String>)> = std::thread::scope(|scope| {
            let parts = paths.chunks(paths.len().div_ceil(threads).max(1));
            let workers: Vec<_> =
                parts.map(|part| scope.spawn(move || part.iter().map(read).collect::<Vec<_>>())).collect();
            // Hashing does not panic; a part that is missing would count as a change.
            workers.into_iter().flat_map(|worker| worker.join().unwrap_or_default()).collect()
        });
        // They come in their order: a map is made of them at once, which inserting one by one is not.
        let stats = seen.iter().map(|(path, stat, _)| (path.clone(), *stat)).collect();
        Self { stats, hashes: seen.into_iter().map(|(path, _, sha256)| (path, sha256)).collect() }
    }
}

/// Where a file that a project may have would change its build.
const DECIDING: &[&str] = &["pyproject.toml", "Cargo.toml", "Cargo.lock", "rust-toolchain", "rust-toolchain.toml"];

/// Everything that is known to be read before a build ran. Files that are absent and would be read belong to it.
pub fn known(project: &Project) -> Result<BTreeSet<PathBuf>> {
    let mut inputs: BTreeSet<PathBuf> = sources::native_sources(project)?.into_iter().collect();
    for directory in project.manifest.crate_directories()? {
        inputs.extend(["Cargo.toml", "build.rs"].map(|name| directory.join(name)));
    }
    for directory in [&project.root, project.manifest.workspace_root()] {
        inputs.extend(DECIDING.iter().map(|name| directory.join(name)));
    }
    inputs.extend(CargoConfig::read(&project.root)?.into_paths());
    Ok(inputs)
}

/// What a build read beside that, by the notes that cargo left in `profile_directories`.
pub fn noted(project: &Project, profile_directories: &[PathBuf]) -> Result<BTreeSet<PathBuf>> {
    let note = format!("lib{}.d", project.manifest.library_name());
    let mut noted = BTreeSet::new();
    for directory in profile_directories {
        noted.extend(sources::noted_in(project, &directory.join(&note))?);
    }
    for directory in project.manifest.crate_directories()? {
        if has_silent_build_script(&directory, profile_directories) {
            // Cargo then runs it again for whatever changes in the package.
            let package = sources::walk(project, &directory, true)?;
            noted.extend(package.into_iter().filter(|path| !is_live(project, path)));
        }
    }
    noted.retain(|path| path.is_file() && !path.starts_with(&project.target_directory));
    Ok(noted)
}

/// Whether the build script of a crate told cargo of no file that it reads.
fn has_silent_build_script(directory: &Path, profile_directories: &[PathBuf]) -> bool {
    let Ok(manifest) = crate::cargo_manifest::CargoManifest::open(&directory.join("Cargo.toml")) else { return false };
    if !directory.join("build.rs").is_file() {
        return false;
    }
    let prefix = format!("{}-", manifest.package_name().unwrap_or_default());
    let scripts = profile_directories.iter().filter_map(|profile| std::fs::read_dir(profile.join("build")).ok());
    let outputs = scripts.flatten().flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix));
    let outputs: Vec<String> =
        outputs.filter_map(|entry| std::fs::read_to_string(entry.path().join("output")).ok()).collect();
    !outputs.iter().any(|output| output.contains("rerun-if-changed="))
}

/// Whether a file is one of the Python packages, which need no build, or a result of one.
fn is_live(project: &Project, path: &Path) -> bool {
    let is_python =
        path.extension().is_some_and(|found| ["py", "pyi", "pyc", "so"].iter().any(|known| found == *known));
    let in_package = path.strip_prefix(&project.python_source).is_ok_and(|inside| inside.components().count() > 1);
    is_python && in_package
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_has_contents_and_says_what_is_absent() {
        let directory = tempfile::tempdir().unwrap();
        let paths: BTreeSet<PathBuf> = (0..40).map(|number| directory.path().join(format!("file {number}"))).collect();
        for path in paths.iter().skip(1) {
            std::fs::write(path, path.as_os_str().as_encoded_bytes()).unwrap();
        }
        let snapshot = Snapshot::take(&paths);
        assert_eq!(snapshot.hashes.len(), 40);
        for (path, sha256) in snapshot.hashes.iter().skip(1) {
            assert_eq!(sha256.as_deref(), Some(files::sha256(path.as_os_str().as_encoded_bytes()).as_str()));
        }
        let absent = paths.first().unwrap();
        assert!(snapshot.hashes[absent].is_none() && snapshot.stats[absent].is_none());
        assert!(Snapshot::take(&BTreeSet::new()).hashes.is_empty());
    }
}
