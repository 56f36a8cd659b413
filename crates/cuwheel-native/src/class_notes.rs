//! What is known of the instances of a few classes, for readers without a lock.

use std::num::NonZeroU8;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;

/// More classes than kernels are called with at a time.
const PLACES: usize = 64;

/// Notes on a few classes that were seen.
///
/// They save looking again. A class may drive out another one, and one that is not noted is looked at. What a note means is
/// for its writer to say. Classes are kept for as long as their notes are, so that an address is never another class's.
pub(crate) struct ClassNotes {
    /// Address and note in one, for readers without a lock.
    notes: [AtomicU64; PLACES],
    kept: Mutex<[Option<Py<PyType>>; PLACES]>,
}

impl Default for ClassNotes {
    fn default() -> Self {
        Self { notes: [const { AtomicU64::new(0) }; PLACES], kept: Mutex::new([const { None }; PLACES]) }
    }
}

impl ClassNotes {
    #[inline]
    pub(crate) fn get(&self, class: *mut ffi::PyTypeObject) -> Option<NonZeroU8> {
        let note = self.notes[place(class)].load(Ordering::Relaxed) ^ key(class);
        NonZeroU8::new(u8::try_from(note).ok()?)
    }

    pub(crate) fn add(&self, class: &Bound<'_, PyType>, note: NonZeroU8) {
        let address = class.as_type_ptr();
        let place = place(address);
        let former = {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            self.notes[place].store(key(address) | u64::from(note.get()), Ordering::Relaxed);
            kept[place].replace(class.clone().unbind())
        };
        // Not under the lock: it may run code.
        drop(former);
    }
}

/// An address without the four bits that are zero in each, above eight bits for the note.
fn key(class: *mut ffi::PyTypeObject) -> u64 {
    (class.addr() as u64 >> 4) << 8
}

/// Classes are some hundreds of bytes large.
fn place(class: *mut ffi::PyTypeObject) -> usize {
    let address = class.addr();
    ((address >> 4) ^ (address >> 10)) % PLACES
}
