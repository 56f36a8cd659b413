//! Locks between processes: `flock`, so that the kernel releases what a killed process held.
//!
//! Not for threads, and not the requirement locks of [`crate::requirements`].

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;

use crate::error::Result;
use crate::output::Output;
use crate::process::check_interrupted;

/// A lock that is held until it is dropped.
#[derive(Debug)]
pub struct FileLock {
    _file: File,
}

impl FileLock {
    /// Takes the lock, waiting for a live holder, which is named. What a dead holder left behind is simply taken over.
    pub fn acquire(path: &Path, purpose: &str, output: &Output) -> Result<Self> {
        if let Some(directory) = path.parent() {
            fs_err::create_dir_all(directory)?;
        }
        let mut file = OpenOptions::new()
            .create(true)
            .read(true)
            .write(true)
            .truncate(false)
            .open(path)
            .with_context(|| format!("opening the lock {}", path.display()))?;
        let mut named = false;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) => {
                    if !named {
                        output.warn(format!("waiting for {}, which holds {}", holder(&mut file), path.display()));
                        named = true;
                    }
                    check_interrupted()?;
                    std::thread::sleep(Duration::from_millis(50));
                }
                Err(TryLockError::Error(error)) => {
                    return Err(error).with_context(|| format!("locking {}", path.display()));
                }
            }
        }
        file.set_len(0)?;
        file.rewind()?;
        write!(file, "process {} ({purpose})", std::process::id())?;
        file.flush()?;
        Ok(Self { _file: file })
    }

    /// Takes a lock that nobody holds for longer than a moment.
    pub fn wait(path: &Path) -> Result<Self> {
        let file = OpenOptions::new().create(true).read(true).write(true).truncate(false).open(path)?;
        file.lock().with_context(|| format!("locking {}", path.display()))?;
        Ok(Self { _file: file })
    }

    /// Takes the lock if nobody holds it.
    pub fn try_acquire(path: &Path) -> Result<Option<Self>> {
        let file = OpenOptions::new().create(true).read(true).write(true).truncate(false).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error).with_context(|| format!("locking {}", path.display())),
        }
    }
}

fn holder(file: &mut File) -> String {
    let mut text = String::new();
    let read = file.rewind().and_then(|()| file.read_to_string(&mut text));
    if read.is_ok() && !text.is_empty() { text } else { "another process".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Verbosity;

    #[test]
    fn a_lock_names_its_holder_and_is_free_after_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let output = Output::new(Verbosity::Quiet, false);
        let held = FileLock::acquire(&path, "build-wheel", &output).unwrap();
        assert!(FileLock::try_acquire(&path).unwrap().is_none());
        assert_eq!(holder(&mut File::open(&path).unwrap()), format!("process {} (build-wheel)", std::process::id()));
        drop(held);
        assert!(FileLock::try_acquire(&path).unwrap().is_some());
    }

    #[test]
    fn what_a_killed_holder_left_is_taken_over() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        std::fs::write(&path, "process 1 (killed long ago, and a longer text than ours will ever be)").unwrap();
        let _held = FileLock::acquire(&path, "test", &Output::new(Verbosity::Quiet, false)).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("process {} (test)", std::process::id()));
    }
}
