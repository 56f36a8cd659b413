//! What GPU code a file has: architectures, bytes, and the toolkits that compiled it.

use std::collections::{BTreeMap, BTreeSet};

use crate::elf::Section;
use crate::fatbin::{Architecture, Feature, ImageKind, ToolkitVersion, cubin, ptx, toolkit};
use crate::wheel::{NativeCode, NativeMember};

/// Objects of which the linked code was made (`nvcc -rdc`). A driver that finds no linked code for its GPU compiles the
/// PTX among them and links that.
const LINKING_SECTION: &str = "__nv_relfatbin";

/// Each major version of the toolkit from 11 on began one of the language: 7.0 came with 11.0, 8.0 with 12.0, 9.0 with
/// 13.0 (PTX ISA, "Release Notes").
const FIRST_ALIGNED_LANGUAGE: u16 = 7;
const LANGUAGE_TO_TOOLKIT: u32 = 4;

/// The GPU code of a file.
#[derive(Debug, Default)]
pub(super) struct GpuCode {
    /// What drivers load, by kind and architecture.
    pub(super) images: BTreeMap<(ImageKind, Architecture), Amount>,
    /// Machine code before it was linked, and input of the link-time optimiser.
    pub(super) for_linking_bytes: u64,
    /// Whether the file is one image, and not a container or a library that may hold several.
    pub(super) is_one_image: bool,
    /// As far as images name them.
    pub(super) toolkits: BTreeSet<ToolkitVersion>,
    /// The newest version of the PTX language that drivers have to know.
    pub(super) language: Option<(u16, u16)>,
    /// Why containers could not be read to their ends.
    pub(super) faults: Vec<String>,
}

/// How much there is of something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Amount {
    pub(super) count: u64,
    /// In the file, compressed as it lies there.
    pub(super) size_bytes: u64,
}

impl GpuCode {
    pub(super) fn of(member: &NativeMember<'_>, sections: &[Section]) -> Self {
        let mut code = Self::default();
        match member.code() {
            NativeCode::Elf(Ok(data)) => {
                if let Some(architecture) = cubin::architecture(data) {
                    code.is_one_image = true;
                    code.add(ImageKind::Sass, architecture, member.size_bytes());
                    code.toolkits.extend(toolkit::named_in(data));
                }
            }
            NativeCode::Ptx(text) => {
                if let Some(found) = ptx::directives(text) {
                    code.is_one_image = true;
                    code.add(ImageKind::Ptx, found.architecture, member.size_bytes());
                    code.toolkits.extend(toolkit::named_in(text));
                    code.language = Some(found.version);
                }
            }
            NativeCode::Elf(Err(_)) | NativeCode::Fatbin => {}
        }
        let linking = sections.iter().find(|section| section.name == LINKING_SECTION);
        for fatbin in member.fatbins() {
            code.faults.extend(fatbin.fault.clone());
            let is_for_linking = linking.is_some_and(|section| {
                (section.offset..section.offset.saturating_add(section.file_size_bytes)).contains(&fatbin.offset)
            });
            for image in &fatbin.images {
                if image.kind == ImageKind::LinkTimeIr || (is_for_linking && image.kind != ImageKind::Ptx) {
                    code.for_linking_bytes = code.for_linking_bytes.saturating_add(image.stored_bytes);
                } else {
                    code.add(image.kind, image.architecture, image.stored_bytes);
                    code.toolkits.extend(image.toolkit);
                    if image.kind == ImageKind::Ptx {
                        code.language = code.language.max(Some(image.version));
                    }
                }
            }
        }
        code
    }

    fn add(&mut self, kind: ImageKind, architecture: Architecture, size_bytes: u64) {
        let amount = self.images.entry((kind, architecture)).or_default();
        amount.count += 1;
        amount.size_bytes = amount.size_bytes.saturating_add(size_bytes);
    }

    /// The major version of the newest toolkit that compiled some of it, and how that is known.
    pub(super) fn newest_toolkit(&self) -> Option<(u32, String)> {
        let named =
            self.toolkits.last().map(|toolkit| (toolkit.major, format!("CUDA {toolkit} compiled its GPU code")));
        let language = self.language.and_then(|(major, minor)| {
            let toolkit = u32::from(major) + LANGUAGE_TO_TOOLKIT;
            (major >= FIRST_ALIGNED_LANGUAGE)
                .then(|| (toolkit, format!("its PTX {major}.{minor} is of CUDA {toolkit}")))
        });
        named.into_iter().chain(language).max_by_key(|(major, _)| *major)
    }

    /// Architectures of one kind of image, the oldest first.
    pub(super) fn architectures(&self, kind: ImageKind) -> impl DoubleEndedIterator<Item = Architecture> {
        self.images.keys().filter(move |(other, _)| *other == kind).map(|(_, architecture)| *architecture)
    }

    /// Whether GPUs that are newer than all of it find code that their driver can compile.
    pub(super) fn runs_on_newer_gpus(&self) -> bool {
        self.architectures(ImageKind::Ptx).any(|architecture| architecture.feature == Feature::Base)
    }
}
