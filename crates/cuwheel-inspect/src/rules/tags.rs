//! Rules on tags: that they say the same everywhere, and that the files inside are what they promise.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::catalog::{ABI_SUFFIX, GLIBC_FLOOR, LIMITED_API, MACHINE, PURE_WITH_NATIVE, PURELIB_FLAG, TAGS_MISMATCH};
use super::native::NativeFile;
use super::{ExaminedWheel, Finding, limited_api, listed};
use crate::elf::{GlibcVersion, Machine};
use crate::wheel::{Entry, ExtensionAbi, ExtensionModule, Tag, Wheel};

pub(super) fn check(examined: &ExaminedWheel, findings: &mut Vec<Finding>) {
    let wheel = examined.wheel();
    let platforms = wheel.name().platform_tags();
    check_agreement(wheel, findings);
    if platforms.iter().any(|platform| platform == "any") {
        check_pure(examined, findings);
    } else {
        check_machine(examined, findings);
        check_glibc(examined, findings);
        if let (Some(module), true) = (wheel.extension_modules().first(), wheel.info().root_is_purelib()) {
            let message = format!("Root-Is-Purelib is true, and {} is native", module.path());
            findings.push(Finding::new(&PURELIB_FLAG, message).at(&format!("{}/WHEEL", wheel.dist_info())));
        }
        // A module in a wheel for any platform is one of several, or one that the package can do without.
        check_suffixes(wheel, findings);
    }
    check_limited_api(examined, findings);
}

fn check_agreement(wheel: &Wheel, findings: &mut Vec<Finding>) {
    let shown = |tags: &[Tag]| -> BTreeSet<String> { tags.iter().map(|tag| tag.to_string().to_lowercase()).collect() };
    let (in_name, in_file) = (shown(&wheel.name().tags()), shown(wheel.info().tags()));
    if in_name == in_file {
        return;
    }
    let only = |left: &BTreeSet<String>, right: &BTreeSet<String>| -> Vec<String> {
        left.difference(right).cloned().collect()
    };
    let parts = [("the file name says", only(&in_name, &in_file)), ("WHEEL says", only(&in_file, &in_name))];
    let message: Vec<String> = parts
        .iter()
        .filter(|(_, tags)| !tags.is_empty())
        .map(|(who, tags)| format!("only {who} {}", listed(tags)))
        .collect();
    findings.push(Finding::new(&TAGS_MISMATCH, message.join("; ")).at(&format!("{}/WHEEL", wheel.dist_info())));
}

/// Native code in a wheel for any platform, unless it holds it for several, from which the package chooses.
fn check_pure(examined: &ExaminedWheel, findings: &mut Vec<Finding>) {
    let mut natives: Vec<(&str, String)> =
        examined.libraries().map(|(entry, native)| (entry.path(), machine_name(native))).collect();
    for entry in examined.wheel().entries().iter().filter(|entry| !entry.is_elf() && !entry.is_directory()) {
        match entry.path().rsplit_once('.').map(|(_, extension)| extension) {
            Some("so") => natives.push((entry.path(), "another".to_owned())),
            Some("pyd" | "dll") => natives.push((entry.path(), "windows".to_owned())),
            Some("dylib") => natives.push((entry.path(), "macos".to_owned())),
            _ => {}
        }
    }
    // A .dll alone may be of .NET, which is for any platform.
    let only_dll =
        natives.iter().all(|(path, _)| path.rsplit_once('.').is_some_and(|(_, extension)| extension == "dll"));
    let platforms: BTreeSet<&String> = natives.iter().map(|(_, platform)| platform).collect();
    if platforms.len() > 1 || only_dll {
        return;
    }
    let tags: Vec<String> = examined.wheel().name().tags().iter().map(ToString::to_string).collect();
    for (path, _) in natives {
        findings
            .push(Finding::new(&PURE_WITH_NATIVE, format!("it is native, and the tag is {}", listed(&tags))).at(path));
    }
}

fn machine_name(native: &NativeFile) -> String {
    native.machine.map_or_else(|| "an unknown machine".to_owned(), |machine| machine.to_string())
}

/// The processor at the end of a platform tag of Linux.
fn machine_of(platform: &str) -> Option<&'static str> {
    const KNOWN: &[&str] =
        &["x86_64", "aarch64", "i686", "armv7l", "armv6l", "ppc64le", "ppc64", "s390x", "riscv64", "loongarch64"];
    let is_linux = ["manylinux", "musllinux_", "linux_"].iter().any(|prefix| platform.starts_with(prefix));
    let end = |machine: &&&str| platform.strip_suffix(**machine).is_some_and(|rest| rest.ends_with('_'));
    is_linux.then(|| KNOWN.iter().find(end).copied()).flatten()
}

fn check_machine(examined: &ExaminedWheel, findings: &mut Vec<Finding>) {
    let platforms = examined.wheel().name().platform_tags();
    let promised: Vec<&str> = platforms.iter().filter_map(|platform| machine_of(platform)).collect();
    if promised.len() < platforms.len() {
        // Some tag is of another system, or names a processor that is not known here.
        return;
    }
    for (entry, native) in examined.natives().filter(|(entry, _)| is_loaded_by_name(entry)) {
        let Some(machine) = native.machine else { continue };
        let fits = promised.iter().all(|promised| match machine {
            Machine::Armv7l => promised.starts_with("armv"),
            machine => machine.to_string() == **promised,
        });
        if !fits {
            let message = format!("it is for {machine}, and the tag is {}", listed(platforms));
            findings.push(Finding::new(&MACHINE, message).at(entry.path()));
        }
    }
}

/// What a loader or a shell is told to open; other ELF files may be data, for a GPU or an emulator.
fn is_loaded_by_name(entry: &Entry) -> bool {
    entry.is_shared_library() || entry.path().split('/').nth(1) == Some("scripts")
}

fn check_glibc(examined: &ExaminedWheel, findings: &mut Vec<Finding>) {
    let platforms = examined.wheel().name().platform_tags();
    let promised = platforms.iter().filter_map(|tag| Some((GlibcVersion::from_platform_tag(tag)?, tag))).min();
    let musl = platforms.iter().find(|tag| tag.starts_with("musllinux_"));
    for (entry, native) in examined.libraries() {
        let needs = native.glibc.iter();
        let (newer, tag): (Vec<_>, _) = match (musl, promised) {
            (Some(tag), _) => (needs.collect(), tag),
            (None, Some((promised, tag))) => (needs.filter(|need| need.version > promised).collect(), tag),
            (None, None) => return,
        };
        let Some(newest) = newer.iter().max_by_key(|need| need.version) else { continue };
        let mut shown: Vec<(GlibcVersion, String)> = Vec::new();
        for need in &newer {
            if need.symbols.is_empty() {
                shown.push((need.version, format!("{} of {}", need.name, need.library)));
            }
            shown.extend(need.symbols.iter().map(|symbol| (need.version, format!("{symbol} ({})", need.name))));
        }
        shown.sort_by(|left, right| right.0.cmp(&left.0).then_with(|| left.1.cmp(&right.1)));
        let shown: Vec<String> = shown.into_iter().map(|(_, text)| text).collect();
        let message = format!("it needs glibc {}, and {tag} does not promise it: {}", newest.version, listed(&shown));
        let symbol = newest.symbols.first().map(String::as_str);
        findings.push(Finding::new(&GLIBC_FLOOR, message).at(entry.path()).symbol(symbol));
    }
}

/// For every module and every tag there has to be a file that an interpreter of the tag imports. Several files for one
/// module are a wheel for several interpreters.
fn check_suffixes(wheel: &Wheel, findings: &mut Vec<Finding>) {
    let modules = wheel.extension_modules();
    let tags = wheel.name().tags();
    let mut by_name: BTreeMap<&str, Vec<&ExtensionModule>> = BTreeMap::new();
    for module in &modules {
        by_name.entry(module.module()).or_default().push(module);
    }
    for files in by_name.values() {
        let is_imported = |tag: &Tag| files.iter().any(|file| fits(file.abi(), tag, files.len()));
        if let Some(tag) = tags.iter().find(|tag| !is_imported(tag)) {
            let module = files[0];
            let message = format!("its suffix says {}, and the tag is {}-{}", module.abi(), tag.python(), tag.abi());
            findings.push(Finding::new(&ABI_SUFFIX, message).at(module.path()));
        }
    }
}

/// Whether an interpreter of `tag` imports a file with the suffix `abi`, one of `count` for its module.
fn fits(abi: &ExtensionAbi, tag: &Tag, count: usize) -> bool {
    let is_cpython = tag.python().starts_with("cp");
    match abi {
        ExtensionAbi::Bare => true,
        // A build with flags, such as `cpython-37m`, or another interpreter.
        ExtensionAbi::Other(suffix) => {
            let version = suffix.strip_prefix("cpython-").and_then(|rest| rest.split('-').next());
            !is_cpython || version.is_some_and(|version| tag.abi().strip_prefix("cp") == Some(version))
        }
        ExtensionAbi::Abi3 => is_cpython_without(tag, 't') || tag.abi() == "none" || tag.abi() == "abi3",
        ExtensionAbi::Abi3t => tag.abi() == "none" || tag.abi().starts_with("abi3") || is_cpython,
        ExtensionAbi::CPython { minor, free_threaded } => {
            let suffix = if *free_threaded { "t" } else { "" };
            let own = format!("cp3{minor}{suffix}");
            match tag.abi() {
                // A wheel without an ABI that carries the module for several interpreters.
                "none" => count > 1 || tag.python() == format!("cp3{minor}"),
                // `cp37m`: the letters of Python before 3.8.
                abi => abi == own || abi.strip_suffix('m') == Some(&own),
            }
        }
    }
}

fn is_cpython_without(tag: &Tag, flag: char) -> bool {
    tag.abi().starts_with("cp") && !tag.abi().ends_with(flag)
}

fn check_limited_api(examined: &ExaminedWheel, findings: &mut Vec<Finding>) {
    let wheel = examined.wheel();
    // What the wheel's own libraries define does not come from Python.
    let own: HashSet<&str> =
        examined.libraries().flat_map(|(_, native)| &native.defined_python).map(String::as_str).collect();
    for module in wheel.extension_modules() {
        let Some(floor) = abi3_floor(wheel, &module) else { continue };
        let Some(native) = examined.native(module.path()) else { continue };
        let newer: Vec<(&str, String)> = native
            .undefined_python
            .iter()
            .filter_map(|symbol| Some((symbol.as_str(), limited_api::complaint(symbol, floor)?)))
            .filter(|(symbol, _)| !own.contains(symbol))
            .collect();
        let Some((symbol, _)) = newer.first() else { continue };
        let shown: Vec<String> = newer.iter().map(|(symbol, reason)| format!("{symbol} ({reason})")).collect();
        let message = format!("Python 3.{floor} does not have in its limited API: {}", listed(&shown));
        findings.push(Finding::new(&LIMITED_API, message).at(module.path()).symbol(Some(symbol)));
    }
}

/// The oldest Python that loads an abi3 module of this wheel, as its minor version.
fn abi3_floor(wheel: &Wheel, module: &ExtensionModule) -> Option<u32> {
    let is_abi3 = |tag: &Tag| tag.abi() == "abi3" || *module.abi() == ExtensionAbi::Abi3;
    let applies = matches!(module.abi(), ExtensionAbi::Abi3 | ExtensionAbi::Bare);
    let tags = wheel.name().tags();
    let minors = tags.iter().filter(|tag| applies && is_abi3(tag)).filter_map(|tag| tag.python().strip_prefix("cp3"));
    minors.filter_map(|minor| minor.parse().ok()).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_fit_the_tags_of_interpreters_that_import_them() {
        let module = |file: &str| ExtensionModule::from_path(file).unwrap();
        for (file, tag, count, expected) in [
            ("a.cpython-312-x.so", "cp312-cp312-linux_x86_64", 1, true),
            ("a.cpython-312-x.so", "cp313-cp313-linux_x86_64", 1, false),
            ("a.cpython-312-x.so", "cp311-abi3-linux_x86_64", 1, false),
            ("a.cpython-312-x.so", "py3-none-linux_x86_64", 1, false),
            ("a.cpython-312-x.so", "py3-none-linux_x86_64", 2, true),
            ("a.cpython-312-x.so", "cp312-none-linux_x86_64", 1, true),
            ("a.cpython-37m-x.so", "cp37-cp37m-linux_x86_64", 1, true),
            ("a.cpython-312d-x.so", "cp312-cp312-linux_x86_64", 1, false),
            ("a.cp37-win_amd64.pyd", "cp37-cp37m-win_amd64", 1, true),
            ("a.cpython-313t-x.so", "cp313-cp313t-linux_x86_64", 1, true),
            ("a.cpython-313-x.so", "cp313-cp313t-linux_x86_64", 1, false),
            ("a.cpython-313t-x.so", "cp313-cp313-linux_x86_64", 1, false),
            ("a.abi3.so", "cp311-abi3-linux_x86_64", 1, true),
            ("a.abi3.so", "cp312-cp312-linux_x86_64", 1, true),
            ("a.abi3.so", "cp313-cp313t-linux_x86_64", 1, false),
            ("a.abi3t.so", "cp315-abi3t-linux_x86_64", 1, true),
            ("a.abi3.so", "cp315-abi3t-linux_x86_64", 1, false),
            ("a.so", "cp313-cp313t-linux_x86_64", 1, true),
            ("a.pypy310-pp73-x.so", "pp310-pypy310_pp73-linux_x86_64", 1, true),
            ("a.pypy310-pp73-x.so", "cp310-cp310-linux_x86_64", 1, false),
        ] {
            assert_eq!(fits(module(file).abi(), &tag.parse().unwrap(), count), expected, "{file} for {tag}");
        }
    }

    #[test]
    fn processors_are_read_from_tags_of_linux() {
        for (tag, expected) in [
            ("manylinux_2_28_x86_64", Some("x86_64")),
            ("manylinux2014_aarch64", Some("aarch64")),
            ("musllinux_1_2_ppc64le", Some("ppc64le")),
            ("linux_armv7l", Some("armv7l")),
            ("macosx_11_0_x86_64", None),
            ("win_amd64", None),
            ("manylinux_2_28_sparc", None),
        ] {
            assert_eq!(machine_of(tag), expected, "{tag}");
        }
    }
}
