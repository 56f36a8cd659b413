//! Creates the library's Python modules inside the package that imports the library.
//!
//! The package is known only from the library's own `__name__`, so a renamed or nested copy works as well. Nothing is
//! imported: what is needed of the import system is taken from the library's own module specification.

use std::sync::atomic::{AtomicI64, Ordering};

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3::{PyClass, ffi, intern};

/// A Python module that this library creates.
pub(crate) struct Submodule {
    /// The name inside the package.
    pub(crate) name: &'static str,
    /// The module's docstring.
    pub(crate) doc: &'static str,
    /// Adds functions, classes and constants.
    pub(crate) populate: fn(&Bound<'_, PyModule>) -> PyResult<()>,
}

/// Creates `submodules` and makes them importable as siblings of `library`.
///
/// All or none: the import system sees the modules only after each of them is complete.
pub(crate) fn install(library: &Bound<'_, PyModule>, submodules: &[Submodule]) -> PyResult<()> {
    refuse_second_interpreter(library.py())?;
    let name = library.name()?;
    let name = name.to_str()?;
    let Some((package_name, _)) = name.rsplit_once('.') else {
        return Err(PyImportError::new_err(format!(
            "{name} is part of a package and was imported as a top-level module; import its package instead"
        )));
    };
    let modules = submodules
        .iter()
        .map(|submodule| Ok((submodule.name, create(library, package_name, submodule)?)))
        .collect::<PyResult<Vec<_>>>()?;

    let loaded = loaded_modules(library.py())?;
    let package = loaded.get_item(package_name)?;
    for (name, module) in modules {
        loaded.set_item(module.name()?, &module)?;
        if let Some(package) = &package {
            package.setattr(name, module)?;
        }
    }
    Ok(())
}

/// Adds a class to a module, as a member that can be pickled by name.
///
/// A class exists once in the process. Should the library be imported under a second name, the class keeps the first.
pub(crate) fn add_class<T: PyClass>(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let class = module.py().get_type::<T>();
    let attribute = intern!(module.py(), "__module__");
    if class.getattr(attribute)?.eq("builtins")? {
        class.setattr(attribute, module.name()?)?;
    }
    module.add_class::<T>()
}

fn create<'py>(
    library: &Bound<'py, PyModule>,
    package_name: &str,
    submodule: &Submodule,
) -> PyResult<Bound<'py, PyModule>> {
    let name = format!("{package_name}.{}", submodule.name);
    let module = PyModule::new(library.py(), &name)?;
    module.setattr("__doc__", submodule.doc)?;
    module.setattr("__package__", package_name)?;
    describe_origin(library, &module)?;
    (submodule.populate)(&module)?;
    Ok(module)
}

/// Records where the module comes from, as the import system does for modules it loads.
fn describe_origin(library: &Bound<'_, PyModule>, module: &Bound<'_, PyModule>) -> PyResult<()> {
    let Some(library_spec) = library.getattr_opt("__spec__")?.filter(|spec| !spec.is_none()) else {
        return Ok(());
    };
    let loader = library_spec.getattr("loader")?;
    let origin = library_spec.getattr("origin")?;
    let arguments = PyDict::new(library.py());
    arguments.set_item("origin", &origin)?;
    let spec = library_spec.get_type().call((module.name()?, &loader), Some(&arguments))?;
    spec.setattr("has_location", library_spec.getattr("has_location")?)?;
    module.setattr("__spec__", spec)?;
    module.setattr("__loader__", loader)?;
    if let Some(file) = library.getattr_opt("__file__")? {
        module.setattr("__file__", file)?;
    }
    Ok(())
}

/// `sys.modules`, without importing `sys`.
fn loaded_modules(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    // SAFETY: the thread is attached, as `py` witnesses. The result is a borrowed reference to the interpreter's own
    // dictionary, and becomes an owned one before any other code can run.
    let modules = unsafe { Bound::from_borrowed_ptr_or_err(py, ffi::PyImport_GetModuleDict())? };
    Ok(modules.cast_into::<PyDict>()?)
}

/// Classes and other statics of the library belong to the interpreter that imported it first.
fn refuse_second_interpreter(py: Python<'_>) -> PyResult<()> {
    /// No interpreter has this number.
    const NONE: i64 = -1;
    static OWNER: AtomicI64 = AtomicI64::new(NONE);

    // SAFETY: the thread is attached, as `py` witnesses, so there is a current interpreter.
    let current = unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) };
    if current == NONE {
        return Err(PyErr::fetch(py));
    }
    match OWNER.compare_exchange(NONE, current, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => Ok(()),
        Err(owner) if owner == current => Ok(()),
        Err(_) => Err(PyImportError::new_err(
            "this module is already loaded in another interpreter of the process and works in one only; \
             use threads or processes instead of subinterpreters",
        )),
    }
}
