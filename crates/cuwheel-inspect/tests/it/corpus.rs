//! The corpus of broken wheels: each has one fault and breaks one rule. They are made here, in memory.

use std::env::consts::ARCH;

use cuwheel_inspect::rules::{DeclaredArchitecture, ExaminedWheel, InstalledLibraries, Policy};
use cuwheel_inspect::testing::WheelBuilder;

use crate::{gpu_code, native};

/// A wheel with one fault.
pub(crate) struct Broken {
    /// The rule that it breaks, and no other.
    pub(crate) rule: &'static str,
    /// The fault.
    pub(crate) fault: &'static str,
    pub(crate) file_name: String,
    pub(crate) bytes: Vec<u8>,
    /// What it is checked by.
    pub(crate) policy: Policy,
}

impl Broken {
    fn new(rule: &'static str, fault: &'static str, wheel: &WheelBuilder, policy: Policy) -> Self {
        Self { rule, fault, file_name: wheel.file_name(), bytes: wheel.build(), policy }
    }
}

/// The name of the sound wheel.
pub(crate) fn sound_name() -> String {
    named("cp311-abi3-manylinux_2_28")
}

/// A name with these tags, for this machine.
fn named(tags: &str) -> String {
    format!("demo-0.1.0-{tags}_{ARCH}.whl")
}

/// A wheel in which nothing is wrong, to which one thing may be added.
pub(crate) fn sound() -> WheelBuilder {
    of_module(&sound_name(), "demo/_native.abi3.so", &native::SOUND)
}

fn of_module(file_name: &str, path: &str, library: &[u8]) -> WheelBuilder {
    WheelBuilder::new(file_name).file("demo/__init__.py", "x = 1\n").file_with_mode(path, library, 0o100_755)
}

/// A wheel of the sound one's name with this library for its module.
fn with_library(library: &[u8]) -> WheelBuilder {
    of_module(&sound_name(), "demo/_native.abi3.so", library)
}

fn with_flags(flags: &[&str]) -> WheelBuilder {
    with_library(&native::library(native::INIT, flags))
}

fn with_source(source: &str) -> WheelBuilder {
    with_library(&native::library(&format!("{source}\n{}", native::INIT), &[]))
}

/// Every broken wheel.
pub(crate) fn corpus() -> Vec<Broken> {
    let mut corpus = Vec::new();
    for (group, wheels) in [
        ("archive", archive()),
        ("archive", record()),
        ("archive", identity()),
        ("archive", leftovers()),
        ("tags", tags()),
        ("tags", symbols()),
        ("modules", modules()),
        ("libraries", links()),
        ("libraries", search_paths()),
        ("libraries", layouts()),
        ("libraries", loads()),
        ("cuda", fatbins()),
    ] {
        for (rule, fault, wheel) in wheels {
            assert!(rule.starts_with(group), "{rule} is listed with {group}");
            corpus.push(Broken::new(rule, fault, &wheel, Policy::default()));
        }
    }
    corpus.extend(damaged());
    corpus.extend(toolkits());
    corpus.extend(breaches_of_settings());
    corpus
}

type Case = (&'static str, &'static str, WheelBuilder);

fn damaged() -> Vec<Broken> {
    let whole = sound().build();
    let broken = |fault, bytes| Broken {
        rule: "archive/unreadable",
        fault,
        file_name: sound_name(),
        bytes,
        policy: Policy::default(),
    };
    let mut flipped = whole.clone();
    // In the contents of the first member, after its header and name.
    flipped[50] ^= 0xff;
    vec![
        broken("cut short", whole[..whole.len() - 30].to_vec()),
        broken("a changed byte", flipped),
        broken("no archive", b"<html>404</html>".to_vec()),
        Broken {
            rule: "archive/unreadable",
            fault: "no name of a wheel",
            file_name: "demo.whl".to_owned(),
            bytes: whole,
            policy: Policy::default(),
        },
    ]
}

fn archive() -> Vec<Case> {
    vec![
        ("archive/unsafe-path", "a parent", sound().raw_member(b"../evil.py", b"")),
        ("archive/unsafe-path", "an absolute path", sound().raw_member(b"/etc/evil.py", b"")),
        ("archive/unsafe-path", "no UTF-8", sound().raw_member(b"demo/\xff.py", b"")),
        ("archive/metadata", "no METADATA", sound().without_file("demo-0.1.0.dist-info/METADATA")),
        ("archive/metadata", "no RECORD", sound().without_file("demo-0.1.0.dist-info/RECORD")),
        ("archive/metadata", "a bad row", sound().extra_rows("one,two\n")),
        ("archive/metadata", "a line that is no header", sound().metadata_header("Summary", "two\nlines")),
        ("archive/metadata", "no name", sound().metadata("Metadata-Version: 2.1\nVersion: 0.1.0\n")),
        (
            "archive/duplicate-entry",
            "the same twice",
            sound()
                .file("demo/a.py", "x")
                .without_row("demo/a.py")
                .raw_member(b"demo/a.py", b"x")
                .extra_rows(&row_of_x()),
        ),
        ("archive/symlink", "a link", sound().file_with_mode("demo/link.py", "__init__.py", 0o120_777)),
        ("archive/world-writable", "mode 666", sound().file_with_mode("demo/a.py", "", 0o100_666)),
        ("archive/not-executable", "mode 644", sound().file_with_mode("demo/bin/tool", native::program(), 0o100_644)),
        ("archive/directory-entry", "a directory", sound().raw_member(b"demo/", b"")),
    ]
}

/// A row of RECORD for a file that holds `x`.
fn row_of_x() -> String {
    "demo/a.py,sha256=LXEWQrcmsEQBYnyp-6wy9chTD7GQPMTbAiWHF5IaSIE,1\n".to_owned()
}

fn record() -> Vec<Case> {
    let empty = "sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0";
    vec![
        ("archive/record-missing", "no row", sound().file("demo/a.py", "").without_row("demo/a.py")),
        ("archive/record-extra", "no file", sound().file("demo/a.py", "").without_file("demo/a.py")),
        ("archive/record-hash", "changed", sound().file_changed_after_record("demo/a.py", "x = 1", "x = 2")),
        (
            "archive/record-size",
            "another size",
            sound().file("demo/a.py", "").row("demo/a.py", &empty.replace(",0", ",1")),
        ),
        (
            "archive/record-duplicate-row",
            "two rows",
            sound().file("demo/a.py", "").extra_rows(&format!("demo/a.py,{empty}\n")),
        ),
        ("archive/record-without-hash", "no hash", sound().file("demo/a.py", "").row("demo/a.py", ",0")),
        (
            "archive/record-unsupported-hash",
            "md5",
            sound().file("demo/a.py", "").row("demo/a.py", "md5=1B2M2Y8AsgTpgAmY7PhCfg,0"),
        ),
    ]
}

fn identity() -> Vec<Case> {
    let metadata = |name: &str, version: &str| {
        sound().metadata(&format!("Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"))
    };
    vec![
        ("archive/name-mismatch", "in METADATA", metadata("other", "0.1.0")),
        ("archive/name-mismatch", "in .dist-info", sound().dist_info("other-0.1.0.dist-info")),
        ("archive/version-mismatch", "in METADATA", metadata("demo", "0.2.0")),
        ("archive/version-mismatch", "in .dist-info", sound().dist_info("demo-0.2.0.dist-info")),
    ]
}

fn leftovers() -> Vec<Case> {
    let stray = |fault, path: &str| ("archive/stray-file", fault, sound().file(path, ""));
    vec![
        stray("target", "target/release/deps/demo.d"),
        stray("cache", "demo/__pycache__/__init__.cpython-311.pyc"),
        stray("environment", ".venv/pyvenv.cfg"),
        stray("repository", ".git/HEAD"),
        stray("build directory", "build/lib.linux-x86_64-cpython-311/demo/__init__.py"),
        stray("wheel", "dist/demo-0.0.9-py3-none-any.whl"),
        stray("sdist", "dist/demo-0.0.9.tar.gz"),
    ]
}

fn tags() -> Vec<Case> {
    let info = |purelib: bool, tag: &str| format!("Wheel-Version: 1.0\nRoot-Is-Purelib: {purelib}\nTag: {tag}\n");
    let own_tag = format!("cp311-abi3-manylinux_2_28_{ARCH}");
    let specific = |suffix: &str, tags: &str| {
        of_module(&named(tags), &format!("demo/_native.{suffix}-linux-gnu.so"), &native::SOUND)
    };
    let pure = WheelBuilder::new("demo-0.1.0-py3-none-any.whl").file("demo/__init__.py", "");
    vec![
        ("tags/mismatch", "renamed", sound().wheel_info(&info(false, &format!("cp312-abi3-linux_{ARCH}")))),
        ("tags/pure-with-native", "a module", pure.clone().file("demo/_native.so", &*native::SOUND)),
        ("tags/pure-with-native", "no ELF file", pure.file("demo/_native.so", "\u{7f}Mach-O")),
        ("tags/purelib-flag", "pure", sound().wheel_info(&info(true, &own_tag))),
        ("tags/abi-suffix", "cpython-312 for abi3", specific("cpython-312", "cp311-abi3-manylinux_2_28")),
        ("tags/abi-suffix", "cpython-312 for cp313", specific("cpython-312", "cp313-cp313-manylinux_2_28")),
        ("tags/abi-suffix", "cpython-313 for cp313t", specific("cpython-313", "cp313-cp313t-manylinux_2_28")),
        ("tags/abi-suffix", "cpython-313t for cp313", specific("cpython-313t", "cp313-cp313-manylinux_2_28")),
        (
            "tags/abi-suffix",
            "abi3 for cp314t",
            of_module(&named("cp314-cp314t-manylinux_2_28"), "demo/_native.abi3.so", &native::SOUND),
        ),
        ("tags/machine", "s390x", with_library(&native::for_machine(22))),
        ("tags/machine", "a machine of no tag", with_library(&native::for_machine(43))),
    ]
}

fn symbols() -> Vec<Case> {
    let python =
        |symbol: &str| with_source(&format!("extern void *{symbol}(void);\nvoid *use(void) {{ return {symbol}(); }}"));
    let glibc = native::versioned_need("libc.so.6", "GLIBC_2.99");
    let cxx = |library: &str, version: &str| with_library(&native::versioned_need(library, version));
    vec![
        ("tags/cxx-floor", "a newer standard library", cxx("libstdc++.so.6", "GLIBCXX_3.4.30")),
        ("tags/cxx-floor", "a newer ABI", cxx("libstdc++.so.6", "CXXABI_1.3.13")),
        ("tags/cxx-floor", "a newer compiler", cxx("libgcc_s.so.1", "GCC_12.0.0")),
        ("tags/limited-api", "added in 3.12", python("PyObject_Vectorcall")),
        ("tags/limited-api", "not in it", python("_PyObject_GetMethod")),
        ("tags/glibc-floor", "newer than promised", with_library(&glibc)),
        ("tags/glibc-floor", "musl", of_module(&named("cp311-abi3-musllinux_1_2"), "demo/_native.abi3.so", &glibc)),
    ]
}

fn modules() -> Vec<Case> {
    let scripts = |text: &str| sound().file("demo-0.1.0.dist-info/entry_points.txt", text);
    let pure = |tags: &str| WheelBuilder::new(&named(tags)).file("demo/__init__.py", "");
    let renamed = of_module(&sound_name(), "demo/_renamed.abi3.so", &native::SOUND);
    let bare = of_module(&sound_name(), "demo/_renamed.so", &native::SOUND);
    vec![
        ("modules/missing-init", "none", with_library(&native::library("int f(void) { return 1; }", &[]))),
        ("modules/missing-init", "of another name", renamed),
        ("modules/missing-init", "of another name, bare", bare),
        ("modules/missing-init", "no ELF file", sound().file("demo/_other.abi3.so", "text")),
        ("modules/no-extension", "left out", pure("cp311-cp311-manylinux_2_28")),
        (
            "modules/no-extension",
            "a library that does not use Python",
            pure("cp311-cp311-manylinux_2_28").file("demo/libdemo-1.so", &*native::SOUND),
        ),
        ("modules/no-native", "nothing native", pure("py3-none-manylinux_2_28")),
        ("modules/entry-point", "a module that is absent", scripts("[console_scripts]\ndemo = demo.absent.cli:main\n")),
        ("modules/entry-point", "no reference", scripts("[console_scripts]\ndemo\n")),
    ]
}

fn links() -> Vec<Case> {
    let inside = |path: &str| sound().file(path, native::library("int f(void) { return 1; }", &[]));
    let soname = native::library("int f(void) { return 1; }", &["-Wl,-soname,libcuda.so.1"]);
    vec![
        ("libraries/driver-inside", "grafted", inside("demo.libs/libcuda-1a2b3c4d.so.1")),
        ("libraries/driver-inside", "NVML", inside("demo/libnvidia-ml.so.1")),
        ("libraries/driver-inside", "EGL", inside("demo.libs/libEGL-0a1b2c3d.so.1.1.0")),
        ("libraries/driver-inside", "renamed", sound().file("demo.libs/libdriver.so", soname)),
        ("libraries/driver-needed", "libcuda", with_library(&native::linked_to(&["libcuda.so.1"]))),
        ("libraries/driver-needed", "NVML", with_library(&native::linked_to(&["libnvidia-ml.so.1"]))),
        ("libraries/python-needed", "libpython", with_library(&native::linked_to(&["libpython3.11.so.1.0"]))),
        (
            "libraries/version-needs",
            "a renamed library",
            with_library(&native::with_renamed_need()).file("demo/other.so.1", other_library()),
        ),
    ]
}

/// A library that needs nothing.
pub(crate) fn other_library() -> Vec<u8> {
    native::library("int f(void) { return 1; }", &["-Wl,-soname,libother.so.1"])
}

fn loads() -> Vec<Case> {
    let module = |rpath: &[&str]| native::linked_with(&["libother.so.1"], rpath);
    let other = other_library;
    let deeper = native::linked_with(&["libdeep.so.1"], &[]);
    vec![
        ("libraries/unresolved", "nowhere", with_library(&module(&[]))),
        ("libraries/unresolved", "no way there", with_library(&module(&[])).file("demo.libs/libother.so.1", other())),
        (
            "libraries/unresolved",
            "a RUNPATH that is not inherited",
            with_library(&module(&["-Wl,--enable-new-dtags,-rpath,$ORIGIN/lib"]))
                .file("demo/lib/libother.so.1", deeper)
                .file("demo/lib/libdeep.so.1", other()),
        ),
        (
            "libraries/unknown-dependency",
            "a requirement that was not given",
            with_library(&module(&[])).metadata_header("Requires-Dist", "other"),
        ),
    ]
}

fn search_paths() -> Vec<Case> {
    let with = |path: &str| with_flags(&["-Wl,--enable-new-dtags", &format!("-Wl,-rpath,{path}")]);
    let old = with_flags(&["-Wl,--disable-new-dtags", "-Wl,-rpath,/usr/local/cuda/lib64"]);
    vec![
        ("libraries/absolute-rpath", "RUNPATH", with("$ORIGIN:/usr/local/cuda/lib64")),
        ("libraries/absolute-rpath", "RPATH", old),
        ("libraries/working-directory-rpath", "relative", with("lib")),
        ("libraries/working-directory-rpath", "empty", with("$ORIGIN::$ORIGIN/lib")),
        ("libraries/escaping-rpath", "four levels", with("$ORIGIN/../../../../lib")),
        ("libraries/stubs-rpath", "stubs", with("/usr/local/cuda/lib64/stubs")),
    ]
}

fn layouts() -> Vec<Case> {
    let debug = "__asm__(\".pushsection .debug_info,\\\"\\\",@progbits\\n.zero 100000\\n.popsection\");";
    let debug_info = native::library_with_debug_info(&format!("{debug}\n{}", native::INIT));
    vec![
        ("libraries/unreadable", "no sections", with_library(&native::without_sections())),
        ("libraries/unreadable", "cut short", with_library(&native::SOUND[..200])),
        ("libraries/segments", "no page", with_library(&native::with_alignment(8))),
        ("libraries/segments", "no power of two", with_library(&native::with_alignment(3 * 4096))),
        ("libraries/segments", "another address", with_library(&native::with_misaligned_address())),
        ("libraries/segments", "beyond the end", with_library(&native::with_segment_beyond_the_end())),
        ("libraries/headers-unmapped", "elsewhere", with_library(&native::with_unmapped_headers())),
        ("libraries/executable-stack", "asked for", with_flags(&["-Wl,-z,execstack"])),
        ("libraries/debug-info", "left in", with_library(&debug_info)),
    ]
}

fn fatbins() -> Vec<Case> {
    let with = |section: &str, code: &[u8]| with_library(&native::with_gpu_code(section, code));
    let mut damaged = gpu_code::PLAIN.to_vec();
    damaged[16 + 64 + 3112 + 2] = 9;
    let without_ptx = gpu_code::first_image(gpu_code::PLAIN);
    vec![
        ("cuda/fatbin-damaged", "in a library", with(".nv_fatbin", &damaged)),
        ("cuda/fatbin-damaged", "cut short", sound().file("demo/axpy.fatbin", &gpu_code::PLAIN[..2000])),
        ("cuda/no-ptx", "machine code only", with(".nv_fatbin", &without_ptx)),
        ("cuda/no-ptx", "included as bytes", with(".rodata.code", &without_ptx)),
    ]
}

/// Wheels that are linked to libraries of CUDA, which the wheels that they require have.
fn toolkits() -> Vec<Broken> {
    let runtime = "nvidia-cuda-runtime-cu12";
    let mut broken: Vec<Broken> = [
        (
            "cuda/toolkit-mismatch",
            "two in one library",
            "demo",
            &["libcudart.so.12", "libcublas.so.13"][..],
            &[runtime, "nvidia-cublas"][..],
        ),
        (
            "cuda/toolkit-mismatch",
            "a label of another",
            "demo_cu12",
            &["libnvJitLink.so.13"],
            &["cuda-toolkit[nvjitlink]==13.*"],
        ),
        ("cuda/dependency-missing", "nothing required", "demo", &["libcudart.so.13"], &["numpy"]),
        (
            "cuda/dependency-missing",
            "an extra of another library",
            "demo",
            &["libcufft.so.12"],
            &["cuda-toolkit[cudart]==13.*"],
        ),
        ("cuda/dependency-toolkit", "-cu12 for 13", "demo", &["libcublas.so.13"], &["nvidia-cublas-cu12"]),
        ("cuda/dependency-toolkit", "13 for 12", "demo", &["libcufft.so.11"], &["nvidia-cufft>=12"]),
    ]
    .map(|(rule, fault, name, sonames, requirements)| linked_to_cuda(rule, fault, name, sonames, requirements))
    .into();
    for (fault, name, code) in [
        ("newer code than the label", "demo_cuda12x-0.1.0", gpu_code::PLAIN),
        ("newer code than the version", "demo-0.1.0+cu124", gpu_code::LZ4),
    ] {
        let file_name = format!("{name}-cp311-abi3-manylinux_2_28_{ARCH}.whl");
        let wheel = of_module(&file_name, "demo/_native.abi3.so", &native::with_gpu_code(".nv_fatbin", code));
        broken.push(Broken::new("cuda/toolkit-mismatch", fault, &wheel, Policy::default()));
    }
    broken
}

fn linked_to_cuda(
    rule: &'static str,
    fault: &'static str,
    name: &str,
    sonames: &[&str],
    requirements: &[&str],
) -> Broken {
    let file_name = format!("{name}-0.1.0-cp311-abi3-manylinux_2_28_{ARCH}.whl");
    let module = native::linked_with(sonames, &["-Wl,-rpath,$ORIGIN/../nvidia/lib"]);
    let wheel = of_module(&file_name, "demo/_native.abi3.so", &module);
    let wheel = requirements.iter().fold(wheel, |wheel, text| wheel.metadata_header("Requires-Dist", text));
    let required = requirements.iter().map(|text| {
        let name = text.split(['[', '>', '=']).next().unwrap_or_default().replace('-', "_");
        let empty = WheelBuilder::new(&format!("{name}-1.0-py3-none-manylinux_2_28_{ARCH}.whl"));
        let library = other_library();
        let wheel = sonames.iter().fold(empty, |wheel, soname| wheel.file(&format!("nvidia/lib/{soname}"), &library));
        InstalledLibraries::of(&ExaminedWheel::from_bytes(&wheel.file_name(), wheel.build()).unwrap())
    });
    // Nothing is known of what nobody requires.
    let required = if rule == "cuda/dependency-missing" { Vec::new() } else { required.collect() };
    Broken::new(rule, fault, &wheel, Policy::default().with_dependencies(required))
}

/// Wheels in which something is wrong only for whoever said what there has to be.
fn breaches_of_settings() -> Vec<Broken> {
    let architectures = |declared: &[&str]| {
        let declared: Vec<DeclaredArchitecture> = declared.iter().map(|text| text.parse().unwrap()).collect();
        Policy::default().with_architectures(&declared)
    };
    let code = || sound().file("demo/axpy.fatbin", gpu_code::PLAIN);
    let separate = || sound().file("demo/axpy.cubin", gpu_code::CUBIN).file("demo/axpy.ptx", gpu_code::PTX);
    let modules = vec!["demo".to_owned(), "demo.absent.deeper".to_owned()];
    let pure = WheelBuilder::new("demo-0.1.0-py3-none-any.whl").file("demo/__init__.py", "x = 1\n".repeat(1000));
    [
        ("cuda/architecture-missing", "one of two", code(), architectures(&["75+PTX", "sm_90"])),
        ("cuda/architecture-missing", "no PTX", separate(), architectures(&["90a", "compute_90", "compute_75"])),
        ("cuda/architecture-missing", "no GPU code", sound(), architectures(&["90"])),
        ("cuda/architecture-extra", "PTX", code(), architectures(&["75"])),
        ("modules/declared-missing", "left out", sound(), Policy::default().with_modules(modules)),
        ("size/budget", "too large", pure, Policy::default().with_budget(Some(100))),
    ]
    .map(|(rule, fault, wheel, policy)| Broken::new(rule, fault, &wheel, policy))
    .into()
}
