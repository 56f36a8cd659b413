//! Inflates a member from its start, or from a place that was noted on the way.
//!
//! The places make a large member readable at any position without a copy of it: a read inflates from the place before.

use std::io::{self, BufRead, BufReader, Read};

use miniz_oxide::inflate::stream::{InflateState, inflate};
use miniz_oxide::{DataFormat, MZError, MZFlush, MZStatus};

use super::source::Range;
use super::{BUFFER_BYTES, Member, Method, Source};

/// A decoder's state has 43 kB; members have at most this many places, and no two of them are closer than
/// [`SMALLEST_DISTANCE_BYTES`].
const PLACES: u64 = 128;
const SMALLEST_DISTANCE_BYTES: u64 = 4 * 1024 * 1024;

/// The contents of a member, from front to back.
pub(super) enum Contents<'source> {
    Stored(BufReader<Range<'source>>),
    Deflated(Inflater<'source>),
}

impl<'source> Contents<'source> {
    pub(super) fn of(source: &'source Source, member: &Member) -> Self {
        match member.method {
            Method::Stored => {
                let range = source.range(member.data_offset, member.compressed_size_bytes);
                Self::Stored(BufReader::with_capacity(BUFFER_BYTES, range))
            }
            Method::Deflated => Self::Deflated(Inflater::new(source, member, &Place::start())),
        }
    }

    /// Where the reader is; `None` where every position can be reached at once.
    pub(super) fn place(&self) -> Option<Place> {
        match self {
            Self::Stored(_) => None,
            Self::Deflated(inflater) => Some(inflater.place()),
        }
    }
}

impl Read for Contents<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Stored(reader) => reader.read(buffer),
            Self::Deflated(inflater) => inflater.read(buffer),
        }
    }
}

/// A position in deflated data, with what a decoder knows there.
pub(crate) struct Place {
    consumed_bytes: u64,
    produced_bytes: u64,
    state: Box<InflateState>,
}

impl Place {
    fn start() -> Self {
        Self { consumed_bytes: 0, produced_bytes: 0, state: InflateState::new_boxed(DataFormat::Raw) }
    }
}

pub(super) struct Inflater<'source> {
    input: BufReader<Range<'source>>,
    place: Place,
    is_finished: bool,
}

impl<'source> Inflater<'source> {
    fn new(source: &'source Source, member: &Member, place: &Place) -> Self {
        let offset = member.data_offset.saturating_add(place.consumed_bytes);
        let range = source.range(offset, member.compressed_size_bytes.saturating_sub(place.consumed_bytes));
        Self { input: BufReader::with_capacity(BUFFER_BYTES, range), place: place.clone(), is_finished: false }
    }

    fn place(&self) -> Place {
        self.place.clone()
    }
}

impl Clone for Place {
    fn clone(&self) -> Self {
        Self { consumed_bytes: self.consumed_bytes, produced_bytes: self.produced_bytes, state: self.state.clone() }
    }
}

impl Read for Inflater<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        while !self.is_finished {
            let input = self.input.fill_buf()?;
            let is_at_end = input.is_empty();
            let result = inflate(&mut self.place.state, input, buffer, MZFlush::None);
            self.input.consume(result.bytes_consumed);
            self.place.consumed_bytes += result.bytes_consumed as u64;
            self.place.produced_bytes += result.bytes_written as u64;
            self.is_finished = match result.status {
                Ok(MZStatus::StreamEnd) => true,
                // It asks for more, and there is none: the caller sees that the contents are too short.
                Ok(_) | Err(MZError::Buf) => is_at_end && result.bytes_written == 0,
                Err(_) => return Err(io::Error::new(io::ErrorKind::InvalidData, "corrupt deflate stream")),
            };
            if result.bytes_written > 0 {
                return Ok(result.bytes_written);
            }
        }
        Ok(0)
    }
}

/// Places in a member that was read once to its end.
pub(crate) struct Index {
    places: Vec<Place>,
    distance_bytes: u64,
}

impl Index {
    pub(super) fn new(member: &Member) -> Self {
        Self { places: Vec::new(), distance_bytes: (member.size_bytes / PLACES).max(SMALLEST_DISTANCE_BYTES) }
    }

    /// Notes where `contents` is, if that is far enough from the place before.
    pub(super) fn note(&mut self, contents: &Contents<'_>, position: u64) {
        let next = self.places.last().map_or(0, |place| place.produced_bytes) + self.distance_bytes;
        if position >= next {
            self.places.extend(contents.place());
        }
    }

    /// Fills `buffer` with the contents from `offset` on.
    pub(crate) fn read_at(&self, source: &Source, member: &Member, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        if member.method == Method::Stored {
            let remaining_bytes = member.compressed_size_bytes.saturating_sub(offset);
            return source.range(member.data_offset.saturating_add(offset), remaining_bytes).read_exact(buffer);
        }
        let after = self.places.partition_point(|place| place.produced_bytes <= offset);
        let mut inflater = match after.checked_sub(1) {
            Some(before) => Inflater::new(source, member, &self.places[before]),
            None => Inflater::new(source, member, &Place::start()),
        };
        let skipped_bytes = offset - inflater.place.produced_bytes;
        io::copy(&mut Read::take(&mut inflater, skipped_bytes), &mut io::sink())?;
        inflater.read_exact(buffer)
    }
}
