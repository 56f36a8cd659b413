//! What of an editable install lies in site-packages: a wheel of its own, with everything that is not in the tree, a `.pth`
//! file that leads to the tree, and perhaps the import hook.
//!
//! uv installs it, so that scripts, RECORD and what was there before are dealt with as for any wheel. Not for files beside
//! the sources: see [`super::placement`].

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use cuwheel_inspect::digest::Sha256Digest;
use cuwheel_inspect::wheel::Wheel;
use fs_err as fs;
use serde_json::json;

use super::destination::Destination;
use super::layout::{self, Layout};
use super::note::{FileNote, Options};
use crate::cache::Cache;
use crate::error::{Failure, Result};
use crate::files;
use crate::project::Project;
use crate::uv::Uv;
use crate::wheel_writer::{self, Writer, file_url};

/// The wheel that is installed.
#[derive(Debug)]
pub struct Editable {
    file: String,
    bytes: Vec<u8>,
    dist_info: String,
    /// What it brings to site-packages, by path there.
    contents: BTreeMap<String, String>,
    programs: Vec<String>,
    /// What leads to the tree.
    pth: String,
}

/// The name of the `.pth` file: as other build backends name theirs.
pub fn pth_name(project: &Project) -> String {
    format!("__editable__.{}-{}.pth", project.distribution(), project.version)
}

/// The same, where Python has to read it before the project's own: it reads them in the order of their names, and theirs
/// may import what is in the tree.
fn pth_name_before(project: &Project, layout: &Layout) -> String {
    let name = pth_name(project);
    let is_first = layout.site.iter().filter(|path| layout::has_extension(path, "pth")).all(|path| name < *path);
    if is_first { name } else { format!("!{name}") }
}

/// The name of the module with the import hook.
pub fn hook_module(project: &Project) -> String {
    format!("_cuwheel_rebuild_{}", project.distribution())
}

/// A `.pth` file that leads to the tree while uv replaces the other one: the tree stays importable between the removal of
/// the old files and the arrival of the new ones, also when the command is killed there.
fn bridge(project: &Project, site_packages: &Path) -> PathBuf {
    site_packages.join(format!("__editable__.{}.pth", project.distribution()))
}

/// Removes what only an install that is under way needs.
pub fn finish(project: &Project, site_packages: &Path) -> Result<()> {
    let bridge = bridge(project, site_packages);
    if bridge.is_file() { Ok(fs::remove_file(&bridge)?) } else { Ok(()) }
}

impl Editable {
    /// Makes it of the `wheel` that was compiled, whose archive is `archive`. `hook` is the source of the import hook.
    pub fn compose(
        project: &Project,
        (wheel, archive): (&Wheel, &[u8]),
        layout: &Layout,
        hook: Option<&str>,
    ) -> Result<Self> {
        let mut source = wheel_writer::open(archive)?;
        let mut writer = Writer::default();
        let mut contents = BTreeMap::new();
        let record = format!("{}/RECORD", wheel.dist_info());
        // Bills of materials differ with the time of the build, and are for what is handed on.
        let is_kept = |path: &&String| **path != record && !path.contains(".dist-info/sboms/");
        for path in layout.site.iter().filter(is_kept) {
            writer.copy_named(&mut source, path)?;
            let entry = wheel.entry(path).map(|entry| entry.sha256().to_string());
            let is_in_site = !path.contains(".data/") || layout::installed(path) != path;
            contents.extend(entry.filter(|_| is_in_site).map(|sha256| (layout::installed(path).to_owned(), sha256)));
        }
        let mut add = |path: String, text: &str| -> Result<()> {
            writer.add(&path, text.as_bytes(), None)?;
            contents.insert(path, files::sha256(text.as_bytes()));
            Ok(())
        };
        let mut lines = String::new();
        if layout.needs_tree() {
            lines += files::utf8(&project.python_source)?.trim_end_matches('/');
            lines += "\n";
        }
        let pth = lines.clone();
        if let Some(hook) = hook {
            let module = hook_module(project);
            add(format!("{module}.py"), hook)?;
            let _ = writeln!(lines, "import {module}");
        }
        if !lines.is_empty() {
            add(pth_name_before(project, layout), &lines)?;
        }
        let is_program = |group: &str| ["console_scripts", "gui_scripts"].contains(&group);
        let programs = wheel.entry_points().iter().filter(|entry| is_program(entry.group()));
        Ok(Self {
            file: wheel.file_name().to_owned(),
            bytes: writer.finish(&record)?,
            dist_info: wheel.dist_info().to_owned(),
            contents,
            programs: programs.map(|entry| entry.name().to_owned()).collect(),
            pth,
        })
    }

    /// The files that it brings to site-packages, where they are to be. Native modules among them are replaced later
    /// without a new install, so their content is left out.
    pub fn files(&self, site_packages: &Path) -> Vec<FileNote> {
        let note =
            |(path, sha256): (&String, &String)| FileNote { path: site_packages.join(path), sha256: sha256.clone() };
        self.contents.iter().map(note).collect()
    }

    /// The programs that it brings.
    pub fn programs(&self, destination: &Destination) -> Vec<PathBuf> {
        self.programs.iter().map(|name| destination.python.with_file_name(name)).collect()
    }

    /// Installs it, with what it requires unless that was forbidden, and notes that it is editable (PEP 610).
    pub fn install(
        &self,
        project: &Project,
        (destination, site_packages): (&Destination, &Path),
        options: &Options,
        (cache, uv): (&Cache, &Uv),
    ) -> Result<()> {
        let scratch = cache.scratch("editable")?;
        let path = scratch.path().join(&self.file);
        fs::write(&path, &self.bytes)?;
        let extras = if options.extras.is_empty() { String::new() } else { format!("[{}]", options.extras.join(",")) };
        let mut requirements = vec![format!("{}{extras} @ {}", project.name, file_url(&path))];
        let pyproject = project.root.join("pyproject.toml");
        for group in &options.groups {
            requirements.push("--group".to_owned());
            requirements.push(format!("{}:{group}", files::utf8(&pyproject)?));
        }
        if options.dependencies {
            // What the library that was built needs is in the metadata of wheels only.
            let cuda = &project.settings.cuda;
            requirements.extend(cuda.tested(None)?.requirements(cuda));
        }
        files::replace(&bridge(project, site_packages), self.pth.as_bytes(), 0o644)?;
        uv.install_over(&destination.python, &project.name, &requirements, options.dependencies)?;
        let dist_info = site_packages.join(&self.dist_info);
        let origin = json!({ "dir_info": { "editable": true }, "url": file_url(&project.root) }).to_string();
        files::replace(&dist_info.join("direct_url.json"), origin.as_bytes(), 0o644)?;
        record(&dist_info, &[(format!("{}/direct_url.json", self.dist_info), origin.into_bytes())])
    }

    /// Puts new content into files of site-packages that are already installed, and into RECORD.
    pub fn update(&self, site_packages: &Path) -> Result<Vec<PathBuf>> {
        let wheel = crate::inspection::open(&self.file, &self.bytes)?;
        let (mut replaced, mut rows) = (Vec::new(), Vec::new());
        for path in self.contents.keys() {
            let file = site_packages.join(path);
            let Some(entry) =
                wheel.entry(path).or_else(|| wheel.entries().iter().find(|e| layout::installed(e.path()) == path))
            else {
                continue;
            };
            let content = wheel.read_entry(entry).map_err(crate::inspection::unreadable)?;
            let mode = if entry.is_shared_library() { 0o755 } else { 0o644 };
            if files::replace(&file, &content, mode)? {
                replaced.push(file);
                rows.push((path.clone(), content));
            }
        }
        record(&site_packages.join(&self.dist_info), &rows)?;
        Ok(replaced)
    }
}

/// Gives rows of an installed RECORD the hashes of what lies there now.
fn record(dist_info: &Path, rows: &[(String, Vec<u8>)]) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let path = dist_info.join("RECORD");
    let text = fs::read_to_string(&path)?;
    let missing = || {
        Failure::failed(format!("{} does not list what was installed", path.display()))
            .remedy("install again with --force")
    };
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for (name, content) in rows {
        let quoted = wheel_writer::quoted(name);
        let line = format!("{quoted},{},{}", Sha256Digest::of(content).to_record(), content.len());
        let is_row = |line: &&mut String| line.strip_prefix(&quoted).is_some_and(|rest| rest.starts_with(','));
        match lines.iter_mut().find(is_row) {
            Some(row) => *row = line,
            // Not every installer writes one for a wheel that has a path.
            None if name.ends_with("/direct_url.json") => lines.push(line),
            None => return Err(missing().into()),
        }
    }
    files::replace(&path, (lines.join("\n") + "\n").as_bytes(), 0o644).map(drop)
}
