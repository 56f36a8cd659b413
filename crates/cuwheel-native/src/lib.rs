//! The extension module `_native`: entry point of the one shared library in the wheel.
//!
//! Nothing is computed here. Each Python module has a file of its own, and the plain crates do the work. Importing the
//! library imports no other module and needs neither NumPy nor a CUDA driver.

mod buffer;
mod class_notes;
mod devicearray;
mod devicearray_base;
mod dispatcher;
mod helperlib;
mod kernel;
mod mviewbuf;
mod numba_launch;
mod number;
mod numpy;
mod object_memo;
mod submodule;
mod type_manager;
mod typeconv;

use cuwheel_exchange::exception;
use pyo3::prelude::*;

use submodule::Submodule;

/// The Python modules in this library, in the order in which they are created.
const SUBMODULES: &[Submodule] = &[
    devicearray::SUBMODULE,
    mviewbuf::SUBMODULE,
    numpy::SUBMODULE,
    typeconv::SUBMODULE,
    dispatcher::SUBMODULE,
    helperlib::SUBMODULE,
    devicearray_base::SUBMODULE,
    kernel::SUBMODULE,
];

/// The shared library of this package. Its members are what the package's modules of the same names are made of; import
/// those instead.
#[pymodule(gil_used = false)]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    submodule::install(module, SUBMODULES)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
