//! Projects and machines with one fault each, and sound ones beside them: for the tests of `doctor`, and for the pages of
//! its rules.
//!
//! Inputs are small and made up. What was reduced from projects that exist is in `doctor_projects.rs`.

use std::path::{Path, PathBuf};

use cuwheel::doctor::machine::{self, Compiler, Disk, Driver, Family, Machine, Needs, Toolkit, UvOnPath};
use cuwheel::doctor::{Found, ProjectFacts, check_project};
use cuwheel::interpreter::Interpreter;
use cuwheel_inspect::rules::Policy;

/// What a rule is broken by, or kept by.
pub(crate) struct Case {
    pub(crate) rule: &'static str,
    pub(crate) what: &'static str,
    pub(crate) subject: Subject,
}

/// A project as the text of its files, or a machine with what is asked of it.
pub(crate) enum Subject {
    Project(&'static str),
    Machine(Box<Machine>, Needs),
}

/// The projects of a text: each after a line `##### RULE: WHAT`, as [`write()`] takes them.
pub(crate) fn projects(text: &'static str) -> Vec<Case> {
    let case = |part: &'static str| {
        let (head, files) = part.split_once('\n').expect("files after the line");
        let (rule, what) = head.split_once(": ").expect("a rule and what is special");
        Case { rule, what, subject: Subject::Project(files) }
    };
    text.split("##### ").skip(1).map(case).collect()
}

fn machine(rule: &'static str, what: &'static str, change: impl FnOnce(&mut Machine, &mut Needs)) -> Case {
    let (mut machine, mut needs) = sound_machine();
    change(&mut machine, &mut needs);
    Case { rule, what, subject: Subject::Machine(Box::new(machine), needs) }
}

/// Writes the files of a text, each after a line `=== PATH`, below a directory.
pub(crate) fn write(directory: &Path, files: &str) {
    for part in files.split("=== ").filter(|part| !part.trim().is_empty()) {
        let (path, content) = part.split_once('\n').expect("a path on a line of its own");
        let path = directory.join(path.trim());
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
}

/// What is found in a subject; Python files are read with `python`.
pub(crate) fn examine(subject: &Subject, python: &Path) -> Vec<Found> {
    match subject {
        Subject::Project(files) => {
            let directory = tempfile::tempdir().unwrap();
            write(directory.path(), files);
            let facts = ProjectFacts::read(directory.path(), Some(python)).unwrap();
            check_project(&facts).under(&Policy::default())
        }
        Subject::Machine(machine, needs) => machine::check(machine, needs).under(&Policy::default()),
    }
}

/// The findings as a person reads them.
pub(crate) fn shown(found: &[Found]) -> Vec<String> {
    found.iter().map(|found| format!("{}: {}", found.finding.rule().id(), found.finding)).collect()
}

/// A machine with nothing wrong.
pub(crate) fn sound() -> Subject {
    let (machine, needs) = sound_machine();
    Subject::Machine(Box::new(machine), needs)
}

fn sound_machine() -> (Machine, Needs) {
    let machine = Machine {
        python: Some(Interpreter {
            implementation: "cpython".into(),
            version: (3, 12, 1),
            release_level: "final".into(),
            abi: "cpython-312-x86_64-linux-gnu".into(),
            gil_disabled: false,
            platform: "linux-x86_64".into(),
            base_executable: "/usr/bin/python3".into(),
            base_prefix: "/usr".into(),
            include: "/usr/include/python3.12".into(),
            has_headers: true,
        }),
        toolkits: vec![toolkit("CUDA_HOME", "/opt/cuda-13.0", (13, 0))],
        searched: vec!["CUDA_HOME".into(), "PATH".into()],
        compiler: Some(compiler(14)),
        driver: Some(Driver {
            library: Some("/usr/lib/libcuda.so.1".into()),
            cuda_version: Some((13, 0)),
            ..Driver::default()
        }),
        disks: vec![Disk { path: "/home".into(), free_bytes: 50 << 30 }],
        available_memory_bytes: Some(64 << 30),
        jobs: 8,
        jobs_from: "processors".into(),
        uv: Some(UvOnPath { path: "/usr/bin/uv".into(), version: Some((0, 9, 0)) }),
        ..Machine::default()
    };
    let needs = Needs {
        has_cuda_sources: true,
        requires_compiler: false,
        architectures: vec![(90, "90".into(), "CMakeLists.txt".into(), 3)],
    };
    (machine, needs)
}

fn toolkit(found_by: &str, root: &str, version: (u32, u32)) -> Toolkit {
    Toolkit {
        found_by: found_by.into(),
        root: root.into(),
        nvcc: Some(PathBuf::from(root).join("bin/nvcc")),
        version: Some(version),
        newest_gcc: Some(15),
        newest_clang: Some(20),
        architectures: vec![75, 80, 86, 89, 90, 100, 120],
    }
}

fn compiler(major: u32) -> Compiler {
    let (path, version) = (format!("/usr/bin/g++-{major}").into(), format!("{major}.1.0"));
    Compiler { found_by: "PATH".into(), path, family: Family::Gcc, major, version }
}

/// Subjects that break a rule, in the order of the catalog.
pub(crate) fn faulty() -> Vec<Case> {
    let mut cases = projects(include_str!("doctor/faulty.txt"));
    cases.extend(faulty_machines());
    cases
}

fn faulty_machines() -> Vec<Case> {
    vec![
        machine("machine/python", "no Python that builds", |machine, _| {
            machine.python = None;
            machine.python_problem = Some("no CPython 3.11 or newer was found".into());
        }),
        machine("machine/python", "no headers", |machine, _| {
            machine.python.as_mut().unwrap().has_headers = false;
        }),
        machine("machine/no-toolkit", "CUDA sources and no nvcc (PK-20)", |machine, needs| {
            machine.toolkits.clear();
            needs.architectures.clear();
        }),
        machine("machine/toolkits", "a variable and PATH that disagree (PK-18)", |machine, _| {
            machine.toolkits.push(toolkit("PATH", "/opt/cuda-12.4", (12, 4)));
        }),
        machine("machine/toolkits", "a variable that leads nowhere", |machine, _| {
            machine.misleading.push(("CUDA_PATH".into(), "/opt/cuda-11.8".into()));
        }),
        machine("machine/compiler", "a GCC that nvcc does not take (PK-22)", |machine, _| {
            machine.compiler = Some(compiler(16));
            machine.other_compilers = vec![compiler(16), compiler(14), compiler(13)];
        }),
        machine("machine/architecture", "an older nvcc than the list (PK-23)", |machine, _| {
            machine.toolkits[0].architectures = vec![50, 60, 70, 75, 80];
        }),
        machine("machine/driver", "the stub of the toolkit", |machine, _| {
            let answer = r#"{"library": "/opt/cuda/lib64/stubs/libcuda.so.1", "error": {"function": "cuInit", "name": "CUDA_ERROR_STUB_LIBRARY"}}"#;
            machine.driver = Some(serde_json::from_str(answer).unwrap());
        }),
        machine("machine/driver-old", "a driver of the major version before (PK-28)", |machine, _| {
            machine.driver.as_mut().unwrap().cuda_version = Some((12, 4));
        }),
        machine("machine/disk", "a full disk", |machine, _| {
            machine.disks.push(Disk { path: "/tmp".into(), free_bytes: 800 << 20 });
        }),
        machine("machine/memory", "more jobs than memory (PK-81)", |machine, _| {
            (machine.jobs, machine.jobs_from) = (64, "MAX_JOBS".into());
        }),
        machine("machine/uv", "none", |machine, _| machine.uv = None),
        machine("machine/uv", "an old one", |machine, _| {
            machine.uv.as_mut().unwrap().version = Some((0, 4, 30));
        }),
    ]
}
