//! Whether an edit of a library changed what it was meant to change, and nothing else.
//!
//! Tools that edit ELF files have left segments that no loader takes, and fatbins that no driver reads. So everything that is
//! loaded has to be where it was with the bytes that it had, but for the tables that an edit is about; and those have to
//! say the same as before, but for the edit. Not for judging the file as it was: the rules do.

use std::collections::BTreeSet;

use cuwheel_inspect::elf::{DynamicSymbol, ElfFile, ElfLayout, Section, Segment, SegmentKind};

use crate::error::{Failure, Result};
use crate::patchelf::Edit;

/// Sections that an edit is about: they are compared by what they say.
const TABLES: &[&str] = &[".dynamic", ".dynstr", ".dynsym", ".gnu.version_r"];
/// Sections that may be moved to make room, because only the dynamic table and the table of segments lead to them.
const MOVABLE: &[&str] = &[".gnu.hash", ".hash", ".gnu.version", ".gnu.version_d", ".interp"];
/// Beginnings of the names of further ones.
const MOVABLE_GROUPS: &[&str] = &[".note", ".rel"];
/// Sections that no loader reads and that hold numbers of sections.
const LINKER_TABLES: &[&str] = &[".symtab", ".shstrtab"];

/// Fails when `after` differs from `before` in more than `edit`. `name` is what the library is called in messages.
pub fn check(name: &str, before: &[u8], after: &[u8], edit: &Edit) -> Result<()> {
    let differences = differences(before, after, edit).map_err(|error| {
        Failure::failed(format!("{name} cannot be read after it was edited: {error}")).remedy(REMEDY)
    })?;
    if differences.is_empty() {
        return Ok(());
    }
    Err(Failure::failed(format!("editing {name} changed more than was asked for"))
        .details(differences)
        .remedy(REMEDY)
        .into())
}

const REMEDY: &str = "nothing was written: link the library again with the search path that it is meant to have";

/// What differs beyond `edit`, in words.
fn differences(before: &[u8], after: &[u8], edit: &Edit) -> Result<Vec<String>, cuwheel_inspect::elf::ElfError> {
    let mut found = Vec::new();
    let (old, new) = (ElfLayout::parse(before)?, ElfLayout::parse(after)?);
    if old.kind() != new.kind() || old.is_program() != new.is_program() {
        found.push("it is a file of another kind".to_owned());
    }
    compare_segments(&old, &new, &mut found);
    compare_sections((&old, before), (&new, after), &mut found);
    compare_tables(&ElfFile::parse(before)?, &ElfFile::parse(after)?, edit, &mut found);
    Ok(found)
}

/// Whether nothing but the dynamic table and the table of segments leads to a section, so that it may be moved.
fn may_move(section: &Section) -> bool {
    let name = section.name.as_str();
    let is_of = |groups: &[&str]| groups.iter().any(|group| name.starts_with(group));
    !section.is_loaded || TABLES.contains(&name) || MOVABLE.contains(&name) || is_of(MOVABLE_GROUPS)
}

/// Segments that hold what may not move have to be mapped where they were, aligned as they were. Those of an earlier edit
/// hold tables only.
fn compare_segments(before: &ElfLayout, after: &ElfLayout, found: &mut Vec<String>) {
    let facts =
        |segment: &Segment| (segment.address, segment.memory_size_bytes, segment.alignment, segment.is_executable);
    let holds = |segment: &Segment, section: &Section| {
        section.address.checked_sub(segment.address).is_some_and(|distance| distance < segment.memory_size_bytes)
    };
    for segment in loaded(before) {
        let is_fixed = before.sections().iter().any(|section| !may_move(section) && holds(segment, section));
        if is_fixed && !loaded(after).any(|other| facts(other) == facts(segment)) {
            found.push(format!("the segment at address {:#x} is mapped in another way", segment.address));
        }
    }
    let least = loaded(before).map(|segment| segment.alignment).min().unwrap_or_default();
    for segment in loaded(after) {
        if segment.alignment < least {
            found.push(format!("the segment at address {:#x} asks for less alignment than before", segment.address));
        }
        if !segment.address.wrapping_sub(segment.offset).is_multiple_of(segment.alignment.max(1)) {
            found.push(format!("the segment at address {:#x} is not aligned as in the file", segment.address));
        }
    }
}

fn loaded(layout: &ElfLayout) -> impl Iterator<Item = &Segment> {
    layout.segments().iter().filter(|segment| segment.kind == SegmentKind::Load)
}

fn compare_sections(before: (&ElfLayout, &[u8]), after: (&ElfLayout, &[u8]), found: &mut Vec<String>) {
    for section in before.0.sections().iter().filter(|section| !LINKER_TABLES.contains(&section.name.as_str())) {
        let name = section.name.as_str();
        let is_it = |other: &&Section| other.name == name && (may_move(section) || other.address == section.address);
        let candidates: Vec<&Section> = after.0.sections().iter().filter(is_it).collect();
        if candidates.is_empty() {
            found.push(format!("the section {name} is not where it was"));
        } else if !candidates.iter().all(|other| is_mapped(other, after.0)) {
            found.push(format!("the section {name} is not mapped where it says"));
        } else if !TABLES.contains(&name)
            && !candidates.iter().any(|other| content(other, after.1) == content(section, before.1))
        {
            found.push(format!("the section {name} has another content"));
        }
    }
}

/// Whether a segment maps the bytes of a section to its address.
fn is_mapped(section: &Section, layout: &ElfLayout) -> bool {
    let takes_no_room = !section.is_loaded || section.file_size_bytes == 0;
    takes_no_room
        || loaded(layout).any(|segment| {
            let distance = section.offset.checked_sub(segment.offset);
            let end = distance.and_then(|distance| distance.checked_add(section.file_size_bytes));
            distance == section.address.checked_sub(segment.address)
                && end.is_some_and(|end| end <= segment.file_size_bytes)
        })
}

/// The bytes of a section; `None` when they are not in the file.
fn content<'data>(section: &Section, data: &'data [u8]) -> Option<&'data [u8]> {
    // What takes no room in the file may be said to begin anywhere.
    if section.file_size_bytes == 0 {
        return Some(&[]);
    }
    let start = usize::try_from(section.offset).ok()?;
    let end = start.checked_add(usize::try_from(section.file_size_bytes).ok()?)?;
    data.get(start..end)
}

/// What the dynamic table says, before with the edit made and after.
fn compare_tables(before: &ElfFile<'_>, after: &ElfFile<'_>, edit: &Edit, found: &mut Vec<String>) {
    let renamed = |library: &str| edit.needed.get(library).map_or(library, String::as_str).to_owned();
    let mut expect = |what: &str, is_same: bool| {
        if !is_same {
            found.push(format!("{what} not as planned"));
        }
    };
    expect("the processor is", before.machine() == after.machine());
    expect("its own name is", edit.soname.as_deref().or(before.soname()) == after.soname());
    let needed: Vec<String> = before.needed().iter().map(|library| renamed(library)).collect();
    expect("the needed libraries are", needed == after.needed());
    let search_paths = match &edit.run_path {
        Some(entries) => (None, (!entries.is_empty()).then(|| entries.join(":"))),
        None => (before.rpath(), before.runpath().map(str::to_owned)),
    };
    expect("the search path is", search_paths == (after.rpath(), after.runpath().map(str::to_owned)));
    let versions = |file: &ElfFile<'_>, renamed: &dyn Fn(&str) -> String| -> BTreeSet<(String, String, Vec<String>)> {
        let symbols = |symbols: &[&str]| symbols.iter().map(|symbol| (*symbol).to_owned()).collect();
        let needs = file.version_needs().iter();
        needs.map(|need| (renamed(need.library()), need.version().to_owned(), symbols(need.symbols()))).collect()
    };
    expect("the versions of needed symbols are", versions(before, &renamed) == versions(after, &str::to_owned));
    let symbols = |symbols: &[DynamicSymbol<'_>]| -> BTreeSet<(String, Option<String>, bool, bool)> {
        let facts = |symbol: &DynamicSymbol<'_>| {
            let version = symbol.version().map(str::to_owned);
            (symbol.name().to_owned(), version, symbol.is_default(), symbol.is_weak())
        };
        symbols.iter().map(facts).collect()
    };
    expect("the undefined symbols are", symbols(before.undefined_symbols()) == symbols(after.undefined_symbols()));
    expect("the exported symbols are", symbols(before.defined_symbols()) == symbols(after.defined_symbols()));
}
