//! The Python module `mviewbuf`: addresses and extents of buffers, and buffers over bare pointers.
//!
//! Names, results and exceptions follow the module of that name in numba-cuda. This file translates between Python and
//! `cuwheel_mviewbuf`, where the arithmetic is.

#![expect(clippy::doc_markdown, reason = "the comments on functions and classes are their Python docstrings too")]

use std::ffi::{c_int, c_void};
use std::ptr;

use cuwheel_mviewbuf::{Extents, ExtentsBuilder, ExtentsError, PointerBuffer, PointerBufferError};
use pyo3::exceptions::{PyBufferError, PyException, PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator, PyTuple};
use pyo3::{ffi, intern};

use crate::buffer::{Access, BufferSlot};
use crate::submodule::{Submodule, add_class};
use crate::{exception, number};

/// The module, as the library's table of modules lists it.
pub(crate) const SUBMODULE: Submodule = Submodule { name: "mviewbuf", populate };

/// How many dimensions are read between looks at whether Ctrl-C was pressed: a few milliseconds' worth.
const DIMENSIONS_BETWEEN_SIGNALS: usize = 1 << 16;

fn populate(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(memoryview_get_buffer, module)?)?;
    module.add_function(wrap_pyfunction!(memoryview_get_extents, module)?)?;
    module.add_function(wrap_pyfunction!(memoryview_get_extents_info, module)?)?;
    add_class::<MemAlloc>(module, SUBMODULE.name)
}

/// Return the address of the first item of a buffer.
///
/// The buffer is released before the function returns. The address is good for as long as the caller keeps `obj` alive
/// and does not resize it.
///
/// Args:
///     obj: Any object that exports a buffer; it is asked for `PyBUF_RECORDS`, or `PyBUF_RECORDS_RO` if read-only.
///     force: If true, an object without a writable buffer is asked for a read-only one.
///     readonly: If true, only a read-only buffer is asked for.
///
/// Returns:
///     The address as a non-negative integer.
///
/// Raises:
///     TypeError: `obj` exports no buffer.
///     BufferError: The buffer is not writable, and neither `force` nor `readonly` is true.
///     Exception: Whatever else the exporter raises.
#[pyfunction]
#[pyo3(signature = (obj, force = 0, readonly = 0, /))]
fn memoryview_get_buffer(
    obj: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = number::int_argument)] force: c_int,
    #[pyo3(from_py_with = number::int_argument)] readonly: c_int,
) -> PyResult<usize> {
    let mut slot = BufferSlot::new();
    if readonly != 0 {
        return Ok(slot.request(obj, Access::ReadOnly)?.address());
    }
    match slot.request(obj, Access::Writable) {
        Ok(buffer) => return Ok(buffer.address()),
        // An interrupt is no answer to the question whether the buffer is writable.
        Err(error) if force == 0 || !error.is_instance_of::<PyException>(obj.py()) => {
            return Err(error);
        }
        Err(_) => {}
    }
    Ok(slot.request(obj, Access::ReadOnly)?.address())
}

/// Return the half-open range of addresses that a buffer covers.
///
/// Negative strides are taken into account: the range may start before the first item. Memory between items counts as
/// covered.
///
/// Args:
///     obj: Any object that exports a buffer; it is asked for `PyBUF_RECORDS_RO`.
///
/// Returns:
///     `(start, end)` as non-negative integers; equal if the buffer has no items.
///
/// Raises:
///     TypeError: `obj` exports no buffer.
///     ValueError: The exporter gives no shape or no strides, as `ctypes` arrays do.
///     OverflowError: The range lies outside the address space.
///     Exception: Whatever else the exporter raises.
#[pyfunction]
#[pyo3(signature = (obj, /))]
fn memoryview_get_extents(obj: &Bound<'_, PyAny>) -> PyResult<(usize, usize)> {
    let mut slot = BufferSlot::new();
    let buffer = slot.request(obj, Access::ReadOnly)?;
    let (shape, strides) = buffer.shape_and_strides()?;
    let range = Extents::of_array(shape, strides, buffer.itemsize())
        .and_then(|extents| extents.at(buffer.address()))
        .map_err(|error| extents_exception(obj.py(), error))?;
    Ok((range.start, range.end))
}

/// Return the half-open range of byte offsets that an array covers, relative to its first item.
///
/// Args:
///     shape: The number of items along each dimension. Only the first `ndim` values are read.
///     strides: The bytes from one item to the next along each dimension. Only the first `ndim` values are read.
///     ndim: The number of dimensions, zero or more.
///     itemsize: The size of an item in bytes, one or more.
///
/// Returns:
///     `(start, end)`, for example `(-64, 32)` for shape `(3, 4)`, strides `(-32, 8)` and itemsize 8; `(0, 0)` if a
///     dimension has size 0.
///
/// Raises:
///     ValueError: `ndim` is negative, `itemsize` is not positive (the message is "ndim <= 0" all the same, as it
///         always was), or there are fewer than `ndim` sizes or strides.
///     TypeError: `shape` or `strides` is not a sequence of integers.
///     OverflowError: A value or an offset does not fit in 64 bits.
#[pyfunction]
#[pyo3(signature = (shape, strides, ndim, itemsize, /))]
fn memoryview_get_extents_info(
    shape: &Bound<'_, PyAny>,
    strides: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = number::int_argument)] ndim: c_int,
    #[pyo3(from_py_with = number::size_argument)] itemsize: isize,
) -> PyResult<(isize, isize)> {
    let py = shape.py();
    let Ok(ndim) = usize::try_from(ndim) else {
        return Err(exception::new::<PyValueError>(py, "ndim is negative"));
    };
    if itemsize <= 0 {
        return Err(itemsize_exception(py, itemsize));
    }
    let mut shape = Values::of(shape, "shape")?;
    let mut strides = Values::of(strides, "strides")?;
    let mut builder = ExtentsBuilder::new(itemsize).map_err(|error| extents_exception(py, error))?;
    for dimension in 0..ndim {
        if dimension % DIMENSIONS_BETWEEN_SIGNALS == DIMENSIONS_BETWEEN_SIGNALS - 1 {
            py.check_signals()?;
        }
        let size = shape.next(dimension, ndim)?;
        let stride = strides.next(dimension, ndim)?;
        builder.add_dimension(size, stride);
    }
    let extents = builder.finish().map_err(|error| extents_exception(py, error))?;
    Ok((extents.start(), extents.end()))
}

/// The message has always named the wrong argument and may be relied upon, so a note names the right one.
fn itemsize_exception(py: Python<'_>, itemsize: isize) -> PyErr {
    let error = exception::new::<PyValueError>(py, "ndim <= 0");
    let note = format!("itemsize must be positive, not {itemsize}");
    match error.value(py).call_method1(intern!(py, "add_note"), (note,)) {
        Ok(_) => error,
        Err(other) => other,
    }
}

/// The integers of an argument, read one by one: neither its length nor its end is trusted.
struct Values<'py> {
    iterator: Bound<'py, PyIterator>,
    argument: &'static str,
}

impl<'py> Values<'py> {
    fn of(values: &Bound<'py, PyAny>, argument: &'static str) -> PyResult<Self> {
        let py = values.py();
        // SAFETY: the thread is attached, as `py` witnesses; the result is a new reference or null with an exception
        // set.
        match unsafe { Bound::from_owned_ptr_or_opt(py, ffi::PyObject_GetIter(values.as_ptr())) } {
            Some(iterator) => Ok(Self { iterator: iterator.cast_into()?, argument }),
            None => Err(Self::exception(py, argument)),
        }
    }

    /// The exception that is set, in other words if it says that something cannot be iterated.
    fn exception(py: Python<'py>, argument: &str) -> PyErr {
        let error = exception::fetch(py);
        if error.is_instance_of::<PyTypeError>(py) {
            return exception::new::<PyTypeError>(py, format!("{argument} is not a sequence"));
        }
        error
    }

    fn next(&mut self, dimension: usize, ndim: usize) -> PyResult<isize> {
        let Some(value) = self.iterator.next() else {
            let message = format!("{} has {dimension} values, fewer than ndim = {ndim}", self.argument);
            return Err(exception::new::<PyValueError>(self.iterator.py(), message));
        };
        number::size(&value?)
    }
}

fn extents_exception(py: Python<'_>, error: ExtentsError) -> PyErr {
    match error {
        ExtentsError::NegativeItemSize { .. } | ExtentsError::DimensionMismatch { .. } => {
            exception::new::<PyValueError>(py, error.to_string())
        }
        ExtentsError::OffsetOverflow | ExtentsError::AddressOverflow { .. } => {
            exception::new::<PyOverflowError>(py, error.to_string())
        }
    }
}

fn pointer_buffer_exception(py: Python<'_>, error: PointerBufferError) -> PyErr {
    match error {
        PointerBufferError::NegativeSize | PointerBufferError::NullPointer => {
            exception::new::<PyValueError>(py, error.to_string())
        }
        PointerBufferError::OutsideAddressSpace { .. } => exception::new::<PyOverflowError>(py, error.to_string()),
    }
}

/// Base class of objects that offer memory known by address and length as a buffer.
///
/// A subclass, or its instances, has the attributes `_buflen_`, the length in bytes (an integer), and `_bufptr_`, the
/// address (anything that `int()` takes). Both are read, in this order and by ordinary attribute access, each time a
/// buffer is asked for.
///
/// The buffer is one-dimensional, contiguous, of format "B". It is writable if and only if the consumer asks for a
/// writable one: `memoryview(obj).readonly` is true, while `numpy.ndarray(n, "u1", buffer=obj)` is writable. It keeps
/// the object alive, not the memory: that is for the subclass to ensure.
///
/// Constructor arguments are ignored.
///
/// Raises, when a buffer is asked for:
///     AttributeError: An attribute is missing.
///     TypeError: An attribute is not a number.
///     ValueError: The length is negative or the address is null.
///     OverflowError: A value does not fit in 64 bits, or the memory would end outside the address space.
#[pyclass(subclass, frozen, module = "mviewbuf")]
struct MemAlloc;

#[pymethods]
impl MemAlloc {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> Self {
        Self
    }

    unsafe fn __getbuffer__(slf: &Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        if view.is_null() {
            let message = "a buffer was asked for without a place to put it";
            return Err(exception::new::<PyBufferError>(slf.py(), message));
        }
        // SAFETY: by the buffer protocol a `view` that is not null points to a structure that the caller lends for
        // writing. The field says that no buffer is held, should anything below fail.
        unsafe { (*view).obj = ptr::null_mut() };
        let buffer = pointer_buffer(slf)?;
        let address = ptr::with_exposed_provenance_mut::<c_void>(buffer.address().get());
        let is_readonly = c_int::from(flags & ffi::PyBUF_WRITABLE == 0);
        // SAFETY: the thread is attached, as the type of `slf` witnesses, and `view` is writable as above. The
        // address is only stored; that it is good is the subclass's promise to the consumer.
        let status =
            unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), address, buffer.size_bytes(), is_readonly, flags) };
        if status == 0 { Ok(()) } else { Err(exception::fetch(slf.py())) }
    }

    /// Does nothing; there for subclasses that call it.
    #[expect(clippy::unused_self, reason = "the buffer protocol passes the exporter")]
    unsafe fn __releasebuffer__(&self, _view: *mut ffi::Py_buffer) {}
}

fn pointer_buffer(object: &Bound<'_, MemAlloc>) -> PyResult<PointerBuffer> {
    let py = object.py();
    let size = object.getattr(intern!(py, "_buflen_"))?;
    let pointer = object.getattr(intern!(py, "_bufptr_"))?;
    let size_bytes = number::size(&size)?;
    // A bad length is reported without looking at the pointer.
    if size_bytes < 0 {
        return Err(pointer_buffer_exception(py, PointerBufferError::NegativeSize));
    }
    PointerBuffer::new(number::address(&pointer)?, size_bytes).map_err(|error| pointer_buffer_exception(py, error))
}
