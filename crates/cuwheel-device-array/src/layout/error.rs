//! What can be wrong with a shape, its strides, or a request for a view.

use std::fmt;

use thiserror::Error;

use super::{Dims, MAXIMUM_DIMENSIONS};
use crate::{Classified, DType, ErrorKind};

/// Why a layout cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// A dimension cannot have fewer than no elements.
    #[error("the size of dimension {axis} is {size}; sizes must not be negative")]
    NegativeSize {
        /// The dimension.
        axis: usize,
        /// The size given.
        size: i64,
    },
    /// Each dimension has one stride.
    #[error("{strides} strides were given for {dimensions} dimensions; give one for each")]
    StrideCount {
        /// The number of dimensions.
        dimensions: usize,
        /// The number of strides.
        strides: usize,
    },
    /// More dimensions than supported.
    #[error("an array of {dimensions} dimensions is not supported; it can have up to {MAXIMUM_DIMENSIONS}")]
    TooManyDimensions {
        /// The number of dimensions.
        dimensions: usize,
    },
    /// The number of elements, or of the bytes that they span, does not fit.
    #[error("the array would be too large to be addressed; use smaller sizes or strides")]
    TooLarge,
    /// Packed elements have no strides in bytes.
    #[error(
        "elements of type {dtype} share bytes, so that the step from one to the next is no number of bytes; view the \
         array as uint8 first"
    )]
    PackedElements {
        /// The type of the elements.
        dtype: DType,
    },
    /// Packed elements do not all begin with a byte.
    #[error(
        "an array cannot begin inside of a byte, which holds several elements of type {dtype}; choose a beginning that is a \
         whole number of bytes, or view the array as uint8 first"
    )]
    InsideByte {
        /// The type of the elements.
        dtype: DType,
    },
    /// There is no such element.
    #[error("index {index} is out of bounds for axis {axis} with size {size}; use {}", valid_indices(*size))]
    IndexOutOfBounds {
        /// The index given.
        index: i64,
        /// The dimension.
        axis: usize,
        /// Its number of elements.
        size: i64,
    },
    /// More indices than dimensions.
    #[error("too many indices: the array has {dimensions} dimensions, but {indices} were indexed; leave some out")]
    TooManyIndices {
        /// The number of dimensions.
        dimensions: usize,
        /// The number of indices.
        indices: usize,
    },
    /// It would not be clear which dimensions each stands for.
    #[error("an index can have only one ellipsis ('...'); write out the dimensions that the others stand for")]
    TwoEllipses,
    /// New dimensions are too many.
    #[error("the index would make {dimensions} dimensions; an array can have up to {MAXIMUM_DIMENSIONS}")]
    TooManyIndexedDimensions {
        /// The number of dimensions.
        dimensions: usize,
    },
    /// A slice that never moves.
    #[error("the step of a slice cannot be zero; leave it out to take every element")]
    ZeroStep,
    /// There is no such dimension.
    #[error(
        "axis {axis} is out of bounds for an array of {dimensions} dimensions; axes are counted from 0, or back from -1"
    )]
    AxisOutOfBounds {
        /// The axis given.
        axis: i64,
        /// The number of dimensions.
        dimensions: usize,
    },
    /// A permutation names every dimension.
    #[error("{axes} axes were given for {dimensions} dimensions; name each once")]
    AxesCount {
        /// The number of axes.
        axes: usize,
        /// The number of dimensions.
        dimensions: usize,
    },
    /// A dimension is named more than once.
    #[error("axis {axis} is given twice; name each once")]
    RepeatedAxis {
        /// The axis, as given.
        axis: i64,
    },
    /// Only dimensions of one element can be dropped.
    #[error("dimension {axis} has {size} elements; only a dimension of one element can be squeezed out")]
    SqueezedSize {
        /// The dimension.
        axis: usize,
        /// Its number of elements.
        size: i64,
    },
    /// The shapes do not fit together.
    #[error(
        "an array of shape {} cannot be broadcast to the shape {}; from the last dimension on, each size must be the same \
         or 1",
        Tuple(from),
        Tuple(to)
    )]
    Broadcast {
        /// The shape of the array.
        from: Dims,
        /// The shape that was asked for.
        to: Dims,
    },
    /// Elements of another size need a dimension to be more or fewer in.
    #[error(
        "an array without dimensions cannot be viewed as {to} instead of {from}, which has another size; reshape it first"
    )]
    ViewOfScalar {
        /// The type of the elements.
        from: DType,
        /// The type asked for.
        to: DType,
    },
    /// Elements of another size would lie across gaps.
    #[error(
        "to view {from} as {to}, which has another size, the last dimension must be contiguous; copy the array first"
    )]
    ViewOfGaps {
        /// The type of the elements.
        from: DType,
        /// The type asked for.
        to: DType,
    },
    /// The last dimension is no whole number of the new elements, or an old element is none.
    #[error(
        "{size} elements of type {from} in the last dimension cannot be viewed as {to}; a smaller type must go into the \
         larger one without rest, and the last dimension must be a whole number of elements"
    )]
    ViewSize {
        /// The type of the elements.
        from: DType,
        /// The type asked for.
        to: DType,
        /// The number of elements in the last dimension.
        size: i64,
    },
}

/// Numbers as Python writes a tuple.
pub(crate) struct Tuple<'a>(pub(crate) &'a [i64]);

impl fmt::Display for Tuple<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [only] => write!(formatter, "({only},)"),
            numbers => {
                let numbers: Vec<_> = numbers.iter().map(i64::to_string).collect();
                write!(formatter, "({})", numbers.join(", "))
            }
        }
    }
}

fn valid_indices(size: i64) -> String {
    if size == 0 { "a slice, for it has no element".to_owned() } else { format!("-{size} to {}", size - 1) }
}

impl Classified for LayoutError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::PackedElements { .. } | Self::InsideByte { .. } => ErrorKind::Buffer,
            Self::IndexOutOfBounds { .. }
            | Self::TooManyIndices { .. }
            | Self::TwoEllipses
            | Self::TooManyIndexedDimensions { .. } => ErrorKind::Index,
            Self::AxisOutOfBounds { .. } => ErrorKind::Axis,
            _ => ErrorKind::Value,
        }
    }
}
