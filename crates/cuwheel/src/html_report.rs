//! A page of its own on checked wheels: findings, and treemaps of sizes by file, section and GPU architecture.
//!
//! It needs no network and no script: the maps are chosen with radio buttons and a style sheet.

use std::fmt::Write as _;

use cuwheel_inspect::rules::{Breakdown, Finding};
use cuwheel_inspect::size::human_size;

use crate::findings::Counts;
use crate::treemap::{Node, escape};
use crate::wheel_check::WheelCheck;

const HEAD: &str = "<!doctype html>
<html lang=\"en\">
<meta charset=\"utf-8\">
<meta name=\"viewport\" content=\"width=device-width\">
<title>check-wheel</title>
<style>
:root { color-scheme: light dark; --line: #8888; --native: #7aa6d8; --python: #8fc79a; --gpu: #e0b060; --rest: #b8a9c9; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 1240px; padding: 0 1rem; }
h1 { font-size: 1.3rem; overflow-wrap: anywhere; }
table { border-collapse: collapse; margin: 1rem 0; width: 100%; }
th, td { border-bottom: 1px solid var(--line); padding: .3rem .6rem; text-align: left; vertical-align: top; overflow-wrap: anywhere; }
.error { color: #c62828; } .warning { color: #b26a00; } .note { color: #607d8b; }
.map { display: none; }
input:nth-of-type(1):checked ~ .map:nth-of-type(1), input:nth-of-type(2):checked ~ .map:nth-of-type(2),
input:nth-of-type(3):checked ~ .map:nth-of-type(3) { display: block; }
svg { width: 100%; height: auto; font: 11px system-ui, sans-serif; }
rect { stroke: #fff; stroke-width: 1; } text { fill: #111; pointer-events: none; }
.directory { fill: #9996; } .k0 { fill: var(--native); } .k1 { fill: var(--python); } .k2 { fill: var(--gpu); } .k3 { fill: var(--rest); }
</style>
";

/// The page on `checks`, and on all of them `together`.
pub fn page(checks: &[WheelCheck], together: &[Finding]) -> String {
    let mut page = HEAD.to_owned();
    for (number, check) in checks.iter().enumerate() {
        let _ = writeln!(page, "<h1>{}</h1>", escape(&check.file()));
        let _ =
            writeln!(page, "<p>{}, {}</p>", human_size(check.size_bytes()), Counts::of(check.findings()).describe());
        page += &table(check.findings());
        if let Some(breakdown) = check.breakdown() {
            page += &maps(breakdown, number);
        }
    }
    if !together.is_empty() {
        page.push_str("<h1>Together</h1>\n");
        page += &table(together);
    }
    page + "</html>\n"
}

fn table(findings: &[Finding]) -> String {
    if findings.is_empty() {
        return String::new();
    }
    let mut table = String::from("<table>\n<tr><th>rule<th>what is wrong<th>remedy\n");
    for finding in findings {
        let (rule, severity) = (finding.rule(), finding.severity().name());
        let cells = [rule.id(), &finding.to_string(), rule.remedy()].map(escape);
        let [id, message, remedy] = cells;
        let _ = writeln!(table, "<tr><td class=\"{severity}\">{severity}<br>{id}<td>{message}<td>{remedy}");
    }
    table + "</table>\n"
}

fn maps(breakdown: &Breakdown, number: usize) -> String {
    let (mut files, mut sections, mut architectures) = (Node::default(), Node::default(), Node::default());
    for file in &breakdown.files {
        files.add(&file.path, file.compressed_size_bytes);
    }
    // Names may hold slashes and are no paths.
    let flat = |name: &str| name.replace('/', "\u{2215}");
    for section in &breakdown.sections {
        sections.add(&flat(&section.name), section.size_bytes);
    }
    for code in &breakdown.architectures {
        architectures.add(&flat(&code.name), code.size_bytes);
    }
    let mut maps = vec![("files, compressed", files)];
    if !breakdown.sections.is_empty() {
        maps.push(("sections of native files", sections));
    }
    if !breakdown.architectures.is_empty() {
        maps.push(("GPU code by architecture", architectures));
    }
    let mut html = String::from("<div>\n");
    for (position, (title, _)) in maps.iter().enumerate() {
        let checked = if position == 0 { " checked" } else { "" };
        let id = format!("w{number}m{position}");
        let _ = writeln!(
            html,
            "<input type=\"radio\" name=\"w{number}\" id=\"{id}\"{checked}><label for=\"{id}\">{title}</label>"
        );
    }
    for (_, map) in &maps {
        let _ = write!(html, "<div class=\"map\">\n{}</div>\n", map.to_svg());
    }
    html + "</div>\n"
}
