//! Conversion tables by handle: the tables that `_typeconv` creates and `_dispatcher` chooses by.
//!
//! Python code passes them on as capsules and as integers. Both hold a handle, which is looked up here and never
//! followed: a number that no live table has is an error, whatever it points to. Handles are never given out twice.

use std::collections::HashMap;
use std::ffi::CStr;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use cuwheel_dispatcher::ConversionTable;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;

use crate::exception;

/// The name of the capsules; programs may look for it.
const CAPSULE_NAME: &CStr = c"*tm";

/// The handle before the first. It lies in the part of the address space that no processor maps, so that other native
/// code, which takes the number for an address, stops at once instead of reading something else.
static LAST_HANDLE: AtomicUsize = AtomicUsize::new(0x6375_7768_0000_0000);
static TABLES: LazyLock<RwLock<HashMap<usize, Arc<ConversionTable>>>> = LazyLock::new(RwLock::default);

/// A capsule with a new table, which lives as long as the capsule and whoever took it from here.
pub(crate) fn create(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let handle = LAST_HANDLE.fetch_add(1, Ordering::Relaxed) + 1;
    TABLES.write().unwrap_or_else(PoisonError::into_inner).insert(handle, Arc::default());
    let pointer = ptr::without_provenance_mut(handle);
    // SAFETY: the thread is attached, as `py` witnesses. The pointer is not null, as capsules require, and nobody
    // follows it; the name is a constant. The result is a new reference or null with an exception set.
    let capsule = unsafe {
        let capsule = ffi::PyCapsule_New(pointer, CAPSULE_NAME.as_ptr(), Some(forget));
        Bound::from_owned_ptr_or_opt(py, capsule)
    };
    capsule.ok_or_else(|| {
        remove(handle);
        exception::fetch(py)
    })
}

/// The handle in a capsule. It need not be one of ours.
pub(crate) fn handle_of(capsule: &Bound<'_, PyAny>) -> PyResult<usize> {
    // SAFETY: the thread is attached, as the type of `capsule` witnesses; any object may be asked.
    let pointer = unsafe {
        if ffi::PyCapsule_IsValid(capsule.as_ptr(), CAPSULE_NAME.as_ptr()) == 0 {
            return Err(exception::new::<PyTypeError>(capsule.py(), "1st argument not TypeManager"));
        }
        ffi::PyCapsule_GetPointer(capsule.as_ptr(), CAPSULE_NAME.as_ptr())
    };
    Ok(pointer.addr())
}

/// The table with this handle.
pub(crate) fn by_handle(py: Python<'_>, handle: usize) -> PyResult<Arc<ConversionTable>> {
    let table = TABLES.read().unwrap_or_else(PoisonError::into_inner).get(&handle).cloned();
    table.ok_or_else(|| {
        let message = format!(
            "{handle:#x} is no type manager of this package, or one that is gone; pass what get_pointer() of the \
             _typeconv beside this _dispatcher returns, and keep its argument alive"
        );
        exception::new::<PyValueError>(py, message)
    })
}

fn remove(handle: usize) {
    let table = TABLES.write().unwrap_or_else(PoisonError::into_inner).remove(&handle);
    // Freed without the lock.
    drop(table);
}

/// The destructor of capsules.
unsafe extern "C" fn forget(capsule: *mut ffi::PyObject) {
    // SAFETY: Python calls this once, attached, with a capsule that `create` made.
    remove(unsafe { ffi::PyCapsule_GetPointer(capsule, CAPSULE_NAME.as_ptr()) }.addr());
}
