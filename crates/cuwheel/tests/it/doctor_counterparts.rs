//! Sound counterparts of the faulty projects: what is close to a fault and none.

use crate::doctor_corpus::{Case, projects};

/// Projects in which nothing is found, at least one for each rule on projects.
pub(crate) fn sound() -> Vec<Case> {
    projects(include_str!("doctor/sound.txt"))
}
