//! What is known of objects of Python: remembered by address, for as long as the object lives.
//!
//! An object is not kept alive by being remembered. A weak reference beside its address tells whether what is at the address
//! is still the object. A memo belongs to a thread, so that looking into it waits for nobody.

use pyo3::prelude::*;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};

/// Places that an object may have. Arguments of one call that shared a single one would drive each other out at each call.
const WAYS: usize = 4;

/// A table of up to `SETS` times four objects; one more may drive out another.
pub(crate) struct ObjectMemo<T, const SETS: usize> {
    sets: [[Option<Entry<T>>; WAYS]; SETS],
    /// Where the next entry of a full set goes.
    next: usize,
}

/// What is remembered of an object. Dropping it may run Python code.
pub(crate) struct Entry<T> {
    object: usize,
    class: usize,
    reference: Py<PyWeakrefReference>,
    value: T,
}

impl<T, const SETS: usize> ObjectMemo<T, SETS> {
    pub(crate) const fn new() -> Self {
        Self { sets: [const { [const { None }; WAYS] }; SETS], next: 0 }
    }

    /// What is remembered of `object`.
    #[inline]
    pub(crate) fn get(&self, object: &Bound<'_, PyAny>) -> Option<&T> {
        let address = object.as_ptr().addr();
        let entry = self.sets[set::<SETS>(address)].iter().flatten().find(|entry| entry.object == address)?;
        if entry.class != object.get_type_ptr().addr() {
            return None;
        }
        let referent = entry.reference.bind(object.py()).upgrade()?;
        referent.is(object).then_some(&entry.value)
    }

    /// Keeps an entry, and returns the one that has to make room: to be dropped when nobody looks into the memo.
    #[must_use = "dropping the former entry may run Python code"]
    pub(crate) fn insert(&mut self, entry: Entry<T>) -> Option<Entry<T>> {
        let set = &mut self.sets[set::<SETS>(entry.object)];
        let of_it = |place: &Option<Entry<T>>| place.as_ref().is_some_and(|known| known.object == entry.object);
        let place = set.iter().position(of_it).or_else(|| set.iter().position(Option::is_none));
        let place = place.unwrap_or_else(|| {
            self.next = (self.next + 1) % WAYS;
            self.next
        });
        set[place].replace(entry)
    }
}

impl<T> Entry<T> {
    /// What is to be remembered of `object`.
    ///
    /// # Errors
    /// `TypeError` if there are no weak references to such objects.
    pub(crate) fn new(object: &Bound<'_, PyAny>, value: T) -> PyResult<Self> {
        let reference = PyWeakrefReference::new(object)?.unbind();
        Ok(Self { object: object.as_ptr().addr(), class: object.get_type_ptr().addr(), reference, value })
    }
}

/// Objects are tens of bytes large.
fn set<const SETS: usize>(address: usize) -> usize {
    ((address >> 4) ^ (address >> 10)) % SETS
}
