//! Readers of what projects of any build backend consist of: their files, TOML, INI, requirements, and words of sources.
//!
//! They give no meaning to what they read: [`crate::doctor`] and [`crate::port`] do.

pub(crate) mod ini;
pub(crate) mod requirement;
pub(crate) mod tokens;
pub(crate) mod toml_file;
pub(crate) mod tree;
