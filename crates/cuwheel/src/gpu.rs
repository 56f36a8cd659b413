//! GPU tests of an installed wheel: what goes to the machine that has the GPU, and how it gets there.
//!
//! Not for running them: that is Python, in `python/gpu`, so that a bundle runs on a machine without this tool.

pub mod archive;
pub mod content;
pub mod layout;
pub mod suite;
pub mod target;
pub mod wheelhouse;
