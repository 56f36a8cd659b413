//! METADATA and WHEEL as lines: single headers change, and every other byte stays as it was.
//!
//! Not for reading them, which [`cuwheel_inspect::wheel::Headers`] does, nor for deciding what changes.

use crate::error::{Failure, Result};

/// The headers of a file, line by line, and what follows them.
pub(crate) struct Head<'a> {
    lines: Vec<String>,
    /// From the empty line on.
    rest: &'a str,
    line_end: &'static str,
}

impl<'a> Head<'a> {
    pub(crate) fn of(text: &'a str) -> Result<Self> {
        let line_end = if text.lines().next().is_some_and(|first| text[first.len()..].starts_with("\r\n")) {
            "\r\n"
        } else {
            "\n"
        };
        let blank = format!("{line_end}{line_end}");
        let (head, rest) = match text.find(&blank) {
            Some(position) => text.split_at(position + line_end.len()),
            None => (text, ""),
        };
        if head.contains('\u{feff}') {
            return Err(Failure::usage(
                "METADATA or WHEEL starts with a byte order mark, which installers read as text",
            )
            .remedy("take another release")
            .into());
        }
        Ok(Self { lines: head.lines().map(str::to_owned).collect(), rest, line_end })
    }

    /// The lines of a header with those that continue it.
    fn positions(&self, name: &str) -> Vec<(usize, usize)> {
        let is_it = |line: &str| line.split_once(':').is_some_and(|(other, _)| other.eq_ignore_ascii_case(name));
        let continues = |line: &String| line.starts_with([' ', '\t']);
        let starts = (0..self.lines.len()).filter(|line| is_it(&self.lines[*line]));
        starts
            .map(|start| {
                let more = self.lines[start + 1..].iter().take_while(|line| continues(line)).count();
                (start, start + 1 + more)
            })
            .collect()
    }

    /// Gives a header one value, in its place, or at the end where it has none.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        let line = format!("{name}: {value}");
        match self.positions(name).first() {
            Some(&(start, end)) => {
                self.lines.splice(start..end, [line]);
            }
            None => self.lines.push(line),
        }
    }

    /// Adds a value after those that the header has.
    pub(crate) fn add(&mut self, name: &str, value: &str) {
        let end = self.positions(name).last().map_or(self.lines.len(), |(_, end)| *end);
        self.lines.insert(end, format!("{name}: {value}"));
    }

    pub(crate) fn remove(&mut self, name: &str) {
        for (start, end) in self.positions(name).into_iter().rev() {
            self.lines.drain(start..end);
        }
    }

    pub(crate) fn finish(self) -> String {
        let mut text = self.lines.join(self.line_end);
        text.push_str(self.line_end);
        text + self.rest
    }
}
