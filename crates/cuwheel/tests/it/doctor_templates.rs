//! Projects as the tools of others write them: `doctor` finds nothing in their templates.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::doctor_corpus::{Subject, examine, shown};
use crate::support::{Tree, cuwheel, interpreter, run, scrub, uv};

/// Runs `doctor` on each of `projects`, as a user would in a fresh checkout.
#[track_caller]
fn nothing_is_found_in(tree: &Tree, projects: &[PathBuf]) {
    let mut wrong = String::new();
    for project in projects {
        let ran = run(cuwheel(&tree.root).args(["doctor", "--no-machine"]).arg(project));
        if ran.code != Some(0) || !ran.stdout.contains("findings  none") {
            wrong += &ran.stdout;
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

fn command(program: &Path, directory: &Path) -> Command {
    let mut command = Command::new(program);
    scrub(&mut command);
    command.current_dir(directory);
    command
}

#[test]
fn nothing_is_found_in_the_templates_of_maturin_and_scikit_build_core() {
    let tree = Tree::new();
    let environment = tree.beside("venv");
    uv().create_environment(&interpreter(), &environment).unwrap();
    let mut install = Command::new(uv().program());
    install.args(["pip", "install", "--quiet", "maturin==1.16.0", "scikit-build-core==1.1.2", "--python"]);
    run(install.arg(environment.join("bin/python"))).expect_code(0);
    let mut projects = Vec::new();
    for arguments in [&["pyo3"][..], &["cffi"], &["pyo3", "--mixed", "--src"]] {
        let name = format!("maturin-{}", arguments.join("-").replace("--", ""));
        let mut new = command(&environment.join("bin/maturin"), &tree.root);
        run(new.args(["new", "--bindings"]).args(arguments).arg(&name)).expect_code(0);
        projects.push(tree.root.join(name));
    }
    for backend in ["pybind11", "nanobind", "cython", "abi3"] {
        let mut init = command(&environment.join("bin/scikit-build"), &tree.root);
        run(init.args(["init", "--backend", backend, backend])).expect_code(0);
        projects.push(tree.root.join(backend));
    }
    nothing_is_found_in(&tree, &projects);
}

#[test]
fn nothing_is_found_in_the_templates_of_uv() {
    let tree = Tree::new();
    let mut projects = Vec::new();
    for backend in ["maturin", "scikit", "setuptools", "hatch"] {
        let mut init = command(uv().program(), &tree.root);
        init.args(["init", "--lib", "--offline", "--no-workspace", "--quiet", "--build-backend", backend]);
        run(init.arg("--python").arg(interpreter().base_executable).arg(backend)).expect_code(0);
        projects.push(tree.root.join(backend));
    }
    nothing_is_found_in(&tree, &projects);
}

/// setuptools has no program that writes a project; its guide shows one with an extension module in pyproject.toml, one with a
/// setup.py, and one with Cython, in both layouts.
#[test]
fn nothing_is_found_in_projects_as_the_guide_of_setuptools_lays_them_out() {
    const HEAD: &str = "=== pyproject.toml\n[build-system]\nrequires = [\"setuptools\"]\nbuild-backend = \"setuptools.build_meta\"\n\
                        [project]\nname = \"parcel\"\nversion = \"0.1\"\n";
    for rest in [
        "[tool.setuptools]\next-modules = [{ name = \"parcel.spam\", sources = [\"spam.c\"] }]\n=== spam.c\n#include <Python.h>\n=== parcel/__init__.py\n",
        "=== setup.py\nfrom setuptools import Extension, setup\n\nsetup(ext_modules=[Extension(name=\"parcel.spam\", sources=[\"spam.c\"])])\n\
         === spam.c\n#include <Python.h>\n=== src/parcel/__init__.py\n=== tests/test_spam.py\n",
        "[project.scripts]\nparcel = \"parcel:main\"\n[tool.setuptools.packages.find]\nwhere = [\"src\"]\n=== src/parcel/__init__.py\ndef main():\n    pass\n",
        "[options]\n=== setup.cfg\n[options]\npackages = find:\ninstall_requires =\n    requests\n=== setup.py\nfrom setuptools import setup\n\nsetup()\n=== parcel/__init__.py\n",
    ] {
        let files: &'static str = Box::leak(format!("{HEAD}{rest}").into_boxed_str());
        let found = shown(&examine(&Subject::Project(files), &interpreter().base_executable));
        assert!(found.is_empty(), "{found:#?}\n{files}");
    }
}
