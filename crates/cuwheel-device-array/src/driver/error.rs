//! What can be wrong with the driver, and what it can say is wrong.

use std::fmt;

use thiserror::Error;

use crate::{Classified, ErrorKind};

/// Why the driver cannot be used, or what it reports.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DriverError {
    /// The library of the driver was not found.
    #[error(
        "no CUDA driver was found ({searched}); install NVIDIA's driver, or pass the GPU into the container, for example \
         with `--gpus all`"
    )]
    NoDriver {
        /// What was tried, and what the loader said.
        searched: String,
    },
    /// The driver is older than what is supported.
    #[error("the driver is for CUDA {found}, and {needed} or newer is needed; update NVIDIA's driver")]
    TooOld {
        /// The version of the driver.
        found: CudaVersion,
        /// The oldest version that is supported.
        needed: CudaVersion,
    },
    /// The driver has no such function.
    #[error(
        "the driver, which is for CUDA {driver_version}, has no function {name}, which is needed for {needed_for}; update \
         NVIDIA's driver"
    )]
    MissingSymbol {
        /// The function.
        name: &'static str,
        /// The version of the driver.
        driver_version: CudaVersion,
        /// What the function is for here.
        needed_for: &'static str,
    },
    /// The driver was started before this process was forked off.
    #[error(
        "CUDA was started before this process was forked, and cannot be used in the child; start processes with the \
         method \"spawn\" or \"forkserver\", or use CUDA only after the fork"
    )]
    Forked,
    /// There is no device of this number.
    #[error(
        "there is no device {ordinal}: the driver shows {count}; devices are counted from 0, and CUDA_VISIBLE_DEVICES can \
         hide some"
    )]
    NoSuchDevice {
        /// The number asked for.
        ordinal: u32,
        /// How many devices there are.
        count: usize,
    },
    /// A function of the driver's failed.
    #[error(transparent)]
    Cuda(#[from] CudaError),
    /// Something failed earlier, where no error could be returned.
    #[error("an error that could not be reported when it happened, while {during}: {error}")]
    Deferred {
        /// What was being done.
        during: &'static str,
        /// What the driver said.
        error: CudaError,
    },
}

/// What a function of the driver's reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CudaError {
    /// The `CUresult`. An integer: a newer driver may know codes that no header here has.
    pub code: u32,
    /// The code's name, such as `CUDA_ERROR_INVALID_VALUE`.
    pub name: String,
    /// The driver's description of the code.
    pub description: String,
    /// The function that returned it.
    pub call: &'static str,
}

/// Codes of `CUresult` that are told apart here. Source: `cuda.h`.
pub(crate) mod code {
    pub(crate) const OUT_OF_MEMORY: u32 = 2;
    pub(crate) const NOT_INITIALIZED: u32 = 3;
    pub(crate) const DEINITIALIZED: u32 = 4;
    pub(crate) const NO_DEVICE: u32 = 100;
    pub(crate) const NOT_READY: u32 = 600;
    pub(crate) const ILLEGAL_ADDRESS: u32 = 700;
    pub(crate) const CONTEXT_IS_DESTROYED: u32 = 709;
    pub(crate) const ASSERT: u32 = 710;
    pub(crate) const HARDWARE_STACK_ERROR: u32 = 714;
    pub(crate) const LAUNCH_FAILED: u32 = 719;
    pub(crate) const NOT_SUPPORTED: u32 = 801;
    pub(crate) const SYSTEM_NOT_READY: u32 = 802;
    pub(crate) const SYSTEM_DRIVER_MISMATCH: u32 = 803;
    pub(crate) const STREAM_CAPTURE_UNSUPPORTED: u32 = 900;
    pub(crate) const STREAM_CAPTURE_WRONG_THREAD: u32 = 908;
}

impl CudaError {
    /// Whether the call was refused because a stream is being captured into a graph.
    pub fn is_refused_by_capture(&self) -> bool {
        (code::STREAM_CAPTURE_UNSUPPORTED..=code::STREAM_CAPTURE_WRONG_THREAD).contains(&self.code)
    }

    /// Whether the driver has already let go of everything, as it does when the process ends.
    pub(crate) fn is_after_the_end(&self) -> bool {
        matches!(self.code, code::NOT_INITIALIZED | code::DEINITIALIZED | code::CONTEXT_IS_DESTROYED)
    }

    /// Whether the context of the device is lost for good.
    pub fn is_sticky(&self) -> bool {
        matches!(self.code, code::ILLEGAL_ADDRESS | code::ASSERT | code::HARDWARE_STACK_ERROR..=code::LAUNCH_FAILED)
    }

    fn remedy(&self) -> &'static str {
        match self.code {
            _ if self.is_sticky() => {
                "a kernel that ran earlier is the likely cause, and the device stays unusable for this process; find it \
                 with compute-sanitizer and restart"
            }
            _ if self.is_refused_by_capture() => "do this before or after the capture of the stream",
            code::OUT_OF_MEMORY => "release arrays that are no longer needed, or work on smaller pieces",
            code::NO_DEVICE => "see that `nvidia-smi` lists a GPU and that CUDA_VISIBLE_DEVICES does not hide it",
            code::SYSTEM_NOT_READY => "start the fabric manager, or wait until it has started",
            code::SYSTEM_DRIVER_MISMATCH => {
                "the driver's library and kernel module are of different versions; restart the machine, or the container \
                 with the libraries of this machine's driver"
            }
            code::NOT_SUPPORTED => "the device or the driver cannot do this; a newer driver may",
            _ => "run again with CUDA_LAUNCH_BLOCKING=1 or under compute-sanitizer to find the cause",
        }
    }
}

impl std::error::Error for CudaError {}

impl fmt::Display for CudaError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { code, name, description, call } = self;
        write!(formatter, "{call} failed with {name} ({code}): {description}; {}", self.remedy())
    }
}

/// A version of CUDA as the driver counts: 12040 is 12.4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CudaVersion(i32);

impl From<i32> for CudaVersion {
    fn from(version: i32) -> Self {
        Self(version)
    }
}

impl fmt::Display for CudaVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.0 / 1000, self.0 % 1000 / 10)
    }
}

impl Classified for DriverError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Cuda(CudaError { code: code::OUT_OF_MEMORY, .. }) => ErrorKind::Memory,
            Self::NoSuchDevice { .. } => ErrorKind::Value,
            _ => ErrorKind::Driver,
        }
    }

    fn cuda_error(&self) -> Option<&CudaError> {
        match self {
            Self::Cuda(error) | Self::Deferred { error, .. } => Some(error),
            _ => None,
        }
    }
}

impl DriverError {
    /// The driver's own error, if that is what this is.
    pub fn cuda(&self) -> Option<&CudaError> {
        match self {
            Self::Cuda(error) => Some(error),
            _ => None,
        }
    }
}
