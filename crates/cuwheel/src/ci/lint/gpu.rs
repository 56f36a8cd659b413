//! Jobs on GPUs: time-outs, a look at the driver, and tests that may all be skipped.

use cuwheel_inspect::rules::Finding;

use super::files::File;
use super::model::{Command, Job};
use super::{at, catalog};

/// What asks the driver.
const LOOKS: [&str; 6] = ["nvidia-smi", "deviceQuery", "rocm-smi", "gpustat", "nvidia-ctk", "is_available"];

pub(super) fn check(file: &File, findings: &mut Vec<Finding>) {
    for job in file.jobs().iter().filter(|job| !job.is_action && job.node.get("uses").is_none() && job.has_gpu()) {
        let commands = job.commands();
        if job.node.get("timeout-minutes").is_none() && !every_test_is_limited(job) {
            findings.push(at(&catalog::GPU_TIMEOUT, file, job.line, format!("{} may take six hours", job.id)));
        }
        let tests: Vec<&Command> = commands.iter().filter(|command| command.is_pytest() || is_suite(command)).collect();
        let Some(first) = tests.first() else { continue };
        let looks = |command: &Command| LOOKS.iter().any(|look| command.text.contains(look));
        if !commands.iter().any(looks) && !tests.iter().any(|command| is_suite(command)) {
            let message = format!("{} tests, and does not look at the driver before", job.id);
            findings.push(at(&catalog::GPU_PREFLIGHT, file, first.line, message));
        }
        let refuses_skips = |command: &&Command| is_suite(command) || refuses_skips(&command.text);
        if !tests.iter().all(refuses_skips) && !commands.iter().any(|command| counts_tests(&command.text)) {
            let message = format!("{} is green when every test was skipped", job.id);
            findings.push(at(&catalog::GPU_SKIPS, file, first.line, message));
        }
    }
}

fn every_test_is_limited(job: &Job<'_>) -> bool {
    let steps = job.steps();
    let mut tests = steps.iter().filter(|step| step.commands().iter().any(Command::is_pytest)).peekable();
    tests.peek().is_some() && tests.all(|step| step.0.get("timeout-minutes").is_some())
}

/// Whether it runs GPU tests as `test-gpu` does, here or from a bundle.
fn is_suite(command: &Command) -> bool {
    command.words().iter().any(|word| *word == "test-gpu" || word.ends_with("-gpu-tests/run"))
        && !command.text.contains("--bundle")
}

/// Options by which suites say that a GPU has to be there.
fn refuses_skips(text: &str) -> bool {
    ["--gpu required", "--gpu=required", "--require-gpu", "--no-skip", "--error-for-skips", "--fail-on-skip"]
        .iter()
        .any(|option| text.contains(option))
}

/// Whether a report is read for how many tests ran.
fn counts_tests(text: &str) -> bool {
    ["skipped=", "tests=", "junit"].iter().any(|word| text.contains(word))
        && ["grep", "jq", "python -", "xmllint", "exit 1"].iter().any(|word| text.contains(word))
}
