//! CUDA C++ out of Python objects, and what the compiler refuses as an exception.

use std::path::PathBuf;

use cuwheel_device_array::Classified as _;
use cuwheel_dispatcher::compile::{self, Cache, CompileError, Compiled, Search, Source};
use cuwheel_exchange::{cuda_error_class, exception_of};
use pyo3::exceptions::{PyTypeError, PyUnicodeDecodeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyString, PyTuple, PyType};

use super::source;
use crate::exception;

/// What a source is called that has no other name.
const FILENAME: &str = "source.cu";

/// CUDA C++: a text, or the path of a file.
pub(super) enum SourceArgument {
    Text(String),
    File(PathBuf),
}

impl<'py> FromPyObject<'_, 'py> for SourceArgument {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(text) = object.cast::<PyString>() {
            return Ok(Self::Text(text.to_str()?.to_owned()));
        }
        if object.hasattr(intern!(object.py(), "__fspath__"))? {
            return object.extract().map(Self::File);
        }
        let message =
            format!("a source is CUDA C++ as a string, or a path object, not {}", exception::type_name(&object));
        Err(exception::new::<PyTypeError>(object.py(), message))
    }
}

/// Several texts, where one text is likely to be a mistake.
#[derive(Default)]
pub(super) struct Texts(pub(super) Vec<String>);

impl<'py> FromPyObject<'_, 'py> for Texts {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        list(&object, "strings").map(Self)
    }
}

/// Several directories.
#[derive(Default)]
pub(super) struct Directories(pub(super) Vec<PathBuf>);

impl<'py> FromPyObject<'_, 'py> for Directories {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        list(&object, "paths").map(Self)
    }
}

fn list<'py, T: for<'a> FromPyObject<'a, 'py>>(object: &Bound<'py, PyAny>, of: &str) -> PyResult<Vec<T>> {
    if object.is_instance_of::<PyTuple>() || object.is_instance_of::<PyList>() {
        return object.extract();
    }
    let message = format!("a tuple or a list of {of} is needed, not {}", exception::type_name(object));
    Err(exception::new::<PyTypeError>(object.py(), message))
}

/// Everything about a source that has no place of its own among the arguments.
pub(super) struct Settings<'a, 'py> {
    pub(super) filename: Option<String>,
    pub(super) names: Texts,
    pub(super) options: Texts,
    pub(super) include_dirs: Directories,
    pub(super) headers: Option<&'a Bound<'py, PyDict>>,
    pub(super) architecture: Option<&'a str>,
}

impl Settings<'_, '_> {
    /// The source; a file is read.
    pub(super) fn source(self, py: Python<'_>, argument: SourceArgument) -> PyResult<Source> {
        let mut include_dirs = Vec::new();
        let (code, filename) = match argument {
            SourceArgument::Text(text) => (text, None),
            SourceArgument::File(path) => {
                let bytes = source::read(py, &path)?;
                let code = match String::from_utf8(bytes) {
                    Ok(code) => code,
                    Err(error) => {
                        let bytes = error.as_bytes();
                        let error = PyUnicodeDecodeError::new_utf8(py, bytes, error.utf8_error())?;
                        return Err(PyErr::from_value(error.into_any()));
                    }
                };
                // Headers beside the file, as with every compiler.
                let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
                include_dirs.extend(directory.map(PathBuf::from).or_else(|| std::env::current_dir().ok()));
                (code, Some(path.to_string_lossy().into_owned()))
            }
        };
        include_dirs.extend(self.include_dirs.0);
        let architecture = self.architecture.map(str::parse).transpose();
        let architecture = architecture
            .map_err(|error: compile::ArchitectureError| exception::new::<PyValueError>(py, error.to_string()))?;
        let headers = self.headers.map(PyDictMethods::items).map(|items| items.extract()).transpose()?;
        Ok(Source {
            code,
            filename: self.filename.or(filename).unwrap_or_else(|| FILENAME.to_owned()),
            options: self.options.0,
            include_dirs,
            headers: headers.unwrap_or_default(),
            names: self.names.0,
            architecture,
            capability: None,
        })
    }
}

/// Has a source compiled, or takes it from the cache.
pub(super) fn compile(py: Python<'_>, source: &Source, use_cache: bool) -> PyResult<Compiled> {
    let search = search(py)?;
    let cache = if use_cache { Cache::from_environment() } else { Cache::off() };
    py.detach(|| compile::compile(source, &search, &cache)).map_err(|error| compile_error(py, &error))
}

/// Where Python's packages are, and the headers of this one.
fn search(py: Python<'_>) -> PyResult<Search> {
    let sys = py.import(intern!(py, "sys"))?;
    let path = sys.getattr(intern!(py, "path"))?;
    // Entries may be of any type; what is no path leads nowhere.
    let entries = path.try_iter()?.filter_map(|entry| entry.ok()?.extract::<PathBuf>().ok());
    let packages = entries.filter(|entry| entry.is_absolute()).collect();
    let module = error_class(py)?.getattr(intern!(py, "__module__"))?;
    let module: String = module.extract()?;
    let package = module.rsplit_once('.').map_or(module.as_str(), |(package, _)| package);
    let roots = py.import(package)?.getattr_opt(intern!(py, "__path__"))?;
    let roots: Vec<PathBuf> = match roots {
        Some(roots) => roots.try_iter()?.map(|root| root?.extract()).collect::<PyResult<_>>()?,
        None => Vec::new(),
    };
    let include_dirs = roots.into_iter().map(|root| root.join("include")).filter(|root| root.is_dir()).collect();
    let prefixes = vec![sys.getattr(intern!(py, "prefix"))?.extract()?];
    Ok(Search { packages, prefixes, include_dirs })
}

/// Adds the class of the exception to the module.
pub(super) fn add_error(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let class = error_class(module.py())?;
    class.setattr(intern!(module.py(), "__module__"), module.name()?)?;
    module.add("CompileError", class)
}

/// The class `CompileError`, a `CudaError` with the compiler's log.
fn error_class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let create = || {
        let documentation = c"NVRTC, the compiler of CUDA C++, is not there, or refuses the source.

Attributes:
    log: What the compiler says of the source; empty if it did not come to that.
    filename: What the source is called, or None.
    name: The name of the error in NVRTC, such as \"NVRTC_ERROR_COMPILATION\", or None.
    code: The number of the error, or None.";
        let base = cuda_error_class(py)?;
        let class = PyErr::new_type(py, c"cuwheel._kernel.CompileError", Some(documentation), Some(base), None)?;
        // PyO3 0.30 drops a dictionary of attributes before Python has read it: they are set afterwards.
        class.bind(py).setattr(intern!(py, "log"), "")?;
        class.bind(py).setattr(intern!(py, "filename"), py.None())?;
        Ok(class)
    };
    CLASS.get_or_try_init(py, create).map(|class| class.bind(py))
}

fn compile_error(py: Python<'_>, error: &CompileError) -> PyErr {
    let is_about_arguments = error.kind() != cuwheel_device_array::ErrorKind::Driver;
    if is_about_arguments || error.cuda_error().is_some() {
        return exception_of(py, error.clone());
    }
    let create = || {
        let exception = error_class(py)?.call1((error.to_string(),))?;
        if let Some(refusal) = error.refusal() {
            exception.setattr(intern!(py, "log"), &refusal.log)?;
            exception.setattr(intern!(py, "filename"), &refusal.filename)?;
            exception.setattr(intern!(py, "name"), &refusal.name)?;
            exception.setattr(intern!(py, "code"), refusal.code)?;
        }
        Ok(PyErr::from_value(exception))
    };
    create().unwrap_or_else(|error| error)
}
