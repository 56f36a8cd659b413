//! YAML as a tree whose nodes know their lines: what the files of CI systems are read into.
//!
//! Not for writing YAML, and not for types beyond texts, lists and mappings: who reads a value says what it has to be.

use std::collections::BTreeMap;
use std::rc::Rc;

use saphyr_parser::{Event, Parser, ScalarStyle};

/// More nodes than a file of people has; aliases can make any number.
const MOST_NODES: usize = 200_000;
/// Deeper than a file of people is; reading is by recursion.
const MOST_DEPTH: usize = 100;

/// A value, and the line that it begins on, counted from one.
#[derive(Debug)]
pub struct Node {
    /// The line.
    pub line: usize,
    /// The value.
    pub value: Value,
}

/// A key of a mapping, and its value.
pub type Entry = (Rc<Node>, Rc<Node>);

/// What a node is.
#[derive(Debug)]
pub enum Value {
    /// A scalar, and whether it was written without quotes, so that it may stand for a number or for nothing.
    Text(String, bool),
    /// The text of a block, whose lines are those of the file.
    Block(String),
    /// A list.
    List(Vec<Rc<Node>>),
    /// Keys and values, in their order.
    Map(Vec<Entry>),
}

/// Why a text cannot be read, and where.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct Unreadable {
    /// The line, counted from one.
    pub line: usize,
    /// What is wrong.
    pub message: String,
}

/// Reads the first document of a text; `None` where there is none.
pub fn parse(text: &str) -> Result<Option<Rc<Node>>, Unreadable> {
    let mut reader = Reader { parser: Parser::new_from_str(text), anchors: BTreeMap::new(), nodes: 0 };
    loop {
        let (event, line) = reader.next()?;
        match event {
            Event::StreamEnd => return Ok(None),
            Event::StreamStart | Event::DocumentStart(_) | Event::DocumentEnd | Event::Nothing => {}
            event => return reader.node(event, line, 0).map(Some),
        }
    }
}

struct Reader<'text> {
    parser: Parser<'text, saphyr_parser::StrInput<'text>>,
    anchors: BTreeMap<usize, (Rc<Node>, usize)>,
    nodes: usize,
}

impl<'text> Reader<'text> {
    fn next(&mut self) -> Result<(Event<'text>, usize), Unreadable> {
        match self.parser.next_event() {
            Some(Ok((event, span))) => Ok((event, span.start.line())),
            Some(Err(error)) => Err(Unreadable { line: error.marker().line(), message: error.info().to_owned() }),
            None => Ok((Event::StreamEnd, 0)),
        }
    }

    fn node(&mut self, event: Event<'text>, line: usize, depth: usize) -> Result<Rc<Node>, Unreadable> {
        let before = self.nodes;
        self.count(1, line)?;
        if depth > MOST_DEPTH {
            return Err(Unreadable { line, message: "values are nested too deeply".to_owned() });
        }
        let (value, anchor) = match event {
            Event::Alias(anchor) => return self.alias(anchor, line),
            Event::Scalar(text, style, anchor, _) => {
                let text = text.into_owned();
                let value = match style {
                    ScalarStyle::Literal | ScalarStyle::Folded => Value::Block(text),
                    style => Value::Text(text, style == ScalarStyle::Plain),
                };
                (value, anchor)
            }
            Event::SequenceStart(anchor, _) => (Value::List(self.list(depth)?), anchor),
            Event::MappingStart(anchor, _) => (Value::Map(self.map(depth)?), anchor),
            _ => return Err(Unreadable { line, message: "a value ends where none began".to_owned() }),
        };
        let node = Rc::new(Node { line, value });
        if anchor != 0 {
            self.anchors.insert(anchor, (Rc::clone(&node), self.nodes - before));
        }
        Ok(node)
    }

    /// What an alias stands for counts again: whoever walks over the tree meets it again.
    fn alias(&mut self, anchor: usize, line: usize) -> Result<Rc<Node>, Unreadable> {
        let Some((node, nodes)) = self.anchors.get(&anchor) else {
            return Err(Unreadable { line, message: "an alias stands for a value that it is in".to_owned() });
        };
        let (node, nodes) = (Rc::clone(node), *nodes);
        self.count(nodes, line)?;
        Ok(node)
    }

    fn count(&mut self, nodes: usize, line: usize) -> Result<(), Unreadable> {
        self.nodes = self.nodes.saturating_add(nodes);
        if self.nodes > MOST_NODES {
            return Err(Unreadable { line, message: format!("there are more than {MOST_NODES} values") });
        }
        Ok(())
    }

    fn list(&mut self, depth: usize) -> Result<Vec<Rc<Node>>, Unreadable> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(items),
                (event, line) => items.push(self.node(event, line, depth + 1)?),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Vec<Entry>, Unreadable> {
        let mut entries = Vec::new();
        loop {
            let (event, line) = self.next()?;
            if event == Event::MappingEnd {
                return Ok(entries);
            }
            let key = self.node(event, line, depth + 1)?;
            let (event, line) = self.next()?;
            entries.push((key, self.node(event, line, depth + 1)?));
        }
    }
}

impl Node {
    /// The text of a scalar.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text, _) | Value::Block(text) => Some(text),
            _ => None,
        }
    }

    /// The value of a key of a mapping.
    pub fn get(&self, key: &str) -> Option<&Rc<Self>> {
        self.entries().iter().find(|(name, _)| name.text() == Some(key)).map(|(_, value)| value)
    }

    /// The text of the value of a key.
    pub fn text_of(&self, key: &str) -> Option<&str> {
        self.get(key)?.text()
    }

    /// The entries of a mapping; none of anything else.
    pub fn entries(&self) -> &[Entry] {
        if let Value::Map(entries) = &self.value { entries } else { &[] }
    }

    /// The items of a list; none of anything else.
    pub fn items(&self) -> &[Rc<Self>] {
        if let Value::List(items) = &self.value { items } else { &[] }
    }

    /// The items of a list of texts, or the one text that stands for such a list.
    pub fn texts(&self) -> Vec<&str> {
        match self.text() {
            Some(text) => vec![text],
            None => self.items().iter().filter_map(|item| item.text()).collect(),
        }
    }

    /// Whether it is the word for nothing.
    pub fn is_null(&self) -> bool {
        matches!(&self.value, Value::Text(text, true) if ["", "~", "null"].contains(&text.as_str()))
    }

    /// The line of a line of the text, counted from zero: of a block, the lines follow.
    pub fn line_of(&self, index: usize) -> usize {
        // The node of a block begins where its text does, not at its mark.
        if matches!(self.value, Value::Block(_)) { self.line + index } else { self.line }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_know_their_lines() {
        let text = "# remark\na: 1\nb:\n  - x\n  - {c: 'y', d: [~]}\nrun: |\n  first\n  second\n";
        let root = parse(text).unwrap().unwrap();
        let b = root.get("b").unwrap();
        let lines: Vec<usize> = b.items().iter().map(|item| item.line).collect();
        assert_eq!((root.get("a").unwrap().line, lines), (2, vec![4, 5]));
        assert!(b.items()[1].get("d").unwrap().items()[0].is_null());
        let run = root.get("run").unwrap();
        assert_eq!(run.text(), Some("first\nsecond\n"));
        assert_eq!((run.line_of(0), run.line_of(1)), (7, 8));
    }

    #[test]
    fn aliases_stand_for_values_and_cannot_fill_the_memory() {
        let root = parse("a: &x [1, 2]\nb: *x\n").unwrap().unwrap();
        assert_eq!(root.get("b").unwrap().texts(), ["1", "2"]);
        let mut lines = vec!["a0: &a0 [x, x, x, x, x, x, x, x, x, x]".to_owned()];
        for level in 1..9 {
            let below = format!("*a{}, ", level - 1).repeat(10);
            lines.push(format!("a{level}: &a{level} [{below}]"));
        }
        assert!(parse(&lines.join("\n")).unwrap_err().message.contains("more than"));
        assert!(parse(&"[".repeat(5000)).is_err());
    }

    #[test]
    fn what_is_no_yaml_has_a_line() {
        let error = parse("a: 1\nb: [\n").unwrap_err();
        assert!(error.line >= 2, "{error}");
        assert!(parse("# nothing\n").unwrap().is_none());
    }
}
