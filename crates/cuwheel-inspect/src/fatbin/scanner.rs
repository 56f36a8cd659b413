//! Finds containers in a file that comes piece by piece, so that no file has to be in memory.

use super::image::{ENTRY_HEADER_BYTES, EntryHeader};
use super::{Fatbin, MAGIC, toolkit};

const CONTAINER_HEADER_BYTES: usize = 16;
const CONTAINER_VERSION: u16 = 1;
/// The largest libraries have some ten thousand; what claims more is made to fill memory.
const LARGEST_COUNT: usize = 1 << 18;
/// Images of one file that are asked for their toolkit.
const LARGEST_ASKED: usize = 32;

/// Takes a file from front to back and finds the fatbins in it.
///
/// At most an image that is asked for its toolkit, a quarter of a megabyte, is held at a time.
#[derive(Debug, Default)]
pub struct Scanner {
    /// What was pushed and not yet consumed.
    pending: Vec<u8>,
    /// Where `pending` begins in the file.
    position: u64,
    state: State,
    asked: usize,
    /// Containers and images so far.
    count: usize,
    found: Vec<Fatbin>,
}

#[derive(Debug, Default)]
enum State {
    /// Between containers.
    #[default]
    Searching,
    /// At an entry of the last container.
    Entry,
    /// Before the end of a payload that is not looked at.
    Skipping { remaining_bytes: u64 },
    /// There were too many.
    Stopped,
}

impl Scanner {
    /// Begins a file.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next piece of the file.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.pending.is_empty() {
            let taken = self.take(bytes);
            self.pending.extend_from_slice(&bytes[taken..]);
            return;
        }
        let mut pending = std::mem::take(&mut self.pending);
        pending.extend_from_slice(bytes);
        let taken = self.take(&pending);
        pending.drain(..taken);
        self.pending = pending;
    }

    /// Ends the file and gives what was found, in order.
    #[must_use]
    pub fn finish(mut self) -> Vec<Fatbin> {
        let is_complete = match self.state {
            State::Searching | State::Stopped => true,
            State::Entry | State::Skipping { remaining_bytes: 0 } => self.remaining_bytes() == 0,
            State::Skipping { .. } => false,
        };
        if !is_complete {
            self.fail("the file ends within it");
        }
        self.found
    }

    /// Goes as far as `bytes` allow, and says how many of them are done with.
    fn take(&mut self, bytes: &[u8]) -> usize {
        let mut taken = 0;
        while let Some(count) = self.step(&bytes[taken..]) {
            taken += count;
            self.position += count as u64;
        }
        taken
    }

    /// Looks at the bytes from `self.position` on and says how many of them are done with, which may be none where the
    /// state changes; `None` where more have to follow first.
    fn step(&mut self, bytes: &[u8]) -> Option<usize> {
        match self.state {
            State::Searching => self.search(bytes),
            State::Entry => self.entry(bytes),
            State::Skipping { remaining_bytes } => self.skip(bytes, remaining_bytes),
            State::Stopped => (!bytes.is_empty()).then_some(bytes.len()),
        }
    }

    /// Ends the container that is being read, with a fault.
    fn fail(&mut self, fault: &str) {
        if let Some(fatbin) = self.found.last_mut() {
            fatbin.fault = Some(format!("at offset {:#x}: {fault}", self.position));
        }
        self.state = State::Searching;
    }

    fn search(&mut self, bytes: &[u8]) -> Option<usize> {
        let start = memchr::memmem::find(bytes, &MAGIC).unwrap_or(bytes.len() - begun(bytes));
        if start > 0 {
            return Some(start);
        }
        let header = bytes.get(..CONTAINER_HEADER_BYTES + ENTRY_HEADER_BYTES)?;
        let payload_bytes = u64::from_le_bytes(std::array::from_fn(|index| header[8 + index]));
        let is_container = header[4..6] == CONTAINER_VERSION.to_le_bytes()
            && usize::from(u16::from_le_bytes([header[6], header[7]])) == CONTAINER_HEADER_BYTES
            && payload_bytes >= ENTRY_HEADER_BYTES as u64
            && EntryHeader::parse(&header[CONTAINER_HEADER_BYTES..]).is_some();
        if !is_container {
            // The number occurs in code that reads fatbins.
            return Some(MAGIC.len());
        }
        self.found.push(Fatbin {
            offset: self.position,
            size_bytes: payload_bytes.saturating_add(CONTAINER_HEADER_BYTES as u64),
            images: Vec::new(),
            fault: None,
        });
        self.state = State::Entry;
        Some(CONTAINER_HEADER_BYTES)
    }

    /// What is left of the container.
    fn remaining_bytes(&self) -> u64 {
        let end = self.found.last().map_or(0, |fatbin| fatbin.offset.saturating_add(fatbin.size_bytes));
        end.saturating_sub(self.position)
    }

    fn entry(&mut self, bytes: &[u8]) -> Option<usize> {
        let remaining_bytes = self.remaining_bytes();
        if remaining_bytes == 0 {
            self.state = State::Searching;
            return Some(0);
        }
        if remaining_bytes < ENTRY_HEADER_BYTES as u64 {
            self.fail("what is left is too short for an image");
            return Some(0);
        }
        if bytes.len() < ENTRY_HEADER_BYTES {
            return None;
        }
        let Some(entry) = EntryHeader::parse(bytes) else {
            self.fail("the header of an image is damaged");
            return Some(0);
        };
        let header_bytes = entry.header_bytes as usize;
        if entry.payload_bytes.saturating_add(header_bytes as u64) > remaining_bytes {
            self.fail("an image reaches beyond the end of the container");
            return Some(0);
        }
        let is_asked = self.asked < LARGEST_ASKED && entry.data_bytes() <= toolkit::LARGEST_STORED_BYTES;
        let sample_bytes = if is_asked { usize::try_from(entry.data_bytes()).unwrap_or(0) } else { 0 };
        let (header, sample) = bytes.get(..header_bytes + sample_bytes)?.split_at(header_bytes);
        let Some(mut images) = entry.images(header) else {
            self.fail("the table of an entry with several images is damaged");
            return Some(0);
        };
        if is_asked {
            let named = toolkit::of_stored(sample, entry.compression(), entry.unpacked_bytes());
            for image in &mut images {
                image.toolkit = named;
            }
            self.asked += 1;
        }
        self.count += 1 + images.len();
        if let Some(fatbin) = self.found.last_mut() {
            fatbin.images.append(&mut images);
        }
        if self.count > LARGEST_COUNT {
            self.fail("the file holds more images than are read");
            self.state = State::Stopped;
            return Some(0);
        }
        self.state = State::Skipping { remaining_bytes: entry.payload_bytes };
        Some(header_bytes)
    }

    fn skip(&mut self, bytes: &[u8], remaining_bytes: u64) -> Option<usize> {
        if remaining_bytes == 0 {
            self.state = State::Entry;
            return Some(0);
        }
        let count = usize::try_from(remaining_bytes).unwrap_or(usize::MAX).min(bytes.len());
        self.state = State::Skipping { remaining_bytes: remaining_bytes - count as u64 };
        (count > 0).then_some(count)
    }
}

/// How many of the last bytes may be the first of a container.
fn begun(bytes: &[u8]) -> usize {
    (1..MAGIC.len()).rev().find(|count| bytes.ends_with(&MAGIC[..*count])).unwrap_or(0)
}
