//! `bench exchange`: how long it takes to hand an array from one library to another, measured by a Python script in one
//! process with every peer that is installed.

use cuwheel::cli::Outcome;
use cuwheel::error::Result;
use cuwheel::output::Output;
use cuwheel::test_libraries;

use super::script::{ACCESS, Arguments, Place};

const SCRIPT: &str = include_str!("exchange.py");

/// Measures, and returns what the script reports.
pub(super) fn execute(arguments: &Arguments, output: &Output) -> Result<Outcome> {
    let place = Place::prepare(arguments, output)?;
    let probe = place.python().args(["-c", "import cuwheel; cuwheel.Device(0).name"]);
    let has_device = probe.capture()?.status.success();
    let mut process = place.python();
    if !has_device {
        let directory = place.environment.beside("libraries");
        let libraries = test_libraries::build(&place.project, &place.interpreter, ACCESS, output)?;
        test_libraries::lay_out(&libraries, &directory)?;
        process = process.env("LD_LIBRARY_PATH", directory);
    }
    output.step("measure", if has_device { "on the GPU" } else { "without a GPU, on the stand-in driver" });
    place.measure(SCRIPT, process)
}
