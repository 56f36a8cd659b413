//! Filling arrays with one element.

use super::dimensions::{Blocks, Lead};
use super::{ByteLayouts, CopyError, HostRegion};
use crate::{Array, DType, Driver, DriverError, Error, Layout, LayoutError, MemoryKind, Order, Stream};

/// An element is put together from at most so many words; longer ones are copied from the host.
const MOST_WORDS: usize = 16;

impl Array {
    /// Writes the bytes of one element to all elements, in the order of `stream`, a stream of this array's device.
    ///
    /// Elements of more than 64 bytes, or of more than 16 that are not aligned, are copied from the host, for which the
    /// stream must not be in a capture.
    ///
    /// # Errors
    /// The bytes are not those of one element, the elements are packed, or the array is read-only.
    pub fn fill_bytes(&self, element: &[u8], stream: &Stream) -> Result<(), Error> {
        let dtype = self.dtype();
        let size = dtype.size_bytes().ok_or(LayoutError::PackedElements { dtype })?;
        if element.len() != size {
            return Err(CopyError::ElementSize { given: element.len(), dtype }.into());
        }
        self.fill(element, stream)
    }

    /// Sets all bytes of all elements to zero, in the order of `stream`, a stream of this array's device.
    ///
    /// # Errors
    /// The array is read-only, or its elements are packed and not contiguous.
    pub fn fill_zeros(&self, stream: &Stream) -> Result<(), Error> {
        let zeros = vec![0; self.dtype().size_bytes().unwrap_or(1)];
        self.fill(&zeros, stream)
    }

    fn fill(&self, element: &[u8], stream: &Stream) -> Result<(), Error> {
        if self.is_read_only() {
            return Err(CopyError::ReadOnly.into());
        }
        if self.size() == 0 {
            return Ok(());
        }
        let (layouts, item) = ByteLayouts::new(self.layout(), self.layout(), self.dtype())?;
        let place = layouts.first.at(self.pointer());
        let Some(blocks) = Blocks::new(&place, &place, item, Lead::Destination) else { return Ok(()) };
        let pattern = (self.kind() != MemoryKind::Host).then(|| Pattern::new(element, &blocks)).flatten();
        let Some(pattern) = pattern else { return self.fill_from_host(element, stream) };
        let _guard = self.device().enter()?;
        let driver = Driver::get()?;
        stream.between(self.device(), &[self], || {
            // SAFETY: the array keeps its memory, which is freed in the order of its stream, which comes behind this.
            Ok(unsafe { pattern.write(driver, blocks, item, stream) }?)
        })
    }

    /// Copies the element from the host to everywhere.
    fn fill_from_host(&self, element: &[u8], stream: &Stream) -> Result<(), Error> {
        let layout = |shape| Layout::contiguous(&[], Order::C)?.broadcast_to(shape);
        if self.dtype().size_bytes().is_none() {
            // Only zeros of packed elements come here, and they are bytes too.
            let bytes = self.view(DType::UInt8)?;
            return bytes.copy_from_host(region(element, &layout(bytes.shape())?, bytes.dtype()), stream);
        }
        self.copy_from_host(region(element, &layout(self.shape())?, self.dtype()), stream)
    }
}

fn region<'a>(element: &'a [u8], layout: &'a Layout, dtype: DType) -> HostRegion<'a> {
    // SAFETY: every element of the layout is this one, which is borrowed for as long.
    unsafe { HostRegion::new(element.as_ptr().expose_provenance(), layout, dtype) }
}

/// An element in words of 1, 2 or 4 bytes, which the driver can write.
struct Pattern {
    word_bytes: usize,
    /// The words of an element; one if they are all the same.
    words: Vec<u32>,
}

impl Pattern {
    /// The element in the largest words that keep to the alignment of the blocks; `None` if it would be too many.
    fn new(element: &[u8], blocks: &Blocks) -> Option<Self> {
        let numbers = blocks.dimensions.iter().map(|dimension| dimension.destination.unsigned_abs());
        let joined = numbers.fold(blocks.destination | element.len() as u64, |joined, number| joined | number);
        let word_bytes = 1 << joined.trailing_zeros().min(2);
        let words: Vec<_> = element.chunks(word_bytes).map(word).collect();
        let is_uniform = |words: &[u32]| words.windows(2).all(|pair| pair[0] == pair[1]);
        if is_uniform(&words) {
            return Some(Self { word_bytes, words: vec![words[0]] });
        }
        (words.len() <= MOST_WORDS).then_some(Self { word_bytes, words })
    }

    /// Puts the writes of all blocks, each a number of elements of `item` bytes, into a stream.
    ///
    /// # Safety
    /// The context of the stream's device is current. All blocks are memory until the stream has done the writes, and
    /// what other streams do with it is ordered.
    unsafe fn write(&self, driver: &Driver, mut blocks: Blocks, item: i64, stream: &Stream) -> Result<(), DriverError> {
        let to_usize = |number: i64| usize::try_from(number).unwrap_or(0);
        let is_uniform = self.words.len() == 1;
        // Rows at `pitch` of `width` words: of whole blocks, or of one word of each element.
        let (pitch, width, height) = if is_uniform || blocks.width == item {
            let width = if is_uniform { to_usize(blocks.width) / self.word_bytes } else { 1 };
            blocks.take_rows().map_or((0, width, 1), |rows| (to_usize(rows.destination), width, to_usize(rows.size)))
        } else {
            (to_usize(item), 1, to_usize(blocks.width / item))
        };
        blocks.try_for_each(|address, _| {
            self.words.iter().zip((address..).step_by(self.word_bytes)).try_for_each(|(&word, address)| {
                // SAFETY: the caller's promise; these are words of some of the blocks.
                unsafe { self.write_rows(driver, address, word, (pitch, width, height), stream) }
            })
        })
    }

    /// # Safety
    /// As for [`write`](Self::write).
    #[expect(clippy::cast_possible_truncation, reason = "a word was made of as many bytes")]
    unsafe fn write_rows(
        &self,
        driver: &Driver,
        address: u64,
        word: u32,
        (pitch, width, height): (usize, usize, usize),
        stream: &Stream,
    ) -> Result<(), DriverError> {
        let stream = stream.raw();
        // SAFETY: the caller's promise.
        unsafe {
            match (self.word_bytes, height) {
                (1, 1) => driver.cuMemsetD8Async(address, word as u8, width, stream),
                (2, 1) => driver.cuMemsetD16Async(address, word as u16, width, stream),
                (_, 1) => driver.cuMemsetD32Async(address, word, width, stream),
                (1, _) => driver.cuMemsetD2D8Async(address, pitch, word as u8, width, height, stream),
                (2, _) => driver.cuMemsetD2D16Async(address, pitch, word as u16, width, height, stream),
                _ => driver.cuMemsetD2D32Async(address, pitch, word, width, height, stream),
            }
        }
    }
}

/// Up to four bytes as they lie in memory.
fn word(bytes: &[u8]) -> u32 {
    let mut word = [0; 4];
    word[..bytes.len()].copy_from_slice(bytes);
    u32::from_le_bytes(word)
}
