//! How many launches took which way, for the whole process.

use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Why a launch is left to Python.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(super) enum Reason {
    /// `launch` of the kernel's class was replaced.
    Replaced,
    /// The kernel has extensions, which see each argument.
    Extensions,
    /// The kernel was compiled for debugging, and reports exceptions.
    Debug,
    /// The grid has to fit on the device at once, which Python checks.
    Cooperative,
    /// Another number of arguments, by name, or no tuple.
    Call,
    /// A parameter whose type only Python passes on.
    Type,
    /// An array in host memory, which is copied there and back.
    HostArray,
    /// An argument that only Python reads.
    Argument,
    /// A grid, a block or an amount of shared memory that Python has to look at.
    Configuration,
    /// A stream that is none of cuda.core's.
    Stream,
    /// No context, or one that the kernel was not launched in before and could not be found in.
    Context,
    /// The driver refused: Python tries again, and says why.
    Driver,
}

/// In the order of [`Reason`].
const NAMES: [&str; 12] = [
    "launch replaced",
    "extensions",
    "debug",
    "cooperative",
    "call",
    "parameter type",
    "host array",
    "argument",
    "configuration",
    "stream",
    "context",
    "driver",
];

static NATIVE: AtomicU64 = AtomicU64::new(0);
static PYTHON: [AtomicU64; NAMES.len()] = [const { AtomicU64::new(0) }; NAMES.len()];

#[inline]
pub(super) fn count_native() {
    NATIVE.fetch_add(1, Ordering::Relaxed);
}

#[inline]
pub(super) fn count_python(reason: Reason) {
    PYTHON[reason as usize].fetch_add(1, Ordering::Relaxed);
}

/// What `launch_stats` returns.
pub(super) fn dictionary(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let reasons = PyDict::new(py);
    for (name, count) in NAMES.iter().zip(&PYTHON) {
        let count = count.load(Ordering::Relaxed);
        if count > 0 {
            reasons.set_item(name, count)?;
        }
    }
    let stats = PyDict::new(py);
    stats.set_item("native", NATIVE.load(Ordering::Relaxed))?;
    stats.set_item("python", reasons)?;
    Ok(stats)
}
