//! Why there is no image of a source.

use cuwheel_device_array::{Classified, CudaError, DriverError, ErrorKind};
use thiserror::Error;

use super::ArchitectureError;
use crate::launch::ImageError;

/// Any error of compiling.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CompileError {
    /// NVRTC was not found.
    #[error(
        "NVRTC, the compiler of CUDA C++, was not found ({searched}); install the package nvidia-cuda-nvrtc, or \
         nvidia-cuda-nvrtc-cu12 for a driver of CUDA 12, or say where libnvrtc is by CUWHEEL_NVRTC"
    )]
    NotFound {
        /// What was tried, and what the loader said.
        searched: String,
    },
    /// A library was named that cannot be used.
    #[error("CUWHEEL_NVRTC is {path:?}, which cannot be used: {reason}; name a libnvrtc.so, or its directory")]
    NotUsable {
        /// The value of the variable.
        path: String,
        /// Why not.
        reason: String,
    },
    /// The compiler makes no code for the device any more.
    #[error(
        "{compiler} knows architectures from {}.{} on, and the device has {}.{}; use an older one: install the package \
         nvidia-cuda-nvrtc-cu12, and remove the newer one or set CUWHEEL_NVRTC", oldest / 10, oldest % 10, device / 10,
        device % 10
    )]
    DeviceTooOld {
        /// The compiler with its version.
        compiler: String,
        /// The compute capability of the device, 70 for 7.0.
        device: u32,
        /// The oldest that the compiler knows.
        oldest: u32,
    },
    /// The compiler refuses.
    #[error(transparent)]
    Refused(Box<CompilerRefusal>),
    /// Something given cannot be passed on.
    #[error("{what} has a zero character in it, which the compiler takes for the end; remove it")]
    ZeroCharacter {
        /// What has it.
        what: String,
    },
    /// An option that is given another way.
    #[error("the option {option:?} is not for here: {remedy}")]
    Option {
        /// The option.
        option: String,
        /// What to do instead.
        remedy: &'static str,
    },
    /// An architecture that is none.
    #[error(transparent)]
    Architecture(#[from] ArchitectureError),
    /// What the compiler made is no image.
    #[error("{compiler} made something else than code: {error}")]
    Image {
        /// The compiler with its version.
        compiler: String,
        /// What is wrong with it.
        error: ImageError,
    },
    /// The device that code is to be made for is not known.
    #[error("there is no device to compile for: {0}; or name an architecture, such as \"sm_90\"")]
    Device(DriverError),
}

/// What the compiler refuses, and what it says of it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "{filename} was not compiled for {architecture}: {call} of {compiler} failed with {name} ({code}){}",
    shown(log)
)]
pub struct CompilerRefusal {
    /// What the source is called.
    pub filename: String,
    /// What it was to be compiled for.
    pub architecture: String,
    /// The compiler with its version.
    pub compiler: String,
    /// The function that failed.
    pub call: &'static str,
    /// The compiler's name of the error, such as `NVRTC_ERROR_COMPILATION`.
    pub name: String,
    /// The number of the error.
    pub code: u32,
    /// What the compiler says of the source.
    pub log: String,
}

fn shown(log: &str) -> String {
    match log.trim_end() {
        "" => "; the compiler says no more".to_owned(),
        log => format!(":\n{log}"),
    }
}

impl CompileError {
    /// What the compiler refuses, if that is the error.
    pub fn refusal(&self) -> Option<&CompilerRefusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }
}

impl Classified for CompileError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::ZeroCharacter { .. } | Self::Option { .. } | Self::Architecture(_) => ErrorKind::Value,
            _ => ErrorKind::Driver,
        }
    }

    fn cuda_error(&self) -> Option<&CudaError> {
        match self {
            Self::Device(error) => error.cuda_error(),
            _ => None,
        }
    }
}
