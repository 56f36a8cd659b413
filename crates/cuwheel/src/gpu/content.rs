//! What GPU code a wheel has, as the preflight compares it with the driver and the devices.

use std::path::Path;

use cuwheel_inspect::rules::{Breakdown, ExaminedWheel};
use serde::Serialize;

use crate::error::Result;
use crate::inspection;

/// The GPU code of a wheel.
#[derive(Clone, Debug, Default, Serialize, PartialEq, Eq)]
pub struct GpuContent {
    /// Architectures of machine code, such as `sm_90a`.
    pub sass: Vec<String>,
    /// Architectures of code that the driver compiles, such as `compute_80`.
    pub ptx: Vec<String>,
    /// The newest CUDA toolkit that compiled some of it, such as `12.4`.
    pub toolkit: Option<String>,
}

/// What the wheel at `path` has.
pub fn of_wheel(path: &Path) -> Result<GpuContent> {
    let examined = ExaminedWheel::open(path).map_err(inspection::unreadable)?;
    let names = Breakdown::of(&examined).architectures.into_iter().map(|code| code.name);
    let (ptx, sass) = names.partition(|name| name.starts_with("compute_"));
    Ok(GpuContent { sass, ptx, toolkit: examined.cuda_toolkits().last().map(ToString::to_string) })
}
