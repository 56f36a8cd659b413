//! Where NVRTC and the headers of CUDA are: in packages of Python, in a toolkit, or wherever the loader looks.
//!
//! A library that a variable names is used or it is an error. Otherwise those of the driver's own major version come first,
//! since a driver loads no code of a newer one.

use std::ffi::{OsStr, OsString, c_int};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use libloading::Library;

use super::CompileError;
use super::nvrtc::Nvrtc;

/// The library of NVRTC, or the directory that it is in.
const LIBRARY_VARIABLE: &str = "CUWHEEL_NVRTC";
/// Where a toolkit is installed, as CUDA's own tools read it.
const TOOLKIT_VARIABLES: [&str; 3] = ["CUDA_PATH", "CUDA_HOME", "CUDA_ROOT"];
const USUAL_TOOLKIT: &str = "/usr/local/cuda";

/// The directories to search, besides what the environment says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Search {
    /// Where packages of Python are installed, in the order of `sys.path`.
    pub packages: Vec<PathBuf>,
    /// Directories laid out as a toolkit is, with `lib` and `include`, such as an environment of conda.
    pub prefixes: Vec<PathBuf>,
    /// Headers that every source may include, before those of CUDA.
    pub include_dirs: Vec<PathBuf>,
}

/// A compiler and its headers.
#[derive(Debug)]
pub(super) struct Toolchain {
    pub(super) nvrtc: &'static Nvrtc,
    /// Where the headers of CCCL and of the runtime are, as far as they are installed.
    pub(super) include_dirs: Vec<PathBuf>,
}

impl Search {
    pub(super) fn toolchain(&self) -> Result<Toolchain, CompileError> {
        let nvrtc = match variable(LIBRARY_VARIABLE) {
            Some(path) => named(&path)?,
            None => self.search()?,
        };
        Ok(Toolchain { nvrtc, include_dirs: self.headers(nvrtc) })
    }

    /// The first library that can be used.
    fn search(&self) -> Result<&'static Nvrtc, CompileError> {
        let mut searched = Vec::new();
        for candidate in self.candidates(newest_major()) {
            match Nvrtc::load(&candidate) {
                Ok(nvrtc) => return Ok(nvrtc),
                Err(reason) => searched.push(reason),
            }
        }
        Err(CompileError::NotFound { searched: searched.join("; ") })
    }

    /// Libraries that there are, and at last the names that the loader knows some by.
    fn candidates(&self, newest_major: u32) -> Vec<OsString> {
        let in_packages = self.packages.iter().flat_map(|packages| package_libraries(packages));
        let in_toolkits = self.toolkits().into_iter().flat_map(|root| {
            let directories = [root.join("lib64"), root.join("lib")].into_iter().chain(targets(&root, "lib"));
            directories.flat_map(|directory| libraries_in(&directory)).collect::<Vec<_>>()
        });
        let by_name = [14, 13, 12].map(|major| (major, PathBuf::from(format!("libnvrtc.so.{major}"))));
        let mut found: Vec<(bool, PathBuf)> = Vec::new();
        for group in [in_packages.collect::<Vec<_>>(), in_toolkits.collect(), by_name.into()] {
            let start = found.len();
            found.extend(group.into_iter().map(|(major, path)| (major > newest_major, path)));
            // Stable: what the driver cannot load the code of comes after the rest of its kind.
            found[start..].sort_by_key(|(is_too_new, _)| *is_too_new);
        }
        // PTX and the newest machine code of a newer compiler are better than nothing.
        found.sort_by_key(|(is_too_new, _)| *is_too_new);
        found.into_iter().map(|(_, path)| path.into_os_string()).collect()
    }

    fn toolkits(&self) -> Vec<PathBuf> {
        let named = TOOLKIT_VARIABLES.iter().filter_map(|name| variable(name)).map(PathBuf::from);
        named.chain(self.prefixes.iter().cloned()).chain([PathBuf::from(USUAL_TOOLKIT)]).collect()
    }

    /// Directories of headers that are of the same version as the compiler, most special first.
    fn headers(&self, nvrtc: &Nvrtc) -> Vec<PathBuf> {
        let major = nvrtc.version.0;
        // …/lib/libnvrtc.so.13 has …/include beside it: one directory for all packages of CUDA 13, and in a toolkit.
        let beside = nvrtc.path.as_deref().and_then(Path::parent).and_then(Path::parent);
        let mut roots: Vec<PathBuf> = beside.into_iter().map(|root| root.join("include")).collect();
        for packages in &self.packages {
            let nvidia = packages.join("nvidia");
            roots.push(nvidia.join(format!("cu{major}/include")));
            if major == 12 {
                // Packages of CUDA 12 have a directory each.
                let each = ["cuda_cccl/include", "cuda_runtime/include", "cuda_nvcc/include"];
                roots.extend(each.map(|directory| nvidia.join(directory)));
            }
        }
        for root in self.toolkits() {
            let directories = std::iter::once(root.join("include")).chain(targets(&root, "include"));
            // Headers of another version are worse than none.
            roots.extend(directories.filter(|directory| major_of(directory) == Some(major)));
        }
        let mut found: Vec<PathBuf> = Vec::new();
        let mut has = [false; MARKS.len()];
        for root in roots {
            // From CUDA 13 on, the headers of CCCL are one level deeper.
            for directory in [root.join("cccl"), root] {
                let mut is_new = false;
                for (mark, has) in MARKS.iter().zip(&mut has) {
                    if !*has && directory.join(mark).is_file() {
                        *has = true;
                        is_new = true;
                    }
                }
                if is_new && !found.contains(&directory) {
                    found.push(directory);
                }
            }
        }
        found
    }
}

/// A header of CCCL, of the runtime, and of the compiler's support: the first directory with each is taken.
const MARKS: [&str; 3] = ["cuda/std/version", "cuda_fp16.h", "crt/host_defines.h"];

/// A variable of the environment; an empty one counts as not set.
pub(super) fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// The library that the variable names.
fn named(path: &OsStr) -> Result<&'static Nvrtc, CompileError> {
    let directory = Path::new(path);
    let candidates = if directory.is_dir() {
        libraries_in(directory).into_iter().map(|(_, path)| path.into_os_string()).collect()
    } else {
        vec![path.to_owned()]
    };
    let mut reason = "there is no libnvrtc.so in it".to_owned();
    for candidate in candidates {
        match Nvrtc::load(&candidate) {
            Ok(nvrtc) => return Ok(nvrtc),
            Err(error) => reason = error,
        }
    }
    Err(CompileError::NotUsable { path: path.to_string_lossy().into_owned(), reason })
}

/// Directories of a toolkit for each kind of machine.
fn targets(root: &Path, directory: &str) -> impl Iterator<Item = PathBuf> {
    ["x86_64-linux", "sbsa-linux"].map(|target| root.join("targets").join(target).join(directory)).into_iter()
}

/// The major version of CUDA that a directory of headers is of.
fn major_of(include: &Path) -> Option<i32> {
    let text = fs::read(include.join("cuda.h")).ok()?;
    let start = memchr::memmem::find(&text, b"#define CUDA_VERSION ")?;
    let number = text[start..].split(u8::is_ascii_whitespace).nth(2)?;
    Some(std::str::from_utf8(number).ok()?.parse::<i32>().ok()? / 1000)
}

/// Libraries in the packages of NVIDIA, with their major versions: one directory for all packages of CUDA 13, and one each
/// for those of CUDA 12.
fn package_libraries(packages: &Path) -> Vec<(u32, PathBuf)> {
    let Ok(entries) = fs::read_dir(packages.join("nvidia")) else { return Vec::new() };
    let is_of_cuda = |name: &OsStr| {
        name == "cuda_nvrtc" || name.to_str().and_then(|name| name.strip_prefix("cu")?.parse::<u32>().ok()).is_some()
    };
    let mut found: Vec<(u32, PathBuf)> = entries
        .filter_map(Result::ok)
        .filter(|entry| is_of_cuda(&entry.file_name()))
        .flat_map(|entry| libraries_in(&entry.path().join("lib")))
        .collect();
    found.sort_by(|one, other| other.cmp(one));
    found
}

/// Files `libnvrtc.so.13` in a directory, with their major versions, the newest first.
fn libraries_in(directory: &Path) -> Vec<(u32, PathBuf)> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let major = |name: &OsStr| name.to_str()?.strip_prefix("libnvrtc.so.")?.parse().ok();
    let mut found: Vec<(u32, PathBuf)> =
        entries.filter_map(Result::ok).filter_map(|entry| Some((major(&entry.file_name())?, entry.path()))).collect();
    found.sort_by(|one, other| other.cmp(one));
    found
}

/// The major version of CUDA that the driver is of; without a driver any will do. The driver is asked without being started.
fn newest_major() -> u32 {
    static MAJOR: OnceLock<u32> = OnceLock::new();
    *MAJOR.get_or_init(|| {
        // SAFETY: the initialisers of the driver's library expect nothing of who loads it; that is its makers' promise.
        let Ok(library) = (unsafe { Library::new("libcuda.so.1") }) else { return u32::MAX };
        // SAFETY: this is the declaration in `cuda.h`, but for the enumeration, an integer of 32 bits. The library stays.
        let Ok(version) = (unsafe { library.get::<unsafe extern "C" fn(*mut c_int) -> u32>("cuDriverGetVersion") })
        else {
            return u32::MAX;
        };
        let mut number = 0;
        // SAFETY: the pointer is to a local variable; this function may be called before the driver is started.
        let code = unsafe { version(&raw mut number) };
        std::mem::forget(library);
        if code == 0 { u32::try_from(number / 1000).unwrap_or(u32::MAX) } else { u32::MAX }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(root: &Path, path: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }

    #[test]
    fn packages_of_both_layouts_are_found_and_the_drivers_version_comes_first() {
        let root = tempfile::tempdir().unwrap();
        for path in [
            "nvidia/cu13/lib/libnvrtc.so.13",
            "nvidia/cuda_nvrtc/lib/libnvrtc.so.12",
            "nvidia/cuda_nvrtc/lib/libnvrtc.alt.so.12",
            "nvidia/cublas/lib/libnvrtc.so.12",
        ] {
            touch(root.path(), path);
        }
        let search = Search { packages: vec![root.path().to_path_buf()], ..Search::default() };
        let names = |newest_major| -> Vec<String> {
            let found = search.candidates(newest_major).into_iter();
            found
                .filter_map(|path| Some(Path::new(&path).strip_prefix(root.path()).ok()?.display().to_string()))
                .collect()
        };
        let (old, new) = ("nvidia/cuda_nvrtc/lib/libnvrtc.so.12", "nvidia/cu13/lib/libnvrtc.so.13");
        assert_eq!(names(13), [new, old]);
        assert_eq!(names(12), [old, new]);
        assert_eq!(names(u32::MAX), [new, old]);
    }
}
