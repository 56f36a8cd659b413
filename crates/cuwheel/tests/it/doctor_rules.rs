//! The rules of `doctor` on the corpus: every fault is found, by its rule alone, and nothing is found beside.

use std::collections::BTreeSet;

use cuwheel::doctor::RULES;

use crate::doctor_corpus::{self, Subject, examine, shown};
use crate::doctor_counterparts;
use crate::support::interpreter;

#[test]
fn every_rule_finds_its_faults_and_no_other_rule_does() {
    let python = interpreter().base_executable;
    let mut wrong = Vec::new();
    for case in doctor_corpus::faulty() {
        let found = examine(&case.subject, &python);
        if found.is_empty() || found.iter().any(|found| found.finding.rule().id() != case.rule) {
            wrong.push(format!("{} ({}): {:#?}", case.rule, case.what, shown(&found)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_rule_has_faults_in_the_corpus_and_a_sound_counterpart() {
    let faulty: BTreeSet<&str> = doctor_corpus::faulty().iter().map(|case| case.rule).collect();
    let sound: BTreeSet<&str> = doctor_counterparts::sound().iter().map(|case| case.rule).collect();
    for rule in RULES {
        assert!(faulty.contains(rule.id()), "{} has no fault", rule.id());
        // The machine of the corpus is sound before it is changed.
        assert!(sound.contains(rule.id()) || rule.id().starts_with("machine/"), "{} has no counterpart", rule.id());
    }
}

#[test]
fn nothing_is_found_in_what_is_sound() {
    let python = interpreter().base_executable;
    let mut wrong = Vec::new();
    for case in doctor_counterparts::sound() {
        let found = examine(&case.subject, &python);
        if !found.is_empty() {
            wrong.push(format!("{} ({}): {:#?}", case.rule, case.what, shown(&found)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let machine = doctor_corpus::sound();
    assert!(matches!(machine, Subject::Machine(..)));
    assert_eq!(shown(&examine(&machine, &python)), Vec::<String>::new());
}
