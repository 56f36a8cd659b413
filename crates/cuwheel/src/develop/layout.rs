//! What becomes of each file of a wheel in an editable install.
//!
//! The wheel is the measure: whatever it holds is there in the editable install too. So a file that is declared once, to
//! maturin, is in the wheel, the sdist and the editable install alike. Pure but for reading the tree.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cuwheel_inspect::wheel::{Entry, ExtensionAbi, ExtensionModule, Wheel};

use crate::error::Result;
use crate::files;
use crate::inspection;
use crate::project::Project;

/// A file that is put beside the sources.
#[derive(Clone, Debug)]
pub struct Placed {
    /// Its path in the wheel.
    pub entry: String,
    /// Where it goes.
    pub path: PathBuf,
    /// Its content.
    pub content: Vec<u8>,
    /// Its mode.
    pub mode: u32,
}

/// The files of a wheel by what becomes of them.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// Entries that are found in the tree, where they are edited.
    pub live: Vec<String>,
    /// Native libraries and generated files of packages in the tree.
    pub placed: Vec<Placed>,
    /// Entries that are installed.
    pub site: Vec<String>,
    /// Entries of which the tree has another content, which is the one that counts.
    pub differing: Vec<String>,
    /// Native modules, with their entries.
    pub modules: BTreeMap<String, String>,
}

impl Layout {
    /// Sorts the files of `wheel`. `is_own` says whether a file in the tree was put there by an earlier install.
    pub fn of(wheel: &Wheel, project: &Project, is_own: &dyn Fn(&Path) -> bool) -> Result<Self> {
        let mut layout = Self::default();
        for entry in wheel.entries().iter().filter(|entry| !entry.is_directory()) {
            layout.add(wheel, entry, project, is_own)?;
        }
        Ok(layout)
    }

    fn add(&mut self, wheel: &Wheel, entry: &Entry, project: &Project, is_own: &dyn Fn(&Path) -> bool) -> Result<()> {
        let name = entry.path().to_owned();
        let module = ExtensionModule::from_path(&name).filter(|module| is_module(module, entry, project));
        if let Some(module) = &module {
            self.modules.insert(module.module().to_owned(), name.clone());
        }
        let source = project.python_source.join(&name);
        let Some(package) = name.split_once('/').map(|(package, _)| package) else {
            // Python reads .pth files in site-packages only, and a lone library has no package to lie in.
            let is_found = !has_extension(&name, "pth") && module.is_none() && has_content(&source, entry);
            if is_found { &mut self.live } else { &mut self.site }.push(name);
            return Ok(());
        };
        let is_in_tree = !has_extension(package, "dist-info")
            && !has_extension(package, "data")
            && project.python_source.join(package).is_dir();
        if !is_in_tree {
            self.site.push(name);
        } else if module.is_some() || !source.exists() || is_own(&source) {
            let content = wheel.read_entry(entry).map_err(inspection::unreadable)?;
            let is_executable = module.is_some() || entry.is_shared_library();
            let mode = if is_executable { 0o755 } else { 0o644 };
            self.placed.push(Placed { entry: name, path: source, content, mode });
        } else {
            if !has_content(&source, entry) {
                self.differing.push(name.clone());
            }
            self.live.push(name);
        }
        Ok(())
    }

    /// Whether Python has to find the tree.
    pub fn needs_tree(&self) -> bool {
        !self.live.is_empty() || !self.placed.is_empty()
    }

    /// The file that each native module is to be loaded from.
    pub fn module_files(&self, site_packages: &Path) -> BTreeMap<String, PathBuf> {
        let file = |entry: &String| {
            let placed = self.placed.iter().find(|placed| placed.entry == *entry).map(|placed| placed.path.clone());
            placed.unwrap_or_else(|| site_packages.join(installed(entry)))
        };
        self.modules.iter().map(|(module, entry)| (module.clone(), file(entry))).collect()
    }

    /// The names whose import means that the native modules are about to be used: for each the outermost package that is
    /// the project's alone, since namespace packages have other owners too.
    pub fn gates(&self, wheel: &Wheel) -> Vec<String> {
        let mut gates: Vec<String> = Vec::new();
        for module in self.modules.keys() {
            let prefixes = module.match_indices('.').map(|(end, _)| &module[..end]);
            let own = |package: &&str| wheel.entry(&format!("{}/__init__.py", package.replace('.', "/"))).is_some();
            gates.push(prefixes.into_iter().find(own).unwrap_or(module).to_owned());
        }
        gates.sort();
        gates.dedup();
        gates
    }
}

/// The path below site-packages of an entry that is installed there.
pub fn installed(entry: &str) -> &str {
    let inside = entry.split_once(".data/").map(|(_, rest)| rest);
    inside.and_then(|rest| rest.strip_prefix("platlib/").or_else(|| rest.strip_prefix("purelib/"))).unwrap_or(entry)
}

/// Whether a file is what an import statement loads. A library that merely lies in a package, such as `libhelper.so`, looks
/// the same by its name: it is one when it is named as the crate's library is.
fn is_module(module: &ExtensionModule, entry: &Entry, project: &Project) -> bool {
    let name = module.module().rsplit('.').next().unwrap_or_default();
    entry.is_shared_library() && (*module.abi() != ExtensionAbi::Bare || name == project.manifest.library_name())
}

/// Whether a path in a wheel ends with an extension, in the case that Python looks for.
pub fn has_extension(name: &str, extension: &str) -> bool {
    Path::new(name).extension().is_some_and(|found| found == extension)
}

fn has_content(path: &Path, entry: &Entry) -> bool {
    files::sha256_of_file(path).is_ok_and(|sha256| sha256 == entry.sha256().to_string())
}
