//! Opaque handles of the objects that a driver gives out. They are numbers that are never used twice in a process, and no
//! addresses: a program that follows one crashes, and one that uses a stale one is told so.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

/// No address of a 64-bit Linux process begins like this.
const PREFIX: u64 = 0x0CDA << 48;
const KIND_SHIFT: u32 = 40;
const NUMBER_SHIFT: u32 = 4;

static NEXT: AtomicU64 = AtomicU64::new(1);

/// What a handle names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Kind {
    Context = 1,
    Stream,
    Event,
    Pool,
    Graph,
    GraphExec,
    GraphNode,
    Module,
    Library,
    Kernel,
    Function,
    UserObject,
}

/// A handle that was not given out before.
pub(crate) fn fresh(kind: Kind) -> u64 {
    PREFIX | ((kind as u64) << KIND_SHIFT) | (NEXT.fetch_add(1, Ordering::Relaxed) << NUMBER_SHIFT)
}

/// A map by handles or other numbers that are given out in order. Every launch looks into ten of them.
pub(crate) type NumberMap<T> = HashMap<u64, T, BuildHasherDefault<NumberHasher>>;

/// Spreads numbers that differ in their lower bits; nobody chooses them to collide.
#[derive(Default)]
pub(crate) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64((*byte).into());
        }
    }

    fn write_u64(&mut self, number: u64) {
        // The multiplier is 2^64 divided by the golden ratio; the map looks at both ends of the hash.
        let spread = (self.0 ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = spread ^ (spread >> 32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Objects of one kind by their handles.
pub(crate) struct Table<T> {
    kind: Kind,
    live: NumberMap<T>,
}

impl<T> Table<T> {
    pub(crate) fn new(kind: Kind) -> Self {
        Self { kind, live: NumberMap::default() }
    }

    pub(crate) fn insert(&mut self, object: T) -> u64 {
        let handle = fresh(self.kind);
        self.live.insert(handle, object);
        handle
    }

    pub(crate) fn get(&self, handle: u64) -> Option<&T> {
        self.live.get(&handle)
    }

    pub(crate) fn get_mut(&mut self, handle: u64) -> Option<&mut T> {
        self.live.get_mut(&handle)
    }

    pub(crate) fn remove(&mut self, handle: u64) -> Option<T> {
        self.live.remove(&handle)
    }

    /// Removes and gives what `leaves` chooses.
    pub(crate) fn take(&mut self, mut leaves: impl FnMut(&T) -> bool) -> Vec<(u64, T)> {
        self.live.extract_if(|_, object| leaves(object)).collect()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        self.live.iter().map(|(handle, object)| (*handle, object))
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.live.values_mut()
    }

    /// Whether the handle was one of this kind once.
    pub(crate) fn was(&self, handle: u64) -> bool {
        let number = (handle & ((1 << KIND_SHIFT) - 1)) >> NUMBER_SHIFT;
        handle >> KIND_SHIFT == (PREFIX >> KIND_SHIFT) | self.kind as u64 && number < NEXT.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removed_handle_is_known_to_have_been_one() {
        let mut streams = Table::new(Kind::Stream);
        let handle = streams.insert("stream");
        assert_eq!(streams.get(handle), Some(&"stream"));
        assert_eq!(streams.remove(handle), Some("stream"));
        assert_eq!(streams.get(handle), None);
        assert!(streams.was(handle));
        assert!(!streams.was(fresh(Kind::Event)));
        assert!(!streams.was(0x7f00_0000_1000));
    }
}
