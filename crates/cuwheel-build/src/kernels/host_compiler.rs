//! The C++ compiler that nvcc calls, and whether nvcc takes it (PK-22). Asked before anything is compiled.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::toolkit::{find_program, is_program};
use super::{KernelsError, Toolkit};
use crate::environment::Lookup;

/// Names the host compiler, as nvcc reads it.
pub(crate) const HOST_COMPILER_VARIABLE: &str = "NVCC_CCBIN";

/// A compiler that nvcc takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HostCompiler {
    pub(super) path: PathBuf,
    /// What it says of itself.
    pub(super) identity: String,
}

/// The newest major versions that nvcc takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bounds {
    gcc: Option<u32>,
    clang: Option<u32>,
}

impl HostCompiler {
    /// The one that was named, or the one that nvcc would take. `is_bound` says whether nvcc's bounds count.
    pub(super) fn find(lookup: Lookup<'_>, toolkit: &Toolkit, is_bound: bool) -> Result<Self, KernelsError> {
        let path = match lookup(HOST_COMPILER_VARIABLE).map(PathBuf::from) {
            Some(folder) if folder.is_dir() => folder.join("g++"),
            Some(named) if named.components().count() == 1 => {
                let on_path = named.to_str().and_then(|name| find_program(lookup, name));
                on_path.unwrap_or(named)
            }
            Some(named) => named,
            None => find_program(lookup, "g++").ok_or(KernelsError::NoHostCompiler)?,
        };
        let macros = macros(&path)?;
        let bounds =
            toolkit.header("crt/host_config.h").map_or(Bounds { gcc: None, clang: None }, |text| bounds(&text));
        let value = |name: &str| macros.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        let major = |name: &str| value(name).and_then(|value| value.parse::<u32>().ok());
        // clang says that it is GCC 4 as well.
        let (family, found, newest) = match (major("__clang_major__"), major("__GNUC__")) {
            (Some(clang), _) => ("clang", clang, bounds.clang),
            (None, Some(gcc)) => ("GCC", gcc, bounds.gcc),
            (None, None) => {
                let reason = "it is neither GCC nor clang".to_owned();
                return Err(KernelsError::BrokenHostCompiler { path, reason });
            }
        };
        if let Some(newest) = newest.filter(|newest| is_bound && found > *newest) {
            return Err(KernelsError::HostCompilerTooNew {
                compiler: format!("{family} {found} ({})", path.display()),
                newest: format!("{family} {newest}"),
                toolkit: toolkit.to_string(),
                candidates: candidates(lookup, bounds),
            });
        }
        let identity = format!("{family} {}", value("__VERSION__").unwrap_or_default());
        Ok(Self { path, identity })
    }
}

/// What the compiler defines for an empty file.
fn macros(path: &Path) -> Result<Vec<(String, String)>, KernelsError> {
    let broken = |reason: String| KernelsError::BrokenHostCompiler { path: path.to_path_buf(), reason };
    let output = Command::new(path)
        .args(["-E", "-dM", "-x", "c++", "/dev/null"])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| broken(format!("it cannot be started: {error}")))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(broken(format!("it failed with {}: {}", output.status, said.trim())));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let definition = |line: &str| {
        let (name, value) = line.strip_prefix("#define ")?.split_once(' ')?;
        Some((name.to_owned(), value.to_owned()))
    };
    Ok(text.lines().filter_map(definition).collect())
}

/// `#if __GNUC__ > 16` and `(__clang_major__ >= 23)` in the compiler's own header.
fn bounds(header: &str) -> Bounds {
    let number_after = |text: &str, operator: &str| -> Option<u32> {
        let rest = text.trim_start().strip_prefix(operator)?.trim_start();
        let end = rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(rest.len());
        rest[..end].parse().ok()
    };
    let newest = |name: &str| {
        let bound = |rest: &str| {
            let exclusive = number_after(rest, ">=").and_then(|number| number.checked_sub(1));
            exclusive.or_else(|| number_after(rest, ">"))
        };
        header.split(name).skip(1).filter_map(bound).max()
    };
    Bounds { gcc: newest("__GNUC__"), clang: newest("__clang_major__") }
}

/// Compilers on the path whose names say that nvcc takes them, the newest first.
fn candidates(lookup: Lookup<'_>, bounds: Bounds) -> Vec<PathBuf> {
    let mut found: Vec<(u32, PathBuf)> = Vec::new();
    let path = lookup("PATH").unwrap_or_default();
    for entry in std::env::split_paths(&path).filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        for (prefix, newest) in [("g++-", bounds.gcc), ("clang++-", bounds.clang)] {
            let version = name.strip_prefix(prefix).and_then(|version| version.parse().ok());
            if let (Some(version), Some(newest)) = (version, newest)
                && version <= newest
                && is_program(&entry.path())
            {
                found.push((version, entry.path()));
            }
        }
    }
    found.sort_by(|one, other| other.cmp(one));
    found.dedup();
    found.into_iter().map(|(_, path)| path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pk_22_bounds_are_read_from_the_compilers_own_header() {
        let header = "#if __GNUC__ > 16\n#error x\n#if (__clang_major__ >= 23) || (__clang_major__ < 7)\n";
        assert_eq!(bounds(header), Bounds { gcc: Some(16), clang: Some(22) });
        assert_eq!(bounds("#if defined(__GNUC__)"), Bounds { gcc: None, clang: None });
    }
}
