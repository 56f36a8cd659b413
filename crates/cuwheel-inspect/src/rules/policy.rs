//! What counts as wrong for whom: severities that were changed, the size budget, modules that have to be inside.
//!
//! Reading them from a command line or from settings is the caller's part.

use std::str::FromStr;

use super::{Finding, InstalledLibraries, RULES, Rule, Severity};
use crate::fatbin::{Architecture, ImageKind, InvalidArchitecture};

/// A rule, or all rules of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleSelector(String);

/// The text names no rule and no group of rules.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no rule and no group of rules")]
pub struct UnknownRule(String);

impl FromStr for RuleSelector {
    type Err = UnknownRule;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::among(RULES, text)
    }
}

impl RuleSelector {
    /// Reads a text that selects something in a catalog.
    pub fn among(catalog: &[&'static Rule], text: &str) -> Result<Self, UnknownRule> {
        let selector = Self(text.to_owned());
        if catalog.iter().any(|rule| selector.selects(rule)) { Ok(selector) } else { Err(UnknownRule(selector.0)) }
    }

    /// Every text that selects something in a catalog: groups, and rules.
    #[must_use]
    pub fn known(catalog: &[&'static Rule]) -> Vec<&'static str> {
        let mut known: Vec<&str> = Vec::new();
        for rule in catalog {
            let group = rule.id.split_inclusive('/').next().unwrap_or_default();
            if !known.contains(&group) {
                known.push(group);
            }
            known.push(rule.id);
        }
        known
    }

    /// The text that it was read from.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn is_group(&self) -> bool {
        self.0.ends_with('/')
    }

    fn selects(&self, rule: &Rule) -> bool {
        if self.is_group() { rule.id.starts_with(&self.0) } else { rule.id == self.0 }
    }
}

/// GPU code that a project says it is built for: `90a` and `sm_90a` are machine code, `compute_90` is PTX, and `90+PTX`
/// is both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredArchitecture {
    text: String,
    images: Vec<(ImageKind, Architecture)>,
}

impl FromStr for DeclaredArchitecture {
    type Err = InvalidArchitecture;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, has_both) = text.strip_suffix("+PTX").map_or((text, false), |name| (name, true));
        let architecture: Architecture = name.parse()?;
        let images = match (has_both, name.starts_with("compute_")) {
            (true, _) => vec![(ImageKind::Sass, architecture), (ImageKind::Ptx, architecture)],
            (false, true) => vec![(ImageKind::Ptx, architecture)],
            (false, false) => vec![(ImageKind::Sass, architecture)],
        };
        Ok(Self { text: text.to_owned(), images })
    }
}

impl DeclaredArchitecture {
    /// The text that it was read from.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// What the rules ask for.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    layers: Vec<Layer>,
    pub(super) budget_bytes: Option<u64>,
    pub(super) modules: Vec<String>,
    pub(super) architectures: Vec<(ImageKind, Architecture)>,
    pub(super) dependencies: Vec<InstalledLibraries>,
}

#[derive(Debug, Clone)]
struct Layer {
    deny: Vec<RuleSelector>,
    allow: Vec<RuleSelector>,
}

impl Policy {
    /// Makes breaches of the rules in `deny` errors, and leaves out those of the rules in `allow`. A rule's own name
    /// counts for more than its group, and `deny` for more than `allow`; a later call counts for more than an earlier.
    #[must_use]
    pub fn with(mut self, deny: Vec<RuleSelector>, allow: Vec<RuleSelector>) -> Self {
        self.layers.push(Layer { deny, allow });
        self
    }

    /// Sets the most bytes that a wheel may have.
    #[must_use]
    pub fn with_budget(mut self, budget_bytes: Option<u64>) -> Self {
        self.budget_bytes = budget_bytes;
        self
    }

    /// Sets the modules that have to be inside.
    #[must_use]
    pub fn with_modules(mut self, modules: Vec<String>) -> Self {
        self.modules = modules;
        self
    }

    /// Sets the wheels among which those that a wheel requires are looked for.
    #[must_use]
    pub fn with_dependencies(mut self, wheels: Vec<InstalledLibraries>) -> Self {
        self.dependencies = wheels;
        self
    }

    /// Sets the GPU code that every file with some has to hold.
    #[must_use]
    pub fn with_architectures(mut self, declared: &[DeclaredArchitecture]) -> Self {
        self.architectures = declared.iter().flat_map(|declared| declared.images.iter().copied()).collect();
        self
    }

    /// How bad a breach of `rule` is; `None` where it is allowed.
    #[must_use]
    pub fn severity_of(&self, rule: &Rule) -> Option<Severity> {
        for layer in self.layers.iter().rev() {
            for exact in [true, false] {
                let selected = |selectors: &[RuleSelector]| {
                    selectors.iter().any(|selector| selector.is_group() != exact && selector.selects(rule))
                };
                if selected(&layer.deny) {
                    return Some(Severity::Error);
                }
                if selected(&layer.allow) {
                    return None;
                }
            }
        }
        Some(rule.severity)
    }

    /// Sets severities, leaves out what is allowed, and puts the worst first.
    #[must_use]
    pub fn apply(&self, findings: Vec<Finding>) -> Vec<Finding> {
        let mut kept: Vec<Finding> = findings
            .into_iter()
            .filter_map(|finding| Some(Finding { severity: self.severity_of(finding.rule)?, ..finding }))
            .collect();
        kept.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selectors(texts: &[&str]) -> Vec<RuleSelector> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn exact_names_count_for_more_than_groups_and_later_layers_for_more_than_earlier() {
        let severity = |layers: &[(&[&str], &[&str])]| {
            let policy = layers
                .iter()
                .fold(Policy::default(), |policy, (deny, allow)| policy.with(selectors(deny), selectors(allow)));
            policy.severity_of(Rule::find("archive/directory-entry").unwrap())
        };
        let exact = "archive/directory-entry";
        assert_eq!(severity(&[]), Some(Severity::Note));
        assert_eq!(severity(&[(&[exact], &[])]), Some(Severity::Error));
        assert_eq!(severity(&[(&[], &["archive/"])]), None);
        assert_eq!(severity(&[(&[exact], &["archive/"])]), Some(Severity::Error));
        assert_eq!(severity(&[(&["archive/"], &[exact])]), None);
        assert_eq!(severity(&[(&[exact], &[exact])]), Some(Severity::Error));
        assert_eq!(severity(&[(&[exact], &[]), (&[], &["archive/"])]), None);
        assert_eq!(severity(&[(&["libraries/"], &["tags/"])]), Some(Severity::Note));
    }

    #[test]
    fn texts_that_select_nothing_are_refused() {
        for text in ["", "/", "archive", "archiv/", "archive/duplicate", "archive/duplicate-entry/"] {
            assert_eq!(text.parse::<RuleSelector>(), Err(UnknownRule(text.to_owned())));
        }
        for text in RuleSelector::known(RULES) {
            assert_eq!(text.parse::<RuleSelector>().unwrap().as_str(), text);
        }
    }
}
