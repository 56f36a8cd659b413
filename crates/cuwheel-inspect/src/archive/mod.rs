//! Reads ZIP archives the strict way: every member in archive order, duplicates included, each within its bounds.
//!
//! Installers disagree about damaged archives (one keeps the first of two equal names, another the last), so what they
//! may read differently is either visible here or refused: duplicates are listed, overlapping members and local headers
//! that contradict the directory are errors. Nothing is written here.

mod directory;
mod inflate;
mod read;
mod source;

use std::io;

pub(crate) use directory::{Archive, Member, Method};
pub(crate) use read::{fill_ranges, for_each_block, read_member, read_member_beside};
pub(crate) use source::Source;

use crate::path::PathFault;

/// What is read, inflated and handed on at a time. A decoder copies 32 kB between two blocks; a few blocks fit into a
/// processor's cache.
const BLOCK_BYTES: usize = 128 * 1024;

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
