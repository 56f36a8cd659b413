//! The values of a launch, packed as the kernel reads them.

use std::cell::Cell;

use smallvec::SmallVec;

use super::{Parameter, Signature};

/// Values of all parameters, one behind the other at their offsets: 512 bytes in place, more in memory that each thread
/// keeps for its next launch.
///
/// What was not set is zero.
#[derive(Debug, Clone)]
pub struct Arguments {
    words: SmallVec<[u64; 64]>,
    size_bytes: usize,
}

thread_local! {
    /// Room of an earlier launch with many parameters.
    static SPARE: Cell<Vec<u64>> = const { Cell::new(Vec::new()) };
}

impl Arguments {
    /// Room for no parameters.
    #[inline]
    pub fn empty() -> Self {
        Self { words: SmallVec::new(), size_bytes: 0 }
    }

    /// Makes room for the parameters of `signature`, all zero. Apart from [`empty`](Self::empty) so that the room is where
    /// the values stay.
    #[inline]
    pub fn clear_for(&mut self, signature: &Signature) {
        let count = signature.size_bytes().div_ceil(8);
        if count > self.words.inline_size() && !self.words.spilled() {
            self.words = SmallVec::from_vec(SPARE.try_with(Cell::take).unwrap_or_default());
        }
        self.words.clear();
        self.words.resize(count, 0);
        self.size_bytes = signature.size_bytes();
    }

    /// Sets `parameter`, which must be one of the signature's.
    ///
    /// # Panics
    /// If `bytes` are not as many as the parameter takes, or the parameter lies outside.
    #[inline]
    pub fn set(&mut self, parameter: &Parameter, bytes: &[u8]) {
        assert_eq!(bytes.len(), parameter.kind.size_bytes(), "a value has the size of its parameter");
        self.set_at(parameter.offset_bytes, bytes);
    }

    /// Sets bytes from `offset_bytes` on.
    ///
    /// # Panics
    /// If they lie outside.
    #[inline]
    pub fn set_at(&mut self, offset_bytes: usize, bytes: &[u8]) {
        self.bytes_mut()[offset_bytes..offset_bytes + bytes.len()].copy_from_slice(bytes);
    }

    /// The packed values.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the words are initialised memory of at least this size, since it was rounded up to whole words.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast(), self.size_bytes) }
    }

    #[inline]
    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and any bytes are valid words.
        unsafe { std::slice::from_raw_parts_mut(self.words.as_mut_ptr().cast(), self.size_bytes) }
    }
}

impl Drop for Arguments {
    #[inline]
    fn drop(&mut self) {
        if self.words.spilled() {
            let words = std::mem::take(&mut self.words).into_vec();
            // A thread that is ending keeps nothing.
            let _ = SPARE.try_with(|spare| spare.set(words));
        }
    }
}
