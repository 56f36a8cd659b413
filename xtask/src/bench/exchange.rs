//! `bench exchange`: how long it takes to hand an array from one library to another, measured by a Python script in one
//! process with every peer that is installed.

use cuwheel::cli::Outcome;
use cuwheel::error::Result;
use cuwheel::output::Output;

use super::script::{Arguments, Place};

const SCRIPT: &str = include_str!("exchange.py");

/// Measures, and returns what the script reports.
pub(super) fn execute(arguments: &Arguments, output: &Output) -> Result<Outcome> {
    let place = Place::prepare(arguments, output)?;
    let (process, has_device) = place.on_a_device(place.python(), output)?;
    output.step("measure", if has_device { "on the GPU" } else { "without a GPU, on the stand-in driver" });
    place.measure(SCRIPT, process)
}
