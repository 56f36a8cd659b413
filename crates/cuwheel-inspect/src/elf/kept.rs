//! What is kept of a large ELF file while it goes by, so that it need not be read again for its tables.
//!
//! Linkers write symbols and their names at the beginning and the table of sections at the end, where tools that edit
//! libraries append what they move; the dynamic table is where the segments say.

use std::ops::Range;

use object::read::elf::{FileHeader, ProgramHeader as _};
use object::{Endianness, elf};

use super::sparse::in_order;

const FIRST_BYTES: usize = 4 * 1024 * 1024;
const LAST_BYTES: usize = 4 * 1024 * 1024;
/// Dynamic tables have a few hundred rows.
const LARGEST_DYNAMIC_BYTES: usize = 64 * 1024;

/// Parts of a file that comes piece by piece.
#[derive(Debug)]
pub(crate) struct Kept {
    position: usize,
    /// In order, and none overlaps the next.
    parts: Vec<Part>,
}

#[derive(Debug)]
struct Part {
    range: Range<usize>,
    /// Those contents of the range that have gone by.
    bytes: Vec<u8>,
}

impl Kept {
    /// For a file of `size_bytes` that begins with `first`. Nothing of it is kept yet.
    pub(crate) fn new(size_bytes: usize, first: &[u8]) -> Self {
        let dynamic = match first {
            [0x7f, b'E', b'L', b'F', 1, ..] => dynamic_table::<elf::FileHeader32<Endianness>>(first),
            [0x7f, b'E', b'L', b'F', 2, ..] => dynamic_table::<elf::FileHeader64<Endianness>>(first),
            _ => None,
        };
        let ends = [0..FIRST_BYTES.min(size_bytes), size_bytes.saturating_sub(LAST_BYTES)..size_bytes];
        let ranges = in_order(ends.into_iter().chain(dynamic).collect());
        let parts = ranges.into_iter().map(|range| Part { range, bytes: Vec::new() });
        Self { position: 0, parts: parts.collect() }
    }

    /// Takes the next piece of the file.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let start = self.position;
        let end = start.saturating_add(bytes.len());
        for Part { range, bytes: kept } in &mut self.parts {
            let (from, to) = (range.start.max(start), range.end.min(end));
            if from < to {
                kept.extend_from_slice(&bytes[from - start..to - start]);
            }
        }
        self.position = end;
    }

    /// Fills what it has of `wanted` into `image`, and gives the rest. Both are in order and do not overlap.
    pub(crate) fn fill(&self, image: &mut [u8], wanted: &[Range<usize>]) -> Vec<Range<usize>> {
        let mut rest = Vec::new();
        for range in wanted {
            let mut start = range.start;
            for Part { range: part, bytes } in &self.parts {
                let (from, to) = (part.start.max(start), range.end.min(part.start + bytes.len()));
                if from < to {
                    image[from..to].copy_from_slice(&bytes[from - part.start..to - part.start]);
                    rest.push(start..from);
                    start = to;
                }
            }
            rest.push(start..range.end);
        }
        rest.retain(|range| !range.is_empty());
        rest
    }
}

/// Where the dynamic table is, if the table of segments is in `first` and says so.
fn dynamic_table<Elf: FileHeader<Endian = Endianness>>(first: &[u8]) -> Option<Range<usize>> {
    let header = Elf::parse(first).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, first).ok()?;
    let dynamic = segments.iter().find(|segment| segment.p_type(endian) == elf::PT_DYNAMIC)?;
    let start = usize::try_from(dynamic.p_offset(endian).into()).ok()?;
    let size_bytes = usize::try_from(dynamic.p_filesz(endian).into()).ok()?;
    Some(start..start.checked_add(size_bytes.min(LARGEST_DYNAMIC_BYTES))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No ELF file: only its ends are kept.
    #[test]
    fn both_ends_are_kept_whatever_the_pieces_are() {
        let contents: Vec<u8> = (0..=250).cycle().take(FIRST_BYTES + 1000 + LAST_BYTES).collect();
        for piece_bytes in [1 << 16, FIRST_BYTES + 1, contents.len()] {
            let mut kept = Kept::new(contents.len(), &contents[..piece_bytes]);
            contents.chunks(piece_bytes).for_each(|piece| kept.push(piece));
            let mut image = vec![0; contents.len()];
            let wanted = [5..9, FIRST_BYTES - 1..FIRST_BYTES + 1, FIRST_BYTES + 500..FIRST_BYTES + 2000];
            let rest = kept.fill(&mut image, &wanted);
            assert_eq!(rest, [FIRST_BYTES..FIRST_BYTES + 1, FIRST_BYTES + 500..FIRST_BYTES + 1000]);
            let mut expected = vec![0; contents.len()];
            for range in [5..9, FIRST_BYTES - 1..FIRST_BYTES, FIRST_BYTES + 1000..FIRST_BYTES + 2000] {
                expected[range.clone()].copy_from_slice(&contents[range]);
            }
            assert!(image == expected);
        }
    }

    #[test]
    fn a_file_that_fits_is_kept_whole() {
        for length in [1, 2, 1000] {
            let contents = vec![7; length];
            let mut kept = Kept::new(length, &contents);
            kept.push(&contents);
            let mut image = vec![0; length];
            assert!(kept.fill(&mut image, &in_order(vec![0..length, 0..1])).is_empty());
            assert_eq!(image, contents);
        }
    }

    #[test]
    fn what_has_not_gone_by_is_not_kept() {
        let mut kept = Kept::new(1000, &[7; 10]);
        kept.push(&[7; 10]);
        let mut image = vec![0; 1000];
        assert_eq!(kept.fill(&mut image, &[5..20, 30..40]), [10..20, 30..40]);
        assert_eq!(image[..12], [0, 0, 0, 0, 0, 7, 7, 7, 7, 7, 0, 0]);
    }
}
