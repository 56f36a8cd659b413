//! The one pass over all contents of a wheel: hashes, and whatever the caller wants to know of its ELF files.
//!
//! Inflating is what reading a wheel costs, so that each member is inflated once, on as many threads as the machine has.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::{RecordRow, WheelFault};
use crate::archive::{self, Member, Source};
use crate::digest::{HashAlgorithm, Sha256Digest, StreamDigests, StreamHasher};

const ELF_MAGIC: &[u8] = b"\x7fELF";
/// Below this many bytes a thread takes longer to start than to do its part.
const BYTES_PER_THREAD: u64 = 512 * 1024;
const RESERVE_LIMIT_BYTES: u64 = 64 * 1024 * 1024;
const THREAD_LIMIT: u64 = 8;

/// Called with the position and the contents of each member that begins as an ELF file does, from any thread.
pub(super) type InspectElf<'inspect> = dyn Fn(usize, &[u8]) + Sync + 'inspect;

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
    inspect: &InspectElf<'_>,
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
            let result = scan_member(source, member, also, &|contents| inspect(*position, contents));
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
    let available = thread::available_parallelism().map_or(1, |count| count.get() as u64);
    available.min(THREAD_LIMIT).min(archive_bytes / BYTES_PER_THREAD).max(1)
}

fn scan_member(
    source: &Source,
    member: &Member,
    also: &[HashAlgorithm],
    inspect: &dyn Fn(&[u8]),
) -> Result<MemberScan, WheelFault> {
    let mut hasher = StreamHasher::new(also);
    let mut is_elf = None;
    let mut elf = Vec::new();
    // The size is only a claim until everything was read.
    let expected_bytes = usize::try_from(member.size_bytes.min(RESERVE_LIMIT_BYTES)).unwrap_or(0);
    archive::read_member(source, member, |bytes| {
        hasher.update(bytes);
        // The first piece is as long as the file, or far longer than the magic number.
        if *is_elf.get_or_insert_with(|| bytes.starts_with(ELF_MAGIC)) {
            elf.reserve(if elf.is_empty() { expected_bytes } else { 0 });
            elf.extend_from_slice(bytes);
        }
    })?;
    let is_elf = is_elf.unwrap_or(false);
    if is_elf {
        inspect(&elf);
    }
    Ok(MemberScan { digests: hasher.finish(), is_elf })
}

fn hash_archive(source: &Source) -> Result<Sha256Digest, WheelFault> {
    let mut reader = source.range(0, source.size_bytes());
    let mut hasher = StreamHasher::new(&[]);
    archive::for_each_block(&mut reader, |bytes| hasher.update(bytes))?;
    Ok(hasher.finish().sha256)
}
