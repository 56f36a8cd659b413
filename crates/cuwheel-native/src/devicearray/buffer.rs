//! Python's buffer protocol for arrays in memory that the host sees: no copy is made.

use std::ffi::{CString, c_int, c_void};
use std::ptr;

use cuwheel_device_array::{Array, DType};
use cuwheel_exchange::exception_of;
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;

use super::DeviceArray;
use crate::exception;

/// What a buffer needs beside the array: freed when the buffer is released.
struct Details {
    format: CString,
    strides: Vec<isize>,
    shape: Vec<isize>,
}

/// Fills `view`, once all work on the array's stream is done.
///
/// # Safety
/// `view` must point to a structure that may be written to.
pub(super) unsafe fn fill(slf: &Bound<'_, DeviceArray>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
    let py = slf.py();
    let array = &slf.get().array;
    let details = Box::new(details(py, array, flags)?);
    py.detach(|| array.stream().synchronize(array.device())).map_err(|error| exception_of(py, error))?;
    let details = Box::into_raw(details);
    let wants = |flag: c_int| flags & flag == flag;
    // SAFETY: the caller promises that `view` can be written to. `details` lives until the buffer is released; the memory
    // and what is owned by the array live as long as `obj`, which the consumer holds.
    unsafe {
        let Details { format, strides, shape } = &mut *details;
        view.write(ffi::Py_buffer {
            buf: ptr::with_exposed_provenance_mut::<c_void>(array.address()),
            obj: slf.clone().into_any().into_ptr(),
            len: array.size_bytes().cast_signed(),
            itemsize: array.dtype().size_bytes().unwrap_or(1).cast_signed(),
            readonly: c_int::from(array.is_read_only()),
            ndim: dimensions(shape.len()),
            format: if wants(ffi::PyBUF_FORMAT) { format.as_ptr().cast_mut() } else { ptr::null_mut() },
            shape: if wants(ffi::PyBUF_ND) { shape.as_mut_ptr() } else { ptr::null_mut() },
            strides: if wants(ffi::PyBUF_STRIDES) { strides.as_mut_ptr() } else { ptr::null_mut() },
            suboffsets: ptr::null_mut(),
            internal: details.cast(),
        });
    }
    Ok(())
}

/// Frees what [`fill`] made.
///
/// # Safety
/// `view` must be one that [`fill`] filled, and is released once.
pub(super) unsafe fn release(view: *mut ffi::Py_buffer) {
    // SAFETY: as the caller promises.
    unsafe {
        let details = (*view).internal.cast::<Details>();
        if !details.is_null() {
            (*view).internal = ptr::null_mut();
            drop(Box::from_raw(details));
        }
    }
}

fn details(py: Python<'_>, array: &Array, flags: c_int) -> PyResult<Details> {
    let refuse = |message: String| Err(exception::new::<PyBufferError>(py, message));
    let wants = |flag: c_int| flags & flag == flag;
    if !array.kind().is_host_visible() {
        return refuse(format!(
            "the array is in the memory of cuda:{}, which the host cannot read; copy it with copy_to_host()",
            array.device().ordinal()
        ));
    }
    if wants(ffi::PyBUF_WRITABLE) && array.is_read_only() {
        return refuse("the array is read-only; ask for a read-only buffer".to_owned());
    }
    let (c_order, f_order) = (array.is_c_contiguous(), array.is_f_contiguous());
    // A consumer that does not ask for strides reads the elements in C order, one beside the other.
    let is_served = match () {
        () if wants(ffi::PyBUF_C_CONTIGUOUS) || !wants(ffi::PyBUF_STRIDES) => c_order,
        () if wants(ffi::PyBUF_F_CONTIGUOUS) => f_order,
        () if wants(ffi::PyBUF_ANY_CONTIGUOUS) => c_order || f_order,
        () => true,
    };
    if !is_served {
        return refuse(
            "the elements do not lie in the order that was asked for; ask for a strided buffer, or copy the array"
                .to_owned(),
        );
    }
    let Some(format) = format(array.dtype()) else {
        return refuse(format!(
            "buffers have no packed elements such as {}; view the array as bytes: array.view(\"uint8\")",
            array.dtype()
        ));
    };
    let strides = array.strides_bytes().map_err(|error| exception_of(py, error))?;
    Ok(Details { format, strides: sizes(&strides), shape: sizes(array.shape()) })
}

/// Numbers of `Py_ssize_t`.
#[expect(clippy::cast_possible_truncation, reason = "the machines that CUDA runs on have 64 bits")]
fn sizes(numbers: &[i64]) -> Vec<isize> {
    numbers.iter().map(|number| *number as isize).collect()
}

/// A number of dimensions for C.
#[expect(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "layouts have at most 64 dimensions")]
pub(super) fn dimensions(number: usize) -> c_int {
    number as c_int
}

/// The type of an element in the language of Python's `struct`, as NumPy extends it; bytes without meaning for types that
/// it has no letter for.
fn format(dtype: DType) -> Option<CString> {
    let letters = match dtype {
        DType::Bool => "?",
        DType::Int8 => "b",
        DType::Int16 => "h",
        DType::Int32 => "i",
        DType::Int64 => "l",
        DType::UInt8 => "B",
        DType::UInt16 => "H",
        DType::UInt32 => "I",
        DType::UInt64 => "L",
        DType::Float16 => "e",
        DType::Float32 => "f",
        DType::Float64 => "d",
        DType::Complex64 => "Zf",
        DType::Complex128 => "Zd",
        other => return CString::new(format!("{}x", other.size_bytes()?)).ok(),
    };
    CString::new(letters).ok()
}
