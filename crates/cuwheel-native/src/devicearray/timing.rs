//! What `cargo xtask bench exchange` calls; nothing else should.

use cuwheel_exchange::AnyArray;
use cuwheel_exchange::timing::{self, Step};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::exception;

/// Return how long one step of an exchange takes, in nanoseconds: the mean over `repetitions`, looped in native code.
///
/// For benchmarks.
///
/// Args:
///     obj: An array of any library.
///     step: "view", "managed" (with the deleter) and "stream" are functions of the exchange table of the array's type;
///         "argument" takes the array as a native function with a typed argument does, "import" as `from_dlpack` does,
///         both without the call from Python and without a Python object for the result.
///     repetitions: How often.
///
/// Raises:
///     ValueError: There is no such step, or there are no repetitions.
///     TypeError: The type of the array has no exchange table, and the step is a function of it.
///     What the step raises.
#[pyfunction]
#[pyo3(signature = (obj, step, repetitions, /))]
pub(super) fn _time_exchange(obj: &Bound<'_, PyAny>, step: &str, repetitions: u32) -> PyResult<f64> {
    let Some(step) = Step::ALL.into_iter().find(|known| known.name() == step) else {
        let names: Vec<_> = Step::ALL.into_iter().map(Step::name).collect();
        let message = format!("{step:?} is no step of an exchange; the steps are {}", names.join(", "));
        return Err(exception::new::<PyValueError>(obj.py(), message));
    };
    if repetitions == 0 {
        let message = "the mean over no repetitions is no number; ask for at least one";
        return Err(exception::new::<PyValueError>(obj.py(), message));
    }
    let elapsed = timing::time(obj, step, repetitions.into())?;
    Ok(elapsed.as_secs_f64() * 1e9 / f64::from(repetitions))
}

/// Take an array of any library as a typed argument, and do nothing with it. For benchmarks.
///
/// Args:
///     array: An array on a device.
///
/// Raises:
///     What taking it raises.
#[pyfunction]
#[pyo3(signature = (array, /))]
#[expect(clippy::needless_pass_by_value, reason = "the argument is taken as a native function takes one")]
pub(super) fn _take_argument(array: AnyArray<'_, '_>) {
    std::hint::black_box(&array);
}
