//! What Cargo.toml files say, read without running cargo: version, default features, the limited API, path dependencies.
//!
//! Not for resolving dependencies. Running `cargo metadata` would cost more than a build in which nothing changed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use toml_edit::{DocumentMut, Item, TableLike};

use crate::error::{Failure, Result};

/// A Cargo.toml with the workspace that it inherits from.
#[derive(Clone, Debug)]
pub struct CargoManifest {
    path: PathBuf,
    document: DocumentMut,
    workspace: Option<(PathBuf, DocumentMut)>,
}

/// How a crate asks for Python's limited API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Abi3 {
    /// It does not.
    No,
    /// By a default feature that can be left out: `without` are the default features that then remain.
    ByFeature {
        /// The oldest Python: `(3, 11)`.
        floor: (u8, u8),
        /// Default features that do not ask for the limited API.
        without: Vec<String>,
    },
    /// In the dependency itself, so always.
    Always {
        /// The oldest Python: `(3, 11)`.
        floor: (u8, u8),
    },
}

impl Abi3 {
    /// The oldest Python of the limited API.
    pub const fn floor(&self) -> Option<(u8, u8)> {
        match self {
            Self::No => None,
            Self::ByFeature { floor, .. } | Self::Always { floor } => Some(*floor),
        }
    }
}

impl CargoManifest {
    /// Reads a manifest and looks for its workspace in the directories above.
    pub fn open(path: &Path) -> Result<Self> {
        let document = read(path)?;
        let workspace = find_workspace(path, &document)?;
        Ok(Self { path: path.to_path_buf(), document, workspace })
    }

    /// The directory of the workspace, or of the package where there is none.
    pub fn workspace_root(&self) -> &Path {
        let manifest = self.workspace.as_ref().map_or(&self.path, |(path, _)| path);
        manifest.parent().unwrap_or(Path::new("."))
    }

    /// The manifest's own path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The name of the library: `lib.name`, or that of the package with underscores.
    pub fn library_name(&self) -> String {
        let named = self.document.get("lib").and_then(|library| library.get("name")?.as_str());
        named.or(self.package_name()).unwrap_or_default().replace('-', "_")
    }

    /// `package.name`.
    pub fn package_name(&self) -> Option<&str> {
        self.document.get("package")?.get("name")?.as_str()
    }

    /// `package.version`, inherited where the manifest says so.
    pub fn version(&self) -> Option<&str> {
        let version = self.document.get("package")?.get("version")?;
        version.as_str().or_else(|| {
            let (_, workspace) = self.workspace.as_ref()?;
            workspace.get("workspace")?.get("package")?.get("version")?.as_str()
        })
    }

    /// How the crate asks for the limited API; `extra_features` are those that pyproject.toml turns on.
    pub fn abi3(&self, extra_features: &[String]) -> Abi3 {
        if let Some(floor) = self.pyo3_dependency_features().iter().filter_map(|name| floor_of(name)).min() {
            return Abi3::Always { floor };
        }
        let default = self.feature("default");
        let chosen: Vec<&String> = default.iter().chain(extra_features).collect();
        let floor = chosen.iter().filter_map(|name| self.abi3_floor_of_feature(name, &mut BTreeSet::new())).min();
        let Some(floor) = floor else { return Abi3::No };
        let without = chosen
            .into_iter()
            .filter(|name| self.abi3_floor_of_feature(name, &mut BTreeSet::new()).is_none())
            .cloned()
            .collect();
        Abi3::ByFeature { floor, without }
    }

    fn feature(&self, name: &str) -> Vec<String> {
        self.document.get("features").and_then(|features| features.get(name)).map(strings).unwrap_or_default()
    }

    fn abi3_floor_of_feature(&self, name: &str, seen: &mut BTreeSet<String>) -> Option<(u8, u8)> {
        if let Some((package, feature)) = name.split_once('/') {
            return matches!(package.trim_end_matches('?'), "pyo3" | "pyo3-ffi").then(|| floor_of(feature)).flatten();
        }
        if !seen.insert(name.to_owned()) {
            return None;
        }
        self.feature(name).iter().filter_map(|inner| self.abi3_floor_of_feature(inner, seen)).min()
    }

    /// Features of PyO3 that the dependency itself asks for.
    fn pyo3_dependency_features(&self) -> Vec<String> {
        let mut features = Vec::new();
        for name in ["pyo3", "pyo3-ffi"] {
            let Some(own) = self.document.get("dependencies").and_then(|table| table.get(name)) else { continue };
            features.extend(own.get("features").map(strings).unwrap_or_default());
            if own.get("workspace").and_then(Item::as_bool) == Some(true) {
                let shared = self.shared_dependency(name).and_then(|item| item.get("features"));
                features.extend(shared.map(strings).unwrap_or_default());
            }
        }
        features
    }

    fn shared_dependency(&self, name: &str) -> Option<&Item> {
        let (_, workspace) = self.workspace.as_ref()?;
        workspace.get("workspace")?.get("dependencies")?.get(name)
    }

    /// The directories of the crate and of every crate that it takes by path, followed recursively. These hold what
    /// cargo compiles that no registry delivers.
    pub fn crate_directories(&self) -> Result<Vec<PathBuf>> {
        let mut found = BTreeSet::new();
        let mut to_read = vec![self.path.clone()];
        while let Some(path) = to_read.pop() {
            let directory = path.parent().unwrap_or(Path::new(".")).to_path_buf();
            if !path.is_file() || !found.insert(directory) {
                continue;
            }
            let manifest = Self::open(&path)?;
            to_read.extend(manifest.path_dependencies().into_iter().map(|directory| directory.join("Cargo.toml")));
        }
        Ok(found.into_iter().collect())
    }

    fn path_dependencies(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for (name, item) in self.dependency_tables().into_iter().flat_map(TableLike::iter) {
            if let Some(path) = item.get("path").and_then(Item::as_str) {
                found.push(normalise(&self.path.with_file_name(path)));
            } else if let (Some(true), Some((manifest, _))) =
                (item.get("workspace").and_then(Item::as_bool), &self.workspace)
            {
                let path = self.shared_dependency(name).and_then(|item| item.get("path")?.as_str());
                found.extend(path.map(|path| normalise(&manifest.with_file_name(path))));
            }
        }
        found
    }

    /// The tables of dependencies that are compiled into the crate or its build script, on any target.
    fn dependency_tables(&self) -> Vec<&dyn TableLike> {
        let targets = self.document.get("target").and_then(Item::as_table_like);
        let of_targets = targets.into_iter().flat_map(|targets| targets.iter().map(|(_, item)| item));
        std::iter::once(self.document.as_item())
            .chain(of_targets)
            .flat_map(|item| ["dependencies", "build-dependencies"].map(|name| item.get(name)))
            .filter_map(|table| table?.as_table_like())
            .collect()
    }
}

/// The workspace of a manifest: its own, the one that it names, or the nearest one above that does not exclude it.
fn find_workspace(path: &Path, document: &DocumentMut) -> Result<Option<(PathBuf, DocumentMut)>> {
    if document.contains_key("workspace") {
        return Ok(Some((path.to_path_buf(), document.clone())));
    }
    let directory = path.parent().unwrap_or(Path::new("."));
    if let Some(named) = document.get("package").and_then(|package| package.get("workspace")?.as_str()) {
        let named = normalise(&directory.join(named).join("Cargo.toml"));
        return Ok(Some((named.clone(), read(&named)?)));
    }
    for above in directory.ancestors().skip(1) {
        let candidate = above.join("Cargo.toml");
        if !candidate.is_file() {
            continue;
        }
        let outer = read(&candidate)?;
        let Some(workspace) = outer.get("workspace") else { continue };
        let excluded = workspace.get("exclude").map(strings).unwrap_or_default();
        if !excluded.iter().any(|excluded| directory.starts_with(normalise(&above.join(excluded)))) {
            return Ok(Some((candidate, outer)));
        }
    }
    Ok(None)
}

fn read(path: &Path) -> Result<DocumentMut> {
    let text = fs_err::read_to_string(path)?;
    text.parse().map_err(|error| {
        Failure::usage(format!("{} is not valid TOML", path.display())).detail(format!("{error}").trim()).into()
    })
}

fn strings(item: &Item) -> Vec<String> {
    let array = item.as_array().into_iter().flatten();
    array.filter_map(|value| value.as_str().map(str::to_owned)).collect()
}

/// `abi3-py311` → `(3, 11)`; bare `abi3` means the oldest Python that has a limited API in PyO3.
fn floor_of(feature: &str) -> Option<(u8, u8)> {
    if feature == "abi3" {
        return Some((3, 7));
    }
    feature.strip_prefix("abi3-py3")?.parse().ok().map(|minor| (3, minor))
}

/// Removes `.` and `..` by name only: links keep their names.
fn normalise(path: &Path) -> PathBuf {
    let mut result = PathBuf::new();
    for component in path.components() {
        match component {
            std::path::Component::CurDir => {}
            std::path::Component::ParentDir => {
                result.pop();
            }
            other => result.push(other),
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn abi3(manifest: &str, extra: &[&str]) -> Abi3 {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("Cargo.toml");
        std::fs::write(&path, manifest).unwrap();
        let extra: Vec<String> = extra.iter().map(ToString::to_string).collect();
        CargoManifest::open(&path).unwrap().abi3(&extra)
    }

    #[test]
    fn the_limited_api_is_found_wherever_it_is_asked_for() {
        let by_feature = |without: &[&str]| Abi3::ByFeature {
            floor: (3, 11),
            without: without.iter().map(ToString::to_string).collect(),
        };
        let cases = [
            ("[dependencies]\npyo3 = '1'", &[][..], Abi3::No),
            ("[dependencies]\npyo3 = { version = '1', features = ['abi3-py39'] }", &[], Abi3::Always { floor: (3, 9) }),
            (
                "[features]\ndefault = ['abi3', 'fast']\nabi3 = ['pyo3/abi3-py311']\nfast = []",
                &[],
                by_feature(&["fast"]),
            ),
            (
                "[features]\ndefault = ['outer']\nouter = ['inner']\ninner = ['outer', 'pyo3?/abi3-py311']",
                &[],
                by_feature(&[]),
            ),
            ("[features]\nabi3 = ['pyo3/abi3-py311']", &[], Abi3::No),
            ("[features]\nabi3 = ['pyo3/abi3-py311']", &["abi3"], by_feature(&[])),
            (
                "[dependencies]\npyo3-ffi = { version = '1', features = ['abi3-py39'] }",
                &[],
                Abi3::Always { floor: (3, 9) },
            ),
            ("[features]\nother = ['numpy/abi3-py311']", &["other"], Abi3::No),
        ];
        for (manifest, extra, expected) in cases {
            assert_eq!(abi3(manifest, extra), expected, "{manifest}");
        }
    }

    #[test]
    fn versions_and_features_are_inherited_from_the_workspace() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let member = root.join("crates/native/Cargo.toml");
        std::fs::create_dir_all(member.parent().unwrap()).unwrap();
        std::fs::write(
            root.join("Cargo.toml"),
            "[workspace]\n[workspace.package]\nversion = '1.2.3'\n\
             [workspace.dependencies]\npyo3 = { version = '1', features = ['abi3-py312'] }\n",
        )
        .unwrap();
        std::fs::write(
            &member,
            "[package]\nname = 'n'\nversion.workspace = true\n[dependencies]\npyo3.workspace = true\n",
        )
        .unwrap();
        let manifest = CargoManifest::open(&member).unwrap();
        assert_eq!((manifest.package_name(), manifest.version()), (Some("n"), Some("1.2.3")));
        assert_eq!(manifest.abi3(&[]), Abi3::Always { floor: (3, 12) });
        assert_eq!(manifest.workspace_root(), root);
    }

    #[test]
    fn an_excluded_crate_is_its_own_workspace() {
        let directory = tempfile::tempdir().unwrap();
        let member = directory.path().join("apart/native/Cargo.toml");
        std::fs::create_dir_all(member.parent().unwrap()).unwrap();
        std::fs::write(directory.path().join("Cargo.toml"), "[workspace]\nexclude = ['apart']\n").unwrap();
        std::fs::write(&member, "[package]\nname = 'n'\n").unwrap();
        assert_eq!(CargoManifest::open(&member).unwrap().workspace_root(), member.parent().unwrap());
    }

    #[test]
    fn crates_taken_by_path_are_followed() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("in");
        for (path, text) in [
            (
                "in/Cargo.toml",
                "[workspace]\n[workspace.dependencies]\nfar = { path = '../far' }\nunused = { path = 'unused' }\n",
            ),
            (
                "in/native/Cargo.toml",
                "[dependencies]\nfar.workspace = true\n[build-dependencies]\nhelp = { path = '../help' }\n",
            ),
            ("in/help/Cargo.toml", "[dependencies]\nnative = { path = '../native' }\nserde = '1'\n"),
            ("far/Cargo.toml", "[package]\n"),
        ] {
            let path = directory.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let manifest = CargoManifest::open(&root.join("native/Cargo.toml")).unwrap();
        let expected = [directory.path().join("far"), root.join("help"), root.join("native")];
        assert_eq!(manifest.crate_directories().unwrap(), expected);
    }
}
