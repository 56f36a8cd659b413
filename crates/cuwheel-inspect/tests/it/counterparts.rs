//! For each rule what is right: a wheel in which nothing is wrong, and which differs from a broken one by the fault.

use std::env::consts::ARCH;

use cuwheel_inspect::rules::{self, ExaminedWheel, Finding, InstalledFiles, InstalledLibraries, ListedWheel, Policy};
use cuwheel_inspect::testing::WheelBuilder;

use crate::corpus::{other_library, sound, sound_name};
use crate::{gpu_code, native};

/// A wheel without a fault.
pub(crate) struct Sound {
    /// What is right in it.
    pub(crate) what: &'static str,
    pub(crate) file_name: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) policy: Policy,
}

/// The sound counterpart of the wheels that break `rule`.
pub(crate) fn sound_for(rule: &str) -> Sound {
    let (what, wheel, policy) = specific(rule).unwrap_or_else(|| (usual(rule), sound(), Policy::default()));
    Sound { what, file_name: wheel.file_name(), bytes: wheel.build(), policy }
}

fn usual(rule: &str) -> &'static str {
    match rule.split('/').next() {
        Some("archive") => {
            "a package with one module, in which every file stands once in the archive and once in RECORD"
        }
        Some("tags") => "an abi3 module in a wheel for CPython 3.11 and manylinux_2_28, which needs nothing newer",
        Some("modules") => "a module `demo/_native.abi3.so` that exports `PyInit__native`",
        _ => "a module that is linked to nothing and was left as the linker wrote it",
    }
}

type Right = (&'static str, WheelBuilder, Policy);

fn specific(rule: &str) -> Option<Right> {
    let plain = |what, wheel| Some((what, wheel, Policy::default()));
    let module = |library: Vec<u8>| {
        WheelBuilder::new(&sound_name()).file("demo/__init__.py", "").file("demo/_native.abi3.so", library)
    };
    let with_path = |path: &str| module(native::library(native::INIT, &[&format!("-Wl,-rpath,{path}")]));
    match rule {
        "archive/not-executable" => {
            plain("a program with mode 755", sound().file_with_mode("demo/bin/tool", native::program(), 0o100_755))
        }
        "modules/entry-point" => plain(
            "a script of a module that is inside, and one of a project that is required",
            sound().file(
                "demo-0.1.0.dist-info/entry_points.txt",
                "[console_scripts]\ndemo = demo:main\nother = other.cli:main\n",
            ),
        ),
        "tags/pure-with-native" => plain(
            "no native file in a wheel for any platform",
            WheelBuilder::new("demo-0.1.0-py3-none-any.whl").file("demo/__init__.py", ""),
        ),
        "tags/glibc-floor" => {
            plain("a symbol of glibc 2.28", module(native::versioned_need("libc.so.6", "GLIBC_2.28")))
        }
        "tags/cxx-floor" => plain(
            "a symbol that GCC 8 has, for manylinux_2_28",
            module(native::versioned_need("libstdc++.so.6", "GLIBCXX_3.4.24")),
        ),
        "libraries/absolute-rpath"
        | "libraries/working-directory-rpath"
        | "libraries/escaping-rpath"
        | "libraries/stubs-rpath" => {
            plain("an RPATH into another wheel, `$ORIGIN/../nvidia/cu13/lib`", with_path("$ORIGIN/../nvidia/cu13/lib"))
        }
        "libraries/unresolved" => plain(
            "a needed library at the end of the RPATH `$ORIGIN/../demo.libs`",
            module(native::linked_with(&["libother.so.1"], &["-Wl,-rpath,$ORIGIN/../demo.libs"]))
                .file("demo.libs/libother.so.1", other_library()),
        ),
        "size/budget" => {
            Some(("a wheel that is smaller than its budget", sound(), Policy::default().with_budget(Some(1_000_000))))
        }
        "modules/declared-missing" => {
            let modules = vec!["demo".to_owned(), "demo._native".to_owned()];
            Some(("every declared module", sound(), Policy::default().with_modules(modules)))
        }
        _ => of_cuda(rule),
    }
}

fn of_cuda(rule: &str) -> Option<Right> {
    let with_code = |code: &[u8]| {
        WheelBuilder::new(&sound_name())
            .file("demo/__init__.py", "")
            .file("demo/_native.abi3.so", native::with_gpu_code(".nv_fatbin", code))
    };
    match rule {
        "cuda/no-ptx" => Some(("machine code and PTX in `.nv_fatbin`", with_code(gpu_code::PLAIN), Policy::default())),
        "cuda/fatbin-damaged" => Some(("a fatbin as nvcc wrote it", with_code(gpu_code::FEATURES), Policy::default())),
        "cuda/architecture-missing" | "cuda/architecture-extra" => {
            let declared = ["75+PTX".parse().expect("an architecture")];
            let policy = Policy::default().with_architectures(&declared);
            Some(("machine code and PTX for 75, and `75+PTX` declared", with_code(gpu_code::PLAIN), policy))
        }
        "cuda/toolkit-mismatch" | "cuda/dependency-missing" | "cuda/dependency-toolkit" => {
            let library = native::linked_with(&["libcublas.so.13"], &["-Wl,-rpath,$ORIGIN/../nvidia/cu13/lib"]);
            let cublas = WheelBuilder::new(&format!("nvidia_cublas-13.0-py3-none-manylinux_2_28_{ARCH}.whl"))
                .file("nvidia/cu13/lib/libcublas.so.13", other_library());
            let cublas = ExaminedWheel::from_bytes(&cublas.file_name(), cublas.build()).expect("a wheel");
            let policy = Policy::default().with_dependencies(vec![InstalledLibraries::of(&cublas)]);
            let wheel = WheelBuilder::new(&sound_name())
                .file("demo/__init__.py", "")
                .file("demo/_native.abi3.so", library)
                .metadata_header("Requires-Dist", "nvidia-cublas>=13,<14");
            Some(("a link to libcublas.so.13 and the requirement `nvidia-cublas>=13,<14`", wheel, policy))
        }
        _ => None,
    }
}

/// Breaches of rules that are not about one wheel read alone: the rule, what is wrong, and what is found.
pub(crate) fn breaches_of_sets() -> Vec<(&'static str, &'static str, Vec<Finding>)> {
    let installed = |project: &str, text: &str| {
        let wheel = WheelBuilder::new(&format!("{project}-1.0-py3-none-any.whl")).file("demo/__init__.py", text);
        InstalledFiles::of(&ExaminedWheel::from_bytes(&wheel.file_name(), wheel.build()).expect("a wheel"))
    };
    let listed = |file: &str, sha256: &str| ListedWheel { file: file.to_owned(), sha256: sha256.to_owned() };
    let policy = Policy::default();
    let manifest =
        |expected: &[ListedWheel], found: &[ListedWheel]| rules::check_manifest(expected, found, true, &policy);
    let (one, other) = (listed("demo-1.0-py3-none-any.whl", "1f0e"), listed("demo-0.9-py3-none-any.whl", "9c2d"));
    let changed = listed("demo-1.0-py3-none-any.whl", "77ab");
    let same = [one.clone()];
    vec![
        (
            "sets/collision",
            "two projects with one file",
            rules::check_set(&[installed("demo_base", "12"), installed("demo_cu13", "13")], &policy),
        ),
        (
            "sets/alternatives",
            "a project for two versions of CUDA",
            rules::check_set(&[installed("demo_cu12", "12"), installed("demo_cu13", "13")], &policy),
        ),
        ("sets/not-found", "a wheel was removed", manifest(&same, &[])),
        ("sets/not-expected", "a wheel of an earlier build", manifest(&same, &[one, other])),
        ("sets/changed", "a wheel was changed", manifest(&same, &[changed])),
        (
            "modules/import",
            "a module that nothing brings",
            rules::with_import_failure(
                Vec::new(),
                "demo-1.0-py3-none-any.whl does not import: demo: ModuleNotFoundError: No module named 'numpy'"
                    .to_owned(),
                &policy,
            ),
        ),
    ]
}
