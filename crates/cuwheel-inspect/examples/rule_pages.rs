//! Writes or checks the pages of the rules in the documentation, from the catalog and the corpus of broken wheels.
//!
//! `rule_pages DIRECTORY` checks, `rule_pages DIRECTORY --fix` writes. An example because it needs the corpus, which the
//! tests have, and no program for users.

#![expect(dead_code, reason = "the corpus has more than the pages show")]

#[path = "../tests/it/corpus.rs"]
mod corpus;
#[path = "../tests/it/counterparts.rs"]
mod counterparts;
#[path = "../tests/it/gpu_code.rs"]
mod gpu_code;
#[path = "../tests/it/native.rs"]
mod native;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use cuwheel_inspect::rules::{self, ExaminedWheel, Finding, Policy, RULES, Rule};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (directory, fix) = match &arguments[..] {
        [directory] => (Path::new(directory), false),
        [directory, option] if option == "--fix" => (Path::new(directory), true),
        _ => {
            eprintln!("usage: rule_pages DIRECTORY [--fix]");
            return ExitCode::from(2);
        }
    };
    let wrong = compare(directory, &pages(), fix);
    for page in &wrong {
        eprintln!("{page} is not what the code says");
    }
    ExitCode::from(u8::from(!wrong.is_empty()))
}

/// Names of pages that differ, after they were written if `fix` says so.
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

/// The pages by file name.
fn pages() -> BTreeMap<String, String> {
    let mut faults: BTreeMap<&str, Vec<(&str, Vec<Finding>)>> = BTreeMap::new();
    for broken in corpus::corpus() {
        let findings = check(&broken.file_name, broken.bytes, &broken.policy);
        faults.entry(broken.rule).or_default().push((broken.fault, findings));
    }
    for (rule, fault, findings) in counterparts::breaches_of_sets() {
        faults.entry(rule).or_default().push((fault, findings));
    }
    let page = |rule: &&Rule| (format!("{}.md", rule.id().replace('/', "-")), page(rule, &faults[rule.id()]));
    RULES.iter().map(page).collect()
}

fn check(file_name: &str, bytes: Vec<u8>, policy: &Policy) -> Vec<Finding> {
    match ExaminedWheel::from_bytes(file_name, bytes) {
        Ok(wheel) => rules::check(&wheel, policy),
        Err(error) => rules::unreadable(&error, policy),
    }
}

fn page(rule: &Rule, faults: &[(&str, Vec<Finding>)]) -> String {
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
    for (fault, findings) in faults {
        let messages: Vec<String> = findings.iter().map(|finding| steady(&finding.to_string())).collect();
        let _ = writeln!(text, "| {fault} | {} |", messages.join("<br>"));
    }
    let _ = write!(text, "\n## Good\n\nNothing is found in this: {}.\n", right(rule));
    text.push_str("\nThis page is made from the code and the corpus of broken wheels by `cargo xtask lint --fix`.\n");
    text
}

fn right(rule: &Rule) -> &'static str {
    match rule.id() {
        "sets/collision" => "paths of its own",
        "sets/not-found" | "sets/not-expected" | "sets/changed" => "the name and the hash that the manifest lists",
        "modules/import" => "modules that import where it is installed with what it requires",
        id => counterparts::sound_for(id).what,
    }
}

/// The message without what differs between compilers: this machine's processor, sizes and offsets.
fn steady(message: &str) -> String {
    let message = message.replace(std::env::consts::ARCH, "x86_64").replace('|', "\\|");
    let words: Vec<String> = message.split(' ').map(str::to_owned).collect();
    let mut steady: Vec<String> = Vec::new();
    for (position, word) in words.iter().enumerate() {
        let unit = words.get(position + 1).is_some_and(|unit| {
            ["B", "kB", "MB"].contains(&unit.trim_matches(|character: char| !character.is_ascii_alphabetic()))
        });
        let is_offset = message.contains("at offsets");
        let digits = word.bytes().filter(u8::is_ascii_digit).count();
        let number = word.trim_matches(['(', ',', ':', ';', ')']);
        let is_number = digits > 0 && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        steady.push(if is_number && (unit || is_offset || digits > 3) {
            word.replace(number, "…")
        } else {
            word.clone()
        });
    }
    steady.join(" ")
}
