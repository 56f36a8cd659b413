//! What each step of an exchange costs, timed in native code: for benchmarks, and of use to nobody else.
//!
//! Every step is the very one that an import or export takes; nothing is left out and nothing prepared.

use std::hint::black_box;
use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::any_array::AnyArray;
use crate::exception;
use crate::import::{WorkOn, import};
use crate::lookup::known_of;
use crate::table::Table;

/// A step of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The producer's `dltensor_from_py_object_no_sync`.
    View,
    /// The producer's `managed_tensor_from_py_object_no_sync` and the deleter of the tensor.
    Managed,
    /// The producer's `current_work_stream` for the device of the array.
    Stream,
    /// An [`AnyArray`] out of the object, and its end.
    Argument,
    /// An array out of the object by [`import`], ready on the current stream, and its end.
    Import,
}

impl Step {
    /// Every step.
    pub const ALL: [Self; 5] = [Self::View, Self::Managed, Self::Stream, Self::Argument, Self::Import];

    /// The name in arguments and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::View => "view",
            Self::Managed => "managed",
            Self::Stream => "stream",
            Self::Argument => "argument",
            Self::Import => "import",
        }
    }
}

/// The time that `repetitions` of a step take on `object`, one after the other on this thread.
///
/// # Errors
/// `TypeError` for a step of the exchange table if the type of the object has none; whatever the step raises.
pub fn time(object: &Bound<'_, PyAny>, step: Step, repetitions: u64) -> PyResult<Duration> {
    match step {
        Step::View => {
            let table = table_of(object)?;
            repeat(repetitions, || offered(object, table.view(object, &mut MaybeUninit::uninit())).map(drop))
        }
        Step::Managed => {
            let table = table_of(object)?;
            repeat(repetitions, || offered(object, table.managed(object)).map(drop))
        }
        Step::Stream => {
            let table = table_of(object)?;
            let device = offered(object, table.view(object, &mut MaybeUninit::uninit()))?.device;
            repeat(repetitions, || offered(object, table.current_stream(object.py(), device)).map(drop))
        }
        // Looked at where it is: moving it is no part of the step.
        Step::Argument => repeat(repetitions, || match &object.extract::<AnyArray<'_, '_>>() {
            Ok(array) => {
                black_box(array);
                Ok(())
            }
            Err(error) => Err(error.clone_ref(object.py())),
        }),
        Step::Import => repeat(repetitions, || match &import(object, WorkOn::Current) {
            Ok(array) => {
                black_box(array);
                Ok(())
            }
            Err(error) => Err(error.clone_ref(object.py())),
        }),
    }
}

fn repeat(repetitions: u64, mut step: impl FnMut() -> PyResult<()>) -> PyResult<Duration> {
    let started = Instant::now();
    for _ in 0..repetitions {
        step()?;
    }
    Ok(started.elapsed())
}

fn table_of(object: &Bound<'_, PyAny>) -> PyResult<Table> {
    known_of(object)?.table.ok_or_else(|| missing(object, "no exchange table"))
}

/// The result of a function of the table that need not be there.
fn offered<T>(object: &Bound<'_, PyAny>, result: Option<PyResult<T>>) -> PyResult<T> {
    result.unwrap_or_else(|| Err(missing(object, "an exchange table without this function"))).map(black_box)
}

#[cold]
fn missing(object: &Bound<'_, PyAny>, what: &str) -> PyErr {
    let message = format!("{} has {what}; time another step", exception::type_name(object));
    exception::new::<PyTypeError>(object.py(), message)
}
