//! Strangers' texts in scripts, and strangers' code with the repository's rights or on its machines.

use cuwheel_inspect::rules::Finding;

use super::files::File;
use super::model::Job;
use super::{at, catalog};
use crate::ci::yaml::Node;

/// Contexts whose texts anyone can write who can open an issue or a pull request.
const OF_STRANGERS: [&str; 18] = [
    "github.event.issue.title",
    "github.event.issue.body",
    "github.event.pull_request.title",
    "github.event.pull_request.body",
    "github.event.pull_request.head.ref",
    "github.event.pull_request.head.label",
    "github.event.pull_request.head.repo.default_branch",
    "github.event.comment.body",
    "github.event.review.body",
    "github.event.review_comment.body",
    "github.event.discussion.title",
    "github.event.discussion.body",
    "github.event.head_commit.message",
    "github.event.head_commit.author.email",
    "github.event.head_commit.author.name",
    "github.event.workflow_run.head_branch",
    "github.event.workflow_run.head_commit.message",
    "github.head_ref",
];

pub(super) fn check(file: &File, findings: &mut Vec<Finding>) {
    for job in file.jobs() {
        for step in job.steps() {
            if let Some(run) = step.run() {
                injected(file, run, findings);
            }
            if step.is_action("actions/github-script")
                && let Some(script) = step.0.get("with").and_then(|with| with.get("script"))
            {
                injected(file, script, findings);
            }
        }
        target(&job, findings);
        runner(&job, findings);
    }
}

fn injected(file: &File, script: &Node, findings: &mut Vec<Finding>) {
    for (index, line) in script.text().unwrap_or_default().lines().enumerate() {
        for expression in line.split("${{").skip(1).filter_map(|rest| rest.split("}}").next()) {
            let expression = expression.trim();
            // What is compared gives true or false, and what is asked for a part gives that.
            let is_whole = |context: &str| {
                expression.split("||").any(|part| part.trim() == context)
                    || ["format", "join", "toJSON", "toJson"].iter().any(|function| expression.starts_with(function))
                        && expression.contains(context)
            };
            if let Some(context) = OF_STRANGERS.iter().find(|context| is_whole(context)) {
                let message = format!("{context} becomes part of the script");
                findings.push(at(&catalog::INJECTION, file, script.line_of(index), message));
            }
        }
    }
}

fn target(job: &Job<'_>, findings: &mut Vec<Finding>) {
    let triggers = job.file.triggers();
    let Some(event) = ["pull_request_target", "workflow_run"].iter().find(|event| triggers.contains(**event)) else {
        return;
    };
    if job.condition().contains("head.repo.full_name == github.repository") {
        return;
    }
    for step in job.steps().iter().filter(|step| step.is_action("actions/checkout")) {
        let reference =
            format!("{} {}", step.with("ref").unwrap_or_default(), step.with("repository").unwrap_or_default());
        let heads = ["pull_request.head", "github.head_ref", "workflow_run.head", "refs/pull/"];
        if heads.iter().any(|head| reference.contains(head)) {
            let message = format!("{event} checks out the code of the pull request");
            findings.push(at(&catalog::TARGET, job.file, step.0.line, message));
        }
    }
}

fn runner(job: &Job<'_>, findings: &mut Vec<Finding>) {
    let file = job.file;
    let Some(event) = ["pull_request", "pull_request_target"].into_iter().find(|event| file.triggers().contains(event))
    else {
        return;
    };
    let of_labels = file.trigger(event).and_then(|trigger| trigger.get("types")).map(|types| types.texts());
    let needs_label = of_labels.is_some_and(|types| types == ["labeled"]);
    let guards =
        ["head.repo", ".fork", "author_association", "event_name != 'pull_request'", "event_name == 'push'", "labels"];
    let is_guarded =
        guards.iter().any(|guard| job.condition().contains(guard)) || job.node.get("environment").is_some();
    let runners = job.runners();
    let is_own = runners.split([' ', ',']).any(|label| label.trim_matches(['[', ']', '"', '\'']) == "self-hosted");
    // Labels with `gpu` are lent by nobody to everybody.
    let is_lent = runners.to_ascii_lowercase().contains("gpu");
    if (is_own || is_lent) && !is_guarded && !needs_label {
        let message = format!("{event} from any fork runs on {}", job.runner());
        let line = job.node.get("runs-on").map_or(job.line, |runner| runner.line);
        findings.push(at(&catalog::FORK_RUNNER, file, line, message));
    }
}
