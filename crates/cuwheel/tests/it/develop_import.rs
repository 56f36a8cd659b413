//! `develop --rebuild-on-import`: builds again when the sources changed, and is in nobody's way otherwise.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::support::{EditableProject, is_built_with, run, site_packages, uv};

const IMPORT: &str = "import small; print(small._native.__file__)";

/// With the hook installed.
fn hooked() -> EditableProject {
    let project = EditableProject::new();
    project.develop(&["--rebuild-on-import"]).expect_code(0);
    project
}

/// Imports in a process of its own, and gives what that says on stderr.
#[track_caller]
fn import(project: &EditableProject) -> String {
    let ran = run(&mut importing(project)).expect_code(0);
    assert_eq!(ran.stdout.trim_end(), project.library().to_str().unwrap());
    ran.stderr
}

fn importing(project: &EditableProject) -> std::process::Command {
    let mut python = project.python();
    // The tool builds into the directory that the tests share.
    let develop = project.command("develop", &[]);
    python.envs(develop.get_envs().filter_map(|(name, value)| Some((name, value?))));
    python.args(["-c", IMPORT]);
    python
}

/// The lines that say that something is built.
fn builds(stderr: &str) -> usize {
    stderr.lines().filter(|line| line.starts_with("building small again: src/lib.rs changed")).count()
}

/// The clocks of file systems tick: what is young is looked at by the tool.
fn wait_until_trusted(project: &EditableProject) {
    std::thread::sleep(Duration::from_millis(2100));
    import(project);
}

/// Where the hook finds what it compares.
fn state(project: &EditableProject) -> PathBuf {
    let hook = site_packages(&project.path(".venv")).join("_cuwheel_rebuild_small.py");
    let text = std::fs::read_to_string(hook).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("STATE = ")).unwrap();
    serde_json::from_str(line).unwrap()
}

#[test]
fn the_first_import_after_a_change_builds_and_the_next_does_not() {
    let project = hooked();
    project.change_source("on import");
    assert_eq!(builds(&import(&project)), 1);
    assert!(is_built_with(&project.library(), "on import"));
    assert_eq!(import(&project), "");
    // The same content at another time.
    let source = std::fs::read(project.path("src/lib.rs")).unwrap();
    project.tree.write("src/lib.rs", source);
    assert_eq!(import(&project), "");
    // A process that a process starts is one like any other.
    project.change_source("of a child");
    let code = format!("import subprocess, sys; subprocess.run([sys.executable, '-c', {IMPORT:?}], check=True)");
    let mut parent = importing(&project);
    let ran = run(parent.args(["-c", &code])).expect_code(0);
    assert_eq!(builds(&ran.stderr), 1, "{}", ran.stderr);
}

#[test]
fn an_import_starts_no_process_when_nothing_changed() {
    let project = EditableProject::new();
    project.tree.write("src/shim.c", "");
    project.develop(&["--rebuild-on-import"]).expect_code(0);
    wait_until_trusted(&project);
    let path = state(&project);
    let text = std::fs::read_to_string(&path).unwrap();
    let (command, rest) = text.split_once('\n').unwrap();
    assert!(command.contains("--on-import"));
    assert!(!rest.contains("too young"), "{rest}");
    // If it did, it would say that the tool is not there.
    std::fs::write(&path, format!("[\"/no/tool\"]\n{rest}")).unwrap();
    assert_eq!(import(&project), "");
    let started = Instant::now();
    let timed = "import sys, time; gate = sys.meta_path[0]; t = time.perf_counter(); gate.find_spec('small'); \
                 print(type(gate).__name__, time.perf_counter() - t)";
    let printed = project.prints(timed);
    let seconds: f64 = printed.strip_prefix("Gate ").unwrap().parse().unwrap();
    // The bar is 5 ms; machines of tests are busy.
    assert!(seconds < 0.05, "{seconds} s of {:?}", started.elapsed());
    // Directories of C sources are watched for new ones.
    let refused = || {
        let ran = run(&mut importing(&project)).expect_code(0);
        let expected =
            "warning: small is imported as it was last built: its sources changed, and the tool that builds it";
        assert!(ran.stderr.starts_with(expected), "{}", ran.stderr);
        assert_eq!(ran.stderr.matches("warning").count(), 1, "{}", ran.stderr);
    };
    project.tree.write("src/new.c", "");
    refused();
    project.tree.write("src/lib.rs", "changed");
    refused();
}

#[test]
fn pk_42_without_the_build_environment_there_is_one_warning_and_no_build() {
    let project = EditableProject::new();
    let cache = project.tree.beside("cache");
    run(project.command("develop", &["--rebuild-on-import"]).env("CUWHEEL_CACHE_DIR", &cache)).expect_code(0);
    std::fs::remove_dir_all(cache.join("environments")).unwrap();
    project.change_source("never built");
    let import = || run(importing(&project).env("CUWHEEL_CACHE_DIR", &cache)).expect_code(0);
    let ran = import();
    let root = project.tree.root.display();
    assert_eq!(
        ran.stderr,
        format!(
            "warning: small is imported as it was last built: its sources changed, and the environment that builds it is \
             gone\nfix: run `develop` in {root}\n"
        )
    );
    assert!(!is_built_with(&project.library(), "never built"));
    // Not even what it was built from is known.
    std::fs::remove_dir_all(&cache).unwrap();
    assert!(import().stderr.starts_with("warning: small is imported as it was last built: what it was made from"));
    assert_eq!(run(importing(&project).env("CUWHEEL_REBUILD_ON_IMPORT", "0")).expect_code(0).stderr, "");
}

#[test]
fn sources_that_do_not_compile_fail_the_import_with_the_errors_of_the_compiler() {
    let project = hooked();
    let source = std::fs::read(project.path("src/lib.rs")).unwrap();
    project.tree.write("src/lib.rs", "fn broken( {");
    let ran = run(&mut importing(&project)).expect_code(1);
    assert!(ran.stderr.contains("ImportError: small was not built again: the compilation failed"), "{}", ran.stderr);
    assert!(ran.stderr.contains("this file contains an unclosed delimiter"), "{}", ran.stderr);
    assert_eq!(ran.stderr.matches("unclosed delimiter").count(), 3, "said once: {}", ran.stderr);
    project.tree.write("src/lib.rs", source);
    assert_eq!(import(&project), "");
}

#[test]
fn of_processes_that_import_at_once_one_builds_and_the_others_wait() {
    let project = hooked();
    project.change_source("by one of them");
    let spawn = |_| importing(&project).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let running: Vec<_> = (0..4).map(spawn).collect();
    let ended: Vec<_> = running.into_iter().map(|child| child.wait_with_output().unwrap()).collect();
    let stderr: Vec<String> = ended.iter().map(|ended| String::from_utf8_lossy(&ended.stderr).into_owned()).collect();
    assert!(ended.iter().all(|ended| ended.status.success()), "{stderr:?}");
    assert_eq!(stderr.iter().map(|text| builds(text)).sum::<usize>(), 1, "{stderr:?}");
}

#[test]
fn workers_of_xdist_import_what_was_built_for_all_of_them() {
    let project = hooked();
    let mut install = std::process::Command::new(uv().program());
    let python = project.path(".venv/bin/python");
    run(install.args(["pip", "install", "--quiet", "pytest", "pytest-xdist", "--python"]).arg(&python)).expect_code(0);
    project.change_source("for workers");
    let tests = project.tree.beside("tests");
    let library = project.library();
    let test = format!(
        "import pytest, small\n\n@pytest.mark.parametrize('n', range(4))\ndef test_mark(n):\n    \
         assert b'MARK-for workers' in open({library:?}, 'rb').read()\n    assert small._native.__file__ == {library:?}\n"
    );
    std::fs::create_dir(&tests).unwrap();
    std::fs::write(tests.join("test_it.py"), test).unwrap();
    let mut pytest = project.python();
    let develop = project.command("develop", &[]);
    pytest.envs(develop.get_envs().filter_map(|(name, value)| Some((name, value?)))).current_dir(&tests);
    let ran = run(pytest.args(["-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider"])).expect_code(0);
    assert!(ran.stdout.contains("4 passed"), "{}", ran.stdout);
}

#[test]
fn without_the_option_the_hook_goes() {
    let project = hooked();
    let hook = site_packages(&project.path(".venv")).join("_cuwheel_rebuild_small.py");
    assert!(hook.is_file());
    let ran = project.develop(&["--json"]).expect_code(0).json();
    assert_eq!(ran["reasons"], serde_json::json!(["--rebuild-on-import was true and is false"]));
    assert!(!hook.exists());
    project.change_source("not built");
    assert_eq!(import(&project), "");
}
