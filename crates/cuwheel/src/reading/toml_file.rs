//! A TOML file with the lines of what it says.
//!
//! Not for changing files: [`crate::doctor::fix`] does, on a document that keeps comments and layout.

use std::ops::Range;

use toml_edit::{Document, Item, TableLike};

/// A TOML file that was read.
#[derive(Clone, Debug)]
pub struct TomlFile {
    path: String,
    document: Document<String>,
}

impl TomlFile {
    /// Reads a text; the error is its line and what is wrong there.
    pub fn parse(path: &str, text: &str) -> Result<Self, (Option<usize>, String)> {
        match Document::parse(text.to_owned()) {
            Ok(document) => Ok(Self { path: path.to_owned(), document }),
            Err(error) => {
                let line = error.span().map(|span| line_at(text, span.start));
                Err((line, error.message().trim().replace('\n', ", ")))
            }
        }
    }

    /// The path in the project.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The text of the file.
    #[must_use]
    pub fn text(&self) -> &str {
        self.document.raw()
    }

    /// What a dotted key names, whose parts have no dots.
    #[must_use]
    pub fn item(&self, key: &str) -> Option<&Item> {
        key.split('.').try_fold(self.document.as_item(), |item, name| item.get(name))
    }

    /// The table that a dotted key names.
    #[must_use]
    pub fn table(&self, key: &str) -> Option<&dyn TableLike> {
        self.item(key)?.as_table_like()
    }

    /// The text that a dotted key has.
    #[must_use]
    pub fn text_of(&self, key: &str) -> Option<&str> {
        self.item(key)?.as_str()
    }

    /// The texts of an array, or the one text, that a dotted key has, each with its line.
    #[must_use]
    pub fn texts_of(&self, key: &str) -> Vec<(String, usize)> {
        self.item(key).map(|item| self.texts_in(item)).unwrap_or_default()
    }

    /// The texts of an array, or the one text, each with its line.
    #[must_use]
    pub fn texts_in(&self, item: &Item) -> Vec<(String, usize)> {
        let line = |span: Option<Range<usize>>| span.map_or(1, |span| line_at(self.text(), span.start));
        if let Some(text) = item.as_str() {
            return vec![(text.to_owned(), line(item.span()))];
        }
        let values = item.as_array().into_iter().flatten();
        values.filter_map(|value| Some((value.as_str()?.to_owned(), line(value.span())))).collect()
    }

    /// The line of what a dotted key names, or of the nearest table around it that is there.
    #[must_use]
    pub fn line_of(&self, key: &str) -> Option<usize> {
        let mut item = self.document.as_item();
        let mut found = None;
        for name in key.split('.') {
            let Some((key, inner)) = item.as_table_like().and_then(|table| table.get_key_value(name)) else { break };
            item = inner;
            let span = key.span().or_else(|| item.span());
            found = span.map(|span| line_at(self.text(), span.start)).or(found);
        }
        found
    }
}

/// The number of the line that a byte of a text is in.
pub(crate) fn line_at(text: &str, offset: usize) -> usize {
    1 + text.get(..offset.min(text.len())).unwrap_or(text).matches('\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values_have_lines() {
        let text = "[build-system]\nrequires = [\n  \"a\",\n  \"b\",\n]\n\n[tool.x]\ny.z = 1\n";
        let file = TomlFile::parse("pyproject.toml", text).unwrap();
        assert_eq!(file.texts_of("build-system.requires"), [("a".to_owned(), 3), ("b".to_owned(), 4)]);
        assert_eq!(file.line_of("build-system.requires"), Some(2));
        assert_eq!(file.line_of("tool.x.y.z"), Some(8));
        assert_eq!(file.line_of("tool.x.nothing"), Some(7));
        assert_eq!(file.line_of("nothing"), None);
    }

    #[test]
    fn what_is_no_toml_has_a_line() {
        assert_eq!(TomlFile::parse("p", "a = 1\nb = \n").unwrap_err().0, Some(2));
    }
}
