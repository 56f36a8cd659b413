//! A wheel with everything that the rules want to know of it, from one pass over its contents.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use super::native::NativeFile;
use crate::elf::GlibcVersion;
use crate::fatbin::ToolkitVersion;
use crate::wheel::{Entry, Wheel, WheelError};

/// A wheel, and the facts about its ELF files.
#[derive(Debug)]
pub struct ExaminedWheel {
    wheel: Wheel,
    natives: Vec<(usize, NativeFile)>,
    /// Positions in `natives` by path; the last where a path occurs twice.
    by_path: HashMap<String, usize>,
}

impl ExaminedWheel {
    /// Reads the wheel at `path`.
    pub fn open(path: &Path) -> Result<Self, WheelError> {
        Wheel::open_with(path, NativeFile::read).map(Self::new)
    }

    /// Reads a wheel from memory; `file_name` is the name it would have as a file.
    pub fn from_bytes(file_name: &str, bytes: Vec<u8>) -> Result<Self, WheelError> {
        Wheel::from_bytes_with(file_name, bytes, NativeFile::read).map(Self::new)
    }

    fn new((wheel, natives): (Wheel, Vec<(usize, NativeFile)>)) -> Self {
        let paths = natives.iter().map(|(position, _)| wheel.entries()[*position].path().to_owned());
        let by_path = paths.zip(0..).collect();
        Self { wheel, natives, by_path }
    }

    /// The wheel.
    #[must_use]
    pub fn wheel(&self) -> &Wheel {
        &self.wheel
    }

    /// The oldest glibc that every file in it loads with; `None` when nothing needs one.
    #[must_use]
    pub fn glibc_floor(&self) -> Option<GlibcVersion> {
        self.libraries().flat_map(|(_, native)| &native.glibc).map(|need| need.version).max()
    }

    /// The CUDA toolkits that compiled GPU code in it, the oldest first, as far as images say it.
    #[must_use]
    pub fn cuda_toolkits(&self) -> Vec<ToolkitVersion> {
        let toolkits: BTreeSet<_> = self.natives().flat_map(|(_, native)| native.gpu_code.toolkits.iter()).collect();
        toolkits.into_iter().copied().collect()
    }

    /// The ELF files and files of GPU code, in archive order.
    pub(super) fn natives(&self) -> impl Iterator<Item = (&Entry, &NativeFile)> {
        self.natives.iter().map(|(position, native)| (&self.wheel.entries()[*position], native))
    }

    /// The ELF files that a loader of the host loads: no object files, and no code for a GPU.
    pub(super) fn libraries(&self) -> impl Iterator<Item = (&Entry, &NativeFile)> {
        self.natives().filter(|(_, native)| native.is_for_a_loader())
    }

    /// The ELF file called `path`.
    pub(super) fn native(&self, path: &str) -> Option<&NativeFile> {
        self.by_path.get(path).map(|position| &self.natives[*position].1)
    }
}
