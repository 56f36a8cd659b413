//! Native sources: what C, C++, CUDA, Cython and Rust files include, name and define.
//!
//! Only files that hold a word that some rule asks for are taken apart.

use std::collections::BTreeMap;

use crate::reading::tokens::{self, Language, Placed, Token};
use crate::reading::tree::{self, Tree, TreeFile};

/// What kind of source it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    C,
    Cuda,
    Cython,
    Rust,
}

/// A source with what is interesting in it.
#[derive(Clone, Debug)]
pub(super) struct NativeFile {
    pub(super) path: String,
    pub(super) kind: Kind,
    pub(super) includes: Vec<(String, usize)>,
    /// Texts, but for those that something is compared with.
    pub(super) texts: Vec<(String, usize)>,
    /// Those of them whose statement speaks of libraries or of loading.
    pub(super) libraries: Vec<(String, usize)>,
    pub(super) capsules: Vec<Capsule>,
    /// Names of the Python modules that are defined here.
    pub(super) modules: Vec<String>,
    /// The version of NumPy's API that is targeted, such as `1_22`.
    pub(super) numpy_target: Option<(String, usize)>,
    /// Whether the limited API is asked for.
    pub(super) has_limited_api: bool,
    /// `#[link(name = "…")]`.
    pub(super) links: Vec<(String, usize)>,
}

/// A capsule that is made or imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Capsule {
    pub(super) name: String,
    pub(super) line: usize,
    pub(super) is_import: bool,
}

pub(super) fn kind_of(file: &TreeFile) -> Option<Kind> {
    match file.extension() {
        "c" | "h" | "cc" | "cpp" | "cxx" | "hh" | "hpp" | "hxx" => Some(Kind::C),
        "cu" | "cuh" => Some(Kind::Cuda),
        "pyx" | "pxd" | "pxi" => Some(Kind::Cython),
        "rs" => Some(Kind::Rust),
        _ => None,
    }
}

/// What makes a file worth reading: headers that a distribution of their own has.
const HEADERS: &[&str] = &["numpy", "pybind11/", "nanobind/"];
/// What makes it worth taking apart.
const WORDS: &[&str] = &[
    "PyCapsule",
    "PyInit_",
    "PYBIND11_MODULE",
    "NB_MODULE",
    "libcuda.so",
    "NPY_TARGET_VERSION",
    "Py_LIMITED_API",
    "pymodule",
    "rustc-link-lib",
    "#[link",
];

/// The sources that hold something, in the order of paths; tests and other projects' sources are left out.
pub(super) fn read(tree: &Tree) -> Vec<NativeFile> {
    let (mut found, mut shared) = (Vec::new(), BTreeMap::new());
    for file in tree.product() {
        let Some(kind) = kind_of(file) else { continue };
        let Some(text) = tree.text(&file.path) else { continue };
        // A header that several files include may name a capsule for all of them.
        let is_header = ["h", "hh", "hpp", "hxx", "cuh"].contains(&file.extension());
        if is_header && (text.contains("_API\"") || text.to_lowercase().contains("capsule")) {
            shared.extend(tokens::named_texts(&tokens::tokens(&text, language(kind))));
        }
        let is_script = kind == Kind::Rust && file.name() == "build.rs";
        if is_script || HEADERS.iter().chain(WORDS).any(|word| text.contains(word)) {
            found.push((file.path.clone(), kind, text));
        }
    }
    found.iter().map(|(path, kind, text)| NativeFile::read(path, *kind, text, &shared)).collect()
}

fn language(kind: Kind) -> Language {
    match kind {
        Kind::C | Kind::Cuda => Language::C,
        Kind::Cython => Language::Hash,
        Kind::Rust => Language::Rust,
    }
}

impl NativeFile {
    fn read(path: &str, kind: Kind, text: &str, shared: &BTreeMap<String, String>) -> Self {
        let is_deep = WORDS.iter().any(|word| text.contains(word)) || kind == Kind::Rust;
        let tokens = if is_deep { tokens::tokens(text, language(kind)) } else { Vec::new() };
        let mut names = shared.clone();
        if text.contains("PyCapsule") {
            names.extend(tokens::named_texts(&tokens));
        }
        Self {
            path: path.to_owned(),
            kind,
            includes: includes(text, kind),
            texts: texts(&tokens, |_| true),
            libraries: texts(&tokens, speaks_of_libraries),
            capsules: capsules(&tokens, &names),
            modules: modules(&tokens, kind, path),
            numpy_target: numpy_target(&tokens),
            has_limited_api: tokens.iter().any(|placed| placed.is_word("Py_LIMITED_API")),
            links: links(&tokens),
        }
    }
}

/// Included headers, and for Cython the modules that are `cimport`ed.
fn includes(text: &str, kind: Kind) -> Vec<(String, usize)> {
    let header = |line: &str| -> Option<String> {
        let rest = line.trim_start();
        if kind == Kind::Cython {
            let rest = rest
                .strip_prefix("cimport ")
                .or_else(|| rest.strip_prefix("from ")?.contains(" cimport ").then(|| &rest[5..]))?;
            let module = rest.split([' ', ',']).next()?;
            return Some(format!("{}/", module.replace('.', "/")));
        }
        let rest = rest.strip_prefix('#')?.trim_start().strip_prefix("include")?.trim_start();
        let name = rest.strip_prefix('<').and_then(|rest| rest.split('>').next());
        name.or_else(|| rest.strip_prefix('"')?.split('"').next()).map(str::to_owned)
    };
    text.lines().enumerate().filter_map(|(index, line)| Some((header(line)?, index + 1))).collect()
}

/// Whether a word before a text says that it is the name of a library.
fn speaks_of_libraries(statement: &[Placed<'_>]) -> bool {
    statement.iter().any(|placed| match placed.token {
        Token::Word(word) => ["dlopen", "lib", "load"].iter().any(|part| word.to_lowercase().contains(part)),
        _ => false,
    })
}

/// Texts of statements that `wants` takes by what comes before the text.
fn texts(tokens: &[Placed<'_>], wants: fn(&[Placed<'_>]) -> bool) -> Vec<(String, usize)> {
    const LONGEST_STATEMENT: usize = 40;
    const COMPARES: &[&str] =
        &["strcmp", "strncmp", "strstr", "contains", "find", "starts_with", "ends_with", "assert", "assert_eq"];
    let mut found = Vec::new();
    for (index, placed) in tokens.iter().enumerate() {
        let Token::Text(text) = &placed.token else { continue };
        let before = tokens[index.saturating_sub(8)..index].iter().rev().take_while(|placed| !placed.is_mark(';'));
        let is_compared = before.clone().any(|placed| COMPARES.iter().any(|word| placed.is_word(word)))
            || before.take(2).filter(|placed| placed.is_mark('=') || placed.is_mark('!')).count() == 2;
        let start = tokens[..index].iter().rposition(|placed| placed.is_mark(';')).map_or(0, |end| end + 1);
        if !is_compared && wants(&tokens[start.max(index.saturating_sub(LONGEST_STATEMENT))..index]) {
            found.push((text.clone(), placed.line));
        }
    }
    found
}

fn capsules(tokens: &[Placed<'_>], names: &BTreeMap<String, String>) -> Vec<Capsule> {
    let mut found = Vec::new();
    for (index, placed) in tokens.iter().enumerate() {
        let Token::Word(word) = placed.token else { continue };
        let (is_import, place) = match word {
            "PyCapsule_New" => (false, 1),
            "PyCapsule_Import" => (true, 0),
            // PyO3: `PyCapsule::new(py, value, name)` and `PyCapsule::import(py, name)`.
            "PyCapsule" if is_path(tokens, index, &["new", "new_with_destructor", "new_with_value"]) => (false, 2),
            "PyCapsule" if is_path(tokens, index, &["import"]) => (true, 1),
            _ => continue,
        };
        let Some(open) = tokens[index..].iter().take(8).position(|placed| placed.is_mark('(')) else { continue };
        let arguments = tokens::arguments(tokens, index + open);
        let name = arguments.get(place).and_then(|argument| tokens::text_of(argument, names));
        if let Some(name) = name {
            found.push(Capsule { name, line: placed.line, is_import });
        }
    }
    found
}

/// Whether `word::one_of` is at an index.
fn is_path(tokens: &[Placed<'_>], index: usize, names: &[&str]) -> bool {
    let colons = tokens.get(index + 1..index + 3).is_some_and(|two| two.iter().all(|placed| placed.is_mark(':')));
    colons && tokens.get(index + 3).is_some_and(|placed| names.iter().any(|name| placed.is_word(name)))
}

fn modules(tokens: &[Placed<'_>], kind: Kind, path: &str) -> Vec<String> {
    let mut found = Vec::new();
    if kind == Kind::Cython && tree::extension(path) == "pyx" {
        let name = path.rsplit('/').next().unwrap_or(path).trim_end_matches(".pyx");
        found.push(name.to_owned());
    }
    for (index, placed) in tokens.iter().enumerate() {
        let Token::Word(word) = placed.token else { continue };
        if let Some(name) = word.strip_prefix("PyInit_").filter(|name| !name.is_empty()) {
            found.push(name.to_owned());
        } else if matches!(word, "PYBIND11_MODULE" | "NB_MODULE")
            && tokens.get(index + 1).is_some_and(|p| p.is_mark('('))
        {
            if let Some(Token::Word(name)) = tokens.get(index + 2).map(|placed| &placed.token) {
                found.push((*name).to_owned());
            }
        } else if word == "pymodule" && kind == Kind::Rust && index > 1 && tokens[index - 1].is_mark('[') {
            let after = &tokens[index..(index + 40).min(tokens.len())];
            let named = after.windows(3).find(|three| three[0].is_word("name") && three[1].is_mark('='));
            let named =
                named.and_then(|three| if let Token::Text(name) = &three[2].token { Some(name.clone()) } else { None });
            let declared = after.windows(2).find(|two| two[0].is_word("fn") || two[0].is_word("mod"));
            let declared = declared
                .and_then(|two| if let Token::Word(name) = two[1].token { Some(name.to_owned()) } else { None });
            found.extend(named.or(declared));
        }
    }
    found.sort();
    found.dedup();
    found
}

/// `#define NPY_TARGET_VERSION NPY_1_22_API_VERSION`.
fn numpy_target(tokens: &[Placed<'_>]) -> Option<(String, usize)> {
    let index = tokens.iter().position(|placed| placed.is_word("NPY_TARGET_VERSION"))?;
    let defined = index > 0 && tokens[index - 1].is_word("define");
    let Token::Word(value) = tokens.get(index + 1).filter(|_| defined)?.token else { return None };
    let version = value.strip_prefix("NPY_")?.strip_suffix("_API_VERSION")?;
    Some((version.to_owned(), tokens[index].line))
}

fn links(tokens: &[Placed<'_>]) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    for (index, placed) in tokens.iter().enumerate() {
        if placed.is_word("link") && index > 0 && (tokens[index - 1].is_mark('[') || tokens[index - 1].is_mark(',')) {
            let end = tokens::closing(tokens, index + 1).min(tokens.len());
            for token in &tokens[index + 1..end.max(index + 1)] {
                if let Token::Text(name) = &token.token {
                    found.push((name.clone(), token.line));
                    break;
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, kind: Kind, text: &str) -> NativeFile {
        NativeFile::read(path, kind, text, &BTreeMap::new())
    }

    #[test]
    fn capsules_are_found_in_c_and_in_rust() {
        let text = "#define API \"pkg._m._API\"\nPyObject *c = PyCapsule_New((void *)f(1, 2), API, NULL);\nPyCapsule_Import(\"a.b\", 0);";
        let names: Vec<_> =
            file("m.c", Kind::C, text).capsules.into_iter().map(|c| (c.name, c.line, c.is_import)).collect();
        assert_eq!(names, [("pkg._m._API".to_owned(), 2, false), ("a.b".to_owned(), 3, true)]);
        let text = "const N: &CStr = c\"pkg._m._API\";\nlet c = PyCapsule::new(py, Table { a, b }, Some(N.into()))?;";
        assert_eq!(file("lib.rs", Kind::Rust, text).capsules[0].name, "pkg._m._API");
    }

    #[test]
    fn modules_are_found_by_how_they_are_defined() {
        assert_eq!(file("m.c", Kind::C, "PyMODINIT_FUNC PyInit__m(void) {}").modules, ["_m"]);
        assert_eq!(file("m.cpp", Kind::C, "PYBIND11_MODULE(_ext, m) {}").modules, ["_ext"]);
        assert_eq!(file("l.rs", Kind::Rust, "#[pymodule]\n#[pyo3(name = \"_n\")]\nfn native() {}").modules, ["_n"]);
        assert_eq!(file("l.rs", Kind::Rust, "#[pymodule]\nmod native {}").modules, ["native"]);
        assert_eq!(file("pkg/a.pyx", Kind::Cython, "cimport numpy").modules, ["a"]);
    }

    #[test]
    fn what_is_compared_is_no_text_that_is_used() {
        let found = file("m.c", Kind::C, "if (strstr(path, \"libcuda.so\")) dlopen(\"libcuda.so.1\", 1);");
        assert_eq!(found.texts, [("libcuda.so.1".to_owned(), 1)]);
        assert_eq!(found.libraries, found.texts);
        let found = file("lib.rs", Kind::Rust, "let path = directory.join(\"libcuda.so\");");
        assert_eq!((found.texts.len(), found.libraries.len()), (1, 0));
    }

    #[test]
    fn includes_and_targets_have_lines() {
        let found = file("m.c", Kind::C, "#define NPY_TARGET_VERSION NPY_1_22_API_VERSION\n#  include <numpy/x.h>\n");
        assert_eq!(found.includes, [("numpy/x.h".to_owned(), 2)]);
        assert_eq!(found.numpy_target, Some(("1_22".to_owned(), 1)));
        assert_eq!(file("m.pyx", Kind::Cython, "from numpy cimport x\n").includes[0].0, "numpy/");
    }
}
