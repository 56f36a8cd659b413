//! What GPU code a wheel has, as the preflight compares it with the driver and the devices.

use std::path::Path;

use cuwheel_inspect::wheel::Wheel;
use serde::Serialize;

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

/// Files that may hold GPU code.
const MAY_HOLD_CODE: &[&str] = &["so", "cubin", "fatbin", "ptx"];

/// What is known of a wheel: a wheel without files that could hold GPU code has none; of others nothing is known.
pub fn of_wheel(wheel: &Wheel) -> Option<GpuContent> {
    let may_hold_code = wheel.entries().iter().any(|entry| {
        let path = Path::new(entry.path());
        path.extension().is_some_and(|extension| MAY_HOLD_CODE.iter().any(|known| extension == *known))
            || entry.path().contains(".so.")
    });
    (!may_hold_code).then(GpuContent::default)
}
