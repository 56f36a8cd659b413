//! A large ELF file with only those parts filled in that this crate reads: its tables, and the names they refer to.
//!
//! Code and data are what makes libraries large, and nothing here looks at them. They stay zeros that were never
//! written, and memory that was never written takes no room.

use std::io;
use std::ops::Range;

use object::read::elf::{FileHeader, ProgramHeader as _, SectionHeader as _};
use object::{Endianness, elf};

use super::ElfError;

/// Headers are usually all in here.
const FIRST_BYTES: u64 = 64 * 1024;
/// The address space of a file that claims more is not asked for.
const LARGEST_FILE_BYTES: u64 = 1 << 36;
/// Symbols and their names have some fifty megabytes in the largest libraries known.
const LARGEST_TABLES_BYTES: u64 = 512 * 1024 * 1024;

/// Fills parts of the image with the file's contents. The parts are in order and do not overlap.
///
/// It is called once for the beginning of the file and at most three times after that, whatever the file says.
pub(crate) type Fill<'file> = dyn FnMut(&mut [u8], &[Range<usize>]) -> io::Result<()> + 'file;

/// The image of a file of `size_bytes`, for [`super::ElfFile`] and [`super::ElfLayout`].
pub(crate) fn image(size_bytes: u64, fill: &mut Fill<'_>) -> Result<Vec<u8>, ElfError> {
    if size_bytes > LARGEST_FILE_BYTES {
        return Err(ElfError::Damaged(format!("{size_bytes} bytes are more than a library has")));
    }
    let too_large = |_| ElfError::Damaged(format!("{size_bytes} bytes do not fit into the address space"));
    let length = usize::try_from(size_bytes).map_err(too_large)?;
    let mut sparse = Sparse { bytes: vec![0; length], filled_bytes: 0, fill };
    sparse.fill([(0, FIRST_BYTES)])?;
    match sparse.bytes {
        ref bytes if bytes.starts_with(b"\x7fELF\x01") => fill_tables::<elf::FileHeader32<Endianness>>(&mut sparse)?,
        ref bytes if bytes.starts_with(b"\x7fELF\x02") => fill_tables::<elf::FileHeader64<Endianness>>(&mut sparse)?,
        _ => return Err(ElfError::NotElf),
    }
    Ok(sparse.bytes)
}

struct Sparse<'file, 'read> {
    bytes: Vec<u8>,
    filled_bytes: u64,
    fill: &'file mut Fill<'read>,
}

impl Sparse<'_, '_> {
    /// Fills in what the file has of ranges, given as offsets and sizes. Ranges that reach beyond its end are for the
    /// reader to complain of.
    fn fill(&mut self, ranges: impl IntoIterator<Item = (u64, u64)>) -> Result<(), ElfError> {
        let length = self.bytes.len() as u64;
        let position = |offset| usize::try_from(offset).expect("an offset within the buffer");
        let mut wanted = Vec::new();
        for (offset, size_bytes) in ranges {
            let (start, end) = (offset.min(length), offset.saturating_add(size_bytes).min(length));
            self.filled_bytes = self.filled_bytes.saturating_add(end - start);
            if self.filled_bytes > LARGEST_TABLES_BYTES {
                return Err(ElfError::Damaged(format!("its tables have more than {LARGEST_TABLES_BYTES} bytes")));
            }
            wanted.push(position(start)..position(end));
        }
        let wanted = in_order(wanted);
        if wanted.is_empty() {
            return Ok(());
        }
        (self.fill)(&mut self.bytes, &wanted).map_err(|error| ElfError::Damaged(error.to_string()))
    }
}

/// The same bytes as `ranges`, as ranges in order that do not overlap.
pub(super) fn in_order(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.retain(|range| !range.is_empty());
    ranges.sort_unstable_by_key(|range| range.start);
    ranges.dedup_by(|next, range| {
        let continues = next.start <= range.end;
        if continues {
            range.end = range.end.max(next.end);
        }
        continues
    });
    ranges
}

fn fill_tables<Elf: FileHeader<Endian = Endianness>>(sparse: &mut Sparse<'_, '_>) -> Result<(), ElfError> {
    let header = *Elf::parse(&*sparse.bytes)?;
    let endian = header.endian()?;
    let segments_bytes = u64::from(header.e_phnum(endian)) * u64::from(header.e_phentsize(endian));
    let (table, row_bytes) = (header.e_shoff(endian).into(), u64::from(header.e_shentsize(endian)));
    // Where there are too many sections for the header to count, the first row does.
    let counted = u64::from(header.e_shnum(endian));
    sparse.fill([(header.e_phoff(endian).into(), segments_bytes), (table, counted.max(1) * row_bytes)])?;
    if counted == 0 && table != 0 {
        let count = header.section_0(endian, &*sparse.bytes)?.map_or(0, |first| first.sh_size(endian).into());
        sparse.fill([(table, count.saturating_mul(row_bytes))])?;
    }
    let ranges = ranges(&header, endian, &sparse.bytes)?;
    sparse.fill(ranges)
}

/// Where the tables are that are read, and the strings that they refer to.
fn ranges<Elf: FileHeader<Endian = Endianness>>(
    header: &Elf,
    endian: Endianness,
    image: &[u8],
) -> Result<Vec<(u64, u64)>, ElfError> {
    const READ: &[elf::SectionType] = &[
        elf::SHT_DYNSYM,
        elf::SHT_DYNAMIC,
        elf::SHT_GNU_VERSYM,
        elf::SHT_GNU_VERNEED,
        elf::SHT_GNU_VERDEF,
        elf::SHT_SYMTAB_SHNDX,
    ];
    let sections = header.section_headers(endian, image)?;
    let mut wanted = Vec::new();
    if !sections.is_empty() {
        wanted.push(header.shstrndx(endian, image)?.try_into().unwrap_or(usize::MAX));
    }
    for (position, section) in sections.iter().enumerate() {
        if READ.contains(&section.sh_type(endian)) {
            wanted.extend([position, section.sh_link(endian).try_into().unwrap_or(usize::MAX)]);
        }
    }
    wanted.sort_unstable();
    wanted.dedup();
    let dynamic = header.program_headers(endian, image)?.iter().filter(|row| row.p_type(endian) == elf::PT_DYNAMIC);
    let dynamic = dynamic.map(|row| (row.p_offset(endian).into(), row.p_filesz(endian).into()));
    let sections = wanted.into_iter().filter_map(|position| sections.get(position));
    Ok(sections
        .filter(|section| section.sh_type(endian) != elf::SHT_NOBITS)
        .map(|section| (section.sh_offset(endian).into(), section.sh_size(endian).into()))
        .chain(dynamic)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: usize = 64 << 20;
    const ROW_BYTES: usize = 64;

    /// Where the table is that row `row` is about.
    fn place(row: usize) -> usize {
        LENGTH - row * 300
    }

    fn put(file: &mut [u8], offset: usize, value: &[u8]) {
        file[offset..offset + value.len()].copy_from_slice(value);
    }

    /// A 64-bit file with its tables of segments and sections in the middle. The first section counts the others, and
    /// each of these is a symbol table of `size_bytes` at a place of its own.
    fn with_sections(count: usize, size_bytes: u64) -> Vec<u8> {
        let (segments, sections) = (LENGTH / 3, LENGTH / 2);
        let mut file = vec![0; LENGTH];
        put(&mut file, 0, b"\x7fELF\x02\x01\x01");
        put(&mut file, 0x20, &(segments as u64).to_le_bytes());
        put(&mut file, 0x28, &(sections as u64).to_le_bytes());
        // Sizes of the header and of rows, the numbers of segments and of sections, and which one has their names.
        put(&mut file, 0x34, &[64, 0, 56, 0, 1, 0, 64, 0, 0, 0, 1, 0]);
        put(&mut file, sections + 32, &(count as u64).to_le_bytes());
        for row in 1..count {
            let at = sections + row * ROW_BYTES;
            put(&mut file, at + 4, &elf::SHT_DYNSYM.0.to_le_bytes());
            put(&mut file, at + 24, &(place(row) as u64).to_le_bytes());
            file[place(row)] = 7;
            put(&mut file, at + 32, &size_bytes.to_le_bytes());
        }
        file
    }

    /// The image, and how often something was asked for.
    fn image_of(file: &[u8]) -> (Result<Vec<u8>, ElfError>, usize) {
        let mut calls = 0;
        let result = image(file.len() as u64, &mut |image, wanted| {
            calls += 1;
            assert!(wanted.iter().all(|range| !range.is_empty()));
            assert!(wanted.windows(2).all(|pair| pair[0].end < pair[1].start), "in order, and apart");
            for range in wanted {
                image[range.clone()].copy_from_slice(&file[range.clone()]);
            }
            Ok(())
        });
        (result, calls)
    }

    #[test]
    fn however_many_tables_there_are_they_are_asked_for_at_once() {
        let file = with_sections(50_000, 100);
        let (image, calls) = image_of(&file);
        let image = image.unwrap();
        assert_eq!(calls, 4);
        assert!((1..50_000).all(|row| image[place(row)] == 7));
    }

    #[test]
    fn tables_that_claim_too_much_are_refused_before_they_are_read() {
        let (result, calls) = image_of(&with_sections(50_000, 100_000));
        assert_eq!(result.map(|_| ()), Err(ElfError::Damaged("its tables have more than 536870912 bytes".to_owned())));
        assert_eq!(calls, 3);
    }

    #[test]
    fn ranges_in_order_hold_the_same_bytes() {
        assert_eq!(in_order(vec![5..9, 0..2, 7..8, 9..10, 3..3, 1..2, 20..21]), [0..2, 5..10, 20..21]);
        assert_eq!(in_order(vec![]), [0..0; 0]);
    }
}
