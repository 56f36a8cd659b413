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

/// What a step came to.
enum Step {
    Done,
    /// This many bytes have to be pending first.
    Needs(usize),
}

impl Scanner {
    /// Begins a file.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next piece of the file.
    pub fn push(&mut self, bytes: &[u8]) {
        let mut bytes = bytes;
        if let (State::Skipping { remaining_bytes }, true) = (&mut self.state, self.pending.is_empty()) {
            let count = usize::try_from(*remaining_bytes).unwrap_or(usize::MAX).min(bytes.len());
            *remaining_bytes -= count as u64;
            self.position += count as u64;
            bytes = &bytes[count..];
        }
        // Most of a library is no fatbin, and need not be copied to be known as such.
        if matches!(self.state, State::Searching) && self.pending.is_empty() {
            let start = memchr::memmem::find(bytes, &MAGIC).unwrap_or(bytes.len() - begun(bytes));
            self.position += start as u64;
            bytes = &bytes[start..];
        }
        if bytes.is_empty() || matches!(self.state, State::Stopped) {
            return;
        }
        self.pending.extend_from_slice(bytes);
        while let Step::Done = self.step() {}
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

    fn step(&mut self) -> Step {
        let step = match self.state {
            State::Searching => self.search(),
            State::Entry => self.entry(),
            State::Skipping { remaining_bytes } => self.skip(remaining_bytes),
            State::Stopped => Step::Needs(usize::MAX),
        };
        if let Step::Needs(count) = step {
            debug_assert!(self.pending.len() < count, "a step that can go on does");
        }
        step
    }

    fn consume(&mut self, count: usize) {
        self.pending.drain(..count);
        self.position += count as u64;
    }

    /// Ends the container that is being read, with a fault.
    fn fail(&mut self, fault: &str) {
        if let Some(fatbin) = self.found.last_mut() {
            fatbin.fault = Some(format!("at offset {:#x}: {fault}", self.position));
        }
        self.state = State::Searching;
    }

    fn search(&mut self) -> Step {
        let Some(start) = memchr::memmem::find(&self.pending, &MAGIC) else {
            let kept = begun(&self.pending);
            self.consume(self.pending.len() - kept);
            return Step::Needs(kept + 1);
        };
        self.consume(start);
        let needed = CONTAINER_HEADER_BYTES + ENTRY_HEADER_BYTES;
        let Some(header) = self.pending.get(..needed) else { return Step::Needs(needed) };
        let payload_bytes = u64::from_le_bytes(std::array::from_fn(|index| header[8 + index]));
        let is_container = header[4..6] == CONTAINER_VERSION.to_le_bytes()
            && usize::from(u16::from_le_bytes([header[6], header[7]])) == CONTAINER_HEADER_BYTES
            && payload_bytes >= ENTRY_HEADER_BYTES as u64
            && EntryHeader::parse(&header[CONTAINER_HEADER_BYTES..]).is_some();
        if !is_container {
            // The number occurs in code that reads fatbins.
            self.consume(MAGIC.len());
            return Step::Done;
        }
        self.found.push(Fatbin {
            offset: self.position,
            size_bytes: payload_bytes.saturating_add(CONTAINER_HEADER_BYTES as u64),
            images: Vec::new(),
            fault: None,
        });
        self.consume(CONTAINER_HEADER_BYTES);
        self.state = State::Entry;
        Step::Done
    }

    /// What is left of the container.
    fn remaining_bytes(&self) -> u64 {
        let end = self.found.last().map_or(0, |fatbin| fatbin.offset.saturating_add(fatbin.size_bytes));
        end.saturating_sub(self.position)
    }

    fn entry(&mut self) -> Step {
        let remaining_bytes = self.remaining_bytes();
        if remaining_bytes == 0 {
            self.state = State::Searching;
            return Step::Done;
        }
        if remaining_bytes < ENTRY_HEADER_BYTES as u64 {
            self.fail("what is left is too short for an image");
            return Step::Done;
        }
        if self.pending.len() < ENTRY_HEADER_BYTES {
            return Step::Needs(ENTRY_HEADER_BYTES);
        }
        let Some(entry) = EntryHeader::parse(&self.pending) else {
            self.fail("the header of an image is damaged");
            return Step::Done;
        };
        let header_bytes = entry.header_bytes as usize;
        if entry.payload_bytes.saturating_add(header_bytes as u64) > remaining_bytes {
            self.fail("an image reaches beyond the end of the container");
            return Step::Done;
        }
        let is_asked = self.asked < LARGEST_ASKED && entry.data_bytes() <= toolkit::LARGEST_STORED_BYTES;
        let sample_bytes = if is_asked { usize::try_from(entry.data_bytes()).unwrap_or(0) } else { 0 };
        let Some(taken) = self.pending.get(..header_bytes + sample_bytes) else {
            return Step::Needs(header_bytes + sample_bytes);
        };
        let (header, sample) = taken.split_at(header_bytes);
        let Some(mut images) = entry.images(header) else {
            self.fail("the table of an entry with several images is damaged");
            return Step::Done;
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
            return Step::Done;
        }
        self.consume(header_bytes);
        self.state = State::Skipping { remaining_bytes: entry.payload_bytes };
        Step::Done
    }

    fn skip(&mut self, remaining_bytes: u64) -> Step {
        let count = usize::try_from(remaining_bytes).unwrap_or(usize::MAX).min(self.pending.len());
        self.consume(count);
        let remaining_bytes = remaining_bytes - count as u64;
        if remaining_bytes == 0 {
            self.state = State::Entry;
            return Step::Done;
        }
        self.state = State::Skipping { remaining_bytes };
        Step::Needs(1)
    }
}

/// How many of the last bytes may be the first of a container.
fn begun(bytes: &[u8]) -> usize {
    (1..MAGIC.len()).rev().find(|count| bytes.ends_with(&MAGIC[..*count])).unwrap_or(0)
}
