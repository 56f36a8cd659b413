//! The stand-in as programs see it: loaded by its path, called through C.

mod faults;
mod memory;
mod support;
