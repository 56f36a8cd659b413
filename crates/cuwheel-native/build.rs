//! Keeps the table by which unwinders find the frames of this library out of it, in builds whose panics end the process.
//!
//! Not for C: that is compiled by the crates that need it.

use std::env;

/// The table is left out by linkers on the first of these, and by zig, which makes wheels, only if it has no table to make
/// for C either.
const WITHOUT_UNWIND_TABLE: [&str; 3] =
    ["-Wl,--no-eh-frame-hdr", "-fno-unwind-tables", "-fno-asynchronous-unwind-tables"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Before 3.14, CPython ends a daemon thread that wants the interpreter while it finalises by `pthread_exit`, for example
    // where a function attaches again after work of a device. That unwinds the stack with the system's unwinder, which asks
    // the personality routine of frames. This library's answers with the unwinder that zig links into it, takes the state of
    // the one for that of the other, and crashes. Without the table the stack ends for the unwinder at the first frame of
    // this library, and the thread ends quietly.
    //
    // The workspace gives release builds `panic = "abort"`, so that nothing unwinds there; build scripts are not told.
    if env::var("PROFILE").is_ok_and(|profile| profile == "release") {
        for argument in WITHOUT_UNWIND_TABLE {
            println!("cargo::rustc-link-arg-cdylib={argument}");
        }
    }
}
