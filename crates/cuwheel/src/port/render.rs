//! The files of the new project, from the templates in `templates/port`.

use serde_json::{Value, json};

use super::copies::Copies;
use super::existing::ExistingProject;
use super::extension::Kind;
use super::functions::Entry;
use super::kernels::Kernels;
use super::layout::{Layout, NativeModule, rust_name};
use super::plan::{Dropped, Options, Task};
use super::project_file::{self, list, quoted};
use crate::error::Result;
use crate::new::rendering::RenderedFile;
use crate::templates::Template;

/// What everything is made from.
pub(super) struct Inputs<'a> {
    pub(super) existing: &'a ExistingProject,
    pub(super) layout: &'a Layout,
    pub(super) copies: &'a Copies,
    pub(super) kernels: &'a Kernels,
    pub(super) options: &'a Options,
}

/// Every file but PORTING.md.
pub(super) fn files(inputs: &Inputs<'_>) -> Result<Vec<RenderedFile>> {
    let layout = inputs.layout;
    let directory = layout.crate_directory();
    let mut files = Vec::new();
    let mut add = |path: String, template: &str, values: &Value| -> Result<()> {
        let text = Template::named(&format!("port/{template}")).render(values)?;
        files.push(RenderedFile::new(path, text));
        Ok(())
    };
    let common = common(inputs);
    for path in [".cargo/config.toml", ".gitignore", "xtask/src/main.rs"] {
        add(path.to_owned(), path, &common)?;
    }
    add("Cargo.toml".to_owned(), "workspace.toml", &common)?;
    add("xtask/Cargo.toml".to_owned(), "xtask/Cargo.toml.template", &common)?;
    add("pyproject.toml".to_owned(), "pyproject.toml", &pyproject(inputs))?;
    let names: Vec<&String> = layout.modules.iter().map(|module| &module.name).collect();
    add(
        "tests/test_native_modules.py".to_owned(),
        "tests/test_native_modules.py",
        &json!({ "names": python_list(&names) }),
    )?;
    if layout.existing_crate.is_none() {
        add(format!("{directory}/Cargo.toml"), "crate.toml", &common)?;
        add(format!("{directory}/build.rs"), "build.rs", &build_script(inputs))?;
        add(format!("{directory}/src/lib.rs"), "src/lib.rs", &library(inputs))?;
        if !layout.modules.is_empty() {
            add(format!("{directory}/src/not_ported.rs"), "src/not_ported.rs", &common)?;
        }
        for module in &layout.modules {
            add(layout.rust_path(module), "src/module.rs", &rust_module(inputs, module))?;
            if !layout.is_single {
                add(python_path(&module.name), "python/module.py", &python_module(layout, module))?;
            }
        }
        if inputs.kernels.has_shim {
            for name in ["numpy_shim.c", "numpy_shim.rs"] {
                add(format!("{directory}/src/{name}"), &format!("src/{name}"), &json!({ "prefix": inputs.prefix() }))?;
            }
        }
    }
    if let Some(manifest) = existing_manifest(inputs)? {
        files.push(manifest);
    }
    files.extend(missing_packages(inputs));
    Ok(files)
}

impl Inputs<'_> {
    /// What names in C begin with.
    fn prefix(&self) -> String {
        self.layout
            .crate_name
            .trim_end_matches("-native")
            .replace(|c: char| !c.is_ascii_alphanumeric(), "_")
            .to_lowercase()
    }
}

fn common(inputs: &Inputs<'_>) -> Value {
    let layout = inputs.layout;
    let library_last = layout.library.rsplit('.').next().unwrap_or(&layout.library);
    let description = inputs.existing.metadata.description.clone();
    json!({
        "name": layout.name,
        "crate_name": quoted(&layout.crate_name),
        "crate_description": quoted(&description.unwrap_or_else(|| format!("The native modules of {}", layout.name))),
        "license": inputs.existing.metadata.license.as_deref().filter(|license| !license.contains("LicenseRef")).map(quoted),
        "library_name": quoted(library_last),
        "members": list([layout.crate_directory().as_str(), "xtask"]),
        "is_rust": layout.existing_crate.is_some(),
        "is_checkout": inputs.options.dependencies.is_checkout,
        "dependencies": inputs.options.dependencies,
    })
}

fn pyproject(inputs: &Inputs<'_>) -> Value {
    let (existing, layout, kernels) = (inputs.existing, inputs.layout, inputs.kernels);
    let mut requires = vec!["maturin>=1.16,<2"];
    if kernels.has_shim {
        requires.push("numpy>=2.0");
    }
    if kernels.has_any() {
        requires.extend(["nvidia-cuda-nvcc>=13,<14", "nvidia-cuda-runtime>=13,<14", "nvidia-cuda-cccl>=13,<14"]);
    }
    let main = layout.library.split('.').next().unwrap_or_default();
    let mut others: Vec<&str> = existing
        .packages
        .packages
        .iter()
        .filter_map(|package| package.name.split('.').next())
        .filter(|top| *top != main)
        .collect();
    others.dedup();
    let more: Vec<&str> = ["cu", "cuh", "hpp", "inl"]
        .into_iter()
        .filter(|extension| {
            inputs
                .copies
                .files
                .keys()
                .any(|path| path.starts_with("crates/") && crate::reading::tree::extension(path) == *extension)
        })
        .collect();
    let names: Vec<&String> = layout.modules.iter().map(|module| &module.name).collect();
    json!({
        "has_shim": kernels.has_shim,
        "has_kernels": kernels.has_any(),
        "build_requires": requires.into_iter().map(quoted).collect::<Vec<_>>(),
        "project": project_file::project(existing, &layout.name, kernels.has_shim),
        "tables": project_file::tables(existing),
        "manifest_path": quoted(&format!("{}/Cargo.toml", layout.crate_directory())),
        "library": quoted(&layout.library),
        "crate_name": quoted(&crate_name(inputs)),
        "has_python": has_python(inputs),
        "python_packages": list(others),
        "top_modules": top_modules(inputs).iter().map(|path| quoted(path)).collect::<Vec<_>>(),
        "more_extensions": more,
        "module_names": list(&names),
        "kept_tables": project_file::kept_tables(existing),
    })
}

/// Whether anything lies in the directory of Python sources.
fn has_python(inputs: &Inputs<'_>) -> bool {
    inputs.copies.files.keys().any(|path| path.starts_with("python/")) || !inputs.layout.package().is_empty()
}

/// Files of Python that lie beside the packages: maturin does not take them by itself.
fn top_modules(inputs: &Inputs<'_>) -> Vec<String> {
    let own = inputs.layout.modules.iter().filter(|_| !inputs.layout.is_single).map(|module| python_path(&module.name));
    let copied = inputs.existing.packages.modules.iter().map(|module| python_path(&module.name));
    let mut paths: Vec<String> = own.chain(copied).filter(|path| path.matches('/').count() == 1).collect();
    paths.dedup();
    paths
}

fn python_path(module: &str) -> String {
    format!("python/{}.py", module.replace('.', "/"))
}

fn build_script(inputs: &Inputs<'_>) -> Value {
    let kernels = inputs.kernels;
    let native = |path: &String| rust_text(&format!("native/{path}"));
    let languages = match (kernels.has_shim, kernels.has_any()) {
        (true, true) => "C and CUDA C++",
        (true, false) => "C",
        (false, true) => "CUDA C++",
        (false, false) => "",
    };
    let purpose = match languages {
        "" => "Says how the library is linked. What stays in C or CUDA C++ is compiled here, too.".to_owned(),
        languages => format!("Compiles what stays in {languages}."),
    };
    json!({
        "purpose": purpose,
        "languages": languages,
        "has_shim": kernels.has_shim,
        "shim_name": rust_text(&format!("{}_numpy_shim", inputs.prefix())),
        "has_kernels": kernels.has_any(),
        "images": kernels.images.iter().map(native).collect::<Vec<_>>(),
        "host_files": kernels.host_files.iter().map(native).collect::<Vec<_>>(),
        "includes": kernels.includes.iter().map(native).collect::<Vec<_>>(),
        "flags": kernels.flags.iter().map(|flag| rust_text(flag)).collect::<Vec<_>>(),
        "architectures": kernels.architectures.iter().map(|name| rust_text(name)).collect::<Vec<_>>().join(", "),
    })
}

fn library(inputs: &Inputs<'_>) -> Value {
    let layout = inputs.layout;
    let library_last = layout.library.rsplit('.').next().unwrap_or(&layout.library);
    let modules: Vec<Value> = layout
        .modules
        .iter()
        .map(|module| json!({ "rust": rust_name(&module.member), "member": rust_text(&module.member), "name": rust_text(&module.name) }))
        .collect();
    json!({
        "library": layout.library,
        "library_last": rust_text(library_last),
        "is_single": layout.is_single,
        "has_capitals": library_last.chars().any(char::is_uppercase),
        // An image has a module with the names of its kernels.
        "has_kernels": !inputs.kernels.images.is_empty(),
        "has_shim": inputs.kernels.has_shim,
        "modules": modules,
    })
}

fn rust_module(inputs: &Inputs<'_>, module: &NativeModule) -> Value {
    let extension = &inputs.existing.extensions[module.extension];
    let sources: Vec<String> = extension.sources.iter().take(4).map(|path| format!("`{path}`")).collect();
    let more = if extension.sources.len() > 4 { " and others" } else { "" };
    let of = if sources.is_empty() { String::new() } else { format!(", made of {}{more}", sources.join(", ")) };
    json!({
        "module": module.name,
        "kind": extension.kind.name(),
        "of": of,
        "entries": extension.entries.iter().map(entry).collect::<Vec<_>>(),
    })
}

fn entry(entry: &Entry) -> Value {
    let what = if entry.is_class { "the class" } else { "the function" };
    let native =
        entry.native.as_deref().map_or_else(|| format!("{what} {}", entry.name), |native| format!("{what} {native}"));
    json!({
        "name": c_text(&entry.name),
        "native": rust_text(&native),
        "place": rust_text(&entry.place.to_string()),
        "doc": c_text(entry.doc.as_deref().unwrap_or_default()),
    })
}

fn python_module(layout: &Layout, module: &NativeModule) -> Value {
    let (package, library) = layout.library.rsplit_once('.').unwrap_or(("", &layout.library));
    let is_beside = module.name.rsplit_once('.').map_or("", |(own, _)| own) == package;
    let import = if is_beside {
        format!("from . import {library} as _library")
    } else {
        format!("from {package} import {library} as _library")
    };
    json!({ "module": module.name, "import": import, "member": module.member })
}

/// The name of the crate: that of its manifest where it is there.
fn crate_name(inputs: &Inputs<'_>) -> String {
    let own = || inputs.layout.crate_name.clone();
    let Some(directory) = &inputs.layout.existing_crate else { return own() };
    let path = if directory.is_empty() { "Cargo.toml".to_owned() } else { format!("{directory}/Cargo.toml") };
    let document = inputs.existing.tree.text(&path).and_then(|text| text.parse::<toml_edit::DocumentMut>().ok());
    let name = document.as_ref().and_then(|document| document.get("package")?.get("name")?.as_str().map(str::to_owned));
    name.unwrap_or_else(own)
}

/// The manifest of a crate that is there, without what belongs to the workspace around it.
fn existing_manifest(inputs: &Inputs<'_>) -> Result<Option<RenderedFile>> {
    let Some(directory) = &inputs.layout.existing_crate else { return Ok(None) };
    let old = if directory.is_empty() { "Cargo.toml".to_owned() } else { format!("{directory}/Cargo.toml") };
    let text = inputs.existing.tree.text(&old).unwrap_or_default();
    let mut document: toml_edit::DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| {
        crate::error::Failure::usage(format!("{old} is not valid TOML"))
            .detail(error.to_string().trim().to_owned())
            .remedy("mend the file, and try again")
    })?;
    for key in ["workspace", "profile", "patch"] {
        document.remove(key);
    }
    let path = format!("{}/Cargo.toml", inputs.layout.crate_directory());
    Ok(Some(RenderedFile::new(path, document.to_string())))
}

/// The `__init__.py` of a package that only has native modules.
fn missing_packages(inputs: &Inputs<'_>) -> Vec<RenderedFile> {
    let package = inputs.layout.package();
    let path = format!("python/{}/__init__.py", package.replace('.', "/"));
    let directory = path.trim_end_matches("__init__.py");
    let is_there = inputs.copies.files.keys().any(|copied| copied.starts_with(directory));
    if package.is_empty() || is_there {
        return Vec::new();
    }
    let text = format!("\"\"\"The package of the native modules of {}.\"\"\"\n", inputs.layout.name);
    vec![RenderedFile::new(path, text)]
}

/// A text in Rust's quotes.
fn rust_text(text: &str) -> String {
    format!("{text:?}")
}

/// A text in the quotes of Rust's C strings, which hold no NUL.
fn c_text(text: &str) -> String {
    format!("c{:?}", text.replace('\0', ""))
}

/// Texts as Python and JSON have them.
fn python_list(texts: &[&String]) -> String {
    texts.iter().map(|text| json!(text).to_string()).collect::<Vec<_>>().join(", ")
}

/// PORTING.md.
pub(super) fn porting(inputs: &Inputs<'_>, tasks: &[Task], dropped: &[Dropped]) -> Result<RenderedFile> {
    let layout = inputs.layout;
    let modules: Vec<Value> = layout
        .modules
        .iter()
        .map(|module| {
            let extension = &inputs.existing.extensions[module.extension];
            let path = if extension.kind == Kind::Rust { layout.crate_directory() } else { layout.rust_path(module) };
            json!({ "name": module.name, "kind": extension.kind.name(), "entries": extension.entries.len(), "path": path })
        })
        .collect();
    let source = inputs.existing.root.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let values = json!({
        "name": layout.name,
        "source": source,
        "is_rust": layout.existing_crate.is_some(),
        "has_kernels": inputs.kernels.has_any(),
        "modules": modules,
        "tasks": tasks,
        "dropped": dropped,
        "faults": inputs.existing.faults,
    });
    Ok(RenderedFile::new("PORTING.md", Template::named("port/PORTING.md").render(&values)?))
}
