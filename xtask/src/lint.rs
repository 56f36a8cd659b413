//! `lint`: everything that is checked without running tests.

use std::path::Path;

use cuwheel::cache_keys;
use cuwheel::cargo;
use cuwheel::ci::lint::{self, Workflows};
use cuwheel::cli::Outcome;
use cuwheel::commands::ci::RenderedFiles;
use cuwheel::environment::{Access, BuildEnvironment};
use cuwheel::error::{Failure, Result};
use cuwheel::files;
use cuwheel::findings;
use cuwheel::interpreter;
use cuwheel::output::Output;
use cuwheel::process::{self, Process};
use cuwheel::project::Project;
use cuwheel::requirements::Lock;
use serde_json::json;

use crate::tidy;

/// The arguments of `lint`.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Format the sources and write the generated files instead of only checking them
    #[arg(long)]
    fix: bool,
}

/// Runs the command.
pub(crate) fn execute(arguments: &Arguments, output: &Output) -> Result<Outcome> {
    process::install_interrupt_handler()?;
    let project = Project::find(Path::new("."))?;
    generated_files(&project.root, arguments.fix)?;
    workflows(&project, arguments.fix)?;
    tidy::check(&project.root)?;
    cache_keys::check(&project)?;
    Lock::all(&project)?.iter().try_for_each(Lock::refuse_unless_current)?;
    let cargo = cargo(&project, output)?;
    rule_pages(&cargo, arguments.fix, output)?;
    let format: &[&str] = if arguments.fix { &["fmt", "--all"] } else { &["fmt", "--all", "--check"] };
    run(&cargo.clone().args(format), "the sources are not formatted", "run `cargo xtask lint --fix`", output)?;
    let clippy = ["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"];
    run(&cargo.clone().args(clippy), "clippy has complaints", "mend them, or expect them with a reason", output)?;
    let documentation = cargo.args(["doc", "--workspace", "--no-deps", "--quiet"]).env("RUSTDOCFLAGS", "-D warnings");
    run(&documentation, "the documentation has faults", "mend them", output)?;
    Ok(Outcome::done("lint found nothing\n".to_owned(), json!({})))
}

/// The workflows are rendered from the templates, and keep to the rules that others are held to.
fn workflows(project: &Project, fix: bool) -> Result<()> {
    if fix {
        RenderedFiles::of(project)?.write(false)?;
    }
    let wrong = RenderedFiles::of(project)?.differences();
    if !wrong.is_empty() {
        return Err(Failure::failed("the workflows are not what is rendered")
            .details(wrong)
            .remedy("run `cargo xtask ci render` and commit the files")
            .into());
    }
    let found = findings::render(&lint::check(&Workflows::read(&project.root)?), true);
    if found.is_empty() {
        return Ok(());
    }
    Err(Failure::failed("the workflows break rules of `ci lint`").detail(found).remedy("mend the templates").into())
}

/// Cargo with the environment that the build scripts of the workspace read.
fn cargo(project: &Project, output: &Output) -> Result<Process> {
    let interpreter = interpreter::find(None, output)?;
    let access = Access { offline: false, locked: true };
    let environment = BuildEnvironment::ready(project, &interpreter, access, output)?;
    Ok(cargo::with_headers(cargo::process(), &interpreter, &environment)?.directory(&project.root))
}

/// The pages need the corpora of what is broken, which are compiled.
fn rule_pages(cargo: &Process, fix: bool, output: &Output) -> Result<()> {
    let pages = [
        ("cuwheel-inspect", "rule_pages", "docs/rules"),
        ("cuwheel", "doctor_rule_pages", "docs/doctor-rules"),
        ("cuwheel", "ci_rule_pages", "docs/ci-rules"),
    ];
    for (package, example, directory) in pages {
        let arguments = ["run", "--quiet", "--package", package, "--example", example, "--", directory];
        let process = cargo.clone().args(arguments).args(fix.then_some("--fix"));
        let remedy = format!("run `cargo xtask lint --fix` and commit {directory}");
        run(&process, "pages of rules are not what the code says", &remedy, output)?;
    }
    Ok(())
}

fn run(process: &Process, message: &str, remedy: &str, output: &Output) -> Result<()> {
    output.step("run", &process.describe());
    let finished = process.stream(&mut |line| output.live(line))?;
    if finished.status.success() {
        return Ok(());
    }
    Err(Failure::failed(message).remedy(remedy).into())
}

/// Pages and parts of pages that are made from the code are committed, and checked here.
fn generated_files(root: &Path, fix: bool) -> Result<()> {
    let tables = [
        ("docs/check-wheel.md", cuwheel::wheel_check::markdown()),
        ("docs/doctor.md", cuwheel::doctor::markdown()),
        ("docs/ci.md", cuwheel::ci::lint::markdown()),
    ];
    let mut contents = vec![(root.join("docs/settings.md"), settings_page())];
    for (path, table) in tables {
        let path = root.join(path);
        let page = std::fs::read_to_string(&path)
            .map_err(|error| Failure::failed(format!("{} cannot be read: {error}", path.display())))?;
        let page = with_rules(&page, &table).ok_or_else(|| {
            Failure::failed(format!("{} has no place for the rules", path.display()))
                .remedy("put `<!-- rules -->` and `<!-- end of rules -->` on lines of their own")
        })?;
        contents.push((path, page));
    }
    for (path, content) in contents {
        if fix {
            files::write_if_changed(&path, content.as_bytes())?;
        } else if std::fs::read_to_string(&path).ok().as_deref() != Some(&content) {
            return Err(Failure::failed(format!("{} is not what the code says", path.display()))
                .remedy("run `cargo xtask lint --fix` and commit the file")
                .into());
        }
    }
    Ok(())
}

const RULES_START: &str = "<!-- rules -->\n";
const RULES_END: &str = "<!-- end of rules -->\n";

/// The page with `table` between its marks; `None` where it has none.
fn with_rules(page: &str, table: &str) -> Option<String> {
    let (before, rest) = page.split_once(RULES_START)?;
    let (_, after) = rest.split_once(RULES_END)?;
    Some(format!("{before}{RULES_START}{table}{RULES_END}{after}"))
}

fn settings_page() -> String {
    format!(
        "# Settings\n\n\
         This page is made from the code by `cargo xtask lint --fix`.\n\n\
         ## `[tool.cuwheel]` in pyproject.toml\n\n\
         An unknown key is an error that suggests the nearest name.\n\n{}\n\
         ## Environment variables\n\n{}",
        cuwheel::settings_schema::markdown(),
        cuwheel::env_vars::markdown()
    )
}
