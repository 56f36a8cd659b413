//! A crate's folder, programs that are made up, and a process that plays the build script.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Set for the process that plays the build script.
pub(crate) const PLAY_BUILD_SCRIPT: &str = "CUWHEEL_BUILD_TEST_OUT_DIR";

pub(crate) struct Machine {
    pub(crate) root: tempfile::TempDir,
}

impl Machine {
    pub(crate) fn new() -> Self {
        Self::at("Größe mit Leerzeichen ")
    }

    pub(crate) fn at(name: &str) -> Self {
        Self { root: tempfile::Builder::new().prefix(name).tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// A script of the shell.
    pub(crate) fn program(&self, name: &str, script: &str) -> PathBuf {
        let path = self.write(name, &format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// A program that answers as an interpreter would.
    pub(crate) fn interpreter(&self, name: &str, answer: &str) -> PathBuf {
        self.program(name, &format!("cat <<'END'\n{answer}\nEND"))
    }

    /// What the test `script` prints, run as a build script of the crate here.
    pub(crate) fn run(&self, script: &str, variables: &[(&str, &Path)]) -> String {
        let Output { stdout, .. } = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", script, "--nocapture"])
            .current_dir(self.root.path())
            .env_clear()
            .env(PLAY_BUILD_SCRIPT, "1")
            .env("CARGO_MANIFEST_DIR", self.root.path())
            .env("OUT_DIR", self.path("out"))
            .env("PATH", "/usr/bin:/bin")
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        String::from_utf8(stdout).unwrap()
    }
}

#[track_caller]
pub(crate) fn assert_contains(output: &str, parts: &[&str]) {
    for part in parts {
        assert!(output.contains(part), "{part:?} is not in:\n{output}");
    }
}
