//! Python interpreters: finding one, and asking it what it is.
//!
//! Not for what is installed in them: builds and tests run in environments of their own ([`crate::environment`]).

use std::fmt;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::cache::Cache;
use crate::env_vars;
use crate::error::{Failure, Result};
use crate::files;
use crate::output::Output;
use crate::process::{Process, find_program};

const PROBE: &str = include_str!("python/probe.py");

/// The oldest CPython that is built for.
pub const OLDEST: (u8, u8) = (3, 11);

/// An interpreter, as it describes itself.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub struct Interpreter {
    /// `cpython`.
    pub implementation: String,
    /// Major, minor and micro version.
    pub version: (u8, u8, u8),
    /// `final`, or a pre-release.
    pub release_level: String,
    /// The tag of its ABI, such as `cpython-313t-x86_64-linux-gnu`.
    pub abi: String,
    /// Whether it was built without the global interpreter lock.
    pub gil_disabled: bool,
    /// Such as `linux-x86_64`.
    pub platform: String,
    /// The executable outside of any virtual environment; links are kept as they are.
    pub base_executable: PathBuf,
    /// Where it is installed, whatever name it was started by.
    pub base_prefix: PathBuf,
    /// The directory of `Python.h`.
    pub include: PathBuf,
    /// Whether `Python.h` is there.
    pub has_headers: bool,
}

impl fmt::Display for Interpreter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor, micro) = self.version;
        let kind = if self.implementation == "cpython" { "CPython" } else { &self.implementation };
        let threads = if self.gil_disabled { "t" } else { "" };
        write!(formatter, "{kind} {major}.{minor}.{micro}{threads}")
    }
}

impl Interpreter {
    /// Asks an executable what it is.
    pub fn probe(executable: &Path) -> Result<Self> {
        let finished = Process::new(executable).args(["-I", "-S", "-c", PROBE]).capture()?;
        if !finished.status.success() {
            return Err(Failure::machine(format!("{} does not run", executable.display()))
                .details(finished.tail(4))
                .into());
        }
        serde_json::from_str(finished.stdout.trim())
            .with_context(|| format!("{} gave an unexpected answer", executable.display()))
    }

    /// The same of an interpreter that was asked before, as long as neither the executable nor the environment that it
    /// belongs to is another one since.
    pub fn remembered(cache: &Cache, executable: &Path) -> Result<Self> {
        let known = std::fs::read(memory(cache, executable)).ok();
        let known: Option<Remembered> = known.and_then(|text| serde_json::from_slice(&text).ok());
        let Some(known) = known.filter(|known| mark(executable).is_some_and(|mark| mark == known.mark)) else {
            return Self::probe(executable);
        };
        // Headers come and go by themselves.
        let has_headers = known.interpreter.include.join("Python.h").is_file();
        Ok(Self { has_headers, ..known.interpreter })
    }

    /// Keeps what an executable said of itself for [`Self::remembered`].
    pub fn remember(&self, cache: &Cache, executable: &Path) -> Result<()> {
        let Some(mark) = mark(executable) else { return Ok(()) };
        let text = serde_json::to_vec(&Remembered { mark, interpreter: self.clone() })?;
        files::write_if_changed(&memory(cache, executable), &text).map(drop)
    }

    /// What tells interpreters apart whose environments cannot be shared: ABI and place of installation. The name of the
    /// executable is not part of it: `python3` and `python3.12` are links to one file.
    pub fn identity(&self) -> Value {
        json!({
            "implementation": self.implementation,
            "version": self.version,
            "release_level": self.release_level,
            "abi": self.abi,
            "platform": self.platform,
            "prefix": self.base_prefix,
        })
    }

    /// Major and minor version.
    pub const fn minor_version(&self) -> (u8, u8) {
        (self.version.0, self.version.1)
    }

    /// The tag of version-specific wheels, such as `cp313-cp313t`.
    pub fn specific_tag(&self) -> String {
        let (major, minor) = self.minor_version();
        format!("cp{major}{minor}-cp{major}{minor}{}", if self.gil_disabled { "t" } else { "" })
    }

    /// The CPU, as platform tags name it: `x86_64`.
    pub fn machine(&self) -> &str {
        self.platform.rsplit_once('-').map_or("x86_64", |(_, machine)| machine)
    }

    /// Why it cannot build or test, if it cannot.
    fn unfit(&self) -> Option<String> {
        if self.implementation != "cpython" {
            return Some(format!("is {}, not CPython", self.implementation));
        }
        if self.minor_version() < OLDEST {
            return Some(format!("is {self}, older than {}.{}", OLDEST.0, OLDEST.1));
        }
        if !self.platform.starts_with("linux") {
            return Some(format!("runs on {}, not on Linux", self.platform));
        }
        None
    }

    /// Refuses itself when it cannot build or test; `executable` is what it was asked by.
    pub fn if_fit(self, executable: &Path) -> Result<Self> {
        match self.unfit() {
            None => Ok(self),
            Some(reason) => Err(Failure::usage(format!("{} {reason}", executable.display()))
                .remedy(format!("name a CPython {}.{} or newer with --python", OLDEST.0, OLDEST.1))
                .into()),
        }
    }

    /// Refuses an interpreter without the headers that C shims need.
    pub fn require_headers(&self) -> Result<()> {
        if self.has_headers {
            return Ok(());
        }
        let (major, minor) = self.minor_version();
        Err(Failure::machine(format!("{self} has no headers: {}/Python.h is missing", self.include.display()))
            .remedy(format!(
                "install them (python{major}.{minor}-dev on Debian and Ubuntu, python3-devel on Fedora), or name another \
                 interpreter with --python"
            ))
            .into())
    }
}

/// An answer that is remembered, with what it holds for.
#[derive(Deserialize, Serialize)]
struct Remembered {
    mark: String,
    interpreter: Interpreter,
}

/// Where it is kept what an executable said of itself.
fn memory(cache: &Cache, executable: &Path) -> PathBuf {
    cache.path("interpreters").join(format!("{}.json", files::key(executable.as_os_str().as_encoded_bytes())))
}

/// What changes when an executable or the environment that it belongs to is replaced.
fn mark(executable: &Path) -> Option<String> {
    let file = std::fs::canonicalize(executable).ok()?;
    let data = std::fs::metadata(&file).ok()?;
    let environment = executable.parent()?.parent()?.join("pyvenv.cfg");
    let environment = std::fs::read(environment).unwrap_or_default();
    let changed = (data.ctime(), data.ctime_nsec());
    Some(format!("{} {} {} {changed:?} {}", PROBE.len(), file.display(), data.ino(), files::sha256(&environment)))
}

/// What `--python` asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// An executable, or a virtual environment's directory.
    Path(PathBuf),
    /// A version: `3.12`, or `3.13t` for a free-threaded one.
    Version {
        /// Major and minor version.
        version: (u8, u8),
        /// Whether the interpreter runs without the global interpreter lock.
        free_threaded: bool,
    },
}

impl std::str::FromStr for Request {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains('/') || Path::new(text).exists() {
            return Ok(Self::Path(text.into()));
        }
        let digits = text.strip_prefix("python").unwrap_or(text);
        let (digits, free_threaded) = digits.strip_suffix('t').map_or((digits, false), |digits| (digits, true));
        let version =
            digits.split_once('.').and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
        match version {
            Some(version) => Ok(Self::Version { version, free_threaded }),
            None => Err("give a version such as 3.12 or 3.13t, or the path of an interpreter".to_owned()),
        }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => path.display().fmt(formatter),
            Self::Version { version: (major, minor), free_threaded } => {
                write!(formatter, "{major}.{minor}{}", if *free_threaded { "t" } else { "" })
            }
        }
    }
}

/// Finds the interpreter that was asked for, or the best one of this machine.
pub fn find(request: Option<&Request>, output: &Output) -> Result<Interpreter> {
    match request {
        Some(Request::Path(path)) => find_by_path(path),
        Some(Request::Version { version, free_threaded }) => find_by_version(*version, *free_threaded),
        None => match env_vars::CUWHEEL_PYTHON.get() {
            Some(path) => find_by_path(Path::new(&path)),
            None => find_default(output),
        },
    }
}

fn find_by_path(path: &Path) -> Result<Interpreter> {
    let executable = if path.is_dir() { path.join("bin/python") } else { path.to_path_buf() };
    if !files::is_executable(&executable) {
        return Err(Failure::usage(format!("{} is no interpreter", executable.display()))
            .remedy("give the path of a python executable or of a virtual environment")
            .into());
    }
    Interpreter::probe(&files::absolute(&executable)?)?.if_fit(&executable)
}

fn find_by_version(version: (u8, u8), free_threaded: bool) -> Result<Interpreter> {
    let request = Request::Version { version, free_threaded };
    let name = format!("python{request}");
    let candidates =
        find_program(&name).into_iter().chain(pyenv_interpreters(&request)).chain(on_path(&["python3", "python"]));
    let fits = |found: &Interpreter| found.minor_version() == version && found.gil_disabled == free_threaded;
    let mut looked_at = Vec::new();
    for candidate in candidates {
        match Interpreter::probe(&candidate) {
            Ok(found) if fits(&found) => match found.unfit() {
                None => return Ok(found),
                Some(reason) => looked_at.push(format!("{} {reason}", candidate.display())),
            },
            Ok(found) => looked_at.push(format!("{} is {found}", candidate.display())),
            Err(_) => looked_at.push(format!("{} does not run", candidate.display())),
        }
    }
    Err(Failure::machine(format!("no CPython {request} on PATH or under pyenv that can be used"))
        .details(looked_at)
        .remedy(format!("install it, or give the path of an interpreter: --python /path/to/{name}"))
        .into())
}

/// The active environment, then PATH, then pyenv; the first that is fit.
fn find_default(output: &Output) -> Result<Interpreter> {
    let mut looked_at = Vec::new();
    let pyenv = pyenv_interpreters_from(OLDEST);
    for candidate in active_environments(output).into_iter().chain(on_path(&["python3", "python"])).chain(pyenv) {
        match Interpreter::probe(&candidate) {
            Ok(found) => match found.unfit() {
                None => return Ok(found),
                Some(reason) => looked_at.push(format!("{} {reason}", candidate.display())),
            },
            Err(_) => looked_at.push(format!("{} does not run", candidate.display())),
        }
    }
    Err(Failure::machine(format!("no CPython {}.{} or newer was found", OLDEST.0, OLDEST.1))
        .details(looked_at)
        .remedy("install one, or give the path of an interpreter with --python")
        .into())
}

/// The interpreters of `VIRTUAL_ENV` and `CONDA_PREFIX`. With both set the first wins, with a warning.
fn active_environments(output: &Output) -> Vec<PathBuf> {
    let executable = |directory: std::ffi::OsString| Path::new(&directory).join("bin/python");
    let mut found = Vec::new();
    for variable in [&env_vars::VIRTUAL_ENV, &env_vars::CONDA_PREFIX] {
        let Some(path) = variable.get().map(executable) else { continue };
        if files::is_executable(&path) {
            found.push(path);
        } else {
            output.warn(format!("{} is set, but there is no {}", variable.name, path.display()));
        }
    }
    if let [chosen, _] = found.as_slice() {
        output.warn(format!("VIRTUAL_ENV and CONDA_PREFIX are both set: using {}", chosen.display()));
    }
    found
}

fn on_path(names: &[&str]) -> Vec<PathBuf> {
    names.iter().filter_map(|name| find_program(name)).collect()
}

fn pyenv_versions() -> Option<PathBuf> {
    let root = env_vars::PYENV_ROOT.get().map(PathBuf::from);
    let root = root.or_else(|| env_vars::HOME.get().map(|home| Path::new(&home).join(".pyenv")))?;
    Some(root.join("versions"))
}

/// Interpreters under pyenv of exactly the version that was asked for; the newest first.
fn pyenv_interpreters(request: &Request) -> Vec<PathBuf> {
    let name = format!("python{request}");
    let Some(versions) = pyenv_versions() else { return Vec::new() };
    let Ok(entries) = std::fs::read_dir(versions) else { return Vec::new() };
    let mut found: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path().join("bin").join(&name))
        .filter(|path| files::is_executable(path))
        .collect();
    // 3.12.10 is newer than 3.12.9.
    found.sort_by_key(|path| {
        let version = path.ancestors().nth(2).and_then(|version| version.file_name()).unwrap_or_default();
        let numbers = version.to_string_lossy();
        let numbers = numbers.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse::<u32>().unwrap_or(0));
        std::cmp::Reverse(numbers.collect::<Vec<_>>())
    });
    found
}

/// Interpreters under pyenv of a version or a newer one.
fn pyenv_interpreters_from((major, oldest): (u8, u8)) -> Vec<PathBuf> {
    (oldest..oldest + 9)
        .flat_map(|minor| pyenv_interpreters(&Request::Version { version: (major, minor), free_threaded: false }))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_versions_or_paths() {
        let version = |version, free_threaded| Request::Version { version, free_threaded };
        let cases = [
            ("3.12", Ok(version((3, 12), false))),
            ("3.13t", Ok(version((3, 13), true))),
            ("python3.11", Ok(version((3, 11), false))),
            ("/opt/py thon", Ok(Request::Path("/opt/py thon".into()))),
            ("three", Err(())),
        ];
        for (text, expected) in cases {
            assert_eq!(text.parse::<Request>().map_err(|_| ()), expected, "{text}");
        }
    }

    fn interpreter(version: (u8, u8, u8), gil_disabled: bool) -> Interpreter {
        Interpreter {
            implementation: "cpython".into(),
            version,
            release_level: "final".into(),
            abi: "cpython-313".into(),
            gil_disabled,
            platform: "linux-x86_64".into(),
            base_executable: "/usr/bin/python3".into(),
            base_prefix: "/usr".into(),
            include: "/usr/include/python3.13".into(),
            has_headers: false,
        }
    }

    #[test]
    fn pk_41_an_interpreter_is_asked_again_when_its_environment_is_another_one() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::at(&directory.path().join("cache"));
        let executable = directory.path().join("venv/bin/python");
        files::write_atomically(&executable, b"no program").unwrap();
        files::write_atomically(&directory.path().join("venv/pyvenv.cfg"), b"home = /one").unwrap();
        let known = interpreter((3, 13, 0), false);
        known.remember(&cache, &executable).unwrap();
        assert_eq!(Interpreter::remembered(&cache, &executable).unwrap(), known);
        files::write_atomically(&directory.path().join("venv/pyvenv.cfg"), b"home = /two").unwrap();
        assert!(Interpreter::remembered(&cache, &executable).is_err(), "it was asked, and is no program");
    }

    #[test]
    fn tags_follow_version_and_threading() {
        assert_eq!(interpreter((3, 12, 1), false).specific_tag(), "cp312-cp312");
        assert_eq!(interpreter((3, 13, 0), true).specific_tag(), "cp313-cp313t");
        assert_eq!(interpreter((3, 13, 0), true).to_string(), "CPython 3.13.0t");
    }

    #[test]
    fn an_old_interpreter_and_missing_headers_are_explained() {
        assert_eq!(interpreter((3, 8, 2), false).unfit().unwrap(), "is CPython 3.8.2, older than 3.11");
        let error = interpreter((3, 13, 0), false).require_headers().unwrap_err();
        assert!(crate::error::render(&error).contains("python3.13-dev"));
    }
}
