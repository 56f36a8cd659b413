//! A project: its pyproject.toml, its native crate and its settings, read once and then only passed around.
//!
//! Not for the machine it is built on: see [`crate::interpreter`] and [`crate::environment`].

use std::path::{Path, PathBuf};

use cuwheel_inspect::version::Version;
use toml_edit::{DocumentMut, Item, TableLike};

use crate::cargo_config::CargoConfig;
use crate::cargo_manifest::{Abi3, CargoManifest};
use crate::error::{Failure, Result};
use crate::files;
use crate::requirements::requirement_name;
use crate::settings::{Settings, nearest};

/// A project that is built by maturin.
#[derive(Clone, Debug)]
pub struct Project {
    /// The directory of pyproject.toml, absolute.
    pub root: PathBuf,
    /// `project.name` as written.
    pub name: String,
    /// `project.version`, or the version of the native crate.
    pub version: String,
    /// The lower bound of `project.requires-python`.
    pub python_floor: Option<(u8, u8)>,
    /// `build-system.requires`.
    pub backend_requires: Vec<String>,
    /// `project.dependencies`.
    pub dependencies: Vec<String>,
    /// The requirements of the test group.
    pub test_requires: Vec<String>,
    /// The requirements of the group of the GPU tests; `None` where there is no such group.
    pub test_gpu_requires: Option<Vec<String>>,
    /// How the native crate asks for the limited API.
    pub abi3: Abi3,
    /// Whether `tool.maturin.features` turns features on.
    pub features_from_pyproject: bool,
    /// The manifest of the native crate.
    pub manifest: CargoManifest,
    /// The directory of the Python sources, absolute.
    pub python_source: PathBuf,
    /// Where cargo puts what it compiles, absolute.
    pub target_directory: PathBuf,
    /// `[tool.cuwheel]`.
    pub settings: Settings,
}

/// What a pyproject.toml says of wheels, whatever builds them.
#[derive(Clone, Debug)]
pub struct Declared {
    /// The pyproject.toml.
    pub path: PathBuf,
    /// `project.name` as written.
    pub name: Option<String>,
    /// `[tool.cuwheel]`.
    pub settings: Settings,
}

/// The settings of the project that `start` is in; `None` where there is no project, or one without `[tool.cuwheel]`.
/// The rest of its pyproject.toml is not looked at.
pub fn declared_near(start: &Path) -> Result<Option<Declared>> {
    let start = existing_directory(start)?;
    let Some(root) = root_of(&start) else { return Ok(None) };
    let path = root.join("pyproject.toml");
    let document = parse_pyproject(&path)?;
    let view = Pyproject { document: &document, path: &path };
    let Some(item) = view.item("tool.cuwheel") else { return Ok(None) };
    let (name, settings) = (view.text("project.name")?, Settings::from_item(Some(item))?);
    Ok(Some(Declared { path, name, settings }))
}

fn existing_directory(start: &Path) -> Result<PathBuf> {
    let start = files::absolute(start)?;
    if !start.is_dir() {
        return Err(Failure::usage(format!("{} is not a directory", start.display()))
            .remedy("give the directory of the project with --project")
            .into());
    }
    Ok(start)
}

fn root_of(start: &Path) -> Option<&Path> {
    start.ancestors().find(|directory| directory.join("pyproject.toml").is_file())
}

fn parse_pyproject(path: &Path) -> Result<DocumentMut> {
    let invalid =
        |detail: String| Failure::usage(format!("{} is not valid TOML", path.display())).detail(detail.trim());
    let text = String::from_utf8(fs_err::read(path)?).map_err(|error| invalid(error.to_string()))?;
    text.parse().map_err(|error| invalid(format!("{error}")).into())
}

impl Project {
    /// Finds the project of a directory, there or above it, and reads it.
    pub fn find(start: &Path) -> Result<Self> {
        let start = existing_directory(start)?;
        let Some(root) = root_of(&start) else {
            return Err(Failure::usage(format!("no pyproject.toml in {} or above it", start.display()))
                .remedy("run the command inside a project, or name one with --project DIRECTORY")
                .into());
        };
        Self::open(root)
    }

    /// Reads the project whose pyproject.toml is in `root`.
    pub fn open(root: &Path) -> Result<Self> {
        files::utf8(root)?;
        let path = root.join("pyproject.toml");
        let document = parse_pyproject(&path)?;
        let view = Pyproject { document: &document, path: &path };
        let backend_requires = view.texts("build-system.requires")?.unwrap_or_default();
        view.check_backend()?;

        let maturin = "tool.maturin";
        let manifest_path = view.text(&format!("{maturin}.manifest-path"))?.unwrap_or_else(|| "Cargo.toml".to_owned());
        let manifest_path = root.join(manifest_path);
        if !manifest_path.is_file() {
            return Err(Failure::usage(format!("the native crate {} does not exist", manifest_path.display()))
                .remedy("set tool.maturin.manifest-path in pyproject.toml to its Cargo.toml")
                .into());
        }
        let manifest = CargoManifest::open(&manifest_path)?;
        let features = view.texts(&format!("{maturin}.features"))?.unwrap_or_default();
        let python_source = view.text(&format!("{maturin}.python-source"))?.unwrap_or_default();
        let settings = Settings::from_item(view.item("tool.cuwheel"))?;
        let test_requires = view.test_group(&settings.test.group, settings.test.group_is_given)?.unwrap_or_default();
        let gpu = &settings.test_gpu;
        let test_gpu_requires = view.test_group(&gpu.group, gpu.group_is_given)?;
        Ok(Self {
            name: view.required_text("project.name")?,
            version: normalise_version(&view.version(&manifest)?)?,
            python_floor: view.text("project.requires-python")?.as_deref().and_then(python_floor),
            dependencies: view.texts("project.dependencies")?.unwrap_or_default(),
            abi3: manifest.abi3(&features),
            features_from_pyproject: !features.is_empty(),
            python_source: root.join(python_source),
            target_directory: CargoConfig::read(root)?
                .target_directory(root)
                .unwrap_or_else(|| manifest.workspace_root().join("target")),
            root: root.to_path_buf(),
            backend_requires,
            test_requires,
            test_gpu_requires,
            manifest,
            settings,
        })
    }

    /// The name as file names of wheels have it.
    pub fn distribution(&self) -> String {
        requirement_name(&self.name).replace('-', "_")
    }

    /// The requirements of the build, in the order of pyproject.toml.
    pub fn build_requires(&self) -> impl Iterator<Item = &str> {
        self.backend_requires.iter().chain(&self.settings.build_requires).map(String::as_str)
    }

    /// Where the tool keeps what belongs to this checkout and can be made again.
    pub fn work_directory(&self) -> PathBuf {
        self.target_directory.join("cuwheel")
    }

    /// Where finished wheels go.
    pub fn dist(&self) -> PathBuf {
        self.root.join("dist")
    }

    /// What tells the checkout apart, whatever name it is called by.
    pub fn key(&self) -> Result<String> {
        Ok(files::key(fs_err::canonicalize(&self.root)?.as_os_str().as_encoded_bytes()))
    }
}

/// Typed look-ups in pyproject.toml by dotted path.
struct Pyproject<'a> {
    document: &'a DocumentMut,
    path: &'a Path,
}

impl<'a> Pyproject<'a> {
    fn item(&self, key: &str) -> Option<&'a Item> {
        key.split('.').try_fold(self.document.as_item(), |item, name| item.get(name))
    }

    fn table(&self, key: &str) -> Option<&'a dyn TableLike> {
        self.item(key)?.as_table_like()
    }

    fn wrong(&self, key: &str, wanted: &str) -> anyhow::Error {
        Failure::usage(format!("{key} in {} is not {wanted}", self.path.display()))
            .remedy(format!("make {key} {wanted}"))
            .into()
    }

    fn text(&self, key: &str) -> Result<Option<String>> {
        self.item(key)
            .map(|item| item.as_str().map(str::to_owned).ok_or_else(|| self.wrong(key, "a string")))
            .transpose()
    }

    fn required_text(&self, key: &str) -> Result<String> {
        self.text(key)?.ok_or_else(|| {
            Failure::usage(format!("{} has no {key}", self.path.display())).remedy(format!("add {key}")).into()
        })
    }

    fn texts(&self, key: &str) -> Result<Option<Vec<String>>> {
        let Some(item) = self.item(key) else { return Ok(None) };
        let texts = item.as_array().map(|array| array.iter().map(|value| value.as_str().map(str::to_owned)).collect());
        match texts {
            Some(Some(texts)) => Ok(Some(texts)),
            _ => Err(self.wrong(key, "an array of strings")),
        }
    }

    fn check_backend(&self) -> Result<()> {
        let backend = self.text("build-system.build-backend")?;
        if backend.as_deref().is_some_and(|backend| backend == "maturin" || backend.starts_with("maturin.")) {
            return Ok(());
        }
        let found = backend.map_or_else(|| "names no backend".to_owned(), |name| format!("uses the backend {name}"));
        Err(Failure::usage(format!("{} {found}", self.path.display()))
            .remedy("cuwheel builds projects whose build-system.build-backend is \"maturin\"")
            .into())
    }

    fn version(&self, manifest: &CargoManifest) -> Result<String> {
        if let Some(version) = self.text("project.version")? {
            return Ok(version);
        }
        manifest.version().map(str::to_owned).ok_or_else(|| {
            Failure::usage("the project has no version")
                .remedy("set project.version in pyproject.toml, or package.version in the crate's Cargo.toml")
                .into()
        })
    }

    /// The requirements of the tests; a group that nobody named may be absent.
    fn test_group(&self, name: &str, is_given: bool) -> Result<Option<Vec<String>>> {
        let exists = self.table("dependency-groups").is_some_and(|groups| groups.contains_key(name));
        if exists || is_given { self.group(name, &mut Vec::new()).map(Some) } else { Ok(None) }
    }

    /// The requirements of a dependency group (PEP 735), with the groups that it includes.
    fn group(&self, name: &str, open: &mut Vec<String>) -> Result<Vec<String>> {
        let groups = self.table("dependency-groups");
        let Some(item) = groups.and_then(|groups| groups.get(name)) else {
            let known: Vec<&str> = groups.into_iter().flat_map(|groups| groups.iter().map(|(name, _)| name)).collect();
            let remedy = match nearest(name, &known) {
                Some(known) => format!("did you mean {known}?"),
                None => format!("add it to [dependency-groups] in {}", self.path.display()),
            };
            return Err(Failure::usage(format!("there is no dependency group {name}")).remedy(remedy).into());
        };
        let key = format!("dependency-groups.{name}");
        if open.iter().any(|outer| outer == name) {
            return Err(Failure::usage(format!("{key} includes itself")).remedy("break the cycle").into());
        }
        open.push(name.to_owned());
        let mut requirements = Vec::new();
        let array = item.as_array().ok_or_else(|| self.wrong(&key, "an array"))?;
        for value in array {
            if let Some(requirement) = value.as_str() {
                requirements.push(requirement.to_owned());
            } else if let Some(inner) = value.as_inline_table().and_then(|table| table.get("include-group")?.as_str()) {
                requirements.extend(self.group(inner, open)?);
            } else {
                return Err(self.wrong(&key, "made of requirements and include-group tables"));
            }
        }
        open.pop();
        Ok(requirements)
    }
}

/// The version as file names of wheels have it (PEP 440): `0.1.0-alpha.1` → `0.1.0a1`.
fn normalise_version(version: &str) -> Result<String> {
    let parsed: Version = version.parse().map_err(|error| {
        Failure::usage(format!("the version {version} is none that Python packages can have"))
            .detail(format!("{error}"))
            .remedy("set project.version in pyproject.toml to one of PEP 440")
    })?;
    Ok(parsed.to_string())
}

/// The lower bound in a version specifier: `>=3.11,<4` → `(3, 11)`.
fn python_floor(specifier: &str) -> Option<(u8, u8)> {
    specifier.split(',').find_map(|part| {
        let version = part.trim().strip_prefix(">=").or_else(|| part.trim().strip_prefix("~="))?;
        let mut numbers = version.trim().split('.').map(|number| number.parse().ok());
        Some((numbers.next()??, numbers.next()??))
    })
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::error::render;

    const CARGO: &str = "[package]\nname = 'native'\nversion = '0.3.0'\n";

    fn open(pyproject: &str) -> Result<Project> {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("pyproject.toml"), pyproject).unwrap();
        std::fs::write(directory.path().join("Cargo.toml"), CARGO).unwrap();
        Project::open(directory.path())
            .map_err(|error| anyhow::anyhow!(render(&error).replace(directory.path().to_str().unwrap(), "PROJECT")))
    }

    #[track_caller]
    fn refused(pyproject: &str, expected: &Expect) {
        expected.assert_eq(&open(pyproject).unwrap_err().to_string());
    }

    const HEAD: &str = "[build-system]\nrequires = ['maturin==1']\nbuild-backend = 'maturin'\n";

    #[test]
    fn the_version_comes_from_the_crate_when_it_is_dynamic() {
        let text = format!("{HEAD}[project]\nname = 'My.Pkg'\nrequires-python = '>=3.11,<4'\n");
        let project = open(&text).unwrap();
        assert_eq!((project.version.as_str(), project.distribution().as_str()), ("0.3.0", "my_pkg"));
        assert_eq!(project.python_floor, Some((3, 11)));
        let text = format!("{HEAD}[project]\nname = 'p'\nversion = '0.1.0-alpha.1'\n");
        assert_eq!(open(&text).unwrap().version, "0.1.0a1");
    }

    #[test]
    fn dependency_groups_include_others() {
        let text = format!(
            "{HEAD}[project]\nname = 'p'\n[dependency-groups]\nbase = ['pytest']\ntest = [{{include-group = 'base'}}, 'numpy']\n"
        );
        assert_eq!(open(&text).unwrap().test_requires, ["pytest", "numpy"]);
    }

    #[test]
    fn what_cannot_be_built_is_refused_with_the_remedy() {
        refused(
            "[build-system]\nrequires = []\nbuild-backend = 'setuptools.build_meta'\n",
            &expect![[r#"
                error: PROJECT/pyproject.toml uses the backend setuptools.build_meta
                fix: cuwheel builds projects whose build-system.build-backend is "maturin"
            "#]],
        );
        refused(
            &format!("{HEAD}[project]\n"),
            &expect![[r"
                error: PROJECT/pyproject.toml has no project.name
                fix: add project.name
            "]],
        );
        refused(
            &format!("{HEAD}[project]\nname = 'p'\n[tool.maturin]\nmanifest-path = 'rust/Cargo.toml'\n"),
            &expect![[r"
                error: the native crate PROJECT/rust/Cargo.toml does not exist
                fix: set tool.maturin.manifest-path in pyproject.toml to its Cargo.toml
            "]],
        );
    }

    #[test]
    fn names_that_lead_nowhere_are_refused_with_the_nearest_one() {
        refused(
            &format!(
                "{HEAD}[project]\nname = 'p'\n[dependency-groups]\nbase = []\ntest = [{{include-group = 'bas'}}]\n"
            ),
            &expect![[r"
                error: there is no dependency group bas
                fix: did you mean base?
            "]],
        );
        refused(
            &format!(
                "{HEAD}[project]\nname = 'p'\n[tool.cuwheel]\ntest.group = 'tests'\n[dependency-groups]\ntest = []\n"
            ),
            &expect![[r"
                error: there is no dependency group tests
                fix: did you mean test?
            "]],
        );
        refused(
            &format!("{HEAD}[project]\nname = 'p'\n[tool]\ncuwheel = 5\n"),
            &expect![[r"
                error: tool.cuwheel is not a table
                fix: write [tool.cuwheel]
            "]],
        );
        refused(
            &format!("{HEAD}[project]\nname = 'p'\nversion = 'one'\n"),
            &expect![[r#"
            error: the version one is none that Python packages can have
              `one` is not a version: write it as `1.2`, `1.2.3rc1` or `1.2.3+local`
            fix: set project.version in pyproject.toml to one of PEP 440
        "#]],
        );
        refused(
            &format!("{HEAD}[project]\nname = 'p'\n[dependency-groups]\ntest = [{{include-group = 'test'}}]\n"),
            &expect![[r"
                error: dependency-groups.test includes itself
                fix: break the cycle
            "]],
        );
        refused(
            "[build-system\n",
            &expect![[r"
                error: PROJECT/pyproject.toml is not valid TOML
                  TOML parse error at line 1, column 14
                    |
                  1 | [build-system
                    |              ^
                  unclosed table, expected `]`
            "]],
        );
    }
}
