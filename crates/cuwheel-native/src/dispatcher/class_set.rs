//! Classes whose instances Python types one by one.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, PoisonError};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;

/// More classes than kernels are called with at a time.
const PLACES: usize = 64;

/// A few classes that were seen to have nothing to tell their instances' types by.
///
/// A hint that saves looking again: whether a class is in the set, or is no longer as it was when it was added, changes
/// how fast its instances are typed and nothing else. A class may drive out another one. Those in the set are kept, so
/// that an address is never another class's.
pub(super) struct ClassSet {
    /// The addresses of `kept`, for readers without a lock.
    addresses: [AtomicPtr<ffi::PyTypeObject>; PLACES],
    kept: Mutex<[Option<Py<PyType>>; PLACES]>,
}

impl Default for ClassSet {
    fn default() -> Self {
        Self {
            addresses: [const { AtomicPtr::new(ptr::null_mut()) }; PLACES],
            kept: Mutex::new([const { None }; PLACES]),
        }
    }
}

impl ClassSet {
    pub(super) fn has(&self, class: *mut ffi::PyTypeObject) -> bool {
        self.addresses[place(class)].load(Ordering::Relaxed) == class
    }

    pub(super) fn add(&self, class: &Bound<'_, PyType>) {
        let address = class.as_type_ptr();
        let place = place(address);
        let former = {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            self.addresses[place].store(address, Ordering::Relaxed);
            kept[place].replace(class.clone().unbind())
        };
        // Not under the lock: it may run code.
        drop(former);
    }
}

/// Classes lie at multiples of 16 bytes at least, and are some hundreds of bytes large.
fn place(class: *mut ffi::PyTypeObject) -> usize {
    let address = class.addr();
    ((address >> 4) ^ (address >> 10)) % PLACES
}
