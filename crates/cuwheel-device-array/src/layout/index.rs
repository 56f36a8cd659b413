//! Basic indexing: integers, slices, new axes and an ellipsis, with NumPy's meaning.

use super::{Dims, Layout, LayoutError, MAXIMUM_DIMENSIONS};
use crate::DType;

/// One part of an index expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Index {
    /// `a[i]`: takes the dimension away; negative numbers count from the end.
    Integer(i64),
    /// `a[start:stop:step]`, as in Python; what lies outside of the dimension is cut off.
    Slice {
        /// The first element.
        start: Option<i64>,
        /// The element before which to stop.
        stop: Option<i64>,
        /// From one element to the next; 1 unless given.
        step: Option<i64>,
    },
    /// `a[None]`: a new dimension of one element.
    NewAxis,
    /// `a[...]`: all dimensions that the other parts leave over.
    Ellipsis,
}

impl Layout {
    /// The layout of `a[indices]`, and how many bytes its first element lies behind the first element of this one.
    ///
    /// Fails as NumPy does; and for packed elements when the result would begin inside of a byte.
    pub fn index(&self, indices: &[Index], dtype: DType) -> Result<(Self, i64), LayoutError> {
        let left_over = self.left_over(indices)?;
        let mut result = Selection { layout: self, axis: 0, offset: 0, shape: Dims::new(), strides: Dims::new() };
        let mut has_ellipsis = false;
        for &index in indices {
            match index {
                Index::Integer(index) => result.take(index)?,
                Index::Slice { start, stop, step } => result.slice(start, stop, step.unwrap_or(1))?,
                Index::NewAxis => result.push(1, 0),
                Index::Ellipsis => {
                    has_ellipsis = true;
                    (0..left_over).for_each(|_| result.keep());
                }
            }
        }
        if !has_ellipsis {
            (0..left_over).for_each(|_| result.keep());
        }
        result.finish(dtype)
    }

    /// How many dimensions the parts of an index leave to the ellipsis, or to the end.
    fn left_over(&self, indices: &[Index]) -> Result<usize, LayoutError> {
        let count = |kind: fn(&&Index) -> bool| indices.iter().filter(kind).count();
        if count(|index| matches!(index, Index::Ellipsis)) > 1 {
            return Err(LayoutError::TwoEllipses);
        }
        let used = count(|index| matches!(index, Index::Integer(_) | Index::Slice { .. }));
        let dimensions = self.ndim();
        let left_over =
            dimensions.checked_sub(used).ok_or(LayoutError::TooManyIndices { dimensions, indices: used })?;
        let integers = count(|index| matches!(index, Index::Integer(_)));
        let dimensions = dimensions - integers + count(|index| matches!(index, Index::NewAxis));
        if dimensions > MAXIMUM_DIMENSIONS {
            return Err(LayoutError::TooManyIndexedDimensions { dimensions });
        }
        Ok(left_over)
    }
}

/// The result of the parts of an index that were looked at.
struct Selection<'a> {
    layout: &'a Layout,
    /// The dimension that the next part is about.
    axis: usize,
    /// In the unit of the layout's strides.
    offset: i64,
    shape: Dims,
    strides: Dims,
}

impl Selection<'_> {
    fn push(&mut self, size: i64, stride: i64) {
        self.shape.push(size);
        self.strides.push(stride);
    }

    /// The size and stride of the dimension that is next.
    fn next(&mut self) -> (usize, i64, i64) {
        let axis = self.axis;
        self.axis += 1;
        (axis, self.layout.shape[axis], self.layout.raw_strides()[axis])
    }

    fn keep(&mut self) {
        let (_, size, stride) = self.next();
        self.push(size, stride);
    }

    /// Moves the first element. Where nothing wraps around is an element; where something does, there are none.
    fn advance(&mut self, count: i64, stride: i64) {
        self.offset = self.offset.wrapping_add(count.wrapping_mul(stride));
    }

    fn take(&mut self, index: i64) -> Result<(), LayoutError> {
        let (axis, size, stride) = self.next();
        let position = if index < 0 { index + size } else { index };
        if !(0..size).contains(&position) {
            return Err(LayoutError::IndexOutOfBounds { index, axis, size });
        }
        self.advance(position, stride);
        Ok(())
    }

    fn slice(&mut self, start: Option<i64>, stop: Option<i64>, step: i64) -> Result<(), LayoutError> {
        if step == 0 {
            return Err(LayoutError::ZeroStep);
        }
        let (_, size, stride) = self.next();
        // Where a slice may begin and end: one before the first element when it goes backwards.
        let (low, high) = if step > 0 { (0, size) } else { (-1, size - 1) };
        let bound = |position: i64| if position < 0 { (position + size).max(low) } else { position.min(high) };
        let (first, last) = if step > 0 { (low, high) } else { (high, low) };
        let (start, stop) = (start.map_or(first, bound), stop.map_or(last, bound));
        let distance = if step > 0 { stop - start } else { start - stop };
        if distance <= 0 {
            self.push(0, stride);
            return Ok(());
        }
        // The quotient is at most the distance, which is at most the size.
        let count = ((distance - 1).unsigned_abs() / step.unsigned_abs()).cast_signed() + 1;
        self.advance(start, stride);
        // The step can be as large as it likes when there is nothing to step to.
        self.push(count, stride.checked_mul(step).unwrap_or(stride));
        Ok(())
    }

    fn finish(self, dtype: DType) -> Result<(Layout, i64), LayoutError> {
        let is_empty = self.shape.contains(&0);
        let offset = if is_empty { 0 } else { self.layout.offset_bytes(self.offset, dtype)? };
        Ok((self.layout.with_dimensions_of(self.shape, self.strides, dtype)?, offset))
    }
}
