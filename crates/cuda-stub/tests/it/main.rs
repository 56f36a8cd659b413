//! The stand-in as programs see it: loaded by its path, called through C.

mod captures;
mod contexts;
mod faults;
mod launches;
mod memory;
mod ordering;
mod process;
mod support;
