//! `check-wheel` as a user runs it: from anywhere, on files and directories, with and without settings.

use cuwheel_inspect::testing::WheelBuilder;

use crate::support::{Ran, Tree, cuwheel, interpreter, run};

const SOUND: &str = "demo-0.1.0-py3-none-any.whl";

fn wheel(name: &str) -> WheelBuilder {
    WheelBuilder::new(name).file("demo/__init__.py", "x = 1\n")
}

/// A wheel with an error, a warning and a note.
fn broken() -> WheelBuilder {
    wheel("broken-0.1.0-py3-none-any.whl")
        .file_changed_after_record("demo/changed.py", "x = 1", "x = 2")
        .file_with_mode("demo/open.py", "", 0o100_666)
        .raw_member(b"demo/", b"")
}

fn check(tree: &Tree, arguments: &[&str]) -> Ran {
    run(cuwheel(&tree.root).arg("check-wheel").args(arguments))
}

#[test]
fn a_sound_wheel_is_checked_outside_of_any_project() {
    let tree = Tree::new();
    tree.write(SOUND, wheel(SOUND).build());
    let ran = check(&tree, &[SOUND]).expect_code(0);
    expect_test::expect![[r#"
        wheel        demo-0.1.0-py3-none-any.whl
        tags         py3-none-any
        size         859 B, 409 B installed
        glibc floor  none
        findings     none
    "#]]
    .assert_eq(&ran.stdout);
    assert_eq!(ran.stderr, "");
}

#[test]
fn findings_are_grouped_by_rule_with_the_remedy_once() {
    let tree = Tree::new();
    tree.write("dist/broken-0.1.0-py3-none-any.whl", broken().build())
        .write(&format!("dist/{SOUND}"), wheel(SOUND).build());
    expect_test::expect![[r#"
        wheel        broken-0.1.0-py3-none-any.whl
        tags         py3-none-any
        size         1.3 kB, 561 B installed
        glibc floor  none
        findings     1 error, 1 warning, 1 note
        error: archive/record-hash
          demo/changed.py: its sha256 is FDG5hjd7VDDwH9aQDYc_oonVRvMEvFjBjUJJL4f1QBY, and RECORD says j_Q23vFFEoVZmhsa1wgASTuNyv3ikS4aODRWMwVOTCY
          why: The file was changed after the wheel was made. pip and uv install it all the same.
          fix: change files before the wheel is packed, or `wheel unpack` and `wheel pack` it
        warning: archive/world-writable
          demo/open.py: its mode is 666
          why: Installed for all users of a machine, anyone could change the code that the others run.
          fix: pack the wheel from files with mode 644 or 755
        note: archive/directory-entry
          demo/: it is a directory
          why: No installer needs them, and RECORD cannot list them.
          fix: pack files only

        wheel        demo-0.1.0-py3-none-any.whl
        tags         py3-none-any
        size         859 B, 409 B installed
        glibc floor  none
        findings     none

        2 wheels: 1 error, 1 warning, 1 note
    "#]].assert_eq(&check(&tree, &["dist"]).expect_code(1).stdout);
}

#[test]
fn rules_are_denied_and_allowed_by_the_command_line_and_by_settings() {
    let tree = Tree::new();
    let file = "broken-0.1.0-py3-none-any.whl";
    tree.write(file, broken().build());
    let counts = |arguments: &[&str], code| {
        let counts = check(&tree, &[&["--json", file], arguments].concat()).expect_code(code).json()["counts"].clone();
        ["errors", "warnings", "notes"].map(|key| counts[key].as_u64().unwrap())
    };
    assert_eq!(counts(&[], 1), [1, 1, 1]);
    assert_eq!(counts(&["--allow", "archive/record-hash"], 0), [0, 1, 1]);
    assert_eq!(counts(&["--allow", "archive/", "--deny", "archive/directory-entry"], 1), [1, 0, 0]);
    assert_eq!(counts(&["--allow", "archive/", "--budget", "1kB"], 1), [1, 0, 0]);
    // A pyproject.toml that is no project of cuwheel's: nothing but the settings is looked at.
    tree.write(
        "pyproject.toml",
        "[project]\nname = 'other'\n[tool.cuwheel.check]\nallow = ['archive/']\nbudget = '1 kB'\n",
    );
    assert_eq!(counts(&[], 1), [1, 0, 0]);
    assert_eq!(counts(&["--budget", "1MB"], 0), [0, 0, 0]);
    assert_eq!(counts(&["--deny", "archive/"], 1), [4, 0, 0]);
    tree.write(
        "pyproject.toml",
        "[project]\nname = 'broken'\n[tool.cuwheel]\nmodules = ['absent']\ncheck.allow = ['archive/']\n",
    );
    assert_eq!(counts(&[], 1), [1, 0, 0], "the project's own wheel lacks a declared module");
    tree.write("pyproject.toml", "[tool.other]\n");
    assert_eq!(counts(&[], 1), [1, 1, 1]);
}

#[test]
fn json_names_rule_place_and_remedy() {
    let tree = Tree::new();
    tree.write("broken-0.1.0-py3-none-any.whl", broken().build()).write("cut-1.0-py3-none-any.whl", "PK");
    let document = check(&tree, &[".", "--json"]).expect_code(1).json();
    assert_eq!((&document["command"], &document["ok"]), (&"check-wheel".into(), &false.into()));
    let finding = &document["wheels"][0]["findings"][0];
    assert_eq!(finding["rule"], "archive/record-hash");
    assert_eq!((&finding["severity"], &finding["path"]), (&"error".into(), &"demo/changed.py".into()));
    assert!(finding["remedy"].as_str().unwrap().contains("wheel pack"));
    assert_eq!(document["wheels"][0]["tags"], serde_json::json!(["py3-none-any"]));
    assert!(document["wheels"][0]["sizes"]["files"].as_array().unwrap().len() > 3);
    let unreadable = &document["wheels"][1];
    assert_eq!(
        (&unreadable["sizes"], &unreadable["findings"][0]["rule"]),
        (&serde_json::Value::Null, &"archive/unreadable".into())
    );
}

#[test]
fn pk_62_wheels_beside_a_manifest_have_to_be_those_that_it_lists() {
    let tree = Tree::new();
    let bytes = wheel(SOUND).build();
    let listed = serde_json::json!({ "schema": 1, "wheels": [
        { "file": SOUND, "sha256": cuwheel::files::sha256(&bytes) },
        { "file": "demo-0.1.0-cp311-abi3-linux_x86_64.whl", "sha256": "0" },
    ] });
    tree.write(&format!("dist/{SOUND}"), &bytes).write("dist/manifest.json", listed.to_string());
    let rules = |arguments: &[&str], code| -> Vec<String> {
        let document = check(&tree, &[&["--json"], arguments].concat()).expect_code(code).json();
        let findings = document["set_findings"].as_array().unwrap();
        findings.iter().map(|finding| finding["rule"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(rules(&["dist"], 1), ["sets/not-found"]);
    assert_eq!(rules(&[&format!("dist/{SOUND}")], 0), [""; 0], "one wheel is asked for, and it is as listed");
    tree.write("dist/demo-0.0.9-py3-none-any.whl", wheel("demo-0.0.9-py3-none-any.whl").build());
    tree.write(&format!("dist/{SOUND}"), wheel(SOUND).file("demo/new.py", "").build());
    assert_eq!(rules(&["dist"], 1), ["sets/not-found", "sets/not-expected", "sets/changed"]);
    tree.write("dist/manifest.json", "{\"name\": \"of another program\"}");
    assert_eq!(rules(&["dist"], 0), [""; 0]);
}

#[test]
fn pk_70_wheels_that_overwrite_each_other_are_found_across_arguments() {
    let tree = Tree::new();
    for (name, text) in [("base", "base"), ("cu12", "12"), ("cu13", "13")] {
        let file = format!("demo_{name}-1.0-py3-none-any.whl");
        tree.write(&format!("{name}/{file}"), WheelBuilder::new(&file).file("demo/__init__.py", text).build());
    }
    let ran = check(&tree, &["base", "cu13", "cu13"]).expect_code(1);
    assert!(ran.stdout.contains("together     1 error\n"), "{}", ran.stdout);
    assert!(ran.stdout.ends_with("2 wheels: 1 error\n"), "{}", ran.stdout);
    // Wheels for two versions of CUDA are meant to be installed one at a time.
    let ran = check(&tree, &["cu12", "cu13"]).expect_code(0);
    assert!(ran.stdout.ends_with("2 wheels: 1 note\n"), "{}", ran.stdout);
}

#[test]
fn wheels_that_are_required_are_looked_into_and_not_reported() {
    let tree = Tree::new();
    tree.write(SOUND, wheel(SOUND).build()).write("with/broken-0.1.0-py3-none-any.whl", broken().build());
    let ran = check(&tree, &[SOUND, "--with", "with"]).expect_code(0);
    assert!(ran.stdout.contains("findings     none") && !ran.stdout.contains("broken"), "{}", ran.stdout);
    let plan = check(&tree, &[SOUND, "--with", "with", "--dry-run"]).expect_code(0).stdout;
    assert!(plan.contains("with      ") && plan.contains("with/broken-0.1.0-py3-none-any.whl\n"), "{plan}");
    tree.write("with/cut-1.0-py3-none-any.whl", "PK");
    let text = check(&tree, &[SOUND, "--with", "with"]).expect_code(2).stderr;
    assert!(text.contains("cut-1.0-py3-none-any.whl: no end record"), "{text}");
}

#[test]
fn declared_architectures_have_to_be_in_the_wheel() {
    let tree = Tree::new();
    let code = include_bytes!("../../../cuwheel-inspect/tests/it/fixtures/plain.fatbin");
    tree.write(SOUND, wheel(SOUND).file("demo/axpy.fatbin", code).build());
    let ran = check(&tree, &[SOUND, "--architecture", "75+PTX"]).expect_code(0);
    assert!(ran.stdout.contains("\nGPU code     sm_75, compute_75, by CUDA 13.5\n"), "{}", ran.stdout);
    let ran = check(&tree, &[SOUND, "--architecture", "75", "--architecture", "sm_90a"]).expect_code(1);
    assert!(ran.stdout.contains("demo/axpy.fatbin: it lacks sm_90a, and that is declared"), "{}", ran.stdout);
    assert!(check(&tree, &[SOUND, "--architecture", "9.0"]).expect_code(2).stderr.contains("write it as 90, 90a"));
    let settings = |text: &str| format!("[project]\nname = 'demo'\n[tool.cuwheel.check]\narchitectures = {text}\n");
    tree.write("pyproject.toml", settings("['75', 'compute_75', '80']"));
    assert!(check(&tree, &[SOUND]).expect_code(1).stdout.contains("it lacks sm_80"));
    check(&tree, &[SOUND, "--architecture", "75+PTX"]).expect_code(0);
    tree.write("pyproject.toml", settings("['sm-80']"));
    assert!(
        check(&tree, &[SOUND]).expect_code(2).stderr.contains("tool.cuwheel.check.architectures: `sm-80` names no")
    );
    let document = check(&tree, &["--project", "/", SOUND, "--json"]).expect_code(0).json();
    assert_eq!(document["wheels"][0]["cuda_toolkits"], serde_json::json!(["13.5"]));
    let architectures = &document["wheels"][0]["sizes"]["architectures"];
    assert_eq!(architectures[1], serde_json::json!({ "name": "compute_75", "images": 1, "size_bytes": 816 }));
}

#[test]
fn findings_are_written_as_sarif_and_as_a_page() {
    let tree = Tree::new();
    let file = "broken-0.1.0-py3-none-any.whl";
    tree.write(&format!("dist/{file}"), broken().file("demo/a<b>.py", "x = 1").build());
    check(&tree, &["dist", "--sarif", "out/findings.sarif", "--html", "out/page.html"]).expect_code(1);
    let text = std::fs::read_to_string(tree.root.join("out/findings.sarif")).unwrap();
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["version"], "2.1.0");
    let run = &document["runs"][0];
    let result = &run["results"][0];
    assert_eq!((&result["ruleId"], &result["level"]), (&"archive/record-hash".into(), &"error".into()));
    let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
    assert_eq!(run["tool"]["driver"]["rules"][index]["id"], "archive/record-hash");
    let location = &result["locations"][0];
    assert_eq!(location["physicalLocation"]["artifactLocation"]["uri"], format!("dist/{file}"));
    assert_eq!(location["logicalLocations"][0]["fullyQualifiedName"], "demo/changed.py");

    let page = std::fs::read_to_string(tree.root.join("out/page.html")).unwrap();
    for part in
        ["<title>demo: ", "a&lt;b&gt;.py", "demo/changed.py: its sha256", "archive/record-hash", "<label for=\"w0m0\">"]
    {
        assert!(page.contains(part), "{part}");
    }
    for outside in ["<script", "http://", "https://", "<b>"] {
        assert!(!page.contains(outside), "{outside}");
    }
}

#[test]
fn a_wheel_that_does_not_import_is_found_when_that_is_asked_for() {
    let tree = Tree::new();
    let bad = "bad-0.1.0-py3-none-any.whl";
    tree.write(bad, WheelBuilder::new(bad).file("bad/__init__.py", "import absent_module\n").build());
    let good = WheelBuilder::new("good-0.1.0-py3-none-any.whl")
        .file("good.py", "import demo\n")
        .metadata_header("Requires-Dist", "demo==0.1.0");
    tree.write(&good.file_name(), good.build()).write(&format!("with/{SOUND}"), wheel(SOUND).build());
    let python = interpreter().base_executable;
    let arguments = ["--import", "--python", python.to_str().unwrap()];
    let import = |wheel: &str, more: &[&str]| check(&tree, &[&[wheel], &arguments[..], more].concat());
    let ran = import(bad, &[]).expect_code(1);
    assert!(
        ran.stdout.contains(
            "error: modules/import\n  bad-0.1.0-py3-none-any.whl does not import: bad: ModuleNotFoundError: No module \
             named 'absent_module'\n"
        ),
        "{}",
        ran.stdout
    );
    check(&tree, &[bad]).expect_code(0);
    import(bad, &["--allow", "modules/import"]).expect_code(0);
    import(&good.file_name(), &["--with", "with"]).expect_code(0);
}

#[test]
fn a_path_or_a_rule_that_does_not_exist_is_a_mistake_of_usage() {
    let tree = Tree::new();
    tree.write("text.txt", "").write("empty/text.txt", "").write(SOUND, wheel(SOUND).build());
    let root = tree.root.to_str().unwrap();
    let says = |arguments: &[&str]| check(&tree, arguments).expect_code(2).stderr.replace(root, "[ROOT]");
    let text = [&["absent.whl"][..], &["text.txt"], &["empty"], &[SOUND, "--project", "absent"]].map(says).concat();
    expect_test::expect![[r#"
        error: [ROOT]/absent.whl does not exist
        fix: give wheels, or a directory that holds some
        error: [ROOT]/text.txt is no wheel: its name does not end in .whl
        fix: give wheels, or a directory that holds some
        error: there is no wheel in [ROOT]/empty
        fix: give wheels, or a directory that holds some
        error: [ROOT]/absent is not a directory
        fix: give the directory of the project with --project
    "#]]
    .assert_eq(&text);
    let text = says(&[SOUND, "--deny", "archive/record-hashes"]);
    assert!(text.contains("did you mean archive/record-hash?"), "{text}");
    assert!(says(&[SOUND, "--budget", "100"]).contains("such as 100MB"));
    tree.write("pyproject.toml", "[tool.cuwheel.check]\ndeny = ['libary/']\n");
    expect_test::expect![[r#"
        error: tool.cuwheel.check.deny: `libary/` is no rule and no group of rules: did you mean libraries/?
    "#]]
    .assert_eq(&says(&[SOUND]));
}

#[test]
fn a_plan_lists_wheels_and_what_they_are_checked_by() {
    let tree = Tree::new();
    tree.write(SOUND, wheel(SOUND).build()).write("pyproject.toml", "[tool.cuwheel.check]\nbudget = '100 MB'\n");
    let ran = check(&tree, &[".", "--dry-run", "--deny", "archive/"]).expect_code(0);
    expect_test::expect![[r#"
        wheel     [ROOT]/demo-0.1.0-py3-none-any.whl
        settings  [ROOT]/pyproject.toml
        deny      archive/
        budget    100.0 MB
    "#]]
    .assert_eq(&ran.stdout.replace(tree.root.to_str().unwrap(), "[ROOT]"));
    let plan = check(&tree, &[".", "--dry-run", "--json"]).expect_code(0).json()["plan"].clone();
    assert_eq!((&plan["budget_bytes"], &plan["deny"]), (&100_000_000.into(), &serde_json::json!([])));
}
