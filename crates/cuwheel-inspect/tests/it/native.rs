//! Small libraries for the corpus of wheels, compiled here, with faults patched into their tables.

use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use crate::gpu_code;

/// An extension module without a fault: it needs nothing and exports `PyInit__native`.
pub(crate) static SOUND: LazyLock<Vec<u8>> = LazyLock::new(|| library(INIT, &[]));

/// The function that creates the module `_native`.
pub(crate) const INIT: &str = "void *PyInit__native(void) { return 0; }\n";

const PROGRAM_HEADER_BYTES: usize = 56;
const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_PHDR: u32 = 6;
const PT_GNU_STACK: u32 = 0x6474_e551;

/// Compiles a library that needs no other, stripped.
pub(crate) fn library(source: &str, arguments: &[&str]) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    compile(directory.path(), "library.so", source, arguments)
}

/// A program, without a standard library.
pub(crate) fn program() -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("input.c"), "void _start(void) { for (;;) {} }").unwrap();
    run_compiler(directory.path(), &["-nostdlib", "-static", "input.c", "-o", "program"]);
    std::fs::read(directory.path().join("program")).unwrap()
}

/// A module that is linked to libraries with these SONAMEs.
pub(crate) fn linked_to(sonames: &[&str]) -> Vec<u8> {
    linked_with(sonames, &[])
}

/// The same, with arguments for the compiler.
pub(crate) fn linked_with(sonames: &[&str], arguments: &[&str]) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let mut files = Vec::new();
    for (number, soname) in sonames.iter().enumerate() {
        let (file, source) = (format!("./other{number}.so"), format!("int other{number}(void) {{ return 1; }}"));
        compile(directory.path(), &file, &source, &[&format!("-Wl,-soname,{soname}")]);
        files.push(file);
    }
    let files = ["-Wl,--no-as-needed"].into_iter().chain(files.iter().map(String::as_str));
    let arguments: Vec<&str> = files.chain(arguments.iter().copied()).collect();
    compile(directory.path(), "library.so", INIT, &arguments)
}

/// A module that needs the symbol `other` in `version` of the library `soname`.
pub(crate) fn versioned_need(soname: &str, version: &str) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("map"), format!("{version} {{ global: other; local: *; }};\n")).unwrap();
    let soname = format!("-Wl,-soname,{soname}");
    compile(directory.path(), "other.so", "int other(void) { return 1; }", &[&soname, "-Wl,--version-script,map"]);
    let source = format!("extern int other(void);\nint use(void) {{ return other(); }}\n{INIT}");
    compile(directory.path(), "library.so", &source, &["./other.so", "-Wl,-rpath,$ORIGIN"])
}

/// A module with GPU code in the section `section`.
pub(crate) fn with_gpu_code(section: &str, code: &[u8]) -> Vec<u8> {
    with_section(section, code, INIT)
}

/// A library with machine code that was linked and the objects that it was linked from, PTX among them.
pub(crate) fn with_linked_gpu_code() -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("linked"), gpu_code::first_image(gpu_code::PLAIN)).unwrap();
    std::fs::write(directory.path().join("objects"), gpu_code::PLAIN).unwrap();
    let source = format!("{}\n{}", section(".nv_fatbin", "linked"), section("__nv_relfatbin", "objects"));
    compile(directory.path(), "library.so", &format!("{source}\nint f(void) {{ return 1; }}"), &[])
}

/// A library whose data are `contents`.
pub(crate) fn library_with_contents(contents: &[u8]) -> Vec<u8> {
    with_section(".rodata.contents", contents, "int f(void) { return 1; }\n")
}

fn with_section(name: &str, contents: &[u8], source: &str) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("contents"), contents).unwrap();
    compile(directory.path(), "library.so", &format!("{}\n{source}", section(name, "contents")), &[])
}

/// A declaration that puts a file's contents into a section.
fn section(name: &str, file: &str) -> String {
    let lines =
        [&format!(".pushsection {name},\"a\",@progbits"), ".balign 8", &format!(".incbin \"{file}\""), ".popsection"];
    format!("__asm__(\"{}\");", lines.join("\n").replace('"', "\\\"").replace('\n', "\\n"))
}

/// The same as [`library`], and nothing is stripped.
pub(crate) fn library_with_debug_info(source: &str) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("input.c"), source).unwrap();
    run_compiler(directory.path(), &["-shared", "-fPIC", "-nostdlib", "input.c", "-o", "library.so"]);
    std::fs::read(directory.path().join("library.so")).unwrap()
}

fn compile(directory: &Path, output: &str, source: &str, arguments: &[&str]) -> Vec<u8> {
    std::fs::write(directory.join("input.c"), source).unwrap();
    let shared = ["-shared", "-fPIC", "-nostdlib", "-fno-stack-protector", "-s", "input.c", "-o", output];
    run_compiler(directory, &[&shared, arguments].concat());
    std::fs::read(directory.join(output)).unwrap()
}

fn run_compiler(directory: &Path, arguments: &[&str]) {
    let status = Command::new("cc").args(arguments).current_dir(directory).status();
    assert!(status.expect("a C compiler on PATH").success());
}

/// The number of another processor in the header.
pub(crate) fn for_machine(number: u8) -> Vec<u8> {
    let mut bytes = SOUND.clone();
    bytes[0x12] = number;
    bytes
}

/// No section table: its offset, entry size and count in the header are 0.
pub(crate) fn without_sections() -> Vec<u8> {
    let mut bytes = SOUND.clone();
    bytes[0x28..0x30].fill(0);
    bytes[0x3a..0x40].fill(0);
    bytes
}

/// The first mapped segment asks for `alignment`.
pub(crate) fn with_alignment(alignment: u64) -> Vec<u8> {
    let mut bytes = SOUND.clone();
    let header = program_header(&bytes, PT_LOAD);
    put_u64(&mut bytes, header + 48, alignment);
    bytes
}

/// The first mapped segment is at an address that its offset does not lead to.
pub(crate) fn with_misaligned_address() -> Vec<u8> {
    let mut bytes = SOUND.clone();
    let header = program_header(&bytes, PT_LOAD);
    put_u64(&mut bytes, header + 16, 0x10);
    bytes
}

/// The first mapped segment is larger than the file.
pub(crate) fn with_segment_beyond_the_end() -> Vec<u8> {
    let mut bytes = SOUND.clone();
    let header = program_header(&bytes, PT_LOAD);
    put_u64(&mut bytes, header + 32, 1 << 30);
    bytes
}

/// The table of segments is said to be where none is mapped.
pub(crate) fn with_unmapped_headers() -> Vec<u8> {
    let mut bytes = SOUND.clone();
    let header = program_header(&bytes, PT_GNU_STACK);
    bytes[header..header + 4].copy_from_slice(&PT_PHDR.to_le_bytes());
    put_u64(&mut bytes, header + 16, 1 << 40);
    put_u64(&mut bytes, header + 40, 0x100);
    bytes
}

/// uccl-project/uccl#1038: the needed library was renamed and the versions that are looked for in it were not.
pub(crate) fn with_renamed_need() -> Vec<u8> {
    const DT_NEEDED: u64 = 1;
    let mut bytes = versioned_need("libother.so.1", "OTHER_1");
    let dynamic = usize::try_from(get_u64(&bytes, program_header(&bytes, PT_DYNAMIC) + 8)).unwrap();
    let entry = (dynamic..).step_by(16).find(|entry| get_u64(&bytes, *entry) == DT_NEEDED).unwrap();
    // The name from its fourth letter on: `other.so.1`.
    let name = get_u64(&bytes, entry + 8);
    put_u64(&mut bytes, entry + 8, name + 3);
    bytes
}

fn program_header(bytes: &[u8], kind: u32) -> usize {
    let table = usize::try_from(get_u64(bytes, 0x20)).unwrap();
    let headers = (table..).step_by(PROGRAM_HEADER_BYTES);
    let mut headers = headers.take(16).filter(|header| bytes[*header..*header + 4] == kind.to_le_bytes());
    headers.next().expect("such a segment")
}

fn get_u64(bytes: &[u8], position: usize) -> u64 {
    u64::from_le_bytes(bytes[position..position + 8].try_into().unwrap())
}

fn put_u64(bytes: &mut [u8], position: usize, value: u64) {
    bytes[position..position + 8].copy_from_slice(&value.to_le_bytes());
}
