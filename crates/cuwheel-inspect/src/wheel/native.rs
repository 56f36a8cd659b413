//! Native code in a member that goes by piece by piece: what is kept of it, and what is made of that at the end.

use std::ops::Range;
use std::path::Path;

use super::{NativeCode, NativeMember};
use crate::archive::{self, Member, Source};
use crate::elf::kept::Kept;
use crate::elf::sparse;
use crate::fatbin;

const ELF_MAGIC: &[u8] = b"\x7fELF";
/// Of a larger ELF file only tables are kept.
const WHOLE_LIMIT_BYTES: u64 = 8 * 1024 * 1024;
/// Version and target are the first directives of a PTX file; licences and comments come before.
const PTX_BYTES: usize = 64 * 1024;

/// A member of native code on the way.
pub(super) enum Native {
    Elf { contents: Vec<u8>, scanner: fatbin::Scanner },
    LargeElf { kept: Kept, scanner: fatbin::Scanner },
    Fatbin { scanner: fatbin::Scanner },
    Ptx { text: Vec<u8> },
}

impl Native {
    /// `first` is how the contents begin; nothing of it is taken yet.
    pub(super) fn begin(member: &Member, first: &[u8]) -> Option<Self> {
        let scanner = fatbin::Scanner::new();
        if first.starts_with(ELF_MAGIC) {
            if member.size_bytes <= WHOLE_LIMIT_BYTES {
                return Some(Self::Elf { contents: Vec::new(), scanner });
            }
            // What does not fit into the address space is refused when it is looked at.
            let size_bytes = usize::try_from(member.size_bytes).unwrap_or(usize::MAX);
            return Some(Self::LargeElf { kept: Kept::new(size_bytes, first), scanner });
        }
        if first.starts_with(&fatbin::MAGIC) {
            return Some(Self::Fatbin { scanner });
        }
        let is_ptx = Path::new(&member.name).extension().is_some_and(|extension| extension == "ptx");
        is_ptx.then_some(Self::Ptx { text: Vec::new() })
    }

    pub(super) fn is_elf(&self) -> bool {
        matches!(self, Self::Elf { .. } | Self::LargeElf { .. })
    }

    /// Takes the next piece of the contents.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        match self {
            Self::Elf { contents, scanner } => {
                contents.extend_from_slice(bytes);
                scanner.push(bytes);
            }
            Self::LargeElf { kept, scanner } => {
                kept.push(bytes);
                scanner.push(bytes);
            }
            Self::Fatbin { scanner } => scanner.push(bytes),
            Self::Ptx { text } => {
                let room = PTX_BYTES.saturating_sub(text.len());
                text.extend_from_slice(&bytes[..bytes.len().min(room)]);
            }
        }
    }

    /// Ends the contents and hands what they are to `inspect`. Tables of a large ELF file that were not kept are read
    /// from the archive again.
    pub(super) fn inspect(self, source: &Source, member: &Member, inspect: &dyn Fn(&NativeMember<'_>)) {
        let see = |code: NativeCode<'_>, fatbins| {
            inspect(&NativeMember { size_bytes: member.size_bytes, code, fatbins });
        };
        match self {
            Self::Elf { contents, scanner } => see(NativeCode::Elf(Ok(&contents)), scanner.finish()),
            Self::LargeElf { kept, scanner } => {
                let mut fill = |image: &mut [u8], wanted: &[Range<usize>]| {
                    let rest = kept.fill(image, wanted);
                    if rest.is_empty() { Ok(()) } else { archive::fill_ranges(source, member, &rest, image) }
                };
                let image = sparse::image(member.size_bytes, &mut fill);
                drop(kept);
                see(NativeCode::Elf(image.as_deref().map_err(Clone::clone)), scanner.finish());
            }
            Self::Fatbin { scanner } => see(NativeCode::Fatbin, scanner.finish()),
            Self::Ptx { text } => see(NativeCode::Ptx(&text), Vec::new()),
        }
    }
}
