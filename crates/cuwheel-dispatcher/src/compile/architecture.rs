//! What code is made for: machine code of an architecture, or PTX from one on.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use super::CompileError;

/// An architecture as compilers take it: `sm_90`, `sm_90a`, `compute_90`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Architecture {
    /// Ten times the major number of the compute capability, and the minor one: 90 for 9.0.
    number: u32,
    /// `a` or `f` for what later architectures do not have.
    suffix: Option<char>,
    is_ptx: bool,
}

/// A text that is no architecture.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{text:?} is no architecture; write \"sm_90\" for machine code, or \"compute_90\" for PTX")]
pub struct ArchitectureError {
    /// The text.
    pub text: String,
}

impl FromStr for Architecture {
    type Err = ArchitectureError;

    fn from_str(text: &str) -> Result<Self, ArchitectureError> {
        let error = || ArchitectureError { text: text.to_owned() };
        let (is_ptx, rest) = match (text.strip_prefix("sm_"), text.strip_prefix("compute_")) {
            (Some(rest), _) => (false, rest),
            (_, Some(rest)) => (true, rest),
            _ => return Err(error()),
        };
        let digits = rest.trim_end_matches(['a', 'f']);
        let suffix = match &rest[digits.len()..] {
            "" => None,
            "a" => Some('a'),
            "f" => Some('f'),
            _ => return Err(error()),
        };
        let is_number = (2..=3).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
        let number = digits.parse().ok().filter(|_| is_number).ok_or_else(error)?;
        Ok(Self { number, suffix, is_ptx })
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_ptx { "compute" } else { "sm" };
        write!(formatter, "{kind}_{}", self.number)?;
        self.suffix.map_or(Ok(()), |suffix| write!(formatter, "{suffix}"))
    }
}

impl Architecture {
    /// Whether it is PTX that is asked for.
    pub fn is_ptx(self) -> bool {
        self.is_ptx
    }

    /// The architecture for a device of compute capability `number`, 90 for 9.0, by a compiler that knows `known` ones.
    ///
    /// Machine code where the compiler knows the device. A newer device gets PTX of the newest architecture before it,
    /// which the driver compiles.
    pub fn for_device(number: u32, known: &[u32], compiler: &str) -> Result<Self, CompileError> {
        if known.contains(&number) {
            return Ok(Self { number, suffix: None, is_ptx: false });
        }
        match known.iter().copied().filter(|older| *older < number).max() {
            Some(number) => Ok(Self { number, suffix: None, is_ptx: true }),
            None => Err(CompileError::DeviceTooOld {
                compiler: compiler.to_owned(),
                device: number,
                oldest: known.iter().copied().min().unwrap_or(0),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn architectures_are_read_as_they_are_written() {
        for text in ["sm_90", "sm_90a", "sm_120f", "compute_75"] {
            assert_eq!(text.parse::<Architecture>().unwrap().to_string(), text);
        }
        for text in ["", "90", "sm_", "sm_9", "sm_90b", "sm_90aa", "sm_9000", "compute90", "sm_+9", "SM_90", "sm_90 "] {
            assert!(text.parse::<Architecture>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_device_gets_machine_code_or_else_the_newest_ptx_that_it_takes() {
        let known = [75, 80, 90, 120];
        let text = |number| Architecture::for_device(number, &known, "NVRTC 13.5").map(|found| found.to_string());
        assert_eq!(text(90).unwrap(), "sm_90");
        assert_eq!(text(89).unwrap(), "compute_80");
        assert_eq!(text(130).unwrap(), "compute_120");
        assert!(text(70).unwrap_err().to_string().contains("7.0"));
    }
}
