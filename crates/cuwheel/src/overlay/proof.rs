//! The proof of an overlay: installed, imported under its true names, removed without a trace.
//!
//! The package of an overlay often cannot be imported without what the distribution requires. Without that, its modules
//! are imported in the package's own directory while the packages around it exist and none of their code runs. With it,
//! the full proof imports what users import.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use cuwheel_inspect::wheel::Wheel;
use fs_err as fs;

use super::entry::OverlayEntry;
use crate::cache::Cache;
use crate::environment::FreshEnvironment;
use crate::error::{Failure, Result};
use crate::interpreter::Interpreter;
use crate::output::Output;
use crate::proof::{self, Imports, Report};
use crate::uv::Uv;

/// How much is proven.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Install the wheel alone, import its replaced modules, uninstall it
    Modules,
    /// Then also install everything that it requires, check that it fits together, and import what users import
    Full,
}

/// What a proof runs on.
#[derive(Clone, Copy, Debug)]
pub struct Machine<'a> {
    /// Where environments are made.
    pub cache: &'a Cache,
    /// The interpreter.
    pub interpreter: &'a Interpreter,
    /// Who installs.
    pub uv: &'a Uv,
}

/// Proves the wheel at `path`, which was read as `wheel`. The modules that were imported are returned.
pub fn prove(
    path: &Path,
    wheel: &Wheel,
    entry: &OverlayEntry,
    level: Level,
    machine: Machine<'_>,
    output: &Output,
) -> Result<Vec<String>> {
    let mut imported = prove_modules(path, wheel, entry, machine, output)?;
    if level == Level::Full {
        imported.extend(prove_fully(path, wheel, entry, machine, output)?);
    }
    Ok(imported)
}

fn prove_modules(
    path: &Path,
    wheel: &Wheel,
    entry: &OverlayEntry,
    machine: Machine<'_>,
    output: &Output,
) -> Result<Vec<String>> {
    let package = entry.package_name();
    let names: Vec<String> = entry.modules.iter().map(|module| format!("{package}.{module}")).collect();
    output.step("prove", &format!("{} on {}", names.join(", "), machine.interpreter));
    let environment = FreshEnvironment::create(machine.cache, machine.interpreter, machine.uv)?;
    let before = files_below(&environment.path())?;
    machine.uv.install_wheel(&environment.path(), path)?;
    let imports = Imports { names: names.clone(), bare: outer_packages(&package), ..Imports::default() };
    let report = proof::import(&environment, machine.interpreter, &imports, wheel)?;
    check_report(&report, wheel, entry, &environment)?;
    machine.uv.uninstall(&environment.path(), wheel.metadata().name())?;
    let left: Vec<String> =
        files_below(&environment.path())?.difference(&before).map(|path| path.display().to_string()).collect();
    if left.is_empty() {
        return Ok(names);
    }
    Err(Failure::failed(format!("uninstalling {} leaves files", wheel.file_name()))
        .details(left)
        .remedy("a module wrote them while it was imported, or RECORD does not list them")
        .into())
}

fn prove_fully(
    path: &Path,
    wheel: &Wheel,
    entry: &OverlayEntry,
    machine: Machine<'_>,
    output: &Output,
) -> Result<Vec<String>> {
    if entry.imports.is_empty() {
        return Err(Failure::usage(format!("the overlay {} does not say what its users import", entry.name))
            .remedy(format!("list modules in tool.cuwheel.overlay.{}.imports, or leave --prove full out", entry.name))
            .into());
    }
    output.step("prove", &format!("{} with all requirements", entry.imports.join(", ")));
    let environment = FreshEnvironment::create(machine.cache, machine.interpreter, machine.uv)?;
    machine.uv.install_with_dependencies(&environment.path(), path, &[], &entry.requires)?;
    machine.uv.check(&environment.path())?;
    let imports = Imports {
        names: entry.imports.clone(),
        package: Some(environment.site_packages()?.join(&entry.package)),
        modules: entry.modules.clone(),
        ..Imports::default()
    };
    let report = proof::import(&environment, machine.interpreter, &imports, wheel)?;
    check_report(&report, wheel, entry, &environment)?;
    Ok(entry.imports.clone())
}

/// Every module of the entry has to come from its file in the package, with capsules that are found by their names.
fn check_report(report: &Report, wheel: &Wheel, entry: &OverlayEntry, environment: &FreshEnvironment) -> Result<()> {
    let directory = environment.site_packages()?.join(&entry.package);
    let file = |module: &String| directory.join(format!("{module}.py"));
    let missing: Vec<&str> = entry
        .modules
        .iter()
        .filter(|module| report.modules_of(&file(module)).next().is_none())
        .map(String::as_str)
        .collect();
    if !missing.is_empty() {
        return Err(Failure::failed(format!("{} loads other files for {}", wheel.file_name(), missing.join(", ")))
            .remedy("another file of the package wins the import: a native module of that name, or a directory")
            .into());
    }
    let misnamed = report.misnamed_capsules();
    if misnamed.is_empty() {
        return Ok(());
    }
    Err(Failure::failed(format!("capsules of {} cannot be imported", wheel.file_name()))
        .details(misnamed)
        .remedy("name a capsule after its module's __name__ and its attribute, as PyCapsule_Import looks for it")
        .into())
}

/// `a.b.c` → `a`, `a.b`.
fn outer_packages(package: &str) -> Vec<String> {
    package.match_indices('.').map(|(position, _)| package[..position].to_owned()).collect()
}

fn files_below(directory: &Path) -> Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    let mut open = vec![directory.to_path_buf()];
    while let Some(inner) = open.pop() {
        for entry in fs::read_dir(&inner)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                open.push(entry.path());
            }
            found.insert(entry.path());
        }
    }
    // uv's own, made when it first installs.
    found.remove(&directory.join(".lock"));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packages_around_a_package_are_named_from_the_outside() {
        assert_eq!(outer_packages("a.b.c"), ["a", "a.b"]);
        assert!(outer_packages("a").is_empty());
    }
}
