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

/// The one major version of CUDA that a build is for. A build that makes a wheel for each sets it.
pub const CUDA_MAJOR_VARIABLE: &str = "CUWHEEL_CUDA_MAJOR";

/// Where toolkits of several versions lie beside each other, as `cuda-12.4`.
const PLACES_OF_VERSIONS: [&str; 2] = ["/usr/local", "/opt"];

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

/// Looks in every place, and asks each compiler for its version. Those that are not of the major version that is asked for
/// are passed over.
pub(super) fn find(lookup: Lookup<'_>) -> Result<Found, KernelsError> {
    let wanted = wanted_major(lookup)?;
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
    places.extend(wanted.into_iter().flat_map(|major| of_versions(&PLACES_OF_VERSIONS.map(Path::new), major)));
    let mut seen = Vec::new();
    places.retain(|place| {
        let real = place.nvcc.canonicalize().unwrap_or_else(|_| place.nvcc.clone());
        let is_new = !seen.contains(&real);
        seen.push(real);
        is_new
    });
    match wanted {
        None => choose(places, &packages),
        Some(major) => choose_major(places, major),
    }
}

/// The first one, whatever its version.
fn choose(places: Vec<Place>, packages: &[PathBuf]) -> Result<Found, KernelsError> {
    let mut places = places.into_iter();
    let Some(first) = places.next() else { return Err(KernelsError::NoToolkit { hints: hints(packages) }) };
    let toolkit = first.examine()?;
    let others = places.map(|place| place.compared_with(&toolkit)).collect();
    Ok(Found { toolkit, others })
}

/// The first one of a major version. Others of it may disagree; those of another are for other builds.
fn choose_major(places: Vec<Place>, major: u32) -> Result<Found, KernelsError> {
    let (mut chosen, mut others) = (None::<Toolkit>, Vec::new());
    for place in places {
        let Some(toolkit) = &chosen else {
            match place.clone().examine() {
                Ok(toolkit) if toolkit.version.0 == major => chosen = Some(toolkit),
                Ok(other) => others.push((other.to_string(), false)),
                Err(_) => others.push((place.broken(), false)),
            }
            continue;
        };
        let (other, is_different) = place.clone().compared_with(toolkit);
        let is_of_major = place.examine().is_ok_and(|other| other.version.0 == major);
        others.push((other, is_different && is_of_major));
    }
    match chosen {
        Some(toolkit) => Ok(Found { toolkit, others }),
        None => {
            Err(KernelsError::NoToolkitOfMajor { major, found: others.into_iter().map(|(other, _)| other).collect() })
        }
    }
}

fn wanted_major(lookup: Lookup<'_>) -> Result<Option<u32>, KernelsError> {
    let Some(value) = lookup(CUDA_MAJOR_VARIABLE) else { return Ok(None) };
    let value = value.to_string_lossy();
    let major = value.trim().parse().map_err(|_| KernelsError::NotAMajorVersion { value: value.to_string() })?;
    Ok(Some(major))
}

/// Toolkits of a major version in folders such as `/usr/local/cuda-12.4`, the newest first.
fn of_versions(folders: &[&Path], major: u32) -> Vec<Place> {
    let mut found: Vec<(u32, PathBuf)> = Vec::new();
    for entry in folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten() {
        let name = entry.file_name();
        let Some(version) = name.to_str().and_then(|name| name.strip_prefix("cuda-")) else { continue };
        let mut parts = version.split('.').map(str::parse::<u32>);
        match (parts.next(), parts.next()) {
            (Some(Ok(found_major)), None) if found_major == major => found.push((0, entry.path())),
            (Some(Ok(found_major)), Some(Ok(minor))) if found_major == major => found.push((minor, entry.path())),
            _ => {}
        }
    }
    found.sort_by(|one, other| other.cmp(one));
    found.into_iter().filter_map(|(_, root)| at(&root, &root.display().to_string())).collect()
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
    /// What it is, and whether it is of another version than `toolkit`.
    fn compared_with(self, toolkit: &Toolkit) -> (String, bool) {
        let broken = self.broken();
        self.examine().map_or((broken, true), |other| (other.to_string(), other.version != toolkit.version))
    }

    fn broken(&self) -> String {
        format!("{} (by {}), which does not work", self.nvcc.display(), self.found_by)
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_toolkits_beside_each_other_the_newest_of_the_major_version_comes_first() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["cuda", "cuda-12", "cuda-12.4", "cuda-12.10", "cuda-13.0", "cuda-12.x", "cuda-12.9"] {
            let bin = folder.path().join(name).join("bin");
            fs::create_dir_all(&bin).unwrap();
            // The last one has no compiler.
            if name != "cuda-12.9" {
                fs::write(bin.join("nvcc"), "").unwrap();
                fs::set_permissions(bin.join("nvcc"), fs::Permissions::from_mode(0o755)).unwrap();
            }
        }
        let found = of_versions(&[folder.path(), Path::new("/nowhere")], 12);
        let names: Vec<_> = found.iter().map(|place| place.roots[0].file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["cuda-12.10", "cuda-12.4", "cuda-12"]);
    }
}
