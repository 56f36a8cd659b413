//! Files that would be imported instead of the one that was just built: an extension module of an older ABI beside it, a
//! build directory or another copy of the package earlier on the path.
//!
//! Those that are an earlier install's own are removed, others are named. Not for the proof that the right file is loaded,
//! which a fresh process gives: see [`crate::proof`].

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::destination::Destination;
use crate::env_vars;
use crate::error::{Failure, Result};
use crate::files;
use crate::process::Process;

const SCRIPT: &str = include_str!("../python/find_winners.py");

/// The files that an interpreter would load for modules, the winner first.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Winners {
    everywhere: BTreeMap<String, Vec<PathBuf>>,
    in_project: BTreeMap<String, Vec<PathBuf>>,
}

/// A process of the Python that is installed for, which sees what the user's own would, but for the working directory.
pub fn python(destination: &Destination, directory: &Path) -> Process {
    Process::new(&destination.python)
        .arg("-P")
        .directory(directory)
        // What is looked at is what is there, not what could be built.
        .env(env_vars::CUWHEEL_REBUILD_ON_IMPORT.name, "0")
}

fn ask(destination: &Destination, arguments: &[&OsStr]) -> Result<String> {
    let finished = python(destination, Path::new("/")).args(["-c", SCRIPT]).args(arguments).capture()?;
    if finished.status.success() {
        return Ok(finished.stdout);
    }
    Err(Failure::machine(format!("{} does not run", destination.python.display())).details(finished.tail(8)).into())
}

/// Where the interpreter of `destination` finds what is installed.
pub fn site_packages(destination: &Destination) -> Result<PathBuf> {
    let answer = ask(destination, &[OsStr::new("/")])?;
    // Files of the environment may print when it starts.
    let found = answer.lines().find_map(|line| line.strip_prefix("site-packages\t\t"));
    Ok(found.with_context(|| format!("{} gave no answer", destination.python.display()))?.into())
}

impl Winners {
    /// Asks the interpreter of `destination`. `project` is where a user may start it.
    pub fn ask<'a>(
        destination: &Destination,
        modules: impl Iterator<Item = &'a String>,
        project: &'a Path,
    ) -> Result<Self> {
        let mut arguments = vec![project.as_os_str()];
        arguments.extend(modules.map(OsStr::new));
        Ok(Self::read(&ask(destination, &arguments)?))
    }

    fn read(answer: &str) -> Self {
        let mut winners = Self::default();
        for line in answer.lines() {
            let mut fields = line.splitn(3, '\t');
            let (Some(place), Some(module), Some(file)) = (fields.next(), fields.next(), fields.next()) else {
                continue;
            };
            let found = match place {
                "everywhere" => &mut winners.everywhere,
                "in-directory" => &mut winners.in_project,
                // Files of the environment may print when it starts.
                _ => continue,
            };
            found.entry(module.to_owned()).or_default().push(file.into());
        }
        winners
    }

    /// The files that win over the one that each module is to be loaded from, each with its module.
    pub fn shadows<'a>(&'a self, expected: &'a BTreeMap<String, PathBuf>) -> Vec<(&'a str, &'a Path)> {
        shadows(&self.everywhere, expected)
    }

    /// Those that win only where Python is started in the project.
    pub fn shadows_in_project<'a>(&'a self, expected: &'a BTreeMap<String, PathBuf>) -> Vec<(&'a str, &'a Path)> {
        let everywhere = self.shadows(expected);
        let found = shadows(&self.in_project, expected);
        found.into_iter().filter(|shadow| !everywhere.contains(shadow)).collect()
    }

    /// Modules that are not found where they are to be.
    pub fn unreachable<'a>(&'a self, expected: &'a BTreeMap<String, PathBuf>) -> Vec<&'a str> {
        let is_found = |(module, file): &(&String, &PathBuf)| {
            self.everywhere.get(*module).is_some_and(|files| files.iter().any(|found| files::is_same(found, file)))
        };
        expected.iter().filter(|entry| !is_found(entry)).map(|(module, _)| module.as_str()).collect()
    }
}

fn shadows<'a>(
    found: &'a BTreeMap<String, Vec<PathBuf>>,
    expected: &'a BTreeMap<String, PathBuf>,
) -> Vec<(&'a str, &'a Path)> {
    let before = |(module, file): (&'a String, &'a PathBuf)| {
        let files = found.get(module).map_or(&[][..], Vec::as_slice);
        let winning = files.iter().take_while(move |found| !files::is_same(found, file));
        winning.map(move |found| (module.as_str(), found.as_path()))
    };
    expected.iter().flat_map(before).collect()
}

/// What to say of files that win and are not ours to remove.
pub fn refusal(project: &str, shadows: &[(&str, &Path)]) -> Failure {
    let lines = shadows.iter().map(|(module, file)| format!("{module} is imported from {}", file.display()));
    Failure::failed(format!("what was built of {project} is not what Python imports"))
        .details(lines)
        .remedy("remove it, or take its directory off the search path: PYTHONPATH, .pth files, other installs")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_before_the_expected_file_wins_over_it() {
        let answer = "noise\neverywhere\tp._n\t/a/p/_n.so\neverywhere\tp._n\t/b/p/_n.so\n\
                      in-directory\tp._n\t/c/p/__init__.py\nin-directory\tp._n\t/b/p/_n.so\n";
        let winners = Winners::read(answer);
        let expected = |file: &str| BTreeMap::from([("p._n".to_owned(), PathBuf::from(file))]);
        assert!(winners.shadows(&expected("/a/p/_n.so")).is_empty());
        assert_eq!(winners.shadows(&expected("/b/p/_n.so")), [("p._n", Path::new("/a/p/_n.so"))]);
        assert_eq!(winners.shadows_in_project(&expected("/b/p/_n.so")), [("p._n", Path::new("/c/p/__init__.py"))]);
        assert_eq!(winners.unreachable(&expected("/d/p/_n.so")), ["p._n"]);
    }
}
