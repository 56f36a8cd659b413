//! Which tests are run: those of the project, or the suite of another project beside its wheel.

use std::path::{Path, PathBuf};

use cuwheel_inspect::wheel::Wheel;

use crate::cuda::CudaTarget;
use crate::error::{Failure, Result};
use crate::files;
use crate::project::Project;
use crate::requirements::Lock;

/// Where tests come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Suite {
    /// `test-gpu.paths` of the project.
    Project,
    /// A file or directory that is copied.
    Path(PathBuf),
    /// A package that is installed with the wheel, such as `numba.cuda.tests`.
    Package(String),
}

impl Suite {
    /// The suite that `--suite` names: what exists is a path, and other names are packages.
    pub fn parse(text: Option<&str>) -> Result<Self> {
        let Some(text) = text else { return Ok(Self::Project) };
        let path = files::absolute(Path::new(text))?;
        let is_package = text.split('.').all(|part| {
            !part.starts_with(|c: char| c.is_ascii_digit())
                && !part.is_empty()
                && part.chars().all(|c| c.is_alphanumeric() || c == '_')
        });
        if path.exists() {
            Ok(Self::Path(path))
        } else if is_package {
            Ok(Self::Package(text.to_owned()))
        } else {
            Err(Failure::usage(format!("there are no tests at {text}, and it is no name of a package"))
                .remedy("give a file, a directory, or a package such as numba.cuda.tests")
                .into())
        }
    }

    /// The paths of the tests as pytest is told them, relative to where they are copied.
    pub fn paths(&self, project: &Project) -> Vec<String> {
        match self {
            Self::Project => project.settings.test_gpu.paths.clone(),
            Self::Path(path) => vec![path.file_name().unwrap_or_default().to_string_lossy().into_owned()],
            Self::Package(_) => Vec::new(),
        }
    }

    /// The name of the package.
    pub fn package(&self) -> Option<&str> {
        match self {
            Self::Package(name) => Some(name),
            Self::Project | Self::Path(_) => None,
        }
    }

    /// What is needed to run it, beside the wheel: for a wheel of another project what that wheel depends on. `more` are
    /// requirements that the command line adds.
    pub fn requirements(project: &Project, cuda: &CudaTarget, wheel: &Wheel, more: &[String]) -> Vec<String> {
        let mut inputs = if wheel.name().is_distribution(&cuda.distribution(project)) {
            Lock::of_gpu_tests(project, cuda).inputs().to_vec()
        } else {
            // Extras are asked for by whoever installs a wheel: `more` may hold what they stand for.
            let is_extra = |requirement: &&str| requirement.contains("extra ==");
            let own = wheel.metadata().requires_dist().filter(|requirement| !is_extra(requirement));
            own.map(str::to_owned).chain(["pytest".to_owned()]).collect()
        };
        inputs.extend(more.iter().cloned());
        inputs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suite_is_a_path_that_exists_or_a_package() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().to_str().unwrap();
        assert_eq!(Suite::parse(Some(path)).unwrap(), Suite::Path(directory.path().to_path_buf()));
        assert_eq!(Suite::parse(Some("numba.cuda.tests")).unwrap(), Suite::Package("numba.cuda.tests".to_owned()));
        assert_eq!(Suite::parse(None).unwrap(), Suite::Project);
        for wrong in ["no/such/tests", "a..b", "3.x"] {
            assert!(Suite::parse(Some(wrong)).is_err(), "{wrong}");
        }
    }
}
