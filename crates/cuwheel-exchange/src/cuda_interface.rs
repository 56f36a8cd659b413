//! The CUDA array interface, read and written: a dictionary in the attribute `__cuda_array_interface__`.
//!
//! Versions 2 and 3 are read, version 3 is written: <https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html>.

use std::sync::Arc;

use cuwheel_device_array::{Array, ArrayParts, ArrayView, DType, Device, Layout, MemoryKind, Order, Stream};
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::{error, exception};

/// The version that is written.
const VERSION: u32 = 3;
/// The oldest version that is read.
const OLDEST_VERSION: u32 = 2;

/// What an object says of itself by the interface.
pub(crate) struct Described {
    pub(crate) array: Array,
    /// The stream behind which the data is ready; `None` if it is ready, or the producer does not say.
    pub(crate) ready_on: Option<Stream>,
}

/// Reads the interface, if the object has it. The array keeps the object alive.
pub(crate) fn read(object: &Bound<'_, PyAny>) -> PyResult<Option<Described>> {
    let py = object.py();
    let Some(attribute) = object.getattr_opt(intern!(py, "__cuda_array_interface__"))? else { return Ok(None) };
    let fields = Fields::of(&attribute)?;
    let version: u32 = fields.required("version")?.extract()?;
    if version < OLDEST_VERSION {
        return Err(fields.invalid(format!("version {version} is older than {OLDEST_VERSION}")));
    }
    if fields.optional("mask")?.is_some() {
        return Err(exception::new::<PyBufferError>(
            py,
            "the array has a mask, which device arrays cannot have; fill it first",
        ));
    }
    let typestr: String = fields.required("typestr")?.extract()?;
    let dtype = DType::from_typestr(&typestr).map_err(|error| error::exception(py, error))?;
    let (pointer, read_only): (usize, bool) = fields.required("data")?.extract()?;
    let shape: Vec<i64> = fields.required("shape")?.extract()?;
    let layout = match fields.optional("strides")? {
        Some(strides) => {
            let strides: Vec<i64> = strides.extract()?;
            if strides.len() != shape.len() {
                let message = format!("{} strides for {} dimensions", strides.len(), shape.len());
                return Err(fields.invalid(message));
            }
            Layout::from_bytes(&shape, &strides, dtype)
        }
        None => Layout::contiguous(&shape, Order::C),
    }
    .map_err(|error| error::exception(py, error))?;
    let ready_on = match fields.optional("stream")? {
        Some(stream) => Some(fields.stream(&stream)?),
        None => None,
    };
    let keep_alive: Py<PyAny> = object.clone().unbind();
    // The interface has neither kinds nor devices: the driver tells.
    let parts = ArrayParts {
        pointer: pointer as u64,
        layout,
        dtype,
        kind: MemoryKind::Device,
        device: Device::new(0),
        stream: Stream::LEGACY,
        read_only,
    };
    let view = ArrayView::new(parts).map_err(|error| error::exception(py, error))?;
    let view = view.located().map_err(|error| error::exception(py, error))?;
    // SAFETY: the object vouches for the memory that it describes, for as long as it lives.
    let array = unsafe { Array::borrowed(view, Arc::new(keep_alive)) };
    Ok(Some(Described { array, ready_on }))
}

/// The fields of an interface, with errors that name it.
struct Fields<'a, 'py>(&'a Bound<'py, PyDict>);

impl<'a, 'py> Fields<'a, 'py> {
    fn of(attribute: &'a Bound<'py, PyAny>) -> PyResult<Self> {
        attribute.cast::<PyDict>().map(Self).map_err(|_| {
            let message = format!("__cuda_array_interface__ is {}, no dict", exception::type_name(attribute));
            exception::new::<PyTypeError>(attribute.py(), message)
        })
    }

    /// The value of a field that may be absent or None.
    fn optional(&self, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.0.get_item(name)?.filter(|value| !value.is_none()))
    }

    fn required(&self, name: &str) -> PyResult<Bound<'py, PyAny>> {
        self.optional(name)?.ok_or_else(|| self.invalid(format!("it has no {name}")))
    }

    fn invalid(&self, what: impl std::fmt::Display) -> PyErr {
        exception::new::<PyValueError>(self.0.py(), format!("__cuda_array_interface__ is not valid: {what}"))
    }

    /// 1 is the legacy default stream, 2 the per-thread one; 0 is not allowed since it could be either.
    fn stream(&self, stream: &Bound<'py, PyAny>) -> PyResult<Stream> {
        match stream.extract()? {
            0 => Err(self.invalid("stream 0 is ambiguous; 1 is the legacy default stream, 2 the per-thread one")),
            // SAFETY: the producer vouches for the stream as it does for the memory.
            handle => Ok(unsafe { Stream::borrowed(handle, None) }),
        }
    }
}

/// The interface of `view`, a dictionary.
///
/// # Errors
/// `BufferError` if NumPy has no name for the data type, or the memory is not on a device that the interface can describe.
pub fn cuda_array_interface<'py>(py: Python<'py>, view: &ArrayView) -> PyResult<Bound<'py, PyDict>> {
    let dtype = view.dtype();
    let Some(typestr) = dtype.typestr() else {
        let message = format!("{} has no name in the CUDA array interface; use DLPack", dtype.name());
        return Err(exception::new::<PyBufferError>(py, message));
    };
    if view.kind() == MemoryKind::Host {
        return Err(exception::new::<PyBufferError>(py, "the array is in host memory, which devices do not see"));
    }
    let interface = PyDict::new(py);
    interface.set_item(intern!(py, "version"), VERSION)?;
    interface.set_item(intern!(py, "typestr"), typestr)?;
    interface.set_item(intern!(py, "data"), (view.pointer(), view.is_read_only()))?;
    interface.set_item(intern!(py, "shape"), PyTuple::new(py, view.shape())?)?;
    let strides = match view.strides_bytes() {
        Ok(strides) if !view.is_c_contiguous() => Some(PyTuple::new(py, strides)?),
        _ => None,
    };
    interface.set_item(intern!(py, "strides"), strides)?;
    // 0 is not allowed: it could be either default stream.
    interface.set_item(intern!(py, "stream"), view.stream().handle().max(1))?;
    Ok(interface)
}
