//! One wheel for several major versions of CUDA, out of the wheels for each.
//!
//! What is the same in all of them is kept once. An extension module that differs, `pkg/_native.abi3.so`, becomes
//! `pkg/_cu12/_native.abi3.so` and its like, and `pkg/_native.py` takes its names from the one for the CUDA that is here,
//! which `pkg/_cuda_major.py` finds out. Not for data that differs: a program would not know which of it to read.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use cuwheel_inspect::rules::ExaminedWheel;
use cuwheel_inspect::wheel::{Entry, ExtensionModule, Wheel};

use super::CudaSettings;
use crate::error::{Failure, Result};
use crate::inspection;
use crate::requirements::requirement_name;
use crate::wheel_headers::Head;
use crate::wheel_writer::{self, Archive, Writer};

/// Both are Python as they are, with names that are replaced.
const CHOICE: &str = include_str!("../python/cuda_choice.py");
const MODULE: &str = include_str!("../python/cuda_module.py");

/// The module of a package that says which version was chosen.
const CHOICE_MODULE: &str = "_cuda_major";

/// A wheel for one major version.
#[derive(Debug)]
pub struct Part {
    /// The version.
    pub major: u32,
    /// The archive.
    pub bytes: Vec<u8>,
    /// The same, read.
    pub examined: ExaminedWheel,
}

impl Part {
    fn wheel(&self) -> &Wheel {
        self.examined.wheel()
    }
}

/// The bytes of the merged wheel, which has the name that all parts have.
///
/// # Panics
/// Without parts.
pub fn merge(parts: &[Part], settings: &CudaSettings) -> Result<Vec<u8>> {
    let first = parts.first().expect("there are versions to merge").wheel();
    let differing = differing(parts)?;
    let modules = modules(first, &differing)?;
    let mut sources = parts.iter().map(|part| wheel_writer::open(&part.bytes)).collect::<Result<Vec<Archive<'_>>>>()?;
    let mut writer = Writer::default();
    let in_dist_info = |file: &str| format!("{}/{file}", first.dist_info());
    for entry in first.entries().iter().filter(|entry| entry.path() != in_dist_info("RECORD")) {
        if entry.path() == in_dist_info("METADATA") {
            let text = String::from_utf8(first.read_entry(entry).map_err(inspection::unreadable)?)?;
            writer.add(entry.path(), with_extras(&text, first, settings)?.as_bytes(), None)?;
        } else if let Some(module) = modules.iter().find(|module| module.path() == entry.path()) {
            for part in parts {
                let entry = part.wheel().entry(module.path()).expect("every part has it");
                let content = part.wheel().read_entry(entry).map_err(inspection::unreadable)?;
                writer.add(&place(module, part.major).file, &content, entry.unix_mode())?;
            }
        } else {
            writer.copy_named(&mut sources[0], entry.path())?;
        }
    }
    for (path, content) in python_files(&modules, parts, settings) {
        if writer.holds(&path) {
            return Err(Failure::usage(format!("the merged wheel needs {path}, and the project has such a file"))
                .remedy("rename the project's file")
                .into());
        }
        writer.add(&path, content.as_bytes(), None)?;
    }
    writer.finish(&in_dist_info("RECORD"))
}

/// Where an extension module for one version lies.
struct Place {
    directory: String,
    file: String,
}

fn place(module: &ExtensionModule, major: u32) -> Place {
    let (package, file) = module.path().rsplit_once('/').expect("modules outside of packages are refused");
    let directory = format!("{package}/_cu{major}");
    Place { file: format!("{directory}/{file}"), directory }
}

/// The paths whose contents are not the same in every part. That a file is in some parts only is refused.
fn differing(parts: &[Part]) -> Result<Vec<String>> {
    let paths =
        |part: &Part| part.wheel().entries().iter().map(|entry| entry.path().to_owned()).collect::<BTreeSet<_>>();
    let all: BTreeSet<String> = parts.iter().flat_map(paths).collect();
    let (mut differing, mut missing) = (Vec::new(), Vec::new());
    for path in all {
        let found: Vec<Option<&Entry>> = parts.iter().map(|part| part.wheel().entry(&path)).collect();
        for (part, _) in parts.iter().zip(&found).filter(|(_, entry)| entry.is_none()) {
            missing.push(format!("{path} is not in the wheel for CUDA {}", part.major));
        }
        let mut hashes = found.iter().flatten().map(|entry| entry.sha256());
        let first = hashes.next();
        if hashes.any(|hash| Some(hash) != first) {
            differing.push(path);
        }
    }
    if missing.is_empty() {
        return Ok(differing);
    }
    Err(Failure::failed("the wheels for the versions of CUDA hold different files, and cannot be merged")
        .details(missing)
        .remedy("name files alike in every build, or set tool.cuwheel.cuda.wheels to \"suffix\"")
        .into())
}

/// The extension modules among the differing files, which have to be all that differs beside bookkeeping.
fn modules(wheel: &Wheel, differing: &[String]) -> Result<Vec<ExtensionModule>> {
    let extensions = wheel.extension_modules();
    let (mut modules, mut others) = (Vec::new(), Vec::new());
    for path in differing {
        match extensions.iter().find(|extension| extension.path() == path) {
            Some(module) if path.contains('/') => modules.push(module.clone()),
            Some(_) => others.push(format!("{path} is a module outside of any package")),
            None if path.starts_with(wheel.dist_info()) => {}
            None => others.push(format!("{path} is no extension module")),
        }
    }
    if !others.is_empty() {
        return Err(Failure::failed(
            "what differs between the wheels for the versions of CUDA cannot be chosen at import",
        )
        .details(others)
        .remedy(
            "embed kernels in the library instead of package data, put modules into a package \
                 (tool.maturin.module-name = \"pkg._native\"), or set tool.cuwheel.cuda.wheels to \"suffix\"",
        )
        .into());
    }
    if modules.is_empty() {
        return Err(Failure::failed("the wheels for the versions of CUDA are the same")
            .remedy("nothing in them depends on the version: take tool.cuwheel.cuda out of pyproject.toml")
            .into());
    }
    Ok(modules)
}

/// What chooses, and what stands in the places of the modules.
fn python_files(modules: &[ExtensionModule], parts: &[Part], settings: &CudaSettings) -> Vec<(String, String)> {
    let mut files = Vec::new();
    let mut directories = BTreeSet::new();
    let mut tops = BTreeSet::new();
    for module in modules {
        let (top, _) = module.path().split_once('/').expect("modules outside of packages are refused");
        let (package, name) = module.module().rsplit_once('.').expect("modules outside of packages are refused");
        tops.insert(top);
        let stub =
            MODULE.replace("choice_of_package", &format!("{top}.{CHOICE_MODULE}")).replace("name_of_module", name);
        files.push((format!("{}/{name}.py", package.replace('.', "/")), stub));
        directories.extend(parts.iter().map(|part| (place(module, part.major).directory, part.major)));
    }
    for (directory, major) in directories {
        files.push((format!("{directory}/__init__.py"), format!("\"\"\"Native modules for CUDA {major}.\"\"\"\n")));
    }
    for top in tops {
        let distribution = parts[0].wheel().name().distribution().to_uppercase();
        let mut libraries = String::from("{");
        for (index, part) in parts.iter().enumerate() {
            let names: Vec<String> =
                settings.dependencies.get(&part.major).into_iter().flatten().map(|one| requirement_name(one)).collect();
            let _ = write!(libraries, "{}{}: {names:?}", if index == 0 { "" } else { ", " }, part.major);
        }
        libraries.push('}');
        let choice = CHOICE
            .replace("NAME_CUDA_MAJOR", &format!("{distribution}_CUDA_MAJOR"))
            .replace("{0: [\"library\"]}", &libraries);
        files.push((format!("{top}/{CHOICE_MODULE}.py"), choice));
    }
    files
}

/// METADATA with an extra for each version that has libraries, such as `pkg[cu12]`.
fn with_extras(text: &str, wheel: &Wheel, settings: &CudaSettings) -> Result<String> {
    let mut head = Head::of(text)?;
    for (major, requirements) in settings.dependencies.iter().filter(|(_, requirements)| !requirements.is_empty()) {
        let extra = format!("cu{major}");
        if wheel.metadata().provides_extra().any(|known| known == extra) {
            return Err(Failure::usage(format!("the project has an extra {extra} of its own"))
                .remedy(format!(
                    "take {extra} out of project.optional-dependencies: tool.cuwheel.cuda.dependencies is it"
                ))
                .into());
        }
        head.add("Provides-Extra", &extra);
        for requirement in requirements {
            head.add("Requires-Dist", &only_with(requirement, &extra));
        }
    }
    Ok(head.finish())
}

/// A requirement that an extra asks for, beside the marker that it has.
fn only_with(requirement: &str, extra: &str) -> String {
    match requirement.split_once(';') {
        Some((requirement, marker)) => format!("{} ; ({}) and extra == '{extra}'", requirement.trim(), marker.trim()),
        None => format!("{} ; extra == '{extra}'", requirement.trim()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use cuwheel_inspect::testing::WheelBuilder;

    use super::*;

    const FILE: &str = "my_ext-1.0-cp311-abi3-manylinux_2_28_x86_64.whl";

    fn part(major: u32, build: impl Fn(WheelBuilder) -> WheelBuilder) -> Part {
        let bytes = build(WheelBuilder::new(FILE).file("my_ext/__init__.py", b"")).build();
        Part { major, examined: ExaminedWheel::from_bytes(FILE, bytes.clone()).unwrap(), bytes }
    }

    fn settings() -> CudaSettings {
        let dependencies =
            BTreeMap::from([(12, vec!["Nvidia.Nvrtc-cu12>=12; python_version > '3'".to_owned()]), (13, vec![])]);
        CudaSettings { majors: vec![12, 13], packaging: super::super::Packaging::Merged, dependencies }
    }

    fn library(major: u32) -> impl Fn(WheelBuilder) -> WheelBuilder {
        move |wheel| wheel.file("my_ext/sub/_native.abi3.so", format!("for {major}"))
    }

    #[test]
    fn modules_that_differ_lie_beside_each_other_and_the_rest_is_kept_once() {
        let bytes = merge(&[part(12, library(12)), part(13, library(13))], &settings()).unwrap();
        let wheel = Wheel::from_bytes(FILE, bytes).unwrap();
        let paths: Vec<&str> =
            wheel.entries().iter().map(Entry::path).filter(|path| !path.contains("dist-info")).collect();
        assert_eq!(
            paths,
            [
                "my_ext/__init__.py",
                "my_ext/sub/_cu12/_native.abi3.so",
                "my_ext/sub/_cu13/_native.abi3.so",
                "my_ext/sub/_native.py",
                "my_ext/sub/_cu12/__init__.py",
                "my_ext/sub/_cu13/__init__.py",
                "my_ext/_cuda_major.py",
            ]
        );
        assert_eq!(wheel.read("my_ext/sub/_cu12/_native.abi3.so").unwrap(), b"for 12");
        let read = |path: &str| String::from_utf8(wheel.read(path).unwrap()).unwrap();
        let module = read("my_ext/sub/_native.py");
        assert!(module.contains("from my_ext._cuda_major import") && !module.contains("name_of_module"), "{module}");
        let choice = read("my_ext/_cuda_major.py");
        assert!(choice.contains("VARIABLE = \"MY_EXT_CUDA_MAJOR\""), "{choice}");
        assert!(choice.contains("LIBRARIES = {12: [\"nvidia-nvrtc-cu12\"], 13: []}"), "{choice}");
        assert_eq!(wheel.metadata().provides_extra().collect::<Vec<_>>(), ["cu12"]);
        let requirement = "Nvidia.Nvrtc-cu12>=12 ; (python_version > '3') and extra == 'cu12'";
        assert_eq!(wheel.metadata().requires_dist().collect::<Vec<_>>(), [requirement]);
        assert!(wheel.verify_record().is_empty());
    }

    #[test]
    fn what_cannot_be_chosen_at_import_is_refused() {
        let message =
            |twelve: Part, thirteen: Part| crate::error::render(&merge(&[twelve, thirteen], &settings()).unwrap_err());
        let same = |wheel: WheelBuilder| library(1)(wheel);
        let data = |text: &'static str| move |wheel: WheelBuilder| wheel.file("my_ext/k.fatbin", text);
        let top = |text: &'static str| move |wheel: WheelBuilder| wheel.file("_native.abi3.so", text);
        let own = |text: &'static str| move |wheel: WheelBuilder| top(text)(wheel).file("my_ext/x", text);
        for (found, part) in [
            (message(part(12, same), part(13, same)), "are the same"),
            (message(part(12, data("a")), part(13, data("b"))), "my_ext/k.fatbin is no extension module"),
            (message(part(12, top("a")), part(13, top("b"))), "_native.abi3.so is a module outside of any package"),
            (message(part(12, own("a")), part(13, top("b"))), "my_ext/x is not in the wheel for CUDA 13"),
        ] {
            assert!(found.contains(part), "{part} is not in {found}");
        }
        let taken = |major| move |wheel| library(major)(wheel).file("my_ext/_cuda_major.py", "");
        assert!(message(part(12, taken(12)), part(13, taken(13))).contains("the project has such a file"));
        let extra = |major| move |wheel: WheelBuilder| library(major)(wheel).metadata_header("Provides-Extra", "cu12");
        assert!(message(part(12, extra(12)), part(13, extra(13))).contains("an extra cu12 of its own"));
    }
}
