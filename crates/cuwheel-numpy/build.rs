//! Compiles the C shim.

fn main() -> Result<(), cuwheel_build::Error> {
    cuwheel_build::NumpyShim::new()
        .file("src/shim.c")
        .header("src/shim.h")
        .abi3(cfg!(feature = "abi3"))
        .compile("cuwheel_numpy_shim")
}
