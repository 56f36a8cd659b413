//! An editable install from its start to its proof. What is put in place replaces in one step what was there, and nothing
//! counts as installed before it was proven.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use cuwheel_inspect::wheel::Wheel;
use fs_err as fs;

use super::examination::Examination;
use super::hook;
use super::inputs::{self, Hashes, Snapshot};
use super::layout::Layout;
use super::note::{FileNote, Note, Notes};
use super::placement;
use super::plan::Plan;
use super::running::{self, Running};
use super::shadows::{self, Winners};
use super::site::{self, Editable};
use crate::cache_keys;
use crate::environment::BuildEnvironment;
use crate::error::{Failure, Result};
use crate::files;
use crate::inspection;
use crate::maturin::{self, Compilation};
use crate::output::Output;
use crate::patchelf::Patchelf;
use crate::process::{Process, check_interrupted};
use crate::proof::{self, Imports};
use crate::requirements;
use crate::sources;

/// What was done.
#[derive(Debug)]
pub struct Done {
    /// What is remembered of it.
    pub note: Note,
    /// How many crates were compiled.
    pub compiled_crates: usize,
    /// Files of earlier installs that were removed.
    pub removed: Vec<PathBuf>,
    /// Processes that go on with what was there before.
    pub running: Vec<Running>,
}

/// A wheel as maturin left it, read once.
struct Built {
    wheel: Wheel,
    archive: Vec<u8>,
    compiled_crates: usize,
}

/// Refuses to build on import where an environment would have to be made first: nobody who imports expects to wait for it.
pub fn check_environment(plan: &Plan) -> Result<()> {
    if !plan.on_import || (plan.lock.is_current() && plan.environment()?.is_ready()) {
        return Ok(());
    }
    Err(Failure::machine("its sources changed, and the environment that builds it is gone")
        .remedy(format!("run `develop` in {}", plan.project.root.display()))
        .into())
}

/// Builds, installs and proves. The caller holds the locks of the checkout.
pub fn run(plan: &Plan, examination: &Examination, output: &Output) -> Result<Done> {
    let environment = prepare(plan, output)?;
    announce(plan, examination, output);
    let before = BeforeTheBuild::note(plan, examination)?;
    let built = compile(plan, examination, &environment, output)?;
    check_interrupted()?;
    inspection::check_artifacts(&built.wheel, &plan.project.settings.artifacts)?;
    let own = plan.notes.own_files(&plan.destination);
    let mut layout = Layout::of(&built.wheel, &plan.project, &|path| own.contain(path))?;
    if layout.modules.is_empty() {
        return Err(Failure::failed("the build made no extension module")
            .remedy("the crate has to be a cdylib, and tool.maturin.module-name the name of its module")
            .into());
    }
    if !plan.destination.exists {
        plan.destination.create(&plan.uv(output)?, output)?;
    }
    let site_packages = shadows::site_packages(&plan.destination)?;
    let patchelf = || Patchelf::find(&plan.destination.interpreter, &plan.cache, &|| plan.uv(output), output);
    placement::adapt_search_paths(&mut layout, &plan.project, &site_packages, &patchelf)?;
    let editable = compose(plan, &built, &layout)?;
    let mut note = describe(plan, (&layout, &editable), &site_packages);
    let mut changes = put(plan, examination, (&layout, &editable, &site_packages), &note, output)?;
    changes.removed.extend(clear_the_way(plan, &note, output)?);
    prove(plan, &built.wheel, &mut note, output)?;
    remember(plan, (examination, &before, &layout), &mut note, output)?;
    advise(plan, &layout, output)?;
    let Changes { replaced, removed, installed } = changes;
    let former: Vec<PathBuf> = replaced.into_iter().chain(removed.iter().cloned()).collect();
    let running = running::find(&former, installed.then_some(&plan.destination.directory));
    Ok(Done { note, compiled_crates: built.compiled_crates, removed, running })
}

/// What changed on disk.
#[derive(Debug, Default)]
struct Changes {
    /// Files that had another content.
    replaced: Vec<PathBuf>,
    /// Files that are gone.
    removed: Vec<PathBuf>,
    /// Whether site-packages has other files than before, which Python reads when it starts.
    installed: bool,
}

/// Says why it builds: whoever imports has to know what they wait for.
fn announce(plan: &Plan, examination: &Examination, output: &Output) {
    let reason = if examination.reasons.is_empty() { "as --force asks".to_owned() } else { examination.summary() };
    if plan.on_import {
        output.line(&format!("building {} again: {reason}", plan.project.name));
    } else {
        output.step("build", &format!("{}: {reason}", plan.project.name));
    }
}

/// Makes sure that there is everything to compile with.
fn prepare(plan: &Plan, output: &Output) -> Result<BuildEnvironment> {
    let (project, interpreter) = (&plan.project, &plan.destination.interpreter);
    let (_, linker) = plan.how();
    plan.cache.remove_abandoned();
    Notes::forget_gone(&plan.cache);
    requirements::check_declared(project, linker)?;
    plan.lock.ensure(plan.access.policy(), &|| plan.uv(output), output)?;
    maturin::ensure_cargo_lock(project, plan.access, output)?;
    if sources::has_native_sources(project)? {
        interpreter.require_headers()?;
    }
    let environment = plan.environment()?;
    environment.provision(&plan.cache, interpreter, &plan.lock, &|| plan.uv(output), output)?;
    Ok(environment)
}

fn compile(plan: &Plan, examination: &Examination, environment: &BuildEnvironment, output: &Output) -> Result<Built> {
    let (compatibility, linker) = plan.how();
    let compilation = Compilation {
        purpose: plan.purpose(),
        project: &plan.project,
        interpreter: &plan.destination.interpreter,
        environment,
        rustc: &examination.rustc,
        abi: &plan.abi,
        // An import finds one library: the one for the newest version.
        cuda_major: plan.project.settings.cuda.newest(),
        compatibility,
        linker,
        offline: plan.access.offline,
        locked: true,
        log: plan.project.work_directory().join("develop.log"),
    };
    let scratch = plan.cache.scratch("develop")?;
    let compiled = compilation.run(scratch.path(), output)?;
    let archive = fs::read(&compiled.wheel)?;
    let file = compiled.wheel.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Built { wheel: inspection::open(&file, &archive)?, archive, compiled_crates: compiled.compiled_crates })
}

fn compose(plan: &Plan, built: &Built, layout: &Layout) -> Result<Editable> {
    let state = plan.notes.state_path(&plan.destination);
    let gates = layout.gates(&built.wheel);
    let hook = plan.options.rebuild_on_import.then(|| hook::source(&plan.project, &gates, &state)).transpose()?;
    Editable::compose(&plan.project, (&built.wheel, &built.archive), layout, hook.as_deref())
}

/// What is known of the install before it is made.
fn describe(plan: &Plan, (layout, editable): (&Layout, &Editable), site_packages: &Path) -> Note {
    let mut note = Note::new(&plan.project, &plan.destination, &plan.options);
    note.placed = placement::notes(layout);
    note.site = editable.files(site_packages);
    note.programs = editable.programs(&plan.destination);
    note.modules = layout.module_files(site_packages);
    note
}

/// Puts everything in place.
fn put(
    plan: &Plan,
    examination: &Examination,
    (layout, editable, site_packages): (&Layout, &Editable, &Path),
    note: &Note,
    output: &Output,
) -> Result<Changes> {
    let before = examination.note.as_ref();
    // From here on the files are known as ours, with those that were before, however far this gets.
    let mut all = note.clone();
    all.placed.extend(before.iter().flat_map(|before| before.placed.iter().cloned()));
    plan.notes.write(&plan.destination, &all)?;
    let mut changes = Changes { replaced: placement::put(layout)?, ..Changes::default() };
    match before.filter(|_| !plan.force).map(|before| site_change(before, note)) {
        Some(SiteChange::None) => {}
        Some(SiteChange::Contents) => changes.replaced.extend(editable.update(site_packages)?),
        Some(SiteChange::Everything) | None => {
            output.step("install", &format!("into {}", plan.destination.directory.display()));
            changes.replaced.extend(note.site.iter().map(|file| file.path.clone()).filter(|path| path.exists()));
            let uv = plan.uv(output)?;
            editable.install(&plan.project, (&plan.destination, site_packages), &plan.options, (&plan.cache, &uv))?;
            changes.installed = true;
        }
    }
    site::finish(&plan.project, site_packages)?;
    changes.removed = placement::remove_outdated(before, &note.placed, &plan.notes.others(&plan.destination))?;
    Ok(changes)
}

/// What differs in site-packages.
#[derive(Debug, PartialEq, Eq)]
enum SiteChange {
    None,
    /// Contents of files only, and none that an installer reads.
    Contents,
    Everything,
}

fn site_change(before: &Note, now: &Note) -> SiteChange {
    let by_path = |note: &Note| -> BTreeMap<PathBuf, String> {
        note.site.iter().map(|file| (file.path.clone(), file.sha256.clone())).collect()
    };
    let (old, new) = (by_path(before), by_path(now));
    let is_for_installers = |path: &Path| path.ends_with("METADATA") || path.ends_with("entry_points.txt");
    let is_whole =
        before.site.iter().all(FileNote::holds) && before.programs.iter().all(|path| files::is_executable(path));
    let same_options = (&before.options.extras, &before.options.groups, before.options.dependencies)
        == (&now.options.extras, &now.options.groups, now.options.dependencies);
    if !is_whole || !same_options || !old.keys().eq(new.keys()) {
        return SiteChange::Everything;
    }
    let changed: Vec<&PathBuf> =
        new.iter().filter(|(path, sha256)| old[*path] != **sha256).map(|(path, _)| path).collect();
    match changed[..] {
        [] => SiteChange::None,
        ref changed if changed.iter().any(|path| is_for_installers(path)) => SiteChange::Everything,
        _ => SiteChange::Contents,
    }
}

/// Removes what would be imported instead and is an earlier install's own; anything else is named.
fn clear_the_way(plan: &Plan, note: &Note, output: &Output) -> Result<Vec<PathBuf>> {
    let ask = || Winners::ask(&plan.destination, note.modules.keys(), &plan.project.root);
    let mut removed = Vec::new();
    let winners = ask()?;
    let own = plan.notes.own_files(&plan.destination);
    for (_, file) in winners.shadows(&note.modules) {
        if own.contain(file) {
            fs::remove_file(file)?;
            removed.push(file.to_path_buf());
        }
    }
    let winners = if removed.is_empty() { winners } else { ask()? };
    let shadows = winners.shadows(&note.modules);
    if !shadows.is_empty() {
        return Err(shadows::refusal(&plan.project.name, &shadows).into());
    }
    if let Some(module) = winners.unreachable(&note.modules).first() {
        return Err(Failure::failed(format!("Python does not find {module}, which was just installed"))
            .detail(format!("it lies in {}", note.modules[*module].display()))
            .remedy("every package above it needs an __init__.py, or none of them, in every place of the search path")
            .into());
    }
    for (module, file) in winners.shadows_in_project(&note.modules) {
        let place = plan.project.root.display();
        output.warn(format!("a Python that is started in {place} imports {module} from {}", file.display()));
    }
    Ok(removed)
}

/// Imports in a fresh process, from a neutral directory, and compares what was loaded with what was built.
fn prove(plan: &Plan, wheel: &Wheel, note: &mut Note, output: &Output) -> Result<()> {
    let names = proof::modules_to_import(wheel, &plan.project.settings.modules);
    output.step("prove", &format!("{} on {}", names.join(", "), plan.destination.interpreter));
    let scratch = plan.cache.scratch("proof")?;
    let imports = Imports { names: names.clone(), ..Imports::default() };
    let process = shadows::python(&plan.destination, scratch.path());
    let subject = format!("the editable install of {}", plan.project.name);
    let report = proof::run(process, &plan.destination.interpreter, &imports, scratch.path(), &subject)?;
    let installed: BTreeMap<PathBuf, &str> =
        note.placed.iter().chain(&note.site).map(|file| (files::resolved(&file.path), file.sha256.as_str())).collect();
    let tree = files::resolved(&plan.project.python_source);
    proof::judge(&report, &subject, &|name, file, sha256| {
        let file = files::resolved(file);
        match installed.get(&file) {
            Some(expected) => sha256 == Some(*expected),
            // A namespace has modules of other distributions too.
            None => file.starts_with(&tree) || !is_module_of(wheel, name),
        }
    })?;
    let loaded: BTreeSet<(&str, PathBuf)> =
        report.files().map(|(name, file, _)| (name, files::resolved(file))).collect();
    for (module, file) in &note.modules {
        if !loaded.contains(&(module.as_str(), files::resolved(file))) {
            return Err(Failure::failed(format!("{module} was imported, and not loaded from what was built"))
                .detail(format!("it was built into {}", file.display()))
                .remedy("find what else provides it: an import hook, or code of the package that loads it by hand")
                .into());
        }
    }
    note.imported = names;
    Ok(())
}

fn is_module_of(wheel: &Wheel, name: &str) -> bool {
    let path = name.replace('.', "/");
    wheel.entry(&format!("{path}.py")).is_some()
        || wheel.entry(&format!("{path}/__init__.py")).is_some()
        || wheel.extension_modules().iter().any(|module| module.module() == name)
}

/// The inputs as they were when the build started.
struct BeforeTheBuild {
    hashes: Hashes,
    at: SystemTime,
}

impl BeforeTheBuild {
    fn note(plan: &Plan, examination: &Examination) -> Result<Self> {
        let mut paths = inputs::known(&plan.project)?;
        paths.extend(examination.snapshot.hashes.keys().cloned());
        Ok(Self { hashes: Snapshot::take(&paths).hashes, at: SystemTime::now() })
    }

    /// The inputs that changed since, as far as they are known from before; else by their times.
    fn changes(&self, now: &Snapshot) -> Vec<String> {
        let since = self.at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
        let since = i128::try_from(since).unwrap_or(i128::MAX);
        let changed = now.hashes.iter().filter(|(path, sha256)| match self.hashes.get(*path) {
            Some(before) => before != *sha256,
            None => now.stats[*path].is_some_and(|stat| stat.changed_ns > since),
        });
        changed.map(|(path, _)| path.display().to_string()).collect()
    }
}

/// Keeps what the next examination compares with, unless it would be of another state than what was compiled.
fn remember(
    plan: &Plan,
    (examination, before, layout): (&Examination, &BeforeTheBuild, &Layout),
    note: &mut Note,
    output: &Output,
) -> Result<()> {
    let project = &plan.project;
    let directories = maturin::profile_directories(project, plan.purpose(), &examination.rustc);
    let (known, mut noted) = (inputs::known(project)?, inputs::noted(project, &directories)?);
    // What is installed as a copy is not live.
    noted.extend(layout.site.iter().flat_map(|entry| sources::origins(project, entry)).filter(|path| path.is_file()));
    let snapshot = Snapshot::take(&known.union(&noted).cloned().collect());
    note.variables = sources::variables_noted_by_cargo(&directories);
    note.facts = plan.facts(&examination.rustc, &note.variables)?;
    note.noted = noted.difference(&known).cloned().collect();
    let changes = before.changes(&snapshot);
    if changes.is_empty() {
        note.inputs.clone_from(&snapshot.hashes);
        note.proven = true;
    } else {
        let files = changes.join(", ");
        output.warn(format!("{files} changed during the build, which may hold either state: run `develop` again"));
    }
    plan.notes.write(&plan.destination, note)?;
    make_looking_quick(plan, &snapshot)
}

/// Says what makes an editable install lie later, or elsewhere.
fn advise(plan: &Plan, layout: &Layout, output: &Output) -> Result<()> {
    if plan.on_import {
        return Ok(());
    }
    let project = &plan.project;
    for entry in &layout.differing {
        output
            .warn(format!("{entry} is another file in the wheel than in the tree, whose file is the one that is used"));
    }
    for placed in &layout.placed {
        // Exit code 1: not ignored. Outside of a checkout, and without git, it is another.
        let git = Process::new("git").directory(&project.root).args(["check-ignore", "--quiet"]).arg(&placed.path);
        if git.capture().is_ok_and(|finished| finished.status.code() == Some(1)) {
            let path = placed.path.strip_prefix(&project.root).unwrap_or(&placed.path).display();
            output.warn(format!("{path} is a result of the build that git does not ignore: add it to .gitignore"));
        }
    }
    let unnoticed = if cache_keys::is_used(project) { cache_keys::unnoticed(project)? } else { Vec::new() };
    if !unnoticed.is_empty() {
        let keys = cache_keys::suggestions(&unnoticed).join(", ");
        output.warn(format!(
            "`uv sync` would not notice every change: add to tool.uv.cache-keys in pyproject.toml: {keys}"
        ));
    }
    Ok(())
}

/// Keeps what makes the next look quick: what the interpreter said, and what the import hook compares with.
pub fn make_looking_quick(plan: &Plan, snapshot: &Snapshot) -> Result<()> {
    plan.destination.interpreter.remember(&plan.cache, &plan.destination.python)?;
    if plan.options.rebuild_on_import {
        let state = hook::state(&plan.project, &plan.destination, snapshot)?;
        files::write_if_changed(&plan.notes.state_path(&plan.destination), state.as_bytes())?;
    }
    Ok(())
}
