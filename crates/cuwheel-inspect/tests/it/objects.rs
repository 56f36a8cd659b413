//! The search for the object that wants a symbol.

use std::path::{Path, PathBuf};
use std::process::Command;

use cuwheel_inspect::objects::{ObjectsError, find_references};
use tempfile::TempDir;

#[track_caller]
fn run(directory: &TempDir, program: &str, arguments: &[&str]) {
    let status = Command::new(program).args(arguments).current_dir(directory).status();
    assert!(status.unwrap_or_else(|error| panic!("{program}: {error}")).success());
}

fn object(directory: &TempDir, name: &str, source: &str) -> PathBuf {
    std::fs::write(directory.path().join("input.c"), source).unwrap();
    run(directory, "cc", &["-c", "input.c", "-o", name]);
    directory.path().join(name)
}

fn found(path: &Path, symbols: &[&str]) -> Vec<String> {
    find_references(path, symbols).unwrap().iter().map(ToString::to_string).collect()
}

const WANTS: &str = "unsigned arc4random(void); int wants(void) { return arc4random(); }";
const HAS: &str = "unsigned arc4random(void) { return 4; } int has(void) { return arc4random(); }";

#[test]
fn references_in_objects_and_archives_are_found() {
    let directory = tempfile::tempdir().unwrap();
    let wants = object(&directory, "wants.o", WANTS);
    let has = object(&directory, "has.o", HAS);
    assert_eq!(found(&wants, &["arc4random", "other"]), ["arc4random is pulled in by wants.o"]);
    assert_eq!(found(&has, &["arc4random"]), [""; 0], "it defines the symbol");
    assert_eq!(found(&wants, &["wants", "arc4"]), [""; 0]);

    run(&directory, "ar", &["rcs", "libboth.a", "has.o", "wants.o"]);
    let archive = directory.path().join("libboth.a");
    assert_eq!(found(&archive, &["arc4random"]), ["arc4random is pulled in by libboth.a, member wants.o"]);
    let reference = &find_references(&archive, &["arc4random"]).unwrap()[0];
    assert_eq!((reference.file(), reference.member(), reference.symbol()), (&*archive, Some("wants.o"), "arc4random"));
    assert_eq!(reference.crate_name(), None);
}

/// pypa/auditwheel#354: the message must name what pulled the symbol in.
#[test]
fn the_crate_that_wants_a_symbol_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let source = "#![no_std]\nunsafe extern \"C\" { fn arc4random() -> u32; }\n\
                  pub fn roll() -> u32 { unsafe { arc4random() } }\n";
    std::fs::write(directory.path().join("dice.rs"), source).unwrap();
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    run(&directory, &rustc, &["--edition=2024", "--crate-type=rlib", "-Cextra-filename=-0123abcd", "dice.rs"]);
    let messages = found(directory.path(), &["arc4random"]);
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert!(
        messages[0].starts_with("arc4random is pulled in by crate dice (libdice-0123abcd.rlib, member dice-0123abcd."),
        "{messages:?}"
    );
}

#[test]
fn directories_are_searched_in_order_and_broken_files_passed_over() {
    let directory = tempfile::tempdir().unwrap();
    object(&directory, "z.o", WANTS);
    std::fs::create_dir(directory.path().join("a")).unwrap();
    object(&directory, "a/y.o", WANTS);
    object(&directory, "a/y.txt", WANTS);
    std::fs::write(directory.path().join("broken.rlib"), "!<arch>\nbroken").unwrap();
    std::fs::write(directory.path().join("empty.o"), "").unwrap();
    let messages = found(directory.path(), &["arc4random"]);
    assert_eq!(messages, ["arc4random is pulled in by y.o", "arc4random is pulled in by z.o"]);
}

#[test]
fn a_named_file_that_is_no_object_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    for (name, contents) in [("a.o", &b"text"[..]), ("b.a", b"!<arch>\nbroken"), ("c.o", b"")] {
        let path = directory.path().join(name);
        std::fs::write(&path, contents).unwrap();
        let error = find_references(&path, &["f"]).unwrap_err();
        assert!(matches!(&error, ObjectsError::Unreadable { path: named, .. } if *named == path), "{error}");
        assert!(error.to_string().contains(name), "{error}");
    }
    let error = find_references(&directory.path().join("none.o"), &["f"]).unwrap_err();
    assert!(matches!(error, ObjectsError::Io { .. }), "{error}");
}
