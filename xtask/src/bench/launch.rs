//! `bench launch`: the host's time for a launch, beside every peer that is installed, measured by a Python script.
//!
//! On a machine without a GPU it shows what launches take beside the stand-in driver's own time.

use std::path::PathBuf;

use cuwheel::cli::Outcome;
use cuwheel::error::Result;
use cuwheel::files;
use cuwheel::output::Output;

use super::script::{self, Place};

const SCRIPT: &str = include_str!("launch.py");

/// The arguments of `bench launch`.
#[derive(clap::Args, Debug)]
#[group(skip)]
pub(super) struct Arguments {
    #[command(flatten)]
    script: script::Arguments,
    /// Draw the medians as an SVG file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Measure a numba-cuda in this folder, as `pip install --target` leaves it; further folders may follow with colons
    #[arg(long, value_name = "NAME=FOLDER")]
    numba: Vec<String>,
}

/// Measures, and returns what the script reports.
pub(super) fn execute(arguments: &Arguments, output: &Output) -> Result<Outcome> {
    let place = Place::prepare(&arguments.script, output)?;
    let (process, has_device) = place.on_a_device(place.python(), output)?;
    output.step("measure", if has_device { "on the GPU" } else { "without a GPU, on the stand-in driver" });
    let svg = arguments.svg.as_deref().map(files::absolute).transpose()?;
    place.measure_with(SCRIPT, process, |mut process| {
        if let Some(svg) = &svg {
            process = process.arg("--svg").arg(svg);
        }
        arguments.numba.iter().fold(process, |process, numba| process.arg("--numba").arg(numba))
    })
}
