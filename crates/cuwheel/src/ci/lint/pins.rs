//! What comes from elsewhere without a version or a hash: actions, downloads, scripts.

use cuwheel_inspect::rules::Finding;

use super::files::File;
use super::model::{Command, Job, Step};
use super::{at, catalog};

pub(super) fn check(file: &File, findings: &mut Vec<Finding>) {
    for job in file.jobs() {
        if let Some(uses) = job.node.get("uses") {
            action(file, uses.text().unwrap_or_default(), uses.line, findings);
        }
        for step in job.steps() {
            if let Some(uses) = step.0.get("uses") {
                action(file, uses.text().unwrap_or_default(), uses.line, findings);
            }
            downloads(&job, &step, findings);
        }
    }
}

fn action(file: &File, uses: &str, line: usize, findings: &mut Vec<Finding>) {
    let Some((name, version)) = uses.split_once('@') else { return };
    if name.starts_with("./") || name.starts_with("docker://") || version.contains("${{") {
        return;
    }
    let is_commit = version.len() >= 40 && version.chars().all(|digit| digit.is_ascii_hexdigit());
    if is_commit {
        return;
    }
    let is_tag = version.strip_prefix('v').unwrap_or(version).starts_with(|digit: char| digit.is_ascii_digit());
    let rule = if is_tag { &catalog::PIN_TAG } else { &catalog::PIN_BRANCH };
    let message = if is_tag {
        format!("{name} is taken at the tag {version}")
    } else {
        format!("{name} is taken from the branch {version}")
    };
    findings.push(at(rule, file, line, message));
}

fn is_fetch(command: &Command) -> bool {
    command.words().iter().any(|word| ["curl", "wget", "$(curl", "$(wget", "<(curl"].contains(word))
}

fn downloads(job: &Job<'_>, step: &Step<'_>, findings: &mut Vec<Finding>) {
    let commands = step.commands();
    let script = step.run().and_then(|run| run.text()).unwrap_or_default();
    let is_checked = [
        "sha256sum",
        "sha512sum",
        "shasum",
        "--hash",
        "gpg --verify",
        "cosign verify",
        "gh attestation",
        "Get-FileHash",
    ]
    .iter()
    .any(|check| script.contains(check));
    for command in &commands {
        let text = &command.text;
        let mut add = |rule, what: &str| findings.push(at(rule, job.file, command.line, what));
        if text.contains("releases/latest") && !text.starts_with("echo") {
            add(&catalog::PIN_LATEST, "the newest release is downloaded, whatever it is");
        } else if is_fetch(command) && is_piped_to_shell(text) {
            add(&catalog::PIN_PIPED, "a script from the network is run as it comes");
        } else if is_fetch(command) && !is_checked && keeps_archive(command) {
            add(&catalog::PIN_UNCHECKED, "what is downloaded is compared with no hash");
        }
    }
}

/// Whether the output goes to an interpreter.
fn is_piped_to_shell(text: &str) -> bool {
    const SHELLS: [&str; 6] = ["sh", "bash", "zsh", "python", "python3", "pwsh"];
    let is_shell = |part: &str| {
        let mut words =
            part.split_whitespace().filter(|word| !["sudo", "env", "-E"].contains(word) && !word.contains('='));
        words.next().is_some_and(|word| SHELLS.contains(&word.rsplit('/').next().unwrap_or_default()))
    };
    let substituted =
        ["sh -c \"$(curl", "sh -c \"$(wget", "bash <(curl", "bash <(wget"].iter().any(|form| text.contains(form));
    substituted || text.split('|').skip(1).any(is_shell)
}

/// Whether an archive, a package or a program is what comes.
fn keeps_archive(command: &Command) -> bool {
    const ENDINGS: [&str; 14] = [
        ".tar.gz",
        ".tgz",
        ".tar.xz",
        ".tar.bz2",
        ".tar.zst",
        ".zip",
        ".whl",
        ".deb",
        ".rpm",
        ".run",
        ".exe",
        ".msi",
        ".sh",
        ".AppImage",
    ];
    command.words().iter().any(|word| word.contains("://") && ENDINGS.iter().any(|ending| word.ends_with(ending)))
}
