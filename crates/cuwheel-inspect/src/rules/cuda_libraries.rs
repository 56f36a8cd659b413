//! Libraries of the CUDA toolkit: which project of the index has them, and of which toolkit a SONAME is.

use crate::wheel::Requirement;

/// A family of libraries that one project has.
#[derive(Debug)]
pub(super) struct Family {
    /// Beginnings of file names, up to `.so`; a `*` stands for any ending.
    stems: &'static [&'static str],
    /// The project, without a suffix such as `-cu12`.
    pub(super) project: &'static str,
    /// The extra of `cuda-toolkit` that asks for it.
    extra: Option<&'static str>,
    numbering: Numbering,
}

/// How the number in a SONAME tells the toolkit.
#[derive(Debug)]
enum Numbering {
    /// It is the toolkit's.
    Toolkit,
    /// It has one of its own: SONAME, toolkit.
    Own(&'static [(u32, u32)]),
}

const fn toolkit(
    stems: &'static [&'static str],
    project: &'static str,
    extra: &'static str,
    numbering: Numbering,
) -> Family {
    Family { stems, project, extra: Some(extra), numbering }
}

const fn separate(stems: &'static [&'static str], project: &'static str) -> Family {
    Family { stems, project, extra: None, numbering: Numbering::Own(&[]) }
}

/// Numbers that two toolkits share are left out: `libcurand.so.10` is of every one since 10.
const FAMILIES: &[Family] = &[
    toolkit(&["libcudart"], "nvidia-cuda-runtime", "cudart", Numbering::Toolkit),
    toolkit(&["libnvrtc", "libnvrtc-builtins"], "nvidia-cuda-nvrtc", "nvrtc", Numbering::Toolkit),
    toolkit(&["libcublas", "libcublasLt", "libnvblas"], "nvidia-cublas", "cublas", Numbering::Toolkit),
    toolkit(&["libcufft", "libcufftw"], "nvidia-cufft", "cufft", Numbering::Own(&[(11, 12), (12, 13)])),
    toolkit(&["libcurand"], "nvidia-curand", "curand", Numbering::Own(&[])),
    toolkit(&["libcusolver", "libcusolverMg"], "nvidia-cusolver", "cusolver", Numbering::Own(&[(12, 13)])),
    toolkit(&["libcusparse"], "nvidia-cusparse", "cusparse", Numbering::Own(&[(11, 11)])),
    toolkit(&["libnvJitLink"], "nvidia-nvjitlink", "nvjitlink", Numbering::Toolkit),
    toolkit(&["libnvfatbin"], "nvidia-nvfatbin", "nvfatbin", Numbering::Toolkit),
    toolkit(&["libnvvm"], "nvidia-nvvm", "nvvm", Numbering::Own(&[])),
    toolkit(&["libcupti"], "nvidia-cuda-cupti", "cupti", Numbering::Toolkit),
    toolkit(&["libcufile"], "nvidia-cufile", "cufile", Numbering::Own(&[])),
    toolkit(&["libnvjpeg"], "nvidia-nvjpeg", "nvjpeg", Numbering::Toolkit),
    toolkit(&["libnpp*"], "nvidia-npp", "npp", Numbering::Toolkit),
    separate(&["libcudnn*"], "nvidia-cudnn"),
    separate(&["libnccl"], "nvidia-nccl"),
    separate(&["libcusparseLt"], "nvidia-cusparselt"),
    separate(&["libnvshmem_host"], "nvidia-nvshmem"),
];

impl Family {
    /// The family of a library, by its SONAME.
    pub(super) fn of(soname: &str) -> Option<&'static Self> {
        let stem = soname.split_once(".so")?.0;
        let is_stem = |known: &&str| known.strip_suffix('*').map_or(stem == *known, |start| stem.starts_with(start));
        FAMILIES.iter().find(|family| family.stems.iter().any(is_stem))
    }

    /// The major version of the toolkit that a library with this SONAME is of, where the number tells.
    pub(super) fn toolkit_of(&self, soname: &str) -> Option<u32> {
        let number: u32 = soname.split_once(".so.")?.1.split('.').next()?.parse().ok()?;
        match self.numbering {
            Numbering::Toolkit => Some(number),
            Numbering::Own(known) => known.iter().find(|(own, _)| *own == number).map(|(_, toolkit)| *toolkit),
        }
    }

    /// Whether `requirement` asks for a project with this family, and of which toolkit.
    pub(super) fn required_by(&self, requirement: &Requirement) -> Option<Provided> {
        if requirement.name() == "cuda-toolkit" {
            let extra = self.extra?;
            let is_asked = requirement.extras().iter().any(|asked| asked == extra || asked == "all");
            return is_asked.then_some(Provided { major: requirement.major_version() });
        }
        let rest = requirement.name().strip_prefix(self.project)?;
        match rest.strip_prefix("-cu") {
            Some(major) => Some(Provided { major: Some(major.parse().ok()?) }),
            // The components of the toolkit have no suffix from CUDA 13 on; the version is then the toolkit's or their own.
            None if rest.is_empty() => Some(Provided { major: self.extra.map(|_| NEWEST_WITHOUT_SUFFIX) }),
            None => None,
        }
    }

    /// What the project is called for a toolkit.
    pub(super) fn project_for(&self, toolkit: u32) -> String {
        let has_suffix = self.extra.is_none() || toolkit < NEWEST_WITHOUT_SUFFIX;
        if has_suffix { format!("{}-cu{toolkit}", self.project) } else { self.project.to_owned() }
    }
}

/// The toolkit whose components are the first without a suffix.
const NEWEST_WITHOUT_SUFFIX: u32 = 13;

/// What a requirement brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Provided {
    /// The toolkit's major version, where the requirement says it.
    pub(super) major: Option<u32>,
}

/// The major version of CUDA that a label names: `pkg-cu12`, `pkg_cuda13x`, `1.0+cu130`.
pub(super) fn labelled_major(label: &str) -> Option<u32> {
    let last = label.rsplit(['-', '_', '.', '+']).next()?;
    let number = last.strip_prefix("cuda").or_else(|| last.strip_prefix("cu"))?;
    let digits = number.strip_suffix('x').unwrap_or(number);
    let is_number = (2..=3).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits[..2].parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sonames_tell_project_and_toolkit() {
        for (soname, project, toolkit) in [
            ("libcudart.so.13", "nvidia-cuda-runtime", Some(13)),
            ("libcudart.so.11.0", "nvidia-cuda-runtime", Some(11)),
            ("libnvrtc-builtins.so.12.9", "nvidia-cuda-nvrtc", Some(12)),
            ("libcublasLt.so.12", "nvidia-cublas", Some(12)),
            ("libcufft.so.11", "nvidia-cufft", Some(12)),
            ("libcurand.so.10", "nvidia-curand", None),
            ("libcusparse.so.12", "nvidia-cusparse", None),
            ("libcusparseLt.so.0", "nvidia-cusparselt", None),
            ("libnppig.so.12", "nvidia-npp", Some(12)),
            ("libcudnn_ops.so.9", "nvidia-cudnn", None),
        ] {
            let family = Family::of(soname).unwrap_or_else(|| panic!("{soname}"));
            assert_eq!((family.project, family.toolkit_of(soname)), (project, toolkit), "{soname}");
        }
        for soname in ["libcuda.so.1", "libcudart_static.a", "libz.so.1", "libcublasx.so.1", ""] {
            assert!(Family::of(soname).is_none(), "{soname}");
        }
    }

    #[test]
    fn requirements_bring_families() {
        let brings = |soname: &str, requirement: &str| {
            let requirement = Requirement::parse(requirement).unwrap();
            Family::of(soname).unwrap().required_by(&requirement).map(|provided| provided.major)
        };
        assert_eq!(brings("libcublas.so.12", "nvidia-cublas-cu12>=12.4"), Some(Some(12)));
        assert_eq!(brings("libcublas.so.13", "nvidia-cublas"), Some(Some(13)));
        assert_eq!(brings("libcublas.so.13", "cuda-toolkit[cublas,nvrtc]==13.*"), Some(Some(13)));
        assert_eq!(brings("libcublas.so.13", "cuda-toolkit[cudart]"), None);
        assert_eq!(brings("libcublas.so.13", "nvidia-cublas-extra"), None);
        assert_eq!(brings("libnccl.so.2", "nvidia-nccl-cu13"), Some(Some(13)));
        assert_eq!(brings("libnccl.so.2", "nvidia-nccl"), Some(None));
        assert_eq!(Family::of("libnccl.so.2").unwrap().project_for(13), "nvidia-nccl-cu13");
        assert_eq!(Family::of("libcublas.so.13").unwrap().project_for(13), "nvidia-cublas");
    }

    #[test]
    fn labels_name_a_toolkit() {
        for (label, major) in [
            ("cupy-cuda12x", Some(12)),
            ("nvidia-nccl-cu13", Some(13)),
            ("2.4.0+cu121", Some(12)),
            ("1.0+cu130", Some(13)),
            ("demo", None),
            ("numba-cuda", None),
            ("demo-cu1", None),
            ("demo-cuda", None),
            ("accu12", None),
        ] {
            assert_eq!(labelled_major(label), major, "{label}");
        }
    }
}
