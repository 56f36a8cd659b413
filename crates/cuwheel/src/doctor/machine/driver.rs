//! The CUDA driver and its devices, asked by the program that GPU tests ask with, in a process of its own.
//!
//! No context is made on any device: nothing else that runs there is disturbed.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::{self, FailureKind, Result};
use crate::process::Process;

const PROGRAM: &str = include_str!("../../python/gpu/driver.py");
/// A driver that hangs is not waited for.
const DEADLINE: Duration = Duration::from_secs(20);

/// What the driver answered.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Driver {
    /// The file that was loaded.
    pub library: Option<String>,
    /// Why none was.
    pub load_error: Option<String>,
    /// The call that failed.
    pub error: Option<CallError>,
    /// Major and minor version of CUDA that it is for.
    pub cuda_version: Option<(u32, u32)>,
    /// The version of the kernel's module.
    pub kernel_module: Option<String>,
    /// The devices.
    #[serde(default)]
    pub devices: Vec<Device>,
    /// What happened to the process that asked.
    #[serde(skip)]
    pub accident: Option<String>,
}

/// A call of the driver that failed.
#[derive(Clone, Debug, Deserialize)]
pub struct CallError {
    /// The function.
    pub function: String,
    /// The name of the error.
    pub name: String,
}

/// A device.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Device {
    /// Its number.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Major and minor.
    pub compute_capability: (u32, u32),
    /// The size of its memory.
    pub memory_bytes: u64,
}

impl fmt::Display for Device {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor) = self.compute_capability;
        write!(formatter, "{}: {}, compute capability {major}.{minor}", self.index, self.name)
    }
}

impl fmt::Display for Driver {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(accident) = &self.accident {
            return formatter.write_str(accident);
        }
        let Some(library) = &self.library else { return formatter.write_str("none: libcuda.so.1 cannot be loaded") };
        match (&self.error, self.cuda_version) {
            (Some(error), _) => write!(formatter, "{library}: {} gives {}", error.function, error.name),
            (None, Some((major, minor))) => write!(formatter, "for CUDA {major}.{minor}, {library}"),
            (None, None) => formatter.write_str(library),
        }
    }
}

impl Driver {
    pub(super) fn to_json(&self) -> Value {
        json!({
            "library": self.library,
            "problem": self.problem(),
            "cuda_version": self.cuda_version.map(|(major, minor)| [major, minor]),
            "kernel_module": self.kernel_module,
            "devices": self.devices,
        })
    }

    /// What is wrong with a driver that is there.
    pub(super) fn problem(&self) -> Option<String> {
        if let Some(accident) = &self.accident {
            return Some(accident.clone());
        }
        let library = self.library.as_deref()?;
        let error = self.error.as_ref()?;
        let stub = if library.split('/').any(|part| part == "stubs") {
            ", the stub that programs are linked with,"
        } else {
            ""
        };
        Some(format!("{library}{stub} does not work: {} gives {}", error.function, error.name))
    }
}

/// Asks the driver.
pub(super) fn ask(python: &Path) -> Result<Driver> {
    // The argument names the devices that a context is made on: none.
    let process = Process::new(python).args(["-I", "-S", "-c", PROGRAM, ","]).deadline(DEADLINE);
    let finished = match process.capture() {
        Ok(finished) => finished,
        Err(error) if error::kind_of(&error) == FailureKind::Interrupted => return Err(error),
        Err(_) => {
            let accident = format!("the driver did not answer within {} s", DEADLINE.as_secs());
            return Ok(Driver { accident: Some(accident), ..Driver::default() });
        }
    };
    if !finished.status.success() {
        let accident = format!("the driver ended the process that asked it ({})", finished.status);
        return Ok(Driver { accident: Some(accident), ..Driver::default() });
    }
    Ok(finished.stdout.lines().last().and_then(|line| serde_json::from_str(line).ok()).unwrap_or_default())
}
