//! `dist/manifest.json`: what one build made, for whoever takes the files further.
//!
//! It holds no time and no path of this machine: the same sources give the same manifest.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::error::Result;
use crate::files;
use crate::project::Project;

/// Counted up when a field changes its meaning or goes.
pub const SCHEMA: u32 = 1;

/// A wheel that was built, inspected and proven.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub struct WheelReport {
    /// Its file name.
    pub file: String,
    /// The SHA-256 of the file.
    pub sha256: String,
    /// The size of the file.
    pub size_bytes: u64,
    /// Its compatibility tags, such as `cp311-abi3-manylinux_2_28_x86_64`.
    pub tags: Vec<String>,
    /// Its extension modules, by import name.
    pub extension_modules: Vec<String>,
    /// The oldest glibc whose symbols it uses, if it uses any.
    pub glibc_floor: Option<String>,
    /// The architectures that its CUDA kernels are compiled for, such as `sm_90`.
    pub cuda_architectures: Vec<String>,
    /// The CUDA toolkit that compiled its kernels.
    pub cuda_toolkit: Option<String>,
    /// The interpreter that proved it.
    pub proven_on: String,
    /// The modules that were imported.
    pub imported: Vec<String>,
}

/// An sdist that a wheel was rebuilt from.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub struct SdistReport {
    /// Its file name.
    pub file: String,
    /// The SHA-256 of the file.
    pub sha256: String,
    /// The size of the file.
    pub size_bytes: u64,
    /// Whether the wheel that was rebuilt from it equals the wheel from the checkout, byte by byte.
    pub rebuilds_identically: bool,
}

/// Writes the manifest of a build.
pub fn write(project: &Project, directory: &Path, wheels: &[WheelReport], sdist: Option<&SdistReport>) -> Result<()> {
    let document = json!({
        "schema": SCHEMA,
        "project": project.name,
        "version": project.version,
        "wheels": wheels,
        "sdist": sdist,
    });
    files::write_if_changed(&directory.join("manifest.json"), format!("{document:#}\n").as_bytes()).map(drop)
}
