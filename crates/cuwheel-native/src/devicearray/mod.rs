//! The Python module `_devicearray`: device arrays, their data types, devices and streams.
//!
//! This file has the class. Its methods call the files beside it, and those `cuwheel_device_array` and `cuwheel_exchange`.

#![expect(clippy::needless_pass_by_value, reason = "arguments of Python functions are converted, and then owned")]
#![expect(clippy::doc_markdown, reason = "the comments on functions and classes are their Python docstrings too")]

mod buffer;
mod capi;
mod create;
mod dtype;
mod flags;
mod host;
mod index;
mod known;
mod pickle;
mod place;
mod timing;
mod transfer;

use std::ffi::c_int;

use cuwheel_device_array::{Array, Error};
use cuwheel_exchange::{DlpackArguments, exception_of};
use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyTuple};
use pyo3::{ffi, intern};

use self::create::{KindArgument, OrderArgument, Shape};
pub(crate) use self::dtype::{DTypeArgument, PyDType};
use self::flags::Flags;
pub(crate) use self::place::DeviceArgument;
use self::place::{PyDevice, PyStream, StreamArgument};
use crate::exception;
use crate::submodule::{Submodule, add_class};

/// The module, as the library's table of modules lists it.
pub(crate) const SUBMODULE: Submodule = Submodule { name: "_devicearray", populate };

fn populate(module: &Bound<'_, PyModule>) -> PyResult<()> {
    add_class::<DeviceArray>(module, SUBMODULE.name)?;
    known::prepare(module.py());
    add_class::<PyDType>(module, SUBMODULE.name)?;
    add_class::<PyDevice>(module, SUBMODULE.name)?;
    add_class::<PyStream>(module, SUBMODULE.name)?;
    add_class::<place::use_stream>(module, SUBMODULE.name)?;
    add_class::<Flags>(module, SUBMODULE.name)?;
    let cuda_error = cuwheel_exchange::cuda_error_class(module.py())?;
    cuda_error.setattr(intern!(module.py(), "__module__"), module.name()?)?;
    module.add("CudaError", cuda_error)?;
    module.add_function(wrap_pyfunction!(place::current_stream, module)?)?;
    module.add_function(wrap_pyfunction!(forget_types, module)?)?;
    module.add_function(wrap_pyfunction!(pickle::_rebuild, module)?)?;
    module.add_function(wrap_pyfunction!(timing::_time_exchange, module)?)?;
    module.add_function(wrap_pyfunction!(timing::_take_argument, module)?)?;
    module.add("_DEVICEARRAY_API", capi::capsule(module)?)
}

/// Ask every type again whether it takes part in DLPack's C exchange.
///
/// Types that do not are remembered too. Call this after a package gave an exchange table to a type whose arrays were
/// already used.
#[pyfunction]
fn forget_types() {
    cuwheel_exchange::forget_types();
}

/// An array in memory of a CUDA device, or in memory that one sees: a shape, a data type, and a place.
///
/// Arrays are made by `empty`, `zeros`, `full`, `asarray`, `from_host` and `from_dlpack`. Other libraries take them over
/// without a copy: `torch.from_dlpack(x)`, `cupy.from_dlpack(x)`; that is also the way to do arithmetic.
#[pyclass(frozen, name = "DeviceArray", module = "_devicearray", weakref)]
#[derive(Debug)]
pub(crate) struct DeviceArray {
    pub(crate) array: Array,
}

impl DeviceArray {
    /// A view, or the reason why there is none.
    fn view<E: Into<Error>>(py: Python<'_>, view: Result<Array, E>) -> PyResult<Self> {
        match view {
            Ok(array) => Ok(Self { array }),
            Err(error) => Err(exception_of(py, error.into())),
        }
    }
}

#[pymethods]
impl DeviceArray {
    /// Return a new array whose elements have unspecified values.
    ///
    /// Args:
    ///     shape: The number of elements along each dimension: an integer or a tuple.
    ///     dtype: The data type of the elements: a name, a NumPy data type, or a `DType`.
    ///     device: The device; that of the thread's current context by default.
    ///     kind: "device", "pinned" (host memory for fast copies), "mapped" (host memory that kernels read and write) or
    ///         "managed" (memory that moves to whoever touches it).
    ///     order: "C" or "F".
    ///     stream: In whose order the memory is allocated, used and freed; the current stream by default.
    ///
    /// Raises:
    ///     ValueError: A dimension is negative, there are too many elements, or there is no such device.
    ///     TypeError: There is no such data type.
    ///     MemoryError: There is not enough memory; the message says how much was asked for and how much is free.
    ///     RuntimeError: There is no driver that can be used, or it reports an error.
    #[staticmethod]
    #[pyo3(signature = (shape, dtype = DTypeArgument::DEFAULT, *, device = None, kind = KindArgument::DEFAULT,
                        order = OrderArgument::DEFAULT, stream = None),
           text_signature = "(shape, dtype='float64', *, device=None, kind='device', order='C', stream=None)")]
    fn empty(
        py: Python<'_>,
        shape: Shape,
        dtype: DTypeArgument,
        device: Option<DeviceArgument>,
        kind: KindArgument,
        order: OrderArgument,
        stream: Option<StreamArgument>,
    ) -> PyResult<Self> {
        create::empty(py, &shape, dtype, device, kind, order, stream)
    }

    /// Return a new array of zeros.
    ///
    /// Args:
    ///     shape, dtype, device, kind, order, stream: As for `empty`.
    ///
    /// Raises:
    ///     What `empty` raises.
    #[staticmethod]
    #[pyo3(signature = (shape, dtype = DTypeArgument::DEFAULT, *, device = None, kind = KindArgument::DEFAULT,
                        order = OrderArgument::DEFAULT, stream = None),
           text_signature = "(shape, dtype='float64', *, device=None, kind='device', order='C', stream=None)")]
    fn zeros(
        py: Python<'_>,
        shape: Shape,
        dtype: DTypeArgument,
        device: Option<DeviceArgument>,
        kind: KindArgument,
        order: OrderArgument,
        stream: Option<StreamArgument>,
    ) -> PyResult<Self> {
        create::zeros(py, &shape, dtype, device, kind, order, stream)
    }

    /// Return a new array in which every element is `fill_value`.
    ///
    /// Args:
    ///     shape, device, kind, order, stream: As for `empty`.
    ///     fill_value: A number, or whatever else NumPy converts to the data type.
    ///     dtype: The data type; by default the one that NumPy gives `fill_value`.
    ///
    /// Raises:
    ///     TypeError, ValueError, OverflowError: The value does not fit the data type.
    ///     What `empty` raises.
    #[staticmethod]
    #[pyo3(signature = (shape, fill_value, dtype = None, *, device = None, kind = KindArgument::DEFAULT,
                        order = OrderArgument::DEFAULT, stream = None),
           text_signature = "(shape, fill_value, dtype=None, *, device=None, kind='device', order='C', stream=None)")]
    #[expect(clippy::too_many_arguments, reason = "each is an argument of the Python function")]
    fn full(
        py: Python<'_>,
        shape: Shape,
        fill_value: &Bound<'_, PyAny>,
        dtype: Option<DTypeArgument>,
        device: Option<DeviceArgument>,
        kind: KindArgument,
        order: OrderArgument,
        stream: Option<StreamArgument>,
    ) -> PyResult<Self> {
        create::full(py, &shape, fill_value, dtype, device, kind, order, stream)
    }

    /// Return an array of anything that is like one, on a device or in host memory.
    ///
    /// An array that a device already sees is taken over without a copy, if its type and device are those asked for.
    ///
    /// Args:
    ///     obj: A `DeviceArray`; an array of another library; a NumPy array, a number, a nested list, or whatever else
    ///         NumPy makes an array of.
    ///     dtype: The data type to convert to, in host memory; by default that of `obj`. Data on a device is not converted.
    ///     device: The device; by default where the data is, or that of the thread's current context.
    ///     copy: True for a copy in any case, False to refuse one, None for a copy if need be.
    ///     kind: The kind of new memory, as for `empty`.
    ///     stream: For which the data is to be ready; the current stream by default.
    ///
    /// Raises:
    ///     TypeError: NumPy makes no array of `obj`, or the data would have to be converted on a device.
    ///     ValueError: `copy` is False and a copy is needed.
    ///     BufferError: The array cannot be described to another library.
    ///     What `empty` raises.
    #[staticmethod]
    #[pyo3(signature = (obj, /, dtype = None, *, device = None, copy = None, kind = KindArgument::DEFAULT, stream = None),
           text_signature = "(obj, /, dtype=None, *, device=None, copy=None, kind='device', stream=None)")]
    fn asarray(
        obj: &Bound<'_, PyAny>,
        dtype: Option<DTypeArgument>,
        device: Option<DeviceArgument>,
        copy: Option<bool>,
        kind: KindArgument,
        stream: Option<StreamArgument>,
    ) -> PyResult<Py<Self>> {
        create::asarray(obj, dtype, device, copy, kind, stream)
    }

    /// Return a copy of host data on a device.
    ///
    /// Args:
    ///     obj: A NumPy array, a number, a nested list, or whatever else NumPy makes an array of.
    ///     dtype: The data type to convert to; by default that of `obj`.
    ///     device, kind, stream: As for `empty`.
    ///
    /// Raises:
    ///     TypeError: NumPy makes no array of `obj`, or cannot convert it.
    ///     What `empty` raises.
    #[staticmethod]
    #[pyo3(signature = (obj, /, dtype = None, *, device = None, kind = KindArgument::DEFAULT, stream = None),
           text_signature = "(obj, /, dtype=None, *, device=None, kind='device', stream=None)")]
    fn from_host(
        obj: &Bound<'_, PyAny>,
        dtype: Option<DTypeArgument>,
        device: Option<DeviceArgument>,
        kind: KindArgument,
        stream: Option<StreamArgument>,
    ) -> PyResult<Self> {
        create::from_host(obj, dtype, device, kind, stream)
    }

    /// Return an array that shares the memory of another library's array.
    ///
    /// DLPack's C exchange is tried first, then `__dlpack__`, then `__cuda_array_interface__`. Work that is put on the
    /// stream afterwards finds the data ready.
    ///
    /// Args:
    ///     obj: An array on a CUDA device or in memory that one sees.
    ///     device: The device that the array is wanted on; by default where it is.
    ///     copy: True for a copy, False to refuse one, None for a copy if the array is on another device than `device`.
    ///     stream: For which the data is to be ready, and the stream of the result; the current stream by default.
    ///
    /// Raises:
    ///     TypeError: `obj` is no array.
    ///     BufferError: Its data cannot be described, or is lazily conjugated or negated.
    ///     ValueError: It is in host memory, or a copy is needed and `copy` is False.
    #[staticmethod]
    #[pyo3(signature = (obj, /, *, device = None, copy = None, stream = None))]
    fn from_dlpack(
        obj: &Bound<'_, PyAny>,
        device: Option<DeviceArgument>,
        copy: Option<bool>,
        stream: Option<StreamArgument>,
    ) -> PyResult<Self> {
        create::from_dlpack(obj, device, copy, stream)
    }

    /// Copy host data into this array.
    ///
    /// Args:
    ///     obj: What NumPy makes an array of; it is broadcast to the shape and converted to the data type if that is safe
    ///         or of the same kind.
    ///     stream: In whose order to copy; the array's stream by default.
    ///
    /// Raises:
    ///     ValueError: The shapes do not fit, or this array is read-only.
    ///     TypeError: NumPy makes no array of `obj`, or cannot convert it.
    ///     RuntimeError: The driver reports an error.
    #[pyo3(signature = (obj, /, *, stream = None))]
    fn copy_from_host(&self, obj: &Bound<'_, PyAny>, stream: Option<StreamArgument>) -> PyResult<()> {
        transfer::from_host(&self.array, obj, stream)
    }

    /// Return a copy in host memory, as a NumPy array. The copy is complete when the method returns.
    ///
    /// Args:
    ///     out: A writable NumPy array of the same shape and data type to copy to; a new one by default.
    ///     stream: In whose order to copy; the array's stream by default.
    ///
    /// Returns:
    ///     `out`, or the new array.
    ///
    /// Raises:
    ///     ValueError: `out` has another shape or data type, or is read-only.
    ///     TypeError: NumPy has no such data type.
    ///     RuntimeError: The driver reports an error.
    #[pyo3(signature = (out = None, stream = None))]
    fn copy_to_host<'py>(
        &self,
        py: Python<'py>,
        out: Option<&Bound<'py, PyAny>>,
        stream: Option<StreamArgument>,
    ) -> PyResult<Bound<'py, PyAny>> {
        transfer::to_host(py, &self.array, out, stream)
    }

    /// Return a copy on a device, in C order.
    ///
    /// Args:
    ///     device: The device; that of the array by default.
    ///     kind: The kind of the new memory, as for `empty`.
    ///     stream: In whose order to copy, and the stream of the copy; the array's stream by default.
    ///
    /// Raises:
    ///     ValueError: There is no such device.
    ///     MemoryError: There is not enough memory.
    ///     RuntimeError: The driver reports an error.
    #[pyo3(signature = (device = None, *, kind = KindArgument::DEFAULT, stream = None),
           text_signature = "($self, /, device=None, *, kind='device', stream=None)")]
    fn copy_to_device(
        &self,
        py: Python<'_>,
        device: Option<DeviceArgument>,
        kind: KindArgument,
        stream: Option<StreamArgument>,
    ) -> PyResult<Self> {
        transfer::to_device(py, &self.array, device, kind, stream)
    }

    /// The number of elements along each dimension.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.array.shape())
    }

    /// The bytes from one element to the next along each dimension.
    ///
    /// Raises:
    ///     TypeError: Several elements share a byte; see `element_strides`.
    #[getter]
    fn strides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let strides = self.array.strides_bytes().map_err(|error| exception_of(py, error))?;
        PyTuple::new(py, &strides)
    }

    /// The elements from one to the next along each dimension, or None if the strides are no whole numbers of elements.
    #[getter]
    fn element_strides<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.array.strides_elements().map(|strides| PyTuple::new(py, strides)).transpose()
    }

    /// The data type: NumPy's if NumPy is installed and it, or `ml_dtypes`, has it; a `DType` otherwise.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        dtype::to_python(py, self.array.dtype())
    }

    /// The number of dimensions.
    #[getter]
    fn ndim(&self) -> usize {
        self.array.ndim()
    }

    /// The number of elements.
    #[getter]
    fn size(&self) -> usize {
        self.array.size()
    }

    /// The bytes of an element, or None if several share a byte.
    #[getter]
    fn itemsize(&self) -> Option<usize> {
        self.array.dtype().size_bytes()
    }

    /// The bytes of all elements, without gaps.
    #[getter]
    fn nbytes(&self) -> usize {
        self.array.size_bytes()
    }

    /// The address of the first element as an integer; 0 if there is none.
    #[getter]
    fn pointer(&self) -> u64 {
        self.array.pointer()
    }

    /// The device that the memory is on or belongs to.
    #[getter]
    fn device(&self) -> PyDevice {
        PyDevice(self.array.device())
    }

    /// The kind of the memory: "device", "pinned", "mapped" or "managed".
    #[getter]
    fn kind(&self) -> &'static str {
        self.array.kind().name()
    }

    /// The stream in whose order the memory is used.
    #[getter]
    fn stream(&self) -> PyStream {
        PyStream { stream: self.array.stream().clone(), device: self.array.device() }
    }

    /// What holds of the memory: `c_contiguous`, `f_contiguous`, `writeable`.
    #[getter]
    fn flags(&self) -> Flags {
        Flags::of(&self.array)
    }

    /// The array with its axes in reverse order, sharing its memory.
    #[getter(T)]
    fn transposed(&self, py: Python<'_>) -> PyResult<Self> {
        Self::view(py, self.array.transpose(None))
    }

    /// Return a view with the axes in another order.
    ///
    /// Args:
    ///     *axes: The axes in their new order, or one tuple of them; reversed without.
    ///
    /// Raises:
    ///     ValueError: An axis does not exist, is named twice, or is missing.
    #[pyo3(signature = (*axes))]
    fn transpose(&self, axes: &Bound<'_, PyTuple>) -> PyResult<Self> {
        Self::view(axes.py(), self.array.transpose(index::axes(axes)?.as_deref()))
    }

    /// Return a view with another shape and the same elements in C order.
    ///
    /// Args:
    ///     *shape: The new numbers of elements, or one tuple of them; one of them may be -1.
    ///     copy: True for a copy, False to refuse one; None for a copy where no view has the shape.
    ///
    /// Raises:
    ///     ValueError: The number of elements is another, or a copy is needed and `copy` is False.
    #[pyo3(signature = (*shape, copy = None))]
    fn reshape(&self, shape: &Bound<'_, PyTuple>, copy: Option<bool>) -> PyResult<Self> {
        transfer::reshape(shape.py(), &self.array, &index::integers(shape)?, copy)
    }

    /// Return the elements in one dimension, as a view if they lie in C order without gaps, else as a copy.
    fn ravel(&self, py: Python<'_>) -> PyResult<Self> {
        transfer::reshape(py, &self.array, &[-1], None)
    }

    /// Return a view without dimensions of one element.
    ///
    /// Args:
    ///     axis: The axis or axes to leave out; all of one element by default.
    ///
    /// Raises:
    ///     ValueError: An axis does not exist or has not one element.
    #[pyo3(signature = (axis = None))]
    fn squeeze(&self, py: Python<'_>, axis: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let axes = axis.map(index::axis_or_axes).transpose()?;
        Self::view(py, self.array.squeeze(axes.as_deref()))
    }

    /// Return a view that reads the same bytes as elements of another type.
    ///
    /// Args:
    ///     dtype: The other type. If its size differs, the last axis changes, and its elements must lie side by side.
    ///
    /// Raises:
    ///     ValueError: The bytes do not divide into elements of that type.
    ///     TypeError: There is no such data type.
    #[pyo3(name = "view", signature = (dtype, /))]
    fn viewed_as(&self, py: Python<'_>, dtype: DTypeArgument) -> PyResult<Self> {
        Self::view(py, self.array.view(dtype.0))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        match self.array.shape().first() {
            // Sizes are never negative.
            Some(size) => Ok(usize::try_from(*size).unwrap_or(0)),
            None => Err(exception::new::<PyTypeError>(py, "an array without dimensions has no length; see its size")),
        }
    }

    #[expect(clippy::unused_self, reason = "Python passes the instance")]
    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        let message = "whether a device array is true would take a copy to the host; ask for its size, or copy it with copy_to_host()";
        Err(exception::new::<PyTypeError>(py, message))
    }

    fn __getitem__(&self, key: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::view(key.py(), self.array.index(&index::indices(key)?))
    }

    fn __setitem__(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let target = Self::view(key.py(), self.array.index(&index::indices(key)?))?;
        transfer::assign(&target.array, value)
    }

    fn __iter__(slf: Bound<'_, Self>) -> PyResult<Elements> {
        let length = slf.get().__len__(slf.py())?;
        Ok(Elements { array: slf.unbind(), length, next: 0.into() })
    }

    fn __repr__(&self) -> String {
        create::describe(&self.array)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        pickle::reduce(slf)
    }

    /// Return a NumPy array of the same memory, for kinds that the host sees.
    ///
    /// Args:
    ///     dtype: A data type to convert to; that of the array by default.
    ///     copy: True for a copy, False to refuse one, None for a copy if need be.
    ///
    /// Raises:
    ///     TypeError: The memory is the device's, see `copy_to_host`; or NumPy has no such data type.
    ///     ValueError: A conversion is asked for, and `copy` is False.
    #[pyo3(signature = (dtype = None, copy = None))]
    fn __array__<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        transfer::as_numpy(slf, dtype, copy)
    }

    unsafe fn __getbuffer__(slf: &Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        // SAFETY: the caller lends the structure for writing, by the buffer protocol.
        unsafe { buffer::fill(slf, view, flags) }
    }

    #[expect(clippy::unused_self, reason = "the buffer protocol passes the exporter")]
    unsafe fn __releasebuffer__(&self, view: *mut ffi::Py_buffer) {
        // SAFETY: Python releases what was filled, once.
        unsafe { buffer::release(view) }
    }

    #[classattr]
    fn __dlpack_c_exchange_api__(py: Python<'_>) -> PyResult<Py<PyCapsule>> {
        cuwheel_exchange::table_capsule::<Self>(py)
    }

    /// Return a capsule by which another library shares the memory, as the array API standard has it.
    ///
    /// Args:
    ///     stream: For which the data is to be ready: None or 1 for the legacy default stream, 2 for the per-thread default
    ///         stream, -1 for no synchronisation, else a handle.
    ///     max_version: The newest DLPack version that the caller reads.
    ///     dl_device: The DLPack device to export to; by default where the array is.
    ///     copy: True for a copy, False to refuse one, None for a copy if need be.
    ///
    /// Raises:
    ///     BufferError: DLPack cannot describe the array, or a copy is needed and `copy` is False.
    ///     ValueError: The stream is 0, which could be either default stream.
    #[pyo3(signature = (*, stream = None, max_version = None, dl_device = None, copy = None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<i64>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        cuwheel_exchange::dlpack(py, &self.array, &DlpackArguments { stream, max_version, dl_device, copy })
    }

    /// Return the DLPack device, `(type, number)`: 2 is a CUDA device, 3 host memory that one sees, 13 managed memory.
    fn __dlpack_device__(&self) -> (i32, i32) {
        cuwheel_exchange::dlpack_device(&self.array)
    }

    /// The CUDA array interface, version 3.
    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        cuwheel_exchange::cuda_array_interface(py, &self.array)
    }
}

/// The views along the first axis, one by one.
#[pyclass(frozen)]
struct Elements {
    array: Py<DeviceArray>,
    length: usize,
    next: std::sync::atomic::AtomicUsize,
}

#[pymethods]
impl Elements {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<DeviceArray>> {
        let next = self.next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        if next >= self.length {
            // It stays at the end.
            self.next.store(self.length, std::sync::atomic::Ordering::Relaxed);
            return Ok(None);
        }
        let index = i64::try_from(next).map_err(|_| exception::new::<PyIndexError>(py, "index out of range"))?;
        let array = &self.array.get().array;
        DeviceArray::view(py, array.index(&[cuwheel_device_array::Index::Integer(index)])).map(Some)
    }
}
