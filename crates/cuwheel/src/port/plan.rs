//! From facts to a new project: its files, the copies of old ones, what a human has to do, and what was dropped. Pure.

use std::path::PathBuf;

use serde::Serialize;

use super::copies::Copies;
use super::existing::ExistingProject;
use super::layout::Layout;
use super::{dropped, kernels, render, tasks};
use crate::error::{Failure, Result};
use crate::new::origin::Origin;
use crate::new::rendering::RenderedFile;
use crate::requirements::requirement_name;

/// What cuwheel's crates are in the new project's Cargo.toml, as inline tables of TOML.
#[derive(Clone, Debug, Serialize)]
pub struct Dependencies {
    /// `cuwheel`.
    pub toolkit: String,
    /// `cuwheel-build`.
    pub build: String,
    /// Whether they are those of a checkout.
    #[serde(skip)]
    pub is_checkout: bool,
}

impl Dependencies {
    /// Those of an origin.
    pub fn of(origin: &Origin) -> Result<Self> {
        let tables = origin.dependencies()?;
        let table = |name: &str| tables[name].as_str().unwrap_or_default().to_owned();
        Ok(Self { toolkit: table("toolkit"), build: table("build"), is_checkout: origin.root().is_some() })
    }
}

/// What is left open by the facts.
#[derive(Clone, Debug)]
pub struct Options {
    /// The name of the new distribution, in place of the old one.
    pub name: Option<String>,
    /// Where cuwheel's crates come from.
    pub dependencies: Dependencies,
}

/// Something that a human has to do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Task {
    /// What, in a few words.
    pub title: String,
    /// The place in the old project.
    pub old: Option<String>,
    /// The place in the new one.
    pub new: Option<String>,
    /// How, and what to think of.
    pub detail: String,
    /// The single things that it is about.
    pub points: Vec<String>,
}

/// Something that the new project does not take over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Dropped {
    /// What.
    pub what: String,
    /// Where it was.
    pub old: Option<String>,
    /// Why it is not needed.
    pub why: String,
}

/// The new project.
#[derive(Clone, Debug)]
pub struct Port {
    /// The name of the distribution.
    pub name: String,
    /// Modules, crate and library.
    pub layout: Layout,
    /// Files that are written.
    pub files: Vec<RenderedFile>,
    /// Files that are copied: from the old path to the new one.
    pub copies: Vec<(String, String)>,
    /// What a human has to do, in this order.
    pub tasks: Vec<Task>,
    /// What was dropped.
    pub dropped: Vec<Dropped>,
    /// The old project.
    pub source: PathBuf,
}

/// Decides what the new project consists of.
pub fn plan(existing: &ExistingProject, options: &Options) -> Result<Port> {
    let name = name(existing, options)?;
    check_extensions(existing)?;
    let layout = Layout::of(existing, &name);
    let kernels = kernels::of(existing, &layout);
    let copies = Copies::of(existing, &layout, &kernels);
    let tasks = tasks::all(existing, &layout, &copies, &kernels);
    let dropped = dropped::all(existing);
    let inputs = render::Inputs { existing, layout: &layout, copies: &copies, kernels: &kernels, options };
    let mut files = render::files(&inputs)?;
    files.push(render::porting(&inputs, &tasks, &dropped)?);
    files.sort_by(|one, other| one.path.cmp(&other.path));
    // What is written takes the place of what would be copied there.
    let is_written = |path: &String| files.iter().any(|file| file.path == *path);
    let copied = copies.files.iter().filter(|(to, _)| !is_written(to)).map(|(to, from)| (from.clone(), to.clone()));
    Ok(Port { name, copies: copied.collect(), layout, files, tasks, dropped, source: existing.root.clone() })
}

fn name(existing: &ExistingProject, options: &Options) -> Result<String> {
    let given = options.name.clone().or_else(|| existing.name.clone());
    let Some(name) = given else {
        let gaps = existing.gaps.iter().filter(|gap| gap.what == "name" || gap.what.starts_with("the arguments"));
        return Err(Failure::usage("the name of the project is not known without running setup.py")
            .details(gaps.map(|gap| format!("{}: {}", gap.place, gap.source)))
            .remedy("give it as the argument NAME")
            .into());
    };
    let is_name = name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.ends_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    if !is_name || requirement_name(&name).is_empty() {
        return Err(Failure::usage(format!("{name} is no name of a distribution"))
            .remedy("give another one as the argument NAME: ASCII letters, digits, and -, _ and . between them")
            .into());
    }
    Ok(name)
}

/// A project of Python only has nothing that Rust could take over.
fn check_extensions(existing: &ExistingProject) -> Result<()> {
    let is_declared = existing.gaps.iter().any(|gap| {
        ["ext_modules", "rust_extensions", "cffi_modules", "the arguments"]
            .iter()
            .any(|start| gap.what.starts_with(start))
    });
    if !existing.extensions.is_empty() || is_declared {
        return Ok(());
    }
    Err(Failure::usage("the project has no extension module: there is nothing to port")
        .detail("neither ext_modules nor rust_extensions is declared in setup.py, setup.cfg or pyproject.toml")
        .remedy("a project of Python only needs no native build: keep setuptools, or start with `cuwheel new NAME` to write a native module")
        .into())
}
