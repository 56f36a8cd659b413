//! Data types between Python and the library: NumPy's where NumPy has one, and `DType` for the others.

#![expect(clippy::trivially_copy_pass_by_ref, reason = "methods of Python classes take their instance by reference")]

use std::ptr::NonNull;

use cuwheel_device_array::DType;
use cuwheel_numpy::{Element, Object};
use pyo3::exceptions::{PyImportError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt, PyString, PyType};

use crate::{exception, numpy};

/// A data type of device arrays: one of NumPy's, or one that NumPy does not have, such as `bfloat16`, `float8_e4m3fn` or
/// `float4_e2m1fn`.
///
/// Equal to others of its name; `DType(dtype)` makes one of a name or a data type of NumPy, `ml_dtypes` or torch.
///
/// Args:
///     dtype: A name, a NumPy data type or scalar type, `bool`, `int`, `float`, `complex`, or a data type of `ml_dtypes`
///         or torch.
///
/// Raises:
///     TypeError: It is none of these, or names a type that device arrays do not have.
#[pyclass(frozen, name = "DType", module = "_devicearray", eq, hash)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PyDType(pub(crate) DType);

#[pymethods]
impl PyDType {
    #[new]
    #[pyo3(signature = (dtype, /))]
    fn new(dtype: DTypeArgument) -> Self {
        Self(dtype.0)
    }

    /// The name, as NumPy and `ml_dtypes` have it; `opaque[n]` for n bytes of unknown meaning.
    #[getter]
    fn name(&self) -> String {
        self.0.to_string()
    }

    /// The bits of an element, with all of its lanes.
    #[getter]
    fn bits(&self) -> u64 {
        self.0.bits()
    }

    /// The bytes of an element, or None if several share a byte.
    #[getter]
    fn itemsize(&self) -> Option<usize> {
        self.0.size_bytes()
    }

    /// The NumPy data type.
    ///
    /// Raises:
    ///     TypeError: Neither NumPy nor `ml_dtypes`, if it is installed, has this type.
    ///     ImportError: NumPy is not installed.
    #[getter]
    fn numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        numpy_dtype(py, self.0)?.ok_or_else(|| no_numpy_dtype(py, self.0))
    }

    fn __repr__(&self) -> String {
        format!("DType('{}')", self.0)
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyType>, (String,)) {
        (slf.get_type(), (slf.get().0.to_string(),))
    }
}

/// A data type as an argument.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DTypeArgument(pub(crate) DType);

impl<'py> FromPyObject<'_, 'py> for DTypeArgument {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(dtype) = object.cast::<PyDType>() {
            return Ok(Self(dtype.get().0));
        }
        if let Ok(class) = object.cast::<PyType>() {
            return of_class(&class);
        }
        if let Ok(name) = object.cast::<PyString>() {
            return of_name(&name);
        }
        of_other(&object)
    }
}

/// Python's own types mean what they mean to NumPy; scalar types of NumPy and `ml_dtypes` are named as their data types.
fn of_class(class: &Bound<'_, PyType>) -> PyResult<DTypeArgument> {
    let py = class.py();
    for (own, dtype) in [
        (py.get_type::<PyBool>(), DType::Bool),
        (py.get_type::<PyInt>(), DType::Int64),
        (py.get_type::<PyFloat>(), DType::Float64),
        (py.get_type::<PyComplex>(), DType::Complex128),
    ] {
        if class.is(&own) {
            return Ok(DTypeArgument(dtype));
        }
    }
    of_numpy_like(class.as_any())
}

/// A name of ours, or whatever else NumPy understands, such as `"<f4"` and `"i8"`.
fn of_name(name: &Bound<'_, PyString>) -> PyResult<DTypeArgument> {
    let py = name.py();
    let text = name.to_str()?;
    match DType::from_name(text).or_else(|error| DType::from_typestr(text).map_err(|_| error)) {
        Ok(dtype) => Ok(DTypeArgument(dtype)),
        Err(error) => match numpy_constructor(py).and_then(|constructor| constructor.call1((name,))) {
            Ok(dtype) => of_descriptor(&dtype).map(DTypeArgument),
            Err(_) => Err(cuwheel_exchange::exception_of(py, error)),
        },
    }
}

/// A NumPy data type; or one of torch, which is written `torch.float32`.
fn of_other(object: &Bound<'_, PyAny>) -> PyResult<DTypeArgument> {
    let module = object.get_type().module()?;
    if module.to_str()? == "torch" {
        let text = object.str()?;
        let text = text.to_str()?;
        let name = text.strip_prefix("torch.").unwrap_or(text);
        return match DType::from_name(name) {
            Ok(dtype) => Ok(DTypeArgument(dtype)),
            Err(error) => Err(cuwheel_exchange::exception_of(object.py(), error)),
        };
    }
    of_numpy_like(object)
}

/// Whatever `numpy.dtype` takes.
fn of_numpy_like(object: &Bound<'_, PyAny>) -> PyResult<DTypeArgument> {
    let py = object.py();
    let no_dtype = || {
        let message = format!(
            "{} is no data type; pass a name such as \"float32\", a NumPy data type, or a cuwheel.DType",
            object.repr().map_or_else(|_| exception::type_name(object), |text| text.to_string_lossy().into_owned())
        );
        exception::new::<PyTypeError>(py, message)
    };
    let dtype = numpy_constructor(py)?.call1((object,)).map_err(|_| no_dtype())?;
    of_descriptor(&dtype).map(DTypeArgument)
}

fn numpy_constructor(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    numpy_module(py)?.getattr(intern!(py, "dtype"))
}

/// The data type for a `numpy.dtype`.
pub(super) fn of_descriptor(dtype: &Bound<'_, PyAny>) -> PyResult<DType> {
    let py = dtype.py();
    let numpy = numpy::import(py)?;
    let pointer = NonNull::new(dtype.as_ptr().cast()).expect("a bound object is never null");
    // SAFETY: `dtype` keeps the object alive as long as it is borrowed.
    let descriptor = numpy.descriptor(unsafe { Object::from_ptr(pointer) });
    let Some(descriptor) = descriptor else {
        let message = format!("{} is no NumPy data type", exception::type_name(dtype));
        return Err(exception::new::<PyTypeError>(py, message));
    };
    let element = descriptor.element();
    if let Some(dtype) = of_element(&element) {
        return Ok(dtype);
    }
    // Types that other packages add to NumPy are known by their names only. A name does not tell the order of bytes.
    if element.type_number() >= FIRST_ADDED_TYPE && element.is_native_byte_order() {
        let name = dtype.getattr(intern!(py, "name"))?;
        if let Ok(dtype) = DType::from_name(name.cast::<PyString>()?.to_str()?) {
            return Ok(dtype);
        }
    }
    let text = dtype.getattr(intern!(py, "str"))?;
    DType::from_typestr(text.cast::<PyString>()?.to_str()?).map_err(|error| cuwheel_exchange::exception_of(py, error))
}

/// `NPY_USERDEF`: data types that packages add to NumPy have numbers from here on.
const FIRST_ADDED_TYPE: i32 = 256;

/// The common types, without asking for names.
fn of_element(element: &Element) -> Option<DType> {
    if !element.is_native_byte_order() || element.type_number() >= FIRST_ADDED_TYPE {
        return None;
    }
    Some(match (element.kind(), element.itemsize()) {
        ('b', 1) => DType::Bool,
        ('i', 1) => DType::Int8,
        ('i', 2) => DType::Int16,
        ('i', 4) => DType::Int32,
        ('i', 8) => DType::Int64,
        ('u', 1) => DType::UInt8,
        ('u', 2) => DType::UInt16,
        ('u', 4) => DType::UInt32,
        ('u', 8) => DType::UInt64,
        ('f', 2) => DType::Float16,
        ('f', 4) => DType::Float32,
        ('f', 8) => DType::Float64,
        ('c', 8) => DType::Complex64,
        ('c', 16) => DType::Complex128,
        _ => return None,
    })
}

/// NumPy, imported on first use.
pub(super) fn numpy_module(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    static NUMPY: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    // The shim's import says what to install.
    numpy::import(py)?;
    NUMPY.get_or_try_init(py, || py.import("numpy").map(Bound::unbind)).map(|module| module.bind(py).clone())
}

/// The NumPy data type of the same elements, if NumPy, or `ml_dtypes` where it is installed, has one.
pub(super) fn numpy_dtype(py: Python<'_>, dtype: DType) -> PyResult<Option<Bound<'_, PyAny>>> {
    let constructor = numpy_constructor(py)?;
    // Packed elements have no type there, though `ml_dtypes` has types of these names with one element in each byte.
    if dtype.size_bytes().is_none() || dtype == DType::Float4E2M1FnX2 {
        return Ok(None);
    }
    if let Some(typestr) = dtype.typestr() {
        return constructor.call1((typestr,)).map(Some);
    }
    match py.import(intern!(py, "ml_dtypes")) {
        Ok(module) => match module.getattr_opt(dtype.name())? {
            Some(class) => constructor.call1((class,)).map(Some),
            None => Ok(None),
        },
        Err(error) if error.is_instance_of::<PyImportError>(py) => Ok(None),
        Err(error) => Err(error),
    }
}

pub(super) fn no_numpy_dtype(py: Python<'_>, dtype: DType) -> PyErr {
    let message = match dtype.size_bytes() {
        None => format!(
            "NumPy has no packed elements such as {dtype}; view the array as bytes first: array.view(\"uint8\")"
        ),
        Some(1) => format!(
            "NumPy has no data type {dtype}; install ml_dtypes, or view the array as bytes: array.view(\"uint8\")"
        ),
        Some(_) => {
            format!("NumPy has no data type {dtype}; install ml_dtypes, or view the array as integers of the same size")
        }
    };
    exception::new::<PyTypeError>(py, message)
}

/// The data type as Python sees it: NumPy's if NumPy is there and has it, else ours.
pub(super) fn to_python(py: Python<'_>, dtype: DType) -> PyResult<Bound<'_, PyAny>> {
    match numpy_dtype(py, dtype) {
        Ok(Some(numpy)) => return Ok(numpy),
        Ok(None) => {}
        Err(error) if error.is_instance_of::<PyImportError>(py) => {}
        Err(error) => return Err(error),
    }
    Ok(Bound::new(py, PyDType(dtype))?.into_any())
}
