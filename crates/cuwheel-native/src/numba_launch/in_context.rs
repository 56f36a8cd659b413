//! The kernel in the context that is current, and the stream of a launch.

use std::cell::RefCell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use cuwheel_device_array::{Classified, Device, DriverError, Stream};
use cuwheel_dispatcher::launch::{LaunchError, LoadedKernel, Signature, current_context};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::Fallback;
use super::class_kinds::Classes;
use super::pack::Producers;
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

impl LaunchStream {
    /// Makes the stream wait for the streams that arrays are worked on, as far as they are others.
    pub(super) fn wait_for(self, producers: &Producers, device: Device) -> Result<(), DriverError> {
        for producer in producers.iter().filter_map(|(_, stream)| stream.as_ref()) {
            // numba-cuda compares the numbers, whatever they stand for.
            if producer.handle() != self.given {
                // SAFETY: the stream is the one of the launch, whose owner the caller has in its hands.
                let stream = unsafe { Stream::borrowed(self.handle, None) };
                stream.order_after(device, producer, device)?;
            }
        }
        Ok(())
    }
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
    /// Whether the kernel cannot be launched here, in whichever context.
    is_refused: AtomicBool,
    default_stream: usize,
}

impl Contexts {
    pub(super) fn new(code_library: &Bound<'_, PyAny>) -> PyResult<Self> {
        let cache = code_library.getattr(intern!(code_library.py(), "_cufunc_cache"))?.cast_into::<PyDict>()?;
        Ok(Self {
            cache: cache.unbind(),
            found: [const { OnceLock::new() }; CONTEXTS],
            is_refused: AtomicBool::new(false),
            default_stream: default_stream(),
        })
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
        for known in self.found.iter().map_while(OnceLock::get).filter(|known| known.loaded.context() == context) {
            if self.is_cached(py, known).map_err(|error| Fallback::of(py, error, Reason::Context))? {
                return Ok(Some(known));
            }
        }
        Ok(None)
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
        if self.is_refused.load(Ordering::Relaxed) {
            return Err(Reason::Context.into());
        }
        let of = |error: PyErr| Fallback::of(py, error, Reason::Context);
        // As Python does: this makes a context current if there is none, and loads the kernel there.
        let function = code_library.call_method0(intern!(py, "get_cufunc")).map_err(of)?;
        let number = |object: Bound<'_, PyAny>| object.call_method0(intern!(py, "__int__"))?.extract::<usize>();
        let parts = || -> PyResult<_> {
            let context = function.getattr(intern!(py, "module"))?.getattr(intern!(py, "context"))?;
            let (handle, name) = (number(function.getattr(intern!(py, "handle"))?)?, function.getattr("name")?);
            let key = context.getattr(intern!(py, "device"))?.getattr(intern!(py, "id"))?;
            let ordinal: u32 = key.extract()?;
            Ok((handle, name.extract::<String>()?, number(context.getattr(intern!(py, "handle"))?)?, key, ordinal))
        };
        let (handle, name, context, key, ordinal) = parts().map_err(of)?;
        // SAFETY: the object of the function keeps it loaded, and is kept beside the result.
        let found = py.detach(|| unsafe { LoadedKernel::find(handle, context, &name, signature) });
        let (loaded, placed) = match found {
            Ok(found) => found,
            Err(error) => return Err(self.refuse(&error)),
        };
        if placed != *signature {
            self.is_refused.store(true, Ordering::Relaxed);
            return Err(Reason::Context.into());
        }
        let new = InContext { loaded, device: Device::new(ordinal), key: key.unbind(), function: function.unbind() };
        if !self.is_cached(py, &new).map_err(of)? {
            return Err(Reason::Context.into());
        }
        self.keep(new)
    }

    /// Keeps a kernel in a context for the launches to come.
    fn keep(&self, mut new: InContext) -> Result<&InContext, Fallback> {
        for place in &self.found {
            match place.set(new) {
                Ok(()) => return place.get().ok_or_else(|| Reason::Context.into()),
                Err(refused) => new = refused,
            }
            // Another thread was faster, or numba-cuda has loaded the kernel anew.
            if let Some(known) = place.get().filter(|known| known.loaded.context() == new.loaded.context())
                && known.function.is(&new.function)
            {
                return Ok(known);
            }
        }
        self.is_refused.store(true, Ordering::Relaxed);
        Err(Reason::Context.into())
    }

    /// Remembers what will not be different the next time.
    fn refuse(&self, error: &LaunchError) -> Fallback {
        /// `CUDA_ERROR_NOT_FOUND` and `CUDA_ERROR_NOT_SUPPORTED`: the driver does not tell the parameters.
        const DOES_NOT_TELL: [u32; 2] = [500, 801];
        let is_final = error.cuda_error().is_none_or(|error| DOES_NOT_TELL.contains(&error.code));
        self.is_refused.fetch_or(is_final, Ordering::Relaxed);
        Reason::Context.into()
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

/// The handle that stream 0 stands for. cuda.bindings asks once, too.
fn default_stream() -> usize {
    static HANDLE: OnceLock<usize> = OnceLock::new();
    *HANDLE.get_or_init(|| {
        let number = std::env::var(PER_THREAD_VARIABLE).ok().and_then(|value| value.trim().parse::<i64>().ok());
        if number.unwrap_or(0) == 0 { 0 } else { PER_THREAD }
    })
}
