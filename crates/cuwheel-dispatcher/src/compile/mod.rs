//! CUDA C++ into images of device code, by NVRTC: found and loaded when first asked for, never linked.
//!
//! A [`Source`] is a text with everything that decides what becomes of it, and [`compile`] makes an image of it, or takes
//! the one that a former run left in the [`Cache`]. Where NVRTC and the headers of CUDA are is for a [`Search`] to find.
//!
//! Nothing here loads an image or knows of launches: see [`launch`](crate::launch).

mod architecture;
mod cache;
mod error;
mod find;
mod functions;
mod includes;
mod key;
mod nvrtc;
mod program;
mod source;

pub use architecture::{Architecture, ArchitectureError};
pub use cache::Cache;
pub use error::{CompileError, CompilerRefusal};
pub use find::Search;
pub use source::{Compiled, Source, compile};
