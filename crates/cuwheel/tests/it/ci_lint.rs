//! The rules of `ci lint`: on the corpus, and on what was reduced from workflows that exist.

use std::collections::BTreeSet;

use cuwheel::ci::lint::RULES;

use crate::ci_corpus::{bad, examine, good, real};
use crate::support::{Tree, cuwheel, repository, run};

#[test]
fn every_rule_of_workflows_finds_its_mistakes_and_no_other_rule_does() {
    let mut wrong = Vec::new();
    for case in bad() {
        let found = examine(&case.workflow);
        if found.is_empty() || found.iter().any(|(rule, _)| *rule != case.rule) {
            wrong.push(format!("{} ({}): {found:#?}", case.rule, case.what));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn nothing_is_found_in_sound_workflows() {
    let mut wrong = Vec::new();
    for case in good() {
        let found = examine(&case.workflow);
        if !found.is_empty() {
            wrong.push(format!("{} ({}): {found:#?}", case.rule, case.what));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_rule_of_workflows_has_a_mistake_and_a_sound_counterpart() {
    let names = |cases: Vec<crate::ci_corpus::Case>| cases.iter().map(|case| case.rule).collect::<BTreeSet<_>>();
    let all: BTreeSet<&str> = RULES.iter().map(|rule| rule.id()).collect();
    assert_eq!((names(bad()), names(good())), (all.clone(), all));
}

/// Each was a false alarm, or was missed, in a repository that exists.
#[test]
fn what_real_workflows_do_is_understood() {
    for case in real() {
        let found = examine(&case.workflow);
        let names: Vec<&str> = found.iter().map(|(rule, _)| *rule).collect();
        let expected: Vec<&str> = [case.rule].into_iter().filter(|rule| *rule != "none").collect();
        assert_eq!(names, expected, "{}: {found:#?}\n{}", case.what, case.workflow);
    }
}

#[test]
fn the_command_reads_any_repository_and_names_file_and_line() {
    let tree = Tree::new();
    tree.write(
        ".github/workflows/a.yml",
        "on: push\njobs:\n  a:\n    runs-on: x\n    steps:\n      - uses: a/b@main\n",
    )
    .write(".github/actions/setup/action.yml", "name: x\nruns:\n  using: composite\n  steps:\n    - uses: c/d@v1\n")
    .write(".github/dependabot.yml", "version: 2\n");
    let ran =
        run(cuwheel(&tree.root).args(["ci", "lint", "--deny", "pin/branch", "--allow", "permissions/", "--json"]));
    let document = ran.expect_code(1).json();
    let findings = document["repositories"][0]["findings"].as_array().unwrap();
    let places: Vec<String> = findings
        .iter()
        .map(|finding| {
            format!("{} {}:{}", finding["rule"].as_str().unwrap(), finding["path"].as_str().unwrap(), finding["line"])
        })
        .collect();
    assert_eq!(places, ["pin/branch .github/workflows/a.yml:6", "pin/tag .github/actions/setup/action.yml:5"]);
    assert_eq!(document["counts"], serde_json::json!({ "errors": 1, "warnings": 0, "notes": 1 }));

    run(cuwheel(&tree.root).args(["ci", "lint", ".github/workflows/a.yml"])).expect_code(0);
    assert!(
        run(cuwheel(&tree.root).args(["ci", "lint", "nowhere"]))
            .expect_code(2)
            .stderr
            .contains("nowhere does not exist")
    );
    let empty = Tree::new();
    assert!(run(cuwheel(&empty.root).args(["ci", "lint"])).expect_code(2).stderr.contains("has no workflows"));
    tree.write("pyproject.toml", "[tool.cuwheel.ci]\nallow = ['pin/', 'permissions/']\n");
    assert!(run(cuwheel(&tree.root).args(["ci", "lint"])).expect_code(0).stdout.contains("findings: none"));
}

#[test]
fn a_remark_allows_a_rule_at_one_place() {
    let workflow = |first: &str, above: &str| {
        format!(
            "on: push\npermissions: {{}}\njobs:\n  a:\n    runs-on: x\n    steps:\n{above}      - uses: a/b@main{first}\n      \
             - uses: c/d@main\n"
        )
    };
    let count = |first, above| examine(&workflow(first, above)).len();
    assert_eq!(count("", ""), 2);
    assert_eq!(count(" # cuwheel: allow pin/branch: ours", ""), 2, "the name ends at a space or a comma");
    assert_eq!(count(" # cuwheel: allow pin/branch - it is ours", ""), 1);
    assert_eq!(count("", "      # cuwheel: allow gate/, pin/\n"), 1);
    assert_eq!(count("", "      # cuwheel: allow pin/tag\n"), 2);
}

#[test]
fn findings_are_written_for_code_scanning() {
    let tree = Tree::new();
    tree.write(
        ".github/workflows/a.yml",
        "on: push\npermissions: {}\njobs:\n  a:\n    runs-on: x\n    steps: [{uses: a/b@main}]\n",
    );
    run(cuwheel(&tree.root).args(["ci", "lint", "--sarif", "out.sarif"])).expect_code(0);
    let text = std::fs::read_to_string(tree.root.join("out.sarif")).unwrap();
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let result = &document["runs"][0]["results"][0];
    assert_eq!(document["runs"][0]["tool"]["driver"]["name"], "cuwheel ci lint");
    assert_eq!(result["ruleId"], "pin/branch");
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(
        (&place["artifactLocation"]["uri"], &place["region"]["startLine"]),
        (&".github/workflows/a.yml".into(), &6.into())
    );
    run(cuwheel(&tree.root).args(["ci", "lint", "--sarif", "out.sarif", ".", "."])).expect_code(2);
}

/// Values of the wrong kind, and files that end early: whoever wrote them gets findings or nothing.
#[test]
fn no_workflow_makes_the_rules_panic() {
    for case in bad().into_iter().chain(good()) {
        let lines: Vec<&str> = case.workflow.lines().collect();
        for index in 0..lines.len() {
            examine(&lines[..index].join("\n"));
            for value in ["", "[]", "{}", "~", "[[], {}]", "{ steps: ~ }", "'${{'", "*x", "|\n"] {
                let (before, after) = (lines[..index].join("\n"), lines[index + 1..].join("\n"));
                let line = lines[index].split_once(':').map_or(String::new(), |(key, _)| format!("{key}: {value}"));
                examine(&format!("{before}\n{line}\n{after}\n"));
            }
        }
    }
}

#[test]
fn nothing_is_found_in_this_repository() {
    let found = run(cuwheel(&repository()).args(["ci", "lint", "--json"])).expect_code(0).json();
    assert_eq!(found["counts"], serde_json::json!({ "errors": 0, "warnings": 0, "notes": 0 }), "{found:#}");
}
