//! Processes that go on with what was there before an install: they have a replaced library mapped, or are kernels of
//! notebooks that started without the `.pth` files that are there now.
//!
//! Only processes of the same user can be looked into. Not for ending any of them.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use serde::Serialize;

/// A process that has to be started again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Running {
    /// Its number.
    pub pid: u32,
    /// The start of its command line.
    pub command: String,
    /// Why.
    pub reason: String,
}

/// Finds them. `replaced` are files that have another content now; in `environment`, where there is one, kernels lack what
/// was installed.
pub fn find(replaced: &[PathBuf], environment: Option<&PathBuf>) -> Vec<Running> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| *pid != std::process::id()).filter_map(|pid| look(pid, replaced, environment)).collect()
}

fn look(pid: u32, replaced: &[PathBuf], environment: Option<&PathBuf>) -> Option<Running> {
    let command = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let arguments: Vec<String> =
        command.split(|byte| *byte == 0).map(|argument| String::from_utf8_lossy(argument).into_owned()).collect();
    let running = |reason: String| {
        let command = arguments.join(" ").trim().chars().take(80).collect();
        Some(Running { pid, command, reason })
    };
    let maps = std::fs::read(format!("/proc/{pid}/maps")).ok()?;
    if let Some(path) = replaced.iter().find(|path| is_mapped(&maps, path)) {
        return running(format!("has the former {} loaded", path.file_name()?.to_string_lossy()));
    }
    let is_kernel = arguments.iter().any(|argument| argument.contains("ipykernel"));
    (is_kernel && Path::new(arguments.first()?).starts_with(environment?))
        .then(|| running("is a kernel that started before the install".to_owned()))
        .flatten()
}

/// Whether a map of a process names a file that was replaced: the kernel then calls it deleted.
fn is_mapped(maps: &[u8], path: &Path) -> bool {
    let suffix = [path.as_os_str().as_bytes(), b" (deleted)"].concat();
    maps.split(|byte| *byte == b'\n').any(|line| line.ends_with(&suffix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_of_a_file_that_was_replaced_is_known_by_its_end() {
        let maps =
            b"7f00-7f01 r-xp 0 08:01 12   /src/sp ace/_native.abi3.so (deleted)\n7f02-7f03 r-xp 0 0 1 /lib/x.so\n";
        assert!(is_mapped(maps, Path::new("/src/sp ace/_native.abi3.so")));
        assert!(!is_mapped(maps, Path::new("/lib/x.so")) && !is_mapped(maps, Path::new("/src/other.so")));
    }
}
