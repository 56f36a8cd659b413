//! The rules of `check-wheel`: what can be wrong with a wheel that installers, indexes and repair tools let pass.
//!
//! A wheel is read once, into an [`ExaminedWheel`]; [`check`] then gives its findings, and [`check_set`] those of wheels
//! given together. No rule needs more than the wheel: nothing is installed, imported or looked up.
//!
//! [`Rule`], [`Finding`], [`Severity`], [`RuleSelector`] and the layers of [`Policy`] know nothing of wheels: `doctor` has
//! a catalog of its own and uses the same.

mod archive;
mod breakdown;
mod catalog;
mod cuda;
mod cuda_libraries;
mod cxx;
mod driver;
mod examined;
mod gpu_code;
mod libraries;
mod limited_api;
mod loader;
mod modules;
mod native;
mod policy;
mod repairs;
mod search_path;
mod sets;
mod size;
mod tags;

use std::fmt;

pub use archive::unreadable;
pub use breakdown::{ArchitectureSize, Breakdown, FileSize, SectionSize};
pub use catalog::RULES;
pub use examined::ExaminedWheel;
pub use loader::InstalledLibraries;
pub use policy::{DeclaredArchitecture, Policy, RuleSelector, UnknownRule};
pub use repairs::{
    Library, LibraryFamily, MissingLibrary, Surroundings, is_sound_search_path, platform_floor, search_path_to,
};
pub use sets::{InstalledFiles, ListedWheel, check_manifest, check_set};

/// How bad it is when a rule is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// Should be mended, and does not always do harm.
    Warning,
    /// The wheel must not be published.
    Error,
}

impl Severity {
    /// The word for it: `error`, `warning` or `note`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// Something that holds for every good wheel, or for every good project.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    id: &'static str,
    severity: Severity,
    title: &'static str,
    why: &'static str,
    remedy: &'static str,
}

impl Rule {
    /// A rule of a catalog. `why` is sentences; `title` and `remedy` are none.
    #[must_use]
    pub const fn new(
        id: &'static str,
        severity: Severity,
        title: &'static str,
        why: &'static str,
        remedy: &'static str,
    ) -> Self {
        Self { id, severity, title, why, remedy }
    }

    /// The name, such as `archive/duplicate-entry`.
    #[must_use]
    pub fn id(&self) -> &'static str {
        self.id
    }

    /// How bad a breach is, unless a [`Policy`] says otherwise.
    #[must_use]
    pub fn severity(&self) -> Severity {
        self.severity
    }

    /// What holds, in one line.
    #[must_use]
    pub fn title(&self) -> &'static str {
        self.title
    }

    /// What happens where it does not hold.
    #[must_use]
    pub fn why(&self) -> &'static str {
        self.why
    }

    /// What to do then.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        self.remedy
    }

    /// The rule called `id`.
    #[must_use]
    pub fn find(id: &str) -> Option<&'static Self> {
        RULES.iter().find(|rule| rule.id == id).copied()
    }
}

/// A place where a rule is broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    rule: &'static Rule,
    severity: Severity,
    path: Option<String>,
    line: Option<usize>,
    offset: Option<u64>,
    symbol: Option<String>,
    message: String,
    remedy: Option<String>,
}

impl Finding {
    /// A breach of a rule, with what is wrong.
    #[must_use]
    pub fn new(rule: &'static Rule, message: impl Into<String>) -> Self {
        Self {
            rule,
            severity: rule.severity,
            path: None,
            line: None,
            offset: None,
            symbol: None,
            message: message.into(),
            remedy: None,
        }
    }

    /// Says which file it is about.
    #[must_use]
    pub fn at(mut self, path: &str) -> Self {
        self.path = Some(path.to_owned());
        self
    }

    /// Says which line of the file it is about, counted from one.
    #[must_use]
    pub fn on_line(mut self, line: Option<usize>) -> Self {
        self.line = line;
        self
    }

    /// Says what to do here, where more is known than the rule can say.
    #[must_use]
    pub fn with_remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    fn offset(mut self, offset: u64) -> Self {
        self.offset = Some(offset);
        self
    }

    fn symbol(mut self, symbol: Option<&str>) -> Self {
        self.symbol = symbol.map(str::to_owned);
        self
    }

    /// The rule.
    #[must_use]
    pub fn rule(&self) -> &'static Rule {
        self.rule
    }

    /// How bad it is, after the [`Policy`].
    #[must_use]
    pub fn severity(&self) -> Severity {
        self.severity
    }

    /// The entry of the wheel that it is about.
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        self.path.as_deref()
    }

    /// The line in the file, counted from one.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        self.line
    }

    /// Where in the archive it is, in bytes.
    #[must_use]
    pub fn archive_offset(&self) -> Option<u64> {
        self.offset
    }

    /// The symbol that it is about.
    #[must_use]
    pub fn symbol_name(&self) -> Option<&str> {
        self.symbol.as_deref()
    }

    /// What to do here, where that is more than the rule says.
    #[must_use]
    pub fn own_remedy(&self) -> Option<&str> {
        self.remedy.as_deref()
    }

    /// What is wrong, without the path.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.path, self.line) {
            (Some(path), Some(line)) => write!(formatter, "{path}:{line}: {}", self.message),
            (Some(path), None) => write!(formatter, "{path}: {}", self.message),
            (None, _) => formatter.write_str(&self.message),
        }
    }
}

/// Everything that is wrong with a wheel, the worst first.
#[must_use]
pub fn check(wheel: &ExaminedWheel, policy: &Policy) -> Vec<Finding> {
    let mut findings = Vec::new();
    archive::check(wheel, &mut findings);
    tags::check(wheel, &mut findings);
    cxx::check(wheel, &mut findings);
    modules::check(wheel, policy, &mut findings);
    libraries::check(wheel, &mut findings);
    loader::check(wheel, policy, &mut findings);
    cuda::check(wheel, policy, &mut findings);
    size::check(wheel, policy, &mut findings);
    policy.apply(findings)
}

/// The findings on a wheel, with one more: whoever installed it could not import it, as `message` says. Nothing is
/// imported here.
#[must_use]
pub fn with_import_failure(mut findings: Vec<Finding>, message: String, policy: &Policy) -> Vec<Finding> {
    findings.push(Finding::new(&catalog::IMPORT, message));
    policy.apply(findings)
}

/// The first few of `items`, and how many more there are.
fn listed<T: fmt::Display>(items: &[T]) -> String {
    const SHOWN: usize = 4;
    let shown: Vec<String> = items.iter().take(SHOWN).map(ToString::to_string).collect();
    match items.len().checked_sub(SHOWN) {
        Some(more @ 1..) => format!("{} and {more} more", shown.join(", ")),
        _ => shown.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_rules_are_unique_and_texts_are_sentences() {
        crate::testing::check_catalog(RULES);
        for rule in RULES {
            assert_eq!(Rule::find(rule.id), Some(*rule));
        }
    }

    #[test]
    fn a_long_list_says_how_much_is_left_out() {
        assert_eq!(listed(&["a", "b", "c", "d"]), "a, b, c, d");
        assert_eq!(listed(&["a", "b", "c", "d", "e", "f"]), "a, b, c, d and 2 more");
    }
}
