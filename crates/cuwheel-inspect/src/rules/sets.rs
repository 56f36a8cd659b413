//! Rules on wheels that are given together: files that several write, and the manifest of a build.

use std::collections::{BTreeMap, HashMap};

use super::catalog::{ALTERNATIVES, CHANGED, COLLISION, NOT_EXPECTED, NOT_FOUND};
use super::cuda_libraries::labelled_major;
use super::{ExaminedWheel, Finding, Policy};
use crate::digest::Sha256Digest;
use crate::wheel::{WheelName, installed_path, normalize_distribution};

/// A wheel as a manifest lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedWheel {
    /// The file name.
    pub file: String,
    /// The SHA-256 in lower-case hexadecimal digits.
    pub sha256: String,
}

/// The files that a wheel installs in site-packages, kept when the wheel is closed.
#[derive(Debug, Clone)]
pub struct InstalledFiles {
    file_name: String,
    name: WheelName,
    files: HashMap<String, Sha256Digest>,
}

impl InstalledFiles {
    /// The files of `examined`.
    #[must_use]
    pub fn of(examined: &ExaminedWheel) -> Self {
        let wheel = examined.wheel();
        let entries = wheel.entries().iter().filter(|entry| !entry.is_directory());
        let files = entries.filter_map(|entry| Some((installed_path(entry.path())?.to_owned(), entry.sha256())));
        Self { file_name: wheel.file_name().to_owned(), name: wheel.name().clone(), files: files.collect() }
    }
}

/// What is wrong with wheels that are installed together, the worst first.
#[must_use]
pub fn check_set(wheels: &[InstalledFiles], policy: &Policy) -> Vec<Finding> {
    let mut by_path: BTreeMap<&str, Vec<(usize, Sha256Digest)>> = BTreeMap::new();
    for (position, wheel) in wheels.iter().enumerate() {
        for (path, digest) in &wheel.files {
            by_path.entry(path).or_default().push((position, *digest));
        }
    }
    // Paths in their order, by the wheels that they are in.
    let mut collisions: BTreeMap<(usize, usize), Vec<&str>> = BTreeMap::new();
    for (path, owners) in by_path {
        for (position, (left, digest)) in owners.iter().enumerate() {
            for (right, _) in owners[position + 1..].iter().filter(|(_, other)| other != digest) {
                collisions.entry((*left, *right)).or_default().push(path);
            }
        }
    }
    let mut findings = Vec::new();
    for ((left, right), paths) in collisions {
        let (left, right) = (&wheels[left], &wheels[right]);
        if !can_be_together(&left.name, &right.name) {
            continue;
        }
        let more = match paths.len() - 1 {
            0 => String::new(),
            more => format!("; {more} more like it"),
        };
        let message = format!("it is in {} and, with other contents, in {}{more}", left.file_name, right.file_name);
        let rule = if are_alternatives(&left.name, &right.name) { &ALTERNATIVES } else { &COLLISION };
        findings.push(Finding::new(rule, message).at(paths[0]));
    }
    policy.apply(findings)
}

/// Whether two wheels are one project for two versions of CUDA, as `pkg-cu12` and `pkg-cu13` are.
fn are_alternatives(left: &WheelName, right: &WheelName) -> bool {
    let parts = |name: &WheelName| {
        let distribution = normalize_distribution(name.distribution());
        let (stem, label) = distribution.rsplit_once('-')?;
        Some((stem.to_owned(), labelled_major(label)?))
    };
    match (parts(left), parts(right)) {
        (Some((stem, major)), Some((other, other_major))) => stem == other && major != other_major,
        _ => false,
    }
}

/// Whether some environment holds both: two projects, for interpreters and platforms that are the same somewhere.
fn can_be_together(left: &WheelName, right: &WheelName) -> bool {
    let differ = normalize_distribution(left.distribution()) != normalize_distribution(right.distribution());
    differ
        && left.tags().iter().any(|left| {
            right.tags().iter().any(|right| {
                share_an_interpreter(left.python(), left.abi(), right.python(), right.abi())
                    && share_a_platform(left.platform(), right.platform())
            })
        })
}

fn share_an_interpreter(left: &str, left_abi: &str, right: &str, right_abi: &str) -> bool {
    // Only an ABI of one version ties a wheel to it; py3 and abi3 go on.
    let is_tied = |abi: &str| abi != "none" && !abi.starts_with("abi3");
    match (is_tied(left_abi), is_tied(right_abi)) {
        (true, true) => left == right && left_abi == right_abi,
        _ => left.starts_with("py2") == right.starts_with("py2"),
    }
}

fn share_a_platform(left: &str, right: &str) -> bool {
    let system = |platform: &str| ["linux", "macosx", "win"].into_iter().find(|system| platform.contains(system));
    let machine = |platform: &str| {
        let machines = ["x86_64", "aarch64", "arm64", "amd64", "i686", "ppc64le", "s390x", "armv7l", "riscv64"];
        machines.into_iter().find(|machine| platform.ends_with(machine))
    };
    left == "any" || right == "any" || (system(left) == system(right) && machine(left) == machine(right))
}

/// Compares the wheels that a build listed with those that are there: `found` has their names and hashes. Whether some
/// are missing is only asked when `is_complete`: `found` is everything that lies beside the manifest.
#[must_use]
pub fn check_manifest(
    expected: &[ListedWheel],
    found: &[ListedWheel],
    is_complete: bool,
    policy: &Policy,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for wheel in expected.iter().filter(|_| is_complete) {
        if !found.iter().any(|other| other.file == wheel.file) {
            findings.push(Finding::new(&NOT_FOUND, "the manifest lists it, and it is not there").at(&wheel.file));
        }
    }
    for wheel in found {
        match expected.iter().find(|other| other.file == wheel.file) {
            None => findings.push(Finding::new(&NOT_EXPECTED, "the manifest does not list it").at(&wheel.file)),
            Some(listed) if listed.sha256 != wheel.sha256 => {
                let message = format!("its SHA-256 is {}, and the manifest says {}", wheel.sha256, listed.sha256);
                findings.push(Finding::new(&CHANGED, message).at(&wheel.file));
            }
            Some(_) => {}
        }
    }
    policy.apply(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wheels_that_differ_in_the_label_of_cuda_are_alternatives() {
        for (left, right, expected) in [
            ("a_cu12", "a_cu13", true),
            ("a_cuda12x", "A.cuda13x", true),
            ("a_cu12", "b_cu13", false),
            ("a_cu12", "a", false),
            ("a_base", "a_cu13", false),
            ("cu12", "cu13", false),
        ] {
            let name = |name: &str| format!("{name}-1-py3-none-any.whl").parse::<WheelName>().unwrap();
            assert_eq!(are_alternatives(&name(left), &name(right)), expected, "{left} {right}");
        }
    }

    #[test]
    fn wheels_go_together_when_one_environment_can_hold_both() {
        for (left, right, expected) in [
            ("a-1-py3-none-any", "b-1-py3-none-any", true),
            ("a-1-py3-none-any", "a-2-py3-none-any", false),
            ("a-1-py3-none-any", "b-1-cp312-cp312-win_amd64", true),
            ("a-1-cp311-cp311-linux_x86_64", "b-1-cp312-cp312-linux_x86_64", false),
            ("a-1-cp311-abi3-linux_x86_64", "b-1-cp312-cp312-manylinux_2_28_x86_64", true),
            ("a-1-cp313-cp313-linux_x86_64", "b-1-cp313-cp313t-linux_x86_64", false),
            ("a-1-py3-none-linux_x86_64", "b-1-py3-none-linux_aarch64", false),
            ("a-1-py3-none-linux_x86_64", "b-1-py3-none-macosx_11_0_x86_64", false),
        ] {
            let name = |stem: &str| format!("{stem}.whl").parse::<WheelName>().unwrap();
            assert_eq!(can_be_together(&name(left), &name(right)), expected, "{left} and {right}");
        }
    }
}
