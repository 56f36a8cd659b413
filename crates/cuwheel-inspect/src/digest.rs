//! Hashes of file contents and the two ways they are written: hexadecimal, and as in a wheel's RECORD.
//!
//! Not a general hashing interface: only the algorithms that RECORD may use are here.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256, Sha384, Sha512};

/// The SHA-256 of some contents. Shown in lower-case hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sha256Digest([u8; 32]);

impl Sha256Digest {
    /// Hashes `contents`.
    #[must_use]
    pub fn of(contents: &[u8]) -> Self {
        Self(Sha256::digest(contents).into())
    }

    /// The 32 bytes of the hash.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The hash as RECORD writes it: `sha256=` and URL-safe base64 without padding.
    #[must_use]
    pub fn to_record(&self) -> String {
        format!("sha256={}", base64_url(&self.0))
    }
}

impl fmt::Display for Sha256Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl fmt::Debug for Sha256Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Sha256Digest({self})")
    }
}

/// A hash algorithm that RECORD may use: SHA-256 or a longer hash of the same family.
///
/// Source: "Binary distribution format", section "Signed wheel files".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum HashAlgorithm {
    /// SHA-256, what every wheel builder writes.
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
}

impl HashAlgorithm {
    /// The name in RECORD, as Python's `hashlib` spells it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "sha256",
            Self::Sha384 => "sha384",
            Self::Sha512 => "sha512",
        }
    }
}

impl fmt::Display for HashAlgorithm {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// The name is of no algorithm that RECORD may use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not one of sha256, sha384 and sha512")]
pub struct UnsupportedHashAlgorithm(String);

impl FromStr for HashAlgorithm {
    type Err = UnsupportedHashAlgorithm;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "sha256" => Ok(Self::Sha256),
            "sha384" => Ok(Self::Sha384),
            "sha512" => Ok(Self::Sha512),
            _ => Err(UnsupportedHashAlgorithm(name.to_owned())),
        }
    }
}

/// Hashes one stream with SHA-256 and with whatever else its RECORD row asks for.
pub(crate) struct StreamHasher {
    sha256: Sha256,
    sha384: Option<Sha384>,
    sha512: Option<Sha512>,
}

impl StreamHasher {
    pub(crate) fn new(also: &[HashAlgorithm]) -> Self {
        Self {
            sha256: Sha256::new(),
            sha384: also.contains(&HashAlgorithm::Sha384).then(Sha384::new),
            sha512: also.contains(&HashAlgorithm::Sha512).then(Sha512::new),
        }
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.sha256.update(bytes);
        if let Some(hasher) = &mut self.sha384 {
            hasher.update(bytes);
        }
        if let Some(hasher) = &mut self.sha512 {
            hasher.update(bytes);
        }
    }

    pub(crate) fn finish(self) -> StreamDigests {
        StreamDigests {
            sha256: Sha256Digest(self.sha256.finalize().into()),
            sha384: self.sha384.map(|hasher| base64_url(&hasher.finalize())),
            sha512: self.sha512.map(|hasher| base64_url(&hasher.finalize())),
        }
    }
}

/// What [`StreamHasher`] found.
#[derive(Debug, Clone)]
pub(crate) struct StreamDigests {
    pub(crate) sha256: Sha256Digest,
    sha384: Option<String>,
    sha512: Option<String>,
}

impl StreamDigests {
    /// The hash in RECORD's base64; `None` when the algorithm was not asked for.
    pub(crate) fn base64(&self, algorithm: HashAlgorithm) -> Option<String> {
        match algorithm {
            HashAlgorithm::Sha256 => Some(base64_url(self.sha256.as_bytes())),
            HashAlgorithm::Sha384 => self.sha384.clone(),
            HashAlgorithm::Sha512 => self.sha512.clone(),
        }
    }
}

/// URL-safe base64 without padding (RFC 4648, section 5).
fn base64_url(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group = chunk.iter().fold(0_u32, |group, byte| group << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for position in 0..=chunk.len() {
            let sextet = (group >> (18 - 6 * position)) & 0x3f;
            text.push(char::from(ALPHABET[sextet as usize]));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_follows_the_test_vectors_of_rfc_4648() {
        for (bytes, text) in
            [("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foob", "Zm9vYg"), ("fooba", "Zm9vYmE")]
        {
            assert_eq!(base64_url(bytes.as_bytes()), text);
        }
        assert_eq!(base64_url(&[0xfb, 0xff]), "-_8");
    }

    #[test]
    fn empty_contents_have_the_known_hash() {
        let digest = Sha256Digest::of(b"");
        assert_eq!(digest.to_string(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert_eq!(digest.to_record(), "sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU");
    }

    #[test]
    fn weak_algorithms_are_refused_by_name() {
        for name in ["md5", "sha1", "sha224", "SHA256", ""] {
            assert_eq!(name.parse::<HashAlgorithm>(), Err(UnsupportedHashAlgorithm(name.to_owned())));
        }
    }
}
