//! The tool's cache: directories that any project of this user shares and that can be made again.
//!
//! Not for what belongs to one checkout: that is in cargo's target directory.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use fs_err as fs;
use tempfile::TempDir;

use crate::env_vars;
use crate::error::{Failure, Result};
use crate::files;
use crate::lock_file::FileLock;

/// The root of the cache.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
}

const SCRATCH: &str = "scratch";

/// A directory in the cache that is removed when it is dropped. A lock beside it is held meanwhile, so that what a killed
/// process left can be told from what a live one works on.
#[derive(Debug)]
pub struct Scratch {
    directory: TempDir,
    lock: PathBuf,
    _held: FileLock,
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // The directory goes before the lock: what is left in between is found by the next process.
        let _ = std::fs::remove_dir_all(self.directory.path());
        let _ = std::fs::remove_file(&self.lock);
    }
}

impl Scratch {
    /// Where it is.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }
}

impl Cache {
    /// Finds the cache from the environment.
    pub fn locate() -> Result<Self> {
        let below =
            |variable: &env_vars::Variable, name: &str| variable.get().map(|base| PathBuf::from(base).join(name));
        let root = env_vars::CUWHEEL_CACHE_DIR
            .get()
            .map(PathBuf::from)
            .or_else(|| below(&env_vars::XDG_CACHE_HOME, "cuwheel"))
            .or_else(|| below(&env_vars::HOME, ".cache/cuwheel"))
            .ok_or_else(|| {
                Failure::machine("there is no home directory for the cache")
                    .remedy("set CUWHEEL_CACHE_DIR to a directory that may be written")
            })?;
        Ok(Self::at(&files::absolute(&root)?))
    }

    /// The cache at a directory.
    pub fn at(root: &Path) -> Self {
        Self { root: root.to_path_buf() }
    }

    /// Where something of the cache is, whether it exists or not.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// A directory of the cache, created when it is absent.
    pub fn directory(&self, name: &str) -> Result<PathBuf> {
        let directory = self.root.join(name);
        fs::create_dir_all(&directory)?;
        Ok(directory)
    }

    /// A directory on the file system of the cache, for what is later renamed into it.
    pub fn scratch(&self, purpose: &str) -> Result<Scratch> {
        let _gate = self.gate()?;
        let parent = self.directory(SCRATCH)?;
        let directory = tempfile::Builder::new()
            .prefix(&format!("{purpose}-"))
            .tempdir_in(&parent)
            .with_context(|| format!("creating a directory in {}", parent.display()))?;
        let lock = lock_of(directory.path());
        let held = FileLock::try_acquire(&lock)?.context("a new lock is free")?;
        Ok(Scratch { directory, lock, _held: held })
    }

    /// Held while a scratch directory gets its lock, and while abandoned ones are looked for: so one without a lock is one
    /// whose maker was killed in between.
    fn gate(&self) -> Result<FileLock> {
        FileLock::wait(&self.directory("locks")?.join("scratch.lock"))
    }

    /// Removes what killed processes left behind. It is housekeeping: what cannot be removed stays.
    pub fn remove_abandoned(&self) {
        let Ok(_gate) = self.gate() else { return };
        let Ok(entries) = self.directory(SCRATCH).and_then(|directory| Ok(fs::read_dir(directory)?)) else { return };
        for path in entries.flatten().map(|entry| entry.path()) {
            let (directory, lock) = match path.to_str().and_then(|path| path.strip_suffix(LOCK_SUFFIX)) {
                Some(directory) => (PathBuf::from(directory), path),
                None => (path.clone(), lock_of(&path)),
            };
            let is_abandoned = !lock.exists() || matches!(FileLock::try_acquire(&lock), Ok(Some(_)));
            if is_abandoned {
                let _ = std::fs::remove_dir_all(directory);
                let _ = std::fs::remove_file(&lock);
            }
        }
    }
}

const LOCK_SUFFIX: &str = ".lock";

fn lock_of(directory: &Path) -> PathBuf {
    let mut name = directory.as_os_str().to_owned();
    name.push(LOCK_SUFFIX);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn abandoned_scratch_is_removed_and_used_scratch_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache { root: directory.path().to_path_buf() };
        let used = cache.scratch("used").unwrap();
        let abandoned = cache.directory(SCRATCH).unwrap().join("env-killed");
        fs::create_dir_all(&abandoned).unwrap();
        let without_lock = cache.directory(SCRATCH).unwrap().join("env-killed-before-it-was-locked");
        fs::create_dir_all(without_lock.join("deep")).unwrap();
        fs::write(lock_of(&abandoned), "").unwrap();
        cache.remove_abandoned();
        assert!(!without_lock.exists());
        assert!(used.path().is_dir() && !abandoned.exists() && !lock_of(&abandoned).exists());
        let path = used.path().to_path_buf();
        drop(used);
        assert!(!path.exists() && fs::read_dir(path.parent().unwrap()).unwrap().next().is_none());
    }
}
