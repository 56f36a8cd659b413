//! Keeps the table by which unwinders find the frames of this library out of it, in builds whose panics end the process.
//!
//! Not for C: that is compiled by the crates that need it.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // The workspace gives release builds `panic = "abort"`, so that nothing unwinds there.
    cuwheel_build::leave_out_unwind_table();
}
