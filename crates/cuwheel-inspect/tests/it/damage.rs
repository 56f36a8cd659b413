//! Damaged input gives errors, never a panic: wheels, source distributions and ELF files with bytes changed.

use std::process::Command;
use std::sync::LazyLock;

use cuwheel_inspect::elf::{ElfFile, ElfLayout, GlibcVersion, exported_versions};
use cuwheel_inspect::objects::find_references;
use cuwheel_inspect::sdist::Sdist;
use cuwheel_inspect::testing::WheelBuilder;
use cuwheel_inspect::wheel::{Wheel, WheelName};
use proptest::prelude::*;

const NAME: &str = "demo-0.1.0-cp311-abi3-manylinux_2_28_x86_64.whl";

/// A change of some bytes: positions are taken modulo the length, and the rest may be cut off.
#[derive(Debug, Clone)]
struct Damage {
    changes: Vec<(usize, u8)>,
    cut: Option<usize>,
}

impl Damage {
    fn apply(&self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        for (position, value) in &self.changes {
            let length = bytes.len();
            bytes[position % length] = *value;
        }
        if let Some(cut) = self.cut {
            bytes.truncate(cut % bytes.len());
        }
        bytes
    }
}

fn damage() -> impl Strategy<Value = Damage> {
    let value = prop_oneof![any::<u8>(), Just(0), Just(1), Just(0x7f), Just(0xff)];
    let changes = prop::collection::vec((any::<usize>(), value), 1..12);
    let cut = prop_oneof![4 => Just(None), 1 => any::<usize>().prop_map(Some)];
    (changes, cut).prop_map(|(changes, cut)| Damage { changes, cut })
}

static WHEEL: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let zeros = [0; 3000];
    WheelBuilder::new(NAME).file("demo/__init__.py", "x = 1\n").file("demo/_native.abi3.so", zeros).build()
});

static LIBRARY: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let directory = tempfile::tempdir().unwrap();
    let source = "#include <stdio.h>\nint f(void) { return puts(\"x\"); } void *PyInit_f(void) { return stdout; }";
    std::fs::write(directory.path().join("f.c"), source).unwrap();
    std::fs::write(directory.path().join("map"), "V1 { global: f; PyInit_f; local: *; };").unwrap();
    let arguments = ["-shared", "-fPIC", "-Wl,--version-script,map", "f.c", "-o", "f.so"];
    assert!(Command::new("cc").args(arguments).current_dir(&directory).status().unwrap().success());
    std::fs::read(directory.path().join("f.so")).unwrap()
});

/// The places of an ELF file that its reader looks at: headers and tables, not code.
fn tables(bytes: &[u8]) -> Vec<usize> {
    let section_headers = usize::try_from(u64::from_le_bytes(bytes[0x28..0x30].try_into().unwrap())).unwrap();
    (0..0x800).chain(section_headers..bytes.len()).collect()
}

fn read_everything(bytes: &[u8]) {
    let _ = ElfLayout::parse(bytes).map(|layout| layout.is_program());
    let Ok(file) = ElfFile::parse(bytes) else { return };
    let _ = file.glibc_floor();
    let _ = file.symbols_above(GlibcVersion::new(2, 0));
    let _ = file.module_inits();
    let _ = exported_versions(bytes);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn wheels(damage in damage()) {
        if let Ok(wheel) = Wheel::from_bytes(NAME, damage.apply(&WHEEL)) {
            let _ = wheel.verify_record();
            let _ = wheel.extension_modules();
            for entry in wheel.entries() {
                prop_assert!(wheel.read_entry(entry).is_ok(), "it was read once");
            }
        }
    }

    #[test]
    fn elf_files(damage in damage()) {
        read_everything(&damage.apply(&LIBRARY));
    }

    #[test]
    fn elf_tables(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let mut bytes = LIBRARY.clone();
        let places = tables(&bytes);
        for (place, value) in &changes {
            bytes[*place.get(&places)] = *value;
        }
        read_everything(&bytes);
    }

    #[test]
    fn arbitrary_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = Wheel::from_bytes(NAME, bytes.clone());
        read_everything(&bytes);
        read_everything(&[b"\x7fELF\x02\x01\x01", bytes.as_slice()].concat());
    }

    #[test]
    fn arbitrary_names(name in ".{0,40}", parts in prop::collection::vec("[a-z0-9._+]{0,6}", 4..7)) {
        for text in [name, format!("{}.whl", parts.join("-"))] {
            if let Ok(name) = text.parse::<WheelName>() {
                prop_assert_eq!(name.to_string(), text);
                prop_assert_eq!(name.normalized().normalized(), name.normalized());
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn files_on_disk(damage in damage()) {
        let directory = tempfile::tempdir().unwrap();
        let mut tar = tar::Builder::new(Vec::new());
        for name in ["demo-1.0/a", "demo-1.0/b/c"] {
            let mut header = tar::Header::new_gnu();
            header.set_size(4);
            header.set_mode(0o644);
            tar.append_data(&mut header, name, &b"text"[..]).unwrap();
        }
        let damaged = damage.apply(&tar.into_inner().unwrap());
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut encoder, &damaged).unwrap();
        let path = directory.path().join("demo-1.0.tar.gz");
        std::fs::write(&path, encoder.finish().unwrap()).unwrap();
        if let Ok(sdist) = Sdist::open(&path) {
            let _ = sdist.unpack_to(&directory.path().join("out"));
        }
        let object = directory.path().join("damaged.o");
        std::fs::write(&object, damage.apply(&LIBRARY)).unwrap();
        let _ = find_references(&object, &["puts"]);
    }
}
