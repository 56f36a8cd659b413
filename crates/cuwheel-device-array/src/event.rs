//! Events: marks in a stream, to wait for and to measure the time between.

use std::time::Duration;

use cudarc::driver::sys;

use crate::driver::code;
use crate::memory::deferred;
use crate::{Device, Driver, DriverError, Stream, unaffected_by_captures};

/// An event of a device's context.
#[derive(Debug)]
pub struct Event {
    handle: usize,
    device: Device,
}

impl Event {
    /// An event for ordering streams, which is cheaper than one that keeps the time.
    pub fn new(device: Device) -> Result<Self, DriverError> {
        Self::with_flags(device, sys::CUevent_flags_enum::CU_EVENT_DISABLE_TIMING)
    }

    /// An event that keeps the time when it is reached.
    pub fn timing(device: Device) -> Result<Self, DriverError> {
        Self::with_flags(device, sys::CUevent_flags_enum::CU_EVENT_DEFAULT)
    }

    fn with_flags(device: Device, flags: sys::CUevent_flags) -> Result<Self, DriverError> {
        let _guard = device.enter()?;
        let mut handle: sys::CUevent = std::ptr::null_mut();
        // SAFETY: the pointer is to a local variable, and the context is the device's.
        unsafe { Driver::get()?.cuEventCreate(&raw mut handle, flags as u32) }?;
        Ok(Self { handle: handle as usize, device })
    }

    /// The `CUevent` as an integer.
    pub fn handle(&self) -> usize {
        self.handle
    }

    /// The device whose streams can record it.
    pub fn device(&self) -> Device {
        self.device
    }

    /// Marks the end of the work that is now in `stream`, which must be one of this event's device.
    pub fn record(&self, stream: &Stream) -> Result<(), DriverError> {
        let _guard = self.device.enter()?;
        // SAFETY: both are valid: the event lives as long as this value, and the stream as long as its.
        unsafe { Driver::get()?.cuEventRecord(self.handle as sys::CUevent, stream.raw()) }
    }

    /// Blocks until the work before the mark is done.
    pub fn synchronize(&self) -> Result<(), DriverError> {
        let _guard = self.device.enter()?;
        // SAFETY: the event lives as long as this value.
        unsafe { Driver::get()?.cuEventSynchronize(self.handle as sys::CUevent) }
    }

    /// Whether the work before the mark is done.
    pub fn is_reached(&self) -> Result<bool, DriverError> {
        let driver = Driver::get()?;
        let _guard = self.device.enter_quietly(driver)?;
        let mut is_reached = true;
        unaffected_by_captures(|| {
            // SAFETY: the event lives as long as this value.
            match unsafe { driver.cuEventQuery(self.handle as sys::CUevent) } {
                Err(DriverError::Cuda(error)) if error.code == code::NOT_READY => {
                    is_reached = false;
                    Ok(())
                }
                result => result,
            }
        })?;
        Ok(is_reached)
    }

    /// The time from `start` to this event. Both keep the time, were recorded, and were reached.
    pub fn elapsed_since(&self, start: &Self) -> Result<Duration, DriverError> {
        let _guard = self.device.enter()?;
        let mut milliseconds = 0.0_f32;
        let (start, end) = (start.handle as sys::CUevent, self.handle as sys::CUevent);
        // SAFETY: the pointer is to a local variable, and both events live as long as their values.
        unsafe { Driver::get()?.cuEventElapsedTime(&raw mut milliseconds, start, end) }?;
        Ok(Duration::from_secs_f64(f64::from(milliseconds.max(0.0)) / 1000.0))
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        let destroy = || {
            let driver = Driver::get()?;
            let _guard = self.device.enter_quietly(driver)?;
            // SAFETY: the event is this value's, which ends here. The driver keeps what is still waited for.
            unsafe { driver.cuEventDestroy_v2(self.handle as sys::CUevent) }
        };
        deferred::keep("destroying an event", destroy());
    }
}
