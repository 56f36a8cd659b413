//! What the machine has that builds and GPU tests of CUDA extensions take, and what is wrong with it.
//!
//! [`Machine::look`] reads it; [`check`] is pure, so that machines that nobody has at hand can be tested. Programs are
//! started where only they know: compilers for their version, nvcc for its architectures, uv. nvidia-smi never is.

mod compiler;
mod driver;
mod rules;
mod toolkit;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

pub use compiler::{Compiler, Family};
pub use driver::{Device, Driver};
pub use rules::{Needs, check};
use toolkit::Found;
pub use toolkit::Toolkit;

use crate::env_vars;
use crate::error::Result;
use crate::files::human_size;
use crate::interpreter::Interpreter;
use crate::process::find_program;
use crate::uv;

/// A machine as it was found.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    /// The interpreter, or why there is none.
    pub python: Option<Interpreter>,
    /// Why there is no interpreter.
    pub python_problem: Option<String>,
    /// Toolkits, the first that is taken first.
    pub toolkits: Vec<Toolkit>,
    /// Variables that lead to no toolkit, with what they say.
    pub misleading: Vec<(String, PathBuf)>,
    /// Where toolkits were looked for, in that order.
    pub searched: Vec<String>,
    /// The compiler that nvcc would call.
    pub compiler: Option<Compiler>,
    /// Other compilers on PATH.
    pub other_compilers: Vec<Compiler>,
    /// What the driver answered; `None` where it was not asked.
    pub driver: Option<Driver>,
    /// Free space by directory.
    pub disks: Vec<Disk>,
    /// Bytes that can be had without swapping.
    pub available_memory_bytes: Option<u64>,
    /// How many compilers run at once.
    pub jobs: usize,
    /// The variable that says so, or `processors`.
    pub jobs_from: String,
    /// uv on PATH.
    pub uv: Option<UvOnPath>,
}

/// A uv that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UvOnPath {
    /// The program.
    pub path: PathBuf,
    /// Its version; `None` where it does not run.
    pub version: Option<(u32, u32, u32)>,
}

/// The free space where something is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    /// The directory.
    pub path: PathBuf,
    /// What is free for a user without privileges.
    pub free_bytes: u64,
}

impl Machine {
    /// Looks at this machine, for a project in `root`.
    pub fn look(root: &Path, python: Result<Interpreter>) -> Result<Self> {
        let (python, python_problem) = match python {
            Ok(found) => (Some(found), None),
            Err(error) => (None, Some(format!("{error:#}"))),
        };
        let Found { toolkits, misleading, searched } = toolkit::find()?;
        let (compiler, other_compilers) = compiler::find();
        let driver = python.as_ref().map(|python| driver::ask(&python.base_executable)).transpose()?;
        let (jobs, jobs_from) = jobs();
        let uv = find_program("uv").map(|program| {
            let version = uv::version_of(&program);
            UvOnPath { path: program, version }
        });
        Ok(Self {
            python,
            python_problem,
            toolkits,
            misleading,
            searched,
            compiler,
            other_compilers,
            driver,
            disks: disks(root),
            available_memory_bytes: available_memory(),
            jobs,
            jobs_from,
            uv,
        })
    }

    /// Lines for a person: a name and what was found.
    #[must_use]
    pub fn describe(&self) -> Vec<(&'static str, String)> {
        let mut lines = Vec::new();
        match &self.python {
            Some(python) => {
                lines.push(("python", format!("{python} ({}) at {}", python.abi, python.base_executable.display())));
            }
            None => lines.push(("python", "none that builds".to_owned())),
        }
        let places =
            self.toolkits.iter().enumerate().map(|(index, toolkit)| ("toolkit", format!("{}. {toolkit}", index + 1)));
        lines.extend(places);
        if self.toolkits.is_empty() {
            lines.push(("toolkit", format!("none; looked in {}", self.searched.join(", "))));
        }
        lines.push(("compiler", self.compiler.as_ref().map_or_else(|| "none".to_owned(), ToString::to_string)));
        lines.push((
            "driver",
            self.driver.as_ref().map_or_else(|| "not asked: there is no Python".to_owned(), ToString::to_string),
        ));
        for device in self.driver.iter().flat_map(|driver| &driver.devices) {
            lines.push(("device", device.to_string()));
        }
        for disk in &self.disks {
            lines.push(("disk", format!("{} free in {}", human_size(disk.free_bytes), disk.path.display())));
        }
        let memory = self.available_memory_bytes.map_or_else(|| "unknown".to_owned(), human_size);
        lines.push(("memory", format!("{memory} available, for {} jobs ({})", self.jobs, self.jobs_from)));
        let uv = self.uv.as_ref().map(|uv| {
            let version = uv.version.map_or_else(|| "of no version".to_owned(), |(a, b, c)| format!("{a}.{b}.{c}"));
            format!("{version} at {}", uv.path.display())
        });
        lines.push(("uv", uv.unwrap_or_else(|| "none on PATH".to_owned())));
        lines
    }

    /// The machine for machines.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "python": self.python.as_ref().map(|python| json!({
                "version": python.to_string(),
                "abi": python.abi,
                "path": shown(&python.base_executable),
                "has_headers": python.has_headers,
            })),
            "toolkits": self.toolkits.iter().map(Toolkit::to_json).collect::<Vec<_>>(),
            "misleading": self.misleading.iter().map(|(name, path)| json!({ "variable": name, "path": shown(path) })).collect::<Vec<_>>(),
            "toolkits_searched": self.searched,
            "compiler": self.compiler.as_ref().map(Compiler::to_json),
            "other_compilers": self.other_compilers.iter().map(Compiler::to_json).collect::<Vec<_>>(),
            "driver": self.driver.as_ref().map(Driver::to_json),
            "disks": self.disks.iter().map(|disk| json!({ "path": shown(&disk.path), "free_bytes": disk.free_bytes })).collect::<Vec<_>>(),
            "available_memory_bytes": self.available_memory_bytes,
            "jobs": self.jobs,
            "jobs_from": self.jobs_from,
            "uv": self.uv.as_ref().map(|uv| json!({
                "path": shown(&uv.path),
                "version": uv.version.map(|(major, minor, patch)| format!("{major}.{minor}.{patch}")),
            })),
        })
    }
}

/// A path as text, whatever bytes it has: documents hold no others.
fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// How many compilers a build would run at once.
fn jobs() -> (usize, String) {
    for variable in [&env_vars::MAX_JOBS, &env_vars::CMAKE_BUILD_PARALLEL_LEVEL, &env_vars::CARGO_BUILD_JOBS] {
        let value = variable.get().and_then(|value| value.to_str()?.parse().ok()).filter(|jobs| *jobs > 0);
        if let Some(jobs) = value {
            return (jobs, variable.name.to_owned());
        }
    }
    (std::thread::available_parallelism().map_or(1, std::num::NonZero::get), "processors".to_owned())
}

/// The space where the project, temporary files and the cache are.
fn disks(root: &Path) -> Vec<Disk> {
    let temporary = std::env::temp_dir();
    let cache = crate::cache::Cache::locate().ok().map(|cache| cache.path("uv"));
    let mut found: Vec<Disk> = Vec::new();
    for path in [Some(root.to_path_buf()), Some(temporary), cache].into_iter().flatten() {
        // A directory that is still to be made is where its parents are.
        let Some(there) = path.ancestors().find(|path| path.is_dir()) else { continue };
        let Ok(space) = nix::sys::statvfs::statvfs(there) else { continue };
        let free_bytes = space.blocks_available().saturating_mul(space.fragment_size());
        // One file system is named once.
        if !found.iter().any(|disk| disk.free_bytes == free_bytes) {
            found.push(Disk { path: there.to_path_buf(), free_bytes });
        }
    }
    found
}

/// What the kernel gives without swapping, and what the container's limit leaves of it.
fn available_memory() -> Option<u64> {
    let available = memory_of(&std::fs::read_to_string("/proc/meminfo").ok()?)?;
    let number =
        |name: &str| std::fs::read_to_string(format!("/sys/fs/cgroup/{name}")).ok()?.trim().parse::<u64>().ok();
    let left = number("memory.max").zip(number("memory.current")).map(|(limit, used)| limit.saturating_sub(used));
    Some(left.map_or(available, |left| left.min(available)))
}

fn memory_of(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_what_the_kernel_calls_available() {
        assert_eq!(memory_of("MemTotal: 9 kB\nMemAvailable:    2048 kB\n"), Some(2 << 20));
        assert_eq!(memory_of("MemTotal: 9 kB\n"), None);
    }
}
