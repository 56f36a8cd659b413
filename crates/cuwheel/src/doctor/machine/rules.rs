//! The rules on machines. They look at what was found, and start nothing.

use cuwheel_inspect::rules::Finding;

use super::super::facts::ProjectFacts;
use super::super::rules::declared_architectures;
use super::super::{Diagnosis, catalog};
use super::compiler::Family;
use super::{Machine, Toolkit};
use crate::files::human_size;
use crate::uv;

/// What is taken by one nvcc, measured on templates of kernels: most take less, and some more.
const BYTES_PER_JOB: u64 = 4 << 30;
/// What a build of several architectures leaves behind.
const BYTES_ON_DISK: u64 = 5 << 30;

/// What a project takes of a machine.
#[derive(Clone, Debug, Default)]
pub struct Needs {
    /// Whether CUDA sources are compiled.
    pub has_cuda_sources: bool,
    /// Whether the compiler is a requirement of the build, and so is there when it is needed.
    pub requires_compiler: bool,
    /// Architectures that are listed, each with its name and its place.
    pub architectures: Vec<(u32, String, String, usize)>,
}

impl Needs {
    /// What a project says that it takes.
    #[must_use]
    pub fn of(facts: &ProjectFacts) -> Self {
        let architectures = declared_architectures(facts);
        let place =
            |declared: super::super::rules::Declared| (declared.number, declared.name, declared.path, declared.line);
        Self {
            has_cuda_sources: facts.has_cuda_sources(),
            // The package for CUDA 12 has no nvcc.
            requires_compiler: facts.declares("nvidia-cuda-nvcc"),
            architectures: architectures.into_iter().map(place).collect(),
        }
    }
}

/// Everything that is wrong with a machine for a project.
#[must_use]
pub fn check(machine: &Machine, needs: &Needs) -> Diagnosis {
    let mut diagnosis = Diagnosis::default();
    check_python(machine, &mut diagnosis);
    check_toolkits(machine, needs, &mut diagnosis);
    check_compiler(machine, &mut diagnosis);
    check_architectures(machine, needs, &mut diagnosis);
    check_driver(machine, &mut diagnosis);
    check_resources(machine, needs, &mut diagnosis);
    check_uv(machine, &mut diagnosis);
    diagnosis
}

fn check_python(machine: &Machine, diagnosis: &mut Diagnosis) {
    if let Some(problem) = &machine.python_problem {
        diagnosis.add(Finding::new(&catalog::PYTHON, problem.as_str()));
    }
    if let Some(python) = machine.python.as_ref().filter(|python| !python.has_headers) {
        let message = format!("{python} has no headers: {}/Python.h is missing", python.include.display());
        diagnosis.add(Finding::new(&catalog::PYTHON, message));
    }
}

/// The toolkit that is taken: the first that can compile.
fn chosen(machine: &Machine) -> Option<&Toolkit> {
    machine.toolkits.iter().find(|toolkit| toolkit.nvcc.is_some())
}

fn version(toolkit: &Toolkit) -> String {
    toolkit.version.map_or_else(|| "?".to_owned(), |(major, minor)| format!("{major}.{minor}"))
}

fn check_toolkits(machine: &Machine, needs: &Needs, diagnosis: &mut Diagnosis) {
    for (variable, path) in &machine.misleading {
        let message = format!("{variable} is {}, and there is no toolkit", path.display());
        let remedy = format!("take {variable} out of the environment, or have it lead to a toolkit");
        diagnosis.add(Finding::new(&catalog::TOOLKITS, message).with_remedy(remedy));
    }
    let needs_toolkit = needs.has_cuda_sources && !needs.requires_compiler;
    let Some(first) = machine.toolkits.first() else {
        if needs_toolkit {
            let message = format!("no nvcc was found; looked in {}", machine.searched.join(", "));
            diagnosis.add(Finding::new(&catalog::NO_TOOLKIT, message));
        }
        return;
    };
    if needs_toolkit && chosen(machine).is_none() {
        let message = format!("{} has no nvcc, and nothing else has", first.root.display());
        diagnosis.add(Finding::new(&catalog::NO_TOOLKIT, message));
    }
    for other in &machine.toolkits[1..] {
        // What nobody named, such as /usr/local/cuda, disagrees with nobody.
        let is_named = !other.found_by.starts_with('/');
        if is_named && first.version.is_some() && other.version.is_some() && first.version != other.version {
            let message = format!(
                "{} leads to CUDA {} in {}, and {} to CUDA {} in {}",
                first.found_by,
                version(first),
                first.root.display(),
                other.found_by,
                version(other),
                other.root.display()
            );
            diagnosis.add(Finding::new(&catalog::TOOLKITS, message));
        }
    }
}

fn check_compiler(machine: &Machine, diagnosis: &mut Diagnosis) {
    let (Some(toolkit), Some(compiler)) = (chosen(machine), &machine.compiler) else { return };
    let (bound, family) = match compiler.family {
        Family::Gcc => (toolkit.newest_gcc, "GCC"),
        Family::Clang => (toolkit.newest_clang, "clang"),
    };
    let Some(bound) = bound.filter(|bound| compiler.major > *bound) else { return };
    let message = format!("nvcc of CUDA {} takes {family} up to {bound}, and would call {compiler}", version(toolkit));
    let finding = Finding::new(&catalog::COMPILER, message);
    let fits =
        machine.other_compilers.iter().filter(|other| toolkit.newest_gcc.is_some_and(|bound| other.major <= bound));
    let candidates: Vec<String> = fits.map(|other| format!("NVCC_CCBIN={}", other.path.display())).collect();
    diagnosis.add(if candidates.is_empty() {
        finding
    } else {
        finding.with_remedy(format!("set {}", candidates.join(" or ")))
    });
}

fn check_architectures(machine: &Machine, needs: &Needs, diagnosis: &mut Diagnosis) {
    let Some(toolkit) = chosen(machine).filter(|toolkit| !toolkit.architectures.is_empty()) else { return };
    let unknown = needs.architectures.iter().filter(|(number, ..)| !toolkit.architectures.contains(number));
    let mut places: Vec<(&str, usize, Vec<&str>)> = Vec::new();
    for (_, name, path, line) in unknown {
        match places.iter_mut().find(|place| place.0 == path && place.1 == *line) {
            Some(place) => place.2.push(name),
            None => places.push((path, *line, vec![name])),
        }
    }
    for (path, line, mut names) in places {
        names.dedup();
        let known: Vec<String> = toolkit.architectures.iter().map(ToString::to_string).collect();
        let message = format!(
            "nvcc of CUDA {} in {} does not know {}; it knows {}",
            version(toolkit),
            toolkit.root.display(),
            names.join(", "),
            known.join(", ")
        );
        diagnosis.add(Finding::new(&catalog::ARCHITECTURE, message).at(path).on_line(Some(line)));
    }
}

fn check_driver(machine: &Machine, diagnosis: &mut Diagnosis) {
    let Some(driver) = &machine.driver else { return };
    if let Some(problem) = driver.problem() {
        diagnosis.add(Finding::new(&catalog::DRIVER, problem));
    }
    let toolkit = chosen(machine).and_then(|toolkit| toolkit.version);
    if let (Some(of_driver), Some(of_toolkit)) = (driver.cuda_version, toolkit)
        && of_toolkit > of_driver
    {
        let what =
            if of_toolkit.0 > of_driver.0 { "nothing that it compiles runs here" } else { "its PTX does not run here" };
        let message = format!(
            "the toolkit is CUDA {}.{}, and the driver is for {}.{}: {what}",
            of_toolkit.0, of_toolkit.1, of_driver.0, of_driver.1
        );
        diagnosis.add(Finding::new(&catalog::DRIVER_OLD, message));
    }
}

fn check_resources(machine: &Machine, needs: &Needs, diagnosis: &mut Diagnosis) {
    for disk in machine.disks.iter().filter(|disk| disk.free_bytes < BYTES_ON_DISK) {
        let message = format!("{} are free in {}", human_size(disk.free_bytes), disk.path.display());
        diagnosis.add(Finding::new(&catalog::DISK, message));
    }
    let Some(memory) = machine.available_memory_bytes.filter(|_| needs.has_cuda_sources) else { return };
    let fitting = (memory / BYTES_PER_JOB).max(1);
    if u64::try_from(machine.jobs).unwrap_or(u64::MAX) > fitting {
        let message = format!(
            "{} jobs ({}) of up to {} each, and {} available",
            machine.jobs,
            machine.jobs_from,
            human_size(BYTES_PER_JOB),
            human_size(memory)
        );
        let remedy =
            format!("set MAX_JOBS={fitting}, CMAKE_BUILD_PARALLEL_LEVEL={fitting} or what the build takes instead");
        diagnosis.add(Finding::new(&catalog::MEMORY, message).with_remedy(remedy));
    }
}

fn check_uv(machine: &Machine, diagnosis: &mut Diagnosis) {
    let (major, minor, patch) = uv::OLDEST;
    let message = match &machine.uv {
        None => "there is no uv on PATH".to_owned(),
        Some(uv) => match uv.version {
            None => format!("{} does not run", uv.path.display()),
            Some((a, b, c)) if (a, b, c) < uv::OLDEST => {
                format!("{} is {a}.{b}.{c}, older than {major}.{minor}.{patch}", uv.path.display())
            }
            Some(_) => return,
        },
    };
    diagnosis.add(Finding::new(&catalog::UV, message));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compiler_that_the_build_requires_is_missed_nowhere() {
        let rules = |requires_compiler| {
            let needs = Needs { has_cuda_sources: true, requires_compiler, ..Needs::default() };
            let mut diagnosis = Diagnosis::default();
            check_toolkits(&Machine::default(), &needs, &mut diagnosis);
            diagnosis.under(&cuwheel_inspect::rules::Policy::default()).len()
        };
        assert_eq!((rules(false), rules(true)), (1, 0));
    }
}
