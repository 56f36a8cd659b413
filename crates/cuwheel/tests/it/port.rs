//! Projects of setuptools, each of a kind, in `port/*.txt`: what is read from them, and what is made of them.
//!
//! They are small and made up; docs/new-from-setuptools.md says what was found in some that exist.

use std::fmt::Write as _;
use std::path::Path;

use cuwheel::port::{self, Dependencies, ExistingProject, Options, Port};
use expect_test::{ExpectFile, expect_file};
use serde_json::Value;

use crate::doctor_corpus::write;
use crate::support::{Tree, interpreter};

/// The project as it is read; its directory is called `project`.
pub(crate) fn read(tree: &Tree, files: &str) -> ExistingProject {
    write(&tree.root, files);
    port::read(&tree.root, &interpreter().base_executable).unwrap()
}

/// Dependencies that are the same on every machine.
fn released() -> Dependencies {
    let version = "{ version = \"0.1.0\" }".to_owned();
    Dependencies { toolkit: version.clone(), build: version, is_checkout: false }
}

fn planned(existing: &ExistingProject) -> Port {
    port::plan(existing, &Options { name: None, dependencies: released() }).unwrap()
}

/// Without what is empty: what is not said takes no line.
fn pruned(value: Value) -> Value {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Bool(flag) => !flag,
        Value::Number(_) => false,
    };
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(key, value)| (key, pruned(value)));
            Value::Object(fields.filter(|(_, value)| !is_empty(value)).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(pruned).collect()),
        other => other,
    }
}

/// Facts, files and tasks as one text. Files that are the same for all projects are named only.
fn shown(existing: &ExistingProject, port: &Port) -> String {
    const SAME: &[&str] = &[".cargo/config.toml", ".gitignore", "xtask/Cargo.toml", "xtask/src/main.rs"];
    let mut text = format!("##### facts\n{:#}\n", pruned(serde_json::to_value(existing).unwrap()));
    text += "##### copies\n";
    for (from, to) in &port.copies {
        let _ = writeln!(text, "{from} -> {to}");
    }
    for file in &port.files {
        let is_same = SAME.contains(&file.path.as_str()) || file.path.ends_with("/not_ported.rs");
        let _ = writeln!(text, "##### {}", file.path);
        if !is_same {
            text += file.text.trim_end();
            text.push('\n');
        }
    }
    text
}

#[track_caller]
fn check(files: &str, expected: &ExpectFile) {
    let tree = Tree::new();
    let existing = read(&tree, files);
    expected.assert_eq(&shown(&existing, &planned(&existing)));
}

macro_rules! corpus {
    ($($(#[$what:meta])* $test:ident: $name:literal,)*) => {$(
        $(#[$what])*
        #[test]
        fn $test() {
            check(include_str!(concat!("port/", $name, ".txt")), &expect_file![concat!("port/", $name, ".expect")]);
        }
    )*};
}

corpus! {
    /// One module over the C API of Python, with a library beside it.
    a_module_in_plain_c: "plain_c",
    /// A module over NumPy's C API, and a version that is read by a pattern.
    a_module_over_the_c_api_of_numpy: "numpy_c",
    /// A module of pybind11 at the top, without a package.
    a_module_of_pybind11_without_a_package: "pybind11",
    /// Modules of Cython by a pattern, and versioneer.
    modules_of_cython_by_a_pattern: "cython",
    /// Operators for torch with kernels: some alone, some with their launches, some bound to torch.
    operators_for_torch_with_kernels: "cuda_extension",
    /// Modules in several packages, and one at the top.
    several_modules_become_one_library: "several",
    /// A namespace package in src, and a module beside it.
    a_namespace_package_in_src: "src_layout",
    /// Everything but the module is in setup.cfg.
    metadata_in_setup_cfg: "setup_cfg",
    /// No setup.py at all.
    everything_in_pyproject_toml: "pyproject_only",
    /// Commands that generate, and a list of commands that leaves `editable_wheel` out.
    commands_that_are_overridden: "cmdclass_override",
    /// A version, requirements and a description that only running would tell.
    what_only_running_would_tell: "computed_version",
    /// A version of the repository's tags.
    a_version_of_tags: "scm_version",
    /// A crate that setuptools-rust builds.
    a_crate_that_is_there: "rust_extensions",
    /// A `CMake` project behind an extension module without sources.
    an_extension_that_cmake_builds: "cmake_extension",
}

/// Sources with words that no language of the new project takes as they are.
#[test]
fn awkward_names_and_texts_are_quoted() {
    let tree = Tree::new();
    let files = "=== setup.py\nfrom setuptools import Extension, setup\nsetup(name='odd.Name_x', version='1', author='O \"Q\" \\\\ é', description='a \"b\" \\\\ c',\n\
                 packages=['odd'], ext_modules=[Extension('odd.type', ['m odd.c']), Extension('odd.Type', ['m.c']), Extension('odd.1é', [])])\n\
                 === odd/__init__.py\n=== m odd.c\nstatic PyMethodDef methods[] = {{\"f\", f, 1, \"say \\\"x\\\" \\\\ {= name =} \\0 end\"}};\nvoid PyInit_type(void) {}\n=== m.c\n";
    let existing = read(&tree, files);
    let port = planned(&existing);
    let file = |path: &str| port.files.iter().find(|file| file.path == path).map(|file| file.text.as_str());
    let pyproject: toml_edit::DocumentMut = file("pyproject.toml").unwrap().parse().unwrap();
    assert_eq!(pyproject["project"]["description"].as_str(), Some("a \"b\" \\ c"));
    assert_eq!(pyproject["project"]["authors"][0]["name"].as_str(), Some("O \"Q\" \\ é"));
    let module = file("crates/odd-name-x-native/src/module_type.rs").unwrap();
    assert!(module.contains(r#"doc: c"say \"x\" \\ {= name =}  end","#), "{module}");
    let members: Vec<&str> = port.layout.modules.iter().map(|module| module.member.as_str()).collect();
    assert_eq!(members, ["type", "odd_Type", "1é"]);
}

/// Reading twice gives the same, and nothing of the project is run or changed.
#[test]
fn nothing_of_the_project_is_run() {
    let tree = Tree::new();
    let mark = tree.beside("mark");
    let files = format!(
        "=== setup.py\nimport os, helper\nopen({0:?}, 'w').write('x')\nos.system('touch ' + {0:?})\nexec('open({0:?}, \"w\")')\n\
         from setuptools import Extension, setup\nsetup(name='x', version=helper.version, ext_modules=[Extension('x._x', ['x.c'])])\n\
         === helper.py\nversion = __import__('os').system('touch {1}') or '1'\n=== x.c\n",
        mark.to_str().unwrap(),
        mark.display()
    );
    let first = read(&tree, &files);
    let listed = |root: &Path| cuwheel::files::read_tree(root).unwrap();
    let before = listed(&tree.root);
    let second = port::read(&tree.root, &interpreter().base_executable).unwrap();
    assert_eq!(serde_json::to_value(&first).unwrap(), serde_json::to_value(&second).unwrap());
    assert!(!mark.exists());
    assert_eq!(before, listed(&tree.root));
}

/// A script that loops for ever, calls itself or doubles a text is given up, and what was read so far stays.
#[test]
fn scripts_that_do_not_end_are_given_up() {
    for endless in [
        "for a in range(2000):\n    for b in range(2000):\n        c = a\n",
        "def f(x):\n    return f(x + 1)\nf(0)\n",
        "x = 'a'\nfor i in range(1000):\n    x = x + x\n",
        "x = [1]\nfor i in range(1000):\n    x += x\n",
        "import re\nwhile True:\n    y = re.search('(a+)+b', 'a' * 5)\n",
    ] {
        let tree = Tree::new();
        let files = format!(
            "=== setup.py\nfrom setuptools import Extension, setup\n{endless}setup(name='x', version='1', ext_modules=[Extension('x._x', ['x.c'])])\n=== x.c\n"
        );
        let started = std::time::Instant::now();
        let existing = read(&tree, &files);
        assert!(started.elapsed().as_secs() < 30, "{endless}");
        assert!(existing.name.is_some() || !existing.gaps.is_empty(), "{endless}");
    }
}
