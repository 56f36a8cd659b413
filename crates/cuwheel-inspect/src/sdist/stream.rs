//! One pass over a gzip-compressed tar archive, with every name and link checked before the visitor sees it.
//!
//! Long names (GNU and pax) are read here and not by the tar library, so that their size has a limit. Everything that is
//! let through can be unpacked into an empty directory in this order without leaving it: parents are real directories,
//! and the target of a link goes up first and never up again, so that no link can be used to climb out.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use tar::{Archive, EntryType, Header, PaxExtensions};

use super::SdistFault;
use crate::path::check_member_name;

const ENTRY_LIMIT: u64 = 1_000_000;
const SIZE_LIMIT_BYTES: u64 = 16 << 30;
/// A path that no file system takes is longer than this.
const EXTENSION_LIMIT_BYTES: u64 = 1 << 20;
const BLOCK_BYTES: u64 = 512;

/// An entry that passed the checks. Paths are relative to the top folder.
pub(super) struct CheckedEntry<'stream> {
    pub(super) top: &'stream str,
    pub(super) path: &'stream str,
    pub(super) mode: u32,
    pub(super) content: Content<'stream>,
}

pub(super) enum Content<'stream> {
    Directory,
    File(&'stream mut dyn Read),
    Symlink(&'stream str),
    /// The path of an earlier file.
    HardLink(&'stream str),
}

/// Hands every entry to `visit` and returns the name of the top folder, which is no entry itself.
pub(super) fn for_each_entry(
    path: &Path,
    visit: &mut dyn FnMut(CheckedEntry<'_>) -> Result<(), SdistFault>,
) -> Result<String, SdistFault> {
    let file = File::open(path).map_err(SdistFault::Read)?;
    let mut archive = Archive::new(MultiGzDecoder::new(BufReader::new(file)));
    let mut layout = Layout::default();
    let mut pending = Pending::default();
    let mut budget = Budget::default();
    for entry in archive.entries().map_err(SdistFault::Read)?.raw(true) {
        let mut entry = entry.map_err(SdistFault::Read)?;
        budget.spend(entry.size())?;
        let header = entry.header().clone();
        if pending.take_extension(&header, &mut entry)? {
            continue;
        }
        let names = std::mem::take(&mut pending).names_of(&header)?;
        let Some(place) = layout.place(&names)? else { continue };
        let mode = header.mode().map_err(SdistFault::Read)?;
        let content = match &place.kind {
            Kind::Directory => Content::Directory,
            Kind::File => Content::File(&mut entry),
            Kind::Symlink(target) => Content::Symlink(target),
            Kind::HardLink(target) => Content::HardLink(target),
        };
        visit(CheckedEntry { top: layout.top(), path: &place.path, mode, content })?;
    }
    drain(archive.into_inner())?;
    layout.top.ok_or(SdistFault::Empty)
}

/// Reads to the end, where gzip keeps its checksum.
fn drain(mut rest: impl Read) -> Result<(), SdistFault> {
    let count = io::copy(&mut rest.by_ref().take(SIZE_LIMIT_BYTES), &mut io::sink()).map_err(SdistFault::Read)?;
    if count == SIZE_LIMIT_BYTES { Err(too_large(SIZE_LIMIT_BYTES, "bytes")) } else { Ok(()) }
}

fn too_large(limit: u64, unit: &'static str) -> SdistFault {
    SdistFault::TooLarge { limit, unit }
}

#[derive(Default)]
struct Budget {
    entries: u64,
    size_bytes: u64,
}

impl Budget {
    fn spend(&mut self, entry_bytes: u64) -> Result<(), SdistFault> {
        self.entries += 1;
        self.size_bytes = self.size_bytes.saturating_add(entry_bytes).saturating_add(BLOCK_BYTES);
        if self.entries > ENTRY_LIMIT {
            return Err(too_large(ENTRY_LIMIT, "entries"));
        }
        if self.size_bytes > SIZE_LIMIT_BYTES {
            return Err(too_large(SIZE_LIMIT_BYTES, "bytes"));
        }
        Ok(())
    }
}

/// What extension entries said about the entry after them.
#[derive(Default)]
struct Pending {
    name: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    size: Option<Vec<u8>>,
    is_sparse: bool,
}

/// The name of an entry and what it is, as written.
struct Names {
    name: String,
    kind: EntryType,
    link: String,
}

impl Pending {
    /// Reads the entry if it describes the next one or the whole archive.
    fn take_extension(&mut self, header: &Header, contents: &mut dyn Read) -> Result<bool, SdistFault> {
        match header.entry_type() {
            EntryType::GNULongName => self.name = Some(without_nul(read_extension(contents)?)),
            EntryType::GNULongLink => self.link = Some(without_nul(read_extension(contents)?)),
            EntryType::XHeader => self.take_pax(&read_extension(contents)?)?,
            EntryType::XGlobalHeader => {
                // Git writes one that names a commit. One that renames every entry is no honest archive.
                let mut global = Self::default();
                global.take_pax(&read_extension(contents)?)?;
                if global.name.is_some() || global.link.is_some() || global.size.is_some() || global.is_sparse {
                    let name = String::from_utf8_lossy(&header.path_bytes()).into_owned();
                    return Err(SdistFault::Unsupported { name, what: "a header that renames every entry" });
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn take_pax(&mut self, extension: &[u8]) -> Result<(), SdistFault> {
        for record in PaxExtensions::new(extension) {
            let record = record.map_err(SdistFault::Read)?;
            let value = record.value_bytes().to_vec();
            match record.key_bytes() {
                b"path" => self.name = Some(value),
                b"linkpath" => self.link = Some(value),
                b"size" => self.size = Some(value),
                key if key.starts_with(b"GNU.sparse.") => self.is_sparse = true,
                _ => {}
            }
        }
        Ok(())
    }

    fn names_of(self, header: &Header) -> Result<Names, SdistFault> {
        let name = utf8(self.name.unwrap_or_else(|| header.path_bytes().into_owned()))?;
        let link = self.link.unwrap_or_else(|| header.link_name_bytes().unwrap_or_default().into_owned());
        let size = header.entry_size().map_err(SdistFault::Read)?;
        // The tar library read as many bytes as the plain header says.
        let other_size = self.size.is_some_and(|text| text != size.to_string().as_bytes());
        if self.is_sparse || other_size || header.entry_type().is_gnu_sparse() {
            return Err(SdistFault::Unsupported { name, what: "a sparse file or one of 8 GiB and more" });
        }
        Ok(Names { name, kind: header.entry_type(), link: utf8(link)? })
    }
}

fn read_extension(contents: &mut dyn Read) -> Result<Vec<u8>, SdistFault> {
    let mut bytes = Vec::new();
    contents.take(EXTENSION_LIMIT_BYTES + 1).read_to_end(&mut bytes).map_err(SdistFault::Read)?;
    if bytes.len() as u64 > EXTENSION_LIMIT_BYTES {
        return Err(too_large(EXTENSION_LIMIT_BYTES, "bytes in a name"));
    }
    Ok(bytes)
}

fn without_nul(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.truncate(bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len()));
    bytes
}

fn utf8(bytes: Vec<u8>) -> Result<String, SdistFault> {
    String::from_utf8(bytes)
        .map_err(|error| SdistFault::NameNotUtf8(String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

/// Everything seen so far.
#[derive(Default)]
struct Layout {
    top: Option<String>,
    kinds: HashMap<String, Kind>,
}

#[derive(Clone, PartialEq, Eq)]
enum Kind {
    Directory,
    File,
    Symlink(String),
    HardLink(String),
}

struct Place {
    path: String,
    kind: Kind,
}

impl Layout {
    fn top(&self) -> &str {
        self.top.as_deref().unwrap_or_default()
    }

    /// Checks an entry and says where it goes; `None` for the top folder itself.
    fn place(&mut self, names: &Names) -> Result<Option<Place>, SdistFault> {
        let Names { name, kind, link } = names;
        let safe = |name: &str| {
            check_member_name(name).map_err(|fault| SdistFault::UnsafeName { name: name.to_owned(), fault })
        };
        safe(name)?;
        let is_directory = kind.is_dir() || name.ends_with('/');
        let trimmed = name.strip_suffix('/').unwrap_or(name);
        let (top, path) = trimmed.split_once('/').unwrap_or((trimmed, ""));
        if self.top.get_or_insert_with(|| top.to_owned()) != top || (path.is_empty() && !is_directory) {
            return Err(SdistFault::OutsideTop { name: name.clone(), top: self.top().to_owned() });
        }
        if path.is_empty() {
            return Ok(None);
        }
        let unsupported = |what| Err(SdistFault::Unsupported { name: name.clone(), what });
        let kind = match kind {
            _ if is_directory => Kind::Directory,
            EntryType::Regular | EntryType::Continuous => Kind::File,
            EntryType::Symlink => Kind::Symlink(Self::symlink_target(path, link)?),
            EntryType::Link => Kind::HardLink(self.hard_link_target(path, link)?),
            EntryType::Char | EntryType::Block => return unsupported("a device"),
            EntryType::Fifo => return unsupported("a pipe"),
            _ => return unsupported("an entry of an unknown kind"),
        };
        self.insert(path, &kind)?;
        Ok(Some(Place { path: path.to_owned(), kind }))
    }

    fn insert(&mut self, path: &str, kind: &Kind) -> Result<(), SdistFault> {
        let conflict = || SdistFault::Conflict(path.to_owned());
        for (position, _) in path.match_indices('/') {
            let parent = self.kinds.entry(path[..position].to_owned()).or_insert(Kind::Directory);
            if *parent != Kind::Directory {
                return Err(conflict());
            }
        }
        match self.kinds.insert(path.to_owned(), kind.clone()) {
            None => Ok(()),
            Some(Kind::Directory) if *kind == Kind::Directory => Ok(()),
            Some(_) => Err(conflict()),
        }
    }

    fn symlink_target(path: &str, link: &str) -> Result<String, SdistFault> {
        let mut rest = link;
        let mut depth = path.matches('/').count();
        while let Some(after) = rest.strip_prefix("../").or_else(|| (rest == "..").then_some("")) {
            depth = depth.checked_sub(1).ok_or_else(|| Self::bad_link(path, link))?;
            rest = after;
        }
        let stays = if rest.is_empty() { link.starts_with("..") } else { check_member_name(rest).is_ok() };
        if stays { Ok(link.to_owned()) } else { Err(Self::bad_link(path, link)) }
    }

    fn hard_link_target(&self, path: &str, link: &str) -> Result<String, SdistFault> {
        let target = link.strip_prefix(self.top()).and_then(|rest| rest.strip_prefix('/'));
        let target = target.filter(|target| matches!(self.kinds.get(*target), Some(Kind::File | Kind::HardLink(_))));
        target.map(str::to_owned).ok_or_else(|| Self::bad_link(path, link))
    }

    fn bad_link(path: &str, link: &str) -> SdistFault {
        SdistFault::Link { name: path.to_owned(), target: link.to_owned() }
    }
}
