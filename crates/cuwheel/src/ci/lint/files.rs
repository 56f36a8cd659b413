//! The workflows and composite actions of a repository, read once.
//!
//! What GitHub does not run is not read: only `.github/workflows`, and `action.yml` wherever it is below `.github`.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use cuwheel_inspect::rules::Finding;

use super::catalog;
use crate::ci::yaml::{self, Node};
use crate::error::{Failure, Result};
use crate::files;

/// Files larger than this are no workflows.
const LARGEST: u64 = 4 << 20;

/// What `ci lint` reads.
#[derive(Debug)]
pub struct Workflows {
    directory: PathBuf,
    pub(super) files: Vec<File>,
    pub(super) unreadable: Vec<Finding>,
    /// `project.name`, where there is a pyproject.toml.
    pub(super) project: Option<String>,
}

/// A workflow or a composite action.
#[derive(Debug)]
pub(super) struct File {
    pub(super) path: String,
    pub(super) text: String,
    pub(super) root: Rc<Node>,
}

impl Workflows {
    /// Reads those of a repository, or one file.
    pub fn read(path: &Path) -> Result<Self> {
        let path = files::absolute(path)?;
        let missing = |what: &str| {
            Failure::usage(format!("{} {what}", path.display()))
                .remedy("give a directory with .github/workflows, or a workflow")
        };
        if path.is_file() {
            let directory = path.parent().map(Path::to_path_buf).unwrap_or_default();
            let mut workflows = Self::none(directory);
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            workflows.add(&name, &path)?;
            return Ok(workflows);
        }
        if !path.is_dir() {
            return Err(missing("does not exist").into());
        }
        let mut workflows = Self::none(path.clone());
        let github = path.join(".github");
        for found in yaml_files(&github)? {
            let Ok(inner) = found.strip_prefix(&path) else { continue };
            let name = files::utf8(inner)?.to_owned();
            let is_workflow = inner.parent() == Some(Path::new(".github/workflows"));
            let is_action = ["action.yml", "action.yaml"].iter().any(|action| inner.ends_with(action));
            if is_workflow || is_action {
                workflows.add(&name, &found)?;
            }
        }
        if workflows.count() == 0 {
            return Err(missing("has no workflows").into());
        }
        workflows.project = project_name(&path);
        Ok(workflows)
    }

    /// Of texts by path; for tests and for who has them at hand.
    pub fn from_texts<'text>(texts: impl IntoIterator<Item = (&'text str, &'text str)>) -> Self {
        let mut workflows = Self::none(PathBuf::new());
        for (path, text) in texts {
            workflows.add_text(path, text.to_owned());
        }
        workflows
    }

    fn none(directory: PathBuf) -> Self {
        Self { directory, files: Vec::new(), unreadable: Vec::new(), project: None }
    }

    /// How many files there are.
    pub fn count(&self) -> usize {
        self.files.len() + self.unreadable.len()
    }

    /// Where they were looked for.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    fn add(&mut self, name: &str, path: &Path) -> Result<()> {
        if fs_err::metadata(path)?.len() > LARGEST {
            self.unreadable.push(Finding::new(&catalog::UNREADABLE, "the file is larger than 4 MiB").at(name));
            return Ok(());
        }
        match String::from_utf8(fs_err::read(path)?) {
            Ok(text) => self.add_text(name, text),
            Err(_) => self.unreadable.push(Finding::new(&catalog::UNREADABLE, "the file is not UTF-8").at(name)),
        }
        Ok(())
    }

    fn add_text(&mut self, path: &str, text: String) {
        let problem = match yaml::parse(&text) {
            Ok(Some(root)) if !root.entries().is_empty() => {
                self.files.push(File { path: path.to_owned(), text, root });
                return;
            }
            Ok(_) => (1, "there is no mapping in it".to_owned()),
            Err(error) => (error.line, error.message),
        };
        self.unreadable.push(Finding::new(&catalog::UNREADABLE, problem.1).at(path).on_line(Some(problem.0)));
    }
}

/// YAML files below a directory, in the order of paths.
fn yaml_files(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    if !directory.is_dir() {
        return Ok(found);
    }
    for entry in ignore::WalkBuilder::new(directory).standard_filters(false).sort_by_file_path(Ord::cmp).build() {
        let path = entry?.into_path();
        if path.is_file() && path.extension().is_some_and(|extension| extension == "yml" || extension == "yaml") {
            found.push(path);
        }
    }
    Ok(found)
}

/// The name of the distribution that the repository makes.
fn project_name(directory: &Path) -> Option<String> {
    let text = std::fs::read_to_string(directory.join("pyproject.toml")).ok()?;
    let document: toml_edit::DocumentMut = text.parse().ok()?;
    Some(document.get("project")?.get("name")?.as_str()?.to_owned())
}
