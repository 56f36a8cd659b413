//! The C API of device arrays: the structure in the capsule `_DEVICEARRAY_API`, as `cuwheel/device_array.h` declares it.

use std::ffi::{CString, c_int, c_void};
use std::mem::offset_of;
use std::ptr::{self, NonNull};

use cuwheel_device_array::{ArrayView, MemoryKind};
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyCapsule;

use super::DeviceArray;
use super::buffer::dimensions;
use crate::exception;

/// The version of the structures; see the header.
const MAJOR: u32 = 1;
const MINOR: u32 = 0;

/// The code of DLPack for bytes whose meaning is not known, with 8 bits and as many lanes as fit.
const OPAQUE: (u8, u8, u16) = (3, 8, 1);

/// `CuwheelDeviceArray`.
#[repr(C)]
struct Description {
    data: *mut c_void,
    shape: *const i64,
    strides: *const i64,
    stream: u64,
    item_bits: u64,
    ndim: i32,
    device: i32,
    memory_kind: i32,
    read_only: i32,
    dtype_code: u8,
    dtype_bits: u8,
    dtype_lanes: u16,
}

/// `CuwheelDeviceArrayAPI`.
#[repr(C)]
struct Api {
    major: u32,
    minor: u32,
    class: *mut ffi::PyTypeObject,
    check: unsafe extern "C" fn(*mut ffi::PyObject) -> c_int,
    describe: unsafe extern "C" fn(*mut ffi::PyObject, *mut Description) -> c_int,
}

// What C compilers make of the header, on the platforms that CUDA runs on.
const _: () = {
    assert!(size_of::<Description>() == 64 && offset_of!(Description, ndim) == 40);
    assert!(offset_of!(Description, dtype_code) == 56 && offset_of!(Description, dtype_lanes) == 58);
    assert!(size_of::<Api>() == 32 && offset_of!(Api, check) == 16);
};

// SAFETY: nothing in it changes after it was made, and the class lives as long as the process.
unsafe impl Send for Api {}
// SAFETY: as above.
unsafe impl Sync for Api {}

/// The capsule, named after the module that it is in.
pub(super) fn capsule(module: &Bound<'_, PyModule>) -> PyResult<Py<PyCapsule>> {
    static API: PyOnceLock<Api> = PyOnceLock::new();
    let py = module.py();
    let api = API.get_or_init(py, || Api {
        major: MAJOR,
        minor: MINOR,
        class: py.get_type::<DeviceArray>().as_type_ptr(),
        check,
        describe,
    });
    let name = CString::new(format!("{}._DEVICEARRAY_API", module.name()?.to_str()?))?;
    // The capsule needs a name that lives as long as it does, which is the life of the process.
    let name = Box::leak(name.into_boxed_c_str());
    // SAFETY: the structure lives as long as the process.
    unsafe { PyCapsule::new_with_pointer(py, NonNull::from(api).cast(), name) }.map(Bound::unbind)
}

/// # Safety
/// The thread must be attached, and `object` a live object or null.
unsafe extern "C" fn check(object: *mut ffi::PyObject) -> c_int {
    // SAFETY: as the caller promises.
    let object = unsafe { Borrowed::from_ptr_or_opt(Python::assume_attached(), object) };
    c_int::from(object.is_some_and(|object| object.cast::<DeviceArray>().is_ok()))
}

/// # Safety
/// The thread must be attached, `object` a live object or null, and `out` a place for a description.
unsafe extern "C" fn describe(object: *mut ffi::PyObject, out: *mut Description) -> c_int {
    // SAFETY: as the caller promises.
    let (py, object) = unsafe {
        let py = Python::assume_attached();
        (py, Borrowed::from_ptr_or_opt(py, object))
    };
    let Some(array) = object.as_ref().and_then(|object| object.cast::<DeviceArray>().ok()) else {
        let found = object.as_ref().map_or_else(|| "NULL".to_owned(), |object| exception::type_name(object));
        exception::new::<PyTypeError>(py, format!("expected a cuwheel.DeviceArray, not {found}")).restore(py);
        return -1;
    };
    // SAFETY: as the caller promises.
    unsafe { out.write(description(&array.get().array)) };
    0
}

fn description(view: &ArrayView) -> Description {
    let (dtype_code, dtype_bits, dtype_lanes) = view.dtype().dlpack().unwrap_or(OPAQUE);
    Description {
        data: ptr::with_exposed_provenance_mut(view.address()),
        shape: view.shape().as_ptr(),
        strides: view.strides_elements().map_or(ptr::null(), <[i64]>::as_ptr),
        stream: view.stream().handle() as u64,
        item_bits: view.dtype().bits(),
        ndim: dimensions(view.ndim()),
        device: view.device().ordinal().cast_signed(),
        memory_kind: match view.kind() {
            MemoryKind::Device => 0,
            MemoryKind::Pinned => 1,
            MemoryKind::Mapped => 2,
            MemoryKind::Managed => 3,
            MemoryKind::Host => 4,
        },
        read_only: i32::from(view.is_read_only()),
        dtype_code,
        dtype_bits,
        dtype_lanes,
    }
}
