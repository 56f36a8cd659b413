//! The one pass over all contents of a wheel: hashes, and whatever the caller wants to know of its native files.
//!
//! Inflating is what reading a wheel costs, so that each member is inflated once, on as many threads as the machine has.
//! Memory does not grow with the size of members: of a large ELF file only tables are kept.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::{NativeCode, NativeMember, RecordRow, WheelFault};
use crate::archive::{self, Member, Source};
use crate::digest::{HashAlgorithm, Sha256Digest, StreamDigests, StreamHasher};
use crate::elf::{ElfError, sparse};
use crate::fatbin;

const ELF_MAGIC: &[u8] = b"\x7fELF";
/// Below this many bytes a thread takes longer to start than to do its part.
const BYTES_PER_THREAD: u64 = 512 * 1024;
/// A larger ELF file is not held: its tables are read again when its contents have gone by.
const WHOLE_LIMIT_BYTES: u64 = 8 * 1024 * 1024;
/// Version and target are the first directives of a PTX file; licences and comments come before.
const PTX_BYTES: usize = 64 * 1024;
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
    let available = thread::available_parallelism().map_or(1, |count| count.get() as u64);
    available.min(THREAD_LIMIT).min(archive_bytes / BYTES_PER_THREAD).max(1)
}

fn scan_member(
    source: &Source,
    member: &Member,
    also: &[HashAlgorithm],
    inspect: &dyn Fn(&NativeMember<'_>),
) -> Result<MemberScan, WheelFault> {
    let mut hasher = StreamHasher::new(also);
    let mut reading = None;
    let mut sink = |bytes: &[u8]| {
        hasher.update(bytes);
        // The first piece is as long as the file, or far longer than the magic number.
        reading.get_or_insert_with(|| Reading::start(member, bytes)).push(bytes);
    };
    let index = if member.size_bytes > WHOLE_LIMIT_BYTES {
        Some(archive::read_and_index(source, member, &mut sink)?)
    } else {
        archive::read_member(source, member, &mut sink)?;
        None
    };
    let reading = reading.unwrap_or_default();
    let is_elf = matches!(reading.kind, Some(Kind::Elf));
    reading.inspect(member, inspect, &mut |contents| {
        if let Some(index) = &index {
            return sparse::image(member.size_bytes, &mut |offset, buffer| {
                index.read_at(source, member, offset, buffer)
            });
        }
        Ok(contents)
    });
    Ok(MemberScan { digests: hasher.finish(), is_elf })
}

/// What native code a member is.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Elf,
    Fatbin,
    Ptx,
}

/// A member on the way.
#[derive(Default)]
struct Reading {
    kind: Option<Kind>,
    /// What is kept of the contents.
    kept: Vec<u8>,
    keep_bytes: usize,
    scanner: fatbin::Scanner,
}

impl Reading {
    fn start(member: &Member, first: &[u8]) -> Self {
        let kind = if first.starts_with(ELF_MAGIC) {
            Some(Kind::Elf)
        } else if first.starts_with(&fatbin::MAGIC) {
            Some(Kind::Fatbin)
        } else {
            Path::new(&member.name).extension().is_some_and(|extension| extension == "ptx").then_some(Kind::Ptx)
        };
        let keep_bytes = match kind {
            Some(Kind::Elf) if member.size_bytes <= WHOLE_LIMIT_BYTES => {
                usize::try_from(member.size_bytes).unwrap_or(0)
            }
            Some(Kind::Ptx) => PTX_BYTES,
            _ => 0,
        };
        Self { kind, kept: Vec::new(), keep_bytes, scanner: fatbin::Scanner::new() }
    }

    fn push(&mut self, bytes: &[u8]) {
        let room = self.keep_bytes.saturating_sub(self.kept.len());
        self.kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
        if let Some(Kind::Elf | Kind::Fatbin) = self.kind {
            self.scanner.push(bytes);
        }
    }

    /// `whole` gives the contents of an ELF file, from what was kept of it.
    fn inspect(
        self,
        member: &Member,
        inspect: &dyn Fn(&NativeMember<'_>),
        whole: &mut dyn FnMut(Vec<u8>) -> Result<Vec<u8>, ElfError>,
    ) {
        let Some(kind) = self.kind else { return };
        let fatbins = self.scanner.finish();
        let contents = match kind {
            Kind::Elf => whole(self.kept),
            Kind::Fatbin | Kind::Ptx => Ok(self.kept),
        };
        let code = match (kind, &contents) {
            (Kind::Elf, contents) => NativeCode::Elf(contents.as_deref().map_err(Clone::clone)),
            (Kind::Ptx, Ok(contents)) => NativeCode::Ptx(contents),
            _ => NativeCode::Fatbin,
        };
        inspect(&NativeMember { size_bytes: member.size_bytes, code, fatbins });
    }
}

fn hash_archive(source: &Source) -> Result<Sha256Digest, WheelFault> {
    let mut reader = source.range(0, source.size_bytes());
    let mut hasher = StreamHasher::new(&[]);
    archive::for_each_block(&mut reader, |bytes| hasher.update(bytes))?;
    Ok(hasher.finish().sha256)
}
