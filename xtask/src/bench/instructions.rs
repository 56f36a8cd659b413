//! `bench instructions`: how many instructions a launch takes in the library, counted by callgrind and compared with the
//! counts that are committed. They do not depend on how busy the machine is.

use cuwheel::cli::Outcome;
use cuwheel::error::{Failure, Result};
use cuwheel::output::Output;
use cuwheel::process;

use super::script::{self, Place};

const SCRIPT: &str = include_str!("instructions.py");

/// What was counted last, and accepted.
const BASELINE: &str = "xtask/src/bench/instructions.json";

/// The arguments of `bench instructions`.
#[derive(clap::Args, Debug)]
#[group(skip)]
pub(super) struct Arguments {
    #[command(flatten)]
    script: script::Arguments,
    /// Write the counts down as those to compare with
    #[arg(long)]
    accept: bool,
}

/// Counts, compares, and returns what the script reports.
pub(super) fn execute(arguments: &Arguments, output: &Output) -> Result<Outcome> {
    if process::find_program("valgrind").is_none() {
        return Err(Failure::machine("valgrind is not installed, and it counts the instructions")
            .remedy("install your system's package valgrind")
            .into());
    }
    let place = Place::prepare(&arguments.script, output)?;
    let process = place.on_stand_in(place.python(), output)?;
    let baseline = place.project.root.join(BASELINE);
    output.step("count", "instructions of launches, under callgrind");
    let accept = arguments.accept.then_some("--accept");
    place.measure_with(SCRIPT, process, |process| process.arg("--baseline").arg(&baseline).args(accept))
}
