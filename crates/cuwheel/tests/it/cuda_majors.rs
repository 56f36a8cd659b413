//! Wheels for several major versions of CUDA from one tree. What is compiled tells which version it was compiled for.

use std::path::Path;
use std::process::Command;

use cuwheel::environment::FreshEnvironment;
use cuwheel_inspect::wheel::Wheel;

use crate::support::{Ran, Tree, cuwheel, driver_directory, interpreter, native_project, run, uv};

const TAG: &str = "0.1.0-cp311-abi3-manylinux_2_28_x86_64.whl";

/// A project whose native module says in its docstring what it was compiled for.
fn project(settings: &str) -> Tree {
    let tree = native_project();
    let library = std::fs::read_to_string(tree.root.join("src/lib.rs")).unwrap();
    let doc = "m_doc: concat!(\"for CUDA \", env!(\"CUWHEEL_CUDA_MAJOR\"), \"\\0\").as_ptr().cast(),";
    assert!(library.contains("m_doc: ptr::null(),"));
    let pyproject = std::fs::read_to_string(tree.root.join("pyproject.toml")).unwrap();
    tree.write("src/lib.rs", library.replace("m_doc: ptr::null(),", doc))
        .write("pyproject.toml", format!("{pyproject}[tool.cuwheel.cuda]\n{settings}"));
    tree
}

fn build(tree: &Tree, arguments: &[&str]) -> Ran {
    run(cuwheel(&tree.root).arg("build-wheel").args(arguments).env_remove("CUWHEEL_CUDA_MAJOR"))
}

fn files(ran: &Ran) -> Vec<String> {
    let document = ran.json();
    document["wheels"].as_array().unwrap().iter().map(|wheel| wheel["file"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_wheel_is_built_for_each_version_with_the_version_in_its_name() {
    let tree = project("majors = ['13', '12']\n[tool.cuwheel.cuda.dependencies]\n12 = ['iniconfig']\n");
    let ran = build(&tree, &["--json"]).expect_code(0);
    let names = [format!("small_cu12-{TAG}"), format!("small_cu13-{TAG}")];
    assert_eq!(files(&ran), names);
    let document = ran.json();
    let imported = serde_json::json!(["small", "small._native"]);
    assert!(document["wheels"].as_array().unwrap().iter().all(|wheel| wheel["imported"] == imported), "{document}");
    let wheels = names.each_ref().map(|name| Wheel::open(&tree.root.join("dist").join(name)).unwrap());
    for (wheel, (name, requires, doc)) in wheels
        .iter()
        .zip([("small-cu12", vec!["iniconfig"], &b"for CUDA 12\0"[..]), ("small-cu13", vec![], b"for CUDA 13\0")])
    {
        assert_eq!(wheel.metadata().name(), name);
        assert_eq!(wheel.metadata().requires_dist().collect::<Vec<_>>(), requires);
        let library = wheel.read("small/_native.abi3.so").unwrap();
        assert!(library.windows(doc.len()).any(|window| window == doc), "{name}");
    }
    assert!(tree.root.join("requirements/runtime-cu12.txt").is_file());

    let again = build(&tree, &["--json", "--offline"]).expect_code(0).json();
    assert!(again["wheels"].as_array().unwrap().iter().all(|wheel| wheel["was_current"] == true), "{again}");
    assert_eq!(files(&build(&tree, &["--json", "--cuda", "12"]).expect_code(0)), names[..1]);
    let ran = build(&tree, &["--cuda", "14"]).expect_code(2);
    assert!(
        ran.stderr.contains("the project makes no wheel for CUDA 14") && ran.stderr.contains("12 and 13"),
        "{}",
        ran.stderr
    );

    // Tests are run on the newest, on the one that is asked for, or on the one that is given.
    tree.write("tests/test_it.py", "");
    let given = tree.root.join("dist").join(&names[0]);
    for (arguments, cuda, lock) in [
        (&[][..], "from build-wheel, for CUDA 13", "requirements/test.txt"),
        (&["--cuda", "12"], "from build-wheel, for CUDA 12", "requirements/test-cu12.txt"),
        (&["--wheel", given.to_str().unwrap()], "small_cu12", "requirements/test-cu12.txt"),
    ] {
        let ran = run(cuwheel(&tree.root).args(["test", "--no-rust", "--dry-run"]).args(arguments)).expect_code(0);
        assert!(ran.stdout.contains(cuda) && ran.stdout.contains(lock), "{}", ran.stdout);
    }
}

/// What `small._native` says in an environment.
fn said(python: &Path, variables: &[(&str, &Path)]) -> Ran {
    // All names are there for every thread, whichever begins the import.
    let script = "\
import importlib, threading
start, seen = threading.Barrier(16), []
def work():
    start.wait()
    seen.append(importlib.import_module('small._native').__doc__)
threads = [threading.Thread(target=work) for _ in range(16)]
for thread in threads: thread.start()
for thread in threads: thread.join()
import small._native, small._cuda_major
assert seen == [small._native.__doc__] * 16, seen
print(small._native.__doc__, small._cuda_major.MAJOR, small._native.__name__)
";
    let mut command = Command::new(python);
    command.args(["-I", "-c", script]).env_remove("SMALL_CUDA_MAJOR").envs(variables.iter().copied());
    run(&mut command)
}

#[test]
fn a_merged_wheel_takes_the_modules_for_the_cuda_that_is_there() {
    let tree =
        project("majors = ['12', '13']\nwheels = 'merged'\n[tool.cuwheel.cuda.dependencies]\n12 = ['iniconfig']\n");
    let ran = build(&tree, &["--json"]).expect_code(0);
    assert_eq!(files(&ran), [format!("small-{TAG}")]);
    let imported = serde_json::json!(["small", "small._cu12._native", "small._cu13._native"]);
    assert_eq!(ran.json()["wheels"][0]["imported"], imported);
    let path = tree.root.join("dist").join(format!("small-{TAG}"));
    let wheel = Wheel::open(&path).unwrap();
    assert_eq!(wheel.metadata().provides_extra().collect::<Vec<_>>(), ["cu12"]);
    run(cuwheel(&tree.root).args(["check-wheel", "--import"]).arg(&path)).expect_code(0);
    assert_eq!(build(&tree, &["--json"]).json()["wheels"][0]["was_current"], true);
    let ran = build(&tree, &["--cuda", "12"]).expect_code(2);
    assert!(ran.stderr.contains("one wheel for all versions of CUDA"), "{}", ran.stderr);

    let cache = cuwheel::cache::Cache::locate().unwrap();
    let environment = FreshEnvironment::create(&cache, &interpreter(), &uv()).unwrap();
    uv().install_wheel(&environment.path(), &path).unwrap();
    let python = environment.path().join("bin/python");
    let (twelve, thirteen) = ("for CUDA 12 12 small._native\n", "for CUDA 13 13 small._native\n");
    // No driver, and nothing that CUDA 12 needs: the newest.
    assert_eq!(said(&python, &[]).expect_code(0).stdout, thirteen);
    let asked = [("SMALL_CUDA_MAJOR", Path::new("12"))];
    assert_eq!(said(&python, &asked).expect_code(0).stdout, twelve);
    let ran = said(&python, &[("SMALL_CUDA_MAJOR", Path::new("11"))]).expect_code(1);
    assert!(
        ran.stderr.contains("SMALL_CUDA_MAJOR is set to '11': this wheel has modules for CUDA 12, 13"),
        "{}",
        ran.stderr
    );
    // A driver of CUDA 12 runs nothing newer.
    let driver = driver_directory();
    for (version, expected) in [("driver=12040", twelve), ("driver=13000", thirteen), ("driver=11080", twelve)] {
        let variables = [("LD_LIBRARY_PATH", driver.path()), ("CUDA_STUB", Path::new(version))];
        assert_eq!(said(&python, &variables).expect_code(0).stdout, expected, "{version}");
    }
}
