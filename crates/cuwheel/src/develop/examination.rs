//! Whether an editable install is current, and if not, why: by content, in one look that changes nothing.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

use super::inputs::{self, Snapshot};
use super::note::Note;
use super::plan::Plan;
use super::shadows::Winners;
use crate::error::Result;
use crate::rustflags::Rustc;

/// What a look at an install gave.
#[derive(Debug)]
pub struct Examination {
    /// Why it is not current; empty when it is.
    pub reasons: Vec<String>,
    /// What is remembered of it.
    pub note: Option<Note>,
    /// The inputs as they are.
    pub snapshot: Snapshot,
    /// The compiler.
    pub rustc: Rustc,
}

impl Examination {
    /// Looks: at the inputs, at the files that were installed, and at what Python would import.
    pub fn of(plan: &Plan) -> Result<Self> {
        let note = plan.notes.read(&plan.destination);
        let mut paths = inputs::known(&plan.project)?;
        paths.extend(note.iter().flat_map(|note| note.noted.iter().cloned()));
        let place = plan.destination.directory.display();
        let unknown = match &note {
            _ if !plan.destination.exists => Some(format!("there is no environment at {place}")),
            None => Some(format!("nothing is known of an install in {place}")),
            Some(_) => None,
        };
        let (Some(note), None) = (&note, &unknown) else {
            let (snapshot, rustc) = (Snapshot::take(&paths), Rustc::probe(&plan.project.root)?);
            return Ok(Self { reasons: unknown.into_iter().collect(), note, snapshot, rustc });
        };
        let (snapshot, damages, asked) = look(plan, note, &paths);
        let (rustc, winners) = asked?;
        let mut reasons = note.differences(&plan.facts(&rustc, &note.variables)?, &snapshot);
        reasons.extend(damages);
        let shadows = winners.shadows(&note.modules);
        reasons.extend(shadows.iter().map(|(module, file)| format!("{module} is imported from {}", file.display())));
        reasons.extend(
            winners.unreachable(&note.modules).iter().map(|module| format!("{module} is not on the search path")),
        );
        Ok(Self { reasons, note: Some(note.clone()), snapshot, rustc })
    }

    /// The reasons in one line.
    pub fn summary(&self) -> String {
        const SHOWN: usize = 3;
        let mut text = self.reasons.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
        if self.reasons.len() > SHOWN {
            let _ = write!(text, " and {} more", self.reasons.len() - SHOWN);
        }
        text
    }
}

/// Reads files while others are asked.
fn look(plan: &Plan, note: &Note, paths: &BTreeSet<PathBuf>) -> (Snapshot, Vec<String>, Result<(Rustc, Winners)>) {
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| Snapshot::take(paths));
        let comparing = scope.spawn(|| note.damages());
        let compiler = scope.spawn(|| Rustc::probe(&plan.project.root));
        let winners = Winners::ask(&plan.destination, note.modules.keys(), &plan.project.root);
        let snapshot = reading.join().expect("reading does not panic");
        let damages = comparing.join().expect("reading does not panic");
        let asked = compiler.join().expect("asking does not panic").and_then(|rustc| Ok((rustc, winners?)));
        (snapshot, damages, asked)
    })
}
