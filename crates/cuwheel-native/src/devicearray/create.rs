//! New device arrays, and the arguments that say which.

use cuwheel_device_array::{Array, DType, MemoryKind, Order};
use cuwheel_exchange::{WorkOn, exception_of};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::DeviceArray;
use super::dtype::DTypeArgument;
use super::host::HostArray;
use super::place::{self, DeviceArgument, StreamArgument};
use super::{index, transfer};
use crate::exception;

/// A shape as an argument: an integer or several.
pub(super) struct Shape(pub(super) Vec<i64>);

impl<'py> FromPyObject<'_, 'py> for Shape {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        index::axis_or_axes(&object).map(Self)
    }
}

/// A kind of memory as an argument.
#[derive(Debug, Clone, Copy)]
pub(super) struct KindArgument(pub(super) MemoryKind);

impl KindArgument {
    pub(super) const DEFAULT: Self = Self(MemoryKind::Device);
    /// Those that arrays can be made in.
    const ALL: [MemoryKind; 4] = [MemoryKind::Device, MemoryKind::Pinned, MemoryKind::Mapped, MemoryKind::Managed];
}

impl<'py> FromPyObject<'_, 'py> for KindArgument {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let text = object.cast::<PyString>()?;
        let name = text.to_str()?;
        Self::ALL.into_iter().find(|kind| kind.name() == name).map(Self).ok_or_else(|| {
            let message = format!(
                "{name:?} is no kind of memory; the kinds are \"device\", \"pinned\", \"mapped\" and \"managed\""
            );
            exception::new::<PyValueError>(object.py(), message)
        })
    }
}

/// An order of elements as an argument.
#[derive(Debug, Clone, Copy)]
pub(super) struct OrderArgument(pub(super) Order);

impl OrderArgument {
    pub(super) const DEFAULT: Self = Self(Order::C);
}

impl<'py> FromPyObject<'_, 'py> for OrderArgument {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let text = object.cast::<PyString>()?;
        match text.to_str()? {
            "C" => Ok(Self(Order::C)),
            "F" => Ok(Self(Order::F)),
            other => {
                let message = format!("{other:?} is no order of elements; write \"C\" or \"F\"");
                Err(exception::new::<PyValueError>(object.py(), message))
            }
        }
    }
}

impl DTypeArgument {
    /// As in NumPy.
    pub(super) const DEFAULT: Self = Self(DType::Float64);
}

pub(super) fn empty(
    py: Python<'_>,
    shape: &Shape,
    dtype: DTypeArgument,
    device: Option<DeviceArgument>,
    kind: KindArgument,
    order: OrderArgument,
    stream: Option<StreamArgument>,
) -> PyResult<DeviceArray> {
    let device = place::device_or_current(py, device)?;
    let stream = place::stream_or_current(stream, device);
    let array = py
        .detach(|| Array::empty(&shape.0, dtype.0, kind.0, device, &stream, order.0))
        .map_err(|error| exception_of(py, error))?;
    Ok(DeviceArray { array })
}

pub(super) fn zeros(
    py: Python<'_>,
    shape: &Shape,
    dtype: DTypeArgument,
    device: Option<DeviceArgument>,
    kind: KindArgument,
    order: OrderArgument,
    stream: Option<StreamArgument>,
) -> PyResult<DeviceArray> {
    let new = empty(py, shape, dtype, device, kind, order, stream)?;
    let array = &new.array;
    py.detach(|| array.fill_zeros(array.stream())).map_err(|error| exception_of(py, error))?;
    Ok(new)
}

#[expect(clippy::too_many_arguments, reason = "each is an argument of the Python function")]
pub(super) fn full(
    py: Python<'_>,
    shape: &Shape,
    fill_value: &Bound<'_, PyAny>,
    dtype: Option<DTypeArgument>,
    device: Option<DeviceArgument>,
    kind: KindArgument,
    order: OrderArgument,
    stream: Option<StreamArgument>,
) -> PyResult<DeviceArray> {
    // Whether the value can be had is known before memory is.
    let value = HostArray::of(fill_value, dtype.map(|dtype| dtype.0))?;
    if !value.shape().is_empty() {
        let message = format!("fill_value has the shape {:?}; it must be a single value", value.shape());
        return Err(exception::new::<PyValueError>(py, message));
    }
    let new = empty(py, shape, DTypeArgument(value.dtype()), device, kind, order, stream)?;
    transfer::fill(&new.array, &value)?;
    Ok(new)
}

pub(super) fn from_host(
    obj: &Bound<'_, PyAny>,
    dtype: Option<DTypeArgument>,
    device: Option<DeviceArgument>,
    kind: KindArgument,
    stream: Option<StreamArgument>,
) -> PyResult<DeviceArray> {
    let host = HostArray::of(obj, dtype.map(|dtype| dtype.0))?;
    let shape = Shape(host.shape().to_vec());
    let new = empty(obj.py(), &shape, DTypeArgument(host.dtype()), device, kind, OrderArgument::DEFAULT, stream)?;
    transfer::copy_in(&new.array, &host, new.array.stream())?;
    Ok(new)
}

pub(super) fn from_dlpack(
    obj: &Bound<'_, PyAny>,
    device: Option<DeviceArgument>,
    copy: Option<bool>,
    stream: Option<StreamArgument>,
) -> PyResult<DeviceArray> {
    let py = obj.py();
    let array = imported(obj, stream)?;
    if array.kind() == MemoryKind::Host {
        let message = "the array is in host memory; copy it to a device with asarray()";
        return Err(exception::new::<PyValueError>(py, message));
    }
    if device.is_none() && copy != Some(true) {
        return Ok(DeviceArray { array });
    }
    settle(py, array, device, copy, KindArgument::DEFAULT)
}

/// An array of ours or of another library, ready on a stream, which becomes its own.
#[inline]
fn imported(obj: &Bound<'_, PyAny>, stream: Option<StreamArgument>) -> PyResult<Array> {
    let stream = stream.map(|stream| stream.0);
    let Ok(own) = obj.cast::<DeviceArray>() else {
        return cuwheel_exchange::import(obj, stream.as_ref().map_or(WorkOn::Current, WorkOn::Named));
    };
    // Of our own arrays the stream is known, and need not be the current one.
    let array = own.get().array.clone();
    let Some(stream) = stream else { return Ok(array) };
    let device = array.device();
    obj.py()
        .detach(|| stream.order_after(device, array.stream(), device))
        .map_err(|error| exception_of(obj.py(), error))?;
    Ok(array.with_stream(stream))
}

/// The array itself, or a copy of it where one is asked for or needed.
fn settle(
    py: Python<'_>,
    array: Array,
    device: Option<DeviceArgument>,
    copy: Option<bool>,
    kind: KindArgument,
) -> PyResult<DeviceArray> {
    let device = device.map_or(array.device(), |device| device.0);
    let must_copy = device != array.device();
    match copy {
        Some(false) if must_copy => {
            let message = format!(
                "the array is on cuda:{}, and copy=False forbids the copy to cuda:{}; leave copy out",
                array.device().ordinal(),
                device.ordinal()
            );
            Err(exception::new::<PyValueError>(py, message))
        }
        Some(true) => transfer::to_device(py, &array, Some(DeviceArgument(device)), kind, None),
        _ if must_copy => transfer::to_device(py, &array, Some(DeviceArgument(device)), kind, None),
        _ => Ok(DeviceArray { array }),
    }
}

pub(super) fn asarray(
    obj: &Bound<'_, PyAny>,
    dtype: Option<DTypeArgument>,
    device: Option<DeviceArgument>,
    copy: Option<bool>,
    kind: KindArgument,
    stream: Option<StreamArgument>,
) -> PyResult<Py<DeviceArray>> {
    let py = obj.py();
    let is_same = |array: &Array| {
        copy != Some(true)
            && dtype.is_none_or(|dtype| dtype.0 == array.dtype())
            && device.is_none_or(|device| device.0 == array.device())
    };
    if let Ok(own) = obj.cast::<DeviceArray>()
        && stream.is_none()
        && is_same(&own.get().array)
    {
        return Ok(own.clone().unbind());
    }
    if is_on_device(obj)? {
        let array = imported(obj, stream.clone())?;
        if array.kind() != MemoryKind::Host {
            refuse_conversion(py, &array, dtype)?;
            return Py::new(py, settle(py, array, device, copy, kind)?);
        }
    }
    if copy == Some(false) {
        let message = "the data is in host memory, and copy=False forbids the copy to a device; leave copy out";
        return Err(exception::new::<PyValueError>(py, message));
    }
    Py::new(py, from_host(obj, dtype, device, kind, stream)?)
}

/// Whether an object may be an array that a device sees. NumPy's arrays are not, though they speak DLPack.
pub(super) fn is_on_device(obj: &Bound<'_, PyAny>) -> PyResult<bool> {
    const CPU: i32 = 1;
    let py = obj.py();
    if obj.hasattr(intern!(py, "__cuda_array_interface__"))? {
        return Ok(true);
    }
    match obj.getattr_opt(intern!(py, "__dlpack_device__"))? {
        Some(method) => Ok(method.call0()?.extract::<(i32, i32)>()?.0 != CPU),
        None => obj.get_type().hasattr(intern!(py, "__dlpack_c_exchange_api__")),
    }
}

fn refuse_conversion(py: Python<'_>, array: &Array, dtype: Option<DTypeArgument>) -> PyResult<()> {
    match dtype {
        Some(dtype) if dtype.0 != array.dtype() => {
            let message = format!(
                "the array has elements of type {}, and converting them to {} on a device is arithmetic; convert it with the \
                 library that it comes from first",
                array.dtype(),
                dtype.0
            );
            Err(exception::new::<PyTypeError>(py, message))
        }
        _ => Ok(()),
    }
}

/// The array in a line, without looking at its memory.
pub(super) fn describe(array: &Array) -> String {
    let shape: Vec<String> = array.shape().iter().map(i64::to_string).collect();
    let comma = if shape.len() == 1 { "," } else { "" };
    let read_only = if array.is_read_only() { ", read-only" } else { "" };
    format!(
        "DeviceArray(shape=({}{comma}), dtype={}, device=cuda:{}, kind={}{read_only})",
        shape.join(", "),
        array.dtype(),
        array.device().ordinal(),
        array.kind().name()
    )
}
