//! Host compilers: the one that nvcc would call, and others on PATH (PK-22).

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::env_vars;
use crate::process::{Process, find_program};

/// What a compiler may take to say what it is.
const DEADLINE: Duration = Duration::from_secs(20);

/// Whose compiler it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// GCC.
    Gcc,
    /// clang.
    Clang,
}

/// A compiler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiler {
    /// What led to it: a variable, or `PATH`.
    pub found_by: String,
    /// The program.
    pub path: PathBuf,
    /// Whose it is.
    pub family: Family,
    /// The major version.
    pub major: u32,
    /// The version as it says it.
    pub version: String,
}

impl fmt::Display for Compiler {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let family = if self.family == Family::Gcc { "GCC" } else { "clang" };
        write!(formatter, "{family} {} by {}, at {}", self.version, self.found_by, self.path.display())
    }
}

impl Compiler {
    pub(super) fn to_json(&self) -> Value {
        json!({
            "found_by": self.found_by,
            "path": super::shown(&self.path),
            "family": if self.family == Family::Gcc { "gcc" } else { "clang" },
            "version": self.version,
        })
    }

    fn ask(found_by: &str, path: &Path) -> Option<Self> {
        let finished = Process::new(path).arg("-v").deadline(DEADLINE).capture().ok()?;
        let (family, version) = identify(&finished.stderr)?;
        let major = version.split('.').next()?.parse().ok()?;
        Some(Self { found_by: found_by.to_owned(), path: path.to_path_buf(), family, major, version })
    }
}

/// `gcc version 12.2.0 (Debian …)`, `clang version 18.1.8 (…)`.
fn identify(answer: &str) -> Option<(Family, String)> {
    for (words, family) in [("gcc version ", Family::Gcc), ("clang version ", Family::Clang)] {
        if let Some((_, rest)) = answer.split_once(words) {
            let version = rest.split_whitespace().next()?.trim_end_matches(',');
            return Some((family, version.to_owned()));
        }
    }
    None
}

/// The compiler that nvcc would call, then the numbered ones on PATH.
pub(super) fn find() -> (Option<Compiler>, Vec<Compiler>) {
    let named = [&env_vars::NVCC_CCBIN, &env_vars::CUDAHOSTCXX].into_iter().find_map(|variable| {
        let value = variable.get()?;
        let path = Path::new(&value);
        // nvcc takes a directory as well.
        let path = if path.is_dir() { path.join("g++") } else { path.to_path_buf() };
        let path = if path.components().count() == 1 { find_program(path.to_str()?)? } else { path };
        Compiler::ask(variable.name, &path)
    });
    let chosen = named.or_else(|| {
        let program = ["g++", "c++", "gcc", "clang++"].iter().find_map(|name| find_program(name))?;
        Compiler::ask("PATH", &program)
    });
    let numbered = (7..=20).rev().filter_map(|major| find_program(&format!("g++-{major}")));
    let others = numbered.filter_map(|program| Compiler::ask("PATH", &program));
    (chosen, others.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compilers_say_what_they_are() {
        let gcc = "Using built-in specs.\nThread model: posix\ngcc version 12.2.0 (Debian 12.2.0-14) \n";
        assert_eq!(identify(gcc), Some((Family::Gcc, "12.2.0".to_owned())));
        assert_eq!(identify("Ubuntu clang version 18.1.8 (x)\n"), Some((Family::Clang, "18.1.8".to_owned())));
        assert_eq!(identify("cc: not found"), None);
    }
}
