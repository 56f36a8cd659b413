//! Pages of rules in the documentation: made from a catalog and a corpus, and checked for drift.
//!
//! For the examples that have a corpus at hand; not for users.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use crate::rules::Rule;

/// Checks the pages in the directory that is the program's first argument, or writes them with `--fix`.
#[must_use]
pub fn run(pages: &BTreeMap<String, String>) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (directory, fix) = match &arguments[..] {
        [directory] => (Path::new(directory), false),
        [directory, option] if option == "--fix" => (Path::new(directory), true),
        _ => {
            eprintln!("usage: DIRECTORY [--fix]");
            return ExitCode::from(2);
        }
    };
    let wrong = compare(directory, pages, fix);
    for page in &wrong {
        eprintln!("{page} is not what the code says");
    }
    ExitCode::from(u8::from(!wrong.is_empty()))
}

/// Names of pages that differ; none after they were written, if `fix` says so.
fn compare(directory: &Path, pages: &BTreeMap<String, String>, fix: bool) -> Vec<String> {
    let there = std::fs::read_dir(directory).map_or_else(
        |_| BTreeSet::new(),
        |entries| {
            entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect::<BTreeSet<_>>()
        },
    );
    let stray = there.iter().filter(|name| !pages.contains_key(*name));
    let differs =
        |(name, text): &(&String, &String)| std::fs::read_to_string(directory.join(name)).ok().as_ref() != Some(*text);
    let wrong: Vec<String> = pages.iter().filter(differs).map(|(name, _)| name.clone()).chain(stray.cloned()).collect();
    if !fix {
        return wrong;
    }
    std::fs::create_dir_all(directory).expect("a directory for the pages");
    for name in wrong {
        let path = directory.join(&name);
        match pages.get(&name) {
            Some(text) => std::fs::write(path, text).expect("a page that can be written"),
            None => std::fs::remove_file(path).expect("a page that can be removed"),
        }
    }
    Vec::new()
}

/// The file of a rule's page.
#[must_use]
pub fn file_name(rule: &Rule) -> String {
    format!("{}.md", rule.id().replace('/', "-"))
}

/// The page of a rule: what breaks it, each with what is found, and what does not.
#[must_use]
pub fn page(rule: &Rule, faults: &[(&str, Vec<String>)], sound: &[&str], corpus: &str) -> String {
    let mut text = format!(
        "# `{}`\n\nWhat holds: {}. A breach is {} {}.\n\n{}\n\nWhat to do: {}.\n\n",
        rule.id(),
        rule.title(),
        if rule.severity().name() == "error" { "an" } else { "a" },
        rule.severity(),
        rule.why(),
        rule.remedy()
    );
    text.push_str("## Bad\n\n| fault | what is found |\n|---|---|\n");
    for (fault, messages) in faults {
        let messages: Vec<String> = messages.iter().map(|message| message.replace('|', "\\|")).collect();
        let _ = writeln!(text, "| {fault} | {} |", messages.join("<br>"));
    }
    text.push_str("\n## Good\n\n");
    if let [what] = sound {
        let _ = writeln!(text, "Nothing is found in this: {what}.");
    } else {
        text.push_str("Nothing is found in these:\n\n");
        text.extend(sound.iter().map(|what| format!("- {what}\n")));
    }
    let _ = write!(text, "\nThis page is made from the code and the {corpus} by `cargo xtask lint --fix`.\n");
    text
}
