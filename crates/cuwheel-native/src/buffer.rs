//! A Python object's buffer, held for as long as a Rust borrow lasts.
//!
//! Only what exporters declare about the memory is read, never the memory.

use std::cell::UnsafeCell;
use std::ffi::{CStr, c_int};
use std::mem::MaybeUninit;
use std::slice;

use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::exception;

/// A place for one buffer. Exporters may leave pointers to it in it, so it stays where it is while a buffer is held.
pub(crate) struct BufferSlot(UnsafeCell<MaybeUninit<ffi::Py_buffer>>);

/// A buffer that is held, and released when this is dropped.
///
/// The fields of the structure do not change while it is held; the exporter promises that by the buffer protocol.
pub(crate) struct Buffer<'slot, 'py> {
    view: &'slot UnsafeCell<MaybeUninit<ffi::Py_buffer>>,
    attached: Python<'py>,
}

/// What a consumer asks of an exporter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Memory that may be read: `PyBUF_RECORDS_RO`.
    ReadOnly,
    /// Memory that may be read and written: `PyBUF_RECORDS`.
    Writable,
    /// Whatever there is, pointers to pointers included: `PyBUF_FULL_RO`, as `memoryview` asks.
    Any,
}

impl Access {
    fn flags(self) -> c_int {
        match self {
            Self::ReadOnly => ffi::PyBUF_RECORDS_RO,
            Self::Writable => ffi::PyBUF_RECORDS,
            Self::Any => ffi::PyBUF_FULL_RO,
        }
    }
}

impl BufferSlot {
    pub(crate) fn new() -> Self {
        Self(UnsafeCell::new(MaybeUninit::uninit()))
    }

    /// Asks `exporter` for its buffer. The errors are the exporter's own.
    pub(crate) fn request<'slot, 'py>(
        &'slot mut self,
        exporter: &Bound<'py, PyAny>,
        access: Access,
    ) -> PyResult<Buffer<'slot, 'py>> {
        let view = self.0.get().cast::<ffi::Py_buffer>();
        // SAFETY: the thread is attached, as the type of `exporter` witnesses, and `view` points to memory for one
        // structure that nothing else uses, as `&mut self` witnesses.
        let status = unsafe { ffi::PyObject_GetBuffer(exporter.as_ptr(), view, access.flags()) };
        if status == 0 {
            Ok(Buffer { view: &self.0, attached: exporter.py() })
        } else {
            Err(exception::fetch(exporter.py()))
        }
    }
}

impl Buffer<'_, '_> {
    /// The address of the first item.
    pub(crate) fn address(&self) -> usize {
        self.view().buf.expose_provenance()
    }

    /// The size of an item in bytes.
    pub(crate) fn itemsize(&self) -> isize {
        self.view().itemsize
    }

    /// The number of items along each dimension, and the bytes from one to the next.
    pub(crate) fn shape_and_strides(&self) -> PyResult<(&[isize], &[isize])> {
        let view = self.view();
        let Ok(ndim) = usize::try_from(view.ndim) else {
            return Err(exception::new::<PyValueError>(self.attached, "buffer ndim < 0"));
        };
        if ndim == 0 {
            return Ok((&[], &[]));
        }
        if view.shape.is_null() {
            return Err(exception::new::<PyValueError>(self.attached, "buffer shape is not defined"));
        }
        if view.strides.is_null() {
            return Err(exception::new::<PyValueError>(self.attached, "buffer strides is not defined"));
        }
        // SAFETY: neither pointer is null, and the exporter keeps `ndim` values behind each, unchanged, until the
        // buffer is released, which takes the end of this borrow.
        Ok(unsafe { (slice::from_raw_parts(view.shape, ndim), slice::from_raw_parts(view.strides, ndim)) })
    }

    /// The number of dimensions, as far as there can be so many.
    pub(crate) fn dimension_count(&self) -> u32 {
        u32::try_from(self.view().ndim).unwrap_or(0)
    }

    /// Whether the memory may not be written.
    pub(crate) fn is_readonly(&self) -> bool {
        self.view().readonly != 0
    }

    /// Whether the items are one after another: the last index moving fastest, and the first.
    pub(crate) fn contiguity(&self) -> (bool, bool) {
        let is_contiguous = |order: u8| {
            // SAFETY: the thread is attached, as `self.attached` witnesses, and the structure holds a buffer.
            unsafe { ffi::PyBuffer_IsContiguous(self.view(), order.cast_signed()) != 0 }
        };
        (is_contiguous(b'C'), is_contiguous(b'F'))
    }

    /// The format of an item as the exporter gives it, `B` if it gives none; `None` if it is no text.
    pub(crate) fn format(&self) -> Option<&str> {
        let format = self.view().format;
        if format.is_null() {
            return Some("B");
        }
        // SAFETY: it is not null, and then the exporter keeps a string behind it, unchanged, until the buffer is
        // released, which takes the end of this borrow.
        unsafe { CStr::from_ptr(format) }.to_str().ok()
    }

    fn view(&self) -> &ffi::Py_buffer {
        // SAFETY: `BufferSlot::request` makes this type only after the exporter filled the structure, and it is written
        // again only in `drop`.
        unsafe { (*self.view.get()).assume_init_ref() }
    }
}

impl Drop for Buffer<'_, '_> {
    fn drop(&mut self) {
        // SAFETY: the thread is attached, as `self.attached` witnesses, and the structure holds a buffer that was not
        // released.
        unsafe { ffi::PyBuffer_Release(self.view.get().cast::<ffi::Py_buffer>()) };
    }
}
