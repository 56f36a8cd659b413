//! A call of a dispatcher of numba-cuda, from the arguments to the driver, where nothing is new.
//!
//! A dispatcher gets a `call` of its own when a kernel is inserted. It finds the overload and launches it if it can do so
//! without running Python code: then nobody can see that numba-cuda was left out. Otherwise nothing has happened yet, and
//! `call` of the dispatcher's class does everything, with `launch` of the kernel at its end.

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBoolMethods, PyDict, PyList, PyListMethods, PyString, PyTuple};
use pyo3::{ffi, intern};

use super::described::DescribedArrays;
use super::method;
use super::released::Released;
use super::stats;
use super::{Call, Fallback, Mode, NativeLaunch};
use crate::dispatcher::{Dispatcher, known_overload};
use crate::exception;

/// What a dispatcher needs to be called. Its method is a function of Python that has this as its `self`.
#[pyclass(frozen, module = "_dispatcher")]
pub(crate) struct NativeCall {
    dispatcher: Py<Dispatcher>,
    /// The attributes of the dispatcher.
    attributes: Py<PyDict>,
    released: &'static Released,
}

/// Gives a dispatcher of numba-cuda a `call` of its own, unless it has one. Other objects are left as they are.
pub(super) fn attach(released: &'static Released, dispatcher: &Bound<'_, Dispatcher>) -> PyResult<()> {
    let py = dispatcher.py();
    if !released.is_dispatcher(dispatcher) {
        return Ok(());
    }
    let Some(attributes) = attributes_of(dispatcher) else { return Ok(()) };
    let name = intern!(py, "call");
    if attributes.contains(name)? {
        return Ok(());
    }
    let call =
        NativeCall { dispatcher: dispatcher.clone().unbind(), attributes: attributes.clone().unbind(), released };
    attributes.set_item(name, method::of_call(&Bound::new(py, call)?)?)
}

/// The attributes of an object that has a dictionary of them.
fn attributes_of<'py>(object: &Bound<'py, PyAny>) -> Option<Bound<'py, PyDict>> {
    let py = object.py();
    // SAFETY: the thread is attached; the result is a new reference, or null with an exception set.
    let found = unsafe {
        Bound::from_owned_ptr_or_opt(py, ffi::PyObject_GenericGetDict(object.as_ptr(), std::ptr::null_mut()))
    };
    if found.is_none() {
        drop(exception::fetch(py));
    }
    found?.cast_into().ok()
}

impl NativeCall {
    /// Launches if nothing is new. If something is, nothing has happened yet, and it is not launched.
    pub(super) fn launch(&self, args: Borrowed<'_, '_, PyAny>, config: Borrowed<'_, '_, PyAny>) -> PyResult<bool> {
        match self.try_launch(args, config) {
            None | Some(Err(Fallback::Python(_))) => Ok(false),
            Some(Err(Fallback::Raised(error))) => Err(error),
            Some(Ok(())) => {
                stats::count_native();
                Ok(true)
            }
        }
    }

    fn try_launch(
        &self,
        args: Borrowed<'_, '_, PyAny>,
        config: Borrowed<'_, '_, PyAny>,
    ) -> Option<Result<(), Fallback>> {
        let py = args.py();
        let dispatcher = self.dispatcher.bind(py);
        let attributes = self.attributes.bind(py);
        if !self.released.calls(py).ok()?
            || !self.released.is_configuration(&config)
            || is(attributes, intern!(py, "_launch_config_sensitive"))?
        {
            return None;
        }
        let tuple = args.cast_exact::<PyTuple>().ok()?;
        let mut described = DescribedArrays::new();
        let kernel = if is(attributes, intern!(py, "_specialized"))? {
            let overloads = field(attributes, intern!(py, "overloads"))?;
            overloads.cast_exact::<PyDict>().ok()?.iter().next()?.1
        } else {
            known_overload(dispatcher, &tuple, &mut described)?
        };
        let of_kernel = attributes_of(&kernel)?;
        if is(&of_kernel, intern!(py, "launch_config_sensitive"))? {
            return None;
        }
        let launch = field(&of_kernel, intern!(py, "launch"))?;
        let launch = method::launch_of(&launch)?;
        let config = attributes_of(&config)?;
        if !field(&config, intern!(py, "pre_launch_callbacks"))?
            .cast_exact::<PyList>()
            .is_ok_and(PyListMethods::is_empty)
        {
            return None;
        }
        let (grid, block) = (field(&config, intern!(py, "griddim"))?, field(&config, intern!(py, "blockdim"))?);
        let (stream, shared_bytes) =
            (field(&config, intern!(py, "stream"))?, field(&config, intern!(py, "sharedmem"))?);
        let call = Call {
            args,
            grid: grid.as_borrowed(),
            block: block.as_borrowed(),
            stream: stream.as_borrowed(),
            shared_bytes: shared_bytes.as_borrowed(),
        };
        let launch: &NativeLaunch = launch.get();
        Some(launch.launch(py, &call, Mode::NothingNew, &described))
    }

    /// `call` of the dispatcher's class, bound to the dispatcher.
    pub(super) fn in_python<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        method::of_class(self.dispatcher.bind(py), intern!(py, "call"))
    }
}

#[pymethods]
impl NativeCall {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.dispatcher)?;
        visit.call(&self.attributes)
    }
}

/// An attribute, if there is one.
#[inline]
fn field<'py>(attributes: &Bound<'py, PyDict>, name: &Bound<'py, PyString>) -> Option<Bound<'py, PyAny>> {
    attributes.get_item(name).ok().flatten()
}

/// An attribute that is True or False.
#[inline]
fn is<'py>(attributes: &Bound<'py, PyDict>, name: &Bound<'py, PyString>) -> Option<bool> {
    field(attributes, name)?.cast_exact::<PyBool>().ok().map(PyBoolMethods::is_true)
}
