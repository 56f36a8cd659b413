//! What the array API standard asks of `__dlpack__`, for classes of our arrays.
//!
//! Source: <https://data-apis.org/array-api/2025.12/API_specification/generated/array_api.array.__dlpack__.html>.

use std::ffi::CStr;
use std::ptr::NonNull;

use cuwheel_device_array::{Array, Device, MemoryKind, Stream};
use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::abi::{
    DLDevice, DLDeviceType, DLManagedTensor, DLManagedTensorVersioned, DlpackFlags, LEGACY_CAPSULE, VERSIONED_CAPSULE,
};
use crate::foreign::ForeignTensor;
use crate::{error, exception, export};

/// The arguments of `__dlpack__`, as Python passes them.
#[derive(Debug, Default)]
pub struct DlpackArguments {
    /// The consumer's stream: none for the legacy default stream, -1 for no synchronisation at all, 1 and 2 for the
    /// legacy and the per-thread default stream, else a handle.
    pub stream: Option<i64>,
    /// The newest version that the consumer reads; none for a tensor without version.
    pub max_version: Option<(u32, u32)>,
    /// Where the consumer wants the data, `(type, number)`; none for where it is.
    pub dl_device: Option<(i32, i32)>,
    /// Whether the data must be copied (`true`), must not be (`false`), or may be.
    pub copy: Option<bool>,
}

/// The capsule that `__dlpack__` returns for `array`. The thread is detached while a device works.
///
/// # Errors
/// `ValueError` for stream 0, which could be either default stream; `BufferError` if the data cannot be described, is
/// read-only and the consumer cannot be told, or would have to be copied and must not be.
pub fn dlpack<'py>(py: Python<'py>, array: &Array, arguments: &DlpackArguments) -> PyResult<Bound<'py, PyCapsule>> {
    let consumer = consumer_stream(py, arguments.stream)?;
    let plan = Plan::new(py, array, arguments)?;
    let exported =
        py.detach(|| plan.carry_out(array, consumer.as_ref())).map_err(|error| error::exception(py, error))?;
    let flags = if plan.copies { DlpackFlags::IS_COPIED } else { DlpackFlags::empty() };
    if arguments.max_version.is_some_and(|(major, _)| major >= 1) {
        let tensor = export::versioned(exported, plan.device, flags).map_err(|error| error::exception(py, error))?;
        // SAFETY: the tensor was just made, and the capsule is its owner from here on.
        return unsafe { capsule(py, tensor.cast(), VERSIONED_CAPSULE, delete_versioned) };
    }
    let tensor = export::legacy(exported, plan.device).map_err(|error| error::exception(py, error))?;
    // SAFETY: as above.
    unsafe { capsule(py, tensor.cast(), LEGACY_CAPSULE, delete_legacy) }
}

/// The stream that the data has to be ready for, if the consumer cares.
fn consumer_stream(py: Python<'_>, stream: Option<i64>) -> PyResult<Option<Stream>> {
    let handle = match stream {
        None => return Ok(Some(Stream::LEGACY)),
        Some(-1) => return Ok(None),
        Some(0) => {
            let message = "stream 0 could be either default stream; pass 1 for the legacy one, 2 for the per-thread one, or -1 for no synchronisation";
            return Err(exception::new::<PyValueError>(py, message));
        }
        Some(handle) => usize::try_from(handle).map_err(|_| {
            exception::new::<PyValueError>(
                py,
                format!("{handle} is no handle of a stream; negative is only -1, for no synchronisation"),
            )
        })?,
    };
    // SAFETY: the caller vouches for the handles that it passes, as the array API standard has it.
    Ok(Some(unsafe { Stream::borrowed(handle, None) }))
}

/// What has to be done with the data before it is handed out.
struct Plan {
    /// As what the tensor is described.
    device: DLDevice,
    /// Where a copy goes to.
    target: (MemoryKind, Device),
    copies: bool,
}

impl Plan {
    fn new(py: Python<'_>, array: &Array, arguments: &DlpackArguments) -> PyResult<Self> {
        let own = export::device(array);
        let wanted = arguments.dl_device.map_or(own, |(device_type, device_id)| DLDevice {
            device_type: DLDeviceType(device_type.cast_unsigned()),
            device_id,
        });
        let here = (array.kind(), array.device());
        let number = u32::try_from(wanted.device_id);
        let (target, must_copy) = match (wanted.device_type, number) {
            _ if wanted == own => (here, false),
            (DLDeviceType::CPU, Ok(0)) => ((MemoryKind::Host, array.device()), !array.kind().is_host_visible()),
            (DLDeviceType::CUDA, Ok(number)) => {
                // Managed memory is on whichever device touches it.
                ((MemoryKind::Device, Device::new(number)), array.kind() != MemoryKind::Managed)
            }
            _ => {
                let message = format!(
                    "an array cannot be exported to the DLPack device ({}, {}); ask for {:?}, for (1, 0), which is the CPU, or for a \
                     CUDA device",
                    wanted.device_type.0,
                    wanted.device_id,
                    export::dlpack_device(array)
                );
                return Err(exception::new::<PyBufferError>(py, message));
            }
        };
        if must_copy && arguments.copy == Some(false) {
            let message = "the data would have to be copied to that device, and copy=False forbids it; leave copy out";
            return Err(exception::new::<PyBufferError>(py, message));
        }
        Ok(Self { device: wanted, target, copies: must_copy || arguments.copy == Some(true) })
    }

    /// The array to hand out, ready for the consumer.
    fn carry_out(&self, array: &Array, consumer: Option<&Stream>) -> Result<Array, cuwheel_device_array::Error> {
        let (kind, device) = self.target;
        let exported = if self.copies { array.contiguous_copy(kind, device, array.stream())? } else { array.clone() };
        if self.device.device_type == DLDeviceType::CPU && array.kind().is_device_visible() {
            // A consumer on the CPU has no stream that could wait.
            array.stream().synchronize(array.device())?;
        } else if let Some(consumer) = consumer
            && array.kind().is_device_visible()
        {
            consumer.order_after(array.device(), array.stream(), array.device())?;
        }
        Ok(exported)
    }
}

/// # Safety
/// `tensor` must be what `delete` takes for a capsule of this name, and nobody else may own it.
unsafe fn capsule<'py>(
    py: Python<'py>,
    tensor: NonNull<std::ffi::c_void>,
    name: &'static CStr,
    delete: unsafe extern "C" fn(*mut ffi::PyObject),
) -> PyResult<Bound<'py, PyCapsule>> {
    // SAFETY: the thread is attached; the pointer is not null, and the name is a constant. If no capsule can be made, the
    // tensor is lost with the memory for it, which is a leak and nothing worse.
    unsafe { PyCapsule::new_with_pointer_and_destructor(py, tensor, name, Some(delete)) }
}

/// Frees the tensor of a capsule that nobody took.
///
/// # Safety
/// Python calls it with a capsule of [`capsule`]'s, with the thread attached.
unsafe extern "C" fn delete_versioned(capsule: *mut ffi::PyObject) {
    // SAFETY: as the caller promises. Whoever takes the tensor renames the capsule.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, VERSIONED_CAPSULE.as_ptr()) != 0 {
            let tensor = ffi::PyCapsule_GetPointer(capsule, VERSIONED_CAPSULE.as_ptr());
            if let Some(tensor) = NonNull::new(tensor.cast::<DLManagedTensorVersioned>()) {
                drop(ForeignTensor::from_versioned(tensor));
            }
        }
    }
}

/// As [`delete_versioned`], for the other kind.
///
/// # Safety
/// As for [`delete_versioned`].
unsafe extern "C" fn delete_legacy(capsule: *mut ffi::PyObject) {
    // SAFETY: as above.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, LEGACY_CAPSULE.as_ptr()) != 0 {
            let tensor = ffi::PyCapsule_GetPointer(capsule, LEGACY_CAPSULE.as_ptr());
            if let Some(tensor) = NonNull::new(tensor.cast::<DLManagedTensor>()) {
                drop(ForeignTensor::from_legacy(tensor));
            }
        }
    }
}
