//! The Python module `_devicearray` of packages whose device arrays are written in Python: their common base class.
//!
//! numba-cuda up to 0.22.2 has it. Names and the capsule follow the module of that name there. The library calls it
//! `_devicearray_base`, because `_devicearray` is the module with arrays of our own.

use std::ffi::{CString, c_void};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyTuple};

use crate::exception;
use crate::submodule::Submodule;

/// The module, as the library's table of modules lists it.
pub(crate) const SUBMODULE: Submodule = Submodule { name: "_devicearray_base", populate };

/// The name of the module in Python, and of the capsule in it.
const PYTHON_NAME: &str = "_devicearray";
const CAPSULE: &str = "_DEVICEARRAY_API";

fn populate(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let name = module.name()?;
    let package = name.to_str()?.strip_suffix(SUBMODULE.name).unwrap_or_default();
    let python_name = format!("{package}{PYTHON_NAME}");
    module.add_class::<DeviceArray>()?;
    let class = py.get_type::<DeviceArray>();
    if class.module()? == PYTHON_NAME {
        class.setattr("__module__", &python_name)?;
    }
    let capsule_name = CString::new(format!("{python_name}.{CAPSULE}"))
        .map_err(|error| exception::new::<PyValueError>(py, error.to_string()))?;
    // Once for each import of the library. A capsule may outlive everything that could free its name.
    let capsule_name = Box::leak(capsule_name.into_boxed_c_str());
    let api = Api([class.as_type_ptr().cast()]);
    module.add(CAPSULE, PyCapsule::new_with_value(py, api, capsule_name)?)
}

/// Base class of device arrays. It has no members, so that a class may derive from it and from another class with them.
///
/// Constructor arguments are ignored.
#[pyclass(subclass, frozen, module = "_devicearray")]
pub(crate) struct DeviceArray;

#[pymethods]
impl DeviceArray {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> Self {
        Self
    }
}

/// What the capsule points to: an array of pointers to classes, whose only one is that of [`DeviceArray`]. Classes of
/// the library are never freed.
#[repr(transparent)]
struct Api([*mut c_void; 1]);

// SAFETY: nothing is done with the pointer but to hand it to whoever opens the capsule.
unsafe impl Send for Api {}
