//! Findings as SARIF 2.1.0, which code scanning services read.
//!
//! Source: OASIS "Static Analysis Results Interchange Format (SARIF) Version 2.1.0". The artifact of a result is the wheel;
//! the entry of the wheel that it is about is a logical location, because no tool opens archives. Of a project, the
//! artifact is the file, with the line.

use std::path::Path;

use cuwheel_inspect::rules::{Finding, RULES, Rule, Severity};
use serde_json::{Value, json};

use crate::wheel_check::WheelCheck;

const SCHEMA: &str = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// The findings of `check-wheel` on `checks` and on all of them `together`. Wheels below `directory` are named relative
/// to it.
pub fn document(checks: &[WheelCheck], together: &[Finding], directory: &Path) -> Value {
    let mut results = Vec::new();
    for check in checks {
        let uri = uri(check.path(), directory);
        results.extend(check.findings().iter().map(|finding| result(RULES, finding, in_wheel(finding, Some(&uri)))));
    }
    results.extend(together.iter().map(|finding| result(RULES, finding, in_wheel(finding, None))));
    log("cuwheel check-wheel", RULES, &results)
}

/// The findings of a `command` such as `doctor` on a project; their paths are relative to it.
pub fn document_of_project(command: &str, catalog: &[&'static Rule], findings: &[Finding]) -> Value {
    let results: Vec<Value> = findings.iter().map(|finding| result(catalog, finding, in_project(finding))).collect();
    log(&format!("cuwheel {command}"), catalog, &results)
}

fn log(tool: &str, catalog: &[&'static Rule], results: &[Value]) -> Value {
    let driver = json!({
        "name": tool,
        "version": env!("CARGO_PKG_VERSION"),
        "rules": catalog.iter().map(|rule| self::rule(rule)).collect::<Vec<_>>(),
    });
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{ "tool": { "driver": driver }, "columnKind": "utf16CodeUnits", "results": results }],
    })
}

fn rule(rule: &Rule) -> Value {
    json!({
        "id": rule.id(),
        "shortDescription": { "text": rule.title() },
        "fullDescription": { "text": rule.why() },
        "help": { "text": rule.remedy() },
        "defaultConfiguration": { "level": level(rule.severity()) },
    })
}

fn result(catalog: &[&'static Rule], finding: &Finding, location: Value) -> Value {
    let index = catalog.iter().position(|rule| *rule == finding.rule());
    let has_location = location.as_object().is_some_and(|object| !object.is_empty());
    json!({
        "ruleId": finding.rule().id(),
        "ruleIndex": index,
        "level": level(finding.severity()),
        "message": { "text": finding.to_string() },
        "locations": if has_location { vec![location] } else { Vec::new() },
    })
}

fn in_wheel(finding: &Finding, wheel: Option<&str>) -> Value {
    let mut location = json!({});
    if let Some(uri) = wheel {
        let mut physical = json!({ "artifactLocation": { "uri": uri } });
        if let Some(offset) = finding.archive_offset() {
            physical["region"] = json!({ "byteOffset": offset });
        }
        location["physicalLocation"] = physical;
    }
    if let Some(path) = finding.path() {
        location["logicalLocations"] = json!([{ "fullyQualifiedName": path, "kind": "resource" }]);
    }
    location
}

fn in_project(finding: &Finding) -> Value {
    let Some(path) = finding.path() else { return json!({}) };
    let mut physical = json!({ "artifactLocation": { "uri": encoded(path.as_bytes()) } });
    if let Some(line) = finding.line() {
        physical["region"] = json!({ "startLine": line });
    }
    json!({ "physicalLocation": physical })
}

const fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}

/// A relative reference below `directory`, or a URL.
fn uri(path: &Path, directory: &Path) -> String {
    let relative = path.strip_prefix(directory).ok();
    let prefix = if relative.is_some() { "" } else { "file://" };
    let bytes = relative.unwrap_or(path).as_os_str().as_encoded_bytes();
    format!("{prefix}{}", encoded(bytes))
}

fn encoded(bytes: &[u8]) -> String {
    let encoded = bytes.iter().map(|byte| {
        let is_plain = byte.is_ascii_alphanumeric() || b"-._~/".contains(byte);
        if is_plain { char::from(*byte).to_string() } else { format!("%{byte:02X}") }
    });
    encoded.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wheels_are_named_by_uris() {
        let directory = Path::new("/work dir");
        assert_eq!(uri(Path::new("/work dir/dist/a-1+x.whl"), directory), "dist/a-1%2Bx.whl");
        assert_eq!(uri(Path::new("/größe/a.whl"), directory), "file:///gr%C3%B6%C3%9Fe/a.whl");
    }
}
