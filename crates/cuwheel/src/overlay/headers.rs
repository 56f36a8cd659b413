//! METADATA and WHEEL of an overlay: the lines that change, and every other byte as it was.
//!
//! Not for reading them, which [`cuwheel_inspect::wheel::Headers`] does.

use std::fmt::Write as _;
use std::str::FromStr as _;

use cuwheel_inspect::wheel::{Headers, Tag};
use pep440_rs::{Operator, Version, VersionSpecifiers};

use crate::error::{Failure, Result};
use crate::wheel_headers::Head;

/// What the native library brings into METADATA.
#[derive(Clone, Debug)]
pub struct Native<'a> {
    /// The oldest Python that loads it.
    pub python_floor: (u8, u8),
    /// METADATA of the wheel that it comes from.
    pub metadata: &'a Headers,
    /// The directory of its licences, below `licenses/`.
    pub licence_directory: &'a str,
}

/// METADATA of the overlay, from that of the released wheel, which `headers` are read from.
pub fn metadata(text: &str, headers: &Headers, version: &Version, native: &Native<'_>) -> Result<String> {
    let mut head = Head::of(text)?;
    head.set("Version", &version.to_string());
    let python = requires_python(headers.get("Requires-Python"), native.python_floor)?;
    head.set("Requires-Python", &python);
    if has_licence_files(headers) {
        if let (Some(theirs), Some(ours)) =
            (headers.get("License-Expression"), native.metadata.get("License-Expression"))
        {
            head.set("License-Expression", &both_licences(theirs, ours));
        }
        for file in native.metadata.all("License-File") {
            head.add("License-File", &format!("{}/{file}", native.licence_directory));
        }
    }
    Ok(head.finish())
}

/// WHEEL of the overlay.
pub fn wheel_info(text: &str, tags: &[Tag]) -> Result<String> {
    let mut head = Head::of(text)?;
    head.set("Generator", concat!("cuwheel ", env!("CARGO_PKG_VERSION")));
    head.set("Root-Is-Purelib", "false");
    head.remove("Tag");
    for tag in tags {
        head.add("Tag", &tag.to_string());
    }
    Ok(head.finish())
}

/// Before 2.4, METADATA has neither `License-Expression` nor `License-File` (PEP 639).
fn has_licence_files(headers: &Headers) -> bool {
    let version = headers.get("Metadata-Version").and_then(|text| text.parse::<Version>().ok());
    version.is_some_and(|version| version >= Version::new([2, 4]))
}

/// An expression (SPDX) for a wheel that holds the works of both.
fn both_licences(theirs: &str, ours: &str) -> String {
    let operand = |text: &str| if text.contains(" OR ") { format!("({text})") } else { text.to_owned() };
    format!("{} AND {}", operand(theirs), operand(ours))
}

/// The range of Pythons with its lower bound raised to `floor`, where it is lower.
fn requires_python(given: Option<&str>, floor: (u8, u8)) -> Result<String> {
    let floor = Version::new([u64::from(floor.0), u64::from(floor.1)]);
    let range = VersionSpecifiers::from_str(given.unwrap_or_default()).map_err(|error| {
        Failure::usage(format!("Requires-Python of the wheel is no range of versions: {}", given.unwrap_or_default()))
            .detail(error.to_string())
            .remedy("installers would refuse or ignore it: take another release")
    })?;
    let is_lower_bound = |operator| matches!(operator, Operator::GreaterThanEqual | Operator::GreaterThan);
    let (lower, others): (Vec<_>, Vec<_>) =
        range.iter().cloned().partition(|specifier| is_lower_bound(*specifier.operator()));
    if lower.iter().any(|specifier| *specifier.version() >= floor) {
        return Ok(given.unwrap_or_default().to_owned());
    }
    let mut text = format!(">={floor}");
    for specifier in others {
        let _ = write!(text, ",{specifier}");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use cuwheel_inspect::testing::WheelBuilder;
    use cuwheel_inspect::wheel::Wheel;
    use expect_test::expect;

    use super::*;

    fn wheel(metadata: &str) -> Wheel {
        let name = "p-1.0-py3-none-any.whl";
        Wheel::from_bytes(name, WheelBuilder::new(name).metadata(metadata).build()).unwrap()
    }

    fn edited(upstream: &str) -> String {
        let native = wheel(
            "Metadata-Version: 2.4\nName: n\nVersion: 1\nLicense-Expression: MIT OR Apache-2.0\nLicense-File: LICENSE-MIT\n",
        );
        let native =
            Native { python_floor: (3, 11), metadata: native.metadata().headers(), licence_directory: "native" };
        let opened = wheel(upstream);
        let version = "1.0+native.1".parse().unwrap();
        metadata(upstream, opened.metadata().headers(), &version, &native).unwrap()
    }

    #[test]
    fn only_the_named_headers_change() {
        let found = edited(
            "Metadata-Version: 2.4\nName: p\nversion: 1.0\nLicense-Expression: BSD-2-Clause\nRequires-Python: >=3.9,\n  <4,!=3.12.1\n\
             License-File: LICENSE\nDynamic: license-file\n\nVersion: in the text\n\n  Requires-Python: x\n",
        );
        expect![[r#"
                Metadata-Version: 2.4
                Name: p
                Version: 1.0+native.1
                License-Expression: BSD-2-Clause AND (MIT OR Apache-2.0)
                Requires-Python: >=3.11,!=3.12.1,<4
                License-File: LICENSE
                License-File: native/LICENSE-MIT
                Dynamic: license-file

                Version: in the text

                  Requires-Python: x
            "#]]
        .assert_eq(&found);
    }

    #[test]
    fn the_ends_of_lines_stay_and_old_metadata_gets_no_headers_that_it_cannot_have() {
        let old = "Metadata-Version: 2.1\r\nName: p\r\nVersion: 1.0\r\nLicense: BSD\r\n\r\nText\r\n";
        let new = old.replace("1.0", "1.0+native.1").replace("BSD\r\n", "BSD\r\nRequires-Python: >=3.11\r\n");
        assert_eq!(edited(old), new);
    }

    #[test]
    fn the_lower_bound_of_python_is_raised_and_never_lowered() {
        for (given, expected) in [
            (None, ">=3.11"),
            (Some(">=3.9"), ">=3.11"),
            (Some("<3.14,>=3.9"), ">=3.11,<3.14"),
            (Some(">=3.12,<4"), ">=3.12,<4"),
            (Some("~=3.10"), ">=3.11,~=3.10"),
        ] {
            assert_eq!(requires_python(given, (3, 11)).unwrap(), expected, "{given:?}");
        }
        assert!(requires_python(Some("three"), (3, 11)).is_err());
    }

    #[test]
    fn wheel_says_the_tags_of_what_is_inside() {
        let text = "Wheel-Version: 1.0\nGenerator: setuptools (80.9.0)\nRoot-Is-Purelib: false\nTag: cp311-cp311-a\nTag: cp311-cp311-b\n\n";
        let tags = Tag::parse_set("cp311-abi3-manylinux_2_28_x86_64").unwrap();
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(
            wheel_info(text, &tags).unwrap(),
            format!(
                "Wheel-Version: 1.0\nGenerator: cuwheel {version}\nRoot-Is-Purelib: false\nTag: cp311-abi3-manylinux_2_28_x86_64\n\n"
            )
        );
    }
}
