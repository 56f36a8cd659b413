//! Compiles the CUDA kernels{% if shim %}, and the C shim over the C API of NumPy{% endif %}.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    // Without architectures it is the oldest GPU of each generation that the compiler knows, and PTX for newer ones.
    cuwheel_build::Kernels::new()
        .files("kernels/*.cu")
        .compile("kernels")?;
{% if shim %}
    cuwheel_build::NumpyShim::new()
        .file("src/shim.c")
        .abi3(cfg!(feature = "abi3"))
        .compile("numpy_shim")?;
{% endif %}
    // Nothing unwinds in release builds, see Cargo.toml.
    cuwheel_build::leave_out_unwind_table();
    Ok(())
}
