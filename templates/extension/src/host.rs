//! A function on NumPy arrays, through the C shim: what NumPy's C API has as macros, Rust cannot call.

use std::ffi::c_int;

use pyo3::ffi::PyObject;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

// The functions of shim.c. They need a thread that is attached to the interpreter, and set an exception if they give -1.
unsafe extern "C" {
    fn shim_import_numpy() -> c_int;
    fn shim_sum(array: *mut PyObject, sum: *mut f64) -> c_int;
}

/// Return the sum of all elements of a NumPy array, in double precision, for comparison with what a GPU computes.
///
/// NumPy is imported by the first call.
///
/// Args:
///     array: A NumPy array of float32 of any shape and strides.
///
/// Raises:
///     TypeError: It is no NumPy array, or its elements are not float32 in this machine's byte order.
///     ImportError: NumPy is not installed, or too old.
#[pyfunction]
pub fn host_sum(array: &Bound<'_, PyAny>) -> PyResult<f64> {
    static NUMPY: PyOnceLock<()> = PyOnceLock::new();
    let py = array.py();
    // SAFETY: the thread is attached, as `py` shows.
    NUMPY.get_or_try_init(py, || checked(py, unsafe { shim_import_numpy() }))?;
    let mut sum = 0.0;
    // SAFETY: as above; NumPy is imported, and the object is alive. The pointer is to a local variable.
    checked(py, unsafe { shim_sum(array.as_ptr(), &raw mut sum) })?;
    Ok(sum)
}

fn checked(py: Python<'_>, status: c_int) -> PyResult<()> {
    if status == 0 {
        Ok(())
    } else {
        Err(PyErr::fetch(py))
    }
}
