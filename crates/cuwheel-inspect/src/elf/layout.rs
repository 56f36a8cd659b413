//! How an ELF file is laid out: its kind, the segments that a loader maps, and the sections that fill it.
//!
//! Contents of sections are not read; names and symbols are [`super::ElfFile`]'s.

use object::Endianness;
use object::elf;
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};

use super::ElfError;

/// The outline of an ELF file.
#[derive(Debug, Clone)]
pub struct ElfLayout {
    kind: ElfKind,
    segments: Vec<Segment>,
    sections: Vec<Section>,
}

/// What an ELF file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ElfKind {
    /// Loaded into a process: a shared library, or a program that may lie at any address.
    Shared,
    /// A program for a fixed address.
    Executable,
    /// An object file for a linker.
    Object,
    /// Anything else, such as a core dump.
    Other,
}

/// What a segment is for, as far as a loader's rules tell segments apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentKind {
    /// Mapped into memory.
    Load,
    /// The table of segments itself, where a loader finds it in memory.
    Headers,
    /// The name of the loader: the file is a program.
    Interpreter,
    /// Says whether the stack has to be executable.
    Stack,
    /// Any other.
    Other,
}

/// A row of the table of segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// What it is for.
    pub kind: SegmentKind,
    /// Where it begins in the file.
    pub offset: u64,
    /// Where it begins in memory, relative to where the file is loaded.
    pub address: u64,
    /// Its size in the file.
    pub file_size_bytes: u64,
    /// Its size in memory.
    pub memory_size_bytes: u64,
    /// The alignment that it asks for.
    pub alignment: u64,
    /// Whether it holds code, or asks for an executable stack.
    pub is_executable: bool,
}

/// A row of the table of sections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// The name, such as `.text`; what is not UTF-8 is replaced.
    pub name: String,
    /// Where it begins in the file.
    pub offset: u64,
    /// Where it begins in memory, relative to where the file is loaded; 0 for what is not loaded.
    pub address: u64,
    /// The bytes that it takes in the file.
    pub file_size_bytes: u64,
    /// Whether it is part of what a loader maps. The rest is for linkers and debuggers.
    pub is_loaded: bool,
}

impl Section {
    /// Whether it holds information for debuggers.
    #[must_use]
    pub fn is_debug_info(&self) -> bool {
        !self.is_loaded && (self.name.starts_with(".debug_") || self.name.starts_with(".zdebug_"))
    }

    /// Whether `strip` takes it out: debugging information and the symbols that no loader reads.
    #[must_use]
    pub fn is_strippable(&self) -> bool {
        !self.is_loaded && (self.is_debug_info() || self.name == ".symtab" || self.name == ".strtab")
    }
}

impl ElfLayout {
    /// Reads the tables of the file `data`.
    pub fn parse(data: &[u8]) -> Result<Self, ElfError> {
        match data {
            [0x7f, b'E', b'L', b'F', 1, ..] => read::<elf::FileHeader32<Endianness>>(data),
            [0x7f, b'E', b'L', b'F', 2, ..] => read::<elf::FileHeader64<Endianness>>(data),
            _ => Err(ElfError::NotElf),
        }
    }

    /// What the file is for.
    #[must_use]
    pub fn kind(&self) -> ElfKind {
        self.kind
    }

    /// The table of segments, in order.
    #[must_use]
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The table of sections, in order, without the empty first row.
    #[must_use]
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// Whether the file is started as a program.
    #[must_use]
    pub fn is_program(&self) -> bool {
        self.kind == ElfKind::Executable || self.segments.iter().any(|segment| segment.kind == SegmentKind::Interpreter)
    }
}

fn read<Elf: FileHeader<Endian = Endianness>>(data: &[u8]) -> Result<ElfLayout, ElfError> {
    let header = Elf::parse(data)?;
    let endian = header.endian()?;
    let kind = match header.e_type(endian) {
        elf::ET_DYN => ElfKind::Shared,
        elf::ET_EXEC => ElfKind::Executable,
        elf::ET_REL => ElfKind::Object,
        _ => ElfKind::Other,
    };
    let segments = header.program_headers(endian, data)?.iter().map(|segment| Segment {
        kind: match segment.p_type(endian) {
            elf::PT_LOAD => SegmentKind::Load,
            elf::PT_PHDR => SegmentKind::Headers,
            elf::PT_INTERP => SegmentKind::Interpreter,
            elf::PT_GNU_STACK => SegmentKind::Stack,
            _ => SegmentKind::Other,
        },
        offset: segment.p_offset(endian).into(),
        address: segment.p_vaddr(endian).into(),
        file_size_bytes: segment.p_filesz(endian).into(),
        memory_size_bytes: segment.p_memsz(endian).into(),
        alignment: segment.p_align(endian).into(),
        is_executable: segment.p_flags(endian).contains(elf::PF_X),
    });
    let table = header.sections(endian, data)?;
    let sections = table.iter().skip(1).map(|section| {
        let name = table.section_name(endian, section).unwrap_or_default();
        let takes_no_room = section.sh_type(endian) == elf::SHT_NOBITS;
        Section {
            name: String::from_utf8_lossy(name).into_owned(),
            offset: section.sh_offset(endian).into(),
            address: section.sh_addr(endian).into(),
            file_size_bytes: if takes_no_room { 0 } else { section.sh_size(endian).into() },
            is_loaded: section.sh_flags(endian).contains(elf::SHF_ALLOC),
        }
    });
    Ok(ElfLayout { kind, segments: segments.collect(), sections: sections.collect() })
}
