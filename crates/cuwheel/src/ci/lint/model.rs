//! Workflows in the words of GitHub Actions: triggers, jobs, steps, and the commands of scripts.
//!
//! Nothing is judged here.

use std::collections::BTreeSet;

use super::files::File;
use crate::ci::yaml::{Node, Value};

/// A job of a workflow; the steps of a composite action count as one.
pub(super) struct Job<'file> {
    pub(super) file: &'file File,
    pub(super) id: &'file str,
    pub(super) node: &'file Node,
    pub(super) line: usize,
    pub(super) is_action: bool,
}

/// A step of a job.
pub(super) struct Step<'file>(pub(super) &'file Node);

/// A command of a script, on one line, with the line that it begins on in the file.
pub(super) struct Command {
    pub(super) text: String,
    pub(super) line: usize,
}

impl File {
    /// Events that start it.
    pub(super) fn triggers(&self) -> BTreeSet<&str> {
        let Some(on) = self.root.get("on") else { return BTreeSet::new() };
        match &on.value {
            Value::Map(entries) => entries.iter().filter_map(|(name, _)| name.text()).collect(),
            _ => on.texts().into_iter().collect(),
        }
    }

    /// What is said of an event.
    pub(super) fn trigger(&self, event: &str) -> Option<&Node> {
        self.root.get("on")?.get(event).map(|node| &**node)
    }

    pub(super) fn is_action(&self) -> bool {
        self.root.get("runs").is_some() && self.root.get("jobs").is_none()
    }

    /// Whether pull requests start it, by GitHub or by branches that a bot pushes.
    pub(super) fn is_for_pull_requests(&self) -> bool {
        let pushed = self.trigger("push").and_then(|push| push.get("branches"));
        let is_copied =
            pushed.is_some_and(|branches| branches.texts().iter().any(|name| name.contains("pull-request/")));
        is_copied || self.triggers().contains("pull_request")
    }

    /// Its jobs, in their order.
    pub(super) fn jobs(&self) -> Vec<Job<'_>> {
        if self.is_action() {
            let Some(runs) = self.root.get("runs") else { return Vec::new() };
            return vec![Job { file: self, id: "runs", node: runs, line: runs.line, is_action: true }];
        }
        let entries = self.root.get("jobs").map(|jobs| jobs.entries()).unwrap_or_default();
        let mut jobs = Vec::new();
        for (name, node) in entries {
            if let Some(id) = name.text() {
                jobs.push(Job { file: self, id, node, line: name.line, is_action: false });
            }
        }
        jobs
    }

    /// Whether the text, remarks included, has one of the words, in any case.
    pub(super) fn mentions(&self, words: &[&str]) -> bool {
        let text = self.text.to_ascii_lowercase();
        words.iter().any(|word| text.contains(word))
    }
}

impl<'file> Job<'file> {
    pub(super) fn steps(&self) -> Vec<Step<'file>> {
        let items = self.node.get("steps").map(|steps| steps.items()).unwrap_or_default();
        items.iter().map(|step| Step(step)).collect()
    }

    pub(super) fn needs(&self) -> Vec<&'file str> {
        self.node.get("needs").map(|needs| needs.texts()).unwrap_or_default()
    }

    pub(super) fn condition(&self) -> &'file str {
        self.node.text_of("if").unwrap_or_default()
    }

    /// What `runs-on` says, expressions included.
    pub(super) fn runner(&self) -> String {
        let Some(runner) = self.node.get("runs-on") else { return String::new() };
        match &runner.value {
            Value::Map(entries) => entries.iter().flat_map(|(_, value)| value.texts()).collect::<Vec<_>>().join(" "),
            _ => runner.texts().join(" "),
        }
    }

    /// Texts that its runner can be, with those of the matrix that the expression names.
    pub(super) fn runners(&self) -> String {
        let mut runner = self.runner();
        let matrix = self.node.get("strategy").and_then(|strategy| strategy.get("matrix"));
        for (key, values) in matrix.map(|matrix| matrix.entries()).unwrap_or_default() {
            let Some(key) = key.text() else { continue };
            if runner.contains(&format!("matrix.{key}")) {
                runner = format!("{runner} {}", values.texts().join(" "));
            }
            if key == "include" {
                for (name, value) in values.items().iter().flat_map(|row| row.entries()) {
                    let is_named = name.text().is_some_and(|name| runner.contains(&format!("matrix.{name}")));
                    if is_named {
                        runner = format!("{runner} {}", value.texts().join(" "));
                    }
                }
            }
        }
        runner
    }

    /// Whether it runs where a GPU is: by the runner's label, or since it asks for the driver.
    pub(super) fn has_gpu(&self) -> bool {
        let runners = self.runners().to_ascii_lowercase();
        let words = runners.split(|letter: char| !letter.is_ascii_alphanumeric());
        let names_gpu = words.into_iter().any(|word| {
            word.contains("gpu")
                || ["cuda", "h100", "h200", "a100", "a10", "a10g", "l4", "t4", "v100", "b200"].contains(&word)
        });
        let container =
            self.node.get("container").and_then(|container| container.text_of("options")).unwrap_or_default();
        names_gpu
            || container.contains("--gpus")
            || self.commands().iter().any(|command| command.program() == "nvidia-smi")
    }

    /// Commands of all its steps.
    pub(super) fn commands(&self) -> Vec<Command> {
        self.steps().iter().flat_map(Step::commands).collect()
    }

    /// Whether a step uses an action whose name has this part.
    pub(super) fn uses(&self, part: &str) -> bool {
        self.steps().iter().any(|step| step.uses().is_some_and(|uses| uses.contains(part)))
    }

    /// What `permissions` says of a right; a word for all rights says it of each.
    pub(super) fn permission(&self, right: &str) -> Option<&'file str> {
        permission(self.node, right)
    }
}

/// What the `permissions` of a node say of a right.
pub(super) fn permission<'file>(node: &'file Node, right: &str) -> Option<&'file str> {
    let permissions = node.get("permissions")?;
    match permissions.text() {
        Some("write-all") => Some("write"),
        Some(_) => None,
        None => permissions.text_of(right),
    }
}

impl<'file> Step<'file> {
    pub(super) fn uses(&self) -> Option<&'file str> {
        self.0.text_of("uses")
    }

    /// Whether it uses this action, in any version.
    pub(super) fn is_action(&self, action: &str) -> bool {
        self.uses().is_some_and(|uses| uses.split('@').next() == Some(action))
    }

    pub(super) fn with(&self, key: &str) -> Option<&'file str> {
        self.0.get("with")?.text_of(key)
    }

    pub(super) fn run(&self) -> Option<&'file Node> {
        self.0.get("run").map(|run| &**run)
    }

    pub(super) fn condition(&self) -> &'file str {
        self.0.text_of("if").unwrap_or_default()
    }

    /// The commands of its script; lines that go on are one.
    pub(super) fn commands(&self) -> Vec<Command> {
        let Some(run) = self.run() else { return Vec::new() };
        let (mut commands, mut pending) = (Vec::new(), String::new());
        let mut start = 0;
        for (index, line) in run.text().unwrap_or_default().lines().enumerate() {
            if pending.is_empty() {
                start = index;
            }
            let line = without_remark(line);
            if let Some(begun) = line.trim_end().strip_suffix('\\') {
                pending += begun;
                continue;
            }
            let whole = std::mem::take(&mut pending) + line;
            for text in split(&whole) {
                commands.push(Command { text, line: run.line_of(start) });
            }
        }
        commands
    }
}

/// The line without what a shell takes for a remark.
pub(super) fn without_remark(line: &str) -> &str {
    if line.trim_start().starts_with('#') {
        return "";
    }
    line.split_once(" # ").map_or(line, |(code, _)| code)
}

/// A line at `&&`, `||` and `;`.
fn split(line: &str) -> Vec<String> {
    let parts = line.split("&&").flat_map(|part| part.split("||")).flat_map(|part| part.split(';'));
    parts.map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

impl Command {
    pub(super) fn words(&self) -> Vec<&str> {
        self.text.split_whitespace().map(|word| word.trim_matches(|quote| "\"'(){}`".contains(quote))).collect()
    }

    /// The first word that is neither a variable that is set nor a keyword, without its directory.
    pub(super) fn program(&self) -> String {
        let words = self.words();
        let is_before = |word: &&&str| {
            !word.is_empty()
                && !word.contains('=')
                && !["if", "then", "else", "do", "!", "time", "sudo", "exec", "env", "$"].contains(*word)
        };
        let first = words.iter().find(is_before).copied().unwrap_or_default();
        first.rsplit('/').next().unwrap_or_default().to_owned()
    }

    /// Whether these words follow one another in it.
    pub(super) fn has(&self, wanted: &[&str]) -> bool {
        self.words().windows(wanted.len()).any(|words| words == wanted)
    }

    /// Whether it runs pytest.
    pub(super) fn is_pytest(&self) -> bool {
        let words = self.words();
        let is_run = words.iter().any(|word| *word == "pytest" || *word == "py.test" || word.ends_with("/pytest"));
        is_run && !self.is_install()
    }

    /// Whether it installs packages.
    pub(super) fn is_install(&self) -> bool {
        self.words().iter().any(|word| ["install", "add", "sync", "uninstall", "download"].contains(word))
    }

    /// Whether pip, or uv in its place, installs.
    pub(super) fn is_pip_install(&self) -> bool {
        self.has(&["pip", "install"]) || self.has(&["pip3", "install"])
    }
}
