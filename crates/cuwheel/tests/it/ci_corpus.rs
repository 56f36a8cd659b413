//! Workflows with one mistake each, and sound ones beside them: for the tests of `ci lint`, and for the pages of its rules.
//!
//! They are made up, but for those that were reduced from workflows that exist.

use cuwheel::ci::lint::{self, Workflows};
use cuwheel::ci::pins::ACTIONS;

/// A workflow that breaks a rule, or keeps it.
pub(crate) struct Case {
    pub(crate) rule: &'static str,
    pub(crate) what: &'static str,
    pub(crate) workflow: String,
}

/// What stands for `@head`.
const HEAD: &str = "\
on:
  push:
    branches: [main, 'pull-request/[0-9]+']
permissions:
  contents: read
concurrency:
  group: ${{ github.workflow }}-${{ github.ref }}
  cancel-in-progress: true
";

/// Workflows with mistakes.
pub(crate) fn bad() -> Vec<Case> {
    cases(include_str!("ci/bad.txt"))
}

/// Workflows without.
pub(crate) fn good() -> Vec<Case> {
    cases(include_str!("ci/good.txt"))
}

/// What was reduced from workflows that exist, with the rule that they break, or `none`.
pub(crate) fn real() -> Vec<Case> {
    cases(include_str!("ci/real.txt"))
}

/// Each after lines `##### RULE: WHAT`; one workflow may be for several rules.
fn cases(text: &'static str) -> Vec<Case> {
    let (mut cases, mut heads) = (Vec::new(), Vec::new());
    for part in text.split("##### ").skip(1) {
        let (head, workflow) = part.split_once('\n').expect("a workflow after the line");
        heads.push(head.split_once(": ").expect("a rule and what is special"));
        if !workflow.trim().is_empty() {
            cases.extend(heads.drain(..).map(|(rule, what)| Case { rule, what, workflow: expanded(workflow) }));
        }
    }
    assert!(heads.is_empty());
    cases
}

fn expanded(workflow: &str) -> String {
    let mut text = workflow.replace("@head\n", HEAD);
    for (name, key) in [
        ("CHECKOUT", "checkout"),
        ("UPLOAD", "upload_artifact"),
        ("DOWNLOAD", "download_artifact"),
        ("PUBLISH", "publish"),
    ] {
        let pin = ACTIONS.iter().find(|pin| pin.key == key).expect("a pinned action");
        text = text.replace(&format!("uses: {name}\n"), &format!("uses: {}\n", pin.uses()));
    }
    text
}

/// What is found in a workflow: names of rules, and the findings as a person reads them.
pub(crate) fn examine(workflow: &str) -> Vec<(&'static str, String)> {
    let workflows = Workflows::from_texts([(".github/workflows/ci.yml", workflow)]);
    let found = lint::check(&workflows);
    found.iter().map(|finding| (finding.rule().id(), finding.to_string())).collect()
}
