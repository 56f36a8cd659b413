//! Pickling by value: what is written is the data, and what is read is a new array of the same kind.

#![expect(clippy::needless_pass_by_value, reason = "arguments of Python functions are converted, and then owned")]

use cuwheel_device_array::{DType, Device, HostRegion, HostRegionMut, Layout, Order};
use cuwheel_exchange::exception_of;
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use super::DeviceArray;
use super::create::{self, KindArgument, OrderArgument, Shape};
use super::dtype::DTypeArgument;
use super::place::DeviceArgument;
use crate::exception;

/// The function that makes the array again, and its arguments.
pub(super) fn reduce<'py>(slf: &Bound<'py, DeviceArray>) -> PyResult<Bound<'py, PyTuple>> {
    let py = slf.py();
    let array = &slf.get().array;
    let layout = Layout::contiguous(array.shape(), Order::C).map_err(|error| exception_of(py, error))?;
    let data = PyBytes::new_with(py, array.size_bytes(), |bytes| {
        // SAFETY: there are as many bytes as the elements take, and nobody else knows them yet.
        let region = unsafe { HostRegionMut::new(bytes.as_mut_ptr().expose_provenance(), &layout, array.dtype()) };
        py.detach(|| array.copy_to_host(region, array.stream())).map_err(|error| exception_of(py, error))
    })?;
    let module = py.import(slf.get_type().module()?)?;
    let shape = PyTuple::new(py, array.shape())?;
    let state =
        (shape, array.dtype().to_string(), array.device().ordinal(), array.kind().name(), array.is_read_only(), data);
    (module.getattr(intern!(py, "_rebuild"))?, state).into_pyobject(py)
}

/// Make an array of what pickle has read: on the device of the same number, or, where there are not that many, on the
/// device of the thread's current context.
#[pyfunction]
pub(super) fn _rebuild(
    py: Python<'_>,
    shape: Shape,
    dtype: &str,
    device: u32,
    kind: KindArgument,
    read_only: bool,
    data: &Bound<'_, PyBytes>,
) -> PyResult<DeviceArray> {
    let dtype = DType::from_name(dtype).map_err(|error| exception_of(py, error))?;
    let layout = Layout::contiguous(&shape.0, Order::C).map_err(|error| exception_of(py, error))?;
    let bytes = data.as_bytes();
    if layout.size_bytes(dtype).ok() != Some(bytes.len()) {
        let message =
            format!("{} bytes are not the elements of an array of shape {:?} and type {dtype}", bytes.len(), shape.0);
        return Err(exception::new::<PyValueError>(py, message));
    }
    let count = Device::count().map_err(|error| exception_of(py, error))?;
    let device =
        Some(device).filter(|device| (*device as usize) < count).map(|device| DeviceArgument(Device::new(device)));
    let new = create::empty(py, &shape, DTypeArgument(dtype), device, kind, OrderArgument::DEFAULT, None)?;
    // SAFETY: the bytes do not change, and are as many as the elements take.
    let region = unsafe { HostRegion::new(bytes.as_ptr().expose_provenance(), &layout, dtype) };
    let array = &new.array;
    py.detach(|| array.copy_from_host(region, array.stream())).map_err(|error| exception_of(py, error))?;
    Ok(if read_only { DeviceArray { array: new.array.read_only() } } else { new })
}
