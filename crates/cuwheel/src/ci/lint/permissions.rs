//! What tokens may do, who publishes, and what credentials stay behind.

use cuwheel_inspect::rules::Finding;

use super::files::File;
use super::model::{Job, Step, permission};
use super::{at, catalog};

/// Rights that let a job change something in the repository's name.
const RIGHTS: [&str; 8] =
    ["actions", "attestations", "contents", "deployments", "id-token", "packages", "pages", "pull-requests"];

pub(super) fn check(file: &File, findings: &mut Vec<Finding>) {
    let jobs = file.jobs();
    for job in &jobs {
        credentials(job, findings);
        publishing(job, findings);
    }
    if file.is_action() || jobs.is_empty() {
        return;
    }
    let triggers = file.triggers();
    let is_only_called = triggers.len() == 1 && triggers.contains("workflow_call");
    let Some(permissions) = file.root.get("permissions") else {
        // A called workflow has what its caller has.
        let without: Vec<&str> =
            jobs.iter().filter(|job| job.node.get("permissions").is_none()).map(|job| job.id).collect();
        if let (Some(first), false) = (without.first(), is_only_called) {
            let line = file.root.get("jobs").map_or(1, |jobs| jobs.line.saturating_sub(1));
            let message = format!("there are no permissions, neither at the top nor on {first}");
            findings.push(at(&catalog::PERMISSIONS_MISSING, file, line, message));
        }
        return;
    };
    // The rights of a workflow with one job are that job's.
    if jobs.len() > 1 {
        let written = RIGHTS.iter().filter(|right| permission(&file.root, right) == Some("write"));
        let written: Vec<&str> = written.copied().collect();
        if !written.is_empty() {
            let what = if permissions.text().is_some() { "everything".to_owned() } else { written.join(", ") };
            let message = format!("all {} jobs may write {what}", jobs.len());
            findings.push(at(&catalog::PERMISSIONS_WRITE, file, permissions.line, message));
        }
    }
}

fn credentials(job: &Job<'_>, findings: &mut Vec<Finding>) {
    let pushes = job.commands().iter().any(|command| command.has(&["git", "push"]))
        || ["create-pull-request", "gh-pages", "git-auto-commit", "ghaction-github-pages", "release-please"]
            .iter()
            .any(|action| job.uses(action));
    if pushes {
        return;
    }
    for step in job.steps().iter().filter(|step| step.is_action("actions/checkout")) {
        if step.with("persist-credentials") != Some("false") {
            let message = "the checkout leaves the token in .git/config";
            findings.push(at(&catalog::CREDENTIALS, job.file, step.0.line, message));
        }
    }
}

/// Whether a step uploads packages to an index, and whether it does so without a password.
fn publishes(step: &Step<'_>) -> Option<bool> {
    if step.uses().is_some_and(|uses| uses.starts_with("pypa/gh-action-pypi-publish")) {
        return Some(step.with("password").is_none());
    }
    let commands = step.commands();
    let uploads = [
        &["uv", "publish"],
        &["twine", "upload"],
        &["maturin", "upload"],
        &["maturin", "publish"],
        &["poetry", "publish"],
    ];
    let command = commands.iter().find(|command| uploads.iter().any(|words| command.has(&words[..])))?;
    let has_password = step.0.get("env").is_some_and(|env| {
        env.entries().iter().any(|(name, _)| {
            name.text().is_some_and(|name| ["PASSWORD", "TOKEN"].iter().any(|word| name.to_uppercase().contains(word)))
        })
    });
    Some(!has_password && !command.text.contains("--token") && !command.text.contains("--password"))
}

fn publishing(job: &Job<'_>, findings: &mut Vec<Finding>) {
    let file = job.file;
    let steps = job.steps();
    let Some(step) = steps.iter().find(|step| publishes(step).is_some()) else { return };
    let has_identity =
        job.permission("id-token") == Some("write") || permission(&file.root, "id-token") == Some("write");
    if !has_identity {
        return;
    }
    let triggers = file.triggers();
    let is_called = triggers.contains("workflow_call");
    // One that releases start by themselves may be called for its tests.
    let is_entry = triggers.contains("push") || triggers.contains("release");
    if publishes(step) == Some(true) && is_called && !is_entry {
        let message = format!("{} publishes with the identity of whoever calls this workflow", job.id);
        findings.push(at(&catalog::PUBLISH_REUSABLE, file, step.0.line, message));
    }
    let builds = |command: &super::model::Command| {
        let builders: [&[&str]; 9] = [
            &["maturin", "build"],
            &["-m", "build"],
            &["pip", "wheel"],
            &["uv", "build"],
            &["cargo", "build"],
            &["cargo", "xtask", "build-wheel"],
            &["setup.py", "bdist_wheel"],
            &["setup.py", "sdist"],
            &["poetry", "build"],
        ];
        builders.iter().any(|words| command.has(words)) || command.is_pytest()
    };
    let built = job.commands().into_iter().find(builds).map(|command| (command.line, command.text));
    let action = ["pypa/cibuildwheel", "PyO3/maturin-action"];
    let by_action = steps.iter().find(|step| action.iter().any(|action| step.is_action(action)));
    let by_action = by_action.map(|step| (step.0.line, step.uses().unwrap_or_default().to_owned()));
    if let Some((line, what)) = built.or(by_action) {
        let message = format!("{} has id-token: write, and runs `{what}`", job.id);
        findings.push(at(&catalog::PUBLISH_BUILDS, file, line, message));
    }
}
