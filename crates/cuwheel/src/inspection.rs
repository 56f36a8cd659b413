//! The inspection of a wheel that was just built: the rules of `check-wheel`, and what only its builder knows.
//!
//! Not for judging other people's wheels, and not for reading archives, which [`cuwheel_inspect`] does.

use std::path::Path;

use cuwheel_inspect::elf::GlibcVersion;
use cuwheel_inspect::rules::{self, Breakdown, ExaminedWheel, Policy, Severity};
use cuwheel_inspect::wheel::{Wheel, WheelError};
use globset::Glob;

use crate::error::{Failure, Result};
use crate::files;
use crate::findings::{self, Counts};
use crate::floor;
use crate::interpreter::Interpreter;
use crate::manifest::WheelReport;
use crate::maturin::{Compilation, WheelAbi};
use crate::output::Output;
use crate::project::Project;
use crate::wheel_check;

/// Reads a wheel from its bytes.
pub fn open(file: &str, bytes: &[u8]) -> Result<Wheel> {
    Wheel::from_bytes(file, bytes.to_vec()).map_err(unreadable)
}

/// A wheel that cannot be read is a mistake of whoever gave it.
#[expect(clippy::needless_pass_by_value, reason = "it is given to map_err")]
pub fn unreadable(error: WheelError) -> anyhow::Error {
    Failure::usage(error.to_string()).remedy("give a wheel that was not damaged and still has its own name").into()
}

/// The glibc that a platform tag promises to run on; none for tags that promise nothing of glibc.
pub fn glibc_of(compatibility: &str) -> Option<GlibcVersion> {
    GlibcVersion::from_platform_tag(compatibility)
}

/// The oldest glibc that Rust's standard library runs on.
const OLDEST_GLIBC: GlibcVersion = GlibcVersion::new(2, 17);

/// Refuses what a test run would only notice after minutes of work: a wheel that is not there or cannot be read, and without
/// one a platform that none can be built for.
pub fn check_wheel_to_test(project: &Project, wheel: Option<&Path>) -> Result<()> {
    match wheel {
        Some(path) if path.is_file() => Wheel::open(&files::absolute(path)?).map(drop).map_err(unreadable),
        Some(path) => Err(Failure::usage(format!("there is no wheel at {}", path.display()))
            .remedy("give the path of a wheel, or leave --wheel out to build one")
            .into()),
        None => check_compatibility(&project.settings.compatibility),
    }
}

/// Refuses a platform tag that means nothing, or that no build here could keep.
pub fn check_compatibility(compatibility: &str) -> Result<()> {
    let failure = match glibc_of(compatibility) {
        // The processor is added by us.
        Some(version)
            if version >= OLDEST_GLIBC
                && [format!("manylinux_{}_{}", version.major, version.minor), "manylinux2014".to_owned()]
                    .contains(&compatibility.to_owned()) =>
        {
            return Ok(());
        }
        Some(version) if version >= OLDEST_GLIBC => {
            Failure::usage(format!("{compatibility} names a processor, which the interpreter decides"))
        }
        None if compatibility == "linux" => return Ok(()),
        Some(version) => Failure::usage(format!("{compatibility} promises glibc {version}; Rust needs {OLDEST_GLIBC}")),
        None if compatibility.starts_with("musllinux") => Failure::usage("wheels for musl are not built yet"),
        None => Failure::usage(format!("{compatibility} is no platform tag")),
    };
    Err(failure.remedy("use manylinux_2_28, any other from manylinux_2_17 on, or linux for this machine's").into())
}

/// The last three parts of the wheel's file name.
pub fn tag(abi: &WheelAbi, interpreter: &Interpreter, compatibility: &str) -> String {
    let machine = interpreter.machine();
    let platform = match compatibility {
        // Installers from before PEP 600 know the older name only.
        "manylinux_2_17" | "manylinux2014" => format!("manylinux2014_{machine}.manylinux_2_17_{machine}"),
        other => format!("{other}_{machine}"),
    };
    format!("{}-{platform}", abi.tag(interpreter))
}

/// Inspects a wheel that was just compiled for what only its builder knows: the tag that was asked for, declared
/// artifacts, and which crate needs a newer glibc than was promised. [`check`] is for the rest.
pub fn inspect(wheel: &Wheel, compilation: &Compilation<'_>) -> Result<()> {
    let file = wheel.file_name();
    let expected = tag(compilation.abi, compilation.interpreter, compilation.compatibility);
    if !file.ends_with(&format!("-{expected}.whl")) {
        return Err(Failure::failed(format!("the tag of {file} is not {expected}"))
            .remedy("the files that a wheel holds are chosen in [tool.maturin] in pyproject.toml")
            .into());
    }
    check_artifacts(wheel, &compilation.project.settings.artifacts)?;
    match glibc_of(compilation.compatibility) {
        Some(promised) => floor::check(wheel, promised, compilation),
        None => Ok(()),
    }
}

/// Refuses a wheel that breaks rules of `check-wheel`, and warns of what is less than an error.
pub fn check(examined: &ExaminedWheel, project: &Project, output: &Output) -> Result<()> {
    let settings = &project.settings;
    let policy = wheel_check::policy(&settings.check)
        .with_modules(settings.modules.clone())
        .with_architectures(&settings.check.architectures);
    check_with(examined, &policy, output)
}

/// As [`check`], by a policy of the caller's.
pub fn check_with(examined: &ExaminedWheel, policy: &Policy, output: &Output) -> Result<()> {
    let (errors, others): (Vec<_>, Vec<_>) =
        rules::check(examined, policy).into_iter().partition(|finding| finding.severity() == Severity::Error);
    for finding in others.iter().filter(|finding| finding.severity() == Severity::Warning) {
        output.warn(format!("{finding} [{}]", finding.rule().id()));
    }
    if errors.is_empty() {
        return Ok(());
    }
    let count = Counts::of(&errors).describe();
    Err(Failure::failed(format!("check-wheel finds {count} in {}", examined.wheel().file_name()))
        .details(findings::render(&errors, true).lines().map(str::to_owned))
        .remedy("mend what is named, or allow it in tool.cuwheel.check.allow")
        .into())
}

/// Refuses a wheel without the files that the settings declare.
pub fn check_artifacts(wheel: &Wheel, patterns: &[String]) -> Result<()> {
    let mut missing = Vec::new();
    for pattern in patterns {
        let glob = Glob::new(pattern).map_err(|error| {
            Failure::usage(format!("tool.cuwheel.artifacts holds a pattern that cannot be read: {error}"))
        })?;
        let matcher = glob.compile_matcher();
        if !wheel.entries().iter().any(|entry| matcher.is_match(entry.path())) {
            missing.push(format!("no file matches {pattern}"));
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    Err(Failure::failed(format!("{} lacks declared artifacts", wheel.file_name()))
        .details(missing)
        .remedy(
            "a file that git ignores is packaged only when it is listed: \
             tool.maturin.include = [{ path = \"…\", format = [\"sdist\", \"wheel\"] }]",
        )
        .into())
}

/// What the manifest and the table say of a wheel.
pub fn report(examined: &ExaminedWheel, proven_on: &Interpreter, imported: Vec<String>) -> WheelReport {
    let wheel = examined.wheel();
    WheelReport {
        file: wheel.file_name().to_owned(),
        sha256: wheel.sha256().to_string(),
        size_bytes: wheel.size_bytes(),
        tags: wheel.name().tags().iter().map(ToString::to_string).collect(),
        extension_modules: wheel.extension_modules().iter().map(|module| module.module().to_owned()).collect(),
        glibc_floor: examined.glibc_floor().map(|version| version.to_string()),
        cuda_architectures: Breakdown::of(examined).architectures.into_iter().map(|code| code.name).collect(),
        cuda_toolkit: examined.cuda_toolkits().last().map(ToString::to_string),
        proven_on: proven_on.to_string(),
        imported,
    }
}

/// The directories whose paths a wheel must not show, with the names that stand for them.
pub fn private_paths(project: &Project) -> Vec<(&Path, String)> {
    [project.manifest.workspace_root(), &project.root].map(|root| (root, project.distribution())).to_vec()
}
