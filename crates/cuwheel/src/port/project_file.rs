//! The parts of the new pyproject.toml that come from the old project, as lines of TOML.

use serde::Serialize;
use toml_edit::{DocumentMut, InlineTable, Item, Value};

use super::existing::ExistingProject;
use super::metadata::Person;
use crate::reading::requirement::floor_of_specifier;
use crate::requirements::requirement_name;

/// A table with its lines.
#[derive(Debug, Serialize)]
pub(super) struct Table {
    name: String,
    lines: Vec<String>,
}

/// A text as TOML has it.
pub(super) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// Texts with commas between them.
pub(super) fn list(texts: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    texts.into_iter().map(|text| quoted(text.as_ref())).collect::<Vec<_>>().join(", ")
}

/// `key = [` with an item on each line.
fn array(key: &str, items: impl IntoIterator<Item = String>) -> Vec<String> {
    let items: Vec<String> = items.into_iter().collect();
    if items.is_empty() {
        return Vec::new();
    }
    let inner = items.into_iter().map(|item| format!("    {item},"));
    std::iter::once(format!("{key} = [")).chain(inner).chain(["]".to_owned()]).collect()
}

/// Bounds of Python that the limited API of 3.11 can keep: an older floor is raised, and ceilings stay.
pub(super) fn requires_python(old: Option<&str>) -> String {
    let old = old.unwrap_or_default().trim();
    if floor_of_specifier(old).is_some_and(|floor| floor >= (3, 11)) {
        return old.to_owned();
    }
    let ceilings = old.split(',').map(str::trim).filter(|part| part.starts_with('<') || part.starts_with("!="));
    let ceilings = ceilings.filter(|part| !part.starts_with("!=") || !part.contains("3.") || part.contains("3.1"));
    std::iter::once(">=3.11").chain(ceilings.filter(|part| !part.starts_with("!=3.10"))).collect::<Vec<_>>().join(",")
}

/// The lines of `[project]`.
pub(super) fn project(existing: &ExistingProject, name: &str, has_shim: bool) -> Vec<String> {
    let metadata = &existing.metadata;
    let mut lines = vec![format!("name = {}", quoted(name))];
    match &existing.version.value {
        Some(version) => lines.push(format!("version = {}", quoted(version))),
        None => lines.extend([
            "# Not known without running setup.py: see PORTING.md.".to_owned(),
            "version = \"0.0.0\"".to_owned(),
        ]),
    }
    let mut text =
        |key: &str, value: Option<&String>| lines.extend(value.map(|value| format!("{key} = {}", quoted(value))));
    text("description", metadata.description.as_ref());
    text("readme", metadata.readme.as_ref());
    text("requires-python", Some(&requires_python(metadata.requires_python.as_deref())));
    text("license", metadata.license.as_ref());
    if !metadata.license_files.is_empty() {
        lines.push(format!("license-files = [{}]", list(&metadata.license_files)));
    }
    for (key, people) in [("authors", &metadata.authors), ("maintainers", &metadata.maintainers)] {
        lines.extend(array(key, people.iter().map(person)));
    }
    if !metadata.keywords.is_empty() {
        lines.push(format!("keywords = [{}]", list(&metadata.keywords)));
    }
    lines.extend(array(
        "classifiers",
        metadata.classifiers.iter().filter(|text| !is_old_python(text)).map(|text| quoted(text)),
    ));
    lines.extend(array("dependencies", dependencies(existing, has_shim).iter().map(|text| quoted(text))));
    lines
}

/// The dependencies; with a shim, NumPy is one of them, and at least as old as the shim needs it.
pub(super) fn dependencies(existing: &ExistingProject, has_shim: bool) -> Vec<String> {
    const NUMPY: &str = "numpy>=1.26";
    let mut found = existing.metadata.dependencies.clone();
    if !has_shim {
        return found;
    }
    match found.iter_mut().find(|text| distribution(text) == "numpy") {
        Some(text) => {
            if text.trim().eq_ignore_ascii_case("numpy") {
                NUMPY.clone_into(text);
            }
        }
        None => found.push(NUMPY.to_owned()),
    }
    found
}

/// The name at the start of a requirement, normalised.
fn distribution(requirement: &str) -> String {
    let end =
        requirement.find(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c))).unwrap_or(requirement.len());
    requirement_name(&requirement[..end])
}

fn person(person: &Person) -> String {
    let mut table = InlineTable::new();
    for (key, value) in [("name", &person.name), ("email", &person.email)] {
        if let Some(value) = value {
            table.insert(key, value.as_str().into());
        }
    }
    table.to_string().trim().to_owned()
}

/// Classifiers of Pythons that the new wheel does not run on.
fn is_old_python(classifier: &str) -> bool {
    let Some(version) = classifier.strip_prefix("Programming Language :: Python :: ") else { return false };
    let mut parts = version.split(['.', ' ']).map(str::parse::<u32>);
    match (parts.next(), parts.next()) {
        (Some(Ok(2)), _) => true,
        (Some(Ok(3)), Some(Ok(minor))) => minor < 11,
        _ => false,
    }
}

/// Tables below `[project]`, and the dependency groups.
pub(super) fn tables(existing: &ExistingProject) -> Vec<Table> {
    let metadata = &existing.metadata;
    let pair = |(key, value): &(String, String)| format!("{} = {}", key_of(key), quoted(value));
    let mut tables = Vec::new();
    let mut table = |name: String, lines: Vec<String>| {
        if !lines.is_empty() {
            tables.push(Table { name, lines });
        }
    };
    table("project.urls".to_owned(), metadata.urls.iter().map(pair).collect());
    for (group, entries) in &metadata.entry_points {
        let name = match group.as_str() {
            "console_scripts" => "project.scripts".to_owned(),
            "gui_scripts" => "project.gui-scripts".to_owned(),
            other => format!("project.entry-points.{}", quoted(other)),
        };
        table(name, entries.iter().map(pair).collect());
    }
    let extras = metadata.extras.iter().map(|(extra, texts)| format!("{} = [{}]", key_of(extra), list(texts)));
    table("project.optional-dependencies".to_owned(), extras.collect());
    let test = test_requires(existing);
    table("dependency-groups".to_owned(), [vec![format!("test = [{}]", list(test))], other_groups(existing)].concat());
    tables
}

fn key_of(key: &str) -> String {
    let is_bare = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    if is_bare { key.to_owned() } else { quoted(key) }
}

/// pytest, and what the old project asks for when it is tested.
fn test_requires(existing: &ExistingProject) -> Vec<String> {
    let metadata = &existing.metadata;
    let mut found: Vec<String> = metadata.test_requires.clone();
    for (extra, texts) in &metadata.extras {
        if ["test", "tests", "testing"].contains(&extra.to_lowercase().as_str()) {
            found.extend(texts.iter().cloned());
        }
    }
    found.extend(
        document(existing)
            .as_ref()
            .and_then(|document| document.get("dependency-groups")?.get("test")?.as_array())
            .into_iter()
            .flatten()
            .filter_map(|value| value.as_str().map(str::to_owned)),
    );
    if !found.iter().any(|text| distribution(text) == "pytest") {
        found.insert(0, "pytest>=8".to_owned());
    }
    let mut unique: Vec<String> = Vec::new();
    for text in found {
        if !unique.contains(&text) {
            unique.push(text);
        }
    }
    unique
}

fn document(existing: &ExistingProject) -> Option<DocumentMut> {
    existing.tree.text("pyproject.toml").filter(|_| existing.tree.has("pyproject.toml"))?.parse().ok()
}

/// Groups other than `test`, as they were.
fn other_groups(existing: &ExistingProject) -> Vec<String> {
    let document = document(existing);
    let groups = document.as_ref().and_then(|document| document.get("dependency-groups")?.as_table_like());
    let others = groups.into_iter().flat_map(|table| table.iter()).filter(|(name, _)| *name != "test");
    others.map(|(name, item)| format!("{} = {}", key_of(name), item.to_string().trim())).collect()
}

/// Tables of other tools, which stay as they are. Those of builds go.
pub(super) fn kept_tables(existing: &ExistingProject) -> String {
    const GONE: &[&str] = &[
        "bdist_wheel",
        "cibuildwheel",
        "cuwheel",
        "distutils",
        "maturin",
        "rapids-build-backend",
        "scikit-build",
        "setuptools",
        "setuptools-git-versioning",
        "setuptools-rust",
        "setuptools_scm",
        "uv",
        "versioneer",
        "check-manifest",
    ];
    let Some(mut document) = document(existing) else { return String::new() };
    let others: Vec<String> = document.iter().map(|(key, _)| key.to_owned()).filter(|key| key != "tool").collect();
    for key in others {
        document.remove(&key);
    }
    let Some(tools) = document.get_mut("tool").and_then(Item::as_table_like_mut) else { return String::new() };
    for tool in GONE {
        tools.remove(tool);
    }
    if tools.is_empty() {
        return String::new();
    }
    document.to_string().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floors_of_python_are_raised_and_ceilings_stay() {
        let found =
            [Some(">=3.8"), Some(">=3.9,<3.14"), Some(">=3.12"), None, Some(">=3.6, !=3.7.*"), Some("==3.10.*")]
                .map(requires_python);
        assert_eq!(found, [">=3.11", ">=3.11,<3.14", ">=3.12", ">=3.11", ">=3.11", ">=3.11"]);
    }

    #[test]
    fn classifiers_of_older_pythons_are_known() {
        let old = ["3.8", "2", "2.7", "3 :: Only", "3", "3.11", "Implementation :: CPython"];
        let old = old.map(|rest| is_old_python(&format!("Programming Language :: Python :: {rest}")));
        assert_eq!(old, [true, true, true, false, false, false, false]);
    }
}
