//! `CMake` files: commands with their arguments, lines and the conditions that they are under.
//!
//! Variables are not expanded. Source: "cmake-language(7)".

use crate::reading::tree::Tree;

/// A command such as `target_link_libraries(x PRIVATE cuda)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Command {
    /// In lower case.
    pub(super) name: String,
    pub(super) arguments: Vec<(String, usize)>,
    pub(super) line: usize,
    /// The conditions around it, each as its words with spaces between.
    pub(super) when: Vec<String>,
}

/// A file that was read.
#[derive(Clone, Debug)]
pub(super) struct CMakeFile {
    pub(super) path: String,
    pub(super) commands: Vec<Command>,
}

/// The `CMake` files that are part of the build.
pub(super) fn read(tree: &Tree) -> Vec<CMakeFile> {
    let files = tree.product().filter(|file| file.name() == "CMakeLists.txt" || file.extension() == "cmake");
    files.filter_map(|file| Some(CMakeFile::parse(&file.path, &tree.text(&file.path)?))).collect()
}

impl CMakeFile {
    pub(super) fn parse(path: &str, text: &str) -> Self {
        let mut commands: Vec<Command> = Vec::new();
        let mut when: Vec<String> = Vec::new();
        let mut scanner = Scanner { text, position: 0, line: 1 };
        while let Some((name, line)) = scanner.command_name() {
            let arguments = scanner.arguments();
            let words = || arguments.iter().map(|(text, _)| text.as_str()).collect::<Vec<_>>().join(" ");
            match name.as_str() {
                "if" => when.push(words()),
                "elseif" => {
                    if let Some(last) = when.last_mut() {
                        *last = format!("{last} {}", words());
                    }
                }
                "endif" => {
                    when.pop();
                }
                "else" => {}
                _ => commands.push(Command { name, arguments, line, when: when.clone() }),
            }
        }
        Self { path: path.to_owned(), commands }
    }
}

struct Scanner<'t> {
    text: &'t str,
    position: usize,
    line: usize,
}

impl<'t> Scanner<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.position..]
    }

    fn advance(&mut self, bytes: usize) {
        self.line += self.rest()[..bytes].bytes().filter(|byte| *byte == b'\n').count();
        self.position += bytes;
    }

    /// Skips space and comments.
    fn skip(&mut self) {
        loop {
            let rest = self.rest();
            if let Some(equals) = bracket(rest.strip_prefix('#').unwrap_or_default()) {
                let end = format!("]{}]", "=".repeat(equals));
                self.advance(rest.find(&end).map_or(rest.len(), |at| at + end.len()));
            } else if rest.starts_with('#') {
                self.advance(rest.find('\n').unwrap_or(rest.len()));
            } else if rest.starts_with(char::is_whitespace) {
                self.advance(rest.len() - rest.trim_start().len());
            } else {
                return;
            }
        }
    }

    /// The name of the next command, which is left before its parenthesis.
    fn command_name(&mut self) -> Option<(String, usize)> {
        loop {
            self.skip();
            let rest = self.rest();
            let first = rest.chars().next()?;
            let length = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
            let (name, line) = (rest[..length].to_lowercase(), self.line);
            self.advance(length.max(first.len_utf8()));
            self.skip();
            if length > 0 && self.rest().starts_with('(') {
                return Some((name, line));
            }
        }
    }

    fn arguments(&mut self) -> Vec<(String, usize)> {
        let (mut found, mut depth) = (Vec::new(), 0_usize);
        loop {
            self.skip();
            let (rest, line) = (self.rest(), self.line);
            let Some(first) = rest.chars().next() else { return found };
            match first {
                '(' => {
                    depth += 1;
                    self.advance(1);
                }
                ')' => {
                    depth -= 1;
                    self.advance(1);
                    if depth == 0 {
                        return found;
                    }
                }
                '"' => found.push((self.quoted(), line)),
                '[' if bracket(rest).is_some() => {
                    let equals = bracket(rest).unwrap_or_default();
                    let end = format!("]{}]", "=".repeat(equals));
                    let (start, length) = (equals + 2, rest.find(&end).unwrap_or(rest.len()));
                    found.push((rest.get(start..length).unwrap_or_default().to_owned(), line));
                    self.advance((length + end.len()).min(rest.len()));
                }
                _ => {
                    let end = rest.find(|c: char| c.is_whitespace() || "()\"#".contains(c)).unwrap_or(rest.len());
                    found.push((rest[..end].to_owned(), line));
                    self.advance(end.max(first.len_utf8()));
                }
            }
        }
    }

    fn quoted(&mut self) -> String {
        let rest = self.rest();
        let (mut value, mut characters) = (String::new(), rest.char_indices().skip(1));
        let mut length = rest.len();
        while let Some((offset, character)) = characters.next() {
            match character {
                '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
                '"' => {
                    length = offset + 1;
                    break;
                }
                other => value.push(other),
            }
        }
        self.advance(length);
        value
    }
}

/// The number of `=` of an opening long bracket.
fn bracket(rest: &str) -> Option<usize> {
    let inner = rest.strip_prefix('[')?;
    let equals = inner.bytes().take_while(|byte| *byte == b'=').count();
    inner[equals..].starts_with('[').then_some(equals)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_have_arguments_lines_and_conditions() {
        let text = "# c\nif(A VERSION_LESS 12)\n  Set(X \"a;b\" # d\n    ${Y})\nelse()\n foo()\nendif()\n#[[ bar() ]]\nbar([=[x]y]=] (q))\n";
        let found = CMakeFile::parse("CMakeLists.txt", text).commands;
        assert_eq!(found[0].name, "set");
        assert_eq!(found[0].arguments, [("X".to_owned(), 3), ("a;b".to_owned(), 3), ("${Y}".to_owned(), 4)]);
        assert_eq!(found[0].when, ["A VERSION_LESS 12"]);
        assert_eq!((found[1].name.as_str(), found[1].when.len()), ("foo", 1));
        assert_eq!((found[2].name.as_str(), found[2].when.len(), found[2].line), ("bar", 0, 9));
        assert_eq!(found[2].arguments, [("x]y".to_owned(), 9), ("q".to_owned(), 9)]);
    }

    #[test]
    fn every_part_of_a_file_can_be_read() {
        let text = "if(A \"b\\\"\" [=[c]]=]) # d\n#[[ e ]] set(X é;${Y} (z)) else() endif()\n";
        for (start, _) in text.char_indices() {
            CMakeFile::parse("x", &text[start..]);
            CMakeFile::parse("x", &text[..start]);
        }
    }

    #[test]
    fn damaged_files_end() {
        for text in ["if(", "x(\"a", "x([[a", "#[[", "()", "é(", "x(é"] {
            CMakeFile::parse("x", text);
        }
    }
}
