//! The table by which unwinders find the frames of an extension, left out of it where panics end the process.
//!
//! Not for C: that is compiled by the crates that need it.

use crate::environment;

/// The table is left out by linkers on the first of these, and by zig, which makes wheels, only if it has no table to make
/// for C either.
const WITHOUT_UNWIND_TABLE: [&str; 3] =
    ["-Wl,--no-eh-frame-hdr", "-fno-unwind-tables", "-fno-asynchronous-unwind-tables"];

/// Leaves the unwind table out of the `cdylib` whose build script calls this, in release builds. For libraries whose release
/// profile has `panic = "abort"`, and that have no C++ code with exceptions.
///
/// Before 3.14, `CPython` ends a daemon thread that wants the interpreter while it finalises by `pthread_exit`, for example
/// where a function attaches again after work of a device. That unwinds the stack with the system's unwinder, which asks the
/// personality routine of frames. A library's answers with the unwinder that zig links into it, takes the state of the one
/// for that of the other, and crashes. Without the table the stack ends for the unwinder at the first frame of the library,
/// and the thread ends quietly.
pub fn leave_out_unwind_table() {
    // Build scripts are not told how panics end.
    if environment::of_this_process("PROFILE").is_some_and(|profile| profile == "release") {
        for argument in WITHOUT_UNWIND_TABLE {
            println!("cargo::rustc-link-arg-cdylib={argument}");
        }
    }
}
