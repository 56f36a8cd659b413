//! Wheels made in memory for tests, sound ones and faulty ones, and what catalogs of rules keep to, for this crate and, behind the feature
//! `test-support`, for others.
//!
//! Not a way to make wheels for users: nothing is checked, so that everything that a reader must notice can be made.

use std::fmt::Write as _;
use std::io::Write as _;

use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};

use crate::digest::Sha256Digest;
use crate::rules::Rule;
use crate::wheel::WheelName;

/// A wheel under construction.
///
/// ```
/// use cuwheel_inspect::testing::WheelBuilder;
/// use cuwheel_inspect::wheel::Wheel;
///
/// let name = "demo-0.1.0-py3-none-any.whl";
/// let bytes = WheelBuilder::new(name).file("demo/__init__.py", "x = 1\n").build();
/// let wheel = Wheel::from_bytes(name, bytes)?;
/// assert!(wheel.verify_record().is_empty());
/// # Ok::<(), cuwheel_inspect::wheel::WheelError>(())
/// ```
#[derive(Debug, Clone)]
pub struct WheelBuilder {
    name: WheelName,
    dist_info: String,
    members: Vec<MemberToWrite>,
    metadata: String,
    wheel_info: String,
    rows: Vec<(String, String)>,
    extra_rows: String,
    without_row: Vec<String>,
    without_file: Vec<String>,
}

#[derive(Debug, Clone)]
struct MemberToWrite {
    name: Vec<u8>,
    contents: Vec<u8>,
    /// What RECORD says the contents are.
    recorded: Vec<u8>,
    unix_mode: u32,
}

impl WheelBuilder {
    /// A wheel with this file name, whose metadata agree with it, and no files yet.
    ///
    /// # Panics
    /// If `file_name` is not that of a wheel.
    #[must_use]
    pub fn new(file_name: &str) -> Self {
        let name: WheelName = file_name.parse().expect("the name of a wheel");
        let pure = name.platform_tags() == ["any"];
        let mut wheel_info = format!("Wheel-Version: 1.0\nGenerator: cuwheel tests\nRoot-Is-Purelib: {pure}\n");
        for tag in name.tags() {
            let _ = writeln!(wheel_info, "Tag: {tag}");
        }
        let (distribution, version) = (name.distribution(), name.version());
        Self {
            dist_info: format!("{distribution}-{version}.dist-info"),
            metadata: format!("Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n"),
            wheel_info,
            name,
            members: Vec::new(),
            rows: Vec::new(),
            extra_rows: String::new(),
            without_row: Vec::new(),
            without_file: Vec::new(),
        }
    }

    /// Adds a file. The same path may be added twice, which makes a faulty wheel.
    #[must_use]
    pub fn file(self, path: &str, contents: impl AsRef<[u8]>) -> Self {
        self.file_with_mode(path, contents, 0o100_644)
    }

    /// Adds a file with a Unix mode such as `0o100755`.
    #[must_use]
    pub fn file_with_mode(mut self, path: &str, contents: impl AsRef<[u8]>, unix_mode: u32) -> Self {
        let contents = contents.as_ref().to_vec();
        self.members.push(MemberToWrite { name: path.into(), recorded: contents.clone(), contents, unix_mode });
        self
    }

    /// Adds a header to METADATA.
    #[must_use]
    pub fn metadata_header(mut self, name: &str, value: &str) -> Self {
        let _ = writeln!(self.metadata, "{name}: {value}");
        self
    }

    /// Replaces METADATA.
    #[must_use]
    pub fn metadata(mut self, text: &str) -> Self {
        text.clone_into(&mut self.metadata);
        self
    }

    /// Replaces the file WHEEL.
    #[must_use]
    pub fn wheel_info(mut self, text: &str) -> Self {
        text.clone_into(&mut self.wheel_info);
        self
    }

    /// Replaces the name of the `.dist-info` directory.
    #[must_use]
    pub fn dist_info(mut self, directory: &str) -> Self {
        directory.clone_into(&mut self.dist_info);
        self
    }

    /// Fault: a file whose contents are `contents` where RECORD was written for `recorded`.
    #[must_use]
    pub fn file_changed_after_record(mut self, path: &str, recorded: &str, contents: &str) -> Self {
        let (recorded, contents) = (recorded.into(), contents.into());
        self.members.push(MemberToWrite { name: path.into(), contents, recorded, unix_mode: 0o100_644 });
        self
    }

    /// Fault: a member with a name of any bytes and no row in RECORD.
    #[must_use]
    pub fn raw_member(mut self, name: &[u8], contents: &[u8]) -> Self {
        let (recorded, contents) = (contents.to_vec(), contents.to_vec());
        self.without_row.push(String::from_utf8_lossy(name).into_owned());
        self.members.push(MemberToWrite { name: name.to_vec(), contents, recorded, unix_mode: 0o100_644 });
        self
    }

    /// Fault: RECORD does not list `path`.
    #[must_use]
    pub fn without_row(mut self, path: &str) -> Self {
        self.without_row.push(path.to_owned());
        self
    }

    /// Fault: the archive does not hold `path`, which RECORD lists. Works for the files of `.dist-info` too.
    #[must_use]
    pub fn without_file(mut self, path: &str) -> Self {
        self.without_file.push(path.to_owned());
        self
    }

    /// Fault: the row of `path` says `hash_and_size`, such as `md5=0,3` or `,`.
    #[must_use]
    pub fn row(mut self, path: &str, hash_and_size: &str) -> Self {
        self.rows.push((path.to_owned(), hash_and_size.to_owned()));
        self
    }

    /// Fault: text is added at the end of RECORD.
    #[must_use]
    pub fn extra_rows(mut self, text: &str) -> Self {
        self.extra_rows.push_str(text);
        self
    }

    /// The file name.
    #[must_use]
    pub fn file_name(&self) -> String {
        self.name.to_string()
    }

    /// The archive.
    #[must_use]
    pub fn build(&self) -> Vec<u8> {
        let mut members = self.members.clone();
        for (file, text) in [("METADATA", &self.metadata), ("WHEEL", &self.wheel_info)] {
            members.push(self.dist_info_member(file, text));
        }
        members.push(self.dist_info_member("RECORD", &self.record(&members)));
        let mut archive = ZipWriter::default();
        for member in &members {
            if !self.without_file.iter().any(|path| path.as_bytes() == member.name) {
                archive.member(&member.name, &member.contents, member.unix_mode);
            }
        }
        archive.finish()
    }

    fn dist_info_member(&self, file: &str, text: &str) -> MemberToWrite {
        let name = format!("{}/{file}", self.dist_info).into_bytes();
        MemberToWrite { name, contents: text.into(), recorded: text.into(), unix_mode: 0o100_644 }
    }

    fn record(&self, members: &[MemberToWrite]) -> String {
        let mut record = String::new();
        for member in members {
            let path = String::from_utf8_lossy(&member.name);
            if path.ends_with('/') || self.without_row.iter().any(|other| *other == path) {
                continue;
            }
            let hash_and_size = self.rows.iter().find(|(other, _)| *other == path).map_or_else(
                || format!("{},{}", Sha256Digest::of(&member.recorded).to_record(), member.recorded.len()),
                |(_, text)| text.clone(),
            );
            let quoted = path.replace('"', "\"\"");
            let _ = writeln!(record, "\"{quoted}\",{hash_and_size}");
        }
        let own_path = format!("{}/RECORD", self.dist_info);
        if !self.without_row.contains(&own_path) {
            let _ = writeln!(record, "{own_path},,");
        }
        record + &self.extra_rows
    }
}

/// Writes the members of a ZIP archive as they are given.
#[derive(Debug, Default)]
struct ZipWriter {
    file: Vec<u8>,
    directory: Vec<u8>,
    count: u16,
}

impl ZipWriter {
    fn member(&mut self, name: &[u8], contents: &[u8], unix_mode: u32) {
        const VERSION: u16 = 20;
        const UTF8: u16 = 1 << 11;
        let mut checksum = Crc::new();
        checksum.update(contents);
        let deflated = deflate(contents);
        let (method, data) = if deflated.len() < contents.len() { (8, &*deflated) } else { (0, contents) };
        let offset = length(&self.file);
        // Flags, method, time, date (1980-01-01), checksum, sizes, length of the name, length of extra fields.
        let mut shared = Vec::new();
        for field in [UTF8, method, 0, 0x21] {
            shared.extend(field.to_le_bytes());
        }
        for field in [checksum.sum(), length(data), length(contents)] {
            shared.extend(field.to_le_bytes());
        }
        let name_length = u16::try_from(name.len()).expect("a short name");
        shared.extend([name_length.to_le_bytes(), [0, 0]].concat());

        self.file.extend([b"PK\x03\x04", &VERSION.to_le_bytes()[..], &shared, name, data].concat());
        self.directory.extend(b"PK\x01\x02");
        self.directory.extend([[20, 3], VERSION.to_le_bytes()].concat());
        self.directory.extend(shared);
        // No comment, first disk, no internal attributes.
        self.directory.extend([0; 6]);
        self.directory.extend((unix_mode << 16).to_le_bytes());
        self.directory.extend(offset.to_le_bytes());
        self.directory.extend(name);
        self.count += 1;
    }

    fn finish(mut self) -> Vec<u8> {
        let (offset, size) = (length(&self.file), length(&self.directory));
        self.file.append(&mut self.directory);
        self.file.extend(b"PK\x05\x06\0\0\0\0");
        self.file.extend([self.count.to_le_bytes(), self.count.to_le_bytes()].concat());
        self.file.extend([size.to_le_bytes(), offset.to_le_bytes()].concat());
        self.file.extend([0, 0]);
        self.file
    }
}

fn deflate(contents: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    let written = encoder.write_all(contents).and_then(|()| encoder.finish());
    written.expect("memory takes every byte")
}

fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).expect("an archive under 4 GiB")
}

/// Checks what every catalog of rules keeps to: its names are unique and have a group, `why` is sentences, and `title` and
/// `remedy` are none.
///
/// # Panics
/// If a rule does not.
pub fn check_catalog(rules: &[&Rule]) {
    let mut ids: Vec<&str> = rules.iter().map(|rule| rule.id()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), rules.len());
    for rule in rules {
        assert!(rule.id().split_once('/').is_some_and(|(group, name)| !group.is_empty() && !name.is_empty()));
        assert!(rule.why().ends_with('.'), "{}", rule.id());
        assert!(!rule.title().ends_with('.') && !rule.remedy().ends_with('.'), "{}", rule.id());
    }
}
