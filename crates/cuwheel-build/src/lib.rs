//! For build scripts: compiles C shims over the NumPy C API, for one binary that runs on many Python and NumPy
//! versions, and CUDA kernels.
//!
//! # Kernels
//!
//! [`Kernels`] compiles `.cu` files with nvcc, of the system or of Python packages, into fatbins and a Rust module:
//!
//! ```no_run
//! // build.rs
//! fn main() -> Result<(), cuwheel_build::KernelsError> {
//!     cuwheel_build::Kernels::new().files("kernels/*.cu").architectures(["75", "80", "90a"]).compile("kernels")
//! }
//! ```
//!
//! # Shims
//!
//! It finds the headers, compiles with the `cc` crate and tells Cargo when to do it again. It does not link Python, and
//! it never installs anything.
//!
//! ```no_run
//! // build.rs
//! fn main() -> Result<(), cuwheel_build::Error> {
//!     cuwheel_build::NumpyShim::new().file("src/shim.c").compile("example_numpy_shim")
//! }
//! ```
//!
//! The C file starts with `#include <cuwheel_numpy.h>`, which includes Python and NumPy with the right settings.
//!
//! # Where the headers are looked for
//!
//! 1. In the folders named by [`NUMPY_INCLUDE`] and [`PYTHON_INCLUDE`], if both variables are set. One without the
//!    other is an error.
//! 2. Where an interpreter says that they are. The interpreter is the one named by the first of
//!    [`INTERPRETER_VARIABLES`] that is set, or else the first of `python3` and `python` on the path that works.
//!
//! # When Cargo compiles again
//!
//! When a C file changes, or a variable named `CUWHEEL_…`. For shims that do not depend on the interpreter
//! ([`NumpyShim::abi3`]) nothing else counts: neither the interpreter's place nor that of NumPy, so builds in
//! throw-away environments, as `pip install` makes them, share one compilation. Other shims are compiled again for
//! each interpreter. A header of Python or NumPy that changes in place is not noticed: touch a C file.

mod environment;
mod error;
mod headers;
mod interpreter;
mod kernels;
mod shim;
mod unwind_table;

pub use environment::{INTERPRETER_VARIABLES, NUMPY_INCLUDE, PYTHON_INCLUDE};
pub use error::Error;
pub use kernels::{ARCHITECTURES_VARIABLE, CUDA_MAJOR_VARIABLE, JOBS_VARIABLE, Kernels, KernelsError, Unsupported};
pub use shim::NumpyShim;
pub use unwind_table::leave_out_unwind_table;
