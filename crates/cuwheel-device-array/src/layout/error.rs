//! What can be wrong with a shape, its strides, or a request for a view.

use thiserror::Error;

use super::MAXIMUM_DIMENSIONS;
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
}

impl Classified for LayoutError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::NegativeSize { .. } | Self::StrideCount { .. } | Self::TooManyDimensions { .. } | Self::TooLarge => {
                ErrorKind::Value
            }
            Self::PackedElements { .. } => ErrorKind::Buffer,
        }
    }
}
