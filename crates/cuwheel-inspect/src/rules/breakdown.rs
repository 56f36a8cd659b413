//! Where the bytes of a wheel are: by file, and over all of its native files by section and by GPU architecture.

use std::collections::{BTreeMap, HashMap};

use super::ExaminedWheel;
use super::gpu_code::Amount;
use crate::fatbin::{Architecture, ImageKind};

/// The bytes of a wheel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Breakdown {
    /// Files, the largest first.
    pub files: Vec<FileSize>,
    /// Sections with the same name in all ELF files taken together, the largest first.
    pub sections: Vec<SectionSize>,
    /// GPU code by architecture: machine code before PTX, the oldest first.
    pub architectures: Vec<ArchitectureSize>,
    /// GPU code before it was linked, and input of the link-time optimiser.
    pub linking_code_bytes: u64,
    /// What the files take when they are installed.
    pub installed_bytes: u64,
    /// What `strip` would take out of the ELF files, before compression.
    pub strippable_bytes: u64,
}

/// The size of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSize {
    /// The path in the wheel.
    pub path: String,
    /// Installed.
    pub size_bytes: u64,
    /// In the archive.
    pub compressed_size_bytes: u64,
}

/// The size of a section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SectionSize {
    /// The name, such as `.nv_fatbin`.
    pub name: String,
    /// Installed.
    pub size_bytes: u64,
}

/// The size of GPU code for an architecture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchitectureSize {
    /// The name, such as `sm_90a` for machine code and `compute_90` for PTX.
    pub name: String,
    /// The number of images.
    pub images: u64,
    /// Installed, as compressed as the images are there.
    pub size_bytes: u64,
}

impl Breakdown {
    /// The bytes of `examined`.
    #[must_use]
    pub fn of(examined: &ExaminedWheel) -> Self {
        let entries = examined.wheel().entries().iter().filter(|entry| !entry.is_directory());
        let mut files: Vec<FileSize> = entries
            .map(|entry| FileSize {
                path: entry.path().to_owned(),
                size_bytes: entry.size_bytes(),
                compressed_size_bytes: entry.compressed_size_bytes(),
            })
            .collect();
        files.sort_by(|left, right| {
            right.compressed_size_bytes.cmp(&left.compressed_size_bytes).then_with(|| left.path.cmp(&right.path))
        });
        let mut by_name: HashMap<&str, u64> = HashMap::new();
        let mut strippable_bytes: u64 = 0;
        for section in examined.natives().flat_map(|(_, native)| &native.sections) {
            // Sizes are claims of the file.
            let size = by_name.entry(&section.name).or_default();
            *size = size.saturating_add(section.file_size_bytes);
            if section.is_strippable() {
                strippable_bytes = strippable_bytes.saturating_add(section.file_size_bytes);
            }
        }
        let mut sections: Vec<SectionSize> = by_name
            .into_iter()
            .filter(|(_, size_bytes)| *size_bytes > 0)
            .map(|(name, size_bytes)| SectionSize { name: name.to_owned(), size_bytes })
            .collect();
        sections.sort_by(|left, right| right.size_bytes.cmp(&left.size_bytes).then_with(|| left.name.cmp(&right.name)));
        let mut by_architecture: BTreeMap<(ImageKind, Architecture), Amount> = BTreeMap::new();
        let mut linking_code_bytes: u64 = 0;
        for (_, native) in examined.natives() {
            let code = &native.gpu_code;
            linking_code_bytes = linking_code_bytes.saturating_add(code.for_linking_bytes);
            for (key, amount) in &code.images {
                let whole = by_architecture.entry(*key).or_default();
                whole.count += amount.count;
                whole.size_bytes = whole.size_bytes.saturating_add(amount.size_bytes);
            }
        }
        let architectures = by_architecture.into_iter().map(|((kind, architecture), amount)| ArchitectureSize {
            name: kind.name(architecture),
            images: amount.count,
            size_bytes: amount.size_bytes,
        });
        let architectures = architectures.collect();
        let installed_bytes = files.iter().map(|file| file.size_bytes).fold(0, u64::saturating_add);
        Self { files, sections, architectures, linking_code_bytes, installed_bytes, strippable_bytes }
    }
}
