//! Writes or checks the pages of `ci lint`'s rules in the documentation, from the catalog and the corpus of workflows.
//!
//! `ci_rule_pages DIRECTORY` checks, `ci_rule_pages DIRECTORY --fix` writes. An example because it needs the corpus, which
//! the tests have, and no program for users.

#![expect(dead_code, reason = "the corpus has more than the pages show")]

#[path = "../tests/it/ci_corpus.rs"]
mod ci_corpus;

use std::collections::BTreeMap;
use std::process::ExitCode;

use cuwheel::ci::lint::RULES;
use cuwheel_inspect::rule_pages;

fn main() -> ExitCode {
    let (bad, good) = (ci_corpus::bad(), ci_corpus::good());
    let mut pages = BTreeMap::new();
    for rule in RULES {
        let faults: Vec<&ci_corpus::Case> = bad.iter().filter(|case| case.rule == rule.id()).collect();
        let sound: Vec<&ci_corpus::Case> = good.iter().filter(|case| case.rule == rule.id()).collect();
        let messages = |case: &ci_corpus::Case| -> Vec<String> {
            ci_corpus::examine(&case.workflow).into_iter().map(|(_, finding)| finding).collect()
        };
        let shown: Vec<(&str, Vec<String>)> = faults.iter().map(|case| (case.what, messages(case))).collect();
        let names: Vec<&str> = sound.iter().map(|case| case.what).collect();
        let page = rule_pages::page(rule, &shown, &names, "corpus of workflows");
        let page = with_examples(&with_examples(&page, "\n## Good\n", &faults), "\nThis page is made", &sound);
        pages.insert(rule_pages::file_name(rule), page);
    }
    rule_pages::run(&pages)
}

/// The page with the workflows before the place that begins with `mark`.
fn with_examples(page: &str, mark: &str, cases: &[&ci_corpus::Case]) -> String {
    let (before, after) = page.split_once(mark).expect("pages have this part");
    let block = |case: &&ci_corpus::Case| format!("\n{}:\n\n```yaml\n{}```\n", capitalised(case.what), case.workflow);
    let blocks = cases.iter().map(block).collect::<Vec<_>>().concat();
    format!("{before}{blocks}{mark}{after}")
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
