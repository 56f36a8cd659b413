//! The values of a launch, packed as the kernel reads them.

use std::cell::Cell;
use std::hint::cold_path;
use std::mem::MaybeUninit;

use super::{Parameter, Signature};

/// More words are kept on the heap.
const INLINE_WORDS: usize = 64;

/// Most kernels have no more.
const FEW_WORDS: usize = 8;

/// Values of all parameters, one behind the other at their offsets: 512 bytes in place, more in memory that each thread
/// keeps for its next launch.
///
/// What was not set is zero.
// What is not initialised comes last: between zeros it would be zeroed with them.
#[derive(Debug, Clone)]
#[repr(C)]
pub struct Arguments {
    size_bytes: usize,
    /// All words, if there are more than have room in place.
    heap: Vec<u64>,
    /// As many words are initialised as there are bytes for, if there are none on the heap.
    inline: MaybeUninit<[u64; INLINE_WORDS]>,
}

thread_local! {
    /// Room of an earlier launch with many parameters.
    static SPARE: Cell<Vec<u64>> = const { Cell::new(Vec::new()) };
}

impl Arguments {
    /// Room for no parameters.
    #[inline]
    pub fn empty() -> Self {
        Self { size_bytes: 0, heap: Vec::new(), inline: MaybeUninit::uninit() }
    }

    /// Makes room for the parameters of `signature`, all zero. Apart from [`empty`](Self::empty) so that the room is where
    /// the values stay.
    #[inline]
    pub fn clear_for(&mut self, signature: &Signature) {
        let count = signature.size_bytes().div_ceil(size_of::<u64>());
        self.heap.clear();
        if count > INLINE_WORDS {
            self.clear_heap(count);
        }
        let words = self.inline.as_mut_ptr();
        // SAFETY: there is room for so many words.
        unsafe {
            // Without a call of a function, which a number of words that is not known here takes.
            words.cast::<[u64; FEW_WORDS]>().write([0; FEW_WORDS]);
            if count > FEW_WORDS {
                cold_path();
                words.cast::<u64>().write_bytes(0, count.min(INLINE_WORDS));
            }
        }
        self.size_bytes = signature.size_bytes();
    }

    #[cold]
    fn clear_heap(&mut self, count: usize) {
        if self.heap.capacity() == 0 {
            self.heap = SPARE.try_with(Cell::take).unwrap_or_default();
            self.heap.clear();
        }
        self.heap.resize(count, 0);
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
        let place = &mut self.bytes_mut()[offset_bytes..offset_bytes + bytes.len()];
        // The sizes of most values, for which nothing has to be called.
        match (<&mut [u8; 8]>::try_from(&mut *place), <[u8; 8]>::try_from(bytes)) {
            (Ok(place), Ok(bytes)) => *place = bytes,
            _ => match (<&mut [u8; 4]>::try_from(&mut *place), <[u8; 4]>::try_from(bytes)) {
                (Ok(place), Ok(bytes)) => *place = bytes,
                _ => place.copy_from_slice(bytes),
            },
        }
    }

    /// Sets words, one behind the other, from `offset_bytes` on.
    ///
    /// # Panics
    /// If they lie outside.
    #[inline]
    pub fn set_words(&mut self, offset_bytes: usize, words: &[u64]) {
        let place = &mut self.bytes_mut()[offset_bytes..offset_bytes + size_of_val(words)];
        for (place, word) in place.as_chunks_mut().0.iter_mut().zip(words) {
            *place = word.to_ne_bytes();
        }
    }

    /// The packed values.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        let words: *const u64 = if self.heap.is_empty() {
            self.inline.as_ptr().cast()
        } else {
            cold_path();
            self.heap.as_ptr()
        };
        // SAFETY: the words are initialised memory of at least this size, since it was rounded up to whole words.
        unsafe { std::slice::from_raw_parts(words.cast(), self.size_bytes) }
    }

    #[inline]
    fn bytes_mut(&mut self) -> &mut [u8] {
        let words: *mut u64 = if self.heap.is_empty() {
            self.inline.as_mut_ptr().cast()
        } else {
            cold_path();
            self.heap.as_mut_ptr()
        };
        // SAFETY: as above, and any bytes are valid words.
        unsafe { std::slice::from_raw_parts_mut(words.cast(), self.size_bytes) }
    }
}

impl Drop for Arguments {
    #[inline]
    fn drop(&mut self) {
        if self.heap.capacity() > 0 {
            cold_path();
            let words = std::mem::take(&mut self.heap);
            // A thread that is ending keeps nothing.
            let _ = SPARE.try_with(|spare| spare.set(words));
        }
    }
}
