//! Kernels that another library has loaded, in the context that it uses them in.
//!
//! Not for modules of our own: those are [`Module`](super::Module)s, whose contexts are known. Here the context is whatever
//! is current, and the driver's number for it is what tells it apart from an earlier one at the same address.

use cudarc::driver::sys;
use cuwheel_device_array::{DriverError, unaffected_by_captures};

use super::driver::Api;
use super::kernel::{layout, submit};
use super::{Arguments, LaunchConfig, LaunchError, Signature};

/// The driver's number for a context, which it gives no other one until the process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextId(u64);

/// The current context of this thread.
///
/// # Errors
/// `CUDA_ERROR_INVALID_CONTEXT` if there is none; a missing symbol with a driver for a CUDA older than 12.0.
#[inline]
pub fn current_context() -> Result<ContextId, DriverError> {
    let mut id = 0;
    // SAFETY: no context stands for the current one, and the pointer is to a local variable.
    unsafe { Api::get()?.cuCtxGetId(std::ptr::null_mut(), &raw mut id) }?;
    Ok(ContextId(id))
}

/// A kernel that another library has loaded, in one context.
#[derive(Debug)]
pub struct LoadedKernel {
    function: usize,
    context: ContextId,
}

impl LoadedKernel {
    /// The kernel in `context`, which has to be the current one, and its parameters where the kernel has them, if they are as many and as large as
    /// those of `signature`.
    ///
    /// # Errors
    /// `Signature` if the kernel has other parameters; `Driver` if another context is current, or the driver does not tell
    /// the parameters (before CUDA 12.4).
    ///
    /// # Safety
    /// `kernel` is a `CUkernel` that stays loaded for as long as the result is used.
    pub unsafe fn find(
        kernel: usize,
        context: usize,
        name: &str,
        signature: &Signature,
    ) -> Result<(Self, Signature), LaunchError> {
        let api = Api::get()?;
        if api.current_context()? != context {
            return Err(api.invalid_context("cuCtxGetCurrent").into());
        }
        let context = current_context()?;
        let kernel = kernel as sys::CUkernel;
        let mut parameters = Ok(Vec::new());
        let mut function: sys::CUfunction = std::ptr::null_mut();
        unaffected_by_captures(|| {
            parameters = layout(api, kernel);
            // SAFETY: the pointer is to a local variable, and the kernel is loaded, as the caller promises.
            unsafe { api.cuKernelGetFunction(&raw mut function, kernel) }
        })?;
        let placed = signature.at(&parameters?, name)?;
        Ok((Self { function: function as usize, context }, placed))
    }

    /// The context.
    #[inline]
    pub fn context(&self) -> ContextId {
        self.context
    }

    /// Puts a launch on a stream.
    ///
    /// # Safety
    /// The kernel's context is current. The arguments are what the kernel takes: addresses of memory that the device can
    /// use until the launch is done, with as many elements as the kernel touches. `stream` is a handle of the context's, or
    /// that of a default stream.
    #[inline]
    pub unsafe fn launch(
        &self,
        arguments: &Arguments,
        config: &LaunchConfig,
        stream: usize,
    ) -> Result<(), DriverError> {
        // SAFETY: as the caller promises.
        unsafe { submit(Api::get()?, self.function, arguments.bytes(), config, stream) }
    }
}
