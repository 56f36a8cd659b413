//! What a project says of itself, read once: settings, build scripts, native sources, tests.
//!
//! For projects of any build backend; [`crate::project::Project`] is for those that the toolkit can build.

use std::path::{Path, PathBuf};

use super::cmake::{self, CMakeFile};
use super::meson::{self, MesonFile};
use super::native::{self, NativeFile};
use super::python::{self, Purpose, PythonFile};
use crate::error::{Failure, Result};
use crate::files;
use crate::reading::ini::Ini;
use crate::reading::requirement::Requirement;
use crate::reading::toml_file::TomlFile;
use crate::reading::tree::{self, Tree};

/// Which program turns the project into a wheel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// setuptools, also where nothing is said.
    Setuptools,
    /// scikit-build-core.
    ScikitBuildCore,
    /// meson-python.
    Meson,
    /// maturin.
    Maturin,
    /// Another, or one of the project's own.
    Other,
}

impl Backend {
    /// The name that people know.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Setuptools => "setuptools",
            Self::ScikitBuildCore => "scikit-build-core",
            Self::Meson => "meson-python",
            Self::Maturin => "maturin",
            Self::Other => "another backend",
        }
    }

    fn of(name: &str) -> Self {
        let name = name.split(':').next().unwrap_or(name);
        match name.split('.').next().unwrap_or(name) {
            "setuptools" => Self::Setuptools,
            "scikit_build_core" => Self::ScikitBuildCore,
            "mesonpy" => Self::Meson,
            "maturin" => Self::Maturin,
            _ => Self::Other,
        }
    }
}

/// A place that a requirement is written at.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    pub(super) requirement: Requirement,
    pub(super) path: String,
    pub(super) line: usize,
}

/// A file that could not be read as what it is.
#[derive(Clone, Debug)]
pub(super) struct Unreadable {
    pub(super) path: String,
    pub(super) line: Option<usize>,
    pub(super) message: String,
}

/// A project as its files say.
#[derive(Clone, Debug)]
pub struct ProjectFacts {
    pub(super) tree: Tree,
    pub(super) backend: Backend,
    pub(super) pyproject: Option<TomlFile>,
    pub(super) setup_cfg: Option<Ini>,
    pub(super) inis: Vec<Ini>,
    pub(super) cargo: Vec<TomlFile>,
    pub(super) python: Vec<PythonFile>,
    pub(super) native: Vec<NativeFile>,
    pub(super) cmake: Vec<CMakeFile>,
    pub(super) meson: Vec<MesonFile>,
    pub(super) workflows: Vec<(String, String)>,
    pub(super) build_requires: Vec<Placed>,
    /// What setuptools is told to fetch once setup.py has run, which is after its own imports.
    pub(super) late_requires: Vec<Requirement>,
    pub(super) dependencies: Vec<Placed>,
    /// Directories that hooks of the build are imported from.
    pub(super) backend_path: Vec<String>,
    pub(super) unreadable: Vec<Unreadable>,
    /// The scripts that the build begins with: setup.py, and hooks of the project's own.
    pub(super) entry_scripts: Vec<String>,
}

/// The directory of the project that a path is in.
pub fn root_of(path: &Path) -> Result<PathBuf> {
    let path = files::absolute(path)?;
    if !path.is_dir() {
        return Err(Failure::usage(format!("{} is not a directory", path.display()))
            .remedy("give the directory of a project")
            .into());
    }
    let is_project =
        |directory: &&Path| ["pyproject.toml", "setup.py"].iter().any(|name| directory.join(name).is_file());
    files::utf8(&path)?;
    if let Some(root) = path.ancestors().find(is_project) {
        return Ok(root.to_path_buf());
    }
    let missing = Failure::usage(format!("no pyproject.toml and no setup.py in {} or above it", path.display()));
    let inner: Vec<String> = Tree::read(&path)?
        .files()
        .iter()
        .filter(|file| ["pyproject.toml", "setup.py"].contains(&file.name()))
        .map(|file| path.join(file.directory()).display().to_string())
        .take(6)
        .collect();
    let remedy =
        if inner.is_empty() { "give the directory of a project" } else { "give one of these, which lie below" };
    Err(missing.details(inner).remedy(remedy).into())
}

impl ProjectFacts {
    /// Reads the project in `root`; Python files with `interpreter`, and not at all without one.
    pub fn read(root: &Path, interpreter: Option<&Path>) -> Result<Self> {
        let tree = Tree::read(root)?;
        let mut unreadable = Vec::new();
        let mut toml = |path: &str| {
            let text = tree.text(path)?;
            TomlFile::parse(path, &text)
                .map_err(|(line, message)| unreadable.push(Unreadable { path: path.to_owned(), line, message }))
                .ok()
        };
        let pyproject = tree.has("pyproject.toml").then(|| toml("pyproject.toml")).flatten();
        let manifests = tree.product().filter(|file| file.name() == "Cargo.toml");
        let cargo: Vec<TomlFile> = manifests.filter_map(|file| toml(&file.path)).collect();
        let ini = |path: &str| tree.text(path).filter(|_| tree.has(path)).map(|text| Ini::parse(path, &text));
        let named = pyproject.as_ref().and_then(|file| file.text_of("build-system.build-backend"));
        // The adapter of RAPIDS names the backend that it stands before.
        let behind = pyproject.as_ref().and_then(|file| file.text_of("tool.rapids-build-backend.build-backend"));
        let backend = behind.or(named).map_or(Backend::Setuptools, Backend::of);
        let texts = |key: &str| pyproject.as_ref().map(|file| file.texts_of(key)).unwrap_or_default();
        let backend_path: Vec<String> = texts("build-system.backend-path")
            .into_iter()
            .map(|(path, _)| path.trim_start_matches("./").trim_matches('/').to_owned())
            .map(|path| if path == "." { String::new() } else { path })
            .collect();
        let mut facts = Self {
            backend,
            setup_cfg: ini("setup.cfg"),
            inis: ["pytest.ini", "tox.ini", ".pytest.ini"].iter().filter_map(|path| ini(path)).collect(),
            native: native::read(&tree),
            cmake: cmake::read(&tree),
            meson: meson::read(&tree),
            workflows: workflows(&tree),
            build_requires: placed("pyproject.toml", texts("build-system.requires")),
            dependencies: placed("pyproject.toml", texts("project.dependencies")),
            late_requires: Vec::new(),
            python: Vec::new(),
            entry_scripts: Vec::new(),
            cargo,
            pyproject,
            backend_path,
            unreadable,
            tree,
        };
        facts.read_python(interpreter)?;
        facts.read_dependencies();
        Ok(facts)
    }

    fn read_python(&mut self, interpreter: Option<&Path>) -> Result<()> {
        let Some(interpreter) = interpreter else { return Ok(()) };
        let mut first: Vec<String> = Vec::new();
        if self.tree.has("setup.py") {
            first.push("setup.py".to_owned());
        }
        let named = self.pyproject.as_ref().and_then(|file| file.text_of("build-system.build-backend"));
        if let Some(module) = named.filter(|_| !self.backend_path.is_empty()) {
            let module = module.split(':').next().unwrap_or(module).replace('.', "/");
            for place in &self.backend_path {
                let path = if place.is_empty() { format!("{module}.py") } else { format!("{place}/{module}.py") };
                first.extend(self.tree.has(&path).then_some(path));
            }
        }
        let scripts = python::build_scripts(&self.tree, &first, &self.backend_path);
        self.python = python::read(&self.tree, &scripts, interpreter)?;
        self.entry_scripts = first;
        for file in self.python.iter().filter(|file| file.error.is_some() && !file.is_for(Purpose::Conftest)) {
            let message = file.error.clone().unwrap_or_default();
            let line = message.strip_prefix("line ").and_then(|rest| rest.split(':').next()?.parse().ok());
            self.unreadable.push(Unreadable { path: file.path.clone(), line, message });
        }
        Ok(())
    }

    /// What setup.cfg and setup.py say that pyproject.toml does not.
    fn read_dependencies(&mut self) {
        if let Some(cfg) = &self.setup_cfg
            && let Some(entry) = cfg.get("options", "install_requires")
        {
            let lines = entry.value.lines().map(|line| (line.to_owned(), entry.line)).collect();
            self.dependencies.extend(placed("setup.cfg", lines));
        }
        self.read_late_requires();
        let script = self.python.iter().find(|file| file.path == "setup.py");
        let mut found = Vec::new();
        for call in script.iter().flat_map(|file| &file.calls) {
            let texts = call.keywords.get("install_requires");
            found.extend(texts.into_iter().flatten().map(|text| (text.clone(), call.line)));
        }
        for assign in script.iter().flat_map(|file| &file.assigns) {
            let target = assign.target.to_lowercase();
            if ["require", "dependencies", "deps"].iter().any(|word| target.contains(word)) {
                found.extend(assign.texts.iter().map(|text| (text.clone(), assign.line)));
            }
        }
        self.dependencies.extend(placed("setup.py", found));
    }

    /// `setup_requires`, and what hooks of the project's own may ask for: any text in them.
    fn read_late_requires(&mut self) {
        let entry = self.setup_cfg.as_ref().and_then(|cfg| cfg.get("options", "setup_requires"));
        let mut texts: Vec<String> = entry.iter().flat_map(|entry| entry.value.lines().map(str::to_owned)).collect();
        for script in self.build_scripts().filter(|script| self.entry_scripts.contains(&script.path)) {
            if script.path == "setup.py" {
                let keywords = script.calls.iter().filter_map(|call| call.keywords.get("setup_requires"));
                texts.extend(keywords.flatten().cloned());
            } else {
                texts.extend(script.strings.iter().map(|text| text.text.clone()));
            }
        }
        self.late_requires = texts.iter().filter_map(|text| Requirement::parse(text)).collect();
    }

    /// The directory of the project.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.tree.root()
    }

    /// The name, where it is written down.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        let own = self.pyproject.as_ref().and_then(|file| file.text_of("project.name"));
        own.or_else(|| Some(self.setup_cfg.as_ref()?.get("metadata", "name")?.value.as_str())).or_else(|| {
            let script = self.python.iter().find(|file| file.path == "setup.py")?;
            let call = script.calls.iter().find(|call| call.name.rsplit('.').next() == Some("setup"))?;
            call.keywords.get("name")?.first().map(String::as_str)
        })
    }

    /// What builds it.
    #[must_use]
    pub fn backend(&self) -> Backend {
        self.backend
    }

    /// How many files it has.
    #[must_use]
    pub fn file_count(&self) -> usize {
        self.tree.files().len()
    }

    /// How many Python files, native sources and build files were taken apart.
    #[must_use]
    pub fn read_counts(&self) -> (usize, usize, usize) {
        let builds = self.cmake.len() + self.meson.len() + self.cargo.len() + usize::from(self.pyproject.is_some());
        (self.python.len(), self.native.len(), builds + usize::from(self.setup_cfg.is_some()))
    }

    pub(super) fn build_scripts(&self) -> impl Iterator<Item = &PythonFile> {
        self.python.iter().filter(|file| file.is_for(Purpose::Build))
    }

    /// Whether a distribution is a requirement of the build.
    pub(super) fn declares(&self, distribution: &str) -> bool {
        self.build_requires.iter().any(|placed| placed.requirement.name == distribution)
    }

    pub(super) fn requires_python(&self) -> Option<(String, String, usize)> {
        let own = self.pyproject.as_ref().and_then(|file| {
            let text = file.text_of("project.requires-python")?;
            Some((text.to_owned(), file.path().to_owned(), file.line_of("project.requires-python").unwrap_or(1)))
        });
        own.or_else(|| {
            let entry = self.setup_cfg.as_ref()?.get("options", "python_requires")?;
            Some((entry.value.clone(), "setup.cfg".to_owned(), entry.line))
        })
        .or_else(|| {
            let script = self.python.iter().find(|file| file.path == "setup.py")?;
            let call = script.calls.iter().find(|call| call.keywords.contains_key("python_requires"))?;
            Some((call.keywords["python_requires"].first()?.clone(), "setup.py".to_owned(), call.line))
        })
    }

    /// Whether the build compiles something.
    pub(super) fn is_native(&self) -> bool {
        let calls = || self.build_scripts().flat_map(|file| &file.calls);
        let builds = |keyword: &str| calls().any(|call| call.keywords.contains_key(keyword));
        let has_extension = || {
            let configured =
                self.pyproject.as_ref().is_some_and(|file| file.item("tool.setuptools.ext-modules").is_some());
            configured || builds("ext_modules") || builds("rust_extensions") || builds("cffi_modules")
        };
        match self.backend {
            Backend::Maturin => !self.cargo.is_empty(),
            Backend::ScikitBuildCore => !self.cmake.is_empty(),
            Backend::Meson => {
                self.meson.iter().any(|file| file.calls.iter().any(|call| call.name == "extension_module"))
            }
            Backend::Setuptools | Backend::Other => has_extension(),
        }
    }

    /// Whether the build compiles Rust.
    pub(super) fn compiles_rust(&self) -> bool {
        let is_named = self.pyproject.as_ref().is_some_and(|file| file.item("tool.setuptools-rust").is_some());
        self.backend == Backend::Maturin || is_named || self.declares("setuptools-rust")
    }

    /// Whether CUDA sources are compiled.
    #[must_use]
    pub fn has_cuda_sources(&self) -> bool {
        self.is_native() && self.tree.product().any(|file| file.extension() == "cu")
    }
}

fn placed(path: &str, texts: Vec<(String, usize)>) -> Vec<Placed> {
    let place = |(text, line): (String, usize)| {
        Some(Placed { requirement: Requirement::parse(&text)?, path: path.to_owned(), line })
    };
    texts.into_iter().filter_map(place).collect()
}

/// Workflows and other files with commands of a project's tests.
fn workflows(tree: &Tree) -> Vec<(String, String)> {
    let is_one = |path: &str| {
        let is_workflow = path.starts_with(".github/workflows/") && ["yml", "yaml"].contains(&tree::extension(path));
        is_workflow || ["tox.ini", "noxfile.py", "Makefile", ".gitlab-ci.yml", "justfile"].contains(&path)
    };
    let files = tree.files().iter().filter(|file| is_one(&file.path));
    files.filter_map(|file| Some((file.path.clone(), tree.text(&file.path)?))).collect()
}
