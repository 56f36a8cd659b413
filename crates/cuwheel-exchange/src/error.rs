//! Errors of the plain crates as Python exceptions, in one place.

use cuwheel_device_array::{Classified, ErrorKind};
use pyo3::exceptions::{
    PyBufferError, PyIndexError, PyMemoryError, PyNotImplementedError, PyRuntimeError, PyTypeError, PyValueError,
};
use pyo3::prelude::*;

use crate::exception;
use crate::tensor::TensorError;

/// The Python exception that an error stands for.
#[expect(clippy::needless_pass_by_value, reason = "made for `map_err`")]
pub fn exception(py: Python<'_>, error: impl Classified) -> PyErr {
    let message = error.to_string();
    match error.kind() {
        ErrorKind::Index => exception::new::<PyIndexError>(py, message),
        ErrorKind::Value | ErrorKind::Axis => exception::new::<PyValueError>(py, message),
        ErrorKind::Type => exception::new::<PyTypeError>(py, message),
        ErrorKind::Memory => exception::new::<PyMemoryError>(py, message),
        ErrorKind::Buffer => exception::new::<PyBufferError>(py, message),
        ErrorKind::NotSupported => exception::new::<PyNotImplementedError>(py, message),
        ErrorKind::Driver => exception::new::<PyRuntimeError>(py, message),
    }
}

/// The name of the exception class, for callers that have no Python.
pub(crate) fn class_name(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Index => "IndexError",
        ErrorKind::Value | ErrorKind::Axis => "ValueError",
        ErrorKind::Type => "TypeError",
        ErrorKind::Memory => "MemoryError",
        ErrorKind::Buffer => "BufferError",
        ErrorKind::NotSupported => "NotImplementedError",
        ErrorKind::Driver => "RuntimeError",
    }
}

impl Classified for TensorError {
    fn kind(&self) -> ErrorKind {
        // Whatever is wrong with a description, it is the data that cannot be described.
        ErrorKind::Buffer
    }
}
