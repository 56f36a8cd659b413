//! The types of arguments, as codes.
//!
//! What can be told from the value itself is told here; otherwise the value's attribute `_numba_type_` says it, or the
//! dispatcher's method `typeof_pyval`. An answer is remembered only for values that Python would type alike.

use std::array;
use std::cell::RefCell;
use std::num::NonZeroU8;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use cuwheel_device_array::Described;
use cuwheel_dispatcher::{Fingerprint, Item, Layout, Memo, TypeCode};
use cuwheel_exchange::Producing;
use cuwheel_numpy::{Array, Kind, Scalar};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyDict, PyFloat, PyInt, PyString, PyTuple, PyType};

use super::class::LaunchingDispatcher;
use super::device_array;
use super::exchange_types::{self, ExchangeType};
use super::fingerprint::{self, Reader, Refusal, class_pointer};
use crate::class_notes::ClassNotes;
use crate::numba_launch::{DescribedArray, DescribedArrays};
use crate::object_memo::{Entry, ObjectMemo};
use crate::{exception, number, numpy};

/// The types whose codes are known from the start.
const NUMBERS: [&str; 12] = [
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float32",
    "float64",
    "complex64",
    "complex128",
];
const INT64: usize = 6;
const FLOAT64: usize = 9;
const COMPLEX128: usize = 11;

/// Arrays with more dimensions than this, or none, are known by their fingerprints.
const MAX_DIMENSIONS: usize = 5;
/// How many fingerprints are remembered.
const CAPACITY: usize = 4096;

thread_local! {
    /// The codes of objects that keep the type that they say they have.
    static KEPT_TYPES: RefCell<ObjectMemo<TypeCode, 128>> = const { RefCell::new(ObjectMemo::new()) };
}

/// What instances of a class have in common. Should a class change after it was noted as opaque, its instances are typed as
/// rightly as before, only slower.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Note {
    /// They have nothing to tell their type by: Python types them one by one.
    Opaque,
    /// They compute `_numba_type_` once, and keep it.
    KeepsType,
    /// They are arrays that the exchange table of the class describes.
    Exchange,
    /// They are looked into one by one.
    Looked,
    /// They are numbers of the type with this position among [`NUMBERS`].
    Number(u8),
}

impl Note {
    /// Notes below are the others.
    const FIRST_NUMBER: u8 = 5;

    fn written(self) -> NonZeroU8 {
        let note = match self {
            Self::Opaque => 1,
            Self::KeepsType => 2,
            Self::Exchange => 3,
            Self::Looked => 4,
            Self::Number(number) => Self::FIRST_NUMBER + number,
        };
        NonZeroU8::new(note).unwrap_or(NonZeroU8::MIN)
    }

    fn read(note: NonZeroU8) -> Self {
        match note.get() {
            1 => Self::Opaque,
            2 => Self::KeepsType,
            3 => Self::Exchange,
            4 => Self::Looked,
            number => Self::Number(number - Self::FIRST_NUMBER),
        }
    }
}

/// The latest that `typeof_init` made.
static CURRENT: RwLock<Option<Arc<TypeOf>>> = RwLock::new(None);

/// What `typeof_init` said, and what was found out since.
pub(super) struct TypeOf {
    omitted: Py<PyType>,
    numbers: [TypeCode; NUMBERS.len()],
    boolean: OnceLock<Typed>,
    /// By [`ArrayKind::position`].
    arrays: [OnceLock<Typed>; ArrayKind::COUNT],
    classes: ClassNotes,
    fingerprints: Memo<Box<[u8]>, Typed>,
}

/// The code of a type, which is good for as long as the type is alive.
pub(super) struct Typed {
    pub(super) code: TypeCode,
    #[expect(dead_code, reason = "keeps the type alive, and with it its code")]
    type_object: Py<PyAny>,
}

/// What Python says about a value.
struct Answer<'py> {
    code: TypeCode,
    type_object: Bound<'py, PyAny>,
    /// Whether the value itself said it: then nothing follows for other values, however alike.
    is_of_the_value: bool,
}

/// Which answers hold for other values.
#[derive(Debug, Clone, Copy)]
enum Remember {
    /// Those that do not come from the value itself.
    UnlessOfTheValue,
    /// All: the fingerprint tells all that they depend on.
    Always,
}

/// An array that is known without a fingerprint: aligned, writeable, of numbers in this machine's byte order.
#[derive(Debug, Clone, Copy)]
struct ArrayKind {
    dimension_count: usize,
    layout: Layout,
    number: usize,
}

impl ArrayKind {
    const COUNT: usize = MAX_DIMENSIONS * 3 * NUMBERS.len();

    /// `type_number` is that of NumPy. `None` if arrays of this kind are not known without a fingerprint.
    fn new(dimension_count: usize, layout: Layout, type_number: i32) -> Option<Self> {
        if !(1..=MAX_DIMENSIONS).contains(&dimension_count) {
            return None;
        }
        Some(Self { dimension_count, layout, number: number_of(type_number)? })
    }

    /// Different for different kinds, and below [`Self::COUNT`].
    fn position(self) -> usize {
        let layout = match self.layout {
            Layout::Any => 0,
            Layout::C => 1,
            Layout::Fortran => 2,
        };
        ((self.dimension_count - 1) * 3 + layout) * NUMBERS.len() + self.number
    }
}

/// The place in [`NUMBERS`] of a type of NumPy. `long long` has none, though it is as large as `long`.
fn number_of(type_number: i32) -> Option<usize> {
    match type_number {
        1..=8 => usize::try_from(type_number - 1).ok(),
        11 => Some(8),
        12 => Some(FLOAT64),
        14 => Some(10),
        15 => Some(COMPLEX128),
        _ => None,
    }
}

impl TypeOf {
    /// Makes what `typeof_init` was told current.
    pub(super) fn install(omitted: &Bound<'_, PyType>, codes: &Bound<'_, PyDict>) -> PyResult<()> {
        let py = omitted.py();
        numpy::import(py)?;
        let mut numbers = [TypeCode::from(0); NUMBERS.len()];
        for (place, name) in numbers.iter_mut().zip(NUMBERS) {
            let Some(code) = codes.get_item(name)? else {
                let message = format!("the codes have none for {name}; give one for each of {}", NUMBERS.join(", "));
                return Err(exception::new::<PyValueError>(py, message));
            };
            *place = number::type_code(&code)?;
        }
        let new = Self {
            omitted: omitted.clone().unbind(),
            numbers,
            boolean: OnceLock::new(),
            arrays: array::from_fn(|_| OnceLock::new()),
            classes: ClassNotes::default(),
            fingerprints: Memo::new(CAPACITY),
        };
        let former = CURRENT.write().unwrap_or_else(PoisonError::into_inner).replace(Arc::new(new));
        // Not under the lock: it may run code.
        drop(former);
        Ok(())
    }

    /// What `typeof_init` made last, if it was called.
    pub(super) fn current() -> Option<Arc<Self>> {
        CURRENT.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The same, or an exception.
    pub(super) fn required(py: Python<'_>) -> PyResult<Arc<Self>> {
        Self::current().ok_or_else(|| {
            let message = "arguments cannot be typed before typeof_init() of this module was called; call it first";
            exception::new::<PyRuntimeError>(py, message)
        })
    }

    /// The class of arguments left out.
    pub(super) fn omitted<'py>(&self, py: Python<'py>) -> &Bound<'py, PyType> {
        self.omitted.bind(py)
    }

    /// The code of the type of an argument, if it is known without running Python code. What its producer tells of an array for
    /// it is noted in `described`.
    pub(super) fn known_code(&self, value: &Bound<'_, PyAny>, described: &mut DescribedArrays) -> Option<TypeCode> {
        let (py, class) = (value.py(), value.get_type_ptr());
        if class == class_pointer::<PyInt>(py) {
            return Some(self.numbers[INT64]);
        }
        if class == class_pointer::<PyFloat>(py) {
            return Some(self.numbers[FLOAT64]);
        }
        if class == class_pointer::<PyComplex>(py) {
            return Some(self.numbers[COMPLEX128]);
        }
        if class == class_pointer::<PyBool>(py) {
            return self.boolean.get().map(|typed| typed.code);
        }
        match self.classes.get(class).map(Note::read)? {
            Note::KeepsType => KEPT_TYPES.try_with(|memo| memo.borrow().get(value).copied()).ok().flatten(),
            Note::Exchange => {
                let read = |array: &Described<'_>, producing: Option<Producing>| {
                    described.extend(DescribedArray::new(value, array, producing));
                    ExchangeType::new(array)
                };
                exchange_types::get(self, value, cuwheel_exchange::describe(value, read).ok()??)
            }
            Note::Number(number) => Some(self.numbers[usize::from(number)]),
            Note::Opaque | Note::Looked => None,
        }
    }

    /// The code of the type of an argument of a call of `dispatcher`.
    pub(super) fn code(&self, dispatcher: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<TypeCode> {
        let py = value.py();
        let class = value.get_type_ptr();
        // Of any size: see docs/overlay.md.
        if class == class_pointer::<PyInt>(py) {
            return Ok(self.numbers[INT64]);
        }
        if class == class_pointer::<PyFloat>(py) {
            return Ok(self.numbers[FLOAT64]);
        }
        if class == class_pointer::<PyComplex>(py) {
            return Ok(self.numbers[COMPLEX128]);
        }
        if class == class_pointer::<PyBool>(py) {
            return Self::code_of_place(&self.boolean, dispatcher, value);
        }
        if class == class_pointer::<PyTuple>(py) {
            return self.code_by_fingerprint(dispatcher, value);
        }
        match self.classes.get(class).map(Note::read) {
            Some(Note::Opaque) => return Ok(ask(dispatcher, value)?.code),
            Some(Note::KeepsType) => return code_of_keeper(dispatcher, value),
            Some(Note::Exchange) => return self.code_of_exchange(dispatcher, value),
            Some(Note::Number(number)) => return Ok(self.numbers[usize::from(number)]),
            Some(Note::Looked) => return self.code_by_fingerprint(dispatcher, value),
            None => {}
        }
        let (numpy, object) = (numpy::import(py)?, numpy::borrow(value));
        match numpy.kind(object) {
            Kind::Array(_) if fingerprint::is_array_of_its_own_kind(value)? => {
                return Ok(ask(dispatcher, value)?.code);
            }
            Kind::ExactArray(array) | Kind::Array(array) => return self.code_of_array(dispatcher, value, array),
            Kind::Scalar(scalar) => return self.code_of_scalar(dispatcher, value, scalar),
            Kind::Other => {}
        }
        if let Some(fingerprint) = device_array::fingerprint(numpy, value)? {
            return self.code_by(dispatcher, value, fingerprint, Remember::Always);
        }
        let note = note_of(dispatcher, &value.get_type())?;
        self.classes.add(&value.get_type(), note.written());
        match note {
            Note::KeepsType => code_of_keeper(dispatcher, value),
            Note::Exchange => self.code_of_exchange(dispatcher, value),
            _ => self.code_by_fingerprint(dispatcher, value),
        }
    }

    /// The code of the type of a value that is known by what it holds.
    fn code_by_fingerprint(&self, dispatcher: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<TypeCode> {
        match Reader::fingerprint(value, Some(self.omitted(value.py()))) {
            Ok(fingerprint) => self.code_by(dispatcher, value, fingerprint, Remember::UnlessOfTheValue),
            Err(Refusal::Opaque) => {
                self.classes.add(&value.get_type(), Note::Opaque.written());
                Ok(ask(dispatcher, value)?.code)
            }
            Err(Refusal::Unknown) => Ok(ask(dispatcher, value)?.code),
            Err(Refusal::Raised(error)) => Err(error),
        }
    }

    fn code_of_scalar(
        &self,
        dispatcher: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        scalar: Scalar<'_>,
    ) -> PyResult<TypeCode> {
        let item = fingerprint::item_of_scalar(value.py(), scalar)?;
        if let Some(Item::Number { type_number, is_swapped: false }) = item
            && let Some(number) = number_of(i32::from(type_number))
        {
            if let Ok(number) = u8::try_from(number) {
                self.classes.add(&value.get_type(), Note::Number(number).written());
            }
            return Ok(self.numbers[number]);
        }
        let Some(item) = item else { return Ok(ask(dispatcher, value)?.code) };
        let mut fingerprint = Fingerprint::new();
        fingerprint.scalar(item);
        self.code_by(dispatcher, value, fingerprint, Remember::UnlessOfTheValue)
    }

    fn code_of_array(
        &self,
        dispatcher: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        array: Array<'_>,
    ) -> PyResult<TypeCode> {
        let py = value.py();
        let outline = array.outline();
        if outline.is_behaved() {
            let layout = Layout::of(outline.flags().is_c_contiguous(), outline.flags().is_f_contiguous());
            if let Some(kind) = ArrayKind::new(outline.dimension_count(), layout, outline.type_number()) {
                return Self::code_of_place(&self.arrays[kind.position()], dispatcher, value);
            }
        }
        let mut fingerprint = Fingerprint::new();
        match fingerprint::write_array(&mut fingerprint, py, array) {
            Ok(()) => self.code_by(dispatcher, value, fingerprint, Remember::UnlessOfTheValue),
            Err(Refusal::Unknown | Refusal::Opaque) => Ok(ask(dispatcher, value)?.code),
            Err(Refusal::Raised(error)) => Err(error),
        }
    }

    /// The code of the type of an array that an exchange table describes: what Python says of one, it says of all that have
    /// the same class, elements, number of dimensions and layout.
    fn code_of_exchange(&self, dispatcher: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<TypeCode> {
        let described = match cuwheel_exchange::describe(value, |array, _| ExchangeType::new(array)) {
            Ok(Some(described)) => described,
            Err(error) if !exception::is_ordinary(value.py(), &error) => return Err(error),
            Ok(None) | Err(_) => return Ok(ask(dispatcher, value)?.code),
        };
        if let Some(code) = exchange_types::get(self, value, described) {
            return Ok(code);
        }
        let answer = ask(dispatcher, value)?;
        let code = answer.code;
        if let Some(typed) = answer.remembered(Remember::UnlessOfTheValue) {
            exchange_types::insert(self, value, described, typed);
        }
        Ok(code)
    }

    /// The code of a type that has a place of its own.
    fn code_of_place(
        place: &OnceLock<Typed>,
        dispatcher: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<TypeCode> {
        if let Some(typed) = place.get() {
            return Ok(typed.code);
        }
        let answer = ask(dispatcher, value)?;
        let code = answer.code;
        // Another thread may have been faster: then this drops the type.
        drop(answer.remembered(Remember::UnlessOfTheValue).map(|typed| place.set(typed)));
        Ok(code)
    }

    /// The code of the type of values with this fingerprint.
    fn code_by(
        &self,
        dispatcher: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        fingerprint: Fingerprint,
        remember: Remember,
    ) -> PyResult<TypeCode> {
        if let Some(code) = self.fingerprints.get(fingerprint.as_bytes(), |typed| typed.code) {
            return Ok(code);
        }
        let answer = ask(dispatcher, value)?;
        let code = answer.code;
        if let Some(typed) = answer.remembered(remember) {
            drop(self.fingerprints.insert(fingerprint.into_bytes(), typed));
        }
        Ok(code)
    }
}

impl Answer<'_> {
    /// What is remembered of the answer for other values like this one.
    fn remembered(self, remember: Remember) -> Option<Typed> {
        match remember {
            Remember::UnlessOfTheValue if self.is_of_the_value => None,
            Remember::UnlessOfTheValue | Remember::Always => {
                Some(Typed { code: self.code, type_object: self.type_object.unbind() })
            }
        }
    }
}

/// What to note of a class at first sight.
fn note_of(dispatcher: &Bound<'_, PyAny>, class: &Bound<'_, PyType>) -> PyResult<Note> {
    let py = class.py();
    if let Some(attribute) = class.getattr_opt(intern!(py, "_numba_type_"))? {
        let cached_property = py.import(intern!(py, "functools"))?.getattr(intern!(py, "cached_property"))?;
        return Ok(if attribute.get_type().is(&cached_property) { Note::KeepsType } else { Note::Looked });
    }
    // Before 0.30 numba-cuda types such arrays by something else than what the table tells.
    let is_described = dispatcher.is_instance_of::<LaunchingDispatcher>()
        && class.hasattr(intern!(py, "__dlpack__"))?
        && cuwheel_exchange::has_table(class)?
        && says_all_by_table(class)?;
    Ok(if is_described { Note::Exchange } else { Note::Looked })
}

/// Whether the type of an array is known from what its table tells. A description does not say whether the array is read-only:
/// torch has no such arrays, and ours does not describe them. Others may.
fn says_all_by_table(class: &Bound<'_, PyType>) -> PyResult<bool> {
    let module = class.getattr(intern!(class.py(), "__module__"))?;
    let Ok(module) = module.cast::<PyString>() else { return Ok(false) };
    let module = module.to_str()?;
    Ok(["torch", "cuwheel"].contains(&module.split('.').next().unwrap_or_default()))
}

/// The code of the type that a value says it has, and keeps.
fn code_of_keeper(dispatcher: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<TypeCode> {
    if let Ok(Some(code)) = KEPT_TYPES.try_with(|memo| memo.borrow().get(value).copied()) {
        return Ok(code);
    }
    let answer = ask(dispatcher, value)?;
    if answer.is_of_the_value
        && let Ok(entry) = Entry::new(value, answer.code)
    {
        let replaced = KEPT_TYPES.try_with(|memo| memo.borrow_mut().insert(entry));
        drop(replaced);
    }
    Ok(answer.code)
}

/// Asks Python for the type of a value: the value's own `_numba_type_`, or else the dispatcher's `typeof_pyval`.
fn ask<'py>(dispatcher: &Bound<'py, PyAny>, value: &Bound<'py, PyAny>) -> PyResult<Answer<'py>> {
    let py = value.py();
    let own = match value.getattr(intern!(py, "_numba_type_")) {
        Ok(own) => Some(own).filter(|own| !own.is_none()),
        Err(error) if exception::is_ordinary(py, &error) => None,
        Err(error) => return Err(error),
    };
    let is_of_the_value = own.is_some();
    let type_object = match own {
        Some(own) => own,
        None => dispatcher.call_method1(intern!(py, "typeof_pyval"), (value,))?,
    };
    let code = number::type_code(&type_object.getattr(intern!(py, "_code"))?)?;
    Ok(Answer { code, type_object, is_of_the_value })
}
