//! The CUDA driver: found and started when first asked for, never linked.
//!
//! Three layers: the declarations are cudarc's, `functions.rs` turns each into a method with a typed error, and the
//! rest of the crate builds owned types on those. Without a driver everything but its use works, and a function that an
//! older driver lacks is missed only by what calls it.

mod error;
mod functions;

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use cudarc::driver::sys;
use libloading::Library;

pub(crate) use error::code;
pub use error::{CudaError, CudaVersion, DriverError};
use functions::Functions;

use crate::Device;
use crate::unusual::Unusual;

/// The names that the driver's library is looked for under. The versioned name first: a file without a version may be
/// the toolkit's stub for linking, which has the functions but no driver behind them.
const LIBRARY_NAMES: [&str; 2] = ["libcuda.so.1", "libcuda.so"];

/// The oldest driver supported, CUDA 12.2, as `cuDriverGetVersion` says it.
const OLDEST_VERSION: i32 = 12_020;

static DRIVER: OnceLock<Result<Driver, DriverError>> = OnceLock::new();

/// The driver of this process, started.
#[derive(Debug)]
pub struct Driver {
    /// Never unloaded: what it holds would outlive it.
    library: &'static Library,
    functions: Functions,
    version: i32,
    devices: Box<[DeviceState]>,
}

/// What is known of a device once it is used.
#[derive(Debug, Default)]
pub(crate) struct DeviceState {
    /// The primary context, retained; 0 until then.
    context: AtomicUsize,
    /// Held while the context is being retained, so that this happens once.
    retaining: Mutex<()>,
}

impl Driver {
    /// The driver, loaded and initialised by the first call. A failure is remembered: asking again gives the same
    /// error.
    #[inline]
    pub fn get() -> Result<&'static Self, DriverError> {
        match DRIVER.get() {
            Some(Ok(driver)) if !Unusual::Forked.is_so() => Ok(driver),
            _ => Self::start(),
        }
    }

    #[cold]
    fn start() -> Result<&'static Self, DriverError> {
        match DRIVER.get_or_init(Self::load) {
            Ok(driver) => check_process().map(|()| driver),
            Err(error) => Err(error.clone()),
        }
    }

    fn load() -> Result<Self, DriverError> {
        let mut searched = Vec::new();
        let library = LIBRARY_NAMES
            .into_iter()
            // SAFETY: the initialisers of the driver's library expect nothing of who loads it; that is its makers' promise.
            .find_map(|name| unsafe { Library::new(name) }.map_err(|error| searched.push(reason(&error))).ok())
            .ok_or_else(|| DriverError::NoDriver { searched: searched.join("; ") })?;
        let library: &'static Library = Box::leak(Box::new(library));
        let functions = Functions::load(library);
        let mut driver = Self { library, functions, version: 0, devices: Box::default() };
        // SAFETY: no flags are defined.
        unsafe { driver.cuInit(0) }?;
        let mut version = 0;
        // SAFETY: the pointer is to a local variable.
        unsafe { driver.cuDriverGetVersion(&raw mut version) }?;
        driver.version = version;
        if driver.version < OLDEST_VERSION {
            return Err(DriverError::TooOld { found: driver.version.into(), needed: OLDEST_VERSION.into() });
        }
        let mut count = 0;
        // SAFETY: as above.
        unsafe { driver.cuDeviceGetCount(&raw mut count) }?;
        driver.devices = (0..count).map(|_| DeviceState::default()).collect();
        watch_for_fork();
        Ok(driver)
    }

    /// The version of CUDA that the driver is for, such as 12040 for 12.4.
    pub fn version(&self) -> i32 {
        self.version
    }

    /// The number of devices.
    pub fn device_count(&self) -> usize {
        self.devices.len()
    }

    /// The address of a function of the driver's, for callers that bring its declaration.
    ///
    /// `needed_for` ends the sentence "it is needed for …" of the error when the driver does not have the function.
    pub fn symbol(&self, name: &'static str, needed_for: &'static str) -> Result<NonNull<c_void>, DriverError> {
        // SAFETY: nothing is called; the symbol is only an address here, and the library is never unloaded.
        let symbol = unsafe { self.library.get::<*mut c_void>(name) };
        symbol.ok().and_then(|symbol| NonNull::new(*symbol)).ok_or_else(|| self.missing(name, needed_for))
    }

    /// Turns a code that a function of the driver's returned into a result. `call` is the name of the function.
    #[inline]
    pub fn check(&self, code: u32, call: &'static str) -> Result<(), DriverError> {
        if code == 0 { Ok(()) } else { Err(self.error(code, call)) }
    }

    #[cold]
    fn error(&self, code: u32, call: &'static str) -> DriverError {
        let (name, description) = functions::describe(self.library, code);
        DriverError::Cuda(CudaError { code, name, description, call })
    }

    #[cold]
    fn missing(&self, name: &'static str, needed_for: &'static str) -> DriverError {
        DriverError::MissingSymbol { name, driver_version: self.version.into(), needed_for }
    }

    /// The context that is current in this thread, a `CUcontext`; 0 without one.
    #[inline]
    pub fn current_context(&self) -> Result<usize, DriverError> {
        let mut context: sys::CUcontext = std::ptr::null_mut();
        // SAFETY: the pointer is to a local variable.
        unsafe { self.cuCtxGetCurrent(&raw mut context) }?;
        Ok(context as usize)
    }

    /// Whether the primary context of a device is current in this thread. If that cannot be told it is not.
    #[inline]
    pub(crate) fn is_current(&self, device: Device) -> bool {
        let state = self.devices.get(device.ordinal() as usize);
        let context = state.map_or(0, |state| state.context.load(Ordering::Acquire));
        context != 0 && self.current_context().is_ok_and(|current| current == context)
    }

    /// The device whose primary context this is, if it was retained here.
    #[inline]
    pub(crate) fn device_of(&self, context: usize) -> Option<Device> {
        let of = |state: &DeviceState| state.context.load(Ordering::Acquire) == context;
        // Those that were not retained have 0 for theirs.
        let ordinal = self.devices.iter().position(of).filter(|_| context != 0)?;
        u32::try_from(ordinal).ok().map(Device::new)
    }

    /// The primary context of a device, retained by the first call for the rest of the process.
    pub(crate) fn context(&self, device: Device) -> Result<sys::CUcontext, DriverError> {
        let ordinal = device.ordinal();
        let count = self.devices.len();
        let state = self.devices.get(ordinal as usize).ok_or(DriverError::NoSuchDevice { ordinal, count })?;
        let mut context = state.context.load(Ordering::Acquire);
        if context == 0 {
            let _guard = state.retaining.lock().unwrap_or_else(PoisonError::into_inner);
            context = state.context.load(Ordering::Acquire);
            if context == 0 {
                context = self.retain(device)?;
                state.context.store(context, Ordering::Release);
            }
        }
        Ok(context as sys::CUcontext)
    }

    fn retain(&self, device: Device) -> Result<usize, DriverError> {
        let mut context: sys::CUcontext = std::ptr::null_mut();
        // SAFETY: the pointer is to a local variable.
        unsafe { self.cuDevicePrimaryCtxRetain(&raw mut context, self.handle(device)?) }?;
        Ok(context as usize)
    }

    /// The driver's own number for a device.
    pub(crate) fn handle(&self, device: Device) -> Result<sys::CUdevice, DriverError> {
        let no_such_device = || DriverError::NoSuchDevice { ordinal: device.ordinal(), count: self.devices.len() };
        if device.ordinal() as usize >= self.devices.len() {
            return Err(no_such_device());
        }
        let mut handle = 0;
        let ordinal = device.ordinal().try_into().map_err(|_| no_such_device())?;
        // SAFETY: the pointer is to a local variable.
        unsafe { self.cuDeviceGet(&raw mut handle, ordinal) }?;
        Ok(handle)
    }
}

/// Why a library was not loaded, as the loader says it, with the name of the library.
fn reason(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

/// Fails in the child of a `fork` of the process that started the driver.
#[inline]
fn check_process() -> Result<(), DriverError> {
    if Unusual::Forked.is_so() { Err(DriverError::Forked) } else { Ok(()) }
}

/// Sees to it that a child of this process knows that it is one: the driver's state is not copied by a `fork`.
fn watch_for_fork() {
    extern "C" fn in_child() {
        Unusual::Forked.note();
    }
    // SAFETY: the handler only writes an atomic variable, which is allowed after a fork of a process with threads, and
    // it lives as long as the library that it is in: registration ends when that is unloaded. Out of memory is the only
    // failure; then a child gets the driver's own, less clear error.
    let _ = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn a_function_that_the_driver_lacks_is_named_by_what_needs_it() {
        // This program has none of the driver's functions.
        let program: &'static Library = Box::leak(Box::new(libloading::os::unix::Library::this().into()));
        let functions = Functions::load(program);
        let driver = Driver { library: program, functions, version: 12_020, devices: Box::default() };
        // SAFETY: nothing is called.
        let allocated = unsafe { driver.cuMemAllocAsync(std::ptr::null_mut(), 1, std::ptr::null_mut()) };
        expect!["the driver, which is for CUDA 12.2, has no function cuMemAllocAsync, which is needed for device memory in the order of a stream; update NVIDIA's driver"].assert_eq(&allocated.unwrap_err().to_string());
        let symbol = driver.symbol("cuLaunchKernelEx", "launches with clusters");
        expect!["the driver, which is for CUDA 12.2, has no function cuLaunchKernelEx, which is needed for launches with clusters; update NVIDIA's driver"].assert_eq(&symbol.unwrap_err().to_string());
        let unknown = driver.check(12_345, "cuMemAllocAsync").unwrap_err();
        expect!["cuMemAllocAsync failed with an error that the driver does not name (12345): no description; run again with CUDA_LAUNCH_BLOCKING=1 or under compute-sanitizer to find the cause"].assert_eq(&unknown.to_string());
    }
}
