//! The class `Dispatcher`: kernels that are made for the types of their arguments.

use std::hash::{DefaultHasher, Hash as _};

use cuwheel_device_array::Device;
use cuwheel_dispatcher::compile::Source;
use cuwheel_dispatcher::launch::Signature;
use cuwheel_dispatcher::specialize::{Spellings, Template};
use cuwheel_exchange::{StreamArgument, exception_of};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};

use super::argument_type::ArgumentType;
use super::attributes::Attributes;
use super::compile::{self, Directories, Settings, SourceArgument, Texts};
use super::configure::{LaunchShape, SharedBytes};
use super::configured::{self, Args, ClassTexts, Configured, Idle, Launcher};
use super::module::PyModuleOfKernels;
use super::overload::{Overloads, Typed};
use super::source::{self, ImageBytes, SignatureArgument};
use super::{PyKernel, place};
use crate::devicearray::DTypeArgument;
use crate::exception;

/// Make a dispatcher of what pickle has read.
#[pyfunction]
pub(super) fn _rebuild_dispatcher<'py>(
    py: Python<'py>,
    args: &Bound<'py, PyTuple>,
    options: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    py.get_type::<Dispatcher>().call(args, Some(options))
}

/// Where overloads come from.
enum Maker {
    /// A C++ template.
    Template { template: Box<Template>, source: Box<Source>, use_cache: bool },
    /// A function of Python.
    Function { function: Py<PyAny>, name: Option<String>, signature: Option<Signature> },
}

/// Kernels that are made for the types of their arguments, when they are first launched with these.
///
/// `dispatcher[grid, block](*arguments)` launches the overload for the arguments. It is compiled if there is none: by one
/// thread, while others that need it wait. `dispatcher[grid, block, stream, shared_bytes]` as with kernels.
///
/// Args:
///     source: CUDA C++ as a string or as the path object of a file. Or a function that is called with an `ArgumentType` for
///         each argument, and returns a `Kernel`, a `Module`, or an image.
///     name: A C++ expression that names the kernel, with variables between its angle brackets: "saxpy<T>". With a function
///         the name of the kernel in what it returns; it is not needed if there is but one.
///     signature: The types of the parameters, as for `Module.kernel`, with these variables: "T* y", "const T* x", "T a". In
///         "view[T, N, C]", T is the type of the elements, N the number of dimensions and C whether they lie in C order. A
///         number decides what T is only where no array does. With a function it has no variables, and can be left out.
///     types: C++ types by the names of data types, for those that have none here, or another: {"complex64": "float2"}.
///     filename, options, include_dirs, headers, architecture, cache: As for `Module.from_source`. Code is made for the device
///         of the arrays unless an architecture is named.
///
/// Raises:
///     TypeError: `source` is neither; a name or a signature is missing; or an option makes no sense with a function.
///     ValueError: A type cannot be read.
///     OSError: The file cannot be read.
#[pyclass(frozen, module = "_kernel", weakref)]
pub(super) struct Dispatcher {
    maker: Maker,
    overloads: Overloads,
}

#[pymethods]
impl Dispatcher {
    #[new]
    #[pyo3(signature = (source, /, name = None, signature = None, *, types = None, filename = None,
                        options = Texts::default(), include_dirs = Directories::default(), headers = None,
                        architecture = None, cache = true),
           text_signature = "(source, /, name=None, signature=None, *, types=None, filename=None, options=(), \
                             include_dirs=(), headers=None, architecture=None, cache=True)")]
    #[expect(clippy::too_many_arguments, reason = "each is an argument of the Python class")]
    fn new(
        py: Python<'_>,
        source: &Bound<'_, PyAny>,
        name: Option<String>,
        signature: Option<&Bound<'_, PyAny>>,
        types: Option<&Bound<'_, PyDict>>,
        filename: Option<String>,
        options: Texts,
        include_dirs: Directories,
        headers: Option<&Bound<'_, PyDict>>,
        architecture: Option<&str>,
        cache: bool,
    ) -> PyResult<Self> {
        let names = Texts::default();
        let is_bare = filename.is_none()
            && options.0.is_empty()
            && include_dirs.0.is_empty()
            && headers.is_none()
            && architecture.is_none()
            && types.is_none();
        let settings = Settings { filename, names, options, include_dirs, headers, architecture };
        let maker = if source.is_callable() {
            if !is_bare {
                let message = "a function compiles by itself: types, filename, options, include_dirs, headers and \
                               architecture are for source";
                return Err(exception::new::<PyTypeError>(py, message));
            }
            let signature: Option<SignatureArgument> = signature.map(PyAnyMethods::extract).transpose()?;
            Maker::Function { function: source.clone().unbind(), name, signature: signature.map(|given| given.0) }
        } else {
            let argument: SourceArgument = source.extract()?;
            let (Some(name), Some(signature)) = (name, signature) else {
                let message = "a dispatcher of source needs the name of the kernel and a signature: Dispatcher(source, \
                               \"saxpy<T>\", (\"T* y\", \"const T* x\", \"T a\", \"int32 n\"))";
                return Err(exception::new::<PyTypeError>(py, message));
            };
            let texts = source::signature_texts(signature)?;
            let template = Template::parse(&name, texts.iter().map(String::as_str), spellings(types)?)
                .map_err(|error| exception::new::<PyValueError>(py, error.to_string()))?;
            let source = Box::new(settings.source(py, argument)?);
            Maker::Template { template: Box::new(template), source, use_cache: cache }
        };
        Ok(Self { maker, overloads: Overloads::new() })
    }

    fn __getitem__<'py>(slf: Bound<'py, Self>, brackets: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        Configured::in_brackets(slf, brackets)
    }

    /// Return the dispatcher with the shape of its launches, to be called with the arguments.
    ///
    /// Args:
    ///     grid, block, stream, shared_bytes, cluster, cooperative, attributes, release_gil: As for `Kernel.configure`.
    ///
    /// Raises:
    ///     What `Kernel.configure` raises.
    #[pyo3(signature = (grid, block, stream = None, shared_bytes = SharedBytes(0), cluster = None, cooperative = false,
                        attributes = None, release_gil = true),
           text_signature = "($self, grid, block, stream=None, shared_bytes=0, cluster=None, cooperative=False, \
                             attributes=None, release_gil=True)")]
    #[expect(clippy::too_many_arguments, reason = "each is an argument of the Python function")]
    fn configure<'py>(
        slf: Bound<'py, Self>,
        grid: Bound<'_, PyAny>,
        block: Bound<'_, PyAny>,
        stream: Option<StreamArgument>,
        shared_bytes: SharedBytes,
        cluster: Option<Bound<'_, PyAny>>,
        cooperative: bool,
        attributes: Option<Attributes>,
        release_gil: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let cluster = cluster.as_ref();
        let shape =
            LaunchShape::new(&grid, &block, stream, shared_bytes, cluster, cooperative, attributes, release_gil)?;
        let py = slf.py();
        Configured { launcher: slf.unbind(), shape }.into_object(py)
    }

    /// Launch the overload for the arguments once.
    ///
    /// Args:
    ///     args: The arguments of the kernel, a tuple.
    ///     grid, block, stream, shared_bytes, cluster, cooperative, attributes, release_gil: As for `Kernel.configure`.
    ///
    /// Raises:
    ///     What calling a configured dispatcher raises.
    #[pyo3(signature = (args, *, grid, block, stream = None, shared_bytes = SharedBytes(0), cluster = None,
                        cooperative = false, attributes = None, release_gil = true),
           text_signature = "($self, args, *, grid, block, stream=None, shared_bytes=0, cluster=None, cooperative=False, \
                             attributes=None, release_gil=True)")]
    #[expect(clippy::too_many_arguments, reason = "each is an argument of the Python function")]
    fn launch(
        &self,
        args: &Bound<'_, PyTuple>,
        grid: Bound<'_, PyAny>,
        block: Bound<'_, PyAny>,
        stream: Option<StreamArgument>,
        shared_bytes: SharedBytes,
        cluster: Option<Bound<'_, PyAny>>,
        cooperative: bool,
        attributes: Option<Attributes>,
        release_gil: bool,
    ) -> PyResult<()> {
        let cluster = cluster.as_ref();
        let shape =
            LaunchShape::new(&grid, &block, stream, shared_bytes, cluster, cooperative, attributes, release_gil)?;
        Launcher::launch(self, args.py(), &shape, &configured::arguments(args))
    }

    /// Return the overload for the arguments, compiled if there is none. Nothing is launched.
    ///
    /// Args:
    ///     args: The arguments that the kernel would be launched with.
    ///
    /// Raises:
    ///     What calling a configured dispatcher raises before it launches.
    #[pyo3(signature = (*args))]
    fn kernel_for(&self, args: &Bound<'_, PyTuple>) -> PyResult<Py<PyKernel>> {
        let py = args.py();
        let mut typed = Typed::new();
        let args = configured::arguments(args);
        self.look_at(py, &args, &mut typed)?;
        let overload = typed.overload(py, &self.overloads, |typed| self.make(py, typed))?;
        Ok(overload.kernel.clone_ref(py))
    }

    /// The overloads so far, in the order in which they were made: the types that each was made for, and its kernel. A type is
    /// None where the argument decides nothing.
    #[getter]
    fn overloads<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let pairs = self.overloads.values().into_iter().map(|overload| {
            let types = PyTuple::new(py, overload.types.iter().map(|kind| kind.map(ArgumentType)))?;
            Ok((types, overload.kernel.clone_ref(py)))
        });
        PyTuple::new(py, pairs.collect::<PyResult<Vec<_>>>()?)
    }

    /// The expression that names the kernel, or the name that was given with a function; or None.
    #[getter]
    fn name(&self) -> Option<&str> {
        match &self.maker {
            Maker::Template { template, .. } => Some(template.expression()),
            Maker::Function { name, .. } => name.as_deref(),
        }
    }

    /// The signature that was given, a tuple of texts; or None.
    #[getter]
    fn signature<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        match &self.maker {
            Maker::Template { template, .. } => PyTuple::new(py, template.parameters()).map(Some),
            Maker::Function { signature, .. } => {
                signature.as_ref().map(|signature| PyTuple::new(py, source::texts(signature))).transpose()
            }
        }
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let count = self.overloads.values().len();
        let of = match &self.maker {
            Maker::Template { template, .. } => {
                format!("{}({})", template.expression(), template.parameters().collect::<Vec<_>>().join(", "))
            }
            Maker::Function { function, .. } => function
                .bind(py)
                .repr()
                .map_or_else(|_| exception::type_name(function.bind(py)), |text| text.to_string_lossy().into_owned()),
        };
        format!("<Dispatcher {of}, {count} overload{}>", if count == 1 { "" } else { "s" })
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let (py, this) = (slf.py(), slf.get());
        let rebuild = py.import(slf.get_type().module()?)?.getattr(intern!(py, "_rebuild_dispatcher"))?;
        let (name, signature) = (this.name(), this.signature(py)?);
        let options = PyDict::new(py);
        let source = match &this.maker {
            Maker::Template { template, source, use_cache } => {
                fill_options(&options, template.spellings(), source, *use_cache)?;
                PyString::new(py, &source.code).into_any()
            }
            Maker::Function { function, .. } => function.bind(py).clone(),
        };
        (rebuild, ((source, name, signature), options)).into_pyobject(py)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        match &self.maker {
            Maker::Template { .. } => Ok(()),
            Maker::Function { function, .. } => visit.call(function),
        }
    }
}

impl Dispatcher {
    #[inline]
    fn look_at<'a, 'py>(&self, py: Python<'py>, args: &Args<'a, 'py>, typed: &mut Typed<'a, 'py>) -> PyResult<()> {
        match &self.maker {
            Maker::Template { template, source, .. } => {
                template.check_count(args.len()).map_err(|error| exception_of(py, error))?;
                typed.fill(py, args, Some(template), source.architecture.is_some())
            }
            Maker::Function { .. } => typed.fill(py, args, None, false),
        }
    }

    /// Makes the overload for arguments.
    fn make(&self, py: Python<'_>, typed: &Typed<'_, '_>) -> PyResult<Py<PyKernel>> {
        match &self.maker {
            Maker::Template { template, source, use_cache } => {
                // Where there is no type, the template does not look at it.
                let any = cuwheel_dispatcher::specialize::ArgumentType::number(cuwheel_device_array::DType::UInt8);
                let types: Vec<_> = typed.types.iter().map(|kind| kind.unwrap_or(any)).collect();
                let bound = template.bind(&types).map_err(|error| exception_of(py, error))?;
                let names = vec![bound.expression.clone()];
                let source = Source { names, capability: typed.capability(), ..Source::clone(source) };
                let module = PyModuleOfKernels::compiled(compile::compile(py, &source, *use_cache)?);
                kernel(py, &Bound::new(py, module)?, &bound.expression, Some(bound.signature))
            }
            Maker::Function { function, name, signature } => {
                // What it compiles, it compiles for the current device.
                let device = typed.device.map_or_else(Device::current, Ok).and_then(Device::enter);
                let _guard = device.map_err(|error| exception_of(py, error))?;
                let types = PyTuple::new(py, typed.types.iter().map(|kind| kind.map(ArgumentType)))?;
                let made = function.bind(py).call1(types)?;
                returned(&made, name.as_deref(), signature.as_ref())
            }
        }
    }
}

fn kernel(
    py: Python<'_>,
    module: &Bound<'_, PyModuleOfKernels>,
    name: &str,
    signature: Option<Signature>,
) -> PyResult<Py<PyKernel>> {
    let kernel = module.get().module.kernel(name, signature);
    Py::new(py, PyKernel { kernel, module: module.clone().unbind(), idle: Idle::default() })
}

/// The kernel that a function has made.
fn returned(made: &Bound<'_, PyAny>, name: Option<&str>, signature: Option<&Signature>) -> PyResult<Py<PyKernel>> {
    let py = made.py();
    if let Ok(kernel) = made.cast::<PyKernel>() {
        return Ok(kernel.clone().unbind());
    }
    let module = if let Ok(module) = made.cast::<PyModuleOfKernels>() {
        module.clone()
    } else {
        let bytes: ImageBytes = match made.extract() {
            Ok(bytes) => bytes,
            Err(error) if error.is_instance_of::<PyTypeError>(py) => {
                let class = exception::type_name(made);
                let message =
                    format!("the function of a dispatcher returned {class}; return a Kernel, a Module or an image");
                return Err(exception::new::<PyTypeError>(py, message));
            }
            Err(error) => return Err(error),
        };
        Bound::new(py, PyModuleOfKernels::new(source::image(py, &bytes.0)?))?
    };
    if let Some(name) = name {
        return kernel(py, &module, name, signature.cloned());
    }
    let image = &module.get().module;
    let names = py.detach(|| image.kernel_names()).map_err(|error| exception_of(py, error))?;
    if let [name] = names.as_slice() {
        return kernel(py, &module, name, signature.cloned());
    }
    let (count, names) = (names.len(), names.join(", "));
    let message =
        format!("the image has {count} kernels ({names}); return one of them, or name it: Dispatcher(function, name)");
    Err(exception::new::<PyValueError>(py, message))
}

/// The C++ types that were given for data types.
fn spellings(types: Option<&Bound<'_, PyDict>>) -> PyResult<Spellings> {
    let Some(types) = types else { return Ok(Spellings::default()) };
    let own = types.iter().map(|(dtype, name)| Ok((dtype.extract::<DTypeArgument>()?.0, name.extract()?)));
    Ok(Spellings::new(own.collect::<PyResult<_>>()?))
}

/// The options that make the same source again.
fn fill_options(options: &Bound<'_, PyDict>, spellings: &Spellings, source: &Source, use_cache: bool) -> PyResult<()> {
    let py = options.py();
    if !spellings.own().is_empty() {
        let types = PyDict::new(py);
        spellings.own().iter().try_for_each(|(dtype, name)| types.set_item(dtype.to_string(), name))?;
        options.set_item(intern!(py, "types"), types)?;
    }
    options.set_item(intern!(py, "filename"), &source.filename)?;
    options.set_item(intern!(py, "options"), &source.options)?;
    let directories = source.include_dirs.iter().map(|directory| directory.as_os_str());
    options.set_item(intern!(py, "include_dirs"), PyTuple::new(py, directories.collect::<Vec<_>>())?)?;
    if !source.headers.is_empty() {
        let headers = PyDict::new(py);
        source.headers.iter().try_for_each(|(name, content)| headers.set_item(name, content))?;
        options.set_item(intern!(py, "headers"), headers)?;
    }
    if let Some(architecture) = source.architecture {
        options.set_item(intern!(py, "architecture"), architecture.to_string())?;
    }
    options.set_item(intern!(py, "cache"), use_cache)
}

impl Launcher for Dispatcher {
    const TEXTS: ClassTexts = ClassTexts {
        class: "ConfiguredDispatcher",
        doc: c"A dispatcher with the shape of its launches. Call it with the arguments of the kernel to launch the overload for them,
compiled first if there is none.

It can be kept, compared, and used by several threads at a time.

Args:
    args: A value for each parameter: arrays of any library, and numbers of Python and NumPy.

Raises:
    CompileError: The overload cannot be compiled. Every thread that waits for it raises this; the next call tries again.
    TypeError: Arguments do not go together: a variable would be two things; or there is no C++ type for a data type.
    RuntimeError: The function that makes the overload needs that overload.
    What the function raises, and what calling a configured kernel raises.",
        member: c"dispatcher",
        member_doc: c"The dispatcher.",
    };
    const HAS_CYCLES: bool = true;

    fn class() -> &'static PyOnceLock<Py<PyType>> {
        static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        &CLASS
    }

    #[inline]
    fn launch(&self, py: Python<'_>, shape: &LaunchShape, args: &Args<'_, '_>) -> PyResult<()> {
        // References that are dropped on the way go at once: the caller has not told PyO3 that the thread is attached.
        Python::attach(|_| {
            let mut typed = Typed::new();
            self.look_at(py, args, &mut typed)?;
            let overload = typed.overload(py, &self.overloads, |typed| self.make(py, typed))?;
            place::launch_found(py, &overload.kernel.get().kernel, shape, args, &mut typed.found)
        })
    }

    fn is_same(this: &Py<Self>, other: &Py<Self>) -> bool {
        this.is(other)
    }

    fn hash(this: &Py<Self>, state: &mut DefaultHasher) {
        this.as_ptr().hash(state);
    }

    fn label(&self) -> &str {
        self.name().unwrap_or("of a function")
    }
}
