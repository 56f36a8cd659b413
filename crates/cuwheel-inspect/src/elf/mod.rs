//! Shared libraries in the ELF format: what they need, what they export, and the oldest C library they load with.
//!
//! Names are borrowed from the file's bytes. Relocations, code and debugging information are not read. Sections are
//! needed: a library whose section table was removed is refused instead of seeming to need nothing.

mod exports;
mod glibc;
pub(crate) mod kept;
mod layout;
mod read;
pub(crate) mod sparse;

use std::fmt;

pub use exports::{ExportedVersions, exported_versions};
pub use glibc::{GlibcVersion, InvalidGlibcVersion};
pub use layout::{ElfKind, ElfLayout, Section, Segment, SegmentKind};

/// Why a file cannot be read as ELF.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ElfError {
    /// The file does not begin as an ELF file.
    #[error("it is no ELF file")]
    NotElf,
    /// A table in the file is damaged.
    #[error("the ELF file is damaged: {0}")]
    Damaged(String),
    /// The loader finds a dynamic table and there are no sections to find it by.
    #[error("its section table was removed, so that its symbols cannot be inspected: strip it with `strip` instead")]
    NoSections,
    /// A name is not UTF-8.
    #[error("the {what} {name:?} is not UTF-8")]
    NameNotUtf8 {
        /// What has the name.
        what: &'static str,
        /// The name with what is not UTF-8 replaced.
        name: String,
    },
}

/// A shared library, an executable or an object file.
#[derive(Debug, Clone)]
pub struct ElfFile<'data> {
    machine: Machine,
    soname: Option<&'data str>,
    needed: Vec<&'data str>,
    rpath: Option<&'data str>,
    runpath: Option<&'data str>,
    version_needs: Vec<VersionNeed<'data>>,
    undefined: Vec<DynamicSymbol<'data>>,
    defined: Vec<DynamicSymbol<'data>>,
}

impl<'data> ElfFile<'data> {
    /// Reads the dynamic linking information of the file `data`.
    pub fn parse(data: &'data [u8]) -> Result<Self, ElfError> {
        read::parse(data)
    }

    /// The processor.
    #[must_use]
    pub fn machine(&self) -> Machine {
        self.machine
    }

    /// The name that other files record when they link to this one (`DT_SONAME`).
    #[must_use]
    pub fn soname(&self) -> Option<&'data str> {
        self.soname
    }

    /// The libraries that are loaded with this one (`DT_NEEDED`), in order.
    #[must_use]
    pub fn needed(&self) -> &[&'data str] {
        &self.needed
    }

    /// The directories of `DT_RPATH`, separated by colons as in the file.
    #[must_use]
    pub fn rpath(&self) -> Option<&'data str> {
        self.rpath
    }

    /// The directories of `DT_RUNPATH`, separated by colons as in the file.
    #[must_use]
    pub fn runpath(&self) -> Option<&'data str> {
        self.runpath
    }

    /// The symbol versions that the loader looks for in other libraries (`.gnu.version_r`).
    #[must_use]
    pub fn version_needs(&self) -> &[VersionNeed<'data>] {
        &self.version_needs
    }

    /// Dynamic symbols that other libraries must provide.
    #[must_use]
    pub fn undefined_symbols(&self) -> &[DynamicSymbol<'data>] {
        &self.undefined
    }

    /// Dynamic symbols that this file provides.
    #[must_use]
    pub fn defined_symbols(&self) -> &[DynamicSymbol<'data>] {
        &self.defined
    }

    /// The Python modules that this file can create: its exported `PyInit_*` and `PyModExport_*` (PEP 793).
    #[must_use]
    pub fn module_inits(&self) -> Vec<ModuleInit<'data>> {
        self.defined.iter().filter_map(|symbol| ModuleInit::from_symbol(symbol.name)).collect()
    }

    /// The oldest GNU C library that the file loads with; `None` when it uses no versioned symbol of it.
    ///
    /// Weak needs count, though the loader forgives them, because a program that uses them finds less than it was
    /// compiled for.
    #[must_use]
    pub fn glibc_floor(&self) -> Option<GlibcFloor<'data>> {
        let needs = self.version_needs.iter().filter_map(|need| Some((need.glibc()?, need)));
        let version = needs.clone().map(|(version, _)| version).max()?;
        let setting = needs.filter(|(other, _)| *other == version);
        let symbols = setting.flat_map(|(_, need)| need.symbols.iter().copied()).collect();
        Some(GlibcFloor { version, symbols })
    }

    /// Everything that needs a newer GNU C library than `floor`, newest first.
    #[must_use]
    pub fn symbols_above(&self, floor: GlibcVersion) -> Vec<NewerSymbol<'data>> {
        let mut found = Vec::new();
        for need in &self.version_needs {
            let Some(version) = need.glibc().filter(|version| *version > floor) else { continue };
            let newer = |symbol| NewerSymbol {
                symbol,
                version,
                version_name: need.version,
                library: need.library,
                is_weak: need.is_weak,
            };
            if need.symbols.is_empty() {
                found.push(newer(None));
            }
            found.extend(need.symbols.iter().map(|symbol| newer(Some(*symbol))));
        }
        found.sort_by(|left, right| right.version.cmp(&left.version).then_with(|| left.symbol.cmp(&right.symbol)));
        found
    }
}

/// A symbol of the dynamic symbol table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DynamicSymbol<'data> {
    name: &'data str,
    version: Option<&'data str>,
    is_default: bool,
    is_weak: bool,
}

impl<'data> DynamicSymbol<'data> {
    /// The name, as the linker knows it.
    #[must_use]
    pub fn name(&self) -> &'data str {
        self.name
    }

    /// The version, such as `GLIBC_2.34`.
    #[must_use]
    pub fn version(&self) -> Option<&'data str> {
        self.version
    }

    /// Whether it is the version that new programs link to. Only an old version that is kept for old programs is not.
    #[must_use]
    pub fn is_default(&self) -> bool {
        self.is_default
    }

    /// Whether the symbol may be missing at load time (undefined) or be replaced (defined).
    #[must_use]
    pub fn is_weak(&self) -> bool {
        self.is_weak
    }
}

/// A symbol version that the loader looks for in another library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionNeed<'data> {
    library: &'data str,
    version: &'data str,
    is_weak: bool,
    symbols: Vec<&'data str>,
}

impl<'data> VersionNeed<'data> {
    /// The library, such as `libc.so.6`. It has to be among [`ElfFile::needed`], or the loader stops the program.
    #[must_use]
    pub fn library(&self) -> &'data str {
        self.library
    }

    /// The version, such as `GLIBC_2.34`.
    #[must_use]
    pub fn version(&self) -> &'data str {
        self.version
    }

    /// Whether the loader goes on when the library lacks the version.
    #[must_use]
    pub fn is_weak(&self) -> bool {
        self.is_weak
    }

    /// The symbols with this version. There may be none, and the loader still looks for the version.
    #[must_use]
    pub fn symbols(&self) -> &[&'data str] {
        &self.symbols
    }

    /// The version as one of the GNU C library.
    #[must_use]
    pub fn glibc(&self) -> Option<GlibcVersion> {
        GlibcVersion::from_symbol_version(self.version)
    }
}

/// The oldest GNU C library that a file loads with, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GlibcFloor<'data> {
    version: GlibcVersion,
    symbols: Vec<&'data str>,
}

impl<'data> GlibcFloor<'data> {
    /// The version.
    #[must_use]
    pub fn version(&self) -> GlibcVersion {
        self.version
    }

    /// The symbols that need this version. Empty when the file only names the version, as with `GLIBC_ABI_DT_RELR`.
    #[must_use]
    pub fn symbols(&self) -> &[&'data str] {
        &self.symbols
    }
}

/// Something that needs a newer GNU C library than wanted. Shown as `symbol needs GLIBC_2.36 of libc.so.6`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewerSymbol<'data> {
    symbol: Option<&'data str>,
    version: GlibcVersion,
    version_name: &'data str,
    library: &'data str,
    is_weak: bool,
}

impl<'data> NewerSymbol<'data> {
    /// The symbol; `None` when the file as a whole needs the version.
    #[must_use]
    pub fn symbol(&self) -> Option<&'data str> {
        self.symbol
    }

    /// The version that it needs.
    #[must_use]
    pub fn version(&self) -> GlibcVersion {
        self.version
    }

    /// The library that has it.
    #[must_use]
    pub fn library(&self) -> &'data str {
        self.library
    }

    /// Whether the loader goes on when the library lacks the version.
    #[must_use]
    pub fn is_weak(&self) -> bool {
        self.is_weak
    }
}

impl fmt::Display for NewerSymbol<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let symbol = self.symbol.unwrap_or("the file");
        write!(formatter, "{symbol} needs {} of {}", self.version_name, self.library)
    }
}

/// An exported function that creates a Python module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModuleInit<'data> {
    symbol: &'data str,
    module: &'data str,
}

impl<'data> ModuleInit<'data> {
    fn from_symbol(symbol: &'data str) -> Option<Self> {
        let module = symbol.strip_prefix("PyInit_").or_else(|| symbol.strip_prefix("PyModExport_"))?;
        (!module.is_empty()).then_some(Self { symbol, module })
    }

    /// The function, such as `PyInit__native`.
    #[must_use]
    pub fn symbol(&self) -> &'data str {
        self.symbol
    }

    /// The last part of the module's name, such as `_native`.
    #[must_use]
    pub fn module(&self) -> &'data str {
        self.module
    }
}

/// A processor, shown as platform tags spell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Machine {
    /// `x86_64`
    X86_64,
    /// `aarch64`
    Aarch64,
    /// `i686`
    I686,
    /// `armv7l`
    Armv7l,
    /// `ppc64le`
    Ppc64le,
    /// `s390x`
    S390x,
    /// `riscv64`
    Riscv64,
    /// `loongarch64`
    Loongarch64,
    /// Any other, by its number in the ELF header.
    Other(u16),
}

impl fmt::Display for Machine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
            Self::I686 => "i686",
            Self::Armv7l => "armv7l",
            Self::Ppc64le => "ppc64le",
            Self::S390x => "s390x",
            Self::Riscv64 => "riscv64",
            Self::Loongarch64 => "loongarch64",
            Self::Other(number) => return write!(formatter, "machine {number}"),
        })
    }
}
