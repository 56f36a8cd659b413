//! The environment variables that matter, and the only place that reads them.

use std::env;
use std::ffi::OsString;

/// Names the folder that contains `numpy/arrayobject.h`. Set both or neither: see [`PYTHON_INCLUDE`].
pub const NUMPY_INCLUDE: &str = "CUWHEEL_NUMPY_INCLUDE";

/// Names the folder that contains `Python.h`. Set both or neither: see [`NUMPY_INCLUDE`].
pub const PYTHON_INCLUDE: &str = "CUWHEEL_PYTHON_INCLUDE";

/// Name the interpreter to ask, in this order: the first is ours, the others are set by maturin.
pub const INTERPRETER_VARIABLES: [&str; 3] = [INTERPRETER, "PYTHON_SYS_EXECUTABLE", "PYO3_PYTHON"];

const INTERPRETER: &str = "CUWHEEL_PYTHON";

/// Variables that change what is compiled, for every shim. They are expected to hold the same value in each build.
pub(crate) const STABLE: [&str; 3] = [NUMPY_INCLUDE, PYTHON_INCLUDE, INTERPRETER];

/// Variables that tell one interpreter from another, and differ in each isolated build.
pub(crate) const OF_THE_INTERPRETER: [&str; 5] =
    ["PYTHON_SYS_EXECUTABLE", "PYO3_PYTHON", "PYO3_CONFIG_FILE", "PYO3_ENVIRONMENT_SIGNATURE", "PATH"];

/// Looks up variables, in the process or in a test's table.
pub(crate) type Lookup<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// The value of a variable of this process; an empty value counts as none.
pub(crate) fn of_this_process(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}
