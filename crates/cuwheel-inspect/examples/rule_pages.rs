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

use std::collections::BTreeMap;
use std::process::ExitCode;

use cuwheel_inspect::rule_pages;
use cuwheel_inspect::rules::{self, ExaminedWheel, Finding, Policy, RULES, Rule};

fn main() -> ExitCode {
    rule_pages::run(&pages())
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
    RULES.iter().map(|rule| (rule_pages::file_name(rule), page(rule, &faults[rule.id()]))).collect()
}

fn check(file_name: &str, bytes: Vec<u8>, policy: &Policy) -> Vec<Finding> {
    match ExaminedWheel::from_bytes(file_name, bytes) {
        Ok(wheel) => rules::check(&wheel, policy),
        Err(error) => rules::unreadable(&error, policy),
    }
}

fn page(rule: &Rule, faults: &[(&str, Vec<Finding>)]) -> String {
    let steady = |finding: &Finding| steady(&finding.to_string());
    let faults = faults.iter().map(|(fault, findings)| (*fault, findings.iter().map(steady).collect()));
    rule_pages::page(rule, &faults.collect::<Vec<_>>(), &right(rule), "corpus of broken wheels")
}

fn right(rule: &Rule) -> Vec<&'static str> {
    let what = match rule.id() {
        "sets/collision" => "paths of its own",
        "sets/alternatives" => "one wheel with both",
        "sets/not-found" | "sets/not-expected" | "sets/changed" => "the name and the hash that the manifest lists",
        "modules/import" => "modules that import where it is installed with what it requires",
        id => counterparts::sound_for(id).what,
    };
    vec![what]
}

/// The message without what differs between compilers: this machine's processor, sizes and offsets.
fn steady(message: &str) -> String {
    let message = message.replace(std::env::consts::ARCH, "x86_64");
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
