//! What holds of an array's memory, as NumPy's `flags`.

#![expect(clippy::trivially_copy_pass_by_ref, reason = "methods of Python classes take their instance by reference")]

use cuwheel_device_array::Array;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;

use crate::exception;

/// What holds of the memory of an array: attributes, or keys as in NumPy, such as `flags["C_CONTIGUOUS"]`.
#[pyclass(frozen, module = "_devicearray", eq)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Flags {
    /// Whether the elements lie side by side in C order.
    #[pyo3(get)]
    c_contiguous: bool,
    /// Whether the elements lie side by side in Fortran order.
    #[pyo3(get)]
    f_contiguous: bool,
    /// Whether the elements may be written.
    #[pyo3(get)]
    writeable: bool,
}

impl Flags {
    pub(super) fn of(array: &Array) -> Self {
        Self {
            c_contiguous: array.is_c_contiguous(),
            f_contiguous: array.is_f_contiguous(),
            writeable: !array.is_read_only(),
        }
    }
}

#[pymethods]
impl Flags {
    /// Whether the elements lie side by side in either order.
    #[getter]
    fn forc(&self) -> bool {
        self.c_contiguous || self.f_contiguous
    }

    fn __getitem__(&self, py: Python<'_>, key: &str) -> PyResult<bool> {
        match key {
            "C_CONTIGUOUS" | "C" | "CONTIGUOUS" => Ok(self.c_contiguous),
            "F_CONTIGUOUS" | "F" | "FORTRAN" => Ok(self.f_contiguous),
            "WRITEABLE" | "W" => Ok(self.writeable),
            "FORC" => Ok(self.forc()),
            _ => {
                let message =
                    format!("there is no flag {key:?}; the flags are C_CONTIGUOUS, F_CONTIGUOUS, FORC and WRITEABLE");
                Err(exception::new::<PyKeyError>(py, message))
            }
        }
    }

    fn __repr__(&self) -> String {
        let text = |value| if value { "True" } else { "False" };
        format!(
            "  C_CONTIGUOUS : {}\n  F_CONTIGUOUS : {}\n  WRITEABLE : {}",
            text(self.c_contiguous),
            text(self.f_contiguous),
            text(self.writeable)
        )
    }
}
