//! What was made for which types: found without a lock, made by one thread while the others wait.

use std::hash::Hasher as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use rustc_hash::FxHasher;

/// Values by keys, each of which is made when it is first asked for, and stays.
///
/// `E` is what is told to every thread that waits when a value cannot be made. Whoever asks afterwards tries again.
#[derive(Debug)]
pub struct Specializations<V, E> {
    buckets: [Link<V>; BUCKETS],
    count: AtomicUsize,
    under_way: Mutex<Vec<Arc<Flight<E>>>>,
}

const BUCKETS: usize = 32;

/// The next value of a bucket, once there is one. Values are only ever added, at the end: a reader sees a list that is whole.
type Link<V> = OnceLock<Box<Node<V>>>;

#[derive(Debug)]
struct Node<V> {
    key: Box<[u64]>,
    value: V,
    /// How many were there before.
    position: usize,
    next: Link<V>,
}

/// A value in the making.
#[derive(Debug)]
pub struct Flight<E> {
    key: Box<[u64]>,
    thread: ThreadId,
    /// A child of this process has a copy of what the threads of its parent were doing, and not the threads.
    process: u32,
    end: Mutex<Option<End<E>>>,
    ended: Condvar,
}

#[derive(Debug, Clone)]
enum End<E> {
    /// There is a value, or somebody else has to try.
    Over,
    Failed(E),
}

/// Why a value was not made.
#[derive(Debug, PartialEq, Eq)]
pub enum Failure<E> {
    /// Everybody who waits is told.
    Shared(E),
    /// It is a matter of the thread that tried, such as an interrupt: one who waits tries next.
    Own(E),
}

/// A value is needed to make itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is being made by this very thread; what makes it must not launch it with the same types")]
pub struct Recursion;

/// What somebody who asks for a value that is not there has to do.
#[derive(Debug)]
pub enum Making<'a, V, E: Clone> {
    /// Make it.
    Lead(Lead<'a, V, E>),
    /// Wait for who makes it, and ask again.
    Wait(Arc<Flight<E>>),
}

impl<V, E: Clone> Specializations<V, E> {
    /// Nothing made so far.
    pub fn new() -> Self {
        Self {
            buckets: std::array::from_fn(|_| Link::new()),
            count: AtomicUsize::new(0),
            under_way: Mutex::new(Vec::new()),
        }
    }

    /// The value for a key, if there is one.
    #[inline]
    pub fn get(&self, key: &[u64]) -> Option<&V> {
        let mut link = self.bucket(key);
        while let Some(node) = link.get() {
            if *node.key == *key {
                return Some(&node.value);
            }
            link = &node.next;
        }
        None
    }

    /// Asks to make the value for a key.
    pub fn make(&self, key: &[u64]) -> Result<Making<'_, V, E>, Recursion> {
        let process = std::process::id();
        let mut under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        let known = under_way.iter().position(|flight| *flight.key == *key);
        if let Some(flight) = known.map(|position| &under_way[position]) {
            if flight.process == process && flight.thread == thread::current().id() {
                return Err(Recursion);
            }
            if flight.process == process {
                return Ok(Making::Wait(flight.clone()));
            }
        }
        let flight = Arc::new(Flight {
            key: key.into(),
            thread: thread::current().id(),
            process,
            end: Mutex::new(None),
            ended: Condvar::new(),
        });
        // What another process left is dropped when the lock is free.
        let left = known.map(|position| under_way.swap_remove(position));
        under_way.push(flight.clone());
        drop(under_way);
        drop(left);
        Ok(Making::Lead(Lead { of: self, flight: Some(flight) }))
    }

    /// The values, in the order in which they were made.
    pub fn values(&self) -> Vec<&V> {
        let mut nodes = Vec::with_capacity(self.count.load(Ordering::Relaxed));
        for bucket in &self.buckets {
            let mut link = bucket;
            while let Some(node) = link.get() {
                nodes.push(node);
                link = &node.next;
            }
        }
        nodes.sort_by_key(|node| node.position);
        nodes.into_iter().map(|node| &node.value).collect()
    }

    #[inline]
    fn bucket(&self, key: &[u64]) -> &Link<V> {
        let mut hasher = FxHasher::default();
        for word in key {
            hasher.write_u64(*word);
        }
        let [low, ..] = hasher.finish().to_le_bytes();
        &self.buckets[usize::from(low) % BUCKETS]
    }

    /// Adds a value; only who leads does.
    fn insert(&self, key: &[u64], value: V) -> &V {
        let position = self.count.fetch_add(1, Ordering::Relaxed);
        let mut node = Box::new(Node { key: key.into(), value, position, next: Link::new() });
        let mut link = self.bucket(key);
        loop {
            // Somebody may have added one for another key.
            match link.set(node) {
                Ok(()) => break,
                Err(again) => node = again,
            }
            match link.get() {
                Some(taken) => link = &taken.next,
                None => unreachable!("a link that cannot be set has been set"),
            }
        }
        match link.get() {
            Some(node) => &node.value,
            None => unreachable!("it was set just now"),
        }
    }
}

impl<V, E: Clone> Default for Specializations<V, E> {
    fn default() -> Self {
        Self::new()
    }
}

/// The right to make a value. Dropped without an end, one who waits gets it.
#[derive(Debug)]
pub struct Lead<'a, V, E: Clone> {
    of: &'a Specializations<V, E>,
    flight: Option<Arc<Flight<E>>>,
}

impl<'a, V, E: Clone> Lead<'a, V, E> {
    /// Makes the value, unless it was made since the one who leads looked for it, and tells all who wait.
    pub fn make(mut self, make: impl FnOnce() -> Result<V, Failure<E>>) -> Result<&'a V, E> {
        let Some(flight) = self.flight.clone() else { unreachable!("there is one until the end") };
        if let Some(value) = self.of.get(&flight.key) {
            return Ok(value);
        }
        match make() {
            Ok(value) => Ok(self.of.insert(&flight.key, value)),
            Err(Failure::Own(error)) => Err(error),
            Err(Failure::Shared(error)) => {
                self.end(End::Failed(error.clone()));
                Err(error)
            }
        }
    }

    fn end(&mut self, end: End<E>) {
        let Some(flight) = self.flight.take() else { return };
        let mut under_way = self.of.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        let position = under_way.iter().position(|other| Arc::ptr_eq(other, &flight));
        let left = position.map(|position| under_way.swap_remove(position));
        drop(under_way);
        drop(left);
        *flight.end.lock().unwrap_or_else(PoisonError::into_inner) = Some(end);
        flight.ended.notify_all();
    }
}

impl<V, E: Clone> Drop for Lead<'_, V, E> {
    fn drop(&mut self) {
        self.end(End::Over);
    }
}

impl<E: Clone> Flight<E> {
    /// Waits for a while. `None`: it is still under way. Otherwise it is over, and the error is the one of who made it.
    pub fn wait(&self, at_most: Duration) -> Option<Result<(), E>> {
        let end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        let (end, _) =
            self.ended.wait_timeout_while(end, at_most, |end| end.is_none()).unwrap_or_else(PoisonError::into_inner);
        match &*end {
            None => None,
            Some(End::Over) => Some(Ok(())),
            Some(End::Failed(error)) => Some(Err(error.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::AtomicU64;

    use super::*;

    type Made = Specializations<u64, &'static str>;

    /// What native code does, without Python.
    fn ask(
        made: &Made,
        key: &[u64],
        make: impl Fn() -> Result<u64, Failure<&'static str>>,
    ) -> Result<u64, &'static str> {
        loop {
            if let Some(value) = made.get(key) {
                return Ok(*value);
            }
            match made.make(key).map_err(|Recursion| "recursion")? {
                Making::Lead(lead) => return lead.make(make).copied(),
                Making::Wait(flight) => match flight.wait(Duration::from_secs(10)) {
                    Some(result) => result?,
                    None => return Err("waited for too long"),
                },
            }
        }
    }

    #[test]
    fn each_value_is_made_once_and_found_from_then_on() {
        let made = Made::new();
        let count = AtomicU64::new(0);
        for round in 0..3 {
            for number in 0..500 {
                let value = ask(&made, &[number, number % 7], || {
                    count.fetch_add(1, Ordering::Relaxed);
                    Ok(number)
                });
                assert_eq!(value, Ok(number), "{round}");
            }
        }
        assert_eq!(count.into_inner(), 500);
        assert_eq!(made.values().into_iter().copied().collect::<Vec<_>>(), (0..500).collect::<Vec<_>>());
        assert_eq!((made.get(&[1]), made.get(&[])), (None, None));
    }

    #[test]
    fn threads_that_ask_for_the_same_wait_for_one_of_them() {
        for outcome in [Ok(7), Err(Failure::Shared("no"))] {
            let made = Made::new();
            let (count, start) = (AtomicU64::new(0), Barrier::new(8));
            let results: Vec<_> = thread::scope(|scope| {
                let ask = || {
                    start.wait();
                    ask(&made, &[1, 2], || {
                        count.fetch_add(1, Ordering::Relaxed);
                        thread::sleep(Duration::from_millis(100));
                        match &outcome {
                            Ok(value) => Ok(*value),
                            Err(_) => Err(Failure::Shared("no")),
                        }
                    })
                };
                let threads: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            let expected = if outcome.is_ok() { Ok(7) } else { Err("no") };
            assert!(results.iter().all(|result| *result == expected), "{results:?}");
            assert_eq!(count.into_inner(), 1);
            // A failure is not remembered.
            assert_eq!(ask(&made, &[1, 2], || Ok(7)), Ok(7));
        }
    }

    #[test]
    fn threads_that_ask_for_others_do_not_wait() {
        let made = Made::new();
        let both = Barrier::new(2);
        thread::scope(|scope| {
            for key in 0..2 {
                let (made, both) = (&made, &both);
                scope.spawn(move || {
                    // Each is made while the other is.
                    ask(made, &[key], || {
                        both.wait();
                        Ok(key)
                    })
                });
            }
        });
        assert_eq!(made.values().len(), 2);
    }

    #[test]
    fn one_who_waits_tries_when_the_first_was_interrupted_or_panicked() {
        for panics in [false, true] {
            let made = Made::new();
            let under_way = Barrier::new(2);
            thread::scope(|scope| {
                let first = scope.spawn(|| {
                    ask(&made, &[1], || {
                        under_way.wait();
                        thread::sleep(Duration::from_millis(50));
                        assert!(!panics, "on purpose");
                        Err(Failure::Own("interrupted"))
                    })
                });
                under_way.wait();
                assert_eq!(ask(&made, &[1], || Ok(3)), Ok(3));
                assert!(first.join().map_or(panics, |result| result == Err("interrupted")));
            });
        }
    }

    #[test]
    fn a_value_that_is_needed_to_make_itself_is_an_error() {
        let made = Made::new();
        let inner = || Ok(ask(&made, &[1], || Ok(1)).unwrap_or(99));
        assert_eq!(ask(&made, &[1], inner), Ok(99));
        assert!(matches!(made.make(&[2]), Ok(Making::Lead(_))));
        assert!(matches!(made.make(&[2]), Ok(Making::Lead(_))), "the first was dropped");
    }
}
