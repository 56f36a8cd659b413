//! How numba-cuda reads the arrays of a class: what `_to_strided_memory_view` there looks for, in its order.

use std::num::NonZeroU8;

use cuwheel_device_array::{Device, pointer_attributes};
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyInt, PyString, PyTuple, PyType};
use pyo3::{ffi, intern};

use super::described::Words;
use crate::class_notes::ClassNotes;
use crate::exception;

/// What the instances of a class are to a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClassKind {
    /// Device arrays of numba-cuda, which make a description of themselves once.
    DeviceArray,
    /// Arrays that the exchange table of their class describes just as numba-cuda would read them.
    Exchange,
    /// Arrays with nothing but the CUDA array interface.
    Interface,
    /// Arrays of NumPy, and its scalars.
    HostArray,
    /// Whatever else.
    Other,
}

impl ClassKind {
    const ALL: [Self; 5] = [Self::DeviceArray, Self::Exchange, Self::Interface, Self::HostArray, Self::Other];

    fn note(self) -> NonZeroU8 {
        NonZeroU8::MIN.saturating_add(self as u8)
    }

    fn of_note(note: NonZeroU8) -> Self {
        *Self::ALL.get(usize::from(note.get() - 1)).unwrap_or(&Self::Other)
    }
}

/// The classes that arrays and numbers are told apart by.
pub(super) struct Classes {
    notes: ClassNotes,
    ndarray: Py<PyAny>,
    generic: Py<PyAny>,
    numpy_bool: Py<PyAny>,
    float16: Py<PyAny>,
    complex128: Py<PyAny>,
    uint16: Py<PyAny>,
    strided_memory_view: Py<PyAny>,
    cached_property: Py<PyAny>,
    /// Of cuda.core.
    stream: Py<PyAny>,
}

impl Classes {
    /// They are looked for once.
    pub(super) fn get(py: Python<'_>) -> PyResult<&'static Self> {
        static CLASSES: PyOnceLock<Classes> = PyOnceLock::new();
        CLASSES.get_or_try_init(py, || {
            let numpy = py.import("numpy")?;
            Ok(Self {
                notes: ClassNotes::default(),
                ndarray: numpy.getattr("ndarray")?.unbind(),
                generic: numpy.getattr("generic")?.unbind(),
                numpy_bool: numpy.getattr("bool_")?.unbind(),
                float16: numpy.getattr("float16")?.unbind(),
                complex128: numpy.getattr("complex128")?.unbind(),
                uint16: numpy.getattr("uint16")?.unbind(),
                strided_memory_view: py.import("cuda.core.utils")?.getattr("StridedMemoryView")?.unbind(),
                cached_property: py.import("functools")?.getattr("cached_property")?.unbind(),
                stream: py.import("cuda.core")?.getattr("Stream")?.unbind(),
            })
        })
    }

    /// What is known of the class of `value`.
    #[inline]
    pub(super) fn known_kind(&self, value: &Bound<'_, PyAny>) -> Option<ClassKind> {
        self.notes.get(value.get_type_ptr()).map(ClassKind::of_note)
    }

    /// Looks at the class of `value`, and notes what it is.
    #[cold]
    pub(super) fn kind(&self, value: &Bound<'_, PyAny>) -> PyResult<ClassKind> {
        let class = value.get_type();
        let kind = self.kind_of_class(&class)?;
        self.notes.add(&class, kind.note());
        Ok(kind)
    }

    fn kind_of_class(&self, class: &Bound<'_, PyType>) -> PyResult<ClassKind> {
        let py = class.py();
        let has = |name: &str| class.hasattr(name);
        // Such classes have attributes that only their instances know of.
        if has("__getattr__")? || class.is_subclass(self.strided_memory_view.bind(py))? {
            return Ok(ClassKind::Other);
        }
        if class.getattr_opt(intern!(py, "__cuda_memory__"))?.map_or(Ok(false), |value| value.is_truthy())? {
            let is_kept = class.getattr("_strided_memory_view_shim").is_ok_and(|view| self.is_cached_property(&view));
            return Ok(if is_kept { ClassKind::DeviceArray } else { ClassKind::Other });
        }
        if class.is_subclass(self.ndarray.bind(py))? || class.is_subclass(self.generic.bind(py))? {
            return Ok(ClassKind::HostArray);
        }
        if has("__dlpack__")? {
            return Ok(if is_read_as_described(class)? { ClassKind::Exchange } else { ClassKind::Other });
        }
        Ok(if has("__cuda_array_interface__")? { ClassKind::Interface } else { ClassKind::Other })
    }

    /// Whether the attribute of a class is computed once for each instance.
    pub(super) fn is_cached_property(&self, attribute: &Bound<'_, PyAny>) -> bool {
        attribute.get_type().is(self.cached_property.bind(attribute.py()))
    }

    pub(super) fn is_stream(&self, value: &Bound<'_, PyAny>) -> bool {
        value.get_type().is(self.stream.bind(value.py()))
    }

    /// Whether `value` is a scalar of one of NumPy's own classes, which run no code of Python.
    pub(super) fn is_own_numpy_scalar(&self, value: &Bound<'_, PyAny>) -> bool {
        let class = value.get_type_ptr();
        // SAFETY: the thread is attached, and both are live types.
        unsafe {
            ffi::PyType_IsSubtype(class, self.generic.as_ptr().cast()) != 0
                && ffi::PyType_GetFlags(class) & ffi::Py_TPFLAGS_HEAPTYPE == 0
        }
    }

    pub(super) fn is_complex128(&self, value: &Bound<'_, PyAny>) -> bool {
        value.get_type().is(self.complex128.bind(value.py()))
    }

    pub(super) fn is_numpy_bool(&self, value: &Bound<'_, PyAny>) -> bool {
        value.get_type().is(self.numpy_bool.bind(value.py()))
    }

    /// The bits of a `numpy.float16`; `None` for other values.
    pub(super) fn bits_of_float16(&self, value: &Bound<'_, PyAny>) -> PyResult<Option<u16>> {
        let py = value.py();
        if !value.get_type().is(self.float16.bind(py)) {
            return Ok(None);
        }
        value.call_method1(intern!(py, "view"), (self.uint16.bind(py),))?.extract().map(Some)
    }
}

/// Whether numba-cuda reads arrays of a class that has `__dlpack__` as the exchange table of the class describes them.
///
/// Tensors of torch it reads by cuda.core, which has a way of its own to look into them, its tensor bridge: it ignores that a
/// tensor requires a gradient, as the table does. Before there was one, and for subclasses outside of torch, cuda.core asks
/// `__dlpack__`, which does not.
fn is_read_as_described(class: &Bound<'_, PyType>) -> PyResult<bool> {
    let py = class.py();
    if !cuwheel_exchange::has_table(class)? {
        return Ok(false);
    }
    if !class.hasattr(intern!(py, "is_conj"))? {
        return Ok(true);
    }
    let module = class.getattr(intern!(py, "__module__"))?;
    let is_of_torch = module
        .cast::<PyString>()
        .is_ok_and(|module| module.to_str().is_ok_and(|module| module == "torch" || module.starts_with("torch.")));
    let modules = py.import(intern!(py, "sys"))?.getattr(intern!(py, "modules"))?;
    Ok(is_of_torch && modules.contains(intern!(py, "cuda.core._tensor_bridge"))?)
}

/// The words of an array that has nothing but the CUDA array interface, if it waits for no stream, and the device that it is
/// on; `None` if Python has to look at it. What Python refuses is none of these.
#[cold]
pub(super) fn words_of_interface(array: &Bound<'_, PyAny>) -> PyResult<Option<(Words, Device)>> {
    let py = array.py();
    // An instance may have what its class has not.
    if array.hasattr(intern!(py, "__dlpack__"))? || array.hasattr(intern!(py, "__cuda_memory__"))? {
        return Ok(None);
    }
    let interface = array.getattr(intern!(py, "__cuda_array_interface__"))?;
    let Ok(interface) = interface.cast_exact::<PyDict>() else { return Ok(None) };
    let field = |name: &str| -> PyResult<Option<Bound<'_, PyAny>>> {
        Ok(interface.get_item(name)?.filter(|value| !value.is_none()))
    };
    let missing = || exception::new::<PyBufferError>(py, "a field of the CUDA array interface is missing");
    let required = |name: &str| field(name)?.ok_or_else(missing);
    if field("stream")?.is_some() || field("mask")?.is_some() || required("version")?.extract::<u32>()? < 3 {
        return Ok(None);
    }
    let data = required("data")?;
    let (pointer, _): (Bound<'_, PyAny>, bool) = data.extract()?;
    let itemsize = itemsize(&required("typestr")?.extract::<String>()?);
    let strides = field("strides")?.map(|strides| numbers(&strides));
    let (Some(shape), Some(itemsize), true) =
        (numbers(&required("shape")?), itemsize, pointer.is_exact_instance_of::<PyInt>())
    else {
        return Ok(None);
    };
    let size = shape.iter().try_fold(1_i64, |size, extent| size.checked_mul(*extent));
    let strides = strides.unwrap_or_else(|| Some(dense_strides(&shape, itemsize)));
    let (Some(size), Some(strides)) = (size, strides) else { return Ok(None) };
    let is_sound = shape.iter().all(|extent| *extent > 0)
        && strides.len() == shape.len()
        && strides.iter().all(|stride| stride % itemsize == 0);
    let pointer = pointer.extract()?;
    // The driver has to know the address, as it has to for Python.
    let place = py.detach(|| pointer_attributes(pointer)).ok().and_then(|known| known.device);
    let (true, Some(device)) = (is_sound, place) else { return Ok(None) };
    let mut words = Words::new();
    words.extend([0, 0, size.cast_unsigned(), itemsize.cast_unsigned(), pointer]);
    words.extend(shape.iter().chain(&strides).map(|number| number.cast_unsigned()));
    Ok(Some((words, device)))
}

/// The numbers of an exact tuple of exact integers.
fn numbers(tuple: &Bound<'_, PyAny>) -> Option<Vec<i64>> {
    let tuple = tuple.cast_exact::<PyTuple>().ok()?;
    tuple.iter().map(|number| number.cast_exact::<PyInt>().ok()?.extract().ok()).collect()
}

/// The bytes of an item of a type of numbers that NumPy has, such as 4 of `<f4`.
fn itemsize(typestr: &str) -> Option<i64> {
    match typestr {
        "|b1" | "|i1" | "|u1" => Some(1),
        "<i2" | "<u2" | "<f2" => Some(2),
        "<i4" | "<u4" | "<f4" => Some(4),
        "<i8" | "<u8" | "<f8" | "<c8" => Some(8),
        "<c16" => Some(16),
        _ => None,
    }
}

fn dense_strides(shape: &[i64], itemsize: i64) -> Vec<i64> {
    let mut strides = vec![itemsize; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis].wrapping_mul(shape[axis]);
    }
    strides
}
