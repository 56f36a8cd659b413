//! What a caller who inspects native files gets of a member while a wheel is read.

use crate::elf::ElfError;
use crate::fatbin::Fatbin;

/// A member with native code: an ELF file, a fatbin, or PTX.
#[derive(Debug)]
pub struct NativeMember<'data> {
    pub(super) size_bytes: u64,
    pub(super) code: NativeCode<'data>,
    pub(super) fatbins: Vec<Fatbin>,
}

/// What a native member is.
#[derive(Debug)]
pub enum NativeCode<'data> {
    /// An ELF file for [`crate::elf`]. Of a large one only the headers, the tables of dynamic linking and the names that
    /// these refer to are there, and zeros everywhere else.
    Elf(Result<&'data [u8], ElfError>),
    /// A fatbin that is a file of its own.
    Fatbin,
    /// The first bytes of a PTX file.
    Ptx(&'data [u8]),
}

impl NativeMember<'_> {
    /// The size of the contents.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// What it is.
    #[must_use]
    pub fn code(&self) -> &NativeCode<'_> {
        &self.code
    }

    /// The containers of GPU code in it, in order.
    #[must_use]
    pub fn fatbins(&self) -> &[Fatbin] {
        &self.fatbins
    }
}
