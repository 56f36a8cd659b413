//! Which files a build reads, and one hash over their contents.
//!
//! Not for deciding what goes into a wheel or an sdist: maturin does that.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use cuwheel_inspect::wheel::Wheel;
use ignore::WalkBuilder;
use sha2::{Digest as _, Sha256};

use crate::cargo_config::CargoConfig;
use crate::error::Result;
use crate::files;
use crate::project::Project;
use crate::requirements::Lock;

/// Extensions of what a C, C++ or CUDA compiler reads.
const NATIVE_EXTENSIONS: &[&str] = &["c", "cc", "cpp", "cxx", "h", "hh", "hpp", "hxx", "inc", "cu", "cuh"];

/// Python files at the root that a build runs.
const BUILD_SCRIPTS: &[&str] = &["setup.py", "build.py"];

/// Directories that hold nothing of the project, wherever they are.
const NEVER_READ: &[&str] = &["__pycache__", ".git", ".venv", "node_modules"];

/// The C, C++ and CUDA sources of the crates that are compiled, and the build scripts at the root; sorted.
pub fn native_sources(project: &Project) -> Result<Vec<PathBuf>> {
    let mut found = BTreeSet::new();
    for directory in project.manifest.crate_directories()? {
        for file in walk(project, &directory, true)? {
            let inside = file.strip_prefix(&directory).unwrap_or(&file);
            if is_native_source(&file) && !inside.starts_with("tests") {
                found.insert(file);
            }
        }
    }
    found.extend(BUILD_SCRIPTS.iter().map(|name| project.root.join(name)).filter(|path| path.is_file()));
    Ok(found.into_iter().collect())
}

/// Whether a file is one that a C, C++ or CUDA compiler reads.
pub fn is_native_source(file: &Path) -> bool {
    file.extension().is_some_and(|extension| NATIVE_EXTENSIONS.iter().any(|known| extension == *known))
}

/// Whether C, C++ or CUDA sources are compiled, which include `Python.h`.
pub fn has_native_sources(project: &Project) -> Result<bool> {
    Ok(native_sources(project)?.iter().any(|file| !is_build_script(file)))
}

/// Whether a file is one of the Python files that a build runs.
pub fn is_build_script(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "py")
}

/// Everything that a build of the project is known to read before it ran; sorted.
fn build_inputs(project: &Project) -> Result<BTreeSet<PathBuf>> {
    let mut inputs: BTreeSet<PathBuf> = walk(project, &project.root, true)?.into_iter().collect();
    for directory in project.manifest.crate_directories()? {
        if !directory.starts_with(&project.root) {
            inputs.extend(walk(project, &directory, true)?);
        }
    }
    // Versions, profiles and flags are decided here, above the project too, whether git ignores the files or not.
    let workspace = ["Cargo.lock", "Cargo.toml"].map(|name| project.manifest.workspace_root().join(name));
    inputs.extend(workspace.into_iter().filter(|path| path.is_file()));
    inputs.extend(CargoConfig::read(&project.root)?.into_paths());
    // Generated files that git ignores, such as compiled kernels, belong to the package all the same.
    if project.python_source != project.root && project.python_source.is_dir() {
        let packaged = walk(project, &project.python_source, false)?;
        inputs.extend(packaged.into_iter().filter(|file| !is_compiled(file)));
    }
    // The lock of the build is part of its environment, and those of the tests come and go with tests.
    let locks: BTreeSet<PathBuf> = Lock::all(project)?.into_iter().map(|lock| lock.path).collect();
    // The library of an editable install is a result, whether git ignores it or not.
    inputs.retain(|input| !locks.contains(input) && !is_own_library(project, input));
    Ok(inputs)
}

/// A hash over the paths and contents of every input. Times of modification do not count.
pub fn fingerprint(project: &Project) -> Result<String> {
    Ok(hash_of_files(project, build_inputs(project)?.iter()))
}

/// A hash over the paths and contents of files. One that is absent is an input too: its name alone says so.
pub fn hash_of_files<'a>(project: &Project, paths: impl Iterator<Item = &'a PathBuf>) -> String {
    let mut hasher = Sha256::new();
    for file in paths {
        let name = file.strip_prefix(&project.root).unwrap_or(file);
        hasher.update(name.as_os_str().as_encoded_bytes());
        hasher.update([0]);
        if let Ok(content) = std::fs::read(file) {
            // Wheels keep what may be executed.
            hasher.update([u8::from(files::is_executable(file))]);
            hasher.update(u64::try_from(content.len()).unwrap_or(u64::MAX).to_le_bytes());
            hasher.update(&content);
        }
    }
    files::hex(&hasher.finalize())
}

/// What a build read beside the inputs that are known before it runs. Cargo noted files that git ignores and that are
/// included, files outside of the project, and what build scripts named; the wheel shows data that git ignores, packaged
/// under its own name. Sorted.
pub fn further_inputs(project: &Project, profile_directories: &[PathBuf], wheel: &Wheel) -> Result<Vec<PathBuf>> {
    let known = build_inputs(project)?;
    let mut noted = BTreeSet::new();
    for directory in profile_directories {
        let Ok(entries) = std::fs::read_dir(directory) else { continue };
        let notes = entries.flatten().map(|entry| entry.path());
        for note in notes.filter(|path| path.extension().is_some_and(|extension| extension == "d")) {
            noted.extend(noted_in(project, &note)?);
        }
    }
    let packaged = wheel.entries().iter().flat_map(|entry| origins(project, entry.path()));
    let mut files: BTreeSet<PathBuf> = packaged.filter(|file| !is_compiled(file)).collect();
    files.extend(noted);
    let is_result = |path: &PathBuf| path.starts_with(&project.target_directory);
    Ok(files.into_iter().filter(|path| path.is_file() && !known.contains(path) && !is_result(path)).collect())
}

/// Where a file of a wheel may have come from, by its path there.
pub fn origins(project: &Project, entry: &str) -> Vec<PathBuf> {
    let mut origins = vec![project.python_source.join(entry), project.root.join(entry)];
    // What is installed elsewhere than into site-packages is kept in a directory that maturin knows by its name, or by a
    // setting of its own.
    if let Some((_, rest)) = entry.split_once(".data/") {
        let entries = std::fs::read_dir(&project.root).into_iter().flatten().flatten().map(|entry| entry.path());
        let data = entries.filter(|path| path.extension().is_some_and(|extension| extension == "data"));
        origins.extend(data.map(|directory| directory.join(rest)));
    }
    origins
}

/// What cargo noted in a file that one of its targets was made from, the files that build scripts named with it.
pub fn noted_in(project: &Project, note: &Path) -> Result<BTreeSet<PathBuf>> {
    let mut files = BTreeSet::new();
    // The notes of cargo are only as good as they can be read; what is unreadable says nothing.
    for path in prerequisites(&std::fs::read_to_string(note).unwrap_or_default()) {
        // A build script may name a whole directory.
        if path.is_dir() {
            files.extend(walk(project, &path, false)?);
        } else {
            files.insert(path);
        }
    }
    Ok(files)
}

/// The environment variables that build scripts asked cargo to watch; sorted.
pub fn variables_noted_by_cargo(profile_directories: &[PathBuf]) -> Vec<String> {
    let mut noted = BTreeSet::new();
    let scripts = profile_directories.iter().filter_map(|directory| std::fs::read_dir(directory.join("build")).ok());
    for script in scripts.flatten().flatten() {
        let output = std::fs::read_to_string(script.path().join("output")).unwrap_or_default();
        for line in output.lines() {
            let line = line.strip_prefix("cargo::").or_else(|| line.strip_prefix("cargo:")).unwrap_or_default();
            noted.extend(line.strip_prefix("rerun-if-env-changed=").map(str::to_owned));
        }
    }
    // What `env!` and `option_env!` read.
    let notes = profile_directories.iter().filter_map(|directory| std::fs::read_dir(directory.join("deps")).ok());
    let notes = notes.flatten().flatten().map(|entry| entry.path());
    for note in notes.filter(|path| path.extension().is_some_and(|extension| extension == "d")) {
        let text = std::fs::read_to_string(note).unwrap_or_default();
        let names = text.lines().filter_map(|line| line.strip_prefix("# env-dep:")?.split('=').next());
        // Cargo sets its own for each crate.
        noted.extend(names.filter(|name| !name.starts_with("CARGO")).map(str::to_owned));
    }
    noted.remove("OUT_DIR");
    noted.into_iter().collect()
}

/// The prerequisites in a rule of make, as cargo writes it: separated by spaces, with spaces in names escaped.
fn prerequisites(rule: &str) -> Vec<PathBuf> {
    let Some((_, list)) = rule.lines().next().unwrap_or_default().split_once(": ") else { return Vec::new() };
    list.replace("\\ ", "\0").split(' ').map(|name| PathBuf::from(name.replace('\0', " "))).collect()
}

fn is_compiled(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "so" || extension == "pyc")
}

/// Whether a file among the Python sources is the project's own native library, whatever Python it was built for.
fn is_own_library(project: &Project, file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let name = name.strip_suffix(".so").and_then(|name| name.strip_prefix(&project.manifest.library_name()));
    file.starts_with(&project.python_source) && name.is_some_and(|suffix| suffix.is_empty() || suffix.starts_with('.'))
}

/// The files below a directory, without results of builds; those that git ignores only when asked for.
pub fn walk(project: &Project, directory: &Path, respect_ignore_files: bool) -> Result<Vec<PathBuf>> {
    let results = [project.dist(), project.target_directory.clone(), project.root.join("target")];
    let walker = WalkBuilder::new(directory)
        .hidden(false)
        .parents(false)
        .git_global(false)
        .git_exclude(false)
        .ignore(false)
        .git_ignore(respect_ignore_files)
        .require_git(false)
        .filter_entry(move |entry| {
            let never = NEVER_READ.iter().any(|never| entry.file_name() == *never);
            entry.depth() == 0 || !(never || results.iter().any(|result| entry.path() == result))
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
    use cuwheel_inspect::testing::WheelBuilder;

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
        write("python/p/p.abi3.so", "a result that git does not ignore");
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
        touch("python/p/p.abi3.so", "another result");
        assert_eq!(fingerprint(&project).unwrap(), first, "no input changed");
        touch("python/p/kernel.ptx", "changed");
        let second = fingerprint(&project).unwrap();
        assert_ne!(second, first, "a packaged file changed");
        // Only results are left out by their place, not whatever has their name.
        files::write_atomically(&directory.path().join("src/target/mod.rs"), b"").unwrap();
        assert_ne!(fingerprint(&project).unwrap(), second, "a source was added");
    }

    #[test]
    fn what_cargo_noted_is_read_with_its_escapes() {
        let directory = tempfile::tempdir().unwrap();
        let project = project(directory.path());
        let root = directory.path().display().to_string();
        let outside = tempfile::NamedTempFile::with_prefix("out side").unwrap();
        let noted = [
            format!("{root}/target/release/out.rs"),
            format!("{root}/src/lib.rs"),
            format!("{root}/notes"),
            outside.path().display().to_string(),
        ];
        let rule = format!("{root}/target/release/lib.so: {}\n", noted.map(|name| name.replace(' ', "\\ ")).join(" "));
        files::write_atomically(&directory.path().join("target/release/lib.d"), rule.as_bytes()).unwrap();
        let name = "p-1-py3-none-any.whl";
        let wheel =
            WheelBuilder::new(name).file("p/kernel.ptx", "").file("p/absent.ptx", "").file("extra.ptx", "").build();
        files::write_atomically(&directory.path().join("extra.ptx"), b"packaged").unwrap();
        let wheel = Wheel::from_bytes(name, wheel).unwrap();
        let found = further_inputs(&project, &[directory.path().join("target/release")], &wheel).unwrap();
        let mut expected =
            [outside.path().to_path_buf(), directory.path().join("notes"), directory.path().join("extra.ptx")];
        expected.sort();
        assert_eq!(found, expected, "known inputs and results are not repeated");
    }

    #[test]
    fn variables_that_build_scripts_watch_are_read_from_their_output() {
        let directory = tempfile::tempdir().unwrap();
        let output =
            "cargo:rerun-if-env-changed=OLD\ncargo::rerun-if-env-changed=NEW\ncargo:warning=rerun-if-env-changed=NO\n";
        files::write_atomically(&directory.path().join("build/x-1/output"), output.as_bytes()).unwrap();
        let note = "x.d: src/lib.rs\n\n# env-dep:READ=value\n# env-dep:CARGO_PKG_NAME=x\n# env-dep:OUT_DIR=/x\n";
        files::write_atomically(&directory.path().join("deps/x-1.d"), note.as_bytes()).unwrap();
        assert_eq!(variables_noted_by_cargo(&[directory.path().to_path_buf()]), ["NEW", "OLD", "READ"]);
    }

    #[test]
    fn native_sources_are_those_of_compiled_crates_without_their_tests() {
        let directory = tempfile::tempdir().unwrap();
        let project = project(directory.path());
        assert_eq!(native_sources(&project).unwrap(), [directory.path().join("src/shim.c")]);
    }
}
