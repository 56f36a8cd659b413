//! Overlays: what is changed in a wheel and what is left alone, what is refused, and where released wheels come from.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use cuwheel::cache::Cache;
use cuwheel::error::{Result, kind_of, render};
use cuwheel::files;
use cuwheel::overlay::compose::{Accepted, Additions, Overlay, compose};
use cuwheel::overlay::entry::OverlayEntry;
use cuwheel::overlay::upstream::{Store, Upstream, Wanted};
use cuwheel::settings::Settings;
use cuwheel_inspect::elf::ElfFile;
use cuwheel_inspect::testing::WheelBuilder;
use cuwheel_inspect::wheel::Wheel;
use expect_test::{Expect, expect};

use crate::support::{Tree, interpreter, quiet};

pub(crate) const ENTRY: &str = "\
[overlay.variant]
distribution = 'up'
versions = '>=1.0,<2'
package = 'up/cext'
modules = ['_a', '_b']
files = 'overlay/up'
";

fn entry() -> OverlayEntry {
    let document: toml_edit::DocumentMut = ENTRY.parse().unwrap();
    Settings::from_item(Some(document.as_item())).unwrap().overlays.remove(0)
}

/// The platform that this test runs on, as a tag of a wheel.
fn platform() -> String {
    format!("manylinux_2_28_{}", interpreter().machine())
}

/// The ending of an extension module's file for this interpreter.
pub(crate) fn suffix() -> String {
    format!("{}.so", interpreter().abi)
}

/// The file name of a released wheel for this interpreter.
pub(crate) fn released_name(version: &str) -> String {
    format!("up-{version}-{}-{}.whl", interpreter().specific_tag(), platform())
}

/// A module that makes the package known by another name, as redirecting import hooks do.
const ALIAS: &str = "import pathlib\n__path__ = [str(pathlib.Path(__file__).parent / 'up')]\n";

const LICENCES: &[(&str, &str)] = &[("licenses/LICENSE", "their licence\n"), ("top_level.txt", "up\n")];

/// A released wheel with two native modules, their sources, and files around them.
pub(crate) fn released(version: &str) -> WheelBuilder {
    let dist_info = format!("up-{version}.dist-info");
    let mut builder = WheelBuilder::new(&released_name(version))
        .metadata(&format!(
            "Metadata-Version: 2.4\nName: up\nVersion: {version}\nRequires-Python: >=3.9\nLicense-Expression: BSD-2-Clause\n\
             License-File: LICENSE\n\nA text.\n"
        ))
        .file("up/__init__.py", "raise ImportError('needs more than is installed')\n")
        .file("up/cext/__init__.py", "")
        .file("up/cext/tool.py", "VALUE = 1\n")
        .file("up/cext/inner/kept.cpp", "")
        .file("up/kept.h", "")
        .file_with_mode("up/run.sh", "#!/bin/sh\n", 0o100_755)
        .file(&format!("up-{version}.data/purelib/more.py"), ALIAS);
    for module in ["_a", "_b"] {
        builder = builder
            .file(&format!("up/cext/{module}.{}", suffix()), "old")
            .file(&format!("up/cext/{module}.cpp"), "")
            .file(&format!("up/cext/{module}.h"), "");
    }
    for (path, content) in LICENCES {
        builder = builder.file(&format!("{dist_info}/{path}"), content);
    }
    builder
}

/// A project's own wheel, whose library is no library.
fn native() -> Wheel {
    let name = format!("my_pkg-0.3.0-cp311-abi3-{}.whl", platform());
    let builder = WheelBuilder::new(&name)
        .metadata(
            "Metadata-Version: 2.4\nName: my-pkg\nVersion: 0.3.0\nLicense-Expression: Apache-2.0 OR MIT\n\
             License-File: LICENSE-MIT\n",
        )
        .file("my_pkg/_native.abi3.so", "new")
        .file("my_pkg/__init__.py", "")
        .file("my_pkg-0.3.0.dist-info/licenses/LICENSE-MIT", "our licence\n")
        .file("my_pkg-0.3.0.dist-info/sboms/native.cyclonedx.json", "{}\n");
    Wheel::from_bytes(&name, builder.build()).unwrap()
}

fn module_files() -> BTreeMap<String, Vec<u8>> {
    ["_a.py", "_b.py"].map(|file| (file.to_owned(), b"from . import _native\n".to_vec())).into()
}

fn make(released: &WheelBuilder, native: &Wheel, files: BTreeMap<String, Vec<u8>>) -> Result<(Wheel, Overlay)> {
    let (entry, interpreter) = (entry(), interpreter());
    let bytes = released.build();
    let wheel = Wheel::from_bytes(&released.file_name(), bytes.clone()).unwrap();
    let accepted = Accepted::new(&entry, &wheel, interpreter.machine())?;
    let additions = Additions { native, files, name: "my_pkg", machine: interpreter.machine() };
    let version = additions.version(&wheel.metadata().version().parse().unwrap())?;
    let overlay = compose(&accepted, &bytes, &version, &additions)?;
    Ok((wheel, overlay))
}

/// The contents and the right to be executed of every file, with the `.dist-info` and `.data` directories called by one
/// name.
fn contents(wheel: &Wheel) -> BTreeMap<String, (Vec<u8>, bool)> {
    let stem = wheel.dist_info().trim_end_matches(".dist-info").to_owned();
    let files = wheel.entries().iter().filter(|entry| !entry.is_directory());
    files
        .map(|entry| {
            let path = entry.path().replacen(&format!("{stem}."), "STEM.", 1);
            (path, (wheel.read_entry(entry).unwrap(), entry.unix_mode().unwrap_or_default() & 0o111 != 0))
        })
        .collect()
}

/// The differences between two wheels, file by file.
pub(crate) fn differences(before: &Wheel, after: &Wheel) -> String {
    let (before, after) = (contents(before), contents(after));
    let paths: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let mut text = String::new();
    for path in paths {
        let sign = match (before.get(path), after.get(path)) {
            (Some(_), None) => "-",
            (None, Some(_)) => "+",
            (old, new) if old != new => "~",
            _ => continue,
        };
        text += &format!("{sign} {path}\n").replace(&suffix(), "SUFFIX");
    }
    text
}

fn open(overlay: &Overlay) -> Wheel {
    Wheel::from_bytes(&overlay.file, overlay.bytes.clone()).unwrap()
}

#[test]
fn an_overlay_differs_from_the_released_wheel_in_exactly_what_is_replaced() {
    let (before, overlay) = make(&released("1.2"), &native(), module_files()).unwrap();
    let after = open(&overlay);
    expect![[r#"
        ~ STEM.dist-info/METADATA
        ~ STEM.dist-info/RECORD
        ~ STEM.dist-info/WHEEL
        + STEM.dist-info/licenses/my_pkg/LICENSE-MIT
        + STEM.dist-info/overlay.json
        + STEM.dist-info/sboms/native.cyclonedx.json
        + STEM.dist-info/sboms/overlay.cyclonedx.json
        - up/cext/_a.cpp
        - up/cext/_a.SUFFIX
        - up/cext/_a.h
        + up/cext/_a.py
        - up/cext/_b.cpp
        - up/cext/_b.SUFFIX
        - up/cext/_b.h
        + up/cext/_b.py
        + up/cext/_native.abi3.so
    "#]]
    .assert_eq(&differences(&before, &after));
    assert!(after.verify_record().is_empty());
    assert_eq!(overlay.file, format!("up-1.2+my.pkg.0.3.0-cp311-abi3-{}.whl", platform()));
    assert_eq!(after.dist_info(), "up-1.2+my.pkg.0.3.0.dist-info");
    expect![[r#"
        Metadata-Version: 2.4
        Name: up
        Version: 1.2+my.pkg.0.3.0
        Requires-Python: >=3.11
        License-Expression: BSD-2-Clause AND (Apache-2.0 OR MIT)
        License-File: LICENSE
        License-File: my_pkg/LICENSE-MIT

        A text.
    "#]]
    .assert_eq(&String::from_utf8(after.read(&format!("{}/METADATA", after.dist_info())).unwrap()).unwrap());
    let (_, again) = make(&released("1.2"), &native(), module_files()).unwrap();
    assert_eq!(again.bytes, overlay.bytes, "the same wheels and files give the same bytes");
}

#[test]
fn the_note_in_the_wheel_lists_what_was_changed_and_where_it_came_from() {
    let (before, overlay) = make(&released("1.2"), &native(), module_files()).unwrap();
    let after = open(&overlay);
    let json = |path: &str| -> serde_json::Value {
        serde_json::from_slice(&after.read(&format!("{}/{path}", after.dist_info())).unwrap()).unwrap()
    };
    let note = json("overlay.json");
    let noted: BTreeSet<String> = ["removed", "added", "rewritten"]
        .iter()
        .flat_map(|key| note["changed"][key].as_array().unwrap())
        .map(|path| path.as_str().unwrap().replacen("up-1.2+my.pkg.0.3.0.", "STEM.", 1).replace(&suffix(), "SUFFIX"))
        .collect();
    let differing: BTreeSet<String> = differences(&before, &after).lines().map(|line| line[2..].to_owned()).collect();
    assert_eq!(noted, differing);
    assert_eq!(note["released"]["sha256"], before.sha256().to_string());
    let bill = json("sboms/overlay.cyclonedx.json");
    let ancestor = &bill["metadata"]["component"]["pedigree"]["ancestors"][0];
    assert_eq!(ancestor["hashes"][0]["content"], before.sha256().to_string());
    assert_eq!(bill["components"][0]["version"], "0.3.0");
}

#[test]
fn tags_are_computed_from_what_is_inside() {
    let native_for = |tags: &str| {
        let name = format!("my_pkg-0.3.0-{tags}.whl");
        let suffix = if tags.contains("abi3") { "abi3" } else { "cpython-314t-x86_64-linux-gnu" };
        Wheel::from_bytes(&name, WheelBuilder::new(&name).file(&format!("my_pkg/_native.{suffix}.so"), "x").build())
            .unwrap()
    };
    let machine = interpreter().machine().to_owned();
    for (native, expected) in [
        (format!("cp312-abi3-manylinux2014_{machine}.manylinux_2_17_{machine}"), "cp312-abi3"),
        (format!("cp314-cp314t-linux_{machine}"), "cp314-cp314t"),
    ] {
        let (_, overlay) = make(&released("1.2"), &native_for(&native), module_files()).unwrap();
        assert!(
            overlay.file.contains(expected) && overlay.file.ends_with(&format!("{native}.whl")),
            "{}",
            overlay.file
        );
        let python = open(&overlay).metadata().requires_python().unwrap().to_owned();
        assert_eq!(python, if expected.starts_with("cp312") { ">=3.12" } else { ">=3.14" });
    }
    // A library of the released wheel that stays may need a newer glibc than ours.
    let program = std::fs::read("/bin/sh").unwrap();
    let floor = ElfFile::parse(&program).unwrap().glibc_floor().unwrap().version();
    let with_library = released("1.2").file("up.libs/helper.so", &program);
    let native = native_for(&format!("cp311-abi3-manylinux_2_5_{machine}"));
    let (_, overlay) = make(&with_library, &native, module_files()).unwrap();
    let platform = format!("manylinux_{}_{}_{machine}.whl", floor.major, floor.minor);
    assert!(overlay.file.ends_with(&platform), "{}", overlay.file);
}

#[track_caller]
fn refused(result: Result<(Wheel, Overlay)>, expected: &Expect) {
    let text = render(&result.map(|(_, overlay)| overlay.file).unwrap_err());
    expected.assert_eq(&text.replace(&suffix(), "SUFFIX").replace(&released_name("1.2"), "RELEASED"));
}

#[test]
fn a_wheel_with_other_native_modules_is_refused() {
    let more = released("1.2").file(&format!("up/other/_c.{}", suffix()), "");
    refused(
        make(&more, &native(), module_files()),
        &expect![[r#"
            error: RELEASED has other native modules than the overlay variant
              only the wheel has up.other._c
            fix: an overlay replaces every native module of a wheel: write an entry for this one, with its range of versions
        "#]],
    );
    let fewer = WheelBuilder::new(&released_name("1.2")).file(&format!("up/cext/_a.{}", suffix()), "");
    refused(
        make(&fewer, &native(), module_files()),
        &expect![[r#"
            error: RELEASED has other native modules than the overlay variant
              only the overlay has up.cext._b
            fix: an overlay replaces every native module of a wheel: write an entry for this one, with its range of versions
        "#]],
    );
}

#[test]
fn what_an_overlay_cannot_be_made_of_is_refused_with_the_remedy() {
    let mut files = module_files();
    files.insert("tool.py".to_owned(), Vec::new());
    refused(
        make(&released("1.2"), &native(), files),
        &expect![[r#"
        error: the overlay variant would overwrite up/cext/tool.py of the wheel
        fix: only native modules and their sources are replaced: give the file in overlay/up another name, or take it out
    "#]],
    );
    let mut files = module_files();
    files.remove("_b.py");
    refused(
        make(&released("1.2"), &native(), files),
        &expect![[r#"
        error: overlay/up/_b.py does not exist
        fix: write a file for every module of tool.cuwheel.overlay.variant.modules, which takes its names from the native library
    "#]],
    );
    let name = "my_pkg-0.3.0-py3-none-any.whl";
    let pure = Wheel::from_bytes(name, WheelBuilder::new(name).build()).unwrap();
    refused(
        make(&released("1.2"), &pure, module_files()),
        &expect![[r#"
        error: my_pkg-0.3.0-py3-none-any.whl does not hold one native library
        fix: an overlay is made with the library of a project that has one extension module
    "#]],
    );
    let other = WheelBuilder::new("up-1.2-cp311-cp311-win_amd64.whl");
    let machine = interpreter().machine().to_owned();
    let expected = expect![[r#"
        error: up-1.2-cp311-cp311-win_amd64.whl is not for Linux with glibc on MACHINE
        fix: take the wheel of the same release whose platform is manylinux on MACHINE
    "#]];
    let text = render(&make(&other, &native(), module_files()).map(drop).unwrap_err());
    expected.assert_eq(&text.replace(&machine, "MACHINE"));
}

/// The wheels of a directory as an index.
struct Index {
    tree: Tree,
    cache: Cache,
}

impl Index {
    fn new() -> Self {
        let tree = Tree::new();
        let cache = Cache::at(&tree.beside("cache"));
        tree.write("uv.toml", "no-index = true\nfind-links = ['links']\n").write("links/none", "");
        Self { tree, cache }
    }

    fn offer(&self, wheel: &WheelBuilder) {
        self.tree.write(&format!("links/{}", wheel.file_name()), wheel.build());
    }

    fn get(&self, wanted: &str, sha256: Option<&str>, offline: bool) -> Result<Upstream> {
        let wanted: Wanted = wanted.parse().unwrap();
        let interpreter = interpreter();
        let uv = || Ok(uv_in(&self.tree.root));
        Store::new(&self.cache, &interpreter).get(&wanted, sha256, &uv, offline, &quiet())
    }

    #[track_caller]
    fn refuses(&self, wanted: &str, sha256: Option<&str>, offline: bool, expected: &Expect) {
        let error = self.get(wanted, sha256, offline).unwrap_err();
        let interpreter = interpreter();
        let built = files::sha256(&released("1.2").build());
        let text = format!("{}exit code {}\n", render(&error), kind_of(&error).exit_code())
            .replace(&built, "HASH")
            .replace(&released_name("1.2"), "RELEASED")
            .replace(&interpreter.to_string(), "CPYTHON")
            .replace(interpreter.machine(), "MACHINE");
        // uv's own words are its own.
        let lines = text.lines().filter(|line| !line.starts_with("  ") || line.contains("sha256"));
        expected.assert_eq(&(lines.collect::<Vec<_>>().join("\n") + "\n"));
    }
}

/// The uv that the tool uses, as it works in a project.
fn uv_in(directory: &Path) -> cuwheel::uv::Uv {
    let cache = Cache::locate().unwrap();
    cuwheel::uv::Uv::find(&interpreter(), &cache, directory, false, &quiet()).unwrap()
}

#[test]
fn a_release_is_fetched_once_and_held_to_its_hash() {
    let index = Index::new();
    let release = released("1.2");
    index.offer(&release);
    let fetched = index.get("up==1.2", None, false).unwrap();
    assert_eq!(std::fs::read(&fetched.path).unwrap(), release.build());
    std::fs::remove_dir_all(index.tree.root.join("links")).unwrap();
    let again = index.get("UP==1.2", Some(&fetched.sha256.to_uppercase()), true).unwrap();
    assert_eq!((again.path, again.sha256), (fetched.path.clone(), fetched.sha256));
    index.refuses(
        "up==1.2",
        Some(&"0".repeat(64)),
        true,
        &expect![[r#"
            error: RELEASED is not the wheel that was asked for
              expected sha256 0000000000000000000000000000000000000000000000000000000000000000
              found    sha256 HASH
            fix: the command line asks for another wheel: give the hash of this one, or the wheel of that hash
            exit code 1
        "#]],
    );
    // What is no longer what was fetched is not used.
    std::fs::write(&fetched.path, "damaged").unwrap();
    index.refuses(
        "up==1.2",
        None,
        true,
        &expect![[r#"
        error: up==1.2 for CPYTHON is not in the cache, and --offline forbids to fetch it
        fix: run the command once without --offline, or give the path of the wheel
        exit code 3
    "#]],
    );
}

#[test]
fn a_wheel_that_is_not_what_its_index_says_is_not_used() {
    let index = Index::new();
    let release = released("1.2");
    let file = release.file_name();
    // A URL has neither spaces nor letters outside of ASCII.
    let escaped = index.tree.root.to_str().unwrap().bytes().map(|byte| format!("%{byte:02X}"));
    let url = escaped.collect::<Vec<_>>().concat().replace("%2F", "/");
    let link =
        format!("<!DOCTYPE html><html><body><a href='{file}#sha256={}'>{file}</a></body></html>", "0".repeat(64));
    index
        .tree
        .write(&format!("simple/up/{file}"), release.build())
        .write("simple/up/index.html", link)
        .write("uv.toml", format!("[[index]]\nurl = 'file://{url}/simple'\ndefault = true\n"));
    index.refuses(
        "up==1.2",
        None,
        false,
        &expect![[r#"
        error: RELEASED is not the wheel that was asked for
          expected sha256 0000000000000000000000000000000000000000000000000000000000000000
          found    sha256 HASH
        fix: fetch it again; if it stays so, do not use it
        exit code 1
    "#]],
    );
    let kept = std::fs::read_dir(index.cache.path("upstream").join("up-1.2")).unwrap();
    assert!(kept.flatten().all(|entry| entry.file_name() == "lock"));
}

#[test]
fn a_release_that_is_absent_or_not_for_this_machine_is_refused() {
    let index = Index::new();
    index.refuses(
        "up==1.2",
        None,
        false,
        &expect![[r#"
        error: there is no wheel of up==1.2 for CPYTHON on MACHINE
        fix: name a release that exists, or with --python an interpreter that it has a wheel for
        exit code 2
    "#]],
    );
    index.offer(&WheelBuilder::new(&format!("up-1.2-cp39-cp39-{}.whl", platform())));
    index.refuses(
        "up==1.2",
        None,
        false,
        &expect![[r#"
        error: there is no wheel of up==1.2 for CPYTHON on MACHINE
        fix: name a release that exists, or with --python an interpreter that it has a wheel for
        exit code 2
    "#]],
    );
    index.refuses(
        "/nowhere/up-1.2-py3-none-any.whl",
        None,
        false,
        &expect![[r#"
        error: /nowhere/up-1.2-py3-none-any.whl does not exist
        fix: give the path of a wheel, or a release such as numba-cuda==0.30.4
        exit code 2
    "#]],
    );
}
