//! {= purpose =}

{% if languages %}
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
{% else %}
fn main() {
{% endif %}
    println!("cargo::rerun-if-changed=build.rs");
    // A panic ends the process (see Cargo.toml), so nothing unwinds through this library.
    cuwheel_build::leave_out_unwind_table();
{% if has_shim %}
    cuwheel_build::NumpyShim::new().file("src/numpy_shim.c").abi3(cfg!(feature = "abi3")).compile({= shim_name =})?;
{% endif %}
{% if has_kernels %}
    cuwheel_build::Kernels::new()
{% for path in images %}
        .files({= path =})
{% endfor %}
{% for path in host_files %}
        .host_files({= path =})
{% endfor %}
{% for path in includes %}
        .include({= path =})
{% endfor %}
{% for flag in flags %}
        .flag({= flag =})
{% endfor %}
{% if architectures %}
        .architectures([{= architectures =}])
        // The old list may name what newer compilers do not know any more.
        .unsupported(cuwheel_build::Unsupported::Intersect)
{% endif %}
        .compile("kernels")?;
{% endif %}
{% if languages %}
    Ok(())
{% endif %}
}
