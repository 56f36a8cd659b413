//! Devices and streams, as Python names them.

#![expect(clippy::trivially_copy_pass_by_ref, reason = "methods of Python classes take their instance by reference")]
#![expect(clippy::needless_pass_by_value, reason = "arguments of Python functions are converted, and then owned")]

use cuwheel_device_array::{Device, Stream, stream};
use cuwheel_exchange::exception_of;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyString, PyTuple, PyType};
use pyo3::{ffi, intern};

use crate::exception;

/// A CUDA device, by its number in this process.
///
/// Args:
///     device: A number from 0 on, `"cuda"` for device 0, `"cuda:1"`, or a device object of torch, CuPy or cuda.core.
///
/// Raises:
///     ValueError: The text or the number names no device.
///     TypeError: It is something else.
#[pyclass(frozen, name = "Device", module = "_devicearray", eq, hash)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct PyDevice(pub(super) Device);

#[pymethods]
impl PyDevice {
    #[new]
    #[pyo3(signature = (device = DeviceArgument(Device::new(0)), /),
           text_signature = "(device=0, /)")]
    fn new(device: DeviceArgument) -> Self {
        Self(device.0)
    }

    /// How many devices the driver shows to this process.
    ///
    /// Raises:
    ///     RuntimeError: There is no driver that can be used.
    #[staticmethod]
    fn count(py: Python<'_>) -> PyResult<usize> {
        Device::count().map_err(|error| exception_of(py, error))
    }

    /// The number of the device.
    #[getter]
    fn id(&self) -> u32 {
        self.0.ordinal()
    }

    /// The name that the driver gives it, such as "NVIDIA H200".
    ///
    /// Raises:
    ///     ValueError: There is no such device.
    ///     RuntimeError: There is no driver that can be used.
    #[getter]
    fn name(&self, py: Python<'_>) -> PyResult<String> {
        self.0.name().map_err(|error| exception_of(py, error))
    }

    /// The compute capability, `(major, minor)`.
    ///
    /// Raises:
    ///     ValueError: There is no such device.
    ///     RuntimeError: There is no driver that can be used.
    #[getter]
    fn compute_capability(&self, py: Python<'_>) -> PyResult<(i32, i32)> {
        self.0.compute_capability().map_err(|error| exception_of(py, error))
    }

    /// Return the free and the total memory of the device, in bytes.
    ///
    /// Raises:
    ///     ValueError: There is no such device.
    ///     RuntimeError: There is no driver that can be used.
    fn memory_info(&self, py: Python<'_>) -> PyResult<(usize, usize)> {
        py.detach(|| self.0.memory()).map_err(|error| exception_of(py, error))
    }

    fn __repr__(&self) -> String {
        format!("Device('{self}')", self = self.__str__())
    }

    fn __str__(&self) -> String {
        format!("cuda:{}", self.0.ordinal())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyType>, (u32,)) {
        (slf.get_type(), (slf.get().0.ordinal(),))
    }
}

/// A device as an argument.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeviceArgument(pub(crate) Device);

impl<'py> FromPyObject<'_, 'py> for DeviceArgument {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let py = object.py();
        if let Ok(device) = object.cast::<PyDevice>() {
            return Ok(Self(device.get().0));
        }
        if let Ok(text) = object.cast::<PyString>() {
            return of_text(&text);
        }
        // SAFETY: the thread is attached, as the type of `object` witnesses.
        if !object.is_instance_of::<PyBool>() && unsafe { ffi::PyIndex_Check(object.as_ptr()) } != 0 {
            return of_number(&object);
        }
        // torch, which says "cpu" in the same way; then CuPy, and cuda.core.
        if let Some(kind) = object.getattr_opt(intern!(py, "type"))?
            && let Ok(kind) = kind.cast::<PyString>()
        {
            let index = object.getattr_opt(intern!(py, "index"))?.filter(|index| !index.is_none());
            return match index {
                Some(index) if kind.to_str()? == "cuda" => of_number(&index),
                _ => of_text(kind),
            };
        }
        for name in [intern!(py, "id"), intern!(py, "device_id")] {
            if let Some(number) = object.getattr_opt(name)? {
                return of_number(&number);
            }
        }
        let message = format!(
            "{} is no device; pass a number, \"cuda:0\", or a device object of torch, CuPy or cuda.core",
            exception::type_name(&object)
        );
        Err(exception::new::<PyTypeError>(py, message))
    }
}

fn of_text(text: &Bound<'_, PyString>) -> PyResult<DeviceArgument> {
    let name = text.to_str()?;
    let ordinal = match name.strip_prefix("cuda") {
        Some("") => Some(0),
        Some(rest) => rest.strip_prefix(':').and_then(|number| number.parse().ok()),
        None => None,
    };
    let Some(ordinal) = ordinal else {
        let message = format!("{name:?} is no CUDA device; write \"cuda:0\", or \"cuda\" for the first");
        return Err(exception::new::<PyValueError>(text.py(), message));
    };
    Ok(DeviceArgument(Device::new(ordinal)))
}

fn of_number(number: &Bound<'_, PyAny>) -> PyResult<DeviceArgument> {
    match number.extract::<u32>() {
        Ok(ordinal) => Ok(DeviceArgument(Device::new(ordinal))),
        Err(error) if error.is_instance_of::<PyTypeError>(number.py()) => Err(error),
        Err(_) => {
            let message = format!("{number} is no number of a device; they count from 0");
            Err(exception::new::<PyValueError>(number.py(), message))
        }
    }
}

/// The argument's device, or the device of the current context of the thread, or device 0.
pub(super) fn device_or_current(py: Python<'_>, device: Option<DeviceArgument>) -> PyResult<Device> {
    match device {
        Some(device) => Ok(device.0),
        None => Device::current().map_err(|error| exception_of(py, error)),
    }
}

/// A stream as an argument: one of ours, or of any library.
#[derive(Debug, Clone)]
pub(super) struct StreamArgument(pub(super) Stream);

impl<'py> FromPyObject<'_, 'py> for StreamArgument {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match object.cast::<PyStream>() {
            // Without its Python object, so that it can be let go of where there is no Python.
            Ok(own) => Ok(Self(own.get().stream.clone())),
            Err(_) => object.extract::<cuwheel_exchange::StreamArgument>().map(|stream| Self(stream.0)),
        }
    }
}

/// The argument's stream, or the current one of the device.
pub(super) fn stream_or_current(stream: Option<StreamArgument>, device: Device) -> Stream {
    stream.map_or_else(|| stream::current(device), |stream| stream.0)
}

/// A CUDA stream: work that is put on it is done in order.
///
/// A new one is non-blocking: it does not wait for the legacy default stream, nor that for it.
///
/// Args:
///     stream: A stream of another library or an integer handle, to be used as it is; a new stream is created without.
///     device: The device of a new stream; that of the thread's current context by default.
///
/// Raises:
///     TypeError: `stream` is no stream.
///     RuntimeError: No stream can be created.
#[pyclass(frozen, name = "Stream", module = "_devicearray")]
#[derive(Debug, Clone)]
pub(super) struct PyStream {
    pub(super) stream: Stream,
    pub(super) device: Device,
}

#[pymethods]
impl PyStream {
    #[new]
    #[pyo3(signature = (stream = None, /, *, device = None))]
    fn new(py: Python<'_>, stream: Option<StreamArgument>, device: Option<DeviceArgument>) -> PyResult<Self> {
        let device = device_or_current(py, device)?;
        let stream = match stream {
            Some(stream) => stream.0,
            None => py.detach(|| Stream::create(device)).map_err(|error| exception_of(py, error))?,
        };
        Ok(Self { stream, device })
    }

    /// The `CUstream` as an integer; 0 is the legacy default stream, 2 the per-thread one.
    #[getter]
    fn handle(&self) -> usize {
        self.stream.handle()
    }

    /// The device of the stream.
    #[getter]
    fn device(&self) -> PyDevice {
        PyDevice(self.device)
    }

    /// Wait until all work on the stream is done.
    ///
    /// Raises:
    ///     RuntimeError: The driver reports an error, perhaps of work that was put on the stream before.
    fn synchronize(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.stream.synchronize(self.device)).map_err(|error| exception_of(py, error))
    }

    /// Make work that is put on this stream from now on wait for what is on another stream now.
    ///
    /// Args:
    ///     other: A stream of any library, or an integer handle, of the same device.
    ///
    /// Raises:
    ///     TypeError: `other` is no stream.
    ///     RuntimeError: The driver reports an error.
    #[pyo3(signature = (other, /))]
    fn wait(&self, py: Python<'_>, other: StreamArgument) -> PyResult<()> {
        py.detach(|| self.stream.order_after(self.device, &other.0, self.device))
            .map_err(|error| exception_of(py, error))
    }

    /// The protocol by which libraries take each other's streams: version 0, and the handle.
    fn __cuda_stream__(&self) -> (u32, usize) {
        (0, self.stream.handle())
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| other.get().stream == self.stream && other.get().device == self.device)
    }

    fn __hash__(&self) -> usize {
        // 0 and 1 are the same stream.
        self.stream.handle().max(1)
    }

    fn __repr__(&self) -> String {
        let name = match self.stream.handle() {
            0 | 1 => "legacy default".to_owned(),
            2 => "per-thread default".to_owned(),
            handle => format!("{handle:#x}"),
        };
        format!("<Stream {name} of cuda:{}>", self.device.ordinal())
    }
}

/// Return the stream that new arrays and imports of this thread use where none is named.
///
/// It is the legacy default stream unless `use_stream` is in effect.
///
/// Args:
///     device: The device; that of the thread's current context by default.
///
/// Raises:
///     RuntimeError: There is no driver that can be used.
#[pyfunction]
#[pyo3(signature = (device = None, /))]
pub(super) fn current_stream(py: Python<'_>, device: Option<DeviceArgument>) -> PyResult<PyStream> {
    let device = device_or_current(py, device)?;
    Ok(PyStream { stream: stream::current(device), device })
}

/// A context in which a stream is the current one of this thread and its device.
///
/// Libraries that take arrays from this one through DLPack's exchange table work on that stream too.
///
/// Args:
///     stream: A stream of any library, or an integer handle.
///     device: The device of the stream; that of the thread's current context by default.
///
/// Raises:
///     TypeError: `stream` is no stream.
///     RuntimeError: There is no driver that can be used; or the context is left on another thread than it was entered
///         on.
#[pyclass(frozen, module = "_devicearray")]
#[expect(non_camel_case_types, reason = "it is used as a function in a `with` statement")]
pub(super) struct use_stream {
    stream: PyStream,
    entered: std::sync::Mutex<Vec<(std::thread::ThreadId, Stream)>>,
}

#[pymethods]
impl use_stream {
    #[new]
    #[pyo3(signature = (stream, /, *, device = None))]
    fn new(py: Python<'_>, stream: Bound<'_, PyAny>, device: Option<DeviceArgument>) -> PyResult<Self> {
        let own = stream.cast::<PyStream>().ok().filter(|_| device.is_none());
        let stream = match own {
            Some(own) => own.get().clone(),
            None => PyStream { stream: stream.extract::<StreamArgument>()?.0, device: device_or_current(py, device)? },
        };
        Ok(Self { stream, entered: std::sync::Mutex::default() })
    }

    fn __enter__(&self) -> PyStream {
        let previous = stream::set_current(self.stream.device, self.stream.stream.clone());
        self.entered
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .push((std::thread::current().id(), previous));
        self.stream.clone()
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        let mut entered = self.entered.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let thread = std::thread::current().id();
        // The innermost of this thread's: threads may share the object.
        let Some(position) = entered.iter().rposition(|(entered_on, _)| *entered_on == thread) else {
            let message =
                "the context is left on a thread that did not enter it; use one `with` statement on one thread";
            return Err(exception::new::<PyRuntimeError>(py, message));
        };
        let (_, previous) = entered.remove(position);
        stream::set_current(self.stream.device, previous);
        Ok(())
    }
}
