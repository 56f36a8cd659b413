//! What is kept until a stream has passed a mark: the arguments of work that nobody else waits for.

use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use super::deferred;
use crate::Event;

static ANY: AtomicBool = AtomicBool::new(false);
static HELD: Mutex<Vec<Held>> = Mutex::new(Vec::new());

struct Held {
    mark: Event,
    /// Dropped when the mark is reached.
    _what: Box<dyn Any + Send>,
}

/// Keeps `what` until the work before `mark`, which was recorded, is done.
///
/// It is let go of by a later call of this function, an allocation, or a wait for a stream.
pub fn hold_until(mark: Event, what: Box<dyn Any + Send>) {
    release_reached();
    HELD.lock().unwrap_or_else(PoisonError::into_inner).push(Held { mark, _what: what });
    ANY.store(true, Ordering::Release);
}

/// Lets go of everything whose mark was reached.
pub(crate) fn release_reached() {
    if !ANY.load(Ordering::Acquire) {
        return;
    }
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    // A mark that cannot be asked for belongs to a context that is lost: nothing there will use the arguments again.
    let is_reached = |held: &mut Held| {
        held.mark.is_reached().unwrap_or_else(|error| {
            deferred::keep("asking whether work is done", Err(error));
            true
        })
    };
    let reached: Vec<Held> = held.extract_if(.., is_reached).collect();
    ANY.store(!held.is_empty(), Ordering::Release);
    // Dropping what was held may come back here.
    drop(held);
    drop(reached);
}
