//! `develop`: what of the wheel lies where, whatever a package looks like.

use std::path::PathBuf;
use std::process::Command;

use cuwheel::cache_keys;
use cuwheel::environment::{Access, BuildEnvironment};
use cuwheel::lock_file::FileLock;
use cuwheel::project::Project;
use cuwheel_inspect::elf::ElfFile;
use cuwheel_inspect::sdist::Sdist;
use cuwheel_inspect::testing::WheelBuilder;
use cuwheel_inspect::wheel::Wheel;

use crate::support::{
    EditableProject, Tree, interpreter, is_built_with, python_of, quiet, repository, run, scrub, site_packages, uv,
};

/// Installs a wheel with these files.
fn install(project: &EditableProject, name: &str, files: &[(&str, &str)]) {
    let file = format!("{name}-1.0-py3-none-any.whl");
    let wheel = files.iter().fold(WheelBuilder::new(&file), |wheel, (path, text)| wheel.file(path, text));
    std::fs::write(project.tree.beside(&file), wheel.build()).unwrap();
    uv().install_wheel(&project.path(".venv"), &project.tree.beside(&file)).unwrap();
}

/// The wheel and the sdist that plain maturin makes of the project.
fn made_by_maturin(project: &EditableProject) -> [PathBuf; 2] {
    let opened = Project::open(&project.tree.root).unwrap();
    let access = Access { offline: false, locked: true };
    let environment = BuildEnvironment::ready(&opened, &interpreter(), access, &quiet()).unwrap();
    let develop = project.command("develop", &[]);
    // Maturin moves the library inside the target directory.
    let (_, target) = develop.get_envs().find(|(name, _)| *name == "CARGO_TARGET_DIR").unwrap();
    let lock = PathBuf::from(target.unwrap()).join("cuwheel/lock");
    let _alone = FileLock::acquire(&lock, "maturin", &quiet()).unwrap();
    [&["build", "--auditwheel=skip"][..], &["sdist"]].map(|arguments| {
        let out = project.tree.beside(arguments[0]);
        let mut maturin = Command::new(environment.maturin());
        maturin.envs(develop.get_envs().filter_map(|(name, value)| Some((name, value?))));
        maturin.current_dir(&project.tree.root).args(arguments).arg("--out").arg(&out);
        if arguments[0] == "build" {
            maturin.arg("--interpreter").arg(environment.python());
        }
        run(&mut maturin).expect_code(0);
        std::fs::read_dir(&out).unwrap().next().unwrap().unwrap().path()
    })
}

#[test]
fn pk_44_siblings_of_a_namespace_package_are_not_hidden() {
    for module in ["ns.b._native", "ns.deep.b._native"] {
        let project = EditableProject::with_module(module);
        project.develop(&[]).expect_code(0);
        let namespace = module.strip_suffix(".b._native").unwrap();
        let sibling = format!("{}/a/__init__.py", namespace.replace('.', "/"));
        install(&project, "sibling", &[(&sibling, "")]);
        let file = project.path(&format!("python/{}.abi3.so", module.replace('.', "/")));
        let code = format!("import {namespace}.a, {module} as n; print(n.__file__)");
        assert_eq!(project.prints(&code), file.to_str().unwrap());
        // With the sibling there, it is installed and proven as before.
        project.change_source("with a sibling");
        project.develop(&[]).expect_code(0);
        assert_eq!(project.prints(&code), file.to_str().unwrap());
    }
}

#[test]
fn pk_49_a_native_module_in_a_package_for_one_toolkit_is_found() {
    let project = EditableProject::with_module("pkg.cu13._native");
    project.tree.write("python/pkg/__init__.py", "from .cu13 import _native\n");
    project.develop(&[]).expect_code(0);
    let file = project.path("python/pkg/cu13/_native.abi3.so");
    assert_eq!(project.prints("import pkg.cu13; print(pkg._native.__file__)"), file.to_str().unwrap());
}

#[test]
fn pk_36_and_pk_53_what_is_declared_once_is_in_wheel_sdist_and_editable_install() {
    let project = EditableProject::new();
    let pyproject = std::fs::read_to_string(project.path("pyproject.toml")).unwrap();
    let include = ["0_redirector.pth", "_redirector.py", "small/generated.ptx"]
        .map(|path| format!("{{ path = 'python/{path}', format = ['wheel', 'sdist'] }}"))
        .join(", ");
    let maturin = format!("[tool.maturin]\ninclude = [{include}]\n");
    let artifacts = "[tool.cuwheel]\nartifacts = ['small/*.ptx']\n";
    let with_include = pyproject.replace("[tool.maturin]\n", &maturin).replace("[tool.cuwheel]\n", artifacts);
    project
        .tree
        .write("pyproject.toml", with_include)
        .write("python/0_redirector.pth", "import _redirector\n")
        .write("python/_redirector.py", "import sys\nsys.redirected = True\n")
        .write(".gitignore", "/target\n*.so\n*.ptx\n.venv\n/dist\n");
    // A declared file that is not there is no install.
    let ran = project.develop(&[]).expect_code(1);
    assert!(ran.stderr.contains("small/*.ptx"), "{}", ran.stderr);
    project.tree.write("python/small/generated.ptx", "// PTX");
    project.develop(&[]).expect_code(0);
    let code = "import sys, importlib.resources as r; print(sys.redirected, r.files('small').joinpath('generated.ptx').read_text())";
    assert_eq!(project.prints(code), "True // PTX");

    let [wheel, sdist] = made_by_maturin(&project);
    let (wheel, sdist) = (Wheel::open(&wheel).unwrap(), Sdist::open(&sdist).unwrap());
    for path in ["0_redirector.pth", "_redirector.py", "small/generated.ptx"] {
        assert!(wheel.entry(path).is_some(), "{path}");
        let in_sdist = format!("python/{path}");
        assert!(sdist.entries().iter().any(|entry| entry.path() == in_sdist), "{in_sdist}");
    }
    // What is installed as a copy is built from as well.
    project.tree.write("python/0_redirector.pth", "import _redirector # changed\n");
    assert_eq!(project.reasons(), ["python/0_redirector.pth changed"]);
    project.develop(&[]).expect_code(0);
    let installed = site_packages(&project.path(".venv")).join("0_redirector.pth");
    assert_eq!(std::fs::read_to_string(installed).unwrap(), "import _redirector # changed\n");
}

#[test]
fn pk_38_a_library_that_is_not_the_declared_module_is_no_install() {
    let project = EditableProject::with_module("small.other");
    project.tree.write("python/small/__init__.py", "");
    let ran = project.develop(&[]).expect_code(1);
    assert!(ran.stderr.contains("the editable install of small does not import: small.other"), "{}", ran.stderr);
    assert!(ran.stderr.contains("PyInit_other"), "{}", ran.stderr);
    assert_eq!(project.reasons()[0], "the last install did not get to its end");
}

#[test]
fn pk_45_the_search_path_of_the_release_is_not_used() {
    let project = EditableProject::new();
    project.tree.write(
        "build.rs",
        "fn main() {\n    println!(\"cargo:rerun-if-changed=build.rs\");\n    \
         println!(\"cargo:rustc-link-arg=-Wl,-rpath,$ORIGIN/../nvidia/cu13/lib:$ORIGIN/lib\");\n}\n",
    );
    project.develop(&[]).expect_code(0);
    let library = std::fs::read(project.library()).unwrap();
    let site = site_packages(&project.path(".venv"));
    let expected = format!("{}:$ORIGIN/lib", site.join("nvidia/cu13/lib").display());
    assert_eq!(ElfFile::parse(&library).unwrap().runpath(), Some(expected.as_str()));
    assert_eq!(project.reasons(), Vec::<String>::new());
}

#[test]
fn a_module_without_python_sources_lies_in_site_packages_and_is_replaced_there() {
    let project = EditableProject::new();
    let pyproject = std::fs::read_to_string(project.path("pyproject.toml")).unwrap();
    let pyproject = pyproject.replace("module-name = 'small._native'\npython-source = 'python'\n", "");
    project.tree.write("pyproject.toml", pyproject);
    std::fs::remove_dir_all(project.path("python")).unwrap();
    let file = |installed: &serde_json::Value| installed["modules"][0]["file"].as_str().unwrap().to_owned();
    let first = file(&project.develop(&["--json"]).expect_code(0).json());
    assert!(first.starts_with(site_packages(&project.path(".venv")).to_str().unwrap()), "{first}");
    project.change_source("in site-packages");
    let installed = project.develop(&["--json"]).expect_code(0).json();
    assert_eq!(file(&installed), first);
    assert!(is_built_with(first.as_ref(), "in site-packages"));
    // RECORD says what is there: uninstalling leaves nothing.
    let hash = cuwheel_inspect::digest::Sha256Digest::of(&std::fs::read(&first).unwrap()).to_record();
    let site = site_packages(&project.path(".venv"));
    assert!(std::fs::read_to_string(site.join("small-0.1.0.dist-info/RECORD")).unwrap().contains(&hash));
    uv().uninstall(&project.path(".venv"), "small").unwrap();
    assert!(!std::path::Path::new(&first).exists());
}

#[test]
fn programs_are_installed_and_missed() {
    let project = EditableProject::new();
    let pyproject = std::fs::read_to_string(project.path("pyproject.toml")).unwrap();
    project.tree.write("pyproject.toml", format!("{pyproject}[project.scripts]\nsmall = 'small:main'\n"));
    project.tree.write("python/small/live.py", "def main(): print('ran')\n");
    project.develop(&[]).expect_code(0);
    let program = project.path(".venv/bin/small");
    assert_eq!(run(&mut Command::new(&program)).expect_code(0).stdout, "ran\n");
    std::fs::remove_file(&program).unwrap();
    assert_eq!(project.reasons(), [".venv/bin/small is missing"]);
    project.develop(&[]).expect_code(0);
    assert!(program.is_file());
}

#[test]
fn what_the_project_requires_is_installed_unless_that_is_forbidden() {
    let project = EditableProject::new();
    let wheel = WheelBuilder::new("needed-1.0-py3-none-any.whl").file("needed.py", "");
    let path = project.tree.beside("needed-1.0-py3-none-any.whl");
    std::fs::write(&path, wheel.build()).unwrap();
    let pyproject = std::fs::read_to_string(project.path("pyproject.toml")).unwrap();
    let url = cuwheel::wheel_writer::file_url(&path);
    project.tree.write(
        "pyproject.toml",
        format!("{pyproject}[dependency-groups]\ndev = ['needed @ {url}']\n")
            .replace("requires-python", "optional-dependencies = { more = ['needed'] }\nrequires-python"),
    );
    project.develop(&["--group", "dev"]).expect_code(0);
    assert_eq!(project.prints("import needed, small; print('both')"), "both");
    let other = project.tree.beside("other");
    run(project.command("develop", &["--no-deps", "--venv"]).arg(&other)).expect_code(0);
    run(python_of(&other).args(["-c", "import small, needed"])).expect_code(1);
}

#[test]
fn pk_39_the_cache_keys_of_this_repository_cover_what_its_build_reads() {
    let repository = Project::open(&repository()).unwrap();
    assert_eq!(cache_keys::unnoticed(&repository).unwrap(), Vec::<PathBuf>::new());
}

#[test]
fn pk_39_uv_builds_again_after_a_change_of_each_kind_of_source() {
    let repository = repository();
    let text = std::fs::read_to_string(repository.join("pyproject.toml")).unwrap();
    let keys = text.split_once("[tool.uv]").map(|(_, rest)| rest.split("\n[").next().unwrap()).unwrap();
    // A backend that makes a wheel with the number of its builds in it.
    let backend = "\
import pathlib, zipfile

def build_editable(directory, config_settings=None, metadata_directory=None):
    count = pathlib.Path('count')
    number = int(count.read_text()) + 1 if count.exists() else 1
    count.write_text(str(number))
    name = 'counted-1.0-py3-none-any.whl'
    with zipfile.ZipFile(pathlib.Path(directory, name), 'w') as wheel:
        wheel.writestr('counted.py', '')
        wheel.writestr('counted-1.0.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: counted\\nVersion: 1.0\\n')
        wheel.writestr('counted-1.0.dist-info/WHEEL', 'Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
        wheel.writestr('counted-1.0.dist-info/RECORD', '')
    return name

build_wheel = build_editable
";
    let tree = Tree::new();
    tree.write("backend.py", backend).write(
        "pyproject.toml",
        format!(
            "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n[project]\nname = 'counted'\n\
             version = '1.0'\nrequires-python = '>=3.11'\n[tool.uv]{keys}\n"
        ),
    );
    let sync = || {
        let mut uv = Command::new(uv().program());
        scrub(&mut uv);
        uv.current_dir(&tree.root).args(["sync", "--quiet", "--offline", "--python"]);
        run(uv.arg(&interpreter().base_executable)).expect_code(0);
        std::fs::read_to_string(tree.root.join("count")).unwrap().parse::<u32>().unwrap()
    };
    let mut count = sync();
    assert_eq!(sync(), count, "nothing changed");
    let sources = [
        "crates/a/src/lib.rs",
        "crates/a/build.rs",
        "crates/a/src/deep/shim.c",
        "crates/a/src/shim.h",
        "crates/a/kernels/k.cu",
        "crates/a/kernels/k.cuh",
        "crates/a/Cargo.toml",
        "Cargo.toml",
        "Cargo.lock",
        "pyproject.toml",
    ];
    for source in sources {
        let old = std::fs::read_to_string(tree.root.join(source)).unwrap_or_default();
        tree.write(source, old + "\n");
        let now = sync();
        assert!(now > count, "uv did not notice {source}");
        count = now;
    }
}
