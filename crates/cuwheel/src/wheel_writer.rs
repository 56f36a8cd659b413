//! The one writer of wheels: whatever changes a built wheel goes through here, and RECORD is written anew.
//!
//! It also takes out what differs from machine to machine: times, file modes, random identifiers and absolute paths in
//! the software bills of materials. Not for reading wheels: see [`cuwheel_inspect`].

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{Cursor, Read as _, Write as _};
use std::path::Path;

use anyhow::Context as _;
use serde_json::Value;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipArchive, ZipWriter};

use crate::error::{Failure, Result};
use crate::files;

/// What a wheel gains and loses when it is rewritten.
#[derive(Debug, Default)]
pub struct Changes<'a> {
    /// Files that are added, by path inside the `.dist-info` directory.
    pub additions: BTreeMap<String, Vec<u8>>,
    /// Directories whose paths are replaced in bills of materials, each with the name that takes its place.
    pub private_paths: Vec<(&'a Path, String)>,
}

/// Rewrites a wheel. Entries keep their order, RECORD comes last.
pub fn rewrite(wheel: &[u8], changes: &Changes<'_>) -> Result<Vec<u8>> {
    let mut archive = open(wheel).context("reading the wheel that maturin wrote")?;
    let mut writer = Writer::default();
    let mut record_path = None;
    for index in 0..archive.len() {
        let entry = archive.by_index(index)?;
        let path = entry.name().to_owned();
        if entry.is_dir() || writer.holds(&path) {
            return Err(Failure::failed(format!("maturin wrote an entry that wheels may not have: {path}")).into());
        }
        let mode = entry.unix_mode();
        drop(entry);
        if path.ends_with(".dist-info/RECORD") {
            record_path = Some(path);
        } else if is_bill_of_materials(&path) {
            let content = content(&mut archive, index)?;
            let content =
                normalise_bill(&content, &changes.private_paths).with_context(|| format!("reading {path}"))?;
            writer.add(&path, &content, mode)?;
        } else {
            writer.copy(&mut archive, index)?;
        }
    }
    let record_path = record_path.ok_or_else(|| Failure::failed("maturin wrote a wheel without RECORD"))?;
    let dist_info = record_path.trim_end_matches("RECORD");
    for (path, content) in &changes.additions {
        writer.add(&format!("{dist_info}{path}"), content, None)?;
    }
    writer.finish(&record_path)
}

/// An archive that entries are copied from.
pub type Archive<'a> = ZipArchive<Cursor<&'a [u8]>>;

/// Opens the archive of a wheel, to copy from it.
pub fn open(wheel: &[u8]) -> Result<Archive<'_>> {
    Ok(ZipArchive::new(Cursor::new(wheel))?)
}

fn content(archive: &mut Archive<'_>, index: usize) -> Result<Vec<u8>> {
    let mut content = Vec::new();
    archive.by_index(index)?.read_to_end(&mut content)?;
    Ok(content)
}

/// A wheel that is being written, with the RECORD of what is in it so far.
pub struct Writer {
    archive: ZipWriter<Cursor<Vec<u8>>>,
    record: Vec<(String, String, usize)>,
}

impl Default for Writer {
    fn default() -> Self {
        Self { archive: ZipWriter::new(Cursor::new(Vec::new())), record: Vec::new() }
    }
}

impl Writer {
    /// Whether an entry of this path was written.
    pub fn holds(&self, path: &str) -> bool {
        self.record.iter().any(|(known, ..)| known == path)
    }

    /// Copies the entry at `index` under its own name. What is not changed is not compressed again.
    pub fn copy(&mut self, archive: &mut Archive<'_>, index: usize) -> Result<()> {
        let content = content(archive, index)?;
        let entry = archive.by_index_raw(index)?;
        let (path, mode) = (entry.name().to_owned(), mode_of(entry.name(), entry.unix_mode()));
        self.archive.raw_copy_file_touch(entry, DateTime::default(), Some(mode))?;
        self.record.push((path, record_hash(&content), content.len()));
        Ok(())
    }

    /// Copies the entry called `path`.
    pub fn copy_named(&mut self, archive: &mut Archive<'_>, path: &str) -> Result<()> {
        let index = archive.index_for_name(path).with_context(|| format!("there is no {path} in the archive"))?;
        self.copy(archive, index)
    }

    /// Adds a file; `mode` is the one that it had in another archive, if it was in one.
    pub fn add(&mut self, path: &str, content: &[u8], mode: Option<u32>) -> Result<()> {
        self.write(path, content, mode_of(path, mode))?;
        self.record.push((path.to_owned(), record_hash(content), content.len()));
        Ok(())
    }

    fn write(&mut self, path: &str, content: &[u8], mode: u32) -> Result<()> {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .last_modified_time(DateTime::default())
            .unix_permissions(mode);
        self.archive.start_file(path, options)?;
        self.archive.write_all(content)?;
        Ok(())
    }

    /// Writes RECORD at `record_path`, and gives the archive.
    pub fn finish(mut self, record_path: &str) -> Result<Vec<u8>> {
        let record = render_record(&self.record, record_path);
        self.write(record_path, record.as_bytes(), 0o644)?;
        Ok(self.archive.finish()?.into_inner())
    }
}

/// The mode without what the umask of the builder decides: what may be executed stays so, for everyone.
fn mode_of(path: &str, mode: Option<u32>) -> u32 {
    let is_library = Path::new(path).extension().is_some_and(|extension| extension == "so") || path.contains(".so.");
    if is_library || path.contains(".data/scripts/") || mode.is_some_and(|mode| mode & 0o111 != 0) {
        0o755
    } else {
        0o644
    }
}

fn render_record(record: &[(String, String, usize)], record_path: &str) -> String {
    let mut text = String::new();
    for (path, hash, size) in record {
        let _ = writeln!(text, "{},{hash},{size}", quoted(path));
    }
    text + &quoted(record_path) + ",,\n"
}

/// A path as a field of RECORD.
pub fn quoted(path: &str) -> String {
    if path.contains(['"', ',', '\r', '\n']) { format!("\"{}\"", path.replace('"', "\"\"")) } else { path.to_owned() }
}

fn record_hash(content: &[u8]) -> String {
    cuwheel_inspect::digest::Sha256Digest::of(content).to_record()
}

fn is_bill_of_materials(path: &str) -> bool {
    path.contains(".dist-info/sboms/") && Path::new(path).extension().is_some_and(|extension| extension == "json")
}

/// Takes out of a CycloneDX document what says nothing about the materials: a random serial number becomes one made from
/// the content, the time of the build goes, and absolute paths become names.
fn normalise_bill(content: &[u8], private_paths: &[(&Path, String)]) -> Result<Vec<u8>> {
    let mut text = String::from_utf8(content.to_vec())?;
    for (path, name) in private_paths {
        text = text.replace(&file_url(path), &format!("file:///{name}"));
    }
    let mut document: Value = serde_json::from_str(&text)?;
    if let Some(metadata) = document.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("timestamp");
    }
    if let Some(object) = document.as_object_mut() {
        object.remove("serialNumber");
        let serial = serial_number(Value::Object(object.clone()).to_string().as_bytes());
        object.insert("serialNumber".to_owned(), Value::from(serial));
    }
    Ok(format!("{document:#}\n").into_bytes())
}

/// The URL of a path, as cargo writes it into package identifiers.
pub fn file_url(path: &Path) -> String {
    let mut url = String::from("file://");
    for byte in path.as_os_str().as_encoded_bytes() {
        if byte.is_ascii_graphic() && !b"\"#%<>?\\^`{}".contains(byte) {
            url.push(char::from(*byte));
        } else {
            let _ = write!(url, "%{byte:02X}");
        }
    }
    url
}

/// A URN of a version 8 UUID (RFC 9562) made from a content's SHA-256.
pub fn serial_number(content: &[u8]) -> String {
    let hex = files::sha256(content);
    let variant = ["8", "9", "a", "b"][usize::from(hex.as_bytes()[16]) % 4];
    format!("urn:uuid:{}-{}-8{}-{variant}{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..32])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bill_of_materials_says_nothing_of_the_machine() {
        let bill = |path: &str, serial: &str| {
            format!(
                r#"{{"serialNumber":"{serial}","metadata":{{"timestamp":"now","component":{{"bom-ref":"path+{}/crates/x#1"}}}}}}"#,
                file_url(Path::new(path))
            )
        };
        let normalised = |path: &str, serial: &str| {
            let private = [(Path::new(path), "project".to_owned())];
            String::from_utf8(normalise_bill(bill(path, serial).as_bytes(), &private).unwrap()).unwrap()
        };
        let one = normalised("/home/ünï/sp ace", "urn:uuid:1");
        assert_eq!(one, normalised("/srv/two", "urn:uuid:2"));
        assert!(one.contains("path+file:///project/crates/x#1") && !one.contains("timestamp"), "{one}");
    }

    #[test]
    fn what_may_be_executed_stays_so() {
        let modes = [
            ("p/tool.sh", Some(0o100_700)),
            ("p/data", Some(0o100_600)),
            ("p/x.so", None),
            ("p-1.data/scripts/s", None),
        ];
        assert_eq!(modes.map(|(path, mode)| mode_of(path, mode)), [0o755, 0o644, 0o755, 0o755]);
    }

    #[test]
    fn a_serial_number_is_a_uuid_of_the_content() {
        assert_eq!(serial_number(b"abc"), "urn:uuid:ba7816bf-8f01-8fea-8141-40de5dae2223");
        assert_ne!(serial_number(b"abd"), serial_number(b"abc"));
    }
}
