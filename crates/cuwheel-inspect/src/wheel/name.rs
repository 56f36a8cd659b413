//! File names of wheels and the tags in them.
//!
//! Source: "Binary distribution format", section "File name convention", and "Platform compatibility tags". Whether a
//! tag suits an interpreter is not decided here.

use std::fmt;
use std::str::FromStr;

use crate::version::{InvalidVersion, Version};

/// A file name such as `cuwheel-0.1.0-cp311-abi3-manylinux_2_28_x86_64.whl`, in its parts as they are spelled.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WheelName {
    distribution: String,
    version: String,
    build: Option<String>,
    python: Vec<String>,
    abi: Vec<String>,
    platform: Vec<String>,
}

/// Why a text is not the file name of a wheel.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WheelNameError {
    /// The name does not end in `.whl`.
    #[error("`{0}` does not end in .whl")]
    Extension(String),
    /// There are not five parts, or six with a build tag.
    #[error(
        "`{name}` has {count} parts where a wheel has 5, or 6 with a build tag: \
         distribution-version(-build)-python-abi-platform.whl"
    )]
    PartCount {
        /// The name.
        name: String,
        /// The number of parts between hyphens.
        count: usize,
    },
    /// The distribution is empty or holds something other than letters, digits, `_` and `.`.
    #[error(
        "`{0}` is not the name of a distribution: letters, digits, `_` and `.`, with a letter or digit at both ends"
    )]
    Distribution(String),
    /// The version does not follow the specification.
    #[error(transparent)]
    Version(#[from] InvalidVersion),
    /// The build tag does not start with a digit, or holds something other than letters, digits, `_` and `.`.
    #[error("the build tag `{0}` is not a digit followed by letters, digits, `_` and `.`")]
    BuildTag(String),
    /// A tag is empty or holds other characters.
    #[error(transparent)]
    Tag(#[from] TagError),
}

impl WheelName {
    /// A name without a build tag, with distribution and version in the normal form that the format asks for.
    ///
    /// Each tag may be a compressed set such as `py2.py3`.
    pub fn new(
        distribution: &str,
        version: &str,
        python: &str,
        abi: &str,
        platform: &str,
    ) -> Result<Self, WheelNameError> {
        if !is_distribution_name(&distribution.replace('-', "_")) {
            return Err(WheelNameError::Distribution(distribution.to_owned()));
        }
        Ok(Self {
            distribution: normalize_distribution(distribution).replace('-', "_"),
            version: version.parse::<Version>()?.to_string(),
            build: None,
            python: tag_set(python)?,
            abi: tag_set(abi)?,
            platform: tag_set(platform)?,
        })
    }

    /// The same name with this build tag, such as `1`.
    pub fn with_build(mut self, build: &str) -> Result<Self, WheelNameError> {
        self.build = Some(build_tag(build)?);
        Ok(self)
    }

    /// The project's name as the file spells it, such as `nvidia_cuda_nvcc`.
    #[must_use]
    pub fn distribution(&self) -> &str {
        &self.distribution
    }

    /// The version as the file spells it.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The build tag, such as `1` or `2cu12`.
    #[must_use]
    pub fn build(&self) -> Option<&str> {
        self.build.as_deref()
    }

    /// The Python tags, such as `cp311`.
    #[must_use]
    pub fn python_tags(&self) -> &[String] {
        &self.python
    }

    /// The ABI tags, such as `abi3`.
    #[must_use]
    pub fn abi_tags(&self) -> &[String] {
        &self.abi
    }

    /// The platform tags, such as `manylinux_2_28_x86_64`.
    #[must_use]
    pub fn platform_tags(&self) -> &[String] {
        &self.platform
    }

    /// Every combination of the three tag sets.
    #[must_use]
    pub fn tags(&self) -> Vec<Tag> {
        expand(&self.python, &self.abi, &self.platform)
    }

    /// Whether `name` is this project, whatever its case and separators.
    #[must_use]
    pub fn is_distribution(&self, name: &str) -> bool {
        normalize_distribution(&self.distribution) == normalize_distribution(name)
    }

    /// Whether `version` is this release, whatever its spelling.
    #[must_use]
    pub fn is_version(&self, version: &str) -> bool {
        matches!((self.version.parse::<Version>(), version.parse::<Version>()), (Ok(left), Ok(right)) if left == right)
    }

    /// The name with distribution, version and tags in normal form, so that equal wheels have equal names.
    #[must_use]
    pub fn normalized(&self) -> Self {
        let sorted = |tags: &[String]| {
            let mut tags: Vec<_> = tags.iter().map(|tag| tag.to_ascii_lowercase()).collect();
            tags.sort();
            tags.dedup();
            tags
        };
        Self {
            distribution: normalize_distribution(&self.distribution).replace('-', "_"),
            version: self
                .version
                .parse::<Version>()
                .map_or_else(|_| self.version.clone(), |version| version.to_string()),
            build: self.build.clone(),
            python: sorted(&self.python),
            abi: sorted(&self.abi),
            platform: sorted(&self.platform),
        }
    }
}

impl FromStr for WheelName {
    type Err = WheelNameError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let stem = name.strip_suffix(".whl").ok_or_else(|| WheelNameError::Extension(name.to_owned()))?;
        let parts: Vec<&str> = stem.split('-').collect();
        let (distribution, version, build, tags) = match parts[..] {
            [distribution, version, python, abi, platform] => (distribution, version, None, [python, abi, platform]),
            [distribution, version, build, python, abi, platform] => {
                (distribution, version, Some(build), [python, abi, platform])
            }
            _ => return Err(WheelNameError::PartCount { name: name.to_owned(), count: parts.len() }),
        };
        if !is_distribution_name(distribution) {
            return Err(WheelNameError::Distribution(distribution.to_owned()));
        }
        version.parse::<Version>()?;
        let build = build.map(build_tag).transpose()?;
        let [python, abi, platform] = tags.map(tag_set);
        Ok(Self {
            distribution: distribution.to_owned(),
            version: version.to_owned(),
            build,
            python: python?,
            abi: abi?,
            platform: platform?,
        })
    }
}

impl fmt::Display for WheelName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{}", self.distribution, self.version)?;
        if let Some(build) = &self.build {
            write!(formatter, "-{build}")?;
        }
        write!(formatter, "-{}-{}-{}.whl", self.python.join("."), self.abi.join("."), self.platform.join("."))
    }
}

/// One Python tag, one ABI tag and one platform tag, such as `cp311-abi3-manylinux_2_28_x86_64`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag {
    python: String,
    abi: String,
    platform: String,
}

/// The text is not a tag, or not a set of them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TagError {
    /// It has other parts, or other characters.
    #[error("`{0}` is not a compatibility tag: letters, digits and `_`, as in cp311-abi3-manylinux_2_28_x86_64")]
    Malformed(String),
    /// It stands for more tags than a wheel has: every combination counts.
    #[error("a set of {count} compatibility tags is more than the {MOST_IN_A_SET} that are read; give the wheel fewer")]
    TooMany {
        /// How many parts the set has.
        count: usize,
    },
}

/// The most tags of a set such as `py2.py3`. Three sets of so many are some thousand tags.
const MOST_IN_A_SET: usize = 32;

impl Tag {
    /// The interpreter and its version.
    #[must_use]
    pub fn python(&self) -> &str {
        &self.python
    }

    /// The binary interface.
    #[must_use]
    pub fn abi(&self) -> &str {
        &self.abi
    }

    /// The operating system, its floor and the processor.
    #[must_use]
    pub fn platform(&self) -> &str {
        &self.platform
    }

    /// The tags that a compressed text such as `py2.py3-none-any` stands for.
    pub fn parse_set(text: &str) -> Result<Vec<Self>, TagError> {
        let error = || TagError::Malformed(text.to_owned());
        let [python, abi, platform] = text.split('-').collect::<Vec<_>>().try_into().map_err(|_: Vec<&str>| error())?;
        Ok(expand(&tag_set(python)?, &tag_set(abi)?, &tag_set(platform)?))
    }
}

impl FromStr for Tag {
    type Err = TagError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let [tag] = Self::parse_set(text)?.try_into().map_err(|_: Vec<Self>| TagError::Malformed(text.to_owned()))?;
        Ok(tag)
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{}-{}", self.python, self.abi, self.platform)
    }
}

/// The project's name in lower case, with one hyphen for each run of `-`, `_` and `.`.
#[must_use]
pub fn normalize_distribution(name: &str) -> String {
    let parts = name.split(['-', '_', '.']).filter(|part| !part.is_empty());
    parts.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-")
}

fn is_distribution_name(name: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.';
    let is_end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = name.as_bytes();
    is_end(bytes.first()) && is_end(bytes.last()) && name.bytes().all(is_inner)
}

fn build_tag(text: &str) -> Result<String, WheelNameError> {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.';
    let valid = text.starts_with(|first: char| first.is_ascii_digit()) && text.bytes().all(is_inner);
    if valid { Ok(text.to_owned()) } else { Err(WheelNameError::BuildTag(text.to_owned())) }
}

fn tag_set(text: &str) -> Result<Vec<String>, TagError> {
    let is_tag = |tag: &str| !tag.is_empty() && tag.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let count = text.split('.').count();
    if count > MOST_IN_A_SET {
        return Err(TagError::TooMany { count });
    }
    let malformed = || TagError::Malformed(text.to_owned());
    text.split('.').map(|tag| if is_tag(tag) { Ok(tag.to_owned()) } else { Err(malformed()) }).collect()
}

fn expand(python: &[String], abi: &[String], platform: &[String]) -> Vec<Tag> {
    let mut tags = Vec::with_capacity(python.len() * abi.len() * platform.len());
    for python in python {
        for abi in abi {
            for platform in platform {
                tags.push(Tag { python: python.clone(), abi: abi.clone(), platform: platform.clone() });
            }
        }
    }
    tags
}
