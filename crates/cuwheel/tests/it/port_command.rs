//! `new --from-setuptools` as a user runs it: what is refused, what is written, and what stays as it was.

use std::path::Path;

use expect_test::{Expect, expect};

use crate::doctor_corpus::write;
use crate::support::{Ran, Tree, cuwheel, run};

const PLAIN_C: &str = include_str!("port/plain_c.txt");

fn port(tree: &Tree, arguments: &[&str]) -> Ran {
    let mut command = cuwheel(tree.root.parent().unwrap());
    run(command.args(["new", "--from-setuptools"]).arg(&tree.root).args(arguments))
}

/// What is said of a project that is refused, with its path replaced.
#[track_caller]
fn check_refused(files: &str, expected: &Expect) {
    let tree = Tree::new();
    write(&tree.root, files);
    let ran = port(&tree, &[]).expect_code(2);
    assert!(!tree.beside("x-cuwheel").exists(), "nothing is written");
    expected.assert_eq(&ran.stderr.replace(tree.root.to_str().unwrap(), "PATH"));
}

#[test]
fn a_project_of_maturin_has_nothing_to_port() {
    check_refused(
        "=== pyproject.toml\n[build-system]\nrequires = ['maturin']\nbuild-backend = 'maturin'\n[project]\nname = 'x'\n",
        &expect![[r#"
            error: the project is built by maturin already: there is nothing to port
              pyproject.toml:3: build-backend is maturin
            fix: run `cuwheel doctor` and `cuwheel build-wheel` in it as it is
        "#]],
    );
}

#[test]
fn projects_of_cmake_and_meson_are_not_read() {
    check_refused(
        "=== pyproject.toml\n[build-system]\nbuild-backend = 'scikit_build_core.build'\n",
        &expect![[r#"
        error: the project is built by scikit-build-core, and not by setuptools
          pyproject.toml:2: build-backend is scikit_build_core.build
        fix: its native modules are described in CMakeLists.txt, which is not read: start with `cuwheel new NAME`, and move the sources over
    "#]],
    );
    check_refused(
        "=== pyproject.toml\n[build-system]\nbuild-backend = 'mesonpy'\n",
        &expect![[r#"
        error: the project is built by meson-python, and not by setuptools
          pyproject.toml:2: build-backend is mesonpy
        fix: its native modules are described in meson.build, which is not read: start with `cuwheel new NAME`, and move the sources over
    "#]],
    );
    check_refused(
        "=== setup.py\nfrom skbuild import setup\nsetup(name='x', cmake_args=[])\n",
        &expect![[r#"
        error: setup.py calls the setup() of scikit-build: the project is built by CMake, and not by setuptools
          setup.py:2
        fix: its native modules are described in CMakeLists.txt, which is not read: start with `cuwheel new NAME`, and move the sources over
    "#]],
    );
}

#[test]
fn other_backends_are_named() {
    check_refused(
        "=== pyproject.toml\n[build-system]\nbuild-backend = 'hatchling.build'\n",
        &expect![[r#"
        error: the project is built by hatchling.build, and not by setuptools
          pyproject.toml:2: build-backend is hatchling.build
        fix: start with `cuwheel new NAME`, and move the sources over
    "#]],
    );
}

#[test]
fn what_is_no_project_is_said() {
    check_refused(
        "=== README.md\n=== deep/setup.py\n",
        &expect![[r#"
            error: PATH is no project of setuptools: it has no setup.py, no setup.cfg, and no pyproject.toml with [project]
              deep/setup.py
            fix: give the directory with the setup.py of the project
        "#]],
    );
    let tree = Tree::new();
    let missing = tree.beside("missing");
    let mut command = cuwheel(&tree.root);
    let ran = run(command.args(["new", "--from-setuptools"]).arg(&missing)).expect_code(2);
    expect![[r#"
        error: MISSING does not exist
        fix: give the directory with the setup.py of the project
    "#]]
    .assert_eq(&ran.stderr.replace(missing.to_str().unwrap(), "MISSING"));
    tree.write("file", "");
    let mut command = cuwheel(&tree.root);
    let ran = run(command.args(["new", "--from-setuptools", "file"])).expect_code(2);
    expect![[r#"
        error: PATH/file is not a directory
        fix: give the directory that the file is in
    "#]]
    .assert_eq(&ran.stderr.replace(tree.root.to_str().unwrap(), "PATH"));
}

/// The messages of the parser are those of the interpreter's version: lines and the rest are not.
#[test]
fn a_setup_py_that_cannot_be_parsed_is_shown_with_its_line() {
    for (files, message, place) in [
        (
            "=== setup.py\nfrom setuptools import setup\nsetup(name='x', version=='1' '2' 3)\n",
            "error: setup.py cannot be parsed\n",
            "  setup.py:2: ",
        ),
        (
            "=== setup.py\nimport os\nprint \"building\"\nsetup(name='x')\n",
            "error: setup.py is written for Python 2, and cannot be parsed\n",
            "  setup.py:2: ",
        ),
        (
            "=== setup.py\ntry:\n    import x\nexcept ImportError, error:\n    pass\n",
            "error: setup.py is written for Python 2, and cannot be parsed\n",
            "  setup.py:3: ",
        ),
        (
            "=== setup.py\nsetup()\n=== pyproject.toml\n[build-system\n",
            "error: pyproject.toml is not valid TOML\n",
            "  pyproject.toml:1: ",
        ),
    ] {
        let tree = Tree::new();
        write(&tree.root, files);
        let ran = port(&tree, &[]).expect_code(2);
        assert!(ran.stderr.starts_with(message) && ran.stderr.contains(place), "{}", ran.stderr);
        assert!(ran.stderr.contains("\nfix: "), "{}", ran.stderr);
    }
}

#[test]
fn a_project_without_extension_modules_has_nothing_to_port() {
    check_refused(
        "=== setup.py\nfrom setuptools import setup\nsetup(name='x', version='1', packages=['x'])\n=== x/__init__.py\n",
        &expect![[r#"
            error: the project has no extension module: there is nothing to port
              neither ext_modules nor rust_extensions is declared in setup.py, setup.cfg or pyproject.toml
            fix: a project of Python only needs no native build: keep setuptools, or start with `cuwheel new NAME` to write a native module
        "#]],
    );
}

#[test]
fn a_name_that_is_not_known_has_to_be_given() {
    let files = "=== setup.py\nfrom setuptools import Extension, setup\nsetup(name=compute(), version='1', ext_modules=[Extension('x._x', ['x.c'])])\n=== x.c\n";
    check_refused(
        files,
        &expect![[r#"
        error: the name of the project is not known without running setup.py
          setup.py:2: compute(…)
        fix: give it as the argument NAME
    "#]],
    );
    let tree = Tree::new();
    write(&tree.root, files);
    let ran = port(&tree, &["given", "--dry-run", "--json"]).expect_code(0);
    assert!(ran.json()["destination"].as_str().unwrap().ends_with("/given-cuwheel"));
}

#[test]
fn a_project_is_written_beside_and_the_old_one_stays_as_it_was() {
    let tree = Tree::new();
    write(&tree.root, PLAIN_C);
    let before = cuwheel::files::read_tree(&tree.root).unwrap();
    let ran = port(&tree, &[]).expect_code(0);
    let place = tree.beside("checksums-cuwheel");
    assert!(ran.stdout.contains("checksums._crc, C or C++: 3 functions and classes to port"), "{}", ran.stdout);
    assert_eq!(before, cuwheel::files::read_tree(&tree.root).unwrap());
    for path in
        ["pyproject.toml", "PORTING.md", "python/checksums/cli.py", "tests/test_crc.py", "to-port/vendor/table.c"]
    {
        assert!(place.join(path).is_file(), "{path}");
    }
    assert!(!place.join("python/checksums/_crc.c").exists() && !place.join("python/checksums/__pycache__").exists());
    // A second time, what is there is in the way.
    let ran = port(&tree, &[]).expect_code(2);
    assert!(ran.stderr.contains("is not empty") && ran.stderr.contains("--path"), "{}", ran.stderr);
    assert_eq!(leftovers(tree.root.parent().unwrap()), ["checksums-cuwheel", "project"]);
}

fn leftovers(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn the_place_may_be_an_empty_directory_and_lies_outside_of_the_old_project() {
    let tree = Tree::new();
    write(&tree.root, PLAIN_C);
    let place = tree.beside("neu ü");
    std::fs::create_dir(&place).unwrap();
    port(&tree, &["--path", place.to_str().unwrap()]).expect_code(0);
    assert!(place.join("Cargo.toml").is_file());
    let inside = tree.root.join("new");
    let ran = port(&tree, &["--path", inside.to_str().unwrap()]).expect_code(2);
    assert!(ran.stderr.contains("is inside of the existing project"), "{}", ran.stderr);
    assert!(!inside.exists());
}

#[test]
fn a_dry_run_writes_nothing() {
    let tree = Tree::new();
    write(&tree.root, PLAIN_C);
    let ran = port(&tree, &["--dry-run"]).expect_code(0);
    assert!(ran.stdout.contains("would be") && ran.stdout.contains("copy  README.md to README.md"), "{}", ran.stdout);
    let ran = port(&tree, &["--dry-run", "--json"]).expect_code(0);
    let answer = ran.json();
    assert_eq!(answer["facts"]["extensions"][0]["entries"][0]["native"], "py_crc32");
    assert_eq!(answer["is_written"], false);
    assert_eq!(leftovers(tree.root.parent().unwrap()), ["project"]);
}
