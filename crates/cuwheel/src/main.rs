//! The binary `cuwheel`: the toolkit for any project.

use std::process::ExitCode;

fn main() -> ExitCode {
    cuwheel::main()
}
