//! The shape of a launch out of Python objects.

use std::fmt;
use std::hash::{Hash, Hasher};

use cuwheel_device_array::Stream;
use cuwheel_dispatcher::launch::{ConfigError, Extent, LaunchConfig};
use cuwheel_exchange::StreamArgument;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use super::attributes::{self, Attributes};
use crate::exception;

/// Bytes of dynamic shared memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct SharedBytes(pub(super) u32);

impl<'py> FromPyObject<'_, 'py> for SharedBytes {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        size(&object, || "shared_bytes".to_owned()).map(Self)
    }
}

/// The shape of launches, as it is between the brackets of `kernel[grid, block, stream, shared_bytes]`, and as methods take it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LaunchShape {
    pub(super) config: LaunchConfig,
    pub(super) stream: Option<Stream>,
    /// Whether other threads of Python run while the driver is called.
    pub(super) releases_gil: bool,
}

impl LaunchShape {
    /// A shape out of the arguments of `configure` and `launch`.
    #[expect(clippy::too_many_arguments, reason = "each is an argument of the Python functions")]
    pub(super) fn new(
        grid: &Bound<'_, PyAny>,
        block: &Bound<'_, PyAny>,
        stream: Option<StreamArgument>,
        shared_bytes: SharedBytes,
        cluster: Option<&Bound<'_, PyAny>>,
        cooperative: bool,
        attributes: Option<Attributes>,
        releases_gil: bool,
    ) -> PyResult<Self> {
        let config = LaunchConfig {
            grid: extent("grid", grid)?,
            block: extent("block", block)?,
            shared_bytes: shared_bytes.0,
            cluster: cluster.map(|cluster| extent("cluster", cluster)).transpose()?,
            cooperative,
            attributes: attributes.unwrap_or_default().0,
        };
        Ok(Self { config, stream: stream.map(|stream| stream.0), releases_gil })
    }

    /// The arguments of `configure` that make the same again.
    pub(super) fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let LaunchConfig { grid, block, shared_bytes, cluster, cooperative, attributes } = &self.config;
        let sizes = |extent: Extent| <(u32, u32, u32)>::from(extent.sizes());
        let stream = picklable_stream(py, self.stream.as_ref())?;
        let attributes = attributes::dictionary(py, attributes)?;
        let (grid, block, cluster) = (sizes(*grid), sizes(*block), cluster.map(sizes));
        (grid, block, stream, *shared_bytes, cluster, *cooperative, attributes, self.releases_gil).into_pyobject(py)
    }
}

impl Hash for LaunchShape {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.config.hash(state);
        // Equal streams have equal hashes: the legacy default stream has two handles.
        self.stream.as_ref().map(|stream| stream.handle().max(1)).hash(state);
        self.releases_gil.hash(state);
    }
}

impl fmt::Display for LaunchShape {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.config)?;
        if let Some(stream) = &self.stream {
            write!(formatter, ", stream {:#x}", stream.handle())?;
        }
        if self.releases_gil { Ok(()) } else { formatter.write_str(", holding the GIL") }
    }
}

impl<'py> FromPyObject<'_, 'py> for LaunchShape {
    type Error = PyErr;

    #[inline]
    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let parts = object.cast::<PyTuple>().ok().filter(|parts| (2..=4).contains(&parts.len()));
        let Some(parts) = parts else {
            let message = "a launch is configured by kernel[grid, block], kernel[grid, block, stream] or \
                           kernel[grid, block, stream, shared_bytes]";
            return Err(exception::new::<PyTypeError>(object.py(), message));
        };
        let optional = |index: usize| -> PyResult<Option<Borrowed<'_, 'py, PyAny>>> {
            if index < parts.len() { parts.get_borrowed_item(index).map(Some) } else { Ok(None) }
        };
        let stream = match optional(2)?.filter(|stream| !stream.is_none()) {
            Some(stream) => Some(stream.extract::<StreamArgument>()?),
            None => None,
        };
        let shared_bytes = match optional(3)? {
            Some(shared_bytes) => shared_bytes.extract()?,
            None => SharedBytes(0),
        };
        let (grid, block) = (parts.get_borrowed_item(0)?, parts.get_borrowed_item(1)?);
        Self::new(&grid, &block, stream, shared_bytes, None, false, None, true)
    }
}

/// An integer, or a tuple or list of up to three.
#[inline]
pub(super) fn extent(what: &'static str, value: &Bound<'_, PyAny>) -> PyResult<Extent> {
    let py = value.py();
    let mut sizes = [1; 3];
    // SAFETY: the thread is attached, and `value` is a live object.
    let count = if unsafe { ffi::PyLong_CheckExact(value.as_ptr()) } != 0 {
        sizes[0] = size(value, || what.to_owned())?;
        1
    } else if let Ok(tuple) = value.cast::<PyTuple>() {
        for (axis, item) in tuple.iter_borrowed().take(sizes.len()).enumerate() {
            sizes[axis] = size(&item, || format!("{what}.{}", ["x", "y", "z"][axis]))?;
        }
        tuple.len()
    } else if let Ok(list) = value.cast::<PyList>() {
        return extent(what, list.to_tuple().as_any());
    } else {
        sizes[0] = size(value, || what.to_owned())?;
        1
    };
    let error = |error: ConfigError| exception::new::<PyValueError>(py, error.to_string());
    match sizes.get(..count) {
        Some(sizes) => Extent::new(what, sizes).map_err(error),
        None => Err(error(ConfigError::Dimensions { what, count })),
    }
}

/// A number from 0 to 2³² - 1.
#[inline]
fn size(value: &Bound<'_, PyAny>, what: impl FnOnce() -> String) -> PyResult<u32> {
    // SAFETY: the thread is attached, and `value` is a live object.
    if unsafe { ffi::PyLong_CheckExact(value.as_ptr()) } != 0 {
        let mut overflow = 0;
        // SAFETY: as above; an exact `int` raises nothing.
        let number = unsafe { ffi::PyLong_AsLongAndOverflow(value.as_ptr(), &raw mut overflow) };
        if let Ok(size) = u32::try_from(number) {
            return Ok(size);
        }
    }
    match value.extract::<u32>() {
        Ok(size) => Ok(size),
        Err(error) => Err(no_size(value, &error, &what())),
    }
}

#[cold]
fn no_size(value: &Bound<'_, PyAny>, error: &PyErr, what: &str) -> PyErr {
    let py = value.py();
    if error.is_instance_of::<PyOverflowError>(py) {
        let text = value.repr().map_or_else(|_| "the number".to_owned(), |text| text.to_string_lossy().into_owned());
        return exception::new::<PyValueError>(py, format!("{what} is {text}; it must be from 0 to 4294967295"));
    }
    if error.is_instance_of::<PyTypeError>(py) {
        let message = format!("{what} is {}, and an integer is needed", exception::type_name(value));
        return exception::new::<PyTypeError>(py, message);
    }
    error.clone_ref(py)
}

/// The handle of a stream that means the same in every process, or an error.
fn picklable_stream(py: Python<'_>, stream: Option<&Stream>) -> PyResult<Option<usize>> {
    match stream {
        Some(stream) if !stream.is_legacy() && !stream.is_per_thread() => {
            let message = "a stream is one of this process and cannot be pickled; leave the stream out, and name it where the \
                           kernel is launched";
            Err(exception::new::<PyTypeError>(py, message))
        }
        stream => Ok(stream.map(Stream::handle)),
    }
}
