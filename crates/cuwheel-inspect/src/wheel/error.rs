//! Why a wheel cannot be read. What is wrong with a wheel that can be read is a finding, not an error.

use std::io;

use super::{TagError, WheelNameError};
pub use crate::archive::ArchiveError;

/// A wheel could not be read: which one, and why.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {fault}")]
pub struct WheelError {
    file: String,
    fault: Box<WheelFault>,
}

impl WheelError {
    pub(super) fn new(file: &str, fault: impl Into<WheelFault>) -> Self {
        Self { file: file.to_owned(), fault: Box::new(fault.into()) }
    }

    /// The wheel's file name, or its path where it could not be opened.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// What is wrong.
    #[must_use]
    pub fn fault(&self) -> &WheelFault {
        &self.fault
    }
}

/// What keeps a wheel from being read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WheelFault {
    /// The file could not be opened or read.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// The file name is not that of a wheel.
    #[error(transparent)]
    Name(#[from] WheelNameError),
    /// The ZIP archive is damaged or unsafe.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// There is no `*.dist-info` directory at the top.
    #[error("the archive has no .dist-info directory: it is no wheel")]
    NoDistInfo,
    /// There are several `*.dist-info` directories at the top, and installers choose differently.
    #[error("the archive has several .dist-info directories: {}", .0.join(", "))]
    SeveralDistInfo(Vec<String>),
    /// A file was asked for, or is required of every wheel, and is not there.
    #[error("the archive holds no {0}")]
    Missing(String),
    /// A file of `.dist-info` is larger than is read into memory.
    #[error("{path} has {size_bytes} bytes, more than the {limit_bytes} that are read")]
    TooLarge {
        /// The file.
        path: String,
        /// Its size.
        size_bytes: u64,
        /// The most that is read.
        limit_bytes: u64,
    },
    /// A file of `.dist-info` is not UTF-8.
    #[error("{path} is not UTF-8 after byte {valid_bytes}")]
    NotUtf8 {
        /// The file.
        path: String,
        /// The number of bytes that are.
        valid_bytes: usize,
    },
    /// RECORD is not the table it must be.
    #[error("{path}, line {line}: {reason}")]
    Record {
        /// The path of RECORD.
        path: String,
        /// The line, counted from 1.
        line: u64,
        /// What is wrong there.
        reason: &'static str,
    },
    /// METADATA or WHEEL lacks a header that it must have.
    #[error("{path} has no `{header}` header")]
    MissingHeader {
        /// The file.
        path: String,
        /// The header's name.
        header: &'static str,
    },
    /// A header of WHEEL has a value that it cannot have.
    #[error("{path}: `{header}: {value}` must be true or false")]
    NotBoolean {
        /// The file.
        path: String,
        /// The header's name.
        header: &'static str,
        /// Its value.
        value: String,
    },
    /// A `Tag` header of WHEEL is not a tag.
    #[error("{path}: {source}")]
    Tag {
        /// The file.
        path: String,
        /// What is wrong with the tag.
        source: TagError,
    },
}
