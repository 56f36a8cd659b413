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
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigHandler, Signal, killpg, signal};
use nix::unistd::Pid;

use crate::error::{Failure, Result};

/// How often a waiting parent looks for Ctrl-C and deadlines.
const POLL: Duration = Duration::from_millis(25);
/// How often it looks for the end of a child that closed its pipes.
const AFTER_PIPES: Duration = Duration::from_millis(1);
/// What a process group gets between the polite signal and the last one.
const GRACE: Duration = Duration::from_secs(3);

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// The process group that runs now, or 0. One child runs at a time, but for questions that are asked together: the kernel
/// ends those that are not in here with us.
static LIVE_GROUP: AtomicI32 = AtomicI32::new(0);

/// Turns SIGINT, SIGTERM and SIGHUP into a flag that ends the command at its next step, so that temporary files are
/// removed by their owners. A second signal ends the process and its child at once. Under `nohup`, SIGHUP stays ignored.
pub fn install_interrupt_handler() -> Result<()> {
    let hangup_ignored = is_ignored(Signal::SIGHUP);
    ctrlc::set_handler(|| {
        if INTERRUPTED.swap(true, Ordering::SeqCst) {
            kill_live_group();
            std::process::exit(130);
        }
    })
    .context("installing the handler for Ctrl-C")?;
    if hangup_ignored {
        // SAFETY: ignoring a signal installs no handler, so nothing has to be async-signal-safe.
        unsafe { signal(Signal::SIGHUP, SigHandler::SigIgn) }.context("ignoring SIGHUP again")?;
    }
    Ok(())
}

/// Whether the process was started with a signal ignored, as the kernel reports it.
fn is_ignored(signal: Signal) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << (signal as i32 - 1)) != 0)
}

fn kill_live_group() {
    let group = LIVE_GROUP.load(Ordering::SeqCst);
    if group != 0 {
        // An error means that the group is already gone.
        let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
    }
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
    deadline: Option<Duration>,
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
            deadline: None,
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

    /// Sets how long it may run; after that it is ended and the run fails.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// The command line as a person would type it.
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
        forward(child.process.stdout.take(), sender.clone(), Line::Out);
        forward(child.process.stderr.take(), sender, Line::Err);

        let started = Instant::now();
        let (mut stdout, mut stderr) = (String::new(), String::new());
        let mut ended: Option<(ExitStatus, Instant)> = None;
        loop {
            let received = receiver.recv_timeout(POLL);
            let is_quiet = received.is_err();
            match received {
                Ok(line) => {
                    let (text, all) = match line {
                        Line::Out(text) => (text, &mut stdout),
                        Line::Err(text) => (text, &mut stderr),
                    };
                    on_line(&text);
                    all.push_str(&text);
                    all.push('\n');
                }
                // Without pipes there is nothing to wait on; whoever closes both is mostly about to end.
                Err(RecvTimeoutError::Disconnected) if ended.is_none() => std::thread::sleep(AFTER_PIPES),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {}
            }
            match ended {
                None => ended = child.process.try_wait()?.map(|status| (status, Instant::now())),
                // Descendants may keep the pipes open or write for ever. What was written until then is still read.
                Some((_, at)) if at.elapsed() > GRACE => {
                    child.kill_group();
                    if is_quiet {
                        break;
                    }
                }
                Some(_) => {}
            }
            self.check_deadline(started)?;
            check_interrupted()?;
        }
        let status = match ended {
            Some((status, _)) => status,
            None => child.process.wait()?,
        };
        Ok(Finished { status, stdout, stderr })
    }

    fn check_deadline(&self, started: Instant) -> Result<()> {
        match self.deadline {
            Some(deadline) if started.elapsed() > deadline => {
                let seconds = deadline.as_secs();
                Err(Failure::failed(format!("{} took longer than {seconds} s and was ended", self.program.display()))
                    .detail(self.describe().chars().take(300).collect::<String>())
                    .into())
            }
            _ => Ok(()),
        }
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
            if let Some(status) = child.process.try_wait()? {
                return Ok(Some(status));
            }
            check_interrupted()?;
            if matches!(watch(), Watch::Stop) {
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

    fn spawn(&self, command: &mut Command) -> Result<LiveChild> {
        let with_parent = || set_pdeathsig(Signal::SIGKILL).map_err(std::io::Error::from);
        // SAFETY: the closure makes one system call and allocates nothing, which is allowed between fork and exec.
        unsafe { command.pre_exec(with_parent) };
        let process = command.spawn().map_err(|error| {
            let failure = Failure::machine(format!("cannot start {}: {error}", self.program.display()));
            match error.kind() {
                std::io::ErrorKind::NotFound => {
                    failure.remedy(format!("install {} or put it on PATH", self.program.display()))
                }
                _ => failure,
            }
        })?;
        Ok(LiveChild::new(process))
    }
}

/// A child with its process group. Whatever of the group is left ends with it: however we leave, nothing goes on.
struct LiveChild {
    process: Child,
    group: Pid,
}

impl LiveChild {
    fn new(process: Child) -> Self {
        let group = Pid::from_raw(process.id().try_into().unwrap_or(0));
        LIVE_GROUP.store(group.as_raw(), Ordering::SeqCst);
        Self { process, group }
    }

    fn kill_group(&self) {
        // An error means that the group is already gone.
        let _ = killpg(self.group, Signal::SIGKILL);
    }
}

impl Drop for LiveChild {
    /// Ends the group: first as Ctrl-C would, so that pytest can tear its fixtures down, then for good.
    fn drop(&mut self) {
        if matches!(self.process.try_wait(), Ok(None)) {
            // Errors mean that the group is already gone.
            let _ = killpg(self.group, Signal::SIGINT);
            let asked_at = Instant::now();
            while asked_at.elapsed() < GRACE && matches!(self.process.try_wait(), Ok(None)) {
                std::thread::sleep(POLL);
            }
        }
        self.kill_group();
        let _ = self.process.wait();
        LIVE_GROUP.store(0, Ordering::SeqCst);
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

/// An argument as a person would type it in a shell.
pub fn quote(argument: &OsStr) -> String {
    let text = argument.to_string_lossy();
    let plain = |c: char| c.is_alphanumeric() || "-_=+./:,@%~[]".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.into_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// Whether a process runs; one that ended and that nobody has waited for does not.
pub fn is_alive(id: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    // The name of the program stands before the state, in parentheses, and may hold anything.
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// Looks a program up on PATH.
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
    fn a_descendant_that_keeps_writing_does_not_keep_us() {
        let started = Instant::now();
        let script = "(while true; do echo x; sleep 0.005; done) & echo done";
        Process::new("/bin/sh").args(["-c", script]).capture().unwrap();
        assert!(started.elapsed() < Duration::from_secs(15));
    }

    #[test]
    fn a_reader_that_is_slow_still_reads_everything() {
        let mut lines = 0;
        let script = "i=0; while [ $i -lt 800 ]; do echo $i; i=$((i+1)); done";
        let finished = Process::new("/bin/sh").args(["-c", script]).stream(&mut |_| {
            lines += 1;
            std::thread::sleep(Duration::from_millis(5));
        });
        assert_eq!((finished.unwrap().stdout.lines().count(), lines), (800, 800));
    }

    #[test]
    fn a_child_without_pipes_is_still_watched() {
        let started = Instant::now();
        let process = Process::new("/bin/sh").args(["-c", "exec >&- 2>&-; sleep 600"]);
        assert!(process.deadline(Duration::from_secs(1)).capture().is_err());
        assert!(started.elapsed() < Duration::from_secs(15));
    }

    #[test]
    fn a_process_is_ended_at_its_deadline() {
        let process = Process::new("/bin/sh").args(["-c", "sleep 600"]).deadline(Duration::from_secs(1));
        let error = process.capture().unwrap_err();
        assert_eq!(
            crate::error::render(&error),
            "error: /bin/sh took longer than 1 s and was ended\n  /bin/sh -c 'sleep 600'\n"
        );
    }

    #[test]
    fn a_descendant_that_keeps_the_pipe_does_not_keep_us() {
        let started = Instant::now();
        let finished = Process::new("/bin/sh").args(["-c", "sleep 30 & echo done"]).capture().unwrap();
        assert_eq!(finished.stdout, "done\n");
        assert!(started.elapsed() < Duration::from_secs(15));
    }
}
