//! What the new project does not take over, and why that is no loss.

use super::existing::ExistingProject;
use super::plan::Dropped;

/// Everything that was dropped, in the order of importance.
pub(super) fn all(existing: &ExistingProject) -> Vec<Dropped> {
    let mut found = Vec::new();
    let mut drop =
        |what: String, old: Option<String>, why: &str| found.push(Dropped { what, old, why: why.to_owned() });
    for command in &existing.commands {
        let why = match command.command.as_str() {
            "build_ext" | "build" | "build_py" | "build_clib" => {
                "cargo and build.rs compile; no command of setuptools runs, and every front end takes the same way"
            }
            "develop" | "editable_wheel" | "install" | "egg_info" | "install_lib" => {
                "`cuwheel develop` and maturin install; there is no second way that could leave the module out"
            }
            "sdist" | "bdist_wheel" => "maturin writes sdists and wheels",
            "test" | "pytest" => "`cuwheel test` runs the tests against the installed wheel",
            _ => "no command of setuptools runs any more",
        };
        drop(format!("`cmdclass` {} = `{}`", command.command, command.class), Some(command.place.to_string()), why);
    }
    let metadata = &existing.metadata;
    if !metadata.setup_requires.is_empty() {
        drop(
            format!("`setup_requires`: {}", quoted(&metadata.setup_requires)),
            None,
            "requirements of the build are in build-system.requires, where pip and uv read them before anything runs",
        );
    }
    if !existing.build_requires.is_empty() {
        drop(
            format!("`build-system.requires`: {}", quoted(&existing.build_requires)),
            Some("pyproject.toml".to_owned()),
            "maturin builds; what it needs is declared in its place",
        );
    }
    if let Some(program) = &existing.version.made_by {
        drop(
            format!("the version made by {program}"),
            existing.version.place.as_ref().map(ToString::to_string),
            "the version is written in pyproject.toml, so that the same sources give the same wheel",
        );
    }
    for (rule, line) in &existing.manifest_rules {
        drop(
            format!("`{rule}`"),
            Some(format!("MANIFEST.in:{line}")),
            "maturin packs everything in `python/` that git does not ignore into the wheel, and all that the crates are made of into the sdist",
        );
    }
    for (package, patterns) in &existing.packages.data {
        drop(
            format!(
                "`package_data` of {}: {}",
                if package.is_empty() { "all packages" } else { package },
                quoted(patterns)
            ),
            None,
            "every file in `python/` is in the wheel",
        );
    }
    if !metadata.license_classifiers.is_empty() {
        let why = "the field `license` takes an SPDX expression, beside which they are not allowed";
        drop(quoted(&metadata.license_classifiers), None, why);
    }
    found.extend(arguments(existing));
    found.extend(ignored(existing));
    found
}

/// Arguments of compilers and linkers.
fn arguments(existing: &ExistingProject) -> Vec<Dropped> {
    let mut found = Vec::new();
    let mut drop =
        |what: String, old: Option<String>, why: &str| found.push(Dropped { what, old, why: why.to_owned() });
    let (mut compile, mut link): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    for extension in &existing.extensions {
        compile.extend(extension.compile_args.iter().cloned());
        link.extend(extension.link_args.iter().cloned());
    }
    for (what, mut arguments) in [("compiler", compile), ("linker", link)] {
        arguments.sort();
        arguments.dedup();
        if !arguments.is_empty() {
            drop(
                format!("arguments of the {what}: {}", quoted(&arguments)),
                None,
                "rustc has its own; for C++ that stays, repeat them in build.rs",
            );
        }
    }
    found
}

/// Arguments of `setup` that nothing is made of.
fn ignored(existing: &ExistingProject) -> Vec<Dropped> {
    let mut found = Vec::new();
    let mut drop =
        |what: String, old: Option<String>, why: &str| found.push(Dropped { what, old, why: why.to_owned() });
    for (name, place) in &existing.ignored {
        let why = match name.as_str() {
            "zip_safe" => "wheels are never run from a zip file",
            "include_package_data" => "every file in `python/` is in the wheel",
            "long_description_content_type" => "the ending of the README says it",
            "platforms" | "provides" | "obsoletes" | "requires" | "test_suite" | "use_2to3" | "features" => {
                "no tool reads it any more"
            }
            "exclude_package_data" => "leave the files out of `python/`, or name them in tool.maturin.exclude",
            "data_files" => {
                "wheels install them somewhere below sys.prefix, which is seldom meant; put what is needed into the package"
            }
            _ => "nothing in pyproject.toml has this meaning; see whether it is still needed",
        };
        drop(format!("`{name}`"), Some(place.to_string()), why);
    }
    found
}

fn quoted(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| format!("`{text}`")).collect();
    texts.join(", ")
}
