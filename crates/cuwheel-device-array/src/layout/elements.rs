//! The numbers of a layout while they are still someone else's: checked where they are, and copied once.
//!
//! This is how imports get a layout. A [`Layout`] is a few hundred bytes; where it is made first and looked at
//! afterwards, it is copied from one place to the next right after it was written, which costs more than everything else.

use std::ops::Range;

use super::{Layout, Strides, are_dense, bytes_of_elements, check, dims, size};
use crate::{DType, LayoutError};

/// A shape and strides counted in elements, which a [`Layout`] can be made of.
///
/// Always holds what [`Layout`] promises of its numbers, as long as the slices do not change, which references forbid.
#[derive(Debug, Clone, Copy)]
pub struct Elements<'a> {
    shape: &'a [i64],
    strides: &'a [i64],
    /// The lowest and the highest place of an element; `None` without elements.
    reach: Option<(i64, i64)>,
}

impl<'a> Elements<'a> {
    /// Checks the numbers as [`Layout::from_elements`] does.
    pub fn new(shape: &'a [i64], strides: &'a [i64]) -> Result<Self, LayoutError> {
        if shape.len() != strides.len() {
            return Err(LayoutError::StrideCount { dimensions: shape.len(), strides: strides.len() });
        }
        let reach = check(shape, strides)?.map(|reach| (reach.start, reach.end));
        Ok(Self { shape, strides, reach })
    }

    /// The number of elements along each dimension.
    #[inline]
    pub fn shape(self) -> &'a [i64] {
        self.shape
    }

    /// The strides in elements.
    #[inline]
    pub fn strides(self) -> &'a [i64] {
        self.strides
    }

    /// Whether there is no element.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.reach.is_none()
    }

    /// The number of elements.
    #[inline]
    pub fn size(self) -> usize {
        size(self.shape)
    }

    /// Whether there is exactly one element.
    #[inline]
    pub fn is_single(self) -> bool {
        self.shape.iter().all(|&size| size == 1)
    }

    /// As [`Layout::is_c_contiguous`].
    #[inline]
    pub fn is_c_contiguous(self) -> bool {
        are_dense(self.strides, self.shape.iter().copied().enumerate().rev())
    }

    /// As [`Layout::is_f_contiguous`].
    #[inline]
    pub fn is_f_contiguous(self) -> bool {
        are_dense(self.strides, self.shape.iter().copied().enumerate())
    }

    /// The number of dimensions.
    #[inline]
    pub fn ndim(self) -> usize {
        self.shape.len()
    }

    /// As [`Layout::extents_bytes`].
    #[inline]
    pub fn extents_bytes(self, dtype: DType) -> Result<Range<i64>, LayoutError> {
        match self.reach {
            Some((low, high)) => bytes_of_elements(low..high, dtype),
            None => Ok(0..0),
        }
    }

    /// The layout: a copy of the numbers.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "it is to be written where it stays")]
    pub fn layout(self) -> Layout {
        Layout { shape: dims(self.shape), strides: Strides::Elements(dims(self.strides)) }
    }
}
