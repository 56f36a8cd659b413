//! Extension modules of an existing project: how each is built, of what, and what it offers to Python.

use serde::Serialize;

use super::cuda::{self, CudaSource};
use super::functions::{self, Entry};
use super::gaps::Gaps;
use super::value::{Made, Place, Value};
use crate::reading::tree::{self, Tree};

/// What an extension module is made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// C or C++ over the C API of Python.
    C,
    /// Cython.
    Cython,
    /// pybind11 or nanobind.
    Pybind11,
    /// torch's `CppExtension` and `CUDAExtension`.
    Torch,
    /// A `CMake` project that setup.py calls.
    #[serde(rename = "cmake")]
    CMake,
    /// Rust, by setuptools-rust.
    Rust,
    /// CFFI.
    Cffi,
}

impl Kind {
    /// How people call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::C => "C or C++",
            Self::Cython => "Cython",
            Self::Pybind11 => "pybind11",
            Self::Torch => "C++ for torch",
            Self::CMake => "CMake",
            Self::Rust => "Rust",
            Self::Cffi => "CFFI",
        }
    }
}

/// An extension module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Extension {
    /// The full name of the module.
    pub name: String,
    /// What it is made with.
    pub kind: Kind,
    /// The sources, relative to the root.
    pub sources: Vec<String>,
    /// Directories of headers.
    pub include_dirs: Vec<String>,
    /// Libraries that it is linked to.
    pub libraries: Vec<String>,
    /// Directories of libraries.
    pub library_dirs: Vec<String>,
    /// Arguments for the C and C++ compiler.
    pub compile_args: Vec<String>,
    /// Arguments for nvcc.
    pub nvcc_args: Vec<String>,
    /// Arguments for the linker.
    pub link_args: Vec<String>,
    /// Macros, as `NAME` or `NAME=VALUE`.
    pub macros: Vec<String>,
    /// GPU architectures that arguments name, such as `80` and `90a`.
    pub architectures: Vec<String>,
    /// Files of CUDA C++ and what they are.
    pub cuda: Vec<CudaSource>,
    /// Whether the C API of NumPy is used.
    pub uses_numpy: bool,
    /// Under which condition it is built.
    pub when: Option<String>,
    /// The functions and classes that were found in the sources.
    pub entries: Vec<Entry>,
    /// What else is registered, and where.
    pub others: Vec<(String, Place)>,
    /// The manifest of the crate, for Rust.
    pub manifest: Option<String>,
    /// Where it is declared.
    #[serde(flatten)]
    pub place: Place,
}

/// What is known of an extension module beside its call.
#[derive(Clone, Copy)]
struct Reading {
    /// Whether `cythonize` is called on it.
    is_cython: bool,
    /// Whether there is no other.
    is_only: bool,
}

/// Reads the value of `ext_modules`, `rust_extensions` or `cffi_modules`.
pub(super) fn read(value: &Value, field: &str, declared_at: &Place, tree: &Tree, gaps: &mut Gaps) -> Vec<Extension> {
    let mut found = Vec::new();
    collect(
        value,
        None,
        None,
        &mut |made: &Made, when, is_cython| found.push((made.clone(), when, is_cython)),
        &mut |value| {
            gaps.add_value(field, value, declared_at);
        },
    );
    let mut extensions: Vec<Extension> = Vec::new();
    let is_only = found.len() == 1;
    for (made, when, is_cython) in found {
        for extension in extension(&made, when, Reading { is_cython, is_only }, tree, gaps) {
            // Of two under one name, one is for another machine.
            if !extensions.iter().any(|known| known.name == extension.name) {
                extensions.push(extension);
            }
        }
    }
    extensions
}

/// Calls `see` for each extension in a value: through lists, conditions and `cythonize`.
fn collect(
    value: &Value,
    when: Option<&str>,
    cythonized: Option<&Place>,
    see: &mut dyn FnMut(&Made, Option<String>, bool),
    other: &mut dyn FnMut(&Value),
) {
    match value {
        Value::List { items } => {
            for item in items {
                collect(item, when, cythonized, see, other);
            }
        }
        Value::Conditional { when: inner, value } => {
            let both = when.map_or_else(|| inner.clone(), |outer| format!("{outer} and {inner}"));
            collect(value, Some(&both), cythonized, see, other);
        }
        Value::Spread { of } => collect(of, when, cythonized, see, other),
        Value::Made(made) if made.class() == "cythonize" || made.class() == "no_cythonize" => {
            match made.argument("module_list", Some(0)) {
                Some(inner) => collect(inner, when, Some(&made.place), see, other),
                None => other(value),
            }
        }
        Value::Made(made) => see(made, when.map(str::to_owned), cythonized.is_some()),
        // `cythonize("pkg/*.pyx")`, and `cffi_modules = ["build.py:ffi"]`.
        Value::Text { value } => {
            let place = cythonized.cloned().unwrap_or_else(|| Place::new("setup.py", 1));
            let keywords = vec![("sources".to_owned(), Value::texts([value.clone()]))];
            let name = if cythonized.is_some() { "cython.pattern" } else { "cffi.module" };
            see(
                &Made { name: name.to_owned(), arguments: Vec::new(), keywords, place },
                when.map(str::to_owned),
                cythonized.is_some(),
            );
        }
        Value::None | Value::Flag { value: false } => {}
        unknown => other(unknown),
    }
}

fn extension(made: &Made, when: Option<String>, reading: Reading, tree: &Tree, gaps: &mut Gaps) -> Vec<Extension> {
    let class = made.class();
    let named = made.argument("name", Some(0)).or_else(|| made.argument("target", Some(0)));
    let name = named.and_then(|value| gaps.text("the name of an extension module", value, &made.place));
    if made.name == "cython.pattern" || name.as_deref().is_some_and(|name| name.contains('*')) {
        return of_patterns(made, when.as_deref(), tree, gaps);
    }
    let is_extension =
        class.to_lowercase().contains("ext") || class == "Pybind11Extension" || made.name == "cffi.module";
    let Some(name) = name.filter(|_| is_extension) else {
        if made.name == "cffi.module" {
            let text = made.keywords[0].1.items()[0].as_text().unwrap_or_default();
            gaps.add("cffi_modules", text, "CFFI makes the module at build time", &made.place);
        } else if named.is_none() || !is_extension {
            gaps.add("ext_modules", &format!("{}(…)", made.name), "what it gives is not known", &made.place);
        }
        return Vec::new();
    };
    vec![one(made, name, when, reading, tree, gaps)]
}

/// A module for each file that the patterns of `cythonize` name.
fn of_patterns(made: &Made, when: Option<&str>, tree: &Tree, gaps: &mut Gaps) -> Vec<Extension> {
    let sources =
        made.argument("sources", Some(1)).map(|value| gaps.texts("sources", value, &made.place)).unwrap_or_default();
    let mut found = Vec::new();
    for pattern in sources {
        let Ok(glob) = globset::GlobBuilder::new(&pattern).literal_separator(true).build() else { continue };
        let matcher = glob.compile_matcher();
        for file in tree.files().iter().filter(|file| file.extension() == "pyx" && matcher.is_match(&file.path)) {
            let name = module_of(tree, &file.path);
            let keywords = vec![("sources".to_owned(), Value::texts([file.path.clone()]))];
            let keywords = keywords
                .into_iter()
                .chain(made.keywords.iter().filter(|(key, _)| key != "sources" && key != "name").cloned());
            let inner = Made { name: "setuptools.Extension".to_owned(), keywords: keywords.collect(), ..made.clone() };
            found.push(one(
                &Made { arguments: Vec::new(), ..inner },
                name,
                when.map(str::to_owned),
                Reading { is_cython: true, is_only: false },
                tree,
                gaps,
            ));
        }
    }
    found
}

/// The name that a file has as a module: the packages around it count.
fn module_of(tree: &Tree, path: &str) -> String {
    let stem = path.rsplit_once('.').map_or(path, |(stem, _)| stem);
    let parts: Vec<&str> = stem.split('/').collect();
    let first = (0..parts.len()).rev().take_while(|index| {
        *index == parts.len() - 1 || tree.has(&format!("{}/__init__.py", parts[..=*index].join("/")))
    });
    parts[first.last().unwrap_or(0)..].join(".")
}

fn one(made: &Made, name: String, when: Option<String>, reading: Reading, tree: &Tree, gaps: &mut Gaps) -> Extension {
    let mut lists = |field: &str, position| {
        let value = made.argument(field, position);
        value
            .map(|value| gaps.texts(&format!("{field} of {name}"), &without_headers_of_others(value), &made.place))
            .unwrap_or_default()
    };
    let sources = lists("sources", Some(1)).into_iter();
    let sources: Vec<String> =
        sources.map(|path| written_source(tree, path.trim_start_matches("./").to_owned())).collect();
    let include_dirs = lists("include_dirs", None);
    let (libraries, library_dirs) = (lists("libraries", None), lists("library_dirs", None));
    let link_args: Vec<String> = lists("extra_link_args", None);
    let mut extension = Extension {
        kind: kind(made.class(), reading.is_cython, &sources),
        include_dirs: include_dirs.into_iter().map(|path| path.trim_start_matches("./").to_owned()).collect(),
        libraries,
        library_dirs,
        compile_args: Vec::new(),
        nvcc_args: Vec::new(),
        link_args,
        macros: macros(made, &name, gaps),
        architectures: Vec::new(),
        cuda: Vec::new(),
        uses_numpy: uses_numpy(made),
        when,
        entries: Vec::new(),
        others: Vec::new(),
        manifest: None,
        place: made.place.clone(),
        sources,
        name,
    };
    add_arguments(&mut extension, made, gaps);
    if extension.kind == Kind::Rust {
        let path = made.argument("path", Some(1)).and_then(|value| gaps.text("the crate", value, &made.place));
        extension.manifest = Some(path.unwrap_or_else(|| "Cargo.toml".to_owned()));
    }
    read_sources(&mut extension, reading.is_only, tree);
    extension
}

/// The file that a missing one is made of: C of Cython is seldom committed.
fn written_source(tree: &Tree, path: String) -> String {
    let stem = path.rsplit_once('.').map_or(path.as_str(), |(stem, _)| stem);
    let cython = format!("{stem}.pyx");
    if !tree.has(&path) && tree.has(&cython) { cython } else { path }
}

/// Directories of headers that come with other distributions are no paths of the project.
fn without_headers_of_others(value: &Value) -> Value {
    let is_other = |item: &Value| {
        let item = if let Value::Spread { of } | Value::Conditional { value: of, .. } = item { of } else { item };
        matches!(item, Value::Made(made) if ["get_include", "include_paths", "get_path", "get_paths", "get_python_inc", "get_numpy_include_dirs"].contains(&made.class()))
    };
    Value::List { items: value.items().iter().filter(|item| !is_other(item)).cloned().collect() }
}

fn kind(class: &str, is_cython: bool, sources: &[String]) -> Kind {
    match class {
        "CppExtension" | "CUDAExtension" | "SyclExtension" => Kind::Torch,
        "Pybind11Extension" => Kind::Pybind11,
        "RustExtension" => Kind::Rust,
        _ if class.to_lowercase().contains("cmake") => Kind::CMake,
        _ if is_cython || sources.iter().any(|path| tree::extension(path) == "pyx") => Kind::Cython,
        _ => Kind::C,
    }
}

fn uses_numpy(made: &Made) -> bool {
    let items = made.argument("include_dirs", None).map(Value::items).unwrap_or_default();
    items.iter().any(|item| {
        let item = if let Value::Spread { of } | Value::Conditional { value: of, .. } = item { of } else { item };
        matches!(item, Value::Made(made) if made.name.starts_with("numpy.") || made.class() == "get_numpy_include_dirs")
    })
}

/// `define_macros = [("NAME", "1"), ("OTHER", None)]`.
fn macros(made: &Made, name: &str, gaps: &mut Gaps) -> Vec<String> {
    let Some(value) = made.argument("define_macros", None) else { return Vec::new() };
    let mut found = Vec::new();
    for item in value.items() {
        let pair = if let Value::Conditional { value, .. } = item { value } else { item };
        match pair.items() {
            [key, rest @ ..] if matches!(pair, Value::List { .. }) && key.as_text().is_some() => {
                let key = key.as_text().unwrap_or_default();
                let value = rest.first().and_then(|value| value.as_text());
                found.push(value.map_or_else(|| key.to_owned(), |value| format!("{key}={value}")));
            }
            _ => gaps.add_value(&format!("define_macros of {name}"), pair, &made.place),
        }
    }
    found
}

/// `extra_compile_args`, a list or one for each compiler.
fn add_arguments(extension: &mut Extension, made: &Made, gaps: &mut Gaps) {
    let Some(value) = made.argument("extra_compile_args", None) else { return };
    let what = format!("extra_compile_args of {}", extension.name);
    if value.entries().is_empty() {
        extension.compile_args = gaps.texts(&what, value, &made.place);
    }
    for (compiler, value) in value.entries() {
        let texts = gaps.texts(&what, value, &made.place);
        match compiler.as_str() {
            "nvcc" | "cuda" | "nvcc_dlink" => extension.nvcc_args.extend(texts),
            _ => extension.compile_args.extend(texts),
        }
    }
    extension.architectures = cuda::architectures(extension.nvcc_args.iter().chain(&extension.compile_args));
}

/// Files that those of Cython include: one may hold all of its functions in others.
fn included(tree: &Tree, path: &str) -> Vec<String> {
    if tree::extension(path) != "pyx" {
        return Vec::new();
    }
    let directory = path.rsplit_once('/').map_or(String::new(), |(directory, _)| format!("{directory}/"));
    let text = tree.text(path).unwrap_or_default();
    let name = |line: &str| Some(line.strip_prefix("include ")?.trim().trim_matches(['"', '\'']).to_owned());
    let paths = text.lines().filter_map(name).map(|name| format!("{directory}{name}"));
    paths.filter(|inner| tree.has(inner) && inner != path).collect()
}

/// Looks into the sources; where none is named, into whatever defines a module of that name.
fn read_sources(extension: &mut Extension, is_only: bool, tree: &Tree) {
    let last = extension.name.rsplit('.').next().unwrap_or(&extension.name).to_owned();
    let is_named = !extension.sources.is_empty();
    let paths: Vec<String> = if is_named {
        extension.sources.iter().filter(|path| tree.has(path)).cloned().collect()
    } else if extension.kind == Kind::Rust {
        Vec::new()
    } else {
        let is_source = |file: &&tree::TreeFile| ["c", "cc", "cpp", "cxx", "cu", "pyx"].contains(&file.extension());
        tree.product().filter(is_source).map(|file| file.path.clone()).collect()
    };
    let paths = paths.into_iter().flat_map(|path| {
        let inner = included(tree, &path);
        std::iter::once(path).chain(inner)
    });
    for path in &paths.collect::<Vec<_>>() {
        let Some(text) = tree.text(path) else { continue };
        let offer = functions::read(path, &text);
        // torch gives every module of a project this name, so it tells only where there is one.
        let is_own = |module: &String| *module == last || (is_only && module == "TORCH_EXTENSION_NAME");
        let defines = offer.modules.iter().any(is_own);
        if !is_named && !defines {
            continue;
        }
        if !is_named {
            extension.sources.push(path.clone());
        }
        if extension.kind == Kind::C && (text.contains("PYBIND11_MODULE") || text.contains("NB_MODULE")) {
            extension.kind = Kind::Pybind11;
        }
        extension.uses_numpy |= text.contains("numpy/arrayobject.h")
            || text.contains("numpy/ndarrayobject.h")
            || text.contains("cimport numpy");
        for entry in offer.entries {
            if !extension.entries.iter().any(|known| known.name == entry.name) {
                extension.entries.push(entry);
            }
        }
        extension.others.extend(offer.others);
        if tree::extension(path) == "cu" {
            extension.cuda.push(CudaSource::read(tree, path, &text, &extension.include_dirs));
        }
    }
}
