//! Exceptions that exist as Python objects from the start.
//!
//! PyO3 creates an exception only when someone looks at it, and to do so attaches to the interpreter. That panics once
//! the interpreter finalises, while `__del__` methods still call into this library. Hence this crate neither creates
//! exceptions by `new_err` nor formats them by `Display`.

use pyo3::PyTypeInfo;
use pyo3::exceptions::{PyException, PyMemoryError, PySystemError};
use pyo3::panic::PanicException;
use pyo3::prelude::*;

/// An exception of class `E`, or the one that kept it from being created.
pub fn new<E: PyTypeInfo>(py: Python<'_>, message: impl AsRef<str>) -> PyErr {
    match py.get_type::<E>().call1((message.as_ref(),)) {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

/// Takes the exception that a C function has set; there is one even if the function forgot.
pub fn fetch(py: Python<'_>) -> PyErr {
    PyErr::take(py).unwrap_or_else(|| new::<PySystemError>(py, "an error was reported without an exception"))
}

/// Whether the exception says no more than that something did not work out. An interrupt says more, and so does the end of
/// the memory: whoever tries another way must not swallow them.
pub fn is_ordinary(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PyException>(py) && !error.is_instance_of::<PyMemoryError>(py)
}

/// Creates the class that PyO3 compares every exception with, so that none has to be created while the interpreter
/// finalises.
pub fn prepare(py: Python<'_>) {
    PanicException::type_object(py);
}

/// Class and message, as the last line of a traceback has them.
pub fn summary(py: Python<'_>, error: &PyErr) -> String {
    let value = error.value(py);
    let class = type_name(value);
    match value.str() {
        Ok(message) => format!("{class}: {}", message.to_string_lossy()),
        Err(_) => class,
    }
}

/// The name of an object's class for a message: with its module, unless the class will not tell.
pub fn type_name(object: &Bound<'_, PyAny>) -> String {
    let class = object.get_type();
    match class.fully_qualified_name().or_else(|_| class.name()) {
        Ok(name) => name.to_string_lossy().into_owned(),
        Err(_) => "an object".to_owned(),
    }
}
