//! A stand-in for the CUDA driver, `libcuda.so.1`, for tests on machines without a GPU. It has devices, contexts, memory,
//! streams, events, graphs, modules and launches, runs no kernel, and says what a program did with them: what it left alive,
//! what it used after its end, and what it touched in an order that nothing guarantees. It is a fixture, never a product.
//!
//! The model is plain Rust: `driver::Driver` and the files beside it. `edge` is the C border. What a test uses is
//! [`control`]. `docs/stand-in-driver.md` is the guide.

mod access;
mod allocate;
mod capture;
mod clock;
mod context;
pub mod control;
mod copies;
mod device;
mod driver;
mod edge;
mod error;
mod event;
mod handle;
mod image;
mod interpreter;
mod journal;
mod launch;
mod mapping;
mod memory;
mod module;
mod occupancy;
mod pointers;
mod pool;
mod region;
mod report;
mod settings;
mod stream;
mod user_object;
mod work;

#[cfg(not(target_pointer_width = "64"))]
compile_error!("the stand-in driver is for 64-bit Linux, where a size is as wide as an address");

/// What the library was built from, ended by a zero.
pub(crate) const BUILD: &str = concat!(env!("CUDA_STUB_BUILD"), "\0");

/// A size or distance in bytes as the language counts them.
#[expect(clippy::cast_possible_truncation, reason = "the crate compiles only where both are 64 bits wide")]
pub(crate) const fn index(bytes: u64) -> usize {
    bytes as usize
}
