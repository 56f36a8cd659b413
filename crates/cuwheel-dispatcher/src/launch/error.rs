//! Why a kernel cannot be had or launched.

use cuwheel_device_array::{Classified, CudaError, DriverError, ErrorKind};
use thiserror::Error;

use super::{ArgumentError, ConfigError, ImageError, Kernel, MixedDevices, Parameter, SignatureError};

/// Any error of modules, kernels and launches.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// The bytes are no image of device code.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// A configuration that the device or the kernel cannot have.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A signature that is not the kernel's.
    #[error(transparent)]
    Signature(#[from] SignatureError),
    /// A value that is none for its parameter.
    #[error(transparent)]
    Argument(Box<Argument>),
    /// More or fewer arguments than parameters.
    #[error("kernel {kernel:?} takes {expected} arguments, and {given} are given")]
    Count {
        /// The kernel.
        kernel: String,
        /// The number of its parameters.
        expected: usize,
        /// The arguments that were given.
        given: usize,
    },
    /// Arrays of several devices.
    #[error(transparent)]
    Devices(#[from] MixedDevices),
    /// The driver, where there is nothing to add to what it says.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// The driver refused, and the reason is known.
    #[error(transparent)]
    Refused(Box<Refusal>),
}

/// What the driver refused, why, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{what}: {} failed with {} ({}): {}; {remedy}", error.call, error.name, error.code, error.description)]
pub struct Refusal {
    /// What could not be done, with the kernel and the configuration of a launch.
    pub what: String,
    /// What the driver said.
    pub error: CudaError,
    /// What is known of the cause, such as the limits that were exceeded, and what to do about it.
    pub remedy: String,
}

/// Which argument of a launch does not fit, and why.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{place}: {error}")]
pub struct Argument {
    /// Which one, in words: `argument 0 (x) of kernel "saxpy"`.
    pub place: String,
    /// What is wrong with it.
    pub error: ArgumentError,
}

impl Argument {
    /// The words for an argument of a kernel.
    pub fn place(kernel: &Kernel, position: usize, parameter: &Parameter) -> String {
        let kernel = kernel.name();
        match &parameter.name {
            Some(name) => format!("argument {position} ({name}) of kernel {kernel:?}"),
            None => format!("argument {position} of kernel {kernel:?}"),
        }
    }

    /// The error of a launch whose argument at `position` does not fit.
    #[cold]
    pub fn refused(kernel: &Kernel, position: usize, parameter: &Parameter, error: ArgumentError) -> LaunchError {
        LaunchError::Argument(Box::new(Self { place: Self::place(kernel, position, parameter), error }))
    }
}

impl LaunchError {
    /// Adds to the driver's own error what was being done, and the remedy; other errors say it already.
    pub(super) fn refused(error: DriverError, what: impl FnOnce() -> String, remedy: impl FnOnce() -> String) -> Self {
        match error {
            // What an earlier kernel did is not explained by this call.
            DriverError::Cuda(error) if !error.is_sticky() => {
                Self::Refused(Box::new(Refusal { what: what(), error, remedy: remedy() }))
            }
            error => Self::Driver(error),
        }
    }
}

impl Classified for LaunchError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Image(_) | Self::Config(_) | Self::Signature(_) | Self::Devices(_) => ErrorKind::Value,
            Self::Argument(argument) => argument.error.kind(),
            Self::Count { .. } => ErrorKind::Type,
            Self::Driver(error) => error.kind(),
            Self::Refused(refusal) => DriverError::Cuda(refusal.error.clone()).kind(),
        }
    }

    fn cuda_error(&self) -> Option<&CudaError> {
        match self {
            Self::Driver(error) => error.cuda_error(),
            Self::Refused(refusal) => Some(&refusal.error),
            _ => None,
        }
    }
}
