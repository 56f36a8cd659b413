//! The functions of [`crate::sys`] with errors for status codes. Preconditions stay with the caller.

use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};

use thiserror::Error;

use crate::sys;

/// Why NumPy gave no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Error {
    /// NumPy could not be imported. A Python exception, which says why, is set and is for the caller to fetch.
    #[error("NumPy could not be imported")]
    ImportFailed,
    /// NumPy knows no data type for a scalar. A Python exception, which says why, is set and is for the caller to
    /// fetch.
    #[error("NumPy has no data type for the scalar")]
    NoDescriptor,
    /// The array has more dimensions than any known version of NumPy allows. No Python exception is set.
    #[error("the array has more than {} dimensions", sys::MAX_DIMENSIONS)]
    TooManyDimensions,
}

/// Imports NumPy unless that was done before. After a failure the next call tries again.
///
/// # Safety
/// The thread must be attached to the interpreter.
pub unsafe fn import() -> Result<(), Error> {
    static IMPORTED: AtomicBool = AtomicBool::new(false);

    // Acquire, together with the release below, makes NumPy's function table visible to threads that did not import.
    if IMPORTED.load(Ordering::Acquire) {
        return Ok(());
    }
    // SAFETY: the thread is attached, as the caller promises.
    if unsafe { sys::cuwheel_numpy_import() } < 0 {
        return Err(Error::ImportFailed);
    }
    IMPORTED.store(true, Ordering::Release);
    Ok(())
}

/// Copies the state of an array into `state`; after `Ok`, everything that the fields' documentation promises is set.
///
/// # Safety
/// The thread must be attached, [`import`] must have succeeded, and `array` must be a live array that no other
/// thread changes in place meanwhile.
pub unsafe fn read_array(array: NonNull<sys::PyObject>, state: &mut MaybeUninit<sys::Array>) -> Result<(), Error> {
    // SAFETY: the caller promises what the shim requires of the object, and `state` has room for what it writes.
    if unsafe { sys::cuwheel_numpy_read_array(array.as_ptr(), state.as_mut_ptr()) } < 0 {
        return Err(Error::TooManyDimensions);
    }
    Ok(())
}

/// Reads what an array is, without where it is.
///
/// # Safety
/// The thread must be attached, [`import`] must have succeeded, and `array` must be a live array that no other
/// thread changes in place meanwhile.
#[must_use]
pub unsafe fn read_outline(array: NonNull<sys::PyObject>) -> sys::Outline {
    let mut outline = MaybeUninit::uninit();
    // SAFETY: the caller promises what the shim requires of the object; the shim sets every field.
    unsafe {
        sys::cuwheel_numpy_read_outline(array.as_ptr(), outline.as_mut_ptr());
        outline.assume_init()
    }
}

/// Reads a descriptor.
///
/// # Safety
/// The thread must be attached, [`import`] must have succeeded, and `descriptor` must be a live descriptor.
#[must_use]
pub unsafe fn read_descriptor(descriptor: NonNull<sys::PyObject>) -> sys::Element {
    let mut element = MaybeUninit::uninit();
    // SAFETY: the caller promises what the shim requires of the object; the shim sets every field.
    unsafe {
        sys::cuwheel_numpy_read_descriptor(descriptor.as_ptr(), element.as_mut_ptr());
        element.assume_init()
    }
}

/// Reads the unit of dates or durations, `None` for other data types.
///
/// # Safety
/// The thread must be attached, [`import`] must have succeeded, and `descriptor` must be a live descriptor.
#[must_use]
pub unsafe fn read_datetime(descriptor: NonNull<sys::PyObject>) -> Option<sys::Datetime> {
    let mut datetime = MaybeUninit::uninit();
    // SAFETY: the caller promises what the shim requires of the object.
    let is_datetime = unsafe { sys::cuwheel_numpy_read_datetime(descriptor.as_ptr(), datetime.as_mut_ptr()) };
    // SAFETY: the shim sets both fields before it returns anything but zero.
    (is_datetime != 0).then(|| unsafe { datetime.assume_init() })
}

/// A new reference to the descriptor of an array.
///
/// # Safety
/// The thread must be attached, [`import`] must have succeeded, and `array` must be a live array that no other
/// thread changes in place meanwhile.
#[must_use]
pub unsafe fn array_descriptor(array: NonNull<sys::PyObject>) -> NonNull<sys::PyObject> {
    // SAFETY: the caller promises what the shim requires of the object; an array always has a descriptor.
    unsafe { NonNull::new_unchecked(sys::cuwheel_numpy_array_descriptor(array.as_ptr())) }
}

/// A new reference to the descriptor of a scalar.
///
/// # Safety
/// The thread must be attached, [`import`] must have succeeded, and `scalar` must be a live NumPy scalar.
pub unsafe fn scalar_descriptor(scalar: NonNull<sys::PyObject>) -> Result<NonNull<sys::PyObject>, Error> {
    // SAFETY: the caller promises what the shim requires of the object.
    NonNull::new(unsafe { sys::cuwheel_numpy_scalar_descriptor(scalar.as_ptr()) }).ok_or(Error::NoDescriptor)
}
