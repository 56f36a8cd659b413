//! Build environments and locks: made once, found again, and never half-made.

use std::os::unix::fs::symlink;
use std::process::Stdio;
use std::time::Duration;

use cuwheel::cache::Cache;
use cuwheel::commands::build_wheel::build_lock;
use cuwheel::environment::BuildEnvironment;
use cuwheel::interpreter::Interpreter;
use cuwheel::lock_file::FileLock;
use cuwheel::project::Project;
use cuwheel::requirements::Lock;

use crate::support::{PureProject, Tree, cuwheel, interpreter, native_project, quiet, run, uv};

/// A project with a lock of its build, and a cache of its own.
fn locked_project() -> (PureProject, Project, Lock, Cache) {
    let project = PureProject::new();
    let opened = Project::open(&project.tree.root).unwrap();
    let lock = Lock::of_build(&opened);
    lock.update(&uv(), false, &quiet()).unwrap();
    let cache = Cache::at(&project.tree.beside("cache"));
    (project, opened, lock, cache)
}

fn is_clean(cache: &Cache) -> bool {
    std::fs::read_dir(cache.directory("scratch").unwrap()).unwrap().next().is_none()
}

#[test]
fn two_builds_at_once_make_one_environment() {
    let (_project, _, lock, cache) = locked_project();
    let interpreter = interpreter();
    let provision = || {
        let environment = BuildEnvironment::locate(&cache, &interpreter, &lock).unwrap();
        environment.provision(&cache, &interpreter, &lock, &|| Ok(uv()), &quiet()).unwrap();
        std::fs::metadata(environment.directory()).unwrap().created().unwrap()
    };
    let created: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(provision)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(created.iter().all(|time| *time == created[0]));
    assert!(is_clean(&cache));
}

#[test]
fn a_damaged_environment_is_made_again() {
    let (_project, _, lock, cache) = locked_project();
    let interpreter = interpreter();
    let environment = BuildEnvironment::locate(&cache, &interpreter, &lock).unwrap();
    let provision = || environment.provision(&cache, &interpreter, &lock, &|| Ok(uv()), &quiet()).unwrap();
    provision();
    std::fs::remove_file(environment.python()).unwrap();
    assert!(!environment.is_ready());
    provision();
    assert!(environment.is_ready());
}

#[test]
fn pk_82_a_killed_build_leaves_nothing_that_looks_finished() {
    let tree = native_project();
    let cache = tree.beside("cache");
    run(cuwheel(&tree.root).arg("lock")).expect_code(0);
    let build = || {
        let mut command = cuwheel(&tree.root);
        command.args(["build-wheel", "--json"]).env("CUWHEEL_CACHE_DIR", &cache);
        command
    };
    let mut killed = build().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let scratch = cache.join("scratch");
    while !scratch.is_dir() || std::fs::read_dir(&scratch).unwrap().next().is_none() {
        assert!(killed.try_wait().unwrap().is_none(), "the build ended before it could be killed");
        std::thread::sleep(Duration::from_millis(2));
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    let finished = |name: &str| {
        std::fs::read_dir(cache.join(name)).into_iter().flatten().flatten().any(|entry| entry.path().is_dir())
    };
    assert!(!finished("environments"));
    // A child that was about to become another program holds the killed one's locks until it is that.
    let locks = || std::fs::read_dir(&scratch).unwrap().map(|entry| entry.unwrap().path());
    let is_lock = |path: &std::path::PathBuf| path.extension().is_some_and(|extension| extension == "lock");
    while locks().filter(is_lock).any(|lock| FileLock::try_acquire(&lock).unwrap().is_none()) {
        std::thread::sleep(Duration::from_millis(2));
    }

    let ran = run(&mut build()).expect_code(0);
    assert_eq!(ran.json()["warnings"], serde_json::json!([]));
    assert!(is_clean(&Cache::at(&cache)), "what the killed build left is removed");
}

#[test]
fn pk_82_a_live_holder_of_the_build_is_named_with_its_pid() {
    let project = PureProject::new();
    let opened = Project::open(&project.tree.root).unwrap();
    let lock = build_lock(&Cache::locate().unwrap(), &opened).unwrap();
    let held = FileLock::acquire(&lock, "build-wheel", &quiet()).unwrap();
    let mut command = cuwheel(&project.tree.root);
    let child = command.arg("build-wheel").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    drop(held);
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    let expected =
        format!("warning: waiting for process {} (build-wheel), which holds {}", std::process::id(), lock.display());
    assert!(stderr.contains(&expected), "{stderr}");
}

#[test]
fn pk_41_and_pk_86_an_environment_belongs_to_the_base_interpreter() {
    let (project, _, lock, cache) = locked_project();
    let base = interpreter();
    let key = |interpreter: &Interpreter| BuildEnvironment::locate(&cache, interpreter, &lock).unwrap().key;
    let venv = project.tree.beside("venv");
    let link = project.tree.beside("link to venv");
    symlink(&venv, &link).unwrap();
    for _ in 0..2 {
        uv().create_environment(&base, &venv).unwrap();
        let of_venv = Interpreter::probe(&venv.join("bin/python")).unwrap();
        let of_link = Interpreter::probe(&link.join("bin/python")).unwrap();
        assert_eq!((key(&of_venv), key(&of_link)), (key(&base), key(&base)));
        std::fs::remove_dir_all(&venv).unwrap();
    }
    let other_abi = Interpreter { abi: "cpython-399-x86_64-linux-gnu".into(), ..base.clone() };
    assert_ne!(key(&other_abi), key(&base));
}

#[test]
fn the_environment_survives_a_move_of_the_project() {
    let (project, _, lock, cache) = locked_project();
    let before = BuildEnvironment::locate(&cache, &interpreter(), &lock).unwrap().key;
    let moved = project.tree.beside("moved");
    std::fs::rename(&project.tree.root, &moved).unwrap();
    let lock = Lock::of_build(&Project::open(&moved).unwrap());
    assert_eq!(BuildEnvironment::locate(&cache, &interpreter(), &lock).unwrap().key, before);
}

#[test]
fn a_lock_that_does_not_fit_is_refused_when_it_may_not_change() {
    let tree = Tree::new();
    tree.write("src/lib.rs", "");
    tree.write("pyproject.toml", "[build-system]\nrequires = ['maturin', 'ziglang']\nbuild-backend = 'maturin'\n[project]\nname = 'p'\nversion = '1'\n")
        .write("Cargo.toml", "[package]\nname = 'p'\n");
    for flag in ["--locked", "--offline"] {
        let ran = run(cuwheel(&tree.root).args(["build-wheel", flag])).expect_code(2);
        let expected = format!(
            "error: the lock {} does not exist\nfix: run `lock` once with network access and commit the file\n",
            tree.root.join("requirements/build.txt").display()
        );
        assert_eq!(ran.stderr, expected);
    }
    run(cuwheel(&tree.root).arg("lock")).expect_code(0);
    run(cuwheel(&tree.root).args(["lock", "--check"])).expect_code(0);
    let text = std::fs::read_to_string(tree.root.join("pyproject.toml")).unwrap();
    tree.write("pyproject.toml", text.replace("'ziglang'", "'ziglang', 'numpy'"));
    let ran = run(cuwheel(&tree.root).args(["lock", "--check"])).expect_code(1);
    assert!(ran.stderr.contains("requirements/build.txt"), "{}", ran.stderr);
}

#[test]
fn no_network_is_used_when_it_is_forbidden() {
    let (project, ..) = locked_project();
    let text = std::fs::read_to_string(project.tree.root.join("pyproject.toml")).unwrap();
    project.write("pyproject.toml", &format!("{text}[tool.cuwheel]\nlinker = 'system'\n"));
    let ran = run(cuwheel(&project.tree.root)
        .args(["build-wheel", "--offline"])
        .env("CUWHEEL_CACHE_DIR", project.tree.beside("empty cache"))
        .env("UV_CACHE_DIR", project.tree.beside("empty uv cache")))
    .expect_code(3);
    assert!(ran.stderr.contains("run the command once without --offline"), "{}", ran.stderr);
}
