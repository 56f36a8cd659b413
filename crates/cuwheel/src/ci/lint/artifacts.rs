//! What jobs hand over to each other: files, and rows of a matrix.

use cuwheel_inspect::rules::Finding;

use super::files::File;
use super::model::{Job, Step};
use super::{at, catalog};

pub(super) fn check(file: &File, findings: &mut Vec<Finding>) {
    for job in file.jobs() {
        uploads(&job, findings);
        unchecked(&job, findings);
        matrix(&job, findings);
    }
}

fn uploads(job: &Job<'_>, findings: &mut Vec<Finding>) {
    for step in job.steps().iter().filter(|step| step.is_action("actions/upload-artifact")) {
        // Logs that are kept of whatever happened may be absent.
        let is_log = ["always()", "failure()", "cancelled()"].iter().any(|status| step.condition().contains(status));
        if step.with("if-no-files-found").is_none() && !is_log {
            let message = format!("{} may upload nothing, and nobody is told", job.id);
            findings.push(at(&catalog::NOTHING_FOUND, job.file, step.0.line, message));
        }
    }
}

fn unchecked(job: &Job<'_>, findings: &mut Vec<Finding>) {
    if !job.uses("actions/download-artifact") {
        return;
    }
    let commands = job.commands();
    let is_checked = ["sha256sum", "sha512sum", "shasum", "--require-hashes", "gh attestation", "check-wheel"];
    if commands.iter().any(|command| is_checked.iter().any(|check| command.text.contains(check))) {
        return;
    }
    let installs = commands.iter().find(|command| command.is_pip_install() && command.text.contains(".whl"));
    if let Some(command) = installs {
        let message = format!("{} installs a wheel of another job as it comes", job.id);
        findings.push(at(&catalog::ARTIFACT_UNCHECKED, job.file, command.line, message));
    }
}

fn matrix(job: &Job<'_>, findings: &mut Vec<Finding>) {
    let Some(matrix) = job.node.get("strategy").and_then(|strategy| strategy.get("matrix")) else { return };
    let values = matrix.entries().iter().filter_map(|(_, value)| value.text());
    let texts: Vec<&str> = matrix.text().into_iter().chain(values).collect();
    let others = job.file.jobs();
    for text in texts {
        let Some(source) = text.split_once("needs.").map(|(_, rest)| rest.split('.').next().unwrap_or_default()) else {
            continue;
        };
        if !text.to_ascii_lowercase().contains("fromjson") {
            continue;
        }
        let is_asked = ["'[]'", "!= ''", "'{}'", "\"[]\""].iter().any(|empty| job.condition().contains(empty));
        let Some(source) = others.iter().find(|other| other.id == source) else { continue };
        if source.node.get("uses").is_some() || source.steps().iter().all(|step| step.run().is_none()) {
            continue;
        }
        let words = ["length", "empty", "halt_error", "-z ", "len(", "no rows", "exit 1", "sys.exit", "raise "];
        let scripts: Vec<&str> = source.steps().iter().filter_map(Step::run).filter_map(|run| run.text()).collect();
        let is_checked = scripts.iter().any(|script| words.iter().any(|word| script.contains(word)));
        // A list that is written down has what it has.
        let is_literal =
            scripts.iter().any(|script| ["=[\"", "={\"", "=(\n", "=(\""].iter().any(|list| script.contains(list)));
        // A script of the repository may check by itself; it is not read.
        let is_elsewhere = source.commands().iter().any(|command| {
            let is_script = |word: &&str| {
                word.starts_with("ci/")
                    || word.rsplit_once('.').is_some_and(|(_, ending)| ["py", "sh"].contains(&ending))
            };
            command.words().iter().any(is_script) || command.words().windows(2).any(|words| words == ["python", "-c"])
        });
        let is_program = source.steps().iter().any(|step| step.0.text_of("shell") == Some("python"));
        if !is_asked && !is_checked && !is_literal && !is_elsewhere && !is_program {
            let message = format!("{} has the rows that {} gives, which may be none", job.id, source.id);
            findings.push(at(&catalog::MATRIX_EMPTY, job.file, matrix.line, message));
        }
    }
}
