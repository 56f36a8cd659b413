//! Our own arrays as others see them: what makes one of an array, and whether an object is one, at the cost of a comparison,
//! since launches ask for every argument.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use cuwheel_device_array::Array;
use cuwheel_exchange::Producer;
use pyo3::ffi;
use pyo3::prelude::*;

use super::DeviceArray;

/// The class, once the library was imported; null before.
static CLASS: AtomicPtr<ffi::PyTypeObject> = AtomicPtr::new(ptr::null_mut());

/// Notes the class.
pub(super) fn prepare(py: Python<'_>) {
    CLASS.store(py.get_type::<DeviceArray>().as_type_ptr(), Ordering::Relaxed);
}

impl DeviceArray {
    /// The object, if it is one of ours: the class has no subclasses.
    #[inline]
    pub(crate) fn known<'a, 'py>(object: Borrowed<'a, 'py, PyAny>) -> Option<Borrowed<'a, 'py, Self>> {
        let is_own = object.get_type_ptr() == CLASS.load(Ordering::Relaxed);
        // SAFETY: the class of the object was compared.
        is_own.then(|| unsafe { object.cast_unchecked() })
    }
}

impl Producer for DeviceArray {
    fn array(&self) -> &Array {
        &self.array
    }

    fn wrap(py: Python<'_>, array: Array) -> PyResult<Py<PyAny>> {
        Ok(Py::new(py, Self { array })?.into_any())
    }
}
