//! What can go wrong while a shim is compiled, in words for the person who started the build.

use std::fmt;
use std::path::PathBuf;

use thiserror::Error;

use crate::{INTERPRETER_VARIABLES, NUMPY_INCLUDE, PYTHON_INCLUDE};

/// Why a shim could not be compiled.
///
/// Its debug format is the message too, since that is what Cargo shows when `main` of a build script returns an error.
#[derive(Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no interpreter to ask for the headers.
    #[error(
        "no Python interpreter found: none of {} is set, and neither python3 nor python on the path works.\n\
         Install Python 3.11 or newer, or set {} to an interpreter.",
        INTERPRETER_VARIABLES.join(", "), INTERPRETER_VARIABLES[0]
    )]
    NoInterpreter,

    /// An interpreter was named, and it does not do what it should.
    #[error("{} (named by {named_by}) cannot be used: {reason}\nSet {} to a working Python 3.11 or newer.",
        interpreter.display(), INTERPRETER_VARIABLES[0])]
    BrokenInterpreter {
        /// The path of the interpreter.
        interpreter: PathBuf,
        /// The variable that names it.
        named_by: &'static str,
        /// What it did.
        reason: String,
    },

    /// The interpreter has no NumPy.
    #[error(
        "NumPy is not installed for {}, and its C headers are needed to compile this crate.\n\
         Add it to the build requirements in pyproject.toml, beside the build backend:\n\n    \
         [build-system]\n    requires = [\"maturin>=1.16,<2\", \"numpy>=2.0\"]\n\n\
         Builds without isolation need it installed: {} -m pip install \"numpy>=2.0\"",
        interpreter.display(), interpreter.display()
    )]
    NumpyMissing {
        /// The interpreter asked.
        interpreter: PathBuf,
    },

    /// The interpreter has a NumPy that cannot be imported.
    #[error("NumPy is installed for {} but cannot be imported: {reason}\n\
        Repair it: {} -m pip install --force-reinstall \"numpy>=2.0\"", interpreter.display(), interpreter.display())]
    NumpyBroken {
        /// The interpreter asked.
        interpreter: PathBuf,
        /// The exception.
        reason: String,
    },

    /// The headers of one could be for a version that those of the other do not fit.
    #[error("{set} is set and {missing} is not: set both to the folders with the headers, or neither")]
    OneIncludeFolder {
        /// The variable that is set.
        set: &'static str,
        /// The variable that is not.
        missing: &'static str,
    },

    /// The folder has no NumPy headers, or those of NumPy 1.
    #[error("{} does not exist: the headers of NumPy 2.0 or newer are needed; what they compile runs on 1.26 too.\n\
        Require \"numpy>=2.0\" in [build-system] requires of pyproject.toml, or correct {NUMPY_INCLUDE} if it is set.",
        header.display())]
    NumpyHeadersMissing {
        /// The file looked for.
        header: PathBuf,
    },

    /// The interpreter was installed without its headers.
    #[error("Python.h not found; looked for {}.\n\
        Install the package python3-dev (Debian, Ubuntu) or python3-devel (Fedora, RHEL) of this Python version, use a \
        Python from uv or pyenv, or correct {PYTHON_INCLUDE} if it is set.",
        looked_for.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" and "))]
    PythonHeadersMissing {
        /// The files looked for.
        looked_for: Vec<PathBuf>,
    },

    /// No place for the output, as when this is not called from a build script.
    #[error(
        "the environment variable {variable} is not set: shims can be compiled only in a build script that Cargo runs"
    )]
    NotInBuildScript {
        /// The variable that Cargo sets.
        variable: &'static str,
    },

    /// A file could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },

    /// The C compiler failed.
    #[error(
        "cannot compile the C shim: {0}\n\
        The compiler's own messages are above. If there is no C compiler, install gcc or clang, or set CC."
    )]
    Compiler(#[from] cc::Error),
}

impl fmt::Debug for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}
