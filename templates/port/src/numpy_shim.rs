//! The C shim over NumPy's C API, with Rust's types.
#![expect(dead_code, reason = "it is called by what is still to be ported")]

use std::ffi::c_int;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

unsafe extern "C" {
    fn {= prefix =}_import_numpy() -> c_int;
    fn {= prefix =}_is_array(object: *mut ffi::PyObject) -> c_int;
}

/// Whether an object is an array of NumPy. NumPy is imported by the first call.
pub(crate) fn is_array(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    static IMPORTED: PyOnceLock<()> = PyOnceLock::new();
    IMPORTED.get_or_try_init(object.py(), || {
        // SAFETY: the thread is attached, as `object` shows.
        if unsafe { {= prefix =}_import_numpy() } < 0 { Err(PyErr::fetch(object.py())) } else { Ok(()) }
    })?;
    // SAFETY: NumPy's C API is imported, and `object` is alive while it is borrowed.
    Ok(unsafe { {= prefix =}_is_array(object.as_ptr()) } != 0)
}
