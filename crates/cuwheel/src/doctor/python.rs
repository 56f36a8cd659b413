//! Python files as facts: imports, calls, assignments and texts, read by Python's own parser and never run.
//!
//! The parser is the module `ast` of an interpreter, in an isolated process (`-I -S`). A parser in Rust would cost a minute
//! of compilation, in a tool that is compiled on a user's first minute, or a C compiler, and would know less of the
//! newest syntax than the interpreter that the project is built with.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;

use crate::error::Result;
use crate::process::Process;
use crate::reading::tree::Tree;

const READER: &str = include_str!("../python/python_facts.py");
/// What all files together may take: reading a thousand takes seconds.
const DEADLINE: Duration = Duration::from_mins(2);
/// Modules of the build that are followed.
const MOST_SCRIPTS: usize = 100;

/// What a file is read for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Purpose {
    /// It runs while the project is built.
    Build,
    /// It is the `__init__.py` of a package.
    Package,
    /// It is a `conftest.py`.
    Conftest,
    /// It names a library of the driver.
    Loader,
}

/// A file with what it says.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct PythonFile {
    /// Relative to the root.
    pub(super) path: String,
    /// Why it cannot be parsed.
    pub(super) error: Option<String>,
    #[serde(skip)]
    pub(super) purposes: Vec<Purpose>,
    #[serde(default)]
    pub(super) imports: Vec<Import>,
    #[serde(default)]
    pub(super) calls: Vec<Call>,
    #[serde(default)]
    pub(super) assigns: Vec<Assign>,
    #[serde(default)]
    pub(super) strings: Vec<StringLiteral>,
    #[serde(default)]
    pub(super) argv: Vec<ArgumentTest>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Import {
    pub(super) line: usize,
    pub(super) module: String,
    pub(super) names: Vec<String>,
    /// The dots before the name.
    pub(super) level: usize,
    /// Whether a failure is caught.
    pub(super) attempted: bool,
    pub(super) standard: bool,
    #[serde(rename = "function", deserialize_with = "is_some")]
    pub(super) in_function: bool,
    pub(super) when: Vec<String>,
}

fn is_some<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Option::<String>::deserialize(deserializer).map(|function| function.is_some())
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Call {
    pub(super) line: usize,
    pub(super) name: String,
    /// Texts in positional arguments.
    pub(super) texts: Vec<String>,
    /// Texts in arguments by name.
    pub(super) keywords: BTreeMap<String, Vec<String>>,
    /// Arguments by name that are True.
    #[serde(rename = "true")]
    pub(super) switched_on: Vec<String>,
    /// Keys of dictionaries in arguments by name.
    pub(super) keys: BTreeMap<String, Vec<String>>,
    pub(super) when: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Assign {
    pub(super) line: usize,
    /// Such as `sys.modules[]`.
    pub(super) target: String,
    /// What is in the brackets: a text, or `<name>`.
    pub(super) key: Option<String>,
    /// Keys of a dictionary that is assigned.
    pub(super) keys: Vec<String>,
    /// The name that is assigned, such as `extend_path()`.
    pub(super) value: String,
    /// Names of what is called in the value.
    pub(super) calls: Vec<String>,
    pub(super) texts: Vec<String>,
    pub(super) when: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct StringLiteral {
    pub(super) line: usize,
    pub(super) text: String,
    pub(super) when: Vec<String>,
}

/// A condition on `sys.argv`, with the texts that it is looked through for.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct ArgumentTest {
    pub(super) line: usize,
    pub(super) texts: Vec<String>,
}

impl PythonFile {
    pub(super) fn is_for(&self, purpose: Purpose) -> bool {
        self.purposes.contains(&purpose)
    }
}

/// Reads the files that rules ask for with `interpreter`.
pub(super) fn read(tree: &Tree, scripts: &[String], interpreter: &Path) -> Result<Vec<PythonFile>> {
    let wanted = wanted(tree, scripts);
    let paths: Vec<&String> = wanted.keys().collect();
    let mut found = Vec::new();
    while found.len() < paths.len() {
        let lines = parse(tree.root(), &paths[found.len()..], interpreter)?;
        let before = found.len();
        for line in lines {
            let mut file: PythonFile = serde_json::from_str(&line)?;
            let path = paths[found.len()];
            file.purposes.clone_from(&wanted[path]);
            file.path.clone_from(path);
            found.push(file);
        }
        // The parser itself may fall over a file; the others are read without it.
        if found.len() < paths.len() {
            let path = paths[found.len()].clone();
            let error = Some("the parser ended the process".to_owned());
            found.push(PythonFile { purposes: wanted[&path].clone(), path, error, ..PythonFile::default() });
        }
        debug_assert!(found.len() > before, "each round reads a file");
    }
    Ok(found)
}

fn parse(root: &Path, paths: &[&String], interpreter: &Path) -> Result<Vec<String>> {
    let mut list = tempfile::NamedTempFile::new()?;
    let absolute: Vec<_> = paths.iter().map(|path| root.join(path)).collect();
    serde_json::to_writer(&mut list, &absolute)?;
    let process = Process::new(interpreter).args(["-I", "-S", "-c", READER]).arg(list.path()).deadline(DEADLINE);
    let finished = process.env("PYTHONIOENCODING", "utf-8").capture()?;
    Ok(finished.stdout.lines().filter(|line| line.ends_with('}')).map(str::to_owned).collect())
}

fn wanted(tree: &Tree, scripts: &[String]) -> BTreeMap<String, Vec<Purpose>> {
    let mut wanted: BTreeMap<String, Vec<Purpose>> = BTreeMap::new();
    let mut want = |path: &str, purpose| wanted.entry(path.to_owned()).or_default().push(purpose);
    for script in scripts {
        want(script, Purpose::Build);
    }
    for file in tree.files().iter().filter(|file| file.name() == "conftest.py") {
        want(&file.path, Purpose::Conftest);
    }
    for file in tree.product().filter(|file| file.extension() == "py") {
        if file.name() == "__init__.py" {
            want(&file.path, Purpose::Package);
        }
        if tree.text(&file.path).is_some_and(|text| text.contains("libcuda.so")) {
            want(&file.path, Purpose::Loader);
        }
    }
    wanted
}

/// The build scripts: those that are named, and the modules of the project that they import, followed. `places` are
/// directories that they are looked for in.
pub(super) fn build_scripts(tree: &Tree, first: &[String], places: &[String]) -> Vec<String> {
    let mut found: Vec<String> = first.to_vec();
    let mut next = 0;
    while next < found.len() && found.len() < MOST_SCRIPTS {
        let path = found[next].clone();
        next += 1;
        let Some(text) = tree.text(&path) else { continue };
        let own = path.rsplit_once('/').map_or("", |(directory, _)| directory).to_owned();
        // A script that edits sys.path may import from anywhere in the project.
        let anywhere = text.contains("sys.path");
        // What a helper imports in a function, it may import for another project.
        for module in imported_modules(&text, first.contains(&path)) {
            let top = module.trim_start_matches('.').split('.').next().unwrap_or_default();
            let mut places: Vec<String> = places.iter().cloned().chain([String::new(), own.clone()]).collect();
            if anywhere {
                places.extend(directories_with(tree, top));
            }
            let there = candidates(&module, &own, &places).into_iter().filter(|candidate| tree.has(candidate));
            let fresh: Vec<String> =
                there.filter(|path| !found.contains(path) && !is_in_large_package(tree, path)).collect();
            found.extend(fresh);
        }
    }
    found
}

/// Whether a file is in a package that is the product rather than a help to build it: of those, the version is taken.
fn is_in_large_package(tree: &Tree, path: &str) -> bool {
    const LARGEST_HELPER: usize = 40;
    let Some((top, _)) = path.split_once('/') else { return false };
    let prefix = format!("{top}/");
    tree.files().iter().filter(|file| file.extension() == "py" && file.path.starts_with(&prefix)).count()
        > LARGEST_HELPER
}

/// Names of modules that lines import: `from a.b import c, d` gives `a.b`, `a.b.c` and `a.b.d`. Indented lines count with
/// `everywhere`.
fn imported_modules(text: &str, everywhere: bool) -> Vec<String> {
    let mut found = Vec::new();
    for line in text.lines().map(|line| if everywhere { line.trim_start() } else { line }) {
        if let Some(rest) = line.strip_prefix("from ") {
            let Some((module, names)) = rest.split_once(" import ") else { continue };
            let module = module.trim();
            found.push(module.to_owned());
            let names = names.split('#').next().unwrap_or_default().trim_matches(['(', ')', ' ']);
            let name = |name: &str| name.split_whitespace().next().map(str::to_owned);
            let dot = if module.ends_with('.') { "" } else { "." };
            found.extend(names.split(',').filter_map(name).map(|name| format!("{module}{dot}{name}")));
        } else if let Some(rest) = line.strip_prefix("import ") {
            found.extend(rest.split(',').filter_map(|name| name.split_whitespace().next().map(str::to_owned)));
        }
    }
    found
}

/// Files that a module may be.
fn candidates(module: &str, own: &str, places: &[String]) -> Vec<String> {
    let dots = module.bytes().take_while(|byte| *byte == b'.').count();
    let path = module[dots..].replace('.', "/");
    let join = |place: &str| if place.is_empty() { path.clone() } else { format!("{place}/{path}") };
    let stems: Vec<String> = if dots > 0 {
        let place = (1..dots).fold(own, |place, _| place.rsplit_once('/').map_or("", |(outer, _)| outer));
        vec![join(place)]
    } else {
        places.iter().map(|place| join(place)).collect()
    };
    stems.iter().flat_map(|stem| [format!("{stem}.py"), format!("{stem}/__init__.py")]).collect()
}

/// Directories in which a module of this name lies.
fn directories_with(tree: &Tree, name: &str) -> Vec<String> {
    let (file, package) = (format!("{name}.py"), format!("/{name}/__init__.py"));
    let mut found = Vec::new();
    for entry in tree.files() {
        if entry.name() == file {
            found.push(entry.directory().to_owned());
        } else if let Some(directory) = entry.path.strip_suffix(&package) {
            found.push(directory.to_owned());
        }
    }
    found
}

/// Whether a module is part of the project: a file or a package of that name that a build script could import.
pub(super) fn is_local(tree: &Tree, module: &str, script: &str, places: &[String], edits_path: bool) -> bool {
    let top = module.split('.').next().unwrap_or_default();
    let own = script.rsplit_once('/').map_or("", |(directory, _)| directory);
    let mut places: Vec<String> =
        places.iter().cloned().chain([String::new(), own.to_owned(), "src".to_owned()]).collect();
    if edits_path {
        places.extend(directories_with(tree, top));
    }
    let join = |place: &String| if place.is_empty() { top.to_owned() } else { format!("{place}/{top}") };
    places.iter().map(join).any(|stem| tree.has(&format!("{stem}.py")) || tree.has(&stem))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_are_followed_into_the_project() {
        assert_eq!(
            imported_modules("import os, a.b as c\n    from x.y import (z as q, w)\nfrom . import p\n", true),
            ["os", "a.b", "x.y", "x.y.z", "x.y.w", ".", ".p"]
        );
        assert_eq!(imported_modules("import os\n    import c\n", false), ["os"]);
        assert_eq!(candidates(".p", "tools/inner", &[]), ["tools/inner/p.py", "tools/inner/p/__init__.py"]);
        assert_eq!(candidates("..p", "tools/inner", &[])[0], "tools/p.py");
        assert_eq!(candidates("a.b", "", &[String::new(), "install".to_owned()])[2], "install/a/b.py");
    }
}
