//! Reads ZIP archives the strict way: every member in archive order, duplicates included, each within its bounds.
//!
//! Installers disagree about damaged archives (one keeps the first of two equal names, another the last), so what they
//! may read differently is either visible here or refused: duplicates are listed, overlapping members and local headers
//! that contradict the directory are errors. Nothing is written here.

mod directory;
mod inflate;
mod source;

use std::io::{self, Read};

use flate2::Crc;

pub(crate) use directory::{Archive, Member, Method};
use inflate::Contents;
pub(crate) use inflate::Index;
pub(crate) use source::Source;

use crate::path::PathFault;

const BUFFER_BYTES: usize = 64 * 1024;

/// Why an archive, or a member of it, cannot be read. Offsets are bytes from the start of the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// The file could not be read.
    #[error("reading at offset {offset} failed: {source}")]
    Io {
        /// Where the read began.
        offset: u64,
        /// What the system said.
        source: io::Error,
    },
    /// There is no end-of-central-directory record, or bytes follow it.
    #[error("no end record of a ZIP archive ends the file: it is cut short, or it is no ZIP archive")]
    NoEndRecord,
    /// A record is not what must be at this place.
    #[error("the {record} at offset {offset} is damaged")]
    Damaged {
        /// Which record of the ZIP format.
        record: &'static str,
        /// Where it begins.
        offset: u64,
    },
    /// The directory would need more memory than any real wheel does.
    #[error("the central directory has {size_bytes} bytes, more than the {limit_bytes} that are read")]
    DirectoryTooLarge {
        /// Its declared size.
        size_bytes: u64,
        /// The most that is read.
        limit_bytes: u64,
    },
    /// A member's name is not UTF-8, or is not marked as such.
    #[error(
        "the name {name:?} at offset {offset} is not UTF-8 or is not marked as UTF-8 (general purpose bit 11): \
         installers would decode it differently"
    )]
    NameNotUtf8 {
        /// The name with what is not UTF-8 replaced.
        name: String,
        /// Where the directory entry begins.
        offset: u64,
    },
    /// A member's name could be written outside the target, or names a file in two spellings.
    #[error("the name {name:?} at offset {offset} is refused: {fault}")]
    UnsafeName {
        /// The name.
        name: String,
        /// Where the directory entry begins.
        offset: u64,
        /// What is wrong with it.
        fault: PathFault,
    },
    /// A member is encrypted or compressed in a way that wheels may not use.
    #[error("{name:?} is {feature}, which installers cannot read: store or deflate it")]
    Unsupported {
        /// The member.
        name: String,
        /// What it uses.
        feature: String,
    },
    /// The directory and the local header before the contents disagree.
    #[error("the header of {name:?} at offset {offset} contradicts the central directory in its {field}")]
    HeaderMismatch {
        /// The member as the directory names it.
        name: String,
        /// Where the local header begins.
        offset: u64,
        /// What differs.
        field: &'static str,
    },
    /// Two members share bytes, as in archives built to inflate without end.
    #[error("{first:?} and {second:?} overlap at offset {offset}")]
    Overlap {
        /// The member that begins first.
        first: String,
        /// The member that begins within it.
        second: String,
        /// Where the second begins.
        offset: u64,
    },
    /// The declared size cannot come from so few bytes.
    #[error("{name:?} declares {size_bytes} bytes in {compressed_size_bytes}: no deflated data expands so far")]
    ImpossibleSize {
        /// The member.
        name: String,
        /// Its declared size.
        size_bytes: u64,
        /// The bytes it occupies.
        compressed_size_bytes: u64,
    },
    /// Inflating gave another number of bytes than declared. Reading stops at the declared size.
    #[error("{name:?} declares {size_bytes} bytes and holds {}", if *.longer { "more" } else { "fewer" })]
    WrongSize {
        /// The member.
        name: String,
        /// Its declared size.
        size_bytes: u64,
        /// Whether there was more than declared, as in a decompression bomb.
        longer: bool,
    },
    /// The contents do not have the recorded CRC-32.
    #[error("the contents of {name:?} at offset {offset} do not match their checksum: the archive is damaged")]
    WrongChecksum {
        /// The member.
        name: String,
        /// Where its contents begin.
        offset: u64,
    },
    /// The compressed data is damaged.
    #[error("the contents of {name:?} at offset {offset} cannot be inflated: {source}")]
    Inflate {
        /// The member.
        name: String,
        /// Where its contents begin.
        offset: u64,
        /// What the decoder said.
        source: io::Error,
    },
}

/// Hands the contents of `member` to `sink`, piece by piece; every piece but the last has the same size.
///
/// At most the declared size is handed out; `Ok` means that size and checksum are as declared.
pub(crate) fn read_member(source: &Source, member: &Member, sink: impl FnMut(&[u8])) -> Result<(), ArchiveError> {
    read(source, member, |_, _| {}, sink)
}

/// As [`read_member`], and makes the contents readable at any position afterwards.
pub(crate) fn read_and_index(source: &Source, member: &Member, sink: impl FnMut(&[u8])) -> Result<Index, ArchiveError> {
    let mut index = Index::new(member);
    read(source, member, |contents, position| index.note(contents, position), sink)?;
    Ok(index)
}

/// `see` is called with the reader and its position before each piece.
fn read(
    source: &Source,
    member: &Member,
    mut see: impl FnMut(&Contents<'_>, u64),
    mut sink: impl FnMut(&[u8]),
) -> Result<(), ArchiveError> {
    let inflate_error =
        |source| ArchiveError::Inflate { name: member.name.clone(), offset: member.data_offset, source };
    let wrong_size =
        |longer| ArchiveError::WrongSize { name: member.name.clone(), size_bytes: member.size_bytes, longer };
    let mut contents = Contents::of(source, member);
    let mut checksum = Crc::new();
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut remaining_bytes = member.size_bytes;
    loop {
        see(&contents, member.size_bytes - remaining_bytes);
        let count = fill(&mut contents, &mut buffer).map_err(inflate_error)?;
        if count == 0 {
            break;
        }
        remaining_bytes = remaining_bytes.checked_sub(count as u64).ok_or_else(|| wrong_size(true))?;
        checksum.update(&buffer[..count]);
        sink(&buffer[..count]);
    }
    if remaining_bytes > 0 {
        return Err(wrong_size(false));
    }
    if checksum.sum() != member.crc32 {
        return Err(ArchiveError::WrongChecksum { name: member.name.clone(), offset: member.data_offset });
    }
    Ok(())
}

/// Reads until `buffer` is full or the reader ends.
fn fill(reader: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut count = 0;
    while count < buffer.len() {
        match reader.read(&mut buffer[count..]) {
            Ok(0) => break,
            Ok(more) => count += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(count)
}

/// Hands everything that `reader` gives to `sink`, block by block.
pub(crate) fn for_each_block(reader: &mut dyn Read, mut sink: impl FnMut(&[u8])) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match fill(reader, &mut buffer)? {
            0 => return Ok(()),
            count => sink(&buffer[..count]),
        }
    }
}
