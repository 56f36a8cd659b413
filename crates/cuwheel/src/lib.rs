//! The toolkit behind `cargo xtask` and the binary `cuwheel`: it builds, packages and tests Python extensions written in
//! Rust, C and CUDA.
//!
//! A project's xtask is one line: `fn main() -> std::process::ExitCode { cuwheel::main() }`. Every command goes from
//! arguments as typed to a plan, which `--dry-run` prints, to a flat run; see [`commands`].

#[cfg(not(unix))]
compile_error!("cuwheel runs on Linux: it relies on process groups and file modes");

use std::process::ExitCode;

pub mod byte_size;
pub mod cache;
pub mod cache_keys;
pub mod cargo;
pub mod cargo_config;
pub mod cargo_manifest;
pub mod ci;
pub mod cli;
pub mod commands;
pub mod cuda;
pub mod develop;
pub mod doctor;
pub mod env_vars;
pub mod environment;
pub mod error;
pub mod files;
pub mod findings;
pub mod floor;
pub mod gpu;
pub mod html_report;
pub mod inspection;
pub mod interpreter;
pub mod library_owner;
pub mod lock_file;
pub mod manifest;
pub mod maturin;
pub mod new;
pub mod output;
pub mod overlay;
pub mod patchelf;
pub mod port;
pub mod process;
pub mod project;
pub mod proof;
pub mod pytest;
mod reading;
pub mod repair;
pub mod requirements;
pub mod rustflags;
pub mod sarif;
pub mod sbom;
pub mod sdist;
pub mod settings;
pub mod settings_schema;
pub mod sources;
pub mod templates;
pub mod test_libraries;
pub mod treemap;
pub mod uv;
pub mod wheel_check;
pub mod wheel_headers;
pub mod wheel_writer;

/// Runs the command that the process was started with.
pub fn main() -> ExitCode {
    match cli::parse::<cli::Cli>() {
        Ok(cli) => cli::run(&cli.command),
        Err(code) => code,
    }
}
