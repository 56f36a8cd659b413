//! The rules of `check-wheel`: each broken wheel of the corpus is found by its rule and by no other, and damaged input
//! never panics.

use std::collections::BTreeSet;

use cuwheel_inspect::rules::{
    self, Breakdown, ExaminedWheel, Finding, InstalledFiles, InstalledLibraries, ListedWheel, Policy, RULES, Severity,
};
use cuwheel_inspect::testing::WheelBuilder;
use cuwheel_inspect::wheel::Entry;
use expect_test::{Expect, expect};
use proptest::prelude::*;

use crate::corpus::{corpus, sound, sound_name};
use crate::counterparts::{breaches_of_sets, sound_for};
use crate::native;

fn check(file_name: &str, bytes: Vec<u8>, policy: &Policy) -> Vec<Finding> {
    match ExaminedWheel::from_bytes(file_name, bytes) {
        Ok(wheel) => rules::check(&wheel, policy),
        Err(error) => rules::unreadable(&error, policy),
    }
}

fn shown(findings: &[Finding]) -> String {
    let lines = findings.iter().map(|found| format!("{} {} {found}", found.severity(), found.rule().id()));
    lines.map(|line| line + "\n").collect()
}

#[test]
fn a_sound_wheel_has_no_findings() {
    assert_eq!(shown(&check(&sound_name(), sound().build(), &Policy::default())), "");
    let pure = "demo-0.1.0-py3-none-any.whl";
    let wheel = WheelBuilder::new(pure).file("demo/__init__.py", "").build();
    assert_eq!(shown(&check(pure, wheel, &Policy::default())), "");
}

/// What is right, and looks like a fault.
#[test]
fn wheels_that_are_right_in_an_unusual_way_have_no_findings() {
    let uses_python = native::library("extern void *PyList_New(long);\nvoid *use(void) { return PyList_New(0); }", &[]);
    let arch = std::env::consts::ARCH;
    let several = ["cpython-311", "cpython-312"].map(|abi| format!("demo/_native.{abi}-linux-gnu.so"));
    let pure = || WheelBuilder::new("demo-0.1.0-py3-none-any.whl").file("demo/__init__.py", "");
    for (what, wheel) in [
        (
            "libraries that are loaded by path",
            WheelBuilder::new(&format!("demo-0.1.0-cp311-cp311-linux_{arch}.whl"))
                .file("demo/libdemo-cpu.so", uses_python),
        ),
        (
            "one module for several interpreters",
            several.iter().fold(WheelBuilder::new(&format!("demo-0.1.0-py3-none-linux_{arch}.whl")), |wheel, path| {
                wheel.file(path, &*native::SOUND)
            }),
        ),
        ("code for a GPU", pure().file("demo/kernel.cubin", native::for_machine(190))),
        (
            "libraries for several systems",
            pure().file("demo/attach.so", native::library("int f;", &[])).file("demo/attach.dll", "MZ"),
        ),
        (".NET", pure().file("demo/Runtime.dll", "MZ")),
        ("an empty search path", sound().file("demo/libb.so", native::library("int f;", &["-Wl,-rpath,"]))),
        (
            "into another wheel",
            sound().file("demo/libc.so", native::library("int f;", &["-Wl,-rpath,$ORIGIN/../nvidia/cu13/lib"])),
        ),
        ("stubs for linkers", sound().file("demo/lib/stubs/libcuda.so", &*native::SOUND)),
        ("PTX that is linked when it is loaded", sound().file("demo/liba.so", native::with_linked_gpu_code())),
        ("a script", sound().file("demo-0.1.0.data/scripts/demo", native::program())),
    ] {
        assert_eq!(shown(&check(&wheel.file_name(), wheel.build(), &Policy::default())), "", "{what}");
    }
}

#[test]
fn each_broken_wheel_is_found_by_its_rule_and_by_no_other() {
    let mut wrong = Vec::new();
    for broken in corpus() {
        let findings = check(&broken.file_name, broken.bytes, &broken.policy);
        let found: BTreeSet<&str> = findings.iter().map(|finding| finding.rule().id()).collect();
        if found != BTreeSet::from([broken.rule]) {
            wrong.push(format!("{} ({}):\n{}", broken.rule, broken.fault, shown(&findings)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_counterpart_of_a_broken_wheel_has_no_findings() {
    let mut wrong = Vec::new();
    for rule in RULES {
        let sound = sound_for(rule.id());
        let findings = check(&sound.file_name, sound.bytes, &sound.policy);
        if !findings.is_empty() {
            wrong.push(format!("{}: {}:\n{}", rule.id(), sound.what, shown(&findings)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn breaches_of_sets_are_found_by_their_rules_and_by_no_other() {
    for (rule, fault, findings) in breaches_of_sets() {
        let found: BTreeSet<&str> = findings.iter().map(|finding| finding.rule().id()).collect();
        assert_eq!(found, BTreeSet::from([rule]), "{fault}");
    }
}

#[test]
fn every_rule_has_a_broken_wheel() {
    let mut found: BTreeSet<&str> = corpus().iter().map(|broken| broken.rule).collect();
    found.extend(breaches_of_sets().iter().map(|(rule, ..)| *rule));
    let missing: Vec<&str> = RULES.iter().map(|rule| rule.id()).filter(|rule| !found.contains(rule)).collect();
    assert_eq!(missing, [""; 0]);
    assert!(corpus().len() >= 90, "{} broken wheels", corpus().len());
}

#[track_caller]
fn says(rule: &str, fault: &str, expected: &Expect) {
    let corpus = corpus();
    let broken = corpus.iter().find(|broken| (broken.rule, broken.fault) == (rule, fault)).expect("in the corpus");
    let text = shown(&check(&broken.file_name, broken.bytes.clone(), &broken.policy));
    expected.assert_eq(&text.replace(std::env::consts::ARCH, "[ARCH]"));
}

#[test]
fn pk_10_a_newer_glibc_is_named_with_symbol_version_and_file() {
    says(
        "tags/glibc-floor",
        "newer than promised",
        &expect![[r#"
        error tags/glibc-floor demo/_native.abi3.so: it needs glibc 2.99, and manylinux_2_28_[ARCH] does not promise it: other (GLIBC_2.99)
    "#]],
    );
    says(
        "tags/limited-api",
        "added in 3.12",
        &expect![[r#"
        error tags/limited-api demo/_native.abi3.so: Python 3.11 does not have in its limited API: PyObject_Vectorcall (since 3.12)
    "#]],
    );
}

/// What a loader finds, from a module of `demo` that needs `libother.so.1` and has these search paths.
fn unresolved(arguments: &[&str], own: &[(&str, &[u8])], required: &[&str]) -> String {
    let module = native::linked_with(&["libother.so.1"], arguments);
    let wheel = WheelBuilder::new(&sound_name()).file("demo/_native.abi3.so", module);
    let wheel = own.iter().fold(wheel, |wheel, (path, library)| wheel.file(path, library));
    let wheel =
        wheel.metadata_header("Requires-Dist", "lib-one").metadata_header("Requires-Dist", "none; extra == 'x'");
    let other = native::library("int f;", &["-Wl,-soname,libother.so.1"]);
    let one = WheelBuilder::new("Lib.One-1.0-py3-none-any.whl").metadata_header("Requires-Dist", "lib-two");
    let two = WheelBuilder::new("lib_two-1.0-py3-none-any.whl").file("two/lib/libother.so.1", other);
    let given = [one, two].into_iter().filter(|wheel| required.iter().any(|name| wheel.file_name().starts_with(name)));
    let given = given.map(|wheel| ExaminedWheel::from_bytes(&wheel.file_name(), wheel.build()).unwrap());
    let given = given.map(|wheel| InstalledLibraries::of(&wheel)).collect();
    shown(&check(&sound_name(), wheel.build(), &Policy::default().with_dependencies(given)))
}

#[test]
fn pk_03_an_rpath_is_followed_into_the_wheels_that_are_required() {
    let there = &["-Wl,--enable-new-dtags,-rpath,$ORIGIN/../two/lib"][..];
    assert_eq!(unresolved(there, &[], &["Lib.One", "lib_two"]), "");
    expect![[r"
        warning libraries/unresolved demo/_native.abi3.so: it needs libother.so.1, and no RPATH leads to two/lib/libother.so.1 of lib-two
    "]]
    .assert_eq(&unresolved(&[], &[], &["Lib.One", "lib_two"]));
    expect![[r"
        note libraries/unknown-dependency libother.so.1 may be in lib-two, none, and no such wheel was given
    "]]
    .assert_eq(&unresolved(there, &[], &["Lib.One"]));
    expect![[r"
        note libraries/unknown-dependency libother.so.1 may be in lib-one, none, and no such wheel was given
    "]]
    .assert_eq(&unresolved(there, &[], &["lib_two"]));
}

#[test]
fn an_rpath_counts_for_what_is_loaded_and_a_runpath_does_not() {
    let deep = native::library("int f;", &["-Wl,-soname,libdeep.so.1"]);
    let other = native::linked_with(&["libdeep.so.1"], &["-Wl,-soname,libother.so.1"]);
    let own: &[(&str, &[u8])] = &[("demo/lib/libother.so.1", &other), ("demo/lib/libdeep.so.1", &deep)];
    let paths = |tags: &str| unresolved(&[&format!("-Wl,{tags},-rpath,$ORIGIN/lib")], own, &["Lib.One", "lib_two"]);
    assert_eq!(paths("--disable-new-dtags"), "");
    expect![[r#"
        warning libraries/unresolved demo/lib/libother.so.1: it needs libdeep.so.1, and no RPATH leads to demo/lib/libdeep.so.1
    "#]].assert_eq(&paths("--enable-new-dtags"));
}

#[test]
fn pk_55_a_duplicate_entry_is_named_with_both_offsets() {
    let corpus = corpus();
    let broken = corpus.iter().find(|broken| broken.rule == "archive/duplicate-entry").unwrap();
    let wheel = ExaminedWheel::from_bytes(&broken.file_name, broken.bytes.clone()).unwrap();
    let entries = wheel.wheel().entries().iter().filter(|entry| entry.path() == "demo/a.py");
    let [first, second] = entries.map(Entry::header_offset).collect::<Vec<_>>()[..] else { panic!("two entries") };
    let finding = &rules::check(&wheel, &Policy::default())[0];
    assert_eq!(finding.to_string(), format!("demo/a.py: the archive holds it twice, at offsets {first} and {second}"));
    assert_eq!((finding.path(), finding.archive_offset()), (Some("demo/a.py"), Some(second)));
}

#[test]
fn pk_01_04_12_13_messages_name_the_library_and_the_entry() {
    says(
        "libraries/driver-inside",
        "grafted",
        &expect![[r#"
        error libraries/driver-inside demo.libs/libcuda-1a2b3c4d.so.1: it is a library of NVIDIA's driver
    "#]],
    );
    says(
        "libraries/absolute-rpath",
        "RUNPATH",
        &expect![[r#"
        error libraries/absolute-rpath demo/_native.abi3.so: the RUNPATH entry `/usr/local/cuda/lib64` is a path of the build machine
    "#]],
    );
    says(
        "libraries/version-needs",
        "a renamed library",
        &expect![[r#"
        error libraries/version-needs demo/_native.abi3.so: it needs OTHER_1 of libother.so.1, and does not need that library
    "#]],
    );
    says(
        "libraries/driver-needed",
        "libcuda",
        &expect![[r#"
        error libraries/driver-needed demo/_native.abi3.so: it is linked to libcuda.so.1
    "#]],
    );
    says(
        "modules/missing-init",
        "of another name",
        &expect![[r#"
        error modules/missing-init demo/_renamed.abi3.so: it exports PyInit__native, and Python looks for PyInit__renamed
    "#]],
    );
}

#[test]
fn a_policy_denies_and_allows() {
    let wheel =
        || sound().file_with_mode("demo/a.py", "", 0o100_666).file("demo/b.py", "").without_row("demo/b.py").build();
    let severities = |policy: &Policy| -> Vec<Severity> {
        check(&sound_name(), wheel(), policy).iter().map(Finding::severity).collect()
    };
    assert_eq!(severities(&Policy::default()), [Severity::Error, Severity::Warning]);
    let selectors = |text: &str| vec![text.parse().unwrap()];
    let deny = Policy::default().with(selectors("archive/world-writable"), Vec::new());
    assert_eq!(severities(&deny), [Severity::Error, Severity::Error]);
    let allow = Policy::default().with(Vec::new(), selectors("archive/"));
    assert_eq!(severities(&allow), []);
}

#[test]
fn pk_54_declared_modules_have_to_be_inside() {
    let modules = ["demo", "demo._native", "demo.made_by_native", "demo.absent.deeper", "other"].map(str::to_owned);
    let policy = Policy::default().with_modules(modules.to_vec());
    let findings = check(&sound_name(), sound().build(), &policy);
    let messages: Vec<&str> = findings.iter().map(Finding::message).collect();
    assert_eq!(messages, ["no file is the module demo.absent.deeper", "no file is the module other"]);
}

#[test]
fn pk_60_a_budget_is_explained_by_file_and_section() {
    let policy = Policy::default().with_budget(Some(100));
    let findings = check(&sound_name(), sound().build(), &policy);
    assert_eq!(findings.len(), 1);
    let message = findings[0].message();
    for part in ["and the budget is 100 B; compressed files: demo/_native.abi3.so (", "; sections: .", " and "] {
        assert!(message.contains(part), "{part} in {message}");
    }
    let large = Policy::default().with_budget(Some(1_000_000));
    assert_eq!(check(&sound_name(), sound().build(), &large), []);
    let breakdown = Breakdown::of(&ExaminedWheel::from_bytes(&sound_name(), sound().build()).unwrap());
    assert_eq!(breakdown.files[0].size_bytes, native::SOUND.len() as u64);
    assert!(breakdown.sections.iter().any(|section| section.name == ".text") && breakdown.strippable_bytes == 0);
}

#[test]
fn pk_70_wheels_that_write_one_path_with_different_contents_collide() {
    let wheel = |name: &str, files: &[(&str, &str)]| {
        let builder = files.iter().fold(WheelBuilder::new(name), |wheel, (path, text)| wheel.file(path, text));
        InstalledFiles::of(&ExaminedWheel::from_bytes(name, builder.build()).unwrap())
    };
    let base = wheel("demo_base-1.0-py3-none-any.whl", &[("demo/a.py", "12"), ("demo/b.py", ""), ("demo/c.py", "12")]);
    let cu13 = wheel(
        "demo_cu13-1.0-py3-none-any.whl",
        &[("demo/a.py", "13"), ("demo/b.py", ""), ("demo_cu13-1.0.data/purelib/demo/c.py", "13")],
    );
    let text = shown(&rules::check_set(&[base.clone(), cu13], &Policy::default()));
    expect![[r#"
        error sets/collision demo/a.py: it is in demo_base-1.0-py3-none-any.whl and, with other contents, in demo_cu13-1.0-py3-none-any.whl; 1 more like it
    "#]].assert_eq(&text);
    assert_eq!(rules::check_set(&[base.clone(), base], &Policy::default()), [], "one project replaces itself");
}

#[test]
fn pk_62_a_manifest_says_which_wheels_there_have_to_be() {
    let listed = |rows: &[(&str, &str)]| -> Vec<ListedWheel> {
        rows.iter()
            .map(|(file, sha256)| ListedWheel { file: (*file).to_owned(), sha256: (*sha256).to_owned() })
            .collect()
    };
    let expected = listed(&[("a.whl", "1"), ("b.whl", "2"), ("c.whl", "3")]);
    let found = listed(&[("a.whl", "1"), ("b.whl", "9"), ("d.whl", "4")]);
    expect![[r#"
        error sets/not-found c.whl: the manifest lists it, and it is not there
        error sets/changed b.whl: its SHA-256 is 9, and the manifest says 2
        error sets/not-expected d.whl: the manifest does not list it
    "#]]
    .assert_eq(&shown(&rules::check_manifest(&expected, &found, true, &Policy::default())));
    assert_eq!(rules::check_manifest(&expected, &found[..1], false, &Policy::default()), []);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_libraries_never_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut library = native::SOUND.clone();
        for (position, value) in &changes {
            let position = position.index(library.len());
            library[position] = *value;
        }
        if let Some(cut) = cut {
            library.truncate(cut.index(library.len()));
        }
        let bytes = WheelBuilder::new(&sound_name()).file("demo/_native.abi3.so", library).build();
        let policy = Policy::default().with_budget(Some(1));
        for finding in check(&sound_name(), bytes, &policy) {
            prop_assert!(!finding.to_string().is_empty());
        }
    }

    #[test]
    fn damaged_wheels_never_panic(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        let mut bytes = sound().file("demo/a.py", "").build();
        for (position, value) in &changes {
            let position = position.index(bytes.len());
            bytes[position] = *value;
        }
        let _ = check(&sound_name(), bytes, &Policy::default().with_budget(Some(1)));
    }

    #[test]
    fn names_never_panic(
        stem in "[a-z0-9_.]{1,6}-[0-9.]{1,4}(-[a-z0-9_.]{1,12}){3}",
        path in "[a-z./_é]{0,20}(\\.so|\\.abi3\\.so|\\.cpython-3[0-9]{0,3}t?-x\\.so)?",
    ) {
        let name = format!("{stem}.whl");
        if name.parse::<cuwheel_inspect::wheel::WheelName>().is_ok() {
            let bytes = WheelBuilder::new(&name).file(&path, &*native::SOUND).build();
            let policy = Policy::default().with_modules(vec![path]);
            let _ = check(&name, bytes, &policy);
        }
    }
}
