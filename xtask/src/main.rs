//! The commands of this repository: the toolkit's own, and those that keep the repository in order.

mod bench;
mod lint;
mod overlay_suite;
mod tidy;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use cuwheel::output::{Output, Verbosity};

/// The toolkit's commands for this repository, and its own.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", version, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[command(flatten)]
    Toolkit(Box<cuwheel::cli::Command>),
    /// Check formatting, lints, documentation, locks, generated files and the rules of the style
    Lint(lint::Arguments),
    /// Measure this repository beside its peers
    Bench(bench::Arguments),
    /// Run the tests of a released wheel before and after its native modules are replaced
    OverlaySuite(overlay_suite::Arguments),
}

fn main() -> ExitCode {
    let output = Output::new(Verbosity::Verbose, false);
    let cli = match cuwheel::cli::parse::<Cli>() {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    match cli.command {
        Command::Toolkit(command) => cuwheel::cli::run(&command),
        Command::Lint(arguments) => cuwheel::cli::finish("lint", &output, lint::execute(&arguments, &output)),
        Command::Bench(arguments) => cuwheel::cli::finish("bench", &output, bench::execute(&arguments, &output)),
        Command::OverlaySuite(arguments) => {
            let output = arguments.output();
            cuwheel::cli::finish("overlay-suite", &output, overlay_suite::execute(&arguments, &output))
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_put_together_rightly() {
        super::Cli::command().debug_assert();
    }
}
