//! The directory that a run of GPU tests works in: the same here and in a bundle.
//!
//! ```text
//! run               the program
//! environment.json  what is tested, and how
//! runner/           the Python modules behind `run`
//! tests/            the tests and pytest's configuration
//! wheels/           the wheel under test, and
//! wheelhouse/       what the tests require: in a bundle only
//! ```

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use cuwheel_inspect::wheel::Wheel;
use fs_err as fs;
use serde::Serialize;
use serde_json::json;

use super::content;
use super::suite::Suite;
use super::target::Target;
use super::wheelhouse::Wheelhouse;
use crate::error::{Failure, Result};
use crate::files;
use crate::project::Project;
use crate::pytest;

/// Counted up when a field of `environment.json` changes its meaning or goes.
const SCHEMA: u32 = 1;

macro_rules! modules {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../python/gpu/", $name)))),+]
    };
}

/// The package of the runner.
const RUNNER: &[(&str, &str)] = modules![
    "__init__.py",
    "baseline.py",
    "driver.py",
    "environment.py",
    "job.py",
    "main.py",
    "plugin.py",
    "pool.py",
    "preflight.py",
    "provenance.py",
    "records.py",
    "report.py",
    "sanitizer.py",
    "worker.py",
];
const PROGRAM: &str = include_str!("../python/gpu/run.py");

/// What is tested, and how.
#[derive(Debug)]
pub struct Contents<'a> {
    /// Whose tests.
    pub project: &'a Project,
    /// The wheel under test with its path.
    pub wheel: (&'a Wheel, &'a Path),
    /// Which tests.
    pub suite: &'a Suite,
    /// A plugin of pytest that they need.
    pub plugin: Option<&'a Path>,
    /// Seconds that one test may take.
    pub timeout_s: u64,
    /// Seconds that a run may take.
    pub total_timeout_s: u64,
}

/// How many bytes the parts of a bundle have, before it is compressed.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Parts {
    /// The wheel under test.
    pub wheels_bytes: u64,
    /// What the tests require.
    pub wheelhouse_bytes: u64,
    /// The tests and pytest's configuration.
    pub tests_bytes: u64,
    /// The program with its modules and the manifest.
    pub runner_bytes: u64,
}

impl Contents<'_> {
    /// Lays out everything that a run needs but an environment.
    pub fn lay_out(&self, directory: &Path) -> Result<()> {
        self.write(directory, None, &Wheelhouse::default())
    }

    /// Lays out everything that a machine without network needs; what it takes is returned.
    pub fn lay_out_bundle(&self, directory: &Path, target: &Target, wheelhouse: &Wheelhouse) -> Result<Parts> {
        self.write(directory, Some(target), wheelhouse)?;
        let wheels = directory.join("wheels");
        fs::create_dir(&wheels)?;
        fs::copy(self.wheel.1, wheels.join(self.wheel.0.file_name()))?;
        let house = directory.join("wheelhouse");
        fs::create_dir(&house)?;
        for wheel in &wheelhouse.wheels {
            fs::copy(wheel, house.join(wheel.file_name().unwrap_or_default()))?;
        }
        let (wheels_bytes, wheelhouse_bytes) = (size(&wheels)?, size(&house)?);
        let tests_bytes = size(&directory.join("tests"))?;
        let runner_bytes = size(directory)? - wheels_bytes - wheelhouse_bytes - tests_bytes;
        Ok(Parts { wheels_bytes, wheelhouse_bytes, tests_bytes, runner_bytes })
    }

    fn write(&self, directory: &Path, target: Option<&Target>, wheelhouse: &Wheelhouse) -> Result<()> {
        fs::create_dir_all(directory)?;
        self.stage(&directory.join("tests"))?;
        lay_out_runner(directory)?;
        if let Some(plugin) = self.plugin {
            fs::copy(plugin, directory.join("runner").join(plugin.file_name().unwrap_or_default()))?;
        }
        let manifest = self.manifest(target, wheelhouse)?;
        fs::write(directory.join("environment.json"), format!("{manifest:#}\n"))?;
        Ok(())
    }

    fn stage(&self, directory: &Path) -> Result<()> {
        match self.suite {
            Suite::Project => pytest::stage_tests(self.project, &self.suite.paths(self.project), directory),
            Suite::Package(_) => Ok(fs::create_dir(directory)?),
            Suite::Path(path) => {
                let target = directory.join(path.file_name().unwrap_or_default());
                if path.is_dir() {
                    return files::copy_tree(path, &target);
                }
                fs::create_dir(directory)?;
                fs::copy(path, target)?;
                Ok(())
            }
        }
    }

    fn manifest(&self, target: Option<&Target>, wheelhouse: &Wheelhouse) -> Result<serde_json::Value> {
        let (wheel, path) = self.wheel;
        // The arguments of the project's runs are for its own tests.
        let pytest_args: &[String] =
            if *self.suite == Suite::Project { &self.project.settings.test_gpu.pytest_args } else { &[] };
        let house = wheelhouse
            .wheels
            .iter()
            .map(|path| {
                let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                Ok(json!({ "file": file, "sha256": files::sha256_of_file(path)? }))
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(json!({
            "schema": SCHEMA,
            "project": wheel.metadata().name(),
            "version": wheel.metadata().version(),
            "wheels": [{
                "file": wheel.file_name(),
                "sha256": wheel.sha256().to_string(),
                "gpu": content::of_wheel(path)?,
            }],
            "wheelhouse": house,
            "expects": wheelhouse.expects,
            "for_python": target.map(Target::version_text),
            "platform": target.map(|target| target.platform.to_string()),
            "paths": self.suite.paths(self.project),
            "package": self.suite.package(),
            "plugin": self.plugin.map(plugin_name).transpose()?,
            "pytest_args": pytest_args,
            "timeout_s": self.timeout_s,
            "total_timeout_s": self.total_timeout_s,
            "proof": pytest::expectation_of(wheel),
        }))
    }
}

/// Lays out the program with its modules.
pub fn lay_out_runner(directory: &Path) -> Result<()> {
    let runner = directory.join("runner");
    fs::create_dir_all(runner.join("_cuwheel_gpu"))?;
    for (name, text) in RUNNER {
        fs::write(runner.join("_cuwheel_gpu").join(name), text)?;
    }
    fs::write(runner.join(format!("{}.py", pytest::PLUGIN_NAME)), pytest::PLUGIN)?;
    let program = directory.join("run");
    fs::write(&program, PROGRAM)?;
    fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755))?;
    Ok(())
}

/// The module that a plugin is, if its file can be imported.
pub fn plugin_name(path: &Path) -> Result<String> {
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let is_module = path.extension().is_some_and(|extension| extension == "py")
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    if is_module && path.is_file() {
        return Ok(name);
    }
    Err(Failure::usage(format!("{} is no plugin of pytest", path.display()))
        .remedy("give a file of Python whose name can be imported, such as suite_plugin.py")
        .into())
}

fn size(directory: &Path) -> Result<u64> {
    let files: Vec<PathBuf> = super::archive::files_below(directory)?;
    files.iter().map(|path| Ok(fs::metadata(path)?.len())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_module_of_the_runner_is_in_the_table() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/python/gpu");
        let mut found: Vec<String> = std::fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| Path::new(name).extension().is_some_and(|extension| extension == "py") && name != "run.py")
            .collect();
        found.sort();
        let named: Vec<&str> = RUNNER.iter().map(|(name, _)| *name).collect();
        assert_eq!(named, found);
    }
}
