//! The shape of a launch out of Python objects.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::num::NonZeroU32;

use cuwheel_device_array::Stream;
use cuwheel_dispatcher::launch::{ConfigError, Extent, LaunchConfig};
use cuwheel_exchange::StreamArgument;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use super::attributes::{self, Attributes};
use super::usual::FoundToFit;
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
#[derive(Debug)]
pub(super) struct LaunchShape {
    pub(super) config: LaunchConfig,
    pub(super) stream: Option<Stream>,
    /// Whether other threads of Python run while the driver is called.
    pub(super) releases_gil: bool,
    /// What it is, if it is known that there is no more to say of it than that.
    pub(super) linear: Option<Linear>,
    /// Where the kernel can be launched so. A shape belongs to one kernel, or its launches do not look here.
    pub(super) fitting: FoundToFit,
}

/// A row of blocks, each a row of threads, and nothing else: `kernel[1024, 256]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Linear {
    blocks: u32,
    threads: NonZeroU32,
}

impl Linear {
    /// What is between brackets, if it is that.
    #[inline]
    pub(super) fn in_brackets(brackets: &Bound<'_, PyAny>) -> Option<Self> {
        let parts = brackets.cast_exact::<PyTuple>().ok().filter(|parts| parts.len() == 2)?;
        let blocks = exact_size(&*parts.get_borrowed_item(0).ok()?)?;
        let threads = NonZeroU32::new(exact_size(&*parts.get_borrowed_item(1).ok()?)?)?;
        Some(Self { blocks, threads })
    }
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
        Ok(Self::of(config, stream.map(|stream| stream.0), releases_gil))
    }

    #[inline]
    fn of(config: LaunchConfig, stream: Option<Stream>, releases_gil: bool) -> Self {
        Self { config, stream, releases_gil, linear: None, fitting: FoundToFit::default() }
    }

    /// The shape between the brackets of `kernel[grid, block]`, `kernel[grid, block, stream]` or
    /// `kernel[grid, block, stream, shared_bytes]`.
    #[inline]
    pub(super) fn in_brackets(brackets: &Bound<'_, PyAny>) -> PyResult<Self> {
        let Ok(parts) = brackets.cast::<PyTuple>() else { return Err(wrong_brackets(brackets.py())) };
        let count = parts.len();
        if !(2..=4).contains(&count) {
            return Err(wrong_brackets(brackets.py()));
        }
        let grid = extent("grid", &*parts.get_borrowed_item(0)?)?;
        let block = extent("block", &*parts.get_borrowed_item(1)?)?;
        let mut shape = Self::of(LaunchConfig::new(grid, block), None, true);
        if count > 2 {
            let stream = parts.get_borrowed_item(2)?;
            if !stream.is_none() {
                shape.stream = Some(stream.extract::<StreamArgument>()?.0);
            }
        }
        if count > 3 {
            shape.config.shared_bytes = parts.get_borrowed_item(3)?.extract::<SharedBytes>()?.0;
        }
        Ok(shape)
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

#[cold]
fn wrong_brackets(py: Python<'_>) -> PyErr {
    let message = "a launch is configured by kernel[grid, block], kernel[grid, block, stream] or \
                   kernel[grid, block, stream, shared_bytes]";
    exception::new::<PyTypeError>(py, message)
}

impl PartialEq for LaunchShape {
    fn eq(&self, other: &Self) -> bool {
        let parts = |shape: &Self| (shape.config, shape.releases_gil);
        parts(self) == parts(other) && self.stream == other.stream
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

/// An integer, or a tuple or list of up to three.
#[inline]
pub(super) fn extent(what: &'static str, value: &Bound<'_, PyAny>) -> PyResult<Extent> {
    match exact_size(value).map(|size| Extent::new(what, &[size])) {
        Some(Ok(extent)) => Ok(extent),
        _ => any_extent(what, value),
    }
}

/// Anything but a positive integer of Python's own class.
#[inline(never)]
fn any_extent(what: &'static str, value: &Bound<'_, PyAny>) -> PyResult<Extent> {
    let py = value.py();
    let mut sizes = [1; 3];
    let count = if let Ok(tuple) = value.cast::<PyTuple>() {
        for (axis, item) in tuple.iter_borrowed().take(sizes.len()).enumerate() {
            sizes[axis] = size(&item, || format!("{what}.{}", ["x", "y", "z"][axis]))?;
        }
        tuple.len()
    } else if let Ok(list) = value.cast::<PyList>() {
        return any_extent(what, list.to_tuple().as_any());
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

/// A number from 0 to 2³² - 1, if it is of Python's own class.
#[inline]
fn exact_size(value: &Bound<'_, PyAny>) -> Option<u32> {
    let mut overflow = 0;
    // SAFETY: the thread is attached, and `value` is a live object; an exact `int` raises nothing.
    let number = unsafe {
        if ffi::PyLong_CheckExact(value.as_ptr()) == 0 {
            return None;
        }
        ffi::PyLong_AsLongAndOverflow(value.as_ptr(), &raw mut overflow)
    };
    // What overflows is -1.
    u32::try_from(number).ok()
}

/// A number from 0 to 2³² - 1.
#[inline]
fn size(value: &Bound<'_, PyAny>, what: impl FnOnce() -> String) -> PyResult<u32> {
    if let Some(size) = exact_size(value) {
        return Ok(size);
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
