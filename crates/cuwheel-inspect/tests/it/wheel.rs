//! Wheels read whole, and every kind of finding about their RECORD.

use cuwheel_inspect::digest::Sha256Digest;
use cuwheel_inspect::elf::{ElfFile, ElfLayout};
use cuwheel_inspect::testing::WheelBuilder;
use cuwheel_inspect::wheel::{Entry, ExtensionModule, NativeCode, NativeMember, Wheel, WheelError, WheelFault};
use expect_test::{Expect, expect};

use crate::native;

const NAME: &str = "demo-0.1.0-cp311-abi3-manylinux_2_28_x86_64.whl";
const RECORD: &str = "demo-0.1.0.dist-info/RECORD";

fn builder() -> WheelBuilder {
    WheelBuilder::new(NAME).file("demo/__init__.py", "x = 1\n")
}

fn open(builder: &WheelBuilder) -> Result<Wheel, WheelError> {
    Wheel::from_bytes(&builder.file_name(), builder.build())
}

#[test]
fn a_wheel_is_read_whole() {
    let library = [b"\x7fELF".as_slice(), &[0; 5000]].concat();
    let builder = builder()
        .file("demo/", "")
        .file_with_mode("demo/_native.abi3.so", &library, 0o100_755)
        .file("demo/größe, \"quoted\".txt", "text")
        .metadata_header("Requires-Python", ">=3.11")
        .metadata_header("Requires-Dist", "numpy>=2")
        .metadata_header("Requires-Dist", "cuda-toolkit; extra == 'cu13'")
        .metadata_header("Provides-Extra", "cu13");
    let bytes = builder.build();
    let wheel = Wheel::from_bytes(NAME, bytes.clone()).unwrap();

    assert_eq!(wheel.verify_record(), []);
    assert_eq!(wheel.file_name(), NAME);
    assert_eq!(wheel.name().distribution(), "demo");
    assert_eq!(wheel.size_bytes(), bytes.len() as u64);
    assert_eq!(wheel.sha256(), Sha256Digest::of(&bytes));
    assert_eq!(wheel.dist_info(), "demo-0.1.0.dist-info");
    let paths: Vec<&str> = wheel.entries().iter().map(Entry::path).collect();
    assert_eq!(
        paths,
        [
            "demo/__init__.py",
            "demo/",
            "demo/_native.abi3.so",
            "demo/größe, \"quoted\".txt",
            "demo-0.1.0.dist-info/METADATA",
            "demo-0.1.0.dist-info/WHEEL",
            RECORD,
        ]
    );

    let entry = wheel.entry("demo/_native.abi3.so").unwrap();
    assert_eq!((entry.size_bytes(), entry.unix_mode()), (5004, Some(0o100_755)));
    assert!(entry.compressed_size_bytes() < 100, "it is deflated");
    assert!(entry.is_elf() && entry.is_shared_library() && !entry.is_directory());
    assert!(!wheel.entry("demo/__init__.py").unwrap().is_elf());
    assert!(wheel.entry("demo/").unwrap().is_directory());
    assert_eq!(entry.sha256(), Sha256Digest::of(&library));
    assert_eq!(wheel.read("demo/_native.abi3.so").unwrap(), library);
    assert_eq!(wheel.read("demo/none").unwrap_err().to_string(), format!("{NAME}: the archive holds no demo/none"));

    let metadata = wheel.metadata();
    assert_eq!((metadata.name(), metadata.version()), ("demo", "0.1.0"));
    assert_eq!(metadata.requires_python(), Some(">=3.11"));
    assert_eq!(metadata.requires_dist().collect::<Vec<_>>(), ["numpy>=2", "cuda-toolkit; extra == 'cu13'"]);
    assert_eq!(metadata.provides_extra().collect::<Vec<_>>(), ["cu13"]);
    assert_eq!(metadata.headers().get("metadata-version"), Some("2.1"));

    let info = wheel.info();
    assert_eq!((info.wheel_version(), info.generator(), info.root_is_purelib()), ("1.0", Some("cuwheel tests"), false));
    assert_eq!(info.tags(), wheel.name().tags());
    assert_eq!(wheel.record().len(), 6);

    let modules: Vec<_> = wheel.extension_modules().iter().map(ExtensionModule::module).map(str::to_owned).collect();
    assert_eq!(modules, ["demo._native"]);
}

#[test]
fn a_wheel_is_opened_from_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(NAME);
    std::fs::write(&path, builder().build()).unwrap();
    let wheel = Wheel::open(&path).unwrap();
    assert_eq!(wheel.read("demo/__init__.py").unwrap(), b"x = 1\n");
    assert_eq!(wheel.sha256(), Sha256Digest::of(&builder().build()));

    let (wheel, elf_files) = Wheel::open_with(&path, |_| ()).unwrap();
    assert_eq!((wheel.entries().len(), elf_files), (4, vec![]));

    let missing = directory.path().join("none-1.0-py3-none-any.whl");
    let error = Wheel::open(&missing).unwrap_err();
    assert!(matches!(error.fault(), WheelFault::Io(_)), "{error}");
    assert_eq!(error.file(), missing.to_str().unwrap());
}

#[test]
fn elf_files_are_inspected_while_the_wheel_is_opened() {
    let library = |length: usize| [b"\x7fELF".as_slice(), &vec![7; length]].concat();
    // More than one thread takes part in a wheel of this size.
    let noise: Vec<u8> = (0..600_000_u32).flat_map(|number| number.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    let builder = builder()
        .file("demo/small.so", library(10))
        .file("demo/noise.bin", &noise)
        .file("demo/large.so", library(500_000))
        .file("demo/named_so.so", "no ELF file")
        .file("bin/tool", library(100_000));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(NAME);
    std::fs::write(&path, builder.build()).unwrap();
    let length = |native: &NativeMember<'_>| match native.code() {
        NativeCode::Elf(Ok(contents)) => contents.len(),
        _ => 0,
    };
    let (wheel, lengths) = Wheel::open_with(&path, length).unwrap();
    assert!(wheel.size_bytes() > 2 << 20);
    let lengths: Vec<_> =
        lengths.iter().map(|(position, length)| (wheel.entries()[*position].path(), *length)).collect();
    assert_eq!(lengths, [("demo/small.so", 14), ("demo/large.so", 500_004), ("bin/tool", 100_004)]);
    assert_eq!(wheel.verify_record(), []);
}

/// What a large library holds is not kept, and everything that is asked of it is the same.
#[test]
fn tables_of_large_libraries_are_read_without_their_contents() {
    let noise = |number: u32| number.wrapping_mul(2_654_435_761).to_le_bytes();
    let repetitive = |number: u32| (number / 1024).wrapping_mul(2_654_435_761).to_le_bytes();
    let contents: [Vec<u8>; 2] = [(0..3 << 20).flat_map(noise).collect(), (0..6 << 20).flat_map(repetitive).collect()];
    for contents in contents {
        let library = native::library_with_contents(&contents);
        let described = |data: &[u8]| format!("{:?}\n{:?}", ElfFile::parse(data), ElfLayout::parse(data));
        let bytes = builder().file("demo/large.so", &library).build();
        let (_, found) = Wheel::from_bytes_with(NAME, bytes, |native| match native.code() {
            NativeCode::Elf(Ok(data)) => (described(data), data.iter().filter(|byte| **byte != 0).count()),
            _ => (String::new(), 0),
        })
        .unwrap();
        let [(_, (description, filled_bytes))] = &found[..] else { panic!("one library") };
        assert_eq!(*description, described(&library));
        assert!(*filled_bytes < library.len() / 8, "{filled_bytes} of {} bytes", library.len());
    }
}

#[track_caller]
fn check_findings(builder: &WheelBuilder, expected: &Expect) {
    let findings = open(builder).unwrap().verify_record();
    let shown: Vec<String> = findings.iter().map(|finding| format!("{finding}\n")).collect();
    expected.assert_eq(&shown.concat());
}

#[test]
fn a_file_without_a_row_is_found() {
    check_findings(
        &builder().file("demo/extra.py", "").without_row("demo/extra.py"),
        &expect![[r"
            demo/extra.py is in the wheel and not in RECORD: an uninstall leaves it behind
        "]],
    );
    check_findings(
        &builder().without_row(RECORD),
        &expect![[r"
            demo-0.1.0.dist-info/RECORD is in the wheel and not in RECORD: an uninstall leaves it behind
        "]],
    );
}

#[test]
fn a_row_without_a_file_is_found() {
    check_findings(
        &builder().file("demo/_native.abi3.so", "").without_file("demo/_native.abi3.so"),
        &expect![[r"
            demo/_native.abi3.so is in RECORD (line 2) and not in the wheel
        "]],
    );
}

/// NVIDIA/cuda-python, `build_hooks.py`: a wheel packed again after an edit, with the old RECORD.
#[test]
fn contents_changed_after_record_are_found() {
    check_findings(
        &builder().file_changed_after_record("demo/a.py", "x = 1", "x = 2"),
        &expect![[r"
            demo/a.py has the sha256 FDG5hjd7VDDwH9aQDYc_oonVRvMEvFjBjUJJL4f1QBY and RECORD says j_Q23vFFEoVZmhsa1wgASTuNyv3ikS4aODRWMwVOTCY: it was changed after RECORD was written
        "]],
    );
    let sizes = builder().file_changed_after_record("demo/a.py", "x = 1", "x = 10");
    let findings = open(&sizes).unwrap().verify_record();
    assert_eq!(findings.len(), 2, "hash and size");
    assert_eq!(
        findings[1].to_string(),
        "demo/a.py has 6 bytes and RECORD says 5: it was changed after RECORD was written"
    );
    assert_eq!(findings[1].path(), "demo/a.py");
}

#[test]
fn a_row_that_stands_twice_is_found() {
    check_findings(
        &builder().extra_rows("demo/__init__.py,sha256=nia_NpkRxFwkPGhBR7I_yeHc_PJX0pmhxjIBam_NM_Q,6\n"),
        &expect![[r"
            demo/__init__.py is in RECORD twice, on lines 1 and 5
        "]],
    );
}

/// GreenBankObservatory/dysh#963, astral-sh/uv#12206: installers differ in which copy they keep.
#[test]
fn a_member_that_stands_twice_is_found_with_both_offsets() {
    let twice = builder().file("demo/__init__.py", "x = 2\n");
    let wheel = open(&twice).unwrap();
    assert_eq!(wheel.read("demo/__init__.py").unwrap(), b"x = 2\n", "the last one, as zipfile reads it");
    check_findings(
        &twice,
        &expect![[r"
            demo/__init__.py is in the archive twice, at offsets 0 and 52: installers differ in which one they keep
            demo/__init__.py has the sha256 QgXEgJqxsID9Mra_lkDl_qptG2m_n6aElUq3EBV-wUE and RECORD says nia_NpkRxFwkPGhBR7I_yeHc_PJX0pmhxjIBam_NM_Q: it was changed after RECORD was written
            demo/__init__.py is in RECORD twice, on lines 1 and 2
        "]],
    );
}

#[test]
fn weak_and_missing_hashes_are_found() {
    check_findings(
        &builder()
            .file("demo/a.py", "a")
            .row("demo/a.py", "md5=DMF1ucDxtqgxw5niaXcmYQ,1")
            .file("demo/b.py", "b")
            .row("demo/b.py", ",1"),
        &expect![[r"
            demo/a.py is recorded with `md5` (line 2); RECORD allows sha256, sha384 and sha512
            demo/b.py is recorded without a hash (line 3)
        "]],
    );
}

#[test]
fn longer_hashes_padding_empty_sizes_and_signatures_are_no_findings() {
    let sha512 = "sha512=z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg_SpIdNs6c5H0NE8XYXysP-DGNKHfuwvY7kxvUdBeoGlODJ6-SfaPg";
    let sha384 = "sha384=OLBgp1GsljhM2TJ-sbHjaiH9txEUvgdDTAzHv2P24donTt6_529l-9Ua0vFImLlb";
    let padded = "sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU=";
    let builder = builder()
        .file("demo/a", "")
        .row("demo/a", &format!("{sha512},0"))
        .file("demo/b", "")
        .row("demo/b", &format!("{sha384},0"))
        .file("demo/c", "")
        .row("demo/c", &format!("{padded},"))
        .file("demo-0.1.0.dist-info/RECORD.jws", "{}")
        .without_row("demo-0.1.0.dist-info/RECORD.jws");
    assert_eq!(open(&builder).unwrap().verify_record(), []);
    let wrong = builder.file("demo/d", "x").row("demo/d", &format!("{sha512},1"));
    assert_eq!(open(&wrong).unwrap().verify_record().len(), 1, "sha512 is compared");
}

#[test]
fn what_every_wheel_must_have_is_required() {
    let info = "demo-0.1.0.dist-info";
    for (builder, reason) in [
        (builder().without_file(RECORD), "the archive holds no demo-0.1.0.dist-info/RECORD"),
        (builder().without_file(&format!("{info}/METADATA")), "holds no demo-0.1.0.dist-info/METADATA"),
        (builder().without_file(&format!("{info}/WHEEL")), "holds no demo-0.1.0.dist-info/WHEEL"),
        (builder().dist_info("demo"), "no .dist-info directory"),
        (
            builder().file("other-1.0.dist-info/METADATA", ""),
            "several .dist-info directories: demo-0.1.0.dist-info, other-1.0.dist-info",
        ),
        (builder().metadata("Name: demo\n"), "has no `Metadata-Version` header"),
        (builder().wheel_info("Wheel-Version: 1.0\n"), "has no `Root-Is-Purelib` header"),
        (builder().extra_rows("a,b\n"), "RECORD, line 5: a row must have three columns"),
    ] {
        let error = open(&builder).expect_err(reason).to_string();
        assert!(error.starts_with(NAME) && error.contains(reason), "{error}");
    }
    let error = Wheel::from_bytes("demo.whl", builder().build()).unwrap_err();
    assert!(matches!(error.fault(), WheelFault::Name(_)), "{error}");
    let latin1 = builder().raw_member(b"demo-0.1.0.dist-info/METADATA", b"Name: \xe9\n");
    assert!(open(&latin1).unwrap_or_else(|error| panic!("{error}")).read("demo-0.1.0.dist-info/METADATA").is_ok());
}

/// Other projects disagree with their own names; a rule judges that, the reader shows both.
#[test]
fn a_dist_info_of_another_version_is_shown_and_not_refused() {
    let wheel = open(&builder().dist_info("demo-0.2.0.dist-info")).unwrap();
    assert_eq!(wheel.dist_info(), "demo-0.2.0.dist-info");
    assert_eq!(wheel.name().version(), "0.1.0");
}
