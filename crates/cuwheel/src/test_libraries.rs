//! Shared libraries of the project that its Python tests load, such as a stand-in for a driver: built by cargo, and laid
//! where the loader of the tests' processes finds them before the system's.
//!
//! Not for the native modules of the wheel, which come from the wheel and from nowhere else.

use std::path::{Path, PathBuf};

use cuwheel_inspect::elf::ElfFile;
use fs_err as fs;
use serde::Deserialize;

use crate::cargo;
use crate::environment::{Access, BuildEnvironment};
use crate::error::{Failure, Result};
use crate::interpreter::Interpreter;
use crate::output::Output;
use crate::project::Project;

/// A line of cargo's `--message-format=json`, as far as it is of interest.
#[derive(Deserialize)]
struct Message {
    reason: String,
    #[serde(default)]
    package_id: String,
    #[serde(default)]
    filenames: Vec<PathBuf>,
    target: Option<Target>,
}

#[derive(Deserialize)]
struct Target {
    crate_types: Vec<String>,
}

/// Builds the packages that `tool.cuwheel.test.libraries` names and returns their shared libraries.
pub fn build(project: &Project, interpreter: &Interpreter, access: Access, output: &Output) -> Result<Vec<PathBuf>> {
    let packages = &project.settings.test.libraries;
    if packages.is_empty() {
        return Ok(Vec::new());
    }
    let environment = BuildEnvironment::ready(project, interpreter, access, output)?;
    output.step("build", &format!("{} for the tests", packages.join(", ")));
    packages.iter().map(|package| build_one(project, package, interpreter, &environment, access)).collect()
}

fn build_one(
    project: &Project,
    package: &str,
    interpreter: &Interpreter,
    environment: &BuildEnvironment,
    access: Access,
) -> Result<PathBuf> {
    let finished = cargo::with_headers(cargo::process(), interpreter, environment)?
        .directory(&project.root)
        .args(["build", "--lib", "--package", package, "--message-format=json-render-diagnostics"])
        .args(access.offline.then_some("--offline"))
        .capture()?;
    if !finished.status.success() {
        return Err(Failure::failed(format!("the library {package} of the tests does not compile"))
            .details(finished.tail(40))
            .remedy("mend what cargo says, or take the package out of tool.cuwheel.test.libraries")
            .into());
    }
    shared_library(&finished.stdout, package).ok_or_else(|| {
        Failure::usage(format!("the package {package} of tool.cuwheel.test.libraries makes no shared library"))
            .remedy("give its [lib] the crate-type \"cdylib\", or take it out of the setting")
            .into()
    })
}

/// The shared library of `package` among what cargo says that it made.
fn shared_library(messages: &str, package: &str) -> Option<PathBuf> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Message>(line).ok())
        .filter(|message| message.reason == "compiler-artifact" && package_name(&message.package_id) == package)
        .filter(|message| {
            message.target.as_ref().is_some_and(|target| target.crate_types.iter().any(|kind| kind == "cdylib"))
        })
        .flat_map(|message| message.filenames)
        .find(|path| path.extension().is_some_and(|extension| extension == "so"))
}

/// The name in a package id: `…#name@1.0.0`, or `…/name#1.0.0` where the directory is named as the package.
fn package_name(id: &str) -> &str {
    let (place, fragment) = id.rsplit_once('#').unwrap_or((id, ""));
    match fragment.rsplit_once('@') {
        Some((name, _)) => name,
        None => place.rsplit('/').next().unwrap_or(place),
    }
}

/// Copies `libraries` into the new directory `target`, under their file names and the names that the loader knows them by.
pub fn lay_out(libraries: &[PathBuf], target: &Path) -> Result<()> {
    fs::create_dir(target)?;
    for library in libraries {
        let content = fs::read(library)?;
        let file = ElfFile::parse(&content)
            .map_err(|error| Failure::failed(format!("{} cannot be read: {error}", library.display())))?;
        let names = library.file_name().and_then(|name| name.to_str()).into_iter().chain(file.soname());
        for name in names {
            fs::write(target.join(name), &content)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_from_both_forms_of_package_ids() {
        for (id, name) in [
            ("path+file:///x/crates/cuda-stub#0.1.0", "cuda-stub"),
            ("path+file:///x/stub#cuda-stub@0.1.0", "cuda-stub"),
            ("registry+https://example.org/index#serde@1.0.0", "serde"),
        ] {
            assert_eq!(package_name(id), name);
        }
    }

    #[test]
    fn only_the_shared_library_of_the_package_is_taken() {
        let message = |id: &str, kind: &str, file: &str| {
            serde_json::json!({
                "reason": "compiler-artifact", "package_id": id, "filenames": [file], "target": {"crate_types": [kind]}
            })
            .to_string()
        };
        let messages = [
            message("path+file:///x/other#0.1.0", "cdylib", "/t/libother.so"),
            message("path+file:///x/stub#0.1.0", "rlib", "/t/libstub.rlib"),
            "no json".to_owned(),
            message("path+file:///x/stub#0.1.0", "cdylib", "/t/libstub.so"),
        ]
        .join("\n");
        assert_eq!(shared_library(&messages, "stub"), Some(PathBuf::from("/t/libstub.so")));
        assert_eq!(shared_library(&messages, "absent"), None);
    }
}
