//! Streams: queues of work for a device.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// A stream of the driver, and what keeps it alive.
///
/// Two streams are equal when the driver makes no difference between them.
#[derive(Clone)]
pub struct Stream {
    handle: usize,
    keep_alive: Option<Arc<dyn Any + Send + Sync>>,
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
    /// Any other `handle` is a `CUstream` that stays valid for as long as this value or a clone of it exists, be it that
    /// `keep_alive` sees to that or the caller.
    #[inline]
    pub unsafe fn borrowed(handle: usize, keep_alive: Option<Arc<dyn Any + Send + Sync>>) -> Self {
        Self { handle, keep_alive }
    }

    /// The `CUstream` as an integer.
    #[inline]
    pub fn handle(&self) -> usize {
        self.handle
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
