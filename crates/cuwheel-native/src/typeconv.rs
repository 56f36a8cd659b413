//! The Python module `_typeconv`: tables of conversions between types, and choices by them.
//!
//! Names, results and exceptions follow the module of that name in numba-cuda. The tables and the choice are in
//! `cuwheel_dispatcher`.

#![expect(clippy::doc_markdown, reason = "the comments on functions are their Python docstrings too")]

use std::ffi::c_int;
use std::sync::Arc;

use cuwheel_dispatcher::{Choice, Conversion, ConversionTable, Rules, TypeCode};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::submodule::Submodule;
use crate::{exception, number, type_manager};

/// The module, as the library's table of modules lists it.
pub(crate) const SUBMODULE: Submodule = Submodule { name: "_typeconv", populate };

fn populate(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(check_compatible, module)?)?;
    module.add_function(wrap_pyfunction!(get_pointer, module)?)?;
    module.add_function(wrap_pyfunction!(new_type_manager, module)?)?;
    module.add_function(wrap_pyfunction!(select_overload, module)?)?;
    module.add_function(wrap_pyfunction!(set_compatible, module)?)
}

/// Return a new type manager: a table of conversions, in which each type converts to itself only.
///
/// Arguments are ignored.
#[pyfunction]
#[pyo3(signature = (*_args))]
fn new_type_manager<'py>(py: Python<'py>, _args: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
    type_manager::create(py)
}

/// Say how one type converts to another, in place of what was said before.
///
/// Args:
///     tm: What `new_type_manager` returned.
///     from_code: The code of the type that is converted.
///     to_code: The code of the type that it is converted to.
///     by: `ord("p")` for a promotion, `ord("s")` for a safe conversion, `ord("u")` for an unsafe one.
///
/// Raises:
///     TypeError: `tm` is no type manager, or another argument no integer.
///     OverflowError: A code does not fit in 31 bits.
///     ValueError: `by` is something else, or `tm` belongs to another package.
#[pyfunction]
#[pyo3(signature = (tm, from_code, to_code, by, /))]
fn set_compatible(
    tm: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = number::int_argument)] from_code: c_int,
    #[pyo3(from_py_with = number::int_argument)] to_code: c_int,
    #[pyo3(from_py_with = number::int_argument)] by: c_int,
) -> PyResult<()> {
    let table = table_of(tm)?;
    let conversion = match u8::try_from(by) {
        Ok(b'p') => Conversion::Promote,
        Ok(b's') => Conversion::Safe,
        Ok(b'u') => Conversion::Unsafe,
        _ => return Err(exception::new::<PyValueError>(tm.py(), "Unknown TCC")),
    };
    table.set(from_code.into(), to_code.into(), conversion);
    Ok(())
}

/// Return how one type converts to another.
///
/// Args:
///     tm: What `new_type_manager` returned.
///     from_code: The code of the type that is converted.
///     to_code: The code of the type that it is converted to.
///
/// Returns:
///     "exact" if the types are the same, or else "promote", "safe" or "unsafe", as `set_compatible` was told, or else
///     None.
///
/// Raises:
///     TypeError: `tm` is no type manager, or a code no integer.
///     OverflowError: A code does not fit in 31 bits.
///     ValueError: `tm` belongs to another package.
#[pyfunction]
#[pyo3(signature = (tm, from_code, to_code, /))]
fn check_compatible(
    tm: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = number::int_argument)] from_code: c_int,
    #[pyo3(from_py_with = number::int_argument)] to_code: c_int,
) -> PyResult<Option<&'static str>> {
    let conversion = table_of(tm)?.get(from_code.into(), to_code.into());
    Ok(conversion.map(|conversion| match conversion {
        Conversion::Exact => "exact",
        Conversion::Promote => "promote",
        Conversion::Safe => "safe",
        Conversion::Unsafe => "unsafe",
    }))
}

/// Return which of several signatures fits arguments best.
///
/// The signature with the fewest unsafe conversions is the best, among those the one with the fewest safe conversions,
/// and among those the one with the fewest promotions.
///
/// Args:
///     tm: What `new_type_manager` returned.
///     sig: The codes of the arguments' types.
///     ovsigs: For each signature the codes of its types.
///     allow_unsafe: Whether unsafe conversions may be used.
///     exact_match_required: Whether only the same types fit.
///
/// Returns:
///     The position of the signature in `ovsigs`.
///
/// Raises:
///     TypeError: No signature fits, or several fit equally well; or an argument is of another type than it should be.
///     OverflowError: A code does not fit in 31 bits.
///     ValueError: A signature has another number of types than `sig`, or `tm` belongs to another package.
#[pyfunction]
#[pyo3(signature = (tm, sig, ovsigs, allow_unsafe, exact_match_required, /))]
fn select_overload(
    tm: &Bound<'_, PyAny>,
    sig: &Bound<'_, PyAny>,
    ovsigs: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = number::int_argument)] allow_unsafe: c_int,
    #[pyo3(from_py_with = number::int_argument)] exact_match_required: c_int,
) -> PyResult<usize> {
    let py = tm.py();
    let table = table_of(tm)?;
    let arguments: Vec<Option<TypeCode>> = number::type_codes(sig)?.into_iter().map(Some).collect();
    let mut signatures = Vec::new();
    for signature in ovsigs.try_iter()? {
        let signature = number::type_codes(&signature?)?;
        if signature.len() != arguments.len() {
            let (position, types, count) = (signatures.len(), signature.len(), arguments.len());
            let message =
                format!("signature {position} has {types} types for {count} arguments; pass signatures of that length");
            return Err(exception::new::<PyValueError>(py, message));
        }
        signatures.push(signature);
    }
    let rules = Rules { exact_only: exact_match_required != 0, allow_unsafe: allow_unsafe != 0 };
    match Choice::among(&arguments, signatures.iter().map(Vec::as_slice), &table, rules) {
        Choice::One(position) => Ok(position),
        Choice::None => Err(exception::new::<PyTypeError>(py, "No compatible overload")),
        Choice::Ambiguous => Err(exception::new::<PyTypeError>(py, "Ambiguous overloading")),
    }
}

/// Return the number by which `_dispatcher.Dispatcher` knows a type manager.
///
/// It is no address, and good for as long as `tm` is alive.
///
/// Args:
///     tm: What `new_type_manager` returned.
///
/// Raises:
///     TypeError: `tm` is no type manager.
///     ValueError: `tm` belongs to another package.
#[pyfunction]
#[pyo3(signature = (tm, /))]
fn get_pointer(tm: &Bound<'_, PyAny>) -> PyResult<usize> {
    let handle = type_manager::handle_of(tm)?;
    type_manager::by_handle(tm.py(), handle)?;
    Ok(handle)
}

fn table_of(capsule: &Bound<'_, PyAny>) -> PyResult<Arc<ConversionTable>> {
    type_manager::by_handle(capsule.py(), type_manager::handle_of(capsule)?)
}
