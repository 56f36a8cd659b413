//! The extension module `{= library =}`{% if is_single %}.{% else %}: one library with the native modules of the package as its members.{% endif %}

//!
//! What is not ported yet is listed in each module, and raises `NotImplementedError` when it is called.
{% if has_capitals %}
#![expect(non_snake_case, reason = "the crate has the name of the module")]
{% endif %}

{% if has_kernels %}
mod kernels {
    //! The kernels by name, as `build.rs` found them in their images.
    include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
}
{% endif %}
{% for module in modules %}
mod {= module.rust =};
{% endfor %}
{% if modules %}
mod not_ported;
{% endif %}
{% if has_shim %}
mod numpy_shim;
{% endif %}

use pyo3::prelude::*;

{% if is_single %}
{% for module in modules %}
/// Creates the module.
#[pymodule(gil_used = true)]
#[pyo3(name = {= library_last =})]
fn native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    {= module.rust =}::populate(module)
}
{% endfor %}
{% else %}
/// Creates the modules as members of the library. The package has a file for each, which takes its names from here.
#[pymodule(gil_used = true)]
#[pyo3(name = {= library_last =})]
fn native({% if not modules %}_{% endif %}library: &Bound<'_, PyModule>) -> PyResult<()> {
{% for module in modules %}
    add(library, {= module.member =}, {= module.name =}, {= module.rust =}::populate)?;
{% endfor %}
    Ok(())
}
{% if modules %}

/// Adds a module under its full name to the library.
fn add(
    library: &Bound<'_, PyModule>,
    member: &str,
    name: &str,
    populate: fn(&Bound<'_, PyModule>) -> PyResult<()>,
) -> PyResult<()> {
    let module = PyModule::new(library.py(), name)?;
    populate(&module)?;
    library.add(member, module)
}
{% endif %}
{% endif %}
