//! `bench develop`: how long editable installs of this repository take, beside maturin and pip on the same sources in the
//! same run; and what looking costs, in a command and on import.

use std::fmt::Write as _;
use std::path::Path;

use cuwheel::cache::Cache;
use cuwheel::cli::Outcome;
use cuwheel::environment::{Access, BuildEnvironment, path_with};
use cuwheel::error::{Failure, Result};
use cuwheel::files;
use cuwheel::interpreter::{self, Interpreter};
use cuwheel::output::Output;
use cuwheel::process::Process;
use cuwheel::project::Project;
use cuwheel::uv::Uv;
use serde_json::json;

use super::contender::{self, Contender, in_checkout, median_seconds};
use super::succeed;

/// The clocks of file systems tick: sources that are younger are looked at by the tool.
const TRUSTED_AFTER_S: u64 = 3;
/// How many files the look at many files is measured with.
const MANY_FILES: usize = 1000;

/// Measures the import of a package that nothing changed of, without what the package itself imports.
const IMPORT: &str = "\
import sys, time
gate = sys.meta_path[0]
assert type(gate).__name__ == 'Gate', gate
started = time.perf_counter()
gate.find_spec('cuwheel')
print(time.perf_counter() - started)
";

/// What the contenders share.
struct Machine {
    project: Project,
    interpreter: Interpreter,
    environment: BuildEnvironment,
    uv: Uv,
}

/// Measures, and makes a table of it.
pub(super) fn execute(output: &Output) -> Result<Outcome> {
    let project = Project::find(Path::new("."))?;
    let interpreter = interpreter::find(None, output)?;
    let environment = BuildEnvironment::ready(&project, &interpreter, Access { offline: false, locked: true }, output)?;
    let uv = Uv::find(&interpreter, &Cache::locate()?, &project.root, false, output)?;
    let scratch = contender::empty_directory(&project)?;
    let machine = Machine { project, interpreter, environment, uv };

    let contenders = machine.contenders(&scratch)?;
    let mut rows = Vec::new();
    for contender in &contenders {
        rows.push(contender.measure(output)?);
    }
    output.step("measure", "what looking costs");
    let look = Look::measure(&contenders[0])?;
    std::fs::remove_dir_all(&scratch)?;
    let mut outcome = contender::outcome(&rows, "one Rust file");
    outcome.text += &look.render();
    outcome.json["check_s"] = json!(look.check_s);
    outcome.json["check_with_more_files_s"] = json!(look.check_with_more_files_s);
    outcome.json["more_files"] = json!(MANY_FILES);
    outcome.json["import_s"] = json!(look.import_s);
    Ok(outcome)
}

impl Machine {
    fn contenders(&self, scratch: &Path) -> Result<Vec<Contender>> {
        let checkout = |name: &str| contender::checkout(&self.project.root, scratch, name);
        let (ours, with_maturin, with_pip) = (checkout("cuwheel")?, checkout("maturin")?, checkout("pip")?);
        let venv = |checkout: &Path| checkout.with_extension("venv");

        let develop = |program: Process| in_checkout(program.arg("develop").arg("--venv").arg(venv(&ours)), &ours);
        let path = path_with(&self.environment.directory().join("bin"));
        let uv = self.uv.program().parent().unwrap_or(Path::new("/"));
        let path = std::env::join_paths(std::iter::once(uv.to_path_buf()).chain(std::env::split_paths(&path)))
            .map_err(|error| Failure::machine(format!("PATH cannot be extended: {error}")))?;
        self.uv.create_environment(&self.interpreter, &venv(&with_maturin))?;
        // It builds without isolation: the headers are those of the environment.
        let numpy = Process::new(self.uv.program()).args(["pip", "install", "--quiet", "numpy>=2.0", "--python"]);
        succeed(&numpy.arg(venv(&with_maturin).join("bin/python")))?;
        let maturin = Process::new(self.environment.maturin())
            .args(["develop", "--uv"])
            .env("PATH", path)
            .env("VIRTUAL_ENV", venv(&with_maturin))
            .env_remove("CONDA_PREFIX");
        let maturin = in_checkout(maturin, &with_maturin);
        succeed(&Process::new(&self.interpreter.base_executable).args(["-m", "venv"]).arg(venv(&with_pip)))?;
        let pip = Process::new(venv(&with_pip).join("bin/python")).args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--editable",
            ".",
        ]);
        let pip = in_checkout(pip, &with_pip);
        Ok(vec![
            Contender {
                touched: contender::TOUCHED,
                remembers: true,
                name: "cargo xtask develop",
                fresh: develop(Process::new("cargo").arg("xtask")),
                again: develop(Process::new(ours.join("target/debug/xtask"))),
                checkout: ours.clone(),
            },
            Contender {
                touched: contender::TOUCHED,
                remembers: true,
                name: "maturin develop --uv",
                fresh: maturin.clone(),
                again: maturin,
                checkout: with_maturin.clone(),
            },
            Contender {
                touched: contender::TOUCHED,
                remembers: true,
                name: "pip install -e .",
                fresh: pip.clone(),
                again: pip,
                checkout: with_pip.clone(),
            },
        ])
    }
}

/// What it costs to look whether an install is current.
#[expect(clippy::struct_field_names, reason = "the unit comes last")]
struct Look {
    check_s: f64,
    check_with_more_files_s: f64,
    import_s: f64,
}

impl Look {
    fn measure(ours: &Contender) -> Result<Self> {
        let install = ours.again.clone().arg("--rebuild-on-import");
        let check = ours.again.clone().arg("--check");
        succeed(&install)?;
        std::thread::sleep(std::time::Duration::from_secs(TRUSTED_AFTER_S));
        succeed(&install)?;
        let python = ours.checkout.with_extension("venv").join("bin/python");
        let mut imports = Vec::new();
        for _ in 0..9 {
            let printed = succeed(&Process::new(&python).args(["-c", IMPORT]))?.stdout;
            imports
                .push(printed.trim().parse::<f64>().map_err(|error| Failure::failed(format!("{printed}: {error}")))?);
        }
        imports.sort_by(f64::total_cmp);
        let check_s = median_seconds(&check)?;
        for number in 0..MANY_FILES {
            let path = ours.checkout.join(format!("crates/cuwheel-numpy/src/many/{}/{number}.h", number % 20));
            files::write_atomically(&path, format!("/* {number} {} */\n", "x".repeat(8000)).as_bytes())?;
        }
        succeed(&install)?;
        let check_with_more_files_s = median_seconds(&check)?;
        Ok(Self { check_s, check_with_more_files_s, import_s: imports[imports.len() / 2] })
    }

    fn render(&self) -> String {
        let mut text = String::from("\n| looking whether anything changed | time |\n|---|---|\n");
        let _ = writeln!(text, "| `develop --check` | {:.0} ms |", self.check_s * 1e3);
        let _ =
            writeln!(text, "| the same with {MANY_FILES} more files | {:.0} ms |", self.check_with_more_files_s * 1e3);
        let _ = writeln!(text, "| the import hook | {:.1} ms |", self.import_s * 1e3);
        text
    }
}
