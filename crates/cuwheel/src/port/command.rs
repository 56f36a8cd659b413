//! `new --from-setuptools`: arguments → facts and plan → files. The seam to the command line; see [`crate::commands::new`].

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::existing::{self, ExistingProject};
use super::plan::{self, Dependencies, Options, Port};
use super::write;
use crate::cli::Outcome;
use crate::error::{self, Failure, FailureKind, Result};
use crate::interpreter;
use crate::new::origin::Origin;
use crate::output::Output;
use crate::process::find_program;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The existing project.
    pub source: &'a Path,
    /// The name of the new one, in place of the old name.
    pub name: Option<&'a str>,
    /// Where it goes.
    pub path: Option<&'a Path>,
    /// Whether only the plan is shown.
    pub is_dry_run: bool,
    /// Where cuwheel's crates come from.
    pub origin: Origin,
}

/// Reads the existing project, and writes the new one.
pub fn execute(request: &Request<'_>, output: &Output) -> Result<Outcome> {
    output.step("read", &request.source.display().to_string());
    let existing = existing::read(request.source, &parser(output)?)?;
    let options = Options { name: request.name.map(str::to_owned), dependencies: Dependencies::of(&request.origin)? };
    let port = plan::plan(&existing, &options)?;
    let destination = write::destination(&port.name, request.path, &existing.root)?;
    if !request.is_dry_run {
        output.step("write", &destination.directory.display().to_string());
        write::write(&port, &destination)?;
    }
    let json = to_json(&existing, &port, &destination.directory, request.is_dry_run);
    Ok(Outcome::done(render(&existing, &port, &destination.directory, request.is_dry_run), json))
}

/// An interpreter that can parse: the one that builds, or any other.
fn parser(output: &Output) -> Result<PathBuf> {
    match interpreter::find(None, output) {
        Ok(found) => Ok(found.base_executable),
        Err(error) if error::kind_of(&error) != FailureKind::Machine => Err(error),
        Err(_) => ["python3", "python"].iter().find_map(|name| find_program(name)).ok_or_else(|| {
            Failure::machine("there is no Python on PATH, which setup.py is parsed with")
                .remedy("install CPython 3.11 or newer")
                .into()
        }),
    }
}

fn render(existing: &ExistingProject, port: &Port, destination: &Path, is_dry_run: bool) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "{name:9} {value}");
    };
    line("project", &format!("{} {}", port.name, existing.version.value.as_deref().unwrap_or("(version not known)")));
    line("from", &existing.root.display().to_string());
    line(if is_dry_run { "would be" } else { "written" }, &destination.display().to_string());
    line("library", &port.layout.library);
    for module in &port.layout.modules {
        let extension = &existing.extensions[module.extension];
        let found = super::tasks::counted(extension.entries.len());
        line("module", &format!("{}, {}: {found} to port", module.name, extension.kind.name()));
    }
    line("files", &format!("{} written, {} copied", port.files.len(), port.copies.len()));
    line("unknown", &format!("{} values that only running setup.py would tell", existing.gaps.len()));
    line("tasks", &format!("{}, in PORTING.md", port.tasks.len()));
    for (index, task) in port.tasks.iter().enumerate() {
        let place = task.old.as_ref().map(|old| format!(" ({old})")).unwrap_or_default();
        let _ = writeln!(text, "  {:2}. {}{place}", index + 1, task.title);
    }
    if is_dry_run {
        for file in &port.files {
            let _ = writeln!(text, "  write {}", file.path);
        }
        for (from, to) in &port.copies {
            let _ = writeln!(text, "  copy  {from} to {to}");
        }
    }
    text
}

fn to_json(existing: &ExistingProject, port: &Port, destination: &Path, is_dry_run: bool) -> Value {
    let copies: Vec<Value> = port.copies.iter().map(|(from, to)| json!({ "from": from, "to": to })).collect();
    json!({
        "source": existing.root,
        "destination": destination,
        "is_written": !is_dry_run,
        "facts": existing,
        "layout": port.layout,
        "files": port.files.iter().map(|file| &file.path).collect::<Vec<_>>(),
        "copies": copies,
        "tasks": port.tasks,
        "dropped": port.dropped,
    })
}
