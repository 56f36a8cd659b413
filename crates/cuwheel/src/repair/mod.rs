//! Repairs of wheels: what is wrong with the search paths and the needed libraries of a wheel, and the wheel without it.
//!
//! [`plan`] decides and changes nothing; [`graft`] takes in libraries that are allowed by name; [`difference`] compares each
//! library before and after; [`compose`] writes the wheel. Not for faults that only another build mends.

pub mod compose;
pub mod difference;
pub mod graft;
pub mod plan;

use cuwheel_inspect::rules::{ExaminedWheel, InstalledLibraries};

use crate::cache::Cache;
use crate::error::Result;
use crate::inspection;
use crate::patchelf::{Edit, Patchelf};
use crate::process::check_interrupted;
use compose::{Edited, Repaired, Tags};
use plan::RepairPlan;

/// Makes the changes of `plan` in the wheel `archive`, which is `examined`. Every edited library is compared with what it
/// was, and the wheel file by file with `archive`. The rules are for the caller to ask.
pub fn apply(
    (examined, archive): (&ExaminedWheel, &[u8]),
    plan: &RepairPlan,
    given: &[InstalledLibraries],
    tags: Tags,
    (patchelf, cache): (&Patchelf, &Cache),
) -> Result<Repaired> {
    let scratch = cache.scratch("repair")?;
    let edit = |name: &str, content: &[u8], edit: &Edit| -> Result<Vec<u8>> {
        check_interrupted()?;
        let edited = patchelf.edit(name, content, edit, scratch.path())?;
        difference::check(name, content, &edited, edit)?;
        Ok(edited)
    };
    let mut edited = Edited::default();
    for (path, repair) in &plan.libraries {
        let content = examined.wheel().read(path).map_err(inspection::unreadable)?;
        edited.libraries.insert(path.clone(), edit(path, &content, &repair.edit)?);
    }
    for graft in &plan.grafts {
        edited.grafts.push((graft.clone(), edit(&graft.path, &graft.content, &graft.edit)?));
    }
    compose::compose((examined, archive), &edited, plan, given, tags)
}
