//! The build script of a crate with CUDA kernels. `cargo xtask bench kernels` runs it as Cargo would.

fn main() -> Result<(), cuwheel_build::KernelsError> {
    cuwheel_build::Kernels::new()
        .files("kernels/*.cu")
        .architectures(["75", "80", "86", "89", "90a"])
        .compile("kernels")
}
