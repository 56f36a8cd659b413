//! The rules on projects, one file for each group of the catalog or each large rule.

mod abi;
mod architectures;
mod driver;
mod imports;
mod native;
mod numpy;
mod redirector;
mod requirements;
mod scripts;
mod settings;
mod testing;
mod uv;

use cuwheel_inspect::rules::{Finding, Rule};

pub(super) use architectures::{Declared, declared as declared_architectures};

use super::facts::ProjectFacts;
use super::{Diagnosis, catalog};

/// Adds everything that is wrong with a project.
pub(super) fn check(facts: &ProjectFacts, diagnosis: &mut Diagnosis) {
    for file in &facts.unreadable {
        let finding = Finding::new(&catalog::UNREADABLE, file.message.as_str()).at(&file.path);
        diagnosis.add(finding.on_line(file.line));
    }
    requirements::check(facts, diagnosis);
    scripts::check(facts, diagnosis);
    numpy::check(facts, diagnosis);
    abi::check(facts, diagnosis);
    redirector::check(facts, diagnosis);
    imports::check(facts, diagnosis);
    testing::check(facts, diagnosis);
    native::check(facts, diagnosis);
    architectures::check(facts, diagnosis);
    driver::check(facts, diagnosis);
    uv::check(facts, diagnosis);
    settings::check(facts, diagnosis);
}

/// A finding on a line.
fn at(rule: &'static Rule, path: &str, line: usize, message: impl Into<String>) -> Finding {
    Finding::new(rule, message).at(path).on_line(Some(line))
}

/// Whether a condition compares versions: what is under it is for those compilers that have it.
fn is_versioned(when: &[String]) -> bool {
    when.iter().any(|condition| {
        let condition = condition.to_lowercase();
        ["version", "cuda_ver", "toolkit", "nvcc_", "13.", "12.", "11.", "10."]
            .iter()
            .any(|word| condition.contains(word))
    })
}
