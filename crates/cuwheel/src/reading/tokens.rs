//! Words, texts and marks of C, C++, CUDA, Rust, Cython and Meson sources, without comments.
//!
//! Enough to find a call with its texts and a constant's value. Not a parser: no meaning is given to what is found.

use std::collections::BTreeMap;

/// Which comments and quotes there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    /// C, C++ and CUDA.
    C,
    Rust,
    /// Cython and Meson: `#` comments, single quotes.
    Hash,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token<'t> {
    Word(&'t str),
    Text(String),
    Mark(char),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Placed<'t> {
    pub(crate) token: Token<'t>,
    pub(crate) line: usize,
}

impl Placed<'_> {
    pub(crate) fn is_word(&self, word: &str) -> bool {
        matches!(self.token, Token::Word(found) if found == word)
    }

    pub(crate) fn is_mark(&self, mark: char) -> bool {
        self.token == Token::Mark(mark)
    }
}

/// Takes a text apart.
pub(crate) fn tokens(text: &str, language: Language) -> Vec<Placed<'_>> {
    let mut scanner = Scanner { text, language, position: 0, line: 1, found: Vec::new() };
    while scanner.step() {}
    scanner.found
}

struct Scanner<'t> {
    text: &'t str,
    language: Language,
    position: usize,
    line: usize,
    found: Vec<Placed<'t>>,
}

fn is_of_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

impl<'t> Scanner<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.position..]
    }

    fn advance(&mut self, bytes: usize) {
        self.line += self.rest()[..bytes].bytes().filter(|byte| *byte == b'\n').count();
        self.position += bytes;
    }

    /// Past the next place of `end`, or to the end of the text.
    fn skip_past(&mut self, from: usize, end: &str) {
        let length = self.rest().get(from..).and_then(|rest| rest.find(end));
        self.advance(length.map_or(self.rest().len(), |length| from + length + end.len()));
    }

    fn push(&mut self, token: Token<'t>, line: usize) {
        self.found.push(Placed { token, line });
    }

    fn step(&mut self) -> bool {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return false };
        let is_c_like = self.language != Language::Hash;
        if first.is_whitespace() {
            self.advance(first.len_utf8());
        } else if is_c_like && rest.starts_with("//") || !is_c_like && first == '#' {
            self.advance(rest.find('\n').unwrap_or(rest.len()));
        } else if is_c_like && rest.starts_with("/*") {
            self.skip_past(2, "*/");
        } else if let Some(length) = raw_string_prefix(rest, self.language) {
            self.raw_string(length);
        } else if first == '"' || (first == '\'' && !is_c_like) {
            self.string(first);
        } else if first == '\'' {
            self.character();
        } else if is_of_word(first) {
            let length = rest.find(|c| !is_of_word(c)).unwrap_or(rest.len());
            let (line, word) = (self.line, &rest[..length]);
            self.advance(length);
            // A prefix such as in L"x" or c"x" belongs to the text.
            let is_prefix =
                length <= 2 && self.rest().starts_with('"') && word.bytes().all(|b| b"LuU8bcf".contains(&b));
            if !is_prefix {
                self.push(Token::Word(word), line);
            }
        } else {
            let line = self.line;
            self.advance(first.len_utf8());
            self.push(Token::Mark(first), line);
        }
        true
    }

    fn string(&mut self, quote: char) {
        let line = self.line;
        let triple = format!("{quote}{quote}{quote}");
        if self.language == Language::Hash && self.rest().starts_with(&triple) {
            let start = self.position + 3;
            self.skip_past(3, &triple);
            let end = self.position.saturating_sub(3).max(start).min(self.text.len());
            let text = self.text.get(start..end).unwrap_or_default().to_owned();
            self.push(Token::Text(text), line);
            return;
        }
        let (mut value, mut characters) = (String::new(), self.rest().char_indices().skip(1));
        let mut length = self.rest().len();
        while let Some((offset, character)) = characters.next() {
            match character {
                '\\' => match characters.next() {
                    Some((_, 'n')) => value.push('\n'),
                    Some((_, 't')) => value.push('\t'),
                    Some((_, '0')) => value.push('\0'),
                    Some((_, '\n')) | None => {}
                    Some((_, other)) => value.push(other),
                },
                '\n' if self.language == Language::C => {
                    length = offset;
                    break;
                }
                other if other == quote => {
                    length = offset + 1;
                    break;
                }
                other => value.push(other),
            }
        }
        self.advance(length);
        self.push(Token::Text(value), line);
    }

    fn raw_string(&mut self, prefix: usize) {
        let line = self.line;
        let rest = self.rest();
        let opening = &rest[prefix..];
        let (start, end) = if self.language == Language::Rust {
            let hashes = opening.bytes().take_while(|byte| *byte == b'#').count();
            (prefix + hashes + 1, format!("\"{}", "#".repeat(hashes)))
        } else {
            let delimiter = opening[1..].split('(').next().unwrap_or_default();
            (prefix + delimiter.len() + 2, format!("){delimiter}\""))
        };
        let length = rest.get(start..).and_then(|rest| rest.find(&end));
        let value = length.map_or("", |length| &rest[start..start + length]).to_owned();
        self.advance(length.map_or(rest.len(), |length| start + length + end.len()));
        self.push(Token::Text(value), line);
    }

    /// A character such as `'"'`, or the mark of a Rust lifetime.
    fn character(&mut self) {
        let mut characters = self.rest().chars().skip(1);
        let is_escape = characters.clone().next() == Some('\\');
        let is_character = is_escape || characters.nth(1) == Some('\'');
        if !is_character {
            return self.advance(1);
        }
        let from = if is_escape { 3 } else { 1 };
        let from = if self.rest().is_char_boundary(from) { from } else { 1 };
        self.skip_past(from, "'");
    }
}

/// The length of what comes before the hashes or the quote of a raw string.
fn raw_string_prefix(rest: &str, language: Language) -> Option<usize> {
    let prefixes: &[&str] = match language {
        Language::C => &["R\"", "LR\"", "u8R\"", "uR\"", "UR\""],
        Language::Rust => &["r\"", "r#", "br\"", "br#", "cr\"", "cr#"],
        Language::Hash => &[],
    };
    let prefix = prefixes.iter().find(|prefix| rest.starts_with(**prefix))?;
    let length = prefix.len() - 1;
    // r#name is a word.
    let opens = rest[length..].trim_start_matches('#').starts_with('"');
    (opens && (language == Language::Rust || rest[length..].contains('('))).then_some(length)
}

/// The index of the mark that closes the one at `open`; the end where none does.
pub(crate) fn closing(tokens: &[Placed<'_>], open: usize) -> usize {
    let mut depth = 0_usize;
    for (index, placed) in tokens.iter().enumerate().skip(open) {
        match placed.token {
            Token::Mark('(' | '[' | '{') => depth += 1,
            Token::Mark(')' | ']' | '}') => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return index;
                }
            }
            _ => {}
        }
    }
    tokens.len()
}

/// The arguments of the call whose parenthesis is at `open`.
pub(crate) fn arguments<'a, 't>(tokens: &'a [Placed<'t>], open: usize) -> Vec<&'a [Placed<'t>]> {
    let end = closing(tokens, open);
    let (mut found, mut start, mut depth) = (Vec::new(), open + 1, 0_usize);
    for index in open + 1..end {
        match tokens[index].token {
            Token::Mark('(' | '[' | '{' | '<') => depth += 1,
            Token::Mark(')' | ']' | '}' | '>') => depth = depth.saturating_sub(1),
            Token::Mark(',') if depth == 0 => {
                found.push(&tokens[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    if start < end {
        found.push(&tokens[start..end]);
    }
    found
}

/// Texts that a file gives names to: `#define NAME "…"`, `const char *NAME = "…"`, `const NAME: &CStr = c"…"`.
pub(crate) fn named_texts(tokens: &[Placed<'_>]) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for (index, placed) in tokens.iter().enumerate() {
        let Token::Word(word) = placed.token else { continue };
        if word == "define" {
            if let (Some(Token::Word(name)), Some(line)) =
                (tokens.get(index + 1).map(|placed| &placed.token), tokens.get(index + 1).map(|placed| placed.line))
            {
                let same_line = tokens[index + 2..].iter().take_while(|placed| placed.line == line);
                let value: Vec<Placed<'_>> = same_line.cloned().collect();
                if let Some(text) = text_of(&value, &found) {
                    found.insert((*name).to_owned(), text);
                }
            }
            continue;
        }
        // The name is before `=`, or before a type annotation.
        let until = tokens[index + 1..].iter().take(12).position(|placed| placed.is_mark('='));
        let Some(equals) = until.map(|offset| index + 1 + offset) else { continue };
        let between = &tokens[index + 1..equals];
        let is_name = between.is_empty()
            || (between[0].is_mark('[') && between.len() <= 3)
            || (between[0].is_mark(':') && !between.iter().any(|placed| placed.is_mark('(') || placed.is_mark(';')));
        let value: Vec<Placed<'_>> = tokens[equals + 1..]
            .iter()
            .take_while(|placed| !placed.is_mark(';') && !placed.is_mark(','))
            .take(8)
            .cloned()
            .collect();
        if is_name && let Some(text) = text_of(&value, &found) {
            found.entry(word.to_owned()).or_insert(text);
        }
    }
    found
}

/// The text of an expression that is made of texts and of names of texts; without the NUL at its end.
pub(crate) fn text_of(tokens: &[Placed<'_>], names: &BTreeMap<String, String>) -> Option<String> {
    let (mut text, mut found) = (String::new(), false);
    for placed in tokens {
        match &placed.token {
            Token::Text(part) => {
                text += part;
                found = true;
            }
            Token::Word(name) => {
                if let Some(part) = names.get(*name) {
                    text += part;
                    found = true;
                }
            }
            Token::Mark(_) => {}
        }
    }
    found.then(|| text.trim_end_matches('\0').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, language: Language) -> Vec<String> {
        let show = |placed: Placed<'_>| match placed.token {
            Token::Word(word) => word.to_owned(),
            Token::Text(text) => format!("{text:?}"),
            Token::Mark(mark) => mark.to_string(),
        };
        tokens(text, language).into_iter().map(show).collect()
    }

    #[test]
    fn comments_and_characters_are_no_texts() {
        assert_eq!(shown("a /* \"x\" */ L\"b\\\"c\" // \"d\"\n'\"' '\\'' e", Language::C), ["a", "\"b\\\"c\"", "e"]);
        assert_eq!(shown("R\"x(a\"b)x\" R\"(c)\"", Language::C), ["\"a\\\"b\"", "\"c\""]);
        assert_eq!(shown("fn f<'a>(c\"x\", r#\"y\"z\"#, r#type)", Language::Rust)[..5], ["fn", "f", "<", "a", ">"]);
        assert_eq!(shown("r#\"y\"z\"# c\"x\" 'é'", Language::Rust), ["\"y\\\"z\"", "\"x\""]);
        assert_eq!(shown("f('a', '''b\nc''') # 'd'", Language::Hash), ["f", "(", "\"a\"", ",", "\"b\\nc\"", ")"]);
    }

    #[test]
    fn unfinished_texts_end_with_the_file() {
        for text in ["\"a", "'", "'\\", "/* a", "R\"(a", "r#\"a", "'''a", "\"a\\"] {
            for language in [Language::C, Language::Rust, Language::Hash] {
                tokens(text, language);
            }
        }
    }

    #[test]
    fn every_part_of_a_text_can_be_read() {
        let text = "#define A \"x\" // é\nstatic const char *b[] = {A, R\"y(z)y\", '\\'', L'é'}; f(a<b>, r#\"q\"#, 'l, b'c', \\\n'''d''')";
        for (start, _) in text.char_indices() {
            for language in [Language::C, Language::Rust, Language::Hash] {
                for part in [&text[start..], &text[..start]] {
                    let found = tokens(part, language);
                    named_texts(&found);
                    for open in 0..found.len() {
                        arguments(&found, open);
                    }
                }
            }
        }
    }

    #[test]
    fn lines_are_counted_through_texts_and_comments() {
        let found = tokens("/*\n\n*/ a\n\"b\\\n\" c", Language::C);
        assert_eq!(found.iter().map(|placed| placed.line).collect::<Vec<_>>(), [3, 4, 5]);
    }

    #[test]
    fn names_stand_for_their_texts() {
        let text = "#define BASE \"a.\"\n#define NAME BASE \"b\"\nstatic const char *const OTHER = NAME \"c\";";
        let found = named_texts(&tokens(text, Language::C));
        assert_eq!((found["NAME"].as_str(), found["OTHER"].as_str()), ("a.b", "a.bc"));
        let found = named_texts(&tokens("const N: &CStr = c\"x.y\"; let z = b\"q\\0\";", Language::Rust));
        assert_eq!((found["N"].as_str(), found["z"].as_str()), ("x.y", "q"));
    }

    #[test]
    fn arguments_are_split_at_the_outer_commas() {
        let found = tokens("f(a(b, c), \"d\", [e, f])", Language::C);
        assert_eq!(arguments(&found, 1).iter().map(|argument| argument.len()).collect::<Vec<_>>(), [6, 1, 5]);
    }
}
