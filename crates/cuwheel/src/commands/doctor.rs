//! `doctor`: says what is wrong with a project and with the machine, by named rules, and mends what needs no judgement.
//!
//! Projects of any build backend are read, and nothing of them is run. The rules are [`crate::doctor`].

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use cuwheel_inspect::rules::{Finding, Policy, RuleSelector};
use serde_json::{Value, json};

use crate::cli::{Common, Outcome};
use crate::doctor::baseline::{Baseline, Known};
use crate::doctor::machine::{self, Machine, Needs};
use crate::doctor::{self, Edit, Found, ProjectFacts, RULES, fix};
use crate::error::{self, Failure, FailureKind, Result};
use crate::files;
use crate::findings::{self, Counts};
use crate::interpreter::{self, Interpreter, Request};
use crate::output::Output;
use crate::process::{check_interrupted, find_program};
use crate::sarif;
use crate::settings::{DoctorSettings, Settings};

/// The arguments of `doctor`.
#[derive(clap::Args, Clone, Debug)]
pub struct Arguments {
    /// What every command takes.
    #[command(flatten)]
    pub common: Common,
    /// The directory of a project, or one inside it, instead of --project
    #[arg(value_name = "PATH")]
    pub path: Option<PathBuf>,
    /// Edit pyproject.toml where that needs no judgement; comments and layout stay
    #[arg(long)]
    pub fix: bool,
    /// Look at the project only, and not at this machine
    #[arg(long)]
    pub no_machine: bool,
    /// Make breaches of this rule, or of a group such as `build/`, errors; repeatable
    #[arg(long, value_name = "RULE", value_parser = doctor::parse_selector)]
    pub deny: Vec<RuleSelector>,
    /// Do not report breaches of this rule or group; repeatable
    #[arg(long, value_name = "RULE", value_parser = doctor::parse_selector)]
    pub allow: Vec<RuleSelector>,
    /// A file of known findings, which are not reported again
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// Write everything that is found to the file of known findings
    #[arg(long)]
    pub write_baseline: bool,
    /// Write the findings as SARIF to this file, for code scanning
    #[arg(long, value_name = "FILE")]
    pub sarif: Option<PathBuf>,
    /// The interpreter to look at, and to read Python files with, as a path or a version such as 3.12
    #[arg(long, value_name = "PYTHON")]
    pub python: Option<Request>,
}

/// Which project is looked at, and by what.
#[derive(Debug)]
pub struct Plan {
    root: PathBuf,
    policy: Policy,
    baseline: Option<PathBuf>,
    arguments: Arguments,
}

/// What was found in one look.
struct Look {
    facts: ProjectFacts,
    found: Vec<Found>,
    known: usize,
    gone: Vec<Known>,
}

/// The edits that were made, or would be.
struct Mended {
    edits: Vec<Edit>,
    difference: String,
    is_written: bool,
}

/// Runs the command.
pub fn execute(arguments: &Arguments, output: &Output) -> Result<Outcome> {
    let plan = Plan::new(arguments)?;
    if arguments.common.dry_run && !arguments.fix {
        return Ok(Outcome::done(plan.render(), plan.to_json()));
    }
    plan.run(output)
}

impl Plan {
    /// Finds the project and its settings.
    pub fn new(arguments: &Arguments) -> Result<Self> {
        let start = arguments.path.as_ref().unwrap_or(&arguments.common.project);
        let root = doctor::root_of(start)?;
        let settings = settings(&root);
        let (deny, allow) =
            settings.as_ref().map_or_else(Default::default, |own| (own.deny.clone(), own.allow.clone()));
        let policy = Policy::default().with(deny, allow).with(arguments.deny.clone(), arguments.allow.clone());
        let of_settings = settings.and_then(|own| own.baseline).map(|path| root.join(path));
        let baseline = match &arguments.baseline {
            Some(path) => Some(files::absolute(path)?),
            None => of_settings,
        };
        if arguments.write_baseline && baseline.is_none() {
            return Err(Failure::usage("--write-baseline has no file to write")
                .remedy("name it with --baseline FILE, or with doctor.baseline in [tool.cuwheel]")
                .into());
        }
        Ok(Self { root, policy, baseline, arguments: arguments.clone() })
    }

    /// The plan as a person reads it.
    pub fn render(&self) -> String {
        let mut text = format!("project   {}\n", self.root.display());
        for (name, selectors) in [("deny", &self.arguments.deny), ("allow", &self.arguments.allow)] {
            for selector in selectors {
                let _ = writeln!(text, "{name:9} {}", selector.as_str());
            }
        }
        let machine = if self.arguments.no_machine { "is not looked at" } else { "is looked at" };
        let _ = writeln!(text, "machine   {machine}");
        if let Some(path) = &self.baseline {
            let verb = if self.arguments.write_baseline { "written to" } else { "read from" };
            let _ = writeln!(text, "known     {verb} {}", path.display());
        }
        text
    }

    /// The plan for machines.
    pub fn to_json(&self) -> Value {
        let names = |selectors: &[RuleSelector]| -> Value { selectors.iter().map(RuleSelector::as_str).collect() };
        json!({ "plan": {
            "project": self.root,
            "deny": names(&self.arguments.deny),
            "allow": names(&self.arguments.allow),
            "machine": !self.arguments.no_machine,
            "baseline": self.baseline,
            "write_baseline": self.arguments.write_baseline,
        }})
    }

    /// Looks at the project and the machine, mends what was asked for, and reports what is left.
    pub fn run(&self, output: &Output) -> Result<Outcome> {
        let python = match interpreter::find(self.arguments.python.as_ref(), output) {
            Err(error) if error::kind_of(&error) != FailureKind::Machine => return Err(error),
            found => found,
        };
        let parser = parser(&python);
        if parser.is_none() {
            output.warn("there is no Python on PATH: Python files are not read");
        }
        let machine = if self.arguments.no_machine {
            None
        } else {
            output.step("look", "at this machine");
            Some(Machine::look(&self.root, python)?)
        };
        let mut look = self.look(parser.as_deref(), machine.as_ref(), output)?;
        let mended = if self.arguments.fix { self.mend(&look)? } else { None };
        if mended.as_ref().is_some_and(|mended| mended.is_written) {
            look = self.look(parser.as_deref(), machine.as_ref(), output)?;
        }
        if let Some(path) = self.baseline.as_ref().filter(|_| self.arguments.write_baseline) {
            Baseline::of(&look.found).write(path)?;
        }
        if let Some(path) = &self.arguments.sarif {
            let document = sarif::document_of_project("doctor", RULES, &look.findings());
            files::write_atomically(&files::absolute(path)?, format!("{document:#}\n").as_bytes())?;
        }
        Ok(self.outcome(&look, machine.as_ref(), mended.as_ref()))
    }

    fn look(&self, parser: Option<&Path>, machine: Option<&Machine>, output: &Output) -> Result<Look> {
        check_interrupted()?;
        output.step("read", &self.root.display().to_string());
        let facts = ProjectFacts::read(&self.root, parser)?;
        let mut diagnosis = doctor::check_project(&facts);
        if let Some(machine) = machine {
            diagnosis.extend(machine::check(machine, &Needs::of(&facts)));
        }
        let found = diagnosis.under(&self.policy);
        // A list that is about to be written has everything.
        let (found, known, gone) = match &self.baseline {
            Some(path) if !self.arguments.write_baseline => Baseline::read(path)?.sift(found),
            _ => (found, 0, Vec::new()),
        };
        Ok(Look { facts, found, known, gone })
    }

    /// Edits pyproject.toml; only says how with `--dry-run`.
    fn mend(&self, look: &Look) -> Result<Option<Mended>> {
        let mut edits: Vec<Edit> = look.found.iter().filter_map(|found| found.edit.clone()).collect();
        edits.sort();
        edits.dedup();
        if edits.is_empty() {
            return Ok(None);
        }
        // A link stays one.
        let path = fs_err::canonicalize(self.root.join("pyproject.toml"))?;
        let before = fs_err::read_to_string(&path)?;
        let after = fix::apply(&before, &edits)?;
        if after == before {
            return Ok(None);
        }
        let difference = fix::difference("pyproject.toml", &before, &after);
        let is_written = !self.arguments.common.dry_run && files::write_if_changed(&path, after.as_bytes())?;
        Ok(Some(Mended { edits, difference, is_written }))
    }

    fn outcome(&self, look: &Look, machine: Option<&Machine>, mended: Option<&Mended>) -> Outcome {
        let findings = look.findings();
        let counts = Counts::of(&findings);
        let mut text = String::new();
        if let Some(mended) = mended {
            text += &mended.difference;
            text.push('\n');
        } else if self.arguments.fix {
            text += "nothing can be mended without judgement\n\n";
        }
        text += &self.render_look(look, machine);
        let _ = writeln!(text, "{:9} {}", "findings", counts.describe());
        text += &findings::render(&findings, self.arguments.common.verbose);
        let mut shown = findings::to_json(&findings);
        for (finding, found) in shown.as_array_mut().into_iter().flatten().zip(&look.found) {
            finding["fixable"] = json!(found.edit.is_some());
        }
        let json = json!({
            "project": {
                "root": look.facts.root(),
                "name": look.facts.name(),
                "backend": look.facts.backend().name(),
                "files": look.facts.file_count(),
            },
            "machine": machine.map(Machine::to_json),
            "findings": shown,
            "counts": { "errors": counts.errors, "warnings": counts.warnings, "notes": counts.notes },
            "baseline": self.baseline.as_ref().map(|path| json!({
                "path": path,
                "is_written": self.arguments.write_baseline,
                "known": look.known,
                "gone": look.gone,
            })),
            "fix": mended.map(|mended| json!({
                "path": "pyproject.toml",
                "edits": mended.edits.len(),
                "diff": mended.difference,
                "is_written": mended.is_written,
            })),
        });
        // A list of what is known was asked for, and is there.
        Outcome { text, json, succeeded: counts.errors == 0 || self.arguments.write_baseline }
    }

    fn render_look(&self, look: &Look, machine: Option<&Machine>) -> String {
        let mut text = String::new();
        let mut line = |name: &str, value: &str| {
            let _ = writeln!(text, "{name:9} {}", findings::printable(value));
        };
        let facts = &look.facts;
        let name = facts.name().unwrap_or("a project without a name");
        line("project", &format!("{name}, built by {}, in {}", facts.backend().name(), facts.root().display()));
        let (python, native, builds) = facts.read_counts();
        let read = format!(
            "{python} Python files, {native} native sources and {builds} build files of {}",
            facts.file_count()
        );
        line("read", &read);
        for (name, value) in machine.map(Machine::describe).unwrap_or_default() {
            line(name, &value);
        }
        if let Some(path) = &self.baseline {
            let known = if self.arguments.write_baseline {
                format!("{} written to {}", Baseline::of(&look.found).len(), path.display())
            } else {
                format!("{} listed in {}", look.known, path.display())
            };
            line("known", &known);
        }
        for gone in &look.gone {
            let place = gone.path.as_ref().map(|path| format!("{path}: ")).unwrap_or_default();
            line("gone", &format!("{} {place}{}", gone.rule, gone.message));
        }
        text
    }
}

impl Look {
    fn findings(&self) -> Vec<Finding> {
        self.found.iter().map(|found| found.finding.clone()).collect()
    }
}

/// The settings of the project; none where the table is faulty, which is among the findings.
fn settings(root: &Path) -> Option<DoctorSettings> {
    let text = std::fs::read_to_string(root.join("pyproject.toml")).ok()?;
    let file = doctor::TomlFile::parse("pyproject.toml", &text).ok()?;
    Some(Settings::from_item(file.item("tool.cuwheel")).ok()?.doctor)
}

/// An interpreter that can parse: the one that builds, or any other.
fn parser(python: &Result<Interpreter>) -> Option<PathBuf> {
    match python {
        Ok(found) => Some(found.base_executable.clone()),
        Err(_) => ["python3", "python"].iter().find_map(|name| find_program(name)),
    }
}
