//! The Python module `_numpy`: shows what native code sees of NumPy objects. Internal, for bug reports and tests.
//!
//! Also the way from a Python object to `cuwheel_numpy` for the other modules of the library.

#![expect(clippy::doc_markdown, reason = "the comments on functions and classes are their Python docstrings too")]

use std::ptr::NonNull;

use cuwheel_numpy::{Array, Descriptor, Error, NumPy, Object, Scalar};
use pyo3::exceptions::{PyException, PyImportError, PyMemoryError, PyRecursionError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::exception;
use crate::submodule::Submodule;

/// The module, as the library's table of modules lists it.
pub(crate) const SUBMODULE: Submodule = Submodule { name: "_numpy", populate };

fn populate(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(describe, module)?)
}

/// Return what native code sees of a NumPy array, scalar or data type.
///
/// NumPy is imported if it was not yet.
///
/// Args:
///     obj: A `numpy.ndarray`, a `numpy.generic` or a `numpy.dtype`, or an instance of a subclass.
///
/// Returns:
///     A dictionary with the keys of `_Description` in the stub `_numpy.pyi`. Addresses, sizes and strides are in
///     bytes; what exists for arrays only is under the key "array", which is None for others.
///
/// Raises:
///     TypeError: `obj` is something else.
///     ImportError: NumPy cannot be imported. Running out of memory or of stack meanwhile is reported as what it is.
#[pyfunction]
#[pyo3(signature = (obj, /))]
fn describe<'py>(obj: &Bound<'py, PyAny>) -> PyResult<Description<'py>> {
    let numpy = import(obj.py())?;
    let object = borrow(obj);
    if let Some(array) = numpy.array(object) {
        return Description::of_array(obj.py(), array);
    }
    if let Some(scalar) = numpy.scalar(object) {
        return Description::of_scalar(obj.py(), scalar);
    }
    if let Some(descriptor) = numpy.descriptor(object) {
        return Ok(Description::of_descriptor("dtype", descriptor));
    }
    let message = format!("expected a NumPy array, scalar or dtype, not {}", exception::type_name(obj));
    Err(exception::new::<PyTypeError>(obj.py(), message))
}

/// NumPy, imported on first use.
pub(crate) fn import(py: Python<'_>) -> PyResult<NumPy<'_>> {
    // SAFETY: the thread is attached for the lifetime that `py` carries. That no other thread changes an array in place
    // while it is read, which only free-threaded Python makes possible, is asked of programs in docs/numpy-shims.md.
    unsafe { NumPy::import() }.map_err(|error| numpy_exception(py, error))
}

/// The object for `cuwheel_numpy`.
pub(crate) fn borrow<'a>(object: &'a Bound<'_, PyAny>) -> Object<'a> {
    let pointer = NonNull::new(object.as_ptr().cast()).expect("a bound object is never null");
    // SAFETY: `object` keeps what it refers to alive as long as it is borrowed.
    unsafe { Object::from_ptr(pointer) }
}

/// What [`describe`] returns; becomes a dictionary.
#[derive(IntoPyObject)]
struct Description<'py> {
    kind: &'static str,
    single_value: bool,
    type_number: i32,
    type_kind: char,
    byte_order: char,
    native_byte_order: bool,
    itemsize: isize,
    alignment: isize,
    datetime: Option<(Option<&'static str>, i32)>,
    array: Option<ArrayDescription<'py>>,
}

/// What exists for arrays only.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(IntoPyObject)]
struct ArrayDescription<'py> {
    exact: bool,
    address: usize,
    shape: Bound<'py, PyTuple>,
    strides: Bound<'py, PyTuple>,
    flags: i32,
    c_contiguous: bool,
    f_contiguous: bool,
    aligned: bool,
    writeable: bool,
    behaved: bool,
}

impl<'py> Description<'py> {
    fn of_array(py: Python<'py>, array: Array<'_>) -> PyResult<Self> {
        // Both at once: what follows creates Python objects, which may run code that changes the array.
        let descriptor = array.descriptor();
        let state = array.state().map_err(|error| numpy_exception(py, error))?;
        let flags = state.flags();
        let array_only = ArrayDescription {
            exact: array.is_exact(),
            address: state.address(),
            shape: PyTuple::new(py, state.shape())?,
            strides: PyTuple::new(py, state.strides())?,
            flags: flags.bits(),
            c_contiguous: flags.is_c_contiguous(),
            f_contiguous: flags.is_f_contiguous(),
            aligned: flags.is_aligned(),
            writeable: flags.is_writeable(),
            behaved: state.is_behaved(),
        };
        Ok(Self {
            single_value: state.shape().is_empty(),
            array: Some(array_only),
            ..Self::of_descriptor("array", descriptor.borrow())
        })
    }

    fn of_scalar(py: Python<'py>, scalar: Scalar<'_>) -> PyResult<Self> {
        let descriptor = scalar.descriptor().map_err(|error| numpy_exception(py, error))?;
        Ok(Self { single_value: true, ..Self::of_descriptor("scalar", descriptor.borrow()) })
    }

    fn of_descriptor(kind: &'static str, descriptor: Descriptor<'_>) -> Self {
        let element = descriptor.element();
        Self {
            kind,
            single_value: false,
            type_number: element.type_number(),
            type_kind: element.kind(),
            byte_order: element.byte_order(),
            native_byte_order: element.is_native_byte_order(),
            itemsize: element.itemsize(),
            alignment: element.alignment(),
            datetime: descriptor.datetime_unit().map(|unit| (unit.name(), unit.count())),
            array: None,
        }
    }
}

/// The Python object that a data type is.
pub(crate) fn object<'py>(py: Python<'py>, descriptor: Descriptor<'_>) -> Bound<'py, PyAny> {
    // SAFETY: the thread is attached, as `py` witnesses, and `descriptor` is a live object.
    unsafe { Bound::from_borrowed_ptr(py, descriptor.as_ptr().cast()) }
}

/// The Python exception for an error; takes the one that is set, if the error says so.
pub(crate) fn numpy_exception(py: Python<'_>, error: Error) -> PyErr {
    match error {
        Error::ImportFailed => import_exception(py, exception::fetch(py)),
        Error::NoDescriptor => exception::fetch(py),
        Error::TooManyDimensions => exception::new::<PyValueError>(py, error.to_string()),
    }
}

/// Says what to install, unless the import was interrupted or the machine is at its limits: that is no fault of NumPy's.
fn import_exception(py: Python<'_>, cause: PyErr) -> PyErr {
    if !cause.is_instance_of::<PyException>(py)
        || cause.is_instance_of::<PyMemoryError>(py)
        || cause.is_instance_of::<PyRecursionError>(py)
    {
        return cause;
    }
    let message = format!(
        "NumPy could not be imported ({}). \
         This needs NumPy 1.26 or newer; install it with: pip install \"cuwheel[numpy]\"",
        exception::summary(py, &cause)
    );
    let error = exception::new::<PyImportError>(py, message);
    error.set_cause(py, Some(cause));
    error
}
