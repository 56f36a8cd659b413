//! The repaired wheel, from the wheel, the plan and the edited libraries; and the proof that nothing else changed.
//!
//! Not for editing libraries, nor for deciding what is repaired.

use std::collections::{BTreeMap, BTreeSet};

use cuwheel_inspect::elf::GlibcVersion;
use cuwheel_inspect::rules::{ExaminedWheel, InstalledLibraries, MissingLibrary, Surroundings, platform_floor};
use cuwheel_inspect::wheel::{Entry, Wheel, WheelName, normalize_distribution};
use serde_json::{Value, json};

use super::graft::Graft;
use super::plan::RepairPlan;
use crate::error::{Failure, Result};
use crate::files;
use crate::inspection;
use crate::overlay::headers;
use crate::wheel_writer::{self, Writer, serial_number};

/// The oldest glibc that a tag of a repaired wheel promises: indexes and installers know no use for older ones.
const OLDEST_PROMISE: GlibcVersion = GlibcVersion::new(2, 17);

/// Libraries with their edits made.
#[derive(Debug, Default)]
pub struct Edited {
    /// Of the wheel, by entry.
    pub libraries: BTreeMap<String, Vec<u8>>,
    /// That are taken in, each with where it came from.
    pub grafts: Vec<(Graft, Vec<u8>)>,
}

/// A repaired wheel, proven to be what was planned.
#[derive(Debug)]
pub struct Repaired {
    /// Its file name.
    pub file: String,
    /// The archive.
    pub bytes: Vec<u8>,
    /// The same, read.
    pub examined: ExaminedWheel,
}

/// What becomes of the platform tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tags {
    /// They stay: whether they hold is for the rules to say.
    Keep,
    /// They are made to say what holds.
    Correct,
}

/// Writes the wheel `archive`, which is `examined`, with what was edited. The same input gives the same bytes.
pub fn compose(
    (examined, archive): (&ExaminedWheel, &[u8]),
    edited: &Edited,
    plan: &RepairPlan,
    given: &[InstalledLibraries],
    tags: Tags,
) -> Result<Repaired> {
    let wheel = examined.wheel();
    let mut repaired = write(wheel, archive, edited, None)?;
    let unresolved = Surroundings::new(&repaired.examined, given).missing();
    check_resolved(&unresolved, plan)?;
    let platform = platform(&repaired.examined, unresolved.is_empty()).filter(|_| tags == Tags::Correct);
    if let Some(platform) = platform {
        repaired = write(wheel, archive, edited, Some(&renamed(wheel.name(), &platform)?))?;
    }
    check_rest(wheel, repaired.examined.wheel(), edited)?;
    Ok(repaired)
}

fn write(wheel: &Wheel, archive: &[u8], edited: &Edited, name: Option<&WheelName>) -> Result<Repaired> {
    let in_dist_info = |file: &str| format!("{}/{file}", wheel.dist_info());
    let mut source = wheel_writer::open(archive)?;
    let mut writer = Writer::default();
    for entry in wheel.entries().iter().filter(|entry| is_kept(wheel, entry)) {
        if let Some(content) = edited.libraries.get(entry.path()) {
            writer.add(entry.path(), content, entry.unix_mode())?;
        } else if let Some(name) = name.filter(|_| entry.path() == in_dist_info("WHEEL")) {
            let text = String::from_utf8(wheel.read_entry(entry).map_err(inspection::unreadable)?)?;
            let info = headers::wheel_info(&text, &name.tags())?;
            writer.add(entry.path(), info.as_bytes(), entry.unix_mode())?;
        } else {
            writer.copy_named(&mut source, entry.path())?;
        }
    }
    for (graft, content) in &edited.grafts {
        writer.add(&graft.path, content, Some(0o100_755))?;
    }
    writer.add(&bill_path(wheel), &bill(wheel, edited), None)?;
    let bytes = writer.finish(&in_dist_info("RECORD"))?;
    let file = name.map_or_else(|| wheel.file_name().to_owned(), WheelName::to_string);
    let examined = ExaminedWheel::from_bytes(&file, bytes.clone()).map_err(inspection::unreadable)?;
    Ok(Repaired { file, bytes, examined })
}

/// RECORD is written anew, its signatures do not hold any more, and directories need no entry.
fn is_kept(wheel: &Wheel, entry: &Entry) -> bool {
    let name = entry.path().strip_prefix(wheel.dist_info());
    !entry.is_directory() && !matches!(name, Some("/RECORD" | "/RECORD.jws" | "/RECORD.p7s"))
}

/// The bill of materials of the repair. A wheel that is repaired again keeps those that it has.
fn bill_path(wheel: &Wheel) -> String {
    let mut names = (1..).map(|number| match number {
        1 => format!("{}/sboms/repair.cyclonedx.json", wheel.dist_info()),
        _ => format!("{}/sboms/repair-{number}.cyclonedx.json", wheel.dist_info()),
    });
    names.find(|path| wheel.entry(path).is_none()).expect("numbers do not end before the entries of a wheel do")
}

/// What the wheel was before, what was edited in it, and what was taken in, as CycloneDX 1.5 (PEP 770). It holds no time
/// and no path of this machine.
fn bill(wheel: &Wheel, edited: &Edited) -> Vec<u8> {
    let (name, version) = (wheel.metadata().name(), wheel.metadata().version());
    let reference = format!("pkg:pypi/{}@{}", normalize_distribution(name), version.replace('+', "%2B"));
    let hash = |content: &str| json!([{ "alg": "SHA-256", "content": content }]);
    let mut components = vec![json!({
        "type": "library",
        "bom-ref": format!("file:{}", wheel.file_name()),
        "name": wheel.file_name(),
        "version": version,
        "hashes": hash(&wheel.sha256().to_string()),
    })];
    let of_file = |path: &str, content: &[u8]| json!({ "type": "file", "bom-ref": format!("file:{path}"), "name": path, "hashes": hash(&files::sha256(content)) });
    components.extend(edited.libraries.iter().map(|(path, content)| of_file(path, content)));
    components.extend(edited.grafts.iter().map(|(graft, content)| {
        let mut component = of_file(&graft.path, content);
        component["type"] = json!("library");
        component["pedigree"] = json!({ "ancestors": [{
            "type": "library",
            "name": graft.library,
            "hashes": hash(&files::sha256(&graft.content)),
        }]});
        component
    }));
    let mut document = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": { "type": "library", "bom-ref": reference, "name": name, "version": version, "purl": reference },
            "tools": [{ "vendor": "cuwheel", "name": "cuwheel repair", "version": env!("CARGO_PKG_VERSION") }],
        },
        "components": components,
    });
    let serial = serial_number(document.to_string().as_bytes());
    document["serialNumber"] = Value::from(serial);
    format!("{document:#}\n").into_bytes()
}

/// Fails when the loader does not find what it was to find.
fn check_resolved(unresolved: &[MissingLibrary], plan: &RepairPlan) -> Result<()> {
    let unexpected: Vec<String> = unresolved
        .iter()
        .filter(|missing| !plan.left.contains(missing))
        .map(|missing| format!("{} needs {}", missing.path, missing.needed))
        .collect();
    if unexpected.is_empty() {
        return Ok(());
    }
    Err(Failure::failed("the loader would not find everything in the repaired wheel")
        .details(unexpected)
        .remedy("a library was found by a search path that may not stay: give the wheel that has it with --with, or graft it")
        .into())
}

/// The platform tags that the wheel should have, where they are others than it has: a tag that promises too much is
/// raised, and a tag that promises nothing gets a promise once everything is found.
fn platform(examined: &ExaminedWheel, is_resolved: bool) -> Option<String> {
    let platforms = examined.wheel().name().platform_tags();
    let machine = platforms.iter().find_map(|platform| machine_of(platform))?;
    let floor = platform_floor(examined)?;
    let promised = platforms.iter().filter_map(|platform| GlibcVersion::from_platform_tag(platform)).min();
    let version = match promised {
        Some(promised) if floor > promised => floor,
        None if is_resolved => floor.max(OLDEST_PROMISE),
        _ => return None,
    };
    let newer = format!("manylinux_{}_{}_{machine}", version.major, version.minor);
    // Installers from before PEP 600 know the older name only.
    Some(if version == OLDEST_PROMISE { format!("manylinux2014_{machine}.{newer}") } else { newer })
}

/// `manylinux_2_28_x86_64` → `x86_64`; `None` for what is not for Linux with glibc.
fn machine_of(platform: &str) -> Option<&str> {
    if let Some(rest) = platform.strip_prefix("manylinux_") {
        return rest.splitn(3, '_').nth(2);
    }
    ["linux_", "manylinux1_", "manylinux2010_", "manylinux2014_"].iter().find_map(|start| platform.strip_prefix(start))
}

fn renamed(name: &WheelName, platform: &str) -> Result<WheelName> {
    let (python, abi) = (name.python_tags().join("."), name.abi_tags().join("."));
    let renamed = WheelName::new(name.distribution(), name.version(), &python, &abi, platform)?;
    Ok(match name.build() {
        Some(build) => renamed.with_build(build)?,
        None => renamed,
    })
}

/// Fails when a file changed that was not to change.
fn check_rest(before: &Wheel, after: &Wheel, edited: &Edited) -> Result<()> {
    let in_dist_info = |file: &str| format!("{}/{file}", before.dist_info());
    let may_differ: BTreeSet<String> =
        edited.libraries.keys().cloned().chain(["RECORD", "WHEEL"].map(in_dist_info)).collect();
    let added: BTreeSet<String> =
        edited.grafts.iter().map(|(graft, _)| graft.path.clone()).chain([bill_path(before)]).collect();
    let mut wrong = Vec::new();
    for entry in before.entries().iter().filter(|entry| is_kept(before, entry)) {
        match after.entry(entry.path()) {
            None => wrong.push(format!("{} is gone", entry.path())),
            Some(other) if other.sha256() != entry.sha256() && !may_differ.contains(entry.path()) => {
                wrong.push(format!("{} has another content", entry.path()));
            }
            Some(_) => {}
        }
    }
    let is_new = |entry: &&Entry| before.entry(entry.path()).is_none() && !added.contains(entry.path());
    wrong.extend(after.entries().iter().filter(is_new).map(|entry| format!("{} is new", entry.path())));
    if wrong.is_empty() {
        return Ok(());
    }
    Err(Failure::failed("the repaired wheel differs in more than was planned")
        .details(wrong)
        .remedy("nothing was written: this is a fault of cuwheel, please report it with the wheel")
        .into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_are_read_from_tags_of_linux_with_glibc() {
        for (platform, machine) in [
            ("linux_x86_64", Some("x86_64")),
            ("manylinux2014_aarch64", Some("aarch64")),
            ("manylinux_2_28_x86_64", Some("x86_64")),
            ("musllinux_1_2_x86_64", None),
            ("win_amd64", None),
            ("any", None),
        ] {
            assert_eq!(machine_of(platform), machine, "{platform}");
        }
    }
}
