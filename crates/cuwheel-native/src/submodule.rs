//! Creates the library's Python modules, as attributes of the library's own module.
//!
//! For each of them the package has a Python file, which takes its names from here. The import system can find, lock,
//! reload and forget files; a module that a library puts into `sys.modules` itself is there too early for one thread or
//! too late for another, and gone for good once it is deleted.
//!
//! The package is known only from the library's own `__name__`, so a renamed or nested copy works as well.

use std::sync::atomic::{AtomicI64, Ordering};

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::{PyClass, ffi, intern};

use crate::exception;

/// A Python module that this library creates.
pub(crate) struct Submodule {
    /// The name inside the package, and in the library.
    pub(crate) name: &'static str,
    /// Adds functions, classes and constants.
    pub(crate) populate: fn(&Bound<'_, PyModule>) -> PyResult<()>,
}

/// Creates `submodules` and adds them to `library`.
pub(crate) fn install(library: &Bound<'_, PyModule>, submodules: &[Submodule]) -> PyResult<()> {
    let package = package_of(library)?;
    // Not before the checks that can fail: an interpreter that cannot have the library leaves it to another.
    claim_for_interpreter(library.py())?;
    exception::prepare(library.py());
    for submodule in submodules {
        let module = PyModule::new(library.py(), &format!("{package}.{}", submodule.name))?;
        (submodule.populate)(&module)?;
        library.add(submodule.name, module)?;
    }
    Ok(())
}

/// Adds a class to a module, as a member that can be pickled by name.
///
/// The class is declared with the bare name of its module, which the full name replaces here. A class exists once in
/// the process: should the library be imported under a second name, the class keeps the first.
pub(crate) fn add_class<T: PyClass>(module: &Bound<'_, PyModule>, declared_module: &str) -> PyResult<()> {
    module.add_class::<T>()?;
    let class = module.getattr(<T as PyClass>::NAME)?;
    let attribute = intern!(module.py(), "__module__");
    if class.getattr(attribute)?.eq(declared_module)? {
        class.setattr(attribute, module.name()?)?;
    }
    Ok(())
}

/// The name of the package that the library is part of.
fn package_of(library: &Bound<'_, PyModule>) -> PyResult<String> {
    let name = library.name()?;
    let name = name.to_str()?;
    match name.rsplit_once('.') {
        Some((package, _)) => Ok(package.to_owned()),
        None => Err(exception::new::<PyImportError>(
            library.py(),
            format!("{name} is part of a package and was imported as a top-level module; import its package instead"),
        )),
    }
}

/// Classes and other statics of the library belong to the interpreter that imported it first.
fn claim_for_interpreter(py: Python<'_>) -> PyResult<()> {
    /// No interpreter has this number.
    const NONE: i64 = -1;
    static OWNER: AtomicI64 = AtomicI64::new(NONE);

    // SAFETY: the thread is attached, as `py` witnesses, so there is a current interpreter.
    let current = unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) };
    if current == NONE {
        return Err(exception::fetch(py));
    }
    match OWNER.compare_exchange(NONE, current, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => Ok(()),
        Err(owner) if owner == current => Ok(()),
        Err(_) => Err(exception::new::<PyImportError>(
            py,
            "this module is already loaded in another interpreter of the process and works in one only; \
             use threads or processes instead of subinterpreters",
        )),
    }
}
