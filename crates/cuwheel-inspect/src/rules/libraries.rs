//! Rules on native files: what they are, what they are linked to, where they look, and whether a loader takes them.

use std::collections::BTreeSet;

use super::catalog::{
    ABSOLUTE_RPATH, DEBUG_INFO, DRIVER_INSIDE, DRIVER_NEEDED, ESCAPING_RPATH, EXECUTABLE_STACK, HEADERS_UNMAPPED,
    LIBRARY_UNREADABLE, PYTHON_NEEDED, SEGMENTS, STUBS_RPATH, VERSION_NEEDS, WORKING_DIRECTORY_RPATH,
};
use super::driver::Family;
use super::native::NativeFile;
use super::search_path::{self, Fault};
use super::{ExaminedWheel, Finding, listed};
use crate::elf::{ElfKind, Segment, SegmentKind};
use crate::size::human_size;
use crate::wheel::{Entry, installed_path};

/// Pages have at least this size on every processor that Python runs on.
const SMALLEST_PAGE_BYTES: u64 = 4096;
/// Less is not worth a word.
const DEBUG_INFO_BYTES: u64 = 64 * 1024;

pub(super) fn check(examined: &ExaminedWheel, findings: &mut Vec<Finding>) {
    for entry in examined.wheel().entries() {
        let soname = examined.native(entry.path()).and_then(|native| native.soname.as_deref());
        check_driver_inside(entry, soname, findings);
    }
    for (entry, native) in examined.natives() {
        if let (Some(fault), false) = (&native.fault, native.is_foreign()) {
            findings.push(Finding::new(&LIBRARY_UNREADABLE, fault.clone()).at(entry.path()));
        }
    }
    for (entry, native) in examined.libraries() {
        let mut found = Vec::new();
        check_needed(native, &mut found);
        check_search_paths(entry, native, &mut found);
        check_version_needs(native, &mut found);
        check_segments(native, &mut found);
        check_headers(native, &mut found);
        check_stack(native, &mut found);
        check_debug_info(native, &mut found);
        findings.extend(found.into_iter().map(|finding| finding.at(entry.path())));
    }
}

fn check_driver_inside(entry: &Entry, soname: Option<&str>, findings: &mut Vec<Finding>) {
    let path = entry.path();
    // A toolkit's stubs are for linkers, and no loader looks there.
    if path.split('/').any(|part| part == "stubs") {
        return;
    }
    let file = path.rsplit('/').next().unwrap_or(path);
    if let Some(family) = Family::of(file).or_else(|| soname.and_then(Family::of)) {
        findings.push(Finding::new(&DRIVER_INSIDE, format!("it is {}", family.describe())).at(path));
    }
}

fn check_needed(native: &NativeFile, found: &mut Vec<Finding>) {
    for library in &native.needed {
        if Family::of(library) == Some(Family::Cuda) {
            found.push(Finding::new(&DRIVER_NEEDED, format!("it is linked to {library}")).symbol(Some(library)));
        }
        if library.starts_with("libpython") {
            found.push(Finding::new(&PYTHON_NEEDED, format!("it is linked to {library}")).symbol(Some(library)));
        }
    }
}

fn check_search_paths(entry: &Entry, native: &NativeFile, found: &mut Vec<Finding>) {
    let installed = installed_path(entry.path());
    // glibc skips a path that is empty as a whole; an empty entry among others is the working directory.
    for (kind, path) in native.search_paths.iter().filter(|(_, path)| !path.is_empty()) {
        let items: BTreeSet<&str> = path.split(':').collect();
        for item in items {
            let (rule, what) = match search_path::fault(item, installed) {
                None => continue,
                Some(Fault::Absolute) => (&ABSOLUTE_RPATH, "is a path of the build machine"),
                Some(Fault::WorkingDirectory) => (&WORKING_DIRECTORY_RPATH, "is relative to the working directory"),
                Some(Fault::Escapes) => (&ESCAPING_RPATH, "leads out of site-packages"),
                Some(Fault::Stubs) => (&STUBS_RPATH, "is a directory of stubs"),
            };
            found.push(Finding::new(rule, format!("the {kind} entry `{item}` {what}")));
        }
    }
}

fn check_version_needs(native: &NativeFile, found: &mut Vec<Finding>) {
    if native.stray_version_needs.is_empty() {
        return;
    }
    let shown: Vec<String> =
        native.stray_version_needs.iter().map(|(library, version)| format!("{version} of {library}")).collect();
    let message = format!("it needs {}, and does not need that library", listed(&shown));
    found.push(Finding::new(&VERSION_NEEDS, message));
}

/// What glibc's loader asks of each segment that it maps, and that the file holds what it maps. The kernel, which maps
/// programs, does not ask for pages.
fn check_segments(native: &NativeFile, found: &mut Vec<Finding>) {
    for segment in native.segments.iter().filter(|segment| segment.kind == SegmentKind::Load) {
        let alignment = segment.alignment.max(1);
        let is_of_pages = native.is_program || alignment.is_multiple_of(SMALLEST_PAGE_BYTES);
        let wrong = if !alignment.is_power_of_two() || !is_of_pages {
            format!("has the alignment {alignment}, which is no whole number of pages")
        } else if !segment.address.wrapping_sub(segment.offset).is_multiple_of(alignment) {
            format!("has the address {:#x}, which is not aligned as in the file", segment.address)
        } else if segment.offset.checked_add(segment.file_size_bytes).is_none_or(|end| end > native.size_bytes) {
            "reaches beyond the end of the file".to_owned()
        } else {
            continue;
        };
        let message = format!("the segment at offset {:#x} {wrong}", segment.offset);
        found.push(Finding::new(&SEGMENTS, message));
    }
}

fn check_headers(native: &NativeFile, found: &mut Vec<Finding>) {
    let end = |segment: &Segment| segment.address.saturating_add(segment.memory_size_bytes);
    let Some(headers) = native.segments.iter().find(|segment| segment.kind == SegmentKind::Headers) else { return };
    let is_mapped = native.segments.iter().any(|segment| {
        segment.kind == SegmentKind::Load && segment.address <= headers.address && end(headers) <= end(segment)
    });
    if !is_mapped {
        let message = format!("no segment maps the table of segments at {:#x}", headers.address);
        found.push(Finding::new(&HEADERS_UNMAPPED, message));
    }
}

fn check_stack(native: &NativeFile, found: &mut Vec<Finding>) {
    let stack = native.segments.iter().find(|segment| segment.kind == SegmentKind::Stack);
    if native.kind == Some(ElfKind::Shared) && stack.is_some_and(|stack| stack.is_executable) {
        found.push(Finding::new(&EXECUTABLE_STACK, "it asks for an executable stack"));
    }
}

fn check_debug_info(native: &NativeFile, found: &mut Vec<Finding>) {
    let debug = native.sections.iter().filter(|section| section.is_debug_info());
    let size_bytes = debug.map(|section| section.file_size_bytes).fold(0, u64::saturating_add);
    if size_bytes >= DEBUG_INFO_BYTES {
        let message =
            format!("{} of {} are debugging information", human_size(size_bytes), human_size(native.size_bytes));
        found.push(Finding::new(&DEBUG_INFO, message));
    }
}
