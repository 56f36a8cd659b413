//! Fat binaries: several cubins and PTX texts in one image, of which the one that suits the device best is taken.

use super::{Image, Refusal, Target, cubin, ptx};
use crate::error::Code;

pub(super) const MAGIC: &[u8] = &0xBA55_ED50_u32.to_le_bytes();
pub(super) const WRAPPER_MAGIC: &[u8] = &0x4662_43B1_u32.to_le_bytes();
pub(super) const HEADER_BYTES: usize = 16;
const PTX: u16 = 1;
const CUBIN: u16 = 2;
/// Flags of an entry whose bytes are compressed, by one way or another.
const COMPRESSED: u64 = 0x2000 | 0x8000;

/// The length of the image, by its header.
pub(super) fn length(header: &[u8]) -> Option<usize> {
    let own = u16::from_le_bytes(header.get(6..8)?.try_into().ok()?);
    let entries = u64::from_le_bytes(header.get(8..16)?.try_into().ok()?);
    usize::try_from(entries).ok()?.checked_add(own.into())
}

struct Entry<'a> {
    kind: u16,
    architecture: u32,
    compressed: bool,
    bytes: &'a [u8],
}

pub(super) fn parse(bytes: &[u8], target: Target) -> Result<Image, Refusal> {
    let broken = || Refusal::new(Code::INVALID_IMAGE, "the fat binary ends before it should");
    let entries = entries(bytes).ok_or_else(broken)?;
    let newest = |kind: u16, runs: &dyn Fn(u32) -> bool| {
        let suitable = entries.iter().filter(|entry| entry.kind == kind && runs(entry.architecture));
        suitable.max_by_key(|entry| entry.architecture)
    };
    let chosen = newest(CUBIN, &|architecture| target.runs(architecture))
        .or_else(|| newest(PTX, &|architecture| architecture <= target.compute));
    match chosen {
        Some(entry) if entry.compressed => Ok(Image { opaque: true, ..Image::default() }),
        Some(entry) if entry.kind == CUBIN => cubin::parse(entry.bytes, target),
        Some(entry) => ptx::parse(entry.bytes, target),
        None => {
            let inside: Vec<String> = entries
                .iter()
                .map(|entry| format!("{}_{}", if entry.kind == PTX { "compute" } else { "sm" }, entry.architecture))
                .collect();
            let reason =
                format!("the fat binary has code for {}, and the device is sm_{}", inside.join(", "), target.compute);
            Err(Refusal::new(Code::NO_BINARY_FOR_GPU, reason))
        }
    }
}

/// The entries one after the other; none when one of them does not fit.
fn entries(bytes: &[u8]) -> Option<Vec<Entry<'_>>> {
    let own = u16::from_le_bytes(bytes.get(6..8)?.try_into().ok()?);
    let mut rest = bytes.get(usize::from(own)..length(bytes)?)?;
    let mut found = Vec::new();
    while rest.len() >= 48 {
        let half = |at: usize| u16::from_le_bytes([rest[at], rest[at + 1]]);
        let word = |at: usize| u32::from_le_bytes([rest[at], rest[at + 1], rest[at + 2], rest[at + 3]]);
        let header = usize::try_from(word(4)).ok()?;
        let padded = usize::try_from(u64::from(word(8)) | u64::from(word(12)) << 32).ok()?;
        let flags = u64::from(word(40)) | u64::from(word(44)) << 32;
        let body = rest.get(header..header.checked_add(padded)?)?;
        let compressed = flags & COMPRESSED != 0;
        found.push(Entry { kind: half(0), architecture: word(28), compressed, bytes: body });
        rest = &rest[header + padded..];
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(kind: u16, architecture: u32, flags: u64, body: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[..2].copy_from_slice(&kind.to_le_bytes());
        bytes[4..8].copy_from_slice(&64_u32.to_le_bytes());
        bytes[8..16].copy_from_slice(&(body.len() as u64).to_le_bytes());
        bytes[28..32].copy_from_slice(&architecture.to_le_bytes());
        bytes[40..48].copy_from_slice(&flags.to_le_bytes());
        [bytes, body.to_vec()].concat()
    }

    fn fatbin(entries: &[Vec<u8>]) -> Vec<u8> {
        let body = entries.concat();
        let mut bytes = MAGIC.to_vec();
        bytes.extend([1, 0, 16, 0]);
        bytes.extend((body.len() as u64).to_le_bytes());
        [bytes, body].concat()
    }

    #[test]
    fn the_entry_that_suits_the_device_is_taken() {
        let text = b".version 8.0\n.target sm_80\n.visible .entry only(.param .u32 n)\n{}\0\0\0";
        let target = Target { compute: 90, driver_version: 13_000 };
        let image = parse(&fatbin(&[entry(CUBIN, 80, 0, b"?"), entry(PTX, 80, 0, text)]), target).unwrap();
        assert_eq!(image.kernel("only").unwrap().parameters.unwrap()[0].size, 4);
        assert_eq!(image.kernel("other"), None);

        let image = parse(&fatbin(&[entry(CUBIN, 90, 0x2000, b"?")]), target).unwrap();
        assert_eq!(image.kernel("other").unwrap().parameters, None);

        let refusal = parse(&fatbin(&[entry(CUBIN, 80, 0, b"?"), entry(PTX, 100, 0, text)]), target).unwrap_err();
        assert_eq!(refusal.code, Code::NO_BINARY_FOR_GPU);
        assert_eq!(refusal.reason, "the fat binary has code for sm_80, compute_100, and the device is sm_90");

        let whole = fatbin(&[entry(CUBIN, 90, 0, b"????")]);
        assert_eq!(parse(&whole[..whole.len() - 1], target).unwrap_err().code, Code::INVALID_IMAGE);
    }
}
