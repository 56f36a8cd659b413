//! Fatbins: containers of GPU code for several architectures, as the CUDA compiler writes them into `.nv_fatbin`.
//!
//! A [`Scanner`] takes a file of any kind piece by piece and finds the containers in it, wherever they lie: in a
//! section, in a file of their own, or included as bytes. Images are described and not kept. No code is decoded.
//!
//! The format is not published. What is read here was seen in the output of the CUDA compilers 12.4 to 13.5 and agrees
//! with what `cuobjdump` says of it.

pub(crate) mod cubin;
mod image;
pub(crate) mod ptx;
mod scanner;
pub(crate) mod toolkit;

use std::fmt;

pub use scanner::Scanner;
pub use toolkit::ToolkitVersion;

/// The first bytes of a container.
pub(crate) const MAGIC: [u8; 4] = [0x50, 0xed, 0x55, 0xba];

/// A container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fatbin {
    /// Where it begins in the file.
    pub offset: u64,
    /// What it takes in the file, with its header.
    pub size_bytes: u64,
    /// What it holds, in order.
    pub images: Vec<Image>,
    /// Why it could not be read to its end; `images` then has what comes before.
    pub fault: Option<String>,
}

/// GPU code in a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// What kind of code it is.
    pub kind: ImageKind,
    /// What it is compiled for.
    pub architecture: Architecture,
    /// What it takes in the file, without its header. Images that are compressed together share what they take.
    pub stored_bytes: u64,
    /// Its size when it is not compressed.
    pub size_bytes: u64,
    /// How it is compressed.
    pub compression: Compression,
    /// The version that the header names: that of the PTX language, or of the format of machine code.
    pub version: (u16, u16),
    /// The toolkit that compiled it, where a small image says so.
    pub toolkit: Option<ToolkitVersion>,
}

/// What kind of code an image is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ImageKind {
    /// Machine code, which runs on GPUs of its architecture, and on newer ones of the same major version.
    Sass,
    /// Text that the driver compiles for the GPU it finds, if that is not older than the text's architecture.
    Ptx,
    /// Input for the link-time optimiser, which no driver loads.
    LinkTimeIr,
    /// Any other, by its number.
    Other(u16),
}

/// A GPU architecture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Architecture {
    /// Ten times the major version and the minor: 90 for 9.0.
    pub number: u32,
    /// Whether it is limited to one GPU or to a family of GPUs.
    pub feature: Feature,
}

/// What an architecture asks for beyond its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Feature {
    /// Nothing: `sm_90`.
    Base,
    /// Newer GPUs of the same family: `sm_100f`.
    Family,
    /// This very GPU: `sm_90a`.
    Specific,
}

/// How an image is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Compression {
    /// Not at all.
    None,
    /// LZ4, the only one before CUDA 12.8.
    Lz4,
    /// Zstandard.
    Zstandard,
}

impl Architecture {
    /// Without a feature.
    #[must_use]
    pub const fn base(number: u32) -> Self {
        Self { number, feature: Feature::Base }
    }

    /// The major version of the compute capability, 9 for 9.0.
    #[must_use]
    pub const fn major(self) -> u32 {
        self.number / 10
    }
}

/// The number with the letter of the feature, such as `90a`.
impl fmt::Display for Architecture {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = match self.feature {
            Feature::Base => "",
            Feature::Family => "f",
            Feature::Specific => "a",
        };
        write!(formatter, "{}{letter}", self.number)
    }
}

/// The text names no architecture.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` names no GPU architecture: write it as 90, 90a, sm_90 or compute_90")]
pub struct InvalidArchitecture(String);

impl std::str::FromStr for Architecture {
    type Err = InvalidArchitecture;

    /// Reads `90a`, `sm_90a` and `compute_90a`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let name = text.strip_prefix("sm_").or_else(|| text.strip_prefix("compute_")).unwrap_or(text);
        let digits = name.trim_end_matches(['a', 'f']);
        let feature = match &name[digits.len()..] {
            "" => Some(Feature::Base),
            "f" => Some(Feature::Family),
            "a" => Some(Feature::Specific),
            _ => None,
        };
        let is_number = digits.len() <= 3 && digits.bytes().all(|byte| byte.is_ascii_digit());
        match (feature, digits.parse()) {
            // Nothing is older than 1.0, and nobody writes zeros before.
            (Some(feature), Ok(number)) if is_number && number >= 10 && !digits.starts_with('0') => {
                Ok(Self { number, feature })
            }
            _ => Err(InvalidArchitecture(text.to_owned())),
        }
    }
}

impl ImageKind {
    /// The name of such an image for `architecture`, such as `sm_90a` and `compute_90`.
    #[must_use]
    pub fn name(self, architecture: Architecture) -> String {
        match self {
            Self::Sass => format!("sm_{architecture}"),
            Self::Ptx => format!("compute_{architecture}"),
            Self::LinkTimeIr => format!("lto_{architecture}"),
            Self::Other(kind) => format!("kind {kind} for {architecture}"),
        }
    }
}

/// Finds the containers in `data`.
#[must_use]
pub fn find(data: &[u8]) -> Vec<Fatbin> {
    let mut scanner = Scanner::new();
    scanner.push(data);
    scanner.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn architectures_are_read_and_shown_in_every_spelling() {
        for (text, shown) in [("90", "90"), ("sm_90a", "90a"), ("compute_100f", "100f"), ("sm_75", "75")] {
            assert_eq!(text.parse::<Architecture>().map(|found| found.to_string()), Ok(shown.to_owned()), "{text}");
        }
        for text in ["", "a", "9", "sm_", "90af", "9.0", "+90", "00", "090", "sm_9000", "SM_90", "compute-90"] {
            assert_eq!(text.parse::<Architecture>(), Err(InvalidArchitecture(text.to_owned())), "{text}");
        }
        assert_eq!(ImageKind::Ptx.name(Architecture::base(90)), "compute_90");
        assert_eq!(Architecture::base(100).major(), 10);
    }
}
