//! `tool.uv.cache-keys`: what uv looks at before it believes that nothing has to be built (PK-39).

use globset::GlobBuilder;

use cuwheel_inspect::rules::Finding;

use super::super::facts::ProjectFacts;
use super::super::{Diagnosis, Edit, catalog};
use crate::cache_keys;
use crate::project::Project;

/// What a build reads beside Python files: how to tell, and the key that has uv look at it.
const SOURCES: &[(&[&str], &str)] = &[
    (&["rs"], "**/*.rs"),
    (&["c"], "**/*.c"),
    (&["h"], "**/*.h"),
    (&["cc"], "**/*.cc"),
    (&["cpp"], "**/*.cpp"),
    (&["hpp"], "**/*.hpp"),
    (&["cu"], "**/*.cu"),
    (&["cuh"], "**/*.cuh"),
    (&["pyx"], "**/*.pyx"),
    (&["pxd"], "**/*.pxd"),
];
/// The same by name; a name at the root only matches there.
const FILES: &[(&str, &str)] = &[
    ("Cargo.toml", "**/Cargo.toml"),
    ("Cargo.lock", "Cargo.lock"),
    ("CMakeLists.txt", "**/CMakeLists.txt"),
    ("meson.build", "**/meson.build"),
    ("setup.py", "setup.py"),
    ("setup.cfg", "setup.cfg"),
];

pub(super) fn check(facts: &ProjectFacts, diagnosis: &mut Diagnosis) {
    let Some(file) = &facts.pyproject else { return };
    // Only uv reads the keys: nobody else's project is asked for them.
    let uses_uv = file.item("tool.uv").is_some() || facts.tree.has("uv.lock");
    let is_package = file.item("tool.uv.package").and_then(toml_edit::Item::as_bool) != Some(false);
    if !uses_uv || !is_package || !facts.is_native() {
        return;
    }
    let given = file.item("tool.uv.cache-keys").map(given).unwrap_or_default();
    let has_keys = file.item("tool.uv.cache-keys").is_some();
    let globs = given.iter().filter_map(|pattern| GlobBuilder::new(pattern).literal_separator(true).build().ok());
    let globs: Vec<_> = globs.map(|glob| glob.compile_matcher()).collect();
    let watches = |path: &str| globs.iter().any(|glob| glob.is_match(path));
    let mut missing = of_a_known_build(facts).unwrap_or_else(|| missing_of_any_build(facts, has_keys, &watches));
    if missing.is_empty() {
        return;
    }
    // Keys of one's own replace the defaults.
    if !watches("pyproject.toml") && !missing.iter().any(|key| key == "pyproject.toml") {
        missing.insert(0, "pyproject.toml".to_owned());
    }
    let line = file.line_of("tool.uv.cache-keys").or_else(|| file.line_of("tool.uv"));
    let message = if has_keys {
        format!("tool.uv.cache-keys leave out {}", missing.join(", "))
    } else {
        format!("tool.uv.cache-keys is not set: uv does not look at {}", missing.join(", "))
    };
    let lines: Vec<String> = missing.iter().map(|key| format!("{{ file = \"{key}\" }}")).collect();
    let finding = Finding::new(&catalog::CACHE_KEYS, message).at(file.path()).on_line(line);
    let remedy = format!("add {} to cache-keys in [tool.uv]", lines.join(", "));
    diagnosis.add_with(finding.with_remedy(remedy), Some(Edit::CacheKeys(missing)));
}

/// What is missing in a project that this tool builds: of that it is known which files a build reads.
fn of_a_known_build(facts: &ProjectFacts) -> Option<Vec<String>> {
    facts.pyproject.as_ref()?.item("tool.cuwheel")?;
    let project = Project::open(facts.tree.root()).ok()?;
    Some(cache_keys::suggested_patterns(&cache_keys::unnoticed(&project).ok()?))
}

/// What is missing where any source may be read.
fn missing_of_any_build(facts: &ProjectFacts, has_keys: bool, watches: &dyn Fn(&str) -> bool) -> Vec<String> {
    let mut missing: Vec<String> = Vec::new();
    let is_of_rust = |name: &str| name == "rs" || name.starts_with("Cargo");
    let sources = SOURCES.iter().filter(|(extensions, _)| facts.compiles_rust() || !is_of_rust(extensions[0]));
    for (extensions, key) in sources {
        let mut files = facts.tree.product().filter(|file| extensions.contains(&file.extension()));
        if files.any(|file| !watches(&file.path)) {
            missing.push((*key).to_owned());
        }
    }
    for (name, key) in FILES.iter().filter(|(name, _)| facts.compiles_rust() || !is_of_rust(name)) {
        let is_default = !has_keys && ["setup.py", "setup.cfg"].contains(name);
        let mut files =
            facts.tree.product().filter(|file| file.name() == *name && (key.starts_with("**") || file.path == *name));
        if !is_default && files.any(|file| !watches(&file.path)) {
            missing.push((*key).to_owned());
        }
    }
    missing
}

/// The patterns of files and the directories that are watched.
fn given(item: &toml_edit::Item) -> Vec<String> {
    let of = |value: &toml_edit::Value| {
        if let Some(text) = value.as_str() {
            return Some(text.to_owned());
        }
        let table = value.as_inline_table()?;
        table.get("file").and_then(toml_edit::Value::as_str).map(str::to_owned)
    };
    item.as_array().into_iter().flatten().filter_map(of).collect()
}
