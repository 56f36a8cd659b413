//! The one seam to child processes: argument vectors (never shell strings), their own process group, time-outs, and
//! Ctrl-C that reaches every descendant.
//!
//! Not for deciding what a failed child means: callers get the exit status and the output.
//! Process groups and deadlines are why this is not a shell-like helper crate.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::error::{Failure, Result};

/// How often a waiting parent looks for Ctrl-C and deadlines.
const POLL: Duration = Duration::from_millis(25);
/// What a process group gets between the polite signal and the last one.
const GRACE: Duration = Duration::from_secs(3);

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Turns SIGINT, SIGTERM and SIGHUP into a flag that ends the command at its next step, so that temporary files are
/// removed by their owners. A second signal ends the process at once.
pub fn install_interrupt_handler() -> Result<()> {
    ctrlc::set_handler(|| {
        if INTERRUPTED.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
    })
    .context("installing the handler for Ctrl-C")
}

/// Fails when the user asked the command to stop. Called between steps.
pub fn check_interrupted() -> Result<()> {
    if INTERRUPTED.load(Ordering::SeqCst) { Err(Failure::interrupted().into()) } else { Ok(()) }
}

/// A child process to be run.
#[derive(Clone, Debug)]
pub struct Process {
    program: PathBuf,
    arguments: Vec<OsString>,
    environment: BTreeMap<OsString, Option<OsString>>,
    directory: Option<PathBuf>,
}

/// A child process that ended, with all it wrote.
#[derive(Debug)]
pub struct Finished {
    /// How it ended.
    pub status: ExitStatus,
    /// What it wrote to stdout; bytes that are no UTF-8 are replaced.
    pub stdout: String,
    /// What it wrote to stderr; bytes that are no UTF-8 are replaced.
    pub stderr: String,
}

impl Finished {
    /// The last lines that were written, for an error's details: stderr, or stdout where that is empty.
    #[must_use]
    pub fn tail(&self, count: usize) -> Vec<String> {
        let text = if self.stderr.trim().is_empty() { &self.stdout } else { &self.stderr };
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(count)..].iter().map(ToString::to_string).collect()
    }
}

/// What a watcher of a running process decides.
#[derive(Debug)]
pub enum Watch {
    /// It may go on.
    Continue,
    /// It is ended with its whole process group.
    Stop,
}

enum Line {
    Out(String),
    Err(String),
}

impl Process {
    /// A process that runs `program`: a path, or a name looked for on PATH.
    pub fn new(program: impl AsRef<Path>) -> Self {
        Self {
            program: program.as_ref().to_path_buf(),
            arguments: Vec::new(),
            environment: BTreeMap::new(),
            directory: None,
        }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<S: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = S>) -> Self {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.environment.insert(name.as_ref().to_owned(), Some(value.as_ref().to_owned()));
        self
    }

    /// Removes an environment variable.
    #[must_use]
    pub fn env_remove(mut self, name: impl AsRef<OsStr>) -> Self {
        self.environment.insert(name.as_ref().to_owned(), None);
        self
    }

    /// Sets the working directory.
    #[must_use]
    pub fn directory(mut self, directory: impl AsRef<Path>) -> Self {
        self.directory = Some(directory.as_ref().to_path_buf());
        self
    }

    /// The command line as a person would type it.
    #[must_use]
    pub fn describe(&self) -> String {
        let mut text = quote(self.program.as_os_str());
        for argument in &self.arguments {
            let _ = write!(text, " {}", quote(argument));
        }
        text
    }

    /// Runs it to its end, keeping what it writes.
    pub fn capture(&self) -> Result<Finished> {
        self.stream(&mut |_| {})
    }

    /// Runs it to its end, keeping what it writes and handing over each line as it comes.
    pub fn stream(&self, on_line: &mut dyn FnMut(&str)) -> Result<Finished> {
        let mut command = self.command();
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.spawn(&mut command)?;
        let (sender, receiver) = mpsc::channel();
        forward(child.stdout.take(), sender.clone(), Line::Out);
        forward(child.stderr.take(), sender, Line::Err);

        let (mut stdout, mut stderr) = (String::new(), String::new());
        let mut ended_at = None;
        loop {
            match receiver.recv_timeout(POLL) {
                Ok(line) => {
                    let (text, all) = match line {
                        Line::Out(text) => (text, &mut stdout),
                        Line::Err(text) => (text, &mut stderr),
                    };
                    on_line(&text);
                    all.push_str(&text);
                    all.push('\n');
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    // A descendant that outlives the child keeps the pipes open; it does not keep us.
                    if ended_at.is_none() && child.try_wait()?.is_some() {
                        ended_at = Some(Instant::now());
                    }
                    if ended_at.is_some_and(|at| at.elapsed() > GRACE) {
                        break;
                    }
                }
            }
            if INTERRUPTED.load(Ordering::SeqCst) {
                end_group(&mut child);
                return Err(Failure::interrupted().into());
            }
        }
        Ok(Finished { status: child.wait()?, stdout, stderr })
    }

    /// Runs it with our own stdout and stderr (with stdout on stderr when `stdout_to_stderr`), asking `watch` several
    /// times a second whether it may go on. `None` is returned for a process that was stopped by its watcher.
    pub fn attached(&self, stdout_to_stderr: bool, watch: &mut dyn FnMut() -> Watch) -> Result<Option<ExitStatus>> {
        let mut command = self.command();
        if stdout_to_stderr {
            command.stdout(Stdio::from(std::io::stderr().as_fd().try_clone_to_owned()?));
        }
        let mut child = self.spawn(&mut command)?;
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(Some(status));
            }
            if INTERRUPTED.load(Ordering::SeqCst) {
                end_group(&mut child);
                return Err(Failure::interrupted().into());
            }
            if matches!(watch(), Watch::Stop) {
                end_group(&mut child);
                return Ok(None);
            }
            std::thread::sleep(POLL);
        }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).stdin(Stdio::null()).process_group(0);
        for (name, value) in &self.environment {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        command
    }

    fn spawn(&self, command: &mut Command) -> Result<Child> {
        command.spawn().map_err(|error| {
            let failure = Failure::machine(format!("cannot start {}: {error}", self.program.display()));
            match error.kind() {
                std::io::ErrorKind::NotFound => {
                    failure.remedy(format!("install {} or put it on PATH", self.program.display())).into()
                }
                _ => failure.into(),
            }
        })
    }
}

/// Sends the lines of a pipe from a thread of its own, so that neither pipe can fill up and block the child.
fn forward<R: Read + Send + 'static>(pipe: Option<R>, sender: Sender<Line>, wrap: fn(String) -> Line) {
    let Some(pipe) = pipe else { return };
    std::thread::spawn(move || {
        let mut reader = BufReader::new(pipe);
        let mut line = Vec::new();
        while matches!(reader.read_until(b'\n', &mut line), Ok(count) if count > 0) {
            let text = String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned();
            if sender.send(wrap(text)).is_err() {
                break;
            }
            line.clear();
        }
    });
}

/// Ends a child and everything it started: first politely, then for good.
fn end_group(child: &mut Child) {
    let Ok(group) = i32::try_from(child.id()).map(Pid::from_raw) else { return };
    // Errors mean that the group is already gone.
    let _ = killpg(group, Signal::SIGTERM);
    let asked_at = Instant::now();
    while asked_at.elapsed() < GRACE {
        if matches!(child.try_wait(), Ok(Some(_))) {
            break;
        }
        std::thread::sleep(POLL);
    }
    let _ = killpg(group, Signal::SIGKILL);
    let _ = child.wait();
}

fn quote(argument: &OsStr) -> String {
    let text = argument.to_string_lossy();
    let plain = |c: char| c.is_alphanumeric() || "-_=+./:,@%~[]".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.into_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// Looks a program up on PATH.
#[must_use]
pub fn find_program(name: &str) -> Option<PathBuf> {
    let path = crate::env_vars::PATH.get()?;
    std::env::split_paths(&path)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(name))
        .find(|candidate| crate::files::is_executable(candidate))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_quoted_for_a_shell() {
        let process = Process::new("/bin/sp ace/tool").arg("--x=1").arg("it's").arg("");
        assert_eq!(process.describe(), r"'/bin/sp ace/tool' --x=1 'it'\''s' ''");
    }

    #[test]
    fn both_streams_are_kept_apart_and_in_order() {
        let mut lines = 0;
        let finished = Process::new("/bin/sh")
            .args(["-c", "echo a; echo b >&2; printf 'c\\377'; exit 4"])
            .stream(&mut |_| lines += 1)
            .unwrap();
        assert_eq!(finished.status.code(), Some(4));
        assert_eq!((finished.stdout.as_str(), finished.stderr.as_str()), ("a\nc\u{fffd}\n", "b\n"));
        assert_eq!(lines, 3);
    }

    #[test]
    fn a_program_that_is_missing_is_named_with_the_remedy() {
        let error = Process::new("no-such-program").capture().unwrap_err();
        assert_eq!(
            crate::error::render(&error),
            "error: cannot start no-such-program: No such file or directory (os error 2)\n\
             fix: install no-such-program or put it on PATH\n"
        );
    }

    #[test]
    fn a_stopped_process_takes_its_descendants_along() {
        let directory = tempfile::tempdir().unwrap();
        let alive = directory.path().join("alive");
        let script =
            format!("(trap '' TERM; while true; do date +%N > '{}'; sleep 0.05; done) & wait", alive.display());
        let status = Process::new("/bin/sh")
            .args(["-c", &script])
            .attached(false, &mut || if alive.exists() { Watch::Stop } else { Watch::Continue })
            .unwrap();
        assert!(status.is_none());
        let last = std::fs::read_to_string(&alive).unwrap();
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!(std::fs::read_to_string(&alive).unwrap(), last, "a grandchild still writes");
    }

    #[test]
    fn a_descendant_that_keeps_the_pipe_does_not_keep_us() {
        let started = Instant::now();
        let finished = Process::new("/bin/sh").args(["-c", "sleep 30 & echo done"]).capture().unwrap();
        assert_eq!(finished.stdout, "done\n");
        assert!(started.elapsed() < Duration::from_secs(15));
    }
}
