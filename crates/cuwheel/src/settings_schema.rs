//! The schema of `[tool.cuwheel]`, and the documentation made from it.
//!
//! Not for reading settings: see [`crate::settings`].

use std::fmt::Write as _;

/// What a setting holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Flag,
    Count,
    Texts,
    TextsByName,
}

impl Kind {
    pub(crate) const fn describe(self) -> &'static str {
        match self {
            Self::Text => "a string",
            Self::Flag => "true or false",
            Self::Count => "a positive integer",
            Self::Texts => "an array of strings",
            Self::TextsByName => "a table of arrays of strings",
        }
    }
}

/// One setting: the schema is the single source for validation and documentation.
pub(crate) struct Setting {
    pub(crate) key: &'static str,
    pub(crate) kind: Kind,
    pub(crate) default: &'static str,
    pub(crate) doc: &'static str,
}

pub(crate) const SCHEMA: &[Setting] = &[
    Setting {
        key: "artifacts",
        kind: Kind::Texts,
        default: "[]",
        doc: "Files that the wheel must hold, as patterns of paths inside it, such as `pkg/kernels/*.fatbin`: generated \
              files that git ignores are left out without a word otherwise.",
    },
    Setting {
        key: "build-requires",
        kind: Kind::Texts,
        default: "[]",
        doc: "Requirements of the build beside `build-system.requires`: tools that only `build-wheel` uses, such as \
              `ziglang`. Locked and installed with them.",
    },
    Setting {
        key: "check.deny",
        kind: Kind::Texts,
        default: "[]",
        doc: "Rules of `check-wheel`, or groups such as `libraries/`, whose breaches are errors.",
    },
    Setting {
        key: "check.allow",
        kind: Kind::Texts,
        default: "[]",
        doc: "Rules of `check-wheel`, or groups, whose breaches are not reported.",
    },
    Setting {
        key: "check.architectures",
        kind: Kind::Texts,
        default: "[]",
        doc: "The GPU code that every file with some has to hold: `90a` is machine code, `compute_90` is PTX, and `90+PTX` \
              is both; empty for whatever there is.",
    },
    Setting {
        key: "check.budget",
        kind: Kind::Text,
        default: "\"\"",
        doc: "The most that a wheel may have, such as `100 MB`; empty for no limit.",
    },
    Setting {
        key: "ci.allow",
        kind: Kind::Texts,
        default: "[]",
        doc: "Rules of `ci lint`, or groups such as `gate/`, whose breaches are not reported.",
    },
    Setting {
        key: "ci.branch",
        kind: Kind::Text,
        default: "\"main\"",
        doc: "The branch whose pushes run the workflows.",
    },
    Setting {
        key: "ci.checks",
        kind: Kind::Texts,
        default: "[]",
        doc: "Commands that have to succeed beside the builds, such as `cargo xtask lint`.",
    },
    Setting {
        key: "ci.command",
        kind: Kind::Text,
        default: "\"cargo xtask\"",
        doc: "What runs the toolkit in workflows.",
    },
    Setting {
        key: "ci.container",
        kind: Kind::Text,
        default: "\"ubuntu:24.04\"",
        doc: "The image that GPU tests run in on GitHub; empty for the runner itself.",
    },
    Setting {
        key: "ci.container-options",
        kind: Kind::Text,
        default: "\"-u root --security-opt seccomp=unconfined --shm-size 16g\"",
        doc: "Options for that container.",
    },
    Setting {
        key: "ci.deny",
        kind: Kind::Texts,
        default: "[]",
        doc: "Rules of `ci lint`, or groups, whose breaches are errors.",
    },
    Setting {
        key: "ci.environment",
        kind: Kind::Text,
        default: "\"pypi\"",
        doc: "The environment of GitHub that publishing needs.",
    },
    Setting {
        key: "ci.gpu-runner",
        kind: Kind::Text,
        default: "\"linux-{arch}-gpu-{gpu}-{driver}-{count}\"",
        doc: "The label of runners with GPUs, with the fields of a row of `ci/matrix.yml`; empty for workflows without GPU \
              tests.",
    },
    Setting {
        key: "ci.providers",
        kind: Kind::Texts,
        default: "[\"github\"]",
        doc: "The systems that `ci render` writes files for: `github`, `gitlab` and `slurm`.",
    },
    Setting {
        key: "ci.publish",
        kind: Kind::Flag,
        default: "false",
        doc: "Whether tags `v*` publish what was built, with trusted publishing and attestations.",
    },
    Setting {
        key: "ci.pull-requests",
        kind: Kind::Text,
        default: "\"copy-pr-bot\"",
        doc: "How pull requests come to run on GitHub: `copy-pr-bot`, which copies what a maintainer approved to \
              `pull-request/N`, or `pull_request`, where those from forks get no GPU.",
    },
    Setting {
        key: "compatibility",
        kind: Kind::Text,
        default: "\"manylinux_2_28\"",
        doc: "The platform tag and with it the oldest glibc that the wheel runs on; `linux` for this machine's.",
    },
    Setting {
        key: "cuda.majors",
        kind: Kind::Texts,
        default: "[]",
        doc: "The major versions of CUDA that wheels are built for, such as `[\"12\", \"13\"]`; empty for one wheel, by whatever \
              compiler is found.",
    },
    Setting {
        key: "cuda.wheels",
        kind: Kind::Text,
        default: "\"suffix\"",
        doc: "`suffix` makes a wheel for each version, called `NAME-cu12` and so on; `merged` one wheel, which takes the native \
              modules for the CUDA that is there when it is imported.",
    },
    Setting {
        key: "cuda.dependencies",
        kind: Kind::TextsByName,
        default: "{}",
        doc: "What the wheel for a version requires beside the project's dependencies, by version. A merged wheel has an extra \
              `cu12` and so on for each.",
    },
    Setting {
        key: "linker",
        kind: Kind::Text,
        default: "\"zig\"",
        doc: "`zig` links against the glibc of `compatibility` whatever this machine has; `system` uses the machine's linker.",
    },
    Setting {
        key: "doctor.allow",
        kind: Kind::Texts,
        default: "[]",
        doc: "Rules of `doctor`, or groups such as `test/`, whose breaches are not reported.",
    },
    Setting {
        key: "doctor.baseline",
        kind: Kind::Text,
        default: "\"\"",
        doc: "The file of known findings of `doctor`, which are not reported again; empty for none.",
    },
    Setting {
        key: "doctor.deny",
        kind: Kind::Texts,
        default: "[]",
        doc: "Rules of `doctor`, or groups, whose breaches are errors.",
    },
    Setting {
        key: "modules",
        kind: Kind::Texts,
        default: "[]",
        doc: "Modules that are imported to prove the wheel, beside its packages and the extension modules found in it.",
    },
    Setting {
        key: "overlay.NAME.distribution",
        kind: Kind::Text,
        default: "\"\"",
        doc: "The distribution that the overlay is for, such as `numba-cuda`. Required, as the next four are. `NAME` is \
              any name; several overlays may be for one distribution, each for other versions.",
    },
    Setting {
        key: "overlay.NAME.versions",
        kind: Kind::Text,
        default: "\"\"",
        doc: "The versions that it is for (PEP 440), such as `>=0.30.0,<0.31`.",
    },
    Setting {
        key: "overlay.NAME.package",
        kind: Kind::Text,
        default: "\"\"",
        doc: "The directory in the wheel of the package whose native modules are replaced.",
    },
    Setting {
        key: "overlay.NAME.modules",
        kind: Kind::Texts,
        default: "[]",
        doc: "The native modules that are replaced: all that the wheel has, by their names in the package.",
    },
    Setting {
        key: "overlay.NAME.files",
        kind: Kind::Text,
        default: "\"\"",
        doc: "The directory with the files that take their place, relative to the project: `MODULE.py` for each that \
              differs from the file beside the project's native library, which it takes its names from.",
    },
    Setting {
        key: "overlay.NAME.crate",
        kind: Kind::Text,
        default: "\"\"",
        doc: "The cargo package that the native library is built from; empty for that of the project.",
    },
    Setting {
        key: "overlay.NAME.sources",
        kind: Kind::Texts,
        default: r#"["*.c", "*.cc", "*.cpp", "*.cxx", "*.h", "*.hpp"]"#,
        doc: "Files of the package that go with the native modules, as patterns of names.",
    },
    Setting {
        key: "overlay.NAME.imports",
        kind: Kind::Texts,
        default: "[]",
        doc: "Modules that `overlay --prove full` imports, with all dependencies installed.",
    },
    Setting {
        key: "overlay.NAME.requires",
        kind: Kind::Texts,
        default: "[]",
        doc: "Requirements that `overlay --prove full` installs beside those of the wheel.",
    },
    Setting {
        key: "repair.graft",
        kind: Kind::Texts,
        default: "[]",
        doc: "Libraries that `build-wheel` takes into the wheel when they are needed and missing: names such as `libfftw3.so.3`, \
              with `*` for what varies.",
    },
    Setting {
        key: "repair.library-paths",
        kind: Kind::Texts,
        default: "[]",
        doc: "Directories with these libraries, absolute or relative to the project.",
    },
    Setting {
        key: "requirements",
        kind: Kind::Text,
        default: "\"requirements\"",
        doc: "The directory of the requirement locks, relative to the project.",
    },
    Setting {
        key: "test.paths",
        kind: Kind::Texts,
        default: "[\"tests\"]",
        doc: "Directories and files with Python tests, relative to the project. They are copied out of it to be run.",
    },
    Setting {
        key: "test.group",
        kind: Kind::Text,
        default: "\"test\"",
        doc: "The dependency group with the requirements of the tests.",
    },
    Setting {
        key: "test.requires",
        kind: Kind::Texts,
        default: "[]",
        doc: "Requirements of the tests beside the group.",
    },
    Setting {
        key: "test.requires-without-dependencies",
        kind: Kind::Texts,
        default: "[]",
        doc: "Requirements of the tests of which only the named packages are installed.",
    },
    Setting {
        key: "test.variants",
        kind: Kind::TextsByName,
        default: "{}",
        doc: "Further runs of the Python tests by name, each with requirements that narrow the others, such as the oldest \
              versions that the project supports.",
    },
    Setting {
        key: "test.libraries",
        kind: Kind::Texts,
        default: "[]",
        doc: "Packages of the cargo workspace that make shared libraries for the Python tests, such as a stand-in for a \
              driver. They are found by their file names and their SONAMEs before the system's libraries.",
    },
    Setting { key: "test.pytest-args", kind: Kind::Texts, default: "[]", doc: "Arguments for every pytest run." },
    Setting {
        key: "test.timeout-s",
        kind: Kind::Count,
        default: "120",
        doc: "Seconds that one Python test may take before the run is ended.",
    },
    Setting {
        key: "test.total-timeout-s",
        kind: Kind::Count,
        default: "3600",
        doc: "Seconds that a whole run of the Python tests may take.",
    },
    Setting { key: "test.rust", kind: Kind::Flag, default: "true", doc: "Whether `test` runs `cargo test` first." },
    Setting {
        key: "test.cargo-args",
        kind: Kind::Texts,
        default: "[\"--workspace\"]",
        doc: "Arguments for `cargo test`.",
    },
    Setting {
        key: "test-gpu.paths",
        kind: Kind::Texts,
        default: "[\"tests/gpu\"]",
        doc: "Directories and files with the tests that need a GPU, relative to the project.",
    },
    Setting {
        key: "test-gpu.group",
        kind: Kind::Text,
        default: "\"test-gpu\"",
        doc: "The dependency group with the requirements of the GPU tests.",
    },
    Setting {
        key: "test-gpu.requires",
        kind: Kind::Texts,
        default: "[]",
        doc: "Requirements of the GPU tests beside the group.",
    },
    Setting {
        key: "test-gpu.pytest-args",
        kind: Kind::Texts,
        default: "[]",
        doc: "Arguments for every pytest run of the GPU tests.",
    },
    Setting {
        key: "test-gpu.timeout-s",
        kind: Kind::Count,
        default: "300",
        doc: "Seconds that one GPU test may take before its process is replaced.",
    },
    Setting {
        key: "test-gpu.total-timeout-s",
        kind: Kind::Count,
        default: "3600",
        doc: "Seconds that a whole run of the GPU tests may take.",
    },
];

/// The page of settings, as Markdown.
pub fn markdown() -> String {
    let mut text = String::from("| setting | takes | default | meaning |\n|---|---|---|---|\n");
    for Setting { key, kind, default, doc } in SCHEMA {
        let _ = writeln!(text, "| `{key}` | {} | `{default}` | {doc} |", kind.describe());
    }
    text
}
