//! The machine that a bundle is for: its Python and its platform.

use std::fmt;
use std::str::FromStr;

use crate::error::{Failure, Result};
use crate::inspection;
use crate::interpreter::{Interpreter, Request};

/// The platform of a bundle where none is given: what the oldest systems with current drivers have.
const DEFAULT_COMPATIBILITY: &str = "manylinux_2_28";

/// Older promises that wheels for a platform may make as well, the newest first.
const OLDER_GLIBC: &[(u16, &[&str])] = &[(17, &["manylinux2014"]), (12, &["manylinux2010"]), (5, &["manylinux1"])];

/// A platform tag, such as `manylinux_2_28_x86_64`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Platform {
    minor: u16,
    machine: String,
}

impl FromStr for Platform {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text} is no platform: write it as manylinux_2_28_x86_64 or manylinux_2_28_aarch64");
        let rest = text.strip_prefix("manylinux_2_").ok_or_else(wrong)?;
        let (minor, machine) = rest.split_once('_').ok_or_else(wrong)?;
        let minor = minor.parse().ok().filter(|minor| (5..100).contains(minor)).ok_or_else(wrong)?;
        if !["x86_64", "aarch64"].contains(&machine) {
            return Err(wrong());
        }
        Ok(Self { minor, machine: machine.to_owned() })
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "manylinux_2_{}_{}", self.minor, self.machine)
    }
}

/// A Python on a platform.
#[derive(Clone, Debug)]
pub struct Target {
    /// Major and minor version.
    pub version: (u8, u8),
    /// Whether it has no global interpreter lock.
    pub free_threaded: bool,
    /// Where it runs.
    pub platform: Platform,
}

impl Target {
    /// The target that `--for-python` and `--platform` name.
    pub fn new(python: &Request, platform: Option<&Platform>, here: &Interpreter) -> Result<Self> {
        let Request::Version { version, free_threaded } = python else {
            return Err(Failure::usage("--for-python takes a version: the Python is on another machine")
                .remedy("write it as 3.12 or 3.14t")
                .into());
        };
        let platform = match platform {
            Some(platform) => platform.clone(),
            None => format!("{DEFAULT_COMPATIBILITY}_{}", here.machine())
                .parse()
                .map_err(|error: String| Failure::usage(error).remedy("give --platform"))?,
        };
        Ok(Self { version: *version, free_threaded: *free_threaded, platform })
    }

    /// `3.12`.
    pub fn version_text(&self) -> String {
        format!("{}.{}", self.version.0, self.version.1)
    }

    /// The tag of its ABI, such as `cp312` or `cp314t`.
    pub fn abi(&self) -> String {
        format!("cp{}{}{}", self.version.0, self.version.1, if self.free_threaded { "t" } else { "" })
    }

    /// The platform as uv names it, such as `x86_64-manylinux_2_28`.
    pub fn platform_for_uv(&self) -> String {
        format!("{}-manylinux_2_{}", self.platform.machine, self.platform.minor)
    }

    /// Every platform tag of wheels that it takes, the newest first.
    pub fn platform_tags(&self) -> Vec<String> {
        let mut tags = Vec::new();
        for minor in (5..=self.platform.minor).rev() {
            tags.push(format!("manylinux_2_{minor}_{}", self.platform.machine));
            let legacy = OLDER_GLIBC.iter().filter(|(older, _)| *older == minor).flat_map(|(_, names)| *names);
            tags.extend(legacy.map(|name| format!("{name}_{}", self.platform.machine)));
        }
        tags.push(format!("linux_{}", self.platform.machine));
        tags
    }

    /// Refuses a wheel that could not be installed there. `tag` is one of its tags, such as `cp311-abi3-manylinux_2_28_x86_64`.
    pub fn accepts(&self, tag: &str) -> bool {
        let mut parts = tag.splitn(3, '-');
        let (Some(python), Some(abi), Some(platform)) = (parts.next(), parts.next(), parts.next()) else {
            return false;
        };
        let minor = python.strip_prefix("cp3").and_then(|minor| minor.parse::<u8>().ok());
        let fits_python = match abi {
            "none" => python == "py3" || minor == Some(self.version.1),
            "abi3" => !self.free_threaded && minor.is_some_and(|minor| minor <= self.version.1),
            other => other == self.abi(),
        };
        let glibc = inspection::glibc_of(platform);
        let fits_platform = platform == "any"
            || platform.ends_with(&self.platform.machine)
                && glibc.is_none_or(|glibc| glibc.minor <= self.platform.minor.into());
        fits_python && fits_platform
    }
}

impl fmt::Display for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let threaded = if self.free_threaded { "t" } else { "" };
        write!(formatter, "CPython {}{threaded} on {}", self.version_text(), self.platform)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(version: (u8, u8), free_threaded: bool) -> Target {
        Target { version, free_threaded, platform: "manylinux_2_28_x86_64".parse().unwrap() }
    }

    #[test]
    fn a_wheel_is_taken_when_python_abi_and_platform_fit() {
        for (tag, fits) in [
            ("py3-none-any", true),
            ("cp312-cp312-manylinux_2_28_x86_64", true),
            ("cp312-cp312-linux_x86_64", true),
            ("cp311-abi3-manylinux_2_17_x86_64", true),
            ("cp313-abi3-manylinux_2_28_x86_64", false),
            ("cp313-cp313-manylinux_2_28_x86_64", false),
            ("cp312-cp312-manylinux_2_34_x86_64", false),
            ("cp312-cp312-manylinux_2_28_aarch64", false),
        ] {
            assert_eq!(target((3, 12), false).accepts(tag), fits, "{tag}");
        }
        assert!(!target((3, 14), true).accepts("cp311-abi3-manylinux_2_28_x86_64"));
        assert!(target((3, 14), true).accepts("cp314-cp314t-manylinux_2_28_x86_64"));
    }

    #[test]
    fn platforms_imply_the_older_ones_by_all_their_names() {
        let tags = target((3, 12), false).platform_tags();
        assert_eq!(tags[0], "manylinux_2_28_x86_64");
        for older in ["manylinux_2_17_x86_64", "manylinux2014_x86_64", "manylinux1_x86_64", "linux_x86_64"] {
            assert!(tags.iter().any(|tag| tag == older), "{older}");
        }
        assert_eq!(target((3, 12), false).platform_for_uv(), "x86_64-manylinux_2_28");
        for wrong in ["linux", "manylinux_2_28", "musllinux_1_2_x86_64", "manylinux_2_28_riscv"] {
            assert!(wrong.parse::<Platform>().is_err(), "{wrong}");
        }
    }
}
