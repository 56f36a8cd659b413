//! Capsules in native sources, and the modules that their names promise.

use std::collections::BTreeSet;

use super::super::facts::ProjectFacts;
use super::super::native::{Capsule, NativeFile};
use super::super::{Diagnosis, catalog};
use super::at;

pub(super) fn check(facts: &ProjectFacts, diagnosis: &mut Diagnosis) {
    let declared = declared_modules(facts);
    for file in &facts.native {
        for capsule in &file.capsules {
            let Some((module, attribute)) = parts(&capsule.name) else { continue };
            let wrong = if capsule.is_import {
                imports_nothing(facts, &declared, module)
            } else {
                differs(facts, &declared, file, capsule, (module, attribute))
            };
            if let Some(message) = wrong {
                diagnosis.add(at(&catalog::CAPSULE_NAME, &file.path, capsule.line, message));
            }
        }
    }
}

/// `pkg._m._API` → `pkg._m` and `_API`; `None` for names that are of no module, such as `dltensor`.
fn parts(name: &str) -> Option<(&str, &str)> {
    let is_identifier = |part: &str| {
        part.starts_with(|first: char| first.is_alphabetic() || first == '_')
            && part.chars().all(|c| c.is_alphanumeric() || c == '_')
    };
    let (module, attribute) = name.rsplit_once('.')?;
    name.split('.').all(is_identifier).then_some((module, attribute))
}

/// Full names of extension modules that files of the build declare.
fn declared_modules(facts: &ProjectFacts) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for call in facts.build_scripts().flat_map(|script| &script.calls) {
        let last = call.name.rsplit('.').next().unwrap_or(&call.name);
        if last.ends_with("Extension") {
            let named = call.keywords.get("name").and_then(|texts| texts.first()).or_else(|| call.texts.first());
            found.extend(named.filter(|name| !name.contains(['{', '*', '/'])).cloned());
        }
    }
    if let Some(file) = &facts.pyproject {
        found.extend(file.text_of("tool.maturin.module-name").map(str::to_owned));
        let extensions = file.item("tool.setuptools.ext-modules").and_then(|item| item.as_array());
        let names = extensions.into_iter().flatten().filter_map(|value| value.as_inline_table()?.get("name")?.as_str());
        found.extend(names.map(str::to_owned));
        let tables = file.item("tool.setuptools.ext-modules").and_then(|item| item.as_array_of_tables());
        let names = tables.into_iter().flatten().filter_map(|table| table.get("name")?.as_str());
        found.extend(names.map(str::to_owned));
    }
    for call in facts.meson.iter().flat_map(|file| &file.calls).filter(|call| call.name == "extension_module") {
        if let Some((name, _)) = call.texts.first() {
            // The directory is among the texts; which one it is, the tree knows.
            let directories = call.texts.iter().filter(|(text, _)| {
                facts.tree.has(&format!("{text}/__init__.py")) || facts.tree.has(&format!("src/{text}/__init__.py"))
            });
            found.extend(directories.map(|(text, _)| format!("{}.{name}", text.replace('/', "."))));
        }
    }
    found
}

/// Full names that the modules defined in or beside a file may have.
fn modules_of(facts: &ProjectFacts, declared: &BTreeSet<String>, file: &NativeFile) -> BTreeSet<String> {
    let directory = |path: &str| path.rsplit_once('/').map_or(String::new(), |(directory, _)| directory.to_owned());
    let own = directory(&file.path);
    let beside = facts.native.iter().filter(|other| directory(&other.path) == own).flat_map(|other| &other.modules);
    let names: Vec<&String> = if file.modules.is_empty() { beside.collect() } else { file.modules.iter().collect() };
    let mut found = BTreeSet::new();
    for name in names {
        let of_build: Vec<&String> = declared.iter().filter(|full| full.rsplit('.').next() == Some(name)).collect();
        if of_build.is_empty() {
            // Sources that lie in their package are modules of it.
            if facts.tree.has(&format!("{own}/__init__.py")) {
                found.insert(format!("{}.{name}", package_of(&own)));
            }
        } else {
            found.extend(of_build.into_iter().cloned());
        }
    }
    found
}

/// `src/pkg/inner` → `pkg.inner`.
fn package_of(directory: &str) -> String {
    let inner =
        ["src/", "python/", "lib/"].iter().find_map(|prefix| directory.strip_prefix(prefix)).unwrap_or(directory);
    inner.replace('/', ".")
}

fn differs(
    facts: &ProjectFacts,
    declared: &BTreeSet<String>,
    file: &NativeFile,
    capsule: &Capsule,
    (module, attribute): (&str, &str),
) -> Option<String> {
    let known = modules_of(facts, declared, file);
    if known.is_empty() || known.contains(module) {
        return None;
    }
    // A dotted name that nobody imports is a label: then only one that means a module is judged.
    let leaf = |name: &str| name.rsplit('.').next().map(str::to_owned);
    let means_a_module =
        attribute.to_lowercase().contains("api") || known.iter().any(|full| leaf(full) == leaf(module));
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    means_a_module.then(|| {
        format!("the capsule {} is named after {module}, and the module is {}", capsule.name, known.join(" or "))
    })
}

/// An import of a capsule from a module of this project that is not there.
fn imports_nothing(facts: &ProjectFacts, declared: &BTreeSet<String>, module: &str) -> Option<String> {
    let top = module.split('.').next().unwrap_or(module);
    let is_own = ["", "src/", "python/"].iter().any(|prefix| facts.tree.has(&format!("{prefix}{top}/__init__.py")));
    if !is_own || declared.is_empty() || declared.contains(module) {
        return None;
    }
    let path = module.replace('.', "/");
    let is_file = ["", "src/", "python/"].iter().any(|prefix| {
        [".py", ".pyx", "/__init__.py"].iter().any(|suffix| facts.tree.has(&format!("{prefix}{path}{suffix}")))
    });
    (!is_file).then(|| format!("a capsule of {module} is imported, and the project has no such module"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_capsules_have_a_module_and_an_attribute() {
        assert_eq!(parts("pkg._m._API"), Some(("pkg._m", "_API")));
        assert_eq!(["dltensor", "arrow_schema", "a..b", "a b.c", ".a"].map(parts), [None; 5]);
        assert_eq!(package_of("src/pkg/inner"), "pkg.inner");
    }
}
