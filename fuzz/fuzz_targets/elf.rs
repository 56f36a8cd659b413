//! An ELF file of any bytes.

#![no_main]

use cuwheel_inspect::elf::{ElfFile, ElfLayout, GlibcVersion, exported_versions};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(file) = ElfFile::parse(data) {
        drop((file.module_inits(), file.glibc_floor(), file.symbols_above(GlibcVersion::new(2, 5))));
    }
    drop((ElfLayout::parse(data), exported_versions(data).map(|versions| versions.iter().count())));
});
