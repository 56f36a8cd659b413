//! The extension module `{= package =}._native`: what Python sees of this crate.
//!
//! Importing it imports nothing else, and needs neither a CUDA driver nor a GPU.

mod device;
mod grid;
{% if shim %}
mod host;
{% endif %}
mod kernels;

use pyo3::prelude::*;

/// The native functions of {= package =}; import them from there.
#[pymodule(gil_used = false)]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let cuda_error = cuwheel_exchange::cuda_error_class(module.py())?;
    cuda_error.setattr("__module__", "{= package =}")?;
    module.add("CudaError", cuda_error)?;
    module.add_function(wrap_pyfunction!(device::saxpy, module)?)?;
    module.add_function(wrap_pyfunction!(device::sum, module)?)?;
{% if shim %}
    module.add_function(wrap_pyfunction!(host::host_sum, module)?)?;
{% endif %}
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
