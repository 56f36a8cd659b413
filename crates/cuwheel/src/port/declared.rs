//! What a project declares, under the names that `setup()` has for it, wherever it is written: pyproject.toml, setup.py, setup.cfg.
//!
//! Nothing is made of the values here; see [`super::metadata`], [`super::packages`] and [`super::extension`].

use std::collections::BTreeMap;

use toml_edit::{Item, TableLike};

use super::value::{Made, Place, Script, Unknown, Value};
use crate::reading::ini::Ini;
use crate::reading::toml_file::TomlFile;
use crate::reading::tree::Tree;

/// A value with the place that it is written at.
pub(super) type Declaration = (Value, Place);

/// Values by the names of the arguments of `setup()`. What pyproject.toml says comes before setup.py, and setup.py before
/// setup.cfg, as in setuptools.
#[derive(Debug, Default)]
pub(super) struct Declared {
    values: BTreeMap<String, Declaration>,
}

/// Fields of setup.cfg that are lists of lines.
const LINES: &[&str] = &[
    "classifiers",
    "install_requires",
    "setup_requires",
    "tests_require",
    "py_modules",
    "scripts",
    "packages",
    "license_files",
    "ext_modules",
];
/// Tables of setup.cfg that have sections of their own.
const TABLES: &[&str] = &["entry_points", "extras_require", "package_data", "exclude_package_data"];
/// Names that setuptools still takes, or that setup.cfg alone has.
const SYNONYMS: &[(&str, &str)] = &[
    ("summary", "description"),
    ("home_page", "url"),
    ("classifier", "classifiers"),
    ("license_file", "license_files"),
    ("requires_python", "python_requires"),
    ("long_description_type", "long_description_content_type"),
];

/// Fields of `[project]`, and the arguments of `setup` that they are.
const FIELDS: &[(&str, &str)] = &[
    ("name", "name"),
    ("version", "version"),
    ("description", "description"),
    ("requires-python", "python_requires"),
    ("license", "license"),
    ("license-files", "license_files"),
    ("authors", "authors"),
    ("maintainers", "maintainers"),
    ("keywords", "keywords"),
    ("classifiers", "classifiers"),
    ("urls", "project_urls"),
    ("dependencies", "install_requires"),
    ("optional-dependencies", "extras_require"),
    ("readme", "readme"),
];
/// Those of `[tool.setuptools]`.
const TOOL: &[(&str, &str)] = &[
    ("packages", "packages"),
    ("package-dir", "package_dir"),
    ("py-modules", "py_modules"),
    ("package-data", "package_data"),
    ("exclude-package-data", "exclude_package_data"),
    ("include-package-data", "include_package_data"),
    ("script-files", "scripts"),
    ("license-files", "license_files"),
    ("data-files", "data_files"),
    ("cmdclass", "cmdclass"),
    ("ext-modules", "ext_modules"),
    ("zip-safe", "zip_safe"),
];

impl Declared {
    /// Puts together what there is.
    pub(super) fn read(tree: &Tree, pyproject: Option<&TomlFile>, cfg: Option<&Ini>, script: &Script) -> Self {
        let mut declared = Self::default();
        if let Some(file) = pyproject {
            declared.add_pyproject(tree, file, script);
        }
        if let Some(call) = script.setups.first() {
            for (name, value) in &call.keywords {
                if !matches!(value, Value::None) {
                    declared.add(name, value.clone(), call.place.clone());
                }
            }
        }
        if let Some(cfg) = cfg {
            declared.add_cfg(tree, cfg, script);
        }
        declared
    }

    fn add(&mut self, name: &str, value: Value, place: Place) {
        let name = SYNONYMS.iter().find(|(old, _)| *old == name).map_or(name, |(_, new)| new);
        self.values.entry(name.to_owned()).or_insert((value, place));
    }

    pub(super) fn get(&self, name: &str) -> Option<&Declaration> {
        self.values.get(name)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.values.keys().map(String::as_str)
    }

    fn add_pyproject(&mut self, tree: &Tree, file: &TomlFile, script: &Script) {
        for (table, fields) in [("project", FIELDS), ("tool.setuptools", TOOL)] {
            for (key, name) in fields {
                let path = format!("{table}.{key}");
                let Some(item) = file.item(&path) else { continue };
                let place = Place::new("pyproject.toml", file.line_of(&path).unwrap_or(1));
                let value = match *name {
                    "ext_modules" => extensions(file, item, &place, "setuptools.Extension"),
                    "packages" if item.as_table_like().is_some() => found_packages(item, &place),
                    _ => value_of(item),
                };
                self.add(name, value, place);
            }
        }
        if let Some(item) = file.item("tool.setuptools-rust.ext-modules") {
            let place = Place::new("pyproject.toml", file.line_of("tool.setuptools-rust.ext-modules").unwrap_or(1));
            self.add("rust_extensions", extensions(file, item, &place, "setuptools_rust.RustExtension"), place);
        }
        self.add_entry_points(file);
        for (key, name) in [
            ("version", "version"),
            ("readme", "long_description"),
            ("dependencies", "install_requires"),
            ("description", "description"),
        ] {
            let path = format!("tool.setuptools.dynamic.{key}");
            let Some(table) = file.table(&path) else { continue };
            let place = Place::new("pyproject.toml", file.line_of(&path).unwrap_or(1));
            if let Some(attribute) = table.get("attr").and_then(Item::as_str) {
                self.add(name, attribute_value(tree, script, attribute, &place), place);
            } else if let Some(item) = table.get("file") {
                let paths: Vec<String> = file.texts_in(item).into_iter().map(|(path, _)| path).collect();
                self.add(name, file_value(tree, &paths, &place), place);
            }
        }
        let scm = "tool.setuptools_scm";
        if file.item(scm).is_some() {
            let place = Place::new("pyproject.toml", file.line_of(scm).unwrap_or(1));
            self.add("use_scm_version", Value::Flag { value: true }, place);
        }
    }

    fn add_entry_points(&mut self, file: &TomlFile) {
        let mut groups = Vec::new();
        let lines = |table: &dyn TableLike| {
            Value::texts(table.iter().filter_map(|(name, item)| Some(format!("{name} = {}", item.as_str()?))))
        };
        for (path, group) in [("project.scripts", "console_scripts"), ("project.gui-scripts", "gui_scripts")] {
            if let Some(table) = file.table(path) {
                groups.push((group.to_owned(), lines(table)));
            }
        }
        for (group, item) in file.table("project.entry-points").into_iter().flat_map(TableLike::iter) {
            if let Some(table) = item.as_table_like() {
                groups.push((group.to_owned(), lines(table)));
            }
        }
        if !groups.is_empty() {
            let line = file.line_of("project.scripts").or_else(|| file.line_of("project.entry-points")).unwrap_or(1);
            self.add("entry_points", Value::Table { entries: groups }, Place::new("pyproject.toml", line));
        }
    }

    fn add_cfg(&mut self, tree: &Tree, cfg: &Ini, script: &Script) {
        for entry in cfg.entries() {
            let place = Place::new("setup.cfg", entry.line);
            if !matches!(entry.section.as_str(), "metadata" | "options") {
                continue;
            }
            let text = entry.value.trim();
            let value = if let Some(attribute) = text.strip_prefix("attr:") {
                attribute_value(tree, script, attribute.trim(), &place)
            } else if let Some(paths) = text.strip_prefix("file:") {
                let paths: Vec<String> = paths
                    .split([',', '\n'])
                    .map(|path| path.trim().to_owned())
                    .filter(|path| !path.is_empty())
                    .collect();
                file_value(tree, &paths, &place)
            } else if entry.key == "packages" && text.starts_with("find") {
                cfg_packages(cfg, text, &place)
            } else if LINES.contains(&entry.key.as_str()) {
                Value::texts(lines_of(text))
            } else if matches!(entry.key.as_str(), "package_dir" | "project_urls")
                || TABLES.contains(&entry.key.as_str())
            {
                table_of_lines(text)
            } else if matches!(text.to_lowercase().as_str(), "true" | "false") {
                Value::Flag { value: text.eq_ignore_ascii_case("true") }
            } else {
                Value::text(text)
            };
            self.add(&entry.key, value, place);
        }
        for name in TABLES {
            let section = format!("options.{name}");
            let inner: Vec<_> = cfg.entries().iter().filter(|entry| entry.section == section).collect();
            if let Some(first) = inner.first() {
                let entries = inner.iter().map(|entry| (entry.name.clone(), Value::texts(lines_of(&entry.value))));
                self.add(name, Value::Table { entries: entries.collect() }, Place::new("setup.cfg", first.line));
            }
        }
    }
}

/// Lines, or what commas part where there is one line.
fn lines_of(text: &str) -> Vec<String> {
    let text = text.trim();
    let parts: Vec<&str> = if text.contains('\n') { text.lines().collect() } else { text.split(',').collect() };
    // A version with two bounds is one requirement.
    let mut found: Vec<String> = Vec::new();
    for part in parts.into_iter().map(str::trim).filter(|part| !part.is_empty()) {
        match found.last_mut() {
            Some(last) if part.starts_with(['<', '>', '=', '!', '~']) => *last = format!("{last},{part}"),
            _ => found.push(part.to_owned()),
        }
    }
    found
}

fn table_of_lines(text: &str) -> Value {
    let entry = |line: String| {
        let (key, value) = line.split_once('=')?;
        Some((key.trim().to_owned(), Value::text(value.trim())))
    };
    Value::Table { entries: lines_of(text).into_iter().filter_map(entry).collect() }
}

fn cfg_packages(cfg: &Ini, text: &str, place: &Place) -> Value {
    let entries = cfg.entries().iter().filter(|entry| entry.section == "options.packages.find");
    let keywords = entries.map(|entry| (entry.key.clone(), Value::texts(lines_of(&entry.value)))).collect();
    let name = if text.starts_with("find_namespace") {
        "setuptools.find_namespace_packages"
    } else {
        "setuptools.find_packages"
    };
    Value::Made(Made { name: name.to_owned(), arguments: Vec::new(), keywords, place: place.clone() })
}

fn found_packages(item: &Item, place: &Place) -> Value {
    let find = item.get("find");
    let keywords = find.and_then(Item::as_table_like).into_iter().flat_map(TableLike::iter);
    let keywords: Vec<(String, Value)> = keywords.map(|(key, item)| (key.to_owned(), value_of(item))).collect();
    // In pyproject.toml, packages without __init__.py count unless that is switched off.
    let is_plain = keywords.iter().any(|(key, value)| key == "namespaces" && *value == Value::Flag { value: false });
    let name = if is_plain { "setuptools.find_packages" } else { "setuptools.find_namespace_packages" };
    Value::Made(Made { name: name.to_owned(), arguments: Vec::new(), keywords, place: place.clone() })
}

fn extensions(file: &TomlFile, item: &Item, place: &Place, class: &str) -> Value {
    let tables: Vec<&dyn TableLike> = match item {
        Item::ArrayOfTables(array) => array.iter().map(|table| table as &dyn TableLike).collect(),
        other => other
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|value| value.as_inline_table())
            .map(|table| table as &dyn TableLike)
            .collect(),
    };
    let extension = |table: &dyn TableLike| {
        let keywords = table.iter().map(|(key, item)| (key.replace('-', "_"), value_of(item))).collect();
        let name = table
            .get("name")
            .and_then(Item::span)
            .map(|span| crate::reading::toml_file::line_at(file.text(), span.start));
        let place = Place::new("pyproject.toml", name.unwrap_or(place.line));
        Value::Made(Made { name: class.to_owned(), arguments: Vec::new(), keywords, place })
    };
    Value::List { items: tables.into_iter().map(extension).collect() }
}

/// A value of TOML.
fn value_of(item: &Item) -> Value {
    if let Some(table) = item.as_table_like() {
        return Value::Table { entries: table.iter().map(|(key, item)| (key.to_owned(), value_of(item))).collect() };
    }
    if let Some(array) = item.as_array() {
        return Value::List { items: array.iter().map(|value| value_of(&Item::Value(value.clone()))).collect() };
    }
    if let Some(value) = item.as_bool() {
        return Value::Flag { value };
    }
    Value::text(item.as_str().map_or_else(|| item.to_string().trim().to_owned(), str::to_owned))
}

/// Files of Python that attributes are taken from: what the reader has to be asked for.
pub(super) fn attribute_files(tree: &Tree, pyproject: Option<&TomlFile>, cfg: Option<&Ini>) -> Vec<String> {
    let in_toml = pyproject.and_then(|file| file.text_of("tool.setuptools.dynamic.version.attr")).map(str::to_owned);
    let in_cfg = cfg
        .into_iter()
        .flat_map(Ini::entries)
        .filter_map(|entry| Some(entry.value.strip_prefix("attr:")?.trim().to_owned()));
    in_toml.into_iter().chain(in_cfg).filter_map(|attribute| file_of_attribute(tree, &attribute)).collect()
}

fn file_of_attribute(tree: &Tree, attribute: &str) -> Option<String> {
    let (module, _) = attribute.rsplit_once('.')?;
    let stem = module.replace('.', "/");
    let places = ["", "src/", "python/", "lib/"];
    let candidates =
        places.iter().flat_map(|place| [format!("{place}{stem}.py"), format!("{place}{stem}/__init__.py")]);
    candidates.into_iter().find(|path| tree.has(path))
}

/// `attr: package.module.NAME`.
fn attribute_value(tree: &Tree, script: &Script, attribute: &str, place: &Place) -> Value {
    let name = attribute.rsplit('.').next().unwrap_or(attribute);
    let path = file_of_attribute(tree, attribute);
    let found = path.as_ref().and_then(|path| script.attributes.get(path)?.get(name));
    match (found, path) {
        (Some(Value::Text { value }), Some(path)) => Value::File { path, text: value.clone(), is_whole: false },
        (Some(other), _) => other.clone(),
        _ => unknown(format!("attr: {attribute}"), place, "the module is not found, or has no such name"),
    }
}

/// `file: PATH, PATH`.
fn file_value(tree: &Tree, paths: &[String], place: &Place) -> Value {
    let texts: Vec<String> = paths.iter().filter_map(|path| tree.text(path)).collect();
    if texts.len() != paths.len() || paths.is_empty() {
        return unknown(format!("file: {}", paths.join(", ")), place, "the file is not there");
    }
    Value::File { path: paths[0].clone(), text: texts.join("\n"), is_whole: true }
}

fn unknown(source: String, place: &Place, why: &str) -> Value {
    Value::Unknown(Unknown { source, place: place.clone(), why: why.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_is_parted_at_commas_and_bounds_stay_together() {
        assert_eq!(lines_of("numpy>=1,<3, x"), ["numpy>=1,<3", "x"]);
        assert_eq!(lines_of("\nnumpy>=1,<3\nx; python_version < '3'"), ["numpy>=1,<3", "x; python_version < '3'"]);
    }
}
