//! In which version of the GNU C library a symbol appeared, from a copy of the library itself.
//!
//! It explains a symbol that a linker did not find: one that the target's C library does not have yet and the build
//! machine's has.

use std::collections::BTreeMap;

use super::{ElfError, ElfFile, GlibcVersion};

/// The versioned symbols of a library.
#[derive(Debug, Clone)]
pub struct ExportedVersions<'data> {
    symbols: BTreeMap<&'data str, SymbolVersions<'data>>,
}

#[derive(Debug, Clone, Default)]
struct SymbolVersions<'data> {
    default: Option<&'data str>,
    oldest: Option<GlibcVersion>,
}

/// Reads the versioned symbols of `libc`, the bytes of `libc.so.6` or of another library of the GNU C library.
pub fn exported_versions(libc: &[u8]) -> Result<ExportedVersions<'_>, ElfError> {
    let mut symbols: BTreeMap<&str, SymbolVersions<'_>> = BTreeMap::new();
    for symbol in ElfFile::parse(libc)?.defined_symbols() {
        // A linker also defines each version's own name as a symbol.
        let Some(version) = symbol.version().filter(|version| *version != symbol.name()) else { continue };
        let versions = symbols.entry(symbol.name()).or_default();
        if symbol.is_default() {
            versions.default = Some(version);
        }
        let oldest = versions.oldest.into_iter().chain(GlibcVersion::from_symbol_version(version)).min();
        versions.oldest = oldest;
    }
    Ok(ExportedVersions { symbols })
}

impl<'data> ExportedVersions<'data> {
    /// The version that new programs get when they link to `symbol`, such as `GLIBC_2.34`.
    #[must_use]
    pub fn default_version(&self, symbol: &str) -> Option<&'data str> {
        self.symbols.get(symbol)?.default
    }

    /// The first version of the GNU C library that has `symbol`.
    #[must_use]
    pub fn introduced_in(&self, symbol: &str) -> Option<GlibcVersion> {
        self.symbols.get(symbol)?.oldest
    }

    /// Every symbol that has a default version, with that version, in order of names.
    pub fn iter(&self) -> impl Iterator<Item = (&'data str, &'data str)> {
        self.symbols.iter().filter_map(|(symbol, versions)| Some((*symbol, versions.default?)))
    }
}
