//! The `launch` of a kernel as Python calls functions at the least cost: with the arguments in an array.

use std::{ptr, slice};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyCFunction, PyDict, PyTuple};
use pyo3::{ffi, intern};

use super::stats::{self, Reason};
use super::{Call, Fallback, NativeLaunch};
use crate::exception;

/// The definition of the function: Python keeps its address.
struct Definition(*mut ffi::PyMethodDef);

// SAFETY: nothing is changed once it is made, and it lives as long as the process.
unsafe impl Send for Definition {}
// SAFETY: as above.
unsafe impl Sync for Definition {}

/// The function that launches, as an attribute of a kernel.
pub(super) fn of<'py>(launch: &Bound<'py, NativeLaunch>) -> PyResult<Bound<'py, PyCFunction>> {
    static DEFINITION: PyOnceLock<Definition> = PyOnceLock::new();
    let py = launch.py();
    let definition = DEFINITION.get_or_init(py, || {
        Definition(Box::leak(Box::new(ffi::PyMethodDef {
            ml_name: c"launch".as_ptr(),
            ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: called },
            ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
            ml_doc: c"launch(args, griddim, blockdim, stream=0, sharedmem=0)\n--\n\nLaunch the kernel.".as_ptr(),
        })))
    });
    // SAFETY: the thread is attached, as `py` witnesses; the definition lives as long as the process, and its flags are those
    // of its function. The function keeps its `self`. The result is a new reference or null with an exception set.
    let function = unsafe {
        let function = ffi::PyCFunction_NewEx(definition.0, launch.as_ptr(), ptr::null_mut());
        Bound::from_owned_ptr_or_opt(py, function)
    };
    Ok(function.ok_or_else(|| exception::fetch(py))?.cast_into()?)
}

/// None as a new reference, or null with an exception set.
///
/// # Safety
/// What Python promises to functions of this kind: the thread is attached; `this` is what the function was made with, and
/// alive; `arguments` holds `count` positional arguments and then one for each of `names`, which is a tuple or null, and the
/// caller keeps all alive. It may be null if there are none.
unsafe extern "C" fn called(
    this: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: the thread is attached, so that the interpreter is there; the caller keeps `this` and `names` alive, and as
    // many arguments as it says, each a pointer as a `Borrowed` is.
    unsafe {
        Python::attach_unchecked(|py| {
            let this = Borrowed::from_ptr(py, this);
            let names = Borrowed::from_ptr_or_opt(py, names);
            let positional = usize::try_from(count).unwrap_or_default();
            let by_name = names.map_or(0, |names| names.cast::<PyTuple>().map_or(0, |names| names.len()));
            let arguments: &[Borrowed<'_, '_, PyAny>] = match positional + by_name {
                0 => &[],
                count => slice::from_raw_parts(arguments.cast(), count),
            };
            match launched(&this, arguments, positional, names.as_deref()) {
                Ok(()) => py.None().into_ptr(),
                Err(error) => {
                    error.restore(py);
                    ptr::null_mut()
                }
            }
        })
    }
}

fn launched(
    this: &Bound<'_, PyAny>,
    arguments: &[Borrowed<'_, '_, PyAny>],
    positional: usize,
    names: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let py = this.py();
    let this = this.cast::<NativeLaunch>()?.get();
    let result = match (arguments, names) {
        (&[args, grid, block, stream, shared_bytes], None) => {
            this.launch(py, &Call { args, grid, block, stream, shared_bytes })
        }
        _ => Err(Reason::Call.into()),
    };
    match result {
        Ok(()) => {
            stats::count_native();
            Ok(())
        }
        Err(Fallback::Raised(error)) => Err(error),
        Err(Fallback::Python(reason)) => {
            stats::count_python(reason);
            in_python(this, py, arguments, positional, names)
        }
    }
}

/// Calls `launch` as it would be without this one: that of the kernel's class, with the same arguments.
#[cold]
fn in_python(
    this: &NativeLaunch,
    py: Python<'_>,
    arguments: &[Borrowed<'_, '_, PyAny>],
    positional: usize,
    names: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let kernel = this.kernel.bind(py);
    let class = kernel.get_type();
    let launch = class.getattr(intern!(py, "launch"))?;
    let launch = match launch.get_type().getattr_opt(intern!(py, "__get__"))? {
        Some(bind) => bind.call1((&launch, kernel, &class))?,
        None => launch,
    };
    let (by_position, by_name) = arguments.split_at(positional);
    let keywords = match names {
        Some(names) => {
            let keywords = PyDict::new(py);
            for (name, value) in names.try_iter()?.zip(by_name) {
                keywords.set_item(name?, value)?;
            }
            Some(keywords)
        }
        None => None,
    };
    launch.call(PyTuple::new(py, by_position)?, keywords.as_ref())?;
    Ok(())
}
