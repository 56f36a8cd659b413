//! Known findings: a file that lists them, so that only new ones are reported.
//!
//! A finding is known by its rule, its path and its message. Lines are no part of it: they move with every edit above.
//! Findings on the machine are never known, since another machine reads the file.

use std::path::Path;

use cuwheel_inspect::rules::Finding;
use serde::{Deserialize, Serialize};

use super::Found;
use crate::error::{Failure, Result};
use crate::files;

/// Counted up when a field changes its meaning.
const SCHEMA: u32 = 1;

/// A list of known findings.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Baseline {
    schema: u32,
    findings: Vec<Known>,
}

/// A finding that is known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
pub struct Known {
    /// The rule's name.
    pub rule: String,
    /// The file.
    pub path: Option<String>,
    /// What is wrong there.
    pub message: String,
}

impl Known {
    fn of(finding: &Finding) -> Self {
        Self {
            rule: finding.rule().id().to_owned(),
            path: finding.path().map(str::to_owned),
            message: finding.message().to_owned(),
        }
    }
}

fn can_be_known(finding: &Finding) -> bool {
    !finding.rule().id().starts_with("machine/")
}

impl Baseline {
    /// The list of everything that was found.
    #[must_use]
    pub fn of(found: &[Found]) -> Self {
        let findings = found.iter().map(|found| &found.finding).filter(|finding| can_be_known(finding));
        let mut findings: Vec<Known> = findings.map(Known::of).collect();
        findings.sort();
        Self { schema: SCHEMA, findings }
    }

    /// Reads a list.
    pub fn read(path: &Path) -> Result<Self> {
        let refused = |detail: String| {
            Failure::usage(format!("{} is no list of known findings", path.display()))
                .detail(detail)
                .remedy("write one with `cuwheel doctor --baseline FILE --write-baseline`")
        };
        let bytes = std::fs::read(path).map_err(|error| refused(error.to_string()))?;
        let read: Self = serde_json::from_slice(&bytes).map_err(|error| refused(error.to_string()))?;
        if read.schema != SCHEMA {
            return Err(refused(format!("its schema is {}, not {SCHEMA}", read.schema)).into());
        }
        Ok(read)
    }

    /// Writes the list.
    pub fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        files::write_atomically(path, text.as_bytes())
    }

    /// How many findings are listed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.findings.len()
    }

    /// Whether none is listed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.findings.is_empty()
    }

    /// What was found and is not listed, how many are, and what is listed and not found any more. A finding that is
    /// listed once is known once.
    #[must_use]
    pub fn sift(&self, found: Vec<Found>) -> (Vec<Found>, usize, Vec<Known>) {
        let mut listed: Vec<&Known> = self.findings.iter().collect();
        let before = listed.len();
        let mut is_new = |found: &Found| {
            let known = Known::of(&found.finding);
            let position = listed.iter().position(|listed| **listed == known).filter(|_| can_be_known(&found.finding));
            position.map(|position| listed.remove(position)).is_none()
        };
        let fresh: Vec<Found> = found.into_iter().filter(|found| is_new(found)).collect();
        let known = before - listed.len();
        (fresh, known, listed.into_iter().cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::super::catalog;
    use super::*;

    fn found(path: &str, line: usize) -> Found {
        let finding = Finding::new(&catalog::IMPORT_HACK, "m").at(path).on_line(Some(line));
        Found { finding, edit: None }
    }

    #[test]
    fn a_known_finding_is_known_on_another_line_and_only_as_often_as_it_is_listed() {
        let baseline = Baseline::of(&[found("a", 1), found("b", 1)]);
        let (fresh, known, gone) = baseline.sift(vec![found("a", 7), found("a", 9)]);
        assert_eq!((fresh.len(), known, gone.len()), (1, 1, 1));
        assert_eq!(gone[0].path.as_deref(), Some("b"));
    }

    #[test]
    fn what_is_wrong_with_a_machine_is_never_known() {
        let disk = Found { finding: Finding::new(&catalog::DISK, "m"), edit: None };
        assert!(Baseline::of(&[disk]).is_empty());
    }
}
