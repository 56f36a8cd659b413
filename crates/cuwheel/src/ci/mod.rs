//! Workflows: rendered for a project, and any repository's read for known mistakes.
//!
//! [`render::files`] is pure, and [`lint::check`] runs nothing. The command is [`crate::commands::ci`].

pub mod lint;
pub mod matrix;
pub mod pins;
pub mod render;
pub mod settings;
pub mod yaml;
