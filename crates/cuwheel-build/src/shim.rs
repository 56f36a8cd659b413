//! Compiles the C files of a shim, and tells Cargo when to do so again.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::Error;
use crate::environment::{self, Lookup};
use crate::headers::Headers;

/// The header that shims include, and its name.
const HEADER: (&str, &str) = ("cuwheel_numpy.h", include_str!("../include/cuwheel_numpy.h"));

/// C files over the NumPy C API, to be compiled into a static library that the crate links.
#[derive(Debug, Clone, Default)]
#[must_use = "nothing is compiled before `compile`"]
pub struct NumpyShim {
    files: Vec<PathBuf>,
    headers: Vec<PathBuf>,
    abi3: bool,
}

impl NumpyShim {
    /// A shim without files.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a C file, given relative to the crate's folder.
    pub fn file(mut self, path: impl Into<PathBuf>) -> Self {
        self.files.push(path.into());
        self
    }

    /// Names a header of the crate that the C files include, so that a change to it compiles them again.
    pub fn header(mut self, path: impl Into<PathBuf>) -> Self {
        self.headers.push(path.into());
        self
    }

    /// Says that the result must not depend on the interpreter that compiles it. Free-threaded Python, which has no
    /// such interface, is refused. Usually this is the value of a Cargo feature `abi3`.
    pub fn abi3(mut self, abi3: bool) -> Self {
        self.abi3 = abi3;
        self
    }

    /// Compiles the files into the static library `name` and links it to the crate whose build script calls this.
    pub fn compile(&self, name: &str) -> Result<(), Error> {
        for line in self.rerun_lines() {
            println!("{line}");
        }
        let lookup: Lookup<'_> = &environment::of_this_process;
        let cargo = |variable| lookup(variable).ok_or(Error::NotInBuildScript { variable });
        let source_folder = PathBuf::from(cargo("CARGO_MANIFEST_DIR")?);
        let output_folder = PathBuf::from(cargo("OUT_DIR")?);
        let headers = Headers::find(lookup)?;
        let include_folder = write_header(&output_folder)?;

        let mut build = cc::Build::new();
        build.files(&self.files).include(&include_folder).std("c11").warnings(true).extra_warnings(true);
        for folder in headers.folders() {
            // Warnings inside these headers are not the crate's to fix.
            build.flag("-isystem").flag(folder);
        }
        for flag in path_flags(&source_folder, &output_folder, &headers) {
            build.flag(flag);
        }
        if self.abi3 {
            build.define("CUWHEEL_ABI3", None);
        }
        build.try_compile(name)?;
        Ok(())
    }

    fn rerun_lines(&self) -> Vec<String> {
        let files = self.files.iter().chain(&self.headers);
        let interpreter = if self.abi3 { &[][..] } else { &environment::OF_THE_INTERPRETER };
        files
            .map(|file| format!("cargo:rerun-if-changed={}", file.display()))
            .chain(
                environment::STABLE
                    .iter()
                    .chain(interpreter)
                    .map(|variable| format!("cargo:rerun-if-env-changed={variable}")),
            )
            .collect()
    }
}

fn write_header(output_folder: &Path) -> Result<PathBuf, Error> {
    let folder = output_folder.join("include");
    let path = folder.join(HEADER.0);
    fs::create_dir_all(&folder)
        .and_then(|()| fs::write(&path, HEADER.1))
        .map_err(|source| Error::Write { path, source })?;
    Ok(folder)
}

/// Replaces this machine's paths in the object files, so that the same source gives the same bytes everywhere.
///
/// They are there where C code names its file (`assert`, `__FILE__`), and in debug information. Compilers end a path at
/// its first `=`, so one with that character cannot be replaced, and a flag for it would replace another.
fn path_flags(source_folder: &Path, output_folder: &Path, headers: &Headers) -> Vec<OsString> {
    let python = headers.python.iter().map(|folder| (folder.as_path(), "python"));
    [(source_folder, "."), (output_folder, "out"), (headers.numpy.as_path(), "numpy")]
        .into_iter()
        .chain(python)
        .filter(|(path, _)| !path.as_os_str().as_bytes().contains(&b'='))
        .map(|(path, replacement)| {
            let mut flag = OsString::from("-ffile-prefix-map=");
            flag.push(path);
            flag.push("=");
            flag.push(replacement);
            flag
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throw_away_environments_do_not_compile_abi3_shims_again() {
        let shim = NumpyShim::new().file("src/shim.c").header("src/shim.h");
        let stable = [
            "cargo:rerun-if-changed=src/shim.c",
            "cargo:rerun-if-changed=src/shim.h",
            "cargo:rerun-if-env-changed=CUWHEEL_NUMPY_INCLUDE",
            "cargo:rerun-if-env-changed=CUWHEEL_PYTHON_INCLUDE",
            "cargo:rerun-if-env-changed=CUWHEEL_PYTHON",
        ];
        assert_eq!(shim.clone().abi3(true).rerun_lines(), stable);
        let version_specific = shim.rerun_lines();
        assert_eq!(version_specific[..stable.len()], stable);
        assert!(version_specific.contains(&"cargo:rerun-if-env-changed=PYO3_PYTHON".to_owned()));
    }

    #[test]
    fn paths_of_the_machine_are_replaced_where_a_compiler_can() {
        let python = vec!["/venv a/include".into(), "/venv=b/include".into()];
        let headers = Headers { python, numpy: "/tmp/é/numpy".into() };
        assert_eq!(
            path_flags(Path::new("/home/me/crate"), Path::new("/target/out"), &headers),
            [
                "-ffile-prefix-map=/home/me/crate=.",
                "-ffile-prefix-map=/target/out=out",
                "-ffile-prefix-map=/tmp/é/numpy=numpy",
                "-ffile-prefix-map=/venv a/include=python",
            ]
        );
    }
}
