//! This repository's own wheel and sdist.

use cuwheel_inspect::elf::ElfFile;
use cuwheel_inspect::wheel::Wheel;

use crate::support::{copy_of_repository, cuwheel, run};

/// Numba-cuda's four C++ modules have 697 kB; ours may have this much.
const LIBRARY_LIMIT_BYTES: usize = 600_000;

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
}
