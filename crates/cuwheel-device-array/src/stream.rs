//! Streams: queues of work for a device, their order among each other, and the current one.

use std::any::Any;
use std::cell::RefCell;
use std::ffi::c_uint;
use std::fmt;
use std::sync::Arc;

use cudarc::driver::sys;

use crate::memory::{deferred, pending};
use crate::unusual::Unusual;
use crate::{Device, Driver, DriverError, Event};

/// A stream of the driver, and what keeps it alive.
///
/// Two streams are equal when the driver makes no difference between them on the same device and in the same thread.
/// The default streams exist once for each device, so whatever uses a stream is also told the device.
#[derive(Clone)]
pub struct Stream {
    handle: usize,
    keep_alive: Option<Arc<dyn Any + Send + Sync>>,
}

/// Whether work put into a stream is carried out or recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CaptureStatus {
    /// It is carried out.
    None,
    /// It is recorded into a graph.
    Active,
    /// A recording was broken by an earlier mistake, and has still to be ended.
    Invalidated,
}

impl Stream {
    /// The legacy default stream of the device in question: it waits for all other blocking streams, and they for it.
    pub const LEGACY: Self = Self { handle: 0, keep_alive: None };

    /// The default stream of the device in question and of whichever thread uses this value.
    pub const PER_THREAD: Self = Self { handle: 2, keep_alive: None };

    /// The driver's other name for the legacy default stream, `CU_STREAM_LEGACY`.
    const LEGACY_HANDLE: usize = 1;

    /// A stream of someone else's: 0 and 1 are the legacy default stream, 2 is the per-thread default stream.
    ///
    /// # Safety
    /// Any other `handle` is a `CUstream` that stays valid for as long as this value or a clone of it exists, be it
    /// that `keep_alive` sees to that or the caller.
    #[inline]
    pub unsafe fn borrowed(handle: usize, keep_alive: Option<Arc<dyn Any + Send + Sync>>) -> Self {
        Self { handle, keep_alive }
    }

    /// A new stream of `device`, which neither waits for the legacy default stream nor makes it wait.
    pub fn create(device: Device) -> Result<Self, DriverError> {
        let _guard = device.enter()?;
        let mut handle: sys::CUstream = std::ptr::null_mut();
        let flags = sys::CUstream_flags_enum::CU_STREAM_NON_BLOCKING as c_uint;
        // SAFETY: the pointer is to a local variable, and the context is the device's.
        unsafe { Driver::get()?.cuStreamCreate(&raw mut handle, flags) }?;
        let handle = handle as usize;
        Ok(Self { handle, keep_alive: Some(Arc::new(OwnedStream { handle, device })) })
    }

    /// The `CUstream` as an integer.
    #[inline]
    pub fn handle(&self) -> usize {
        self.handle
    }

    /// The `CUstream`.
    #[inline]
    pub(crate) fn raw(&self) -> sys::CUstream {
        self.handle as sys::CUstream
    }

    /// What keeps the stream alive, if anything here does.
    #[inline]
    pub fn keep_alive(&self) -> Option<&Arc<dyn Any + Send + Sync>> {
        self.keep_alive.as_ref()
    }

    /// Whether this is the legacy default stream.
    #[inline]
    pub fn is_legacy(&self) -> bool {
        self.handle <= Self::LEGACY_HANDLE
    }

    /// Whether this is the per-thread default stream.
    #[inline]
    pub fn is_per_thread(&self) -> bool {
        self.handle == Self::PER_THREAD.handle
    }

    /// Blocks until all work in the stream is done.
    pub fn synchronize(&self, device: Device) -> Result<(), DriverError> {
        let _guard = device.enter()?;
        pending::retry();
        // SAFETY: the stream is valid for as long as this value.
        unsafe { Driver::get()?.cuStreamSynchronize(self.raw()) }
    }

    /// Makes work that is put into the stream from now on wait for `event`. The host does not wait.
    pub fn wait_event(&self, device: Device, event: &Event) -> Result<(), DriverError> {
        let _guard = device.enter()?;
        // SAFETY: the stream is valid for as long as this value, the event for as long as its.
        unsafe { Driver::get()?.cuStreamWaitEvent(self.raw(), event.handle() as sys::CUevent, 0) }
    }

    /// Makes work that is put into this stream of `device` from now on wait for what is in `producer` now, a stream of
    /// `producer_device`. The host does not wait. Does nothing when both are the same.
    pub fn order_after(&self, device: Device, producer: &Self, producer_device: Device) -> Result<(), DriverError> {
        if self == producer && device == producer_device {
            return Ok(());
        }
        let event = Event::new(producer_device)?;
        event.record(producer)?;
        self.wait_event(device, &event)
    }

    /// Whether the stream is being captured into a graph.
    pub fn capture_status(&self, device: Device) -> Result<CaptureStatus, DriverError> {
        let _guard = device.enter()?;
        self.capture_status_here(Driver::get()?)
    }

    /// As [`capture_status`](Self::capture_status), when the context is current.
    pub(crate) fn capture_status_here(&self, driver: &Driver) -> Result<CaptureStatus, DriverError> {
        let mut status: u32 = 0;
        // SAFETY: the driver writes an integer of 32 bits, to a local variable; it is not taken as an enumeration, so
        // any value is fine.
        let result = unsafe { driver.cuStreamIsCapturing(self.raw(), (&raw mut status).cast()) };
        match (result, status) {
            // The legacy stream cannot be used while a stream that waits for it is captured.
            (Err(DriverError::Cuda(error)), _) if error.is_refused_by_capture() => Ok(CaptureStatus::Active),
            (Err(error), _) => Err(error),
            (Ok(()), 0) => Ok(CaptureStatus::None),
            (Ok(()), 1) => Ok(CaptureStatus::Active),
            (Ok(()), _) => Ok(CaptureStatus::Invalidated),
        }
    }
}

impl PartialEq for Stream {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.handle == other.handle || self.is_legacy() && other.is_legacy()
    }
}

impl Eq for Stream {}

impl fmt::Debug for Stream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.handle {
            0 | Self::LEGACY_HANDLE => formatter.write_str("Stream(legacy)"),
            2 => formatter.write_str("Stream(per-thread)"),
            handle => write!(formatter, "Stream({handle:#x})"),
        }
    }
}

/// A stream made here, destroyed when nothing uses it any more.
struct OwnedStream {
    handle: usize,
    device: Device,
}

impl Drop for OwnedStream {
    fn drop(&mut self) {
        let destroy = || {
            let driver = Driver::get()?;
            let _guard = self.device.enter_quietly(driver)?;
            // SAFETY: the stream was made here, and this is the last that knows it. Work in it is still carried out.
            unsafe { driver.cuStreamDestroy_v2(self.handle as sys::CUstream) }
        };
        deferred::keep("destroying a stream", destroy());
    }
}

thread_local! {
    /// The current streams that are not the legacy default stream.
    static CURRENT: RefCell<Vec<(Device, Stream)>> = const { RefCell::new(Vec::new()) };
}

/// The stream that this thread uses on `device` unless told otherwise; at first the legacy default stream.
#[inline]
pub fn current(device: Device) -> Stream {
    if Unusual::CurrentStream.is_so() { current_of_thread(device) } else { Stream::LEGACY }
}

/// The handle of the [`current`] stream, for who uses it while it stays the current one.
#[inline]
pub fn current_handle(device: Device) -> usize {
    #[cold]
    fn handle_of_thread(device: Device) -> usize {
        current_of_thread(device).handle()
    }

    if Unusual::CurrentStream.is_so() { handle_of_thread(device) } else { Stream::LEGACY.handle }
}

fn current_of_thread(device: Device) -> Stream {
    let find = |current: &RefCell<Vec<(Device, Stream)>>| {
        current.borrow().iter().find(|entry| entry.0 == device).map(|entry| entry.1.clone())
    };
    // A thread that is ending has given its streams up.
    CURRENT.try_with(find).ok().flatten().unwrap_or(Stream::LEGACY)
}

/// Makes `stream` the current one of this thread on `device`, and returns the one before.
///
/// Does not check that there is such a device, or a driver.
pub fn set_current(device: Device, stream: Stream) -> Stream {
    // This thread sees what it wrote itself, and others have streams of their own.
    Unusual::CurrentStream.note();
    let set = |current: &RefCell<Vec<(Device, Stream)>>| {
        let mut entries = current.borrow_mut();
        if let Some(entry) = entries.iter_mut().find(|entry| entry.0 == device) {
            return std::mem::replace(&mut entry.1, stream);
        }
        entries.push((device, stream));
        Stream::LEGACY
    };
    CURRENT.try_with(set).unwrap_or(Stream::LEGACY)
}
