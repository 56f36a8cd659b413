//! Arguments into the parameters of a launch, as `_Kernel._prepare_args` of numba-cuda passes them on.

use std::cell::RefCell;

use cuwheel_device_array::{Device, Stream};
use cuwheel_dispatcher::launch::{Arguments, Parameter};
use cuwheel_exchange::{ProducerStream, describe_for_work};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt, PyTuple};
use pyo3::{ffi, intern};
use smallvec::SmallVec;

use super::class_kinds::{self, ClassKind, Classes};
use super::described::{self, DescribedArray, Words};
use super::plan::{Step, WORDS_BEFORE_SHAPE, has_items};
use super::stats::Reason;
use super::{Fallback, Mode, strided_view};
use crate::object_memo::{Entry, ObjectMemo};

/// Where arrays are, and the streams that their producers work on; `None` for those that nobody works on.
pub(super) type Producers = SmallVec<[(Device, Option<Stream>); 4]>;

thread_local! {
    /// The words of device arrays of numba-cuda, which never change.
    static DEVICE_ARRAYS: RefCell<ObjectMemo<Words, 128>> = const { RefCell::new(ObjectMemo::new()) };
}

/// The parameters of a launch in the making.
pub(super) struct Packing<'a> {
    pub(super) classes: &'a Classes,
    pub(super) mode: Mode,
    pub(super) arguments: &'a mut Arguments,
    /// The parameters that are still to be set.
    pub(super) parameters: std::slice::Iter<'a, Parameter>,
    /// What the launch has to wait for.
    pub(super) producers: Producers,
    pub(super) streams: ProducerStream,
    /// Arrays that were described in this call, if no other code has run since.
    pub(super) described: &'a [DescribedArray],
}

impl Packing<'_> {
    pub(super) fn add(&mut self, step: &Step, value: Borrowed<'_, '_, PyAny>) -> Result<(), Fallback> {
        match step {
            Step::Array { ndim } => self.array(*ndim, value),
            Step::Integer { size_bytes } => self.integer(*size_bytes, &value),
            Step::Pointer => self.pointer(&value),
            Step::Boolean => self.boolean(&value),
            Step::Float16 => self.float16(&value),
            Step::Float32 => {
                #[expect(clippy::cast_possible_truncation, reason = "rounded to the nearest, or infinite: as `ctypes`")]
                let number = self.float(&value)? as f32;
                self.set(&number.to_ne_bytes())
            }
            Step::Float64 => {
                let number = self.float(&value)?;
                self.set(&number.to_ne_bytes())
            }
            Step::Complex64 | Step::Complex128 => self.complex(step, &value),
            Step::Tuple(items) => self.tuple(items, value),
        }
    }

    /// Sets the next parameter.
    #[inline]
    fn set(&mut self, bytes: &[u8]) -> Result<(), Fallback> {
        let parameter = self.parameters.next().ok_or(Reason::Type)?;
        self.arguments.set(parameter, bytes);
        Ok(())
    }

    /// Any integer is cut to the size of the parameter, as by `ctypes`.
    fn integer(&mut self, size_bytes: usize, value: &Bound<'_, PyAny>) -> Result<(), Fallback> {
        self.check_number(value)?;
        // SAFETY: the thread is attached, as the type of `value` witnesses.
        let number = unsafe { ffi::PyLong_AsUnsignedLongLongMask(value.as_ptr()) };
        if number == u64::MAX {
            no_exception(value, Reason::Argument)?;
        }
        self.set(&number.to_le_bytes()[..size_bytes])
    }

    /// The value as `ctypes` takes it for a floating-point number.
    fn float(&self, value: &Bound<'_, PyAny>) -> Result<f64, Fallback> {
        self.check_number(value)?;
        // SAFETY: the thread is attached, as the type of `value` witnesses.
        let number = unsafe { ffi::PyFloat_AsDouble(value.as_ptr()) };
        #[expect(clippy::float_cmp, reason = "the number that tells of an exception")]
        if number == -1.0 {
            no_exception(value, Reason::Argument)?;
        }
        Ok(number)
    }

    /// Objects that are no numbers of Python or NumPy may run code when they become one.
    #[inline]
    fn check_number(&self, value: &Bound<'_, PyAny>) -> Result<(), Fallback> {
        let runs_no_code = self.mode == Mode::Ask
            || value.is_exact_instance_of::<PyInt>()
            || value.is_exact_instance_of::<PyFloat>()
            || value.is_exact_instance_of::<PyBool>()
            || self.classes.is_own_numpy_scalar(value);
        if runs_no_code { Ok(()) } else { Err(Reason::Argument.into()) }
    }

    fn pointer(&mut self, value: &Bound<'_, PyAny>) -> Result<(), Fallback> {
        if !value.is_exact_instance_of::<PyInt>() {
            return Err(Reason::Argument.into());
        }
        // SAFETY: the thread is attached, as the type of `value` witnesses.
        let number = unsafe { ffi::PyLong_AsLongLong(value.as_ptr()) };
        if number == -1 {
            no_exception(value, Reason::Argument)?;
        }
        self.set(&number.to_ne_bytes())
    }

    fn boolean(&mut self, value: &Bound<'_, PyAny>) -> Result<(), Fallback> {
        let is_true = match value.cast_exact::<PyBool>() {
            Ok(truth) => truth.is_true(),
            Err(_) if self.classes.is_numpy_bool(value) => value.is_truthy().map_err(|error| raised(value, error))?,
            Err(_) => return Err(Reason::Argument.into()),
        };
        self.set(&[is_true.into()])
    }

    /// Of other numbers Python finds out whether they overflow, and warns.
    fn float16(&mut self, value: &Bound<'_, PyAny>) -> Result<(), Fallback> {
        let bits = self.classes.bits_of_float16(value).map_err(|error| raised(value, error))?;
        self.set(&bits.ok_or(Reason::Argument)?.to_ne_bytes())
    }

    fn complex(&mut self, step: &Step, value: &Bound<'_, PyAny>) -> Result<(), Fallback> {
        // Of other classes numba-cuda takes whatever `real` and `imag` are.
        if !value.is_exact_instance_of::<PyComplex>() && !self.classes.is_complex128(value) {
            return Err(Reason::Argument.into());
        }
        // SAFETY: the thread is attached, and the value is a complex number, which has both parts.
        let parts =
            unsafe { [ffi::PyComplex_RealAsDouble(value.as_ptr()), ffi::PyComplex_ImagAsDouble(value.as_ptr())] };
        for part in parts {
            if matches!(step, Step::Complex64) {
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "rounded to the nearest, or infinite: as `ctypes`"
                )]
                self.set(&(part as f32).to_ne_bytes())?;
            } else {
                self.set(&part.to_ne_bytes())?;
            }
        }
        Ok(())
    }

    fn tuple(&mut self, items: &[Step], value: Borrowed<'_, '_, PyAny>) -> Result<(), Fallback> {
        let Ok(tuple) = value.cast::<PyTuple>() else { return Err(Reason::Argument.into()) };
        if !has_items(&tuple, items) || !iterates_as_tuple(&value) {
            return Err(Reason::Argument.into());
        }
        for (step, item) in items.iter().zip(tuple.iter_borrowed()) {
            self.add(step, item)?;
        }
        Ok(())
    }

    #[inline]
    fn array(&mut self, ndim: usize, value: Borrowed<'_, '_, PyAny>) -> Result<(), Fallback> {
        let kind = match (self.classes.known_kind(&value), self.mode) {
            (Some(kind), _) => kind,
            (None, Mode::Ask) => self.classes.kind(&value).map_err(|error| raised(&value, error))?,
            (None, Mode::NothingNew) => return Err(Reason::Argument.into()),
        };
        match kind {
            ClassKind::DeviceArray => self.device_array(ndim, &value),
            ClassKind::Exchange => self.exchanged(ndim, &value),
            ClassKind::Interface if self.mode == Mode::Ask => {
                let read = class_kinds::words_of_interface(&value).map_err(|error| raised(&value, error))?;
                let (words, device) = read.ok_or(Reason::Argument)?;
                self.words(ndim, &words)?;
                self.producers.push((device, None));
                Ok(())
            }
            ClassKind::HostArray => Err(Reason::HostArray.into()),
            ClassKind::Interface | ClassKind::Other => Err(Reason::Argument.into()),
        }
    }

    /// Sets the parameters of an array of `ndim` dimensions.
    #[inline]
    fn words(&mut self, ndim: usize, words: &[u64]) -> Result<(), Fallback> {
        let count = WORDS_BEFORE_SHAPE + 2 * ndim;
        let Some(first) = self.parameters.as_slice().first().filter(|_| words.len() == count) else {
            return Err(Reason::Argument.into());
        };
        self.arguments.set_words(first.offset_bytes, words);
        // One past the last: all of them are there, since the plan has as many.
        self.parameters = self.parameters.as_slice().get(count..).ok_or(Reason::Type)?.iter();
        Ok(())
    }

    #[inline]
    fn device_array(&mut self, ndim: usize, value: &Bound<'_, PyAny>) -> Result<(), Fallback> {
        let known = DEVICE_ARRAYS.try_with(|memo| memo.borrow().get(value).map(|words| self.words(ndim, words)));
        match known {
            Ok(Some(result)) => result,
            _ if self.mode == Mode::NothingNew => Err(Reason::Argument.into()),
            _ => self.new_device_array(ndim, value),
        }
    }

    #[cold]
    fn new_device_array(&mut self, ndim: usize, value: &Bound<'_, PyAny>) -> Result<(), Fallback> {
        let words = strided_view::words(value).map_err(|error| raised(value, error))?;
        self.words(ndim, &words)?;
        if let Ok(entry) = Entry::new(value, words) {
            let replaced = DEVICE_ARRAYS.try_with(|memo| memo.borrow_mut().insert(entry));
            drop(replaced);
        }
        Ok(())
    }

    /// An array that the exchange table of its class describes. The launch waits for the stream that its producer works on.
    fn exchanged(&mut self, ndim: usize, value: &Bound<'_, PyAny>) -> Result<(), Fallback> {
        if self.mode == Mode::Ask {
            // Code of Python may have run.
            self.streams.forget();
        } else if let Some(array) = self.described.iter().find(|array| array.is_of(value)) {
            let stream = self.streams.stream(value.py(), array.producing, array.device);
            let stream = stream.map_err(|error| raised(value, error))?.clone();
            self.wait_for(array.device, stream);
            return self.words(ndim, &array.words);
        }
        let described = describe_for_work(value, &mut self.streams, |array, stream| {
            Some((described::words(array)?, array.device(), stream.clone()))
        });
        match described {
            Ok(Some(Some((words, device, stream)))) => {
                self.wait_for(device, stream);
                self.words(ndim, &words)
            }
            Ok(_) => Err(Reason::Argument.into()),
            Err(error) => Err(raised(value, error)),
        }
    }

    /// Notes the stream that an array's producer works on.
    fn wait_for(&mut self, device: Device, stream: Stream) {
        let producer = (device, Some(stream));
        if self.producers.last() != Some(&producer) {
            self.producers.push(producer);
        }
    }
}

/// Whether iterating over a tuple gives its items, as it does for named tuples too.
fn iterates_as_tuple(value: &Bound<'_, PyAny>) -> bool {
    if value.is_exact_instance_of::<PyTuple>() {
        return true;
    }
    let py = value.py();
    let own = |name| value.get_type().getattr(name).ok();
    let of_tuples = |name| py.get_type::<PyTuple>().getattr(name).ok();
    [intern!(py, "__iter__"), intern!(py, "__len__")].into_iter().all(|name| match (own(name), of_tuples(name)) {
        (Some(own), Some(of_tuples)) => own.is(&of_tuples),
        _ => false,
    })
}

/// Goes on if no exception is set.
fn no_exception(value: &Bound<'_, PyAny>, reason: Reason) -> Result<(), Fallback> {
    match PyErr::take(value.py()) {
        Some(error) => Err(Fallback::of(value.py(), error, reason)),
        None => Ok(()),
    }
}

fn raised(value: &Bound<'_, PyAny>, error: PyErr) -> Fallback {
    Fallback::of(value.py(), error, Reason::Argument)
}
