//! This repository's own wheel and sdist.

use cuwheel_inspect::elf::ElfFile;
use cuwheel_inspect::wheel::Wheel;

use crate::overlay::differences;
use crate::support::{Tree, copy_of_repository, cuwheel, interpreter, run};

/// Growth past this is to be noticed. Numba-cuda's four modules have 697 kB, with neither device arrays nor kernels,
/// and no compiling of sources.
const LIBRARY_LIMIT_BYTES: usize = 1_800_000;

#[test]
fn the_wheel_and_the_sdist_are_what_they_should_be_from_any_directory() {
    let tree = copy_of_repository();
    let build = || {
        let ran =
            run(cuwheel(&tree.root).args(["build-wheel", "--sdist", "--json", "--locked"]).env("TZ", "Asia/Tokyo"));
        ran.expect_code(0).json()
    };
    let document = build();
    let built = &document["wheels"][0];
    assert_eq!(built["tags"], serde_json::json!(["cp311-abi3-manylinux_2_28_x86_64"]));
    assert_eq!(built["extension_modules"], serde_json::json!(["cuwheel._native"]));
    assert_eq!(
        document["sdist"]["rebuilds_identically"], true,
        "the sdist was unpacked and built in another directory"
    );

    let wheel = Wheel::open(std::path::Path::new(built["path"].as_str().unwrap())).unwrap();
    let bill = wheel.read(&format!("{}/sboms/native-sources.cyclonedx.json", wheel.dist_info())).unwrap();
    let shim = cuwheel::files::sha256_of_file(&tree.root.join("crates/cuwheel-numpy/src/shim.c")).unwrap();
    assert!(String::from_utf8(bill).unwrap().contains(&shim));

    let library = wheel.read("cuwheel/_native.abi3.so").unwrap();
    assert!(library.len() <= LIBRARY_LIMIT_BYTES, "{} bytes", library.len());
    let library = ElfFile::parse(&library).unwrap();
    let inits: Vec<&str> = library.module_inits().iter().map(cuwheel_inspect::elf::ModuleInit::module).collect();
    assert_eq!(inits, ["_native"]);
    assert!(!library.needed().iter().any(|name| name.starts_with("libcuda") || name.starts_with("libpython")));

    // PK-62: the manifest names what is in the directory, and nothing else is there.
    let mut found: Vec<String> = std::fs::read_dir(tree.root.join("dist"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    found.sort();
    let file = |value: &serde_json::Value| value["file"].as_str().unwrap().to_owned();
    assert_eq!(found, [file(built), file(&document["sdist"]), "manifest.json".to_owned()]);
    check_overlays(&tree);
}

/// Releases of numba-cuda, the newest Python that each has a wheel for, and what differs in the overlay: licences, bills of
/// materials and metadata, and modules of the package.
fn check_overlays(tree: &Tree) {
    const EVERYWHERE: &str = "\
~ STEM.dist-info/METADATA
~ STEM.dist-info/RECORD
~ STEM.dist-info/WHEEL
+ STEM.dist-info/licenses/cuwheel/LICENSE-APACHE
+ STEM.dist-info/licenses/cuwheel/LICENSE-MIT
+ STEM.dist-info/overlay.json
+ STEM.dist-info/sboms/cuwheel-native.cyclonedx.json
+ STEM.dist-info/sboms/native-sources.cyclonedx.json
+ STEM.dist-info/sboms/overlay.cyclonedx.json
";
    let shared = "_hashtable.cpp _hashtable.h _helperlib.c _helpermod.c _pymodule.h _typeof.cpp _typeof.h capsulethunk.h \
                  mviewbuf.c typeconv.cpp typeconv.hpp _dispatcher.cpp _typeconv.cpp";
    let modules = ["_dispatcher", "_helperlib", "_typeconv", "mviewbuf"];
    for (release, newest, older_modules, older_sources) in [
        ("numba-cuda==0.30.4", 14, None, &[][..]),
        ("numba-cuda==0.22.2", 13, Some("_devicearray"), &["_devicearray.cpp", "_devicearray.h"]),
    ] {
        if interpreter().minor_version().1 > newest {
            continue;
        }
        let made = run(cuwheel(&tree.root).args(["overlay", release, "--json", "--locked"])).expect_code(0).json();
        let open = |path: &serde_json::Value| Wheel::open(std::path::Path::new(path.as_str().unwrap())).unwrap();
        let differing = differences(&open(&made["released"]["path"]), &open(&made["wheel"]["path"]));
        let modules = modules.iter().copied().chain(older_modules);
        let replaced = modules.flat_map(|module| [format!("- {module}.SUFFIX"), format!("+ {module}.py")]);
        let sources = shared.split_whitespace().chain(older_sources.iter().copied());
        let mut expected: Vec<String> = replaced
            .chain(sources.map(|source| format!("- {source}")))
            .chain(["+ _native.abi3.so".to_owned()])
            .map(|line| format!("{}numba_cuda/numba/cuda/cext/{}", &line[..2], &line[2..]))
            .chain(EVERYWHERE.lines().map(str::to_owned))
            .collect();
        let mut found: Vec<String> = differing.lines().map(str::to_owned).collect();
        expected.sort();
        found.sort();
        assert_eq!(found, expected, "{release}");
    }
}
