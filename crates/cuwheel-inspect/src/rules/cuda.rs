//! Rules on CUDA: GPU code for the GPUs that are meant, and one toolkit in everything that names one.

use std::collections::BTreeSet;

use super::catalog::{
    ARCHITECTURE_EXTRA, ARCHITECTURE_MISSING, DEPENDENCY_MISSING, DEPENDENCY_TOOLKIT, FATBIN_DAMAGED, NO_PTX,
    TOOLKIT_MISMATCH,
};
use super::cuda_libraries::{Family, labelled_major};
use super::native::NativeFile;
use super::{ExaminedWheel, Finding, Policy, listed};
use crate::fatbin::{Architecture, ImageKind};
use crate::wheel::{Requirement, normalize_distribution};

pub(super) fn check(examined: &ExaminedWheel, policy: &Policy, findings: &mut Vec<Finding>) {
    check_images(examined, findings);
    check_architectures(examined, policy, findings);
    let label = label(examined);
    for (entry, native) in examined.natives() {
        let mut found = Vec::new();
        check_toolkits(native, label.as_ref(), &mut found);
        findings.extend(found.into_iter().map(|finding| finding.at(entry.path())));
    }
    check_dependencies(examined, findings);
}

fn check_images(examined: &ExaminedWheel, findings: &mut Vec<Finding>) {
    for (entry, native) in examined.natives() {
        let code = &native.gpu_code;
        for fault in &code.faults {
            let message = format!("a fatbin in it is damaged {fault}");
            findings.push(Finding::new(&FATBIN_DAMAGED, message).at(entry.path()));
        }
        // A file of machine code has its PTX in another file.
        let newest = code.architectures(ImageKind::Sass).next_back().filter(|_| !code.is_one_image);
        if let (Some(newest), true, false) = (newest, code.faults.is_empty(), code.runs_on_newer_gpus()) {
            let text = code.architectures(ImageKind::Ptx).map(|limited| ImageKind::Ptx.name(limited));
            let text: Vec<String> = text.collect();
            let what = if text.is_empty() { "no PTX".to_owned() } else { format!("PTX for {} only", listed(&text)) };
            let message = format!("its newest code is {}, and it has {what}", ImageKind::Sass.name(newest));
            findings.push(Finding::new(&NO_PTX, message).at(entry.path()));
        }
    }
}

fn check_architectures(examined: &ExaminedWheel, policy: &Policy, findings: &mut Vec<Finding>) {
    let declared: BTreeSet<(ImageKind, Architecture)> = policy.architectures.iter().copied().collect();
    if declared.is_empty() {
        return;
    }
    let names = |images: Vec<&(ImageKind, Architecture)>| -> Vec<String> {
        images.into_iter().map(|(kind, architecture)| kind.name(*architecture)).collect()
    };
    let mut found_code = false;
    let mut check_one = |contained: &BTreeSet<(ImageKind, Architecture)>, path: Option<&str>| {
        found_code = true;
        let who = path.map_or("the files with one architecture each", |_| "it");
        let parts = [
            (&ARCHITECTURE_MISSING, "lacks", "is", names(declared.difference(contained).collect())),
            (&ARCHITECTURE_EXTRA, "holds", "is not", names(contained.difference(&declared).collect())),
        ];
        for (rule, verb, is, names) in parts.into_iter().filter(|(.., names)| !names.is_empty()) {
            let verb = if path.is_some() { verb } else { verb.trim_end_matches('s') };
            let finding = Finding::new(rule, format!("{who} {verb} {}, and that {is} declared", listed(&names)));
            findings.push(path.into_iter().fold(finding, Finding::at));
        }
    };
    let mut separate = BTreeSet::new();
    for (entry, native) in examined.natives() {
        let contained = native.gpu_code.images.keys().copied();
        if native.gpu_code.is_one_image {
            separate.extend(contained);
        } else if !native.gpu_code.images.is_empty() {
            check_one(&contained.collect(), Some(entry.path()));
        }
    }
    if !separate.is_empty() {
        check_one(&separate, None);
    }
    if !found_code {
        let message = format!("no file holds GPU code, and {} is declared", listed(&names(declared.iter().collect())));
        findings.push(Finding::new(&ARCHITECTURE_MISSING, message));
    }
}

/// Something that says which toolkit a file is of.
struct Witness {
    what: String,
    major: u32,
}

/// What the names of the wheel say: `pkg-cu12`, `1.0+cu130`.
fn label(examined: &ExaminedWheel) -> Option<Witness> {
    let name = examined.wheel().name();
    let named =
        [name.distribution(), name.version()].into_iter().find_map(|label| Some((label, labelled_major(label)?)));
    named.map(|(label, major)| Witness { what: format!("the wheel is called {label}"), major })
}

/// Of each toolkit that a file is linked to, one library.
fn linked(native: &NativeFile) -> Vec<Witness> {
    let mut witnesses: Vec<Witness> = Vec::new();
    for library in &native.needed {
        let major = Family::of(library).and_then(|family| family.toolkit_of(library));
        if let Some(major) = major.filter(|major| !witnesses.iter().any(|known| known.major == *major)) {
            witnesses.push(Witness { what: format!("it is linked to {library}"), major });
        }
    }
    witnesses
}

fn check_toolkits(native: &NativeFile, label: Option<&Witness>, found: &mut Vec<Finding>) {
    let linked = linked(native);
    let promised: Vec<&Witness> = label.into_iter().chain(&linked).collect();
    if let Some((first, other)) = promised.iter().find_map(|first| {
        let other = promised.iter().find(|other| other.major != first.major)?;
        Some((first, other))
    }) {
        let message = format!("{}, and {}", first.what, other.what);
        found.push(Finding::new(&TOOLKIT_MISMATCH, message));
        return;
    }
    // Older code than the toolkit's is fine: it comes with static libraries. Newer code asks for a newer driver.
    let Some(promise) = promised.first() else { return };
    let newest = native.gpu_code.newest_toolkit().filter(|(major, _)| *major > promise.major);
    if let Some((_, compiled)) = newest {
        found.push(Finding::new(&TOOLKIT_MISMATCH, format!("{}, and {compiled}", promise.what)));
    }
}

fn check_dependencies(examined: &ExaminedWheel, findings: &mut Vec<Finding>) {
    let wheel = examined.wheel();
    let requirements: Vec<Requirement> = wheel.metadata().requires_dist().filter_map(Requirement::parse).collect();
    let own = normalize_distribution(wheel.name().distribution());
    let inside: BTreeSet<&str> = examined
        .libraries()
        .flat_map(|(entry, native)| {
            let file = entry.path().rsplit('/').next();
            file.into_iter().chain(native.soname.as_deref())
        })
        .collect();
    let mut seen = BTreeSet::new();
    for (entry, native) in examined.libraries() {
        for library in native.needed.iter().filter(|library| !inside.contains(library.as_str())) {
            let is_own = Family::of(library).is_some_and(|family| own.starts_with(family.project));
            if is_own || !seen.insert(library) {
                continue;
            }
            let finding = check_dependency(library, &requirements);
            findings.extend(finding.map(|finding| finding.at(entry.path()).symbol(Some(library))));
        }
    }
}

/// What is wrong with how a wheel with these requirements gets `library`; nothing where it is no library of CUDA.
pub(super) fn check_dependency(library: &str, requirements: &[Requirement]) -> Option<Finding> {
    let family = Family::of(library)?;
    let linked = family.toolkit_of(library);
    let brought: Vec<_> =
        requirements.iter().filter_map(|requirement| Some((requirement, family.required_by(requirement)?))).collect();
    if brought.is_empty() {
        let project = linked.map_or_else(|| family.project.to_owned(), |toolkit| family.project_for(toolkit));
        let message =
            format!("it is linked to {library}, and nothing that the wheel requires brings it: {project} does");
        return Some(Finding::new(&DEPENDENCY_MISSING, message));
    }
    let linked = linked?;
    if brought.iter().any(|(_, provided)| provided.major.is_none_or(|major| major == linked)) {
        return None;
    }
    let (requirement, provided) = brought.first()?;
    let message = format!(
        "it is linked to {library}, and {} brings that of CUDA {}: {} has the right one",
        requirement.name(),
        provided.major?,
        family.project_for(linked)
    );
    Some(Finding::new(&DEPENDENCY_TOOLKIT, message))
}
