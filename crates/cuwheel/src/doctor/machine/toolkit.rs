//! CUDA toolkits: where they are looked for, and what their files say (PK-15, PK-16, PK-18, PK-20).
//!
//! The version and the bound on host compilers are read from headers; nvcc itself is asked for its architectures only, and
//! for its version where no header says it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::shown;
use crate::env_vars;
use crate::error::Result;
use crate::files;
use crate::process::{Process, check_interrupted, find_program};

/// What a compiler may take to say what it knows.
const DEADLINE: Duration = Duration::from_secs(20);

/// A toolkit that was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Toolkit {
    /// What led to it, such as `CUDA_HOME`.
    pub found_by: String,
    /// Its directory.
    pub root: PathBuf,
    /// Its compiler, where it has one.
    pub nvcc: Option<PathBuf>,
    /// Major and minor version.
    pub version: Option<(u32, u32)>,
    /// The newest major version of GCC that nvcc takes.
    pub newest_gcc: Option<u32>,
    /// The newest major version of clang that nvcc takes.
    pub newest_clang: Option<u32>,
    /// Architectures such as 90 that nvcc compiles for; empty where it was not asked or does not say.
    pub architectures: Vec<u32>,
}

impl fmt::Display for Toolkit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.version {
            Some((major, minor)) => write!(formatter, "CUDA {major}.{minor}")?,
            None => formatter.write_str("CUDA of no known version")?,
        }
        write!(formatter, " by {}, in {}", self.found_by, self.root.display())?;
        if self.nvcc.is_none() {
            return formatter.write_str(", without nvcc");
        }
        let names: Vec<String> = self.architectures.iter().map(ToString::to_string).collect();
        if names.is_empty() { Ok(()) } else { write!(formatter, ", for {}", names.join(" ")) }
    }
}

impl Toolkit {
    pub(super) fn to_json(&self) -> Value {
        json!({
            "found_by": self.found_by,
            "root": shown(&self.root),
            "nvcc": self.nvcc.as_deref().map(shown),
            "version": self.version.map(|(major, minor)| format!("{major}.{minor}")),
            "newest_gcc": self.newest_gcc,
            "newest_clang": self.newest_clang,
            "architectures": self.architectures,
        })
    }

    fn at(found_by: &str, root: &Path) -> Result<Self> {
        let nvcc = Some(root.join("bin/nvcc")).filter(|path| files::is_executable(path));
        let header = |name: &str| {
            // The last is Debian's: its toolkit is in /usr/lib, and its headers in /usr/include.
            let places = ["include", "targets/x86_64-linux/include", "targets/sbsa-linux/include", "../../include"];
            places.iter().find_map(|place| std::fs::read_to_string(root.join(place).join(name)).ok())
        };
        let bounds = header("crt/host_config.h").map(|text| bounds(&text)).unwrap_or_default();
        let mut version =
            std::fs::read_to_string(root.join("version.json")).ok().and_then(|text| version_in_json(&text));
        version = version.or_else(|| version_macro(&header("cuda.h")?, "CUDA_VERSION"));
        version = version.or_else(|| version_macro(&header("cuda_runtime_api.h")?, "CUDART_VERSION"));
        let mut architectures = Vec::new();
        if let Some(nvcc) = &nvcc {
            if version.is_none() {
                version = asked_version(&answer(nvcc, "--version")?);
            }
            architectures = asked_architectures(&answer(nvcc, "--list-gpu-code")?);
        }
        let (newest_gcc, newest_clang) = bounds;
        let (found_by, root) = (found_by.to_owned(), root.to_path_buf());
        Ok(Self { found_by, root, nvcc, version, newest_gcc, newest_clang, architectures })
    }
}

/// What a program answers; nothing, where it does not run or takes too long.
fn answer(program: &Path, question: &str) -> Result<String> {
    let finished = Process::new(program).arg(question).deadline(DEADLINE).capture();
    check_interrupted()?;
    Ok(finished.map(|finished| finished.stdout).unwrap_or_default())
}

/// What was found of toolkits.
#[derive(Debug)]
pub(super) struct Found {
    /// In the order of precedence. A place that leads to one that was found already is left out.
    pub(super) toolkits: Vec<Toolkit>,
    /// Variables that lead to none.
    pub(super) misleading: Vec<(String, PathBuf)>,
    /// The places that were looked in.
    pub(super) searched: Vec<String>,
}

/// Looks in every place.
pub(super) fn find() -> Result<Found> {
    let mut places: Vec<(String, Option<PathBuf>)> = Vec::new();
    for variable in [&env_vars::CUDA_HOME, &env_vars::CUDA_PATH] {
        places.push((variable.name.to_owned(), variable.get().map(PathBuf::from)));
    }
    let on_path = find_program("nvcc").map(|nvcc| files::resolved(&nvcc));
    places.push(("PATH".to_owned(), on_path.and_then(|nvcc| Some(nvcc.parent()?.parent()?.to_path_buf()))));
    for variable in [&env_vars::VIRTUAL_ENV, &env_vars::CONDA_PREFIX] {
        let found = variable.get().map(|environment| in_environment(Path::new(&environment))).unwrap_or_default();
        let name = format!("{} (nvidia-cuda-nvcc)", variable.name);
        places.push((name.clone(), None));
        places.extend(found.into_iter().map(|root| (name.clone(), Some(root))));
    }
    places.push(("/usr/local/cuda".to_owned(), Some(PathBuf::from("/usr/local/cuda"))));
    let mut searched: Vec<String> = places.iter().map(|(name, _)| name.clone()).collect();
    searched.dedup();
    let (mut toolkits, mut misleading, mut seen) = (Vec::new(), Vec::new(), Vec::new());
    for (name, root) in places {
        let Some(root) = root else { continue };
        let real = files::resolved(&root);
        if !root.join("bin/nvcc").exists() && !root.join("include/cuda.h").exists() {
            if name.starts_with("CUDA_") {
                misleading.push((name, root));
            }
        } else if !seen.contains(&real) {
            seen.push(real);
            toolkits.push(Toolkit::at(&name, &root)?);
        }
    }
    Ok(Found { toolkits, misleading, searched })
}

/// Toolkits that Python packages brought: `nvidia/cu13` and, before, `nvidia/cuda_nvcc`, which has no nvcc.
fn in_environment(environment: &Path) -> Vec<PathBuf> {
    let list = |path: PathBuf| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(path).map(|entries| entries.flatten().map(|entry| entry.path()).collect());
        let mut entries: Vec<PathBuf> = entries.unwrap_or_default();
        entries.sort();
        entries
    };
    let pythons = list(environment.join("lib")).into_iter().filter(|path| path.join("site-packages/nvidia").is_dir());
    let packages = pythons.flat_map(|python| list(python.join("site-packages/nvidia")));
    packages.filter(|root| root.join("bin/nvcc").is_file()).collect()
}

/// `{"cuda": {"version": "12.4.1"}}`.
fn version_in_json(text: &str) -> Option<(u32, u32)> {
    let document: Value = serde_json::from_str(text).ok()?;
    pair(document.get("cuda")?.get("version")?.as_str()?)
}

fn pair(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split('.').map(|number| number.trim().parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

/// `#define CUDA_VERSION 13050` → (13, 5).
fn version_macro(header: &str, name: &str) -> Option<(u32, u32)> {
    let value = header.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        (words.next() == Some("#define") && words.next() == Some(name)).then(|| words.next()).flatten()
    });
    let number: u32 = value?.trim_matches(['(', ')']).parse().ok()?;
    Some((number / 1000, number % 1000 / 10))
}

/// `Cuda compilation tools, release 12.4, V12.4.131`.
fn asked_version(answer: &str) -> Option<(u32, u32)> {
    pair(answer.split("release ").nth(1)?.split(',').next()?)
}

fn asked_architectures(answer: &str) -> Vec<u32> {
    answer.split_whitespace().filter_map(|word| word.strip_prefix("sm_")?.parse().ok()).collect()
}

/// The newest GCC and clang of `crt/host_config.h`: `#if __GNUC__ > 14`, `(__clang_major__ >= 20)`.
fn bounds(header: &str) -> (Option<u32>, Option<u32>) {
    let number_after = |text: &str, operator: &str| -> Option<u32> {
        let rest = text.trim_start().strip_prefix(operator)?.trim_start();
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    };
    let largest = |name: &str| {
        let places = header.split(name).skip(1);
        let bound = |rest: &str| {
            let inclusive = number_after(rest, ">=").map(|number| number.saturating_sub(1));
            inclusive.or_else(|| number_after(rest, ">"))
        };
        places.filter_map(bound).max()
    };
    (largest("__GNUC__"), largest("__clang_major__"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_what_toolkits_have() {
        assert_eq!(version_in_json(r#"{"cuda": {"name": "CUDA SDK", "version": "12.4.1"}}"#), Some((12, 4)));
        assert_eq!(version_macro("/* x */\n#define CUDA_VERSION 13050\n", "CUDA_VERSION"), Some((13, 5)));
        assert_eq!(version_macro("#define CUDART_VERSION  12080", "CUDART_VERSION"), Some((12, 8)));
        assert_eq!(asked_version("Cuda compilation tools, release 11.8, V11.8.89\n"), Some((11, 8)));
        assert_eq!(asked_architectures("sm_75\nsm_90\nsm_120\n"), [75, 90, 120]);
    }

    #[test]
    fn pk_22_bounds_on_host_compilers_are_read_from_the_header() {
        let header = "#if defined(__GNUC__)\n#if __GNUC__ > 14\n#error gcc\n#endif\n#if (__clang_major__ >= 20) || (__clang_major__ < 7)\n#error clang\n";
        assert_eq!(bounds(header), (Some(14), Some(19)));
        assert_eq!(bounds(""), (None, None));
    }
}
