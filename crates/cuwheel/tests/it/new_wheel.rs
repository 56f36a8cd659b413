//! From `cuwheel new` to a wheel that launches kernels: with the real CUDA compiler, and on the stand-in driver.
//!
//! What is compiled is kept in cargo's folder for tests, so that only the first run takes long.

use std::path::{Path, PathBuf};
use std::process::Command;

use cuwheel::environment::FreshEnvironment;

use crate::support::{cuwheel, driver_directory, interpreter, python_of, run, uv};

/// An awkward name, in a directory with an awkward path.
const NAME: &str = "My.Ext-2";

fn place() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("new prøjects")
}

/// A command in the project.
fn command(root: &Path, arguments: &[&str]) -> Command {
    let mut command = cuwheel(root);
    command.args(arguments).env("CARGO_TARGET_DIR", place().join("target"));
    // Cargo puts the folder of the stand-in driver there, and the project's tests are to find none.
    command.env_remove("LD_LIBRARY_PATH");
    command
}

fn new_project() -> PathBuf {
    let root = place().join(NAME);
    let _ = std::fs::remove_dir_all(&root);
    std::fs::create_dir_all(&root).unwrap();
    // One of its own, since cargo's folder is ignored by the repository's.
    run(Command::new("git").args(["init", "--quiet"]).current_dir(&root)).expect_code(0);
    run(&mut command(&root, &["new", NAME, "--path", "."])).expect_code(0);
    root
}

#[test]
fn a_new_project_builds_tests_and_launches_its_kernels() {
    let root = new_project();
    let built = run(&mut command(&root, &["build-wheel", "--json"])).expect_code(0).json();
    let wheel = &built["wheels"][0];
    assert_eq!(wheel["file"], "my_ext_2-0.1.0-cp311-abi3-manylinux_2_28_x86_64.whl");
    assert_eq!(wheel["imported"], serde_json::json!(["my_ext_2", "my_ext_2._native"]));

    let tested = run(&mut command(&root, &["test", "--json"])).expect_code(0).json();
    for (tests, at_least) in [("rust", 2), ("default", 20)] {
        let ran = tested["runs"].as_array().unwrap().iter().find(|ran| ran["name"] == tests).unwrap();
        assert!(ran["counts"]["passed"].as_u64().unwrap() >= at_least && ran["counts"]["skipped"] == 0, "{ran}");
    }
    assert_eq!(tested["wheel"]["sha256"], wheel["sha256"], "the tests are of the wheel that was built");

    let path = Path::new(wheel["path"].as_str().unwrap());
    let checked = run(&mut command(&root, &["check-wheel", "--json", path.to_str().unwrap()])).expect_code(0).json();
    assert_eq!(checked["wheels"][0]["findings"], serde_json::json!([]), "{checked}");
    let again = run(&mut command(&root, &["build-wheel", "--json", "--locked"])).expect_code(0).json();
    assert_eq!(again["wheels"][0]["was_current"], true, "{again}");
    launches_on_the_stand_in_driver(path);
    the_xtask_is_a_part_of_the_workspace(&root);
}

/// Arrays of no library, in the memory of the stand-in driver.
const LAUNCHES: &str = r#"
import ctypes, json
import my_ext_2

cuda = ctypes.CDLL("libcuda.so.1")
cuda.cudaStubReport.restype = ctypes.c_char_p
context = ctypes.c_void_p()
assert cuda.cuInit(0) == 0
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
streams = [ctypes.c_void_p(), ctypes.c_void_p()]
assert all(cuda.cuStreamCreate(ctypes.byref(stream), 1) == 0 for stream in streams)


class Array:
    def __init__(self, *shape, typestr="<f4", read_only=False, strides=None, stream=None):
        address = ctypes.c_uint64()
        assert cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(1 << 16)) == 0
        data = (address.value, read_only)
        self.__cuda_array_interface__ = dict(
            shape=shape, typestr=typestr, data=data, version=3, strides=strides, stream=stream and stream.value
        )


def report():
    return json.loads(cuda.cudaStubReport())


def launches():
    return [(one["function"], one["grid"], one["block"], one["shared_bytes"]) for one in report()["launches"]]


x, y, out = Array(1000), Array(1000, read_only=True), Array(1000)
my_ext_2.saxpy(2.5, x, y, out)
my_ext_2.sum(Array(70, 33), Array(70))
my_ext_2.sum(x, Array())
expected = [("saxpy", [4, 1, 1], [256, 1, 1], 0), ("sum_rows", [70, 1, 1], [256, 1, 1], 2048)]
expected.append(("sum_rows", [1, 1, 1], [256, 1, 1], 2048))
assert launches() == expected, launches()
# Nothing is launched for nothing, and arrays without elements are checked all the same.
empty = Array(0)
my_ext_2.saxpy(1.0, empty, empty, empty)
my_ext_2.sum(Array(0, 5), empty)
assert launches() == expected
# Arrays whose producers work on two streams are ordered by events.
my_ext_2.saxpy(1.0, Array(8, stream=streams[0]), Array(8, stream=streams[1]), Array(8, stream=streams[0]))
assert report()["calls"]["cuEventRecord"] > 0 and len(launches()) == 4

for error, message, call in [
    (ValueError, "shapes", lambda: my_ext_2.saxpy(1.0, x, y, Array(999))),
    (ValueError, "out is read-only", lambda: my_ext_2.saxpy(1.0, x, x, y)),
    (TypeError, "(out)", lambda: my_ext_2.saxpy(1.0, x, x, Array(1000, typestr="<f8"))),
    (TypeError, "(x)", lambda: my_ext_2.saxpy(1.0, Array(0, typestr="<f8"), empty, empty)),
    (ValueError, "y is not contiguous", lambda: my_ext_2.saxpy(1.0, x, Array(1000, strides=(8,)), out)),
    (ValueError, "no dimension", lambda: my_ext_2.sum(Array(), Array())),
    (ValueError, "shapes", lambda: my_ext_2.sum(x, out)),
]:
    try:
        call()
    except error as raised:
        assert message in str(raised), raised
    else:
        raise AssertionError(message)
assert len(launches()) == 4
assert not report()["violations"], report()["violations"]
"#;

fn launches_on_the_stand_in_driver(wheel: &Path) {
    let (uv, driver) = (uv(), driver_directory());
    let environment = FreshEnvironment::create(&cuwheel::cache::Cache::locate().unwrap(), &interpreter(), &uv).unwrap();
    uv.install_wheel(&environment.path(), wheel).unwrap();
    let mut python = python_of(&environment.path());
    python.args(["-c", LAUNCHES]).env("LD_LIBRARY_PATH", driver.path()).env("CUDA_STUB", "");
    run(python.env_remove("CUDA_VISIBLE_DEVICES")).expect_code(0);
}

/// Compiling it would take a minute; its one line is the one that this repository's own xtask has.
fn the_xtask_is_a_part_of_the_workspace(root: &Path) {
    let mut cargo = Command::new("cargo");
    cargo.args(["metadata", "--locked", "--offline", "--format-version", "1"]).current_dir(root);
    let metadata = run(&mut cargo).expect_code(0).json();
    let packages = metadata["packages"].as_array().unwrap();
    let xtask = packages.iter().find(|package| package["name"] == "xtask").unwrap();
    assert_eq!(xtask["dependencies"][0]["name"], "cuwheel");
    let alias = std::fs::read_to_string(root.join(".cargo/config.toml")).unwrap();
    assert!(alias.contains("xtask = \"run --package xtask --\""), "{alias}");
}
