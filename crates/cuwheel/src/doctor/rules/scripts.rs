//! A setup.py that does not know the command that editable installs call: the fault that this toolkit began with.

use std::collections::BTreeSet;

use super::super::facts::ProjectFacts;
use super::super::python::PythonFile;
use super::super::{Diagnosis, catalog};
use super::at;

/// Commands that build, by the names that setuptools gives them.
const BUILD_COMMANDS: &[&str] = &["build", "build_ext", "build_clib", "bdist_wheel", "bdist", "install", "develop"];
const EDITABLE: &str = "editable_wheel";

pub(super) fn check(facts: &ProjectFacts, diagnosis: &mut Diagnosis) {
    for script in facts.build_scripts() {
        gates(script, diagnosis);
        command_classes(script, diagnosis);
    }
}

/// Conditions on `sys.argv` that name commands, and not this one.
fn gates(script: &PythonFile, diagnosis: &mut Diagnosis) {
    let mut seen = BTreeSet::new();
    for test in &script.argv {
        let named: Vec<&str> =
            BUILD_COMMANDS.iter().copied().filter(|name| test.texts.iter().any(|text| text == name)).collect();
        if named.is_empty() || test.texts.iter().any(|text| text == EDITABLE) || !seen.insert(test.line) {
            continue;
        }
        let message = format!("sys.argv is looked through for {}, and not for {EDITABLE}", named.join(", "));
        diagnosis.add(at(&catalog::EDITABLE_COMMAND, &script.path, test.line, message));
    }
}

/// Commands with classes of their own: what is done in `develop` is done no more.
fn command_classes(script: &PythonFile, diagnosis: &mut Diagnosis) {
    let in_calls = script.calls.iter().filter_map(|call| Some((call.line, call.keys.get("cmdclass")?.clone())));
    let is_class_table =
        |target: &str| target.to_lowercase().contains("cmdclass") || target.to_lowercase().contains("cmd_class");
    let assigned = script.assigns.iter().filter(|assign| is_class_table(&assign.target));
    let in_assigns = assigned.map(|assign| {
        let mut keys = assign.keys.clone();
        keys.extend(assign.key.clone());
        (assign.line, keys)
    });
    let all: Vec<(usize, Vec<String>)> = in_calls.chain(in_assigns).collect();
    let has = |name: &str| all.iter().find(|(_, keys)| keys.iter().any(|key| key == name));
    // A class for a command that editable_wheel runs does for both.
    let is_covered = [EDITABLE, "build_ext", "build_py", "build"].iter().any(|name| has(name).is_some());
    if let Some((line, _)) = has("develop")
        && !is_covered
    {
        let message = format!("cmdclass has a class for develop, and none for {EDITABLE} or what it runs");
        diagnosis.add(at(&catalog::EDITABLE_COMMAND, &script.path, *line, message));
    }
}
