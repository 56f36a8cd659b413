//! A large ELF file with only those parts filled in that this crate reads: its tables, and the names they refer to.
//!
//! Code and data are what makes libraries large, and nothing here looks at them. They stay zeros that were never
//! written, and memory that was never written takes no room.

use std::io;

use object::read::elf::{FileHeader, ProgramHeader as _, SectionHeader as _};
use object::{Endianness, elf};

use super::ElfError;

/// Headers are usually all in here.
const FIRST_BYTES: u64 = 64 * 1024;
/// The address space of a file that claims more is not asked for.
const LARGEST_FILE_BYTES: u64 = 1 << 36;
/// Symbols and their names have some fifty megabytes in the largest libraries known.
const LARGEST_TABLES_BYTES: u64 = 512 * 1024 * 1024;

/// Fills a buffer with the file's contents from an offset on.
pub(crate) type ReadAt<'file> = dyn FnMut(u64, &mut [u8]) -> io::Result<()> + 'file;

/// The image of a file of `size_bytes`, for [`super::ElfFile`] and [`super::ElfLayout`].
pub(crate) fn image(size_bytes: u64, read_at: &mut ReadAt<'_>) -> Result<Vec<u8>, ElfError> {
    if size_bytes > LARGEST_FILE_BYTES {
        return Err(ElfError::Damaged(format!("{size_bytes} bytes are more than a library has")));
    }
    let too_large = |_| ElfError::Damaged(format!("{size_bytes} bytes do not fit into the address space"));
    let length = usize::try_from(size_bytes).map_err(too_large)?;
    let mut sparse = Sparse { bytes: vec![0; length], filled_bytes: 0, read_at };
    sparse.fill(0, FIRST_BYTES)?;
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
    read_at: &'file mut ReadAt<'read>,
}

impl Sparse<'_, '_> {
    /// Fills in what the file has of a range. Ranges that reach beyond its end are for the reader to complain of.
    fn fill(&mut self, offset: u64, size_bytes: u64) -> Result<(), ElfError> {
        let length = self.bytes.len() as u64;
        let (start, end) = (offset.min(length), offset.saturating_add(size_bytes).min(length));
        self.filled_bytes = self.filled_bytes.saturating_add(end - start);
        if self.filled_bytes > LARGEST_TABLES_BYTES {
            return Err(ElfError::Damaged(format!("its tables have more than {LARGEST_TABLES_BYTES} bytes")));
        }
        let position = |offset| usize::try_from(offset).expect("an offset within the buffer");
        let part = &mut self.bytes[position(start)..position(end)];
        (self.read_at)(start, part).map_err(|error| ElfError::Damaged(error.to_string()))
    }
}

fn fill_tables<Elf: FileHeader<Endian = Endianness>>(sparse: &mut Sparse<'_, '_>) -> Result<(), ElfError> {
    let header = *Elf::parse(&*sparse.bytes)?;
    let endian = header.endian()?;
    sparse.fill(
        header.e_phoff(endian).into(),
        u64::from(header.e_phnum(endian)) * u64::from(header.e_phentsize(endian)),
    )?;
    let (table, row_bytes) = (header.e_shoff(endian).into(), u64::from(header.e_shentsize(endian)));
    // Where there are too many sections for the header to count, the first row does.
    sparse.fill(table, row_bytes)?;
    let count = match header.e_shnum(endian) {
        0 if table != 0 => header.section_0(endian, &*sparse.bytes)?.map_or(0, |first| first.sh_size(endian).into()),
        count => count.into(),
    };
    sparse.fill(table, count.saturating_mul(row_bytes))?;
    for (offset, size_bytes) in ranges(&header, endian, &sparse.bytes)? {
        sparse.fill(offset, size_bytes)?;
    }
    Ok(())
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
