//! Tests that are arranged so that they import the source tree (PK-63).
//!
//! What pytest puts on sys.path was measured: `rootdir/conftest.py` and packages of tests do it in the default mode,
//! `pythonpath` and PYTHONPATH in every mode, `python -m pytest` without -P by the working directory.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::super::facts::ProjectFacts;
use super::super::python::Purpose;
use super::super::{Diagnosis, catalog};
use super::at;

/// What the settings of pytest say.
#[derive(Default)]
struct Pytest {
    options: String,
    paths: Vec<(String, String, usize)>,
}

pub(super) fn check(facts: &ProjectFacts, diagnosis: &mut Diagnosis) {
    // Where nothing is compiled, tree and wheel hold the same.
    if !facts.is_native() {
        return;
    }
    let pytest = settings(facts);
    let places = package_places(facts);
    for (path, file, line) in &pytest.paths {
        let directory = path.trim_start_matches("./").trim_matches('/');
        let directory = if directory == "." { "" } else { directory };
        if places.contains(directory) {
            let message = format!("pythonpath has {path}, where the package lies: the tree is imported in every mode");
            diagnosis.add(at(&catalog::IMPORTS_TREE, file, *line, message));
        }
    }
    conftests(facts, &places, diagnosis);
    // What follows brings in the root only.
    if !places.contains("") {
        return;
    }
    let is_prepending =
        !["--import-mode=importlib", "--import-mode=append", "--import-mode importlib", "--import-mode append"]
            .iter()
            .any(|option| pytest.options.contains(option));
    if is_prepending {
        if facts.tree.has("conftest.py") {
            let message = "a conftest.py beside the package puts the tree first on sys.path";
            diagnosis.add(at(&catalog::IMPORTS_TREE, "conftest.py", 1, message));
        }
        for directory in ["tests", "test"] {
            let path = format!("{directory}/__init__.py");
            if facts.tree.has(&path) {
                let message = "tests that are a package put the directory above it, the tree, first on sys.path";
                diagnosis.add(at(&catalog::IMPORTS_TREE, &path, 1, message));
            }
        }
    }
    commands(facts, diagnosis);
}

/// Directories that hold importable packages of the project.
fn package_places(facts: &ProjectFacts) -> BTreeSet<String> {
    let mut places = BTreeSet::new();
    for file in facts.tree.product().filter(|file| file.name() == "__init__.py") {
        let Some((above, package)) = file.directory().rsplit_once('/').or(Some(("", file.directory()))) else {
            continue;
        };
        let is_top = !facts.tree.has(&format!("{above}/__init__.py")) && above.matches('/').count() == 0;
        let is_tool = ["tools", "scripts", "ci", "build_tools", "install", "setup_helpers"].contains(&package)
            || package.is_empty();
        let places_of_packages = ["", "src", "python", "lib"];
        if is_top && !is_tool && places_of_packages.contains(&above) {
            places.insert(above.to_owned());
        }
    }
    // A namespace has no `__init__.py`: the package is in it, under the project's name.
    if let Some((namespace, package)) = facts.name().and_then(|name| name.split_once(['-', '.'])) {
        let inner = format!("{namespace}/{}/__init__.py", package.replace(['-', '.'], "_"));
        let is_there = |place: &&str| {
            let path = if place.is_empty() { inner.clone() } else { format!("{place}/{inner}") };
            facts.tree.has(&path)
        };
        places.extend(["", "src", "python", "lib"].into_iter().filter(is_there).map(str::to_owned));
    }
    // A layout with a directory for packages has none at the root.
    if places.len() > 1 && !is_root_package(facts) {
        places.remove("");
    }
    places
}

/// Whether a package at the root is named as the project.
fn is_root_package(facts: &ProjectFacts) -> bool {
    let name = facts.name().map(|name| name.replace(['-', '.'], "_").to_lowercase());
    name.is_some_and(|name| facts.tree.has(&format!("{name}/__init__.py")))
}

fn settings(facts: &ProjectFacts) -> Pytest {
    let mut found = Pytest::default();
    if let Some(file) = &facts.pyproject {
        for table in ["tool.pytest.ini_options", "tool.pytest"] {
            for (text, _) in file.texts_of(&format!("{table}.addopts")) {
                let _ = write!(found.options, " {text}");
            }
            for (text, line) in file.texts_of(&format!("{table}.pythonpath")) {
                found.paths.extend(text.split_whitespace().map(|path| (path.to_owned(), file.path().to_owned(), line)));
            }
        }
    }
    let sections =
        facts.inis.iter().map(|ini| (ini, "pytest")).chain(facts.setup_cfg.iter().map(|ini| (ini, "tool:pytest")));
    for (ini, section) in sections {
        if let Some(entry) = ini.get(section, "addopts") {
            let _ = write!(found.options, " {}", entry.value);
        }
        if let Some(entry) = ini.get(section, "pythonpath") {
            found
                .paths
                .extend(entry.value.split_whitespace().map(|path| (path.to_owned(), ini.path.clone(), entry.line)));
        }
    }
    found
}

/// A `conftest.py` that puts a directory above its own on sys.path.
fn conftests(facts: &ProjectFacts, places: &BTreeSet<String>, diagnosis: &mut Diagnosis) {
    for file in facts.python.iter().filter(|file| file.is_for(Purpose::Conftest)) {
        for call in
            file.calls.iter().filter(|call| ["sys.path.insert", "sys.path.append"].contains(&call.name.as_str()))
        {
            let names_place = |text: &String| {
                let text = text.trim_matches('/');
                text == ".." || text.starts_with("../") || text == "." || (!text.is_empty() && places.contains(text))
            };
            if call.texts.iter().any(names_place) && !places.is_empty() {
                let message = format!("{} with {}: the tree is imported", call.name, call.texts.join(", "));
                diagnosis.add(at(&catalog::IMPORTS_TREE, &file.path, call.line, message));
            }
        }
    }
}

/// Commands of workflows that run pytest where the package lies.
fn commands(facts: &ProjectFacts, diagnosis: &mut Diagnosis) {
    for (path, text) in &facts.workflows {
        let lines: Vec<&str> = text.lines().collect();
        for (index, line) in lines.iter().enumerate() {
            let line = line.trim();
            if line.starts_with('#') {
                continue;
            }
            let before = &lines[index.saturating_sub(6)..=index];
            let leaves = before.iter().any(|line| {
                ["cd ", "pushd ", "working-directory", "changedir", "chdir"].iter().any(|word| line.contains(word))
            });
            if leaves {
                continue;
            }
            let runs = ["python -m pytest", "python3 -m pytest", "{envpython} -m pytest"]
                .iter()
                .any(|command| line.contains(command));
            if runs && !line.contains("--pyargs") && !line.contains("import-mode") {
                let message = "`python -m pytest` puts the working directory, the tree, first on sys.path";
                diagnosis.add(at(&catalog::IMPORTS_TREE, path, index + 1, message));
                break;
            }
            if let Some((_, value)) = line.split_once("PYTHONPATH").filter(|_| !line.contains("unset")) {
                let value = value.trim_start_matches([':', '=', ' ', '"', '\'']);
                let is_tree =
                    [".", "$PWD", "$(pwd)", "${PWD}", "${{ github.workspace }}", "{toxinidir}", "$GITHUB_WORKSPACE"]
                        .iter()
                        .any(|tree| {
                            value
                                .strip_prefix(tree)
                                .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', ':', '"', '\'', '&']))
                        });
                if is_tree {
                    let message = "PYTHONPATH names the tree: it is imported in every mode";
                    diagnosis.add(at(&catalog::IMPORTS_TREE, path, index + 1, message));
                    break;
                }
            }
        }
    }
}
