//! The rule on size: a budget, and where the bytes are when it is exceeded.

use std::fmt::Write as _;

use super::catalog::BUDGET;
use super::{Breakdown, ExaminedWheel, Finding, Policy, listed};
use crate::size::human_size;

pub(super) fn check(examined: &ExaminedWheel, policy: &Policy, findings: &mut Vec<Finding>) {
    let size_bytes = examined.wheel().size_bytes();
    let Some(budget_bytes) = policy.budget_bytes.filter(|budget| *budget < size_bytes) else { return };
    let breakdown = Breakdown::of(examined);
    let files: Vec<String> = breakdown
        .files
        .iter()
        .map(|file| format!("{} ({})", file.path, human_size(file.compressed_size_bytes)))
        .collect();
    let sections: Vec<String> = breakdown
        .sections
        .iter()
        .map(|section| format!("{} ({})", section.name, human_size(section.size_bytes)))
        .collect();
    let mut message = format!(
        "the wheel has {}, and the budget is {}; compressed files: {}",
        human_size(size_bytes),
        human_size(budget_bytes),
        listed(&files)
    );
    if !sections.is_empty() {
        let _ = write!(message, "; sections: {}", listed(&sections));
    }
    let mut architectures = breakdown.architectures;
    architectures.sort_by_key(|architecture| std::cmp::Reverse(architecture.size_bytes));
    if !architectures.is_empty() {
        let architectures: Vec<String> =
            architectures.iter().map(|code| format!("{} ({})", code.name, human_size(code.size_bytes))).collect();
        let _ = write!(message, "; GPU code: {}", listed(&architectures));
    }
    if breakdown.strippable_bytes > 0 {
        let _ = write!(message, "; `strip` takes out {}", human_size(breakdown.strippable_bytes));
    }
    findings.push(Finding::new(&BUDGET, message));
}
