//! `repair` as a user runs it, on libraries that a compiler made, and the real loader on what it leaves.

use std::path::{Path, PathBuf};
use std::process::Command;

use cuwheel::patchelf::Edit;
use cuwheel::repair::difference;
use cuwheel_inspect::elf::ElfFile;
use cuwheel_inspect::testing::WheelBuilder;
use cuwheel_inspect::wheel::Wheel;

use crate::support::{Ran, Tree, cuwheel, interpreter, repository, run};

const MODULE: &str = "int answer(void);\nvoid *PyInit_native(void) { return 0; }\nint ask(void) { return answer(); }\n";

/// Compiles a shared library; `arguments` go to the compiler.
fn library(tree: &Tree, name: &str, source: &str, arguments: &[&str]) -> PathBuf {
    tree.write(&format!("{name}.c"), source);
    let output = tree.root.join(name);
    let source = tree.root.join(format!("{name}.c"));
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-Wl,--enable-new-dtags", "-o"]).arg(&output).arg(source);
    let ran = run(compiler.args(arguments).current_dir(&tree.root));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    output
}

fn tag(platform: &str) -> String {
    format!("cp311-abi3-{platform}_{}", interpreter().machine())
}

/// A wheel with one extension module, the content of `library`, and a file that has to stay.
fn wheel_with(library: &Path, platform: &str) -> WheelBuilder {
    WheelBuilder::new(&format!("demo-0.1.0-{}.whl", tag(platform))).file("demo/__init__.py", "x = 1\n").file_with_mode(
        "demo/native.abi3.so",
        std::fs::read(library).unwrap(),
        0o100_755,
    )
}

fn write(tree: &Tree, wheel: &WheelBuilder) -> String {
    let file = wheel.file_name();
    tree.write(&file, wheel.build());
    file
}

fn repair(tree: &Tree, arguments: &[&str]) -> Ran {
    run(cuwheel(&tree.root).arg("repair").args(arguments))
}

fn open(ran: &Ran) -> Wheel {
    Wheel::open(Path::new(ran.json()["wheels"][0]["path"].as_str().unwrap())).unwrap()
}

fn run_path(wheel: &Wheel, path: &str) -> Option<String> {
    ElfFile::parse(&wheel.read(path).unwrap()).unwrap().runpath().map(str::to_owned)
}

/// Installs the files of wheels, and loads a library with the loader of this machine.
fn load(tree: &Tree, wheels: &[&Wheel], path: &str) -> Ran {
    for wheel in wheels {
        for entry in wheel.entries() {
            tree.write(&format!("site-packages/{}", entry.path()), wheel.read_entry(entry).unwrap());
        }
    }
    let script = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).ask())";
    let mut python = Command::new(interpreter().base_executable);
    run(python.args(["-I", "-c", script]).arg(tree.root.join("site-packages").join(path)))
}

fn sha256_of(path: &Path) -> String {
    cuwheel::files::sha256_of_file(path).unwrap()
}

#[test]
fn pk_04_pk_09_build_paths_go_and_everything_else_stays() {
    let tree = Tree::new();
    let fatbin = repository().join("crates/cuwheel-inspect/tests/it/fixtures/plain.fatbin");
    let source = format!(
        "asm(\".section .nv_fatbin,\\\"a\\\"\\n.balign 8\\n.incbin \\\"{}\\\"\\n.text\");\n\
         void *PyInit_native(void) {{ return 0; }}\nint ask(void) {{ return 42; }}\n",
        fatbin.display()
    );
    let built = library(
        &tree,
        "native.so",
        &source,
        &["-Wl,-rpath,/usr/local/cuda/lib64:$ORIGIN/lib:/opt/cuda/lib64/stubs", "-Wl,-rpath,$ORIGIN/../../.."],
    );
    let wheel = wheel_with(&built, "manylinux_2_39");
    let file = write(&tree, &wheel);
    let before = Wheel::open(&tree.root.join(&file)).unwrap();
    let ran = repair(&tree, &["--json", &file]).expect_code(0);
    let after = open(&ran);
    assert_eq!(run_path(&after, "demo/native.abi3.so").as_deref(), Some("$ORIGIN/lib"));
    let changed: Vec<&str> = after
        .entries()
        .iter()
        .filter(|entry| before.entry(entry.path()).is_none_or(|other| other.sha256() != entry.sha256()))
        .map(cuwheel_inspect::wheel::Entry::path)
        .collect();
    let dist_info = |file: &str| format!("demo-0.1.0.dist-info/{file}");
    assert_eq!(changed, ["demo/native.abi3.so", &dist_info("sboms/repair.cyclonedx.json"), &dist_info("RECORD")]);
    let library = after.read("demo/native.abi3.so").unwrap();
    assert_eq!(library.len(), std::fs::read(&built).unwrap().len(), "a shorter path is written where the old one was");
    let text = String::from_utf8_lossy(&library).into_owned();
    assert!(!text.contains("/usr/local/cuda") && !text.contains("/opt/cuda"), "paths are not left as text");
    assert_eq!(load(&tree, &[&after], "demo/native.abi3.so").expect_code(0).stdout, "42\n");
    // The same wheel gives the same bytes, and what was repaired is left alone.
    let again = open(&repair(&tree, &["--json", "--output", "again", &file]).expect_code(0));
    assert_eq!(again.sha256(), after.sha256());
    let third = repair(&tree, &["--json", "--output", "third", &format!("repaired/{file}")]).expect_code(0);
    assert_eq!(third.json()["wheels"][0]["changed"], serde_json::json!([]));
    assert_eq!(open(&third).sha256(), after.sha256());
}

#[test]
fn a_search_path_of_build_paths_only_is_removed() {
    let tree = Tree::new();
    let source = "void *PyInit_native(void) { return 0; }\nint ask(void) { return 1; }\n";
    let built = library(&tree, "native.so", source, &["-Wl,-rpath,/opt/secret/lib", "-Wl,--disable-new-dtags"]);
    let file = write(&tree, &wheel_with(&built, "manylinux_2_39"));
    let after = open(&repair(&tree, &["--json", &file]).expect_code(0));
    let library = after.read("demo/native.abi3.so").unwrap();
    let read = ElfFile::parse(&library).unwrap();
    assert_eq!((read.rpath(), read.runpath()), (None, None));
    assert!(!String::from_utf8_lossy(&library).contains("/opt/secret"));
}

#[test]
fn pk_02_pk_03_libraries_of_cuda_are_found_in_their_own_wheel() {
    let tree = Tree::new();
    library(&tree, "libcudart.so.13", "int answer(void) { return 13; }\n", &["-Wl,-soname,libcudart.so.13"]);
    let built =
        library(&tree, "native.so", MODULE, &["libcudart.so.13", "-Wl,-rpath,/usr/local/cuda-13.0/targets/lib"]);
    let wheel = wheel_with(&built, "manylinux_2_39").metadata_header("Requires-Dist", "nvidia-cuda-runtime==13.*");
    let file = write(&tree, &wheel);
    let platform = format!("manylinux_2_39_{}", interpreter().machine());
    let runtime = WheelBuilder::new(&format!("nvidia_cuda_runtime-13.0.1-py3-none-{platform}.whl"))
        .file("nvidia/cu13/lib/libcudart.so.13", std::fs::read(tree.root.join("libcudart.so.13")).unwrap());
    let runtime_file = format!("wheels/{}", runtime.file_name());
    tree.write(&runtime_file, runtime.build());
    let ran = repair(&tree, &["--json", "--with", "wheels", &file]).expect_code(0);
    let after = open(&ran);
    assert_eq!(run_path(&after, "demo/native.abi3.so").as_deref(), Some("$ORIGIN/../nvidia/cu13/lib"));
    assert_eq!(ran.json()["wheels"][0]["grafted"], serde_json::json!([]));
    let runtime = Wheel::open(&tree.root.join(&runtime_file)).unwrap();
    assert_eq!(load(&tree, &[&after, &runtime], "demo/native.abi3.so").expect_code(0).stdout, "13\n");

    let greedy = repair(&tree, &["--graft", "libcudart.so.*", "--library-path", ".", &file]).expect_code(2);
    assert!(greedy.stderr.contains("is a library of the CUDA toolkit"), "{}", greedy.stderr);
}

#[test]
fn pk_12_an_allowed_library_is_grafted_with_its_symbol_versions() {
    let tree = Tree::new();
    tree.write("answer.map", "ANSWER_1.0 { global: answer; local: *; };\n");
    let script = "-Wl,--version-script,answer.map";
    library(&tree, "libanswer.so.1", "int answer(void) { return 7; }\n", &["-Wl,-soname,libanswer.so.1", script]);
    let module = format!("char *getenv(const char *);\nchar *home(void) {{ return getenv(\"HOME\"); }}\n{MODULE}");
    let built = library(&tree, "native.so", &module, &["libanswer.so.1"]);
    let file = write(&tree, &wheel_with(&built, "linux"));

    let left = repair(&tree, &["--json", "--output", "left", &file]).expect_code(0).json();
    assert_eq!(left["wheels"][0]["left"][0]["library"], "libanswer.so.1", "nothing is grafted that was not named");
    assert_eq!(left["wheels"][0]["findings"][0]["rule"], "libraries/unresolved");
    assert_eq!(left["wheels"][0]["tags"][0], tag("linux").as_str(), "nothing is promised for what is not complete");

    let grafting = ["--graft", "libanswer.so.*", "--graft", "libunused.so.1", "--library-path", ".", &file];
    let ran = repair(&tree, &[&["--json"], &grafting[..]].concat()).expect_code(0);
    assert!(ran.json()["warnings"][0].as_str().unwrap().contains("libunused.so.1"), "{}", ran.stdout);
    let after = open(&ran);
    let grafted = after.entries().iter().find(|entry| entry.path().starts_with("demo.libs/")).unwrap();
    let name = grafted.path().strip_prefix("demo.libs/").unwrap();
    assert!(name.starts_with("libanswer-") && name.ends_with(".so.1"), "{name}");
    let library = after.read("demo/native.abi3.so").unwrap();
    let read = ElfFile::parse(&library).unwrap();
    assert!(read.needed().contains(&name), "{:?}", read.needed());
    assert!(read.version_needs().iter().any(|need| (need.library(), need.version()) == (name, "ANSWER_1.0")));
    assert_eq!(read.runpath(), Some("$ORIGIN/../demo.libs"));
    assert!(after.name().platform_tags().iter().all(|tag| tag.starts_with("manylinux")), "{}", after.file_name());
    assert_eq!(after.info().tags().len(), after.name().tags().len());
    let bill = after.read("demo-0.1.0.dist-info/sboms/repair.cyclonedx.json").unwrap();
    assert!(String::from_utf8(bill).unwrap().contains("libanswer.so.1"));
    assert_eq!(load(&tree, &[&after], "demo/native.abi3.so").expect_code(0).stdout, "7\n");
}

#[test]
fn a_library_that_was_edited_before_is_edited_again() {
    let tree = Tree::new();
    for (name, source) in
        [("libone.so.1", "int answer(void) { return 1; }\n"), ("libtwo.so.1", "int two(void) { return 2; }\n")]
    {
        library(&tree, name, source, &[&format!("-Wl,-soname,{name}")]);
    }
    let module = "int answer(void);\nint two(void);\nvoid *PyInit_native(void) { return 0; }\n\
                  int ask(void) { return answer() + two(); }\n";
    let built = library(&tree, "native.so", module, &["libone.so.1", "libtwo.so.1"]);
    let file = write(&tree, &wheel_with(&built, "manylinux_2_39"));
    let graft = |library: &'static str| ["--json", "--graft", library, "--library-path", "."];
    repair(&tree, &[&graft("libone.so.1")[..], &["--output", "first", &file]].concat()).expect_code(0);
    let first = format!("first/{file}");
    let second = open(&repair(&tree, &[&graft("libtwo.so.1")[..], &[&first]].concat()).expect_code(0));
    let bills = second.entries().iter().filter(|entry| entry.path().contains("/sboms/repair")).count();
    assert_eq!(bills, 2, "each repair says what it did");
    assert_eq!(load(&tree, &[&second], "demo/native.abi3.so").expect_code(0).stdout, "3\n");
}

#[test]
fn the_plan_says_what_changes_and_changes_nothing() {
    let tree = Tree::new();
    library(&tree, "libanswer.so.1", "int answer(void) { return 7; }\n", &["-Wl,-soname,libanswer.so.1"]);
    let built = library(&tree, "native.so", MODULE, &["libanswer.so.1", "-Wl,-rpath,/opt/lib:"]);
    let file = write(&tree, &wheel_with(&built, "linux"));
    let ran = repair(&tree, &["--dry-run", "--graft", "libanswer*", "--library-path", ".", &file]).expect_code(0);
    let (root, hash) = (tree.root.display().to_string(), sha256_of(&tree.root.join("libanswer.so.1")));
    let text = ran.stdout.replace(&root, "[TREE]").replace(&file, "[WHEEL]").replace(&hash[..8], "[HASH]");
    expect_test::expect![[r#"
        wheel        [TREE]/[WHEEL]
        changed      demo/native.abi3.so
          removed    /opt/lib
          removed    an empty entry
          added      $ORIGIN/../demo.libs
          needs      libanswer-[HASH].so.1 instead of libanswer.so.1
        grafted      demo.libs/libanswer-[HASH].so.1 from [TREE]/libanswer.so.1
        writes       [TREE]/repaired
    "#]]
    .assert_eq(&text);
    assert!(!tree.root.join("repaired").exists());
}

#[test]
fn what_no_repair_mends_is_refused_and_nothing_is_written() {
    let tree = Tree::new();
    library(&tree, "libcuda.so.1", "int answer(void) { return 0; }\n", &["-Wl,-soname,libcuda.so.1"]);
    let built = library(&tree, "native.so", MODULE, &["libcuda.so.1", "-Wl,-rpath,/usr/lib/stubs"]);
    let linked = write(&tree, &wheel_with(&built, "manylinux_2_39"));
    for (arguments, code, message) in [
        (&[linked.as_str()][..], 1, "libraries/driver-needed"),
        (&["--graft", "libcuda.so.1", "--library-path", ".", &linked], 2, "libcuda.so.1 is a library of the driver"),
        (&["--graft", "lib*", "--library-path", ".", &linked], 2, "libcuda.so.1 is a library of the driver"),
        (&["--output", ".", &linked], 2, "would be written over"),
    ] {
        let ran = repair(&tree, arguments).expect_code(code);
        assert!(ran.stderr.contains(message), "{arguments:?}: {}", ran.stderr);
    }
    let changed = wheel_with(&built, "manylinux_2_39").file_changed_after_record("demo/x.py", "x = 1", "x = 2");
    let changed = write(&tree, &changed);
    let ran = repair(&tree, &[&changed]).expect_code(1);
    assert!(ran.stderr.contains("damaged or changed") && ran.stderr.contains("archive/record-hash"), "{}", ran.stderr);
    assert!(!tree.root.join("repaired").exists());
}

#[test]
fn pk_05_a_patchelf_of_the_machine_is_not_used() {
    let tree = Tree::new();
    let source = "void *PyInit_native(void) { return 0; }\n";
    let built = library(&tree, "native.so", source, &["-Wl,-rpath,/opt/lib:$ORIGIN"]);
    let file = write(&tree, &wheel_with(&built, "manylinux_2_39"));
    tree.write("bin/patchelf", "#!/bin/sh\ntouch used\nexit 1\n");
    run(Command::new("chmod").arg("755").arg(tree.root.join("bin/patchelf"))).expect_code(0);
    let mut command = cuwheel(&tree.root);
    let path = std::env::join_paths(
        [tree.root.join("bin")].into_iter().chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    );
    run(command.env("PATH", path.unwrap()).args(["repair", &file])).expect_code(0);
    assert!(!tree.root.join("used").exists());
}

#[test]
fn pk_06_pk_07_an_edit_that_damages_the_library_is_found() {
    let tree = Tree::new();
    let source = "__attribute__((section(\".nv_fatbin\"))) const char code[64] = \"0123456789\";\n\
                  void *PyInit_native(void) { return 0; }\n";
    let built = library(&tree, "native.so", source, &["-Wl,-rpath,$ORIGIN/lib"]);
    let before = std::fs::read(&built).unwrap();
    let unchanged = Edit::default();
    difference::check("native.so", &before, &before, &unchanged).unwrap();

    let error = |after: &[u8], edit: &Edit| {
        cuwheel::error::render(&difference::check("native.so", &before, after, edit).unwrap_err())
    };
    let find = |text: &[u8]| before.windows(text.len()).position(|window| window == text).unwrap();
    let mut fatbin = before.clone();
    fatbin[find(b"0123456789")] = b'x';
    assert!(error(&fatbin, &unchanged).contains("the section .nv_fatbin has another content"));

    // The alignment of the first segment that is mapped: the last field of the first row of the table.
    let mut segments = before.clone();
    let alignment = 64 + 48;
    segments[alignment..alignment + 8].copy_from_slice(&8_u64.to_le_bytes());
    assert!(error(&segments, &unchanged).contains("asks for less alignment than before"));

    let mut path = before.clone();
    path[find(b"$ORIGIN/lib") + 8] = b'L';
    assert!(error(&path, &unchanged).contains("the search path is not as planned"));
    let planned = Edit { run_path: Some(vec!["$ORIGIN/Lib".to_owned()]), ..Edit::default() };
    difference::check("native.so", &before, &path, &planned).unwrap();

    assert!(error(&before[..before.len() / 2], &unchanged).contains("cannot be read after it was edited"));
    let mut symbol = before.clone();
    symbol[find(b"PyInit_native\0")] = b'Q';
    assert!(error(&symbol, &unchanged).contains("the exported symbols are not as planned"));
}
