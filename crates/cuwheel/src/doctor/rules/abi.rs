//! The limited API, the tag of the wheel and requires-python: one oldest Python (PK-57).

use std::path::Path;

use super::super::facts::{Backend, ProjectFacts};
use super::super::{Diagnosis, Edit, catalog};
use super::at;
use crate::cargo_manifest::CargoManifest;
use crate::reading::requirement::floor_of_specifier;

pub(super) fn check(facts: &ProjectFacts, diagnosis: &mut Diagnosis) {
    if facts.backend == Backend::Maturin {
        of_rust(facts, diagnosis);
    }
    of_setuptools(facts, diagnosis);
}

/// PyO3's abi3 feature is newer than the oldest Python that may install the package.
fn of_rust(facts: &ProjectFacts, diagnosis: &mut Diagnosis) {
    let Some(pyproject) = &facts.pyproject else { return };
    let path = pyproject.text_of("tool.maturin.manifest-path").unwrap_or("Cargo.toml");
    let features: Vec<String> = pyproject.texts_of("tool.maturin.features").into_iter().map(|(text, _)| text).collect();
    // What is no manifest is said elsewhere.
    let Ok(manifest) = CargoManifest::open(&facts.tree.root().join(path)) else { return };
    let Some((major, minor)) = manifest.abi3(&features).floor() else { return };
    let feature = format!("abi3-py{major}{minor}");
    let place = |path: &Path| {
        let shown = path.strip_prefix(facts.tree.root()).unwrap_or(path).to_str()?.to_owned();
        let line = facts.tree.text(&shown)?.lines().position(|line| line.contains(&feature))?;
        Some((shown, line + 1))
    };
    let workspace = manifest.workspace_root().join("Cargo.toml");
    let in_settings = || {
        let line = pyproject.text().lines().position(|line| line.contains(&feature))?;
        Some(("pyproject.toml".to_owned(), line + 1))
    };
    let (path, line) =
        place(manifest.path()).or_else(|| place(&workspace)).or_else(in_settings).unwrap_or((path.to_owned(), 1));
    let wanted = (u64::from(major), u64::from(minor));
    let is_dynamic = pyproject.texts_of("project.dynamic").iter().any(|(text, _)| text == "requires-python");
    let edit = (!is_dynamic).then(|| Edit::RequiresPython(format!(">={major}.{minor}")));
    let promised = facts.requires_python().map(|(text, ..)| (floor_of_specifier(&text), text));
    let message = match promised {
        // Where nothing is promised, what every living Python has is no surprise.
        None if wanted > (3, 9) => format!("{feature} is asked for, and requires-python is not set"),
        Some((floor, text)) if floor.is_none_or(|floor| floor < wanted) && wanted > (3, 7) => {
            format!("{feature} is asked for, and requires-python is {text}")
        }
        _ => return,
    };
    let finding = at(&catalog::ABI3_PYTHON, &path, line, message);
    let remedy = format!("write requires-python = \">={major}.{minor}\", or take an older feature");
    diagnosis.add_with(finding.with_remedy(remedy), edit);
}

/// `cp39` → `(3, 9)`.
fn floor_of_tag(tag: &str) -> Option<(u64, u64)> {
    tag.trim().strip_prefix("cp3")?.parse().ok().map(|minor| (3, minor))
}

/// `0x03090000` → `(3, 9)`; `3` is the first limited API.
fn floor_of_macro(text: &str) -> Option<(u64, u64)> {
    let digits = text.trim().trim_end_matches(['u', 'U', 'l', 'L']);
    let number = u64::from_str_radix(digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"))?, 16).ok()?;
    Some((number >> 24, (number >> 16) & 0xff)).filter(|(major, _)| *major == 3)
}

fn of_setuptools(facts: &ProjectFacts, diagnosis: &mut Diagnosis) {
    let tag = tag_of_setuptools(facts);
    for script in facts.build_scripts() {
        let is_limited = script.calls.iter().find(|call| call.switched_on.iter().any(|name| name == "py_limited_api"));
        let texts = || script.strings.iter().map(|text| (text.text.as_str(), text.line));
        let defines = texts().any(|(text, _)| text.contains("Py_LIMITED_API"));
        if let Some(call) = is_limited
            && !defines
            && !facts.native.iter().any(|file| file.has_limited_api)
        {
            let message =
                "py_limited_api is set, and Py_LIMITED_API is defined nowhere: the module is not of the limited API";
            let remedy = "add (\"Py_LIMITED_API\", \"0x03090000\"), with the oldest Python, to define_macros";
            diagnosis.add(at(&catalog::ABI3_PYTHON, &script.path, call.line, message).with_remedy(remedy));
        }
        let macros = texts().filter_map(|(text, line)| {
            let value = text.split_once("Py_LIMITED_API=").map_or(text, |(_, value)| value);
            Some((floor_of_macro(value)?, line))
        });
        let newest = macros.max();
        if let (Some((tagged, path, place)), Some((floor, _))) = (&tag, newest)
            && defines
            && *tagged < floor
        {
            let message = format!(
                "the tag cp{}{} promises an older Python than the limited API of 3.{} in {}",
                tagged.0, tagged.1, floor.1, script.path
            );
            let remedy = format!("write cp3{} for the tag, or define an older limited API", floor.1);
            diagnosis.add(at(&catalog::ABI3_PYTHON, path, *place, message).with_remedy(remedy));
        }
    }
}

/// The tag of limited-API wheels, and where it is set.
fn tag_of_setuptools(facts: &ProjectFacts) -> Option<((u64, u64), String, usize)> {
    if let Some(entry) = facts.setup_cfg.as_ref().and_then(|cfg| cfg.get("bdist_wheel", "py_limited_api")) {
        return Some((floor_of_tag(&entry.value)?, "setup.cfg".to_owned(), entry.line));
    }
    let key = "tool.distutils.bdist_wheel.py-limited-api";
    if let Some(file) = &facts.pyproject
        && let Some(tag) = file.text_of(key)
    {
        return Some((floor_of_tag(tag)?, "pyproject.toml".to_owned(), file.line_of(key)?));
    }
    let script = facts.build_scripts().find(|file| file.path == "setup.py")?;
    let options = script.calls.iter().find(|call| call.keywords.contains_key("options"))?;
    let texts = &options.keywords["options"];
    let position = texts.iter().position(|text| text == "py_limited_api")?;
    let tag = texts[position..].iter().find_map(|text| floor_of_tag(text))?;
    Some((tag, script.path.clone(), options.line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_and_macros_name_pythons() {
        assert_eq!(floor_of_tag("cp312"), Some((3, 12)));
        assert_eq!(floor_of_macro("0x030B0000"), Some((3, 11)));
        assert_eq!(floor_of_macro("3"), None);
    }
}
