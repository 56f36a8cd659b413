//! `bench`: how fast this repository and its wheel are, beside their peers in the same run.
//!
//! Benchmarks and no tests: nothing fails because it is slow.

mod build;
mod check;
mod contender;
mod develop;
mod dispatch;
mod exchange;
mod instructions;
mod kernels;
mod launch;
mod peers;
mod script;

use cuwheel::cli::Outcome;
use cuwheel::error::{Failure, Result};
use cuwheel::output::Output;
use cuwheel::process::{self, Finished, Process};

/// The arguments of `bench`.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand, Debug)]
enum What {
    /// Wheels: fresh, unchanged, and after one Rust file changed
    Build,
    /// Editable installs: fresh, unchanged, and after one Rust file changed
    Develop,
    /// Ten files of CUDA kernels for five architectures: fresh, unchanged, and after one of them changed
    Kernels,
    /// Arrays from one library to another
    Exchange(script::Arguments),
    /// Launches of a kernel that does nothing, beside every peer that is installed
    Launch(launch::Arguments),
    /// Instructions that a launch takes in the library, compared with the committed counts
    Instructions(instructions::Arguments),
    /// Arguments of a call to the overload for them, beside numba-cuda's C++ module
    Dispatch(script::Arguments),
    /// `check-wheel` on given wheels, beside auditwheel
    Check(check::Arguments),
    /// What installers and other checkers say of broken wheels; writes docs/peers.md
    Peers,
}

/// Runs the command.
pub(crate) fn execute(arguments: &Arguments, output: &Output) -> Result<Outcome> {
    process::install_interrupt_handler()?;
    match &arguments.what {
        What::Build => build::execute(output),
        What::Develop => develop::execute(output),
        What::Kernels => kernels::execute(output),
        What::Exchange(arguments) => exchange::execute(arguments, output),
        What::Launch(arguments) => launch::execute(arguments, output),
        What::Instructions(arguments) => instructions::execute(arguments, output),
        What::Dispatch(arguments) => dispatch::execute(arguments, output),
        What::Check(arguments) => check::run(&arguments.wheels, output),
        What::Peers => peers::run(output),
    }
}

/// Runs a process that has to succeed.
fn succeed(process: &Process) -> Result<Finished> {
    let finished = process.capture()?;
    if finished.status.success() {
        return Ok(finished);
    }
    Err(Failure::failed(format!("{} failed", process.describe())).details(finished.tail(12)).into())
}
