//! Errors of destructors, kept until a call can return them.

use std::sync::{Mutex, PoisonError};

use crate::DriverError;
use crate::unusual::Unusual;

static FIRST: Mutex<Option<DriverError>> = Mutex::new(None);

/// The first error that happened where none could be returned since this was last asked, such as freeing memory.
///
/// Everything in this crate that uses a device reports it too, instead of what it was asked to do.
pub fn take_deferred_error() -> Option<DriverError> {
    if !Unusual::DeferredError.is_so() {
        return None;
    }
    let mut first = FIRST.lock().unwrap_or_else(PoisonError::into_inner);
    Unusual::DeferredError.clear();
    first.take()
}

/// Fails with the deferred error, if there is one.
#[inline]
pub(crate) fn surface() -> Result<(), DriverError> {
    if Unusual::DeferredError.is_so() { take_deferred_error().map_or(Ok(()), Err) } else { Ok(()) }
}

/// Keeps the error of a destructor for the next call that can return one, unless one is kept already: what comes after the first is mostly its consequence.
///
/// At the end of the process the driver refuses everything, and in a forked child there is nothing to be done: neither
/// is an error.
pub fn keep(during: &'static str, result: Result<(), DriverError>) {
    let error = match result {
        Err(DriverError::Cuda(error)) if !error.is_after_the_end() => DriverError::Deferred { during, error },
        Ok(()) | Err(DriverError::Cuda(_) | DriverError::Forked) => return,
        Err(error) => error,
    };
    let mut first = FIRST.lock().unwrap_or_else(PoisonError::into_inner);
    first.get_or_insert(error);
    Unusual::DeferredError.note();
}
