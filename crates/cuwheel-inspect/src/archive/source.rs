//! Where an archive's bytes come from: an open file or memory, read by position so that threads can share it.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

/// Bytes that can be read at any position.
#[derive(Debug)]
pub(crate) enum Source {
    File { file: File, size_bytes: u64 },
    Memory(Vec<u8>),
}

impl Source {
    pub(crate) fn from_file(file: File) -> io::Result<Self> {
        let size_bytes = file.metadata()?.len();
        Ok(Self::File { file, size_bytes })
    }

    pub(crate) fn size_bytes(&self) -> u64 {
        match self {
            Self::File { size_bytes, .. } => *size_bytes,
            Self::Memory(bytes) => bytes.len() as u64,
        }
    }

    /// A reader of `length_bytes` from `offset`; it ends early where the source does.
    pub(crate) fn range(&self, offset: u64, length_bytes: u64) -> Range<'_> {
        Range { source: self, position: offset, end: offset.saturating_add(length_bytes) }
    }

    /// Exactly `length_bytes` from `offset`. The caller has bounded the length.
    pub(crate) fn bytes(&self, offset: u64, length_bytes: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.range(offset, length_bytes).read_to_end(&mut bytes)?;
        if bytes.len() as u64 == length_bytes { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        match self {
            Self::File { file, .. } => file.read_at(buffer, offset),
            Self::Memory(bytes) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
                (&bytes[start..]).read(buffer)
            }
        }
    }
}

/// Part of a [`Source`], read from front to back.
pub(crate) struct Range<'source> {
    source: &'source Source,
    position: u64,
    end: u64,
}

impl Range<'_> {
    /// Goes on further on, or at the end where there is less.
    pub(super) fn skip(&mut self, count_bytes: u64) {
        self.position = self.position.saturating_add(count_bytes).min(self.end);
    }
}

impl Read for Range<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let remaining = usize::try_from(self.end - self.position).unwrap_or(usize::MAX);
        let length = buffer.len().min(remaining);
        let count = self.source.read_at(&mut buffer[..length], self.position)?;
        self.position += count as u64;
        Ok(count)
    }
}
