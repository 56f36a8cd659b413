//! Memory that could not be freed because its stream was being captured; it is freed once the capture has ended.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use super::allocation::Block;
use super::deferred;
use crate::DriverError;

static ANY: AtomicBool = AtomicBool::new(false);
static BLOCKS: Mutex<Vec<Block>> = Mutex::new(Vec::new());

/// Keeps `block` until it can be freed.
pub(crate) fn put(block: Block) {
    BLOCKS.lock().unwrap_or_else(PoisonError::into_inner).push(block);
    ANY.store(true, Ordering::Release);
}

/// Frees what can be freed by now, and lets go of what is no longer used.
pub(crate) fn retry() {
    super::held::release_reached();
    if !ANY.load(Ordering::Acquire) {
        return;
    }
    // Taken out first: freeing a block may drop the last reference to someone's stream, which may do anything.
    let blocks = {
        let mut blocks = BLOCKS.lock().unwrap_or_else(PoisonError::into_inner);
        ANY.store(false, Ordering::Release);
        std::mem::take(&mut *blocks)
    };
    for block in blocks {
        match block.free() {
            Err(DriverError::Cuda(error)) if error.is_refused_by_capture() => put(block),
            result => deferred::keep("freeing memory after a capture", result),
        }
    }
}
