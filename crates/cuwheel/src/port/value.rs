//! What a setup.py says, as values: texts and lists where they are written down, and the source of an expression where only
//! running it would tell.
//!
//! The reader is a program of Python's `ast`, in a process of its own (`python/setup_*.py`); nothing of the project is run.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::{Failure, Result};
use crate::process::Process;

const READER: &str = concat!(
    include_str!("../python/setup_values.py"),
    include_str!("../python/setup_reader.py"),
    include_str!("../python/setup_calls.py"),
);
/// Files are read and nothing is waited for: seconds are already too long.
const DEADLINE: Duration = Duration::from_mins(1);

/// A line of a file of the existing project.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
pub struct Place {
    /// Relative to the root.
    pub file: String,
    /// Counted from one.
    pub line: usize,
}

impl Place {
    pub(super) fn new(file: impl Into<String>, line: usize) -> Self {
        Self { file: file.into(), line }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}:{}", self.file, self.line)
    }
}

/// An expression whose value is not written down.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Unknown {
    pub(super) source: String,
    #[serde(flatten)]
    pub(super) place: Place,
    pub(super) why: String,
}

/// What a call gives, by the full name of what is called, such as `setuptools.Extension`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Made {
    pub(super) name: String,
    pub(super) arguments: Vec<Value>,
    pub(super) keywords: Vec<(String, Value)>,
    #[serde(flatten)]
    pub(super) place: Place,
}

impl Made {
    /// The last part of the name.
    pub(super) fn class(&self) -> &str {
        self.name.rsplit('.').next().unwrap_or(&self.name)
    }

    /// An argument by its name, or by its position.
    pub(super) fn argument(&self, name: &str, position: Option<usize>) -> Option<&Value> {
        let named = self.keywords.iter().find(|(key, _)| key == name).map(|(_, value)| value);
        named.or_else(|| self.arguments.get(position?))
    }
}

/// A class that setup.py defines, to take the place of one of setuptools' commands.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct CommandClass {
    pub(super) name: String,
    pub(super) bases: Vec<String>,
    pub(super) methods: Vec<String>,
    #[serde(flatten)]
    pub(super) place: Place,
}

/// A value as far as it is written down.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(super) enum Value {
    None,
    Flag {
        value: bool,
    },
    Text {
        value: String,
    },
    /// The content of a file, or a part of it that a pattern or a name takes.
    File {
        path: String,
        text: String,
        is_whole: bool,
    },
    List {
        items: Vec<Value>,
    },
    Table {
        entries: Vec<(String, Value)>,
    },
    Conditional {
        when: String,
        value: Box<Value>,
    },
    /// Items of a list that are not known.
    Spread {
        of: Box<Value>,
    },
    Unknown(Unknown),
    Symbol {
        name: String,
    },
    Command(CommandClass),
    Made(Made),
}

impl Value {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::Text { value: text.into() }
    }

    pub(super) fn texts(texts: impl IntoIterator<Item = String>) -> Self {
        Self::List { items: texts.into_iter().map(Self::text).collect() }
    }

    /// The text, where it is one.
    pub(super) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text { value } => Some(value),
            Self::File { text, .. } => Some(text),
            Self::Conditional { value, .. } => value.as_text(),
            _ => None,
        }
    }

    /// The items of a list, or the value alone.
    pub(super) fn items(&self) -> &[Self] {
        match self {
            Self::List { items } => items,
            Self::None => &[],
            other => std::slice::from_ref(other),
        }
    }

    /// The entries of a dictionary.
    pub(super) fn entries(&self) -> &[(String, Self)] {
        match self {
            Self::Table { entries } => entries,
            Self::Conditional { value, .. } => value.entries(),
            _ => &[],
        }
    }
}

/// A call of `setup`.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct SetupCall {
    pub(super) keywords: Vec<(String, Value)>,
    pub(super) name: String,
    #[serde(flatten)]
    pub(super) place: Place,
    pub(super) when: Vec<String>,
}

/// An environment variable that the script reads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Where it is read.
    #[serde(flatten)]
    pub place: Place,
}

#[derive(Clone, Debug, Deserialize)]
struct SyntaxProblem {
    line: usize,
    message: String,
    text: String,
}

/// Everything that the reader finds.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Script {
    #[serde(default)]
    pub(super) setups: Vec<SetupCall>,
    #[serde(default)]
    pub(super) variables: Vec<Variable>,
    /// Why reading ended before the end.
    #[serde(default)]
    pub(super) problem: Option<String>,
    /// The names of modules that were asked for.
    #[serde(default)]
    pub(super) attributes: BTreeMap<String, BTreeMap<String, Value>>,
    error: Option<SyntaxProblem>,
}

/// Reads setup.py, and the module-level names of `modules`, with `interpreter`.
pub(super) fn read(root: &Path, modules: &[String], interpreter: &Path) -> Result<Script> {
    let process = Process::new(interpreter).args(["-I", "-S", "-c", READER]).arg(root);
    let process = process.arg(serde_json::to_string(modules)?).deadline(DEADLINE).env("PYTHONIOENCODING", "utf-8");
    let finished = process.capture()?;
    let line = finished.stdout.lines().rfind(|line| line.starts_with('{'));
    let Some(line) = line else {
        return Err(Failure::failed("setup.py cannot be read")
            .details(finished.stderr.lines().rev().take(3).map(str::to_owned))
            .remedy("see whether `python -m ast setup.py` can parse it")
            .into());
    };
    let mut script: Script = serde_json::from_str(line)?;
    match script.error.take() {
        None => Ok(script),
        Some(problem) => Err(unparsable(root, &problem).into()),
    }
}

fn unparsable(root: &Path, problem: &SyntaxProblem) -> Failure {
    let text = files_text(root);
    let place = format!("setup.py:{}: {}", problem.line, problem.message);
    let failure = |message: &str| Failure::usage(message).detail(place.clone()).details(shown_line(&problem.text));
    if is_python_2(&problem.message, &text) {
        return failure("setup.py is written for Python 2, and cannot be parsed")
            .remedy("port setup.py to Python 3 first, for example with `2to3 -w setup.py`, and then try again");
    }
    failure("setup.py cannot be parsed").remedy("mend the line; what is not parsed is not ported in parts")
}

fn files_text(root: &Path) -> String {
    std::fs::read(root.join("setup.py")).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

fn shown_line(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| format!("    {}", text.chars().take(120).collect::<String>()))
}

/// Whether what the parser of Python 3 stumbles over is a statement of Python 2.
fn is_python_2(message: &str, text: &str) -> bool {
    if message.contains("Missing parentheses in call to") || message.contains("multiple exception types must be") {
        return true;
    }
    text.lines().map(str::trim_start).any(|line| {
        let prints = line.strip_prefix("print ").is_some_and(|rest| rest.starts_with(['"', '\'', '%', '>']));
        let catches = line.starts_with("except ") && line.trim_end().ends_with(':') && {
            let caught = line.trim_start_matches("except ").trim_end_matches(':');
            caught.contains(", ") && !caught.contains('(') && !caught.contains(" as ")
        };
        prints || catches
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_of_python_2_are_known() {
        assert!(is_python_2("Missing parentheses in call to 'print'. Did you mean print(...)?", ""));
        assert!(is_python_2("invalid syntax", "try:\n    pass\nexcept OSError, e:\n    pass\n"));
        assert!(!is_python_2("invalid syntax", "print (1)\nexcept (A, B):\nsetup(\n"));
    }
}
