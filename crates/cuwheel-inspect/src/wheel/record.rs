//! RECORD: its table of paths, hashes and sizes, and what differs between it and the archive.
//!
//! Source: "Recording installed projects" and "Binary distribution format". The findings are facts; how bad each one is
//! belongs to the rules of `check-wheel`.

use std::collections::{HashMap, HashSet};
use std::fmt;

use crate::digest::HashAlgorithm;

/// One row of RECORD.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordRow {
    path: String,
    hash: Option<RecordHash>,
    size_bytes: Option<u64>,
    line: u64,
}

/// The second column of RECORD, such as `sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordHash {
    algorithm: String,
    value: String,
}

impl RecordRow {
    /// The file, as RECORD spells it.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The hash; absent where the column is empty.
    #[must_use]
    pub fn hash(&self) -> Option<&RecordHash> {
        self.hash.as_ref()
    }

    /// The size in bytes; absent where the column is empty.
    #[must_use]
    pub fn size_bytes(&self) -> Option<u64> {
        self.size_bytes
    }

    /// The line on which the row begins, counted from 1.
    #[must_use]
    pub fn line(&self) -> u64 {
        self.line
    }

    pub(super) fn algorithm(&self) -> Option<HashAlgorithm> {
        self.hash.as_ref()?.algorithm.parse().ok()
    }
}

impl RecordHash {
    /// The algorithm's name as RECORD spells it; it need not be one that is allowed.
    #[must_use]
    pub fn algorithm(&self) -> &str {
        &self.algorithm
    }

    /// The hash in URL-safe base64, as RECORD spells it.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }
}

/// A difference between RECORD and the archive, or between the archive and itself.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecordFinding {
    /// The archive holds the file and RECORD does not list it.
    NotInRecord {
        /// The file.
        path: String,
    },
    /// RECORD lists the file and the archive does not hold it.
    NotInArchive {
        /// The file.
        path: String,
        /// The row's line in RECORD.
        line: u64,
    },
    /// The contents do not have the recorded hash.
    HashMismatch {
        /// The file.
        path: String,
        /// What the hash was made with.
        algorithm: HashAlgorithm,
        /// The hash in RECORD.
        recorded: String,
        /// The hash of the contents.
        actual: String,
    },
    /// The contents do not have the recorded size.
    SizeMismatch {
        /// The file.
        path: String,
        /// The size in RECORD.
        recorded_bytes: u64,
        /// The size of the contents.
        actual_bytes: u64,
    },
    /// Two rows of RECORD name the same file.
    DuplicateRow {
        /// The file.
        path: String,
        /// The line of its first row.
        first_line: u64,
        /// The line of this row.
        line: u64,
    },
    /// Two members of the archive have the same name.
    DuplicateEntry {
        /// The file.
        path: String,
        /// Where its first member begins in the archive.
        first_offset: u64,
        /// Where this member begins.
        offset: u64,
    },
    /// The row's hash is of an algorithm that RECORD may not use.
    UnsupportedHash {
        /// The file.
        path: String,
        /// The algorithm as RECORD spells it.
        algorithm: String,
        /// The row's line in RECORD.
        line: u64,
    },
    /// The row has no hash though only RECORD itself and its signatures may lack one.
    MissingHash {
        /// The file.
        path: String,
        /// The row's line in RECORD.
        line: u64,
    },
}

impl RecordFinding {
    /// The file that the finding is about.
    #[must_use]
    pub fn path(&self) -> &str {
        match self {
            Self::NotInRecord { path }
            | Self::NotInArchive { path, .. }
            | Self::HashMismatch { path, .. }
            | Self::SizeMismatch { path, .. }
            | Self::DuplicateRow { path, .. }
            | Self::DuplicateEntry { path, .. }
            | Self::UnsupportedHash { path, .. }
            | Self::MissingHash { path, .. } => path,
        }
    }
}

impl fmt::Display for RecordFinding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotInRecord { path } => {
                write!(formatter, "{path} is in the wheel and not in RECORD: an uninstall leaves it behind")
            }
            Self::NotInArchive { path, line } => {
                write!(formatter, "{path} is in RECORD (line {line}) and not in the wheel")
            }
            Self::HashMismatch { path, algorithm, recorded, actual } => write!(
                formatter,
                "{path} has the {algorithm} {actual} and RECORD says {recorded}: it was changed after RECORD was written"
            ),
            Self::SizeMismatch { path, recorded_bytes, actual_bytes } => write!(
                formatter,
                "{path} has {actual_bytes} bytes and RECORD says {recorded_bytes}: it was changed after RECORD was \
                 written"
            ),
            Self::DuplicateRow { path, first_line, line } => {
                write!(formatter, "{path} is in RECORD twice, on lines {first_line} and {line}")
            }
            Self::DuplicateEntry { path, first_offset, offset } => write!(
                formatter,
                "{path} is in the archive twice, at offsets {first_offset} and {offset}: installers differ in which \
                 one they keep"
            ),
            Self::UnsupportedHash { path, algorithm, line } => write!(
                formatter,
                "{path} is recorded with `{algorithm}` (line {line}); RECORD allows sha256, sha384 and sha512"
            ),
            Self::MissingHash { path, line } => write!(formatter, "{path} is recorded without a hash (line {line})"),
        }
    }
}

/// A fault in RECORD's own form: the line, and what is wrong there.
pub(super) type RecordSyntaxError = (u64, &'static str);

/// Parses RECORD. Empty lines are skipped.
pub(super) fn parse(text: &str) -> Result<Vec<RecordRow>, RecordSyntaxError> {
    let mut rows = Vec::new();
    let mut reader = CsvReader { rest: text.strip_prefix('\u{feff}').unwrap_or(text), line: 1 };
    while let Some((line, fields)) = reader.next_row()? {
        match fields.as_slice() {
            [only] if only.is_empty() => {}
            [path, hash, size] => rows.push(parse_row(line, path, hash, size)?),
            _ => return Err((line, "a row must have three columns: path, hash and size")),
        }
    }
    Ok(rows)
}

fn parse_row(line: u64, path: &str, hash: &str, size: &str) -> Result<RecordRow, RecordSyntaxError> {
    if path.is_empty() {
        return Err((line, "the path is empty"));
    }
    let hash = (!hash.is_empty()).then(|| {
        let (algorithm, value) = hash.split_once('=').unwrap_or((hash, ""));
        RecordHash { algorithm: algorithm.to_owned(), value: value.to_owned() }
    });
    let size_bytes = match size {
        "" => None,
        digits => Some(digits.parse().map_err(|_| (line, "the size is not a number of bytes"))?),
    };
    Ok(RecordRow { path: path.to_owned(), hash, size_bytes, line })
}

/// Reads comma-separated values as RFC 4180 defines them; lines may end in a line feed alone.
struct CsvReader<'text> {
    rest: &'text str,
    line: u64,
}

impl CsvReader<'_> {
    fn next_row(&mut self) -> Result<Option<(u64, Vec<String>)>, RecordSyntaxError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let line = self.line;
        let mut fields = Vec::new();
        loop {
            fields.push(if self.rest.starts_with('"') { self.quoted()? } else { self.plain() });
            if let Some(rest) = self.rest.strip_prefix(',') {
                self.rest = rest;
                continue;
            }
            let end = ["\r\n", "\n"].iter().find_map(|end| self.rest.strip_prefix(end));
            if end.is_none() && !self.rest.is_empty() {
                return Err((self.line, "a quoted column must be followed by a comma or the end of the line"));
            }
            self.rest = end.unwrap_or_default();
            self.line += 1;
            return Ok(Some((line, fields)));
        }
    }

    fn plain(&mut self) -> String {
        let end = self.rest.find([',', '\n']).unwrap_or(self.rest.len());
        let field = &self.rest[..end];
        let field = if self.rest[end..].starts_with('\n') { field.strip_suffix('\r').unwrap_or(field) } else { field };
        self.rest = &self.rest[field.len()..];
        field.to_owned()
    }

    /// A column in quotes, where two quotes stand for one and a line may end within.
    fn quoted(&mut self) -> Result<String, RecordSyntaxError> {
        let opening_line = self.line;
        let mut field = String::new();
        self.rest = &self.rest[1..];
        loop {
            let end = self.rest.find('"').ok_or((opening_line, "a quoted column does not end"))?;
            field.push_str(&self.rest[..end]);
            self.rest = &self.rest[end + 1..];
            let Some(rest) = self.rest.strip_prefix('"') else { break };
            field.push('"');
            self.rest = rest;
        }
        self.line += field.matches('\n').count() as u64;
        Ok(field)
    }
}

/// What verification needs to know of a member of the archive.
pub(super) struct Recorded<'wheel> {
    pub(super) path: &'wheel str,
    pub(super) size_bytes: u64,
    pub(super) header_offset: u64,
    pub(super) hash: &'wheel dyn Fn(HashAlgorithm) -> Option<String>,
}

/// Compares rows with members. Directories must have been left out of `members`.
///
/// Where the archive holds a name twice, the row is compared with the last one, which is what `zipfile` reads.
pub(super) fn verify(dist_info: &str, rows: &[RecordRow], members: &[Recorded<'_>]) -> Vec<RecordFinding> {
    let record = format!("{dist_info}/RECORD");
    let signatures = [format!("{dist_info}/RECORD.jws"), format!("{dist_info}/RECORD.p7s")];
    let mut findings = Vec::new();
    let mut by_path: HashMap<&str, &Recorded<'_>> = HashMap::new();
    for member in members {
        if let Some(first) = by_path.insert(member.path, member) {
            findings.push(RecordFinding::DuplicateEntry {
                path: member.path.to_owned(),
                first_offset: first.header_offset,
                offset: member.header_offset,
            });
        }
    }
    let mut first_lines: HashMap<&str, u64> = HashMap::new();
    for row in rows {
        if let Some(first_line) = first_lines.get(row.path.as_str()) {
            let (path, first_line) = (row.path.clone(), *first_line);
            findings.push(RecordFinding::DuplicateRow { path, first_line, line: row.line });
        } else {
            first_lines.insert(&row.path, row.line);
        }
        let hash_is_optional = row.path == record || signatures.contains(&row.path);
        match by_path.get(row.path.as_str()) {
            Some(member) => verify_row(row, member, hash_is_optional, &mut findings),
            None => findings.push(RecordFinding::NotInArchive { path: row.path.clone(), line: row.line }),
        }
    }
    let mut seen = HashSet::new();
    for member in members {
        let listed = first_lines.contains_key(member.path) || signatures.iter().any(|path| path == member.path);
        if !listed && seen.insert(member.path) {
            findings.push(RecordFinding::NotInRecord { path: member.path.to_owned() });
        }
    }
    findings
}

fn verify_row(row: &RecordRow, member: &Recorded<'_>, hash_is_optional: bool, findings: &mut Vec<RecordFinding>) {
    let path = || row.path.clone();
    match (&row.hash, row.algorithm()) {
        (None, _) if hash_is_optional => {}
        (None, _) => findings.push(RecordFinding::MissingHash { path: path(), line: row.line }),
        (Some(hash), None) => findings.push(RecordFinding::UnsupportedHash {
            path: path(),
            algorithm: hash.algorithm.clone(),
            line: row.line,
        }),
        (Some(hash), Some(algorithm)) => {
            let actual = (member.hash)(algorithm).unwrap_or_default();
            // The format asks for no padding; a padded hash is still the same hash.
            if hash.value.trim_end_matches('=') != actual {
                findings.push(RecordFinding::HashMismatch {
                    path: path(),
                    algorithm,
                    recorded: hash.value.clone(),
                    actual,
                });
            }
        }
    }
    if let Some(recorded_bytes) = row.size_bytes
        && recorded_bytes != member.size_bytes
    {
        findings.push(RecordFinding::SizeMismatch { path: path(), recorded_bytes, actual_bytes: member.size_bytes });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(text: &str) -> Result<Vec<Vec<String>>, RecordSyntaxError> {
        let mut reader = CsvReader { rest: text, line: 1 };
        let mut rows = Vec::new();
        while let Some((_, row)) = reader.next_row()? {
            rows.push(row);
        }
        Ok(rows)
    }

    #[test]
    fn columns_follow_rfc_4180() {
        for (text, expected) in [
            ("", &[][..]),
            ("a,b,c\n", &[&["a", "b", "c"][..]]),
            ("a,b,c\r\nd,e,f", &[&["a", "b", "c"], &["d", "e", "f"]]),
            (",,\n", &[&["", "", ""]]),
            ("\"a,b\",c\n", &[&["a,b", "c"]]),
            ("\"say \"\"hi\"\"\",c\r\n", &[&["say \"hi\"", "c"]]),
            ("\"two\nlines\",c\n", &[&["two\nlines", "c"]]),
            ("\"\",c\n", &[&["", "c"]]),
            ("a\"b,c\n", &[&["a\"b", "c"]]),
            ("a\rb,c\n", &[&["a\rb", "c"]]),
            ("größe,日本\n", &[&["größe", "日本"]]),
            ("\n\n", &[&[""], &[""]]),
        ] {
            assert_eq!(columns(text).unwrap(), expected, "{text:?}");
        }
    }

    #[test]
    fn faults_name_the_line() {
        for (text, error) in [
            ("a,b,3\n\"open,b,c\n", (2, "a quoted column does not end")),
            ("\"a\nb\"x,c\n", (2, "a quoted column must be followed by a comma or the end of the line")),
            ("a,,\nb\n", (2, "a row must have three columns: path, hash and size")),
            ("\"x\ny\",,\nb\n", (3, "a row must have three columns: path, hash and size")),
            ("a,,-1\n", (1, "the size is not a number of bytes")),
            ("a,,1e3\n", (1, "the size is not a number of bytes")),
            (",,\n", (1, "the path is empty")),
        ] {
            assert_eq!(parse(text), Err(error), "{text:?}");
        }
    }

    #[test]
    fn rows_keep_what_they_say() {
        let rows = parse("\u{feff}\na.py,sha256=abc,3\r\n\"b,c.py\",md5,\n").unwrap();
        let shown: Vec<_> = rows
            .iter()
            .map(|row| {
                let hash = row.hash().map(|hash| (hash.algorithm(), hash.value()));
                (row.path(), hash, row.size_bytes(), row.line())
            })
            .collect();
        assert_eq!(shown, [("a.py", Some(("sha256", "abc")), Some(3), 2), ("b,c.py", Some(("md5", "")), None, 3)]);
    }
}
