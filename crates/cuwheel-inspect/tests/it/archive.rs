//! ZIP archives: those of other writers are read, unsafe and contradictory ones are refused.

use std::io::{Cursor, Write as _};

use cuwheel_inspect::testing::WheelBuilder;
use cuwheel_inspect::wheel::{ArchiveError, Wheel, WheelFault};
use zip::write::{SimpleFileOptions, ZipWriter};

const NAME: &str = "demo-0.1.0-py3-none-any.whl";

fn builder() -> WheelBuilder {
    WheelBuilder::new(NAME).file("demo/__init__.py", "x = 1\n")
}

/// The files of a small wheel, with one that deflates well.
fn files() -> Vec<(String, Vec<u8>)> {
    let bytes = builder().file("demo/zeros.bin", [0; 10_000]).build();
    let wheel = Wheel::from_bytes(NAME, bytes).unwrap();
    wheel.entries().iter().map(|entry| (entry.path().to_owned(), wheel.read_entry(entry).unwrap())).collect()
}

#[test]
fn archives_of_another_writer_are_read() {
    let options = SimpleFileOptions::default().unix_permissions(0o755);
    let stored = options.compression_method(zip::CompressionMethod::Stored);
    let deflated = options.compression_method(zip::CompressionMethod::Deflated);
    for options in [stored, deflated, deflated.large_file(true)] {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        for (path, contents) in files() {
            writer.start_file(path, options).unwrap();
            writer.write_all(&contents).unwrap();
        }
        writer.set_comment("a comment").unwrap();
        check_same_files(writer.finish().unwrap().into_inner());
    }
}

#[test]
fn archives_written_to_a_stream_are_read() {
    let mut writer = ZipWriter::new_stream(Vec::new());
    let options = SimpleFileOptions::default().unix_permissions(0o755);
    for (path, contents) in files() {
        writer.start_file(path, options).unwrap();
        writer.write_all(&contents).unwrap();
    }
    check_same_files(writer.finish().unwrap().into_inner());
}

#[track_caller]
fn check_same_files(bytes: Vec<u8>) {
    let wheel = Wheel::from_bytes(NAME, bytes).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(wheel.verify_record(), []);
    assert_eq!(wheel.entries()[0].unix_mode(), Some(0o100_755));
    for (path, contents) in files() {
        assert_eq!(wheel.read(&path).unwrap(), contents, "{path}");
    }
}

#[track_caller]
fn refusal(bytes: Vec<u8>) -> String {
    let error = Wheel::from_bytes(NAME, bytes).expect_err("a refusal");
    assert!(matches!(error.fault(), WheelFault::Archive(_)), "{error}");
    error.to_string()
}

#[test]
fn unsafe_names_are_refused() {
    for (name, reason) in [
        (&b"../evil.py"[..], "the name leaves its directory through `..`"),
        (b"demo/../../evil.py", "the name leaves its directory through `..`"),
        (b"/etc/evil", "the name is absolute"),
        (b"C:/evil", "the name is absolute"),
        (b"demo\\evil.py", "the name holds a backslash"),
        (b"demo//evil.py", "the name holds an empty component or `.`"),
        (b"demo/evil.py\0.txt", "the name holds a control character"),
        (b"", "the name is empty"),
        (b"demo/gr\xf6\xdfe.py", "is not UTF-8 or is not marked as UTF-8"),
    ] {
        let text = refusal(builder().raw_member(name, b"").build());
        assert!(text.starts_with(NAME) && text.contains(reason) && text.contains(" at offset "), "{text}");
    }
}

const LOCAL: usize = 0;

/// Where the directory entry of the first member begins.
fn directory(bytes: &[u8]) -> usize {
    bytes.windows(4).position(|window| window == b"PK\x01\x02").unwrap()
}

fn end_record(bytes: &[u8]) -> usize {
    bytes.len() - 22
}

fn put(bytes: &mut [u8], offset: usize, value: &[u8]) {
    bytes[offset..offset + value.len()].copy_from_slice(value);
}

/// Changes a field of the first member in both headers, by its offsets in the local header and in the directory entry.
fn put_both(bytes: &mut [u8], local: usize, central: usize, value: &[u8]) {
    let entry = directory(bytes);
    put(bytes, LOCAL + local, value);
    put(bytes, entry + central, value);
}

type Damage = fn(&mut Vec<u8>);

#[test]
fn contradictory_and_unreadable_archives_are_refused() {
    let cases: [(&str, Damage); 20] = [
        ("no end record of a ZIP archive", |bytes| bytes.truncate(100)),
        ("no end record of a ZIP archive", |bytes| bytes.clear()),
        ("no end record of a ZIP archive", |bytes| bytes.push(0)),
        ("the end record at offset", |bytes| bytes.insert(0, 0)),
        ("the end record at offset", |bytes| {
            let end = end_record(bytes);
            put(bytes, end + 4, &[1, 0]);
        }),
        ("the directory entry at offset", |bytes| {
            let end = end_record(bytes);
            put(bytes, end + 8, &[9, 0, 9, 0]);
        }),
        ("the central directory at offset", |bytes| {
            let end = end_record(bytes);
            put(bytes, end + 8, &[1, 0, 1, 0]);
        }),
        ("the central directory has 4294967295 bytes", |bytes| {
            let end = end_record(bytes);
            put(bytes, end + 12, &[255; 4]);
        }),
        ("the local header at offset 0 is damaged", |bytes| put(bytes, LOCAL, b"XX")),
        ("contradicts the central directory in its name", |bytes| put(bytes, LOCAL + 30, b"D")),
        ("contradicts the central directory in its compression method", |bytes| put(bytes, LOCAL + 8, &[8])),
        ("contradicts the central directory in its size", |bytes| put(bytes, LOCAL + 22, &[7])),
        ("contradicts the central directory in its compressed size", |bytes| put(bytes, LOCAL + 18, &[7])),
        ("contradicts the central directory in its checksum", |bytes| bytes[LOCAL + 14] ^= 1),
        ("contradicts the central directory in its flags", |bytes| put(bytes, LOCAL + 6, &[0, 0])),
        ("is encrypted", |bytes| put_both(bytes, 6, 8, &[1, 8])),
        ("is compressed with method 12", |bytes| put_both(bytes, 8, 10, &[12, 0])),
        ("do not match their checksum", |bytes| put(bytes, LOCAL + 30 + 16, b"y")),
        ("is not marked as UTF-8", |bytes| {
            put_both(bytes, 6, 8, &[0, 0]);
            put_both(bytes, 30, 46, "é".as_bytes());
        }),
        ("declares 255 bytes in 6: no deflated data expands so far", |bytes| put_both(bytes, 22, 24, &[255])),
    ];
    for (reason, damage) in cases {
        let mut bytes = builder().build();
        damage(&mut bytes);
        let text = refusal(bytes);
        assert!(text.contains(reason), "expected {reason:?}: {text}");
    }
}

#[test]
fn members_that_share_bytes_are_refused() {
    let mut bytes = builder().file("demo/b.py", "x = 1\n").build();
    // The second directory entry points to the first member, whose name is made to fit.
    let entry = directory(&bytes) + 46 + "demo/__init__.py".len();
    put(&mut bytes, entry + 42, &[0; 4]);
    assert!(refusal(bytes).contains("contradicts the central directory in its name"));

    let mut bytes = builder().file("demo/__init__.py", "x = 1\n").build();
    let entry = directory(&bytes) + 46 + "demo/__init__.py".len();
    put(&mut bytes, entry + 42, &[0; 4]);
    assert!(refusal(bytes).contains("overlap at offset 0"));
}

/// A bomb has to lie about its size, or be as large as it says.
#[test]
fn what_inflates_past_its_declared_size_is_refused() {
    let zeros = WheelBuilder::new(NAME).file("bomb", vec![0; 1 << 20]).build();
    let declared = u32::to_le_bytes(1 << 10);
    let mut bytes = zeros.clone();
    put_both(&mut bytes, 22, 24, &declared);
    assert!(refusal(bytes).contains("\"bomb\" declares 1024 bytes and holds more"));

    let mut bytes = zeros.clone();
    put_both(&mut bytes, 22, 24, &u32::to_le_bytes((1 << 20) + 1));
    assert!(refusal(bytes).contains("\"bomb\" declares 1048577 bytes and holds fewer"));

    let mut bytes = zeros;
    put_both(&mut bytes, 22, 24, &u32::to_le_bytes(1 << 30));
    assert!(refusal(bytes).contains("no deflated data expands so far"));
}

#[test]
fn damaged_compressed_data_is_refused() {
    let mut bytes = WheelBuilder::new(NAME).file("data", [7; 1000]).build();
    put(&mut bytes, LOCAL + 30 + 4, &[0xff; 4]);
    assert!(refusal(bytes).contains("\"data\" at offset 34 cannot be inflated"));
}

#[test]
fn faults_can_be_matched() {
    let error = Wheel::from_bytes(NAME, builder().raw_member(b"../x", b"").build()).unwrap_err();
    let WheelFault::Archive(ArchiveError::UnsafeName { name, .. }) = error.fault() else { panic!("{error}") };
    assert_eq!(name, "../x");
}
