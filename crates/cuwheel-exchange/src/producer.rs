//! The exchange table of a Python class whose instances are our arrays.
//!
//! Consumers call it from C, with the thread attached for all but the allocator. Nothing here synchronises.

use std::ffi::{CString, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{self, NonNull};

use cuwheel_device_array::{Array, Classified, Device, MemoryKind, Order, Stream, stream};
use pyo3::PyClass;
use pyo3::exceptions::{PyBufferError, PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;
use pyo3::types::PyCapsule;

use crate::abi::{
    DLDeviceType, DLManagedTensorVersioned, DLPackExchangeAPI, DLPackExchangeAPIHeader, DLTensor, DlpackFlags,
    TABLE_CAPSULE, VERSION,
};
use crate::export::{self, ExportError};
use crate::foreign::ForeignTensor;
use crate::{error, exception, import, tensor};

/// A Python class of arrays: with it comes an exchange table, in [`table_capsule`].
pub trait Producer: PyClass<Frozen = True> + Sync {
    /// The array of an instance.
    fn array(&self) -> &Array;

    /// A new instance.
    fn wrap(py: Python<'_>, array: Array) -> PyResult<Py<PyAny>>;
}

/// The value of `__dlpack_c_exchange_api__` for the class `T`, DLPack 1.3; all five functions are there.
///
/// Declare it as a class attribute:
///
/// ```ignore
/// #[classattr]
/// fn __dlpack_c_exchange_api__(py: Python<'_>) -> PyResult<Py<PyCapsule>> {
///     cuwheel_exchange::table_capsule::<Self>(py)
/// }
/// ```
pub fn table_capsule<T: Producer>(py: Python<'_>) -> PyResult<Py<PyCapsule>> {
    let table = NonNull::from(<Table<T>>::TABLE).cast::<c_void>();
    // SAFETY: the table lives as long as the process, and a capsule of this name holds one.
    unsafe { PyCapsule::new_with_pointer(py, table, TABLE_CAPSULE) }.map(Bound::unbind)
}

/// One table for each class.
struct Table<T>(std::marker::PhantomData<T>);

impl<T: Producer> Table<T> {
    const TABLE: &'static DLPackExchangeAPI = &DLPackExchangeAPI {
        header: DLPackExchangeAPIHeader { version: VERSION, prev_api: ptr::null_mut() },
        managed_tensor_allocator: Some(allocate),
        managed_tensor_from_py_object_no_sync: Some(managed_from_object::<T>),
        managed_tensor_to_py_object_no_sync: Some(object_from_managed::<T>),
        dltensor_from_py_object_no_sync: Some(view_from_object::<T>),
        current_work_stream: Some(current_work_stream),
    };
}

/// The body of every function that Python's exceptions come out of: 0, or -1 with an exception set.
///
/// # Safety
/// The thread must be attached.
unsafe fn guarded(body: impl FnOnce(Python<'_>) -> PyResult<()>) -> c_int {
    // SAFETY: the thread is attached, as the caller promises.
    let py = unsafe { Python::assume_attached() };
    let result = catch_unwind(AssertUnwindSafe(|| body(py)))
        .unwrap_or_else(|_| Err(exception::new::<PyRuntimeError>(py, "an internal error; please report it")));
    match result {
        Ok(()) => 0,
        Err(error) => {
            error.restore(py);
            -1
        }
    }
}

/// The array of the object at `object`.
///
/// # Safety
/// `object` must point to a Python object that stays alive for the lifetime of `py`.
unsafe fn array_of<T: Producer>(py: Python<'_>, object: *mut c_void) -> PyResult<&Array> {
    // SAFETY: the thread is attached, and the caller promises that the object lives.
    let object = unsafe { Borrowed::from_ptr(py, object.cast()) };
    let Ok(instance) = object.cast::<T>() else {
        let message = format!("the exchange table of {} was called with {}", T::NAME, exception::type_name(&object));
        return Err(exception::new::<PyTypeError>(py, message));
    };
    // SAFETY: the object outlives the result, as the caller promises, and being frozen it does not change.
    Ok(unsafe { &*ptr::from_ref(instance.get().array()) })
}

unsafe extern "C" fn managed_from_object<T: Producer>(
    object: *mut c_void,
    out: *mut *mut DLManagedTensorVersioned,
) -> c_int {
    // SAFETY: the consumer is attached, keeps the object alive during the call, and gives a place for the result.
    unsafe {
        guarded(|py| {
            let array = array_of::<T>(py, object)?;
            let tensor = export::versioned(array.clone(), export::device(array), DlpackFlags::empty())
                .map_err(|error| error::exception(py, error))?;
            out.write(tensor.as_ptr());
            Ok(())
        })
    }
}

unsafe extern "C" fn view_from_object<T: Producer>(object: *mut c_void, out: *mut DLTensor) -> c_int {
    // SAFETY: as in `managed_from_object`; the consumer uses the result no longer than the object lives.
    unsafe {
        guarded(|py| {
            let array = array_of::<T>(py, object)?;
            // The description has no place for the flag: consumers then take the way that has.
            if array.is_read_only() {
                return Err(error::exception(py, ExportError::ReadOnly));
            }
            out.write(export::describe(array, export::device(array)).map_err(|error| error::exception(py, error))?);
            Ok(())
        })
    }
}

unsafe extern "C" fn object_from_managed<T: Producer>(
    tensor: *mut DLManagedTensorVersioned,
    out: *mut *mut c_void,
) -> c_int {
    // SAFETY: the consumer is attached, hands the tensor over, and gives a place for the result.
    unsafe {
        guarded(|py| {
            let Some(tensor) = NonNull::new(tensor) else {
                return Err(exception::new::<PyTypeError>(py, "there is no tensor to make an array of"));
            };
            let array = import::adopt(py, ForeignTensor::from_versioned(tensor))?;
            if array.kind() == MemoryKind::Host {
                let message = format!(
                    "the tensor is in host memory, which {} has no arrays in; move it to a device first",
                    T::NAME
                );
                return Err(exception::new::<PyBufferError>(py, message));
            }
            let stream = stream::current(array.device());
            out.write(T::wrap(py, array.with_stream(stream))?.into_ptr().cast());
            Ok(())
        })
    }
}

unsafe extern "C" fn current_work_stream(device_type: DLDeviceType, device_id: i32, out: *mut *mut c_void) -> c_int {
    // SAFETY: the consumer is attached and gives a place for the result.
    unsafe {
        guarded(|_| {
            let handle = match (device_type, u32::try_from(device_id)) {
                (DLDeviceType::CUDA | DLDeviceType::CUDAHOST | DLDeviceType::CUDAMANAGED, Ok(ordinal)) => {
                    stream::current(Device::new(ordinal)).handle()
                }
                _ => 0,
            };
            out.write(ptr::with_exposed_provenance_mut(handle));
            Ok(())
        })
    }
}

/// How an error of the allocator is said: the name of a Python exception, and a message.
type SetError = unsafe extern "C" fn(context: *mut c_void, kind: *const c_char, message: *const c_char);

/// Allocates an array like the prototype, on the current stream of its device. Needs no Python.
unsafe extern "C" fn allocate(
    prototype: *mut DLTensor,
    out: *mut *mut DLManagedTensorVersioned,
    error_context: *mut c_void,
    set_error: Option<SetError>,
) -> c_int {
    // SAFETY: the consumer gives a prototype, whose data is not read, and a place for the result.
    let result = catch_unwind(AssertUnwindSafe(|| unsafe { allocated(prototype) }))
        .unwrap_or_else(|_| Err(("RuntimeError", "an internal error; please report it".to_owned())));
    match result {
        Ok(tensor) => {
            // SAFETY: as above.
            unsafe { out.write(tensor.as_ptr()) };
            0
        }
        Err((kind, message)) => {
            if let Some(set_error) = set_error {
                let text = |text: &str| CString::new(text.replace('\0', " ")).unwrap_or_default();
                let (kind, message) = (text(kind), text(&message));
                // SAFETY: the consumer gives a function for its context; the texts live during the call.
                unsafe { set_error(error_context, kind.as_ptr(), message.as_ptr()) };
            }
            -1
        }
    }
}

/// # Safety
/// `prototype` must point to a tensor whose `shape` is null or as long as it says.
unsafe fn allocated(prototype: *mut DLTensor) -> Result<NonNull<DLManagedTensorVersioned>, (&'static str, String)> {
    // SAFETY: the caller promises that there is a tensor.
    let mut prototype = unsafe { *prototype };
    // Of the prototype only type, shape and device count.
    prototype.strides = ptr::null_mut();
    prototype.data = ptr::dangling_mut::<c_void>();
    prototype.byte_offset = 0;
    let mut c_order = None;
    // SAFETY: the shape is as the caller promises, and there are no strides.
    let described = unsafe { tensor::described(&prototype, DlpackFlags::empty(), &mut c_order) }
        .map_err(|error| ("BufferError", error.to_string()))?;
    let view = described.on(Stream::LEGACY);
    if view.kind() == MemoryKind::Host {
        let message =
            "this library allocates memory of CUDA devices and memory that they see; ask a library for the CPU";
        return Err(("BufferError", message.to_owned()));
    }
    let stream = stream::current(view.device());
    let array = Array::empty(view.shape(), view.dtype(), view.kind(), view.device(), &stream, Order::C)
        .map_err(|error| (error::class_name(error.kind()), error.to_string()))?;
    export::versioned(array, prototype.device, DlpackFlags::empty()).map_err(|error| ("BufferError", error.to_string()))
}
