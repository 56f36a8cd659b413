//! Reads what Python packaging and linkers leave behind: wheels, source distributions, ELF files, fatbins and
//! object archives.
//!
//! Everything here is a reader of bytes: no processes are started, no network is used, nothing is written except by
//! [`sdist::Sdist::unpack_to`]. Input is untrusted: names that would leave the archive are refused, a declared size
//! bounds what is inflated, and damaged input gives an error and never a panic. It is not a builder of wheels. The
//! readers hold no opinion on a wheel that reads well: the [`rules`] of `check-wheel` stand on them.

mod archive;
pub mod digest;
pub mod elf;
pub mod fatbin;
pub mod objects;
pub mod path;
#[cfg(feature = "test-support")]
pub mod rule_pages;
pub mod rules;
pub mod sdist;
pub mod size;
#[cfg(feature = "test-support")]
pub mod testing;
pub mod version;
pub mod wheel;
