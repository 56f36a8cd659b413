//! Findings of rules, counted and shown: those of `check-wheel` on wheels, and those of `doctor` on projects.
//!
//! Not for the rules: each command has its catalog.

use std::fmt::Write as _;

use cuwheel_inspect::rules::{Finding, Rule, RuleSelector, Severity};
use serde_json::{Value, json};

use crate::settings::nearest;

/// Places that are listed of one rule.
const LISTED_PLACES: usize = 5;

/// How many findings there are of each severity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Errors.
    pub errors: usize,
    /// Warnings.
    pub warnings: usize,
    /// Notes.
    pub notes: usize,
}

impl Counts {
    /// Counts `findings`.
    pub fn of<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Self {
        let mut counts = Self::default();
        for finding in findings {
            match finding.severity() {
                Severity::Error => counts.errors += 1,
                Severity::Warning => counts.warnings += 1,
                Severity::Note => counts.notes += 1,
            }
        }
        counts
    }

    /// Such as `2 errors, 1 note`.
    pub fn describe(self) -> String {
        let counts = [(self.errors, "error"), (self.warnings, "warning"), (self.notes, "note")];
        let parts: Vec<String> = counts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, name)| format!("{count} {name}{}", if *count == 1 { "" } else { "s" }))
            .collect();
        if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
    }
}

/// Findings by rule, with the remedy once.
pub fn render(findings: &[Finding], verbose: bool) -> String {
    let mut text = String::new();
    let mut shown: Vec<&str> = Vec::new();
    for finding in findings {
        let rule = finding.rule();
        if shown.contains(&rule.id()) {
            continue;
        }
        shown.push(rule.id());
        let places: Vec<&Finding> = findings.iter().filter(|other| other.rule() == rule).collect();
        let limit = if verbose { usize::MAX } else { LISTED_PLACES };
        let _ = writeln!(text, "{}: {}", finding.severity(), rule.id());
        for place in places.iter().take(limit) {
            let _ = writeln!(text, "  {}", printable(&place.to_string()));
            if let Some(remedy) = place.own_remedy() {
                let _ = writeln!(text, "    fix: {}", remedy.replace('\n', "\n         "));
            }
        }
        if let Some(more @ 1..) = places.len().checked_sub(limit) {
            let _ = writeln!(text, "  and {more} more: --verbose shows them");
        }
        let _ = writeln!(text, "  why: {}\n  fix: {}", rule.why(), rule.remedy());
    }
    text
}

/// The text without control characters: names in a stranger's wheel must not command the terminal.
pub fn printable(text: &str) -> String {
    let escape = |character: char| -> String {
        if character.is_control() { character.escape_default().collect() } else { character.to_string() }
    };
    text.chars().map(escape).collect()
}

/// Findings for machines.
pub fn to_json(findings: &[Finding]) -> Value {
    let finding = |finding: &Finding| {
        json!({
            "rule": finding.rule().id(),
            "severity": finding.severity().name(),
            "path": finding.path(),
            "line": finding.line(),
            "offset": finding.archive_offset(),
            "symbol": finding.symbol_name(),
            "message": finding.message(),
            "remedy": finding.own_remedy().unwrap_or(finding.rule().remedy()),
        })
    };
    findings.iter().map(finding).collect()
}

/// Reads the name of a rule or of a group of rules of a catalog, which `page` lists; the error suggests the nearest.
pub fn parse_selector(catalog: &[&'static Rule], page: &str, text: &str) -> Result<RuleSelector, String> {
    RuleSelector::among(catalog, text).map_err(|error| match nearest(text, &RuleSelector::known(catalog)) {
        Some(known) => format!("{error}: did you mean {known}?"),
        None => format!("{error}: {page} lists them"),
    })
}

/// The table of a catalog, as Markdown, with links to the pages in `directory`.
pub fn table(catalog: &[&'static Rule], directory: &str) -> String {
    let mut text = String::from("| rule | severity | what holds | why | remedy |\n|---|---|---|---|---|\n");
    for rule in catalog {
        let (id, severity, title) = (rule.id(), rule.severity(), rule.title());
        let page = id.replace('/', "-");
        let _ = writeln!(
            text,
            "| [`{id}`]({directory}/{page}.md) | {severity} | {title} | {} | {} |",
            rule.why(),
            rule.remedy()
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use cuwheel_inspect::rules::RULES;

    use super::*;

    #[test]
    fn counts_are_words() {
        let describe = |errors, warnings, notes| Counts { errors, warnings, notes }.describe();
        assert_eq!(describe(0, 0, 0), "none");
        assert_eq!(describe(2, 0, 1), "2 errors, 1 note");
        assert_eq!(describe(1, 3, 0), "1 error, 3 warnings");
    }

    #[test]
    fn names_in_a_wheel_cannot_command_the_terminal() {
        assert_eq!(printable("größe \x1b[31m\r\n"), "größe \\u{1b}[31m\\r\\n");
    }

    #[test]
    fn a_wrong_name_suggests_the_nearest() {
        let parse = |text| parse_selector(RULES, "PAGE", text);
        assert_eq!(
            parse("archive/duplicate-entries").unwrap_err(),
            "`archive/duplicate-entries` is no rule and no group of rules: did you mean archive/duplicate-entry?"
        );
        assert!(parse("archiv/").unwrap_err().ends_with("did you mean archive/?"));
        assert_eq!(parse("x").unwrap_err(), "`x` is no rule and no group of rules: PAGE lists them");
        assert!(parse("libraries/").is_ok());
    }
}
