//! The version of the toolkit that compiled an image, from the words that the compilers leave in it.

use std::fmt;
use std::io::Read as _;

use super::Compression;

/// What `ptxas` writes into a note of machine code, and `nvcc` into a comment of PTX.
const PHRASE: &[u8] = b"Cuda compilation tools, release ";
/// Larger images are not asked: the small ones of the same file came from the same compiler.
pub(super) const LARGEST_STORED_BYTES: u64 = 256 * 1024;
const LARGEST_UNPACKED_BYTES: u64 = 4 * 1024 * 1024;

/// The version of a CUDA toolkit, such as 13.5.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolkitVersion {
    /// 13 for 13.5.
    pub major: u32,
    /// 5 for 13.5.
    pub minor: u32,
}

impl fmt::Display for ToolkitVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.major, self.minor)
    }
}

/// The toolkit that the text of an image names.
pub(crate) fn named_in(image: &[u8]) -> Option<ToolkitVersion> {
    let start = memchr::memmem::find(image, PHRASE)? + PHRASE.len();
    let rest = &image[start..image.len().min(start + 16)];
    let end = rest.iter().position(|byte| !byte.is_ascii_digit() && *byte != b'.').unwrap_or(rest.len());
    let (major, minor) = std::str::from_utf8(&rest[..end]).ok()?.split_once('.')?;
    Some(ToolkitVersion { major: major.parse().ok()?, minor: minor.parse().ok()? })
}

/// The toolkit that an image in a container names. `stored` is the image as it lies there, and `unpacked_bytes` what its
/// header says of its size.
pub(super) fn of_stored(stored: &[u8], compression: Compression, unpacked_bytes: u64) -> Option<ToolkitVersion> {
    if compression == Compression::None {
        return named_in(stored);
    }
    if unpacked_bytes > LARGEST_UNPACKED_BYTES {
        return None;
    }
    let mut image = vec![0; usize::try_from(unpacked_bytes).ok()?];
    let length = match compression {
        Compression::Zstandard => {
            let decoder = ruzstd::decoding::StreamingDecoder::new(stored).ok()?;
            let mut bounded = decoder.take(unpacked_bytes);
            image.clear();
            // What was unpacked before damage may still say it.
            let _ = bounded.read_to_end(&mut image);
            image.len()
        }
        _ => lz4_flex::block::decompress_into(stored, &mut image).unwrap_or(image.len()),
    };
    named_in(&image[..length])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_is_read_from_either_kind_of_image() {
        let named = |text: &[u8]| named_in(text).map(|version| version.to_string());
        assert_eq!(named(b"\0ptxas\0Cuda compilation tools, release 13.5, V13.5.37\0").as_deref(), Some("13.5"));
        assert_eq!(named(b"// Cuda compilation tools, release 12.9, V12.9.86\n").as_deref(), Some("12.9"));
        for text in [
            &b"Cuda compilation tools, release "[..],
            b"Cuda compilation tools, release 12",
            b"Cuda compilation tools, release 99999999999.1",
            b"release 13.5",
        ] {
            assert_eq!(named(text), None);
        }
    }

    #[test]
    fn compressed_images_are_unpacked_first() {
        let text = [PHRASE, b"12.4, V12.4.131"].concat();
        // A block of literals only: a length of 15 and more, the rest of the length, the literals.
        let block = [&[0xf0, u8::try_from(text.len() - 15).unwrap()], &text[..]].concat();
        let named = of_stored(&block, Compression::Lz4, text.len() as u64);
        assert_eq!(named, Some(ToolkitVersion { major: 12, minor: 4 }));
        // A frame with a window of 1 KiB and one raw block, the last: its header is its length in bits 3 and up.
        let header = u32::try_from(text.len() << 3 | 1).unwrap().to_le_bytes();
        let frame = [&[0x28, 0xb5, 0x2f, 0xfd, 0, 0][..], &header[..3], &text].concat();
        let named = of_stored(&frame, Compression::Zstandard, text.len() as u64);
        assert_eq!(named, Some(ToolkitVersion { major: 12, minor: 4 }));
    }

    #[test]
    fn damaged_images_name_nothing() {
        for compression in [Compression::None, Compression::Lz4, Compression::Zstandard] {
            for stored in [&b""[..], b"\x28\xb5\x2f\xfd", &[0xff; 64]] {
                assert_eq!(of_stored(stored, compression, 64), None);
            }
            assert_eq!(of_stored(&[0; 64], compression, u64::MAX), None);
        }
    }
}
