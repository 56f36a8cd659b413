//! The kernel in the context that is current, and the stream of a launch.

use std::cell::RefCell;
use std::sync::OnceLock;

use cuwheel_device_array::Device;
use cuwheel_dispatcher::launch::{LoadedKernel, Signature, current_context};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::Fallback;
use super::class_kinds::Classes;
use super::stats::Reason;
use crate::object_memo::{Entry, ObjectMemo};

/// More contexts than a kernel is launched in: there is one for each device, and a new one after each reset.
const CONTEXTS: usize = 16;

/// If this variable is set to a number that is not 0, cuda.bindings takes stream 0 for the one of the thread.
const PER_THREAD_VARIABLE: &str = "CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM";

/// The handle of the per-thread default stream, `CU_STREAM_PER_THREAD`.
const PER_THREAD: usize = 2;

thread_local! {
    /// Stream objects for stream 0. Those for other streams can be closed, and are asked each time.
    static DEFAULT_STREAMS: RefCell<ObjectMemo<(), 8>> = const { RefCell::new(ObjectMemo::new()) };
}

/// The stream of a launch.
#[derive(Debug, Clone, Copy)]
pub(super) struct LaunchStream {
    /// The handle that the stream object has.
    pub(super) given: usize,
    /// The handle for the driver.
    pub(super) handle: usize,
}

/// A kernel in a context.
pub(super) struct InContext {
    pub(super) loaded: LoadedKernel,
    pub(super) device: Device,
    /// The device's key in numba-cuda's cache, and what is there: it keeps the kernel loaded.
    key: Py<PyAny>,
    function: Py<PyAny>,
}

/// A kernel in the contexts that it was launched in.
pub(super) struct Contexts {
    /// Where numba-cuda keeps the kernel of each device.
    cache: Py<PyDict>,
    found: [OnceLock<InContext>; CONTEXTS],
    default_stream: usize,
}

impl Contexts {
    pub(super) fn new(code_library: &Bound<'_, PyAny>) -> PyResult<Self> {
        let cache = code_library.getattr(intern!(code_library.py(), "_cufunc_cache"))?.cast_into::<PyDict>()?;
        let is_per_thread = std::env::var(PER_THREAD_VARIABLE).is_ok_and(|value| value.trim() != "0");
        let default_stream = if is_per_thread { PER_THREAD } else { 0 };
        Ok(Self { cache: cache.unbind(), found: [const { OnceLock::new() }; CONTEXTS], default_stream })
    }

    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.cache)?;
        for known in self.found.iter().filter_map(OnceLock::get) {
            visit.call(&known.key)?;
            visit.call(&known.function)?;
        }
        Ok(())
    }

    /// The kernel in the context that is current, if it was launched there.
    #[inline]
    pub(super) fn known(&self, py: Python<'_>) -> Result<Option<&InContext>, Fallback> {
        let Ok(context) = current_context() else { return Ok(None) };
        let known = self.found.iter().map_while(OnceLock::get).find(|known| known.loaded.context() == context);
        let Some(known) = known else { return Ok(None) };
        let is_cached = self.is_cached(py, known).map_err(|error| Fallback::of(py, error, Reason::Context))?;
        Ok(is_cached.then_some(known))
    }

    /// Whether numba-cuda would take the same kernel.
    #[inline]
    fn is_cached(&self, py: Python<'_>, known: &InContext) -> PyResult<bool> {
        Ok(self.cache.bind(py).get_item(&known.key)?.is_some_and(|function| function.is(&known.function)))
    }

    /// The kernel in the context that is current, or that numba-cuda makes current.
    #[cold]
    pub(super) fn find(&self, code_library: &Bound<'_, PyAny>, signature: &Signature) -> Result<&InContext, Fallback> {
        let py = code_library.py();
        let of = |error: PyErr| Fallback::of(py, error, Reason::Context);
        // As Python does: this makes a context current if there is none, and loads the kernel there.
        let function = code_library.call_method0(intern!(py, "get_cufunc")).map_err(of)?;
        let parts = || -> PyResult<(usize, String, Bound<'_, PyAny>, u32)> {
            let handle = function.getattr(intern!(py, "handle"))?.call_method0(intern!(py, "__int__"))?.extract()?;
            let name = function.getattr(intern!(py, "name"))?.extract()?;
            let key = function.getattr(intern!(py, "device"))?.getattr(intern!(py, "id"))?;
            let ordinal = key.extract()?;
            Ok((handle, name, key, ordinal))
        };
        let (handle, name, key, ordinal) = parts().map_err(of)?;
        // SAFETY: the object of the function keeps it loaded, and is kept beside the result.
        let (loaded, placed) = unsafe { LoadedKernel::find(handle, &name, signature) }.map_err(|_| Reason::Context)?;
        if placed != *signature {
            return Err(Reason::Type.into());
        }
        let context = loaded.context();
        let mut new =
            InContext { loaded, device: Device::new(ordinal), key: key.unbind(), function: function.unbind() };
        if !self.is_cached(py, &new).map_err(of)? {
            return Err(Reason::Context.into());
        }
        for place in &self.found {
            match place.set(new) {
                Ok(()) => return place.get().ok_or_else(|| Reason::Context.into()),
                Err(refused) => new = refused,
            }
            // Another thread was faster, or numba-cuda has loaded the kernel anew.
            if let Some(known) = place.get().filter(|known| known.loaded.context() == context)
                && known.function.is(&new.function)
            {
                return Ok(known);
            }
        }
        Err(Reason::Context.into())
    }

    /// The stream of a launch, out of a stream object of cuda.core.
    #[inline]
    pub(super) fn stream(&self, classes: &Classes, stream: &Bound<'_, PyAny>) -> Result<LaunchStream, Fallback> {
        let is_default = DEFAULT_STREAMS.try_with(|memo| memo.borrow().get(stream).is_some());
        if is_default == Ok(true) {
            return Ok(LaunchStream { given: 0, handle: self.default_stream });
        }
        if !classes.is_stream(stream) {
            return Err(Reason::Stream.into());
        }
        let py = stream.py();
        let pair = stream.call_method0(intern!(py, "__cuda_stream__")).and_then(|pair| pair.extract());
        let (_, given): (u64, usize) = pair.map_err(|error| Fallback::of(py, error, Reason::Stream))?;
        if given != 0 {
            return Ok(LaunchStream { given, handle: given });
        }
        if let Ok(entry) = Entry::new(stream, ()) {
            let replaced = DEFAULT_STREAMS.try_with(|memo| memo.borrow_mut().insert(entry));
            drop(replaced);
        }
        Ok(LaunchStream { given, handle: self.default_stream })
    }
}
