//! `doctor` as a user runs it: what it prints, mends, remembers and leaves alone; and machines made of stand-ins.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use expect_test::expect;
use serde_json::{Value, json};

use crate::support::{Ran, Tree, cuwheel, driver_directory, interpreter, repository, run};

const PYPROJECT: &str = "\
[build-system]
requires = [
    \"setuptools>=77\", # the first with license-files
]

[project]
name = \"demo\"
version = \"1\"
requires-python = \">=3.11\"
dependencies = [\"numpy\"] # arrays
";

const SETUP: &str = "\
import pathlib
from setuptools import Extension, setup

pathlib.Path(__file__).with_name('was_run').touch()
setup(ext_modules=[Extension('demo._m', ['demo/_m.c'])])
";

/// A project with an error that can be mended, a warning that can, and one that cannot.
fn demo() -> Tree {
    let tree = Tree::new();
    tree.write("pyproject.toml", PYPROJECT)
        .write("setup.py", SETUP)
        .write("demo/__init__.py", "import sys\nsys.path.insert(0, 'x')\n")
        .write("demo/_m.c", "#include <numpy/arrayobject.h>\n");
    tree
}

fn doctor(tree: &Tree, arguments: &[&str]) -> Ran {
    run(cuwheel(&tree.root).arg("doctor").args(arguments).arg("--no-machine"))
}

fn shown(tree: &Tree, ran: &Ran) -> String {
    ran.stdout.replace(tree.root.to_str().unwrap(), "[PROJECT]")
}

#[test]
fn findings_have_a_place_a_reason_and_a_fix_and_nothing_of_the_project_is_run() {
    let tree = demo();
    let ran = doctor(&tree, &[]).expect_code(1);
    expect![[r#"
        project   demo, built by setuptools, in [PROJECT]
        read      2 Python files, 1 native sources and 1 build files of 4
        findings  1 error, 2 warnings
        error: build/requirement-undeclared
          demo/_m.c:1: the included numpy/arrayobject.h comes from numpy, which build-system.requires does not list
            fix: write requires = ["setuptools>=77", "numpy>=2.0"] in [build-system] of pyproject.toml
          why: pip and uv build in an empty environment: the build ends with `ModuleNotFoundError` or a missing header, and users are told to switch isolation off.
          fix: add it to build-system.requires in pyproject.toml
        warning: build/numpy-floor
          pyproject.toml:10: numpy has no lower bound, and demo/_m.c uses NumPy's C API
            fix: write numpy>=1.23.2, the oldest with wheels for the oldest Python
          why: Without a floor, an older NumPy stays installed, and the import fails with `module compiled against API version`.
          fix: require numpy with a lower bound in project.dependencies
        warning: import/hack
          demo/__init__.py:2: sys.path.insert changes where everyone's modules are looked for
          why: It hides an extension that was not built or lies elsewhere; copies of modules, circular imports and broken pickles follow.
          fix: put the module where its name says, and import it by that name
    "#]].assert_eq(&shown(&tree, &ran));
    assert_eq!(ran.stderr, "");
    assert!(!tree.root.join("was_run").exists());
}

#[test]
fn fix_shows_the_difference_and_edits_only_without_dry_run() {
    let tree = demo();
    let ran = doctor(&tree, &["--fix", "--dry-run"]).expect_code(1);
    let difference = ran.stdout.split("\nproject").next().unwrap().to_owned();
    expect![[r#"
        --- a/pyproject.toml
        +++ b/pyproject.toml
        @@ -1,10 +1,11 @@
         [build-system]
         requires = [
             "setuptools>=77", # the first with license-files
        +    "numpy>=2.0",
         ]

         [project]
         name = "demo"
         version = "1"
         requires-python = ">=3.11"
        -dependencies = ["numpy"] # arrays
        +dependencies = ["numpy>=1.23.2"] # arrays
    "#]]
    .assert_eq(&difference.replace("\n \n", "\n\n"));
    let read = || std::fs::read_to_string(tree.root.join("pyproject.toml")).unwrap();
    assert_eq!(read(), PYPROJECT);

    let document = doctor(&tree, &["--fix", "--json"]).expect_code(0).json();
    assert_eq!(document["fix"]["is_written"], true);
    assert_eq!(document["fix"]["diff"].as_str().unwrap().trim_end(), difference.trim_end());
    let rules: Vec<&str> =
        document["findings"].as_array().unwrap().iter().map(|finding| finding["rule"].as_str().unwrap()).collect();
    assert_eq!(rules, ["import/hack"], "what was mended is not reported again");
    let mended = read();
    assert!(mended.contains("# the first with license-files") && mended.contains("# arrays"), "{mended}");

    let again = doctor(&tree, &["--fix"]).expect_code(0);
    assert!(again.stdout.starts_with("nothing can be mended without judgement\n"), "{}", again.stdout);
    assert_eq!(read(), mended);
}

#[test]
fn json_has_the_fields_that_are_documented() {
    let tree = demo();
    let mut document = doctor(&tree, &["--json"]).expect_code(1).json();
    document["project"]["root"] = json!("[PROJECT]");
    assert_eq!(document["findings"][0]["path"], "demo/_m.c");
    assert_eq!(document["findings"][0]["line"], 1);
    assert_eq!(document["findings"][0]["fixable"], true);
    document["findings"] = Value::Null;
    let keys: Vec<&String> = document.as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        ["baseline", "command", "counts", "findings", "fix", "machine", "ok", "project", "schema", "warnings"]
    );
    assert_eq!(
        document["project"],
        json!({ "root": "[PROJECT]", "name": "demo", "backend": "setuptools", "files": 4 })
    );
    assert_eq!(document["counts"], json!({ "errors": 1, "warnings": 2, "notes": 0 }));
}

#[test]
fn known_findings_are_counted_and_only_new_ones_reported() {
    let tree = demo();
    let baseline = ["--baseline", "known.json"];
    let written = doctor(&tree, &[&baseline[..], &["--write-baseline"]].concat()).expect_code(0);
    assert!(written.stdout.contains("known     3 written to"), "{}", written.stdout);
    let ran = doctor(&tree, &baseline).expect_code(0);
    assert!(ran.stdout.contains("known     3 listed in") && ran.stdout.contains("findings  none"), "{}", ran.stdout);

    // Lines move, and a finding is known all the same; another is new, and one is gone.
    tree.write("demo/_m.c", "\n\n#include <numpy/arrayobject.h>\n")
        .write("demo/__init__.py", "import sys\nsys.modules['x'] = sys\n");
    let document = doctor(&tree, &[&baseline[..], &["--json"]].concat()).expect_code(0).json();
    assert_eq!(document["baseline"]["known"], 2);
    assert_eq!(document["baseline"]["gone"][0]["rule"], "import/hack");
    assert_eq!(document["findings"][0]["message"], "sys.modules[x] is set");

    tree.write("known.json", "{}");
    let ran = doctor(&tree, &baseline).expect_code(2);
    assert!(ran.stderr.contains("known.json is no list of known findings"), "{}", ran.stderr);
    let ran = doctor(&tree, &["--write-baseline"]).expect_code(2);
    assert!(ran.stderr.contains("--write-baseline has no file to write"), "{}", ran.stderr);
}

#[test]
fn rules_are_denied_and_allowed_by_settings_and_by_the_command_line() {
    let tree = demo();
    let settings = "\n[tool.cuwheel.doctor]\nallow = ['build/']\nbaseline = 'known.json'\n";
    tree.write("pyproject.toml", format!("{PYPROJECT}{settings}"));
    tree.write("known.json", "{\"schema\": 1, \"findings\": []}");
    let counts = |arguments: &[&str], code| doctor(&tree, &[arguments, &["--json"]].concat()).expect_code(code).json();
    assert_eq!(counts(&[], 0)["counts"], json!({ "errors": 0, "warnings": 1, "notes": 0 }));
    assert_eq!(counts(&["--deny", "import/"], 1)["counts"]["errors"], 1);
    assert_eq!(counts(&["--allow", "import/hack"], 0)["counts"]["warnings"], 0);
    let ran = doctor(&tree, &["--deny", "archive/"]).expect_code(2);
    assert!(ran.stderr.contains("no rule and no group of rules"), "{}", ran.stderr);
    // A table that no command would take does not keep this one from saying so.
    tree.write("pyproject.toml", format!("{PYPROJECT}\n[tool.cuwheel]\nmodul = []\n"));
    let ran = doctor(&tree, &[]).expect_code(1);
    assert!(ran.stdout.contains("pyproject.toml:13: tool.cuwheel.modul is not a setting"), "{}", ran.stdout);
    assert!(ran.stdout.contains("fix: did you mean tool.cuwheel.modules?"), "{}", ran.stdout);
}

#[test]
fn findings_go_to_code_scanning_with_their_lines() {
    let tree = demo();
    doctor(&tree, &["--sarif", "out.sarif"]).expect_code(1);
    let log: Value = serde_json::from_slice(&std::fs::read(tree.root.join("out.sarif")).unwrap()).unwrap();
    let run = &log["runs"][0];
    assert_eq!(run["tool"]["driver"]["name"], "cuwheel doctor");
    let result = &run["results"][0];
    let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
    assert_eq!(run["tool"]["driver"]["rules"][index]["id"], result["ruleId"]);
    assert_eq!(
        result["locations"][0]["physicalLocation"],
        json!({ "artifactLocation": { "uri": "demo/_m.c" }, "region": { "startLine": 1 } })
    );
}

#[test]
fn a_project_is_found_from_inside_and_named_where_there_is_none() {
    let tree = Tree::new();
    tree.write("python/one/pyproject.toml", "[project]\nname = 'one'\n").write("python/one/src/one/__init__.py", "");
    let ran = doctor(&tree, &["python/one/src"]).expect_code(0);
    assert!(ran.stdout.contains("project   one, built by setuptools"), "{}", ran.stdout);
    let ran = doctor(&tree, &["."]).expect_code(2);
    assert!(ran.stderr.contains("python/one") && ran.stderr.contains("fix: give one of these"), "{}", ran.stderr);
    let plan = run(cuwheel(&tree.root).args(["doctor", "python/one", "--dry-run"])).expect_code(0);
    expect![[r#"
        project   [PROJECT]/python/one
        machine   is looked at
    "#]]
    .assert_eq(&shown(&tree, &plan));
}

#[test]
fn files_that_cannot_be_parsed_are_named_and_the_others_read() {
    let tree = demo();
    tree.write("demo/deep/__init__.py", "(".repeat(200_000)).write("demo/zero/__init__.py", b"import sys\0\n");
    let ran = doctor(&tree, &["--verbose"]).expect_code(1);
    for place in ["demo/deep/__init__.py", "demo/zero/__init__.py", "demo/__init__.py:2: sys.path.insert"] {
        assert!(ran.stdout.contains(place), "{}", ran.stdout);
    }
    // Without a Python, the rest is still said.
    let mut command = cuwheel(&tree.root);
    command.args(["doctor", "--no-machine"]).env("PATH", "/nonexistent").env("HOME", "/nonexistent");
    command.env_remove("PYENV_ROOT").env_remove("CUWHEEL_PYTHON");
    let ran = run(&mut command).expect_code(0);
    assert!(ran.stderr.contains("there is no Python on PATH: Python files are not read"), "{}", ran.stderr);
}

/// Writes a program of a few lines of shell.
fn program(path: &Path, lines: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, format!("#!/bin/sh\n{lines}\n")).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// A directory like that of a CUDA toolkit.
fn toolkit(root: &Path, version: &str, gcc: u32, architectures: &str) {
    program(
        &root.join("bin/nvcc"),
        &format!(
            "case $1 in --list-gpu-code) printf '%s\\n' {architectures};; *) echo asked for $1 >&2; exit 9;; esac"
        ),
    );
    std::fs::create_dir_all(root.join("include/crt")).unwrap();
    std::fs::write(root.join("include/cuda.h"), format!("#define CUDA_VERSION {version}\n")).unwrap();
    let bound = format!("#if __GNUC__ > {gcc}\n#error unsupported GNU version\n#endif\n");
    std::fs::write(root.join("include/crt/host_config.h"), bound).unwrap();
}

#[test]
fn pk_18_22_23_a_machine_of_stand_ins_is_described_and_judged() {
    let tree = Tree::new();
    tree.write("pyproject.toml", "[build-system]\nrequires = ['scikit-build-core']\nbuild-backend = 'scikit_build_core.build'\n[project]\nname = 'demo'\n")
        .write("CMakeLists.txt", "set(CMAKE_CUDA_ARCHITECTURES 80 100)\n")
        .write("src/kernel.cu", "");
    let (home, other, bin) = (tree.beside("cuda home"), tree.beside("other"), tree.beside("bin"));
    toolkit(&home, "12040", 13, "sm_50 sm_80 sm_90");
    toolkit(&other, "13000", 15, "sm_75 sm_100");
    program(&bin.join("g++"), "echo 'gcc version 99.1.0 (fake)' >&2");
    program(&bin.join("g++-13"), "echo 'gcc version 13.2.0 (fake)' >&2");
    program(&bin.join("uv"), "echo uv 0.3.1");
    program(&bin.join("nvidia-smi"), &format!("touch '{}'", tree.beside("smi was run").display()));
    let path = std::env::join_paths([bin.clone(), other.join("bin"), "/usr/bin".into(), "/bin".into()]).unwrap();
    let mut command = cuwheel(&tree.root);
    command.args(["doctor", "--json"]).env("PATH", path).env("CUDA_HOME", &home).env_remove("CUDA_PATH");
    command.env("CUWHEEL_PYTHON", interpreter().base_executable).env("MAX_JOBS", "100000");
    let document = run(&mut command).expect_code(1).json();

    let found_by = |index: usize| document["machine"]["toolkits"][index]["found_by"].as_str().unwrap().to_owned();
    assert_eq!([found_by(0), found_by(1)], ["CUDA_HOME", "PATH"]);
    assert_eq!(document["machine"]["toolkits"][0]["version"], "12.4");
    assert_eq!(document["machine"]["compiler"]["version"], "99.1.0");
    let findings = document["findings"].as_array().unwrap();
    let of = |rule: &str| findings.iter().find(|finding| finding["rule"] == rule).unwrap_or_else(|| panic!("{rule}"));
    assert!(of("machine/toolkits")["message"].as_str().unwrap().starts_with("CUDA_HOME leads to CUDA 12.4"));
    assert!(of("machine/compiler")["message"].as_str().unwrap().contains("takes GCC up to 13"));
    let remedy = of("machine/compiler")["remedy"].as_str().unwrap();
    assert!(remedy.starts_with(&format!("set NVCC_CCBIN={}", bin.join("g++-13").display())), "{remedy}");
    assert_eq!(of("machine/architecture")["path"], "CMakeLists.txt");
    assert!(of("machine/architecture")["message"].as_str().unwrap().contains("does not know 100"));
    assert!(of("machine/memory")["message"].as_str().unwrap().starts_with("100000 jobs (MAX_JOBS)"));
    assert!(of("machine/uv")["message"].as_str().unwrap().contains("is 0.3.1, older than"));
    assert!(!tree.beside("smi was run").exists());
}

#[test]
fn the_driver_is_asked_without_disturbing_a_device() {
    let tree = Tree::new();
    tree.write("pyproject.toml", "[project]\nname = 'demo'\n");
    let directory = driver_directory();
    let document = run(cuwheel(&tree.root).args(["doctor", "--json"]).env("LD_LIBRARY_PATH", directory.path())).json();
    let driver = &document["machine"]["driver"];
    assert_eq!(driver["problem"], Value::Null, "{driver}");
    assert!(driver["cuda_version"][0].as_u64().unwrap() >= 12, "{driver}");
    assert!(driver["devices"][0]["compute_capability"].is_array(), "{driver}");
}

/// This repository is a project as any other.
#[test]
fn nothing_is_found_in_this_repository() {
    let ran = run(cuwheel(&repository()).args(["doctor", "--no-machine"])).expect_code(0);
    assert!(ran.stdout.contains("findings  none"), "{}", ran.stdout);
}
