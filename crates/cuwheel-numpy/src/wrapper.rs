//! The safe layer: NumPy as a value that proves it was imported, and references whose type was checked.
//!
//! `'py` is the time for which the thread is attached to the interpreter, `'a` the time for which an object is kept
//! alive. None of the types here can move to another thread, so neither of the two can end while they are used.

use std::marker::PhantomData;
use std::ptr::NonNull;

use crate::element::{DatetimeUnit, Element};
use crate::result::{self, Error};
use crate::state::{ArrayOutline, ArrayState};
use crate::sys;

/// A borrowed reference to some Python object.
#[derive(Debug, Clone, Copy)]
pub struct Object<'a> {
    pointer: NonNull<sys::PyObject>,
    lifetime: PhantomData<&'a sys::PyObject>,
}

impl Object<'_> {
    /// # Safety
    /// `pointer` must refer to a Python object that stays alive for the lifetime of the result.
    #[must_use]
    pub unsafe fn from_ptr(pointer: NonNull<sys::PyObject>) -> Self {
        Self { pointer, lifetime: PhantomData }
    }

    /// The reference as a pointer, to be used no longer than this.
    #[must_use]
    pub fn as_ptr(self) -> *mut sys::PyObject {
        self.pointer.as_ptr()
    }
}

/// Witness that NumPy is imported, that the thread is attached to the interpreter for `'py`, and that no other thread
/// changes an array in place while it is read.
#[derive(Debug, Clone, Copy)]
pub struct NumPy<'py> {
    attached: PhantomData<(&'py (), *mut ())>,
}

/// A NumPy array: `numpy.ndarray` or a subclass.
#[derive(Debug, Clone, Copy)]
pub struct Array<'a>(Object<'a>);

/// A NumPy scalar: an instance of `numpy.generic`.
#[derive(Debug, Clone, Copy)]
pub struct Scalar<'a>(Object<'a>);

/// A NumPy data type: an instance of `numpy.dtype`.
#[derive(Debug, Clone, Copy)]
pub struct Descriptor<'a>(Object<'a>);

/// A data type with a reference of its own.
#[derive(Debug)]
pub struct OwnedDescriptor<'a>(Descriptor<'a>);

/// What an object is to NumPy, apart from data types.
#[derive(Debug, Clone, Copy)]
pub enum Kind<'a> {
    /// An instance of `numpy.ndarray` itself.
    ExactArray(Array<'a>),
    /// An instance of a subclass of `numpy.ndarray`.
    Array(Array<'a>),
    /// A scalar.
    Scalar(Scalar<'a>),
    /// Neither an array nor a scalar.
    Other,
}

impl<'py> NumPy<'py> {
    /// Imports NumPy, unless that was done before. That runs arbitrary Python code; every later call costs next to
    /// nothing.
    ///
    /// After [`Error::ImportFailed`] a Python exception is set, and the next call tries again.
    ///
    /// # Safety
    /// The thread must be attached to the interpreter for `'py`.
    ///
    /// In free-threaded Python, and only there, another thread can give an array another shape, strides or data type in
    /// place (`array.shape = …`) while it is read here, and NumPy frees the old ones at once. No thread may do that
    /// during [`Array::state`] and [`Array::descriptor`]. NumPy itself asks the same of programs.
    pub unsafe fn import() -> Result<Self, Error> {
        // SAFETY: the thread is attached, as the caller promises.
        unsafe { result::import()? };
        Ok(Self { attached: PhantomData })
    }

    /// What the object is: in one step, for those who have to know more than one thing.
    #[must_use]
    pub fn kind<'a>(self, object: Object<'a>) -> Kind<'a>
    where
        'py: 'a,
    {
        // SAFETY: `self` proves that the thread is attached and NumPy imported; the object is alive for `'a`.
        match unsafe { sys::cuwheel_numpy_kind(object.as_ptr()) } {
            sys::EXACT_ARRAY => Kind::ExactArray(Array(object)),
            sys::ARRAY => Kind::Array(Array(object)),
            sys::SCALAR => Kind::Scalar(Scalar(object)),
            _ => Kind::Other,
        }
    }

    /// The object as an array, if it is one.
    #[must_use]
    pub fn array<'a>(self, object: Object<'a>) -> Option<Array<'a>>
    where
        'py: 'a,
    {
        // SAFETY: `self` proves that the thread is attached and NumPy imported; the object is alive for `'a`.
        (unsafe { sys::cuwheel_numpy_is_array(object.as_ptr()) } != 0).then_some(Array(object))
    }

    /// The object as a scalar, if it is one.
    #[must_use]
    pub fn scalar<'a>(self, object: Object<'a>) -> Option<Scalar<'a>>
    where
        'py: 'a,
    {
        // SAFETY: as in `array`.
        (unsafe { sys::cuwheel_numpy_is_scalar(object.as_ptr()) } != 0).then_some(Scalar(object))
    }

    /// The object as a data type, if it is one.
    #[must_use]
    pub fn descriptor<'a>(self, object: Object<'a>) -> Option<Descriptor<'a>>
    where
        'py: 'a,
    {
        // SAFETY: as in `array`.
        (unsafe { sys::cuwheel_numpy_is_descriptor(object.as_ptr()) } != 0).then_some(Descriptor(object))
    }

    /// Whether the object is a single value: a scalar, or an array without dimensions.
    pub fn is_single_value(self, object: Object<'_>) -> Result<bool, Error> {
        if self.scalar(object).is_some() {
            return Ok(true);
        }
        self.array(object).map_or(Ok(false), |array| Ok(array.state()?.shape().is_empty()))
    }
}

impl<'a> Array<'a> {
    /// Whether the type is `numpy.ndarray` itself and no subclass.
    #[must_use]
    pub fn is_exact(self) -> bool {
        // SAFETY: `self` was made by `NumPy::array` for a lifetime inside that of the witness, so the thread is
        // attached, NumPy is imported, and the object is alive.
        unsafe { sys::cuwheel_numpy_is_exact_array(self.0.as_ptr()) != 0 }
    }

    /// Where the items are and what they are, now.
    ///
    /// Not to be called while another thread changes the array in place; see [`NumPy::import`].
    pub fn state(self) -> Result<ArrayState, Error> {
        // SAFETY: as in `is_exact`, and the object is an array. With the GIL no other thread runs meanwhile; without it,
        // who made the witness promised that none changes the array.
        unsafe { ArrayState::read(self.0.pointer) }
    }

    /// What the array is, now.
    ///
    /// Not to be called while another thread changes the array in place; see [`NumPy::import`].
    #[must_use]
    pub fn outline(self) -> ArrayOutline {
        // SAFETY: as in `state`.
        ArrayOutline(unsafe { result::read_outline(self.0.pointer) })
    }

    /// The data type, now.
    ///
    /// Not to be called while another thread changes the array in place; see [`NumPy::import`].
    #[must_use]
    pub fn descriptor(self) -> OwnedDescriptor<'a> {
        // SAFETY: as in `state`. The result owns the new reference.
        OwnedDescriptor(Descriptor(unsafe { Object::from_ptr(result::array_descriptor(self.0.pointer)) }))
    }
}

impl<'a> Scalar<'a> {
    /// The data type. For structures, strings, dates and durations NumPy creates it anew each time.
    pub fn descriptor(self) -> Result<OwnedDescriptor<'a>, Error> {
        // SAFETY: `self` was made by `NumPy::scalar` for a lifetime inside that of the witness, so the thread is
        // attached, NumPy is imported, and the object is a live scalar. The result owns the new reference.
        let object = unsafe { Object::from_ptr(result::scalar_descriptor(self.0.pointer)?) };
        Ok(OwnedDescriptor(Descriptor(object)))
    }
}

impl Descriptor<'_> {
    /// What the data type says about one item.
    #[must_use]
    pub fn element(self) -> Element {
        // SAFETY: `self` comes from `NumPy::descriptor`, or from an array or scalar, for a lifetime inside that of the
        // witness, so the thread is attached, NumPy is imported, and the object is a live descriptor.
        Element(unsafe { result::read_descriptor(self.0.pointer) })
    }

    /// The unit, if this is a data type of dates or durations.
    #[must_use]
    pub fn datetime_unit(self) -> Option<DatetimeUnit> {
        // SAFETY: as in `element`.
        unsafe { result::read_datetime(self.0.pointer) }.map(DatetimeUnit)
    }

    /// The reference as a pointer, to be used no longer than this.
    #[must_use]
    pub fn as_ptr(self) -> *mut sys::PyObject {
        self.0.as_ptr()
    }
}

impl OwnedDescriptor<'_> {
    /// The data type, for as long as the reference is kept.
    #[must_use]
    pub fn borrow(&self) -> Descriptor<'_> {
        self.0
    }
}

impl Drop for OwnedDescriptor<'_> {
    fn drop(&mut self) {
        // SAFETY: this owns one reference, and its lifetime lies inside the time for which the thread is attached.
        unsafe { sys::Py_DecRef(self.0.as_ptr()) };
    }
}
