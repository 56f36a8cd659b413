//! Any error of this crate, and the class of Python exception that each stands for.
//!
//! The errors themselves live beside what raises them.

use thiserror::Error;

use crate::{AllocationError, CopyError, CudaError, DTypeError, DriverError, LayoutError, ReshapeError};

/// The Python exception that an error stands for, so that bindings map errors in one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// `IndexError`.
    Index,
    /// `ValueError`.
    Value,
    /// `TypeError`.
    Type,
    /// An axis that the array does not have. NumPy's `AxisError` is both a `ValueError` and an `IndexError`.
    Axis,
    /// `MemoryError`.
    Memory,
    /// `BufferError`: the data cannot be described to the other side.
    Buffer,
    /// `NotImplementedError`: the request makes sense, but not here.
    NotSupported,
    /// `RuntimeError`: the driver is absent, too old, or refused.
    Driver,
}

/// An error that says which Python exception it stands for.
pub trait Classified: std::error::Error {
    /// The Python exception that this stands for.
    fn kind(&self) -> ErrorKind;

    /// What the driver reported, if that is the cause.
    fn cuda_error(&self) -> Option<&CudaError> {
        None
    }
}

/// Any error of this crate.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// An element type.
    #[error(transparent)]
    DType(#[from] DTypeError),
    /// A shape, strides, or a view.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// A shape that the elements cannot take.
    #[error(transparent)]
    Reshape(#[from] ReshapeError),
    /// Memory that cannot be had.
    #[error(transparent)]
    Allocation(#[from] AllocationError),
    /// A copy that is not possible.
    #[error(transparent)]
    Copy(#[from] CopyError),
    /// The driver.
    #[error(transparent)]
    Driver(#[from] DriverError),
}

impl Classified for Error {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::DType(error) => error.kind(),
            Self::Layout(error) => error.kind(),
            Self::Reshape(error) => error.kind(),
            Self::Allocation(error) => error.kind(),
            Self::Copy(error) => error.kind(),
            Self::Driver(error) => error.kind(),
        }
    }

    fn cuda_error(&self) -> Option<&CudaError> {
        match self {
            Self::Allocation(error) => error.cuda_error(),
            Self::Driver(error) => error.cuda_error(),
            _ => None,
        }
    }
}
