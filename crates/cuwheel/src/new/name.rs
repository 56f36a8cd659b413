//! Names of new projects, and of the package and the crate that follow from them.
//!
//! A name is refused where the project could not be built, or something that it uses could not be imported any more.

use cuwheel_inspect::wheel::normalize_distribution;

use crate::error::{Failure, Result};
use crate::templates::Template;

/// Made of `sys.stdlib_module_names`.
const STANDARD_MODULES: &str = include_str!("standard_modules.txt");

/// `keyword.kwlist`, in lower case as packages are.
const PYTHON_KEYWORDS: &[&str] = &[
    "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif", "else", "except",
    "false", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "none", "nonlocal", "not", "or",
    "pass", "raise", "return", "true", "try", "while", "with", "yield",
];

/// Names that cargo refuses for a package: keywords, and crates of the compiler.
const RUST_NAMES: &[&str] = &[
    "abstract",
    "alloc",
    "become",
    "box",
    "build",
    "const",
    "core",
    "crate",
    "do",
    "dyn",
    "enum",
    "extern",
    "final",
    "fn",
    "gen",
    "impl",
    "let",
    "loop",
    "macro",
    "match",
    "mod",
    "move",
    "mut",
    "override",
    "priv",
    "proc-macro",
    "pub",
    "ref",
    "self",
    "static",
    "std",
    "struct",
    "super",
    "test",
    "trait",
    "type",
    "typeof",
    "unsafe",
    "unsized",
    "use",
    "virtual",
    "where",
];

/// What a new project depends on, imports in its tests, or is built by.
const USED: &[&str] = &[
    "conftest",
    "cupy",
    "cuwheel",
    "cuwheel-build",
    "cuwheel-device-array",
    "cuwheel-dispatcher",
    "cuwheel-exchange",
    "maturin",
    "numpy",
    "nvidia",
    "pip",
    "pyo3",
    "pytest",
    "setuptools",
    "torch",
    "uv",
    "xtask",
    "ziglang",
];

/// A name that a project can have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectName {
    distribution: String,
}

impl ProjectName {
    /// Checks a name.
    pub fn parse(name: &str) -> Result<Self> {
        let refused = |why: String, remedy: &str| {
            Err(Failure::usage(format!("a project cannot be called {name:?}: {why}")).remedy(remedy).into())
        };
        let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let is_end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
        let bytes = name.as_bytes();
        if !(is_end(bytes.first()) && is_end(bytes.last()) && name.bytes().all(is_inner)) {
            return refused(
                "names of distributions are made of ASCII letters, digits, `-`, `_` and `.`, and begin and end with a \
                 letter or a digit"
                    .to_owned(),
                &match suggestion(name) {
                    Some(other) => format!("call it {other}, for example; the directory may have any name: --path"),
                    None => "choose a name of such letters; the directory may have any name: --path".to_owned(),
                },
            );
        }
        let this = Self { distribution: name.to_owned() };
        let package = this.package();
        if package.starts_with(|first: char| first.is_ascii_digit()) {
            let why = format!("its package would be {package}, and names in Python begin with a letter");
            return refused(why, "put a letter first");
        }
        match taken(&package, &this.crate_name()) {
            Some(by) => {
                refused(format!("{} is {by}", this.package()), "choose another name, such as one with a suffix")
            }
            None => Ok(this),
        }
    }

    /// As it was given.
    pub fn distribution(&self) -> &str {
        &self.distribution
    }

    /// The Python package: lower case, with `_` in place of `-` and `.`.
    pub fn package(&self) -> String {
        self.crate_name().replace('-', "_")
    }

    /// The crate: lower case, with `-` in place of `_` and `.`.
    pub fn crate_name(&self) -> String {
        normalize_distribution(&self.distribution)
    }
}

/// What has the name already.
fn taken(package: &str, crate_name: &str) -> Option<&'static str> {
    let is_standard = |name: &str| STANDARD_MODULES.lines().any(|module| module.eq_ignore_ascii_case(name));
    let is_test = |name: &str| {
        let of_tests = Template::below("extension/tests").filter_map(|file| file.path.strip_suffix(".py"));
        of_tests.filter_map(|path| path.rsplit('/').next()).any(|module| module == name)
    };
    if PYTHON_KEYWORDS.contains(&package) {
        Some("a keyword of Python")
    } else if is_standard(package) {
        Some("a module of Python's standard library")
    } else if RUST_NAMES.contains(&crate_name) {
        Some("a name that Rust keeps for itself")
    } else if USED.contains(&crate_name) {
        Some("a name of something that the project itself uses")
    } else if is_test(package) {
        Some("the name of a file of tests in the project")
    } else {
        None
    }
}

/// The nearest valid name, where something is left of the given one.
fn suggestion(name: &str) -> Option<String> {
    let kept: String =
        name.chars().map(|letter| if letter.is_ascii_alphanumeric() || letter == '_' { letter } else { '-' }).collect();
    let suggested = normalize_distribution(&kept);
    let is_good = suggested.starts_with(|first: char| first.is_ascii_alphabetic()) && suggested.len() > 1;
    (is_good && ProjectName::parse(&suggested).is_ok()).then_some(suggested)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn package_and_crate_follow_from_the_name() {
        for (name, package, crate_name) in [
            ("myext", "myext", "myext"),
            ("My.Ext-2", "my_ext_2", "my-ext-2"),
            ("a__b", "a_b", "a-b"),
            ("X9", "x9", "x9"),
        ] {
            let parsed = ProjectName::parse(name).unwrap();
            assert_eq!((parsed.package(), parsed.crate_name()), (package.to_owned(), crate_name.to_owned()));
            assert_eq!(parsed.distribution(), name);
        }
    }

    #[test]
    fn names_that_would_not_work_are_refused_with_the_reason() {
        for (name, reason) in [
            ("", "begin and end with"),
            ("my ext", "call it my-ext, for example"),
            ("größe", "call it gr-e, for example"),
            ("扩展", "choose a name of such letters"),
            ("-x", "begin and end with"),
            ("x.", "begin and end with"),
            ("a/b", "begin and end with"),
            ("2d-fft", "begin with a letter"),
            ("Lambda", "a keyword of Python"),
            ("true", "a keyword of Python"),
            ("json", "standard library"),
            ("Queue", "standard library"),
            ("core", "keeps for itself"),
            ("proc_macro", "keeps for itself"),
            ("crate", "keeps for itself"),
            ("torch", "the project itself uses"),
            ("CuWheel", "the project itself uses"),
            ("cuwheel.build", "the project itself uses"),
            ("xtask", "the project itself uses"),
            ("test-package", "a file of tests"),
        ] {
            let error = ProjectName::parse(name).unwrap_err();
            let text = crate::error::render(&error);
            assert!(text.contains(reason) && text.contains("\nfix: "), "{name}: {text}");
            assert_eq!(crate::error::kind_of(&error).exit_code(), 2);
        }
    }
}
