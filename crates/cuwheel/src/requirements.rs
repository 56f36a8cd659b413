//! Requirements: their names, what the sources need but pyproject.toml does not declare, and the committed locks.
//!
//! Not for resolving, which uv does, nor for installing: see [`crate::environment`].

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::cuda::CudaTarget;
use crate::error::{Failure, Result};
use crate::files;
use crate::output::Output;
use crate::project::Project;
use crate::settings::Linker;
use crate::sources;
use crate::uv::{CompileOptions, Uv};

/// The normalised name (PEP 503) of a requirement: `NumPy>=2` → `numpy`, `My.Pkg[x]` → `my-pkg`.
pub fn requirement_name(requirement: &str) -> String {
    let trimmed = requirement.trim_start();
    let end = trimmed.find(|c: char| !(c.is_ascii_alphanumeric() || "._-".contains(c))).unwrap_or(trimmed.len());
    let mut name = String::new();
    for c in trimmed[..end].chars() {
        match c {
            '.' | '_' | '-' if name.ends_with('-') => {}
            '.' | '_' | '-' => name.push('-'),
            _ => name.push(c.to_ascii_lowercase()),
        }
    }
    name
}

/// What a source file shows to need: a prefix of an included header or an imported module, and who provides it.
struct Need {
    marker: &'static str,
    requirement: &'static str,
}

const HEADERS: &[Need] = &[
    Need { marker: "numpy/", requirement: "numpy>=2.0" },
    Need { marker: "pybind11/", requirement: "pybind11" },
    Need { marker: "nanobind/", requirement: "nanobind" },
    Need { marker: "torch/", requirement: "torch" },
    Need { marker: "ATen/", requirement: "torch" },
    Need { marker: "cuda_runtime", requirement: "nvidia-cuda-runtime" },
    Need { marker: "cuda_fp16", requirement: "nvidia-cuda-runtime" },
    Need { marker: "cuda_bf16", requirement: "nvidia-cuda-runtime" },
    Need { marker: "nv/target", requirement: "nvidia-cuda-cccl" },
    Need { marker: "cuda/std/", requirement: "nvidia-cuda-cccl" },
    Need { marker: "cub/", requirement: "nvidia-cuda-cccl" },
    Need { marker: "thrust/", requirement: "nvidia-cuda-cccl" },
];

const MODULES: &[Need] = &[
    Need { marker: "numpy", requirement: "numpy>=2.0" },
    Need { marker: "torch", requirement: "torch" },
    Need { marker: "pybind11", requirement: "pybind11" },
    Need { marker: "nanobind", requirement: "nanobind" },
    Need { marker: "Cython", requirement: "Cython" },
    Need { marker: "ninja", requirement: "ninja" },
];

/// A requirement that is used and not declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undeclared {
    requirement: String,
    reason: String,
}

/// Everything that the build uses and pyproject.toml does not declare, each with where it is used.
pub fn undeclared(project: &Project, linker: Linker) -> Result<Vec<Undeclared>> {
    let declared: Vec<String> = project.build_requires().map(requirement_name).collect();
    let mut found: BTreeMap<String, Undeclared> = BTreeMap::new();
    let mut need = |requirement: &str, reason: String| {
        let name = requirement_name(requirement);
        if !declared.contains(&name) {
            let requirement = requirement.to_owned();
            found.entry(name).or_insert(Undeclared { requirement, reason });
        }
    };
    need("maturin", "build-system.build-backend is \"maturin\"".to_owned());
    if linker == Linker::Zig {
        need("ziglang", "tool.cuwheel.linker is \"zig\"".to_owned());
    }
    let files = sources::native_sources(project)?;
    let mut texts = Vec::new();
    for file in &files {
        // A source in another encoding can still be scanned: the markers are ASCII.
        texts.push((file, String::from_utf8_lossy(&fs_err::read(file)?).into_owned()));
    }
    for (file, text) in texts.iter().filter(|(file, _)| is_compiled(project, file, &texts)) {
        let place = file.strip_prefix(&project.root).unwrap_or(file).display().to_string();
        for (number, used, requirement) in needs_of(file, text) {
            if !is_vendored(&files, used) {
                need(requirement, format!("{place}:{number} uses {used}"));
            }
        }
    }
    Ok(found.into_values().collect())
}

/// Whether a file is read by a compiler. A crate that the project depends on may offer headers that it does not use, as
/// `cuwheel-build` offers one for shims over NumPy.
fn is_compiled(project: &Project, file: &Path, texts: &[(&PathBuf, String)]) -> bool {
    let is_header =
        file.extension().is_some_and(|extension| ["h", "hh", "hpp", "hxx"].iter().any(|known| extension == *known));
    let is_included =
        || texts.iter().any(|(_, text)| text.lines().filter_map(included).any(|name| file.ends_with(name)));
    !is_header || file.starts_with(&project.root) || is_included()
}

/// Line numbers, what is used there, and who provides it.
fn needs_of<'t>(file: &Path, text: &'t str) -> Vec<(usize, &'t str, &'static str)> {
    let is_python = file.extension().is_some_and(|extension| extension == "py");
    let mut needs = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let (used, table) = if is_python { (imported(line), MODULES) } else { (included(line), HEADERS) };
        let Some(used) = used else { continue };
        let matches = |need: &&Need| if is_python { used == need.marker } else { used.starts_with(need.marker) };
        if let Some(need) = table.iter().find(matches) {
            needs.push((index + 1, used, need.requirement));
        }
    }
    needs
}

/// `#include <numpy/arrayobject.h>` → `numpy/arrayobject.h`.
fn included(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix('#')?.trim_start().strip_prefix("include")?.trim_start();
    let rest = rest.strip_prefix(['<', '"'])?;
    rest.split(['>', '"']).next()
}

/// `import torch.utils as t` → `torch`.
fn imported(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let rest = line.strip_prefix("import ").or_else(|| line.strip_prefix("from "))?.trim_start();
    rest.split(|c: char| !(c.is_alphanumeric() || c == '_')).next()
}

/// Whether the project brings the header itself.
fn is_vendored(files: &[PathBuf], header: &str) -> bool {
    files.iter().any(|file| file.ends_with(header))
}

/// Refuses a project with undeclared requirements: all of them at once, with the lines to add.
pub fn check_declared(project: &Project, linker: Linker) -> Result<()> {
    let undeclared = undeclared(project, linker)?;
    if undeclared.is_empty() {
        return Ok(());
    }
    let count = undeclared.len();
    let subject =
        if count == 1 { "1 build requirement is".to_owned() } else { format!("{count} build requirements are") };
    let (tools, imports): (Vec<_>, Vec<_>) = undeclared.iter().partition(|need| need.requirement == "ziglang");
    let mut remedy = String::from("in pyproject.toml, write");
    if !imports.is_empty() {
        remedy += &lines("build-system", "requires", &project.backend_requires, &imports);
    }
    if !tools.is_empty() {
        remedy += &lines("tool.cuwheel", "build-requires", &project.settings.build_requires, &tools);
    }
    Err(Failure::usage(format!("{subject} used but not declared"))
        .details(undeclared.iter().map(|need| format!("{}: {}", requirement_name(&need.requirement), need.reason)))
        .remedy(remedy)
        .into())
}

fn lines(table: &str, key: &str, present: &[String], missing: &[&Undeclared]) -> String {
    let all: Vec<String> = present
        .iter()
        .chain(missing.iter().map(|need| &need.requirement))
        .map(|requirement| format!("\"{}\"", requirement.replace('"', "'")))
        .collect();
    format!("\n[{table}]\n{key} = [{}]", all.join(", "))
}

/// A committed lock of requirements: exact versions with hashes, in pip's format.
#[derive(Clone, Debug)]
pub struct Lock {
    /// Where it is.
    pub path: PathBuf,
    name: String,
    inputs: Vec<String>,
    without_dependencies: Vec<String>,
    python_floor: Option<(u8, u8)>,
}

const INPUTS_MARK: &str = "# inputs: ";

/// What to do with a lock that is absent or does not fit its inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockPolicy {
    /// Resolve again and write it.
    Update,
    /// Refuse: `--locked` or `--offline`.
    Refuse,
}

impl Lock {
    /// The lock of the build environment.
    pub fn of_build(project: &Project) -> Self {
        let inputs = project.build_requires().map(str::to_owned).collect();
        Self::new(project, "build", inputs, Vec::new())
    }

    /// The lock of the test environment for a wheel, or of one of its variants.
    pub fn of_tests(project: &Project, variant: Option<&str>, cuda: &CudaTarget) -> Result<Self> {
        let test = &project.settings.test;
        let mut inputs = with_pytest(project, cuda, project.test_requires.iter().chain(&test.requires));
        let mut name = "test".to_owned();
        if let Some(variant) = variant {
            let narrowed = test.variants.get(variant).ok_or_else(|| unknown_variant(project, variant))?;
            inputs.extend(narrowed.iter().cloned());
            name = format!("test-{variant}");
        }
        name += &suffix_of_tests(project, cuda);
        Ok(Self::new(project, &name, inputs, test.requires_without_dependencies.clone()))
    }

    /// The lock of the GPU tests' environment for a wheel.
    pub fn of_gpu_tests(project: &Project, cuda: &CudaTarget) -> Self {
        let group = project.test_gpu_requires.iter().flatten();
        let inputs = with_pytest(project, cuda, group.chain(&project.settings.test_gpu.requires));
        Self::new(project, &format!("test-gpu{}", suffix_of_tests(project, cuda)), inputs, Vec::new())
    }

    /// A lock that nobody commits, at `path`: of a suite that is no part of the project.
    pub fn of_suite(project: &Project, path: PathBuf, inputs: Vec<String>) -> Self {
        Self {
            path,
            name: "suite".to_owned(),
            inputs,
            without_dependencies: Vec::new(),
            python_floor: project.python_floor,
        }
    }

    /// The lock of what a wheel of the project needs at run time, if it needs anything.
    pub fn of_runtime(project: &Project, cuda: &CudaTarget) -> Option<Self> {
        let inputs: Vec<String> =
            project.dependencies.iter().cloned().chain(cuda.requirements(&project.settings.cuda)).collect();
        let name = format!("runtime{}", cuda.lock_suffix(&project.settings.cuda));
        (!inputs.is_empty()).then(|| Self::new(project, &name, inputs, Vec::new()))
    }

    /// Every lock of a project.
    pub fn all(project: &Project) -> Result<Vec<Self>> {
        let mut locks = vec![Self::of_build(project)];
        for cuda in project.settings.cuda.targets(&[])?.iter().rev() {
            locks.push(Self::of_tests(project, None, cuda)?);
            locks.extend(Self::of_runtime(project, cuda));
            locks.extend(project.test_gpu_requires.is_some().then(|| Self::of_gpu_tests(project, cuda)));
            for variant in project.settings.test.variants.keys() {
                locks.push(Self::of_tests(project, Some(variant), cuda)?);
            }
        }
        // Wheels that require the same share their locks.
        let mut seen = BTreeSet::new();
        locks.retain(|lock| seen.insert(lock.path.clone()));
        Ok(locks)
    }

    fn new(project: &Project, name: &str, inputs: Vec<String>, without_dependencies: Vec<String>) -> Self {
        let path = project.root.join(&project.settings.requirements).join(format!("{name}.txt"));
        let python_floor = project.python_floor;
        Self { path, name: name.to_owned(), inputs, without_dependencies, python_floor }
    }

    /// The requirements that it was resolved from.
    pub fn inputs(&self) -> &[String] {
        &self.inputs
    }

    fn inputs_digest(&self) -> String {
        let floor = self.python_floor.map(|(major, minor)| format!("{major}.{minor}"));
        let text = format!("{:?} {:?} {:?}", self.inputs, self.without_dependencies, floor);
        files::sha256(text.as_bytes())[..32].to_owned()
    }

    /// Whether the file exists and was resolved from today's inputs.
    pub fn is_current(&self) -> bool {
        let mark = format!("{INPUTS_MARK}{}", self.inputs_digest());
        std::fs::read_to_string(&self.path).is_ok_and(|text| text.lines().any(|line| line == mark))
    }

    /// Makes the lock current, or refuses to, as the policy says.
    pub fn ensure(&self, policy: LockPolicy, uv: &dyn Fn() -> Result<Uv>, output: &Output) -> Result<()> {
        if self.is_current() {
            return Ok(());
        }
        if policy == LockPolicy::Refuse {
            return self.refuse_unless_current();
        }
        output.warn(format!("the lock {} {}: resolving it now, commit the file", self.path.display(), self.state()));
        self.update(&uv()?, false, output)?;
        Ok(())
    }

    /// Fails when the lock is not current.
    pub fn refuse_unless_current(&self) -> Result<()> {
        if self.is_current() {
            return Ok(());
        }
        Err(Failure::usage(format!("the lock {} {}", self.path.display(), self.state()))
            .remedy("run `lock` once with network access and commit the file")
            .into())
    }

    fn state(&self) -> &'static str {
        if self.path.exists() { "does not fit pyproject.toml" } else { "does not exist" }
    }

    /// Resolves the inputs and writes the file; whether it changed is returned.
    pub fn update(&self, uv: &Uv, upgrade: bool, output: &Output) -> Result<bool> {
        output.step("lock", &self.path.display().to_string());
        let preferred = if upgrade { None } else { self.path.is_file().then_some(self.path.as_path()) };
        let options = CompileOptions { preferred, python_floor: self.python_floor, with_dependencies: true };
        let mut text =
            format!("# Written by `lock`; the inputs are in pyproject.toml.\n{INPUTS_MARK}{}\n", self.inputs_digest());
        text += &uv.compile(&self.inputs, &options)?;
        if !self.without_dependencies.is_empty() {
            let options = CompileOptions { with_dependencies: false, ..options };
            text += &uv.compile(&self.without_dependencies, &options)?;
        }
        files::write_if_changed(&self.path, text.as_bytes())
    }

    /// The file's text.
    pub fn text(&self) -> Result<String> {
        Ok(fs_err::read_to_string(&self.path)?)
    }

    /// The name, such as `build`.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// The wheel that is tested by default shares its locks with no other and has the plain names.
fn suffix_of_tests(project: &Project, cuda: &CudaTarget) -> String {
    let settings = &project.settings.cuda;
    match settings.tested(None) {
        Ok(default) if default == *cuda => String::new(),
        _ => cuda.lock_suffix(settings),
    }
}

/// What the wheel depends on and what its tests need, with pytest.
fn with_pytest<'a>(project: &Project, cuda: &CudaTarget, tests: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut inputs: Vec<String> = project.dependencies.clone();
    inputs.extend(cuda.requirements(&project.settings.cuda));
    inputs.extend(tests.cloned());
    if !inputs.iter().any(|requirement| requirement_name(requirement) == "pytest") {
        inputs.push("pytest".to_owned());
    }
    inputs
}

fn unknown_variant(project: &Project, variant: &str) -> Failure {
    let known: Vec<&str> = project.settings.test.variants.keys().map(String::as_str).collect();
    let remedy = match crate::settings::nearest(variant, &known) {
        Some(name) => format!("did you mean {name}?"),
        None if known.is_empty() => "add it to tool.cuwheel.test.variants".to_owned(),
        None => format!("the variants are {}", known.join(", ")),
    };
    Failure::usage(format!("there is no test variant {variant}")).remedy(remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_normalised() {
        let cases = [
            ("NumPy>=2", "numpy"),
            ("My._Pkg[x] ; python_version > '3'", "my-pkg"),
            (" a==1", "a"),
            ("a @ file:///x", "a"),
        ];
        for (requirement, name) in cases {
            assert_eq!(requirement_name(requirement), name);
        }
    }

    #[test]
    fn includes_and_imports_are_found_in_their_forms() {
        let c = "// #include <numpy/no.h>\n# include <numpy/arrayobject.h>\n#include \"torch/extension.h\"\n#include <stdio.h>";
        let found = needs_of(Path::new("a.c"), c);
        assert_eq!(found, [(2, "numpy/arrayobject.h", "numpy>=2.0"), (3, "torch/extension.h", "torch")]);
        let python = "import torchvision\n  from torch.utils import cpp_extension\nimport numpy as np";
        let found = needs_of(Path::new("setup.py"), python);
        assert_eq!(found, [(2, "torch", "torch"), (3, "numpy", "numpy>=2.0")]);
    }

    #[test]
    fn headers_that_a_crate_elsewhere_offers_count_where_they_are_included() {
        let directory = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            crate::files::write_atomically(&directory.path().join(path), text.as_bytes()).unwrap();
        };
        write(
            "p/pyproject.toml",
            "[build-system]\nrequires = ['maturin']\nbuild-backend = 'maturin'\n[project]\nname = 'p'\nversion = '1'\n",
        );
        write("p/Cargo.toml", "[package]\nname = 'p'\n[build-dependencies]\nhelper = { path = '../helper' }\n");
        write("helper/Cargo.toml", "[package]\nname = 'helper'\n");
        write("helper/include/helper_numpy.h", "#include <numpy/arrayobject.h>\n");
        let undeclared = || undeclared(&Project::open(&directory.path().join("p")).unwrap(), Linker::System).unwrap();
        assert_eq!(undeclared(), []);
        write("p/src/shim.c", "#include <helper_numpy.h>\n");
        assert_eq!(undeclared()[0].requirement, "numpy>=2.0");
    }
}
