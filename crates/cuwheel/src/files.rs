//! The one seam to files: atomic writes, hashes, copies, and files that name their paths in errors.
//!
//! Not for archives: [`cuwheel_inspect`] reads them and [`crate::wheel_writer`] writes them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
pub use cuwheel_inspect::size::human_size;
use fs_err as fs;
use sha2::{Digest as _, Sha256};

use crate::error::{Failure, Result};

/// Writes a file in one step: readers see the old content or the new one, never a part.
pub fn write_atomically(path: &Path, content: &[u8]) -> Result<()> {
    let directory = path.parent().context("a file has a parent directory")?;
    fs::create_dir_all(directory)?;
    let mut file = tempfile::Builder::new()
        .prefix(".tmp-")
        .permissions(std::fs::Permissions::from_mode(0o644))
        .tempfile_in(directory)
        .with_context(|| format!("creating a file in {}", directory.display()))?;
    std::io::Write::write_all(&mut file, content).with_context(|| format!("writing {}", path.display()))?;
    // After a power cut the name must not stand for an empty file.
    file.as_file().sync_all().with_context(|| format!("writing {}", path.display()))?;
    file.persist(path).with_context(|| format!("writing {}", path.display()))?;
    Ok(())
}

/// Writes a file in one step, and only when its content changes.
pub fn write_if_changed(path: &Path, content: &[u8]) -> Result<bool> {
    if fs::read(path).is_ok_and(|old| old == content) {
        return Ok(false);
    }
    write_atomically(path, content)?;
    Ok(true)
}

/// The name beside a file under which its next content is written, before it takes the file's place.
fn in_the_making(path: &Path) -> Result<PathBuf> {
    let mut name = std::ffi::OsString::from(".cuwheel-new-");
    name.push(path.file_name().with_context(|| format!("{} names no file", path.display()))?);
    Ok(path.with_file_name(name))
}

/// Gives `path` a content, in a directory that belongs to others. A process that has the old file open or mapped keeps it,
/// a link is replaced and what it leads to is not touched, and what a killed process left is removed by the next one.
/// Whether anything changed is returned.
pub fn replace(path: &Path, content: &[u8], mode: u32) -> Result<bool> {
    let new = in_the_making(path)?;
    if std::fs::symlink_metadata(&new).is_ok() {
        fs::remove_file(&new)?;
    }
    let is_file = std::fs::symlink_metadata(path).is_ok_and(|data| data.is_file());
    if is_file && fs::read(path).is_ok_and(|old| old == content) {
        return Ok(false);
    }
    if path.is_dir() && !path.is_symlink() {
        return Err(Failure::usage(format!("{} is a directory, where a file has to be", path.display()))
            .remedy("move it out of the way")
            .into());
    }
    fs::create_dir_all(path.parent().context("a file has a parent directory")?)?;
    let mut file = fs::File::create_new(&new)?;
    std::io::Write::write_all(&mut file, content).with_context(|| format!("writing {}", new.display()))?;
    fs::set_permissions(&new, std::fs::Permissions::from_mode(mode))?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    Ok(true)
}

/// Copies a file in one step.
pub fn copy_atomically(from: &Path, to: &Path) -> Result<()> {
    write_atomically(to, &fs::read(from)?)
}

/// The SHA-256 of bytes, in lower-case hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// The SHA-256 of a file, read in pieces.
pub fn sha256_of_file(path: &Path) -> Result<String> {
    let mut file = fs::File::open(path)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            return Ok(hex(&hasher.finalize()));
        }
        hasher.update(&buffer[..count]);
    }
}

/// Bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A name for what is told apart by `bytes`, such as a path: short, and good for a file.
pub fn key(bytes: &[u8]) -> String {
    sha256(bytes)[..24].to_owned()
}

/// A path with its symbolic links followed; as it is where they lead nowhere.
pub fn resolved(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf())
}

/// Whether two paths lead to the same place.
pub fn is_same(one: &Path, other: &Path) -> bool {
    one == other || resolved(one) == resolved(other)
}

/// Whether a path is a file that may be executed.
pub fn is_executable(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

/// A path as text; a path that is no UTF-8 is refused, since Python tools and manifests cannot carry it.
pub fn utf8(path: &Path) -> Result<&str> {
    path.to_str().ok_or_else(|| {
        Failure::usage(format!("the path {} is not valid UTF-8", path.display()))
            .remedy("move the project to a directory whose name is valid UTF-8")
            .into()
    })
}

/// An absolute path that keeps symbolic links: a virtual environment behind a link must not turn into its target.
pub fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).with_context(|| format!("resolving {}", path.display()))
}

/// Caches, which no copy needs.
const NEVER_COPIED: &[&str] = &["__pycache__", ".git", ".pytest_cache", ".hypothesis", ".mypy_cache", ".ruff_cache"];

/// Copies a directory tree without caches. Links are followed; those that lead nowhere or in a circle are left out.
pub fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    copy_below(from, to, &mut vec![fs::canonicalize(from)?])
}

fn copy_below(from: &Path, to: &Path, above: &mut Vec<PathBuf>) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        let (source, target) = (entry.path(), to.join(&name));
        if NEVER_COPIED.iter().any(|never| name == *never) {
            continue;
        }
        let Ok(data) = std::fs::metadata(&source) else { continue };
        if data.is_dir() {
            let resolved = fs::canonicalize(&source)?;
            if !above.contains(&resolved) {
                above.push(resolved);
                copy_below(&source, &target, above)?;
                above.pop();
            }
        } else if data.is_file() {
            fs::copy(&source, &target)?;
        }
    }
    Ok(())
}

/// The contents of the files of a directory tree without caches, by path in it.
pub fn read_tree(directory: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut contents = BTreeMap::new();
    read_below(directory, "", &mut contents)?;
    Ok(contents)
}

fn read_below(directory: &Path, prefix: &str, contents: &mut BTreeMap<String, Vec<u8>>) -> Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let path = entry.path();
        let name = entry.file_name();
        if NEVER_COPIED.iter().any(|never| name == *never) {
            continue;
        }
        let inner = format!("{prefix}{}", utf8(Path::new(&name))?);
        if entry.file_type()?.is_dir() {
            read_below(&path, &format!("{inner}/"), contents)?;
        } else {
            contents.insert(inner, fs::read(&path)?);
        }
    }
    Ok(())
}

/// Whether a path stays inside the directory that it is relative to.
pub fn is_inside(path: &str) -> bool {
    let stays = |part| matches!(part, std::path::Component::Normal(_) | std::path::Component::CurDir);
    !path.is_empty() && Path::new(path).components().all(stays)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_atomic_write_leaves_no_temporary_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("deep/er/file");
        write_atomically(&path, b"one").unwrap();
        assert!(!write_if_changed(&path, b"one").unwrap());
        assert!(write_if_changed(&path, b"two").unwrap());
        let names: Vec<_> =
            fs::read_dir(path.parent().unwrap()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["file"]);
        assert_eq!(fs::read(&path).unwrap(), b"two");
    }

    #[test]
    fn replacing_a_link_leaves_what_it_leads_to() {
        let directory = tempfile::tempdir().unwrap();
        let (path, target) = (directory.path().join("lib.so"), directory.path().join("target"));
        fs::write(&target, "of others").unwrap();
        std::os::unix::fs::symlink(&target, &path).unwrap();
        // A killed process left its file.
        fs::write(in_the_making(&path).unwrap(), "half").unwrap();
        assert!(replace(&path, b"new", 0o755).unwrap());
        assert!(!replace(&path, b"new", 0o755).unwrap());
        assert_eq!((fs::read(&path).unwrap(), fs::read(&target).unwrap()), (b"new".to_vec(), b"of others".to_vec()));
        assert!(!path.is_symlink() && is_executable(&path) && !in_the_making(&path).unwrap().exists());
        // Whoever has the old file keeps it.
        let mut old = fs::File::open(&path).unwrap();
        replace(&path, b"newer", 0o755).unwrap();
        let mut text = String::new();
        old.read_to_string(&mut text).unwrap();
        assert_eq!(text, "new");
        std::os::unix::fs::symlink("/no/where", directory.path().join("dangling")).unwrap();
        assert!(replace(&directory.path().join("dangling"), b"new", 0o755).unwrap());
    }

    #[test]
    fn a_tree_is_copied_without_caches_and_without_links_that_lead_nowhere() {
        let directory = tempfile::tempdir().unwrap();
        let (from, to) = (directory.path().join("from"), directory.path().join("to"));
        write_atomically(&from.join("inner/file"), b"x").unwrap();
        write_atomically(&from.join("__pycache__/x.pyc"), b"x").unwrap();
        std::os::unix::fs::symlink("/no/where", from.join(".#file")).unwrap();
        std::os::unix::fs::symlink("..", from.join("inner/circle")).unwrap();
        std::os::unix::fs::symlink("inner/file", from.join("link")).unwrap();
        copy_tree(&from, &to).unwrap();
        let mut names: Vec<_> = fs::read_dir(&to).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["inner", "link"]);
        assert!(!to.join("inner/circle").exists() && to.join("link").is_file());
    }

    #[test]
    fn only_relative_paths_without_parents_stay_inside() {
        let inside: Vec<_> = ["tests", "./a/b", "..", "a/../../b", "/tmp", ""].map(is_inside).to_vec();
        assert_eq!(inside, [true, true, false, false, false, false]);
    }

    #[test]
    fn the_hash_of_a_file_is_the_hash_of_its_bytes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        fs::write(&path, b"abc").unwrap();
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!((sha256(b"abc").as_str(), sha256_of_file(&path).unwrap().as_str()), (expected, expected));
    }
}
