//! Why a source distribution cannot be read or unpacked.

use std::io;

use crate::path::PathFault;
use crate::version::InvalidVersion;

/// A source distribution could not be read or unpacked: which one, and why.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {fault}")]
pub struct SdistError {
    file: String,
    fault: Box<SdistFault>,
}

impl SdistError {
    pub(super) fn new(file: String, fault: SdistFault) -> Self {
        Self { file, fault: Box::new(fault) }
    }

    /// The path of the archive.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// What is wrong.
    #[must_use]
    pub fn fault(&self) -> &SdistFault {
        &self.fault
    }
}

/// What keeps a source distribution from being read or unpacked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SdistFault {
    /// The file could not be read: it is missing, cut short or no gzip-compressed tar archive.
    #[error("cannot be read: {0}")]
    Read(#[source] io::Error),
    /// The file name is not that of a source distribution.
    #[error("the file name does not have the form name-version.tar.gz")]
    FileName,
    /// The version in the file name is none.
    #[error(transparent)]
    Version(#[from] InvalidVersion),
    /// The archive has no entries.
    #[error("the archive is empty")]
    Empty,
    /// A name is not UTF-8.
    #[error("the name {0:?} is not UTF-8")]
    NameNotUtf8(String),
    /// A name could be written outside the target, or names a file in two spellings.
    #[error("the name {name:?} is refused: {fault}")]
    UnsafeName {
        /// The name.
        name: String,
        /// What is wrong with it.
        fault: PathFault,
    },
    /// An entry lies beside the top folder.
    #[error("{name:?} lies outside the top folder {top:?}: an archive must have one folder at the top")]
    OutsideTop {
        /// The entry.
        name: String,
        /// The folder of the first entry.
        top: String,
    },
    /// Two entries have the same name, or one lies below another that is no directory.
    #[error("{0:?} is in the archive twice, or below something that is no directory")]
    Conflict(String),
    /// A link leads out of the top folder, or to something that was not in the archive before it.
    #[error("the link {name:?} to {target:?} is refused: it leads out of the top folder or to nothing before it")]
    Link {
        /// The link.
        name: String,
        /// What it leads to.
        target: String,
    },
    /// An entry is a device, a pipe, a sparse file or has a form that is not read.
    #[error("{name:?} is {what}, which a source distribution may not hold")]
    Unsupported {
        /// The entry.
        name: String,
        /// What it is.
        what: &'static str,
    },
    /// The archive inflates to more than is read.
    #[error("the archive has more than {limit} {unit}: it is not read further")]
    TooLarge {
        /// The most that is read.
        limit: u64,
        /// Of what.
        unit: &'static str,
    },
    /// A file could not be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file.
        path: String,
        /// What the system said.
        source: io::Error,
    },
}
