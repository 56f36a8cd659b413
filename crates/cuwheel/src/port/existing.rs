//! An existing project of setuptools, as its files say: everything that a port has to know.
//!
//! Nothing of the project is run, and nothing is written. What only running it would tell is a [`Gap`].

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::declared::{self, Declared};
use super::extension::{self, Extension};
use super::gaps::{Gap, Gaps};
use super::metadata::{self, Metadata, Version};
use super::packages::{self, Packages};
use super::value::{self, Place, Script, Value, Variable};
use crate::doctor::{self, Backend, ProjectFacts};
use crate::error::{Failure, Result};
use crate::files;
use crate::reading::ini::Ini;
use crate::reading::toml_file::TomlFile;
use crate::reading::tree::Tree;

/// A command of setuptools that the project replaces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Command {
    /// The command, such as `build_ext`.
    pub command: String,
    /// The class that takes its place.
    pub class: String,
    /// The methods that it has of its own.
    pub methods: Vec<String>,
    /// Where.
    #[serde(flatten)]
    pub place: Place,
}

/// A fault of the old set-up, by the rule of `doctor`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// The rule, such as `build/editable-command`.
    pub rule: String,
    /// What is wrong, with its place.
    pub text: String,
}

/// The facts of a project.
#[derive(Clone, Debug, Serialize)]
pub struct ExistingProject {
    /// Its directory.
    #[serde(skip)]
    pub root: PathBuf,
    /// Its name.
    pub name: Option<String>,
    /// Its version.
    pub version: Version,
    /// The fields of `[project]`.
    pub metadata: Metadata,
    /// Its Python sources.
    pub packages: Packages,
    /// Its native modules.
    pub extensions: Vec<Extension>,
    /// Commands that it replaces.
    pub commands: Vec<Command>,
    /// Requirements of the build.
    pub build_requires: Vec<String>,
    /// Environment variables that decide something.
    pub variables: Vec<Variable>,
    /// Rules of MANIFEST.in, with their lines.
    pub manifest_rules: Vec<(String, usize)>,
    /// Arguments of `setup` that nothing is made of.
    pub ignored: Vec<(String, Place)>,
    /// What is not written down.
    pub gaps: Vec<Gap>,
    /// What is wrong with the old set-up.
    pub faults: Vec<Fault>,
    /// All files, relative to the root.
    #[serde(skip)]
    pub(super) tree: Tree,
}

/// Arguments of `setup` that are read.
const READ: &[&str] = &[
    "author",
    "author_email",
    "authors",
    "classifiers",
    "cmdclass",
    "description",
    "download_url",
    "entry_points",
    "ext_modules",
    "extras_require",
    "install_requires",
    "keywords",
    "license",
    "license_files",
    "long_description",
    "long_description_content_type",
    "maintainer",
    "maintainer_email",
    "maintainers",
    "name",
    "package_data",
    "package_dir",
    "packages",
    "project_urls",
    "py_modules",
    "python_requires",
    "readme",
    "rust_extensions",
    "cffi_modules",
    "scripts",
    "setup_requires",
    "tests_require",
    "url",
    "use_scm_version",
    "version",
    "version_config",
    "use_calver",
    "pbr",
];

/// Reads the project in `root`, whose Python files are parsed by `interpreter`.
pub fn read(root: &Path, interpreter: &Path) -> Result<ExistingProject> {
    let root = existing_directory(root)?;
    let doctored = ProjectFacts::read(&root, Some(interpreter))?;
    let tree = Tree::read(&root)?;
    let pyproject = pyproject(&tree)?;
    check_backend(&root, &tree, pyproject.as_ref(), doctored.backend())?;
    let cfg = tree.text("setup.cfg").filter(|_| tree.has("setup.cfg")).map(|text| Ini::parse("setup.cfg", &text));
    let modules = declared::attribute_files(&tree, pyproject.as_ref(), cfg.as_ref());
    let script = value::read(&root, &modules, interpreter)?;
    check_script(&script)?;
    let declared = Declared::read(&tree, pyproject.as_ref(), cfg.as_ref(), &script);
    let mut gaps = Gaps::default();
    add_problems(&script, &tree, &mut gaps);
    let name = declared.get("name").and_then(|(value, place)| gaps.text("name", value, place));
    let metadata = metadata::metadata(&declared, &tree, &mut gaps);
    let version = metadata::version(&declared, &tree, &mut gaps);
    let build_requires = pyproject.as_ref().map(|file| file.texts_of("build-system.requires")).unwrap_or_default();
    Ok(ExistingProject {
        name: name.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()),
        version,
        metadata,
        packages: packages::read(&declared, &tree, &mut gaps),
        extensions: extensions(&declared, &tree, &mut gaps),
        commands: commands(&declared, &mut gaps),
        build_requires: build_requires.into_iter().map(|(text, _)| text).collect(),
        variables: variables(&script),
        manifest_rules: manifest_rules(&tree),
        ignored: ignored(&declared),
        gaps: gaps.found,
        faults: faults(&doctored),
        root,
        tree,
    })
}

fn existing_directory(path: &Path) -> Result<PathBuf> {
    let root = files::absolute(path)?;
    if !root.exists() {
        return Err(Failure::usage(format!("{} does not exist", root.display()))
            .remedy("give the directory with the setup.py of the project")
            .into());
    }
    if !root.is_dir() {
        return Err(Failure::usage(format!("{} is not a directory", root.display()))
            .remedy("give the directory that the file is in")
            .into());
    }
    files::utf8(&root)?;
    Ok(root)
}

fn pyproject(tree: &Tree) -> Result<Option<TomlFile>> {
    let Some(text) = tree.text("pyproject.toml").filter(|_| tree.has("pyproject.toml")) else { return Ok(None) };
    TomlFile::parse("pyproject.toml", &text).map(Some).map_err(|(line, message)| {
        let place = line.map_or_else(String::new, |line| format!(":{line}"));
        Failure::usage("pyproject.toml is not valid TOML")
            .detail(format!("pyproject.toml{place}: {message}"))
            .remedy("mend the file, and try again")
            .into()
    })
}

/// Refuses what setuptools does not build.
fn check_backend(root: &Path, tree: &Tree, pyproject: Option<&TomlFile>, backend: Backend) -> Result<()> {
    let place = pyproject.and_then(|file| file.line_of("build-system.build-backend")).unwrap_or(1);
    let named = pyproject.and_then(|file| file.text_of("build-system.build-backend"));
    let says = named.map(|named| format!("pyproject.toml:{place}: build-backend is {named}"));
    let wraps_setuptools =
        named.is_some_and(|name| name.contains("setuptools")) || (backend == Backend::Other && tree.has("setup.py"));
    match backend {
        Backend::Maturin => Err(Failure::usage("the project is built by maturin already: there is nothing to port")
            .details(says)
            .remedy("run `cuwheel doctor` and `cuwheel build-wheel` in it as it is")
            .into()),
        Backend::ScikitBuildCore | Backend::Meson => {
            let what = if backend == Backend::Meson { "meson.build" } else { "CMakeLists.txt" };
            Err(Failure::usage(format!("the project is built by {}, and not by setuptools", backend.name()))
                .details(says)
                .remedy(format!("its native modules are described in {what}, which is not read: start with `cuwheel new NAME`, and move the sources over"))
                .into())
        }
        Backend::Other if !wraps_setuptools => Err(Failure::usage(format!(
            "the project is built by {}, and not by setuptools",
            named.unwrap_or("another backend")
        ))
        .details(says)
        .remedy("start with `cuwheel new NAME`, and move the sources over")
        .into()),
        _ if ["setup.py", "setup.cfg"].iter().any(|name| tree.has(name)) => Ok(()),
        // A pyproject.toml that only has settings of tools makes no project.
        _ if pyproject.is_some_and(|file| file.item("project").is_some() || file.item("build-system").is_some()) => {
            Ok(())
        }
        _ => {
            let inner = tree.files().iter().filter(|file| file.name() == "setup.py").take(6);
            Err(Failure::usage(format!(
                "{} is no project of setuptools: it has no setup.py, no setup.cfg, and no pyproject.toml with [project]",
                root.display()
            ))
            .details(inner.map(|file| file.path.clone()))
            .remedy("give the directory with the setup.py of the project")
            .into())
        }
    }
}

/// scikit-build and others have a `setup` of their own, which builds by `CMake`.
fn check_script(script: &Script) -> Result<()> {
    let Some(call) = script.setups.iter().find(|call| call.name.starts_with("skbuild.")) else { return Ok(()) };
    Err(Failure::usage("setup.py calls the setup() of scikit-build: the project is built by CMake, and not by setuptools")
        .detail(call.place.to_string())
        .remedy("its native modules are described in CMakeLists.txt, which is not read: start with `cuwheel new NAME`, and move the sources over")
        .into())
}

fn add_problems(script: &Script, tree: &Tree, gaps: &mut Gaps) {
    let start = Place::new("setup.py", 1);
    if let Some(problem) = &script.problem {
        gaps.add("the end of setup.py", "", problem, &start);
    }
    if script.setups.is_empty() && tree.has("setup.py") {
        gaps.add("the arguments of setup()", "", "no call of setup() is reached", &start);
    }
    for call in script.setups.iter().skip(1) {
        gaps.add("a second call of setup()", &call.name, &call.when.join(" and "), &call.place);
    }
    for (key, value) in script.setups.iter().flat_map(|call| &call.keywords).filter(|(key, _)| key == "**") {
        let place = script.setups.first().map_or_else(|| start.clone(), |call| call.place.clone());
        gaps.add_value(&format!("more arguments of setup() ({key})"), value, &place);
    }
}

fn extensions(declared: &Declared, tree: &Tree, gaps: &mut Gaps) -> Vec<Extension> {
    let mut found = Vec::new();
    for field in ["ext_modules", "rust_extensions", "cffi_modules"] {
        if let Some((value, place)) = declared.get(field) {
            found.extend(extension::read(value, field, place, tree, gaps));
        }
    }
    found
}

fn commands(declared: &Declared, gaps: &mut Gaps) -> Vec<Command> {
    let Some((value, declared_at)) = declared.get("cmdclass") else { return Vec::new() };
    if value.entries().is_empty() && !matches!(value, Value::Table { .. }) {
        gaps.add_value("cmdclass", value, declared_at);
    }
    let mut found = Vec::new();
    for (command, value) in value.entries().iter().filter(|(command, _)| command != "**") {
        let value = if let Value::Conditional { value, .. } = value { value } else { value };
        let (class, methods, place) = match value {
            Value::Command(class) => (class.name.clone(), class.methods.clone(), class.place.clone()),
            Value::Made(made) => (made.name.clone(), Vec::new(), made.place.clone()),
            Value::Symbol { name } | Value::Text { value: name } => (name.clone(), Vec::new(), declared_at.clone()),
            Value::Unknown(unknown) => (unknown.source.clone(), Vec::new(), unknown.place.clone()),
            _ => continue,
        };
        found.push(Command { command: command.clone(), class, methods, place });
    }
    found
}

/// Each variable once, where it is read first.
fn variables(script: &Script) -> Vec<Variable> {
    let mut found: Vec<Variable> = Vec::new();
    for variable in &script.variables {
        if !found.iter().any(|known| known.name == variable.name) {
            found.push(variable.clone());
        }
    }
    found
}

fn manifest_rules(tree: &Tree) -> Vec<(String, usize)> {
    let text = tree.text("MANIFEST.in").filter(|_| tree.has("MANIFEST.in")).unwrap_or_default();
    let lines = text.lines().enumerate().map(|(index, line)| (line.trim().to_owned(), index + 1));
    lines.filter(|(line, _)| !line.is_empty() && !line.starts_with('#')).collect()
}

fn ignored(declared: &Declared) -> Vec<(String, Place)> {
    let names = declared.names().filter(|name| !READ.contains(name) && *name != "**");
    names.filter_map(|name| Some((name.to_owned(), declared.get(name)?.1.clone()))).collect()
}

fn faults(facts: &ProjectFacts) -> Vec<Fault> {
    let found = doctor::check_project(facts).under(&cuwheel_inspect::rules::Policy::default());
    let fault =
        |found: &doctor::Found| Fault { rule: found.finding.rule().id().to_owned(), text: found.finding.to_string() };
    found.iter().map(fault).collect()
}
