//! Discovery of headers, seen from a build script: real processes, folders with spaces and letters outside ASCII.
//!
//! Each case but the last fails, or is proven, before the compiler is reached.

use std::fs;
use std::path::Path;

use crate::machine::{Machine, PLAY_BUILD_SCRIPT, assert_contains};

/// What plays the build script.
const SCRIPT: &str = "headers::build_script";

/// The C file of the shim, relative to the crate's folder.
const SHIM: &str = "source/shim.c";

/// Not a test of its own: what the cases below run in another process, with variables of their own.
#[test]
fn build_script() {
    if std::env::var_os(PLAY_BUILD_SCRIPT).is_some()
        && let Err(error) = cuwheel_build::NumpyShim::new().file(SHIM).compile("shim")
    {
        println!("failed: {error:?}");
    }
}

#[test]
fn an_interpreter_without_numpy_gets_the_line_to_add() {
    let machine = Machine::new();
    let python = machine.interpreter("bin/python", "include=/i\nplatinclude=/i\nnumpy-missing=x");
    let output = machine.run(SCRIPT, &[("PYTHON_SYS_EXECUTABLE", &python)]);
    assert_contains(
        &output,
        &[
            &format!("NumPy is not installed for {}", python.display()),
            "[build-system]\n    requires = [\"maturin>=1.16,<2\", \"numpy>=2.0\"]",
        ],
    );
}

#[test]
fn an_interpreter_without_headers_gets_the_package_to_install() {
    let machine = Machine::new();
    let include = machine.path("include");
    let answer = format!("include={0}\nplatinclude={0}\nnumpy=/n", include.display());
    let python = machine.interpreter("bin/python", &answer);
    let output = machine.run(SCRIPT, &[("CUWHEEL_PYTHON", &python)]);
    let looked_for = format!("Python.h not found; looked for {}.", include.join("Python.h").display());
    assert_contains(&output, &[&looked_for, "python3-dev", "python3-devel"]);
}

#[test]
fn headers_of_numpy_1_are_refused() {
    let machine = Machine::new();
    let python = machine.write("include/Python.h", "");
    let numpy = machine.write("numpy/include/numpy/arrayobject.h", "");
    let output = machine.run(
        SCRIPT,
        &[
            ("CUWHEEL_PYTHON_INCLUDE", python.parent().unwrap()),
            ("CUWHEEL_NUMPY_INCLUDE", numpy.parent().unwrap().parent().unwrap()),
        ],
    );
    assert_contains(&output, &["npy_2_compat.h does not exist", "numpy>=2.0"]);
}

#[test]
fn include_variables_win_over_interpreters() {
    let machine = Machine::new();
    let output = machine.run(
        SCRIPT,
        &[
            ("CUWHEEL_PYTHON_INCLUDE", &machine.path("one")),
            ("CUWHEEL_NUMPY_INCLUDE", &machine.path("two")),
            ("CUWHEEL_PYTHON", Path::new("/does/not/exist")),
        ],
    );
    let looked_for = format!("looked for {}.", machine.path("one/Python.h").display());
    assert_contains(&output, &[&looked_for]);
}

#[test]
fn one_include_variable_without_the_other_is_an_error() {
    let machine = Machine::new();
    let complete = machine.interpreter("bin/complete", "include=/i\nplatinclude=/i\nnumpy=/n");
    let without_numpy = machine.interpreter("bin/without", "include=/i\nplatinclude=/i\nnumpy-missing=x");
    let cases = [
        ("CUWHEEL_NUMPY_INCLUDE", &complete, "CUWHEEL_NUMPY_INCLUDE is set and CUWHEEL_PYTHON_INCLUDE is not"),
        ("CUWHEEL_PYTHON_INCLUDE", &complete, "CUWHEEL_PYTHON_INCLUDE is set and CUWHEEL_NUMPY_INCLUDE is not"),
        // What a build tool does that found no NumPy.
        ("CUWHEEL_PYTHON_INCLUDE", &without_numpy, "NumPy is not installed for"),
    ];
    for (variable, python, expected) in cases {
        let output = machine.run(SCRIPT, &[(variable, Path::new("/some/folder")), ("CUWHEEL_PYTHON", python)]);
        assert_contains(&output, &[expected]);
    }
}

#[test]
fn the_interpreter_imports_nothing_from_the_folder_of_the_crate() {
    let machine = Machine::new();
    for name in ["sysconfig.py", "os.py", "numpy/__init__.py"] {
        machine.write(name, "print('shadowed')\nraise SystemExit(3)\n");
    }
    // Whatever comes next, a missing NumPy or a missing C file, is not what the files above print.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let output = machine.run(SCRIPT, &[("PATH", Path::new(&path))]);
    assert!(output.contains("failed: "), "{output}");
    assert!(!output.contains("shadowed") && !output.contains("no Python interpreter found"), "{output}");
}

#[test]
fn interpreters_are_asked_in_the_documented_order() {
    let machine = Machine::new();
    let broken = |name: &str| machine.interpreter(name, &format!("I am {name}"));
    let (ours, system, pyo3) = (broken("ours"), broken("system"), broken("pyo3"));
    let all = [("PYO3_PYTHON", pyo3.as_path()), ("PYTHON_SYS_EXECUTABLE", &system), ("CUWHEEL_PYTHON", &ours)];
    for (count, name) in [(1, "pyo3"), (2, "system"), (3, "ours")] {
        let answer = format!("it printed \"I am {name}\", which is not an answer");
        assert_contains(&machine.run(SCRIPT, &all[..count]), &[&answer]);
    }
}

#[test]
fn the_path_is_searched_last_for_the_first_interpreter_that_works() {
    let machine = Machine::new();
    machine.interpreter("bin/python3", "not an answer");
    machine.interpreter("bin/python", "include=/i\nplatinclude=/i\nnumpy-broken=ImportError('no libopenblas')");
    let path = format!("{}:/usr/bin:/bin", machine.path("bin").display());
    let output = machine.run(SCRIPT, &[("PATH", Path::new(&path))]);
    assert_contains(&output, &["NumPy is installed for python but cannot be imported: ImportError('no libopenblas')"]);

    let nothing = machine.path("empty");
    let output = machine.run(SCRIPT, &[("PATH", &nothing)]);
    assert_contains(&output, &["no Python interpreter found", "set CUWHEEL_PYTHON"]);
}

/// Names its own file, and a header of each kind, as `assert` does.
const SHIM_THAT_NAMES_FILES: &str = r#"
#include <Python.h>
#include <numpy/npy_2_compat.h>
const char *shim_files(int which)
{
    const char *const files[] = {python_file(), numpy_file(), __FILE__};
    return files[which];
}
"#;

const SHIM_THAT_NAMES_NONE: &str =
    "#include <Python.h>\nint shim_number(int number) { return python_number(number); }\n";

const PYTHON_HEADER: &str = "static inline const char *python_file(void) { return __FILE__; }\n\
                             static inline int python_number(int number) { return number + 1; }\n";

const NUMPY_HEADER: &str = "static inline const char *numpy_file(void) { return __FILE__; }\n";

#[test]
fn released_objects_hold_no_path_of_the_machine() {
    let cases = [
        (
            "Größe mit Leerzeichen ",
            SHIM_THAT_NAMES_FILES,
            &["source/shim.c", "python/Python.h", "numpy/numpy/npy_2"][..],
        ),
        ("Größe mit = Leerzeichen ", SHIM_THAT_NAMES_NONE, &["shim_number"]),
    ];
    for (name, shim, expected) in cases {
        let machine = Machine::at(name);
        machine.write(SHIM, shim);
        machine.write("python include/Python.h", PYTHON_HEADER);
        machine.write("numpy include/numpy/npy_2_compat.h", NUMPY_HEADER);
        let target = Path::new("x86_64-unknown-linux-gnu");
        let output = machine.run(
            SCRIPT,
            &[
                ("CUWHEEL_PYTHON_INCLUDE", &machine.path("python include")),
                ("CUWHEEL_NUMPY_INCLUDE", &machine.path("numpy include")),
                ("OPT_LEVEL", Path::new("3")),
                ("DEBUG", Path::new("false")),
                ("TARGET", target),
                ("HOST", target),
            ],
        );
        let library = fs::read(machine.path("out/libshim.a")).expect(&output);
        let holds = |text: &str| library.windows(text.len()).any(|window| window == text.as_bytes());
        for text in expected {
            assert!(holds(text), "{text:?} is not in the library of {name:?}");
        }
        assert!(!holds(machine.root.path().to_str().unwrap()), "the library of {name:?} holds its path");
        assert!(!holds("Leerzeichen"), "the library of {name:?} holds a part of its path");
    }
}
