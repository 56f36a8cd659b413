//! The wheel of an overlay, made of a released wheel, the project's own wheel and the files of an entry.
//!
//! Pure: bytes in, bytes out. Not for fetching, building or proving.

use std::collections::{BTreeMap, BTreeSet};

use cuwheel_inspect::elf::{ElfFile, GlibcVersion};
use cuwheel_inspect::wheel::{Entry, ExtensionModule, Wheel, WheelName};
use pep440_rs::Version;
use serde::Serialize;
use serde_json::json;

use super::bill::{self, Origin};
use super::entry::OverlayEntry;
use super::headers::{self, Native};
use super::upstream;
use crate::error::{Failure, Result};
use crate::files;
use crate::inspection;
use crate::wheel_writer::{self, Writer};

/// The note in `.dist-info` of what was changed.
pub const NOTE: &str = "overlay.json";
/// Counted up when a field of the note changes its meaning or goes.
const NOTE_SCHEMA: u32 = 1;

/// A released wheel that is what the entry says.
#[derive(Debug)]
pub struct Accepted<'a> {
    entry: &'a OverlayEntry,
    wheel: &'a Wheel,
    removed: BTreeSet<String>,
}

/// What an overlay changed, by paths in its wheel; those of removed files are the released wheel's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Changed {
    /// Files that are gone: native modules and their sources.
    pub removed: Vec<String>,
    /// Files that are new.
    pub added: Vec<String>,
    /// Files with another content.
    pub rewritten: Vec<String>,
}

/// A finished overlay.
#[derive(Debug)]
pub struct Overlay {
    /// Its file name.
    pub file: String,
    /// The archive.
    pub bytes: Vec<u8>,
    /// What was changed.
    pub changed: Changed,
}

impl<'a> Accepted<'a> {
    /// Checks a released wheel against an entry.
    pub fn new(entry: &'a OverlayEntry, wheel: &'a Wheel, machine: &str) -> Result<Self> {
        check_platform(wheel, machine)?;
        check_modules(entry, wheel)?;
        let is_source = |path: &str| {
            let name = path.strip_prefix(&entry.package).and_then(|rest| rest.strip_prefix('/'));
            name.is_some_and(|name| !name.contains('/') && entry.sources.is_match(name))
        };
        let natives = wheel.extension_modules().into_iter().map(|module| module.path().to_owned());
        let sources = wheel.entries().iter().map(Entry::path).filter(|path| is_source(path)).map(str::to_owned);
        // A signature of RECORD would not hold any more.
        let signatures = ["RECORD.jws", "RECORD.p7s"].map(|file| format!("{}/{file}", wheel.dist_info()));
        let signatures = signatures.into_iter().filter(|path| wheel.entry(path).is_some());
        let removed = natives.chain(sources).chain(signatures).collect();
        Ok(Self { entry, wheel, removed })
    }

    /// The files that go.
    pub const fn removed(&self) -> &BTreeSet<String> {
        &self.removed
    }

    /// The files that stay, with their paths in the overlay, whose `.dist-info` is called by its own version.
    fn kept(&self, dist_info: &str) -> Vec<(&Entry, String)> {
        let old = self.wheel.dist_info();
        let moved = |path: &str| match (path.strip_prefix(old), path.strip_prefix(&data_directory(old))) {
            (Some(rest), _) if rest.starts_with('/') => format!("{dist_info}{rest}"),
            (_, Some(rest)) if rest.starts_with('/') => format!("{}{rest}", data_directory(dist_info)),
            _ => path.to_owned(),
        };
        let files = self.wheel.entries().iter().filter(|entry| !entry.is_directory());
        files.filter(|entry| !self.removed.contains(entry.path())).map(|entry| (entry, moved(entry.path()))).collect()
    }
}

/// `p-1.0.dist-info` → `p-1.0.data`.
fn data_directory(dist_info: &str) -> String {
    format!("{}.data", dist_info.trim_end_matches(".dist-info"))
}

fn check_platform(wheel: &Wheel, machine: &str) -> Result<()> {
    let platforms = wheel.name().platform_tags();
    if platforms.iter().any(|platform| upstream::is_for_machine(platform, machine)) {
        return Ok(());
    }
    Err(Failure::usage(format!("{} is not for Linux with glibc on {machine}", wheel.file_name()))
        .remedy(format!("take the wheel of the same release whose platform is manylinux on {machine}"))
        .into())
}

/// Every native module of the wheel is in the entry's package, and is one that the entry replaces; and the other way
/// round.
fn check_modules(entry: &OverlayEntry, wheel: &Wheel) -> Result<()> {
    let package = entry.package_name();
    let expected: BTreeSet<String> = entry.modules.iter().map(|module| format!("{package}.{module}")).collect();
    let found: BTreeSet<String> = wheel.extension_modules().iter().map(|module| module.module().to_owned()).collect();
    if expected == found {
        return Ok(());
    }
    let only = |left: &BTreeSet<String>, right: &BTreeSet<String>, who: &str| {
        left.difference(right).map(|module| format!("only {who} has {module}")).collect::<Vec<_>>()
    };
    Err(Failure::usage(format!("{} has other native modules than the overlay {}", wheel.file_name(), entry.name))
        .details(only(&found, &expected, "the wheel"))
        .details(only(&expected, &found, "the overlay"))
        .remedy("an overlay replaces every native module of a wheel: write an entry for this one, with its range of versions")
        .into())
}

/// What goes into an overlay beside the released wheel.
#[derive(Debug)]
pub struct Additions<'a> {
    /// The project's own wheel, with the native library.
    pub native: &'a Wheel,
    /// Files of the package, by their paths in it: those of modules that the project's own wheel has none for, or another.
    pub files: BTreeMap<String, Vec<u8>>,
    /// The name that licences are kept under, and that the local version starts with.
    pub name: &'a str,
    /// The CPU: `x86_64`.
    pub machine: &'a str,
}

impl Additions<'_> {
    /// The version of the overlay: `0.30.4` → `0.30.4+cuwheel.0.1.0`.
    pub fn version(&self, upstream: &Version) -> Result<Version> {
        local_version(upstream, self.name, self.native.name().version())
    }

    /// The one extension module of the project's wheel.
    fn library(&self) -> Result<ExtensionModule> {
        let mut modules = self.native.extension_modules();
        match (modules.pop(), modules.is_empty()) {
            (Some(only), true) => Ok(only),
            (first, _) => {
                let names = modules.iter().chain(&first).map(|module| module.module().to_owned());
                Err(Failure::usage(format!("{} does not hold one native library", self.native.file_name()))
                    .details(names)
                    .remedy("an overlay is made with the library of a project that has one extension module")
                    .into())
            }
        }
    }

    /// Everything that is added, by path in the overlay.
    fn contents(&self, entry: &OverlayEntry, dist_info: &str) -> Result<BTreeMap<String, Vec<u8>>> {
        let package = &entry.package;
        let read = |path: &str| self.native.read(path).map_err(inspection::unreadable);
        let library = self.library()?;
        let (beside, file) = library.path().rsplit_once('/').unwrap_or_default();
        let mut contents = BTreeMap::from([(format!("{package}/{file}"), read(library.path())?)]);
        for (path, content) in &self.files {
            contents.insert(format!("{package}/{path}"), content.clone());
        }
        // The entry has files for the modules that differ from those of the project's own package.
        let missing = |module: &&String| !self.files.contains_key(&format!("{module}.py"));
        for module in entry.modules.iter().filter(missing) {
            let own = format!("{beside}/{module}.py");
            if self.native.entry(&own).is_none() {
                return Err(no_module_file(entry, module));
            }
            contents.insert(format!("{package}/{module}.py"), read(&own)?);
        }
        let own = self.native.dist_info();
        for path in self.native.entries().iter().filter(|entry| !entry.is_directory()).map(Entry::path) {
            if let Some(licence) = path.strip_prefix(&format!("{own}/licenses/")) {
                contents.insert(format!("{dist_info}/licenses/{}/{licence}", self.name), read(path)?);
            } else if let Some(bill) = path.strip_prefix(&format!("{own}/sboms/")) {
                contents.insert(format!("{dist_info}/sboms/{bill}"), read(path)?);
            }
        }
        Ok(contents)
    }

    /// The tags of the overlay: Python's and the ABI are the library's, the platform is the oldest that every native file
    /// runs on.
    fn file_name(&self, accepted: &Accepted<'_>, version: &Version) -> Result<WheelName> {
        let (own, upstream) = (self.native.name(), accepted.wheel.name());
        let promised = own.platform_tags().iter().filter_map(|tag| GlibcVersion::from_platform_tag(tag)).max();
        let needed = glibc_of_kept(accepted)?;
        let platform = match (promised, needed) {
            (Some(promised), Some(needed)) if needed > promised => {
                format!("manylinux_{}_{}_{}", needed.major, needed.minor, self.machine)
            }
            _ => own.platform_tags().join("."),
        };
        let (python, abi) = (own.python_tags().join("."), own.abi_tags().join("."));
        let name = WheelName::new(upstream.distribution(), &version.to_string(), &python, &abi, &platform)?;
        Ok(match upstream.build() {
            Some(build) => name.with_build(build)?,
            None => name,
        })
    }
}

/// The newest glibc that a native file of the released wheel needs which stays.
fn glibc_of_kept(accepted: &Accepted<'_>) -> Result<Option<GlibcVersion>> {
    let mut newest = None;
    for entry in
        accepted.wheel.entries().iter().filter(|entry| entry.is_elf() && !accepted.removed.contains(entry.path()))
    {
        let content = accepted.wheel.read_entry(entry).map_err(inspection::unreadable)?;
        newest = newest.max(ElfFile::parse(&content)?.glibc_floor().map(|floor| floor.version()));
    }
    Ok(newest)
}

/// Adds a local part to a version; what it may not hold is left out.
fn local_version(upstream: &Version, name: &str, version: &str) -> Result<Version> {
    let part = |text: &str| text.replace(|character: char| !character.is_ascii_alphanumeric(), ".");
    let separator = if upstream.is_local() { "." } else { "+" };
    let text = format!("{upstream}{separator}{}.{}", part(name), part(version));
    Ok(text.parse()?)
}

/// Makes the overlay. The same wheels and files give the same bytes.
pub fn compose(
    accepted: &Accepted<'_>,
    archive: &[u8],
    version: &Version,
    additions: &Additions<'_>,
) -> Result<Overlay> {
    let (wheel, entry) = (accepted.wheel, accepted.entry);
    let file_name = additions.file_name(accepted, version)?;
    let dist_info = format!("{}-{}.dist-info", file_name.distribution(), file_name.version());
    let in_dist_info = |file: &str| format!("{dist_info}/{file}");
    let mut added = additions.contents(entry, &dist_info)?;
    let (native, upstream) = (origin(additions.native), origin(wheel));
    let bill = bill::document(file_name.version(), &upstream, &native);
    added.insert(in_dist_info("sboms/overlay.cyclonedx.json"), bill);
    let kept = accepted.kept(&dist_info);
    let note_path = in_dist_info(NOTE);
    if let Some((there, _)) = kept.iter().find(|(_, path)| added.contains_key(path) || *path == note_path) {
        return Err(collision(there.path(), entry));
    }
    let mut changed = Changed {
        removed: accepted.removed.iter().cloned().collect(),
        added: added.keys().cloned().chain([note_path.clone()]).collect(),
        rewritten: ["METADATA", "RECORD", "WHEEL"].map(in_dist_info).to_vec(),
    };
    changed.added.sort();
    added.insert(note_path, note(&changed, &upstream, &native, entry));

    let rewritten = rewritten_files(accepted, &file_name, version, additions)?;
    let mut source = wheel_writer::open(archive)?;
    let mut writer = Writer::default();
    for (entry, path) in kept {
        let name = path.strip_prefix(&dist_info).and_then(|rest| rest.strip_prefix('/'));
        if name == Some("RECORD") {
            continue;
        }
        if let Some(content) = name.and_then(|name| rewritten.get(name)) {
            writer.add(&path, content.as_bytes(), entry.unix_mode())?;
        } else if path == entry.path() {
            writer.copy_named(&mut source, &path)?;
        } else {
            writer.add(&path, &wheel.read_entry(entry).map_err(inspection::unreadable)?, entry.unix_mode())?;
        }
    }
    for (path, content) in &added {
        writer.add(path, content, None)?;
    }
    let bytes = writer.finish(&in_dist_info("RECORD"))?;
    Ok(Overlay { file: file_name.to_string(), bytes, changed })
}

/// METADATA and WHEEL of the overlay, by name.
fn rewritten_files(
    accepted: &Accepted<'_>,
    file_name: &WheelName,
    version: &Version,
    additions: &Additions<'_>,
) -> Result<BTreeMap<&'static str, String>> {
    let wheel = accepted.wheel;
    let text = |file: &str| -> Result<String> {
        let content = wheel.read(&format!("{}/{file}", wheel.dist_info())).map_err(inspection::unreadable)?;
        Ok(String::from_utf8(content)?)
    };
    let native = Native {
        python_floor: python_floor(file_name)?,
        metadata: additions.native.metadata().headers(),
        licence_directory: additions.name,
    };
    let metadata = headers::metadata(&text("METADATA")?, wheel.metadata().headers(), version, &native)?;
    let info = headers::wheel_info(&text("WHEEL")?, &file_name.tags())?;
    Ok(BTreeMap::from([("METADATA", metadata), ("WHEEL", info)]))
}

/// The oldest Python of a wheel's tags: `cp311` → `(3, 11)`.
fn python_floor(name: &WheelName) -> Result<(u8, u8)> {
    let version = |tag: &String| {
        let digits = tag.strip_prefix("cp")?;
        Some((digits.get(..1)?.parse().ok()?, digits.get(1..)?.parse().ok()?))
    };
    name.python_tags().iter().filter_map(version).min().ok_or_else(|| {
        Failure::usage(format!("the native library of {name} is not for CPython"))
            .remedy("overlays are made for CPython: build the wheel with it")
            .into()
    })
}

fn no_module_file(entry: &OverlayEntry, module: &str) -> anyhow::Error {
    Failure::usage(format!("{}/{module}.py does not exist", entry.files))
        .remedy(format!(
            "write a file for every module of tool.cuwheel.overlay.{}.modules, which takes its names from the native library",
            entry.name
        ))
        .into()
}

fn collision(path: &str, entry: &OverlayEntry) -> anyhow::Error {
    Failure::usage(format!("the overlay {} would overwrite {path} of the wheel", entry.name))
        .remedy(format!(
            "only native modules and their sources are replaced: give the file in {} another name, or take it out",
            entry.files
        ))
        .into()
}

fn origin(wheel: &Wheel) -> Origin<'_> {
    Origin {
        distribution: wheel.metadata().name(),
        version: wheel.metadata().version(),
        file: wheel.file_name(),
        sha256: wheel.sha256().to_string(),
    }
}

/// What was changed, for whoever finds the wheel installed.
fn note(changed: &Changed, upstream: &Origin<'_>, native: &Origin<'_>, entry: &OverlayEntry) -> Vec<u8> {
    let wheel = |origin: &Origin<'_>| {
        json!({
            "distribution": origin.distribution,
            "version": origin.version,
            "file": origin.file,
            "sha256": origin.sha256,
        })
    };
    let document = json!({
        "schema": NOTE_SCHEMA,
        "about": "A released wheel with its native modules replaced. Every file that is not listed is as it was released.",
        "generator": concat!("cuwheel ", env!("CARGO_PKG_VERSION")),
        "overlay": entry.name,
        "released": wheel(upstream),
        "native": wheel(native),
        "package": entry.package,
        "modules": entry.modules,
        "changed": changed,
    });
    format!("{document:#}\n").into_bytes()
}

/// The files of an entry: everything below its directory, without what Python caches.
pub fn entry_files(root: &std::path::Path, entry: &OverlayEntry) -> Result<BTreeMap<String, Vec<u8>>> {
    let directory = root.join(&entry.files);
    if !directory.is_dir() {
        return Err(Failure::usage(format!("{} does not exist", directory.display()))
            .remedy(format!(
                "tool.cuwheel.overlay.{}.files names the directory with the files of its modules",
                entry.name
            ))
            .into());
    }
    files::read_tree(&directory)
}
