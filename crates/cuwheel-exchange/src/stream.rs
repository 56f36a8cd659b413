//! Streams out of Python objects: whatever the libraries of the field call a stream.

use std::any::Any;
use std::sync::Arc;

use cuwheel_device_array::Stream;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyInt;
use pyo3::{ffi, intern};

use crate::exception;

/// A stream that a caller named: an integer handle, or an object of torch, CuPy, cuda.core, numba or anyone with
/// `__cuda_stream__`.
///
/// As a typed argument of a function it reads any of these:
///
/// - an integer: a `CUstream` handle, where 0 and 1 mean the legacy default stream and 2 the per-thread default stream;
/// - an object with `__cuda_stream__`, a method or a pair, that gives `(0, handle)`;
/// - an object with `cuda_stream` (torch), `ptr` (CuPy) or `handle` (numba).
///
/// The object is kept alive as long as the stream is used. A bare handle is the caller's to keep, and to get right: the
/// driver cannot tell whether one is valid.
#[derive(Debug, Clone)]
pub struct StreamArgument(pub Stream);

impl<'py> FromPyObject<'_, 'py> for StreamArgument {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let (handle, keep_alive) = if object.is_instance_of::<PyInt>() {
            (handle(&object)?, None)
        } else if let Some(handle) = handle_of(&object)? {
            let owner: Arc<dyn Any + Send + Sync> = Arc::new(object.to_owned().unbind());
            (handle, Some(owner))
        } else if is_index(&object) {
            (handle(&object)?, None)
        } else {
            return Err(no_stream(&object));
        };
        // SAFETY: the object that owns the stream is kept; a number is vouched for by who passes it, as documented.
        Ok(Self(unsafe { Stream::borrowed(handle, keep_alive) }))
    }
}

/// Whether an object is an integer by what it can do, such as one of NumPy's.
fn is_index(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: the thread is attached, as the type of `object` witnesses.
    unsafe { ffi::PyIndex_Check(object.as_ptr()) != 0 }
}

fn no_stream(object: &Bound<'_, PyAny>) -> PyErr {
    let message = format!(
        "{} is no stream; pass a stream of torch, CuPy, cuda.core or numba, an object with __cuda_stream__, or an integer \
         handle",
        exception::type_name(object)
    );
    exception::new::<PyTypeError>(object.py(), message)
}

/// The handle inside a stream object, if it is one.
fn handle_of(object: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
    let py = object.py();
    if let Some(protocol) = object.getattr_opt(intern!(py, "__cuda_stream__"))? {
        let pair = if protocol.is_callable() { protocol.call0()? } else { protocol };
        let (version, handle): (u64, Bound<'_, PyAny>) = pair.extract()?;
        if version != 0 {
            let message = format!("version {version} of __cuda_stream__ is not known; this library reads version 0");
            return Err(exception::new::<PyValueError>(py, message));
        }
        return self::handle(&handle).map(Some);
    }
    for name in [intern!(py, "cuda_stream"), intern!(py, "ptr"), intern!(py, "handle")] {
        if let Some(value) = object.getattr_opt(name)? {
            // `ctypes` pointers hold their number, or None for a null pointer.
            let value = value.getattr_opt(intern!(py, "value"))?.unwrap_or(value);
            return if value.is_none() { Ok(Some(0)) } else { handle(&value).map(Some) };
        }
    }
    Ok(None)
}

/// A handle as a number.
fn handle(number: &Bound<'_, PyAny>) -> PyResult<usize> {
    let py = number.py();
    let number = number.call_method0(intern!(py, "__int__"))?;
    number.extract().map_err(|error: PyErr| {
        if error.is_instance_of::<PyOverflowError>(py) {
            let message = format!("{number} is no handle of a stream: handles are addresses, or 0, 1 and 2");
            exception::new::<PyValueError>(py, message)
        } else {
            error
        }
    })
}
