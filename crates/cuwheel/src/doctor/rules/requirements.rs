//! What the build uses and pyproject.toml does not declare (PK-30, PK-31).
//!
//! Not for what the package needs once it is installed.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::super::cmake::Command;
use super::super::facts::{Backend, ProjectFacts};
use super::super::python::{self, PythonFile};
use super::super::{Diagnosis, Edit, catalog};
use super::at;
use crate::reading::requirement::distribution_of;

/// What every setuptools build has, and what comes with it.
const ALWAYS: &[&str] = &["setuptools", "pip"];
/// A build that takes whatever release of these it gets is not one that runs: the edit is a person's.
const NEEDS_JUDGEMENT: &[&str] = &["torch", "cupy", "jax", "tensorflow", "pycuda", "numba"];

/// A distribution that is used, and where first.
struct Use {
    path: String,
    line: usize,
    what: String,
    is_conditional: bool,
    /// Whether it is needed before setuptools can be told to fetch it.
    is_early: bool,
}

pub(super) fn check(facts: &ProjectFacts, diagnosis: &mut Diagnosis) {
    let mut uses: BTreeMap<String, Use> = BTreeMap::new();
    let edits_path = facts.build_scripts().any(edits_path);
    for script in facts.build_scripts() {
        of_script(facts, script, edits_path, &mut uses);
    }
    if facts.is_native() {
        of_sources(facts, &mut uses);
        of_cmake(facts, &mut uses);
        of_meson(facts, &mut uses);
    }
    // What one distribution brings along is not asked for again: torch has the headers of pybind11.
    if facts.declares("torch") || uses.contains_key("torch") {
        uses.remove("pybind11");
    }
    let has_wheel = facts.declares("wheel") || facts.backend != Backend::Setuptools;
    let is_given = |name: &str| facts.declares(name) || ALWAYS.contains(&name) || (name == "wheel" && has_wheel);
    let is_late = |name: &str| facts.late_requires.iter().any(|requirement| requirement.name == name);
    uses.retain(|name, used| !is_given(name) && (used.is_early || !is_late(name)));
    let (always, sometimes): (Vec<_>, Vec<_>) = uses.iter().partition(|(_, used)| !used.is_conditional);
    let line = requires_line(facts, &always);
    let missing = if facts.pyproject.is_none() { ", and there is no pyproject.toml" } else { "" };
    let message = |name: &str, used: &Use| {
        format!("{} comes from {name}, which build-system.requires does not list{missing}", used.what)
    };
    for (name, used) in always {
        let finding = at(&catalog::REQUIREMENT_UNDECLARED, &used.path, used.line, message(name, used));
        let mut remedy = format!("write {line} in [build-system] of pyproject.toml");
        if NEEDS_JUDGEMENT.contains(&name.as_str()) {
            let _ = write!(remedy, ", with the release of {name} that the wheel is for");
        }
        diagnosis.add_with(finding.with_remedy(remedy), edit(facts, name));
    }
    for (name, used) in sometimes {
        diagnosis.add(at(&catalog::REQUIREMENT_CONDITIONAL, &used.path, used.line, message(name, used)));
    }
}

/// The requirement that is written for a distribution.
fn requirement(name: &str) -> String {
    if name == "numpy" { "numpy>=2.0".to_owned() } else { name.to_owned() }
}

fn edit(facts: &ProjectFacts, name: &str) -> Option<Edit> {
    let has_table = facts.pyproject.as_ref().is_some_and(|file| file.item("build-system.requires").is_some());
    (has_table && !NEEDS_JUDGEMENT.contains(&name)).then(|| Edit::AddBuildRequirement(requirement(name)))
}

/// `requires = […]` with everything that is missing.
fn requires_line(facts: &ProjectFacts, missing: &[(&String, &Use)]) -> String {
    let mut all: Vec<String> = facts.build_requires.iter().map(|placed| placed.requirement.text.clone()).collect();
    if all.is_empty() && facts.backend == Backend::Setuptools {
        all.push("setuptools".to_owned());
    }
    all.extend(missing.iter().map(|(name, _)| requirement(name)));
    let quoted: Vec<String> = all.iter().map(|text| format!("\"{}\"", text.replace('"', "'"))).collect();
    format!("requires = [{}]", quoted.join(", "))
}

/// Whether a script changes where modules are looked for.
fn edits_path(script: &PythonFile) -> bool {
    script.calls.iter().any(|call| call.name.starts_with("sys.path."))
        || script.assigns.iter().any(|assign| assign.target.starts_with("sys.path"))
}

fn of_script(facts: &ProjectFacts, script: &PythonFile, edits_path: bool, uses: &mut BTreeMap<String, Use>) {
    for import in &script.imports {
        // A helper may hold functions that this project does not call.
        if import.in_function && !facts.entry_scripts.contains(&script.path) {
            continue;
        }
        let is_checked = import.when.iter().any(|condition| condition.contains("TYPE_CHECKING"));
        if import.level > 0 || import.standard || import.attempted || is_checked || import.module.is_empty() {
            continue;
        }
        // `from cuda import pathfinder` is of another distribution than `cuda`.
        let full =
            import.names.first().map_or_else(|| import.module.clone(), |name| format!("{}.{name}", import.module));
        let distribution = distribution_of(&full);
        let is_backend_of = import.module.split('.').next() == Some("setuptools");
        if is_backend_of || python::is_local(&facts.tree, &import.module, &script.path, &facts.backend_path, edits_path)
        {
            continue;
        }
        let top = import.module.split('.').next().unwrap_or_default();
        let is_conditional = import.when.iter().any(|condition| !condition.contains("__name__"));
        let (path, line, what) = (script.path.clone(), import.line, format!("the imported module {top}"));
        add(uses, distribution, Use { path, line, what, is_conditional, is_early: !import.in_function });
    }
}

/// Keeps the first use, and one without a condition rather than one with.
fn add(uses: &mut BTreeMap<String, Use>, distribution: String, used: Use) {
    match uses.get(&distribution) {
        Some(known) if !known.is_conditional || used.is_conditional => {}
        _ => {
            uses.insert(distribution, used);
        }
    }
}

/// Adds a use that no condition is around.
fn add_always(uses: &mut BTreeMap<String, Use>, distribution: &str, path: &str, line: usize, what: String) {
    add(
        uses,
        distribution.to_owned(),
        Use { path: path.to_owned(), line, what, is_conditional: false, is_early: false },
    );
}

/// Headers that a distribution of their own has.
const HEADERS: &[(&str, &str)] = &[("numpy/", "numpy"), ("pybind11/", "pybind11"), ("nanobind/", "nanobind")];

/// Whether the project brings a library of C++ headers itself: in its tree, or fetched while it is built.
fn brings(facts: &ProjectFacts, name: &str) -> bool {
    const FETCHES: &[&str] = &["add_subdirectory", "cpmaddpackage", "externalproject_add", "fetchcontent_declare"];
    let is_fetched = facts.cmake.iter().flat_map(|file| &file.commands).any(|command| {
        FETCHES.contains(&command.name.as_str())
            && command.arguments.iter().any(|(text, _)| text.to_lowercase().contains(name))
    });
    let directory = format!("{name}/");
    is_fetched || (name != "numpy" && facts.tree.files().iter().any(|file| file.path.contains(&directory)))
}

fn of_sources(facts: &ProjectFacts, uses: &mut BTreeMap<String, Use>) {
    for file in &facts.native {
        for (header, line) in &file.includes {
            let Some((_, name)) = HEADERS.iter().find(|(prefix, _)| header.starts_with(prefix)) else { continue };
            let is_vendored = facts.tree.files().iter().any(|other| other.path.ends_with(&format!("/{header}")));
            if !is_vendored && !brings(facts, name) {
                let is_cimport = header.ends_with('/');
                let what =
                    if is_cimport { "the cimported module".to_owned() } else { format!("the included {header}") };
                add_always(uses, name, &file.path, *line, what);
            }
        }
    }
}

fn of_cmake(facts: &ProjectFacts, uses: &mut BTreeMap<String, Use>) {
    for file in &facts.cmake {
        let is_plain = |command: &&Command| command.name == "find_package" && command.when.is_empty();
        for command in file.commands.iter().filter(is_plain) {
            let words: Vec<&str> = command.arguments.iter().map(|(text, _)| text.as_str()).collect();
            let found = match words.first() {
                Some(name @ (&"pybind11" | &"nanobind")) => *name,
                Some(&"Torch") => "torch",
                Some(&("Python" | "Python3")) if words.contains(&"NumPy") => "numpy",
                _ => continue,
            };
            if words.contains(&"REQUIRED") && !brings(facts, found) {
                let what = format!("what find_package({}) finds", words[0]);
                add_always(uses, found, &file.path, command.line, what);
            }
        }
    }
}

fn of_meson(facts: &ProjectFacts, uses: &mut BTreeMap<String, Use>) {
    for file in &facts.meson {
        for call in file.calls.iter().filter(|call| call.name == "dependency") {
            let Some((name, _)) = call.texts.first() else { continue };
            if ["numpy", "pybind11", "nanobind"].contains(&name.as_str()) {
                add_always(uses, name, &file.path, call.line, format!("the dependency {name}"));
            }
        }
    }
}
