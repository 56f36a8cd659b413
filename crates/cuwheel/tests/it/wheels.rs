//! `build-wheel` on a small native project: what comes out, when nothing is done, and how failures are explained.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use cuwheel::interpreter::{Interpreter, find};
use cuwheel::proof::{Dependencies, prove_import};
use cuwheel_inspect::elf::ElfFile;
use cuwheel_inspect::testing::WheelBuilder;
use cuwheel_inspect::wheel::Wheel;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::{Ran, Tree, cuwheel, interpreter, native_project, quiet, run, uv};

fn build(tree: &Tree, arguments: &[&str]) -> Ran {
    run(cuwheel(&tree.root).arg("build-wheel").args(arguments))
}

#[test]
fn a_wheel_is_built_once_and_found_current_wherever_it_is_asked_for() {
    let tree = native_project();
    tree.write("src/shim.c", "int never_called(void) { return 0; }\n");
    let first = build(&tree, &["--json"]).expect_code(0);
    let built = &first.json()["wheels"][0];
    assert_eq!(built["file"], "small-0.1.0-cp311-abi3-manylinux_2_28_x86_64.whl");
    assert_eq!(built["imported"], serde_json::json!(["small", "small._native"]));
    assert_eq!(built["was_current"], false);
    assert!(built["compiled_crates"].as_u64().unwrap() > 0);

    // The manifest says what the wheel is.
    let path = tree.root.join("dist").join(built["file"].as_str().unwrap());
    let wheel = Wheel::open(&path).unwrap();
    let manifest: serde_json::Value =
        serde_json::from_slice(&std::fs::read(tree.root.join("dist/manifest.json")).unwrap()).unwrap();
    assert_eq!(manifest["wheels"][0]["sha256"], wheel.sha256().to_string());
    assert!(wheel.verify_record().is_empty());

    // The bills of materials name crates and C sources, and nothing of this machine.
    let bill = |name: &str| {
        let content = wheel.read(&format!("small-0.1.0.dist-info/sboms/{name}.cyclonedx.json")).unwrap();
        String::from_utf8(content).unwrap()
    };
    assert!(bill("small").contains("pkg:cargo/pyo3-ffi@"));
    let source = cuwheel::files::sha256_of_file(&tree.root.join("src/shim.c")).unwrap();
    assert!(bill("native-sources").contains(&source));
    let place = tree.root.parent().unwrap().to_str().unwrap();
    for entry in wheel.entries() {
        let content = wheel.read_entry(entry).unwrap();
        let found = content.windows(place.len()).any(|window| window == place.as_bytes());
        assert!(!found, "{} holds the path of the project", entry.path());
    }

    // Nothing changed: nothing is done.
    let second = build(&tree, &["--json", "--offline"]).expect_code(0);
    assert_eq!(second.json()["wheels"][0]["was_current"], true);

    // PK-76, PK-78: another throw-away environment is active; cargo compiles nothing. PK-85: two active ones only warn.
    let venv = tree.beside("throw-away");
    let conda = tree.beside("conda");
    for environment in [&venv, &conda] {
        uv().create_environment(&interpreter(), environment).unwrap();
    }
    let third = run(cuwheel(&tree.root)
        .args(["build-wheel", "--json", "--force", "--offline"])
        .env_remove("CUWHEEL_PYTHON")
        .env("VIRTUAL_ENV", &venv)
        .env("CONDA_PREFIX", &conda))
    .expect_code(0);
    assert_eq!(third.json()["wheels"][0]["compiled_crates"], 0);
    assert!(third.json()["warnings"][0].as_str().unwrap().starts_with("VIRTUAL_ENV and CONDA_PREFIX are both set"));
    assert_eq!(third.json()["wheels"][0]["sha256"], built["sha256"]);

    // A wheel that is no longer the one that was made, is noticed.
    std::fs::write(&path, "damaged").unwrap();
    let fourth = build(&tree, &["--json"]).expect_code(0);
    assert_eq!(fourth.json()["wheels"][0]["was_current"], false);
    assert_eq!(fourth.json()["wheels"][0]["sha256"], built["sha256"]);
}

#[test]
fn what_cargo_read_counts_wherever_it_is() {
    let tree = native_project();
    let outside = tree.beside("outside.txt");
    std::fs::write(&outside, "one").unwrap();
    let text = std::fs::read_to_string(tree.root.join("src/lib.rs")).unwrap();
    let uses = format!(
        "mod generated;\nconst OUTSIDE: &str = include_str!({outside:?});\n\
         pub fn used() {{ std::hint::black_box((OUTSIDE, generated::NUMBER)); }}"
    );
    tree.write("src/lib.rs", text.replace("pub fn used() {}", &uses))
        .write("src/generated.rs", "pub const NUMBER: u32 = 1;\n")
        .write(".gitignore", "/target\n/dist\n/src/generated.rs\n");
    tree.write("build.rs", "fn main() { println!(\"cargo:rerun-if-env-changed=OF_THE_PROJECT\"); }\n");
    let variable = std::cell::Cell::new("one");
    let is_current = || {
        let ran = run(cuwheel(&tree.root).args(["build-wheel", "--json"]).env("OF_THE_PROJECT", variable.get()));
        ran.expect_code(0).json()["wheels"][0]["was_current"].clone()
    };
    assert_eq!([is_current(), is_current()], [false, true]);
    tree.write("src/generated.rs", "pub const NUMBER: u32 = 2;\n");
    assert_eq!([is_current(), is_current()], [false, true], "a source that git ignores was changed");
    std::fs::write(&outside, "two").unwrap();
    assert_eq!([is_current(), is_current()], [false, true], "a source outside of the project was changed");
    std::os::unix::fs::symlink("/dev/null", tree.root.join("unrelated")).unwrap();
    let script = tree.root.join("python/small/tool.sh");
    std::fs::write(&script, "#!/bin/sh\n").unwrap();
    assert_eq!([is_current(), is_current()], [false, true], "a file was added");
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    assert_eq!([is_current(), is_current()], [false, true], "a file may be executed now");
    tree.write(".cargo/config.toml", "[build]\nrustflags = ['--cfg', 'one']\n");
    assert_eq!([is_current(), is_current()], [false, true], "a flag for rustc was added");
    variable.set("two");
    assert_eq!([is_current(), is_current()], [false, true], "a variable that the build script watches was changed");
}

#[test]
fn a_source_that_changes_while_it_is_compiled_leaves_no_build_that_looks_current() {
    let tree = native_project();
    tree.write("notes.txt", "before");
    tree.write("build.rs", "fn main() { std::fs::write(\"notes.txt\", std::process::id().to_string()).unwrap(); }\n");
    let first = build(&tree, &["--json"]).expect_code(0).json();
    let warnings = first["warnings"].as_array().unwrap();
    assert!(warnings.iter().any(|text| text.as_str().unwrap().starts_with("sources changed while")), "{warnings:?}");
    assert_eq!(build(&tree, &["--json"]).expect_code(0).json()["wheels"][0]["was_current"], false);
}

#[test]
fn a_library_of_another_project_is_not_taken_for_the_own_one() {
    let project = |mark: &str| {
        let tree = native_project();
        let text = std::fs::read_to_string(tree.root.join("src/lib.rs")).unwrap();
        let uses = format!("pub fn used() {{ std::hint::black_box(\"MARK-{mark}\"); }}");
        tree.write("src/lib.rs", text.replace("pub fn used() {}", &uses));
        tree
    };
    let (one, other) = (project("one"), project("other"));
    let target = one.beside("shared target");
    // Cargo holds the first project's library for fresh, though the second one's has taken its place.
    for (tree, mark) in [(&one, "MARK-one"), (&other, "MARK-other"), (&one, "MARK-one")] {
        let mut command = cuwheel(&tree.root);
        let ran =
            run(command.args(["build-wheel", "--force", "--json"]).env("CARGO_TARGET_DIR", &target)).expect_code(0);
        let wheel = Wheel::open(std::path::Path::new(ran.json()["wheels"][0]["path"].as_str().unwrap())).unwrap();
        let library = wheel.read("small/_native.abi3.so").unwrap();
        assert!(library.windows(mark.len()).any(|window| window == mark.as_bytes()), "not {mark}");
    }
}

#[test]
fn the_proof_has_the_declared_dependencies_and_no_others() {
    let tree = native_project();
    let text = std::fs::read_to_string(tree.root.join("pyproject.toml")).unwrap();
    let text = text.replace("requires-python", "dependencies = ['iniconfig']\nrequires-python");
    tree.write("pyproject.toml", format!("{text}[dependency-groups]\ntest = ['pytest']\n"))
        .write("python/small/__init__.py", "import iniconfig, pytest\nfrom . import _native\n");
    let ran = build(&tree, &[]).expect_code(1);
    assert!(ran.stderr.contains("No module named 'pytest'"), "{}", ran.stderr);
    // What a package prints at exit is no report.
    tree.write("python/small/__init__.py", "import atexit, iniconfig\natexit.register(print, 'bye')\n");
    build(&tree, &[]).expect_code(0);
}

#[test]
fn the_same_sources_give_the_same_bytes_for_every_user_and_place() {
    let make = |zone: &str, mask: &str| {
        let tree = native_project();
        let home = tree.beside("home");
        std::fs::create_dir(&home).unwrap();
        let cuwheel_command = cuwheel(&tree.root);
        let mut command = std::process::Command::new("/bin/sh");
        command
            .args(["-c", &format!("umask {mask}; exec \"$0\" build-wheel --json")])
            .arg(cuwheel_command.get_program());
        command.envs(cuwheel_command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        crate::support::scrub(&mut command);
        let real_home = std::env::var_os("HOME").unwrap();
        let keep = |variable: &str, name: &str| {
            std::env::var_os(variable).unwrap_or_else(|| std::path::Path::new(&real_home).join(name).into_os_string())
        };
        let ran = run(command
            .current_dir(&tree.root)
            .env("CARGO_HOME", keep("CARGO_HOME", ".cargo"))
            .env("RUSTUP_HOME", keep("RUSTUP_HOME", ".rustup"))
            .env("UV_CACHE_DIR", keep("UV_CACHE_DIR", ".cache/uv"))
            .env("CUWHEEL_PYTHON", &interpreter().base_executable)
            .env("HOME", &home)
            .env("TZ", zone))
        .expect_code(0);
        ran.json()["wheels"][0]["sha256"].as_str().unwrap().to_owned()
    };
    assert_eq!(make("Asia/Tokyo", "077"), make("America/Lima", "002"));
}

#[test]
fn a_version_specific_wheel_leaves_the_limited_api_out() {
    let tree = native_project();
    let text = std::fs::read_to_string(tree.root.join("pyproject.toml")).unwrap();
    tree.write("pyproject.toml", text.replace("0.1.0", "0.1.0-alpha.1")).write("src/shim.h", "");
    let base = interpreter();
    let (major, minor) = base.minor_version();
    let ran = build(&tree, &["--json", "--python", base.base_executable.to_str().unwrap()]).expect_code(0);
    let wheel = &ran.json()["wheels"][0];
    let tag = format!("cp{major}{minor}-cp{major}{minor}-manylinux_2_28_x86_64");
    assert_eq!(wheel["tags"], serde_json::json!([tag]));
    assert!(wheel["file"].as_str().unwrap().starts_with("small-0.1.0a1-"));
    let opened = Wheel::open(std::path::Path::new(wheel["path"].as_str().unwrap())).unwrap();
    let modules = opened.extension_modules();
    assert!(modules[0].path().starts_with(&format!("small/_native.cpython-{major}{minor}-")), "{}", modules[0].path());
}

/// A free-threaded interpreter of this machine, if there is one.
fn free_threaded() -> Option<Interpreter> {
    ["3.13t", "3.14t", "3.15t"].iter().find_map(|version| find(Some(&version.parse().unwrap()), &quiet()).ok())
}

#[test]
fn pk_93_a_module_that_turns_the_lock_on_again_fails_the_proof() {
    let Some(interpreter) = free_threaded() else {
        eprintln!("skipped: no free-threaded CPython on PATH or under pyenv");
        return;
    };
    let tree = Tree::new();
    let (major, minor) = interpreter.minor_version();
    let prove = |slots: &str| {
        let source = format!(
            "#include <Python.h>\nstatic PyModuleDef_Slot slots[] = {{ {slots} {{0, NULL}} }};\n\
             static PyModuleDef module = {{ PyModuleDef_HEAD_INIT, \"locked\", NULL, 0, NULL, slots }};\n\
             PyMODINIT_FUNC PyInit_locked(void) {{ return PyModuleDef_Init(&module); }}\n"
        );
        tree.write("locked.c", source);
        let library = tree.root.join("locked.so");
        let mut compiler = std::process::Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(tree.root.join("locked.c"));
        run(compiler.arg("-I").arg(&interpreter.include)).expect_code(0);
        let name = format!("locked-1.0-{}-linux_x86_64.whl", interpreter.specific_tag());
        let file = format!("locked.cpython-{major}{minor}t-x86_64-linux-gnu.so");
        let bytes = WheelBuilder::new(&name).file(&file, std::fs::read(library).unwrap()).build();
        let path = tree.beside(&name);
        std::fs::write(&path, &bytes).unwrap();
        let wheel = Wheel::from_bytes(&name, bytes).unwrap();
        let (cache, uv) = (cuwheel::cache::Cache::locate().unwrap(), uv());
        prove_import(&path, &wheel, &["locked".to_owned()], (&cache, &interpreter, &uv), Dependencies::None, &quiet())
    };
    let error = cuwheel::error::render(&prove("").unwrap_err());
    assert!(error.contains("does not import: locked") && error.contains("has been enabled to load module"), "{error}");
    prove("{Py_mod_gil, Py_MOD_GIL_NOT_USED},").unwrap();
}

#[test]
fn pk_10_a_symbol_that_is_too_new_is_named_with_its_version_and_the_crate_that_uses_it() {
    let tree = native_project();
    let text = std::fs::read_to_string(tree.root.join("src/lib.rs")).unwrap();
    let uses = "unsafe extern \"C\" { fn getdents64(fd: i32, buffer: *mut u8, size: usize) -> isize; }\n\
                pub fn used() { std::hint::black_box(unsafe { getdents64(-1, std::ptr::null_mut(), 0) }); }\n";
    tree.write("src/lib.rs", text.replace("pub fn used() {}", "use other::used;"));
    tree.write("other/Cargo.toml", "[package]\nname = 'other'\nversion = '0.1.0'\nedition = '2024'\n")
        .write("other/src/lib.rs", uses);
    let manifest = std::fs::read_to_string(tree.root.join("Cargo.toml")).unwrap();
    tree.write("Cargo.toml", manifest.replace("[workspace]", "other = { path = 'other' }\n[workspace]"));
    let newer = |compatibility: &str, linker: &str| {
        let text = std::fs::read_to_string(tree.root.join("pyproject.toml")).unwrap();
        let text = text.replace("linker = 'system'\n", "");
        tree.write("pyproject.toml", if linker == "system" { format!("{text}linker = 'system'\n") } else { text });
        build(&tree, &["--compatibility", compatibility])
    };
    // zig does not find the symbol at all; the machine's own linker finds it, and the inspection does.
    for (linker, newest) in [("zig", "manylinux_2_30"), ("system", "manylinux_2_34")] {
        let ran = newer("manylinux_2_17", linker).expect_code(1);
        assert!(
            ran.stderr.contains("newer than glibc 2.17, which manylinux_2_17 promises"),
            "{linker}: {}",
            ran.stderr
        );
        assert!(
            ran.stderr.contains("getdents64 of glibc 2.30, pulled in by crate other (libother-"),
            "{linker}: {}",
            ran.stderr
        );
        assert!(ran.stderr.contains(&format!("--compatibility {newest}")), "{linker}: {}", ran.stderr);
    }
    newer("manylinux_2_30", "zig").expect_code(0);
}

#[test]
fn pk_50_a_source_that_the_sdist_lacks_is_found_by_building_from_it() {
    let tree = native_project();
    let manifest = std::fs::read_to_string(tree.root.join("Cargo.toml")).unwrap();
    tree.write("Cargo.toml", manifest.replace("[lib]", "exclude = ['data.txt']\n[lib]"));
    let text = std::fs::read_to_string(tree.root.join("src/lib.rs")).unwrap();
    tree.write(
        "src/lib.rs",
        text.replace("pub fn used() {}", "pub fn used() { std::hint::black_box(include_str!(\"../data.txt\")); }"),
    );
    tree.write("data.txt", "kernels");
    let ran = build(&tree, &["--sdist"]).expect_code(1);
    assert!(ran.stderr.contains("couldn't read") && ran.stderr.contains("data.txt"), "{}", ran.stderr);
    assert!(!tree.root.join("dist/small-0.1.0.tar.gz").exists());
}

/// PK-60, and with it every rule: a wheel that breaks one does not reach `dist`.
#[test]
fn pk_60_a_built_wheel_that_breaks_a_rule_of_check_wheel_is_refused() {
    let tree = native_project();
    let text = std::fs::read_to_string(tree.root.join("pyproject.toml")).unwrap();
    tree.write("pyproject.toml", format!("{text}check.budget = '1 kB'\n"));
    let ran = build(&tree, &[]).expect_code(1);
    assert!(ran.stderr.contains("error: check-wheel finds 1 error in small-0.1.0-cp311-abi3-"), "{}", ran.stderr);
    assert!(ran.stderr.contains("size/budget") && ran.stderr.contains("sections: .text ("), "{}", ran.stderr);
    assert!(!tree.root.join("dist").exists(), "nothing that is refused is left");
    tree.write("pyproject.toml", format!("{text}check.budget = '1 kB'\ncheck.allow = ['size/']\n"));
    build(&tree, &[]).expect_code(0);
}

#[test]
fn pk_04_paths_of_the_build_machine_are_taken_out_of_the_library() {
    let tree = native_project();
    let script = "fn main() { println!(\"cargo::rustc-cdylib-link-arg=-Wl,-rpath,/opt/secret/lib:$ORIGIN/lib\"); }\n";
    tree.write("build.rs", script);
    let built = build(&tree, &["--json", "--sdist"]).expect_code(0).json();
    assert_eq!(built["sdist"]["rebuilds_identically"], true);
    let wheel = Wheel::open(Path::new(built["wheels"][0]["path"].as_str().unwrap())).unwrap();
    let library = wheel.read("small/_native.abi3.so").unwrap();
    assert_eq!(ElfFile::parse(&library).unwrap().runpath(), Some("$ORIGIN/lib"));
    assert!(!library.windows(11).any(|window| window == b"/opt/secret"));
}

#[test]
fn only_libraries_that_the_settings_name_are_taken_into_the_wheel() {
    let tree = native_project();
    tree.write("answer.c", "int answer(void) { return 42; }\n");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-Wl,-soname,libanswer.so.1", "-o", "libanswer.so", "answer.c"]);
    run(compiler.current_dir(&tree.root)).expect_code(0);
    std::fs::create_dir(tree.root.join("libraries")).unwrap();
    std::fs::rename(tree.root.join("libanswer.so"), tree.root.join("libraries/libanswer.so.1")).unwrap();
    let text = std::fs::read_to_string(tree.root.join("src/lib.rs")).unwrap();
    let uses =
        "unsafe extern \"C\" { fn answer() -> i32; }\npub fn used() { std::hint::black_box(unsafe { answer() }); }";
    tree.write("src/lib.rs", text.replace("pub fn used() {}", uses));
    let library = tree.root.join("libraries/libanswer.so.1");
    tree.write(
        "build.rs",
        format!(
            "fn main() {{ println!(\"cargo::rustc-cdylib-link-arg={{}}\", {:?}); }}\n",
            library.display().to_string()
        ),
    );
    let failed = build(&tree, &[]).expect_code(1);
    assert!(failed.stderr.contains("libanswer.so.1: cannot open shared object file"), "{}", failed.stderr);

    let project = std::fs::read_to_string(tree.root.join("pyproject.toml")).unwrap();
    let settings = "repair.graft = ['libanswer.so.*']\nrepair.library-paths = ['libraries']\n";
    tree.write("pyproject.toml", project + settings);
    let built = build(&tree, &["--json"]).expect_code(0).json();
    let wheel = Wheel::open(Path::new(built["wheels"][0]["path"].as_str().unwrap())).unwrap();
    assert!(wheel.entries().iter().any(|entry| entry.path().starts_with("small.libs/libanswer-")));
}

#[test]
fn pk_53_a_generated_file_that_git_ignores_is_missed_when_it_is_declared() {
    let tree = native_project();
    let text = std::fs::read_to_string(tree.root.join("pyproject.toml")).unwrap();
    tree.write("pyproject.toml", format!("{text}artifacts = ['small/*.ptx']\n"))
        .write(".gitignore", "/target\n/dist\n*.ptx\n")
        .write("python/small/kernel.ptx", "// generated");
    let ran = build(&tree, &["--sdist"]).expect_code(1);
    assert!(ran.stderr.contains("lacks declared artifacts\n  no file matches small/*.ptx"), "{}", ran.stderr);
    let include = "include = [{ path = 'python/small/*.ptx', format = ['sdist', 'wheel'] }]\n";
    let text = std::fs::read_to_string(tree.root.join("pyproject.toml")).unwrap();
    tree.write("pyproject.toml", text.replace("[tool.cuwheel]", &format!("{include}[tool.cuwheel]")));
    build(&tree, &["--sdist"]).expect_code(0);
}

#[test]
fn pk_53_a_file_that_only_the_sdist_holds_is_found_by_building_from_it() {
    let tree = native_project();
    let text = std::fs::read_to_string(tree.root.join("pyproject.toml")).unwrap();
    let include = "include = [{ path = 'python/small/*.ptx', format = 'sdist' }]\n";
    tree.write("pyproject.toml", text.replace("[tool.cuwheel]", &format!("{include}[tool.cuwheel]")))
        .write(".gitignore", "/target\n/dist\n*.ptx\n")
        .write("python/small/kernel.ptx", "// generated");
    let ran = build(&tree, &["--sdist"]).expect_code(1);
    assert!(ran.stderr.contains("extra: small/kernel.ptx"), "{}", ran.stderr);
}

#[test]
fn an_sdist_that_swallowed_earlier_wheels_is_refused() {
    let tree = native_project();
    tree.write(".gitignore", "/target\n");
    let ran = build(&tree, &["--sdist"]).expect_code(1);
    assert!(
        ran.stderr.contains("error: the sdist holds results of earlier builds\n  dist/small-0.1.0-"),
        "{}",
        ran.stderr
    );
}

#[test]
fn pk_54_a_module_that_is_declared_and_absent_fails_the_proof() {
    let tree = native_project();
    let text = std::fs::read_to_string(tree.root.join("pyproject.toml")).unwrap();
    tree.write("pyproject.toml", format!("{text}modules = ['small.absent']\n"));
    let ran = build(&tree, &[]).expect_code(1);
    assert!(ran.stderr.contains("does not import: small.absent"), "{}", ran.stderr);
    assert!(ran.stderr.contains("ModuleNotFoundError: No module named 'small.absent'"), "{}", ran.stderr);
    assert!(!tree.root.join("dist").exists(), "what is not proven is not delivered");
}

#[test]
fn a_compiler_s_first_error_is_shown_and_the_rest_is_kept() {
    let tree = native_project();
    tree.write("src/lib.rs", "fn broken( {}\n");
    let ran = build(&tree, &[]).expect_code(1);
    assert!(
        ran.stderr.contains("error: the compilation failed\n  error: this file contains an unclosed delimiter"),
        "{}",
        ran.stderr
    );
    let log = tree.root.join("target/cuwheel/build-wheel.log");
    assert!(ran.stderr.contains(&format!("fix: the whole output is in {}", log.display())), "{}", ran.stderr);
    assert!(log.is_file());
    assert_eq!(ran.stdout, "", "PK-87: stdout is for results");
}

#[test]
fn ctrl_c_stops_the_compiler_and_leaves_nothing_half_written() {
    let tree = native_project();
    run(cuwheel(&tree.root).arg("lock")).expect_code(0);
    tree.write("build.rs", "fn main() { std::fs::write(\"started\", \"\").unwrap(); std::thread::sleep(std::time::Duration::from_secs(300)); }\n");
    let child = cuwheel(&tree.root).arg("build-wheel").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let since = Instant::now();
    while !tree.root.join("started").exists() {
        assert!(since.elapsed() < Duration::from_mins(5), "the build script was not reached");
        std::thread::sleep(Duration::from_millis(20));
    }
    kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGINT).unwrap();
    let ran = Ran::of(&child.wait_with_output().unwrap()).expect_code(130);
    assert!(ran.stderr.ends_with("error: interrupted; nothing was left half-written\n"), "{}", ran.stderr);
    assert!(!tree.root.join("dist").exists());
    let left: Vec<_> = std::fs::read_dir(tree.root.join("target/cuwheel"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .filter(|name| name != "lock")
        .collect();
    assert!(left.is_empty(), "{left:?}");
    let target = tree.root.join("target");
    let running = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
        let command_line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8(command_line).ok().filter(|command_line| command_line.contains(target.to_str().unwrap()))
    });
    assert_eq!(running.collect::<Vec<_>>(), [""; 0], "the compiler is still running");
}
