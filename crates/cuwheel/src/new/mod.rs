//! New projects: what they are called, what is in them, and how they appear.
//!
//! Not for the command: see [`crate::commands::new`].

pub mod destination;
pub mod license;
pub mod name;
pub mod origin;
pub mod rendering;
