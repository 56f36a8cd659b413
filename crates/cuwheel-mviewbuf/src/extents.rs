//! Which bytes strided memory covers. Only arithmetic on sizes and offsets: no memory is read.

use std::ops::Range;

use thiserror::Error;

/// The half-open range of bytes that strided memory covers, as offsets from the address of its first item.
///
/// `start` is below zero when a stride is negative. Memory without items covers `0..0`. A dimension of negative size
/// describes no memory; it is not refused but put through the same formula, and then `start` may lie above `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extents {
    start: isize,
    end: isize,
}

/// Why the extents of a piece of memory cannot be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ExtentsError {
    /// An item cannot have a negative number of bytes.
    #[error("item size is negative: {itemsize}")]
    NegativeItemSize {
        /// The size given, in bytes.
        itemsize: isize,
    },
    /// There must be one stride for each dimension.
    #[error("shape has {shape} dimensions but there are {strides} strides")]
    DimensionMismatch {
        /// The number of sizes given.
        shape: usize,
        /// The number of strides given.
        strides: usize,
    },
    /// An offset lies further from the first item than a pointer difference can express.
    #[error("the extents of the memory do not fit in {} bits: its shape or strides are too large", isize::BITS)]
    OffsetOverflow,
    /// The memory would lie partly outside the address space.
    #[error("memory that covers the bytes {start} to {end} around address {address:#x} lies outside the address space")]
    AddressOverflow {
        /// The address of the first item.
        address: usize,
        /// The first byte covered, as an offset from the address.
        start: isize,
        /// The end of the bytes covered, as an offset from the address.
        end: isize,
    },
}

impl Extents {
    /// The extents of an array with `shape` items along each dimension, `strides` bytes from one to the next, and
    /// `itemsize` bytes each.
    pub fn of_array(shape: &[isize], strides: &[isize], itemsize: isize) -> Result<Self, ExtentsError> {
        if shape.len() != strides.len() {
            return Err(ExtentsError::DimensionMismatch { shape: shape.len(), strides: strides.len() });
        }
        let mut builder = ExtentsBuilder::new(itemsize)?;
        for (&size, &stride) in shape.iter().zip(strides) {
            builder.add_dimension(size, stride);
        }
        builder.finish()
    }

    /// The first byte covered, as an offset from the first item; zero or negative unless a dimension is negative.
    #[must_use]
    pub fn start(self) -> isize {
        self.start
    }

    /// The end of the bytes covered, as an offset from the first item.
    #[must_use]
    pub fn end(self) -> isize {
        self.end
    }

    /// The addresses covered when the first item is at `address`.
    pub fn at(self, address: usize) -> Result<Range<usize>, ExtentsError> {
        let start = address.checked_add_signed(self.start);
        let end = address.checked_add_signed(self.end);
        match (start, end) {
            (Some(start), Some(end)) => Ok(start..end),
            _ => Err(ExtentsError::AddressOverflow { address, start: self.start, end: self.end }),
        }
    }
}

/// Finds [`Extents`] one dimension at a time, for callers that have no slices and would not trust the length of one.
///
/// The order of the dimensions does not matter, nor does an overflow when another dimension turns out to be empty.
#[derive(Debug, Clone)]
pub struct ExtentsBuilder {
    itemsize: isize,
    /// `None` once an offset did not fit.
    farthest_items: Option<Extents>,
    is_empty: bool,
}

impl ExtentsBuilder {
    /// Starts with a single item of `itemsize` bytes.
    pub fn new(itemsize: isize) -> Result<Self, ExtentsError> {
        if itemsize < 0 {
            return Err(ExtentsError::NegativeItemSize { itemsize });
        }
        Ok(Self { itemsize, farthest_items: Some(Extents { start: 0, end: 0 }), is_empty: false })
    }

    /// Repeats what was added so far `size` times, `stride` bytes apart.
    pub fn add_dimension(&mut self, size: isize, stride: isize) {
        if size == 0 {
            self.is_empty = true;
        }
        self.farthest_items = self.farthest_items.and_then(|items| items.extended(size, stride));
    }

    /// The extents of all dimensions added.
    pub fn finish(self) -> Result<Extents, ExtentsError> {
        if self.is_empty {
            return Ok(Extents { start: 0, end: 0 });
        }
        let Extents { start, end } = self.farthest_items.ok_or(ExtentsError::OffsetOverflow)?;
        let end = end.checked_add(self.itemsize).ok_or(ExtentsError::OffsetOverflow)?;
        Ok(Extents { start, end })
    }
}

impl Extents {
    /// Moves the end on the side to which `stride` points to the last of `size` items.
    fn extended(self, size: isize, stride: isize) -> Option<Self> {
        let last_item = size.checked_sub(1)?.checked_mul(stride)?;
        if stride > 0 {
            Some(Self { end: self.end.checked_add(last_item)?, ..self })
        } else {
            Some(Self { start: self.start.checked_add(last_item)?, ..self })
        }
    }
}
