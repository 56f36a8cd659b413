//! The metadata of an existing project: from what it declares to the fields of `[project]`.

use serde::Serialize;

use super::declared::Declared;
use super::gaps::Gaps;
use super::license;
use super::value::{Place, Value};
use crate::reading::requirement::Requirement;
use crate::reading::tree::Tree;

/// A person or a group, as `[project]` names them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Person {
    /// The name, if one is given.
    pub name: Option<String>,
    /// The address, if one is given.
    pub email: Option<String>,
}

/// Where the version is written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Version {
    /// The version, where it is written down anywhere.
    pub value: Option<String>,
    /// The file that it is read from, if it is not in the declarations themselves.
    pub file: Option<String>,
    /// The program that makes it of the repository, such as `setuptools_scm`.
    pub made_by: Option<String>,
    /// Where the project says so.
    pub place: Option<Place>,
}

/// The fields of `[project]`, as far as they are known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Metadata {
    /// One line.
    pub description: Option<String>,
    /// The path of the README.
    pub readme: Option<String>,
    /// Such as `>=3.9`.
    pub requires_python: Option<String>,
    /// An SPDX expression.
    pub license: Option<String>,
    /// What the project says of its licence, where that is no expression.
    pub license_text: Option<String>,
    /// Files with licences.
    pub license_files: Vec<String>,
    /// The authors.
    pub authors: Vec<Person>,
    /// The maintainers.
    pub maintainers: Vec<Person>,
    /// Words to search for.
    pub keywords: Vec<String>,
    /// Trove classifiers, without those of licences.
    pub classifiers: Vec<String>,
    /// Those of licences.
    pub license_classifiers: Vec<String>,
    /// Labels and addresses.
    pub urls: Vec<(String, String)>,
    /// Run-time requirements.
    pub dependencies: Vec<String>,
    /// Optional requirements by extra.
    pub extras: Vec<(String, Vec<String>)>,
    /// `tests_require`.
    pub test_requires: Vec<String>,
    /// `setup_requires`.
    pub setup_requires: Vec<String>,
    /// Entry points by group: names and targets.
    pub entry_points: Vec<(String, Vec<(String, String)>)>,
    /// Scripts that are files.
    pub scripts: Vec<String>,
}

/// The version of the project.
pub(super) fn version(declared: &Declared, tree: &Tree, gaps: &mut Gaps) -> Version {
    for (field, program) in [("use_scm_version", "setuptools_scm"), ("use_calver", "setuptools-calver"), ("pbr", "pbr")]
    {
        if let Some((_, place)) = declared.get(field).filter(|(value, _)| *value != Value::Flag { value: false }) {
            let value = released_version(tree);
            if value.is_none() {
                gaps.add("version", program, "it is made of the repository's tags", place);
            }
            let file = value.is_some().then(|| "PKG-INFO".to_owned());
            return Version { value, file, made_by: Some(program.to_owned()), place: Some(place.clone()) };
        }
    }
    let Some((value, place)) = declared.get("version") else {
        gaps.add("version", "", "it is declared nowhere", &Place::new(first_script(tree), 1));
        return Version::default();
    };
    let mut version = Version { place: Some(place.clone()), ..Version::default() };
    match value {
        Value::File { path, text, .. } => {
            (version.value, version.file) = (Some(text.trim().to_owned()), Some(path.clone()));
        }
        other => version.value = gaps.text("version", other, place),
    }
    if let Value::Made(made) = value {
        let program = made.name.split('.').next().unwrap_or_default();
        version.made_by = Some(program.to_owned());
    }
    let is_version = |text: &String| text.parse::<pep440_rs::Version>().is_ok();
    if let Some(text) = version.value.take_if(|text| !is_version(text)) {
        gaps.add("version", &text, "that is no version as PEP 440 has them", place);
    }
    version
}

/// The version that a released sdist has beside its setup.py.
fn released_version(tree: &Tree) -> Option<String> {
    let text = tree.text("PKG-INFO").filter(|_| tree.has("PKG-INFO"))?;
    text.lines().find_map(|line| Some(line.strip_prefix("Version:")?.trim().to_owned()))
}

fn first_script(tree: &Tree) -> &'static str {
    ["pyproject.toml", "setup.py", "setup.cfg"].into_iter().find(|path| tree.has(path)).unwrap_or("setup.py")
}

/// Everything but name and version.
pub(super) fn metadata(declared: &Declared, tree: &Tree, gaps: &mut Gaps) -> Metadata {
    let mut texts =
        |name: &str| declared.get(name).map(|(value, place)| gaps.texts(name, value, place)).unwrap_or_default();
    let classifiers: Vec<String> = texts("classifiers").into_iter().flat_map(|text| lines(&text)).collect();
    let dependencies = texts("install_requires");
    let (test_requires, setup_requires, scripts) = (texts("tests_require"), texts("setup_requires"), texts("scripts"));
    let mut metadata = Metadata {
        dependencies: requirements("install_requires", &dependencies, declared, gaps),
        test_requires: requirements("tests_require", &test_requires, declared, gaps),
        setup_requires: requirements("setup_requires", &setup_requires, declared, gaps),
        scripts,
        ..Metadata::default()
    };
    let mut text = |name: &str| declared.get(name).and_then(|(value, place)| gaps.text(name, value, place));
    metadata.description = text("description")
        .map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|text| !text.is_empty());
    metadata.requires_python = text("python_requires").map(|text| text.trim().to_owned());
    metadata.readme = readme(declared, tree, gaps);
    metadata.keywords = keywords(declared, gaps);
    metadata.authors = people(declared, "author", gaps);
    metadata.maintainers = people(declared, "maintainer", gaps);
    metadata.urls = urls(declared, gaps);
    metadata.extras = extras(declared, gaps);
    metadata.entry_points = entry_points(declared, gaps);
    add_license(&mut metadata, &classifiers, declared, tree, gaps);
    metadata.license_classifiers = classifiers.iter().filter(|text| text.starts_with("License ::")).cloned().collect();
    metadata.classifiers = classifiers.into_iter().filter(|text| !text.starts_with("License ::")).collect();
    metadata
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// Lines that are requirements; the others, such as options of pip, are gaps.
fn requirements(what: &str, texts: &[String], declared: &Declared, gaps: &mut Gaps) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for line in texts.iter().flat_map(|text| lines(text)) {
        let line = line.split(" #").next().unwrap_or_default().trim().to_owned();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match Requirement::parse(&line) {
            Some(_) if !line.starts_with('-') && !found.contains(&line) => found.push(line),
            Some(_) if !line.starts_with('-') => {}
            _ => {
                let place = declared.get(what).map_or_else(|| Place::new("setup.py", 1), |(_, place)| place.clone());
                gaps.add(what, &line, "it is no requirement of a wheel", &place);
            }
        }
    }
    found
}

fn readme(declared: &Declared, tree: &Tree, gaps: &mut Gaps) -> Option<String> {
    if let Some((value, place)) = declared.get("readme") {
        let inner = value.entries().iter().find(|(key, _)| key == "file").map_or(value, |(_, value)| value);
        return gaps.text("readme", inner, place).filter(|path| tree.has(path));
    }
    let (value, place) = declared.get("long_description")?;
    match value {
        Value::File { path, is_whole: true, .. } => Some(path.clone()),
        Value::Text { value } => {
            let same = |path: &&str| tree.has(path) && tree.text(path).is_some_and(|text| text.trim() == value.trim());
            let found = ["README.md", "README.rst", "README.txt", "README"].into_iter().find(same);
            if found.is_none() && !value.trim().is_empty() {
                gaps.add("long_description", "a text of setup.py", "[project] takes a file: write README.md", place);
            }
            found.map(str::to_owned)
        }
        other => {
            gaps.add_value("long_description", other, place);
            None
        }
    }
}

fn keywords(declared: &Declared, gaps: &mut Gaps) -> Vec<String> {
    let Some((value, place)) = declared.get("keywords") else { return Vec::new() };
    let texts = gaps.texts("keywords", value, place);
    let is_list = matches!(value, Value::List { .. });
    let separator =
        if texts.iter().any(|text| text.contains(',') || text.contains('\n')) { [',', '\n'] } else { [' ', '\n'] };
    let parts =
        texts.iter().flat_map(|text| if is_list { vec![text.as_str()] } else { text.split(separator).collect() });
    parts.map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// `author` and `author_email`, which may each name several, or the tables of pyproject.toml.
fn people(declared: &Declared, role: &str, gaps: &mut Gaps) -> Vec<Person> {
    if let Some((value, _)) = declared.get(&format!("{role}s")) {
        let part = |entry: &Value, key: &str| {
            entry
                .entries()
                .iter()
                .find(|(name, _)| name == key)
                .and_then(|(_, value)| value.as_text())
                .map(str::to_owned)
        };
        let people =
            value.items().iter().map(|entry| Person { name: part(entry, "name"), email: part(entry, "email") });
        return people.filter(|person| *person != Person::default()).collect();
    }
    let mut parts = |name: String| -> Vec<String> {
        let Some((value, place)) = declared.get(&name) else { return Vec::new() };
        let texts = gaps.texts(&name, value, place);
        texts
            .iter()
            .flat_map(|text| text.split([',', '\n']))
            .map(|part| part.trim().to_owned())
            .filter(|part| !part.is_empty())
            .collect()
    };
    let (names, emails) = (parts(role.to_owned()), parts(format!("{role}_email")));
    let emails: Vec<String> = emails.iter().filter_map(|email| bare_address(email)).collect();
    if names.len() == emails.len() {
        return names
            .into_iter()
            .zip(emails)
            .map(|(name, email)| Person { name: Some(name), email: Some(email) })
            .collect();
    }
    // Whose address it is, is not said.
    let names = names.into_iter().map(|name| Person { name: Some(name), email: None });
    names.chain(emails.into_iter().map(|email| Person { name: None, email: Some(email) })).collect()
}

/// `NAME <ADDRESS>` without the name.
fn bare_address(text: &str) -> Option<String> {
    let inner = text.split_once('<').map_or(text, |(_, rest)| rest).trim_end_matches('>').trim();
    let (local, domain) = inner.split_once('@')?;
    (!local.is_empty() && domain.contains('.') && !inner.contains(char::is_whitespace)).then(|| inner.to_owned())
}

fn urls(declared: &Declared, gaps: &mut Gaps) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (name, label) in [("url", "Homepage"), ("download_url", "Download")] {
        if let Some((value, place)) = declared.get(name)
            && let Some(text) = gaps.text(name, value, place).filter(|text| !text.trim().is_empty())
        {
            found.push((label.to_owned(), text.trim().to_owned()));
        }
    }
    if let Some((value, place)) = declared.get("project_urls") {
        for (label, value) in value.entries() {
            if let Some(text) = gaps.text("project_urls", value, place)
                && !found.iter().any(|(known, _)| known == label)
            {
                found.push((label.clone(), text));
            }
        }
        if value.entries().is_empty() && !matches!(value, Value::Table { .. }) {
            gaps.add_value("project_urls", value, place);
        }
    }
    found
}

fn extras(declared: &Declared, gaps: &mut Gaps) -> Vec<(String, Vec<String>)> {
    let Some((value, place)) = declared.get("extras_require") else { return Vec::new() };
    if !matches!(value, Value::Table { .. } | Value::Conditional { .. }) {
        gaps.add_value("extras_require", value, place);
    }
    let mut found = Vec::new();
    for (extra, value) in value.entries() {
        if extra == "**" {
            gaps.add_value("extras_require", value, place);
            continue;
        }
        let what = format!("the extra {extra}");
        let texts = gaps.texts(&what, value, place);
        // `extra:marker`, from before markers could be in the requirements.
        let (name, marker) =
            extra.split_once(':').map_or((extra.as_str(), None), |(name, marker)| (name, Some(marker)));
        if name.is_empty() {
            gaps.add("extras_require", extra, "a requirement with a marker: add it to the dependencies", place);
            continue;
        }
        let texts = requirements("extras_require", &texts, declared, gaps);
        let with_marker = |text: String| marker.map_or(text.clone(), |marker| format!("{text} ; {marker}"));
        found.push((name.to_owned(), texts.into_iter().map(with_marker).collect()));
    }
    found
}

fn entry_points(declared: &Declared, gaps: &mut Gaps) -> Vec<(String, Vec<(String, String)>)> {
    let Some((value, place)) = declared.get("entry_points") else { return Vec::new() };
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    if let Some(text) = value.as_text() {
        for line in lines(text) {
            if let Some(group) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                groups.push((group.trim().to_owned(), Vec::new()));
            } else if let Some((_, entries)) = groups.last_mut() {
                entries.push(line);
            }
        }
    } else {
        for (group, value) in value.entries() {
            let texts = gaps.texts(&format!("the entry points {group}"), value, place);
            groups.push((group.clone(), texts.iter().flat_map(|text| lines(text)).collect()));
        }
        if value.entries().is_empty() && !matches!(value, Value::Table { .. }) {
            gaps.add_value("entry_points", value, place);
        }
    }
    let pair = |line: String| {
        let (name, target) = line.split_once('=')?;
        Some((name.trim().to_owned(), target.trim().to_owned()))
    };
    let groups =
        groups.into_iter().map(|(group, lines)| (group, lines.into_iter().filter_map(pair).collect::<Vec<_>>()));
    groups.filter(|(_, entries)| !entries.is_empty()).collect()
}

fn add_license(metadata: &mut Metadata, classifiers: &[String], declared: &Declared, tree: &Tree, gaps: &mut Gaps) {
    let mut files: Vec<String> = Vec::new();
    if let Some((value, place)) = declared.get("license_files") {
        let named = gaps.texts("license_files", value, place);
        files.extend(named.into_iter().filter(|path| tree.has(path)));
    }
    if let Some((value, place)) = declared.get("license") {
        let part =
            |key: &str| value.entries().iter().find(|(name, _)| name == key).and_then(|(_, value)| value.as_text());
        if let Some(path) = part("file").filter(|path| tree.has(path)) {
            files.push(path.to_owned());
        }
        match value {
            Value::Table { .. } => metadata.license_text = part("text").map(str::to_owned),
            // The text of a licence, where its name was asked for.
            Value::File { path, .. } => files.push(path.clone()),
            other => metadata.license_text = gaps.text("license", other, place),
        }
    }
    metadata.license = metadata.license_text.as_deref().and_then(license::of_text);
    metadata.license =
        metadata.license.take().or_else(|| license::of_classifiers(classifiers.iter().map(String::as_str)));
    if files.is_empty() {
        let usual =
            |name: &str| ["LICEN", "COPYING", "NOTICE"].iter().any(|start| name.to_uppercase().starts_with(start));
        files = tree
            .files()
            .iter()
            .filter(|file| file.directory().is_empty() && usual(file.name()))
            .map(|file| file.path.clone())
            .collect();
    }
    files.sort();
    files.dedup();
    metadata.license_files = files;
    if metadata.license.is_some() {
        metadata.license_text = None;
    } else if metadata.license_text.is_none() {
        metadata.license_text = classifiers.iter().find(|text| text.starts_with("License ::")).cloned();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_addresses() {
        assert_eq!(bare_address("A B <a@b.org>").as_deref(), Some("a@b.org"));
        assert_eq!(bare_address("a at b.org"), None);
    }
}
