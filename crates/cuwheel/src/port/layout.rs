//! Where things go: from the paths and the module names of the existing project to those of the new one.
//!
//! One extension module stays what it is. Several become submodules of one library, each with a file of Python that takes its
//! names from there, so that there is one copy of Rust's runtime and every module keeps its name.

use std::collections::BTreeSet;

use serde::Serialize;

use super::existing::ExistingProject;
use super::extension::{Extension, Kind};
use crate::requirements::requirement_name;

/// One native module in the new project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NativeModule {
    /// The full name in Python.
    pub name: String,
    /// The name in the library, and of the Rust file.
    pub member: String,
    /// The index of the extension module in the facts.
    #[serde(skip)]
    pub(super) extension: usize,
}

/// The native library of the new project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Layout {
    /// The distribution's name.
    pub name: String,
    /// The crate.
    pub crate_name: String,
    /// The full name of the module that the library is.
    pub library: String,
    /// The modules: the library itself, or its submodules.
    pub modules: Vec<NativeModule>,
    /// Whether the one module is the library.
    pub is_single: bool,
    /// The existing crate that is the library, with the directory that it comes from.
    pub existing_crate: Option<String>,
}

impl Layout {
    pub(super) fn of(existing: &ExistingProject, name: &str) -> Self {
        let crate_name = format!("{}-native", requirement_name(name));
        let indices = |is_rust: bool| {
            let extensions = existing.extensions.iter().enumerate();
            let modules = extensions.filter(|(_, extension)| !is_package(existing, &extension.name));
            modules.filter(move |(_, extension)| (extension.kind == Kind::Rust) == is_rust).map(|(index, _)| index)
        };
        let rust: Vec<usize> = indices(true).collect();
        let native: Vec<usize> = indices(false).collect();
        if let ([only], true) = (&rust[..], native.is_empty()) {
            let extension = &existing.extensions[*only];
            let manifest = extension.manifest.clone().unwrap_or_else(|| "Cargo.toml".to_owned());
            let module = NativeModule {
                name: extension.name.clone(),
                member: last(&extension.name).to_owned(),
                extension: *only,
            };
            let directory =
                manifest.trim_end_matches("Cargo.toml").trim_start_matches("./").trim_matches('/').to_owned();
            let (library, existing_crate) = (extension.name.clone(), Some(directory));
            return Self {
                name: name.to_owned(),
                crate_name,
                library,
                modules: vec![module],
                is_single: true,
                existing_crate,
            };
        }
        let package = main_package(existing, name);
        let is_single = native.len() == 1 && existing.extensions[native[0]].name.contains('.')
            || native.len() == 1 && existing.packages.packages.is_empty() && existing.packages.modules.is_empty();
        let mut taken = BTreeSet::new();
        let modules: Vec<NativeModule> = native
            .iter()
            .map(|index| {
                let name = existing.extensions[*index].name.clone();
                let member = unused(&name, &mut taken);
                NativeModule { name, member, extension: *index }
            })
            .collect();
        let library = if is_single { modules[0].name.clone() } else { library_name(existing, &package) };
        Self { name: name.to_owned(), crate_name, library, modules, is_single, existing_crate: None }
    }

    /// The package that the library lies in; empty for a module at the top.
    pub(super) fn package(&self) -> &str {
        self.library.rsplit_once('.').map_or("", |(package, _)| package)
    }

    /// The directory of the crate.
    pub(super) fn crate_directory(&self) -> String {
        format!("crates/{}", self.crate_name)
    }

    /// Where a native source goes, which keeps its path.
    pub(super) fn native_path(&self, path: &str) -> String {
        format!("{}/native/{path}", self.crate_directory())
    }

    /// Where the Rust source of a module is.
    pub(super) fn rust_path(&self, module: &NativeModule) -> String {
        format!("{}/src/{}.rs", self.crate_directory(), rust_name(&module.member))
    }
}

/// Whether a package has the name: then something is built under it, and no module. Projects of `CMake` are called so at times.
pub(super) fn is_package(existing: &ExistingProject, name: &str) -> bool {
    existing.packages.packages.iter().any(|package| {
        let inner = name.strip_prefix(&package.name).filter(|rest| rest.is_empty() || rest.starts_with('.'));
        inner.is_some_and(|rest| {
            existing.tree.has(&format!("{}{}/__init__.py", package.directory, rest.replace('.', "/")))
        })
    })
}

fn last(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// The last part of a module's name, with as much before it as tells it from others.
fn unused(name: &str, taken: &mut BTreeSet<String>) -> String {
    let parts: Vec<&str> = name.split('.').collect();
    for length in 1..=parts.len() {
        let member = parts[parts.len() - length..].join("_");
        if taken.insert(rust_name(&member)) {
            return member;
        }
    }
    // The same module twice is not in the facts; parts that differ in marks only may be.
    let member = format!("{}_{}", parts.join("_"), taken.len());
    taken.insert(rust_name(&member));
    member
}

/// The package that most extension modules lie in, or that is named after the project.
fn main_package(existing: &ExistingProject, name: &str) -> String {
    let parent = |extension: &Extension| extension.name.rsplit_once('.').map(|(package, _)| package.to_owned());
    let parents: Vec<String> = existing.extensions.iter().filter_map(parent).collect();
    let count = |package: &String| parents.iter().filter(|other| *other == package).count();
    let most = parents.iter().max_by_key(|package| {
        (count(package), std::cmp::Reverse(package.len()), std::cmp::Reverse((*package).clone()))
    });
    if let Some(package) = most {
        return package.clone();
    }
    let own = requirement_name(name).replace('-', "_");
    let packages = &existing.packages.packages;
    let named = packages.iter().find(|package| package.name.eq_ignore_ascii_case(&own));
    named.or_else(|| packages.first()).map_or(own, |package| package.name.clone())
}

/// `_native` in the package, unless something there has that name.
fn library_name(existing: &ExistingProject, package: &str) -> String {
    let directory = package.replace('.', "/");
    let source = &existing.packages.source_directory;
    let stem = if source.is_empty() { directory } else { format!("{source}/{directory}") };
    let is_taken = |name: &&str| {
        let module = format!("{package}.{name}");
        existing.extensions.iter().any(|extension| extension.name == module)
            || [format!("{stem}/{name}.py"), format!("{stem}/{name}")].iter().any(|path| existing.tree.has(path))
    };
    let name =
        ["_native", "_rust", "_cuwheel_native"].into_iter().find(|name| !is_taken(name)).unwrap_or("_native_library");
    format!("{package}.{name}")
}

/// A name as Rust takes it for a module.
pub(super) fn rust_name(name: &str) -> String {
    const TAKEN: &[&str] = &[
        "lib",
        "main",
        "not_ported",
        "numpy_shim",
        "kernels",
        "mod",
        "type",
        "match",
        "async",
        "loop",
        "move",
        "ref",
        "self",
        "super",
        "crate",
        "use",
        "impl",
        "fn",
        "in",
        "where",
        "trait",
        "static",
        "struct",
        "enum",
        "const",
        "box",
        "try",
        "final",
        "abstract",
        "macro",
        "native",
        "core",
        "std",
        "alloc",
        "pyo3",
    ];
    let mut name: String = name
        .trim_start_matches('_')
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' })
        .collect();
    if name.trim_matches('_').is_empty()
        || name.starts_with(|c: char| c.is_ascii_digit())
        || TAKEN.contains(&name.as_str())
    {
        name = format!("module_{name}");
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_told_apart() {
        let mut taken = BTreeSet::new();
        let members = ["a._ext", "b._ext", "_ext", "a.b._ext"].map(|name| unused(name, &mut taken));
        assert_eq!(members, ["_ext", "b__ext", "_ext_2", "a_b__ext"]);
        assert_eq!(["_C", "1d", "lib", "é"].map(rust_name), ["c", "module_1d", "module_lib", "module__"]);
    }
}
