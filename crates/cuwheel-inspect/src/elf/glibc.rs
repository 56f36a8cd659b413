//! Versions of the GNU C library and the names that they have in symbols and in platform tags.
//!
//! Source of the policy names: PEP 513, PEP 571, PEP 599 and PEP 600.

use std::fmt;
use std::str::FromStr;

/// A version of the GNU C library, such as 2.28.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GlibcVersion {
    /// 2, so far.
    pub major: u32,
    /// 28 for 2.28.
    pub minor: u32,
}

/// The text names no version of the GNU C library.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` names no glibc version: write it as 2.28, GLIBC_2.28, manylinux_2_28 or manylinux2014")]
pub struct InvalidGlibcVersion(String);

impl GlibcVersion {
    /// The version `major.minor`.
    #[must_use]
    pub const fn new(major: u32, minor: u32) -> Self {
        Self { major, minor }
    }

    /// Reads the name of a symbol version. `GLIBC_2.2.5` is 2.2; `GLIBC_PRIVATE` names no version.
    ///
    /// `GLIBC_ABI_DT_RELR` is 2.36: a linker adds it with compact relocations, which older loaders refuse.
    #[must_use]
    pub fn from_symbol_version(name: &str) -> Option<Self> {
        if name == "GLIBC_ABI_DT_RELR" {
            return Some(Self::new(2, 36));
        }
        let mut numbers = name.strip_prefix("GLIBC_")?.split('.').map(parse_number);
        let version = Self::new(numbers.next()??, numbers.next()??);
        numbers.all(|number| number.is_some()).then_some(version)
    }

    /// Reads a platform tag such as `manylinux_2_28_x86_64` or `manylinux2014`; the architecture may be left out.
    #[must_use]
    pub fn from_platform_tag(tag: &str) -> Option<Self> {
        let legacy =
            [("manylinux1", Self::new(2, 5)), ("manylinux2010", Self::new(2, 12)), ("manylinux2014", Self::new(2, 17))];
        for (policy, version) in legacy {
            if tag.strip_prefix(policy).is_some_and(|rest| rest.is_empty() || rest.starts_with('_')) {
                return Some(version);
            }
        }
        let mut parts = tag.strip_prefix("manylinux_")?.split('_');
        Some(Self::new(parse_number(parts.next()?)?, parse_number(parts.next()?)?))
    }
}

impl FromStr for GlibcVersion {
    type Err = InvalidGlibcVersion;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let plain = || {
            let (major, minor) = text.split_once('.')?;
            Some(Self::new(parse_number(major)?, parse_number(minor)?))
        };
        let version = Self::from_symbol_version(text).or_else(|| Self::from_platform_tag(text)).or_else(plain);
        version.ok_or_else(|| InvalidGlibcVersion(text.to_owned()))
    }
}

impl fmt::Display for GlibcVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.major, self.minor)
    }
}

/// `parse` alone would accept a sign.
fn parse_number(digits: &str) -> Option<u32> {
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_name_a_version_is_read() {
        for (text, shown) in [
            ("2.28", "2.28"),
            ("GLIBC_2.28", "2.28"),
            ("GLIBC_2.2.5", "2.2"),
            ("GLIBC_ABI_DT_RELR", "2.36"),
            ("manylinux_2_28", "2.28"),
            ("manylinux_2_28_x86_64", "2.28"),
            ("manylinux_2_17_aarch64", "2.17"),
            ("manylinux2014", "2.17"),
            ("manylinux2014_ppc64le", "2.17"),
            ("manylinux2010_x86_64", "2.12"),
            ("manylinux1", "2.5"),
            ("manylinux1_i686", "2.5"),
        ] {
            assert_eq!(text.parse::<GlibcVersion>().map(|version| version.to_string()), Ok(shown.to_owned()), "{text}");
        }
    }

    #[test]
    fn names_without_a_version_are_refused() {
        for text in [
            "",
            "2",
            "2.",
            "2.28.1",
            "+2.28",
            "GLIBC_PRIVATE",
            "GLIBC_2",
            "GLIBC_2.x",
            "GLIBC_2.2.",
            "GLIBCXX_3.4",
            "manylinux",
            "manylinux_2",
            "manylinux3000",
            "manylinux20140",
            "musllinux_1_2_x86_64",
            "linux_x86_64",
            "GLIBC_2.99999999999",
        ] {
            assert_eq!(text.parse::<GlibcVersion>(), Err(InvalidGlibcVersion(text.to_owned())), "{text}");
        }
    }

    #[test]
    fn versions_are_ordered_by_number() {
        assert!(GlibcVersion::new(2, 5) < GlibcVersion::new(2, 17));
        assert!(GlibcVersion::new(2, 39) < GlibcVersion::new(3, 0));
    }
}
