//! Views that permute, drop and repeat dimensions.

use super::{Dims, Layout, LayoutError, check, check_dimensions};

impl Layout {
    /// The layout with its dimensions in another order: dimension `i` of the result is dimension `axes[i]` of this one.
    /// Without `axes` the order is reversed. Negative axes count from the end.
    pub fn transpose(&self, axes: Option<&[i64]>) -> Result<Self, LayoutError> {
        let Some(axes) = axes else {
            let reversed = |numbers: &[i64]| numbers.iter().rev().copied().collect();
            return Ok(self.with_dimensions(reversed(&self.shape), reversed(self.raw_strides())));
        };
        if axes.len() != self.ndim() {
            return Err(LayoutError::AxesCount { axes: axes.len(), dimensions: self.ndim() });
        }
        let mut seen = [false; super::MAXIMUM_DIMENSIONS];
        let (mut shape, mut strides) = (Dims::new(), Dims::new());
        for &axis in axes {
            let position = self.axis(axis)?;
            if std::mem::replace(&mut seen[position], true) {
                return Err(LayoutError::RepeatedAxis { axis });
            }
            shape.push(self.shape[position]);
            strides.push(self.raw_strides()[position]);
        }
        Ok(self.with_dimensions(shape, strides))
    }

    /// The layout without the dimensions `axes`, which must have one element each; without `axes`, without all that do.
    /// Negative axes count from the end.
    pub fn squeeze(&self, axes: Option<&[i64]>) -> Result<Self, LayoutError> {
        let mut dropped = [false; super::MAXIMUM_DIMENSIONS];
        match axes {
            None => self.shape.iter().zip(&mut dropped).for_each(|(&size, dropped)| *dropped = size == 1),
            Some(axes) => {
                for &axis in axes {
                    if std::mem::replace(&mut dropped[self.axis(axis)?], true) {
                        return Err(LayoutError::RepeatedAxis { axis });
                    }
                }
            }
        }
        let (mut shape, mut strides) = (Dims::new(), Dims::new());
        for (axis, (&size, &stride)) in self.shape.iter().zip(self.raw_strides()).enumerate() {
            if !dropped[axis] {
                shape.push(size);
                strides.push(stride);
            } else if size != 1 {
                return Err(LayoutError::SqueezedSize { axis, size });
            }
        }
        Ok(self.with_dimensions(shape, strides))
    }

    /// The layout with the elements of dimensions of size one repeated until it has this shape, and with new dimensions
    /// in front. Different indices lead to the same element, so it should not be written through.
    pub fn broadcast_to(&self, shape: &[i64]) -> Result<Self, LayoutError> {
        check_dimensions(shape.len())?;
        if let Some(axis) = shape.iter().position(|&size| size < 0) {
            return Err(LayoutError::NegativeSize { axis, size: shape[axis] });
        }
        let failed = || LayoutError::Broadcast { from: self.shape.clone(), to: Dims::from_slice(shape) };
        let new = shape.len().checked_sub(self.ndim()).ok_or_else(failed)?;
        let mut strides = Dims::from_elem(0, shape.len());
        for (axis, (&size, &stride)) in self.shape.iter().zip(self.raw_strides()).enumerate() {
            if size == shape[new + axis] {
                strides[new + axis] = if size == 1 { 0 } else { stride };
            } else if size != 1 {
                return Err(failed());
            }
        }
        check(shape, &strides)?;
        Ok(self.with_dimensions(Dims::from_slice(shape), strides))
    }

    /// The dimension that `axis` means.
    fn axis(&self, axis: i64) -> Result<usize, LayoutError> {
        let dimensions = self.ndim();
        usize::try_from(if axis < 0 { axis.saturating_add_unsigned(dimensions as u64) } else { axis })
            .ok()
            .filter(|&position| position < dimensions)
            .ok_or(LayoutError::AxisOutOfBounds { axis, dimensions })
    }
}
