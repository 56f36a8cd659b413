//! The extension module `_native`: entry point of the one shared library in the wheel.
//!
//! Nothing is computed here. Each Python module has a file of its own, and the plain crates do the work. Importing the
//! library imports no other module and needs neither NumPy nor a CUDA driver.

mod buffer;
mod mviewbuf;
mod numpy;
mod submodule;

use pyo3::prelude::*;

use submodule::Submodule;

/// The Python modules in this library, in the order in which they are created.
const SUBMODULES: &[Submodule] = &[mviewbuf::SUBMODULE, numpy::SUBMODULE];

/// The shared library of this package. It holds the package's other native modules and creates them when it is
/// imported; import those by their own names.
#[pymodule(gil_used = false)]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    submodule::install(module, SUBMODULES)
}
