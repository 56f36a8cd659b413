//! The class `Module`: device code, compiled before or just now.

use std::hash::{Hash, Hasher};
use std::path::PathBuf;

use cuwheel_dispatcher::compile::Compiled;
use cuwheel_dispatcher::launch::{self, Image};
use cuwheel_exchange::exception_of;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use super::PyKernel;
use super::compile::{self, Directories, Settings, SourceArgument, Texts};
use super::configured::Idle;
use super::source::{self, ImageBytes, SignatureArgument};

/// Make a module of what pickle has read.
#[pyfunction]
#[pyo3(signature = (image, names = Vec::new(), log = String::new()))]
pub(super) fn _rebuild(
    py: Python<'_>,
    image: &Bound<'_, PyBytes>,
    names: Vec<(String, String)>,
    log: String,
) -> PyResult<PyModuleOfKernels> {
    let image = source::image(py, image.as_bytes())?;
    Ok(PyModuleOfKernels { module: launch::Module::with_names(image, names), log })
}

/// Device code: a cubin, a fatbin or a PTX text, and the kernels in it.
///
/// Nothing is asked of the driver before a kernel is used, or the names of kernels are asked for. The image is loaded once,
/// for all devices, and unloaded when neither the module nor a kernel of it is left.
#[pyclass(frozen, name = "Module", module = "_kernel", eq, hash, weakref)]
#[derive(Debug)]
pub(super) struct PyModuleOfKernels {
    pub(super) module: launch::Module,
    /// What the compiler said.
    pub(super) log: String,
}

impl PyModuleOfKernels {
    pub(super) fn new(image: Image) -> Self {
        Self { module: launch::Module::new(image), log: String::new() }
    }

    pub(super) fn compiled(compiled: Compiled) -> Self {
        let Compiled { image, names, log } = compiled;
        Self { module: launch::Module::with_names(image, names), log }
    }
}

impl PartialEq for PyModuleOfKernels {
    fn eq(&self, other: &Self) -> bool {
        self.module.image() == other.module.image() && self.module.names() == other.module.names()
    }
}

impl Hash for PyModuleOfKernels {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.module.image().hash(state);
    }
}

#[pymethods]
impl PyModuleOfKernels {
    /// Return the module of an image in memory.
    ///
    /// Args:
    ///     image: The bytes of a cubin, a fatbin or a PTX text, or PTX as a string. Which it is is seen from its content.
    ///
    /// Raises:
    ///     ValueError: It is none of these, or not a whole one; the message says what it looks like.
    #[staticmethod]
    #[pyo3(signature = (image, /))]
    fn from_bytes(py: Python<'_>, image: ImageBytes) -> PyResult<Self> {
        source::image(py, &image.0).map(Self::new)
    }

    /// Return the module of an image in a file.
    ///
    /// Args:
    ///     path: The file: a cubin, a fatbin or a PTX text, whatever its name.
    ///
    /// Raises:
    ///     OSError: The file cannot be read.
    ///     ValueError: It is no image, as for `from_bytes`.
    #[staticmethod]
    #[pyo3(signature = (path, /))]
    fn from_file(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        source::image(py, &source::read(py, &path)?).map(Self::new)
    }

    /// Return the module of CUDA C++, compiled by NVRTC for the current device, or as `architecture` says.
    ///
    /// What was compiled before is taken from a cache on disk, if neither the source nor a header, an option or the compiler
    /// has changed.
    ///
    /// Args:
    ///     source: The source as a string, or a path object to read it from. Headers of cuwheel and, where they are
    ///         installed, of CCCL and of the CUDA runtime can be included.
    ///     filename: What the source is called in messages; the path of the file by default.
    ///     names: C++ expressions that name kernels, such as "saxpy<float>", for `kernel` to find them by. Templates are
    ///         instantiated for them. A kernel that is declared `extern "C"` needs none.
    ///     options: Options of NVRTC, such as "--std=c++20" or "--use_fast_math".
    ///     include_dirs: Directories to look for headers in first; that of a file comes before them.
    ///     headers: Headers in memory: texts by the names that they are included by.
    ///     architecture: "sm_90" for machine code, or "compute_90" for PTX; no driver is asked then. By default machine code
    ///         for the current device, or PTX of the newest older architecture if the compiler does not know the device.
    ///     cache: Whether to use the cache.
    ///
    /// Raises:
    ///     CompileError: NVRTC is not there, or refuses the source; its log is in the message and in the attribute `log`.
    ///     CudaError: There is no device, and no architecture was named.
    ///     OSError: The file cannot be read.
    ///     ValueError: The architecture is none, or an option is not for here.
    #[staticmethod]
    #[pyo3(signature = (source, /, *, filename = None, names = Texts::default(), options = Texts::default(),
                        include_dirs = Directories::default(), headers = None, architecture = None, cache = true),
           text_signature = "(source, /, *, filename=None, names=(), options=(), include_dirs=(), headers=None, \
                             architecture=None, cache=True)")]
    #[expect(clippy::too_many_arguments, reason = "each is an argument of the Python function")]
    fn from_source(
        py: Python<'_>,
        source: SourceArgument,
        filename: Option<String>,
        names: Texts,
        options: Texts,
        include_dirs: Directories,
        headers: Option<&Bound<'_, PyDict>>,
        architecture: Option<&str>,
        cache: bool,
    ) -> PyResult<Self> {
        let settings = Settings { filename, names, options, include_dirs, headers, architecture };
        let compiled = compile::compile(py, &settings.source(py, source)?, cache)?;
        Ok(Self::compiled(compiled))
    }

    /// Return a kernel of the module. It is looked for when it is first used.
    ///
    /// Args:
    ///     name: The name in the image: that of the function if it is declared `extern "C"`, else its mangled name. Or one of
    ///         the expressions in `names`.
    ///     signature: The types of the parameters, in their order, each with a name behind it or not: "float32*",
    ///         "const float32* x", "void*", "int32 n", "view[float32, 2]". Without, the driver tells their number and sizes
    ///         (from CUDA 12.4 on).
    ///
    /// Raises:
    ///     ValueError: A type cannot be read.
    #[pyo3(signature = (name, /, signature = None))]
    fn kernel(slf: Bound<'_, Self>, name: &str, signature: Option<SignatureArgument>) -> PyKernel {
        let kernel = slf.get().module.kernel(name, signature.map(|signature| signature.0));
        PyKernel { kernel, module: slf.unbind(), idle: Idle::default() }
    }

    /// The names of all kernels in the image, sorted.
    ///
    /// Raises:
    ///     CudaError: The image cannot be loaded, or the driver is for a CUDA older than 12.4 and does not tell.
    #[getter]
    fn kernels<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let names = py.detach(|| self.module.kernel_names()).map_err(|error| exception_of(py, error))?;
        PyTuple::new(py, names)
    }

    /// What the image is: "cubin", "fatbin" or "PTX".
    #[getter]
    fn kind(&self) -> &'static str {
        self.module.image().kind().name()
    }

    /// What the code inside is for, such as `("sm_90", "compute_90 (PTX)")`.
    #[getter]
    fn architectures<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.module.image().codes().iter().map(ToString::to_string))
    }

    /// The expressions that the module was compiled with, each with the name in the image that it stands for.
    #[getter]
    fn names<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let names = PyDict::new(py);
        self.module.names().iter().try_for_each(|(name, in_image)| names.set_item(name, in_image))?;
        Ok(names)
    }

    /// What the compiler said, if the module was made of source: warnings for the most part.
    #[getter]
    fn log(&self) -> &str {
        &self.log
    }

    fn __repr__(&self) -> String {
        let image = self.module.image();
        format!("<Module of a {}, {} bytes>", image.kind().name(), image.bytes().len())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let (py, this) = (slf.py(), slf.get());
        let rebuild = py.import(slf.get_type().module()?)?.getattr(intern!(py, "_rebuild"))?;
        let image = PyBytes::new(py, this.module.image().bytes());
        (rebuild, (image, this.module.names().to_vec(), this.log.as_str())).into_pyobject(py)
    }
}
