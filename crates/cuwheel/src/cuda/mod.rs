//! Wheels for several major versions of CUDA from one tree: one for each, with the version in its name, or one with all.
//!
//! [`label`] gives a wheel its name and its requirements, and [`merge`] makes one of several. Not for compiling kernels, which
//! `cuwheel-build` does when it is told the version.

pub mod label;
pub mod merge;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use clap::ValueEnum as _;

use crate::error::{Failure, Result};
use crate::project::Project;
use crate::settings::Values;

/// How wheels for several major versions are handed out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Packaging {
    /// A wheel for each, as `name-cu12` and `name-cu13`.
    #[default]
    Suffix,
    /// One wheel that holds the native modules of each, and takes the right ones when it is imported.
    Merged,
}

impl Packaging {
    /// As settings and arguments name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Suffix => "suffix",
            Self::Merged => "merged",
        }
    }
}

/// The first version whose compiler is among NVIDIA's packages for Python, which builds bring by themselves.
pub const PACKAGED_SINCE: u32 = 13;

/// `[tool.cuwheel.cuda]`.
#[derive(Clone, Debug, Default)]
pub struct CudaSettings {
    /// `cuda.majors`, the oldest first; empty where there is one wheel, for whatever compiler is found.
    pub majors: Vec<u32>,
    /// `cuda.wheels`.
    pub packaging: Packaging,
    /// `cuda.dependencies`.
    pub dependencies: BTreeMap<u32, Vec<String>>,
}

/// What one wheel is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CudaTarget {
    /// Whatever the compiler is for, or no CUDA at all.
    Any,
    /// One major version.
    Major(u32),
    /// Several, of which one is chosen when the wheel is imported.
    Merged(Vec<u32>),
}

impl CudaSettings {
    /// Reads the settings.
    pub(crate) fn read(values: &Values) -> Result<Self> {
        let dependencies = values.texts_by_name("cuda.dependencies");
        Self::new(&values.texts("cuda.majors"), &values.text("cuda.wheels"), dependencies)
    }

    fn new(majors: &[String], wheels: &str, dependencies: BTreeMap<String, Vec<String>>) -> Result<Self> {
        let named = Packaging::value_variants().iter().copied().find(|packaging| packaging.name() == wheels);
        let packaging = named.ok_or_else(|| {
            Failure::usage(format!("tool.cuwheel.cuda.wheels is \"{wheels}\""))
                .remedy("use \"suffix\" for a wheel for each version, or \"merged\" for one with all")
        })?;
        let mut settings = Self { majors: Vec::new(), packaging, dependencies: BTreeMap::new() };
        for text in majors {
            settings.majors.push(major("tool.cuwheel.cuda.majors", text)?);
        }
        settings.majors.sort_unstable();
        settings.majors.dedup();
        if packaging == Packaging::Merged && settings.majors.len() < 2 {
            return Err(Failure::usage(
                "tool.cuwheel.cuda.wheels is \"merged\", and there are not two versions to merge",
            )
            .remedy("name them: majors = [\"12\", \"13\"]")
            .into());
        }
        for (name, requirements) in dependencies {
            let major = major("tool.cuwheel.cuda.dependencies", &name)?;
            if !settings.majors.contains(&major) {
                return Err(Failure::usage(format!("tool.cuwheel.cuda.dependencies.{name} is for no wheel"))
                    .remedy(format!("add \"{name}\" to tool.cuwheel.cuda.majors"))
                    .into());
            }
            settings.dependencies.insert(major, requirements);
        }
        Ok(settings)
    }

    /// The version that is built where one wheel is made, as for an editable install.
    pub fn newest(&self) -> Option<u32> {
        self.majors.last().copied()
    }

    /// The wheels to build: all, or those of the versions that were asked for.
    pub fn targets(&self, asked: &[u32]) -> Result<Vec<CudaTarget>> {
        if let Some(unknown) = asked.iter().find(|major| !self.majors.contains(major)) {
            let failure = Failure::usage(format!("the project makes no wheel for CUDA {unknown}"));
            let majors: Vec<String> = self.majors.iter().map(ToString::to_string).collect();
            return Err(if majors.is_empty() {
                failure.remedy(format!("add it to pyproject.toml:\n[tool.cuwheel.cuda]\nmajors = [\"{unknown}\"]"))
            } else {
                failure.remedy(format!("it makes them for {}: tool.cuwheel.cuda.majors", majors.join(" and ")))
            }
            .into());
        }
        Ok(match self.packaging {
            _ if self.majors.is_empty() => vec![CudaTarget::Any],
            Packaging::Suffix => {
                let is_asked = |major: &&u32| asked.is_empty() || asked.contains(major);
                self.majors.iter().filter(is_asked).map(|major| CudaTarget::Major(*major)).collect()
            }
            Packaging::Merged if asked.is_empty() => vec![CudaTarget::Merged(self.majors.clone())],
            Packaging::Merged => {
                return Err(Failure::usage("the project makes one wheel for all versions of CUDA")
                    .remedy("leave --cuda out, or set tool.cuwheel.cuda.wheels to \"suffix\"")
                    .into());
            }
        })
    }

    /// The wheel that is tested where nothing else is asked for: the one for the newest version, or the one for all.
    pub fn tested(&self, asked: Option<u32>) -> Result<CudaTarget> {
        let mut targets = self.targets(asked.as_slice())?;
        Ok(targets.pop().unwrap_or(CudaTarget::Any))
    }
}

/// What the wheel under test is for: the one at `wheel` as its name says, or else the one that was asked for.
pub fn under_test(project: &Project, asked: Option<u32>, wheel: Option<&Path>) -> Result<CudaTarget> {
    let settings = &project.settings.cuda;
    let named = wheel.and_then(|path| path.file_name()?.to_str()?.split('-').next());
    let is_it = |target: &CudaTarget| named.is_some_and(|name| target.distribution(project).eq_ignore_ascii_case(name));
    match settings.targets(&[])?.into_iter().find(is_it) {
        Some(target) => Ok(target),
        None => settings.tested(asked),
    }
}

impl CudaTarget {
    /// The versions that it is compiled for, one build for each; `None` for whatever the compiler is for.
    pub fn builds(&self) -> Vec<Option<u32>> {
        match self {
            Self::Any => vec![None],
            Self::Major(major) => vec![Some(*major)],
            Self::Merged(majors) => majors.iter().copied().map(Some).collect(),
        }
    }

    /// The name of the wheel, as file names have it.
    pub fn distribution(&self, project: &Project) -> String {
        match self {
            Self::Major(major) => format!("{}_cu{major}", project.distribution()),
            Self::Any | Self::Merged(_) => project.distribution(),
        }
    }

    /// What the wheel requires beside the project's dependencies. For a merged wheel it is what proves all of it.
    pub fn requirements(&self, settings: &CudaSettings) -> Vec<String> {
        let of = |major| settings.dependencies.get(&major).into_iter().flatten().cloned();
        self.builds().into_iter().flatten().flat_map(of).collect()
    }

    /// The versions to ask `build-wheel` for.
    pub fn asked(&self) -> Vec<u32> {
        match self {
            Self::Major(major) => vec![*major],
            Self::Any | Self::Merged(_) => Vec::new(),
        }
    }

    /// What tells its locks from those of other wheels of the project, where it requires more than they do.
    pub fn lock_suffix(&self, settings: &CudaSettings) -> String {
        match self {
            Self::Major(major)
                if settings.dependencies.get(major).is_some_and(|requirements| !requirements.is_empty()) =>
            {
                format!("-cu{major}")
            }
            _ => String::new(),
        }
    }
}

/// As the end of a sentence: `, for CUDA 12`.
impl fmt::Display for CudaTarget {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let majors: Vec<String> = self.builds().into_iter().flatten().map(|major| major.to_string()).collect();
        if majors.is_empty() { Ok(()) } else { write!(formatter, ", for CUDA {}", majors.join(" and ")) }
    }
}

/// A major version as it is written in settings and arguments.
fn major(place: &str, text: &str) -> Result<u32> {
    parse_major(text).map_err(|error| Failure::usage(format!("{place}: {error}")).into())
}

/// Reads a major version of CUDA, such as `12`.
pub fn parse_major(text: &str) -> Result<u32, String> {
    let major = text.parse().ok().filter(|major| (11..100).contains(major));
    major.ok_or_else(|| format!("\"{text}\" is no major version of CUDA: write it as 12 or 13"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(majors: &[&str], wheels: &str, dependencies: &[(&str, &str)]) -> Result<CudaSettings> {
        let majors: Vec<String> = majors.iter().map(ToString::to_string).collect();
        let dependencies = dependencies.iter().map(|(major, one)| ((*major).to_owned(), vec![(*one).to_owned()]));
        CudaSettings::new(&majors, wheels, dependencies.collect())
    }

    #[test]
    fn each_version_is_a_wheel_or_all_are_one() {
        let none = settings(&[], "suffix", &[]).unwrap();
        assert_eq!(none.targets(&[]).unwrap(), [CudaTarget::Any]);
        let suffix = settings(&["13", "12", "13"], "suffix", &[("12", "x-cu12")]).unwrap();
        assert_eq!(suffix.targets(&[]).unwrap(), [CudaTarget::Major(12), CudaTarget::Major(13)]);
        assert_eq!(suffix.targets(&[12]).unwrap(), [CudaTarget::Major(12)]);
        assert_eq!(suffix.tested(None).unwrap(), CudaTarget::Major(13));
        assert_eq!(CudaTarget::Major(12).requirements(&suffix), ["x-cu12"]);
        assert_eq!([12, 13].map(|major| CudaTarget::Major(major).lock_suffix(&suffix)), ["-cu12", ""]);
        let merged = settings(&["12", "13"], "merged", &[("12", "x-cu12"), ("13", "x>=13")]).unwrap();
        let all = CudaTarget::Merged(vec![12, 13]);
        assert_eq!(merged.targets(&[]).unwrap(), std::slice::from_ref(&all));
        assert_eq!(all.builds(), [Some(12), Some(13)]);
        assert_eq!(all.requirements(&merged), ["x-cu12", "x>=13"]);
    }

    #[test]
    fn mistakes_say_what_to_write() {
        for (result, part) in [
            (settings(&["12.4"], "suffix", &[]), "\"12.4\" is no major version of CUDA"),
            (settings(&["12"], "both", &[]), "wheels is \"both\""),
            (settings(&["12"], "merged", &[]), "not two versions to merge"),
            (settings(&["12"], "suffix", &[("13", "x")]), "dependencies.13 is for no wheel"),
        ] {
            assert!(result.unwrap_err().to_string().contains(part), "{part}");
        }
        let suffix = settings(&["12", "13"], "suffix", &[]).unwrap();
        assert!(suffix.targets(&[14]).unwrap_err().to_string().contains("no wheel for CUDA 14"));
        let merged = settings(&["12", "13"], "merged", &[]).unwrap();
        assert!(merged.targets(&[12]).unwrap_err().to_string().contains("one wheel for all versions"));
    }
}
