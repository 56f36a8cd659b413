//! Which files of the existing project go along, and where they go.
//!
//! Packages and tests go where the toolkit looks for them. Native sources keep their paths below `to-port`, where nothing is built,
//! and those that `build.rs` compiles keep them below the crate too, so that they include each other as before. Caches and
//! compiled files stay behind.

use std::collections::{BTreeMap, BTreeSet};

use globset::{Glob, GlobSet, GlobSetBuilder};

use super::existing::ExistingProject;
use super::kernels::Kernels;
use super::layout::Layout;
use crate::reading::tree::{self, Role};

/// Extensions of what a C, C++, CUDA or Cython compiler reads.
const NATIVE: &[&str] =
    &["c", "cc", "cpp", "cu", "cuh", "cxx", "h", "hh", "hpp", "hxx", "inc", "inl", "ipp", "pxd", "pxi", "pyx", "tpp"];
/// Those of headers, which a package may hand on to its users.
const HEADERS: &[&str] = &["cuh", "h", "hh", "hpp", "hxx", "inc", "inl", "ipp", "pxd", "pxi", "tpp"];
/// The directory of what is there to be read and not built; it goes when everything is ported.
pub(super) const TO_PORT: &str = "to-port";
/// What a build leaves.
const COMPILED: &[&str] = &["a", "dll", "dylib", "o", "pyc", "pyd", "pyo", "so"];

/// Files by their new paths.
#[derive(Debug, Default)]
pub(super) struct Copies {
    /// From the new path to the old one.
    pub(super) files: BTreeMap<String, String>,
    /// Old paths of native sources.
    pub(super) native: BTreeSet<String>,
    /// Directories and files at the root that stay behind.
    pub(super) left: Vec<String>,
    /// Whether there are tests.
    pub(super) has_tests: bool,
}

impl Copies {
    pub(super) fn of(existing: &ExistingProject, layout: &Layout, kernels: &Kernels) -> Self {
        let mut copies = Self::default();
        copies.add_native(existing, layout, kernels);
        copies.add_old_build(existing);
        copies.add_python(existing);
        copies.add_tests(existing);
        copies.add_documents(existing);
        let taken: BTreeSet<&String> = copies.files.values().collect();
        let mut left = BTreeMap::new();
        for file in existing.tree.files() {
            let top = file.path.split('/').next().unwrap_or(&file.path);
            let is_directory = top.len() < file.path.len();
            let entry = left.entry(if is_directory { format!("{top}/") } else { top.to_owned() }).or_insert(false);
            *entry |= taken.contains(&file.path);
        }
        copies.left =
            left.into_iter().filter(|(path, is_taken)| !is_taken && !is_replaced(path)).map(|(path, _)| path).collect();
        copies
    }

    fn add_native(&mut self, existing: &ExistingProject, layout: &Layout, kernels: &Kernels) {
        let named: BTreeSet<&String> = existing.extensions.iter().flat_map(|extension| &extension.sources).collect();
        let includes: Vec<String> = existing
            .extensions
            .iter()
            .flat_map(|extension| &extension.include_dirs)
            .map(|directory| format!("{}/", directory.trim_matches('/')))
            .filter(|directory| directory.len() > 2)
            .collect();
        if let Some(directory) = &layout.existing_crate {
            return self.add_crate(existing, layout, directory);
        }
        for file in existing.tree.files() {
            if !NATIVE.contains(&file.extension()) {
                continue;
            }
            let is_included = includes.iter().any(|directory| file.path.starts_with(directory));
            if file.role == Role::Product || named.contains(&file.path) || is_included {
                self.files.insert(format!("{TO_PORT}/{}", file.path), file.path.clone());
                self.native.insert(file.path.clone());
                let is_header = kernels.has_any() && HEADERS.contains(&file.extension());
                if is_header || kernels.images.contains(&file.path) || kernels.host_files.contains(&file.path) {
                    self.files.insert(layout.native_path(&file.path), file.path.clone());
                }
            }
        }
    }

    /// A crate that is there stays as it is.
    fn add_crate(&mut self, existing: &ExistingProject, layout: &Layout, directory: &str) {
        let prefix = if directory.is_empty() { String::new() } else { format!("{directory}/") };
        for file in existing.tree.files() {
            let Some(inner) = file.path.strip_prefix(&prefix) else { continue };
            let is_of_crate = !prefix.is_empty()
                || inner == "Cargo.lock"
                || inner == "build.rs"
                || (inner.starts_with("src/") && file.extension() == "rs");
            if is_of_crate && inner != "Cargo.toml" {
                let place = if inner == "Cargo.lock" {
                    inner.to_owned()
                } else {
                    format!("{}/{inner}", layout.crate_directory())
                };
                self.files.insert(place, file.path.clone());
                self.native.insert(file.path.clone());
            }
        }
    }

    /// The files that said how the old sources were built: beside them, they explain them, and tools see that the directory is
    /// another project.
    fn add_old_build(&mut self, existing: &ExistingProject) {
        for path in ["setup.py", "setup.cfg", "pyproject.toml", "MANIFEST.in", "CMakeLists.txt"] {
            if existing.tree.has(path) {
                self.files.insert(format!("{TO_PORT}/{path}"), path.to_owned());
            }
        }
    }

    fn add_python(&mut self, existing: &ExistingProject) {
        let packages = &existing.packages;
        let patterns = handed_on(existing);
        for file in existing.tree.files() {
            let owners =
                packages.packages.iter().filter(|package| file.path.starts_with(&format!("{}/", package.directory)));
            let Some(package) = owners.max_by_key(|package| package.directory.len()) else { continue };
            let inner = &file.path[package.directory.len() + 1..];
            let extension = file.extension();
            if COMPILED.contains(&extension)
                || (NATIVE.contains(&extension) && !(HEADERS.contains(&extension) && is_handed_on(&patterns, inner)))
            {
                continue;
            }
            if self.native.contains(&file.path) && !HEADERS.contains(&extension) {
                continue;
            }
            self.files.insert(format!("python/{}/{inner}", package.name.replace('.', "/")), file.path.clone());
        }
        for module in &packages.modules {
            self.files.insert(format!("python/{}.py", module.name.replace('.', "/")), module.file.clone());
        }
    }

    fn add_tests(&mut self, existing: &ExistingProject) {
        for file in existing.tree.files().iter().filter(|file| !COMPILED.contains(&file.extension())) {
            let inner = file.path.strip_prefix("tests/").or_else(|| file.path.strip_prefix("test/"));
            if let Some(inner) = inner {
                self.files.entry(format!("tests/{inner}")).or_insert_with(|| file.path.clone());
                self.has_tests = true;
            }
        }
        if existing.tree.has("conftest.py") {
            self.files.entry("tests/conftest.py".to_owned()).or_insert_with(|| "conftest.py".to_owned());
        }
    }

    fn add_documents(&mut self, existing: &ExistingProject) {
        let metadata = &existing.metadata;
        for path in metadata.readme.iter().chain(&metadata.license_files) {
            if crate::files::is_inside(path) {
                self.files.insert(path.clone(), path.clone());
            }
        }
        for path in ["CHANGELOG.md", "CHANGELOG.rst", "CHANGES.md", "CHANGES.rst", ".gitattributes"] {
            if existing.tree.has(path) {
                self.files.insert(path.to_owned(), path.to_owned());
            }
        }
    }
}

/// Patterns of `package_data` and of MANIFEST.in that name headers.
fn handed_on(existing: &ExistingProject) -> GlobSet {
    let mut set = GlobSetBuilder::new();
    for pattern in existing.packages.data.iter().flat_map(|(_, patterns)| patterns) {
        if let Ok(glob) = Glob::new(pattern) {
            set.add(glob);
        }
    }
    set.build().unwrap_or_default()
}

fn is_handed_on(patterns: &GlobSet, inner: &str) -> bool {
    let tails = inner.match_indices('/').map(|(end, _)| &inner[end + 1..]);
    std::iter::once(inner).chain(tails).any(|tail| patterns.is_match(tail))
}

/// What the new project has of its own, or what only setuptools reads.
fn is_replaced(path: &str) -> bool {
    const REPLACED: &[&str] = &[
        "setup.py",
        "setup.cfg",
        "pyproject.toml",
        "MANIFEST.in",
        "PKG-INFO",
        "Cargo.toml",
        "Cargo.lock",
        ".gitignore",
        "versioneer.py",
    ];
    REPLACED.contains(&path) || path.ends_with(".egg-info/") || path == "build/" || path == "dist/"
}

/// Whether a source names nothing of Python and may stay in its language.
pub(super) fn is_plain_library(path: &str, text: &str) -> bool {
    const BOUND: &[&str] =
        &["Python.h", "PyObject", "Py_", "pybind11/", "nanobind/", "torch/", "ATen/", "c10/", "numpy/"];
    ["c", "cc", "cpp", "cxx"].contains(&tree::extension(path)) && !BOUND.iter().any(|header| text.contains(header))
}
