//! What is wrong with a project and with the machine that it is built on: the rules of `doctor`, and what they read.
//!
//! A project is read once, into [`ProjectFacts`], a machine into [`machine::Machine`]; [`check_project`] and
//! [`machine::check`] are pure and give a [`Diagnosis`]. Nothing of the project is run. Not for wheels: their rules are
//! [`cuwheel_inspect::rules`], whose findings and severities are used here.

pub mod baseline;
mod catalog;
mod cmake;
mod facts;
pub mod fix;
pub mod machine;
mod meson;
mod native;
mod python;
mod rules;

use cuwheel_inspect::rules::{Finding, Policy, RuleSelector};

pub use crate::reading::toml_file::TomlFile;
pub use catalog::RULES;
pub use facts::{Backend, ProjectFacts, root_of};
pub use fix::Edit;

use crate::findings;

/// A finding, and the edit of pyproject.toml that mends it, where there is a safe one.
#[derive(Clone, Debug)]
pub struct Found {
    /// What is wrong.
    pub finding: Finding,
    /// How it is mended without a person's judgement.
    pub edit: Option<Edit>,
}

/// Everything that was found.
#[derive(Clone, Debug, Default)]
pub struct Diagnosis {
    found: Vec<Found>,
}

impl Diagnosis {
    fn add(&mut self, finding: Finding) {
        self.found.push(Found { finding, edit: None });
    }

    fn add_with(&mut self, finding: Finding, edit: Option<Edit>) {
        self.found.push(Found { finding, edit });
    }

    /// Adds what was found elsewhere.
    pub fn extend(&mut self, other: Self) {
        self.found.extend(other.found);
    }

    /// What counts after a policy, the worst first, and by place within a rule's severity.
    #[must_use]
    pub fn under(self, policy: &Policy) -> Vec<Found> {
        let judge = |found: Found| {
            let finding = policy.apply(vec![found.finding]).pop()?;
            Some(Found { finding, edit: found.edit })
        };
        let mut found: Vec<Found> = self.found.into_iter().filter_map(judge).collect();
        found.sort_by_key(|found| {
            let finding = &found.finding;
            let position = RULES.iter().position(|rule| *rule == finding.rule());
            (std::cmp::Reverse(finding.severity()), position, finding.path().map(str::to_owned), finding.line())
        });
        found.dedup_by(|later, earlier| later.finding == earlier.finding);
        found
    }
}

/// Everything that is wrong with a project.
#[must_use]
pub fn check_project(facts: &ProjectFacts) -> Diagnosis {
    let mut diagnosis = Diagnosis::default();
    rules::check(facts, &mut diagnosis);
    diagnosis
}

/// Reads the name of a rule or of a group of rules; the error suggests the nearest.
pub fn parse_selector(text: &str) -> Result<RuleSelector, String> {
    findings::parse_selector(RULES, "docs/doctor.md", text)
}

/// The table of rules, as Markdown.
#[must_use]
pub fn markdown() -> String {
    findings::table(RULES, "doctor-rules")
}
