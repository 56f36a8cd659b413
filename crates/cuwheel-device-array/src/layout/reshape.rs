//! The same elements in the same order under another shape, as long as their memory allows.

use thiserror::Error;

use super::error::Tuple;
use super::{Dims, Layout, LayoutError, Order, check_dimensions};
use crate::{Classified, ErrorKind};

/// Why elements cannot take another shape.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReshapeError {
    /// The elements lie so that no strides give the shape; those of a copy would.
    #[error(
        "an array of shape {} and these strides cannot take the shape {} without a copy; copy it first, or allow a copy",
        Tuple(from),
        Tuple(to)
    )]
    NeedsCopy {
        /// The shape that the array has.
        from: Dims,
        /// The shape that was asked for, with the unknown size filled in.
        to: Dims,
    },
    /// The shape is one for another number of elements.
    #[error("an array of {size} elements cannot take the shape {}; the sizes must multiply to {size}", Tuple(shape))]
    SizeMismatch {
        /// The number of elements.
        size: usize,
        /// The shape that was asked for.
        shape: Dims,
    },
    /// More than one size was left open.
    #[error("the shape {} leaves more than one size open; only one can be negative", Tuple(shape))]
    SeveralUnknown {
        /// The shape that was asked for.
        shape: Dims,
    },
    /// The shape is none.
    #[error(transparent)]
    Layout(#[from] LayoutError),
}

impl Classified for ReshapeError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Layout(error) => error.kind(),
            _ => ErrorKind::Value,
        }
    }
}

impl Layout {
    /// The shape that `shape` means for these elements: a negative size stands for whatever is left over, as in NumPy.
    pub fn resolve_shape(&self, shape: &[i64]) -> Result<Dims, ReshapeError> {
        check_dimensions(shape.len())?;
        let mut resolved = Dims::from_slice(shape);
        let mut unknown = resolved.iter_mut().filter(|size| **size < 0);
        let open = unknown.next();
        if unknown.next().is_some() {
            return Err(ReshapeError::SeveralUnknown { shape: Dims::from_slice(shape) });
        }
        let size = self.size();
        let mismatch = || ReshapeError::SizeMismatch { size, shape: Dims::from_slice(shape) };
        // A product that does not fit is not the number of elements either, unless a size is zero; NumPy refuses that
        // too.
        let known = shape.iter().filter(|size| **size >= 0);
        let known = known.copied().try_fold(1_i64, i64::checked_mul).ok_or_else(mismatch)?;
        let elements = size as i128;
        match open {
            None if elements == i128::from(known) => {}
            Some(open) if known != 0 && elements % i128::from(known) == 0 => {
                *open = i64::try_from(elements / i128::from(known)).map_err(|_| mismatch())?;
            }
            _ => return Err(mismatch()),
        }
        Ok(resolved)
    }

    /// The layout of the same elements, in the order of C, as an array of another shape; at most one size may be
    /// negative, which stands for whatever is left over.
    ///
    /// Fails with [`ReshapeError::NeedsCopy`] where only a copy can have the shape.
    pub fn reshape(&self, shape: &[i64]) -> Result<Self, ReshapeError> {
        let shape = self.resolve_shape(shape)?;
        if self.is_c_contiguous() {
            return Ok(Self::contiguous(&shape, Order::C)?);
        }
        match self.regroup(&shape) {
            Some(strides) => Ok(self.with_dimensions(shape, strides)),
            None => Err(ReshapeError::NeedsCopy { from: self.shape.clone(), to: shape }),
        }
    }

    /// All elements, in the order of C, as an array of one dimension. Fails where that takes a copy.
    pub fn ravel(&self) -> Result<Self, ReshapeError> {
        self.reshape(&[-1])
    }

    /// The strides with which these elements have another shape, if any do. There is at least one element.
    ///
    /// Both shapes fall into groups of adjacent dimensions with equally many elements, from the outermost on. Inside of
    /// a group, the dimensions can be divided differently if the elements of the group are equally far apart.
    fn regroup(&self, shape: &[i64]) -> Option<Dims> {
        // Dimensions of one element do not say where elements lie.
        let mut old = self.shape.iter().copied().zip(self.raw_strides().iter().copied()).filter(|&(size, _)| size != 1);
        let mut strides = Dims::with_capacity(shape.len());
        let mut last_stride = 1;
        let mut rest = shape;
        while let Some((mut old_size, mut stride)) = old.next() {
            let mut count = 0;
            let mut new_size = 1;
            while new_size != old_size {
                if new_size < old_size {
                    new_size *= rest.get(count)?;
                    count += 1;
                } else {
                    let (size, inner_stride) = old.next()?;
                    if inner_stride.checked_mul(size) != Some(stride) {
                        return None;
                    }
                    old_size *= size;
                    stride = inner_stride;
                }
            }
            let (group, others) = rest.split_at(count);
            rest = others;
            strides.extend(group_strides(group, stride));
            last_stride = stride;
        }
        // Only dimensions of one element are left.
        strides.extend(rest.iter().map(|_| last_stride));
        Some(strides)
    }
}

/// The strides of dimensions whose elements are `stride` apart, one after the other.
fn group_strides(sizes: &[i64], stride: i64) -> Dims {
    let mut strides = Dims::from_elem(stride, sizes.len());
    for axis in (1..sizes.len()).rev() {
        // Only a dimension of one element can be so far out that this does not fit, and then it does not matter.
        strides[axis - 1] = strides[axis].saturating_mul(sizes[axis]);
    }
    strides
}
