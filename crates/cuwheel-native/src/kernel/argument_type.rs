//! The class `ArgumentType`: what an overload is chosen by of an argument.

#![expect(clippy::trivially_copy_pass_by_ref, reason = "methods of Python classes take their instance by reference")]

use cuwheel_device_array::MAXIMUM_DIMENSIONS;
use cuwheel_dispatcher::specialize::{self, ArrayOrder};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::devicearray::{DTypeArgument, PyDType};
use crate::exception;

/// What an overload is chosen by of an argument: of an array its data type, number of dimensions and order, and the data type
/// of a number.
///
/// Written as `float32[2, C]` for an array with two dimensions, and `int64` for a number.
///
/// Args:
///     dtype: The data type of the elements, or of the number.
///     ndim: The number of dimensions of an array; None for a number.
///     order: "C" if the elements lie one beside the other with the last index varying fastest, "F" if the first does, and
///         "strided" otherwise. Of arrays only, where "C" is the default.
///
/// Raises:
///     TypeError: `dtype` is no data type.
///     ValueError: There is no such number of dimensions, or no such order; or a number is given one.
#[pyclass(frozen, name = "ArgumentType", module = "_kernel", eq, hash)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ArgumentType(pub(super) specialize::ArgumentType);

#[pymethods]
impl ArgumentType {
    #[new]
    #[pyo3(signature = (dtype, ndim = None, order = None))]
    fn new(py: Python<'_>, dtype: DTypeArgument, ndim: Option<usize>, order: Option<&str>) -> PyResult<Self> {
        let known = order.map(|name| ArrayOrder::ALL.into_iter().find(|order| order.name() == name).ok_or(name));
        let order = known.transpose().map_err(|name| {
            let message = format!("order is {name:?}; it must be one of \"C\", \"F\", \"strided\"");
            exception::new::<PyValueError>(py, message)
        })?;
        match ndim {
            Some(ndim) if ndim <= MAXIMUM_DIMENSIONS => {
                let order = order.unwrap_or(ArrayOrder::C);
                Ok(Self(specialize::ArgumentType::array(dtype.0, ndim, order)))
            }
            Some(ndim) => {
                let message = format!("ndim is {ndim}; arrays have at most {MAXIMUM_DIMENSIONS} dimensions");
                Err(exception::new::<PyValueError>(py, message))
            }
            None if order.is_some() => {
                Err(exception::new::<PyValueError>(py, "a number has no order; give ndim for an array"))
            }
            None => Ok(Self(specialize::ArgumentType::number(dtype.0))),
        }
    }

    /// The data type of the elements, or of the number. A Python `int` is int64, a `float` float64, a `complex` complex128.
    #[getter]
    fn dtype(&self) -> PyDType {
        PyDType(self.0.dtype())
    }

    /// The number of dimensions, or None for a number.
    #[getter]
    fn ndim(&self) -> Option<usize> {
        self.0.ndim()
    }

    /// "C", "F" or "strided", or None for a number.
    #[getter]
    fn order(&self) -> Option<&'static str> {
        self.0.order().map(ArrayOrder::name)
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<ArgumentType {}>", self.0)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let this = slf.get();
        let state = (this.0.dtype().to_string(), this.ndim(), this.order());
        (slf.get_type(), state).into_pyobject(slf.py())
    }
}
