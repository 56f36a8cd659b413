//! What a command can fail with, and the exit code each kind has.
//!
//! Not for bugs: those assert. A [`Failure`] is written for the person who ran the command, so it names the cause and,
//! where there is one, the remedy.

use std::fmt::Write as _;
use std::io;

use serde_json::{Value, json};

/// The result of everything that a command does.
pub type Result<T, E = anyhow::Error> = anyhow::Result<T, E>;

/// Who has to act on a failure. Each kind is one exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The thing asked for failed: a compilation, a test, a check.
    Failed,
    /// The command line or the project's files are wrong.
    Usage,
    /// The machine lacks something: an interpreter, a compiler, disk space.
    Machine,
    /// Ctrl-C or a termination signal.
    Interrupted,
}

impl FailureKind {
    /// The exit code of the process: 1, 2, 3, or 130.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Machine => 3,
            Self::Interrupted => 130,
        }
    }

    /// The name used in JSON output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Usage => "usage",
            Self::Machine => "machine",
            Self::Interrupted => "interrupted",
        }
    }
}

/// A failure with its cause, its details and its remedy.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    kind: FailureKind,
    message: String,
    details: Vec<String>,
    remedy: Option<String>,
}

impl Failure {
    fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), details: Vec::new(), remedy: None }
    }

    /// The thing asked for failed (exit code 1).
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Failed, message)
    }

    /// Bad usage or input (exit code 2).
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Usage, message)
    }

    /// The machine lacks something (exit code 3).
    pub fn machine(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Machine, message)
    }

    /// The user stopped the command (exit code 130).
    pub fn interrupted() -> Self {
        Self::new(FailureKind::Interrupted, "interrupted; nothing was left half-written")
    }

    /// Says what to do about it.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    /// Adds one line of evidence under the message.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.details.push(detail.into());
        self
    }

    /// Adds lines of evidence under the message.
    #[must_use]
    pub fn details(mut self, details: impl IntoIterator<Item = String>) -> Self {
        self.details.extend(details);
        self
    }

    /// The lines of evidence under the message.
    pub fn evidence(&self) -> &[String] {
        &self.details
    }

    /// What to do about it.
    pub fn advice(&self) -> Option<&str> {
        self.remedy.as_deref()
    }

    /// Whose failure it is.
    pub const fn kind(&self) -> FailureKind {
        self.kind
    }
}

/// The kind of any error: that of the [`Failure`] in its chain, else `Machine` for what the operating system refuses.
pub fn kind_of(error: &anyhow::Error) -> FailureKind {
    if let Some(failure) = failure_in(error) {
        return failure.kind;
    }
    let refused_by_machine = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>()).any(|cause| {
        matches!(
            cause.kind(),
            io::ErrorKind::StorageFull
                | io::ErrorKind::QuotaExceeded
                | io::ErrorKind::PermissionDenied
                | io::ErrorKind::ReadOnlyFilesystem
        )
    });
    if refused_by_machine { FailureKind::Machine } else { FailureKind::Failed }
}

/// The [`Failure`] in the chain of an error.
pub fn failure_in(error: &anyhow::Error) -> Option<&Failure> {
    error.chain().find_map(|cause| cause.downcast_ref::<Failure>())
}

/// The text a person reads: the message with its causes, the details indented, the remedy last.
pub fn render(error: &anyhow::Error) -> String {
    let mut causes: Vec<String> = Vec::new();
    for cause in error.chain().map(ToString::to_string) {
        // Errors that already quote their cause would say it twice.
        if !causes.last().is_some_and(|outer| outer.ends_with(&cause)) {
            causes.push(cause);
        }
    }
    let mut text = format!("error: {}\n", causes.join(": "));
    let Some(failure) = failure_in(error) else { return text };
    for line in failure.details.iter().flat_map(|detail| detail.lines()) {
        let _ = writeln!(text, "  {line}");
    }
    if let Some(remedy) = &failure.remedy {
        let _ = writeln!(text, "fix: {}", remedy.replace('\n', "\n     "));
    }
    text
}

/// The `error` object of JSON output.
pub fn to_json(error: &anyhow::Error) -> Value {
    let failure = failure_in(error);
    json!({
        "kind": kind_of(error).name(),
        "exit_code": kind_of(error).exit_code(),
        "message": format!("{error:#}"),
        "details": failure.map_or(&[][..], |failure| &failure.details[..]),
        "remedy": failure.and_then(|failure| failure.remedy.as_deref()),
    })
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;
    use expect_test::{Expect, expect};

    use super::*;

    #[track_caller]
    fn check(error: &anyhow::Error, expected: &Expect) {
        expected.assert_eq(&format!("{}exit code {}\n", render(error), kind_of(error).exit_code()));
    }

    #[test]
    fn a_failure_shows_cause_details_and_remedy() {
        let failure = Failure::usage("two things are wrong").detail("first\nsecond").remedy("do this\nand that");
        check(
            &failure.into(),
            &expect![[r"
                error: two things are wrong
                  first
                  second
                fix: do this
                     and that
                exit code 2
            "]],
        );
    }

    #[test]
    fn context_is_kept_and_the_kind_is_found_through_it() {
        let error = anyhow::Error::from(Failure::machine("no interpreter")).context("building the wheel");
        check(
            &error,
            &expect![[r"
            error: building the wheel: no interpreter
            exit code 3
        "]],
        );
    }

    #[test]
    fn a_full_disk_is_the_machine_s_fault() {
        let error = Err::<(), _>(io::Error::from(io::ErrorKind::StorageFull)).context("writing x").unwrap_err();
        check(
            &error,
            &expect![[r"
            error: writing x: no storage space
            exit code 3
        "]],
        );
    }
}
