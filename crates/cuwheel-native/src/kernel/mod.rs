//! The Python module `_kernel`: images of device code, their kernels, and launches.
//!
//! This file has the classes; the files beside it turn arguments of Python into what `cuwheel_dispatcher::launch` takes,
//! where the work is done.

#![expect(clippy::needless_pass_by_value, reason = "arguments of Python functions are converted, and then owned")]
#![expect(clippy::doc_markdown, reason = "the comments on functions and classes are their Python docstrings too")]

mod argument_type;
mod attributes;
mod compile;
mod configure;
mod configured;
mod dispatch;
mod module;
mod overload;
mod pack;
mod place;
mod scalar;
mod small_float;
mod source;
mod usual;

use std::hash::{DefaultHasher, Hash, Hasher};

use cuwheel_device_array::Device;
use cuwheel_dispatcher::launch::{self, Signature};
use cuwheel_exchange::{StreamArgument, exception_of};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};

use self::attributes::Attributes;
use self::configure::{LaunchShape, SharedBytes};
use self::configured::{Args, ClassTexts, Configured, Idle, Launcher};
use self::module::PyModuleOfKernels;
use crate::devicearray::DeviceArgument;
use crate::submodule::{Submodule, add_class};

/// The module, as the library's table of modules lists it.
pub(crate) const SUBMODULE: Submodule = Submodule { name: "_kernel", populate };

fn populate(module: &Bound<'_, PyModule>) -> PyResult<()> {
    add_class::<PyModuleOfKernels>(module, SUBMODULE.name)?;
    add_class::<PyKernel>(module, SUBMODULE.name)?;
    configured::add_class::<PyKernel>(module)?;
    add_class::<argument_type::ArgumentType>(module, SUBMODULE.name)?;
    add_class::<dispatch::Dispatcher>(module, SUBMODULE.name)?;
    configured::add_class::<dispatch::Dispatcher>(module)?;
    compile::add_error(module)?;
    module.add_function(wrap_pyfunction!(dispatch::_rebuild_dispatcher, module)?)?;
    module.add_function(wrap_pyfunction!(module::_rebuild, module)?)
}

/// A kernel of a module: `kernel[grid, block](*arguments)` launches it.
///
/// `kernel[grid, block, stream, shared_bytes]` names a stream too, and dynamic shared memory. Kernels are equal if their
/// images, names and signatures are, and are pickled with their images.
#[pyclass(frozen, name = "Kernel", module = "_kernel", eq, hash, weakref)]
#[derive(Debug)]
struct PyKernel {
    kernel: launch::Kernel,
    module: Py<PyModuleOfKernels>,
    idle: Idle,
}

impl PartialEq for PyKernel {
    fn eq(&self, other: &Self) -> bool {
        self.kernel == other.kernel
    }
}

impl Hash for PyKernel {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.kernel.hash(state);
    }
}

#[pymethods]
impl PyKernel {
    fn __getitem__<'py>(slf: Bound<'py, Self>, brackets: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        Configured::in_brackets(slf, brackets)
    }

    /// Return the kernel with the shape of its launches, to be called with the arguments.
    ///
    /// Args:
    ///     grid: The number of blocks: an integer, or up to three for x, y and z.
    ///     block: The number of threads in each block, in the same way.
    ///     stream: A stream of any library, or an integer handle; by default the one that the producers of the arrays
    ///         work on.
    ///     shared_bytes: Bytes of dynamic shared memory for each block.
    ///     cluster: The number of blocks in each cluster, for launches with clusters.
    ///     cooperative: Whether all blocks run at the same time, and can wait for each other.
    ///     attributes: What else the driver is told, a dictionary of these: "priority" (an integer),
    ///         "programmatic_stream_serialization" (a bool), "cluster_scheduling_policy_preference" ("default", "spread" or
    ///         "load_balancing"), "mem_sync_domain" ("default" or "remote"), "mem_sync_domain_map" (a pair of integers),
    ///         "preferred_cluster_dimension" (as `cluster`), "preferred_shared_memory_carveout" (percent),
    ///         "nvlink_util_centric_scheduling" (a bool). What the kernel itself is like is told by the method of the same
    ///         name.
    ///     release_gil: Whether other threads of Python run while the driver is called. Holding the GIL saves about 0.1 µs of
    ///         a launch, and the process hangs if the driver waits for room in its queue, which some thousand launches fill,
    ///         while a host function in that queue waits for the GIL.
    ///
    /// Raises:
    ///     ValueError: A size is zero, negative or too large; an attribute has another name or value.
    ///     TypeError: `stream` is no stream; an attribute is of another type.
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

    /// Launch the kernel once.
    ///
    /// Args:
    ///     args: The arguments of the kernel, a tuple.
    ///     grid, block, stream, shared_bytes, cluster, cooperative, attributes, release_gil: As for `configure`.
    ///
    /// Raises:
    ///     What calling a configured kernel raises.
    #[pyo3(signature = (args, *, grid, block, stream = None, shared_bytes = SharedBytes(0), cluster = None,
                        cooperative = false, attributes = None, release_gil = true),
           text_signature = "($self, args, *, grid, block, stream=None, shared_bytes=0, cluster=None, cooperative=False, \
                             attributes=None, release_gil=True)")]
    #[expect(clippy::too_many_arguments, reason = "each is an argument of the Python function")]
    fn launch(
        slf: Bound<'_, Self>,
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
        place::launch(args.py(), &slf.get().kernel, &shape, &configured::arguments(args))
    }

    /// Return what the driver says of the kernel on a device, as a dictionary: "max_threads_per_block", "shared_bytes",
    /// "const_bytes", "local_bytes", "registers", "ptx_version", "binary_version".
    ///
    /// Args:
    ///     device: The device; that of the thread's current context by default.
    ///
    /// Raises:
    ///     CudaError: The image has no such kernel, or no code for the device; or there is no driver that can be used.
    ///     ValueError: The signature is not the kernel's, or there is no such device.
    #[pyo3(signature = (device = None, /))]
    fn attributes<'py>(&self, py: Python<'py>, device: Option<DeviceArgument>) -> PyResult<Bound<'py, PyDict>> {
        let device =
            device.map_or_else(Device::current, |device| Ok(device.0)).map_err(|error| exception_of(py, error))?;
        let attributes = py.detach(|| self.kernel.attributes(device)).map_err(|error| exception_of(py, error))?;
        let result = PyDict::new(py);
        result.set_item(intern!(py, "max_threads_per_block"), attributes.max_threads_per_block)?;
        result.set_item(intern!(py, "shared_bytes"), attributes.shared_bytes)?;
        result.set_item(intern!(py, "const_bytes"), attributes.const_bytes)?;
        result.set_item(intern!(py, "local_bytes"), attributes.local_bytes)?;
        result.set_item(intern!(py, "registers"), attributes.registers)?;
        result.set_item(intern!(py, "ptx_version"), attributes.ptx_version)?;
        result.set_item(intern!(py, "binary_version"), attributes.binary_version)?;
        Ok(result)
    }

    /// The name in the image.
    #[getter]
    fn name(&self) -> &str {
        self.kernel.name()
    }

    /// The module.
    #[getter]
    fn module(&self, py: Python<'_>) -> Py<PyModuleOfKernels> {
        self.module.clone_ref(py)
    }

    /// The signature that was given, a tuple of texts; or None.
    #[getter]
    fn signature<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.kernel.given_signature().map(|signature| PyTuple::new(py, source::texts(signature))).transpose()
    }

    /// Offset and size in bytes of each parameter, in the order of the parameters.
    ///
    /// Raises:
    ///     CudaError, ValueError: As for `attributes`; or there is no signature, and the driver does not tell.
    #[getter]
    fn layout<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let signature: &Signature = py.detach(|| self.kernel.signature()).map_err(|error| exception_of(py, error))?;
        let place = |parameter: &launch::Parameter| (parameter.offset_bytes, parameter.kind.size_bytes());
        PyTuple::new(py, signature.parameters().iter().map(place))
    }

    fn __repr__(&self) -> String {
        match self.kernel.given_signature() {
            Some(signature) => format!("<Kernel {}({})>", self.kernel.name(), source::texts(signature).join(", ")),
            None => format!("<Kernel {}>", self.kernel.name()),
        }
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let py = slf.py();
        let this = slf.get();
        let state = (this.kernel.name(), this.signature(py)?);
        (this.module.bind(py).getattr(intern!(py, "kernel"))?, state).into_pyobject(py)
    }
}

impl Launcher for PyKernel {
    const TEXTS: ClassTexts = ClassTexts {
        class: "ConfiguredKernel",
        doc: c"A kernel with the shape of its launches. Call it with the arguments of the kernel to launch it.

It can be kept, compared, and used by several threads at a time.

Args:
    args: A value for each parameter: arrays of any library, and numbers of Python and NumPy.

Raises:
    TypeError: There are more or fewer arguments than parameters, or one is of another type than its parameter.
    OverflowError: A number does not fit its parameter.
    ValueError: An array is read-only, or in host memory, or on another device than the others; the grid or the block
        exceeds a limit, which the message names; the signature is not the kernel's.
    BufferError: An array cannot be described.
    CudaError: The driver refuses the launch, or the image.",
        member: c"kernel",
        member_doc: c"The kernel.",
    };
    const HAS_CYCLES: bool = false;

    fn class() -> &'static PyOnceLock<Py<PyType>> {
        static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        &CLASS
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "it is called where Python calls, and nowhere else")]
    fn launch(&self, py: Python<'_>, shape: &LaunchShape, args: &Args<'_, '_>) -> PyResult<()> {
        match usual::launch(py, &self.kernel, shape, args) {
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => Err(exception_of(py, *error)),
            None => place::launch(py, &self.kernel, shape, args),
        }
    }

    #[inline]
    fn idle(&self) -> Option<&Idle> {
        Some(&self.idle)
    }

    fn is_same(this: &Py<Self>, other: &Py<Self>) -> bool {
        this.get() == other.get()
    }

    fn hash(this: &Py<Self>, state: &mut DefaultHasher) {
        this.get().kernel.hash(state);
    }

    fn label(&self) -> &str {
        self.kernel.name()
    }
}
