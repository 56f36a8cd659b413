//! What concerns a whole process: its end, its children, its variable, and the loader. Each program is this executable again.

use std::process::{Command, Output};
use std::sync::OnceLock;

use cuda::control::{Stub, copy_without};

/// Where a program finds its name, and the library that it is to load if not the usual one.
const PROGRAM: &str = "CUDA_STUB_TEST_PROGRAM";
const LIBRARY: &str = "CUDA_STUB_TEST_LIBRARY";

/// `cuDeviceGetCount`, for the exit handler of a program.
static LATE: OnceLock<extern "C" fn(*mut i32) -> u32> = OnceLock::new();

extern "C" fn late() {
    if let Some(count) = LATE.get() {
        let mut number = 0;
        eprintln!("cuda-stub gives {} at the end", count(&raw mut number));
    }
}

fn run(program: &str, settings: &str, library: Option<&std::path::Path>) -> (Option<i32>, String) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "process::program", "--ignored", "--nocapture", "--test-threads=1"]);
    command.env(PROGRAM, program).env("CUDA_STUB", settings);
    if let Some(library) = library {
        command.env(LIBRARY, library);
    }
    let Output { status, stderr, .. } = command.output().unwrap();
    let lines = String::from_utf8(stderr).unwrap();
    (status.code(), lines.lines().filter(|line| line.contains("cuda-stub")).collect::<Vec<_>>().join("\n"))
}

#[test]
#[ignore = "a program for the other tests"]
fn program() {
    let Ok(program) = std::env::var(PROGRAM) else { return };
    let stub = std::env::var_os(LIBRARY).map_or_else(Stub::load, |path| Stub::load_from(path.as_ref())).unwrap();
    // SAFETY: the types are those of cuda.h, and each pointer is good for its call.
    unsafe {
        let initialise: extern "C" fn(u32) -> u32 = stub.function(b"cuInit\0");
        let count: extern "C" fn(*mut i32) -> u32 = stub.function(b"cuDeviceGetCount\0");
        let context: extern "C" fn(*mut u64, u32, i32) -> u32 = stub.function(b"cuCtxCreate_v2\0");
        let allocate: extern "C" fn(*mut u64, usize) -> u32 = stub.function(b"cuMemAlloc_v2\0");
        if program == "late" {
            LATE.set(count).unwrap();
            // Before the first call, so that it runs after the driver's own handler.
            libc::atexit(late);
        }
        let code = initialise(0);
        let (mut handle, mut number) = (0_u64, 0_i32);
        match program.as_str() {
            "count" => eprintln!("cuda-stub gives {code} and {} with {number} devices", count(&raw mut number)),
            "leak" => {
                context(&raw mut handle, 0, 0);
                allocate(&raw mut handle, 24);
            }
            "touch" => {
                context(&raw mut handle, 0, 0);
                allocate(&raw mut handle, 24);
                std::ptr::with_exposed_provenance::<u8>(usize::try_from(handle).unwrap()).read_volatile();
            }
            "late" => {}
            "fork" => {
                let child = libc::fork();
                if child == 0 {
                    let codes = [count(&raw mut number), count(&raw mut number)];
                    libc::_exit(codes[0].cast_signed() * 10 + codes[1].cast_signed());
                }
                let mut status = 0;
                libc::waitpid(child, &raw mut status, 0);
                eprintln!("cuda-stub's child ends with {}", libc::WEXITSTATUS(status));
            }
            "symbols" => {
                let present = |symbol: &std::ffi::CStr| {
                    let library = libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_NOW);
                    assert!(!library.is_null(), "the loader takes what was loaded for libcuda.so.1");
                    !libc::dlsym(library, symbol.as_ptr()).is_null()
                };
                let symbols = [c"cuMemAllocAsync", c"cuMemAllocAsync_ptsz", c"cuMemFreeAsync"].map(present);
                eprintln!("cuda-stub has {symbols:?}");
            }
            other => panic!("no program {other}"),
        }
    }
}

#[test]
fn leaks_are_reported_or_fail_the_process() {
    let leak = "cuda-stub: leak: 24 bytes of device memory at ";
    for (mode, status) in [("nothing", 0), ("report", 0), ("fail", 97)] {
        let (code, text) = run("leak", &format!("at_exit={mode}"), None);
        assert_eq!(code, Some(status), "{text}");
        assert_eq!(text.starts_with(leak) && text.ends_with(" from cuMemAlloc (call 3)"), mode != "nothing", "{text}");
    }
    assert_eq!(run("count", "at_exit=fail", None).0, Some(0));
}

#[test]
fn the_host_cannot_touch_device_memory() {
    assert_eq!(run("touch", "", None).0, None, "ended by a signal");
}

#[test]
fn settings_come_from_the_variable() {
    let count = |settings: &str| run("count", settings, None).1;
    assert_eq!(count("devices=3"), "cuda-stub gives 0 and 0 with 3 devices");
    assert_eq!(count("no_device"), "cuda-stub gives 100 and 3 with 0 devices");
    assert_eq!(
        count("devices=lots"),
        "cuda-stub: `devices=lots` needs a whole number after `=`\n\
         cuda-stub: `devices=lots` needs a whole number after `=`\n\
         cuda-stub gives 3 and 3 with 0 devices"
    );
}

#[test]
fn the_loader_gives_what_was_loaded_for_either_name() {
    Stub::load().unwrap();
    // SAFETY: the stand-in runs no code when it is loaded.
    let [by_soname, by_file_name] =
        [c"libcuda.so.1", c"libcuda.so"].map(|name| unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) });
    assert!(!by_soname.is_null());
    // Outside cargo nobody may know the directory.
    assert!(by_file_name.is_null() || by_file_name == by_soname);
}

#[test]
fn calls_are_logged() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    run("count", &format!("log={}", log.display()), None);
    assert_eq!(
        std::fs::read_to_string(log).unwrap(),
        "1 thread 1 cuInit: CUDA_SUCCESS\n2 thread 1 cuDeviceGetCount: CUDA_SUCCESS\n"
    );
}

#[test]
fn a_forked_child_is_told_once() {
    assert_eq!(
        run("fork", "", None).1,
        "cuda-stub: cuDeviceGetCount is called in a process that was forked after the driver was used, where no driver \
         works; start the process anew (spawn) instead\n\
         cuda-stub's child ends with 33"
    );
}

#[test]
fn after_the_end_there_is_no_driver() {
    assert_eq!(run("late", "", None).1, "cuda-stub gives 4 at the end");
}

#[test]
fn a_copy_can_lack_symbols() {
    let directory = tempfile::tempdir().unwrap();
    let copy = copy_without(&["cuMemAllocAsync"], directory.path()).unwrap();
    assert_eq!(run("symbols", "", Some(&copy)).1, "cuda-stub has [false, false, true]");
    assert_eq!(run("symbols", "", None).1, "cuda-stub has [true, true, true]");
    let message = copy_without(&["cuMemAlloc", "cuMemAlok"], directory.path()).unwrap_err().to_string();
    assert_eq!(message, "the stand-in has no function cuMemAlok that a copy could lack");
}
