//! `overlay`, the command as a whole: plans, the proof, and an overlay over the released wheel and back.

use std::path::{Path, PathBuf};
use std::process::Command;

use expect_test::expect;

use crate::overlay::{ENTRY, released, released_name, suffix};
use crate::support::{Tree, cuwheel, interpreter, native_project, run, uv};

/// A project whose native module is real, with an overlay of the wheels of [`released`].
struct Project {
    tree: Tree,
    wheel: PathBuf,
}

impl Project {
    fn new() -> Self {
        let tree = native_project();
        let pyproject = std::fs::read_to_string(tree.root.join("pyproject.toml")).unwrap();
        let overlay = ENTRY.replace("[overlay.", "[tool.cuwheel.overlay.") + "imports = ['more.cext']\n";
        tree.write("pyproject.toml", pyproject + &overlay);
        let wheel = tree.beside("wheels").join(released_name("1.2"));
        std::fs::create_dir(wheel.parent().unwrap()).unwrap();
        std::fs::write(&wheel, released("1.2").build()).unwrap();
        let project = Self { tree, wheel };
        project.module("_a", "").module("_b", "");
        project
    }

    fn module(&self, name: &str, rest: &str) -> &Self {
        let text = format!("from . import _native\nNAME = _native.__name__\n{rest}");
        self.tree.write(&format!("overlay/up/{name}.py"), text);
        self
    }

    fn overlay(&self, arguments: &[&str]) -> Command {
        let mut command = cuwheel(&self.tree.root);
        command.arg("overlay").arg(&self.wheel).args(arguments);
        command
    }

    fn made(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.tree.root.join("dist/overlay")).into_iter().flatten();
        entries.map(|entry| entry.unwrap().path()).collect()
    }
}

/// A capsule as C extensions leave one in their module.
const CAPSULE: &str = "
import ctypes
new = ctypes.pythonapi.PyCapsule_New
new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
";

#[test]
fn the_command_builds_the_library_and_proves_the_overlay() {
    let project = Project::new();
    // A capsule that is found wherever the module is.
    let true_name = format!("{CAPSULE}KEPT = f'{{__name__}}._API'.encode()\n_API = new(1, KEPT, None)\n");
    project.module("_a", &true_name);
    let ran = run(&mut project.overlay(&["--json", "--prove", "full"])).expect_code(0);
    let json = ran.json();
    let [path] = &project.made()[..] else { panic!("{}", ran.stdout) };
    assert_eq!(json["wheel"]["path"].as_str().map(Path::new), Some(path.as_path()));
    assert_eq!(json["wheel"]["imported"], serde_json::json!(["up.cext._a", "up.cext._b", "more.cext"]));
    assert_eq!(json["wheel"]["extension_modules"], serde_json::json!(["up.cext._native"]));
    let checked = run(cuwheel(&project.tree.root).arg("check-wheel").arg(path).arg("--json")).expect_code(0).json();
    assert_eq!(checked["counts"], serde_json::json!({ "errors": 0, "warnings": 0, "notes": 0 }));
    check_upgrade_and_downgrade(&project, path);

    // A capsule that is found in one place only makes the overlay fail, and the wheel that was there stays.
    let before = std::fs::read(path).unwrap();
    project.module("_b", &format!("{CAPSULE}KEPT = b'elsewhere._API'\n_API = new(1, KEPT, None)\n"));
    let failed = run(&mut project.overlay(&[])).expect_code(1);
    expect![[r#"
        error: capsules of up-1.2+small.0.1.0-cp311-abi3-manylinux_2_28_x86_64.whl cannot be imported
          up.cext._b._API is called elsewhere._API
        fix: name a capsule after its module's __name__ and its attribute, as PyCapsule_Import looks for it
    "#]]
    .assert_eq(&failed.stderr);
    project.module("_b", "raise ImportError('broken')");
    let failed = run(&mut project.overlay(&[])).expect_code(1);
    assert!(failed.stderr.contains("does not import: up.cext._b"), "{}", failed.stderr);
    assert_eq!((project.made().len(), std::fs::read(path).unwrap()), (1, before));
}

/// Over the released wheel, whose native files would win the import, and back again.
fn check_upgrade_and_downgrade(project: &Project, overlay: &Path) {
    let environment = project.tree.beside("environment");
    let uv = uv();
    uv.create_environment(&interpreter(), &environment).unwrap();
    let site =
        std::fs::read_dir(environment.join("lib")).unwrap().next().unwrap().unwrap().path().join("site-packages");
    let extension_modules = || {
        let files = std::fs::read_dir(site.join("up/cext")).unwrap().map(|entry| entry.unwrap().file_name());
        let mut files: Vec<String> = files.map(|file| file.into_string().unwrap()).collect();
        files.retain(|file| Path::new(file).extension().is_some_and(|extension| extension == "so"));
        files.sort();
        files
    };
    let theirs = vec![format!("_a.{}", suffix()), format!("_b.{}", suffix())];
    for (wheel, expected) in
        [(&*project.wheel, &theirs), (overlay, &vec!["_native.abi3.so".into()]), (&project.wheel, &theirs)]
    {
        uv.install_wheel(&environment, wheel).unwrap();
        assert_eq!(&extension_modules(), expected);
    }
}

#[test]
fn a_plan_says_what_would_be_done_and_touches_nothing() {
    let project = Project::new();
    let interpreter = interpreter();
    let plan = |arguments: &[&str]| {
        let ran = run(project.overlay(arguments).args(["--dry-run", "--offline"])).expect_code(0);
        ran.stdout
            .replace(project.wheel.to_str().unwrap(), "WHEEL")
            .replace(&interpreter.to_string(), "CPYTHON")
            .replace(interpreter.machine(), "MACHINE")
    };
    expect![[r#"
        overlay      variant for up >=1.0, <2
        released     WHEEL (a file), for CPYTHON
        native       dist/small-0.1.0-cp311-abi3-manylinux_2_28_MACHINE.whl, from build-wheel
        replaces     _a, _b in up/cext
        with         overlay/up and the native library
        inspect      the rules of check-wheel, on the released wheel and on the overlay
        prove        install it alone, import the modules under their names, uninstall it
                     install what it requires; import more.cext
        writes       dist/overlay/
    "#]]
    .assert_eq(&plan(&["--prove", "full"]));
    let json: serde_json::Value = serde_json::from_str(&plan(&["--json"])).unwrap();
    assert_eq!(json["plan"]["modules"], serde_json::json!(["_a", "_b"]));
    assert!(!project.tree.root.join("dist").exists() && !project.tree.root.join("target").exists());
    let refused = run(cuwheel(&project.tree.root).args(["overlay", "up==2.0"])).expect_code(2);
    expect![[r#"
        error: no overlay is known for up 2.0
          variant: up >=1.0, <2, replaces _a, _b
        fix: take a version of these ranges; a range may only grow once the modules do what that version asks of them
    "#]]
    .assert_eq(&refused.stderr);
    project.tree.write("pyproject.toml", {
        let text = std::fs::read_to_string(project.tree.root.join("pyproject.toml")).unwrap();
        text + "crate = 'other'\n"
    });
    let refused = run(&mut project.overlay(&["--dry-run"])).expect_code(2);
    expect![[r#"
        error: the overlay variant takes its library from other; this project builds small
        fix: set tool.cuwheel.overlay.variant.crate to the package of tool.maturin.manifest-path, or leave it out
    "#]]
    .assert_eq(&refused.stderr);
}
