//! GPU code of a real compiler; `fixtures/README.md` says how it was made.

pub(crate) const PLAIN: &[u8] = include_bytes!("fixtures/plain.fatbin");
pub(crate) const LZ4: &[u8] = include_bytes!("fixtures/lz4.fatbin");
pub(crate) const FEATURES: &[u8] = include_bytes!("fixtures/features.fatbin");
pub(crate) const CONCAT: &[u8] = include_bytes!("fixtures/concat.fatbin");
pub(crate) const CUBIN: &[u8] = include_bytes!("fixtures/axpy.cubin");
pub(crate) const PTX: &[u8] = include_bytes!("fixtures/axpy.ptx");

/// A container with the first image of `fatbin` only.
pub(crate) fn first_image(fatbin: &[u8]) -> Vec<u8> {
    let number =
        |at: usize, count: usize| fatbin[at..at + count].iter().rev().fold(0, |n, byte| n << 8 | usize::from(*byte));
    let size = number(20, 4) + number(24, 8);
    [&fatbin[..8], &size.to_le_bytes(), &fatbin[16..16 + size]].concat()
}
