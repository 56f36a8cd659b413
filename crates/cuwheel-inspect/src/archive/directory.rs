//! The central directory of a ZIP archive, parsed and checked against the local headers.
//!
//! Source of the layout: the ZIP application note, sections 4.3 and 4.5.3. Archives split over several files are not
//! read.

use std::io;

use super::{ArchiveError, Source};
use crate::path::check_member_name;

const END_RECORD: &[u8] = b"PK\x05\x06";
const END_RECORD_BYTES: u64 = 22;
const ZIP64_LOCATOR: &[u8] = b"PK\x06\x07";
const ZIP64_LOCATOR_BYTES: u64 = 20;
const ZIP64_END_RECORD: &[u8] = b"PK\x06\x06";
const ZIP64_END_RECORD_BYTES: u64 = 56;
const DIRECTORY_ENTRY: &[u8] = b"PK\x01\x02";
const LOCAL_HEADER: &[u8] = b"PK\x03\x04";
const LOCAL_HEADER_BYTES: u64 = 30;
const ZIP64_EXTRA: u16 = 0x0001;
const UNICODE_PATH_EXTRA: u16 = 0x7075;

const FLAG_ENCRYPTED: u16 = 1;
const FLAG_SIZES_FOLLOW: u16 = 1 << 3;
const FLAG_UTF8: u16 = 1 << 11;
const HOST_UNIX: u8 = 3;

/// No wheel known has a directory of a tenth of this.
const DIRECTORY_LIMIT_BYTES: u64 = 64 * 1024 * 1024;
/// Deflate codes at best 258 bytes in two bits.
const DEFLATE_LARGEST_RATIO: u64 = 1032;

/// A ZIP archive whose directory was read and checked.
#[derive(Debug)]
pub(crate) struct Archive {
    /// In the order of the directory.
    pub(crate) members: Vec<Member>,
}

/// One file or directory in an archive.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) header_offset: u64,
    pub(crate) data_offset: u64,
    pub(crate) method: Method,
    pub(crate) size_bytes: u64,
    pub(crate) compressed_size_bytes: u64,
    pub(crate) crc32: u32,
    pub(crate) unix_mode: Option<u32>,
    flags: u16,
}

/// How a member's contents are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Stored,
    Deflated,
}

impl Archive {
    pub(crate) fn read(source: &Source) -> Result<Self, ArchiveError> {
        let end = EndRecord::find(source)?;
        let directory = read_bytes(source, end.directory_offset, end.directory_size_bytes)?;
        let mut fields = Fields { rest: &directory };
        let mut members = Vec::new();
        for _ in 0..end.member_count {
            let offset = end.directory_offset + (directory.len() - fields.rest.len()) as u64;
            let mut member = parse_entry(&mut fields, offset)?;
            check_sizes(&member)?;
            member.data_offset = check_local_header(source, &member)?;
            members.push(member);
        }
        if !fields.rest.is_empty() {
            return Err(damaged("central directory", end.directory_offset));
        }
        check_overlaps(&members, end.directory_offset)?;
        Ok(Self { members })
    }
}

impl Member {
    pub(crate) fn is_directory(&self) -> bool {
        self.name.ends_with('/')
    }

    fn data_end(&self) -> u64 {
        self.data_offset.saturating_add(self.compressed_size_bytes)
    }
}

struct EndRecord {
    directory_offset: u64,
    directory_size_bytes: u64,
    member_count: u64,
}

impl EndRecord {
    fn find(source: &Source) -> Result<Self, ArchiveError> {
        let tail_size = source.size_bytes().min(END_RECORD_BYTES + u64::from(u16::MAX));
        let tail_offset = source.size_bytes() - tail_size;
        let tail = read_bytes(source, tail_offset, tail_size)?;
        let position = (0..tail.len()).rev().find(|position| ends_with_record(&tail[*position..]));
        let position = position.ok_or(ArchiveError::NoEndRecord)?;
        let offset = tail_offset + position as u64;
        let short = Self::parse(&tail[position..]).ok_or_else(|| damaged("end record", offset))?;
        let (end, directory_end) = match Self::find_zip64(source, offset)? {
            Some((long, long_offset)) if short.agrees_with(&long) => (long, long_offset),
            Some(_) => return Err(damaged("end record", offset)),
            None => (short, offset),
        };
        if end.directory_size_bytes > DIRECTORY_LIMIT_BYTES {
            return Err(ArchiveError::DirectoryTooLarge {
                size_bytes: end.directory_size_bytes,
                limit_bytes: DIRECTORY_LIMIT_BYTES,
            });
        }
        if end.directory_offset.checked_add(end.directory_size_bytes) != Some(directory_end) {
            return Err(damaged("end record", offset));
        }
        Ok(end)
    }

    fn parse(record: &[u8]) -> Option<Self> {
        let mut fields = Fields { rest: record.get(4..)? };
        let disks = (fields.u16()?, fields.u16()?);
        let (members_here, members) = (fields.u16()?, fields.u16()?);
        let (size, offset) = (fields.u32()?, fields.u32()?);
        (members_here == members && matches!(disks, (0 | u16::MAX, 0 | u16::MAX))).then_some(Self {
            directory_offset: offset.into(),
            directory_size_bytes: size.into(),
            member_count: members.into(),
        })
    }

    /// Whether a reader that ignores the ZIP64 record would find the same directory, or none (all ones).
    fn agrees_with(&self, long: &Self) -> bool {
        let agrees = |short: u64, long: u64, unset: u64| short == unset || short == long;
        agrees(self.member_count, long.member_count, u16::MAX.into())
            && agrees(self.directory_size_bytes, long.directory_size_bytes, u32::MAX.into())
            && agrees(self.directory_offset, long.directory_offset, u32::MAX.into())
    }

    /// The ZIP64 end record and its offset, where a locator stands before the end record at `end_offset`.
    fn find_zip64(source: &Source, end_offset: u64) -> Result<Option<(Self, u64)>, ArchiveError> {
        let Some(locator_offset) = end_offset.checked_sub(ZIP64_LOCATOR_BYTES) else { return Ok(None) };
        let locator = read_bytes(source, locator_offset, ZIP64_LOCATOR_BYTES)?;
        let Some(rest) = locator.strip_prefix(ZIP64_LOCATOR) else { return Ok(None) };
        let error = || damaged("ZIP64 end record", locator_offset);
        let mut fields = Fields { rest };
        fields.u32().ok_or_else(error)?;
        let offset = fields.u64().ok_or_else(error)?;
        if offset.checked_add(ZIP64_END_RECORD_BYTES) != Some(locator_offset) {
            return Err(error());
        }
        let record = read_bytes(source, offset, ZIP64_END_RECORD_BYTES)?;
        let end = record.strip_prefix(ZIP64_END_RECORD).and_then(Self::parse_zip64).ok_or_else(error)?;
        Ok(Some((end, offset)))
    }

    fn parse_zip64(rest: &[u8]) -> Option<Self> {
        let mut fields = Fields { rest };
        fields.take(8 + 2 + 2)?;
        let disks = (fields.u32()?, fields.u32()?);
        let (members_here, members) = (fields.u64()?, fields.u64()?);
        let (size, offset) = (fields.u64()?, fields.u64()?);
        (members_here == members && disks == (0, 0)).then_some(Self {
            directory_offset: offset,
            directory_size_bytes: size,
            member_count: members,
        })
    }
}

/// Whether an end record begins here and its comment reaches exactly to the end of the file.
fn ends_with_record(tail: &[u8]) -> bool {
    let comment_size = tail.get(20..22).map(|size| usize::from(u16::from_le_bytes([size[0], size[1]])));
    tail.starts_with(END_RECORD) && comment_size.is_some_and(|size| tail.len() == 22 + size)
}

fn parse_entry(fields: &mut Fields<'_>, offset: u64) -> Result<Member, ArchiveError> {
    let error = || damaged("directory entry", offset);
    let entry = RawEntry::parse(fields).ok_or_else(error)?;
    let name = std::str::from_utf8(entry.name).ok().filter(|name| name.is_ascii() || entry.flags & FLAG_UTF8 != 0);
    let Some(name) = name else {
        return Err(ArchiveError::NameNotUtf8 { name: String::from_utf8_lossy(entry.name).into_owned(), offset });
    };
    check_member_name(name).map_err(|fault| ArchiveError::UnsafeName { name: name.to_owned(), offset, fault })?;
    let unsupported = |feature: String| Err(ArchiveError::Unsupported { name: name.to_owned(), feature });
    if entry.flags & FLAG_ENCRYPTED != 0 {
        return unsupported("encrypted".to_owned());
    }
    let method = match entry.method {
        0 => Method::Stored,
        8 => Method::Deflated,
        other => return unsupported(format!("compressed with method {other}")),
    };
    // Version, CRC-32 of the plain name, then a name that some readers prefer.
    if extra_field(entry.extra, UNICODE_PATH_EXTRA).is_some_and(|path| path.get(5..) != Some(entry.name)) {
        return unsupported("given a second name by an extra field".to_owned());
    }
    let sizes = entry.sizes().ok_or_else(error)?;
    let unix_mode = (entry.host == HOST_UNIX).then_some(entry.external_attributes >> 16).filter(|mode| *mode != 0);
    Ok(Member {
        name: name.to_owned(),
        header_offset: sizes.header_offset,
        data_offset: 0,
        method,
        size_bytes: sizes.size_bytes,
        compressed_size_bytes: sizes.compressed_size_bytes,
        crc32: entry.crc32,
        unix_mode,
        flags: entry.flags,
    })
}

/// A directory entry as it stands in the file.
struct RawEntry<'data> {
    host: u8,
    flags: u16,
    method: u16,
    crc32: u32,
    compressed_size: u32,
    size: u32,
    name: &'data [u8],
    extra: &'data [u8],
    external_attributes: u32,
    header_offset: u32,
}

struct Sizes {
    size_bytes: u64,
    compressed_size_bytes: u64,
    header_offset: u64,
}

impl<'data> RawEntry<'data> {
    fn parse(fields: &mut Fields<'data>) -> Option<Self> {
        if fields.take(4)? != DIRECTORY_ENTRY {
            return None;
        }
        let host = fields.take(2)?[1];
        fields.take(2)?;
        let (flags, method) = (fields.u16()?, fields.u16()?);
        fields.take(4)?;
        let (crc32, compressed_size, size) = (fields.u32()?, fields.u32()?, fields.u32()?);
        let (name_size, extra_size, comment_size) = (fields.u16()?, fields.u16()?, fields.u16()?);
        fields.take(2 + 2)?;
        let (external_attributes, header_offset) = (fields.u32()?, fields.u32()?);
        let name = fields.take(name_size.into())?;
        let extra = fields.take(extra_size.into())?;
        fields.take(comment_size.into())?;
        Some(Self {
            host,
            flags,
            method,
            crc32,
            compressed_size,
            size,
            name,
            extra,
            external_attributes,
            header_offset,
        })
    }

    /// The sizes and the offset, from the ZIP64 extra field where 32 bits were too few.
    fn sizes(&self) -> Option<Sizes> {
        let mut long = Fields { rest: extra_field(self.extra, ZIP64_EXTRA).unwrap_or_default() };
        let mut widen = |value: u32| if value == u32::MAX { long.u64() } else { Some(value.into()) };
        Some(Sizes {
            size_bytes: widen(self.size)?,
            compressed_size_bytes: widen(self.compressed_size)?,
            header_offset: widen(self.header_offset)?,
        })
    }
}

fn extra_field(extra: &[u8], wanted: u16) -> Option<&[u8]> {
    let mut fields = Fields { rest: extra };
    loop {
        let (tag, size) = (fields.u16()?, fields.u16()?);
        let value = fields.take(size.into())?;
        if tag == wanted {
            return Some(value);
        }
    }
}

fn check_sizes(member: &Member) -> Result<(), ArchiveError> {
    let largest = match member.method {
        Method::Stored => member.compressed_size_bytes,
        Method::Deflated => member.compressed_size_bytes.saturating_mul(DEFLATE_LARGEST_RATIO),
    };
    if member.size_bytes > largest {
        return Err(ArchiveError::ImpossibleSize {
            name: member.name.clone(),
            size_bytes: member.size_bytes,
            compressed_size_bytes: member.compressed_size_bytes,
        });
    }
    Ok(())
}

/// Compares the local header with the directory and returns where the contents begin.
fn check_local_header(source: &Source, member: &Member) -> Result<u64, ArchiveError> {
    let offset = member.header_offset;
    let error = || damaged("local header", offset);
    let fixed = source.bytes(offset, LOCAL_HEADER_BYTES).map_err(|_| error())?;
    let mut fields = Fields { rest: fixed.strip_prefix(LOCAL_HEADER).ok_or_else(error)? };
    let header = LocalHeader::parse(&mut fields).ok_or_else(error)?;
    let variable_offset = offset + LOCAL_HEADER_BYTES;
    let variable_size = u64::from(header.name_size) + u64::from(header.extra_size);
    let variable = source.bytes(variable_offset, variable_size).map_err(|_| error())?;
    let (name, extra) = variable.split_at(header.name_size.into());

    let mut long = Fields { rest: extra_field(extra, ZIP64_EXTRA).unwrap_or_default() };
    let mut widen = |value: u32| if value == u32::MAX { long.u64() } else { Some(value.into()) };
    let (size, compressed_size) = (widen(header.size), widen(header.compressed_size));
    let method = u16::from(member.method == Method::Deflated) * 8;
    // A writer that streams leaves the local fields empty and the directory has them.
    let streamed = header.flags & FLAG_SIZES_FOLLOW != 0;
    let differs = [
        ("name", name != member.name.as_bytes()),
        ("compression method", header.method != method),
        ("flags", (header.flags ^ member.flags) & (FLAG_ENCRYPTED | FLAG_SIZES_FOLLOW | FLAG_UTF8) != 0),
        ("size", !streamed && size != Some(member.size_bytes)),
        ("compressed size", !streamed && compressed_size != Some(member.compressed_size_bytes)),
        ("checksum", !streamed && header.crc32 != member.crc32),
    ];
    if let Some((field, _)) = differs.into_iter().find(|(_, differs)| *differs) {
        return Err(ArchiveError::HeaderMismatch { name: member.name.clone(), offset, field });
    }
    Ok(variable_offset + variable_size)
}

struct LocalHeader {
    flags: u16,
    method: u16,
    crc32: u32,
    compressed_size: u32,
    size: u32,
    name_size: u16,
    extra_size: u16,
}

impl LocalHeader {
    /// Reads what follows the signature.
    fn parse(fields: &mut Fields<'_>) -> Option<Self> {
        fields.take(2)?;
        let (flags, method) = (fields.u16()?, fields.u16()?);
        fields.take(4)?;
        Some(Self {
            flags,
            method,
            crc32: fields.u32()?,
            compressed_size: fields.u32()?,
            size: fields.u32()?,
            name_size: fields.u16()?,
            extra_size: fields.u16()?,
        })
    }
}

fn check_overlaps(members: &[Member], directory_offset: u64) -> Result<(), ArchiveError> {
    let mut by_offset: Vec<&Member> = members.iter().collect();
    by_offset.sort_by_key(|member| member.header_offset);
    for pair in by_offset.windows(2) {
        if pair[0].data_end() > pair[1].header_offset {
            return Err(ArchiveError::Overlap {
                first: pair[0].name.clone(),
                second: pair[1].name.clone(),
                offset: pair[1].header_offset,
            });
        }
    }
    match by_offset.last() {
        Some(last) if last.data_end() > directory_offset => Err(ArchiveError::Overlap {
            first: last.name.clone(),
            second: "the central directory".to_owned(),
            offset: directory_offset,
        }),
        _ => Ok(()),
    }
}

fn damaged(record: &'static str, offset: u64) -> ArchiveError {
    ArchiveError::Damaged { record, offset }
}

fn read_bytes(source: &Source, offset: u64, length_bytes: u64) -> Result<Vec<u8>, ArchiveError> {
    source.bytes(offset, length_bytes).map_err(|source: io::Error| ArchiveError::Io { offset, source })
}

/// Little-endian fields, taken from the front.
struct Fields<'data> {
    rest: &'data [u8],
}

impl<'data> Fields<'data> {
    fn take(&mut self, count: usize) -> Option<&'data [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }
}
