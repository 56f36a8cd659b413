//! Why elements cannot be copied or filled in.

use thiserror::Error;

use crate::layout::Tuple;
use crate::{Classified, DType, Dims, ErrorKind};

/// Why elements cannot be copied or filled in.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CopyError {
    /// The arrays have other element types.
    #[error("elements of type {other} cannot be copied to or from elements of type {one}; convert them first")]
    DType {
        /// The type in the array.
        one: DType,
        /// The type on the other side.
        other: DType,
    },
    /// The arrays have other shapes.
    #[error(
        "arrays of shapes {} and {} cannot be copied to one another; broadcast or reshape one of them first",
        Tuple(one),
        Tuple(other)
    )]
    Shape {
        /// The shape of the array.
        one: Dims,
        /// The shape on the other side.
        other: Dims,
    },
    /// Nothing may be written to the array.
    #[error("the array is read-only; write to a copy of it")]
    ReadOnly,
    /// A copy to or from the host is over when it returns, and one in a graph is not.
    #[error(
        "elements cannot be copied between a device and ordinary host memory on a stream that is being captured into a \
         graph; copy before or after the capture, or between device and pinned arrays"
    )]
    Capturing,
    /// The bytes given are not those of one element.
    #[error("{given} bytes were given for an element of type {dtype}; give the bytes of one element")]
    ElementSize {
        /// The number of bytes given.
        given: usize,
        /// The type of the elements.
        dtype: DType,
    },
}

impl Classified for CopyError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::DType { .. } => ErrorKind::Type,
            Self::Capturing => ErrorKind::Driver,
            Self::Shape { .. } | Self::ReadOnly | Self::ElementSize { .. } => ErrorKind::Value,
        }
    }
}
