//! Copies between device arrays and host arrays, and among device arrays.

use cuwheel_device_array::{Array, Error, ReshapeError, Stream, stream};
use cuwheel_exchange::{WorkOn, exception_of};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyMemoryView;

use super::DeviceArray;
use super::create::KindArgument;
use super::host::HostArray;
use super::place::{DeviceArgument, StreamArgument};
use super::{dtype, index};
use crate::exception;

/// Copies host data into an array that has the same shape and type.
pub(super) fn copy_in(array: &Array, host: &HostArray<'_>, stream: &Stream) -> PyResult<()> {
    let py = host.py();
    let region = host.region();
    py.detach(|| array.copy_from_host(region, stream)).map_err(|error| exception_of(py, error))
}

/// Sets every element to a single value.
pub(super) fn fill(array: &Array, value: &HostArray<'_>) -> PyResult<()> {
    let py = value.py();
    let element = value.element();
    py.detach(|| array.fill_bytes(element, array.stream())).map_err(|error| exception_of(py, error))
}

pub(super) fn from_host(array: &Array, obj: &Bound<'_, PyAny>, stream: Option<StreamArgument>) -> PyResult<()> {
    let host = HostArray::of(obj, Some(array.dtype()))?.broadcast_to(array.shape())?;
    copy_in(array, &host, &stream.map_or_else(|| array.stream().clone(), |stream| stream.0))
}

pub(super) fn to_host<'py>(
    py: Python<'py>,
    array: &Array,
    out: Option<&Bound<'py, PyAny>>,
    stream: Option<StreamArgument>,
) -> PyResult<Bound<'py, PyAny>> {
    let host = match out {
        Some(out) => HostArray::to_fill(out, array.shape(), array.dtype())?,
        None => HostArray::empty(py, array.shape(), array.dtype())?,
    };
    let stream = stream.map_or_else(|| array.stream().clone(), |stream| stream.0);
    let region = host.region_mut();
    py.detach(|| array.copy_to_host(region, &stream)).map_err(|error| exception_of(py, error))?;
    Ok(host.into_object())
}

pub(super) fn to_device(
    py: Python<'_>,
    array: &Array,
    device: Option<DeviceArgument>,
    kind: KindArgument,
    stream: Option<StreamArgument>,
) -> PyResult<DeviceArray> {
    let device = device.map_or(array.device(), |device| device.0);
    let stream = match stream {
        Some(stream) => stream.0,
        None if device == array.device() => array.stream().clone(),
        None => stream::current(device),
    };
    let array =
        py.detach(|| array.contiguous_copy(kind.0, device, &stream)).map_err(|error| exception_of(py, error))?;
    Ok(DeviceArray { array })
}

pub(super) fn reshape(py: Python<'_>, array: &Array, shape: &[i64], copy: Option<bool>) -> PyResult<DeviceArray> {
    let copy_first = || {
        py.detach(|| array.contiguous_copy(array.kind(), array.device(), array.stream()))
            .map_err(|error| exception_of(py, error))
    };
    let view = match array.reshape(shape) {
        Ok(_) if copy == Some(true) => copy_first()?.reshape(shape),
        Err(Error::Reshape(ReshapeError::NeedsCopy { .. })) if copy != Some(false) => copy_first()?.reshape(shape),
        view => view,
    };
    DeviceArray::view(py, view)
}

pub(super) fn assign(target: &Array, value: &Bound<'_, PyAny>) -> PyResult<()> {
    if super::create::is_on_device(value)? {
        return assign_device_array(target, value);
    }
    let host = HostArray::of(value, Some(target.dtype()))?;
    if host.shape().is_empty() {
        return fill(target, &host);
    }
    let host = host.broadcast_to(target.shape())?;
    copy_in(target, &host, target.stream())
}

fn assign_device_array(target: &Array, value: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = value.py();
    let source = match value.cast::<DeviceArray>() {
        Ok(own) => own.get().array.clone(),
        Err(_) => cuwheel_exchange::import(value, WorkOn::Producers)?,
    };
    if source.dtype() != target.dtype() {
        let message = format!(
            "elements of type {} cannot be assigned to an array of type {}: converting them on a device is arithmetic; \
             convert the value first",
            source.dtype(),
            target.dtype()
        );
        return Err(exception::new::<PyTypeError>(py, message));
    }
    let source = match index::surplus_axes(source.shape(), target.shape()) {
        Some(axes) => source.squeeze(Some(&axes)).and_then(|source| source.broadcast_to(target.shape())),
        None => source.broadcast_to(target.shape()),
    }
    .map_err(|error| exception_of(py, error))?;
    py.detach(|| source.copy_to(target, target.stream())).map_err(|error| exception_of(py, error))
}

pub(super) fn as_numpy<'py>(
    slf: &Bound<'py, DeviceArray>,
    wanted: Option<&Bound<'py, PyAny>>,
    copy: Option<bool>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = slf.py();
    let array = &slf.get().array;
    if !array.kind().is_host_visible() {
        let message = format!(
            "the array is in the memory of cuda:{}, and NumPy would have to copy it without saying so; use copy_to_host()",
            array.device().ordinal()
        );
        return Err(exception::new::<PyTypeError>(py, message));
    }
    let Some(own) = dtype::numpy_dtype(py, array.dtype())? else {
        return Err(dtype::no_numpy_dtype(py, array.dtype()));
    };
    let memory = PyMemoryView::from(slf.as_any())?;
    let shared = dtype::numpy_module(py)?.call_method1(intern!(py, "asarray"), (memory,))?;
    // Buffers have no letters for all types.
    let shared = shared.call_method1(intern!(py, "view"), (&own,))?;
    match wanted {
        Some(wanted) if !own.eq(wanted)? => {
            if copy == Some(false) {
                let message =
                    format!("the array has the type {own}, and copy=False forbids to convert it; leave copy out");
                return Err(exception::new::<PyValueError>(py, message));
            }
            shared.call_method1(intern!(py, "astype"), (wanted,))
        }
        _ if copy == Some(true) => shared.call_method0(intern!(py, "copy")),
        _ => Ok(shared),
    }
}
