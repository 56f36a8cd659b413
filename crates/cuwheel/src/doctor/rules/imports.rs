//! Packages whose `__init__.py` rearranges the import system.
//!
//! Not for replacing a module by a lazy one under its own name, which Python documents, nor for `pkgutil.extend_path`.

use super::super::facts::ProjectFacts;
use super::super::python::{Purpose, PythonFile};
use super::super::{Diagnosis, catalog};
use super::at;

pub(super) fn check(facts: &ProjectFacts, diagnosis: &mut Diagnosis) {
    for file in facts.python.iter().filter(|file| file.is_for(Purpose::Package)) {
        for (line, message) in hacks(file) {
            diagnosis.add(at(&catalog::IMPORT_HACK, &file.path, line, message));
        }
    }
}

fn hacks(file: &PythonFile) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for call in &file.calls {
        let (owner, method) = call.name.rsplit_once('.').unwrap_or(("", &call.name));
        let changes =
            ["append", "insert", "extend", "pop", "update", "setdefault", "remove", "__setitem__"].contains(&method);
        let message = match (owner, method) {
            (
                _,
                "spec_from_file_location" | "SourceFileLoader" | "ExtensionFileLoader" | "load_dynamic" | "load_source",
            ) => {
                format!("{method} loads a module from a file by hand")
            }
            ("sys.modules", _) if changes => format!("sys.modules.{method} changes which modules are there"),
            ("sys.path", _) if changes => format!("sys.path.{method} changes where everyone's modules are looked for"),
            ("sys.meta_path" | "sys.path_hooks", _) if changes => {
                format!("{owner}.{method} changes how modules are found")
            }
            ("__path__", _) if changes => format!("__path__.{method} changes where submodules are looked for"),
            _ => continue,
        };
        found.push((call.line, message));
    }
    for assign in &file.assigns {
        let is_deletion = assign.value.is_empty() && assign.texts.is_empty();
        let message = match (assign.target.as_str(), assign.key.as_deref()) {
            // A module that replaces itself stays what its name says.
            ("sys.modules[]", Some("<__name__>")) => continue,
            ("sys.modules[]", Some(key)) => {
                let key = key.trim_matches(['<', '>']);
                if is_deletion {
                    format!("sys.modules[{key}] is deleted or replaced")
                } else {
                    format!("sys.modules[{key}] is set")
                }
            }
            ("__path__", None) if !assign.value.contains("extend_path") => {
                "__path__ is set: submodules are looked for elsewhere".to_owned()
            }
            ("sys.path" | "sys.meta_path", None) => format!("{} is set", assign.target),
            _ => continue,
        };
        found.push((assign.line, message));
    }
    found
}
