//! Meson files: calls with their texts and lines.
//!
//! Variables are not followed.

use crate::reading::tokens::{self, Language, Token};
use crate::reading::tree::Tree;

/// A call such as `dependency('cuda', modules: ['cudart'])`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Call {
    /// The last part of the name: `find_library` of `compiler.find_library`.
    pub(super) name: String,
    pub(super) texts: Vec<(String, usize)>,
    pub(super) line: usize,
}

/// A file that was read.
#[derive(Clone, Debug)]
pub(super) struct MesonFile {
    pub(super) path: String,
    pub(super) calls: Vec<Call>,
    pub(super) texts: Vec<(String, usize)>,
}

/// The Meson files that are part of the build.
pub(super) fn read(tree: &Tree) -> Vec<MesonFile> {
    let files = tree.product().filter(|file| file.name() == "meson.build");
    files.filter_map(|file| Some(MesonFile::parse(&file.path, &tree.text(&file.path)?))).collect()
}

impl MesonFile {
    fn parse(path: &str, text: &str) -> Self {
        let tokens = tokens::tokens(text, Language::Hash);
        let texts_in = |from: usize, to: usize| {
            let text = |placed: &tokens::Placed<'_>| match &placed.token {
                Token::Text(text) => Some((text.clone(), placed.line)),
                _ => None,
            };
            tokens[from.min(to)..to].iter().filter_map(text).collect::<Vec<_>>()
        };
        let mut calls = Vec::new();
        for (index, placed) in tokens.iter().enumerate() {
            if let Token::Word(name) = placed.token
                && tokens.get(index + 1).is_some_and(|next| next.is_mark('('))
            {
                let texts = texts_in(index + 2, tokens::closing(&tokens, index + 1));
                calls.push(Call { name: name.to_owned(), texts, line: placed.line });
            }
        }
        Self { path: path.to_owned(), calls, texts: texts_in(0, tokens.len()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_have_their_texts() {
        let found =
            MesonFile::parse("meson.build", "py = import('python')\nd = cc.find_library('cuda', dirs: ['a'])\n");
        let call = &found.calls[1];
        assert_eq!((call.name.as_str(), call.line), ("find_library", 2));
        assert_eq!(call.texts, [("cuda".to_owned(), 2), ("a".to_owned(), 2)]);
    }
}
