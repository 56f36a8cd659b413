//! The method `_cuda_call`, as Python calls methods at the least cost: with the arguments in an array.
//!
//! PyO3 has a tuple and a dictionary made for a method that takes any arguments. A hit needs neither, and making them
//! takes longer than the choice. What a call comes to is in `call`.

use std::ffi::CStr;
use std::{ptr, slice};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use pyo3::{Borrowed, PyClass, ffi, intern};

use super::call;
use super::class::{Dispatcher, PlainDispatcher};
use crate::exception;

/// The keyword that is none of the function's.
const LAUNCH_CONFIG: &str = "__numba_cuda_launch_config__";

/// Of `Dispatcher`.
const DOC: &CStr = c"_cuda_call($self, /, *args, __numba_cuda_launch_config__=None, **kwargs)\n--\n\n\
Return the overload that is for these arguments; nothing is launched.

The keyword `__numba_cuda_launch_config__` is none of the function's: what it holds is what
`get_current_launch_config` returns while `_compile_for_args` runs.

If none fits, the methods `_compile_for_args`, `_search_new_conversions`, `_explain_matching_error` and
`_explain_ambiguous` are looked up on the instance and called with the arguments.";

/// Of `PlainDispatcher`.
const PLAIN_DOC: &CStr = c"_cuda_call($self, /, *args, **kwargs)\n--\n\n\
Return the overload that is for these arguments; nothing is launched.

If none fits, the methods `_compile_for_args`, `_search_new_conversions`, `_explain_matching_error` and
`_explain_ambiguous` are looked up on the instance and called with the arguments.";

/// Gives the classes their method.
pub(super) fn install(py: Python<'_>) -> PyResult<()> {
    add::<Dispatcher>(py, cuda_call, DOC)?;
    add::<PlainDispatcher>(py, plain_cuda_call, PLAIN_DOC)
}

fn add<T: PyClass>(py: Python<'_>, function: ffi::PyCFunctionFastWithKeywords, doc: &'static CStr) -> PyResult<()> {
    let class = py.get_type::<T>();
    // Once for each import of the library: Python keeps the address.
    let definition = Box::leak(Box::new(ffi::PyMethodDef {
        ml_name: c"_cuda_call".as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: function },
        ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
        ml_doc: doc.as_ptr(),
    }));
    // SAFETY: the thread is attached, as `py` witnesses; the definition lives as long as the process, and its flags are
    // those of its function. The result is a new reference or null with an exception set.
    let method = unsafe { Bound::from_owned_ptr_or_opt(py, ffi::PyDescr_NewMethod(class.as_type_ptr(), definition)) };
    class.setattr(intern!(py, "_cuda_call"), method.ok_or_else(|| exception::fetch(py))?)
}

/// # Safety
/// As for [`called`].
unsafe extern "C" fn cuda_call(
    this: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: as the caller promises.
    unsafe { called(this, arguments, count, names, true) }
}

/// # Safety
/// As for [`called`].
unsafe extern "C" fn plain_cuda_call(
    this: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: as the caller promises.
    unsafe { called(this, arguments, count, names, false) }
}

/// The result of a call: a new reference, or null with an exception set.
///
/// # Safety
/// What Python promises to methods of this kind: the thread is attached; `this` is alive; `arguments` holds `count`
/// positional arguments and then one for each of `names`, which is a tuple or null, and the caller keeps all alive. It
/// may be null if there are none.
unsafe fn called(
    this: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
    takes_config: bool,
) -> *mut ffi::PyObject {
    // SAFETY: the thread is attached, so that the interpreter is there; the rest is as the caller promises.
    unsafe {
        Python::attach_unchecked(|py| match found(py, this, arguments, count, names, takes_config) {
            Ok(found) => found.into_ptr(),
            Err(error) => {
                error.restore(py);
                ptr::null_mut()
            }
        })
    }
}

/// The same, in terms of Rust.
///
/// # Safety
/// As for [`called`].
unsafe fn found<'py>(
    py: Python<'py>,
    this: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
    takes_config: bool,
) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: the caller keeps both alive.
    let (this, names) = unsafe { (Borrowed::from_ptr(py, this), Borrowed::from_ptr_or_opt(py, names)) };
    let dispatcher = this.cast::<Dispatcher>()?;
    let names = names.map(Borrowed::cast::<PyTuple>).transpose()?;
    let positional_count = usize::try_from(count).unwrap_or_default();
    let count = positional_count + names.map_or(0, |names| names.len());
    let arguments: &[Borrowed<'_, 'py, PyAny>] = if count == 0 {
        &[]
    } else {
        // SAFETY: there are so many, each a pointer to an object that the caller keeps alive, as a `Borrowed` is.
        unsafe { slice::from_raw_parts(arguments.cast(), count) }
    };
    let (positional, values) = arguments.split_at(positional_count);
    let keywords = match names {
        Some(names) => Keywords::new(&names, values, takes_config)?,
        None => Keywords::default(),
    };
    call::cuda_call(&dispatcher, positional, keywords.others.as_ref(), keywords.config.as_deref())
}

/// Arguments by name.
#[derive(Default)]
struct Keywords<'a, 'py> {
    /// The launch configuration.
    config: Option<Borrowed<'a, 'py, PyAny>>,
    /// Those of the function; `None` if there are none.
    others: Option<Bound<'py, PyDict>>,
}

impl<'a, 'py> Keywords<'a, 'py> {
    fn new(names: &Bound<'py, PyTuple>, values: &[Borrowed<'a, 'py, PyAny>], takes_config: bool) -> PyResult<Self> {
        let mut keywords = Self::default();
        for (name, value) in names.iter_borrowed().zip(values) {
            if takes_config && is_config(&name) {
                keywords.config = Some(*value).filter(|config| !config.is_none());
            } else {
                keywords.others.get_or_insert_with(|| PyDict::new(names.py())).set_item(name, value)?;
            }
        }
        Ok(keywords)
    }
}

fn is_config(name: &Bound<'_, PyAny>) -> bool {
    // Names in programs are nearly always the one string that Python keeps of each.
    name.is(intern!(name.py(), LAUNCH_CONFIG)) || name.cast::<PyString>().is_ok_and(|name| *name == LAUNCH_CONFIG)
}
