//! The method `__dlpack__` of other libraries' arrays, and the capsules that it returns.
//!
//! Which kind of tensor a capsule holds is told by the capsule's name, whatever was asked for: there are producers that
//! take `max_version` and ignore it.

use std::ptr::NonNull;

use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use pyo3::{ffi, intern};

use crate::abi::{
    DLDeviceType, LEGACY_CAPSULE, USED_LEGACY_CAPSULE, USED_VERSIONED_CAPSULE, VERSION, VERSIONED_CAPSULE,
};
use crate::exception;
use crate::foreign::ForeignTensor;

/// Asks an object for a tensor that is ready for work on the stream with the handle `consumer`.
pub(crate) fn request(
    object: &Bound<'_, PyAny>,
    consumer: impl FnOnce(i32) -> usize,
) -> PyResult<Option<ForeignTensor>> {
    let py = object.py();
    let Some(method) = object.getattr_opt(intern!(py, "__dlpack__"))? else { return Ok(None) };
    let arguments = PyDict::new(py);
    let (device_type, device_id): (u32, i32) = object.call_method0(intern!(py, "__dlpack_device__"))?.extract()?;
    // Arrays in host memory have no stream.
    if [DLDeviceType::CUDA, DLDeviceType::CUDAMANAGED].contains(&DLDeviceType(device_type)) {
        // 0 is not allowed: it could be either default stream.
        arguments.set_item(intern!(py, "stream"), consumer(device_id).max(1))?;
    }
    arguments.set_item(intern!(py, "max_version"), (VERSION.major, VERSION.minor))?;
    let capsule = match method.call((), Some(&arguments)) {
        // A producer from before DLPack 1.0 does not know the argument.
        Err(error) if error.is_instance_of::<PyTypeError>(py) => {
            arguments.del_item(intern!(py, "max_version"))?;
            match method.call((), Some(&arguments)) {
                // The argument was not what it is about.
                Err(second) if second.is_instance_of::<PyTypeError>(py) => return Err(error),
                answer => answer?,
            }
        }
        other => other?,
    };
    take(&capsule).map(Some)
}

/// Takes the tensor out of a capsule, which is renamed at once so that nobody takes it again.
fn take(object: &Bound<'_, PyAny>) -> PyResult<ForeignTensor> {
    let py = object.py();
    let Ok(capsule) = object.cast::<PyCapsule>() else {
        let message = format!("__dlpack__ returned {}, no capsule", exception::type_name(object));
        return Err(exception::new::<PyTypeError>(py, message));
    };
    let (is_versioned, name, used_name) = if capsule.is_valid_checked(Some(VERSIONED_CAPSULE)) {
        (true, VERSIONED_CAPSULE, USED_VERSIONED_CAPSULE)
    } else if capsule.is_valid_checked(Some(LEGACY_CAPSULE)) {
        (false, LEGACY_CAPSULE, USED_LEGACY_CAPSULE)
    } else {
        let message = "__dlpack__ returned a capsule without a tensor, or one whose tensor was taken before; ask the array for another";
        return Err(exception::new::<PyBufferError>(py, message));
    };
    let pointer = capsule.pointer_checked(Some(name))?;
    // SAFETY: the thread is attached, `capsule` is a capsule, and the name is a constant.
    if unsafe { ffi::PyCapsule_SetName(capsule.as_ptr(), used_name.as_ptr()) } != 0 {
        return Err(exception::fetch(py));
    }
    let pointer: NonNull<_> = pointer;
    // SAFETY: a capsule of this name holds a tensor of this kind, and belongs to whoever renames it; only native code
    // makes capsules, and vouches for them.
    Ok(unsafe {
        if is_versioned {
            ForeignTensor::from_versioned(pointer.cast())
        } else {
            ForeignTensor::from_legacy(pointer.cast())
        }
    })
}
