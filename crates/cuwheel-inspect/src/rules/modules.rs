//! Rules on modules: that the native ones are there, can be initialised, and that declared ones are not left out.

use std::collections::HashSet;

use super::catalog::{DECLARED_MISSING, ENTRY_POINT, MISSING_INIT, NO_EXTENSION, NO_NATIVE};
use super::{ExaminedWheel, Finding, Policy, listed};
use crate::wheel::{Entry, ExtensionAbi, ExtensionModule, Wheel, installed_path};

pub(super) fn check(examined: &ExaminedWheel, policy: &Policy, findings: &mut Vec<Finding>) {
    for module in examined.wheel().extension_modules() {
        check_init(examined, &module, findings);
    }
    check_presence(examined, findings);
    let modules = Modules::of(examined.wheel());
    check_entry_points(examined.wheel(), &modules, findings);
    for module in &policy.modules {
        if !modules.may_hold(module) {
            findings.push(Finding::new(&DECLARED_MISSING, format!("no file is the module {module}")));
        }
    }
}

/// A file with the suffix of an interpreter is an extension module; one that ends in `.so` alone may be any library,
/// unless it exports an init function.
fn check_init(examined: &ExaminedWheel, module: &ExtensionModule, findings: &mut Vec<Finding>) {
    let name = module.module().rsplit('.').next().unwrap_or_default();
    let Some(native) = examined.native(module.path()) else {
        let is_for_linux = examined.wheel().name().platform_tags().iter().all(|platform| platform.contains("linux"));
        if is_for_linux && *module.abi() != ExtensionAbi::Bare {
            findings.push(
                Finding::new(&MISSING_INIT, "it is no ELF file, so that Python cannot load it").at(module.path()),
            );
        }
        return;
    };
    let is_certain = *module.abi() != ExtensionAbi::Bare || (!native.inits.is_empty() && !name.starts_with("lib"));
    // Names beyond ASCII are written in punycode in the symbol.
    if native.fault.is_some() || native.is_foreign() || !is_certain || !name.is_ascii() {
        return;
    }
    let wanted = init_functions(name);
    if !native.inits.iter().any(|init| wanted.contains(init)) {
        let found = if native.inits.is_empty() { "no init function".to_owned() } else { listed(&native.inits) };
        let message = format!("it exports {found}, and Python looks for {}", wanted[0]);
        findings.push(Finding::new(&MISSING_INIT, message).at(module.path()).symbol(Some(&wanted[0])));
    }
}

/// What Python looks for.
fn init_functions(name: &str) -> [String; 2] {
    [format!("PyInit_{name}"), format!("PyModExport_{name}")]
}

fn check_presence(examined: &ExaminedWheel, findings: &mut Vec<Finding>) {
    let wheel = examined.wheel();
    let name = wheel.name();
    if name.platform_tags().iter().any(|platform| platform == "any") {
        return;
    }
    let is_native = |entry: &Entry| {
        let file = entry.path();
        let extension = file.rsplit_once('.').map(|(_, extension)| extension);
        entry.is_elf() || entry.is_shared_library() || matches!(extension, Some("exe" | "a" | "lib"))
    };
    // A library that is loaded by its path may use Python's symbols too, and is then tied to the ABI.
    let is_tied = |entry: &Entry| {
        let native = examined.native(entry.path());
        is_native(entry) && native.is_none_or(|native| native.fault.is_some() || !native.undefined_python.is_empty())
    };
    let abi = name.abi_tags().iter().find(|abi| *abi != "none");
    let has_no_module = wheel.extension_modules().is_empty() && !wheel.entries().iter().any(is_tied);
    if let (Some(abi), true) = (abi, has_no_module) {
        findings.push(Finding::new(
            &NO_EXTENSION,
            format!("the tag names the ABI {abi}, and no file is an extension module"),
        ));
    } else if !wheel.entries().iter().any(is_native) {
        let message = format!("the tag names the platform {}, and no file is native", listed(name.platform_tags()));
        findings.push(Finding::new(&NO_NATIVE, message));
    }
}

fn check_entry_points(wheel: &Wheel, modules: &Modules, findings: &mut Vec<Finding>) {
    let path = format!("{}/entry_points.txt", wheel.dist_info());
    let mut found = |message: String| findings.push(Finding::new(&ENTRY_POINT, message).at(&path));
    for line in wheel.malformed_entry_points() {
        found(format!("line {line} is no entry point"));
    }
    for point in wheel.entry_points() {
        let top = point.module().split('.').next().unwrap_or_default();
        // What lies in no package of the wheel is of a project that it requires.
        if modules.may_hold(top) && !modules.may_hold(point.module()) {
            let (group, name) = (point.group(), point.name());
            found(format!("{name} of {group} names {}, and no file is that module", point.module()));
        }
    }
}

/// The modules that a wheel installs.
struct Modules {
    /// Files, packages, and directories that may be packages without a file of their own.
    names: HashSet<String>,
    extensions: HashSet<String>,
    /// Packages with an extension module, which may make further modules beside itself.
    parents: HashSet<String>,
}

impl Modules {
    fn of(wheel: &Wheel) -> Self {
        /// No package is so deep, and names of strangers may be.
        const DEEPEST: usize = 32;
        let mut names = HashSet::new();
        for path in wheel.entries().iter().filter_map(|entry| installed_path(entry.path())) {
            let stem = path.strip_suffix(".py").or_else(|| path.strip_suffix(".pyc"));
            let ends = path.match_indices('/').map(|(position, _)| position).take(DEEPEST);
            names.extend(ends.map(|end| path[..end].replace('/', ".")));
            names.extend(stem.map(|stem| stem.replace('/', ".")));
        }
        let extensions: HashSet<String> =
            wheel.extension_modules().iter().map(|extension| extension.module().to_owned()).collect();
        let parents = extensions.iter().filter_map(|name| Some(name.rsplit_once('.')?.0.to_owned())).collect();
        Self { names, extensions, parents }
    }

    /// Whether `module` is a file or a package of the wheel, or may be made by an extension module that is imported first.
    fn may_hold(&self, module: &str) -> bool {
        if self.names.contains(module) || self.extensions.contains(module) {
            return true;
        }
        let parent = module.rsplit_once('.').map(|(parent, _)| parent);
        parent.is_some_and(|parent| self.extensions.contains(parent) || self.parents.contains(parent))
    }
}
