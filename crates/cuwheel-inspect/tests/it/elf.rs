//! ELF files: libraries compiled here, and the running test itself.

use std::path::{Path, PathBuf};
use std::process::Command;

use cuwheel_inspect::elf::{
    ElfError, ElfFile, ElfKind, ElfLayout, GlibcVersion, Machine, SegmentKind, exported_versions,
};
use tempfile::TempDir;

/// Compiles C with `cc` and returns the library's bytes.
fn library(source: &str, arguments: &[&str]) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    std::fs::read(compile(&directory, "library.so", source, &[&["-shared", "-fPIC"], arguments].concat())).unwrap()
}

fn compile(directory: &TempDir, name: &str, source: &str, arguments: &[&str]) -> PathBuf {
    let (input, output) = (directory.path().join("input.c"), directory.path().join(name));
    std::fs::write(&input, source).unwrap();
    let mut command = Command::new("cc");
    let status = command.arg(&input).args(arguments).arg("-o").arg(&output).current_dir(directory).status();
    assert!(status.expect("a C compiler on PATH").success());
    output
}

fn symbol_names(symbols: &[cuwheel_inspect::elf::DynamicSymbol<'_>]) -> Vec<String> {
    symbols.iter().map(|symbol| symbol.name().to_owned()).collect()
}

#[test]
fn a_library_shows_names_paths_and_symbols() {
    let source = "extern int other(void); extern int maybe(void) __attribute__((weak));\n\
                  int answer(void) { return other() + (maybe ? maybe() : 0); }";
    let bytes =
        library(source, &["-Wl,-soname,libanswer.so.1", "-Wl,--enable-new-dtags,-rpath,$ORIGIN/../lib:/opt/lib"]);
    let file = ElfFile::parse(&bytes).unwrap();
    assert_eq!(file.soname(), Some("libanswer.so.1"));
    assert_eq!(file.runpath(), Some("$ORIGIN/../lib:/opt/lib"));
    assert_eq!(file.rpath(), None);
    assert!(symbol_names(file.defined_symbols()).contains(&"answer".to_owned()));
    let undefined = file.undefined_symbols();
    assert!(undefined.iter().any(|symbol| symbol.name() == "other" && !symbol.is_weak()));
    assert!(undefined.iter().any(|symbol| symbol.name() == "maybe" && symbol.is_weak()));
    if cfg!(target_arch = "x86_64") {
        assert_eq!(file.machine(), Machine::X86_64);
    }
    assert_eq!(file.machine().to_string(), std::env::consts::ARCH);

    let bytes = library("", &["-Wl,--disable-new-dtags,-rpath,/opt/lib"]);
    let file = ElfFile::parse(&bytes).unwrap();
    assert_eq!((file.rpath(), file.runpath(), file.soname()), (Some("/opt/lib"), None, None));
}

/// cupy/cupy#1790: a library that links to the driver cannot be imported where there is none.
#[test]
fn a_link_to_the_driver_is_seen() {
    let directory = tempfile::tempdir().unwrap();
    let driver = ["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1"];
    compile(&directory, "libcuda.so", "int cuInit(unsigned flags) { return flags; }", &driver);
    let user = ["-shared", "-fPIC", "-L.", "-lcuda"];
    let path = compile(&directory, "user.so", "int cuInit(unsigned); int go(void) { return cuInit(0); }", &user);
    let bytes = std::fs::read(path).unwrap();
    assert!(ElfFile::parse(&bytes).unwrap().needed().contains(&"libcuda.so.1"));
}

/// Compiled against the C library of this machine, with versions fixed by `.symver` so that the result is known.
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
#[test]
fn the_floor_is_set_by_the_newest_symbols() {
    let source = "#include <string.h>\n#include <time.h>\n\
                  __asm__(\".symver memcpy,memcpy@GLIBC_2.14\");\n\
                  __asm__(\".symver clock_gettime,clock_gettime@GLIBC_2.17\");\n\
                  void *copy(void *to, void *from, unsigned long n, struct timespec *t) {\n\
                  clock_gettime(0, t); return memcpy(to, from, n); }";
    let bytes = library(source, &["-fno-builtin"]);
    let file = ElfFile::parse(&bytes).unwrap();
    let floor = file.glibc_floor().unwrap();
    assert_eq!(floor.version(), GlibcVersion::new(2, 17));
    assert_eq!(floor.symbols(), ["clock_gettime"]);

    let shown = |floor: &str| -> Vec<String> {
        file.symbols_above(floor.parse().unwrap()).iter().map(ToString::to_string).collect()
    };
    assert_eq!(shown("manylinux2014"), [""; 0]);
    assert_eq!(shown("2.14"), ["clock_gettime needs GLIBC_2.17 of libc.so.6"]);
    assert_eq!(
        shown("manylinux2010"),
        ["clock_gettime needs GLIBC_2.17 of libc.so.6", "memcpy needs GLIBC_2.14 of libc.so.6"]
    );
    let need = file.version_needs().iter().find(|need| need.version() == "GLIBC_2.14").unwrap();
    assert_eq!((need.library(), need.symbols(), need.is_weak()), ("libc.so.6", &["memcpy"][..], false));
    for need in file.version_needs() {
        assert!(file.needed().contains(&need.library()), "{need:?}");
    }
}

/// Compact relocations need a loader that knows them, and no symbol says so.
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
#[test]
fn compact_relocations_need_glibc_2_36() {
    let source = "#include <stdlib.h>\nvoid *p; void **table[] = {&p, &p, &p}; void *get(void) { return malloc(1); }";
    let bytes = library(source, &["-Wl,-z,pack-relative-relocs"]);
    let file = ElfFile::parse(&bytes).unwrap();
    if !file.version_needs().iter().any(|need| need.version() == "GLIBC_ABI_DT_RELR") {
        return; // This linker is older than the option.
    }
    let floor = file.glibc_floor().unwrap();
    assert_eq!((floor.version(), floor.symbols()), (GlibcVersion::new(2, 36), &[][..]));
    let newer = file.symbols_above(GlibcVersion::new(2, 28));
    assert_eq!(newer[0].to_string(), "the file needs GLIBC_ABI_DT_RELR of libc.so.6");
    assert_eq!(newer[0].symbol(), None);
}

#[test]
fn a_library_without_the_c_library_has_no_floor() {
    let bytes = library("int answer(void) { return 42; }", &["-nostdlib"]);
    let file = ElfFile::parse(&bytes).unwrap();
    assert_eq!(file.glibc_floor(), None);
    assert_eq!(file.needed(), [""; 0]);
    assert_eq!(file.symbols_above(GlibcVersion::new(2, 0)), []);
}

#[test]
fn module_inits_are_exported_functions() {
    let source = "void *PyInit__native(void) { return 0; }\nvoid *PyModExport_other(void) { return 0; }\n\
                  __attribute__((visibility(\"hidden\"))) void *PyInit_hidden(void) { return 0; }\n\
                  extern void *PyInit_elsewhere(void); void *keep(void) { return PyInit_elsewhere(); }\n\
                  void *PyInit_(void) { return 0; }";
    let bytes = library(source, &[]);
    let mut inits: Vec<_> =
        ElfFile::parse(&bytes).unwrap().module_inits().iter().map(|init| (init.symbol(), init.module())).collect();
    inits.sort_unstable();
    assert_eq!(inits, [("PyInit__native", "_native"), ("PyModExport_other", "other")]);
}

#[test]
fn symbols_carry_their_own_versions() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("map"), "GLIBC_2.10 { global: f; local: *; };\nGLIBC_2.30 { global: g; };\n")
        .unwrap();
    let source = "__asm__(\".symver f_old,f@GLIBC_2.10\");\n__asm__(\".symver f_new,f@@GLIBC_2.30\");\n\
                  int f_old(void) { return 1; } int f_new(void) { return 2; } int g(void) { return 3; }";
    let arguments = ["-shared", "-fPIC", "-Wl,--version-script,map"];
    let bytes = std::fs::read(compile(&directory, "libf.so", source, &arguments)).unwrap();
    let exported = exported_versions(&bytes).unwrap();
    assert_eq!(exported.default_version("f"), Some("GLIBC_2.30"));
    assert_eq!(exported.introduced_in("f"), Some(GlibcVersion::new(2, 10)));
    assert_eq!(exported.introduced_in("g"), Some(GlibcVersion::new(2, 30)));
    assert_eq!(exported.default_version("h"), None);
    assert_eq!(exported.iter().collect::<Vec<_>>(), [("f", "GLIBC_2.30"), ("g", "GLIBC_2.30")]);
}

/// The symbol that a linker with an older floor does not find is explained by the build machine's own library.
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
#[test]
fn the_c_library_of_this_machine_tells_when_symbols_appeared() {
    let path = ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6", "/usr/lib/libc.so.6"].map(Path::new);
    let Some(path) = path.into_iter().find(|path| path.exists()) else { return };
    let bytes = std::fs::read(path).unwrap();
    let exported = exported_versions(&bytes).unwrap();
    assert_eq!(exported.introduced_in("memcpy"), Some(GlibcVersion::new(2, 2)));
    assert_eq!(exported.default_version("memcpy"), Some("GLIBC_2.14"));
    assert_eq!(exported.introduced_in("getrandom"), Some(GlibcVersion::new(2, 25)));
}

#[test]
fn the_running_test_is_an_elf_file_with_a_floor() {
    let bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let file = ElfFile::parse(&bytes).unwrap();
    assert!(file.needed().iter().any(|library| library.starts_with("libc.")));
    if cfg!(target_env = "gnu") {
        let floor = file.glibc_floor().unwrap();
        assert!(floor.version() >= GlibcVersion::new(2, 17), "{floor:?}: the floor of Rust's own standard library");
        assert!(!file.symbols_above(GlibcVersion::new(2, 4)).is_empty());
    }
}

#[test]
fn object_files_have_no_dynamic_information() {
    let directory = tempfile::tempdir().unwrap();
    let bytes = std::fs::read(compile(&directory, "object.o", "int f(void) { return 1; }", &["-c"])).unwrap();
    let file = ElfFile::parse(&bytes).unwrap();
    assert!(file.needed().is_empty() && file.defined_symbols().is_empty());
}

#[test]
fn files_that_cannot_be_inspected_are_refused() {
    for bytes in [&b""[..], b"\x7fELF", b"MZ", b"\x7fELF\x03\x01\x01", b"!<arch>\n"] {
        assert_eq!(ElfFile::parse(bytes).unwrap_err(), ElfError::NotElf, "{bytes:?}");
    }
    let whole = library("int f(void) { return 1; }", &[]);
    assert!(matches!(ElfFile::parse(&whole[..200]), Err(ElfError::Damaged(_))));
    // No section table: its offset, entry size and count in the header are 0.
    let mut stripped = whole.clone();
    stripped[0x28..0x30].fill(0);
    stripped[0x3a..0x40].fill(0);
    if cfg!(target_pointer_width = "64") {
        assert_eq!(ElfFile::parse(&stripped).unwrap_err(), ElfError::NoSections);
    }
    // A name that is not UTF-8.
    let position = whole.windows(3).position(|window| window == b"\0f\0").unwrap();
    let mut renamed = whole;
    renamed[position + 1] = 0xff;
    let error = ElfFile::parse(&renamed).unwrap_err();
    assert!(matches!(error, ElfError::NameNotUtf8 { what: "symbol", .. }), "{error}");
}

#[test]
fn the_layout_shows_segments_and_sections() {
    let bytes = library("int table[1000]; int f(void) { return 1; }", &["-g"]);
    let layout = ElfLayout::parse(&bytes).unwrap();
    assert_eq!((layout.kind(), layout.is_program()), (ElfKind::Shared, false));
    let loaded: u64 = layout.segments().iter().map(|segment| segment.file_size_bytes).sum();
    assert!(loaded > 0 && layout.segments().iter().any(|segment| segment.kind == SegmentKind::Load));
    let section = |name: &str| layout.sections().iter().find(|section| section.name == name).unwrap();
    assert_eq!(section(".bss").file_size_bytes, 0, "it takes no room in the file");
    assert!(section(".text").is_loaded && !section(".text").is_strippable());
    assert!(section(".debug_info").is_debug_info() && section(".debug_info").is_strippable());
    assert!(section(".symtab").is_strippable() && !section(".symtab").is_debug_info());
    assert!(!section(".dynsym").is_strippable());

    let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    assert!(ElfLayout::parse(&own).unwrap().is_program());
    let directory = tempfile::tempdir().unwrap();
    let object = std::fs::read(compile(&directory, "object.o", "int f(void) { return 1; }", &["-c"])).unwrap();
    assert_eq!(ElfLayout::parse(&object).unwrap().kind(), ElfKind::Object);
    assert_eq!(ElfLayout::parse(b"MZ").unwrap_err(), ElfError::NotElf);
}
