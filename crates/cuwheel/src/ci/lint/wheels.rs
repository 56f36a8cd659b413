//! Wheels that are built: what is grafted into them, and whether anything looks at them.

use cuwheel_inspect::rules::Finding;

use super::files::File;
use super::model::{Command, Job};
use super::{at, catalog};

pub(super) fn check(file: &File, findings: &mut Vec<Finding>) {
    let is_cuda = file.mentions(&["cuda", "nvcc", "libcuda"]);
    for job in file.jobs() {
        if is_cuda {
            grafts(&job, findings);
        }
        unchecked(&job, findings);
    }
}

fn grafts(job: &Job<'_>, findings: &mut Vec<Finding>) {
    for command in job.commands() {
        let text = &command.text;
        if command.has(&["auditwheel", "repair"])
            && !text.contains("libcuda")
            && !text.contains("${")
            && !text.contains("--plat linux")
        {
            let message = "auditwheel repair without --exclude for libcuda.so.1";
            findings.push(at(&catalog::WHEEL_DRIVER, job.file, command.line, message));
        }
        if command.has(&["maturin", "build"]) && !text.contains("auditwheel") && !text.contains("linux_") {
            let message = "maturin build repairs by default, and excludes no driver";
            findings.push(at(&catalog::WHEEL_DRIVER, job.file, command.line, message));
        }
    }
    for step in job.steps().iter().filter(|step| step.is_action("PyO3/maturin-action")) {
        let arguments = step.with("args").unwrap_or_default();
        let command = step.with("command").unwrap_or("build");
        if ["build", "publish"].contains(&command) && !arguments.contains("auditwheel") && !arguments.contains("sdist")
        {
            let message = "maturin repairs by default, and excludes no driver";
            findings.push(at(&catalog::WHEEL_DRIVER, job.file, step.0.line, message));
        }
    }
}

fn builds(command: &Command) -> bool {
    let builders: [&[&str]; 5] =
        [&["maturin", "build"], &["-m", "build"], &["pip", "wheel"], &["uv", "build"], &["setup.py", "bdist_wheel"]];
    builders.iter().any(|words| command.has(words))
        && !command.words().iter().any(|word| ["--sdist", "-s"].contains(word))
}

fn unchecked(job: &Job<'_>, findings: &mut Vec<Finding>) {
    let commands = job.commands();
    let Some(built) = commands.iter().find(|command| builds(command)) else { return };
    let hands_over = job
        .steps()
        .iter()
        .filter(|step| step.is_action("actions/upload-artifact"))
        .flat_map(|step| step.with("path").unwrap_or_default().lines())
        .any(|path| ["dist", "whl", "wheel"].iter().any(|part| path.contains(part)) && !path.ends_with(".tar.gz"));
    // Another job of the workflow may do it.
    if hands_over && !job.file.jobs().iter().any(checks) {
        let message = format!("{} hands over wheels that nothing looked at", job.id);
        findings.push(at(&catalog::WHEEL_UNCHECKED, job.file, built.line, message));
    }
}

/// Whether a job looks at wheels.
fn checks(job: &Job<'_>) -> bool {
    const CHECKS: [&str; 8] = [
        "check-wheel",
        "twine check",
        "auditwheel",
        "abi3audit",
        "pydistcheck",
        "repairwheel",
        "delocate",
        "delvewheel",
    ];
    let by_command = job.commands().iter().any(|command| CHECKS.iter().any(|check| command.text.contains(check)));
    by_command || CHECKS.iter().any(|check| job.uses(check))
}
