//! Arrays in host memory, which NumPy describes.

use std::ptr::NonNull;

use cuwheel_device_array::{DType, HostRegion, HostRegionMut, Layout};
use cuwheel_exchange::exception_of;
use cuwheel_numpy::Object;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::{dtype, index};
use crate::{exception, numpy};

/// A NumPy array, and what native code needs to know to copy from it or to it.
pub(super) struct HostArray<'py> {
    object: Bound<'py, PyAny>,
    address: usize,
    layout: Layout,
    dtype: DType,
    writeable: bool,
}

impl<'py> HostArray<'py> {
    /// Whatever NumPy makes an array of, as elements of type `dtype` if one is given.
    ///
    /// Elements are converted if that loses nothing but precision: within their kind, or to a more general one.
    pub(super) fn of(object: &Bound<'py, PyAny>, dtype: Option<DType>) -> PyResult<Self> {
        let py = object.py();
        let offers = |name| object.hasattr(name);
        // NumPy does not ask for DLPack by itself, and makes an object of what offers nothing else.
        let is_dlpack = offers(intern!(py, "__dlpack__"))?
            && !offers(intern!(py, "__array__"))?
            && !offers(intern!(py, "__array_interface__"))?;
        let function = if is_dlpack { intern!(py, "from_dlpack") } else { intern!(py, "asarray") };
        let array = dtype::numpy_module(py)?.call_method1(function, (object,))?;
        let array = match dtype {
            Some(dtype) => Self::converted(&array, dtype)?,
            None => array,
        };
        Self::describe(array)
    }

    fn converted(array: &Bound<'py, PyAny>, dtype: DType) -> PyResult<Bound<'py, PyAny>> {
        let py = array.py();
        let has = array.getattr(intern!(py, "dtype"))?;
        if dtype::of_descriptor(&has).is_ok_and(|has| has == dtype) {
            return Ok(array.clone());
        }
        let Some(wanted) = dtype::numpy_dtype(py, dtype)? else { return Err(dtype::no_numpy_dtype(py, dtype)) };
        let is_integer = |dtype: &Bound<'py, PyAny>| -> PyResult<bool> {
            let kind: char = dtype.getattr(intern!(py, "kind"))?.extract()?;
            Ok(matches!(kind, 'i' | 'u'))
        };
        // Integers of Python have no width of their own: they are converted to any that holds them.
        let both_integers = is_integer(&has)? && is_integer(&wanted)?;
        let arguments = PyDict::new(py);
        arguments.set_item(intern!(py, "casting"), if both_integers { "unsafe" } else { "same_kind" })?;
        let converted = array.call_method(intern!(py, "astype"), (&wanted,), Some(&arguments))?;
        if both_integers && !equal(&converted, array)? {
            let message = format!("the values do not all fit in {wanted}; pass a wider dtype");
            return Err(exception::new::<PyOverflowError>(py, message));
        }
        Ok(converted)
    }

    /// A new array without values.
    pub(super) fn empty(py: Python<'py>, shape: &[i64], dtype: DType) -> PyResult<Self> {
        let Some(wanted) = dtype::numpy_dtype(py, dtype)? else { return Err(dtype::no_numpy_dtype(py, dtype)) };
        let shape = PyTuple::new(py, shape)?;
        Self::describe(dtype::numpy_module(py)?.call_method1(intern!(py, "empty"), (shape, wanted))?)
    }

    /// An array that the caller gave to be filled.
    pub(super) fn to_fill(object: &Bound<'py, PyAny>, shape: &[i64], dtype: DType) -> PyResult<Self> {
        let py = object.py();
        let array = Self::describe(object.clone())?;
        let problem = if array.dtype != dtype {
            format!("out has elements of type {}, and the array of type {dtype}", array.dtype)
        } else if array.layout.shape() != shape {
            format!("out has the shape {:?}, and the array {shape:?}", array.layout.shape())
        } else if !array.writeable {
            "out is read-only".to_owned()
        } else {
            return Ok(array);
        };
        let message =
            format!("{problem}; pass a writable array of the same shape and type, or leave out to get a new one");
        Err(exception::new::<PyValueError>(py, message))
    }

    fn describe(object: Bound<'py, PyAny>) -> PyResult<Self> {
        let py = object.py();
        let numpy = numpy::import(py)?;
        let pointer = NonNull::new(object.as_ptr().cast()).expect("a bound object is never null");
        // SAFETY: `object` keeps what it refers to alive as long as it is borrowed.
        let Some(array) = numpy.array(unsafe { Object::from_ptr(pointer) }) else {
            let message = format!("expected a NumPy array, not {}", exception::type_name(&object));
            return Err(exception::new::<PyTypeError>(py, message));
        };
        let state = array.state().map_err(|error| exception::new::<PyValueError>(py, error.to_string()))?;
        let dtype = dtype::of_descriptor(&object.getattr(intern!(py, "dtype"))?)?;
        if dtype.size_bytes().is_none() {
            let message = format!(
                "the host array holds one {dtype} in each byte, and device arrays pack them; pack the elements into uint8, and \
                 view the device array of that: array.view(\"{dtype}\")"
            );
            return Err(exception::new::<PyTypeError>(py, message));
        }
        let numbers = |values: &[isize]| -> Vec<i64> { values.iter().map(|value| *value as i64).collect() };
        let layout = Layout::from_bytes(&numbers(state.shape()), &numbers(state.strides()), dtype)
            .map_err(|error| exception_of(py, error))?;
        let (address, writeable) = (state.address(), state.flags().is_writeable());
        Ok(Self { object, address, layout, dtype, writeable })
    }

    pub(super) fn shape(&self) -> &[i64] {
        self.layout.shape()
    }

    pub(super) fn dtype(&self) -> DType {
        self.dtype
    }

    /// The same elements as if there were more of them, by NumPy's rules for assignments.
    pub(super) fn broadcast_to(self, shape: &[i64]) -> PyResult<Self> {
        let py = self.object.py();
        let layout = match index::surplus_axes(self.shape(), shape) {
            Some(axes) => self.layout.squeeze(Some(&axes)).and_then(|layout| layout.broadcast_to(shape)),
            None => self.layout.broadcast_to(shape),
        };
        Ok(Self { layout: layout.map_err(|error| exception_of(py, error))?, ..self })
    }

    /// The memory, for a copy while the thread is detached. The caller keeps `self` as long.
    pub(super) fn region(&self) -> HostRegion<'_> {
        // SAFETY: NumPy keeps the memory that it describes as long as the array exists, which `self` sees to. That no
        // other thread writes to it meanwhile is asked of programs, by NumPy as well.
        unsafe { HostRegion::new(self.address, &self.layout, self.dtype) }
    }

    /// The memory, to be written to. The caller keeps `self` as long.
    pub(super) fn region_mut(&self) -> HostRegionMut<'_> {
        // SAFETY: as in `region`; the array was found to be writable, or is new.
        unsafe { HostRegionMut::new(self.address, &self.layout, self.dtype) }
    }

    /// The bytes of the only element.
    pub(super) fn element(&self) -> &[u8] {
        let size = self.dtype.size_bytes().unwrap_or(0);
        // SAFETY: NumPy keeps the memory of the element as long as the array exists.
        unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance(self.address), size) }
    }

    pub(super) fn py(&self) -> Python<'py> {
        self.object.py()
    }

    pub(super) fn into_object(self) -> Bound<'py, PyAny> {
        self.object
    }
}

/// Whether all elements of two arrays of one shape are equal.
fn equal(left: &Bound<'_, PyAny>, right: &Bound<'_, PyAny>) -> PyResult<bool> {
    dtype::numpy_module(left.py())?.call_method1(intern!(left.py(), "array_equal"), (left, right))?.is_truthy()
}
