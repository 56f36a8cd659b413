//! A Python class for arrays that an extension returns: nothing but a way to hand them over.

use cuwheel_device_array::Array;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use crate::cuda_interface::cuda_array_interface;
use crate::dunder::{DlpackArguments, dlpack};
use crate::export::dlpack_device;
use crate::producer::{Producer, table_capsule};

/// An array that was made by native code. Any array library takes it over without a copy: `torch.from_dlpack(x)`,
/// `cupy.from_dlpack(x)`, `jax.dlpack.from_dlpack(x)`, `cuwheel.from_dlpack(x)`.
#[pyclass(frozen)]
#[derive(Debug)]
pub struct ExchangedArray(Array);

impl ExchangedArray {
    /// An instance for `array`; return it from a function.
    pub fn new(array: Array) -> Self {
        Self(array)
    }
}

impl Producer for ExchangedArray {
    fn array(&self) -> &Array {
        &self.0
    }

    fn wrap(py: Python<'_>, array: Array) -> PyResult<Py<PyAny>> {
        Ok(Py::new(py, Self(array))?.into_any())
    }
}

#[pymethods]
impl ExchangedArray {
    #[classattr]
    fn __dlpack_c_exchange_api__(py: Python<'_>) -> PyResult<Py<PyCapsule>> {
        table_capsule::<Self>(py)
    }

    #[pyo3(signature = (*, stream = None, max_version = None, dl_device = None, copy = None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<i64>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        dlpack(py, &self.0, &DlpackArguments { stream, max_version, dl_device, copy })
    }

    fn __dlpack_device__(&self) -> (i32, i32) {
        dlpack_device(&self.0)
    }

    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        cuda_array_interface(py, &self.0)
    }
}
