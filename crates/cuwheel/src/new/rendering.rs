//! The files of a new project, made from the templates. Pure: nothing is written.

use serde_json::{Value, json};
use toml_edit::DocumentMut;

use super::license::License;
use super::name::ProjectName;
use super::origin::Origin;
use crate::ci;
use crate::ci::settings::Provider;
use crate::cuda::{PACKAGED_SINCE, Packaging};
use crate::error::Result;
use crate::settings::Settings;
use crate::templates::Template;

/// Everything that decides what is in a project.
#[derive(Clone, Debug)]
pub struct ProjectOptions {
    /// The name.
    pub name: ProjectName,
    /// The majors of CUDA, sorted.
    pub cuda: Vec<u32>,
    /// How their wheels are made.
    pub wheels: Packaging,
    /// Whether there is a C shim over NumPy's C API.
    pub shim: bool,
    /// The licence.
    pub license: License,
    /// Where cuwheel's crates come from.
    pub origin: Origin,
    /// The systems that its workflows are for.
    pub ci: Vec<Provider>,
}

/// A file of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderedFile {
    /// Its path in the project, with slashes.
    pub path: String,
    /// Its text.
    pub text: String,
    /// Whether it is a program.
    pub is_executable: bool,
}

impl RenderedFile {
    /// One that is read and not run.
    pub fn new(path: impl Into<String>, text: String) -> Self {
        Self { path: path.into(), text, is_executable: false }
    }
}

/// The oldest Python of the templates.
const PYTHON_FLOOR: (u8, u8) = (3, 11);
/// The templates of projects.
const DIRECTORY: &str = "extension";
/// Cargo leaves directories with a Cargo.toml out of a package, so those of the templates have a suffix.
const SUFFIX: &str = ".template";
/// What belongs to the C shim.
const OF_THE_SHIM: &[&str] = &["src/host.rs", "src/shim.c", "tests/cpu/test_host_sum.py"];

/// All files of a project, in the order of their paths.
pub fn render(options: &ProjectOptions) -> Result<Vec<RenderedFile>> {
    let values = values(options)?;
    let mut files = Vec::new();
    for template in Template::below(DIRECTORY) {
        let path = template.path.strip_prefix(DIRECTORY).and_then(|path| path.strip_prefix('/')).unwrap_or_default();
        let path = path.strip_suffix(SUFFIX).unwrap_or(path).replace("__package__", &options.name.package());
        if options.shim || !OF_THE_SHIM.contains(&path.as_str()) {
            files.push(RenderedFile::new(path, template.render(&values)?));
        }
    }
    let licenses = options.license.render(&values)?.into_iter();
    files.extend(licenses.map(|(path, text)| RenderedFile::new(path, text)));
    if !options.ci.is_empty() {
        files.extend(workflows(options, &files)?);
    }
    files.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(files)
}

/// The workflows, as `ci render` makes them from the settings of the project.
fn workflows(options: &ProjectOptions, files: &[RenderedFile]) -> Result<Vec<RenderedFile>> {
    let pyproject = files.iter().find(|file| file.path == "pyproject.toml").map_or("", |file| &file.text);
    let document: DocumentMut = pyproject.parse()?;
    let settings = Settings::from_item(document.get("tool").and_then(|tool| tool.get("cuwheel")))?;
    let subject = ci::render::Subject {
        name: options.name.distribution().to_owned(),
        python_floor: Some(PYTHON_FLOOR),
        limited: ci::render::Limited::Optional,
        rust: ci::render::RUST.to_owned(),
        gpu_timeout_s: settings.test_gpu.total_timeout_s,
        cuda_majors: settings.cuda.majors,
        settings: settings.ci,
    };
    let rendered = ci::render::files(&subject, None)?.into_iter();
    let file = |file: ci::render::File| RenderedFile {
        path: file.path.to_owned(),
        text: file.content,
        is_executable: file.is_executable,
    };
    Ok(rendered.map(file).collect())
}

fn values(options: &ProjectOptions) -> Result<Value> {
    let ProjectOptions { name, cuda, wheels, shim, license, origin, ci } = options;
    let providers: Vec<String> = ci.iter().map(|provider| provider.name().to_owned()).collect();
    let quoted = |texts: &[String]| texts.iter().map(|text| format!("\"{text}\"")).collect::<Vec<_>>().join(", ");
    let majors: Vec<String> = cuda.iter().map(ToString::to_string).collect();
    let license_files: Vec<String> = license.file_names().map(str::to_owned).collect();
    Ok(json!({
        "name": name.distribution(),
        "package": name.package(),
        "crate_name": name.crate_name(),
        "shim": shim,
        "license": license.expression,
        "license_files": quoted(&license_files),
        "checkout": origin.root(),
        "dependency": origin.dependencies()?,
        "majors": quoted(&majors),
        "providers": quoted(&providers),
        "has_ci_settings": *ci != [Provider::GitHub],
        "wheels": wheels.name(),
        "is_merged": *wheels == Packaging::Merged,
        "has_cuda_settings": *cuda != [13],
        "has_packages": cuda.iter().any(|major| *major >= PACKAGED_SINCE),
        "needs_toolkit": cuda.iter().any(|major| *major < PACKAGED_SINCE),
    }))
}
