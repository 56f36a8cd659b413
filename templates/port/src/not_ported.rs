//! What the old modules offer and nobody has ported yet: names that can be imported, and that say so when they are called.
//!
//! Not for keeping: the file goes when the last entry is ported.

use std::ffi::CStr;

use pyo3::exceptions::PyNotImplementedError;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyTuple};

/// A function or a class of the old module.
pub(crate) struct Entry {
    /// Its name in Python.
    pub(crate) name: &'static CStr,
    /// What it is in the old sources.
    pub(crate) native: &'static str,
    /// The file and the line there.
    pub(crate) place: &'static str,
    /// Its documentation.
    pub(crate) doc: &'static CStr,
}

impl Entry {
    fn error(&self, module: &str) -> PyErr {
        let name = self.name.to_string_lossy();
        let message = format!("{module}.{name} is not ported yet: it was {} in {}", self.native, self.place);
        PyNotImplementedError::new_err(message)
    }
}

/// Adds a function for each entry that raises `NotImplementedError`.
pub(crate) fn add(module: &Bound<'_, PyModule>, entries: &'static [Entry]) -> PyResult<()> {
    let module_name = module.name()?.to_string();
    for entry in entries {
        let module_name = module_name.clone();
        let raise = move |_: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| -> PyResult<()> {
            Err(entry.error(&module_name))
        };
        let function = PyCFunction::new_closure(module.py(), Some(entry.name), Some(entry.doc), raise)?;
        module.add(&*entry.name.to_string_lossy(), function)?;
    }
    Ok(())
}
