//! Fingerprints of Python objects.

use std::marker::PhantomData;

use cuwheel_dispatcher::{Fingerprint, Item, Layout};
use cuwheel_numpy::{Array, Descriptor, NumPy, Scalar};
use pyo3::exceptions::{PyNotImplementedError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyByteArray, PyBytes, PyComplex, PyFloat, PyInt, PyList, PySet, PyString, PyTuple, PyType};
use pyo3::{PyTypeInfo, ffi, intern};

use super::identity;
use crate::buffer::{Access, BufferSlot};
use crate::{exception, numpy};

/// Longer fingerprints than this, in bytes, are not worth keeping.
const MAX_BYTES: usize = 4096;

/// Why a value has no fingerprint.
pub(super) enum Refusal {
    /// Its type cannot be told from it this way.
    Unknown,
    /// Nor can that of any other instance of its class.
    Opaque,
    /// It has no type at all, or an exception was raised meanwhile.
    Raised(PyErr),
}

impl From<PyErr> for Refusal {
    fn from(error: PyErr) -> Self {
        Self::Raised(error)
    }
}

impl Refusal {
    pub(super) fn into_exception(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Unknown | Self::Opaque => {
                exception::new::<PyNotImplementedError>(py, "cannot compute type fingerprint for value")
            }
            Self::Raised(error) => error,
        }
    }
}

/// Writes the fingerprint of a value.
pub(super) struct Reader<'a, 'py> {
    numpy: NumPy<'py>,
    omitted: Option<&'a Bound<'py, PyType>>,
    fingerprint: Fingerprint,
}

impl<'a, 'py> Reader<'a, 'py> {
    /// The fingerprint of `value`. `omitted` is the class of arguments left out.
    pub(super) fn fingerprint(
        value: &Bound<'py, PyAny>,
        omitted: Option<&'a Bound<'py, PyType>>,
    ) -> Result<Fingerprint, Refusal> {
        let numpy = numpy::import(value.py())?;
        let mut reader = Self { numpy, omitted, fingerprint: Fingerprint::new() };
        reader.write(value)?;
        Ok(reader.fingerprint)
    }

    fn write(&mut self, value: &Bound<'py, PyAny>) -> Result<(), Refusal> {
        if self.fingerprint.as_bytes().len() > MAX_BYTES {
            return Err(Refusal::Unknown);
        }
        if value.is_none() {
            self.fingerprint.none();
        } else if value.is_exact_instance_of::<pyo3::types::PyBool>() {
            self.fingerprint.boolean();
        } else if value.is_exact_instance_of::<PyInt>() {
            self.integer(value)?;
        } else if value.is_instance_of::<PyFloat>() {
            self.fingerprint.float();
        } else if value.is_exact_instance_of::<PyComplex>() {
            self.fingerprint.complex();
        } else if let Ok(tuple) = value.cast::<PyTuple>() {
            self.tuple(tuple)?;
        } else if let Ok(list) = value.cast::<PyList>() {
            self.list(list)?;
        } else if let Ok(set) = value.cast_exact::<PySet>() {
            self.set(set)?;
        } else if value.is_exact_instance_of::<PyBytes>() {
            self.fingerprint.bytes();
        } else if value.is_exact_instance_of::<PyByteArray>() {
            self.fingerprint.bytearray();
        } else {
            self.write_other(value)?;
        }
        Ok(())
    }

    /// Writes what a container holds: whatever it is, it says nothing about the container's class.
    fn write_item(&mut self, item: &Bound<'py, PyAny>) -> Result<(), Refusal> {
        self.write(item).map_err(|refusal| if let Refusal::Opaque = refusal { Refusal::Unknown } else { refusal })
    }

    fn write_other(&mut self, value: &Bound<'py, PyAny>) -> Result<(), Refusal> {
        let (py, object) = (value.py(), numpy::borrow(value));
        if let Some(scalar) = self.numpy.scalar(object) {
            self.fingerprint.scalar(item_of_scalar(py, scalar)?.ok_or(Refusal::Unknown)?);
        } else if let Some(array) = self.numpy.array(object) {
            if !array.is_exact() && is_array_of_its_own_kind(value)? {
                return Err(Refusal::Unknown);
            }
            write_array(&mut self.fingerprint, py, array)?;
        } else if let Some(descriptor) = self.numpy.descriptor(object) {
            self.fingerprint.data_type(item(py, descriptor)?.ok_or(Refusal::Unknown)?);
        } else if self.omitted.is_some_and(|omitted| value.is_exact_instance(omitted)) {
            self.omitted_argument(value)?;
        } else {
            self.buffer(value)?;
        }
        Ok(())
    }

    fn integer(&mut self, value: &Bound<'py, PyAny>) -> Result<(), Refusal> {
        let mut overflow = 0;
        // SAFETY: the thread is attached, as the type of `value` witnesses, and `value` is an `int`: nothing can fail.
        let number = unsafe { ffi::PyLong_AsLongLongAndOverflow(value.as_ptr(), &raw mut overflow) };
        if overflow == 0 && number != i64::MIN {
            self.fingerprint.integer();
            return Ok(());
        }
        // Larger numbers have another type, or none.
        value.extract::<u64>().map_err(|_| Refusal::Unknown)?;
        self.fingerprint.unsigned_integer();
        Ok(())
    }

    fn tuple(&mut self, tuple: &Bound<'py, PyTuple>) -> Result<(), Refusal> {
        let _depth = Depth::enter(tuple.py())?;
        if tuple.is_exact_instance_of::<PyTuple>() {
            self.fingerprint.begin_tuple();
        } else if tuple.hasattr(intern!(tuple.py(), "_fields"))? {
            self.fingerprint.begin_named_tuple(identity::of_class(tuple.get_type().as_any()));
        } else {
            return Err(Refusal::Unknown);
        }
        for item in tuple.iter() {
            self.write_item(&item)?;
        }
        self.fingerprint.end_tuple();
        Ok(())
    }

    fn list(&mut self, list: &Bound<'py, PyList>) -> Result<(), Refusal> {
        let _depth = Depth::enter(list.py())?;
        // Not by its length first: another thread may empty it in between.
        let Ok(first) = list.get_item(0) else {
            let message = "cannot compute fingerprint of empty list";
            return Err(exception::new::<PyValueError>(list.py(), message).into());
        };
        self.fingerprint.list();
        self.write_item(&first)
    }

    fn set(&mut self, set: &Bound<'py, PySet>) -> Result<(), Refusal> {
        let _depth = Depth::enter(set.py())?;
        let Some(first) = set.as_any().try_iter()?.next() else {
            let message = "cannot compute fingerprint of empty set";
            return Err(exception::new::<PyValueError>(set.py(), message).into());
        };
        self.fingerprint.set();
        self.write_item(&first?)
    }

    /// The type of an argument left out is that of its default and depends on the value too.
    fn omitted_argument(&mut self, value: &Bound<'py, PyAny>) -> Result<(), Refusal> {
        let _depth = Depth::enter(value.py())?;
        let default = value.getattr(intern!(value.py(), "value"))?;
        let is_plain = default.is_none()
            || default.is_instance_of::<pyo3::types::PyBool>()
            || default.is_exact_instance_of::<PyInt>()
            || default.is_exact_instance_of::<PyFloat>()
            || default.is_exact_instance_of::<PyComplex>();
        if !is_plain {
            return Err(Refusal::Unknown);
        }
        let text: Bound<'py, PyString> = match default.repr() {
            Ok(text) => text,
            // Python limits the digits of the text of an integer, not those of the integer.
            Err(error) if exception::is_ordinary(value.py(), &error) => return Err(Refusal::Unknown),
            Err(error) => return Err(error.into()),
        };
        self.fingerprint.omitted(text.to_str()?);
        self.write(&default)
    }

    fn buffer(&mut self, value: &Bound<'py, PyAny>) -> Result<(), Refusal> {
        // SAFETY: the thread is attached, as the type of `value` witnesses.
        if unsafe { ffi::PyObject_CheckBuffer(value.as_ptr()) } == 0 {
            return Err(Refusal::Opaque);
        }
        let mut slot = BufferSlot::new();
        let buffer = match slot.request(value, Access::Any) {
            Ok(buffer) => buffer,
            Err(error) if exception::is_ordinary(value.py(), &error) => return Err(Refusal::Unknown),
            Err(error) => return Err(error.into()),
        };
        let (is_c_contiguous, is_f_contiguous) = buffer.contiguity();
        self.fingerprint.buffer(
            buffer.dimension_count(),
            Layout::of(is_c_contiguous, is_f_contiguous),
            !buffer.is_readonly(),
            buffer.format().ok_or(Refusal::Unknown)?,
            buffer.itemsize(),
            identity::of_class(value.get_type().as_any()),
        );
        Ok(())
    }
}

/// Writes the fingerprint of an array that is not [of its own kind](is_array_of_its_own_kind).
pub(super) fn write_array(fingerprint: &mut Fingerprint, py: Python<'_>, array: Array<'_>) -> Result<(), Refusal> {
    let descriptor = array.descriptor();
    let outline = array.outline();
    let item = item(py, descriptor.borrow())?.ok_or(Refusal::Unknown)?;
    let flags = outline.flags();
    let layout = Layout::of(flags.is_c_contiguous(), flags.is_f_contiguous());
    let dimension_count = u8::try_from(outline.dimension_count()).map_err(|_| Refusal::Unknown)?;
    fingerprint.array(dimension_count, layout, flags.is_writeable(), item);
    Ok(())
}

/// What a NumPy scalar is; `None` if it is nothing that has a fingerprint.
pub(super) fn item_of_scalar(py: Python<'_>, scalar: Scalar<'_>) -> PyResult<Option<Item>> {
    let descriptor = scalar.descriptor().map_err(|error| numpy::numpy_exception(py, error))?;
    item(py, descriptor.borrow())
}

fn item(py: Python<'_>, descriptor: Descriptor<'_>) -> PyResult<Option<Item>> {
    /// Numbers below are those of numbers; this is that of `object`.
    const OBJECT: u8 = 17;
    const VOID: u8 = 20;

    let element = descriptor.element();
    let Ok(type_number) = u8::try_from(element.type_number()) else { return Ok(None) };
    let is_swapped = !element.is_native_byte_order();
    if type_number < OBJECT {
        return Ok(Some(Item::Number { type_number, is_swapped }));
    }
    if type_number == VOID {
        let identity = identity::of_structure(&numpy::object(py, descriptor))?;
        return Ok(Some(Item::Structure { type_number, identity }));
    }
    Ok(descriptor.datetime_unit().and_then(|unit| {
        let count = unit.count();
        Some(Item::Date { type_number, is_swapped, unit: u8::try_from(unit.number()).ok()?, count })
    }))
}

/// Whether an instance of a subclass of `numpy.ndarray` is not typed as the array that it is: because it says so, or
/// because it is a masked array, which has no type.
pub(super) fn is_array_of_its_own_kind(array: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = array.py();
    match array.getattr(intern!(py, "__numba_array_subtype_dispatch__")) {
        Ok(_) => return Ok(true),
        Err(error) if exception::is_ordinary(py, &error) => {}
        Err(error) => return Err(error),
    }
    match masked_array_class(py)? {
        Some(class) => array.is_instance(&class),
        None => Ok(false),
    }
}

/// The class of masked arrays, if it was imported: otherwise there are no instances.
fn masked_array_class(py: Python<'_>) -> PyResult<Option<Bound<'_, PyAny>>> {
    static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

    if let Some(class) = CLASS.get(py) {
        return Ok(Some(class.bind(py).clone()));
    }
    let modules = py.import(intern!(py, "sys"))?.getattr(intern!(py, "modules"))?;
    let module = modules.call_method1(intern!(py, "get"), (intern!(py, "numpy.ma"),))?;
    if module.is_none() {
        return Ok(None);
    }
    let class = module.getattr(intern!(py, "MaskedArray"))?;
    Ok(Some(CLASS.get_or_init(py, || class.unbind()).bind(py).clone()))
}

/// One level of nesting, counted among Python's own. Its lifetime shows that the thread is attached until it ends.
pub(super) struct Depth<'py>(PhantomData<Python<'py>>);

impl<'py> Depth<'py> {
    pub(super) fn enter(py: Python<'py>) -> PyResult<Self> {
        // SAFETY: the thread is attached, as `py` witnesses, and the text is a constant.
        if unsafe { ffi::Py_EnterRecursiveCall(c" while typing an argument".as_ptr()) } == 0 {
            Ok(Self(PhantomData))
        } else {
            Err(exception::fetch(py))
        }
    }
}

impl Drop for Depth<'_> {
    fn drop(&mut self) {
        // SAFETY: the thread is attached, as the lifetime witnesses, and `enter` succeeded once for each value.
        unsafe { ffi::Py_LeaveRecursiveCall() };
    }
}

/// The class whose exact instances `T` stands for, as a pointer to compare with.
pub(super) fn class_pointer<T: PyTypeInfo>(py: Python<'_>) -> *mut ffi::PyTypeObject {
    T::type_object_raw(py)
}
