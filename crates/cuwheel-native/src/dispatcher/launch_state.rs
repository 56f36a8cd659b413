//! What a thread is launching at the moment.
//!
//! It is kept in the dictionary that Python has for each thread: Python empties it at the end of the thread, while the
//! thread is still attached, and the garbage collector sees into it.

use pyo3::exceptions::PyMemoryError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

use crate::exception;

/// What is kept for each thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slot {
    /// The launch configuration that a kernel is compiled for.
    Config,
    /// The arguments of the launch.
    Arguments,
}

impl Slot {
    /// Objects that nobody else has are keys that nobody else uses, not even another copy of this library.
    fn key(self, py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
        static CONFIG: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        static ARGUMENTS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

        let key = match self {
            Self::Config => &CONFIG,
            Self::Arguments => &ARGUMENTS,
        };
        Ok(key.get_or_try_init(py, || py.get_type::<PyAny>().call0().map(Bound::unbind))?.bind(py))
    }
}

/// What is kept in a slot of this thread.
pub(super) fn get(py: Python<'_>, slot: Slot) -> PyResult<Option<Bound<'_, PyAny>>> {
    thread_dictionary(py)?.get_item(slot.key(py)?)
}

/// Keeps `value` in a slot of this thread, and returns what was there before.
pub(super) fn swap<'py>(
    py: Python<'py>,
    slot: Slot,
    value: Option<&Bound<'py, PyAny>>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let (dictionary, key) = (thread_dictionary(py)?, slot.key(py)?);
    let former = dictionary.get_item(key)?;
    match value {
        Some(value) => dictionary.set_item(key, value)?,
        None if former.is_some() => dictionary.del_item(key)?,
        None => {}
    }
    Ok(former)
}

/// Runs `work` with `config` as the launch configuration of this thread; afterwards it is again what it was before.
pub(super) fn with_config<R>(config: &Bound<'_, PyAny>, work: impl FnOnce() -> PyResult<R>) -> PyResult<R> {
    let former = swap(config.py(), Slot::Config, Some(config))?;
    let result = work();
    swap(config.py(), Slot::Config, former.as_ref())?;
    result
}

fn thread_dictionary(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    // SAFETY: the thread is attached, as `py` witnesses; the result is a borrowed reference, or null without an
    // exception.
    let dictionary = unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PyThreadState_GetDict()) };
    match dictionary {
        Some(dictionary) => Ok(dictionary.cast_into()?),
        None => Err(exception::new::<PyMemoryError>(py, "no memory for what belongs to the thread")),
    }
}
