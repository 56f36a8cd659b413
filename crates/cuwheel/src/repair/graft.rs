//! Libraries that are taken into a wheel: only those that are allowed by name, and never one that belongs to the driver,
//! the system, the interpreter or a wheel of the CUDA toolkit.
//!
//! A grafted library gets a name with its hash, so that two wheels with different builds of it do not share one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use cuwheel_inspect::elf::ElfFile;
use cuwheel_inspect::rules::{LibraryFamily, MissingLibrary, Surroundings, search_path_to};
use fs_err as fs;
use globset::{Glob, GlobMatcher};

use crate::error::{Failure, Result};
use crate::files;
use crate::patchelf::Edit;
use crate::project::Project;

/// Digits of the hash in the name of a grafted library.
const HASH_DIGITS: usize = 8;

/// Libraries that may be grafted, and where they are looked for.
#[derive(Clone, Debug, Default)]
pub struct Allowed {
    /// Names, with `*` for what varies.
    pub patterns: Vec<GraftPattern>,
    /// Directories of the build machine, in the order of search.
    pub directories: Vec<PathBuf>,
}

impl Allowed {
    /// What the settings of a project allow.
    pub fn by_settings(project: &Project) -> Self {
        let settings = &project.settings.repair;
        let directories = settings.library_paths.iter().map(|path| project.root.join(path)).collect();
        Self { patterns: settings.grafts.clone(), directories }
    }

    /// The hashes of the libraries that may be grafted, by directory and name: another library makes another wheel. What
    /// cannot be read is left out, and is an error once it is needed.
    pub fn fingerprint(&self) -> Vec<String> {
        let mut hashes = Vec::new();
        for file in
            self.directories.iter().flat_map(|directory| fs::read_dir(directory).into_iter().flatten().flatten())
        {
            let name = file.file_name().to_string_lossy().into_owned();
            if self.patterns.iter().any(|pattern| pattern.is_match(&name))
                && let Ok(hash) = files::sha256_of_file(&file.path())
            {
                hashes.push(format!("{} {hash}", file.path().display()));
            }
        }
        hashes.sort();
        hashes
    }
}

/// A name of a library, such as `libfftw3.so.3` or `libfftw3*.so.*`.
#[derive(Clone, Debug)]
pub struct GraftPattern(GlobMatcher);

impl std::str::FromStr for GraftPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains('/') {
            return Err("give the name of a library, such as libfftw3.so.3; --library-path says where it is".to_owned());
        }
        let family = LibraryFamily::of(text);
        if family != LibraryFamily::Other {
            return Err(refusal(text, family));
        }
        Glob::new(text).map(|glob| Self(glob.compile_matcher())).map_err(|error| error.to_string())
    }
}

impl GraftPattern {
    /// As it was written.
    pub fn as_str(&self) -> &str {
        self.0.glob().glob()
    }

    /// Whether it stands for `library`.
    pub fn is_match(&self, library: &str) -> bool {
        self.0.is_match(library)
    }
}

fn refusal(library: &str, family: LibraryFamily) -> String {
    format!("{library} is {}, which no wheel may bring", family.describe())
}

/// A library that is taken in.
#[derive(Clone, Debug)]
pub struct Graft {
    /// The name that it was needed by.
    pub library: String,
    /// Where it was found.
    pub source: PathBuf,
    /// As it was found.
    pub content: Vec<u8>,
    /// Its entry in the wheel.
    pub path: String,
    /// What is changed in it.
    pub edit: Edit,
}

impl Graft {
    /// Its name in the wheel.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }
}

/// Where a needed library is going to be.
pub(super) enum Place {
    /// In a directory below site-packages, where it already is.
    Directory(String),
    /// Among the grafted ones, under this name.
    Graft(String),
    /// Not where it can be found.
    Nowhere,
}

/// Places needed libraries, and remembers what is grafted.
pub(super) struct Grafter<'a> {
    surroundings: &'a Surroundings<'a>,
    allowed: &'a Allowed,
    directory: String,
    grafts: BTreeMap<String, Graft>,
    left: BTreeSet<MissingLibrary>,
}

impl<'a> Grafter<'a> {
    pub(super) fn new(surroundings: &'a Surroundings<'a>, allowed: &'a Allowed, distribution: &str) -> Self {
        let directory = format!("{distribution}.libs");
        Self { surroundings, allowed, directory, grafts: BTreeMap::new(), left: BTreeSet::new() }
    }

    /// The directory of grafted libraries, below site-packages.
    pub(super) fn directory(&self) -> &str {
        &self.directory
    }

    /// Decides where `needed` is to be found, and grafts it if that is allowed.
    pub(super) fn place(&mut self, needed: &str) -> Result<Place> {
        let family = LibraryFamily::of(needed);
        let is_allowed = self.allowed.patterns.iter().any(|pattern| pattern.is_match(needed));
        if matches!(family, LibraryFamily::Other | LibraryFamily::Cuda)
            && let Some(directory) = self.surroundings.directory_of(needed)
        {
            return Ok(Place::Directory(directory));
        }
        if !is_allowed {
            return Ok(Place::Nowhere);
        }
        if family != LibraryFamily::Other {
            return Err(Failure::usage(refusal(needed, family))
                .remedy("name the libraries more narrowly in --graft; give wheels that have it with --with")
                .into());
        }
        if let Some(graft) = self.grafts.get(needed) {
            return Ok(Place::Graft(graft.name().to_owned()));
        }
        self.graft(needed).map(Place::Graft)
    }

    /// Takes `library` in, and what it needs in turn; gives its new name.
    fn graft(&mut self, library: &str) -> Result<String> {
        let (source, content) = self.find(library)?;
        let name = hashed_name(library, &content);
        let path = format!("{}/{name}", self.directory);
        let needs = needs_of(&content, &source)?;
        let edit = Edit { soname: Some(name.clone()), run_path: Some(Vec::new()), needed: BTreeMap::new() };
        // It is known before its needs are followed: libraries may need each other.
        let graft = Graft { library: library.to_owned(), source, content, path: path.clone(), edit };
        self.grafts.insert(library.to_owned(), graft);
        let (mut run_path, mut renamed) = (BTreeSet::new(), BTreeMap::new());
        for needed in needs.into_iter().filter(|needed| LibraryFamily::of(needed) != LibraryFamily::System) {
            match self.place(&needed)? {
                Place::Directory(directory) => drop(run_path.insert(search_path_to(&path, &directory))),
                Place::Graft(name) => {
                    run_path.insert("$ORIGIN".to_owned());
                    renamed.insert(needed, name);
                }
                Place::Nowhere => drop(self.left.insert(MissingLibrary { path: path.clone(), needed })),
            }
        }
        let graft = self.grafts.get_mut(library).expect("it was inserted above");
        graft.edit.run_path = Some(run_path.into_iter().collect());
        graft.edit.needed = renamed;
        Ok(name)
    }

    fn find(&self, library: &str) -> Result<(PathBuf, Vec<u8>)> {
        let mut candidates = self.allowed.directories.iter().map(|directory| directory.join(library));
        let Some(source) = candidates.find(|path| path.is_file()) else {
            let searched = self.allowed.directories.iter().map(|directory| directory.display().to_string());
            return Err(Failure::usage(format!("{library} is to be grafted and was not found"))
                .details(searched.map(|directory| format!("it is not in {directory}")))
                .remedy("give the directory that it is in with --library-path")
                .into());
        };
        let content = fs::read(&source)?;
        Ok((source, content))
    }

    /// What is grafted, in the order of names; adds to `left` what grafted libraries miss.
    pub(super) fn finish(self, left: &mut Vec<MissingLibrary>) -> Vec<Graft> {
        left.extend(self.left);
        self.grafts.into_values().collect()
    }
}

fn needs_of(content: &[u8], source: &std::path::Path) -> Result<Vec<String>> {
    let file = ElfFile::parse(content).map_err(|error| {
        Failure::usage(format!("{} cannot be grafted: {error}", source.display()))
            .remedy("give the directory of the shared library itself, and not of a linker script, with --library-path")
    })?;
    Ok(file.needed().iter().map(|needed| (*needed).to_owned()).collect())
}

/// `libfftw3.so.3` → `libfftw3-0a1b2c3d.so.3`.
fn hashed_name(library: &str, content: &[u8]) -> String {
    let hash = &files::sha256(content)[..HASH_DIGITS];
    match library.find(".so") {
        Some(position) => format!("{}-{hash}{}", &library[..position], &library[position..]),
        None => format!("{library}-{hash}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grafted_libraries_are_named_by_their_content() {
        assert_eq!(hashed_name("libfftw3.so.3", b"abc"), "libfftw3-ba7816bf.so.3");
        assert_eq!(hashed_name("plugin", b"abc"), "plugin-ba7816bf");
    }

    #[test]
    fn pk_01_pk_02_pk_11_what_belongs_to_others_cannot_be_named() {
        for (library, whose) in [
            ("libcuda.so.1", "the driver"),
            ("libEGL.so.1", "the driver"),
            ("libcudart.so.13", "the CUDA toolkit"),
            ("libcublas.so.99", "the CUDA toolkit"),
            ("libc.so.6", "the system"),
            ("libpython3.11.so.1.0", "the interpreter"),
        ] {
            let error = library.parse::<GraftPattern>().unwrap_err();
            assert!(error.contains(whose), "{library}: {error}");
        }
        assert!("/usr/lib/libfftw3.so.3".parse::<GraftPattern>().is_err());
        assert!("libfftw3*.so.*".parse::<GraftPattern>().is_ok());
    }
}
