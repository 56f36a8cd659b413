//! A cache that threads share.

use std::hash::Hash;
use std::sync::{PoisonError, RwLock};

use rustc_hash::FxHashMap;

/// Remembers values by key; safe to use from several threads, which read it side by side.
///
/// It never holds more than `capacity` values: a full one is emptied. What it lets go of is returned to the caller
/// instead of being dropped under the lock, because dropping a value may run code that comes back here.
#[derive(Debug)]
pub struct Memo<K, V> {
    entries: RwLock<FxHashMap<K, V>>,
    capacity: usize,
}

impl<K: Eq + Hash, V> Memo<K, V> {
    /// An empty cache for up to `capacity` values, at least one.
    pub fn new(capacity: usize) -> Self {
        Self { entries: RwLock::default(), capacity: capacity.max(1) }
    }

    /// What `read` makes of the value for `key`, or `None` if there is none.
    ///
    /// `read` must not come back to this cache, nor wait for a thread that might.
    pub fn get<Q, R>(&self, key: &Q, read: impl FnOnce(&V) -> R) -> Option<R>
    where
        K: std::borrow::Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.entries.read().unwrap_or_else(PoisonError::into_inner).get(key).map(read)
    }

    /// Remembers `value` for `key`, and returns what is forgotten for it: the former value, and all others if the cache
    /// was full.
    #[must_use = "dropping what was forgotten is for a place where no lock is held"]
    pub fn insert(&self, key: K, value: V) -> Vec<V> {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(former) = entries.get_mut(&key) {
            return vec![std::mem::replace(former, value)];
        }
        let forgotten =
            if entries.len() >= self.capacity { std::mem::take(&mut *entries) } else { FxHashMap::default() };
        entries.insert(key, value);
        forgotten.into_values().collect()
    }
}
