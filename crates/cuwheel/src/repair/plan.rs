//! What a repair changes, decided from the wheel and those that it requires.
//!
//! Pure but for reading the libraries that are grafted. What cannot be mended stays as it is, and is for the rules to name.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use cuwheel_inspect::rules::{
    ExaminedWheel, InstalledLibraries, Library, MissingLibrary, Surroundings, is_sound_search_path, search_path_to,
};
use serde::Serialize;

use super::graft::{Allowed, Graft, Grafter, Place};
use crate::error::Result;
use crate::patchelf::Edit;

/// What is changed in a library of the wheel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LibraryRepair {
    /// The change.
    pub edit: Edit,
    /// Entries of its search path that go.
    pub removed: Vec<String>,
    /// Entries that are new.
    pub added: Vec<String>,
}

/// What a repair changes.
#[derive(Debug, Default)]
pub struct RepairPlan {
    /// Libraries that are edited, by entry.
    pub libraries: BTreeMap<String, LibraryRepair>,
    /// Libraries that are taken in.
    pub grafts: Vec<Graft>,
    /// What is needed and stays missing.
    pub left: Vec<MissingLibrary>,
}

impl RepairPlan {
    /// Decides what is changed in the wheel `examined`, where `given` are wheels that it may require.
    pub fn new(examined: &ExaminedWheel, given: &[InstalledLibraries], allowed: &Allowed) -> Result<Self> {
        let surroundings = Surroundings::new(examined, given);
        let mut plan = Self::default();
        for library in surroundings.libraries() {
            plan.remove_faulty_entries(&library);
        }
        let by_path: BTreeMap<&str, Library<'_>> =
            surroundings.libraries().map(|library| (library.path, library)).collect();
        let mut grafter = Grafter::new(&surroundings, allowed, examined.wheel().name().distribution());
        for missing in surroundings.missing() {
            let library = by_path[missing.path.as_str()];
            match (grafter.place(&missing.needed)?, library.installed) {
                (Place::Directory(directory), Some(installed)) => {
                    plan.lead(&library, &search_path_to(installed, &directory));
                }
                (Place::Graft(name), Some(installed)) => {
                    plan.lead(&library, &search_path_to(installed, grafter.directory()));
                    plan.entry(&library).edit.needed.insert(missing.needed, name);
                }
                _ => plan.left.push(missing),
            }
        }
        plan.grafts = grafter.finish(&mut plan.left);
        Ok(plan)
    }

    /// Whether the wheel stays as it is.
    pub fn is_empty(&self) -> bool {
        self.libraries.is_empty() && self.grafts.is_empty()
    }

    /// The plan as a person reads it.
    pub fn render(&self) -> String {
        let mut text = String::new();
        if self.is_empty() {
            text += "changed      nothing\n";
        }
        for (path, repair) in &self.libraries {
            let _ = writeln!(text, "changed      {path}");
            for (what, entries) in [("removed", &repair.removed), ("added", &repair.added)] {
                for entry in entries {
                    let _ = writeln!(text, "  {what:10} {}", if entry.is_empty() { "an empty entry" } else { entry });
                }
            }
            for (old, new) in &repair.edit.needed {
                let _ = writeln!(text, "  needs      {new} instead of {old}");
            }
        }
        for graft in &self.grafts {
            let _ = writeln!(text, "grafted      {} from {}", graft.path, graft.source.display());
        }
        for missing in &self.left {
            let _ = writeln!(text, "left         {} of {}", missing.needed, missing.path);
        }
        text
    }

    fn entry(&mut self, library: &Library<'_>) -> &mut LibraryRepair {
        self.libraries.entry(library.path.to_owned()).or_default()
    }

    /// Takes out of the search path what leads out of site-packages, depends on the working directory, or is a directory
    /// of stubs.
    fn remove_faulty_entries(&mut self, library: &Library<'_>) {
        let (kept, removed) = judged(library);
        if !removed.is_empty() {
            let repair = self.entry(library);
            repair.edit.run_path = Some(kept);
            repair.removed = removed;
        }
    }

    /// Adds `entry` to the search path.
    fn lead(&mut self, library: &Library<'_>, entry: &str) {
        let (kept, _) = judged(library);
        let repair = self.entry(library);
        let run_path = repair.edit.run_path.get_or_insert(kept);
        if !run_path.iter().any(|known| known == entry) {
            run_path.push(entry.to_owned());
            repair.added.push(entry.to_owned());
        }
    }
}

/// The entries of a search path that may stay, and those that may not, each once.
fn judged(library: &Library<'_>) -> (Vec<String>, Vec<String>) {
    let (mut kept, mut removed) = (Vec::new(), Vec::new());
    // A path that is empty as a whole is skipped by the loader.
    let Some(path) = library.search_path.filter(|path| !path.is_empty()) else { return (kept, removed) };
    for entry in path.split(':') {
        let side = if is_sound_search_path(entry, library.installed) { &mut kept } else { &mut removed };
        if !side.iter().any(|known: &String| known == entry) {
            side.push(entry.to_owned());
        }
    }
    (kept, removed)
}
