//! Which files a build reads, and one hash over their contents.
//!
//! Not for deciding what goes into a wheel or an sdist: maturin does that.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use ignore::WalkBuilder;
use sha2::{Digest as _, Sha256};

use crate::error::Result;
use crate::files;
use crate::project::Project;
use crate::requirements::Lock;

/// Extensions of what a C, C++ or CUDA compiler reads.
const NATIVE_EXTENSIONS: &[&str] = &["c", "cc", "cpp", "cxx", "h", "hh", "hpp", "hxx", "inc", "cu", "cuh"];

/// Python files at the root that a build runs.
const BUILD_SCRIPTS: &[&str] = &["setup.py", "build.py"];

/// Directories that hold results and not sources, whatever `.gitignore` says.
const RESULT_DIRECTORIES: &[&str] = &["dist", "target", "__pycache__", ".git", ".venv", "node_modules"];

/// The C, C++ and CUDA sources of the crates that are compiled, and the build scripts at the root; sorted.
pub fn native_sources(project: &Project) -> Result<Vec<PathBuf>> {
    let mut found = BTreeSet::new();
    for directory in project.manifest.crate_directories()? {
        for file in walk(&directory, true)? {
            let is_native =
                file.extension().is_some_and(|extension| NATIVE_EXTENSIONS.iter().any(|known| extension == *known));
            let inside = file.strip_prefix(&directory).unwrap_or(&file);
            if is_native && !inside.starts_with("tests") {
                found.insert(file);
            }
        }
    }
    found.extend(BUILD_SCRIPTS.iter().map(|name| project.root.join(name)).filter(|path| path.is_file()));
    Ok(found.into_iter().collect())
}

/// Everything that a build of the project may read; sorted.
fn build_inputs(project: &Project) -> Result<BTreeSet<PathBuf>> {
    let mut inputs: BTreeSet<PathBuf> = walk(&project.root, true)?.into_iter().collect();
    for directory in project.manifest.crate_directories()? {
        if !directory.starts_with(&project.root) {
            inputs.extend(walk(&directory, true)?);
        }
    }
    // Which versions are compiled is decided here, whether git ignores the file or not.
    inputs.extend(Some(project.manifest.workspace_root().join("Cargo.lock")).filter(|path| path.is_file()));
    // Generated files that git ignores, such as compiled kernels, belong to the package all the same.
    if project.python_source != project.root && project.python_source.is_dir() {
        let packaged = walk(&project.python_source, false)?;
        inputs.extend(packaged.into_iter().filter(|file| !is_compiled(file)));
    }
    // The lock of the build is part of its environment, and those of the tests come and go with tests.
    let locks: BTreeSet<PathBuf> = Lock::all(project)?.into_iter().map(|lock| lock.path).collect();
    inputs.retain(|input| !locks.contains(input));
    Ok(inputs)
}

/// A hash over the paths and contents of every input. Times of modification do not count.
pub fn fingerprint(project: &Project) -> Result<String> {
    let mut hasher = Sha256::new();
    for file in build_inputs(project)? {
        let name = file.strip_prefix(&project.root).unwrap_or(&file);
        hasher.update(name.as_os_str().as_encoded_bytes());
        hasher.update([0]);
        // A file that vanishes while we look is an input that changed; its name alone says so next time.
        if let Ok(content) = std::fs::read(&file) {
            hasher.update(u64::try_from(content.len()).unwrap_or(u64::MAX).to_le_bytes());
            hasher.update(&content);
        }
    }
    Ok(files::hex(&hasher.finalize()))
}

fn is_compiled(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "so" || extension == "pyc")
}

fn walk(directory: &Path, respect_ignore_files: bool) -> Result<Vec<PathBuf>> {
    let walker = WalkBuilder::new(directory)
        .hidden(false)
        .parents(false)
        .git_global(false)
        .git_exclude(false)
        .ignore(false)
        .git_ignore(respect_ignore_files)
        .require_git(false)
        .filter_entry(|entry| {
            let name = entry.file_name();
            entry.depth() == 0 || !RESULT_DIRECTORIES.iter().any(|result| name == *result)
        })
        .build();
    let mut found = Vec::new();
    for entry in walker {
        let entry = entry.with_context(|| format!("reading {}", directory.display()))?;
        if entry.file_type().is_some_and(|kind| kind.is_file() || (kind.is_symlink() && entry.path().is_file())) {
            found.push(entry.into_path());
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(directory: &Path) -> Project {
        let write = |name: &str, text: &str| files::write_atomically(&directory.join(name), text.as_bytes()).unwrap();
        write(
            "pyproject.toml",
            "[build-system]\nrequires = []\nbuild-backend = 'maturin'\n[project]\nname = 'p'\nversion = '1'\n\
             [tool.maturin]\npython-source = 'python'\n",
        );
        write("Cargo.toml", "[package]\nname = 'p'\n");
        write("src/lib.rs", "");
        write("src/shim.c", "#include <numpy/arrayobject.h>\n");
        write("tests/data.c", "#include <torch/extension.h>\n");
        write(".gitignore", "*.ptx\n/notes\n");
        write("notes", "not an input");
        write("python/p/kernel.ptx", "ignored by git, packaged all the same");
        write("dist/p.whl", "a result");
        Project::open(directory).unwrap()
    }

    #[test]
    fn the_fingerprint_follows_contents_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let project = project(directory.path());
        let first = fingerprint(&project).unwrap();
        let touch = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
        touch("src/lib.rs", "");
        touch("dist/p.whl", "another result");
        touch("notes", "changed");
        assert_eq!(fingerprint(&project).unwrap(), first, "no input changed");
        touch("python/p/kernel.ptx", "changed");
        assert_ne!(fingerprint(&project).unwrap(), first, "a packaged file changed");
    }

    #[test]
    fn native_sources_are_those_of_compiled_crates_without_their_tests() {
        let directory = tempfile::tempdir().unwrap();
        let project = project(directory.path());
        assert_eq!(native_sources(&project).unwrap(), [directory.path().join("src/shim.c")]);
    }
}
