//! `[tool.cuwheel.ci]`: what the rendered workflows are for.
//!
//! Versions and runners are no settings: they are in `ci/matrix.yml`, see [`super::matrix`].

use std::str::FromStr;

use cuwheel_inspect::rules::RuleSelector;

use crate::error::{Failure, Result};
use crate::settings::Values;

/// A system that runs workflows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    /// GitHub Actions.
    GitHub,
    /// GitLab CI.
    GitLab,
    /// A script for `sbatch`.
    Slurm,
}

impl Provider {
    const ALL: [Self; 3] = [Self::GitHub, Self::GitLab, Self::Slurm];

    /// As settings and arguments name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::GitHub => "github",
            Self::GitLab => "gitlab",
            Self::Slurm => "slurm",
        }
    }
}

impl FromStr for Provider {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|provider| provider.name() == text);
        found.ok_or_else(|| {
            format!("\"{text}\" is no system that workflows are written for; these are github, gitlab and slurm")
        })
    }
}

/// How code of pull requests comes to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PullRequests {
    /// copy-pr-bot pushes what a maintainer approved to a branch of the repository.
    CopyPrBot,
    /// GitHub starts a run for each; those from forks get no GPU.
    PullRequest,
}

/// The settings of `ci`.
#[derive(Clone, Debug)]
pub struct CiSettings {
    /// `ci.providers`.
    pub providers: Vec<Provider>,
    /// `ci.command`.
    pub command: String,
    /// `ci.branch`.
    pub branch: String,
    /// `ci.pull-requests`.
    pub pull_requests: PullRequests,
    /// `ci.checks`.
    pub checks: Vec<String>,
    /// `ci.gpu-runner`; empty for workflows without GPU tests.
    pub gpu_runner: String,
    /// `ci.container`; empty where jobs run on the runner itself.
    pub container: String,
    /// `ci.container-options`.
    pub container_options: String,
    /// `ci.publish`.
    pub publish: bool,
    /// `ci.environment`.
    pub environment: String,
    /// `ci.deny`.
    pub deny: Vec<RuleSelector>,
    /// `ci.allow`.
    pub allow: Vec<RuleSelector>,
}

impl CiSettings {
    /// Reads them from the settings of a project.
    pub(crate) fn read(values: &Values) -> Result<Self> {
        let providers = values.texts("ci.providers");
        let unknown = |error: String| Failure::usage(format!("tool.cuwheel.ci.providers: {error}"));
        let providers = providers.iter().map(|name| name.parse().map_err(unknown)).collect::<Result<_, _>>()?;
        let pull_requests = match values.text("ci.pull-requests").as_str() {
            "copy-pr-bot" => PullRequests::CopyPrBot,
            "pull_request" => PullRequests::PullRequest,
            other => {
                return Err(Failure::usage(format!("tool.cuwheel.ci.pull-requests is \"{other}\""))
                    .remedy("use \"copy-pr-bot\" or \"pull_request\"")
                    .into());
            }
        };
        let command = values.text("ci.command");
        let is_word = |word: &str| !word.is_empty() && word.chars().all(|letter| is_plain(letter) || letter == '/');
        if !command.split(' ').all(is_word) {
            return Err(Failure::usage(format!("tool.cuwheel.ci.command is \"{command}\""))
                .remedy("name a program, and words after it, without anything that a shell would read")
                .into());
        }
        let gpu_runner = values.text("ci.gpu-runner");
        check_formula(&gpu_runner)?;
        let (branch, environment, checks) =
            (values.text("ci.branch"), values.text("ci.environment"), values.texts("ci.checks"));
        if branch.is_empty() || !branch.chars().all(|letter| is_plain(letter) || letter == '/') {
            return Err(Failure::usage(format!("tool.cuwheel.ci.branch is \"{branch}\""))
                .remedy("name one branch, without patterns")
                .into());
        }
        for (key, text) in checks.iter().map(|check| ("checks", check)).chain([("environment", &environment)]) {
            if text.trim().is_empty() || text.contains(['\n', '\r']) || text.contains("${{") {
                return Err(Failure::usage(format!(
                    "tool.cuwheel.ci.{key} has a text that is not one line, or an expression"
                ))
                .remedy("write one line, without an expression of GitHub")
                .into());
            }
        }
        Ok(Self {
            providers,
            command,
            branch,
            pull_requests,
            checks,
            gpu_runner,
            container: values.text("ci.container"),
            container_options: values.text("ci.container-options"),
            publish: values.flag("ci.publish"),
            environment,
            deny: values.rules("ci.deny", super::lint::parse_selector)?,
            allow: values.rules("ci.allow", super::lint::parse_selector)?,
        })
    }
}

fn is_plain(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "-_.".contains(letter)
}

/// Fields of a row that a label may be made of.
const FIELDS: [&str; 4] = ["arch", "gpu", "driver", "count"];

fn check_formula(formula: &str) -> Result<()> {
    let mistake = |what: String| {
        Failure::usage(format!("tool.cuwheel.ci.gpu-runner: {what}"))
            .remedy("write a label, with {arch}, {gpu}, {driver} and {count} where those of a row go")
    };
    for part in parts(formula) {
        match part {
            Part::Field(name) if !FIELDS.contains(&name) => return Err(mistake(format!("no row has {name}")).into()),
            Part::Text(text) if !text.chars().all(is_plain) => {
                return Err(mistake(format!("\"{text}\" is no part of a label")).into());
            }
            _ => {}
        }
    }
    Ok(())
}

enum Part<'text> {
    Text(&'text str),
    Field(&'text str),
}

fn parts(formula: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    for piece in formula.split_inclusive('}') {
        let (text, field) = match piece.strip_suffix('}').and_then(|inner| inner.split_once('{')) {
            Some((text, field)) => (text, Some(field)),
            None => (piece, None),
        };
        parts.push(Part::Text(text));
        parts.extend(field.map(Part::Field));
    }
    parts
}

/// The label that a formula gives, with what `value` says of each field.
pub(super) fn label(formula: &str, value: impl Fn(&str) -> String) -> String {
    let text = |part| match part {
        Part::Text(text) => text.to_owned(),
        Part::Field(name) => value(name),
    };
    parts(formula).into_iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_made_of_the_fields_of_a_row() {
        let formula = "linux-{arch}-gpu-{gpu}-{driver}-{count}";
        assert!(check_formula(formula).is_ok() && check_formula("").is_ok() && check_formula("gpu").is_ok());
        assert_eq!(label(formula, str::to_uppercase), "linux-ARCH-gpu-GPU-DRIVER-COUNT");
        for wrong in ["gpu-{cuda}", "gpu {gpu}", "{gpu", "gpu}", "${{ x }}"] {
            assert!(check_formula(wrong).is_err(), "{wrong}");
        }
    }
}
