//! `[tool.cuwheel]` as the toolkit reads it.

use cuwheel_inspect::rules::Finding;

use super::super::facts::ProjectFacts;
use super::super::{Diagnosis, catalog};
use crate::error;
use crate::settings::Settings;

pub(super) fn check(facts: &ProjectFacts, diagnosis: &mut Diagnosis) {
    let Some(file) = &facts.pyproject else { return };
    let Some(item) = file.item("tool.cuwheel") else { return };
    let unknown = Settings::unknown_keys(item);
    for (key, remedy) in &unknown {
        let line = file.line_of(&format!("tool.cuwheel.{key}"));
        let message = format!("tool.cuwheel.{key} is not a setting");
        diagnosis
            .add(Finding::new(&catalog::UNKNOWN_SETTING, message).at(file.path()).on_line(line).with_remedy(remedy));
    }
    if !unknown.is_empty() {
        return;
    }
    if let Err(mistake) = Settings::from_item(Some(item)) {
        let line = file.line_of("tool.cuwheel");
        let finding = Finding::new(&catalog::INVALID_SETTING, mistake.to_string()).at(file.path()).on_line(line);
        let remedy = error::failure_in(&mistake).and_then(error::Failure::advice).map(str::to_owned);
        diagnosis.add(match remedy {
            Some(remedy) => finding.with_remedy(remedy),
            None => finding,
        });
    }
}
