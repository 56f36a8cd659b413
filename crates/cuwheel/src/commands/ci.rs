//! `ci`: writes a project's workflows, compares them with what is committed, and lints those of any repository.
//!
//! What is in the files is [`crate::ci::render`]; what can be wrong with workflows is [`crate::ci::lint`].

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use cuwheel_inspect::rules::{Policy, RuleSelector};
use fs_err as fs;
use serde_json::{Value, json};

use crate::ci::lint::{self, Workflows};
use crate::ci::matrix;
use crate::ci::render::{self, File, Subject};
use crate::cli::{Common, Outcome};
use crate::doctor::fix::difference;
use crate::error::{Failure, Result};
use crate::files;
use crate::findings::{self, Counts};
use crate::output::Output;
use crate::project::{Project, declared_near};
use crate::sarif;

/// The arguments of `ci`.
#[derive(clap::Args, Clone, Debug)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What `ci` does.
#[derive(clap::Subcommand, Clone, Debug)]
pub enum Command {
    /// Write the workflows of the project
    Render(RenderArguments),
    /// Fail when the workflows are not what `ci render` writes
    Check(CheckArguments),
    /// Find known mistakes in the workflows of any repository
    Lint(LintArguments),
}

/// The arguments of `ci render`.
#[derive(clap::Args, Clone, Debug)]
pub struct RenderArguments {
    /// What every command takes.
    #[command(flatten)]
    pub common: Common,
    /// Overwrite files that were edited since they were rendered, too
    #[arg(long)]
    pub force: bool,
}

/// The arguments of `ci check`.
#[derive(clap::Args, Clone, Debug)]
pub struct CheckArguments {
    /// What every command takes.
    #[command(flatten)]
    pub common: Common,
}

/// The arguments of `ci lint`.
#[derive(clap::Args, Clone, Debug)]
pub struct LintArguments {
    /// What every command takes.
    #[command(flatten)]
    pub common: Common,
    /// Repositories, or single workflows; by default the directory of --project
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Make breaches of this rule, or of a group such as `gate/`, errors; repeatable
    #[arg(long, value_name = "RULE", value_parser = lint::parse_selector)]
    pub deny: Vec<RuleSelector>,
    /// Do not report breaches of this rule or group; repeatable
    #[arg(long, value_name = "RULE", value_parser = lint::parse_selector)]
    pub allow: Vec<RuleSelector>,
    /// Write the findings as SARIF to this file, for code scanning
    #[arg(long, value_name = "FILE")]
    pub sarif: Option<PathBuf>,
}

impl Command {
    /// What the result is called.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Render(_) => "ci render",
            Self::Check(_) => "ci check",
            Self::Lint(_) => "ci lint",
        }
    }

    /// What every command takes.
    pub const fn common(&self) -> &Common {
        match self {
            Self::Render(arguments) => &arguments.common,
            Self::Check(arguments) => &arguments.common,
            Self::Lint(arguments) => &arguments.common,
        }
    }
}

/// Runs the command.
pub fn execute(project: &dyn Fn() -> Result<Project>, arguments: &Arguments, output: &Output) -> Result<Outcome> {
    match &arguments.command {
        Command::Render(arguments) => RenderedFiles::of(&project()?)?.render(arguments),
        Command::Check(arguments) => Ok(RenderedFiles::of(&project()?)?.check(arguments)),
        Command::Lint(arguments) => lint(arguments, output),
    }
}

/// How a file on the disk compares with the one that is rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It is the same, or its user's.
    Current,
    /// It is not there.
    Missing,
    /// It was rendered from other settings, or by another version.
    Outdated,
    /// A person changed it, or wrote it.
    Edited,
    /// It was rendered once, and the settings do not ask for it any more.
    Stale,
}

impl State {
    const fn name(self) -> &'static str {
        match self {
            Self::Current => "current",
            Self::Missing => "missing",
            Self::Outdated => "outdated",
            Self::Edited => "edited",
            Self::Stale => "stale",
        }
    }
}

struct Entry {
    path: &'static str,
    state: State,
    /// What is rendered; `None` for what goes.
    file: Option<File>,
    difference: String,
}

/// What is rendered, beside what is there.
pub struct RenderedFiles {
    root: PathBuf,
    command: String,
    entries: Vec<Entry>,
}

impl RenderedFiles {
    /// Renders the files of a project, and reads those that are there.
    pub fn of(project: &Project) -> Result<Self> {
        let root = project.root.clone();
        let own = read(&root.join(matrix::PATH))?;
        let rendered = render::files(&Subject::of(project), own.as_deref())?;
        let wanted: BTreeSet<&str> = rendered.iter().map(|file| file.path).collect();
        let mut entries = Vec::new();
        for path in render::paths().filter(|path| !wanted.contains(path)) {
            let Some(text) = read(&root.join(path))? else { continue };
            if render::is_as_rendered(&text) {
                let difference = difference(path, &text, "");
                entries.push(Entry { path, state: State::Stale, file: None, difference });
            }
        }
        for file in rendered {
            entries.push(Entry::of(&root, file)?);
        }
        entries.sort_by_key(|entry| entry.path);
        Ok(Self { root, command: project.settings.ci.command.clone(), entries })
    }

    /// How each file that is not as it should be differs.
    pub fn differences(&self) -> Vec<String> {
        let wrong = self.entries.iter().filter(|entry| entry.state != State::Current);
        wrong.map(|entry| format!("{}: {}\n{}", entry.state.name(), entry.path, entry.difference)).collect()
    }

    /// Writes what is missing or was rendered from other settings, and removes what is not asked for any more. What a person
    /// wrote is overwritten only if `force` says so.
    pub fn write(&self, force: bool) -> Result<()> {
        let edited: Vec<&Entry> = self.entries.iter().filter(|entry| entry.state == State::Edited).collect();
        if !edited.is_empty() && !force {
            let names: Vec<&str> = edited.iter().map(|entry| entry.path).collect();
            return Err(Failure::failed(format!("{} would lose what a person wrote", names.join(", ")))
                .details(edited.iter().map(|entry| entry.difference.clone()))
                .remedy(
                    "move the edits to [tool.cuwheel.ci] or ci/matrix.yml, or to a workflow of another name; or give \
                     --force",
                )
                .into());
        }
        self.entries.iter().try_for_each(|entry| entry.carry_out(&self.root))
    }

    fn render(&self, arguments: &RenderArguments) -> Result<Outcome> {
        let is_plan = arguments.common.dry_run;
        if !is_plan {
            self.write(arguments.force)?;
        }
        let mut text = String::new();
        let mut shown = Vec::new();
        for entry in &self.entries {
            let action = entry.action();
            let _ = writeln!(text, "{action:10} {}", entry.path);
            if is_plan {
                text += &entry.difference;
            }
            shown.push(json!({ "path": entry.path, "was": entry.state.name(), "action": action }));
        }
        Ok(Outcome::done(text, if is_plan { json!({ "plan": { "files": shown } }) } else { json!({ "files": shown }) }))
    }

    fn check(&self, arguments: &CheckArguments) -> Outcome {
        if arguments.common.dry_run {
            let paths: Vec<&str> = self.entries.iter().map(|entry| entry.path).collect();
            return Outcome::done(format!("{}\n", paths.join("\n")), json!({ "plan": { "files": paths } }));
        }
        let wrong = self.differences();
        let mut text = wrong.concat();
        if wrong.is_empty() {
            let _ = writeln!(text, "{} files are what `{} ci render` writes", self.entries.len(), self.command);
        } else {
            let is_edited = self.entries.iter().any(|entry| entry.state == State::Edited);
            let first = if is_edited { "move the edits elsewhere, or give --force: " } else { "" };
            let _ = writeln!(text, "fix: {first}run `{} ci render` and commit the files", self.command);
        }
        let file = |entry: &Entry| json!({ "path": entry.path, "state": entry.state.name(), "diff": entry.difference });
        let shown: Vec<Value> = self.entries.iter().map(file).collect();
        Outcome { text, json: json!({ "files": shown }), succeeded: wrong.is_empty() }
    }
}

impl Entry {
    fn of(root: &Path, file: File) -> Result<Self> {
        let path = file.path;
        let there = read(&root.join(path))?;
        let state = match &there {
            None => State::Missing,
            Some(_) if file.is_users => State::Current,
            Some(text) if *text == file.content => State::Current,
            Some(text) if render::is_as_rendered(text) => State::Outdated,
            Some(_) => State::Edited,
        };
        let difference = match state {
            State::Current => String::new(),
            _ => difference(path, there.as_deref().unwrap_or_default(), &file.content),
        };
        Ok(Self { path, state, file: Some(file), difference })
    }

    const fn action(&self) -> &'static str {
        match self.state {
            State::Current => "unchanged",
            State::Stale => "removed",
            _ => "written",
        }
    }

    fn carry_out(&self, root: &Path) -> Result<()> {
        let path = root.join(self.path);
        match &self.file {
            None => fs::remove_file(path)?,
            Some(_) if self.state == State::Current => {}
            Some(file) => {
                files::write_atomically(&path, file.content.as_bytes())?;
                if file.is_executable {
                    fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))?;
                }
            }
        }
        Ok(())
    }
}

/// The text of a file; `None` where there is none.
fn read(path: &Path) -> Result<Option<String>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// What `ci lint` looks at.
fn lint(arguments: &LintArguments, output: &Output) -> Result<Outcome> {
    let paths = match &arguments.paths[..] {
        [] => vec![arguments.common.project.clone()],
        given => given.to_vec(),
    };
    if arguments.sarif.is_some() && paths.len() > 1 {
        return Err(Failure::usage("--sarif is for one repository: its paths are relative to it")
            .remedy("lint the repositories one by one")
            .into());
    }
    if arguments.common.dry_run {
        let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        return Ok(Outcome::done(format!("{}\n", names.join("\n")), json!({ "plan": { "paths": names } })));
    }
    let (mut text, mut shown, mut all) = (String::new(), Vec::new(), Counts::default());
    for path in &paths {
        let workflows = Workflows::read(path)?;
        output.step("lint", &format!("{} files in {}", workflows.count(), path.display()));
        let own = declared_near(workflows.directory())?;
        let of_settings = own.map(|own| (own.settings.ci.deny, own.settings.ci.allow)).unwrap_or_default();
        let policy =
            Policy::default().with(of_settings.0, of_settings.1).with(arguments.deny.clone(), arguments.allow.clone());
        let found = policy.apply(lint::check(&workflows));
        if let Some(path) = &arguments.sarif {
            let document = sarif::document_of_project("ci lint", lint::RULES, &found);
            files::write_atomically(&files::absolute(path)?, format!("{document:#}\n").as_bytes())?;
        }
        let counts = Counts::of(&found);
        let _ = writeln!(text, "{}: {} files, findings: {}", path.display(), workflows.count(), counts.describe());
        text += &findings::render(&found, arguments.common.verbose);
        all.errors += counts.errors;
        all.warnings += counts.warnings;
        all.notes += counts.notes;
        shown.push(json!({ "path": path, "files": workflows.count(), "findings": findings::to_json(&found) }));
    }
    let json = json!({
        "repositories": shown,
        "counts": { "errors": all.errors, "warnings": all.warnings, "notes": all.notes },
    });
    Ok(Outcome { text, json, succeeded: all.errors == 0 })
}
