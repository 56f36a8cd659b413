//! The commands of this project: `cargo xtask build-wheel`, `test`, `test-gpu`, `develop` and the others of cuwheel.

use std::process::ExitCode;

fn main() -> ExitCode {
    cuwheel::main()
}
