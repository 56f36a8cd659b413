//! What a source can read of the file system: every header that it names, however deep.
//!
//! It says of more files than the compiler reads: conditions are not evaluated, comments and texts count too, and of
//! headers with the same name in several directories all are listed. It never says of fewer: a source that names a header
//! in a way that only a preprocessor can follow is told to be unknown.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use memchr::memmem;
use sha2::{Digest as _, Sha256};

use super::Source;

/// A file that a source may read, with the hash of its content.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) path: PathBuf,
    pub(super) hash: [u8; 32],
}

/// Where headers are looked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Places<'a> {
    /// All directories, in their order.
    pub(super) include_dirs: &'a [PathBuf],
    /// Those of CUDA. Headers of CCCL name others by macros, but none outside of the directories.
    pub(super) of_cuda: &'a [PathBuf],
}

/// A source's headers, in the order in which they are found.
///
/// `None` if some cannot be known: a macro names one, or it cannot be read. Where that macro is CCCL's, all files of all
/// directories count.
pub(super) fn headers(source: &Source, places: Places<'_>) -> Option<Vec<Header>> {
    let mut search = Includes { places, seen: BTreeSet::new(), found: Vec::new(), queue: Vec::new(), is_whole: true };
    // The compiler looks beside the source, even if there is no file of that name.
    search.follow(source.code.as_bytes(), Path::new(&source.filename).parent())?;
    for (_, content) in &source.headers {
        search.follow(content.as_bytes(), None)?;
    }
    while let Some((path, content)) = search.queue.pop() {
        search.follow(&content, path.parent())?;
    }
    if !search.is_whole {
        places.include_dirs.iter().try_for_each(|directory| search.add_all(directory))?;
    }
    Some(search.found)
}

struct Includes<'a> {
    places: Places<'a>,
    seen: BTreeSet<PathBuf>,
    found: Vec<Header>,
    /// What was found and not yet read for what it names.
    queue: Vec<(PathBuf, Vec<u8>)>,
    /// Whether every name was written out so far.
    is_whole: bool,
}

impl Includes<'_> {
    /// Adds the headers that a text names, which lies in `directory`.
    fn follow(&mut self, text: &[u8], directory: Option<&Path>) -> Option<()> {
        let Named { names, is_complete } = named(text);
        if !is_complete {
            directory.filter(|own| self.places.of_cuda.iter().any(|cuda| own.starts_with(cuda)))?;
            self.is_whole = false;
        }
        for name in names {
            let places = directory.into_iter().chain(self.places.include_dirs.iter().map(PathBuf::as_path));
            let paths: Vec<PathBuf> = places.map(|place| place.join(&name)).collect();
            for path in paths {
                if path.is_file() && self.seen.insert(path.clone()) {
                    let content = self.add(&path)?;
                    self.queue.push((path, content));
                }
            }
        }
        Some(())
    }

    fn add(&mut self, path: &Path) -> Option<Vec<u8>> {
        let content = fs::read(path).ok()?;
        self.found.push(Header { path: path.to_path_buf(), hash: Sha256::digest(&content).into() });
        Some(content)
    }

    /// Adds every file below a directory. `None` for one that is no directory of headers by its size.
    fn add_all(&mut self, directory: &Path) -> Option<()> {
        const MOST_FILES: usize = 50_000;
        let mut entries: Vec<_> = fs::read_dir(directory).ok()?.collect::<Result<_, _>>().ok()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for path in entries.into_iter().map(|entry| entry.path()) {
            if path.is_dir() {
                self.add_all(&path)?;
            } else if self.found.len() > MOST_FILES {
                return None;
            } else if path.is_file() && self.seen.insert(path.clone()) {
                self.add(&path)?;
            }
        }
        Some(())
    }
}

/// What a text names by `#include` and `__has_include`.
#[derive(Debug, Default)]
struct Named {
    names: Vec<PathBuf>,
    /// Whether all is written out.
    is_complete: bool,
}

fn named(text: &[u8]) -> Named {
    // Lines that end in a backslash go on in the next.
    let joined;
    let text = if has(text, b"\\\n") || has(text, b"\\\r\n") {
        joined = without_continuations(text);
        &joined
    } else {
        text
    };
    // The backslash has another spelling, which nobody uses; and there are other ways to read a file.
    let mut others = positions(text, b"embed").chain(positions(text, b"import"));
    let is_complete = !has(text, b"??/") && !others.any(|at| is_directive(text, at));
    let mut found = Named { names: Vec::new(), is_complete };
    for at in positions(text, b"include") {
        let rest = &text[at + b"include".len()..];
        let is_question = text[..at].ends_with(b"__has_") && rest.starts_with(b"(");
        let rest = rest.strip_prefix(b"_next").unwrap_or(rest);
        match quoted(rest.strip_prefix(b"(").unwrap_or(rest).trim_ascii_start()) {
            Some(name) => found.names.push(name),
            None if is_question || is_directive(text, at) && !rest.first().copied().is_some_and(is_of_word) => {
                found.is_complete = false;
            }
            None => {}
        }
    }
    found
}

/// Whether the word at a place of a text may be that of a directive: what is before it on its line is a sign for one, and
/// before that nothing; or it follows a comment, which may hide all that.
fn is_directive(text: &[u8], at: usize) -> bool {
    let line = text[..at].rsplit(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii_end();
    if line.ends_with(b"*/") {
        return true;
    }
    let signs: [&[u8]; 3] = [b"#", b"%:", b"??="];
    let before = signs.iter().find_map(|sign| line.strip_suffix(*sign)).map(<[u8]>::trim_ascii_end);
    before.is_some_and(|before| before.is_empty() || before.ends_with(b"*/"))
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// A name between quotation marks or angle brackets at the start of a text.
fn quoted(text: &[u8]) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStrExt as _;
    let end = match text.first()? {
        b'"' => b'"',
        b'<' => b'>',
        _ => return None,
    };
    let line = text[1..].split(|byte| *byte == b'\n').next()?;
    let length = line.iter().position(|byte| *byte == end)?;
    Some(PathBuf::from(std::ffi::OsStr::from_bytes(&line[..length])))
}

fn without_continuations(text: &[u8]) -> Vec<u8> {
    let mut joined = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, after)) = rest.split_first() {
        rest = match after {
            [b'\n', after @ ..] | [b'\r', b'\n', after @ ..] if first == b'\\' => after,
            _ => {
                joined.push(first);
                after
            }
        };
    }
    joined
}

fn has(text: &[u8], word: &[u8]) -> bool {
    memmem::find(text, word).is_some()
}

/// Where a word is in a text.
fn positions<'a>(text: &'a [u8], word: &'a [u8]) -> impl Iterator<Item = usize> {
    memmem::find_iter(text, word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Option<Vec<String>> {
        let Named { names, is_complete } = named(text.as_bytes());
        is_complete.then(|| names.into_iter().map(|name| name.display().to_string()).collect())
    }

    #[test]
    fn headers_are_found_however_they_are_written() {
        let text = "#include <a>\n  #  include\t\"b/c.h\"\n#if 0\n#include<d>\n#endif\n// #include <e>\n%:include <f>\n\
                    # /* why */ include <g>\n#inc\\\nlude <h>\n#include_next <i>\n\
                    #if __has_include(<j>) && defined(__has_include)\n#include <k> // it\n\
                    int include = 1; f(include);\n#define include_it\n// #include what is needed\n * #include it";
        assert_eq!(names(text).unwrap(), ["a", "b/c.h", "d", "e", "f", "g", "h", "i", "j", "k"]);
        assert_eq!(names("??=include <x>").unwrap(), ["x"]);
        assert_eq!(names("__global__ void k() {}").unwrap(), Vec::<String>::new());
    }

    #[test]
    fn a_header_that_is_not_written_out_is_unknown() {
        let texts = [
            "#include HEADER",
            "  # include HEADER",
            "/* a */ #include HEADER",
            "#/* a */include HEADER",
            "#include /* comment */ <a>",
            "#if __has_include(HEADER)",
            "#include",
            "#include <a\n>",
            "#embed <a>",
            "#import <a>",
            "#inc??/\nlude HEADER",
        ];
        for text in texts {
            assert_eq!(names(text), None, "{text}");
        }
    }

    /// A directory of files with contents.
    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        root
    }

    /// Paths of the headers of a source, with the directories `one` and `two`, of which the second is CUDA's.
    fn paths(root: &Path, source: &Source) -> Option<Vec<String>> {
        let dirs = [root.join("one"), root.join("two")];
        let found = headers(source, Places { include_dirs: &dirs, of_cuda: &dirs[1..] })?;
        Some(found.iter().map(|header| header.path.strip_prefix(root).unwrap().display().to_string()).collect())
    }

    fn source(code: &str) -> Source {
        Source { code: code.to_owned(), ..Source::default() }
    }

    #[test]
    fn headers_of_headers_count_and_so_do_all_of_the_same_name() {
        let root = tree(&[
            ("one/a.h", "#include \"deep/b.h\""),
            ("one/deep/b.h", "#include \"beside.h\"\n#include <a.h>"),
            ("one/deep/beside.h", ""),
            ("two/a.h", ""),
            ("two/unused.h", ""),
        ]);
        let found = paths(root.path(), &source("#include <a.h>\n#include <absent>")).unwrap();
        assert_eq!(found, ["one/a.h", "two/a.h", "one/deep/b.h", "one/deep/beside.h"]);
        let in_memory = Source { headers: vec![("x.h".to_owned(), "#include <a.h>".to_owned())], ..source("") };
        assert_eq!(paths(root.path(), &in_memory).unwrap().len(), 4);
        let beside = Source {
            filename: root.path().join("one/deep/x.cu").display().to_string(),
            ..source("#include \"beside.h\"")
        };
        assert_eq!(paths(root.path(), &beside).unwrap(), ["one/deep/beside.h"]);
    }

    #[test]
    fn a_macro_of_cuda_stands_for_all_files_and_another_for_any() {
        let root = tree(&[
            ("one/mine.h", "#include HEADER"),
            ("one/b.h", ""),
            ("two/a.h", "#include HEADER(x)"),
            ("two/deep/b.h", ""),
        ]);
        assert_eq!(
            paths(root.path(), &source("#include <a.h>")).unwrap(),
            ["two/a.h", "one/b.h", "one/mine.h", "two/deep/b.h"]
        );
        assert_eq!(paths(root.path(), &source("#include <mine.h>")), None);
        assert_eq!(paths(root.path(), &source("#include HEADER")), None);
    }
}
