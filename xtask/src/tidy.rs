//! Rules of the style that no compiler knows, enforced on the sources of this repository.

use std::path::{Path, PathBuf};

use cuwheel::error::{Failure, Result};

/// A file that grows past this asks to be split.
const FILE_LINES: usize = 600;
/// So does a function.
const FUNCTION_LINES: usize = 70;

/// Who may name PyO3, and who may compile C.
const DEPENDENCY_RULES: &[(&str, &[&str])] =
    &[("pyo3", &["cuwheel-native", "cuwheel-exchange"]), ("cc", &["cuwheel-build"])];

/// Fails with every place that breaks a rule.
pub(crate) fn check(root: &Path) -> Result<()> {
    let mut findings = Vec::new();
    for directory in ["crates", "xtask"] {
        visit(&root.join(directory), &mut |path| check_file(root, path, &mut findings))?;
    }
    if findings.is_empty() {
        return Ok(());
    }
    findings.sort();
    Err(Failure::failed("the sources break rules of the style")
        .details(findings)
        .remedy("CONTRIBUTING.md says what the rules are for")
        .into())
}

fn visit(directory: &Path, see: &mut dyn FnMut(&Path)) -> Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let path: PathBuf = entry?.path();
        if path.is_dir() && !path.ends_with("target") {
            visit(&path, see)?;
        } else if path.is_file() {
            see(&path);
        }
    }
    Ok(())
}

fn check_file(root: &Path, path: &Path, findings: &mut Vec<String>) {
    let Ok(text) = std::fs::read_to_string(path) else { return };
    let place = path.strip_prefix(root).unwrap_or(path).display().to_string();
    if path.extension().is_some_and(|extension| extension == "rs") {
        findings.extend(check_rust(&text).into_iter().map(|finding| format!("{place}: {finding}")));
    } else if path.ends_with("Cargo.toml") {
        findings.extend(check_manifest(&text).into_iter().map(|finding| format!("{place}: {finding}")));
    }
}

fn check_rust(text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    if !text.starts_with("//!") {
        findings.push("the file does not open with what it is for (//!)".to_owned());
    }
    let lines = text.lines().count();
    if lines > FILE_LINES {
        findings.push(format!("{lines} lines are more than {FILE_LINES}"));
    }
    for (name, length) in functions(text) {
        if length > FUNCTION_LINES {
            findings.push(format!("the function {name} has {length} lines, more than {FUNCTION_LINES}"));
        }
    }
    findings
}

/// Functions with their numbers of lines. Formatted sources end a function with a brace at the indentation of its `fn`.
fn functions(text: &str) -> Vec<(String, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let Some(name) = function_name(code).filter(|_| has_body(&lines[start..])) else { continue };
        let end = format!("{}}}", &line[..line.len() - code.len()]);
        if let Some(length) = lines[start..].iter().position(|line| *line == end) {
            found.push((name.to_owned(), length + 1));
        }
    }
    found
}

/// Whether the function that begins with the first of these lines has a body; methods that a trait asks for have none.
fn has_body(lines: &[&str]) -> bool {
    lines.iter().find(|line| line.ends_with(['{', '}', ';'])).is_some_and(|line| !line.ends_with(';'))
}

fn function_name(code: &str) -> Option<&str> {
    let before_name = code.split_once("fn ")?;
    let is_signature = before_name
        .0
        .split_whitespace()
        .all(|word| ["pub", "const", "async", "unsafe", "extern", "\"C\""].contains(&word) || word.starts_with("pub("));
    is_signature.then(|| before_name.1.split(['(', '<']).next()).flatten()
}

fn check_manifest(text: &str) -> Vec<String> {
    let name = text.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"')).unwrap_or_default();
    let mut findings = Vec::new();
    for (dependency, allowed) in DEPENDENCY_RULES {
        let used = text.lines().any(|line| line.split(['.', ' ', '=']).next() == Some(dependency));
        if used && !allowed.contains(&name) {
            findings.push(format!("{name} names {dependency}, which belongs to {} only", allowed.join(" and ")));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_functions_and_files_without_a_head_are_found() {
        let long = format!("fn long() {{\n{}}}\n", "    x();\n".repeat(FUNCTION_LINES));
        assert_eq!(
            check_rust(&long),
            ["the file does not open with what it is for (//!)", "the function long has 72 lines, more than 70"]
        );
        assert!(check_rust("//! Head.\npub(crate) unsafe fn short() {\n}\n").is_empty());
        let asked_for = format!(
            "//! Head.\ntrait Long {{\n    fn first(\n        &self,\n    ) -> u8;\n{}}}\n",
            "    // x\n".repeat(FUNCTION_LINES)
        );
        assert!(check_rust(&asked_for.replace("    // x\n}", "    // x\n    }\n}")).is_empty());
    }

    #[test]
    fn only_the_bindings_may_name_pyo3() {
        let manifest = "[package]\nname = \"cuwheel-numpy\"\n[dependencies]\npyo3.workspace = true\n";
        assert_eq!(
            check_manifest(manifest),
            ["cuwheel-numpy names pyo3, which belongs to cuwheel-native and cuwheel-exchange only"]
        );
    }
}
