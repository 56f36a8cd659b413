//! The settings, in the one grammar of the variable `CUDA_STUB` and of `cudaStubConfigure`.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::error::Code;

/// The most devices that can be had; each reserves a tebibyte of addresses.
pub(crate) const MOST_DEVICES: usize = 16;

/// What of a text is wrong.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("cuda-stub: `{clause}` {fault}")]
pub(crate) struct SettingsError {
    clause: String,
    fault: &'static str,
}

/// When an armed fault strikes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Fault {
    /// Name of the function without a suffix of version.
    pub(crate) function: String,
    /// Calls still to come, the one that fails included.
    pub(crate) countdown: u64,
    /// Whether every later call fails as well.
    pub(crate) lasting: bool,
    /// Whether the context is unusable afterwards.
    pub(crate) sticky: bool,
    pub(crate) code: Code,
}

/// What is done about objects that are alive when the process ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AtExit {
    Nothing,
    Report,
    Fail,
}

/// How the driver behaves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Settings {
    pub(crate) devices: usize,
    pub(crate) memory_bytes: u64,
    /// As `cuDriverGetVersion` gives it: 1000 × major + 10 × minor.
    pub(crate) driver_version: i32,
    pub(crate) compute_capability: (i32, i32),
    pub(crate) missing: BTreeSet<String>,
    pub(crate) faults: Vec<Fault>,
    pub(crate) log: Option<PathBuf>,
    pub(crate) at_exit: AtExit,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            devices: 1,
            memory_bytes: 1 << 30,
            driver_version: 13_010,
            compute_capability: (9, 0),
            missing: BTreeSet::new(),
            faults: Vec::new(),
            log: None,
            at_exit: AtExit::Nothing,
        }
    }
}

impl Settings {
    /// Applies the clauses of `text` on top of these settings. Nothing is applied when one of them is wrong.
    pub(crate) fn apply(&mut self, text: &str) -> Result<(), SettingsError> {
        let mut changed = self.clone();
        for clause in text.split(';').map(str::trim).filter(|clause| !clause.is_empty()) {
            changed.apply_clause(clause).map_err(|fault| SettingsError { clause: clause.to_owned(), fault })?;
        }
        *self = changed;
        Ok(())
    }

    fn apply_clause(&mut self, clause: &str) -> Result<(), &'static str> {
        let (key, value) = clause.split_once('=').map_or((clause, ""), |(key, value)| (key.trim(), value.trim()));
        match key {
            "devices" => {
                let devices = number(value)?;
                if devices > MOST_DEVICES {
                    return Err("asks for more than 16 devices");
                }
                self.devices = devices;
            }
            "no_device" => self.devices = 0,
            "memory" => self.memory_bytes = number(value)?,
            "driver" => self.driver_version = number(value)?,
            "compute" => {
                let version: i32 = number(value)?;
                self.compute_capability = (version / 10, version % 10);
            }
            "missing" => self.missing.extend(value.split(',').map(|name| base_name(name.trim()).to_owned())),
            "fail" => self.faults.push(fault(value, false)?),
            "sticky" => self.faults.push(fault(value, true)?),
            "log" => self.log = (!value.is_empty()).then(|| value.into()),
            "at_exit" => {
                self.at_exit = match value {
                    "report" => AtExit::Report,
                    "fail" => AtExit::Fail,
                    "nothing" => AtExit::Nothing,
                    _ => return Err("is none of at_exit=report, at_exit=fail and at_exit=nothing"),
                }
            }
            _ => {
                return Err(
                    "is no setting: there are devices, no_device, memory, driver, compute, missing, fail, sticky, \
                            log and at_exit",
                );
            }
        }
        Ok(())
    }
}

fn number<T: std::str::FromStr>(value: &str) -> Result<T, &'static str> {
    value.parse().map_err(|_| "needs a whole number after `=`")
}

fn fault(value: &str, sticky: bool) -> Result<Fault, &'static str> {
    const SHAPE: &str = "is not FUNCTION:N:ERROR_NAME, where N counts from 1 and may end in `+`";
    let mut parts = value.split(':').map(str::trim);
    let (Some(function), Some(count), Some(error), None) = (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(SHAPE);
    };
    let (digits, lasting) = count.strip_suffix('+').map_or((count, false), |digits| (digits, true));
    let countdown = digits.parse().map_err(|_| SHAPE)?;
    if countdown == 0 {
        return Err(SHAPE);
    }
    let code = Code::from_name(error).ok_or("names an error that CUDA does not have")?;
    Ok(Fault { function: base_name(function).to_owned(), countdown, lasting, sticky, code })
}

/// A function's name as the manual has it: without the suffixes that tell versions and default streams apart.
pub(crate) fn base_name(symbol: &str) -> &str {
    let symbol = symbol.strip_suffix("_ptsz").or_else(|| symbol.strip_suffix("_ptds")).unwrap_or(symbol);
    match symbol.rsplit_once("_v") {
        Some((name, digits)) if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => symbol,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_changes_what_it_names() {
        let mut settings = Settings::default();
        settings
            .apply(
                "devices=2; memory=4096;driver=12040;compute=103;missing=cuMemAllocAsync,cuMemFreeAsync_ptsz; \
                 fail=cuMemAlloc_v2:3+:OUT_OF_MEMORY;",
            )
            .unwrap();
        assert_eq!((settings.devices, settings.memory_bytes, settings.driver_version), (2, 4096, 12_040));
        assert_eq!(settings.compute_capability, (10, 3));
        assert_eq!(settings.missing.iter().collect::<Vec<_>>(), ["cuMemAllocAsync", "cuMemFreeAsync"]);
        let expected = Fault {
            function: "cuMemAlloc".to_owned(),
            countdown: 3,
            lasting: true,
            sticky: false,
            code: Code::OUT_OF_MEMORY,
        };
        assert_eq!(settings.faults, [expected]);
    }

    #[test]
    fn a_wrong_clause_is_named_and_changes_nothing() {
        let cases = [
            ("devices=2;memory=lots", "cuda-stub: `memory=lots` needs a whole number after `=`"),
            ("devices=17", "cuda-stub: `devices=17` asks for more than 16 devices"),
            (
                "fail=cuInit:0:UNKNOWN",
                "cuda-stub: `fail=cuInit:0:UNKNOWN` is not FUNCTION:N:ERROR_NAME, where N counts from 1 and may end in `+`",
            ),
            ("sticky=cuInit:1:OOPS", "cuda-stub: `sticky=cuInit:1:OOPS` names an error that CUDA does not have"),
        ];
        for (text, expected) in cases {
            let mut settings = Settings::default();
            assert_eq!(settings.apply(text).unwrap_err().to_string(), expected);
            assert_eq!(settings, Settings::default());
        }
    }

    #[test]
    fn suffixes_are_not_part_of_a_name() {
        for (symbol, name) in [
            ("cuMemAlloc_v2", "cuMemAlloc"),
            ("cuMemcpyHtoDAsync_v2_ptsz", "cuMemcpyHtoDAsync"),
            ("cuMemcpy_ptds", "cuMemcpy"),
            ("cuInit", "cuInit"),
        ] {
            assert_eq!(base_name(symbol), name);
        }
    }
}
