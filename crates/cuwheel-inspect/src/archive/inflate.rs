//! The contents of a member, from front to back: as they lie in the archive, or inflated.

use std::io::{self, BufRead, BufReader, Read};

use flate2::{Decompress, FlushDecompress, Status};

use super::source::Range;
use super::{BLOCK_BYTES, Member, Method, Source};

pub(super) enum Contents<'source> {
    Stored(Range<'source>),
    Deflated(Inflater<'source>),
}

impl<'source> Contents<'source> {
    pub(super) fn of(source: &'source Source, member: &Member) -> Self {
        let range = source.range(member.data_offset, member.compressed_size_bytes);
        match member.method {
            Method::Stored => Self::Stored(range),
            Method::Deflated => Self::Deflated(Inflater::new(range, member.compressed_size_bytes)),
        }
    }

    /// Goes on `count_bytes` further on.
    pub(super) fn skip(&mut self, count_bytes: u64) -> io::Result<()> {
        let inflater = match self {
            Self::Stored(range) => {
                range.skip(count_bytes);
                return Ok(());
            }
            Self::Deflated(inflater) => inflater,
        };
        let mut remaining_bytes = count_bytes;
        let mut block = vec![0; block_bytes(count_bytes)];
        while remaining_bytes > 0 {
            let part = &mut block[..block_bytes(remaining_bytes)];
            inflater.read_exact(part)?;
            remaining_bytes -= part.len() as u64;
        }
        Ok(())
    }
}

/// The size of a block for contents of this size.
pub(super) fn block_bytes(size_bytes: u64) -> usize {
    usize::try_from(size_bytes).unwrap_or(BLOCK_BYTES).min(BLOCK_BYTES)
}

impl Read for Contents<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Stored(range) => range.read(buffer),
            Self::Deflated(inflater) => inflater.read(buffer),
        }
    }
}

pub(super) struct Inflater<'source> {
    input: BufReader<Range<'source>>,
    decoder: Decompress,
    is_finished: bool,
}

impl<'source> Inflater<'source> {
    fn new(range: Range<'source>, compressed_size_bytes: u64) -> Self {
        let input = BufReader::with_capacity(block_bytes(compressed_size_bytes), range);
        Self { input, decoder: Decompress::new(false), is_finished: false }
    }
}

impl Read for Inflater<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let corrupt = || io::Error::new(io::ErrorKind::InvalidData, "corrupt deflate stream");
        while !self.is_finished {
            let input = self.input.fill_buf()?;
            let is_at_end = input.is_empty();
            let before = (self.decoder.total_in(), self.decoder.total_out());
            let status = self.decoder.decompress(input, buffer, FlushDecompress::None).map_err(|_| corrupt())?;
            let consumed = within(self.decoder.total_in() - before.0);
            let produced = within(self.decoder.total_out() - before.1);
            self.input.consume(consumed);
            // Without input it asks for more, and there is none: the caller sees that the contents are too short.
            self.is_finished = status == Status::StreamEnd || (is_at_end && produced == 0);
            if produced > 0 {
                return Ok(produced);
            }
            if consumed == 0 && !self.is_finished {
                return Err(corrupt());
            }
        }
        Ok(0)
    }
}

/// What was done to a buffer is no more than its length.
fn within(count: u64) -> usize {
    usize::try_from(count).expect("a count of bytes in a buffer")
}
