//! From the tables of an ELF file, 32 or 64 bits wide and of either byte order, to [`ElfFile`].

use object::elf;
use object::read::elf::{FileHeader, ProgramHeader, SectionTable, Sym, SymbolTable};
use object::{Endianness, SymbolIndex};

use super::{DynamicSymbol, ElfError, ElfFile, Machine, VersionNeed};

/// A linker writes one record for each version of each library; real files have a few dozen.
const VERSION_RECORD_LIMIT: usize = 1 << 16;

impl From<object::read::Error> for ElfError {
    fn from(error: object::read::Error) -> Self {
        Self::Damaged(error.to_string())
    }
}

pub(super) fn parse(data: &[u8]) -> Result<ElfFile<'_>, ElfError> {
    match data {
        [0x7f, b'E', b'L', b'F', 1, ..] => Tables::<elf::FileHeader32<Endianness>>::read(data)?.to_file(),
        [0x7f, b'E', b'L', b'F', 2, ..] => Tables::<elf::FileHeader64<Endianness>>::read(data)?.to_file(),
        _ => Err(ElfError::NotElf),
    }
}

struct Tables<'data, Elf: FileHeader<Endian = Endianness>> {
    data: &'data [u8],
    header: &'data Elf,
    endian: Endianness,
    sections: SectionTable<'data, Elf>,
    symbols: SymbolTable<'data, Elf>,
}

/// What an index in `.gnu.version` stands for.
#[derive(Clone, Copy)]
enum VersionName<'data> {
    Defined(&'data str),
    /// The position among the needs.
    Needed(usize),
}

struct Versions<'data> {
    by_index: Vec<Option<VersionName<'data>>>,
    needs: Vec<VersionNeed<'data>>,
}

impl<'data> Versions<'data> {
    fn set(&mut self, index: elf::VersionIndex, name: VersionName<'data>) {
        let position = usize::from(index);
        if index.is_special() {
            return;
        }
        if self.by_index.len() <= position {
            self.by_index.resize(position + 1, None);
        }
        self.by_index[position] = Some(name);
    }
}

impl<'data, Elf: FileHeader<Endian = Endianness>> Tables<'data, Elf> {
    fn read(data: &'data [u8]) -> Result<Self, ElfError> {
        let header = Elf::parse(data)?;
        let endian = header.endian()?;
        let sections = header.sections(endian, data)?;
        if sections.is_empty() {
            let segments = header.program_headers(endian, data)?;
            if segments.iter().any(|segment| segment.p_type(endian) == elf::PT_DYNAMIC) {
                return Err(ElfError::NoSections);
            }
        }
        let symbols = sections.symbols(endian, data, elf::SHT_DYNSYM)?;
        Ok(Self { data, header, endian, sections, symbols })
    }

    fn to_file(&self) -> Result<ElfFile<'data>, ElfError> {
        let mut versions = self.versions()?;
        let (undefined, defined) = self.dynamic_symbols(&mut versions)?;
        let mut file = ElfFile {
            machine: self.machine(),
            soname: None,
            needed: Vec::new(),
            rpath: None,
            runpath: None,
            version_needs: versions.needs,
            undefined,
            defined,
        };
        let dynamic = self.sections.dynamic_table(self.endian, self.data)?;
        for entry in &dynamic {
            let string = || text("library or path", dynamic.string(entry)?);
            match entry.tag {
                elf::DT_NEEDED => file.needed.push(string()?),
                elf::DT_SONAME => file.soname = Some(string()?),
                elf::DT_RPATH => file.rpath = Some(string()?),
                elf::DT_RUNPATH => file.runpath = Some(string()?),
                _ => {}
            }
        }
        Ok(file)
    }

    fn machine(&self) -> Machine {
        let (wide, little) = (self.header.is_class_64(), self.header.is_little_endian());
        match self.header.e_machine(self.endian) {
            elf::EM_X86_64 => Machine::X86_64,
            elf::EM_AARCH64 if little => Machine::Aarch64,
            elf::EM_386 => Machine::I686,
            elf::EM_ARM if little => Machine::Armv7l,
            elf::EM_PPC64 if little => Machine::Ppc64le,
            elf::EM_S390 if wide => Machine::S390x,
            elf::EM_RISCV if wide => Machine::Riscv64,
            elf::EM_LOONGARCH if wide => Machine::Loongarch64,
            other => Machine::Other(other.0),
        }
    }

    fn versions(&self) -> Result<Versions<'data>, ElfError> {
        let mut versions = Versions { by_index: Vec::new(), needs: Vec::new() };
        self.defined_versions(&mut versions)?;
        self.needed_versions(&mut versions)?;
        Ok(versions)
    }

    fn defined_versions(&self, versions: &mut Versions<'data>) -> Result<(), ElfError> {
        let Some((mut definitions, link)) = self.sections.gnu_verdef(self.endian, self.data)? else { return Ok(()) };
        let strings = self.sections.strings(self.endian, self.data, link)?;
        let mut count = 0;
        while let Some((definition, mut names)) = definitions.next()? {
            count_record(&mut count)?;
            // The base definition names the library itself.
            if definition.vd_flags.get(self.endian).contains(elf::VER_FLG_BASE) {
                continue;
            }
            if let Some(name) = names.next()? {
                let name = text("symbol version", name.name(self.endian, strings)?)?;
                let index = definition.vd_ndx.get(self.endian);
                versions.set(elf::VersymIndex::from(index).index(), VersionName::Defined(name));
            }
        }
        Ok(())
    }

    fn needed_versions(&self, versions: &mut Versions<'data>) -> Result<(), ElfError> {
        let Some((mut libraries, link)) = self.sections.gnu_verneed(self.endian, self.data)? else { return Ok(()) };
        let strings = self.sections.strings(self.endian, self.data, link)?;
        let mut count = 0;
        while let Some((library, mut needs)) = libraries.next()? {
            let library = text("library", library.file(self.endian, strings)?)?;
            while let Some(need) = needs.next()? {
                count_record(&mut count)?;
                let version = text("symbol version", need.name(self.endian, strings)?)?;
                let is_weak = need.vna_flags.get(self.endian).contains(elf::VER_FLG_WEAK);
                versions.set(need.vna_other(self.endian).index(), VersionName::Needed(versions.needs.len()));
                versions.needs.push(VersionNeed { library, version, is_weak, symbols: Vec::new() });
            }
        }
        Ok(())
    }

    /// Undefined and defined symbols. Notes in `versions` which symbol needs which version.
    fn dynamic_symbols(
        &self,
        versions: &mut Versions<'data>,
    ) -> Result<(Vec<DynamicSymbol<'data>>, Vec<DynamicSymbol<'data>>), ElfError> {
        let indices = self.sections.gnu_versym(self.endian, self.data)?.map_or(&[][..], |(indices, _)| indices);
        let (mut undefined, mut defined) = (Vec::new(), Vec::new());
        for (SymbolIndex(position), symbol) in self.symbols.enumerate() {
            let name = text("symbol", self.symbols.symbol_name(self.endian, symbol)?)?;
            if name.is_empty() || symbol.is_local() {
                continue;
            }
            let index = indices.get(position).map(|index| index.0.get(self.endian));
            let version = index.and_then(|index| versions.by_index.get(usize::from(index.index())).copied().flatten());
            let mut found = DynamicSymbol {
                name,
                version: None,
                is_default: !index.is_some_and(|index| index.is_hidden()),
                is_weak: symbol.is_weak(),
            };
            found.version = match version {
                Some(VersionName::Defined(version)) => Some(version),
                Some(VersionName::Needed(position)) => {
                    // A variable that an executable copied is defined there and still needs its version.
                    versions.needs[position].symbols.push(name);
                    Some(versions.needs[position].version)
                }
                None => None,
            };
            if symbol.is_undefined(self.endian) { undefined.push(found) } else { defined.push(found) }
        }
        Ok((undefined, defined))
    }
}

fn count_record(count: &mut usize) -> Result<(), ElfError> {
    *count += 1;
    if *count > VERSION_RECORD_LIMIT {
        return Err(ElfError::Damaged(format!("it has more than {VERSION_RECORD_LIMIT} symbol version records")));
    }
    Ok(())
}

fn text<'data>(what: &'static str, bytes: &'data [u8]) -> Result<&'data str, ElfError> {
    std::str::from_utf8(bytes)
        .map_err(|_| ElfError::NameNotUtf8 { what, name: String::from_utf8_lossy(bytes).into_owned() })
}
