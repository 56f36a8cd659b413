//! Rules on the archive: that it can be read, that RECORD is true, names, modes, and what does not belong inside.

use std::collections::HashSet;

use super::catalog::{
    DIRECTORY_ENTRY, DUPLICATE_ENTRY, METADATA, NAME_MISMATCH, NOT_EXECUTABLE, RECORD_DUPLICATE_ROW, RECORD_EXTRA,
    RECORD_HASH, RECORD_MISSING, RECORD_SIZE, RECORD_UNSUPPORTED_HASH, RECORD_WITHOUT_HASH, STRAY_FILE, SYMLINK,
    UNREADABLE, UNSAFE_PATH, VERSION_MISMATCH, WORLD_WRITABLE,
};
use super::{ExaminedWheel, Finding, Policy};
use crate::version::Version;
use crate::wheel::{ArchiveError, Entry, RecordFinding, Wheel, WheelError, WheelFault};

const FILE_TYPE: u32 = 0o170_000;
const SYMBOLIC_LINK: u32 = 0o120_000;

/// What is wrong with a wheel that cannot be read.
#[must_use]
pub fn unreadable(error: &WheelError, policy: &Policy) -> Vec<Finding> {
    let fault = error.fault();
    let finding = match fault {
        WheelFault::Archive(
            ArchiveError::UnsafeName { name, offset, .. } | ArchiveError::NameNotUtf8 { name, offset },
        ) => Finding::new(&UNSAFE_PATH, fault.to_string()).at(name).offset(*offset),
        WheelFault::Archive(archive) => with_place(Finding::new(&UNREADABLE, fault.to_string()), archive),
        WheelFault::Io(_) | WheelFault::Name(_) => Finding::new(&UNREADABLE, fault.to_string()),
        _ => Finding::new(&METADATA, fault.to_string()),
    };
    policy.apply(vec![finding])
}

fn with_place(finding: Finding, error: &ArchiveError) -> Finding {
    match error {
        ArchiveError::Io { offset, .. } | ArchiveError::Damaged { offset, .. } => finding.offset(*offset),
        ArchiveError::HeaderMismatch { name, offset, .. }
        | ArchiveError::WrongChecksum { name, offset }
        | ArchiveError::Inflate { name, offset, .. }
        | ArchiveError::Overlap { second: name, offset, .. } => finding.at(name).offset(*offset),
        ArchiveError::Unsupported { name, .. }
        | ArchiveError::ImpossibleSize { name, .. }
        | ArchiveError::WrongSize { name, .. } => finding.at(name),
        _ => finding,
    }
}

pub(super) fn check(examined: &ExaminedWheel, findings: &mut Vec<Finding>) {
    let wheel = examined.wheel();
    findings.extend(wheel.verify_record().iter().map(record_finding));
    check_headers(wheel, findings);
    check_identity(wheel, findings);
    check_directories(wheel, findings);
    for entry in wheel.entries().iter().filter(|entry| !entry.is_directory()) {
        check_mode(entry, findings);
    }
    check_programs(examined, findings);
    check_strays(wheel, findings);
}

fn record_finding(found: &RecordFinding) -> Finding {
    let finding = match found {
        RecordFinding::DuplicateEntry { first_offset, offset, .. } => {
            let message = format!("the archive holds it twice, at offsets {first_offset} and {offset}");
            Finding::new(&DUPLICATE_ENTRY, message).offset(*offset)
        }
        RecordFinding::NotInRecord { .. } => Finding::new(&RECORD_MISSING, "RECORD does not list it"),
        RecordFinding::NotInArchive { line, .. } => {
            Finding::new(&RECORD_EXTRA, format!("RECORD lists it (line {line}) and the archive does not hold it"))
        }
        RecordFinding::HashMismatch { algorithm, recorded, actual, .. } => {
            Finding::new(&RECORD_HASH, format!("its {algorithm} is {actual}, and RECORD says {recorded}"))
        }
        RecordFinding::SizeMismatch { recorded_bytes, actual_bytes, .. } => {
            Finding::new(&RECORD_SIZE, format!("it has {actual_bytes} bytes, and RECORD says {recorded_bytes}"))
        }
        RecordFinding::DuplicateRow { first_line, line, .. } => {
            Finding::new(&RECORD_DUPLICATE_ROW, format!("RECORD lists it on lines {first_line} and {line}"))
        }
        RecordFinding::UnsupportedHash { algorithm, line, .. } => {
            Finding::new(&RECORD_UNSUPPORTED_HASH, format!("RECORD has its `{algorithm}` (line {line})"))
        }
        RecordFinding::MissingHash { line, .. } => {
            Finding::new(&RECORD_WITHOUT_HASH, format!("RECORD has no hash of it (line {line})"))
        }
    };
    finding.at(found.path())
}

fn check_headers(wheel: &Wheel, findings: &mut Vec<Finding>) {
    for (file, headers) in [("METADATA", wheel.metadata().headers()), ("WHEEL", wheel.info().headers())] {
        if let Some(line) = headers.malformed_line() {
            let message = format!("line {line} is no header, and installers do not see the headers after it");
            findings.push(Finding::new(&METADATA, message).at(&format!("{}/{file}", wheel.dist_info())));
        }
    }
}

/// The project and its version are said in three places.
fn check_identity(wheel: &Wheel, findings: &mut Vec<Finding>) {
    let (name, metadata) = (wheel.name(), wheel.metadata());
    let metadata_path = format!("{}/METADATA", wheel.dist_info());
    if !name.is_distribution(metadata.name()) {
        let message =
            format!("it names the project `{}`, and the file name `{}`", metadata.name(), name.distribution());
        findings.push(Finding::new(&NAME_MISMATCH, message).at(&metadata_path));
    }
    if !name.is_version(metadata.version()) {
        let message = format!("it says version {}, and the file name {}", metadata.version(), name.version());
        findings.push(Finding::new(&VERSION_MISMATCH, message).at(&metadata_path));
    }
    let stem = wheel.dist_info().strip_suffix(".dist-info").unwrap_or_default();
    let (project, version) = stem.rsplit_once('-').unwrap_or((stem, ""));
    if !name.is_distribution(project) {
        let message = format!("its name is of `{project}`, and the file name of `{}`", name.distribution());
        findings.push(Finding::new(&NAME_MISMATCH, message).at(wheel.dist_info()));
    }
    // Local versions are escaped in names of directories.
    if !name.is_version(version) && !name.is_version(&version.replacen('_', "+", 1)) {
        let message = format!("its name is of version `{version}`, and the file name of {}", name.version());
        findings.push(Finding::new(&VERSION_MISMATCH, message).at(wheel.dist_info()));
    }
}

/// One finding, however many there are: common writers make them.
fn check_directories(wheel: &Wheel, findings: &mut Vec<Finding>) {
    let mut directories = wheel.entries().iter().filter(|entry| entry.is_directory());
    let Some(first) = directories.next() else { return };
    let message = match directories.count() {
        0 => "it is a directory".to_owned(),
        more => format!("it is a directory, and so are {more} more entries"),
    };
    findings.push(Finding::new(&DIRECTORY_ENTRY, message).at(first.path()).offset(first.header_offset()));
}

fn check_mode(entry: &Entry, findings: &mut Vec<Finding>) {
    let Some(mode) = entry.unix_mode() else { return };
    if mode & FILE_TYPE == SYMBOLIC_LINK {
        findings.push(Finding::new(&SYMLINK, "it is a symbolic link").at(entry.path()).offset(entry.header_offset()));
    } else if mode & 0o002 != 0 {
        findings.push(Finding::new(&WORLD_WRITABLE, format!("its mode is {:o}", mode & 0o7777)).at(entry.path()));
    }
}

fn check_programs(examined: &ExaminedWheel, findings: &mut Vec<Finding>) {
    for (entry, _) in examined.libraries().filter(|(_, native)| native.is_program) {
        // Installers make scripts executable whatever their mode is; some libraries are programs as well.
        let is_script = entry.path().split('/').nth(1) == Some("scripts");
        let Some(mode) = entry.unix_mode() else { continue };
        if mode & 0o111 == 0 && !is_script && !entry.is_shared_library() {
            let message = format!("it is a program, and its mode is {:o}", mode & 0o777);
            findings.push(Finding::new(&NOT_EXECUTABLE, message).at(entry.path()));
        }
    }
}

/// One finding for each directory or file that was left behind, however much is below it.
fn check_strays(wheel: &Wheel, findings: &mut Vec<Finding>) {
    let mut seen: HashSet<&str> = HashSet::new();
    for entry in wheel.entries() {
        let Some((stray, what)) = stray(entry.path()) else { continue };
        if seen.insert(stray) {
            findings.push(Finding::new(&STRAY_FILE, what).at(stray));
        }
    }
}

/// The first part of `path` that is a leftover, and what it is.
fn stray(path: &str) -> Option<(&str, &'static str)> {
    let mut end = 0;
    let parts: Vec<&str> = path.split('/').collect();
    for (position, part) in parts.iter().enumerate() {
        end += part.len();
        let next = parts.get(position + 1).copied();
        let what = match next {
            Some(next) => stray_directory(part, next),
            None => stray_file(part),
        };
        if let Some(what) = what {
            return Some((&path[..end], what));
        }
        end += 1;
    }
    None
}

fn stray_directory(name: &str, next: &str) -> Option<&'static str> {
    match name {
        ".git" | ".hg" | ".svn" => Some("it is a repository"),
        "__pycache__" | ".pytest_cache" | ".mypy_cache" | ".ruff_cache" | ".hypothesis" | ".ipynb_checkpoints" => {
            Some("it is a cache")
        }
        ".tox" | ".nox" | ".venv" => Some("it is a virtual environment"),
        // Packages may have these names: what lies inside tells.
        "target"
            if matches!(next, "debug" | "release" | "maturin" | "wheels" | "CACHEDIR.TAG" | ".rustc_info.json") =>
        {
            Some("it is cargo's target directory")
        }
        "build" if ["lib.", "temp.", "bdist."].iter().any(|prefix| next.starts_with(prefix)) => {
            Some("it is a build directory")
        }
        "CMakeFiles" | ".eggs" => Some("it is a build directory"),
        name if name.ends_with(".egg-info") => Some("it is what an editable or legacy build leaves"),
        _ => None,
    }
}

fn stray_file(name: &str) -> Option<&'static str> {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
    let is_sdist = || {
        let (_, version) = name.strip_suffix(".tar.gz")?.rsplit_once('-')?;
        version.parse::<Version>().ok()
    };
    match name {
        "pyvenv.cfg" => Some("it belongs to a virtual environment"),
        ".DS_Store" => Some("it is a file of the build machine's desktop"),
        _ if extension == Some("whl") => Some("it is a wheel"),
        _ if is_sdist().is_some() => Some("it is an sdist"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leftovers_are_named_by_their_topmost_part() {
        for (path, expected) in [
            ("pkg/__pycache__/a.pyc", Some("pkg/__pycache__")),
            ("target/release/libx.so", Some("target")),
            ("pkg/target/mod.py", None),
            ("build/__init__.py", None),
            ("build/lib.linux-x86_64/a.py", Some("build")),
            (".git/objects/ab/cd", Some(".git")),
            ("pkg/.gitignore", None),
            ("venv/pyvenv.cfg", Some("venv/pyvenv.cfg")),
            ("dist/pkg-1.0-py3-none-any.whl", Some("dist/pkg-1.0-py3-none-any.whl")),
            ("dist/pkg-1.0.tar.gz", Some("dist/pkg-1.0.tar.gz")),
            ("dateutil/zoneinfo/dateutil-zoneinfo.tar.gz", None),
            ("pkg.egg-info/PKG-INFO", Some("pkg.egg-info")),
            ("pkg/größe/x", None),
            ("", None),
        ] {
            assert_eq!(stray(path).map(|(stray, _)| stray), expected, "{path}");
        }
    }
}
