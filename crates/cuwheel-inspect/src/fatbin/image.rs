//! The header of an entry in a container, and the table of an entry that holds several images.

use super::{Architecture, Compression, Feature, Image, ImageKind};

/// The part of an entry's header that every version has.
pub(super) const ENTRY_HEADER_BYTES: usize = 64;
/// Names and options of the compiler follow the header; a longer one is damage.
pub(super) const LARGEST_HEADER_BYTES: usize = 1 << 20;
/// Where the table of an entry with several images begins, after its count and its size.
const TABLE_OFFSET: usize = ENTRY_HEADER_BYTES + 8;

const ENTRY_VERSION: u16 = 0x101;
const KIND_PTX: u16 = 1;
const KIND_SASS: u16 = 2;
const KIND_LINK_TIME_IR: u16 = 8;
/// Several images that are compressed together (`nvcc --concat`).
const KIND_SEVERAL: u16 = 0x100;
const FLAG_LZ4: u64 = 0x2000;
const FLAG_ZSTANDARD: u64 = 0x8000;
const FLAG_SPECIFIC: u64 = 0x10_0000;
const FLAG_FAMILY: u64 = 0x20_0000;

/// The fixed part of an entry's header.
#[derive(Debug, Clone, Copy)]
pub(super) struct EntryHeader {
    kind: u16,
    /// The size of the header; in a table of several, where the image begins.
    pub(super) header_bytes: u32,
    /// What follows the header.
    pub(super) payload_bytes: u64,
    /// Without padding; 0 where nothing is compressed.
    compressed_bytes: u32,
    version: (u16, u16),
    number: u32,
    flags: u64,
    size_bytes: u64,
}

impl EntryHeader {
    /// Reads the first [`ENTRY_HEADER_BYTES`] of `bytes`; `None` when they are no header.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let header = Self::parse_row(bytes)?;
        let size = usize::try_from(header.header_bytes).ok()?;
        (ENTRY_HEADER_BYTES..=LARGEST_HEADER_BYTES).contains(&size).then_some(header)
    }

    fn parse_row(bytes: &[u8]) -> Option<Self> {
        let array = |at: usize| bytes.get(at..at + 8).and_then(|part| <[u8; 8]>::try_from(part).ok());
        let word = |at: usize| array(at).map(|[a, b, c, d, ..]| u32::from_le_bytes([a, b, c, d]));
        let half = |at: usize| array(at).map(|[a, b, ..]| u16::from_le_bytes([a, b]));
        if half(2)? != ENTRY_VERSION {
            return None;
        }
        Some(Self {
            kind: half(0)?,
            header_bytes: word(4)?,
            payload_bytes: array(8).map(u64::from_le_bytes)?,
            compressed_bytes: word(16)?,
            version: (half(26)?, half(24)?),
            number: word(28)?,
            flags: array(40).map(u64::from_le_bytes)?,
            size_bytes: array(56).map(u64::from_le_bytes)?,
        })
    }

    pub(super) fn compression(&self) -> Compression {
        match (self.flags & FLAG_LZ4, self.flags & FLAG_ZSTANDARD) {
            (0, 0) => Compression::None,
            (_, 0) => Compression::Lz4,
            _ => Compression::Zstandard,
        }
    }

    /// How much of the payload is compressed data; all of it where nothing is compressed.
    pub(super) fn data_bytes(&self) -> u64 {
        match self.compression() {
            Compression::None => self.payload_bytes,
            _ => self.payload_bytes.min(self.compressed_bytes.into()),
        }
    }

    /// The size of the payload when it is not compressed.
    pub(super) fn unpacked_bytes(&self) -> u64 {
        match self.compression() {
            Compression::None => self.payload_bytes,
            _ => self.size_bytes,
        }
    }

    fn image(&self, stored_bytes: u64, size_bytes: u64, compression: Compression) -> Image {
        let feature = match (self.flags & FLAG_SPECIFIC, self.flags & FLAG_FAMILY) {
            (0, 0) => Feature::Base,
            (0, _) => Feature::Family,
            _ => Feature::Specific,
        };
        let kind = match self.kind {
            KIND_PTX => ImageKind::Ptx,
            KIND_SASS => ImageKind::Sass,
            KIND_LINK_TIME_IR => ImageKind::LinkTimeIr,
            other => ImageKind::Other(other),
        };
        let architecture = Architecture { number: self.number, feature };
        Image { kind, architecture, stored_bytes, size_bytes, compression, version: self.version, toolkit: None }
    }

    /// The images of the entry whose whole header is `header`; `None` when its table is damaged.
    pub(super) fn images(&self, header: &[u8]) -> Option<Vec<Image>> {
        if self.kind != KIND_SEVERAL {
            return Some(vec![self.image(self.payload_bytes, self.unpacked_bytes(), self.compression())]);
        }
        let count = u32::from_le_bytes(header.get(ENTRY_HEADER_BYTES..TABLE_OFFSET - 4)?.try_into().ok()?);
        let table = header.get(TABLE_OFFSET..)?;
        let rows: Vec<Self> = table
            .chunks_exact(ENTRY_HEADER_BYTES)
            .take(usize::try_from(count).ok()?)
            .map(Self::parse_row)
            .collect::<Option<_>>()?;
        if rows.len() != usize::try_from(count).ok()? {
            return None;
        }
        let whole = rows.iter().map(|row| u128::from(row.payload_bytes)).sum::<u128>().max(1);
        let share = |row: &Self| u128::from(self.payload_bytes) * u128::from(row.payload_bytes) / whole;
        let image = |row: &Self| {
            let stored_bytes = u64::try_from(share(row)).unwrap_or(u64::MAX);
            row.image(stored_bytes, row.payload_bytes, self.compression())
        };
        Some(rows.iter().map(image).collect())
    }
}
