//! METADATA and WHEEL: header files in the form of e-mail headers.
//!
//! Source: "Core metadata specifications" and "Binary distribution format". Values are kept as they are written;
//! requirement expressions are not evaluated.

use super::{Tag, WheelFault};

/// Headers in the order of the file, with continued lines joined by a line feed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Headers {
    headers: Vec<(String, String)>,
    malformed_line: Option<u64>,
}

impl Headers {
    /// Parses the headers of `text`, up to the first empty line or the first line that is no header.
    fn parse(text: &str) -> Self {
        let mut headers: Vec<(String, String)> = Vec::new();
        let lines = text.strip_prefix('\u{feff}').unwrap_or(text).lines();
        for (line, content) in (1..).zip(lines).take_while(|(_, content)| !content.is_empty()) {
            if let (true, Some((_, value))) = (content.starts_with([' ', '\t']), headers.last_mut()) {
                value.push('\n');
                value.push_str(content.trim());
                continue;
            }
            match content.split_once(':') {
                Some((name, value)) if !name.is_empty() && !name.contains(char::is_whitespace) => {
                    headers.push((name.to_owned(), value.trim().to_owned()));
                }
                _ => return Self { headers, malformed_line: Some(line) },
            }
        }
        Self { headers, malformed_line: None }
    }

    /// The line, counted from 1, that is neither a header nor the continuation of one. Python's parser of such files,
    /// and so every installer, takes it for the start of the body and does not see the headers after it.
    #[must_use]
    pub fn malformed_line(&self) -> Option<u64> {
        self.malformed_line
    }

    /// The value of the first header called `name`, whatever its case.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// The values of all headers called `name`, whatever its case.
    pub fn all<'headers>(&'headers self, name: &str) -> impl Iterator<Item = &'headers str> {
        self.headers.iter().filter(move |(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// Names and values, as they stand.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    fn require(&self, path: &str, header: &'static str) -> Result<&str, WheelFault> {
        let value = self.get(header).filter(|value| !value.is_empty());
        value.ok_or_else(|| WheelFault::MissingHeader { path: path.to_owned(), header })
    }
}

/// METADATA of a wheel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metadata {
    name: String,
    version: String,
    headers: Headers,
}

impl Metadata {
    pub(super) fn parse(path: &str, text: &str) -> Result<Self, WheelFault> {
        let headers = Headers::parse(text);
        headers.require(path, "Metadata-Version")?;
        let name = headers.require(path, "Name")?.to_owned();
        let version = headers.require(path, "Version")?.to_owned();
        Ok(Self { name, version, headers })
    }

    /// The project's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The version, as it is written.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The Python versions that the project asks for, such as `>=3.11`.
    #[must_use]
    pub fn requires_python(&self) -> Option<&str> {
        self.headers.get("Requires-Python")
    }

    /// Requirements, such as `numpy>=2; extra == "host"`.
    pub fn requires_dist(&self) -> impl Iterator<Item = &str> {
        self.headers.all("Requires-Dist")
    }

    /// Names of extras.
    pub fn provides_extra(&self) -> impl Iterator<Item = &str> {
        self.headers.all("Provides-Extra")
    }

    /// Every header.
    #[must_use]
    pub fn headers(&self) -> &Headers {
        &self.headers
    }
}

/// The file WHEEL of a wheel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WheelInfo {
    wheel_version: String,
    root_is_purelib: bool,
    tags: Vec<Tag>,
    headers: Headers,
}

impl WheelInfo {
    pub(super) fn parse(path: &str, text: &str) -> Result<Self, WheelFault> {
        let headers = Headers::parse(text);
        let wheel_version = headers.require(path, "Wheel-Version")?.to_owned();
        let value = headers.require(path, "Root-Is-Purelib")?;
        let root_is_purelib = match value.to_ascii_lowercase().as_str() {
            "true" => true,
            "false" => false,
            _ => {
                let (header, value) = ("Root-Is-Purelib", value.to_owned());
                return Err(WheelFault::NotBoolean { path: path.to_owned(), header, value });
            }
        };
        let mut tags = Vec::new();
        for tag in headers.all("Tag") {
            let set = Tag::parse_set(tag).map_err(|source| WheelFault::Tag { path: path.to_owned(), source })?;
            tags.extend(set);
        }
        Ok(Self { wheel_version, root_is_purelib, tags, headers })
    }

    /// The version of the wheel format, such as `1.0`.
    #[must_use]
    pub fn wheel_version(&self) -> &str {
        &self.wheel_version
    }

    /// The program that made the wheel.
    #[must_use]
    pub fn generator(&self) -> Option<&str> {
        self.headers.get("Generator")
    }

    /// Whether the files at the top go to the directory for pure Python.
    #[must_use]
    pub fn root_is_purelib(&self) -> bool {
        self.root_is_purelib
    }

    /// The tags, with compressed sets expanded.
    #[must_use]
    pub fn tags(&self) -> &[Tag] {
        &self.tags
    }

    /// Every header.
    #[must_use]
    pub fn headers(&self) -> &Headers {
        &self.headers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_folded_and_end_at_the_empty_line() {
        let text = "Name: demo\r\nDescription: one\r\n        |two\nRequires-Dist: a; extra == 'x:y'\n\nBody: no\n";
        let headers = Headers::parse(text);
        assert_eq!(
            headers.iter().collect::<Vec<_>>(),
            [("Name", "demo"), ("Description", "one\n|two"), ("Requires-Dist", "a; extra == 'x:y'")]
        );
        assert_eq!(headers.get("requires-dist"), Some("a; extra == 'x:y'"));
    }

    #[test]
    fn headers_end_at_the_first_line_that_is_none() {
        for (text, names, malformed_line) in [
            ("A: 1\nB 2\nC: 3\n", &["A"][..], Some(2)),
            (" A: 1\n", &[], Some(1)),
            ("A: 1\n\nB 2\n", &["A"], None),
            ("\u{feff}A: 1\n: 2\n", &["A"], Some(2)),
        ] {
            let headers = Headers::parse(text);
            assert_eq!(headers.iter().map(|(name, _)| name).collect::<Vec<_>>(), names, "{text:?}");
            assert_eq!(headers.malformed_line(), malformed_line, "{text:?}");
        }
    }

    #[test]
    fn faults_name_file_and_header() {
        let wheel = |text| WheelInfo::parse("d/WHEEL", text).unwrap_err().to_string();
        let metadata = |text| Metadata::parse("d/METADATA", text).unwrap_err().to_string();
        assert_eq!(metadata("Metadata-Version: 2.1\nName: demo\n"), "d/METADATA has no `Version` header");
        assert_eq!(metadata("Name: demo\nVersion: 1\n"), "d/METADATA has no `Metadata-Version` header");
        assert_eq!(wheel("Wheel-Version: 1.0\n"), "d/WHEEL has no `Root-Is-Purelib` header");
        assert_eq!(
            wheel("Wheel-Version: 1.0\nRoot-Is-Purelib: maybe\n"),
            "d/WHEEL: `Root-Is-Purelib: maybe` must be true or false"
        );
        assert!(wheel("Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3\n").starts_with("d/WHEEL: `py3` is not"));
    }
}
