//! Which packages and modules of Python there are, and where they lie.
//!
//! `find_packages` is done again here, on the list of the project's files.

use std::collections::BTreeSet;

use globset::Glob;
use serde::Serialize;

use super::declared::Declared;
use super::gaps::Gaps;
use super::value::{Made, Place, Value};
use crate::reading::tree::Tree;

/// A package at the top, or one within a namespace: all of its directory belongs to it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Package {
    /// The full name.
    pub name: String,
    /// The directory, relative to the root.
    pub directory: String,
    /// Whether it has no `__init__.py`.
    pub is_namespace: bool,
}

/// A module that is a file beside the packages.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Module {
    /// The full name.
    pub name: String,
    /// The file, relative to the root.
    pub file: String,
}

/// The Python sources of the project.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Packages {
    /// Packages, without those that lie in another one.
    pub packages: Vec<Package>,
    /// Modules beside them.
    pub modules: Vec<Module>,
    /// Whether they lie in a directory such as `src`.
    pub source_directory: String,
    /// Whether the project names none and setuptools would look for them.
    pub is_discovered: bool,
    /// Patterns of files that belong to packages.
    pub data: Vec<(String, Vec<String>)>,
}

/// Directories beside a package that setuptools takes for none.
const NO_PACKAGES: &[&str] = &[
    "ci",
    "bin",
    "debian",
    "doc",
    "docs",
    "documentation",
    "manpages",
    "news",
    "newsfragments",
    "changelog",
    "test",
    "tests",
    "unit_test",
    "unit_tests",
    "example",
    "examples",
    "scripts",
    "tools",
    "util",
    "utils",
    "python",
    "build",
    "benchmark",
    "benchmarks",
    "exercise",
    "exercises",
    "htmlcov",
    "tasks",
    "fabfile",
    "site_scons",
];

/// Looks for the packages.
pub(super) fn read(declared: &Declared, tree: &Tree, gaps: &mut Gaps) -> Packages {
    let directories = package_directories(declared, gaps);
    let root_directory = directories
        .iter()
        .find(|(name, _)| name.is_empty())
        .map(|(_, directory)| directory.clone())
        .unwrap_or_default();
    let mut found = Packages { source_directory: root_directory.clone(), ..Packages::default() };
    let mut names: Vec<String> = Vec::new();
    match declared.get("packages") {
        Some((value, place)) => {
            for item in value.items() {
                match item {
                    Value::Made(made) if made.class().starts_with("find_") || made.class() == "find" => {
                        names.extend(find(made, tree, gaps));
                    }
                    Value::Spread { of } if matches!(&**of, Value::Made(made) if made.class().starts_with("find")) => {
                        let Value::Made(made) = &**of else { continue };
                        names.extend(find(made, tree, gaps));
                    }
                    other => names.extend(gaps.texts("packages", other, place)),
                }
            }
        }
        None if declared.get("py_modules").is_none() => {
            (names, found.source_directory) = discovered(tree);
            found.is_discovered = true;
        }
        None => {}
    }
    if let Some((_, place)) = declared.get("packages").filter(|_| names.is_empty() && gaps.has("packages")) {
        names = discovered(tree).0;
        gaps.add("packages", "", "what setuptools would find by itself was taken in place of them", place);
        found.is_discovered = true;
    }
    if let Some((value, place)) = declared.get("py_modules") {
        for name in gaps.texts("py_modules", value, place) {
            let file = joined(&found.source_directory, &format!("{}.py", name.replace('.', "/")));
            if tree.has(&file) {
                found.modules.push(Module { name, file });
            } else {
                gaps.add("py_modules", &name, &format!("{file} is not there"), place);
            }
        }
    }
    let source = found.source_directory.clone();
    let place = declared.get("packages").map_or_else(|| Place::new("setup.py", 1), |(_, place)| place.clone());
    found.packages = outermost(&names, &source, &directories, tree, &place, gaps);
    found.data = data(declared, gaps);
    found
}

fn joined(directory: &str, path: &str) -> String {
    if directory.is_empty() { path.to_owned() } else { format!("{directory}/{path}") }
}

/// `package_dir`, with `.` and slashes at the ends left out.
fn package_directories(declared: &Declared, gaps: &mut Gaps) -> Vec<(String, String)> {
    let Some((value, place)) = declared.get("package_dir") else { return Vec::new() };
    let mut found = Vec::new();
    for (name, value) in value.entries() {
        if let Some(directory) = gaps.text("package_dir", value, place) {
            found.push((name.clone(), clean(&directory)));
        }
    }
    found
}

fn clean(path: &str) -> String {
    let path = path.trim().trim_start_matches("./").trim_matches('/');
    if path == "." { String::new() } else { path.to_owned() }
}

/// The names that `find_packages(where, exclude, include)` gives.
fn find(made: &Made, tree: &Tree, gaps: &mut Gaps) -> Vec<String> {
    let mut texts = |name: &str, position| {
        made.argument(name, Some(position))
            .map(|value| gaps.texts(&format!("{name} of find_packages"), value, &made.place))
    };
    let places = texts("where", 0).unwrap_or_default();
    let exclude = texts("exclude", 1).unwrap_or_default();
    let include = texts("include", 2).filter(|patterns| !patterns.is_empty()).unwrap_or_else(|| vec!["*".to_owned()]);
    let is_namespace = made.class().contains("namespace");
    let places = if places.is_empty() { vec![String::new()] } else { places };
    let matches = |patterns: &[String], name: &str| {
        patterns.iter().any(|pattern| Glob::new(pattern).is_ok_and(|glob| glob.compile_matcher().is_match(name)))
    };
    let names = places.iter().flat_map(|place| all_packages(tree, &clean(place), is_namespace));
    names.filter(|name| matches(&include, name) && !matches(&exclude, name)).collect()
}

/// Every package below a directory by its name.
fn all_packages(tree: &Tree, place: &str, is_namespace: bool) -> Vec<String> {
    let mut directories: BTreeSet<String> = BTreeSet::new();
    for file in tree.files().iter().filter(|file| file.extension() == "py" || file.extension() == "pyi") {
        let Some(inner) =
            (if place.is_empty() { Some(file.path.as_str()) } else { file.path.strip_prefix(&format!("{place}/")) })
        else {
            continue;
        };
        let Some((directory, name)) = inner.rsplit_once('/') else { continue };
        if is_namespace || name == "__init__.py" {
            directories.insert(directory.to_owned());
        }
        if is_namespace {
            directories.extend(directory.match_indices('/').map(|(end, _)| directory[..end].to_owned()));
        }
    }
    let is_name =
        |directory: &String| directory.split('/').all(|part| part.chars().all(|c| c.is_alphanumeric() || c == '_'));
    // A package in a directory that is none is not found.
    let is_reached = |directory: &String| {
        is_namespace || directory.match_indices('/').all(|(end, _)| directories.contains(&directory[..end]))
    };
    directories
        .iter()
        .filter(|directory| is_name(directory) && is_reached(directory))
        .map(|directory| directory.replace('/', "."))
        .collect()
}

/// What setuptools finds where nothing is said: `src`, or the one package at the root.
fn discovered(tree: &Tree) -> (Vec<String>, String) {
    if tree.has("src") && !tree.has("src/__init__.py") {
        let names = all_packages(tree, "src", true);
        if !names.is_empty() {
            return (names, "src".to_owned());
        }
    }
    let names = all_packages(tree, "", false);
    let allowed = |name: &String| {
        let top = name.split('.').next().unwrap_or(name);
        !NO_PACKAGES.contains(&top) && !top.starts_with('_')
    };
    (names.into_iter().filter(allowed).collect(), String::new())
}

/// Packages that are in no other one, each with its directory.
fn outermost(
    names: &[String],
    source: &str,
    directories: &[(String, String)],
    tree: &Tree,
    place: &Place,
    gaps: &mut Gaps,
) -> Vec<Package> {
    let known: BTreeSet<&str> = names.iter().map(String::as_str).collect();
    let mut found: Vec<Package> = Vec::new();
    for name in &known {
        let is_inner = name.match_indices('.').any(|(end, _)| known.contains(&name[..end]));
        let mapped = directories.iter().find(|(package, _)| package == name).map(|(_, directory)| directory.clone());
        if is_inner && mapped.is_none() {
            continue;
        }
        let directory = mapped.unwrap_or_else(|| joined(source, &name.replace('.', "/")));
        if directory.is_empty() || !tree.has(&directory) {
            gaps.add("packages", name, "its directory is not there, or is the root of the project", place);
            continue;
        }
        let is_namespace = !tree.has(&format!("{directory}/__init__.py"));
        found.push(Package { name: (*name).to_owned(), directory, is_namespace });
    }
    // A namespace counts as one package, unless its directory is that of something else.
    found.sort();
    found
}

fn data(declared: &Declared, gaps: &mut Gaps) -> Vec<(String, Vec<String>)> {
    let Some((value, place)) = declared.get("package_data") else { return Vec::new() };
    value.entries().iter().map(|(package, value)| (package.clone(), gaps.texts("package_data", value, place))).collect()
}
