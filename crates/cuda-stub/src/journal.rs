//! What is remembered of a run: calls, violations, launches and copies. What is alive is asked of the model itself.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::sync::Arc;

use serde::Serialize;

use crate::launch::Launch;

/// Lists longer than this are cut; the counts beside them go on.
const MOST_ENTRIES: usize = 10_000;

/// One recorded copy or fill.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Copied {
    pub(crate) function: &'static str,
    pub(crate) destination: u64,
    pub(crate) source: Option<u64>,
    pub(crate) size_bytes: u64,
    pub(crate) stream: u64,
}

/// The record since the last reset.
#[derive(Default)]
pub(crate) struct Journal {
    pub(crate) calls: BTreeMap<&'static str, u64>,
    pub(crate) violations: Vec<String>,
    pub(crate) launches: Vec<Arc<Launch>>,
    pub(crate) launch_count: u64,
    pub(crate) copies: Vec<Copied>,
    pub(crate) copy_count: u64,
    log: Option<File>,
}

impl Journal {
    /// Forgets everything but where the log is.
    pub(crate) fn clear(&mut self) {
        *self = Self { log: self.log.take(), ..Self::default() };
    }

    pub(crate) fn log_to(&mut self, file: Option<File>) {
        self.log = file;
    }

    pub(crate) fn violation(&mut self, text: String) {
        self.log_line(format_args!("violation: {text}"));
        if self.violations.len() < MOST_ENTRIES {
            self.violations.push(text);
        }
    }

    pub(crate) fn launched(&mut self, launch: Arc<Launch>) {
        self.launch_count += 1;
        if self.launches.len() < MOST_ENTRIES {
            self.launches.push(launch);
        }
    }

    pub(crate) fn copied(&mut self, copied: Copied) {
        self.copy_count += 1;
        if self.copies.len() < MOST_ENTRIES {
            self.copies.push(copied);
        }
    }

    /// Writes a line to the log, if there is one. A log that cannot be written loses lines, not the run.
    pub(crate) fn log_line(&mut self, line: std::fmt::Arguments<'_>) {
        if let Some(file) = &mut self.log
            && writeln!(file, "{line}").is_err()
        {
            self.log = None;
        }
    }
}
