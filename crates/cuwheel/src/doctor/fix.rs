//! Edits of pyproject.toml that need no judgement, made so that comments and layout stay, and shown as a difference.
//!
//! Not for other files: a setup.py is a program, and a person's to change.

use similar::TextDiff;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, Value, value};

use crate::error::{Failure, Result};
use crate::requirements::requirement_name;

/// A change of pyproject.toml.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Edit {
    /// Adds a requirement to `build-system.requires`.
    AddBuildRequirement(String),
    /// Gives `numpy` in `project.dependencies` a lower bound.
    NumpyFloor(String),
    /// Sets `project.requires-python`.
    RequiresPython(String),
    /// Adds patterns of files to `tool.uv.cache-keys`.
    CacheKeys(Vec<String>),
}

/// The text of pyproject.toml with all edits.
pub fn apply(text: &str, edits: &[Edit]) -> Result<String> {
    let mut document: DocumentMut =
        text.parse().map_err(|error| Failure::usage(format!("pyproject.toml is not valid TOML: {error}")))?;
    for edit in edits {
        edit.apply(&mut document);
    }
    let mut after = document.to_string();
    if !text.ends_with('\n') {
        after.truncate(after.trim_end_matches('\n').len());
    }
    // toml_edit writes line feeds only.
    let has_carriage_returns = text.contains("\r\n") && text.matches('\n').count() == text.matches("\r\n").count();
    Ok(if has_carriage_returns { after.replace('\n', "\r\n") } else { after })
}

/// What changes, as `diff -u` writes it.
#[must_use]
pub fn difference(path: &str, before: &str, after: &str) -> String {
    TextDiff::from_lines(before, after)
        .unified_diff()
        .context_radius(3)
        .header(&format!("a/{path}"), &format!("b/{path}"))
        .to_string()
}

impl Edit {
    fn apply(&self, document: &mut DocumentMut) {
        match self {
            Self::AddBuildRequirement(requirement) => {
                if let Some(array) = array_at(document, &["build-system", "requires"]) {
                    let added = like(array.iter().last(), requirement);
                    push(array, added);
                }
            }
            Self::NumpyFloor(floor) => {
                if let Some(array) = array_at(document, &["project", "dependencies"]) {
                    give_floor(array, floor);
                }
            }
            Self::RequiresPython(specifier) => set_requires_python(document, specifier),
            Self::CacheKeys(patterns) => add_cache_keys(document, patterns),
        }
    }
}

fn array_at<'d>(document: &'d mut DocumentMut, keys: &[&str]) -> Option<&'d mut Array> {
    keys.iter().try_fold(document.as_item_mut(), |item, key| item.get_mut(key))?.as_array_mut()
}

/// A text in the quotes that another has.
fn like(other: Option<&Value>, text: &str) -> Value {
    let is_literal = match other {
        Some(Value::String(other)) => {
            other.as_repr().and_then(|repr| repr.as_raw().as_str()).is_some_and(|raw| raw.starts_with('\''))
        }
        _ => false,
    };
    let literal = if is_literal && !text.contains('\'') { format!("'{text}'").parse().ok() } else { None };
    literal.unwrap_or_else(|| Value::from(text))
}

/// Adds a value in the layout that the array has: on a line of its own, where the others are.
fn push(array: &mut Array, mut added: Value) {
    let Some(last) = array.len().checked_sub(1) else {
        array.push(added);
        return;
    };
    let prefix = array
        .get(last)
        .and_then(|value| value.decor().prefix())
        .and_then(|raw| raw.as_str())
        .unwrap_or_default()
        .to_owned();
    let is_on_lines = prefix.contains('\n');
    if !is_on_lines {
        array.push(added);
        return;
    }
    let indentation = format!("\n{}", prefix.rsplit('\n').next().unwrap_or_default());
    // A comment after the last value, which had no comma, is what comes before the new one.
    let suffix = array
        .get(last)
        .and_then(|value| value.decor().suffix())
        .and_then(|raw| raw.as_str())
        .unwrap_or_default()
        .to_owned();
    let trailing = array.trailing().as_str().unwrap_or_default().to_owned();
    let comment = if array.trailing_comma() { comment_of(&trailing) } else { comment_of(&suffix) };
    if let Some(value) = array.get_mut(last) {
        value.decor_mut().set_suffix("");
    }
    added.decor_mut().set_prefix(format!("{comment}{indentation}"));
    added.decor_mut().set_suffix("");
    let rest = if array.trailing_comma() {
        trailing[comment.len()..].to_owned()
    } else {
        suffix[comment.len()..].to_owned() + &trailing
    };
    array.push_formatted(added);
    array.set_trailing(if rest.contains('\n') { rest } else { "\n".to_owned() });
    array.set_trailing_comma(true);
}

/// The comment at the beginning of a text, on the line that the text begins on.
fn comment_of(text: &str) -> String {
    let line = text.split('\n').next().unwrap_or_default();
    if line.trim_start().starts_with('#') { line.to_owned() } else { String::new() }
}

fn give_floor(array: &mut Array, floor: &str) {
    for index in 0..array.len() {
        let Some(text) = array.get(index).and_then(Value::as_str) else { continue };
        if requirement_name(text) != "numpy" {
            continue;
        }
        let (head, marker) =
            text.split_once(';').map_or((text, String::new()), |(head, marker)| (head, format!(";{marker}")));
        let name = head.trim().split(['<', '>', '=', '!', '~', ' ']).next().unwrap_or("numpy").to_owned();
        let rest = head.trim()[name.len()..].trim();
        let comma = if rest.is_empty() { "" } else { "," };
        let new = format!("{name}>={floor}{comma}{rest}{marker}");
        let decor = array.get(index).map(|value| value.decor().clone());
        let mut changed = like(array.get(index), &new);
        if let Some(decor) = decor {
            *changed.decor_mut() = decor;
        }
        array.replace_formatted(index, changed);
    }
}

fn set_requires_python(document: &mut DocumentMut, specifier: &str) {
    let Some(project) = document.get_mut("project").and_then(Item::as_table_like_mut) else { return };
    if let Some(present) = project.get_mut("requires-python").and_then(Item::as_value_mut) {
        // What else is said, such as `<4`, stays.
        let kept = present.as_str().unwrap_or_default().to_owned();
        let kept = kept
            .split(',')
            .map(str::trim)
            .filter(|part| !part.starts_with('>') && !part.is_empty() && !part.starts_with("~="));
        let text = std::iter::once(specifier).chain(kept).collect::<Vec<_>>().join(",");
        let decor = present.decor().clone();
        *present = like(Some(present), &text);
        *present.decor_mut() = decor;
    } else {
        project.insert("requires-python", value(specifier));
    }
}

fn add_cache_keys(document: &mut DocumentMut, patterns: &[String]) {
    let tool = document.entry("tool").or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    let Some(tool) = tool.as_table_like_mut() else { return };
    if !tool.contains_key("uv") {
        tool.insert("uv", Item::Table(Table::new()));
    }
    let Some(uv) = tool.get_mut("uv").and_then(Item::as_table_like_mut) else { return };
    let file = |pattern: &String| {
        let mut table = InlineTable::new();
        table.insert("file", Value::from(pattern.as_str()));
        Value::InlineTable(table)
    };
    if let Some(array) = uv.get_mut("cache-keys").and_then(Item::as_array_mut) {
        for pattern in patterns {
            push(array, file(pattern));
        }
        return;
    }
    let mut array = Array::new();
    for pattern in patterns {
        let mut entry = file(pattern);
        entry.decor_mut().set_prefix("\n    ");
        array.push_formatted(entry);
    }
    array.set_trailing("\n");
    array.set_trailing_comma(true);
    uv.insert("cache-keys", value(array));
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[track_caller]
    fn check(text: &str, edits: &[Edit], expected: &Expect) {
        let after = apply(text, edits).unwrap();
        after.parse::<DocumentMut>().unwrap();
        // Editors strip the space of an empty line.
        expected.assert_eq(&difference("pyproject.toml", text, &after).replace("\n \n", "\n\n"));
    }

    fn numpy() -> Edit {
        Edit::AddBuildRequirement("numpy>=2.0".to_owned())
    }

    #[test]
    fn requirements_are_added_in_the_layout_that_is_there() {
        check(
            "[build-system]\nrequires = [\"setuptools\"] # c\nbuild-backend = 'x'\n",
            &[numpy()],
            &expect![[r#"
            --- a/pyproject.toml
            +++ b/pyproject.toml
            @@ -1,3 +1,3 @@
             [build-system]
            -requires = ["setuptools"] # c
            +requires = ["setuptools", "numpy>=2.0"] # c
             build-backend = 'x'
        "#]],
        );
        check(
            "[build-system]\n# why\nrequires = [\n    # one\n    \"setuptools\", # c\n    'wheel',   # d\n    # end\n]\n",
            &[numpy(), Edit::AddBuildRequirement("ninja".to_owned())],
            &expect![[r#"
                --- a/pyproject.toml
                +++ b/pyproject.toml
                @@ -4,5 +4,7 @@
                     # one
                     "setuptools", # c
                     'wheel',   # d
                +    'numpy>=2.0',
                +    'ninja',
                     # end
                 ]
            "#]],
        );
        check(
            "[build-system]\nrequires = [\n  \"a\",\n  \"b\" # c\n]\n",
            &[numpy()],
            &expect![[r#"
            --- a/pyproject.toml
            +++ b/pyproject.toml
            @@ -1,5 +1,6 @@
             [build-system]
             requires = [
               "a",
            -  "b" # c
            +  "b", # c
            +  "numpy>=2.0",
             ]
        "#]],
        );
        check(
            "[build-system]\nrequires = []\n",
            &[numpy()],
            &expect![[r#"
            --- a/pyproject.toml
            +++ b/pyproject.toml
            @@ -1,2 +1,2 @@
             [build-system]
            -requires = []
            +requires = ["numpy>=2.0"]
        "#]],
        );
    }

    #[test]
    fn quotes_and_a_missing_line_end_stay_as_they_are() {
        let text = "[project]\nrequires-python = '>=3.8'\nname = 'p'";
        let after = apply(text, &[Edit::RequiresPython(">=3.11".to_owned())]).unwrap();
        assert_eq!(after, "[project]\nrequires-python = '>=3.11'\nname = 'p'");
    }

    #[test]
    fn line_ends_stay_as_they_are() {
        let text = "[build-system]\r\nrequires = [\r\n  \"a\",\r\n]\r\n# end\r\n";
        let expected = "[build-system]\r\nrequires = [\r\n  \"a\",\r\n  \"numpy>=2.0\",\r\n]\r\n# end\r\n";
        assert_eq!(apply(text, &[numpy()]).unwrap(), expected);
    }

    #[test]
    fn floors_keep_what_else_is_said() {
        check(
            "[project]\nrequires-python = '>=3.8,<4' # c\ndependencies = [\n  'numpy<3; x', # n\n  'numpydoc',\n]\n",
            &[Edit::NumpyFloor("1.26".to_owned()), Edit::RequiresPython(">=3.11".to_owned())],
            &expect![[r#"
                --- a/pyproject.toml
                +++ b/pyproject.toml
                @@ -1,6 +1,6 @@
                 [project]
                -requires-python = '>=3.8,<4' # c
                +requires-python = '>=3.11,<4' # c
                 dependencies = [
                -  'numpy<3; x', # n
                +  'numpy>=1.26,<3; x', # n
                   'numpydoc',
                 ]
            "#]],
        );
        check(
            "[project]\nname = 'p'\n",
            &[Edit::RequiresPython(">=3.11".to_owned())],
            &expect![[r#"
            --- a/pyproject.toml
            +++ b/pyproject.toml
            @@ -1,2 +1,3 @@
             [project]
             name = 'p'
            +requires-python = ">=3.11"
        "#]],
        );
    }

    #[test]
    fn cache_keys_are_added_or_made() {
        let keys = Edit::CacheKeys(vec!["pyproject.toml".to_owned(), "**/*.rs".to_owned()]);
        check(
            "[project]\nname = 'p'\n\n[tool.uv]\n# c\ndev = 1\n\n[tool.z]\n",
            std::slice::from_ref(&keys),
            &expect![[r#"
            --- a/pyproject.toml
            +++ b/pyproject.toml
            @@ -4,5 +4,9 @@
             [tool.uv]
             # c
             dev = 1
            +cache-keys = [
            +    { file = "pyproject.toml" },
            +    { file = "**/*.rs" },
            +]
 
             [tool.z]
        "#]],
        );
        check(
            "[project]\nname = 'p'\n",
            std::slice::from_ref(&keys),
            &expect![[r#"
            --- a/pyproject.toml
            +++ b/pyproject.toml
            @@ -1,2 +1,8 @@
             [project]
             name = 'p'
            +
            +[tool.uv]
            +cache-keys = [
            +    { file = "pyproject.toml" },
            +    { file = "**/*.rs" },
            +]
        "#]],
        );
        check(
            "[tool.uv]\ncache-keys = [{ file = 'a' }] # c\n",
            &[keys],
            &expect![[r#"
            --- a/pyproject.toml
            +++ b/pyproject.toml
            @@ -1,2 +1,2 @@
             [tool.uv]
            -cache-keys = [{ file = 'a' }] # c
            +cache-keys = [{ file = 'a' }, { file = "pyproject.toml" }, { file = "**/*.rs" }] # c
        "#]],
        );
    }
}
