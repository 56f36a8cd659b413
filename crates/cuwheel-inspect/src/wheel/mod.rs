//! Wheels, read whole: their names, members, RECORD, METADATA and WHEEL.
//!
//! [`Wheel::open`] is an error where installers would read different things or write outside their target; a wheel that
//! opens may still be wrong, and [`Wheel::verify_record`] says how far its RECORD can be trusted. Contents are hashed
//! once, while opening, and are not kept.

mod entry_points;
mod error;
mod extension;
mod metadata;
mod name;
mod native;
mod native_member;
mod record;
mod requirement;
mod scan;

use std::fs::File;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

pub use entry_points::EntryPoint;
pub use error::{ArchiveError, WheelError, WheelFault};
pub(crate) use extension::installed_path;
pub use extension::{ExtensionAbi, ExtensionModule};
pub use metadata::{Headers, Metadata, WheelInfo};
pub use name::{Tag, TagError, WheelName, WheelNameError, normalize_distribution};
pub use native_member::{NativeCode, NativeMember};
pub use record::{RecordFinding, RecordHash, RecordRow};
pub use requirement::Requirement;

use crate::archive::{self, Archive, Member, Source};
use crate::digest::{HashAlgorithm, Sha256Digest};
use scan::{InspectNative, MemberScan};

/// RECORD of the largest wheels has a few megabytes.
const TEXT_LIMIT_BYTES: u64 = 64 * 1024 * 1024;

/// A wheel that was read whole.
#[derive(Debug)]
pub struct Wheel {
    name: WheelName,
    file_name: String,
    sha256: Sha256Digest,
    entries: Vec<Entry>,
    dist_info: String,
    record: Vec<RecordRow>,
    metadata: Metadata,
    info: WheelInfo,
    entry_points: (Vec<EntryPoint>, Vec<u64>),
    source: Source,
}

/// A file or directory in a wheel.
#[derive(Debug, Clone)]
pub struct Entry {
    member: Member,
    scan: MemberScan,
}

impl Entry {
    /// The name in the archive, with `/` between components; directories end in `/`.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.member.name
    }

    /// The size of the contents.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.member.size_bytes
    }

    /// The size of the contents as they lie in the archive.
    #[must_use]
    pub fn compressed_size_bytes(&self) -> u64 {
        self.member.compressed_size_bytes
    }

    /// The Unix mode with the file's type, such as `0o100644`, where the archive has one.
    #[must_use]
    pub fn unix_mode(&self) -> Option<u32> {
        self.member.unix_mode
    }

    /// The SHA-256 of the contents.
    #[must_use]
    pub fn sha256(&self) -> Sha256Digest {
        self.scan.digests.sha256
    }

    /// Where the member's header begins in the archive.
    #[must_use]
    pub fn header_offset(&self) -> u64 {
        self.member.header_offset
    }

    /// Whether it is a directory.
    #[must_use]
    pub fn is_directory(&self) -> bool {
        self.member.is_directory()
    }

    /// Whether the contents begin as an ELF file does, whatever the name.
    #[must_use]
    pub fn is_elf(&self) -> bool {
        self.scan.is_elf
    }

    /// Whether the name is that of a shared library: `x.so`, `x.so.1`, `x.pyd`, `x.dylib` or `x.dll`.
    #[must_use]
    pub fn is_shared_library(&self) -> bool {
        extension::is_shared_library(self.path())
    }
}

impl Wheel {
    /// Reads the wheel at `path`.
    pub fn open(path: &Path) -> Result<Self, WheelError> {
        Self::from_source(&file_name(path), open_source(path)?, &|_, _| {})
    }

    /// Reads the wheel at `path` and hands each native file in it to `inspect`, which spares inflating them again. Gives
    /// the wheel and, for each such file in archive order, its position among [`Wheel::entries`] and what `inspect` made
    /// of it. `inspect` runs on several threads at once.
    pub fn open_with<T: Send>(
        path: &Path,
        inspect: impl Fn(&NativeMember<'_>) -> T + Sync,
    ) -> Result<(Self, Vec<(usize, T)>), WheelError> {
        Self::inspect_source(&file_name(path), open_source(path)?, inspect)
    }

    /// Reads a wheel from memory; `file_name` is the name it would have as a file.
    pub fn from_bytes(file_name: &str, bytes: Vec<u8>) -> Result<Self, WheelError> {
        Self::from_source(file_name, Source::Memory(bytes), &|_, _| {})
    }

    /// As [`Wheel::open_with`], for a wheel in memory.
    pub fn from_bytes_with<T: Send>(
        file_name: &str,
        bytes: Vec<u8>,
        inspect: impl Fn(&NativeMember<'_>) -> T + Sync,
    ) -> Result<(Self, Vec<(usize, T)>), WheelError> {
        Self::inspect_source(file_name, Source::Memory(bytes), inspect)
    }

    fn inspect_source<T: Send>(
        file_name: &str,
        source: Source,
        inspect: impl Fn(&NativeMember<'_>) -> T + Sync,
    ) -> Result<(Self, Vec<(usize, T)>), WheelError> {
        let results = Mutex::new(Vec::new());
        let keep = |position: usize, native: &NativeMember<'_>| {
            let result = inspect(native);
            results.lock().unwrap_or_else(PoisonError::into_inner).push((position, result));
        };
        let wheel = Self::from_source(file_name, source, &keep)?;
        let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
        results.sort_by_key(|(position, _)| *position);
        Ok((wheel, results))
    }

    fn from_source(file_name: &str, source: Source, inspect: &InspectNative<'_>) -> Result<Self, WheelError> {
        Self::read_all(file_name, source, inspect).map_err(|fault| WheelError::new(file_name, fault))
    }

    fn read_all(file_name: &str, source: Source, inspect: &InspectNative<'_>) -> Result<Self, WheelFault> {
        let name: WheelName = file_name.parse()?;
        let members = Archive::read(&source)?.members;
        let dist_info = find_dist_info(&members)?;
        let text = |file: &str| read_text(&source, &members, &format!("{dist_info}/{file}"));
        let metadata = Metadata::parse(&format!("{dist_info}/METADATA"), &text("METADATA")?)?;
        let info = WheelInfo::parse(&format!("{dist_info}/WHEEL"), &text("WHEEL")?)?;
        let record = record::parse(&text("RECORD")?).map_err(|(line, reason)| WheelFault::Record {
            path: format!("{dist_info}/RECORD"),
            line,
            reason,
        })?;
        let entry_points = match text("entry_points.txt") {
            Ok(text) => entry_points::parse(&text),
            Err(WheelFault::Missing(_)) => Default::default(),
            Err(fault) => return Err(fault),
        };
        let scan = scan::scan(&source, &members, &record, inspect)?;
        let entries = members.into_iter().zip(scan.members).map(|(member, scan)| Entry { member, scan }).collect();
        let sha256 = scan.archive;
        let file_name = file_name.to_owned();
        Ok(Self { name, file_name, sha256, entries, dist_info, record, metadata, info, entry_points, source })
    }

    /// The parts of the file name.
    #[must_use]
    pub fn name(&self) -> &WheelName {
        &self.name
    }

    /// The file name.
    #[must_use]
    pub fn file_name(&self) -> &str {
        &self.file_name
    }

    /// The size of the archive.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.source.size_bytes()
    }

    /// The SHA-256 of the archive.
    #[must_use]
    pub fn sha256(&self) -> Sha256Digest {
        self.sha256
    }

    /// Every member in archive order, duplicates and directories included.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The entry called `path`; the last of them where there are several, as Python's `zipfile` does.
    #[must_use]
    pub fn entry(&self, path: &str) -> Option<&Entry> {
        self.entries.iter().rfind(|entry| entry.path() == path)
    }

    /// The name of the `.dist-info` directory, without a slash.
    #[must_use]
    pub fn dist_info(&self) -> &str {
        &self.dist_info
    }

    /// The rows of RECORD.
    #[must_use]
    pub fn record(&self) -> &[RecordRow] {
        &self.record
    }

    /// METADATA.
    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The file WHEEL.
    #[must_use]
    pub fn info(&self) -> &WheelInfo {
        &self.info
    }

    /// What `entry_points.txt` lists; nothing where there is no such file.
    #[must_use]
    pub fn entry_points(&self) -> &[EntryPoint] {
        &self.entry_points.0
    }

    /// The lines of `entry_points.txt`, counted from 1, that are no entry points.
    #[must_use]
    pub fn malformed_entry_points(&self) -> &[u64] {
        &self.entry_points.1
    }

    /// The contents of the member called `path`, chosen as [`Wheel::entry`] does. The whole member is held in memory.
    pub fn read(&self, path: &str) -> Result<Vec<u8>, WheelError> {
        let missing = || WheelError::new(&self.file_name, WheelFault::Missing(path.to_owned()));
        self.read_entry(self.entry(path).ok_or_else(missing)?)
    }

    /// The contents of one of this wheel's entries.
    pub fn read_entry(&self, entry: &Entry) -> Result<Vec<u8>, WheelError> {
        read_contents(&self.source, &entry.member).map_err(|fault| WheelError::new(&self.file_name, fault))
    }

    /// Compares RECORD with the archive: rows first to last, then what no row lists.
    #[must_use]
    pub fn verify_record(&self) -> Vec<RecordFinding> {
        let hashes: Vec<_> = self
            .entries
            .iter()
            .map(|entry| move |algorithm: HashAlgorithm| entry.scan.digests.base64(algorithm))
            .collect();
        let members: Vec<_> = self
            .entries
            .iter()
            .zip(&hashes)
            .filter(|(entry, _)| !entry.is_directory())
            .map(|(entry, hash)| record::Recorded {
                path: entry.path(),
                size_bytes: entry.size_bytes(),
                header_offset: entry.header_offset(),
                hash,
            })
            .collect();
        record::verify(&self.dist_info, &self.record, &members)
    }

    /// The files that Python would load as extension modules, in archive order.
    #[must_use]
    pub fn extension_modules(&self) -> Vec<ExtensionModule> {
        self.entries.iter().filter_map(|entry| ExtensionModule::from_path(entry.path())).collect()
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn open_source(path: &Path) -> Result<Source, WheelError> {
    let open = || Source::from_file(File::open(path)?);
    open().map_err(|error| WheelError::new(&path.to_string_lossy(), error))
}

fn find_dist_info(members: &[Member]) -> Result<String, WheelFault> {
    let mut found: Vec<&str> = members
        .iter()
        .filter_map(|member| Some(member.name.split_once('/')?.0))
        .filter(|directory| directory.ends_with(".dist-info"))
        .collect();
    found.sort_unstable();
    found.dedup();
    match found[..] {
        [] => Err(WheelFault::NoDistInfo),
        [only] => Ok(only.to_owned()),
        _ => Err(WheelFault::SeveralDistInfo(found.into_iter().map(str::to_owned).collect())),
    }
}

fn read_text(source: &Source, members: &[Member], path: &str) -> Result<String, WheelFault> {
    let member = members.iter().rfind(|member| member.name == path);
    let member = member.ok_or_else(|| WheelFault::Missing(path.to_owned()))?;
    if member.size_bytes > TEXT_LIMIT_BYTES {
        let (size_bytes, limit_bytes) = (member.size_bytes, TEXT_LIMIT_BYTES);
        return Err(WheelFault::TooLarge { path: path.to_owned(), size_bytes, limit_bytes });
    }
    String::from_utf8(read_contents(source, member)?)
        .map_err(|error| WheelFault::NotUtf8 { path: path.to_owned(), valid_bytes: error.utf8_error().valid_up_to() })
}

fn read_contents(source: &Source, member: &Member) -> Result<Vec<u8>, WheelFault> {
    let mut contents = Vec::new();
    archive::read_member(source, member, |bytes| contents.extend_from_slice(bytes))?;
    Ok(contents)
}
