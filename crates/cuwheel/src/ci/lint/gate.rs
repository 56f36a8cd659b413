//! The job that judges the others: whether there is one, whether it always runs, sees all, and takes only success.

use std::collections::{BTreeMap, BTreeSet};

use cuwheel_inspect::rules::Finding;

use super::files::File;
use super::model::{Job, without_remark};
use super::{at, catalog};
use crate::ci::yaml::{Node, Value};

/// Workflows with fewer jobs are required job by job.
const FEW: usize = 3;

pub(super) fn check(file: &File, findings: &mut Vec<Finding>) {
    let jobs = file.jobs();
    if file.is_action() || jobs.len() < 2 || !file.is_for_pull_requests() {
        return;
    }
    if file.root.get("concurrency").is_none() && jobs.iter().all(|job| job.node.get("concurrency").is_none()) {
        let message = "runs for an older push go on";
        let line = file.root.get("on").map_or(1, |on| on.line.saturating_sub(1).max(1));
        findings.push(at(&catalog::CONCURRENCY, file, line, message));
    }
    let Some(gate) = jobs.iter().filter(|job| is_gate(job)).max_by_key(|job| job.needs().len()) else {
        if jobs.len() > FEW {
            let message = format!("{} jobs, and none that judges them", jobs.len());
            let line = file.root.get("jobs").map_or(1, |jobs| jobs.line.saturating_sub(1));
            findings.push(at(&catalog::GATE_MISSING, file, line, message));
        }
        return;
    };
    let condition = gate.condition();
    if !["always()", "!cancelled()", "success() || failure()", "failure() || success()"]
        .iter()
        .any(|status| condition.contains(status))
    {
        let message = format!("{} is skipped when a job fails", gate.id);
        findings.push(at(&catalog::GATE_CONDITIONAL, file, gate.line, message));
    }
    let missing = unseen(gate, &jobs);
    if !missing.is_empty() {
        let message = format!("{} does not need {}", gate.id, missing.join(", "));
        let line = gate.node.get("needs").map_or(gate.line, |needs| needs.line);
        findings.push(at(&catalog::GATE_INCOMPLETE, file, line, message));
    }
    // What is needed directly is seen to fail; what is needed by others only makes them be skipped.
    let behind = behind(gate, &jobs);
    if let (Some(how), false) = (accepts_skipped(gate), behind.is_empty()) {
        let message =
            format!("{} passes when {} fails and what needs it is skipped: {how}", gate.id, behind.join(", "));
        findings.push(at(&catalog::GATE_SKIPPED, file, gate.line, message));
    }
}

/// Whether the job judges others: by its name, or by looking at their results in its steps.
fn is_gate(job: &Job<'_>) -> bool {
    const NAMES: [&str; 13] = [
        "gate",
        "all-green",
        "all-passed",
        "all-checks",
        "all-done",
        "required",
        "status",
        "ci-success",
        "ci-pass",
        "pr-builder",
        "conclusion",
        "check-results",
        "all-tests",
    ];
    // Who only tells of failures, judges nothing.
    let condition = job.condition();
    if job.needs().is_empty() || (condition.contains("failure()") && !condition.contains("success()")) {
        return false;
    }
    let name = format!("{} {}", job.id, job.node.text_of("name").unwrap_or_default());
    let name = name.to_ascii_lowercase().replace(['_', ' '], "-");
    let text = judgement(job);
    let looks =
        text.contains(".result") || text.to_ascii_lowercase().contains("tojson(needs)") || text.contains("alls-green");
    let is_named = NAMES.iter().any(|part| name.contains(part));
    (looks && (is_named || text.contains("exit 1") || text.contains("alls-green")))
        || (is_named && job.needs().len() > 1)
}

/// All texts of its steps, and what it hands to a workflow that it calls.
fn judgement(job: &Job<'_>) -> String {
    let mut text = String::new();
    for key in ["steps", "with", "env", "uses"] {
        if let Some(node) = job.node.get(key) {
            collect(node, &mut text);
        }
    }
    text
}

fn collect(node: &Node, text: &mut String) {
    match &node.value {
        Value::Text(own, _) | Value::Block(own) => {
            for line in own.lines().map(without_remark) {
                text.push_str(line);
                text.push('\n');
            }
        }
        Value::List(items) => items.iter().for_each(|item| collect(item, text)),
        Value::Map(entries) => entries.iter().for_each(|(_, value)| collect(value, text)),
    }
}

/// Jobs that the gate does not need, directly or through others, and that do not come after it.
fn unseen<'file>(gate: &Job<'file>, jobs: &[Job<'file>]) -> Vec<&'file str> {
    let needs: BTreeMap<&str, Vec<&str>> = jobs.iter().map(|job| (job.id, job.needs())).collect();
    let seen = closure(gate.id, &needs);
    // Releases, schedules and what calls itself optional are not what a pull request waits for.
    let is_for_others = |job: &Job<'_>| {
        let name = job.node.text_of("name").unwrap_or_default().to_ascii_lowercase();
        if name.contains("optional") || job.node.text_of("continue-on-error") == Some("true") {
            return true;
        }
        [
            "refs/tags",
            "ref_type",
            "'release'",
            "'schedule'",
            "workflow_dispatch",
            "failure()",
            "refs/heads/",
            "'push'",
            "always()",
        ]
        .iter()
        .any(|word| job.condition().contains(word))
    };
    let is_unseen = |job: &&Job<'file>| {
        !seen.contains(job.id) && job.id != gate.id && !closure(job.id, &needs).contains(gate.id) && !is_for_others(job)
    };
    jobs.iter().filter(is_unseen).map(|job| job.id).collect()
}

/// Jobs that the gate needs through others only.
fn behind<'file>(gate: &Job<'file>, jobs: &[Job<'file>]) -> Vec<&'file str> {
    let needs: BTreeMap<&str, Vec<&str>> = jobs.iter().map(|job| (job.id, job.needs())).collect();
    let direct = gate.needs();
    closure(gate.id, &needs).into_iter().filter(|job| !direct.contains(job)).collect()
}

/// Everything that a job needs, directly or through others.
fn closure<'file>(start: &str, needs: &BTreeMap<&'file str, Vec<&'file str>>) -> BTreeSet<&'file str> {
    let mut found = BTreeSet::new();
    let mut waiting: Vec<&str> = needs.get(start).cloned().unwrap_or_default();
    while let Some(job) = waiting.pop() {
        if let Some((name, of_job)) = needs.get_key_value(job)
            && found.insert(*name)
        {
            waiting.extend(of_job.iter().copied());
        }
    }
    found
}

/// How a skipped job passes.
fn accepts_skipped(gate: &Job<'_>) -> Option<&'static str> {
    let text = judgement(gate);
    let plain: String = text.chars().filter(|letter| !letter.is_whitespace() && !"\"'".contains(*letter)).collect();
    if plain.contains("alls-green") {
        return plain.contains("allowed-skips").then_some("it is allowed");
    }
    if ["!=skipped", "==skipped", "success|skipped", "skipped|success", "success,skipped", "(success|skipped"]
        .iter()
        .any(|form| plain.contains(form))
    {
        return Some("`skipped` is let through");
    }
    let fails_for_failure = plain.contains("contains(needs.*.result,failure)") || plain.contains("==failure");
    let asks_for_more = plain.contains("success") || plain.contains("contains(needs.*.result,skipped)");
    (fails_for_failure && !asks_for_more).then_some("only `failure` is looked for")
}
