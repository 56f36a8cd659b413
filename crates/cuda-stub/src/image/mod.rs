//! Images of device code: what kind they are, whether they suit the device, which kernels they have and what those take.
//! Nothing in them is ever run.

mod cubin;
mod fatbin;
mod ptx;
pub(crate) mod raw;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::Code;

/// Why an image is not loaded: the driver's code, and the reason for the log of whoever asked for one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Refusal {
    pub(crate) code: Code,
    pub(crate) reason: String,
}

impl Refusal {
    fn new(code: Code, reason: impl Into<String>) -> Self {
        Self { code, reason: reason.into() }
    }
}

/// Where a parameter lies in the block of parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Parameter {
    pub(crate) offset: usize,
    pub(crate) size: usize,
}

/// What is known of a kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Kernel {
    pub(crate) name: Arc<str>,
    /// None where the image does not tell: then nothing of the parameters is read.
    pub(crate) parameters: Option<Arc<[Parameter]>>,
    pub(crate) registers: u32,
    pub(crate) shared_bytes: u32,
}

/// Registers of a kernel whose image does not tell.
const USUAL_REGISTERS: u32 = 32;

impl Kernel {
    fn new(name: &str, parameters: Option<Vec<Parameter>>) -> Self {
        Self { name: name.into(), parameters: parameters.map(Into::into), registers: USUAL_REGISTERS, shared_bytes: 0 }
    }
}

/// An image that suits the device.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct Image {
    pub(crate) kernels: BTreeMap<Arc<str>, Kernel>,
    /// Variables with their sizes in bytes.
    pub(crate) variables: BTreeMap<String, u64>,
    /// Whether the code is compressed, so that any name is taken for a kernel's.
    pub(crate) opaque: bool,
}

impl Image {
    pub(crate) fn kernel(&self, name: &str) -> Option<Kernel> {
        self.kernels.get(name).cloned().or_else(|| (self.opaque && !name.is_empty()).then(|| Kernel::new(name, None)))
    }

    fn add(&mut self, kernel: Kernel) {
        self.kernels.insert(kernel.name.clone(), kernel);
    }
}

/// The device and driver that an image has to suit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    /// 10 × major + minor.
    pub(crate) compute: u32,
    pub(crate) driver_version: i32,
}

impl Target {
    /// Whether code for exactly `architecture` runs: within a major version, on what is newer.
    fn runs(self, architecture: u32) -> bool {
        architecture / 10 == self.compute / 10 && architecture % 10 <= self.compute % 10
    }
}

/// Reads an image of any kind.
pub(crate) fn parse(bytes: &[u8], target: Target) -> Result<Image, Refusal> {
    if bytes.starts_with(cubin::MAGIC) {
        cubin::parse(bytes, target)
    } else if bytes.starts_with(fatbin::MAGIC) {
        fatbin::parse(bytes, target)
    } else {
        ptx::parse(bytes, target)
    }
}
