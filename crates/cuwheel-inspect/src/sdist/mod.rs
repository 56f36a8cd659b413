//! Source distributions: gzip-compressed tar archives with one folder at the top.
//!
//! Source of the format: "Source distribution format". Building from one is not done here, nor is its PKG-INFO read.

mod error;
mod stream;

use std::collections::HashMap;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};

pub use error::{SdistError, SdistFault};
use stream::{CheckedEntry, Content};

use crate::archive::for_each_block;
use crate::digest::{Sha256Digest, StreamHasher};
use crate::version::Version;

/// A source distribution whose every entry was read and checked.
#[derive(Debug, Clone)]
pub struct Sdist {
    path: PathBuf,
    name: String,
    version: String,
    top: String,
    entries: Vec<SdistEntry>,
}

/// A file, directory or link in a source distribution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SdistEntry {
    path: String,
    mode: u32,
    kind: SdistEntryKind,
}

/// What an entry is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SdistEntryKind {
    /// A directory.
    Directory,
    /// A file; a hard link is given as a file of its own.
    File {
        /// The size of the contents.
        size_bytes: u64,
        /// The hash of the contents.
        sha256: Sha256Digest,
    },
    /// A symbolic link within the top folder.
    Symlink {
        /// Where it leads, relative to its own directory.
        target: String,
    },
}

impl SdistEntry {
    /// The path below the top folder.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The permission bits, such as `0o644`.
    #[must_use]
    pub fn mode(&self) -> u32 {
        self.mode
    }

    /// What it is.
    #[must_use]
    pub fn kind(&self) -> &SdistEntryKind {
        &self.kind
    }

    /// The size of a file's contents; 0 for all else.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        match self.kind {
            SdistEntryKind::File { size_bytes, .. } => size_bytes,
            _ => 0,
        }
    }

    /// The hash of a file's contents.
    #[must_use]
    pub fn sha256(&self) -> Option<Sha256Digest> {
        match self.kind {
            SdistEntryKind::File { sha256, .. } => Some(sha256),
            _ => None,
        }
    }
}

impl Sdist {
    /// Reads the source distribution at `path`.
    pub fn open(path: &Path) -> Result<Self, SdistError> {
        Self::read(path).map_err(|fault| SdistError::new(path.display().to_string(), fault))
    }

    fn read(path: &Path) -> Result<Self, SdistFault> {
        let file_name = path.file_name().and_then(|name| name.to_str()).ok_or(SdistFault::FileName)?;
        let stem = file_name.strip_suffix(".tar.gz").ok_or(SdistFault::FileName)?;
        let (name, version) = stem.rsplit_once('-').ok_or(SdistFault::FileName)?;
        if name.is_empty() {
            return Err(SdistFault::FileName);
        }
        version.parse::<Version>()?;
        let mut entries: Vec<SdistEntry> = Vec::new();
        let mut positions: HashMap<String, usize> = HashMap::new();
        let top = stream::for_each_entry(path, &mut |entry| {
            let kind = match entry.content {
                Content::Directory => SdistEntryKind::Directory,
                Content::File(contents) => hash(contents).map_err(SdistFault::Read)?,
                Content::Symlink(target) => SdistEntryKind::Symlink { target: target.to_owned() },
                // The stream lets a hard link through only after its target.
                Content::HardLink(target) => entries[positions[target]].kind.clone(),
            };
            positions.insert(entry.path.to_owned(), entries.len());
            entries.push(SdistEntry { path: entry.path.to_owned(), mode: entry.mode & 0o7777, kind });
            Ok(())
        })?;
        Ok(Self { path: path.to_owned(), name: name.to_owned(), version: version.to_owned(), top, entries })
    }

    /// The project's name, as the file name spells it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The version, as the file name spells it.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The name of the folder that holds everything.
    #[must_use]
    pub fn top(&self) -> &str {
        &self.top
    }

    /// Everything below the top folder, in archive order.
    #[must_use]
    pub fn entries(&self) -> &[SdistEntry] {
        &self.entries
    }

    /// The entry at `path` below the top folder.
    #[must_use]
    pub fn entry(&self, path: &str) -> Option<&SdistEntry> {
        self.entries.iter().find(|entry| entry.path == path)
    }

    /// Unpacks the archive below `directory`, which is created if need be, and returns the top folder's path.
    ///
    /// The top folder must not exist yet. Files keep their executable bit and no other permission. When something fails,
    /// what was unpacked is removed again.
    pub fn unpack_to(&self, directory: &Path) -> Result<PathBuf, SdistError> {
        let top = directory.join(&self.top);
        let error = |fault| SdistError::new(self.path.display().to_string(), fault);
        let create = || fs::create_dir_all(directory).and_then(|()| fs::create_dir(&top));
        create().map_err(|source| error(write_fault(&top, source)))?;
        let unpacked = stream::for_each_entry(&self.path, &mut |entry| unpack_entry(&top, entry));
        match unpacked {
            Ok(_) => Ok(top),
            Err(fault) => {
                // The first error says more than a second one about cleaning up.
                let _ = fs::remove_dir_all(&top);
                Err(error(fault))
            }
        }
    }
}

fn hash(contents: &mut dyn Read) -> io::Result<SdistEntryKind> {
    let mut hasher = StreamHasher::new(&[]);
    let mut size_bytes = 0;
    for_each_block(contents, |bytes| {
        size_bytes += bytes.len() as u64;
        hasher.update(bytes);
    })?;
    Ok(SdistEntryKind::File { size_bytes, sha256: hasher.finish().sha256 })
}

fn unpack_entry(top: &Path, entry: CheckedEntry<'_>) -> Result<(), SdistFault> {
    // The archive may have been replaced since it was opened: everything goes to the folder that was made for it.
    if Path::new(entry.top) != Path::new(top.file_name().unwrap_or_default()) {
        let (name, top) = (entry.path.to_owned(), entry.top.to_owned());
        return Err(SdistFault::OutsideTop { name, top });
    }
    let target = top.join(entry.path);
    let write = || -> io::Result<()> {
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent)?;
        }
        match entry.content {
            Content::Directory => fs::create_dir_all(&target),
            Content::Symlink(link) => symlink(link, &target),
            Content::HardLink(earlier) => fs::copy(top.join(earlier), &target).map(drop),
            Content::File(contents) => {
                let mode = if entry.mode & 0o111 == 0 { 0o644 } else { 0o755 };
                let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&target)?;
                io::copy(contents, &mut file).map(drop)
            }
        }
    };
    write().map_err(|source| write_fault(&target, source))
}

fn write_fault(path: &Path, source: io::Error) -> SdistFault {
    SdistFault::Write { path: path.display().to_string(), source }
}
