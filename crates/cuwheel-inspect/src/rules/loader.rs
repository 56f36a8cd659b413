//! Rules on needed libraries: a loader is simulated over what the wheel, and the wheels that it requires, install.
//!
//! The order of search is that of glibc (ld.so(8)): RPATH of the library and of those that loaded it, unless the library
//! has a RUNPATH, which counts instead and for itself only; then the system. `LD_LIBRARY_PATH` and what a package loads on
//! its own before cannot be known.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use super::catalog::{UNKNOWN_DEPENDENCY, UNRESOLVED};
use super::cuda;
use super::driver;
use super::native::NativeFile;
use super::search_path;
use super::{ExaminedWheel, Finding, Policy, listed};
use crate::wheel::{Requirement, installed_path, normalize_distribution};

/// What every system has on which a wheel for Linux may be installed (PEP 513, PEP 571, PEP 599 and their successors).
const SYSTEM: &[&str] = &[
    "libanl.so.1",
    "libatomic.so.1",
    "libc.so.6",
    "libdl.so.2",
    "libexpat.so.1",
    "libgcc_s.so.1",
    "libglib-2.0.so.0",
    "libgobject-2.0.so.0",
    "libgthread-2.0.so.0",
    "libICE.so.6",
    "libm.so.6",
    "libmvec.so.1",
    "libnsl.so.1",
    "libpthread.so.0",
    "libresolv.so.2",
    "librt.so.1",
    "libSM.so.6",
    "libstdc++.so.6",
    "libutil.so.1",
    "libX11.so.6",
    "libXext.so.6",
    "libXrender.so.1",
    "libz.so.1",
];

/// Real wheels need some thousands; what needs more is made to take time.
const MOST_STEPS: usize = 1 << 20;

/// Libraries that a wheel installs, for the check of wheels that require it.
#[derive(Debug, Clone)]
pub struct InstalledLibraries {
    distribution: String,
    requirements: Vec<Requirement>,
    libraries: Vec<Library>,
}

#[derive(Debug, Clone)]
struct Library {
    /// Below site-packages.
    path: String,
    /// Whether Python imports it.
    is_module: bool,
    soname: Option<String>,
    needed: Vec<String>,
    rpath: Vec<String>,
    runpath: Option<Vec<String>>,
}

impl InstalledLibraries {
    /// The libraries of `examined`.
    #[must_use]
    pub fn of(examined: &ExaminedWheel) -> Self {
        let wheel = examined.wheel();
        let requirements = wheel.metadata().requires_dist().filter_map(Requirement::parse);
        let libraries =
            examined.libraries().filter_map(|(entry, native)| Library::of(installed_path(entry.path())?, native));
        Self {
            distribution: normalize_distribution(wheel.name().distribution()),
            requirements: requirements.collect(),
            libraries: libraries.collect(),
        }
    }
}

impl Library {
    fn of(path: &str, native: &NativeFile) -> Option<Self> {
        let entries = |kind: &str| -> Option<Vec<String>> {
            let (_, path) = native.search_paths.iter().find(|(other, _)| *other == kind)?;
            Some(path.split(':').map(str::to_owned).collect())
        };
        (native.fault.is_none()).then(|| Self {
            path: path.to_owned(),
            is_module: !native.inits.is_empty(),
            soname: native.soname.clone(),
            needed: native.needed.clone(),
            rpath: entries("RPATH").unwrap_or_default(),
            runpath: entries("RUNPATH"),
        })
    }

    fn file_name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// What a loader that has it knows it by.
    fn names(&self) -> impl Iterator<Item = &str> {
        [Some(self.file_name()), self.soname.as_deref()].into_iter().flatten()
    }
}

pub(super) fn check(examined: &ExaminedWheel, policy: &Policy, findings: &mut Vec<Finding>) {
    let own = InstalledLibraries::of(examined);
    let platforms = examined.wheel().name().platform_tags();
    if !platforms.iter().all(|platform| platform.contains("linux")) {
        return;
    }
    let known = Known::of(&own, &policy.dependencies);
    let (not_found, is_complete) = known.unresolved();
    let entries: HashMap<&str, &str> =
        examined.libraries().filter_map(|(entry, _)| Some((installed_path(entry.path())?, entry.path()))).collect();
    let mut explained: BTreeMap<&str, Explanation> = BTreeMap::new();
    for (path, needed) in not_found {
        let explanation = explained.entry(needed).or_insert_with(|| known.explain(needed));
        if let Explanation::NotFound(message) = explanation {
            let entry = entries.get(path).copied().unwrap_or(path);
            findings.push(Finding::new(&UNRESOLVED, message.clone()).at(entry).symbol(Some(needed)));
        }
    }
    let elsewhere = explained.iter().filter(|(_, explanation)| matches!(explanation, Explanation::Elsewhere));
    let elsewhere: Vec<&str> = elsewhere.map(|(needed, _)| *needed).collect();
    if !elsewhere.is_empty() {
        let absent: Vec<&&str> = known.absent.iter().collect();
        let message = format!("{} may be in {}, and no such wheel was given", listed(&elsewhere), listed(&absent));
        findings.push(Finding::new(&UNKNOWN_DEPENDENCY, message));
    }
    if !is_complete {
        let message = "the libraries need each other in more ways than are followed";
        findings.push(Finding::new(&UNKNOWN_DEPENDENCY, message));
    }
}

/// Why a library was not found.
enum Explanation {
    /// Nothing leads there, or nobody has it.
    NotFound(String),
    /// A wheel that is required and was not given may have it.
    Elsewhere,
    /// Another rule says it.
    Told,
}

/// The wheel and those that it requires, as one installation.
pub(super) struct Known<'wheels> {
    own: &'wheels InstalledLibraries,
    /// With the project that installs it; the wheel's own come first.
    libraries: Vec<(&'wheels Library, &'wheels str)>,
    by_path: HashMap<&'wheels str, usize>,
    /// Projects that are required and were not given.
    absent: BTreeSet<&'wheels str>,
}

impl<'wheels> Known<'wheels> {
    pub(super) fn of(own: &'wheels InstalledLibraries, given: &'wheels [InstalledLibraries]) -> Self {
        let mut libraries: Vec<_> = own.libraries.iter().map(|library| (library, own.distribution.as_str())).collect();
        let mut absent = BTreeSet::new();
        let mut seen = BTreeSet::from([own.distribution.as_str()]);
        let mut queue: VecDeque<&str> = own.requirements.iter().map(Requirement::name).collect();
        while let Some(name) = queue.pop_front() {
            if !seen.insert(name) {
                continue;
            }
            let Some(wheel) = given.iter().find(|wheel| wheel.distribution == name) else {
                absent.insert(name);
                continue;
            };
            libraries.extend(wheel.libraries.iter().map(|library| (library, wheel.distribution.as_str())));
            queue.extend(wheel.requirements.iter().map(Requirement::name));
        }
        let mut by_path = HashMap::new();
        for (position, (library, _)) in libraries.iter().enumerate() {
            by_path.entry(library.path.as_str()).or_insert(position);
        }
        Self { own, libraries, by_path, absent }
    }

    /// The path of each library of the wheel that needs one which is not found, with the name of that one; and whether
    /// everything was followed.
    pub(super) fn unresolved(&self) -> (BTreeSet<(&'wheels str, &'wheels str)>, bool) {
        let mut unresolved = BTreeSet::new();
        let mut steps = 0;
        // What a module loads is found by the paths of that module too: it is no root of its own.
        let mut loaded = BTreeSet::new();
        for root in self.roots() {
            if !loaded.contains(&root) {
                loaded.extend(self.load(root, &mut steps, &mut unresolved));
            }
        }
        (unresolved, steps < MOST_STEPS)
    }

    /// The wheel's own libraries: modules, then what no other needs, then the rest.
    fn roots(&self) -> Vec<usize> {
        let needed: BTreeSet<&str> =
            self.own.libraries.iter().flat_map(|library| &library.needed).map(String::as_str).collect();
        let mut roots: Vec<usize> = (0..self.own.libraries.len()).collect();
        roots.sort_by_key(|position| {
            let library = &self.own.libraries[*position];
            (!library.is_module, library.names().any(|name| needed.contains(name)))
        });
        roots
    }

    /// Loads the library at `root` and everything that it needs, breadth first; gives what was loaded.
    fn load(
        &self,
        root: usize,
        steps: &mut usize,
        unresolved: &mut BTreeSet<(&'wheels str, &'wheels str)>,
    ) -> Vec<usize> {
        // Each with the position in here of the library that loaded it.
        let mut loaded: Vec<(usize, Option<usize>)> = vec![(root, None)];
        let mut names: BTreeSet<&str> = self.libraries[root].0.names().collect();
        let mut next = 0;
        while let Some((position, _)) = loaded.get(next).copied() {
            let (library, _) = self.libraries[position];
            for needed in &library.needed {
                *steps += 1;
                if *steps >= MOST_STEPS {
                    return Vec::new();
                }
                if names.contains(needed.as_str()) {
                    continue;
                }
                if let Some(found) = self.find(&loaded, next, needed) {
                    loaded.push((found, Some(next)));
                    names.extend(self.libraries[found].0.names());
                } else if position < self.own.libraries.len() && !is_of_the_system(needed) {
                    unresolved.insert((&library.path, needed));
                }
            }
            next += 1;
        }
        loaded.into_iter().map(|(position, _)| position).collect()
    }

    /// Searches where glibc does for what the library at `loaded[at]` needs.
    fn find(&self, loaded: &[(usize, Option<usize>)], at: usize, needed: &str) -> Option<usize> {
        let library = |at: usize| self.libraries[loaded[at].0].0;
        if let Some(entries) = &library(at).runpath {
            return self.find_in(library(at), entries, needed);
        }
        let mut chain = Some(at);
        while let Some(at) = chain {
            let entries = if library(at).runpath.is_none() { &library(at).rpath[..] } else { &[] };
            if let Some(found) = self.find_in(library(at), entries, needed) {
                return Some(found);
            }
            chain = loaded[at].1;
        }
        None
    }

    fn find_in(&self, library: &Library, entries: &[String], needed: &str) -> Option<usize> {
        entries.iter().find_map(|entry| {
            let directory = search_path::resolve(entry, &library.path)?;
            let path = if directory.is_empty() { needed.to_owned() } else { format!("{directory}/{needed}") };
            self.by_path.get(path.as_str()).copied()
        })
    }

    /// The directory, below site-packages, with a library that is called `file`; the wheel's own comes first.
    pub(super) fn directory_of(&self, file: &str) -> Option<&'wheels str> {
        let (library, _) = self.libraries.iter().find(|(library, _)| library.file_name() == file)?;
        Some(library.path.rsplit_once('/').map_or("", |(directory, _)| directory))
    }

    fn explain(&self, needed: &str) -> Explanation {
        // Those of the driver and of Python have rules of their own.
        if driver::Family::of(needed).is_some() || needed.starts_with("libpython") {
            return Explanation::Told;
        }
        if let Some((library, project)) =
            self.libraries.iter().find(|(library, _)| library.names().any(|name| name == needed))
        {
            let whose = if *project == self.own.distribution { String::new() } else { format!(" of {project}") };
            let message = format!("it needs {needed}, and no RPATH leads to {}{whose}", library.path);
            return Explanation::NotFound(message);
        }
        if cuda::check_dependency(needed, &self.own.requirements).is_some() {
            return Explanation::Told;
        }
        if self.absent.is_empty() {
            let message =
                format!("it needs {needed}, which is not inside, nor in what it requires, nor on every system");
            return Explanation::NotFound(message);
        }
        Explanation::Elsewhere
    }
}

pub(super) fn is_of_the_system(library: &str) -> bool {
    let is_loader = library.starts_with("ld-linux") || library.starts_with("ld-musl") || library.starts_with("ld64.so");
    is_loader || library.starts_with("libc.musl-") || library == "libc.so" || SYSTEM.contains(&library)
}
