//! What a human has to do, in an order in which it can be done.

use super::copies::{self, Copies};
use super::existing::ExistingProject;
use super::extension::{Extension, Kind};
use super::kernels::Kernels;
use super::layout::{self, Layout, NativeModule};
use super::plan::Task;
use super::project_file;

/// Points in one task; more are counted.
const MOST_POINTS: usize = 60;

/// All tasks.
pub(super) fn all(existing: &ExistingProject, layout: &Layout, copies: &Copies, kernels: &Kernels) -> Vec<Task> {
    let mut tasks = Vec::new();
    tasks.extend(version(existing));
    tasks.extend(metadata(existing));
    tasks.extend(unknown(existing));
    for module in &layout.modules {
        tasks.push(module_task(existing, layout, module));
    }
    tasks.extend(no_modules(existing));
    tasks.extend(plain_sources(existing, layout, copies));
    tasks.extend(cuda(layout, kernels));
    tasks.extend(numpy(existing, layout, kernels));
    tasks.extend(libraries(existing));
    tasks.extend(conditions(existing));
    tasks.extend(variables(existing));
    tasks.extend(commands(existing));
    tasks.extend(rest(existing, layout, copies));
    for task in &mut tasks {
        let more = task.points.len().saturating_sub(MOST_POINTS);
        task.points.truncate(MOST_POINTS);
        if more > 0 {
            task.points.push(format!("and {more} more"));
        }
    }
    tasks
}

fn task(title: impl Into<String>, old: Option<String>, new: Option<&str>, detail: impl Into<String>) -> Task {
    Task { title: title.into(), old, new: new.map(str::to_owned), detail: detail.into(), points: Vec::new() }
}

fn version(existing: &ExistingProject) -> Option<Task> {
    let version = &existing.version;
    let old = version.place.as_ref().map(ToString::to_string);
    let new = Some("pyproject.toml: project.version");
    match (&version.value, &version.made_by, &version.file) {
        (None, Some(program), _) => Some(task(
            "Write the version",
            old,
            new,
            format!(
                "`{program}` makes it when setup.py runs, and 0.0.0 stands in its place. Write the version of the next release, and raise it by hand or in the workflow that releases."
            ),
        )),
        (None, None, _) => Some(task(
            "Write the version",
            old,
            new,
            "It is not written down anywhere that can be read, and 0.0.0 stands in its place.",
        )),
        (Some(value), Some(program), _) => Some(task(
            "Check the version",
            old,
            new,
            format!(
                "`{program}` makes it when setup.py runs; {value} is from the PKG-INFO of the release that was read."
            ),
        )),
        (Some(value), None, Some(file)) if copies_version(file) => Some(task(
            "Keep the version in one place",
            Some(file.clone()),
            new,
            format!(
                "{value} was read from {file}, and is in pyproject.toml now. In Python, take it from `importlib.metadata.version(\"{}\")`.",
                existing.name.as_deref().unwrap_or("NAME")
            ),
        )),
        _ => None,
    }
}

/// Whether Python code has the version a second time.
fn copies_version(file: &str) -> bool {
    crate::reading::tree::extension(file) == "py"
}

fn metadata(existing: &ExistingProject) -> Vec<Task> {
    let metadata = &existing.metadata;
    let mut tasks = Vec::new();
    if metadata.license.is_none() {
        let says = match &metadata.license_text {
            Some(text) => {
                format!("The old project says `{}`, which may mean several.", text.lines().next().unwrap_or_default())
            }
            None => "The old project names none.".to_owned(),
        };
        tasks.push(task(
            "Write the licence as an SPDX expression",
            None,
            Some("pyproject.toml: project.license"),
            says,
        ));
    }
    let python = project_file::requires_python(metadata.requires_python.as_deref());
    if metadata.requires_python.as_deref() != Some(&python) {
        let was = metadata.requires_python.as_deref().map_or("any".to_owned(), |text| format!("`{text}`"));
        tasks.push(task(
            "See whether users of older Pythons are left",
            None,
            Some("pyproject.toml: project.requires-python"),
            format!(
                "It was {was}, and is `{python}`: one wheel for the limited API of CPython 3.11 serves all newer ones."
            ),
        ));
    }
    for script in &metadata.scripts {
        tasks.push(task(
            format!("Make an entry point of the script {script}"),
            Some(script.clone()),
            Some("pyproject.toml: project.scripts"),
            "maturin packs no script files: put its code into a function of the package.",
        ));
    }
    tasks
}

/// What only running setup.py would tell.
fn unknown(existing: &ExistingProject) -> Vec<Task> {
    let gaps = existing.gaps.iter().filter(|gap| gap.what != "version");
    let gap_task = |gap: &super::Gap| {
        let source =
            if gap.source.is_empty() { String::new() } else { format!("`{}`: ", gap.source.replace('`', "'")) };
        let why = if gap.why.is_empty() { "its value is known only when setup.py runs" } else { &gap.why };
        task(format!("Find out: {}", gap.what), Some(gap.place.to_string()), None, format!("{source}{why}."))
    };
    gaps.map(gap_task).collect()
}

fn module_task(existing: &ExistingProject, layout: &Layout, module: &NativeModule) -> Task {
    let extension = &existing.extensions[module.extension];
    if layout.existing_crate.is_some() {
        let manifest = format!("{}/Cargo.toml", layout.crate_directory());
        let detail = "It is Rust already, and was copied. maturin builds it directly; give it a feature `abi3` that turns on `pyo3/abi3-py311`, and one wheel serves all Pythons from 3.11 on.";
        return task(
            format!("Check the crate of {}", module.name),
            extension.manifest.clone(),
            Some(&manifest),
            detail,
        );
    }
    let new = layout.rust_path(module);
    let count = extension.entries.len();
    let title = format!("Port {}: {} in {}", module.name, counted(count), extension.kind.name());
    let mut found = task(title, Some(extension.place.to_string()), Some(&new), how(extension));
    found.points.extend(extension.entries.iter().map(|entry| {
        let kind = if entry.is_class { "class " } else { "" };
        let native = entry
            .native
            .as_deref()
            .filter(|native| *native != entry.name)
            .map(|native| format!(", `{native}`"))
            .unwrap_or_default();
        format!("{kind}`{}`{native}: {}", entry.name, entry.place)
    }));
    found.points.extend(extension.others.iter().map(|(what, place)| format!("{what}: {place}")));
    found
}

/// What is built under the name of a package.
fn no_modules(existing: &ExistingProject) -> Vec<Task> {
    let extensions = existing.extensions.iter().filter(|extension| layout::is_package(existing, &extension.name));
    let detail = "There is a package of that name, so it is no module: a library that modules or ctypes load. Build it in build.rs, or port it with the modules that use it.";
    let one = |extension: &Extension| {
        task(format!("Decide how {} is built", extension.name), Some(extension.place.to_string()), None, detail)
    };
    extensions.map(one).collect()
}

/// A number of entries.
pub(super) fn counted(count: usize) -> String {
    if count == 1 { "one function or class".to_owned() } else { format!("{count} functions and classes") }
}

fn how(extension: &Extension) -> String {
    let none = "The reader found none: names that macros put together are not seen. Look through the sources for what the module registers. ";
    let start = if extension.entries.is_empty() && extension.kind != Kind::Rust { none } else { "" };
    let rest = match extension.kind {
        Kind::C => {
            "Write each as a `#[pyfunction]`: PyO3 takes arguments apart, counts references and turns errors into exceptions."
        }
        Kind::Cython => {
            "Write each as a `#[pyfunction]`; what is typed in Cython has a type in Rust, and memory views become buffers or arrays."
        }
        Kind::Pybind11 => {
            "Write functions as `#[pyfunction]` and classes as `#[pyclass]`. C++ that has to stay is compiled by build.rs and called through functions with `extern \"C\"`."
        }
        Kind::Torch => {
            "Take tensors through cuwheel-exchange, as arrays of any library, and launch through cuwheel-dispatcher; `cuwheel new` writes an example of both. Then torch is no requirement of the build, and one wheel serves all its releases. Operators for autograd and torch.compile are registered in Python, with torch.library."
        }
        Kind::CMake => {
            "Its CMake project is not read. Compile the sources in build.rs, or call CMake there with the crate `cmake`."
        }
        Kind::Rust => "The crate is copied and not a member of the workspace: move its functions into the new crate.",
        Kind::Cffi => "Call the C functions from Rust with `extern \"C\"`.",
    };
    format!("{start}{rest}")
}

/// C and C++ that names nothing of Python can stay.
fn plain_sources(existing: &ExistingProject, layout: &Layout, copies: &Copies) -> Option<Task> {
    let is_plain = |path: &&String| existing.tree.text(path).is_some_and(|text| copies::is_plain_library(path, &text));
    let plain: Vec<&String> = copies.native.iter().filter(is_plain).collect();
    if plain.is_empty() || layout.existing_crate.is_some() {
        return None;
    }
    let detail = "These files name nothing of Python. Port them, or compile them in build.rs with the crate `cc` and declare their functions in Rust with `extern \"C\"`.";
    let mut found = task(
        format!("Decide on {} sources that may stay in C or C++", plain.len()),
        None,
        Some(copies::TO_PORT),
        detail,
    );
    found.points = plain.into_iter().map(|path| format!("`{path}`")).collect();
    Some(found)
}

fn cuda(layout: &Layout, kernels: &Kernels) -> Vec<Task> {
    let build = format!("{}/build.rs", layout.crate_directory());
    let mut tasks = Vec::new();
    if !kernels.images.is_empty() {
        let mut found = task(
            "Launch the kernels from Rust",
            None,
            Some(&build),
            "build.rs compiles these files to images that the library carries; `kernels::FILE::KERNEL` names them. Launch them through cuwheel-dispatcher.",
        );
        found.points = kernels.images.iter().map(|path| format!("`{path}`")).collect();
        tasks.push(found);
    }
    if !kernels.host_files.is_empty() {
        let mut found = task(
            "Call the host code of CUDA from Rust",
            None,
            Some(&build),
            "These files launch their own kernels. build.rs compiles them to a static library with the static CUDA runtime: give the functions that Rust calls `extern \"C\"`, and declare them in Rust.",
        );
        found.points = kernels.host_files.iter().map(|path| format!("`{path}`")).collect();
        tasks.push(found);
    }
    if !kernels.bound.is_empty() {
        let mut found = task(
            "Part kernels from their bindings",
            None,
            Some(&build),
            "These files include headers of Python or torch, and are not compiled. Move the kernels into files of their own, and name those in build.rs with `Kernels::files`, or `Kernels::host_files` if they launch kernels.",
        );
        found.points =
            kernels.bound.iter().map(|(path, headers)| format!("`{path}` includes {}", headers.join(", "))).collect();
        tasks.push(found);
    }
    tasks
}

fn numpy(existing: &ExistingProject, layout: &Layout, kernels: &Kernels) -> Option<Task> {
    if !kernels.has_shim {
        return None;
    }
    let new = format!("{}/src/numpy_shim.c", layout.crate_directory());
    let mut found = task(
        "Reach what only NumPy's C API has",
        None,
        Some(&new),
        "Most of it is not needed: arrays come through buffers, or through cuwheel-exchange. What is left, such as macros over data types, goes into the shim, which is compiled for the limited API and for NumPy 1.26 and newer.",
    );
    let uses =
        existing.extensions.iter().filter(|extension| extension.uses_numpy).flat_map(|extension| &extension.sources);
    found.points = uses.map(|path| format!("`{path}`")).collect();
    let dependencies = project_file::dependencies(existing, true);
    if let Some(added) = dependencies.iter().find(|text| !existing.metadata.dependencies.contains(text)) {
        found
            .points
            .push(format!("`{added}` is in the dependencies now: make it an extra if only some functions need it"));
    }
    Some(found)
}

/// Libraries that the old modules are linked to.
fn libraries(existing: &ExistingProject) -> Option<Task> {
    let mut names: Vec<(&String, &Extension)> = Vec::new();
    for extension in &existing.extensions {
        for library in &extension.libraries {
            if !names.iter().any(|(known, _)| *known == library) {
                names.push((library, extension));
            }
        }
    }
    if names.is_empty() {
        return None;
    }
    let mut found = task("Decide how each library is reached", None, None, "The old modules were linked to these.");
    found.points = names
        .into_iter()
        .map(|(library, extension)| {
            format!("`{library}`, of {} ({}): {}", extension.name, extension.place, advice(library))
        })
        .collect();
    Some(found)
}

fn advice(library: &str) -> &'static str {
    match library {
        "cuda" => "the driver is never linked; cuwheel-dispatcher loads it when it is first used",
        "cudart" | "cudart_static" => {
            "not needed for launches; host code in .cu files is linked with the static one by build.rs"
        }
        "nvrtc" => "cuwheel-dispatcher loads it when it is first used",
        name if name.starts_with("cu") || name.starts_with("nv") || name == "nccl" => {
            "load it when it is first used, and make NVIDIA's wheel with it a dependency of the project; it is not packed into the wheel"
        }
        name if name.starts_with("torch") || name.starts_with("c10") => {
            "not needed once tensors come through cuwheel-exchange"
        }
        "m" | "dl" | "pthread" | "rt" | "stdc++" | "c" | "gcc_s" => "rustc links it where it is needed",
        _ => {
            "use a crate that binds or replaces it, or compile its sources in build.rs; a wheel cannot count on the system's copy"
        }
    }
}

fn conditions(existing: &ExistingProject) -> Option<Task> {
    let points: Vec<String> = existing
        .extensions
        .iter()
        .filter_map(|extension| {
            Some(format!(
                "`{}` is built if `{}` ({})",
                extension.name,
                extension.when.as_ref()?.replace('`', "'"),
                extension.place
            ))
        })
        .collect();
    if points.is_empty() {
        return None;
    }
    let mut found = task(
        "Build the same everywhere",
        None,
        None,
        "These modules were left out on some machines. In the new project they are always there: find out at run time what the machine has.",
    );
    found.points = points;
    Some(found)
}

fn variables(existing: &ExistingProject) -> Option<Task> {
    if existing.variables.is_empty() {
        return None;
    }
    let mut found = task(
        "Replace environment variables of the build",
        None,
        None,
        "The old build read these. Features of cargo, or CUWHEEL_KERNEL_ARCHITECTURES and CUDA_PATH, take their place; what nobody sets any more goes.",
    );
    found.points =
        existing.variables.iter().map(|variable| format!("`{}`: {}", variable.name, variable.place)).collect();
    Some(found)
}

fn commands(existing: &ExistingProject) -> Option<Task> {
    let own: Vec<String> = existing
        .commands
        .iter()
        .filter(|command| !command.methods.is_empty())
        .map(|command| {
            format!(
                "`{}`, {} with its own {} ({})",
                command.command,
                command.class,
                command.methods.iter().map(|method| format!("`{method}`")).collect::<Vec<_>>().join(", "),
                command.place
            )
        })
        .collect();
    if own.is_empty() {
        return None;
    }
    let mut found = task(
        "See what the old commands did beside compiling",
        None,
        Some("build.rs"),
        "They were dropped, and nothing runs them. Files that they generated or copied have to be committed, or made by build.rs.",
    );
    found.points = own;
    Some(found)
}

fn rest(existing: &ExistingProject, layout: &Layout, copies: &Copies) -> Vec<Task> {
    let mut tasks = Vec::new();
    let missing: Vec<String> = existing
        .extensions
        .iter()
        .flat_map(|extension| extension.sources.iter().map(move |path| (path, extension)))
        .filter(|(path, _)| !existing.tree.has(path))
        .map(|(path, extension)| format!("`{path}`, of {} ({})", extension.name, extension.place))
        .collect();
    if !missing.is_empty() {
        let mut found = task(
            "Look for sources that are not there",
            None,
            None,
            "They are generated, or in a git submodule that is not checked out, or the path is wrong.",
        );
        found.points = missing;
        tasks.push(found);
    }
    if copies.has_tests {
        tasks.push(task("Run the tests against the wheel", Some("tests".to_owned()), Some("tests"), "`cargo xtask test` runs them outside of the tree. Tests that need a GPU go to `tests/gpu`, for `cargo xtask test-gpu`."));
    }
    tasks.push(task(
        "Commit the locks",
        None,
        Some("requirements"),
        "`cargo xtask lock` writes them. Then `cargo xtask doctor` and `cargo xtask build-wheel`.",
    ));
    let left: Vec<String> = copies
        .left
        .iter()
        .filter(|path| !path.starts_with(".git") || path.as_str() == ".github/")
        .map(|path| format!("`{path}`"))
        .collect();
    if !left.is_empty() {
        let mut found = task(
            "Move over what else is needed",
            None,
            None,
            "These were not copied: nothing of the build reads them.",
        );
        found.points = left;
        tasks.push(found);
    }
    if !layout.is_single && layout.modules.len() > 1 {
        tasks.push(task("Write type stubs", None, None, "Each native module is a file of Python that takes its names from the library: checkers of types see none of them without a stub beside it."));
    }
    tasks
}
