//! Kernels out of images of device code, and their launches: packed parameters, checked configurations, explained errors.
//!
//! An [`Image`] is bytes of a known kind, a [`Module`] the same once the driver has it, a [`Kernel`] one function of it.
//! [`Arguments`] are the values of a launch in the layout that a [`Signature`] says, a [`LaunchConfig`] is its shape, and
//! a [`Placement`] the device and the stream that follow from the arrays among the arguments. A [`LoadedKernel`] is one that
//! another library has loaded. Where Rust knows the arguments, a [`Launch`] takes them one by one and does the rest.
//!
//! Nothing is asked of the driver before a kernel is used. A launch whose kernel is known on the device takes no lock and
//! allocates nothing.

mod arguments;
mod array_argument;
mod attributes;
mod config;
mod driver;
mod error;
mod image;
mod kernel;
mod loaded;
mod module;
mod placement;
mod plain;
mod signature;
mod typed;

pub use arguments::Arguments;
pub use array_argument::{ArgumentError, ArrayArgument};
pub use attributes::{ClusterSchedulingPolicy, LaunchAttribute, LaunchAttributes, MemSyncDomain, Percent};
pub use config::{ConfigError, Extent, LaunchConfig, Limits};
pub use error::{Argument, LaunchError, Refusal};
pub use image::{Code, Image, ImageError, ImageKind};
pub use kernel::{Attributes, Kernel, ReadyKernel};
pub use loaded::{ContextId, LoadedKernel, current_context};
pub use module::Module;
pub use placement::{MixedDevices, Placement};
pub use plain::{PlainParameter, PlainSignature, PlainType};
pub(crate) use signature::split_name;
pub use signature::{Parameter, ParameterType, Signature, SignatureError};
pub use typed::{Launch, Number};
