//! `bench dispatch`: how long a dispatcher takes to find the overload for the arguments of a call, measured by a Python
//! script beside the C++ module of numba-cuda in one process. It needs no GPU.

use cuwheel::cli::Outcome;
use cuwheel::error::Result;
use cuwheel::output::Output;

use super::script::{Arguments, Place};

const SCRIPT: &str = include_str!("dispatch.py");

/// Measures, and returns what the script reports.
pub(super) fn execute(arguments: &Arguments, output: &Output) -> Result<Outcome> {
    let place = Place::prepare(arguments, output)?;
    output.step("measure", "dispatch, beside the C++ module of numba-cuda");
    place.measure(SCRIPT, place.python())
}
