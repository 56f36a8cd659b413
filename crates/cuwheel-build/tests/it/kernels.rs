//! Kernels through the real compiler, of Python packages that are installed once and kept in Cargo's folder for tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use cuwheel_build::{Kernels, Unsupported};
use cuwheel_inspect::fatbin::{Compression, ImageKind, Scanner};

use crate::machine::{Machine, PLAY_BUILD_SCRIPT, assert_contains};

const SCRIPT: &str = "kernels::build_script";
/// Words that the played build script is built of.
const ASKED: &str = "TEST_ASKED";
/// CCCL is left out, so that a header of it is missing.
const PACKAGES: [&str; 4] =
    ["nvidia-cuda-nvcc==13.5.37", "nvidia-cuda-crt==13.5.37", "nvidia-nvvm==13.5.37", "nvidia-cuda-runtime==13.5.37"];

/// Not a test of its own: what the cases below run in another process.
#[test]
fn build_script() {
    if std::env::var_os(PLAY_BUILD_SCRIPT).is_none() {
        return;
    }
    let mut kernels = Kernels::new().include("include");
    for word in std::env::var(ASKED).unwrap_or_default().split_whitespace() {
        kernels = match word.split_once('=') {
            Some(("files", pattern)) => kernels.files(pattern),
            Some(("host", pattern)) => kernels.host_files(pattern),
            Some(("arch", name)) => kernels.architectures([name]),
            _ => kernels.unsupported(Unsupported::Intersect),
        };
    }
    match kernels.compile("kernels") {
        Ok(()) => println!("compiled everything"),
        Err(error) => println!("failed: {error:?}"),
    }
}

/// The interpreter of an environment with the compiler in it.
static PYTHON: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let environment = folder.join(format!("nvcc {}", PACKAGES[0].split("==").nth(1).unwrap()));
    let python = environment.join("bin/python");
    let finished = environment.join("finished");
    if finished.exists() {
        return python;
    }
    let succeed = |command: &mut Command| {
        let output = command.output().unwrap();
        assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    let named = ["CUWHEEL_PYTHON", "PYO3_PYTHON"].iter().find_map(std::env::var_os);
    let base = named.unwrap_or_else(|| "python3".into());
    succeed(Command::new(base).args(["-m", "venv", "--clear"]).arg(&environment));
    succeed(Command::new(&python).args(["-m", "pip", "install", "--quiet", "--no-deps"]).args(PACKAGES));
    fs::write(finished, "").unwrap();
    python
});

const SAXPY: &str = r#"
#include "scale.h"
struct Pair { double first; int second; };
extern "C" __global__ void saxpy(int n, float a, const float *x, float *y) { if (n) *y = SCALE * a * *x + *y; }
namespace vectors {
template <class T> __global__ void fill(T *to, T value, Pair pair) { *to = value + pair.second; }
template __global__ void fill<float>(float *, float, Pair);
}
"#;

const HOST: &str = r#"
#include <cassert>
namespace { __global__ void one(float *x) { assert(x); x[0] = 1; } }
extern "C" const char *host_file() { return __FILE__; }
extern "C" int run_one(float *x) { one<<<1, 1>>>(x); return (int)cudaGetLastError(); }
"#;

impl Machine {
    fn with_sources() -> Self {
        let machine = Self::new();
        machine.write("kernels/saxpy.cu", SAXPY);
        machine.write("kernels/zero fill.cu", "extern \"C\" __global__ void zero(float *x) { *x = 0; }");
        machine.write("include/scale.h", "#define SCALE 2.0f\n");
        machine.write("host/one.cu", HOST);
        machine
    }

    fn compile(&self, asked: &str) -> String {
        self.compile_with(asked, &[])
    }

    fn compile_with(&self, asked: &str, variables: &[(&str, &Path)]) -> String {
        let target = Path::new("x86_64-unknown-linux-gnu");
        let mut all: Vec<(&str, &Path)> = vec![
            ("CUWHEEL_PYTHON", &PYTHON),
            (ASKED, Path::new(asked)),
            ("OPT_LEVEL", Path::new("2")),
            ("DEBUG", Path::new("false")),
            ("TARGET", target),
            ("HOST", target),
        ];
        all.extend(variables);
        self.run(SCRIPT, &all)
    }

    /// Compiles a program with the crate's generated module and runs it.
    fn run_rust(&self, source: &str, flags: &[String]) -> String {
        let (source, program) = (self.write("main.rs", source), self.path("main"));
        let mut rustc = Command::new("rustc");
        rustc.args(["--edition=2024", "-Dwarnings", "-o"]).arg(&program).arg(source).args(flags);
        let output = rustc.env("OUT_DIR", self.path("out")).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(Command::new(program).output().unwrap().stdout).unwrap()
    }
}

const READS_MODULE: &str = r#"
mod kernels { include!(concat!(env!("OUT_DIR"), "/kernels.rs")); }
fn main() {
    for image in [kernels::saxpy::FATBIN, kernels::zero_fill::FATBIN] {
        println!("{:x?} {}", &image[..4], image.as_ptr() as usize % 64);
    }
    println!("{:?}", kernels::zero_fill::ZERO);
    for kernel in kernels::saxpy::KERNELS {
        let places: Vec<_> = kernel.parameters.iter().map(|place| (place.offset_bytes, place.size_bytes)).collect();
        println!("{} {places:?}", kernel.symbol);
    }
    assert_eq!(kernels::saxpy::FILL, kernels::saxpy::KERNELS[0]);
}
"#;

#[test]
fn images_hold_what_was_asked_for_and_are_compressed() {
    let machine = Machine::with_sources();
    assert_contains(&machine.compile("files=kernels/saxpy.cu arch=90a arch=80 arch=75"), &["compiled everything"]);
    let cache = fs::read_dir(machine.path("out/kernels.cache/cuda13")).unwrap();
    let [image] = cache
        .map(|entry| fs::read(entry.unwrap().path().join("output")).unwrap())
        .collect::<Vec<_>>()
        .try_into()
        .unwrap();
    let mut scanner = Scanner::new();
    scanner.push(&image);
    let [fatbin] = scanner.finish().try_into().unwrap();
    let mut held: Vec<String> =
        fatbin.images.iter().map(|image| format!("{:?} {}", image.kind, image.architecture)).collect();
    held.sort();
    assert_eq!(held, ["Ptx 75", "Sass 75", "Sass 80", "Sass 90a"]);
    assert!(fatbin.images.iter().all(|image| image.compression == Compression::Zstandard), "{:?}", fatbin.images);
}

/// The compiler of CUDA 12 is in no package: where there is one, this variable names its toolkit.
const CUDA_12: &str = "CUWHEEL_TEST_CUDA_12";

#[test]
fn one_tree_is_compiled_by_cuda_12_and_by_cuda_13() {
    let Some(toolkit) = std::env::var_os(CUDA_12).map(PathBuf::from) else {
        eprintln!("skipped: {CUDA_12} names no toolkit");
        return;
    };
    let machine = Machine::with_sources();
    let asked = "files=kernels/*.cu host=host/*.cu arch=75 arch=90a";
    let compile =
        |major: &str| machine.compile_with(asked, &[("CUDA_PATH", &toolkit), ("CUWHEEL_CUDA_MAJOR", Path::new(major))]);
    for (major, found_by) in [("12", "by CUDA_PATH"), ("13", "by Python packages")] {
        let output = compile(major);
        assert_contains(&output, &[&format!("compiler: CUDA {major}."), found_by, "compiled everything"]);
        assert_eq!(output.matches(": compiled").count(), 3, "{output}");
        let cache = fs::read_dir(machine.path(&format!("out/kernels.cache/cuda{major}"))).unwrap();
        // Each major version of CUDA began one of the PTX language: 8.0 came with 12.0, and 9.0 with 13.0.
        let mut languages = Vec::new();
        for bytes in cache.flatten().filter_map(|entry| fs::read(entry.path().join("output")).ok()) {
            let mut scanner = Scanner::new();
            scanner.push(&bytes);
            for fatbin in scanner.finish() {
                let ptx = fatbin.images.iter().filter(|image| image.kind == ImageKind::Ptx);
                languages.extend(ptx.map(|image| u32::from(image.version.0) + 4));
            }
        }
        assert_eq!(languages, vec![major.parse::<u32>().unwrap(); 3]);
    }
    // Both are kept.
    for major in ["12", "13"] {
        assert_eq!(compile(major).matches(": unchanged").count(), 3);
    }
}

#[test]
fn kernels_are_in_the_generated_module_and_compiled_again_only_if_their_content_changed() {
    let machine = Machine::with_sources();
    let asked = "files=kernels/*.cu arch=75 arch=90a";
    let output = machine.compile(asked);
    assert_contains(
        &output,
        &[
            "compiler: CUDA 13.5",
            "(by Python packages)",
            "architectures: sm_75 sm_90a and PTX of compute_75",
            "compiled everything",
        ],
    );
    assert_eq!(output.matches(": compiled").count(), 2, "{output}");
    let header = format!("cargo:rerun-if-changed={}", machine.path("include/scale.h").display());
    assert_contains(&output, &[&header]);
    assert_eq!(
        machine.run_rust(READS_MODULE, &[]),
        "[50, ed, 55, ba] 0\n[50, ed, 55, ba] 0\n\
         Kernel { symbol: \"zero\", parameters: [Parameter { offset_bytes: 0, size_bytes: 8 }] }\n\
         _ZN7vectors4fillIfEEvPT_S1_4Pair [(0, 8), (8, 4), (16, 16)]\n\
         saxpy [(0, 4), (4, 4), (8, 8), (16, 8)]\n"
    );
    assert_eq!(machine.compile(asked).matches(": unchanged").count(), 2);
    machine.write("include/scale.h", "#define SCALE 3.0f\n");
    let output = machine.compile(asked);
    assert_contains(&output, &["kernels/saxpy.cu: compiled", "kernels/zero fill.cu: unchanged"]);
    let output = machine.compile(&asked.replace("75", "80"));
    assert_eq!(output.matches(": compiled").count(), 2, "{output}");
}

#[test]
fn the_same_sources_give_the_same_images_and_objects_in_any_folder() {
    let machines = [Machine::with_sources(), Machine::with_sources()];
    for machine in &machines {
        let output = machine.compile("files=host/*.cu host=host/*.cu arch=75");
        assert_contains(&output, &["compiled everything"]);
    }
    let read = |machine: &Machine| {
        let cache = fs::read_dir(machine.path("out/kernels.cache/cuda13")).unwrap();
        let mut outputs: Vec<Vec<u8>> =
            cache.flatten().filter_map(|entry| fs::read(entry.path().join("output")).ok()).collect();
        outputs.sort();
        outputs.push(fs::read(machine.path("out/libkernels_host.a")).unwrap());
        outputs
    };
    let [one, two] = machines.each_ref().map(read);
    assert_eq!(one.len(), 3);
    assert!(one == two, "the results differ");
    let holds = |text: &str| one.iter().any(|bytes| bytes.windows(text.len()).any(|window| window == text.as_bytes()));
    assert!(holds("host/one.cu"), "the path in the crate stays");
    assert!(!holds("Leerzeichen"), "a path of the machine is in the results");
}

#[test]
fn host_code_is_linked_with_the_static_runtime_and_not_with_the_driver() {
    let machine = Machine::with_sources();
    let output = machine.compile("host=host/*.cu arch=75");
    assert_contains(&output, &["compiled everything", "cargo:rustc-link-lib=static:-bundle=cudart_static"]);
    let flags: Vec<String> = output
        .lines()
        .filter_map(|line| {
            let value = |name: &str| line.strip_prefix(name).map(str::to_owned);
            value("cargo:rustc-link-search=")
                .map(|folder| format!("-L{folder}"))
                .or_else(|| value("cargo:rustc-link-lib=").map(|library| format!("-l{library}")))
        })
        .collect();
    let program = "unsafe extern \"C\" { fn run_one(x: *mut f32) -> i32; }\n\
                   fn main() { println!(\"{}\", unsafe { run_one(std::ptr::null_mut()) }) }";
    let code: i32 =
        machine.run_rust(program, &flags).trim().parse().expect("the runtime answers, with or without a driver");
    assert!(code >= 0);
    let dynamic = Command::new("readelf").arg("-d").arg(machine.path("main")).output().unwrap();
    let dynamic = String::from_utf8(dynamic.stdout).unwrap();
    assert_contains(&dynamic, &["(NEEDED)", "libc.so.6"]);
    assert!(!dynamic.contains("libcuda") && !dynamic.contains("RUNPATH"), "{dynamic}");
}

#[test]
fn pk_21_a_missing_header_leads_to_the_package_to_add() {
    let machine = Machine::with_sources();
    machine.write("kernels/atomics.cu", "#include <cuda/atomic>\n");
    let output = machine.compile("files=kernels/atomics.cu arch=75");
    assert_contains(&output, &["failed: the header cuda/atomic is missing", "Add \"nvidia-cuda-cccl==13.*\" to"]);
    machine.write("kernels/atomics.cu", "__global__ void broken() { int x = y; }\n");
    let output = machine.compile("files=kernels/atomics.cu arch=75");
    assert_contains(&output, &["failed: kernels/atomics.cu does not compile:", "identifier \"y\" is undefined"]);
}

#[test]
fn pk_24_the_compilers_own_list_decides() {
    let machine = Machine::with_sources();
    let output = machine.compile("files=kernels/z*.cu arch=70");
    assert_contains(&output, &["failed: CUDA 13.5", "does not compile for: 70.", "It knows: 75 80 "]);
    let output = machine.compile("files=kernels/z*.cu arch=70 arch=80 intersect");
    assert_contains(&output, &["architectures: sm_80 and PTX of compute_80", "compiled everything"]);
}
