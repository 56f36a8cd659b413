//! The same bytes as elements of another type.

use super::{Dims, Layout, LayoutError, Strides};
use crate::DType;

impl Layout {
    /// The layout of the same bytes as elements of type `to` instead of `from`.
    ///
    /// Elements of the same size change nothing but their meaning. Otherwise the last dimension gets more or fewer
    /// elements; it must be contiguous then, and hold a whole number of them. As in NumPy, a smaller element must go
    /// into the larger one without rest, unless elements are packed.
    pub fn view(&self, from: DType, to: DType) -> Result<Self, LayoutError> {
        if from.bits() == to.bits() {
            return Ok(self.clone());
        }
        let Some((&last, outer)) = self.shape.split_last() else { return Err(LayoutError::ViewOfScalar { from, to }) };
        let strides = self.strides_bits(from)?;
        let (old_bits, new_bits) = (bits(from)?, bits(to)?);
        if last != 1 && !self.is_empty() && strides[outer.len()] != old_bits {
            return Err(LayoutError::ViewOfGaps { from, to });
        }
        let is_packed = from.size_bytes().is_none() || to.size_bytes().is_none();
        let size_bits = last.checked_mul(old_bits).ok_or(LayoutError::TooLarge)?;
        if size_bits % new_bits != 0 || !is_packed && new_bits < old_bits && old_bits % new_bits != 0 {
            return Err(LayoutError::ViewSize { from, to, size: last });
        }
        let mut shape = self.shape.clone();
        shape[outer.len()] = size_bits / new_bits;
        let mut strides = strides;
        strides[outer.len()] = new_bits;
        from_bits(&shape, &strides, to)
    }

    /// The strides in bits.
    fn strides_bits(&self, dtype: DType) -> Result<Dims, LayoutError> {
        let unit = match self.strides {
            Strides::Elements(_) => bits(dtype)?,
            Strides::Bytes(_) => 8,
        };
        let is_empty = self.is_empty();
        let in_bits = |(&stride, &size): (&i64, &i64)| match stride.checked_mul(unit) {
            Some(stride) => Ok(stride),
            // A step that nobody takes can be anything.
            None if is_empty || size == 1 => Ok(unit),
            None => Err(LayoutError::TooLarge),
        };
        self.raw_strides().iter().zip(&self.shape).map(in_bits).collect()
    }
}

fn bits(dtype: DType) -> Result<i64, LayoutError> {
    i64::try_from(dtype.bits()).map_err(|_| LayoutError::TooLarge)
}

/// Elements at strides counted in bits.
fn from_bits(shape: &[i64], strides: &[i64], dtype: DType) -> Result<Layout, LayoutError> {
    let unit = bits(dtype)?;
    let is_empty = shape.contains(&0);
    let is_used = |axis: usize| !is_empty && shape[axis] != 1;
    let divided_by = |unit: i64| -> Option<Dims> {
        let divide = |(axis, &stride): (usize, &i64)| match stride % unit {
            0 => Some(stride / unit),
            _ if is_used(axis) => None,
            _ => Some(1),
        };
        strides.iter().enumerate().map(divide).collect()
    };
    match (divided_by(unit), divided_by(8)) {
        (Some(elements), _) => Layout::from_elements(shape, &elements),
        (None, Some(bytes)) if dtype.size_bytes().is_some() => Layout::from_bytes(shape, &bytes, dtype),
        _ => Err(LayoutError::PackedElements { dtype }),
    }
}
