//! The files of a project: which there are, and what each is there for.
//!
//! Files that git ignores are left out, and so are projects within the project.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use ignore::WalkBuilder;

use crate::error::Result;

/// More files than this are not read: a home directory is no project.
const MOST_FILES: usize = 60_000;
/// A larger file is not read: it holds data.
const LARGEST_SOURCE_BYTES: u64 = 4 << 20;

/// What a file is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// It is built, packaged, or part of how that is done.
    Product,
    /// It tests the product.
    Test,
    /// Documentation, examples, other projects' sources.
    Aside,
}

/// A file of the project.
#[derive(Clone, Debug)]
pub(crate) struct TreeFile {
    /// Relative to the root, with slashes.
    pub(crate) path: String,
    pub(crate) role: Role,
}

impl TreeFile {
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    pub(crate) fn extension(&self) -> &str {
        extension(&self.path)
    }

    pub(crate) fn directory(&self) -> &str {
        self.path.rsplit_once('/').map_or("", |(directory, _)| directory)
    }
}

/// What a path ends with after its last dot; empty without one.
pub(crate) fn extension(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').map_or("", |(_, extension)| extension)
}

/// The files, sorted by path.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    root: PathBuf,
    files: Vec<TreeFile>,
    /// Every file and every directory.
    paths: BTreeSet<String>,
}

const NEVER_READ: &[&str] =
    &["__pycache__", "node_modules", "target", ".git", ".venv", "venv", ".tox", ".nox", ".eggs"];
const TESTS: &[&str] = &["test", "tests", "testing", "testdata", "test-data", "test_data", "unit_tests"];
const ASIDE: &[&str] = &[
    "3rdparty",
    "_deps",
    "bench",
    "benchmark",
    "benchmarks",
    "build",
    "dist",
    "doc",
    "docker",
    "docs",
    "example",
    "examples",
    "extern",
    "external",
    "externals",
    "notebooks",
    "profiling",
    "samples",
    "submodules",
    "third-party",
    "third_party",
    "thirdparty",
    "tutorial",
    "tutorials",
    "vendor",
    "vendored",
];

impl Tree {
    /// Lists the files below `root`.
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let walker = WalkBuilder::new(root)
            .hidden(false)
            .parents(false)
            .git_global(false)
            .git_exclude(false)
            .ignore(false)
            .require_git(false)
            .filter_entry(|entry| entry.depth() == 0 || !NEVER_READ.iter().any(|never| entry.file_name() == *never))
            .sort_by_file_name(Ord::cmp)
            .build();
        let mut paths = Vec::new();
        for entry in walker.take(MOST_FILES) {
            let entry = entry.with_context(|| format!("reading {}", root.display()))?;
            if entry.file_type().is_some_and(|kind| kind.is_file())
                && let Some(path) = entry.path().strip_prefix(root).ok().and_then(Path::to_str)
            {
                paths.push(path.to_owned());
            }
        }
        let projects = inner_projects(&paths);
        let files = paths.into_iter().map(|path| {
            let role = if projects.iter().any(|project| path.starts_with(project)) { Role::Aside } else { role(&path) };
            TreeFile { path, role }
        });
        let files: Vec<TreeFile> = files.collect();
        let mut paths = BTreeSet::new();
        for file in &files {
            paths.insert(file.path.clone());
            let directories = file.path.match_indices('/').map(|(end, _)| file.path[..end].to_owned());
            paths.extend(directories);
        }
        Ok(Self { root: root.to_path_buf(), files, paths })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn files(&self) -> &[TreeFile] {
        &self.files
    }

    pub(crate) fn product(&self) -> impl Iterator<Item = &TreeFile> {
        self.files.iter().filter(|file| file.role == Role::Product)
    }

    /// Whether there is a file or a directory.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.paths.contains(path)
    }

    /// The text of a file; bytes that are no UTF-8 are replaced. `None` for what is absent, too large or unreadable.
    pub(crate) fn text(&self, path: &str) -> Option<String> {
        let path = self.root.join(path);
        if std::fs::metadata(&path).ok()?.len() > LARGEST_SOURCE_BYTES {
            return None;
        }
        Some(String::from_utf8_lossy(&std::fs::read(path).ok()?).into_owned())
    }
}

/// Directories below the root that are projects of their own.
fn inner_projects(paths: &[String]) -> Vec<String> {
    let of = |path: &String| {
        let (directory, name) = path.rsplit_once('/')?;
        ["pyproject.toml", "setup.py"].contains(&name).then(|| format!("{directory}/"))
    };
    paths.iter().filter_map(of).collect()
}

fn role(path: &str) -> Role {
    let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
    let parts = || directory.split('/');
    if parts().any(|part| ASIDE.iter().any(|aside| part.eq_ignore_ascii_case(aside))) {
        return Role::Aside;
    }
    let is_test_file = name.starts_with("test_") || name == "conftest.py" || name.ends_with("_test.py");
    if is_test_file || parts().any(|part| TESTS.iter().any(|tests| part.eq_ignore_ascii_case(tests))) {
        return Role::Test;
    }
    Role::Product
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_roles_by_their_places() {
        assert_eq!(role("pkg/_native.c"), Role::Product);
        assert_eq!(role("csrc/Third_Party/x.h"), Role::Aside);
        assert_eq!(role("pkg/tests/data/x.cu"), Role::Test);
        assert_eq!(role("conftest.py"), Role::Test);
        assert_eq!(role("docs/tests/x.py"), Role::Aside);
    }
}
