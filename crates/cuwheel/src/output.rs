//! The one seam to the user: progress on stderr, results on stdout, colours on terminals only.
//!
//! Not for the output of child processes: [`crate::process`] hands their lines to [`Output::live`] and keeps a log.

use std::cell::{Cell, RefCell};
use std::io::{IsTerminal as _, Write as _};

use serde_json::Value;

use crate::env_vars;
use crate::error::{Failure, Result};

/// How much is said on stderr.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    /// Errors only.
    Quiet,
    /// Progress when stderr is a terminal.
    Normal,
    /// Progress and the output of every child process, also into a pipe.
    Verbose,
}

/// Where a command writes what it has to say.
#[derive(Debug)]
pub struct Output {
    verbosity: Verbosity,
    json: bool,
    terminal: bool,
    colour: bool,
    live_line_shown: Cell<bool>,
    warnings: RefCell<Vec<String>>,
}

impl Output {
    /// Looks at stderr and the environment once, at the start of a command.
    pub fn new(verbosity: Verbosity, json: bool) -> Self {
        let terminal = std::io::stderr().is_terminal();
        Self {
            verbosity,
            json,
            terminal,
            colour: terminal && env_vars::NO_COLOR.get().is_none(),
            live_line_shown: Cell::new(false),
            warnings: RefCell::new(Vec::new()),
        }
    }

    /// Whether results go out as JSON.
    pub const fn is_json(&self) -> bool {
        self.json
    }

    /// Whether only errors are shown.
    pub fn is_quiet(&self) -> bool {
        self.verbosity == Verbosity::Quiet
    }

    /// A line that belongs to what was asked for, such as a test's result.
    pub fn line(&self, line: &str) {
        if !self.is_quiet() {
            self.clear_live_line();
            print_to_stderr(&format!("{line}\n"));
        }
    }

    /// A step that starts, such as `compile`, with what it works on.
    pub fn step(&self, verb: &str, what: &str) {
        let shown = match self.verbosity {
            Verbosity::Quiet => false,
            Verbosity::Normal => self.terminal,
            Verbosity::Verbose => true,
        };
        if shown {
            self.clear_live_line();
            let (start, end) = if self.colour { ("\x1b[1;32m", "\x1b[0m") } else { ("", "") };
            print_to_stderr(&format!("{start}{verb:>12}{end} {what}\n"));
        }
    }

    /// A line of a child process: shown for ever when verbose, for a moment on a terminal.
    pub fn live(&self, line: &str) {
        match self.verbosity {
            Verbosity::Verbose => print_to_stderr(&format!("{line}\n")),
            Verbosity::Normal if self.terminal && !line.trim().is_empty() => {
                let text: String = line.trim().chars().filter(|c| !c.is_control()).take(76).collect();
                print_to_stderr(&format!("\r\x1b[2K{text}"));
                self.live_line_shown.set(true);
            }
            Verbosity::Quiet | Verbosity::Normal => {}
        }
    }

    fn clear_live_line(&self) {
        if self.live_line_shown.take() {
            print_to_stderr("\r\x1b[2K");
        }
    }

    /// Something the user should know that stops nothing. It is repeated in JSON output.
    pub fn warn(&self, message: impl Into<String>) {
        let message = message.into();
        if self.verbosity > Verbosity::Quiet {
            self.clear_live_line();
            print_to_stderr(&format!("warning: {message}\n"));
        }
        self.warnings.borrow_mut().push(message);
    }

    /// Text that is the command's result.
    pub fn result(&self, text: &str) -> Result<()> {
        self.clear_live_line();
        if self.json { Ok(()) } else { print_to_stdout(text) }
    }

    /// The command's result for machines; `warnings` is added to the object.
    pub fn result_json(&self, mut value: Value) -> Result<()> {
        self.clear_live_line();
        if !self.json {
            return Ok(());
        }
        value["warnings"] = Value::from(self.warnings.borrow().clone());
        print_to_stdout(&format!("{value:#}\n"))
    }

    /// An error, rendered for a person.
    pub fn error(&self, text: &str) {
        self.clear_live_line();
        print_to_stderr(text);
    }
}

/// Progress that nobody can read any more is no reason to stop.
fn print_to_stderr(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

/// A reader that went away, such as `head`, has read what it wanted; a result that cannot be written is lost.
fn print_to_stdout(text: &str) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::machine(format!("the result cannot be written to stdout: {error}")).into())
        }
        _ => Ok(()),
    }
}
