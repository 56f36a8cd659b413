//! The ways of running pytest that import the source tree instead of the installed wheel (report PK-63).
//!
//! For each: the plain call imports what it is known to import, which shows that the arrangement is the faulty one; and
//! `cuwheel test` tests the wheel in the very same arrangement.

use std::process::Command;
use std::sync::OnceLock;

use cuwheel::environment::FreshEnvironment;

use crate::support::{PureProject, interpreter, run, scrub, test_lock, uv};

/// An environment with pytest and the wheel, as a project's own developers have it.
fn developers_python() -> &'static std::path::Path {
    static ENVIRONMENT: OnceLock<(FreshEnvironment, std::path::PathBuf)> = OnceLock::new();
    &ENVIRONMENT
        .get_or_init(|| {
            let uv = uv();
            let environment =
                FreshEnvironment::create(&cuwheel::cache::Cache::locate().unwrap(), &interpreter(), &uv).unwrap();
            let project = PureProject::new();
            let lock = environment.beside("test.txt");
            std::fs::write(&lock, test_lock()).unwrap();
            uv.sync(&environment.path(), &lock).unwrap();
            uv.install_wheel(&environment.path(), &project.wheel).unwrap();
            let python = environment.python();
            (environment, python)
        })
        .1
}

const SAYS_WHERE: &str =
    "import matpkg\nfrom helper import WHERE\n\ndef test_where():\n    assert matpkg.SOURCE == WHERE\n";

struct Row {
    /// The arguments of the plain call from the root of the project.
    call: &'static [&'static str],
    /// Files that belong to the arrangement.
    files: &'static [(&'static str, &'static str)],
    environment: &'static [(&'static str, &'static str)],
    plain_imports: &'static str,
}

#[track_caller]
fn check(row: &Row) {
    let project = PureProject::new();
    project.write("tests/test_where.py", SAYS_WHERE).write("tests/helper.py", "WHERE = 'wheel'\n");
    for (path, content) in row.files {
        project.write(path, content);
    }

    let mut plain = Command::new(developers_python());
    scrub(&mut plain);
    plain.current_dir(&project.tree.root).args(row.call).args(["-p", "no:cacheprovider"]);
    plain.envs(row.environment.iter().copied()).env("PYTHONDONTWRITEBYTECODE", "1");
    let plain = run(&mut plain);
    let imports = if plain.code == Some(0) { "wheel" } else { "tree" };
    assert_eq!(imports, row.plain_imports, "{}{}", plain.stdout, plain.stderr);

    let mut ours = project.test(&[]);
    ours.envs(row.environment.iter().copied());
    let ours = run(&mut ours).expect_code(0);
    assert!(ours.stdout.ends_with("1 passed, 0 failed, 0 skipped\n"), "{}", ours.stdout);
}

#[test]
fn pytest_with_the_directory_of_tests() {
    check(&Row { call: &["-P", "-m", "pytest", "tests"], files: &[], environment: &[], plain_imports: "wheel" });
}

#[test]
fn python_m_pytest_puts_the_tree_first() {
    check(&Row { call: &["-m", "pytest", "tests"], files: &[], environment: &[], plain_imports: "tree" });
}

#[test]
fn python_m_pytest_with_another_import_mode_puts_the_tree_first() {
    check(&Row {
        call: &["-m", "pytest", "--import-mode=append", "tests"],
        files: &[],
        environment: &[],
        plain_imports: "tree",
    });
}

#[test]
fn a_conftest_at_the_root_puts_the_tree_first() {
    check(&Row {
        call: &["-P", "-m", "pytest", "tests"],
        files: &[("conftest.py", "")],
        environment: &[],
        plain_imports: "tree",
    });
}

#[test]
fn a_conftest_at_the_root_with_append_imports_the_wheel() {
    check(&Row {
        call: &["-P", "-m", "pytest", "--import-mode=append", "tests"],
        files: &[("conftest.py", "")],
        environment: &[],
        plain_imports: "wheel",
    });
}

#[test]
fn tests_as_a_package_put_the_tree_first() {
    check(&Row {
        call: &["-P", "-m", "pytest", "tests"],
        files: &[
            ("tests/__init__.py", ""),
            (
                "tests/test_where.py",
                "import matpkg\nfrom .helper import WHERE\n\ndef test_where():\n    assert matpkg.SOURCE == WHERE\n",
            ),
        ],
        environment: &[],
        plain_imports: "tree",
    });
}

#[test]
fn pythonpath_in_the_configuration_puts_the_tree_first() {
    check(&Row {
        call: &["-P", "-m", "pytest", "tests"],
        files: &[("pytest.ini", "[pytest]\npythonpath = .\n")],
        environment: &[],
        plain_imports: "tree",
    });
}

#[test]
fn pythonpath_in_the_environment_puts_the_tree_first() {
    check(&Row {
        call: &["-m", "pytest", "--import-mode=importlib", "tests/test_plain.py"],
        files: &[
            ("tests/test_where.py", ""),
            ("tests/test_plain.py", "import matpkg\n\ndef test_where():\n    assert matpkg.SOURCE == 'wheel'\n"),
        ],
        environment: &[("PYTHONPATH", ".")],
        plain_imports: "tree",
    });
}

#[test]
fn an_isolated_interpreter_imports_the_wheel() {
    check(&Row { call: &["-I", "-m", "pytest", "tests"], files: &[], environment: &[], plain_imports: "wheel" });
}
