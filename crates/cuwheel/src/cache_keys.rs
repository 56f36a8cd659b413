//! uv's cache keys: whether `uv sync` notices that a source changed.
//!
//! uv builds an installed project again when a file that `tool.uv.cache-keys` names is newer; without the setting that is
//! pyproject.toml alone. Not for deciding anything here: the tool's own commands go by content.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use toml_edit::DocumentMut;

use crate::develop::inputs;
use crate::error::{Failure, Result};
use crate::project::Project;
use crate::sources;

/// What uv looks at where nothing is said.
const DEFAULTS: &[&str] = &["pyproject.toml", "setup.py", "setup.cfg"];

/// Files that a build reads and that uv would not notice; sorted, by path in the project.
pub fn unnoticed(project: &Project) -> Result<Vec<PathBuf>> {
    let keys = keys(&project.root.join("pyproject.toml"))?;
    let mut read: BTreeSet<PathBuf> = inputs::known(project)?;
    for directory in project.manifest.crate_directories()? {
        let crate_files = sources::walk(project, &directory, true)?;
        read.extend(crate_files.into_iter().filter(|file| is_compiled_rust(&directory, file)));
    }
    let inside = read.iter().filter(|path| path.is_file()).filter_map(|path| path.strip_prefix(&project.root).ok());
    Ok(inside.filter(|path| !keys.is_match(path)).map(Path::to_path_buf).collect())
}

/// Whether the project is used with uv at all.
pub fn is_used(project: &Project) -> bool {
    let names_uv = || {
        let text = std::fs::read_to_string(project.root.join("pyproject.toml")).unwrap_or_default();
        text.parse::<DocumentMut>().is_ok_and(|document| document.get("tool").and_then(|tool| tool.get("uv")).is_some())
    };
    project.root.join("uv.lock").is_file() || names_uv()
}

/// Refuses a project whose changes uv would not notice.
pub fn check(project: &Project) -> Result<()> {
    let unnoticed = unnoticed(project)?;
    if unnoticed.is_empty() {
        return Ok(());
    }
    Err(Failure::failed("`uv sync` would not notice changes of files that the build reads")
        .details(unnoticed.iter().take(8).map(|path| path.display().to_string()))
        .remedy(format!("add to tool.uv.cache-keys in pyproject.toml: {}", suggestions(&unnoticed).join(", ")))
        .into())
}

/// The keys that cover files, as they are written.
pub fn suggestions(files: &[PathBuf]) -> Vec<String> {
    suggested_patterns(files).iter().map(|pattern| format!("{{ file = \"{pattern}\" }}")).collect()
}

/// The patterns that cover files, as few as they can be without naming a whole project.
pub fn suggested_patterns(files: &[PathBuf]) -> Vec<String> {
    let pattern = |path: &PathBuf| {
        let top = path.iter().next().unwrap_or_default().to_string_lossy().into_owned();
        match path.extension() {
            Some(extension) if path.components().count() > 1 => format!("{top}/**/*.{}", extension.to_string_lossy()),
            _ => path.display().to_string(),
        }
    };
    files.iter().map(pattern).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Whether a file below a crate is a source of it: tests are not, nor are the sources of a crate inside, such as an xtask.
fn is_compiled_rust(crate_directory: &Path, file: &Path) -> bool {
    let inside = file.strip_prefix(crate_directory).unwrap_or(file);
    file.extension().is_some_and(|extension| extension == "rs")
        && !["tests", "benches", "examples"].iter().any(|directory| inside.starts_with(directory))
        && !file
            .ancestors()
            .skip(1)
            .take_while(|directory| *directory != crate_directory)
            .any(|directory| directory.join("Cargo.toml").is_file())
}

/// The files that uv looks at.
fn keys(pyproject: &Path) -> Result<GlobSet> {
    let text = fs_err::read_to_string(pyproject)?;
    let document: DocumentMut = text.parse().map_err(|error| {
        Failure::usage(format!("{} is not valid TOML", pyproject.display())).detail(format!("{error}").trim())
    })?;
    let given = document.get("tool").and_then(|tool| tool.get("uv")?.get("cache-keys")?.as_array());
    let patterns: Vec<String> = match given {
        // Keys of other kinds name directories, variables or commits, and no content.
        Some(keys) => keys
            .iter()
            .filter_map(|key| key.as_str().or_else(|| key.as_inline_table()?.get("file")?.as_str()))
            .map(str::to_owned)
            .collect(),
        None => DEFAULTS.iter().map(ToString::to_string).collect(),
    };
    let mut set = GlobSetBuilder::new();
    for pattern in &patterns {
        let glob = GlobBuilder::new(pattern).literal_separator(true).build();
        set.add(glob.map_err(|error| Failure::usage(format!("tool.uv.cache-keys holds no pattern: {error}")))?);
    }
    Ok(set.build()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files;

    fn project(directory: &Path, keys: &str) -> Project {
        let write = |name: &str, text: &str| files::write_atomically(&directory.join(name), text.as_bytes()).unwrap();
        write(
            "pyproject.toml",
            &format!(
                "[build-system]\nrequires = []\nbuild-backend = 'maturin'\n[project]\nname = 'p'\nversion = '1'\n{keys}"
            ),
        );
        write("Cargo.toml", "[package]\nname = 'p'\n[dependencies]\nother = { path = 'crates/other' }\n");
        write("Cargo.lock", "");
        write("crates/other/Cargo.toml", "[package]\nname = 'other'\n");
        for source in
            ["src/lib.rs", "build.rs", "crates/other/src/lib.rs", "src/shim.c", "src/kernel.cu", "src/deep/k.cuh"]
        {
            write(source, "");
        }
        write("tests/it.rs", "");
        write("xtask/Cargo.toml", "[package]\nname = 'xtask'\n");
        write("xtask/src/main.rs", "");
        Project::open(directory).unwrap()
    }

    #[test]
    fn pk_39_every_source_has_to_be_covered() {
        let directory = tempfile::tempdir().unwrap();
        let bare = unnoticed(&project(directory.path(), "")).unwrap();
        let text: Vec<String> = bare.iter().map(|path| path.display().to_string()).collect();
        assert_eq!(
            text,
            [
                "Cargo.lock",
                "Cargo.toml",
                "build.rs",
                "crates/other/Cargo.toml",
                "crates/other/src/lib.rs",
                "src/deep/k.cuh",
                "src/kernel.cu",
                "src/lib.rs",
                "src/shim.c"
            ]
        );
        // What is suggested is enough.
        let keys = suggestions(&bare).join(", ");
        let keys = format!("[tool.uv]\ncache-keys = [{{ file = 'pyproject.toml' }}, {keys}]\n");
        assert_eq!(unnoticed(&project(directory.path(), &keys)).unwrap(), Vec::<PathBuf>::new());
        // A pattern without ** does not reach further down.
        let keys = "[tool.uv]\ncache-keys = [{ file = 'src/*' }, { env = 'CC' }, { git = { commit = true } }]\n";
        assert!(unnoticed(&project(directory.path(), keys)).unwrap().contains(&PathBuf::from("src/deep/k.cuh")));
    }
}
