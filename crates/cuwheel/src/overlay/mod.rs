//! Overlays: a released wheel of someone else's, with its native modules replaced by those of this project.
//!
//! [`entry`] is what the settings say of one, [`upstream`] where the released wheel comes from, [`compose`] makes the new
//! wheel of the two, and [`proof`] shows that it works. Which distributions there are is in the settings only. The command is
//! [`crate::commands::overlay`].

pub mod bill;
pub mod compose;
pub mod entry;
pub mod headers;
pub mod proof;
pub mod upstream;
