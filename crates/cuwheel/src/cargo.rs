//! The environment in which cargo runs, whether the tool calls it itself or maturin does.
//!
//! Not for cargo's configuration: see [`crate::cargo_config`].

use std::ffi::OsString;

use crate::env_vars;
use crate::environment::BuildEnvironment;
use crate::error::Result;
use crate::interpreter::Interpreter;
use crate::process::Process;

/// A call of cargo, of the same toolchain as the one that runs us, if one does.
pub fn process() -> Process {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    without_variables_of_cargo_run(Process::new(cargo))
}

/// Takes out what `cargo xtask` sets for us: it says nothing about the build.
pub fn without_variables_of_cargo_run(process: Process) -> Process {
    std::env::vars_os()
        .filter(|(name, _)| name.to_str().is_some_and(env_vars::is_set_by_cargo_run))
        .fold(process, |process, (name, _)| process.env_remove(name))
}

/// Says where the headers are that build scripts compile C shims against.
pub fn with_headers(process: Process, interpreter: &Interpreter, environment: &BuildEnvironment) -> Result<Process> {
    let process = process
        .env(env_vars::CUWHEEL_PYTHON.name, environment.python())
        .env(env_vars::CUWHEEL_PYTHON_INCLUDE.name, &interpreter.include);
    Ok(match environment.numpy_include()? {
        Some(include) => process.env(env_vars::CUWHEEL_NUMPY_INCLUDE.name, include),
        // Half of the answer would be a contradiction: build scripts then ask the interpreter.
        None => {
            process.env_remove(env_vars::CUWHEEL_NUMPY_INCLUDE.name).env_remove(env_vars::CUWHEEL_PYTHON_INCLUDE.name)
        }
    })
}
