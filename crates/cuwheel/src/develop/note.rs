//! What is remembered of an editable install: what it was made from, how, and which files are its own.
//!
//! Notes are kept in the tool's cache, one for each checkout and environment, so that neither a deleted build directory nor
//! an environment that was made anew takes the knowledge along of what lies where. Not for comparing wheels: see
//! [`crate::commands::build_wheel`].

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fs_err as fs;
use serde::{Deserialize, Serialize};

use super::destination::Destination;
use super::inputs::{Hashes, Snapshot};
use crate::cache::Cache;
use crate::error::Result;
use crate::files;
use crate::project::Project;

/// Counted up when notes change their meaning: older ones are as good as none.
const LAYOUT: u32 = 1;

/// The file in a directory of notes that names the checkout.
const CHECKOUT: &str = "checkout";

/// What the command line said of an install.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Options {
    /// `--profile`.
    pub profile: String,
    /// `--rebuild-on-import`.
    pub rebuild_on_import: bool,
    /// `--extra`.
    pub extras: Vec<String>,
    /// `--group`.
    pub groups: Vec<String>,
    /// Not `--no-deps`.
    pub dependencies: bool,
}

/// A file that was put somewhere.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct FileNote {
    /// Where, absolute.
    pub path: PathBuf,
    /// Its content.
    pub sha256: String,
}

impl FileNote {
    /// Whether the file is still that one.
    pub fn holds(&self) -> bool {
        files::sha256_of_file(&self.path).is_ok_and(|sha256| sha256 == self.sha256)
    }
}

/// Everything that is remembered of one install.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Note {
    layout: u32,
    /// Whether the install was proven. Before that, the note only says which files are its own.
    pub proven: bool,
    /// The checkout.
    pub project: PathBuf,
    /// The environment.
    pub environment: PathBuf,
    /// What the command line said.
    pub options: Options,
    /// What decided the build beside the inputs, by names that a person reads.
    pub facts: BTreeMap<String, String>,
    /// What was read.
    pub inputs: Hashes,
    /// Those inputs that are only known after a build.
    pub noted: Vec<PathBuf>,
    /// Environment variables that build scripts asked for.
    pub variables: Vec<String>,
    /// Files beside the sources.
    pub placed: Vec<FileNote>,
    /// Files in site-packages.
    pub site: Vec<FileNote>,
    /// Programs that were installed.
    pub programs: Vec<PathBuf>,
    /// Native modules, each with the file that it is loaded from.
    pub modules: BTreeMap<String, PathBuf>,
    /// The modules that proved it.
    pub imported: Vec<String>,
}

impl Note {
    /// An empty one.
    pub fn new(project: &Project, destination: &Destination, options: &Options) -> Self {
        Self {
            layout: LAYOUT,
            proven: false,
            project: project.root.clone(),
            environment: destination.directory.clone(),
            options: options.clone(),
            facts: BTreeMap::new(),
            inputs: Hashes::new(),
            noted: Vec::new(),
            variables: Vec::new(),
            placed: Vec::new(),
            site: Vec::new(),
            programs: Vec::new(),
            modules: BTreeMap::new(),
            imported: Vec::new(),
        }
    }

    /// Why it no longer holds for these facts and these contents; empty when it does.
    pub fn differences(&self, facts: &BTreeMap<String, String>, now: &Snapshot) -> Vec<String> {
        let mut reasons = Vec::new();
        if !self.proven {
            reasons.push("the last install did not get to its end".to_owned());
        }
        for (name, value) in facts {
            if self.facts.get(name) != Some(value) {
                reasons.push(difference(name, self.facts.get(name), value));
            }
        }
        reasons
            .extend(self.facts.keys().filter(|name| !facts.contains_key(*name)).map(|name| format!("{name} is gone")));
        for (path, sha256) in &now.hashes {
            match (self.inputs.get(path), sha256) {
                (Some(before), after) if before == after => {}
                (None, None) => {}
                (None | Some(None), _) => reasons.push(format!("{} is new", self.shown(path))),
                (Some(Some(_)), None) => reasons.push(format!("{} is gone", self.shown(path))),
                (Some(Some(_)), Some(_)) => reasons.push(format!("{} changed", self.shown(path))),
            }
        }
        for (path, sha256) in &self.inputs {
            if sha256.is_some() && !now.hashes.contains_key(path) {
                reasons.push(format!("{} is gone", self.shown(path)));
            }
        }
        reasons
    }

    /// What is wrong with the files that were put somewhere.
    pub fn damages(&self) -> Vec<String> {
        let mut damages = Vec::new();
        for file in self.placed.iter().chain(&self.site).filter(|file| !file.holds()) {
            let state = if file.path.exists() { "is not the one that was installed" } else { "is missing" };
            damages.push(format!("{} {state}", self.shown(&file.path)));
        }
        let missing = self.programs.iter().filter(|program| !files::is_executable(program));
        damages.extend(missing.map(|program| format!("{} is missing", self.shown(program))));
        damages
    }

    /// A path as it is said to a person.
    fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.project).unwrap_or(path).display().to_string()
    }
}

/// A short value is shown, a hash or a list of versions is not.
fn difference(name: &str, before: Option<&String>, after: &str) -> String {
    match before {
        Some(before) if before.len() < 60 && after.len() < 60 && !before.contains('\n') => {
            format!("{name} was {before} and is {after}")
        }
        Some(_) => format!("{name} changed"),
        None => format!("{name} is new"),
    }
}

/// The notes of one checkout.
#[derive(Clone, Debug)]
pub struct Notes {
    directory: PathBuf,
}

impl Notes {
    /// Of a checkout, wherever its environments are.
    pub fn of(cache: &Cache, project: &Project) -> Result<Self> {
        Ok(Self { directory: cache.path("develop").join(project.key()?) })
    }

    /// Removes the notes of checkouts that are gone. It is housekeeping: what cannot be removed stays.
    pub fn forget_gone(cache: &Cache) {
        let Ok(entries) = cache.directory("develop").and_then(|directory| Ok(fs::read_dir(directory)?)) else { return };
        for directory in entries.flatten().map(|entry| entry.path()) {
            let checkout = std::fs::read_to_string(directory.join(CHECKOUT)).unwrap_or_default();
            if !checkout.is_empty() && !Path::new(&checkout).is_dir() {
                let _ = std::fs::remove_dir_all(&directory);
            }
        }
    }

    fn path(&self, destination: &Destination) -> PathBuf {
        self.directory.join(format!("{}.json", destination.key()))
    }

    /// Where the import hook of an environment finds what it compares.
    pub fn state_path(&self, destination: &Destination) -> PathBuf {
        self.directory.join(format!("{}.state", destination.key()))
    }

    /// The note of an environment.
    pub fn read(&self, destination: &Destination) -> Option<Note> {
        read(&self.path(destination))
    }

    /// Keeps the note of an environment.
    pub fn write(&self, destination: &Destination, note: &Note) -> Result<()> {
        files::write_if_changed(&self.directory.join(CHECKOUT), files::utf8(&note.project)?.as_bytes())?;
        files::write_atomically(&self.path(destination), serde_json::to_string(note)?.as_bytes())
    }

    /// All notes of other environments.
    pub fn others(&self, destination: &Destination) -> Vec<Note> {
        let own = self.path(destination);
        let entries = std::fs::read_dir(&self.directory).into_iter().flatten().flatten().map(|entry| entry.path());
        entries.filter(|path| *path != own).filter_map(|path| read(&path)).collect()
    }

    /// What installs of this checkout put beside the sources, for whatever environment.
    pub fn own_files(&self, destination: &Destination) -> OwnFiles {
        let notes = self.read(destination).into_iter().chain(self.others(destination));
        OwnFiles(notes.flat_map(|note| note.placed).collect())
    }
}

/// Files that installs of a checkout put beside the sources.
#[derive(Clone, Debug)]
pub struct OwnFiles(Vec<FileNote>);

impl OwnFiles {
    /// Whether a file is one of them, and still as it was put there.
    pub fn contain(&self, path: &Path) -> bool {
        self.0.iter().any(|file| file.path == path && file.holds())
    }
}

fn read(path: &Path) -> Option<Note> {
    let note: Note = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
    (note.layout == LAYOUT).then_some(note)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note() -> Note {
        Note {
            layout: LAYOUT,
            proven: true,
            project: "/src".into(),
            environment: "/venv".into(),
            options: Options {
                profile: "dev".to_owned(),
                rebuild_on_import: false,
                extras: Vec::new(),
                groups: Vec::new(),
                dependencies: true,
            },
            facts: facts(&[("the interpreter", "CPython 3.11.7"), ("the compiler", "one\nline")]),
            inputs: hashes(&[("/src/a.rs", Some("1")), ("/src/b.c", Some("2")), ("/src/build.rs", None)]),
            noted: Vec::new(),
            variables: Vec::new(),
            placed: Vec::new(),
            site: Vec::new(),
            programs: Vec::new(),
            modules: BTreeMap::new(),
            imported: Vec::new(),
        }
    }

    fn facts(facts: &[(&str, &str)]) -> BTreeMap<String, String> {
        facts.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn hashes(hashes: &[(&str, Option<&str>)]) -> Hashes {
        hashes.iter().map(|(path, hash)| (PathBuf::from(path), hash.map(str::to_owned))).collect()
    }

    #[test]
    fn every_difference_is_named() {
        let note = note();
        let same = Snapshot { hashes: note.inputs.clone(), ..Snapshot::default() };
        assert!(note.differences(&note.facts, &same).is_empty());
        let now = hashes(&[("/src/a.rs", Some("9")), ("/src/build.rs", Some("3")), ("/else/c.h", Some("4"))]);
        let now = Snapshot { hashes: now, ..Snapshot::default() };
        let facts = facts(&[
            ("the interpreter", "CPython 3.12.1"),
            ("the compiler", "two\nlines"),
            ("the variable CC", "clang"),
        ]);
        assert_eq!(
            note.differences(&facts, &now),
            [
                "the compiler changed",
                "the interpreter was CPython 3.11.7 and is CPython 3.12.1",
                "the variable CC is new",
                "/else/c.h is new",
                "a.rs changed",
                "build.rs is new",
                "b.c is gone"
            ]
        );
        let unproven = Note { proven: false, ..note };
        assert_eq!(unproven.differences(&unproven.facts, &same), ["the last install did not get to its end"]);
    }

    #[test]
    fn notes_of_a_checkout_that_is_gone_are_forgotten() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::at(directory.path());
        let of = |name: &str, checkout: &Path| {
            let place = cache.directory("develop").unwrap().join(name);
            files::write_atomically(&place.join(CHECKOUT), checkout.as_os_str().as_encoded_bytes()).unwrap();
            place
        };
        let (gone, there) = (of("gone", Path::new("/no/where")), of("there", directory.path()));
        Notes::forget_gone(&cache);
        assert!(!gone.exists() && there.exists());
    }
}
