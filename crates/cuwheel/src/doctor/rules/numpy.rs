//! Which NumPy an extension is compiled with, and which it may meet (PK-34).

use super::super::facts::{Placed, ProjectFacts};
use super::super::native::NativeFile;
use super::super::{Diagnosis, Edit, catalog};
use super::at;
use crate::reading::requirement::{Requirement, floor_of_specifier};

/// The oldest NumPy that has wheels for a minor version of Python 3.
const OLDEST_FOR: &[(u64, &str)] =
    &[(9, "1.19.3"), (10, "1.21.2"), (11, "1.23.2"), (12, "1.26.0"), (13, "2.1.0"), (14, "2.3.2")];

/// What requires NumPy itself, with a lower bound.
const BRINGS_NUMPY: &[&str] =
    &["numba", "scipy", "pandas", "jax", "cupy", "cupy-cuda12x", "cupy-cuda13x", "h5py", "numpy-quaternion"];

pub(super) fn check(facts: &ProjectFacts, diagnosis: &mut Diagnosis) {
    let Some((path, line)) = use_of_api(facts) else { return };
    let at_run_time: Vec<&Placed> =
        facts.dependencies.iter().filter(|placed| placed.requirement.name == "numpy").collect();
    check_major(facts, &at_run_time, diagnosis);
    check_target(facts, &at_run_time, diagnosis);
    let floor = oldest(facts);
    if at_run_time.iter().any(|placed| placed.requirement.floor().is_some() || placed.requirement.has_marker) {
        return;
    }
    // Dependencies that a script computes are not seen.
    let is_dynamic = facts
        .pyproject
        .as_ref()
        .is_some_and(|file| file.texts_of("project.dynamic").iter().any(|(text, _)| text == "dependencies"));
    match at_run_time.first() {
        Some(placed) => {
            let message = format!("{} has no lower bound, and {path} uses NumPy's C API", placed.requirement.text);
            let finding = at(&catalog::NUMPY_FLOOR, &placed.path, placed.line, message);
            let edit = (placed.path == "pyproject.toml" && !is_dynamic && !placed.requirement.is_below_major(2))
                .then(|| Edit::NumpyFloor(floor.to_owned()));
            diagnosis.add_with(
                finding.with_remedy(format!("write numpy>={floor}, the oldest with wheels for the oldest Python")),
                edit,
            );
        }
        None if is_dynamic || facts.pyproject.as_ref().is_none_or(|file| file.item("project").is_none()) => {}
        // These bring NumPy along, with a floor of their own.
        None if facts.dependencies.iter().any(|placed| BRINGS_NUMPY.contains(&placed.requirement.name.as_str())) => {}
        None if is_in_an_extra(facts) => {}
        None => {
            let message = "NumPy's C API is used, and numpy is in no dependency of the package";
            let finding = at(&catalog::NUMPY_FLOOR, &path, line, message);
            diagnosis.add(finding.with_remedy(format!("add numpy>={floor} to project.dependencies")));
        }
    }
}

/// The first use of NumPy's C API.
fn use_of_api(facts: &ProjectFacts) -> Option<(String, usize)> {
    if !facts.is_native() {
        return None;
    }
    let of = |file: &NativeFile| {
        let (_, line) = file.includes.iter().find(|(header, _)| header.starts_with("numpy/"))?;
        Some((file.path.clone(), *line))
    };
    facts.native.iter().find_map(of)
}

/// Whether an extra of the package requires NumPy with a floor.
fn is_in_an_extra(facts: &ProjectFacts) -> bool {
    let Some(file) = &facts.pyproject else { return false };
    let has_floor =
        |text: &String| Requirement::parse(text).is_some_and(|found| found.name == "numpy" && found.floor().is_some());
    let extras = file.table("project.optional-dependencies").into_iter().flat_map(|extras| extras.iter());
    extras.into_iter().any(|(_, item)| file.texts_in(item).iter().any(|(text, _)| has_floor(text)))
}

fn oldest(facts: &ProjectFacts) -> &'static str {
    let minor = facts.requires_python().and_then(|(text, ..)| floor_of_specifier(&text)).map_or(9, |(_, minor)| minor);
    let known = OLDEST_FOR.iter().rev().find(|(python, _)| *python <= minor);
    known.map_or(OLDEST_FOR[0].1, |(_, numpy)| numpy)
}

/// Extensions of NumPy 1 that may meet NumPy 2.
fn check_major(facts: &ProjectFacts, at_run_time: &[&Placed], diagnosis: &mut Diagnosis) {
    let is_old = |placed: &&Placed| {
        let requirement = &placed.requirement;
        requirement.name == "oldest-supported-numpy" || (requirement.name == "numpy" && requirement.is_below_major(2))
    };
    let mut of_build = facts
        .build_requires
        .iter()
        .filter(|placed| ["numpy", "oldest-supported-numpy"].contains(&placed.requirement.name.as_str()));
    let Some(placed) = facts.build_requires.iter().find(is_old) else { return };
    // Markers may choose NumPy 2 for the Pythons that are left.
    let all_old = of_build.all(|placed| is_old(&placed));
    let is_bounded = at_run_time.iter().any(|placed| placed.requirement.is_below_major(2));
    if all_old && !is_bounded {
        let message = format!("{} builds for NumPy 1, and the package lets NumPy 2 in", placed.requirement.text);
        diagnosis.add(at(&catalog::NUMPY_MAJOR, &placed.path, placed.line, message));
    }
}

/// `NPY_TARGET_VERSION` that is newer than what may be installed.
fn check_target(facts: &ProjectFacts, at_run_time: &[&Placed], diagnosis: &mut Diagnosis) {
    for file in &facts.native {
        let Some((version, line)) = &file.numpy_target else { continue };
        let mut numbers = version.split('_').map(str::parse::<u64>);
        let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else { continue };
        let floors = at_run_time.iter().filter_map(|placed| placed.requirement.floor());
        if let Some(floor) = floors.max()
            && floor < (major, minor)
        {
            let message = format!("NumPy {major}.{minor} is targeted, and the package lets {}.{} in", floor.0, floor.1);
            let remedy = format!("require numpy>={major}.{minor}, or target an older version");
            diagnosis.add(at(&catalog::NUMPY_FLOOR, &file.path, *line, message).with_remedy(remedy));
        }
    }
}
