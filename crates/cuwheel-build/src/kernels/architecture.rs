//! GPU architectures: which were asked for, which the compiler knows, and what it is told to compile for.
//!
//! The compiler is asked for its own list, so that no table here grows old. A GPU is looked for only where it was asked
//! for.

use std::collections::BTreeMap;
use std::fmt;
use std::process::{Command, Stdio};

use super::{KernelsError, Toolkit};

/// What happens when an architecture was asked for that the compiler does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unsupported {
    /// The build fails, and names them.
    #[default]
    Error,
    /// They are left out, and named in a warning. The build fails if none is left.
    Intersect,
}

/// An architecture such as `sm_80` or `sm_90a`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Architecture {
    number: u32,
    /// `a` for one GPU, `f` for its family.
    suffix: Option<char>,
}

impl Architecture {
    /// Reads `80`, `sm_80`, `compute_80`, `8.0` or `90a`.
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let text = text.strip_prefix("sm_").or_else(|| text.strip_prefix("compute_")).unwrap_or(text);
        let (digits, suffix) = match text.chars().last()? {
            letter @ ('a' | 'f') => (&text[..text.len() - 1], Some(letter)),
            _ => (text, None),
        };
        let number = match digits.split_once('.') {
            Some((major, minor)) if minor.len() == 1 => format!("{major}{minor}").parse().ok()?,
            Some(_) => return None,
            None => digits.parse().ok()?,
        };
        (number >= 10).then_some(Self { number, suffix })
    }

    const fn base(number: u32) -> Self {
        Self { number, suffix: None }
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.number)?;
        self.suffix.map_or(Ok(()), |suffix| write!(formatter, "{suffix}"))
    }
}

/// What is compiled for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Targets {
    /// Machine code, the lowest first.
    pub(super) binaries: Vec<Architecture>,
    /// Text that drivers compile for newer GPUs.
    pub(super) ptx: Option<Architecture>,
    /// What was asked for and is left out.
    pub(super) left_out: Vec<String>,
}

impl Targets {
    /// Decides, from what was asked for and the compiler's own list, which is not empty.
    fn choose(asked: &[String], known: &[u32], policy: Unsupported, ptx: bool) -> Result<Self, Choice> {
        let mut binaries = Vec::new();
        let mut left_out = Vec::new();
        for entry in asked {
            if entry == "all-major" {
                binaries.extend(lowest_of_each_major(known));
                continue;
            }
            let Some(architecture) = Architecture::parse(entry) else { return Err(Choice::NotOne(entry.clone())) };
            if known.contains(&architecture.number) {
                binaries.push(architecture);
            } else {
                left_out.push(architecture.to_string());
            }
        }
        binaries.sort_unstable();
        binaries.dedup();
        if binaries.is_empty() || (policy == Unsupported::Error && !left_out.is_empty()) {
            return Err(Choice::Unsupported(left_out));
        }
        // Text for one GPU or family is of no use to any other: the lowest that newer ones can take is what counts.
        let ptx = if ptx { binaries.iter().find(|target| target.suffix.is_none()).copied() } else { None };
        Ok(Self { binaries, ptx, left_out })
    }

    /// Options for nvcc.
    pub(super) fn options(&self) -> Vec<String> {
        let option = |target: &Architecture| {
            let code = if self.ptx == Some(*target) {
                format!("[sm_{target},compute_{target}]")
            } else {
                format!("sm_{target}")
            };
            format!("-gencode=arch=compute_{target},code={code}")
        };
        self.binaries.iter().map(option).collect()
    }
}

impl fmt::Display for Targets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.binaries.iter().map(|target| format!("sm_{target}")).collect();
        write!(formatter, "{}", names.join(" "))?;
        match self.ptx {
            Some(target) => write!(formatter, " and PTX of compute_{target}"),
            None => write!(formatter, " and no PTX"),
        }
    }
}

/// Why there is nothing to compile for.
#[derive(Debug, PartialEq, Eq)]
enum Choice {
    NotOne(String),
    Unsupported(Vec<String>),
}

/// The oldest GPU of each generation: its code runs on the others of the generation.
fn lowest_of_each_major(known: &[u32]) -> Vec<Architecture> {
    let mut lowest = BTreeMap::new();
    for &number in known {
        let entry = lowest.entry(number / 10).or_insert(number);
        *entry = number.min(*entry);
    }
    lowest.into_values().map(Architecture::base).collect()
}

/// Asks the compiler, and a GPU where `native` is among what was asked for.
pub(super) fn targets(
    toolkit: &Toolkit,
    asked: &[String],
    policy: Unsupported,
    ptx: bool,
) -> Result<Targets, KernelsError> {
    let listing = toolkit.answer("--list-gpu-code")?;
    let known: Vec<u32> =
        listing.split_whitespace().filter_map(Architecture::parse).map(|target| target.number).collect();
    if known.is_empty() {
        let reason = "it lists no architectures for --list-gpu-code".to_owned();
        return Err(KernelsError::BrokenCompiler { nvcc: toolkit.nvcc.clone(), reason });
    }
    let mut entries = Vec::new();
    for entry in asked {
        if entry == "native" {
            entries.extend(native()?);
        } else {
            entries.push(entry.clone());
        }
    }
    if entries.is_empty() {
        entries.push("all-major".to_owned());
    }
    Targets::choose(&entries, &known, policy, ptx).map_err(|choice| match choice {
        Choice::NotOne(entry) => KernelsError::NotAnArchitecture { entry },
        Choice::Unsupported(unsupported) => KernelsError::UnsupportedArchitectures {
            unsupported: unsupported.join(", "),
            compiler: toolkit.to_string(),
            known: known.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
        },
    })
}

/// The architectures of the GPUs here. Only a build that asked for them comes here.
fn native() -> Result<Vec<String>, KernelsError> {
    let missing = |reason: String| KernelsError::NoGpu { reason };
    let output = Command::new("nvidia-smi")
        .args(["--query-gpu=compute_cap", "--format=csv,noheader"])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| missing(format!("nvidia-smi cannot be started: {error}")))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let found: Vec<String> =
        text.lines().filter_map(Architecture::parse).map(|architecture| architecture.to_string()).collect();
    if !output.status.success() || found.is_empty() {
        let said = format!("{text}{}", String::from_utf8_lossy(&output.stderr));
        return Err(missing(format!("nvidia-smi ended with {} and said {:?}", output.status, said.trim())));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [u32; 13] = [75, 80, 86, 87, 88, 89, 90, 100, 110, 103, 120, 121, 107];

    fn choose(asked: &[&str], policy: Unsupported) -> Result<String, Choice> {
        let asked: Vec<String> = asked.iter().map(ToString::to_string).collect();
        Targets::choose(&asked, &KNOWN, policy, true).map(|targets| targets.options().join(" "))
    }

    #[test]
    fn the_lowest_gets_ptx_unless_it_is_for_one_gpu_only() {
        let expected = "-gencode=arch=compute_75,code=[sm_75,compute_75] -gencode=arch=compute_90a,code=sm_90a";
        assert_eq!(choose(&["90a", "sm_75", "7.5"], Unsupported::Error).unwrap(), expected);
        assert_eq!(choose(&["90a"], Unsupported::Error).unwrap(), "-gencode=arch=compute_90a,code=sm_90a");
    }

    #[test]
    fn pk_24_the_default_is_the_compilers_own_oldest_of_each_generation() {
        let names: Vec<String> = lowest_of_each_major(&KNOWN).iter().map(ToString::to_string).collect();
        assert_eq!(names, ["75", "80", "90", "100", "110", "120"]);
        assert!(
            choose(&["all-major"], Unsupported::Error).unwrap().starts_with("-gencode=arch=compute_75,code=[sm_75")
        );
    }

    #[test]
    fn pk_23_architectures_that_the_compiler_does_not_know_are_an_error_or_left_out() {
        let unsupported = |names: &[&str]| Choice::Unsupported(names.iter().map(ToString::to_string).collect());
        assert_eq!(choose(&["70", "80", "130"], Unsupported::Error), Err(unsupported(&["70", "130"])));
        assert!(choose(&["70", "80"], Unsupported::Intersect).unwrap().contains("[sm_80,compute_80]"));
        assert_eq!(choose(&["70"], Unsupported::Intersect), Err(unsupported(&["70"])));
        assert_eq!(choose(&["hopper"], Unsupported::Intersect), Err(Choice::NotOne("hopper".into())));
    }
}
