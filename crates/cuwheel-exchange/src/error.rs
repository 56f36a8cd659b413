//! Errors of the plain crates as Python exceptions, in one place.

use cuwheel_device_array::{Classified, CudaError, ErrorKind};
use pyo3::exceptions::{
    PyBufferError, PyIndexError, PyMemoryError, PyNotImplementedError, PyRuntimeError, PyTypeError, PyValueError,
};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

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
        ErrorKind::Driver => driver_error(py, &message, error.cuda_error()),
    }
}

/// The exception for whatever is wrong with the driver or is reported by it.
fn driver_error(py: Python<'_>, message: &str, error: Option<&CudaError>) -> PyErr {
    let create = || {
        let exception = cuda_error_class(py)?.call1((message,))?;
        if let Some(CudaError { code, name, .. }) = error {
            exception.setattr(intern!(py, "name"), name)?;
            exception.setattr(intern!(py, "code"), code)?;
        }
        Ok(PyErr::from_value(exception))
    };
    create().unwrap_or_else(|error| error)
}

/// The class `CudaError`, a `RuntimeError` with the attributes `name` and `code`. One per shared library: who makes it a
/// member of a module sets its `__module__`.
pub fn cuda_error_class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let create = || {
        let documentation = c"The CUDA driver cannot be used, or reports an error.

Attributes:
    name: The name of the error in CUDA, such as \"CUDA_ERROR_INVALID_VALUE\"; None if the driver was not asked.
    code: The number of the error, or None.";
        let base = py.get_type::<PyRuntimeError>();
        // PyO3 0.30 drops a dictionary of attributes before Python has read it: they are set afterwards.
        let class = PyErr::new_type(py, c"cuwheel_exchange.CudaError", Some(documentation), Some(&base), None)?;
        class.bind(py).setattr(intern!(py, "name"), py.None())?;
        class.bind(py).setattr(intern!(py, "code"), py.None())?;
        Ok(class)
    };
    CLASS.get_or_try_init(py, create).map(|class| class.bind(py))
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
