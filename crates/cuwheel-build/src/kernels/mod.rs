//! CUDA kernels for build scripts: `.cu` files become fatbins and a Rust module that names what is in them.
//!
//! Not for loading or launching them, and not for source that is known only at run time.

mod architecture;
mod data;
mod error;
mod host_compiler;
mod jobs;
mod module;
mod ptx;
mod record;
mod toolkit;
mod unit;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

pub use architecture::Unsupported;
pub use error::KernelsError;
pub use jobs::JOBS_VARIABLE;
pub use toolkit::CUDA_MAJOR_VARIABLE;

use crate::environment::{self, Lookup};
use host_compiler::HostCompiler;
use module::Image;
use toolkit::Toolkit;
use unit::{Compiler, Kind, Product, Unit};

/// Names the architectures in place of those of the build script, divided by spaces, commas or semicolons.
pub const ARCHITECTURES_VARIABLE: &str = "CUWHEEL_KERNEL_ARCHITECTURES";

/// `.cu` files, and what they are compiled to.
#[derive(Debug, Clone)]
#[must_use = "nothing is compiled before `compile`"]
pub struct Kernels {
    files: Vec<String>,
    host_files: Vec<String>,
    includes: Vec<PathBuf>,
    flags: Vec<OsString>,
    architectures: Vec<String>,
    unsupported: Unsupported,
    has_ptx: bool,
    is_compressed: bool,
    is_strict: bool,
    package_data: Option<PathBuf>,
}

impl Default for Kernels {
    fn default() -> Self {
        Self {
            files: Vec::new(),
            host_files: Vec::new(),
            includes: Vec::new(),
            flags: Vec::new(),
            architectures: Vec::new(),
            unsupported: Unsupported::default(),
            has_ptx: true,
            is_compressed: true,
            is_strict: false,
            package_data: None,
        }
    }
}

impl Kernels {
    /// Without files, for the default architectures.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds files with kernels, by a pattern such as `kernels/*.cu`, relative to the crate's folder.
    pub fn files(mut self, pattern: impl Into<String>) -> Self {
        self.files.push(pattern.into());
        self
    }

    /// Adds files with host code that launches its own kernels (`<<<…>>>`), by a pattern. They become a static library,
    /// linked with the static CUDA runtime.
    pub fn host_files(mut self, pattern: impl Into<String>) -> Self {
        self.host_files.push(pattern.into());
        self
    }

    /// Adds a folder to search for headers, relative to the crate's folder.
    pub fn include(mut self, folder: impl Into<PathBuf>) -> Self {
        self.includes.push(folder.into());
        self
    }

    /// Adds an option for nvcc.
    pub fn flag(mut self, flag: impl Into<OsString>) -> Self {
        self.flags.push(flag.into());
        self
    }

    /// Says what to compile for: `"80"`, `"90a"`, `"all-major"`, or `"native"` for the GPUs of this machine. Without any,
    /// it is `"all-major"`: the oldest of each generation that the compiler knows.
    pub fn architectures<T: Into<String>>(mut self, architectures: impl IntoIterator<Item = T>) -> Self {
        self.architectures.extend(architectures.into_iter().map(Into::into));
        self
    }

    /// Says what happens with architectures that the compiler does not know. They are an error by default.
    pub fn unsupported(mut self, policy: Unsupported) -> Self {
        self.unsupported = policy;
        self
    }

    /// Says whether images hold PTX of the lowest architecture, for GPUs that are newer than all. They do by default.
    pub fn ptx(mut self, has_ptx: bool) -> Self {
        self.has_ptx = has_ptx;
        self
    }

    /// Says whether images are compressed, as they are by default.
    pub fn compressed(mut self, is_compressed: bool) -> Self {
        self.is_compressed = is_compressed;
        self
    }

    /// Fails if there are compilers of different versions, in place of a warning.
    pub fn strict(mut self, is_strict: bool) -> Self {
        self.is_strict = is_strict;
        self
    }

    /// Writes the images into a folder of the Python package, in place of the library. It is given relative to the folder of
    /// `pyproject.toml`, which is that of the crate or one above it, and has to say that the images belong to the wheel.
    pub fn package_data(mut self, folder: impl Into<PathBuf>) -> Self {
        self.package_data = Some(folder.into());
        self
    }

    /// Compiles what changed, and writes `NAME.rs` into `OUT_DIR`. Host code becomes the static library `NAME_host`, linked
    /// to the crate whose build script calls this.
    pub fn compile(&self, name: &str) -> Result<(), KernelsError> {
        let lookup: Lookup<'_> = &environment::of_this_process;
        let cargo = |variable| lookup(variable).ok_or(KernelsError::NotInBuildScript { variable });
        let crate_folder = PathBuf::from(cargo("CARGO_MANIFEST_DIR")?);
        let output_folder = PathBuf::from(cargo("OUT_DIR")?);
        print_rerun_lines();
        let units = self.units(&crate_folder)?;
        let names = module_names(&units)?;
        let toolkit = self.toolkit(lookup)?;
        let takes_any_host =
            self.flags.iter().any(|flag| flag.to_string_lossy().contains("-allow-unsupported-compiler"));
        let host = HostCompiler::find(lookup, &toolkit, !takes_any_host)?;
        println!("host compiler: {} ({})", host.path.display(), host.identity);
        let options = self.options(&toolkit, lookup)?;
        let jobs = jobs::count(lookup)?;
        println!("files: {}, at most {jobs} at once", units.len());

        // Builds for several major versions take turns in one folder, and each finds its own results again.
        let cache = output_folder.join(format!("{name}.cache")).join(format!("cuda{}", toolkit.version.0));
        fs::create_dir_all(&cache).map_err(KernelsError::file(&cache))?;
        let compiler = Compiler {
            toolkit: &toolkit,
            host: &host,
            options,
            object_options: object_options(lookup),
            variables: unit::COMPILER_VARIABLES.iter().map(|name| lookup(name).unwrap_or_default()).collect(),
            crate_folder: &crate_folder,
            cache: &cache,
            contents: record::Contents::default(),
        };
        let products = jobs::run(&units, jobs, |unit| compiler.product(unit))?;
        for (unit, product) in units.iter().zip(&products) {
            println!("{}: {}", unit.source.display(), if product.was_compiled { "compiled" } else { "unchanged" });
            for header in &product.headers {
                println!("cargo:rerun-if-changed={}", header.display());
            }
        }
        let folders = Folders { crate_root: &crate_folder, output: &output_folder, cache: &cache };
        self.write_images(name, &units, &names, &products, &folders)?;
        link_host_code(name, &units, &products, &toolkit)
    }

    /// The files, in the order of their names. A pattern without a file is a mistake.
    fn units(&self, crate_folder: &Path) -> Result<Vec<Unit>, KernelsError> {
        let mut units = Vec::new();
        let images = self.files.iter().map(|pattern| (Kind::Image, pattern));
        for (kind, pattern) in images.chain(self.host_files.iter().map(|pattern| (Kind::Object, pattern))) {
            // A new file in the folder is noticed too. Cargo takes folders, and no patterns.
            let fixed: PathBuf = Path::new(pattern)
                .components()
                .take_while(|part| !part.as_os_str().to_string_lossy().contains(['*', '?', '[']))
                .collect();
            if fixed != Path::new("") {
                println!("cargo:rerun-if-changed={}", crate_folder.join(fixed).display());
            }
            let sources = matching(crate_folder, pattern)?;
            if sources.is_empty() {
                return Err(KernelsError::NoFiles { pattern: pattern.clone(), folder: crate_folder.to_path_buf() });
            }
            units.extend(sources.into_iter().map(|source| Unit { kind, source }));
        }
        Ok(units)
    }

    fn toolkit(&self, lookup: Lookup<'_>) -> Result<Toolkit, KernelsError> {
        let found = toolkit::find(lookup)?;
        println!("compiler: {}", found.toolkit);
        for (other, _) in &found.others {
            println!("also there, and not used: {other}");
        }
        let disagree: Vec<String> =
            found.others.into_iter().filter(|(_, is_different)| *is_different).map(|(other, _)| other).collect();
        if !disagree.is_empty() {
            let chosen = found.toolkit.to_string();
            if self.is_strict {
                return Err(KernelsError::Disagreement { chosen, others: disagree });
            }
            println!("cargo:warning=kernels are compiled with {chosen}, and not with {}", disagree.join(" or "));
        }
        found.toolkit.check_components(!self.host_files.is_empty())?;
        Ok(found.toolkit)
    }

    fn options(&self, toolkit: &Toolkit, lookup: Lookup<'_>) -> Result<Vec<OsString>, KernelsError> {
        let named = lookup(ARCHITECTURES_VARIABLE).map(|value| value.to_string_lossy().into_owned());
        let asked = match &named {
            Some(list) => list.split([' ', ',', ';']).filter(|word| !word.is_empty()).map(str::to_owned).collect(),
            None => self.architectures.clone(),
        };
        let targets = architecture::targets(toolkit, &asked, self.unsupported, self.has_ptx)?;
        println!("architectures: {targets}");
        if !targets.left_out.is_empty() {
            println!("cargo:warning={toolkit} does not compile for {}: left out", targets.left_out.join(", "));
        }
        let mut options: Vec<OsString> = targets.options().into_iter().map(Into::into).collect();
        match (self.is_compressed, toolkit.version.0) {
            (false, _) => options.push("--no-compress".into()),
            // Drivers of CUDA 13 read all modes. Older compilers compress in a way that all of theirs read.
            (true, 13..) => options.push("--compress-mode=size".into()),
            (true, _) => {}
        }
        for folder in &self.includes {
            let mut option = OsString::from("-I");
            option.push(folder);
            options.push(option);
        }
        options.extend(self.flags.iter().cloned());
        Ok(options)
    }

    fn write_images(
        &self,
        name: &str,
        units: &[Unit],
        names: &[String],
        products: &[Product],
        folders: &Folders<'_>,
    ) -> Result<(), KernelsError> {
        let (mut images, mut files) = (Vec::new(), Vec::new());
        for ((unit, product), module) in units.iter().zip(products).zip(names) {
            if unit.kind == Kind::Image {
                let file = if self.package_data.is_some() {
                    format!("{module}.fatbin")
                } else {
                    // Beside the generated module, whose text then holds no path of the machine.
                    let output = product.output.strip_prefix(folders.output).unwrap_or(&product.output);
                    output.display().to_string()
                };
                files.push((file.clone(), product.output.clone()));
                let (source, entries) = (unit.source.display().to_string(), product.entries.clone());
                images.push(Image { source, module: module.clone(), file, entries });
            }
        }
        if let Some(folder) = &self.package_data {
            data::write(folders.crate_root, folder, &files, &folders.cache.join("data"))?;
        }
        let path = folders.output.join(format!("{name}.rs"));
        fs::write(&path, module::render(&images, self.package_data.is_none() && !images.is_empty()))
            .map_err(KernelsError::file(&path))
    }
}

struct Folders<'a> {
    crate_root: &'a Path,
    output: &'a Path,
    cache: &'a Path,
}

/// What decides over the compiler. Its place may change in each build: then little is done, for results are known by content.
fn print_rerun_lines() {
    let ours =
        [ARCHITECTURES_VARIABLE, toolkit::CUDA_MAJOR_VARIABLE, "PYTHONPATH", host_compiler::HOST_COMPILER_VARIABLE];
    let interpreters = environment::STABLE[2..].iter().chain(&environment::OF_THE_INTERPRETER);
    let all = toolkit::TOOLKIT_VARIABLES.iter().chain(&ours).chain(&unit::COMPILER_VARIABLES).chain(interpreters);
    for variable in all {
        println!("cargo:rerun-if-env-changed={variable}");
    }
}

/// Files that match, relative to the crate.
fn matching(crate_folder: &Path, pattern: &str) -> Result<Vec<PathBuf>, KernelsError> {
    let bad = |reason: String| KernelsError::BadPattern { pattern: pattern.to_owned(), reason };
    let folder = crate_folder.to_str().ok_or_else(|| bad("the folder of the crate is not UTF-8".to_owned()))?;
    let whole = format!("{}/{pattern}", glob::Pattern::escape(folder));
    let mut found = Vec::new();
    for path in glob::glob(&whole).map_err(|error| bad(error.to_string()))? {
        let path = path.map_err(|error| bad(error.to_string()))?;
        found.push(path.strip_prefix(crate_folder).map_or_else(|_| path.clone(), Path::to_path_buf));
    }
    Ok(found)
}

/// A name for each file, and no name twice.
fn module_names(units: &[Unit]) -> Result<Vec<String>, KernelsError> {
    let stem = |unit: &Unit| unit.source.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let names: Vec<String> = units.iter().map(|unit| module::identifier(&stem(unit))).collect();
    for (index, name) in names.iter().enumerate() {
        if units[index].kind == Kind::Image
            && let Some(first) = (0..index).find(|&other| names[other] == *name && units[other].kind == Kind::Image)
        {
            return Err(KernelsError::SameModule {
                first: units[first].source.display().to_string(),
                second: units[index].source.display().to_string(),
                module: name.clone(),
            });
        }
    }
    Ok(names)
}

/// Host code is optimised as Cargo's profile says, and can be part of a shared library.
fn object_options(lookup: Lookup<'_>) -> Vec<OsString> {
    let level = lookup("OPT_LEVEL").unwrap_or_default();
    let level = match level.to_str() {
        Some("0") | None => "-O0",
        Some("1") => "-O1",
        Some("3") => "-O3",
        Some(_) => "-O2",
    };
    [level, "-Xcompiler", "-fPIC", "--cudart=static"].map(OsString::from).to_vec()
}

fn link_host_code(name: &str, units: &[Unit], products: &[Product], toolkit: &Toolkit) -> Result<(), KernelsError> {
    let mut objects = Vec::new();
    for (unit, product) in units.iter().zip(products).filter(|(unit, _)| unit.kind == Kind::Object) {
        // Members of the library are named after their sources, not all alike.
        let stem = unit.source.file_stem().unwrap_or_default();
        let object = product.output.with_file_name(stem).with_extension("o");
        fs::copy(&product.output, &object).map_err(KernelsError::file(&object))?;
        objects.push(object);
    }
    if objects.is_empty() {
        return Ok(());
    }
    let runtime = toolkit.library_folder()?;
    cc::Build::new().objects(objects).try_compile(&format!("{name}_host"))?;
    println!("cargo:rustc-link-search=native={}", runtime.display());
    // Its members stay out of libraries in between: they are linked once, at the end.
    println!("cargo:rustc-link-lib=static:-bundle=cudart_static");
    for library in ["stdc++", "dl", "rt", "pthread"] {
        println!("cargo:rustc-link-lib=dylib={library}");
    }
    Ok(())
}
