//! Libraries that come with a driver and never with a package, by family.
//!
//! Lists of exact names go stale with each version; families do not.

/// What a library of the driver is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    /// NVIDIA's driver: it has to match the kernel module.
    Cuda,
    /// Loaders of OpenGL and the like: they find the driver of the machine.
    Graphics,
}

const CUDA: &[&str] = &["libcuda", "libcudadebugger", "libnvcuvid", "libnvoptix", "libnvidia-*"];
const GRAPHICS: &[&str] = &[
    "libEGL",
    "libEGL_nvidia",
    "libGL",
    "libGLX",
    "libGLX_nvidia",
    "libGLdispatch",
    "libGLESv1_CM",
    "libGLESv1_CM_nvidia",
    "libGLESv2",
    "libGLESv2_nvidia",
    "libOpenGL",
];

impl Family {
    /// The family of a library, by its file name or SONAME; names that repair tools changed are known too.
    pub(super) fn of(library: &str) -> Option<Self> {
        let belongs = |families: &[&str]| families.iter().any(|family| is_of(library, family));
        // Browsers bring a `libEGL.so` and a `libGLESv2.so` of their own; those of the driver have a version.
        let has_version = library.contains(".so.");
        match (belongs(CUDA), belongs(GRAPHICS) && has_version) {
            (true, _) => Some(Self::Cuda),
            (_, true) => Some(Self::Graphics),
            _ => None,
        }
    }

    /// What it is called in messages.
    pub(super) const fn describe(self) -> &'static str {
        match self {
            Self::Cuda => "a library of NVIDIA's driver",
            Self::Graphics => "a GL library of the driver",
        }
    }
}

fn is_of(library: &str, family: &str) -> bool {
    if let Some(prefix) = family.strip_suffix('*') {
        return library.starts_with(prefix) && library.contains(".so");
    }
    let Some(rest) = library.strip_prefix(family) else { return false };
    // Repair tools put a hash between the name and `.so`.
    let rest = rest.strip_prefix('-').map_or(rest, |hashed| {
        let hash_length = hashed.bytes().take_while(u8::is_ascii_hexdigit).count();
        if hash_length >= 6 { &hashed[hash_length..] } else { rest }
    });
    let version = rest.strip_prefix(".so.");
    rest == ".so" || version.is_some_and(|version| version.starts_with(|first: char| first.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_known_under_every_name() {
        for name in ["libcuda.so", "libcuda.so.1", "libcuda-1a2b3c4d.so.1", "libcuda.so.580.65.06", "libnvidia-ml.so.1"]
        {
            assert_eq!(Family::of(name), Some(Family::Cuda), "{name}");
        }
        for name in ["libEGL.so.1", "libGL-0a1b2c3d.so.1.7.0", "libGLX_nvidia.so.0", "libGLESv2.so.2"] {
            assert_eq!(Family::of(name), Some(Family::Graphics), "{name}");
        }
        for name in [
            "libcudart.so.13",
            "libcuda-python.so",
            "libcudacxx.so",
            "libGLU.so.1",
            "libGLESv2.so",
            "libEGL.so",
            "libEGL.so.TOC",
            "libnvrtc.so.13",
            "libnvJitLink.so.13",
            "libnvvm.so.4",
            "libcuda.py",
            "",
        ] {
            assert_eq!(Family::of(name), None, "{name}");
        }
    }
}
