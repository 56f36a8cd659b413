//! The `launch` of a kernel and the `call` of a dispatcher as Python calls functions at the least cost: with the arguments in
//! an array.

use std::ffi::CStr;
use std::{ptr, slice};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyCFunction, PyDict, PyString, PyTuple};
use pyo3::{ffi, intern};

use super::call::NativeCall;
use super::stats::{self, Reason};
use super::{Call, Fallback, Mode, NativeLaunch};
use crate::exception;

/// The definition of the function: Python keeps its address.
struct Definition(*mut ffi::PyMethodDef);

// SAFETY: nothing is changed once it is made, and it lives as long as the process.
unsafe impl Send for Definition {}
// SAFETY: as above.
unsafe impl Sync for Definition {}

/// The function that launches, as an attribute of a kernel.
pub(super) fn of_launch<'py>(launch: &Bound<'py, NativeLaunch>) -> PyResult<Bound<'py, PyCFunction>> {
    static DEFINITION: PyOnceLock<Definition> = PyOnceLock::new();
    let doc = c"launch(args, griddim, blockdim, stream=0, sharedmem=0)\n--\n\nLaunch the kernel.";
    function(launch.as_any(), &DEFINITION, c"launch", doc, launch_function)
}

/// The function that calls a dispatcher, as an attribute of it.
pub(super) fn of_call<'py>(call: &Bound<'py, NativeCall>) -> PyResult<Bound<'py, PyCFunction>> {
    static DEFINITION: PyOnceLock<Definition> = PyOnceLock::new();
    let doc = c"call(args, launch_config)\n--\n\nCompile if necessary and invoke this kernel with *args*.";
    function(call.as_any(), &DEFINITION, c"call", doc, call_function)
}

fn function<'py>(
    this: &Bound<'py, PyAny>,
    definition: &'static PyOnceLock<Definition>,
    name: &'static CStr,
    doc: &'static CStr,
    function: ffi::PyCFunctionFastWithKeywords,
) -> PyResult<Bound<'py, PyCFunction>> {
    let py = this.py();
    let definition = definition.get_or_init(py, || {
        Definition(Box::leak(Box::new(ffi::PyMethodDef {
            ml_name: name.as_ptr(),
            ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: function },
            ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
            ml_doc: doc.as_ptr(),
        })))
    });
    // SAFETY: the thread is attached, as `py` witnesses; the definition lives as long as the process, and its flags are those
    // of its function. The function keeps its `self`. The result is a new reference or null with an exception set.
    let function = unsafe {
        let function = ffi::PyCFunction_NewEx(definition.0, this.as_ptr(), ptr::null_mut());
        Bound::from_owned_ptr_or_opt(py, function)
    };
    Ok(function.ok_or_else(|| exception::fetch(py))?.cast_into()?)
}

/// What launches, behind a function that [`of_launch`] made.
#[inline]
pub(super) fn launch_of<'a, 'py>(function: &'a Bound<'py, PyAny>) -> Option<Borrowed<'a, 'py, NativeLaunch>> {
    function.cast_exact::<PyCFunction>().ok()?;
    // SAFETY: the thread is attached, and the object is a function of C, which keeps its `self` as long as it lives. It is
    // null for functions of modules without one.
    let this = unsafe { Borrowed::from_ptr_or_opt(function.py(), ffi::PyCFunction_GetSelf(function.as_ptr())) };
    this?.cast::<NativeLaunch>().ok()
}

/// A method as it would be found without the attribute of the same name that an object has: that of the object's class.
pub(super) fn of_class<'py>(object: &Bound<'py, PyAny>, name: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
    let class = object.get_type();
    let method = class.getattr(name)?;
    match method.get_type().getattr_opt(intern!(object.py(), "__get__"))? {
        Some(bind) => bind.call1((&method, object, &class)),
        None => Ok(method),
    }
}

/// # Safety
/// As for [`called`].
unsafe extern "C" fn launch_function(
    this: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: as the caller promises.
    unsafe { called(this, arguments, count, names, launched) }
}

/// # Safety
/// As for [`called`].
unsafe extern "C" fn call_function(
    this: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: as the caller promises.
    unsafe { called(this, arguments, count, names, dispatched) }
}

/// The arguments of a call as Python hands them over: those by position, and then those by name.
struct Given<'a, 'py> {
    all: &'a [Borrowed<'a, 'py, PyAny>],
    positional: usize,
    names: Option<&'a Bound<'py, PyAny>>,
}

/// The result of `body` as a new reference, or null with an exception set.
///
/// # Safety
/// What Python promises to functions of this kind: the thread is attached; `this` is what the function was made with, and
/// alive; `arguments` holds `count` positional arguments and then one for each of `names`, which is a tuple or null, and the
/// caller keeps all alive. It may be null if there are none.
#[inline]
unsafe fn called(
    this: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
    body: impl for<'py> FnOnce(&Bound<'py, PyAny>, &Given<'_, 'py>) -> PyResult<Bound<'py, PyAny>>,
) -> *mut ffi::PyObject {
    // SAFETY: the thread is attached; the caller keeps `this` and `names` alive, and as many arguments as it says, each a
    // pointer as a `Borrowed` is. PyO3 is not told that the thread is attached, which takes time: a reference that is dropped
    // here would stay until it is, which `in_python` does. A native launch drops none but those that were borrowed from Python.
    unsafe {
        let py = Python::assume_attached();
        let this = Borrowed::from_ptr(py, this);
        let names = Borrowed::from_ptr_or_opt(py, names);
        let positional = usize::try_from(count).unwrap_or_default();
        let by_name = names.map_or(0, |names| names.cast::<PyTuple>().map_or(0, |names| names.len()));
        let all: &[Borrowed<'_, '_, PyAny>] = match positional + by_name {
            0 => &[],
            count => slice::from_raw_parts(arguments.cast(), count),
        };
        match body(&this, &Given { all, positional, names: names.as_deref() }) {
            Ok(result) => result.into_ptr(),
            Err(error) => {
                error.restore(py);
                ptr::null_mut()
            }
        }
    }
}

fn launched<'py>(this: &Bound<'py, PyAny>, given: &Given<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
    let py = this.py();
    let this = this.cast::<NativeLaunch>()?.get();
    let result = match (given.all, given.names) {
        (&[args, grid, block, stream, shared_bytes], None) => {
            this.launch(py, &Call { args, grid, block, stream, shared_bytes }, Mode::Ask, &[])
        }
        _ => Err(Reason::Call.into()),
    };
    match result {
        Ok(()) => {
            stats::count_native();
            Ok(py.None().into_bound(py))
        }
        Err(Fallback::Raised(error)) => Err(error),
        Err(Fallback::Python(reason)) => {
            stats::count_python(reason);
            in_python(&of_class(this.kernel.bind(py), intern!(py, "launch"))?, given)
        }
    }
}

fn dispatched<'py>(this: &Bound<'py, PyAny>, given: &Given<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
    let call = this.cast::<NativeCall>()?.get();
    if let (&[args, config], None) = (given.all, given.names)
        && call.launch(args, config)?
    {
        return Ok(this.py().None().into_bound(this.py()));
    }
    in_python(&call.in_python(this.py())?, given)
}

/// Calls what would be called without this library, with the same arguments.
#[cold]
fn in_python<'py>(method: &Bound<'py, PyAny>, given: &Given<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
    let py = method.py();
    // What was tried before has left references behind.
    Python::attach(|_| ());
    let (by_position, by_name) = given.all.split_at(given.positional);
    let keywords = match given.names {
        Some(names) => {
            let keywords = PyDict::new(py);
            for (name, value) in names.try_iter()?.zip(by_name) {
                keywords.set_item(name?, value)?;
            }
            Some(keywords)
        }
        None => None,
    };
    method.call(PyTuple::new(py, by_position)?, keywords.as_ref())
}
