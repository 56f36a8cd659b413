//! The command line: arguments as typed, and the path from them to an exit code.
//!
//! Not for what commands do: each has its file in [`crate::commands`].

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use serde_json::{Value, json};

use crate::commands::{build_wheel, check_wheel, ci, develop, doctor, lock, new, overlay, repair, test, test_gpu};
use crate::error::{self, Result};
use crate::output::{Output, Verbosity};
use crate::process;
use crate::project::Project;

/// The version of the JSON documents; counted up when a field changes its meaning or goes.
pub const JSON_SCHEMA: u32 = 1;

/// Builds, packages and tests CUDA Python extensions written in Rust.
#[derive(Debug, Parser)]
#[command(
    name = "cuwheel",
    version,
    propagate_version = true,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands of the toolkit.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Build a wheel, and prove that it installs and imports
    BuildWheel(build_wheel::Arguments),
    /// Install the project for editing, and prove that what was built is loaded
    Develop(Box<develop::Arguments>),
    /// Run the Rust tests, then the Python tests against the installed wheel
    Test(test::Arguments),
    /// Run the GPU tests against the installed wheel, here or from a bundle elsewhere
    TestGpu(Box<test_gpu::Arguments>),
    /// Inspect wheels by named rules, from anywhere
    CheckWheel(check_wheel::Arguments),
    /// Mend search paths and missing libraries of wheels, from anywhere
    Repair(repair::Arguments),
    /// Rebuild a released wheel with its native modules replaced by this project's
    Overlay(overlay::Arguments),
    /// Say what is wrong with a project and with this machine, by named rules
    Doctor(doctor::Arguments),
    /// Render workflows, compare them with what is committed, and lint those of any repository
    Ci(ci::Arguments),
    /// Resolve the requirements of the build and of the tests into committed locks
    Lock(lock::Arguments),
    /// Make a project with CUDA kernels that builds, tests and packages at once
    New(new::Arguments),
}

/// What every command takes.
#[derive(Args, Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line are booleans")]
pub struct Common {
    /// The directory of the project, or one inside it
    #[arg(long, value_name = "DIRECTORY", default_value = ".", hide_default_value = true)]
    pub project: PathBuf,
    /// Print the plan and do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Print the result as JSON on stdout
    #[arg(long)]
    pub json: bool,
    /// Use no network
    #[arg(long)]
    pub offline: bool,
    /// Show every line of what is run
    #[arg(long, short, conflicts_with = "quiet")]
    pub verbose: bool,
    /// Show errors only
    #[arg(long, short)]
    pub quiet: bool,
}

impl Common {
    /// Where the command says what it has to say. Also for commands that a project adds to its xtask.
    pub fn output(&self) -> Output {
        let verbosity = match (self.quiet, self.verbose) {
            (true, _) => Verbosity::Quiet,
            (_, true) => Verbosity::Verbose,
            _ => Verbosity::Normal,
        };
        Output::new(verbosity, self.json)
    }
}

/// What a command hands back: text for people and an object for machines.
#[derive(Debug)]
pub struct Outcome {
    /// The text for stdout.
    pub text: String,
    /// The fields for JSON.
    pub json: Value,
    /// Whether the thing asked for succeeded; a failure that is a result, such as a failed test.
    pub succeeded: bool,
}

impl Outcome {
    /// A success.
    pub const fn done(text: String, json: Value) -> Self {
        Self { text, json, succeeded: true }
    }
}

/// Runs a command to its exit code.
pub fn run(command: &Command) -> ExitCode {
    let (name, common) = match command {
        Command::BuildWheel(arguments) => ("build-wheel", &arguments.common),
        Command::Develop(arguments) => ("develop", &arguments.common),
        Command::Test(arguments) => ("test", &arguments.common),
        Command::TestGpu(arguments) => ("test-gpu", &arguments.common),
        Command::CheckWheel(arguments) => ("check-wheel", &arguments.common),
        Command::Repair(arguments) => ("repair", &arguments.common),
        Command::Overlay(arguments) => ("overlay", &arguments.common),
        Command::Doctor(arguments) => ("doctor", &arguments.common),
        Command::Ci(arguments) => (arguments.command.name(), arguments.command.common()),
        Command::Lock(arguments) => ("lock", &arguments.common),
        Command::New(arguments) => ("new", &arguments.common),
    };
    let output = common.output();
    finish(name, &output, dispatch(command, common, &output))
}

fn dispatch(command: &Command, common: &Common, output: &Output) -> Result<Outcome> {
    process::install_interrupt_handler()?;
    let project = || Project::find(&common.project);
    match command {
        Command::BuildWheel(arguments) => build_wheel::execute(project()?, arguments, output),
        Command::Develop(arguments) => develop::execute(project()?, arguments, output),
        Command::Test(arguments) => test::execute(&project()?, arguments, output),
        Command::TestGpu(arguments) => test_gpu::execute(&project, arguments, output),
        Command::CheckWheel(arguments) => check_wheel::execute(arguments, output),
        Command::Repair(arguments) => repair::execute(arguments, output),
        Command::Overlay(arguments) => overlay::execute(project()?, arguments, output),
        Command::Doctor(arguments) => doctor::execute(arguments, output),
        Command::Ci(arguments) => ci::execute(&project, arguments, output),
        Command::Lock(arguments) => lock::execute(&project()?, arguments, output),
        Command::New(arguments) => new::execute(arguments, output),
    }
}

/// Writes a command's outcome, and turns it into an exit code. Also for commands that a project adds to its xtask.
pub fn finish(name: &str, output: &Output, outcome: Result<Outcome>) -> ExitCode {
    let shown = outcome.and_then(|outcome| output.result(&outcome.text).map(|()| outcome));
    let (code, mut document) = match shown {
        Ok(outcome) => (u8::from(!outcome.succeeded), outcome.json),
        Err(failure) => {
            output.error(&error::render(&failure));
            (error::kind_of(&failure).exit_code(), json!({ "error": error::to_json(&failure) }))
        }
    };
    document["schema"] = json!(JSON_SCHEMA);
    document["command"] = json!(name);
    document["ok"] = json!(code == 0);
    match output.result_json(document) {
        Ok(()) => ExitCode::from(code),
        Err(failure) => {
            output.error(&error::render(&failure));
            ExitCode::from(error::kind_of(&failure).exit_code())
        }
    }
}

/// Parses the command line of a program, with its mistakes answered as JSON where JSON was asked for.
pub fn parse<T: Parser>() -> Result<T, ExitCode> {
    T::try_parse().map_err(|mistake| {
        let wants_json =
            std::env::args_os().take_while(|argument| argument != "--").any(|argument| argument == "--json");
        if mistake.use_stderr() && wants_json {
            let text = mistake.to_string();
            let message = text.strip_prefix("error: ").unwrap_or(&text).trim().to_owned();
            let failure = error::Failure::usage(message);
            return finish("", &Output::new(Verbosity::Normal, true), Err(failure.into()));
        }
        let _ = mistake.print();
        ExitCode::from(u8::try_from(mistake.exit_code()).unwrap_or(2))
    })
}
