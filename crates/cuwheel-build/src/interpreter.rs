//! Asks a Python interpreter where its headers, those of NumPy, and NVIDIA's packages are. Interpreters are asked, never guessed about.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use crate::environment::Lookup;
use crate::{Error, INTERPRETER_VARIABLES};

/// Printed as one `name=value` line each, values as the bytes of the file system. The current folder leaves the search
/// before anything is imported from it, because a crate may have a folder called numpy or a file called sysconfig.py.
const QUESTION: &str = r#"
import sys
sys.path = [folder for folder in sys.path if folder]
import os, sysconfig

def answer(name, value):
    sys.stdout.buffer.write(name.encode() + b"=" + os.fsencode(value) + b"\n")

answer("include", sysconfig.get_path("include"))
answer("platinclude", sysconfig.get_path("platinclude"))
try:
    import numpy
    answer("numpy", numpy.get_include())
except ModuleNotFoundError as error:
    answer("numpy-missing" if error.name == "numpy" else "numpy-broken", ascii(error))
except Exception as error:
    answer("numpy-broken", ascii(error))
"#;

/// Where packages are imported from, one folder a line, in order.
const PACKAGES_QUESTION: &str = r#"
import sys
import os
for folder in sys.path:
    if folder and os.path.isdir(os.path.join(folder, "nvidia")):
        sys.stdout.buffer.write(os.fsencode(folder) + b"\n")
"#;

/// What an interpreter said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) interpreter: PathBuf,
    /// Where `Python.h` and, on some systems elsewhere, `pyconfig.h` are.
    pub(crate) python: Vec<PathBuf>,
    pub(crate) numpy: NumpyAnswer,
}

/// What an interpreter said about NumPy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NumpyAnswer {
    Include(PathBuf),
    Missing,
    Broken(String),
}

/// Asks the interpreter that the variables name, or the first on the path that works, for its headers.
pub(crate) fn ask(lookup: Lookup<'_>) -> Result<Answer, Error> {
    ask_first(lookup, |interpreter| understand(interpreter.into(), &output_of(interpreter, QUESTION)?))
}

/// The folders that the same interpreter imports packages from, as far as NVIDIA's are among them.
pub(crate) fn folders_with_nvidia(lookup: Lookup<'_>) -> Result<Vec<PathBuf>, Error> {
    ask_first(lookup, |interpreter| {
        let stdout = output_of(interpreter, PACKAGES_QUESTION)?;
        let lines = stdout.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
        Ok(lines.map(|line| PathBuf::from(OsStr::from_bytes(line))).collect())
    })
}

fn ask_first<T>(lookup: Lookup<'_>, ask_one: impl Fn(&OsStr) -> Result<T, String>) -> Result<T, Error> {
    for variable in INTERPRETER_VARIABLES {
        if let Some(interpreter) = lookup(variable) {
            return ask_one(&interpreter).map_err(|reason| Error::BrokenInterpreter {
                interpreter: interpreter.into(),
                named_by: variable,
                reason,
            });
        }
    }
    ["python3", "python"].into_iter().find_map(|name| ask_one(OsStr::new(name)).ok()).ok_or(Error::NoInterpreter)
}

fn output_of(interpreter: &OsStr, question: &str) -> Result<Vec<u8>, String> {
    let output = Command::new(interpreter)
        .args(["-c", question])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("it cannot be started: {error}"))?;
    if output.status.success() { Ok(output.stdout) } else { Err(failure(&output)) }
}

fn failure(output: &Output) -> String {
    let messages = String::from_utf8_lossy(&output.stderr);
    let last = messages.lines().last().unwrap_or("it printed no message");
    format!("it failed with {}: {last}", output.status)
}

/// Reads the answer to the question. Anything unexpected is refused, for a wrong path would fail far from its cause.
fn understand(interpreter: PathBuf, stdout: &[u8]) -> Result<Answer, String> {
    let mut python = Vec::new();
    let mut numpy = None;
    for line in stdout.strip_suffix(b"\n").unwrap_or(stdout).split(|&byte| byte == b'\n') {
        let unexpected = || format!("it printed {:?}, which is not an answer", String::from_utf8_lossy(line));
        let equals = line.iter().position(|&byte| byte == b'=').ok_or_else(unexpected)?;
        let value = OsStr::from_bytes(&line[equals + 1..]);
        let text = || value.to_string_lossy().into_owned();
        match &line[..equals] {
            b"include" | b"platinclude" => {
                let folder = PathBuf::from(value);
                if !python.contains(&folder) {
                    python.push(folder);
                }
            }
            b"numpy" if numpy.is_none() => numpy = Some(NumpyAnswer::Include(value.into())),
            b"numpy-missing" if numpy.is_none() => numpy = Some(NumpyAnswer::Missing),
            b"numpy-broken" if numpy.is_none() => numpy = Some(NumpyAnswer::Broken(text())),
            _ => return Err(unexpected()),
        }
    }
    match numpy {
        Some(numpy) if !python.is_empty() => Ok(Answer { interpreter, python, numpy }),
        _ => Err("its answer is incomplete".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    fn answer(python: &[&str], numpy: NumpyAnswer) -> Answer {
        let python = python.iter().map(PathBuf::from).collect();
        Answer { interpreter: "python3".into(), python, numpy }
    }

    #[test]
    fn answers_are_read_strictly() {
        let include = |path: &str| NumpyAnswer::Include(path.into());
        let unexpected = |line: &str| Err(format!("it printed {line:?}, which is not an answer"));
        let cases = [
            ("include=/a\nplatinclude=/a\nnumpy=/n\n", Ok(answer(&["/a"], include("/n")))),
            ("include=/a b/é\nplatinclude=/c=d\nnumpy=/n\n", Ok(answer(&["/a b/é", "/c=d"], include("/n")))),
            ("include=/a\nplatinclude=/a\nnumpy-missing=E()\n", Ok(answer(&["/a"], NumpyAnswer::Missing))),
            ("include=/a\nplatinclude=/a\nnumpy-broken=E()\n", Ok(answer(&["/a"], NumpyAnswer::Broken("E()".into())))),
            ("welcome\ninclude=/a\nplatinclude=/a\nnumpy=/n\n", unexpected("welcome")),
            ("include=/a\nplatinclude=/a\nnumpy=/n\nnumpy=/m\n", unexpected("numpy=/m")),
            ("include=/a\nplatinclude=/a\n", Err("its answer is incomplete".into())),
            ("numpy=/n\n", Err("its answer is incomplete".into())),
            ("", unexpected("")),
        ];
        for (stdout, expected) in cases {
            assert_eq!(understand("python3".into(), stdout.as_bytes()), expected, "{stdout:?}");
        }
    }

    #[test]
    fn paths_that_are_not_unicode_survive() {
        let answer = understand("python3".into(), b"include=/\xff\nplatinclude=/\xff\nnumpy=/\xfe\n").unwrap();
        assert_eq!(answer.python, [PathBuf::from(OsStr::from_bytes(b"/\xff"))]);
        assert_eq!(answer.numpy, NumpyAnswer::Include(OsStr::from_bytes(b"/\xfe").into()));
    }

    #[test]
    fn a_named_interpreter_is_not_replaced_by_another() {
        let lookup = |name: &str| (name == "PYO3_PYTHON").then(|| OsString::from("/does/not/exist"));
        let message = ask(&lookup).unwrap_err().to_string();
        assert!(
            message.starts_with("/does/not/exist (named by PYO3_PYTHON) cannot be used: it cannot be started"),
            "{message}"
        );
    }
}
