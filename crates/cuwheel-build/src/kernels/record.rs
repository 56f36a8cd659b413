//! What a result was made of: a key, and the content of each file that the compiler read.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use sha2::{Digest as _, Sha256};

/// A hash of parts, each with its length before it.
pub(super) struct Digest(Sha256);

impl Digest {
    pub(super) fn new() -> Self {
        Self(Sha256::new())
    }

    pub(super) fn add(&mut self, part: &[u8]) {
        self.0.update((part.len() as u64).to_le_bytes());
        self.0.update(part);
    }

    pub(super) fn finish(self) -> String {
        self.0.finalize().iter().fold(String::new(), |mut text, byte| {
            // Nothing fails in writing to a string.
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}

/// Hashes of files, each read once: most sources read the same few hundred headers.
#[derive(Debug, Default)]
pub(super) struct Contents(Mutex<HashMap<PathBuf, String>>);

impl Contents {
    fn digest_of(&self, path: &Path) -> io::Result<String> {
        if let Some(known) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(path) {
            return Ok(known.clone());
        }
        let mut digest = Digest::new();
        digest.add(&fs::read(path)?);
        let digest = digest.finish();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_path_buf(), digest.clone());
        Ok(digest)
    }
}

/// Where a file is: toolkits in throw-away environments are at another place each time.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Location {
    OfToolkit(PathBuf),
    /// Absolute, or relative to the crate.
    Elsewhere(PathBuf),
}

/// What a result was made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) key: String,
    files: Vec<(Location, String)>,
}

impl Record {
    /// Reads the files.
    pub(super) fn of(
        key: String,
        files: &[PathBuf],
        crate_folder: &Path,
        toolkit: &Path,
        contents: &Contents,
    ) -> io::Result<Self> {
        let described = files.iter().map(|file| {
            let path = crate_folder.join(file);
            let real = path.canonicalize()?;
            let location = match real.strip_prefix(toolkit) {
                Ok(rest) => Location::OfToolkit(rest.to_path_buf()),
                Err(_) => Location::Elsewhere(file.clone()),
            };
            Ok((location, contents.digest_of(&real)?))
        });
        Ok(Self { key, files: described.collect::<io::Result<_>>()? })
    }

    /// Whether every file still has its content.
    pub(super) fn holds(&self, crate_folder: &Path, toolkit: &Path, contents: &Contents) -> bool {
        self.files.iter().all(|(location, digest)| {
            let path = match location {
                Location::OfToolkit(path) => toolkit.join(path),
                Location::Elsewhere(path) => crate_folder.join(path),
            };
            contents.digest_of(&path).is_ok_and(|now| now == *digest)
        })
    }

    /// Files that a person works on: neither the toolkit's nor the system's.
    pub(super) fn headers_of_the_project(&self, crate_folder: &Path) -> Vec<PathBuf> {
        let elsewhere = self.files.iter().filter_map(|(location, _)| match location {
            Location::Elsewhere(path) => Some(crate_folder.join(path)),
            Location::OfToolkit(_) => None,
        });
        elsewhere.filter(|path| !path.starts_with("/usr") || path.starts_with(crate_folder)).collect()
    }

    /// `KEY`, then a line `HASH toolkit|elsewhere PATH` for each file. A path ends at a zero byte, so any path can be told.
    pub(super) fn write(&self, path: &Path) -> io::Result<()> {
        let mut bytes = self.key.as_bytes().to_vec();
        bytes.push(0);
        for (location, digest) in &self.files {
            let (place, file) = match location {
                Location::OfToolkit(file) => ('t', file),
                Location::Elsewhere(file) => ('e', file),
            };
            bytes.extend(format!("{digest}{place}").as_bytes());
            bytes.extend(file.as_os_str().as_bytes());
            bytes.push(0);
        }
        fs::write(path, bytes)
    }

    /// Nothing, if there is none or it is damaged.
    pub(super) fn read(path: &Path) -> Option<Self> {
        let bytes = fs::read(path).ok()?;
        let mut parts = bytes.strip_suffix(b"\0")?.split(|&byte| byte == 0);
        let key = String::from_utf8(parts.next()?.to_vec()).ok()?;
        let files = parts.map(|part| {
            let (digest, rest) = part.split_at_checked(64)?;
            let (place, file) = rest.split_first()?;
            let file = PathBuf::from(OsStr::from_bytes(file));
            let location = match place {
                b't' => Location::OfToolkit(file),
                b'e' => Location::Elsewhere(file),
                _ => return None,
            };
            Some((location, String::from_utf8(digest.to_vec()).ok()?))
        });
        Some(Self { key, files: files.collect::<Option<_>>()? })
    }
}

/// The files of a rule as compilers write it for make: `target : file file\` and so on.
pub(super) fn dependencies(rule: &[u8]) -> Vec<PathBuf> {
    let mut words: Vec<Vec<u8>> = vec![Vec::new()];
    let mut bytes = rule.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        let word = words.last_mut().expect("there is always a last word");
        match (byte, bytes.peek().copied()) {
            (b'\\', Some(next @ (b' ' | b'#' | b'\\'))) | (b'$', Some(next @ b'$')) => {
                word.push(next);
                bytes.next();
            }
            (b'\\', Some(b'\n')) | (b' ' | b'\n' | b'\t', _) => words.push(Vec::new()),
            _ => word.push(byte),
        }
    }
    words.retain(|word| !word.is_empty());
    // The target ends with a colon, or the colon stands by itself.
    let start = words.iter().position(|word| word.ends_with(b":")).map_or(0, |at| at + 1);
    words[start..].iter().map(|word| PathBuf::from(OsStr::from_bytes(word))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_for_make_are_read_with_any_path() {
        let rule = b"out dir/o : a.cu \\\n    /x\\ y/h.h \\\n /\xc3\xa9/b$$.h c\\#.h\n";
        let expected: Vec<PathBuf> = ["a.cu", "/x y/h.h", "/é/b$.h", "c#.h"].map(PathBuf::from).to_vec();
        assert_eq!(dependencies(rule), expected);
        assert_eq!(dependencies(b"o: a.cu\n"), [PathBuf::from("a.cu")]);
    }

    #[test]
    fn a_record_holds_until_a_file_changes_and_wherever_the_toolkit_is() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let write = |name: &str, text: &str| {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for name in ["crate/a b.cu", "one/include/c.h", "two/include/c.h"] {
            write(name, "text");
        }
        let (crate_folder, one, two) = (root.join("crate"), root.join("one"), root.join("two"));
        let files = [PathBuf::from("a b.cu"), one.join("include/c.h")];
        let record = Record::of("k".into(), &files, &crate_folder, &one, &Contents::default()).unwrap();
        record.write(&root.join("record")).unwrap();
        let read = Record::read(&root.join("record")).unwrap();
        assert_eq!(read, record);
        let holds = |toolkit: &Path| read.holds(&crate_folder, toolkit, &Contents::default());
        assert!(holds(&one) && holds(&two));
        assert_eq!(read.headers_of_the_project(&crate_folder), [crate_folder.join("a b.cu")]);
        write("two/include/c.h", "other");
        assert!(!holds(&two) && holds(&one));
        write("record", "damaged");
        assert_eq!(Record::read(&root.join("record")), None);
    }
}
