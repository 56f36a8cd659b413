//! What is wrong with the workflows of a repository: the rules of `ci lint`, and what they read.
//!
//! Any repository is read, and nothing of it is run. Files of GitHub Actions only. General mistakes that other linters find
//! are left to them, unless they cost GPU projects what the rule says.

mod artifacts;
mod catalog;
mod files;
mod gate;
mod gpu;
mod model;
mod permissions;
mod pins;
mod scripts;
mod testing;
mod wheels;

use cuwheel_inspect::rules::{Finding, Rule, RuleSelector};

pub use catalog::RULES;
pub use files::Workflows;

use files::File;

/// Everything that is wrong, by file and line.
#[must_use]
pub fn check(workflows: &Workflows) -> Vec<Finding> {
    let mut findings = workflows.unreadable.clone();
    for file in &workflows.files {
        let mut found = Vec::new();
        permissions::check(file, &mut found);
        pins::check(file, &mut found);
        scripts::check(file, &mut found);
        gpu::check(file, &mut found);
        testing::check(file, workflows.project.as_deref(), &mut found);
        artifacts::check(file, &mut found);
        wheels::check(file, &mut found);
        gate::check(file, &mut found);
        found.retain(|finding| !is_allowed(file, finding));
        found.sort_by_key(Finding::line);
        found.dedup();
        findings.extend(found);
    }
    findings
}

/// Whether a remark on the line, or on the one above, says that it is meant: `# cuwheel: allow RULE`.
fn is_allowed(file: &File, finding: &Finding) -> bool {
    const MARK: &str = "# cuwheel: allow ";
    let id = finding.rule().id();
    let names = |line: &str| {
        let rules = line.split_once(MARK).map(|(_, rest)| rest).unwrap_or_default();
        let mut rules = rules.split([',', ' ']).filter(|rule| !rule.is_empty());
        rules.any(|rule| rule == id || (rule.ends_with('/') && id.starts_with(rule)))
    };
    let Some(index) = finding.line().and_then(|line| line.checked_sub(1)) else { return false };
    let above = index.checked_sub(1).and_then(|above| file.text.lines().nth(above));
    file.text.lines().nth(index).is_some_and(names)
        || above.is_some_and(|line| line.trim_start().starts_with('#') && names(line))
}

/// A finding on a line of a file.
fn at(rule: &'static Rule, file: &File, line: usize, message: impl Into<String>) -> Finding {
    Finding::new(rule, message).at(&file.path).on_line(Some(line))
}

/// Reads the name of a rule or of a group of rules; the error suggests the nearest.
pub fn parse_selector(text: &str) -> Result<RuleSelector, String> {
    crate::findings::parse_selector(RULES, "docs/ci.md", text)
}

/// The table of rules, as Markdown.
#[must_use]
pub fn markdown() -> String {
    crate::findings::table(RULES, "ci-rules")
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_of_rules_are_unique_and_texts_are_sentences() {
        cuwheel_inspect::testing::check_catalog(super::RULES);
    }
}
