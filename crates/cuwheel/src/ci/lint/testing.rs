//! How tests are run: against what, and whether their failure counts.

use cuwheel_inspect::rules::Finding;

use super::files::File;
use super::model::{Command, Job, Step};
use super::{at, catalog};
use crate::requirements::requirement_name;

pub(super) fn check(file: &File, project: Option<&str>, findings: &mut Vec<Finding>) {
    for job in file.jobs() {
        continues(&job, findings);
        by_name(&job, project, findings);
        for step in job.steps() {
            imports_tree(&job, &step, findings);
        }
    }
}

fn runs_tests(command: &Command) -> bool {
    let cargo = command.has(&["cargo", "test"]) || command.has(&["cargo", "nextest", "run"]);
    command.is_pytest()
        || cargo
        || command.program() == "ctest"
        || command.has(&["xtask", "test"])
        || command.has(&["xtask", "test-gpu"])
}

fn continues(job: &Job<'_>, findings: &mut Vec<Finding>) {
    let tests = job.commands().iter().any(runs_tests);
    if tests && job.node.text_of("continue-on-error") == Some("true") {
        let line = job.node.get("continue-on-error").map_or(job.line, |node| node.line);
        let message = format!("{} is green whatever its tests say", job.id);
        findings.push(at(&catalog::CONTINUE, job.file, line, message));
    }
    for step in job.steps() {
        let Some(node) = step.0.get("continue-on-error").filter(|node| node.text() == Some("true")) else { continue };
        if step.commands().iter().any(runs_tests) {
            let message = format!("a step of {} is green whatever its tests say", job.id);
            findings.push(at(&catalog::CONTINUE, job.file, node.line, message));
        }
    }
}

/// A wheel that was built is looked for by name, where an index may have a newer one.
fn by_name(job: &Job<'_>, project: Option<&str>, findings: &mut Vec<Finding>) {
    let has_artifact = job.uses("actions/download-artifact");
    let project = project.map(requirement_name);
    for command in job.commands().iter().filter(|command| command.is_pip_install()) {
        let words = command.words();
        let is_local =
            |word: &&str| word.contains(".whl") || word.starts_with("./") || *word == "." || word.starts_with(".[");
        if words.iter().any(is_local) || words.contains(&"--no-index") {
            continue;
        }
        let links = words.iter().any(|word| word.starts_with("--find-links") || *word == "-f");
        let is_remote = words.iter().any(|word| word.contains("://"));
        let names_project = has_artifact
            && words.iter().any(|word| project.as_ref().is_some_and(|name| requirement_name(word) == *name));
        if (links && !is_remote) || names_project {
            let message = "an index may have another wheel of that name, which is taken when it is newer";
            findings.push(at(&catalog::FIND_LINKS, job.file, command.line, message));
        }
    }
}

fn imports_tree(job: &Job<'_>, step: &Step<'_>, findings: &mut Vec<Finding>) {
    let is_at_root = |node: &crate::ci::yaml::Node| node.text_of("working-directory").is_none();
    let defaults = |node: &crate::ci::yaml::Node| {
        node.get("defaults").and_then(|defaults| defaults.get("run")).is_none_or(|run| is_at_root(run))
    };
    let stays = is_at_root(step.0) && defaults(job.node) && defaults(&job.file.root);
    if !job.uses("actions/checkout") || !stays {
        return;
    }
    // An editable install is the tree.
    let is_editable = |command: &Command| {
        command.is_pip_install() && command.words().iter().any(|word| *word == "-e" || *word == "--editable")
            || command.has(&["maturin", "develop"])
            || command.has(&["uv", "sync"])
            || command.has(&["build_ext", "--inplace"])
    };
    if job.commands().iter().any(is_editable) {
        return;
    }
    let commands = step.commands();
    let mut left = false;
    for command in &commands {
        left |= ["cd", "pushd"].contains(&command.program().as_str());
        let words = command.words();
        let is_module = words.windows(2).any(|pair| pair == ["-m", "pytest"]);
        let is_safe =
            words.iter().any(|word| ["-P", "-I", "-Pm", "-Im", "--pyargs"].contains(word)) || words.contains(&"uv");
        if is_module && !left && !is_safe && installs_wheel(job) {
            let message = "python -m pytest in the checkout imports what lies there";
            findings.push(at(&catalog::TREE, job.file, command.line, message));
        }
    }
}

/// Whether the job tests what was packaged, so that the tree is not what is meant.
fn installs_wheel(job: &Job<'_>) -> bool {
    job.commands().iter().any(|command| {
        command.is_pip_install()
            && command.words().iter().any(|word| word.contains(".whl") || *word == "." || word.starts_with(".["))
    })
}
