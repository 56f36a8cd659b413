//! Takes texts and lists out of values, and keeps a list of what only running the project would tell.

use serde::Serialize;

use super::value::{Place, Unknown, Value};

/// Something that is not written down: nobody guesses it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Gap {
    /// What it is, such as `version` or `sources of pkg._ext`.
    pub what: String,
    /// The expression that would have to be run.
    pub source: String,
    /// Why it is not known, where there is more to say.
    pub why: String,
    /// Where it is.
    #[serde(flatten)]
    pub place: Place,
}

/// The gaps found so far.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    pub(super) found: Vec<Gap>,
}

impl Gaps {
    pub(super) fn add(&mut self, what: &str, source: &str, why: &str, place: &Place) {
        let gap = Gap { what: what.to_owned(), source: source.to_owned(), why: why.to_owned(), place: place.clone() };
        if !self.found.contains(&gap) {
            self.found.push(gap);
        }
    }

    /// Whether something of that name is not known.
    pub(super) fn has(&self, what: &str) -> bool {
        self.found.iter().any(|gap| gap.what == what)
    }

    fn add_unknown(&mut self, what: &str, unknown: &Unknown) {
        self.add(what, &unknown.source, &unknown.why, &unknown.place);
    }

    /// Notes a value that is not what was wanted.
    pub(super) fn add_value(&mut self, what: &str, value: &Value, place: &Place) {
        match value {
            Value::Unknown(unknown) => self.add_unknown(what, unknown),
            Value::Spread { of } | Value::Conditional { value: of, .. } => self.add_value(what, of, place),
            Value::Made(made) => self.add(what, &format!("{}(…)", made.name), "", &made.place),
            Value::Symbol { name } => self.add(what, name, "", place),
            Value::Command(class) => self.add(what, &class.name, "", &class.place),
            _ => self.add(what, "", "it is neither a text nor a list of texts", place),
        }
    }

    /// The text of a value; what is none becomes a gap.
    pub(super) fn text(&mut self, what: &str, value: &Value, place: &Place) -> Option<String> {
        if let Some(text) = value.as_text() {
            return Some(text.to_owned());
        }
        if *value != Value::None {
            self.add_value(what, value, place);
        }
        None
    }

    /// The texts of a list; items that are none become gaps. Conditions are not kept.
    pub(super) fn texts(&mut self, what: &str, value: &Value, place: &Place) -> Vec<String> {
        let mut found = Vec::new();
        for item in value.items() {
            match item {
                Value::List { .. } => found.extend(self.texts(what, item, place)),
                Value::Conditional { value, .. } => found.extend(self.texts(what, value, place)),
                other => found.extend(self.text(what, other, place)),
            }
        }
        found
    }
}
