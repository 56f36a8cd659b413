//! Files that belong into site-packages, such as `.pth` files and what they import (PK-36, PK-53).

use super::super::facts::ProjectFacts;
use super::super::{Diagnosis, catalog};
use super::at;

pub(super) fn check(facts: &ProjectFacts, diagnosis: &mut Diagnosis) {
    let texts = build_texts(facts);
    let is_named = |name: &str| texts.iter().any(|text| text.contains(name));
    for file in facts.tree.product().filter(|file| file.extension() == "pth") {
        if !is_named(file.name()) && !is_named("*.pth") {
            let message = "no file of the build names it: it is not in the wheel";
            diagnosis.add(at(&catalog::REDIRECTOR, &file.path, 1, message));
            continue;
        }
        let content = facts.tree.text(&file.path).unwrap_or_default();
        for (index, line) in content.lines().enumerate() {
            let Some(module) =
                line.strip_prefix("import ").map(|rest| rest.split([';', ',', ' ', '.']).next().unwrap_or(rest))
            else {
                continue;
            };
            let beside = format!("{module}.py");
            let lies_there =
                facts.tree.files().iter().any(|other| other.name() == beside && other.directory() == file.directory());
            if lies_there && !is_named(&beside) && !is_named(&format!("\"{module}\"")) && !is_named(module) {
                let message = format!("it imports {module}, and no file of the build names {beside}");
                diagnosis.add(at(&catalog::REDIRECTOR, &file.path, index + 1, message));
            }
        }
        missing_in_editable(facts, file.name(), diagnosis);
    }
}

/// A setup.py that copies the file in `build_py`, where editable installs do not come by.
fn missing_in_editable(facts: &ProjectFacts, name: &str, diagnosis: &mut Diagnosis) {
    let Some(script) = facts.build_scripts().find(|script| script.strings.iter().any(|text| text.text.contains(name)))
    else {
        return;
    };
    let classes = || {
        let of_calls = script.calls.iter().flat_map(|call| call.keys.get("cmdclass").into_iter().flatten());
        let of_assigns = script.assigns.iter().filter(|assign| assign.target.to_lowercase().contains("cmdclass"));
        of_calls.chain(of_assigns.flat_map(|assign| assign.keys.iter().chain(&assign.key)))
    };
    let names_a_command = |command: &str| {
        let is_imported = script
            .imports
            .iter()
            .any(|import| import.module.ends_with(command) || import.names.iter().any(|name| name == command));
        is_imported || classes().any(|class| class == command)
    };
    let copies = ["build_py", "install_lib", "install", "bdist_wheel"].iter().any(|command| names_a_command(command));
    if copies && !names_a_command("editable_wheel") && !names_a_command("develop") {
        let line = script.strings.iter().find(|text| text.text.contains(name)).map_or(1, |text| text.line);
        let message = format!("{name} is copied by a command that editable installs do not run");
        diagnosis.add(at(&catalog::REDIRECTOR, &script.path, line, message));
    }
}

/// Texts of the files that say what goes into the wheel. MANIFEST.in speaks of the sdist only.
fn build_texts(facts: &ProjectFacts) -> Vec<String> {
    let mut texts: Vec<String> = facts.pyproject.iter().map(|file| file.text().to_owned()).collect();
    texts.extend(facts.build_scripts().flat_map(|script| script.strings.iter().map(|text| text.text.clone())));
    texts.extend(facts.meson.iter().flat_map(|file| file.texts.iter().map(|(text, _)| text.clone())));
    let commands = facts.cmake.iter().flat_map(|file| &file.commands);
    texts.extend(commands.flat_map(|command| command.arguments.iter().map(|(text, _)| text.clone())));
    texts.extend(facts.setup_cfg.iter().flat_map(|cfg| cfg.entries().iter().map(|entry| entry.value.clone())));
    texts
}
