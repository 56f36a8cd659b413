//! Writes or checks the pages of `doctor`'s rules in the documentation, from the catalog and the corpus of faulty projects.
//!
//! `doctor_rule_pages DIRECTORY` checks, `doctor_rule_pages DIRECTORY --fix` writes. An example because it needs the corpus,
//! which the tests have, and no program for users.

#![expect(dead_code, reason = "the corpus has more than the pages show")]

#[path = "../tests/it/doctor_corpus.rs"]
mod doctor_corpus;
#[path = "../tests/it/doctor_counterparts.rs"]
mod doctor_counterparts;

use std::collections::BTreeMap;
use std::process::ExitCode;

use cuwheel::doctor::RULES;
use cuwheel::interpreter;
use cuwheel::output::{Output, Verbosity};
use cuwheel_inspect::rule_pages;

/// What the machine of the corpus has before it is changed.
const SOUND_MACHINE: &str = "a machine with one toolkit of CUDA 13.0, GCC 14, a driver for CUDA 13.0, space, memory for 8 \
                             jobs and a recent uv, for a project that lists 90";

fn main() -> ExitCode {
    let output = Output::new(Verbosity::Quiet, false);
    let python = interpreter::find(None, &output).expect("an interpreter to read Python files with").base_executable;
    let (faulty, sound) = (doctor_corpus::faulty(), doctor_counterparts::sound());
    let mut pages = BTreeMap::new();
    for rule in RULES {
        let faults = faulty.iter().filter(|case| case.rule == rule.id()).map(|case| {
            let found = doctor_corpus::examine(&case.subject, &python);
            (case.what, found.iter().map(|found| found.finding.to_string()).collect())
        });
        let faults: Vec<(&str, Vec<String>)> = faults.collect();
        let mut good: Vec<&str> = sound.iter().filter(|case| case.rule == rule.id()).map(|case| case.what).collect();
        if good.is_empty() {
            good.push(SOUND_MACHINE);
        }
        let page = rule_pages::page(rule, &faults, &good, "corpus of faulty projects and machines");
        pages.insert(rule_pages::file_name(rule), page);
    }
    rule_pages::run(&pages)
}
