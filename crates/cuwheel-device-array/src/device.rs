//! Devices: their primary contexts, made current when needed, and what the driver says of them.

use std::ffi::CStr;
use std::fmt;
use std::marker::PhantomData;

use cudarc::driver::sys;

use crate::memory::deferred;
use crate::{Driver, DriverError};

/// A device, by the number that the driver gives it in this process, starting at zero.
///
/// A value of this type does not promise that there is such a device; what needs the device says so when there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Device {
    ordinal: u32,
}

impl Device {
    /// The device with this number.
    #[inline]
    pub const fn new(ordinal: u32) -> Self {
        Self { ordinal }
    }

    /// The number of the device.
    #[inline]
    pub const fn ordinal(self) -> u32 {
        self.ordinal
    }

    /// The device whose context is current in this thread; device 0 when there is none.
    #[inline]
    pub fn current() -> Result<Self, DriverError> {
        let driver = Driver::get()?;
        let context = driver.current_context()?;
        if context == 0 {
            return Ok(Self::new(0));
        }
        match driver.device_of(context) {
            Some(device) => Ok(device),
            None => Self::of_current_context(driver),
        }
    }

    /// As [`current`](Self::current), by what the driver says of the context.
    #[cold]
    fn of_current_context(driver: &Driver) -> Result<Self, DriverError> {
        let mut handle = 0;
        // SAFETY: the pointer is to a local variable.
        unsafe { driver.cuCtxGetDevice(&raw mut handle) }?;
        let devices = (0..u32::MAX).take(driver.device_count()).map(Self::new);
        for device in devices {
            if driver.handle(device)? == handle {
                return Ok(device);
            }
        }
        Ok(Self::new(0))
    }

    /// The number of devices that this process sees.
    pub fn count() -> Result<usize, DriverError> {
        Driver::get().map(Driver::device_count)
    }

    /// Makes the device's primary context current in this thread until the guard is dropped.
    ///
    /// The context is retained once and kept for the life of the process, as the CUDA runtime and other libraries do,
    /// so that memory and streams can be shared with them. Also reports an error that was deferred.
    pub fn enter(self) -> Result<ContextGuard, DriverError> {
        let driver = Driver::get()?;
        deferred::surface()?;
        self.enter_quietly(driver)
    }

    /// As [`enter`](Self::enter), for what is done often: a thread without a context keeps that of device 0 for good, which
    /// is the one that it would get anyway, so that nothing has to be changed the next time.
    #[inline]
    pub fn enter_often(self) -> Result<ContextGuard, DriverError> {
        let driver = Driver::get()?;
        deferred::surface()?;
        if driver.is_current(self) { Ok(ContextGuard::NOTHING_PUSHED) } else { self.enter_and_stay(driver) }
    }

    /// The device whose context is current in this thread, or device 0 when there is none, with its primary context made
    /// current as by [`enter_often`](Self::enter_often).
    #[inline]
    pub fn enter_current() -> Result<(Self, ContextGuard), DriverError> {
        let driver = Driver::get()?;
        deferred::surface()?;
        if let Some(device) = driver.device_of(driver.current_context()?) {
            return Ok((device, ContextGuard::NOTHING_PUSHED));
        }
        let device = Self::current()?;
        Ok((device, device.enter_often()?))
    }

    #[cold]
    fn enter_and_stay(self, driver: &'static Driver) -> Result<ContextGuard, DriverError> {
        let guard = self.enter_quietly(driver)?;
        if self.ordinal != 0 || guard.pushed.is_none() || !guard.was_none {
            return Ok(guard);
        }
        // What was pushed stays.
        std::mem::forget(guard);
        Ok(ContextGuard::NOTHING_PUSHED)
    }

    /// As [`enter`](Self::enter), for destructors: it leaves deferred errors for the next call that can return them.
    pub(crate) fn enter_quietly(self, driver: &'static Driver) -> Result<ContextGuard, DriverError> {
        let context = driver.context(self)?;
        let current = driver.current_context()?;
        if current == context as usize {
            return Ok(ContextGuard::NOTHING_PUSHED);
        }
        // SAFETY: a primary context that was retained, and is never released.
        unsafe { driver.cuCtxPushCurrent_v2(context) }?;
        Ok(ContextGuard { pushed: Some(driver), was_none: current == 0, not_send: PhantomData })
    }

    /// The name, such as `NVIDIA H200`.
    pub fn name(self) -> Result<String, DriverError> {
        let driver = Driver::get()?;
        let mut name = [0_u8; 256];
        // SAFETY: the pointer and the length are those of a local array.
        unsafe { driver.cuDeviceGetName(name.as_mut_ptr().cast(), 256, driver.handle(self)?) }?;
        Ok(CStr::from_bytes_until_nul(&name).map(|name| name.to_string_lossy().into_owned()).unwrap_or_default())
    }

    /// Major and minor compute capability, such as (9, 0).
    pub fn compute_capability(self) -> Result<(i32, i32), DriverError> {
        use sys::CUdevice_attribute_enum as Attribute;
        let major = self.attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        let minor = self.attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        Ok((major, minor))
    }

    fn attribute(self, attribute: sys::CUdevice_attribute) -> Result<i32, DriverError> {
        let driver = Driver::get()?;
        let mut value = 0;
        // SAFETY: the pointer is to a local variable.
        unsafe { driver.cuDeviceGetAttribute(&raw mut value, attribute, driver.handle(self)?) }?;
        Ok(value)
    }

    /// The bytes of memory that are free and that there are in all.
    pub fn memory(self) -> Result<(usize, usize), DriverError> {
        let _guard = self.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: the pointers are to local variables.
        unsafe { Driver::get()?.cuMemGetInfo_v2(&raw mut free, &raw mut total) }?;
        Ok((free, total))
    }
}

impl fmt::Display for Device {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "device {}", self.ordinal)
    }
}

/// Keeps a device's context current in the thread that made it; the one before is current again when it is dropped.
#[derive(Debug)]
#[must_use = "the context is current only while the guard lives"]
pub struct ContextGuard {
    /// The driver, if the context was not current already.
    pushed: Option<&'static Driver>,
    /// Whether no context was current before.
    was_none: bool,
    /// What is current is a matter of the thread.
    not_send: PhantomData<*const ()>,
}

impl ContextGuard {
    /// Of a context that was current already.
    const NOTHING_PUSHED: Self = Self { pushed: None, was_none: false, not_send: PhantomData };
}

impl Drop for ContextGuard {
    #[inline]
    fn drop(&mut self) {
        if let Some(driver) = self.pushed {
            pop(driver);
        }
    }
}

/// Makes the context current again that was so before the last one was pushed.
#[cold]
fn pop(driver: &Driver) {
    let mut context = std::ptr::null_mut();
    // SAFETY: the pointer is to a local variable, and the context on top is the one that was pushed: guards are dropped in
    // the thread that made them, in reverse order.
    let result = unsafe { driver.cuCtxPopCurrent_v2(&raw mut context) };
    deferred::keep("making the previous context current again", result);
}
