//! What is rarely so and concerns every call: noted in one place, so that a call which none of it concerns looks once.

use std::sync::atomic::{AtomicU8, Ordering};

/// Something that is rarely so.
#[derive(Debug, Clone, Copy)]
#[repr(u8)]
pub(crate) enum Unusual {
    /// This process is the child of a `fork` whose parent had started the driver, which cannot be used here.
    Forked = 1,
    /// The error of a destructor waits for a call that can return it.
    DeferredError = 2,
    /// Some thread has had another current stream than the legacy default stream.
    CurrentStream = 4,
}

/// A bit for each that is so.
static NOTED: AtomicU8 = AtomicU8::new(0);

/// Whether the driver can be used as ever: the process was not forked off one that used it, and no deferred error waits.
#[inline]
pub fn is_usual() -> bool {
    NOTED.load(Ordering::Relaxed) & (Unusual::Forked as u8 | Unusual::DeferredError as u8) == 0
}

impl Unusual {
    #[inline]
    pub(crate) fn is_so(self) -> bool {
        NOTED.load(Ordering::Relaxed) & self as u8 != 0
    }

    /// Allowed after a `fork`, and in a handler of a signal.
    pub(crate) fn note(self) {
        NOTED.fetch_or(self as u8, Ordering::Relaxed);
    }

    pub(crate) fn clear(self) {
        NOTED.fetch_and(!(self as u8), Ordering::Relaxed);
    }
}
