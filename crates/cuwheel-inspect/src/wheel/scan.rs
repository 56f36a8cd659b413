//! The one pass over all contents of a wheel: hashes, and whatever the caller wants to know of its native files.
//!
//! Inflating is what reading a wheel costs, so that each member is inflated once, on as many threads as the machine has.
//! Memory does not grow with the size of members: [`Native`] keeps tables of a large ELF file.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::native::Native;
use super::{NativeMember, RecordRow, WheelFault};
use crate::archive::{self, Member, Source};
use crate::digest::{HashAlgorithm, Sha256Digest, StreamDigests, StreamHasher};

/// Below this many bytes a thread takes longer to start than to do its part.
const BYTES_PER_THREAD: u64 = 512 * 1024;
/// A member that is larger is inflated on one thread and hashed on another: such a one may be most of a wheel.
const BESIDE_BYTES: u64 = 8 * 1024 * 1024;
const THREAD_LIMIT: u64 = 8;

/// Called with the position of each native member and what is known of it, from any thread.
pub(super) type InspectNative<'inspect> = dyn Fn(usize, &NativeMember<'_>) + Sync + 'inspect;

/// What the pass found.
pub(super) struct Scan {
    /// The hash of the archive.
    pub(super) archive: Sha256Digest,
    /// One for each member, in their order.
    pub(super) members: Vec<MemberScan>,
}

#[derive(Debug, Clone)]
pub(super) struct MemberScan {
    pub(super) digests: StreamDigests,
    pub(super) is_elf: bool,
}

/// Reads the archive and every member, with the hash algorithms that RECORD uses for it.
pub(super) fn scan(
    source: &Source,
    members: &[Member],
    record: &[RecordRow],
    inspect: &InspectNative<'_>,
) -> Result<Scan, WheelFault> {
    let mut algorithms: HashMap<&str, Vec<HashAlgorithm>> = HashMap::new();
    for row in record {
        algorithms.entry(row.path()).or_default().extend(row.algorithm());
    }
    // The longest jobs first, so that no thread is left with one at the end.
    let mut order: Vec<usize> = (0..members.len()).collect();
    order.sort_by_key(|position| std::cmp::Reverse(members[*position].size_bytes));

    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::with_capacity(members.len()));
    let work = || {
        while let Some(position) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
            let member = &members[*position];
            let also = algorithms.get(member.name.as_str()).map(Vec::as_slice).unwrap_or_default();
            let result = scan_member(source, member, also, &|native| inspect(*position, native));
            results.lock().unwrap_or_else(PoisonError::into_inner).push((*position, result));
        }
    };
    let archive = thread::scope(|scope| {
        for _ in 1..thread_count(source.size_bytes()) {
            scope.spawn(work);
        }
        let archive = hash_archive(source);
        work();
        archive
    });

    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(position, _)| *position);
    let members = results.into_iter().map(|(_, result)| result).collect::<Result<_, _>>()?;
    Ok(Scan { archive: archive?, members })
}

fn thread_count(archive_bytes: u64) -> u64 {
    available_threads().min(THREAD_LIMIT).min(archive_bytes / BYTES_PER_THREAD).max(1)
}

fn available_threads() -> u64 {
    thread::available_parallelism().map_or(1, |count| count.get() as u64)
}

fn scan_member(
    source: &Source,
    member: &Member,
    also: &[HashAlgorithm],
    inspect: &dyn Fn(&NativeMember<'_>),
) -> Result<MemberScan, WheelFault> {
    let mut hasher = StreamHasher::new(also);
    let mut native = None;
    let sink = |bytes: &[u8]| {
        hasher.update(bytes);
        // The first piece is as long as the file, or far longer than the magic number.
        if let Some(native) = native.get_or_insert_with(|| Native::begin(member, bytes)) {
            native.push(bytes);
        }
    };
    if member.size_bytes > BESIDE_BYTES && available_threads() > 1 {
        archive::read_member_beside(source, member, sink)?;
    } else {
        archive::read_member(source, member, sink)?;
    }
    let native = native.flatten();
    let is_elf = native.as_ref().is_some_and(Native::is_elf);
    if let Some(native) = native {
        native.inspect(source, member, inspect);
    }
    Ok(MemberScan { digests: hasher.finish(), is_elf })
}

fn hash_archive(source: &Source) -> Result<Sha256Digest, WheelFault> {
    let mut reader = source.range(0, source.size_bytes());
    let mut hasher = StreamHasher::new(&[]);
    archive::for_each_block(&mut reader, |bytes| hasher.update(bytes))?;
    Ok(hasher.finish().sha256)
}
