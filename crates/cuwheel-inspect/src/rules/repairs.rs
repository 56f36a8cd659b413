//! What a repair of a wheel has to know: which needed libraries are not found and where they are, which entries of search
//! paths may stay, and the oldest system that the result runs on.
//!
//! The answers are those that the rules judge by. Nothing is changed here.

use super::loader::{Known, is_of_the_system};
use super::{ExaminedWheel, InstalledLibraries, cuda_libraries, cxx, driver, search_path};
use crate::elf::GlibcVersion;
use crate::wheel::installed_path;

/// Who brings a library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LibraryFamily {
    /// The driver, or the loader of GL: it has to be the one of the machine.
    Driver,
    /// A project of the CUDA toolkit, in a wheel of its own.
    Cuda,
    /// The interpreter.
    Python,
    /// Every system that a wheel for Linux may be installed on.
    System,
    /// Nobody in particular.
    Other,
}

impl LibraryFamily {
    /// The family of the library with this file name or SONAME. It is told by the name without a version.
    #[must_use]
    pub fn of(library: &str) -> Self {
        if driver::Family::of(library).is_some() {
            Self::Driver
        } else if cuda_libraries::Family::of(library).is_some() {
            Self::Cuda
        } else if library.starts_with("libpython") {
            Self::Python
        } else if is_of_the_system(library) {
            Self::System
        } else {
            Self::Other
        }
    }

    /// What such a library is called in messages.
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Driver => "a library of the driver",
            Self::Cuda => "a library of the CUDA toolkit",
            Self::Python => "a library of the interpreter",
            Self::System => "a library of the system",
            Self::Other => "a library of another project",
        }
    }
}

/// A native file that a loader of the host loads.
#[derive(Debug, Clone, Copy)]
pub struct Library<'wheel> {
    /// Its entry in the wheel.
    pub path: &'wheel str,
    /// Where it is installed, below site-packages; `None` when it is installed elsewhere.
    pub installed: Option<&'wheel str>,
    /// The path that a loader searches: RUNPATH, or RPATH where there is none.
    pub search_path: Option<&'wheel str>,
}

/// A needed library that the loader does not find.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct MissingLibrary {
    /// The entry of the library that needs it.
    pub path: String,
    /// The name that it is needed by.
    pub needed: String,
}

/// A wheel among the wheels that it requires, as far as they were given.
pub struct Surroundings<'wheel> {
    examined: &'wheel ExaminedWheel,
    own: InstalledLibraries,
    given: &'wheel [InstalledLibraries],
}

impl<'wheel> Surroundings<'wheel> {
    /// The wheel `examined` among `given`; of these, those count that it requires, directly or through others.
    #[must_use]
    pub fn new(examined: &'wheel ExaminedWheel, given: &'wheel [InstalledLibraries]) -> Self {
        Self { examined, own: InstalledLibraries::of(examined), given }
    }

    /// The libraries of the wheel, in archive order.
    pub fn libraries(&self) -> impl Iterator<Item = Library<'wheel>> {
        self.examined.libraries().filter(|(_, native)| native.fault.is_none()).map(|(entry, native)| {
            let path_of = |kind: &str| native.search_paths.iter().find(|(other, _)| *other == kind);
            let search_path = path_of("RUNPATH").or_else(|| path_of("RPATH"));
            Library {
                path: entry.path(),
                installed: installed_path(entry.path()),
                search_path: search_path.map(|(_, path)| path.as_str()),
            }
        })
    }

    /// What the loader does not find, as rule `libraries/unresolved` judges it, with what other rules name.
    #[must_use]
    pub fn missing(&self) -> Vec<MissingLibrary> {
        let known = Known::of(&self.own, self.given);
        let (unresolved, _) = known.unresolved();
        let entry_of = |installed: &str| self.libraries().find(|library| library.installed == Some(installed));
        let missing = unresolved.into_iter().filter_map(|(installed, needed)| {
            Some(MissingLibrary { path: entry_of(installed)?.path.to_owned(), needed: needed.to_owned() })
        });
        missing.collect()
    }

    /// The directory below site-packages that holds a file called `library`.
    #[must_use]
    pub fn directory_of(&self, library: &str) -> Option<String> {
        Known::of(&self.own, self.given).directory_of(library).map(str::to_owned)
    }
}

/// Whether an entry of a search path may stay in a file that is installed at `installed`, a path below site-packages.
#[must_use]
pub fn is_sound_search_path(entry: &str, installed: Option<&str>) -> bool {
    search_path::fault(entry, installed).is_none()
}

/// The entry of a search path that leads from the file at `installed` to `directory`, both below site-packages:
/// `$ORIGIN/../nvidia/cu13/lib`.
#[must_use]
pub fn search_path_to(installed: &str, directory: &str) -> String {
    let parts = |path: &'_ str| path.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect::<Vec<_>>();
    let from = parts(installed.rsplit_once('/').map_or("", |(directory, _)| directory));
    let to = parts(directory);
    let shared = from.iter().zip(&to).take_while(|(left, right)| left == right).count();
    let up = std::iter::repeat_n("..", from.len() - shared);
    let parts = std::iter::once("$ORIGIN").chain(up).chain(to[shared..].iter().map(String::as_str));
    parts.collect::<Vec<_>>().join("/")
}

/// The oldest glibc whose systems have everything that the wheel takes from the system; `None` when it takes nothing.
#[must_use]
pub fn platform_floor(examined: &ExaminedWheel) -> Option<GlibcVersion> {
    examined.glibc_floor().max(cxx::floor(examined))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_told_by_the_name_without_its_version() {
        for (library, family) in [
            ("libcuda.so.1", LibraryFamily::Driver),
            ("libEGL.so.1", LibraryFamily::Driver),
            ("libnvidia-ml-0a1b2c3d.so.1", LibraryFamily::Driver),
            ("libcudart.so.12", LibraryFamily::Cuda),
            ("libcudart.so.99", LibraryFamily::Cuda),
            ("libpython3.11.so.1.0", LibraryFamily::Python),
            ("libc.so.6", LibraryFamily::System),
            ("libfftw3.so.3", LibraryFamily::Other),
        ] {
            assert_eq!(LibraryFamily::of(library), family, "{library}");
        }
    }

    #[test]
    fn search_paths_lead_from_file_to_directory() {
        for (installed, directory, expected) in [
            ("pkg/a.so", "nvidia/cu13/lib", "$ORIGIN/../nvidia/cu13/lib"),
            ("pkg/sub/a.so", "pkg/lib", "$ORIGIN/../lib"),
            ("pkg/a.so", "pkg", "$ORIGIN"),
            ("a.so", "pkg.libs", "$ORIGIN/pkg.libs"),
            ("pkg/a.so", "", "$ORIGIN/.."),
        ] {
            let entry = search_path_to(installed, directory);
            assert_eq!(entry, expected);
            assert_eq!(search_path::resolve(&entry, installed).as_deref(), Some(directory));
        }
    }
}
