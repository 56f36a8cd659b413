//! What the rules want to know of a native file, kept when its contents are gone.

use super::cxx::CxxVersion;
use super::gpu_code::GpuCode;
use crate::elf::{ElfFile, ElfKind, ElfLayout, GlibcVersion, Machine, Section, Segment};
use crate::wheel::{NativeCode, NativeMember};

/// Facts about an ELF file, or a file of GPU code.
#[derive(Debug, Default)]
pub(super) struct NativeFile {
    /// Why the file, or its dynamic table, could not be read; what is missing below is then empty.
    pub(super) fault: Option<String>,
    pub(super) size_bytes: u64,
    pub(super) kind: Option<ElfKind>,
    pub(super) is_program: bool,
    pub(super) machine: Option<Machine>,
    pub(super) soname: Option<String>,
    pub(super) needed: Vec<String>,
    /// RPATH and RUNPATH, with their names.
    pub(super) search_paths: Vec<(&'static str, String)>,
    /// Versions that are looked for in libraries that are not needed: library, version.
    pub(super) stray_version_needs: Vec<(String, String)>,
    pub(super) glibc: Vec<GlibcNeed>,
    pub(super) cxx: Vec<CxxNeed>,
    /// Functions that create modules: `PyInit_x`, `PyModExport_x`.
    pub(super) inits: Vec<String>,
    /// What Python has to provide, without weak symbols.
    pub(super) undefined_python: Vec<String>,
    /// Symbols with names like Python's that the file has itself.
    pub(super) defined_python: Vec<String>,
    pub(super) segments: Vec<Segment>,
    pub(super) sections: Vec<Section>,
    pub(super) gpu_code: GpuCode,
}

/// A version of the GNU C library, and what needs it.
#[derive(Debug)]
pub(super) struct GlibcNeed {
    pub(super) version: GlibcVersion,
    /// As it is spelled, such as `GLIBC_2.34`.
    pub(super) name: String,
    pub(super) library: String,
    pub(super) symbols: Vec<String>,
}

/// A version of the C++ or GCC runtime, and what needs it.
#[derive(Debug)]
pub(super) struct CxxNeed {
    pub(super) version: CxxVersion,
    pub(super) library: String,
    pub(super) symbols: Vec<String>,
}

impl NativeFile {
    pub(super) fn read(member: &NativeMember<'_>) -> Self {
        let mut native = Self { size_bytes: member.size_bytes(), ..Self::default() };
        match member.code() {
            NativeCode::Elf(Ok(data)) => native.read_elf(data),
            NativeCode::Elf(Err(error)) => native.fault = Some(error.to_string()),
            NativeCode::Fatbin | NativeCode::Ptx(_) => {}
        }
        native.gpu_code = GpuCode::of(member, &native.sections);
        native
    }

    fn read_elf(&mut self, data: &[u8]) {
        match ElfLayout::parse(data) {
            Ok(layout) => self.keep_layout(&layout),
            Err(error) => self.fault = Some(error.to_string()),
        }
        match ElfFile::parse(data) {
            Ok(file) => self.keep_file(&file),
            Err(error) => self.fault = Some(error.to_string()),
        }
    }

    fn keep_layout(&mut self, layout: &ElfLayout) {
        self.kind = Some(layout.kind());
        self.is_program = layout.is_program();
        self.segments = layout.segments().to_vec();
        self.sections = layout.sections().to_vec();
    }

    fn keep_file(&mut self, file: &ElfFile<'_>) {
        let owned = |text: &str| text.to_owned();
        self.machine = Some(file.machine());
        self.soname = file.soname().map(owned);
        self.needed = file.needed().iter().copied().map(owned).collect();
        let paths = [("RPATH", file.rpath()), ("RUNPATH", file.runpath())];
        self.search_paths = paths.into_iter().filter_map(|(kind, path)| Some((kind, owned(path?)))).collect();
        for need in file.version_needs() {
            // The loader itself is always there, whether needed or not.
            if !file.needed().contains(&need.library()) && !need.library().starts_with("ld-") {
                self.stray_version_needs.push((owned(need.library()), owned(need.version())));
            }
            let symbols: Vec<String> = need.symbols().iter().copied().map(owned).collect();
            if let Some(version) = CxxVersion::from_symbol_version(need.version()) {
                self.cxx.push(CxxNeed { version, library: owned(need.library()), symbols });
            } else if let Some(version) = need.glibc() {
                self.glibc.push(GlibcNeed {
                    version,
                    name: owned(need.version()),
                    library: owned(need.library()),
                    symbols,
                });
            }
        }
        self.inits = file.module_inits().iter().map(|init| owned(init.symbol())).collect();
        let is_python = |name: &str| name.starts_with("Py") || name.starts_with("_Py");
        let undefined = file.undefined_symbols().iter();
        self.undefined_python = undefined
            .filter(|symbol| is_python(symbol.name()) && !symbol.is_weak())
            .map(|symbol| owned(symbol.name()))
            .collect();
        let defined = file.defined_symbols().iter();
        self.defined_python =
            defined.filter(|symbol| is_python(symbol.name())).map(|symbol| owned(symbol.name())).collect();
    }

    /// Whether a loader of some host would load it: no object file, no core dump, no code for a GPU or a kernel.
    pub(super) fn is_for_a_loader(&self) -> bool {
        matches!(self.kind, Some(ElfKind::Shared | ElfKind::Executable)) && !self.is_foreign()
    }

    /// Whether the machine is none that Python runs on, such as a GPU's.
    pub(super) fn is_foreign(&self) -> bool {
        matches!(self.machine, Some(Machine::Other(_)))
    }
}
