//! Where the CUDA compiler is: in a toolkit of the system, or in packages of Python that the build requires.
//!
//! The order is fixed: a variable, then the packages, then PATH, then the usual places. Packages come before what a machine
//! happens to have, because a project that requires them says with which compiler it is built. What is missing in packages
//! is named by the package that has it.

use std::fmt;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::KernelsError;
use crate::Error;
use crate::environment::Lookup;
use crate::interpreter;

/// Where a toolkit is installed, as CUDA's own tools read it; the first that is set counts.
pub(crate) const TOOLKIT_VARIABLES: [&str; 2] = ["CUDA_PATH", "CUDA_HOME"];

const USUAL_PLACES: [&str; 3] = ["/usr/local/cuda", "/opt/cuda", "/usr/lib/nvidia-cuda-toolkit"];

/// A compiler that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Toolkit {
    pub(super) found_by: String,
    pub(super) nvcc: PathBuf,
    /// The directory of the compiler, then those of other components where each has its own.
    pub(super) roots: Vec<PathBuf>,
    pub(super) version: (u32, u32),
    /// What the compiler says of itself, with its build.
    pub(super) identity: String,
    is_of_packages: bool,
}

impl fmt::Display for Toolkit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor) = self.version;
        write!(formatter, "CUDA {major}.{minor}, {} (by {})", self.nvcc.display(), self.found_by)
    }
}

/// A place with a compiler.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    found_by: String,
    nvcc: PathBuf,
    roots: Vec<PathBuf>,
    is_of_packages: bool,
}

/// What was found, the one to use first.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) toolkit: Toolkit,
    /// Other compilers, in order: what they are, and whether they are of another version.
    pub(super) others: Vec<(String, bool)>,
}

/// Looks in every place, and asks each compiler for its version.
pub(super) fn find(lookup: Lookup<'_>) -> Result<Found, KernelsError> {
    let packages = match interpreter::folders_with_nvidia(lookup) {
        Ok(folders) => folders,
        // A toolkit of the system needs no Python.
        Err(Error::NoInterpreter) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    let mut places = named(lookup)?;
    places.extend(packages.iter().flat_map(|folder| in_packages(folder)));
    places.extend(on_path(lookup));
    places.extend(USUAL_PLACES.iter().filter_map(|root| at(Path::new(root), root)));
    let mut seen = Vec::new();
    places.retain(|place| {
        let real = place.nvcc.canonicalize().unwrap_or_else(|_| place.nvcc.clone());
        let is_new = !seen.contains(&real);
        seen.push(real);
        is_new
    });
    let mut places = places.into_iter();
    let Some(first) = places.next() else { return Err(KernelsError::NoToolkit { hints: hints(&packages) }) };
    let toolkit = first.examine()?;
    let others = places.map(|place| match place.clone().examine() {
        Ok(other) => (other.to_string(), other.version != toolkit.version),
        Err(_) => (format!("{} (by {}), which does not work", place.nvcc.display(), place.found_by), true),
    });
    let others = others.collect();
    Ok(Found { toolkit, others })
}

/// The toolkits that variables name. The first is used, or it is an error.
fn named(lookup: Lookup<'_>) -> Result<Vec<Place>, KernelsError> {
    let mut places = Vec::new();
    for variable in TOOLKIT_VARIABLES {
        let Some(root) = lookup(variable).map(PathBuf::from) else { continue };
        match at(&root, variable) {
            Some(place) => places.push(place),
            None if places.is_empty() => return Err(KernelsError::NoCompilerThere { variable, root }),
            None => {}
        }
    }
    Ok(places)
}

fn at(root: &Path, found_by: &str) -> Option<Place> {
    let nvcc = root.join("bin/nvcc");
    is_program(&nvcc).then(|| Place {
        found_by: found_by.to_owned(),
        nvcc,
        roots: vec![root.to_path_buf()],
        is_of_packages: false,
    })
}

/// Packages of CUDA 13 and newer share `nvidia/cu13`; those of CUDA 12 have a directory each.
fn in_packages(folder: &Path) -> Vec<Place> {
    let nvidia = folder.join("nvidia");
    let mut majors: Vec<u32> = fs::read_dir(&nvidia)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.strip_prefix("cu")?.parse().ok())
        .collect();
    majors.sort_unstable_by(|one, other| other.cmp(one));
    let shared = majors.into_iter().map(|major| vec![nvidia.join(format!("cu{major}"))]);
    let separate = ["cuda_nvcc", "cuda_runtime", "cuda_cccl"].map(|name| nvidia.join(name)).to_vec();
    let places = shared.chain([separate]).filter_map(|roots| {
        let mut place = at(&roots[0], "Python packages")?;
        (place.roots, place.is_of_packages) = (roots, true);
        Some(place)
    });
    places.collect()
}

fn on_path(lookup: Lookup<'_>) -> Option<Place> {
    let nvcc = find_program(lookup, "nvcc")?;
    // A link leads to the toolkit, unless it is to a program that stands in for many compilers.
    let nvcc = nvcc.canonicalize().ok().filter(|real| real.ends_with("nvcc")).unwrap_or(nvcc);
    let root = nvcc.parent()?.parent()?.to_path_buf();
    Some(Place { found_by: "PATH".to_owned(), nvcc, roots: vec![root], is_of_packages: false })
}

/// Why packages that are there do not do (PK-16), for the message that there is no compiler.
fn hints(folders: &[PathBuf]) -> String {
    let has = |name: &str| folders.iter().any(|folder| folder.join("nvidia").join(name).is_dir());
    if has("cuda_nvcc") {
        "\nThe package nvidia-cuda-nvcc-cu12 is installed, and has no nvcc: none of the packages of CUDA 12 has."
            .to_owned()
    } else if has("cu13") {
        "\nPackages of CUDA 13 are installed, but not the one with the compiler, nvidia-cuda-nvcc.".to_owned()
    } else {
        String::new()
    }
}

impl Place {
    fn examine(self) -> Result<Toolkit, KernelsError> {
        let Self { found_by, nvcc, roots, is_of_packages } = self;
        let identity = answer(&nvcc, "--version")?;
        let Some(version) = version(&identity) else {
            let reason = format!("it says {:?} for --version", identity.trim());
            return Err(KernelsError::BrokenCompiler { nvcc, reason });
        };
        Ok(Toolkit { found_by, nvcc, roots, version, identity, is_of_packages })
    }
}

impl Toolkit {
    /// What the compiler answers to one option.
    pub(super) fn answer(&self, option: &str) -> Result<String, KernelsError> {
        answer(&self.nvcc, option)
    }

    /// Fails if a part of the compiler, or what every source includes, is not installed (PK-21).
    pub(super) fn check_components(&self, needs_runtime_library: bool) -> Result<(), KernelsError> {
        if !self.is_of_packages {
            return Ok(());
        }
        let mut components = vec![
            ("nvvm/bin/cicc", "nvidia-nvvm"),
            ("include/crt/host_config.h", "nvidia-cuda-crt"),
            ("include/cuda_runtime.h", "nvidia-cuda-runtime"),
        ];
        if needs_runtime_library {
            components.push(("lib/libcudart_static.a", "nvidia-cuda-runtime"));
        }
        let is_missing = |file: &str| !self.roots.iter().any(|root| root.join(file).exists());
        match components.into_iter().find(|(file, _)| is_missing(file)) {
            Some((file, package)) => Err(KernelsError::MissingComponent {
                file: file.to_owned(),
                package: self.package(package),
                toolkit: self.to_string(),
            }),
            None => Ok(()),
        }
    }

    /// A requirement for the package of this toolkit's major version.
    pub(super) fn package(&self, name: &str) -> String {
        match self.version.0 {
            // These were parts of the compiler's package then.
            12 if ["nvidia-nvvm", "nvidia-cuda-crt"].contains(&name) => "nvidia-cuda-nvcc-cu12".to_owned(),
            12 => format!("{name}-cu12"),
            // CCCL and others count their releases apart from the toolkit's, with the same major version.
            major => format!("{name}=={major}.*"),
        }
    }

    /// A header of the toolkit, as text.
    pub(super) fn header(&self, name: &str) -> Option<String> {
        let places = ["include", "targets/x86_64-linux/include", "targets/sbsa-linux/include", "../../include"];
        let files = self.roots.iter().flat_map(|root| places.iter().map(|place| root.join(place).join(name)));
        files.into_iter().find_map(|file| fs::read_to_string(file).ok())
    }

    /// Directories of headers that the compiler does not know by itself.
    pub(super) fn include_folders(&self) -> Vec<PathBuf> {
        let folders = self.roots.iter().skip(1).map(|root| root.join("include"));
        folders.filter(|folder| folder.is_dir()).collect()
    }

    /// Where the static runtime is: `lib64` in toolkits, `lib` in packages (PK-15).
    pub(super) fn library_folder(&self) -> Result<PathBuf, KernelsError> {
        let places = ["lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib", "lib/x86_64-linux-gnu"];
        let mut folders = self.roots.iter().flat_map(|root| places.iter().map(|place| root.join(place)));
        folders.find(|folder| folder.join("libcudart_static.a").is_file()).ok_or_else(|| {
            KernelsError::MissingComponent {
                file: "lib/libcudart_static.a".to_owned(),
                package: self.package("nvidia-cuda-runtime"),
                toolkit: self.to_string(),
            }
        })
    }
}

fn answer(nvcc: &Path, option: &str) -> Result<String, KernelsError> {
    let broken = |reason: String| KernelsError::BrokenCompiler { nvcc: nvcc.to_path_buf(), reason };
    let output = Command::new(nvcc)
        .arg(option)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| broken(format!("it cannot be started: {error}")))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(broken(format!("{option} failed with {}: {}", output.status, said.trim())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// `Cuda compilation tools, release 13.5, V13.5.37` → (13, 5).
fn version(answer: &str) -> Option<(u32, u32)> {
    let (major, minor) = answer.split("release ").nth(1)?.split(',').next()?.trim().split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// The first program of this name on the path.
pub(super) fn find_program(lookup: Lookup<'_>, name: &str) -> Option<PathBuf> {
    let path = lookup("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| is_program(file))
}

pub(super) fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}
