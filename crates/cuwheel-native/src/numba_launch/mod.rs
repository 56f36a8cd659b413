//! Launches of numba-cuda's kernels without Python code in between.
//!
//! [`attach`] gives a kernel, an instance of `_Kernel` of numba-cuda 0.30, a `launch` of its own: it puts the arguments in
//! place and calls the driver. Whether it can is decided at each launch, and what it cannot do goes to the `launch` of the
//! class unchanged. Which launches these are is in docs/overlay.md. The kernel's dispatcher gets a `call` of its own, which
//! does what leads to the launch as well where nothing is new ([`call`]).

mod call;
mod class_kinds;
mod described;
mod in_context;
mod method;
mod pack;
mod plan;
mod released;
mod stats;
mod strided_view;

use std::sync::OnceLock;

use cuwheel_dispatcher::launch::{Arguments, Extent, LaunchAttributes, LaunchConfig};
use cuwheel_exchange::ProducerStream;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyList, PyListMethods, PyTuple};
use pyo3::{ffi, intern};

use class_kinds::Classes;
pub(crate) use described::{DescribedArray, DescribedArrays};
use in_context::{Contexts, InContext};
use pack::{Packing, Producers};
use plan::Plan;
use released::Released;
pub(crate) use released::note as note_release;
use stats::Reason;

use crate::dispatcher::Dispatcher;
use crate::exception;

/// If this environment variable is `0` when the first kernel is compiled or loaded, Python launches all.
pub(crate) const LAUNCH_VARIABLE: &str = "CUWHEEL_NUMBA_LAUNCH";

/// Why a launch does not go on here.
enum Fallback {
    /// It is left to Python.
    Python(Reason),
    /// Something that must not be swallowed was raised, such as an interrupt.
    Raised(PyErr),
}

impl From<Reason> for Fallback {
    fn from(reason: Reason) -> Self {
        Self::Python(reason)
    }
}

impl Fallback {
    /// An exception: Python will raise it again, if it says no more than that something did not work out.
    fn of(py: Python<'_>, error: PyErr, reason: Reason) -> Self {
        if exception::is_ordinary(py, &error) { Self::Python(reason) } else { Self::Raised(error) }
    }
}

/// What a kernel needs to be launched. Its method is a function of Python that has this as its `self`.
#[pyclass(frozen, module = "_dispatcher")]
pub(super) struct NativeLaunch {
    kernel: Py<PyAny>,
    /// The attributes of the kernel.
    attributes: Py<PyDict>,
    /// Where numba-cuda finds the kernel of each device.
    code_library: Py<PyAny>,
    /// `None` if there is a parameter that only Python passes on.
    plan: Option<Plan>,
    classes: &'static Classes,
    released: &'static Released,
    contexts: Contexts,
}

/// Gives a kernel of numba-cuda a `launch` of its own, and its dispatcher a `call`, if that is not turned off. Other objects
/// are left as they are.
pub(super) fn attach(dispatcher: &Bound<'_, Dispatcher>, kernel: &Bound<'_, PyAny>) -> PyResult<()> {
    let Some(released) = Released::get(kernel.py()).filter(|_| is_enabled()) else { return Ok(()) };
    if !released.is_kernel(kernel) {
        return Ok(());
    }
    match attached(released, kernel).and_then(|()| call::attach(released, dispatcher)) {
        // It is no kernel as it is known here: Python launches it.
        Err(error) if !exception::is_ordinary(kernel.py(), &error) => Err(error),
        _ => Ok(()),
    }
}

/// Asked once: another thread may change variables meanwhile.
fn is_enabled() -> bool {
    static ENABLED: OnceLock<bool> = OnceLock::new();
    *ENABLED.get_or_init(|| std::env::var_os(LAUNCH_VARIABLE).is_none_or(|value| value != "0"))
}

fn attached(released: &'static Released, kernel: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = kernel.py();
    let attributes = kernel.getattr(intern!(py, "__dict__"))?.cast_into::<PyDict>()?;
    let name = intern!(py, "launch");
    if attributes.contains(name)? {
        return Ok(());
    }
    let plan = Plan::new(released.types.bind(py), &kernel.getattr(intern!(py, "argument_types"))?)?;
    let code_library = kernel.getattr(intern!(py, "_codelibrary"))?;
    let launch = NativeLaunch {
        kernel: kernel.clone().unbind(),
        contexts: Contexts::new(&code_library)?,
        released,
        classes: Classes::get(py)?,
        code_library: code_library.unbind(),
        attributes: attributes.clone().unbind(),
        plan,
    };
    attributes.set_item(name, method::of_launch(&Bound::new(py, launch)?)?)
}

/// Return how many launches of the kernels that have a `launch` of this library took which way.
///
/// Returns:
///     A dictionary: "native" is the number of launches that no Python code had a part in, "python" a dictionary with the
///     number of the others by their reason.
#[pyfunction]
#[pyo3(signature = ())]
pub(super) fn launch_stats(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    stats::dictionary(py)
}

/// The arguments of `launch`, where all are given by position.
struct Call<'a, 'py> {
    args: Borrowed<'a, 'py, PyAny>,
    grid: Borrowed<'a, 'py, PyAny>,
    block: Borrowed<'a, 'py, PyAny>,
    stream: Borrowed<'a, 'py, PyAny>,
    shared_bytes: Borrowed<'a, 'py, PyAny>,
}

/// What a launch may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Ask Python for what is not known yet.
    Ask,
    /// Run no Python code: what is not known yet is a reason to leave the launch to Python.
    NothingNew,
}

impl NativeLaunch {
    /// Launches, or says why not.
    fn launch(
        &self,
        py: Python<'_>,
        call: &Call<'_, '_>,
        mode: Mode,
        described: &[DescribedArray],
    ) -> Result<(), Fallback> {
        self.check(py, mode)?;
        let plan = self.plan.as_ref().ok_or(Reason::Type)?;
        let args = call.args.cast_exact::<PyTuple>().map_err(|_| Reason::Call)?;
        if args.len() != plan.steps.len() {
            return Err(Reason::Call.into());
        }
        let config = config(call).ok_or(Reason::Configuration)?;
        let mut arguments = Arguments::empty();
        arguments.clear_for(&plan.signature);
        let mut packing = Packing {
            classes: self.classes,
            mode,
            arguments: &mut arguments,
            parameters: plan.signature.parameters().iter(),
            producers: Producers::new(),
            streams: ProducerStream::default(),
            described,
        };
        for (step, value) in plan.steps.iter().zip(args.iter_borrowed()) {
            packing.add(step, value)?;
        }
        let producers = packing.producers;
        // After the arguments: those of some classes run code, which may close the stream or change the context.
        let stream = self.contexts.stream(self.classes, &call.stream)?;
        let InContext { loaded, device, .. } = match (self.contexts.known(py)?, mode) {
            (Some(known), _) => known,
            (None, Mode::Ask) => self.contexts.find(self.code_library.bind(py), &plan.signature)?,
            (None, Mode::NothingNew) => return Err(Reason::Context.into()),
        };
        if producers.iter().any(|(on, _)| on != device) {
            return Err(Reason::Argument.into());
        }
        py.detach(|| {
            stream.wait_for(&producers, *device)?;
            // SAFETY: the kernel was found in the context that is current. The arguments are what numba-cuda would have
            // passed for these objects, which the caller keeps alive; the stream is one that cuda.core vouches for.
            unsafe { loaded.launch(&arguments, &config, stream.handle) }
        })
        .map_err(|_| Reason::Driver.into())
    }

    /// Whether the kernel is one of those that are launched here, as it is now.
    fn check(&self, py: Python<'_>, mode: Mode) -> Result<(), Fallback> {
        let of = |error: PyErr, reason| Fallback::of(py, error, reason);
        let is_released = self.released.is_kernel(self.kernel.bind(py));
        if !is_released || !self.released.launches(py).map_err(|error| of(error, Reason::Replaced))? {
            return Err(Reason::Replaced.into());
        }
        let attributes = self.attributes.bind(py);
        for (name, reason) in [(intern!(py, "debug"), Reason::Debug), (intern!(py, "cooperative"), Reason::Cooperative)]
        {
            let is_set = |value: Bound<'_, PyAny>| {
                let runs_no_code = value.is_exact_instance_of::<PyBool>() || value.is_exact_instance_of::<PyInt>();
                if runs_no_code || mode == Mode::Ask { value.is_truthy() } else { Ok(true) }
            };
            let is_set = attributes.get_item(name).and_then(|value| value.map_or(Ok(true), is_set));
            if is_set.map_err(|error| of(error, reason))? {
                return Err(reason.into());
            }
        }
        let extensions =
            attributes.get_item(intern!(py, "extensions")).map_err(|error| of(error, Reason::Extensions))?;
        match extensions {
            Some(extensions) if extensions.cast_exact::<PyList>().is_ok_and(PyListMethods::is_empty) => Ok(()),
            _ => Err(Reason::Extensions.into()),
        }
    }
}

#[pymethods]
impl NativeLaunch {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.kernel)?;
        visit.call(&self.attributes)?;
        visit.call(&self.code_library)?;
        self.contexts.traverse(&visit)
    }
}

/// The shape of the launch, if it is one that cuda.core takes as it is.
#[inline]
fn config(call: &Call<'_, '_>) -> Option<LaunchConfig> {
    let shared_bytes = size(&call.shared_bytes)?;
    let (grid, block) = (extent("grid", call.grid)?, extent("block", call.block)?);
    Some(LaunchConfig {
        grid,
        block,
        shared_bytes,
        cluster: None,
        cooperative: false,
        attributes: LaunchAttributes::NONE,
    })
}

#[inline]
fn extent(what: &'static str, sizes: Borrowed<'_, '_, PyAny>) -> Option<Extent> {
    let sizes = sizes.cast_exact::<PyTuple>().ok().filter(|sizes| sizes.len() == 3)?;
    let mut numbers = [0; 3];
    for (number, value) in numbers.iter_mut().zip(sizes.iter_borrowed()) {
        *number = size(&value)?;
    }
    Extent::new(what, &numbers).ok()
}

/// An exact integer that a launch can have.
#[inline]
fn size(value: &Bound<'_, PyAny>) -> Option<u32> {
    if !value.is_exact_instance_of::<PyInt>() {
        return None;
    }
    // SAFETY: the thread is attached, as the type of `value` witnesses, which is an `int`.
    let number = unsafe { ffi::PyLong_AsLongLong(value.as_ptr()) };
    if number == -1 {
        // It is -1, or too large.
        drop(PyErr::take(value.py()));
        return None;
    }
    u32::try_from(number).ok()
}
