//! The Python module `_dispatcher`: from the arguments of a call to the overload that is for them.
//!
//! Names, results and exceptions follow the module of that name in numba-cuda. What a choice is made by is in
//! `cuwheel_dispatcher`; here Python objects are typed, and Python is asked where an answer is Python's to give.

#![expect(clippy::doc_markdown, reason = "the comments on functions are their Python docstrings too")]

mod call;
mod class;
mod device_array;
mod exchange_types;
mod fingerprint;
mod fold;
mod identity;
mod launch_state;
mod method;
mod type_of;

use pyo3::PyTypeCheck;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyType};

use crate::exception;
use crate::numba_launch;
use crate::submodule::{Submodule, add_class};
pub(crate) use call::known_overload;
pub(crate) use class::Dispatcher;
use class::{LaunchingDispatcher, PlainDispatcher};
use fingerprint::Reader;
use launch_state::Slot;
use type_of::TypeOf;

/// The module, as the library's table of modules lists it.
pub(crate) const SUBMODULE: Submodule = Submodule { name: "_dispatcher", populate };

fn populate(module: &Bound<'_, PyModule>) -> PyResult<()> {
    add_class::<Dispatcher>(module, SUBMODULE.name)?;
    add_class::<PlainDispatcher>(module, SUBMODULE.name)?;
    add_class::<LaunchingDispatcher>(module, SUBMODULE.name)?;
    method::install(module.py())?;
    module.add_function(wrap_pyfunction!(compute_fingerprint, module)?)?;
    module.add_function(wrap_pyfunction!(get_current_launch_args, module)?)?;
    module.add_function(wrap_pyfunction!(get_current_launch_config, module)?)?;
    module.add_function(wrap_pyfunction!(numba_launch::launch_stats, module)?)?;
    module.add_function(wrap_pyfunction!(swap_current_launch_args, module)?)?;
    module.add_function(wrap_pyfunction!(typeof_init, module)?)
}

/// Say what the basic types are. To be called before arguments are typed.
///
/// Called again, it holds for dispatchers that were not called with arguments yet.
///
/// Args:
///     omitted_type: The class of arguments that were left out; instances have the default as `value`.
///     codes: The codes of the types "int8", "int16", "int32", "int64", the same with "u", "float32", "float64",
///         "complex64" and "complex128".
///
/// Raises:
///     TypeError: `omitted_type` is no class, `codes` no dictionary, or a code no integer.
///     ValueError: A code is missing.
///     OverflowError: A code does not fit in 31 bits.
///     ImportError: NumPy cannot be imported.
#[pyfunction]
#[pyo3(signature = (omitted_type, codes, /))]
fn typeof_init(omitted_type: &Bound<'_, PyAny>, codes: &Bound<'_, PyAny>) -> PyResult<()> {
    let omitted = argument::<PyType>(omitted_type, "typeof_init() argument 1", "type")?;
    let codes = argument::<PyDict>(codes, "typeof_init() argument 2", "dict")?;
    numba_launch::note_release(omitted)?;
    TypeOf::install(omitted, codes)
}

/// Return bytes that are equal for values of equal type.
///
/// They mean something in this process only.
///
/// Args:
///     obj: None, a number, bytes, a NumPy array, scalar or data type, an object that exports a buffer, or a tuple, list
///         or set of such; of lists and sets the first item is looked at.
///
/// Raises:
///     NotImplementedError: `obj` is something else.
///     ValueError: `obj` is, or holds, an empty list or set.
///     RecursionError: `obj` is nested too deeply, or contains itself.
///     ImportError: NumPy cannot be imported.
#[pyfunction]
#[pyo3(signature = (obj, /))]
fn compute_fingerprint<'py>(obj: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    let current = TypeOf::current();
    let omitted = current.as_deref().map(|type_of| type_of.omitted(obj.py()));
    let fingerprint = Reader::fingerprint(obj, omitted).map_err(|refusal| refusal.into_exception(obj.py()))?;
    Ok(PyBytes::new(obj.py(), fingerprint.as_bytes()))
}

/// Return the launch configuration for which this thread compiles, or None.
///
/// It is set while `Dispatcher._cuda_call` runs `_compile_for_args`, and belongs to the thread.
#[pyfunction]
#[pyo3(signature = ())]
fn get_current_launch_config(py: Python<'_>) -> PyResult<Option<Bound<'_, PyAny>>> {
    launch_state::get(py, Slot::Config)
}

/// Return the arguments of the launch that this thread is in, or None.
#[pyfunction]
#[pyo3(signature = ())]
fn get_current_launch_args(py: Python<'_>) -> PyResult<Option<Bound<'_, PyAny>>> {
    launch_state::get(py, Slot::Arguments)
}

/// Set the arguments of the launch that this thread is in.
///
/// Args:
///     args: Any object; None for no launch.
///
/// Returns:
///     What was set before, or None.
#[pyfunction]
#[pyo3(signature = (args, /))]
fn swap_current_launch_args<'py>(args: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    launch_state::swap(args.py(), Slot::Arguments, Some(args).filter(|args| !args.is_none()))
}

/// The argument as an instance of `T`, which Python calls `expected`.
fn argument<'a, 'py, T: PyTypeCheck>(
    value: &'a Bound<'py, PyAny>,
    argument: &str,
    expected: &str,
) -> PyResult<&'a Bound<'py, T>> {
    value.cast::<T>().map_err(|_| {
        let actual = value.get_type().name().map_or_else(|_| "an object".to_owned(), |name| name.to_string());
        let actual = if value.is_none() { "None".to_owned() } else { actual };
        exception::new::<PyTypeError>(value.py(), format!("{argument} must be {expected}, not {actual}"))
    })
}
