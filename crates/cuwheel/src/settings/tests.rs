//! What is read from `[tool.cuwheel]`, and what is refused.

use expect_test::{Expect, expect};
use toml_edit::DocumentMut;

use super::*;
use crate::error::render;

fn parse(text: &str) -> Result<Settings> {
    let document: DocumentMut = text.parse().unwrap();
    Settings::from_item(Some(document.as_item()))
}

#[track_caller]
fn refused(text: &str, expected: &Expect) {
    expected.assert_eq(&render(&parse(text).unwrap_err()));
}

#[test]
fn every_default_of_the_schema_is_read() {
    let settings = parse("").unwrap();
    assert_eq!(settings.compatibility, "manylinux_2_28");
    assert_eq!((settings.linker, settings.test.timeout_s), (Linker::Zig, 120));
    assert_eq!(settings.test.cargo_args, ["--workspace"]);
}

#[test]
fn nested_tables_and_dotted_keys_are_the_same() {
    let text = "linker = 'system'\n[test]\ntimeout-s = 5\nvariants.oldest = ['numpy==1.26.4']\n";
    let settings = parse(text).unwrap();
    assert_eq!((settings.linker, settings.test.timeout_s), (Linker::System, 5));
    assert_eq!(settings.test.variants["oldest"], ["numpy==1.26.4"]);
}

#[test]
fn an_unknown_key_suggests_the_nearest_name() {
    refused(
        "[test]\ntime-out-s = 5",
        &expect![[r"
            error: tool.cuwheel.test.time-out-s is not a setting
            fix: did you mean tool.cuwheel.test.timeout-s?
        "]],
    );
    refused(
        "build_requires = []",
        &expect![[r"
            error: tool.cuwheel.build_requires is not a setting
            fix: did you mean tool.cuwheel.build-requires?
        "]],
    );
}

#[test]
fn a_path_that_leads_out_of_the_project_is_refused() {
    refused(
        "test.paths = ['tests', '/srv/tests']",
        &expect![[r"
            error: tool.cuwheel.test.paths leads out of the project: /srv/tests
            fix: give paths relative to the project, without ..
        "]],
    );
    refused(
        "test-gpu.paths = ['../gpu']",
        &expect![[r"
                error: tool.cuwheel.test-gpu.paths leads out of the project: ../gpu
                fix: give paths relative to the project, without ..
            "]],
    );
    refused(
        "requirements = '../locks'",
        &expect![[r"
            error: tool.cuwheel.requirements leads out of the project: ../locks
            fix: give paths relative to the project, without ..
        "]],
    );
}

#[test]
fn a_value_of_the_wrong_kind_says_what_is_taken() {
    refused(
        "test.timeout-s = -1",
        &expect![[r"
            error: tool.cuwheel.test.timeout-s is -1
            fix: it takes a positive integer; the default is 120
        "]],
    );
    refused(
        "modules = ['a', 1]",
        &expect![[r"
            error: tool.cuwheel.modules is an array with other things than strings
            fix: it takes an array of strings; the default is []
        "]],
    );
    refused(
        "check.budget = '100'",
        &expect![[r#"
        error: tool.cuwheel.check.budget: `100` is no size: write a whole number and a unit, such as 100MB, 750 kB or 1 GiB
    "#]],
    );
    refused(
        "check.deny = ['tags/']\ncheck.allow = ['library/debug-info']",
        &expect![[r#"
        error: tool.cuwheel.check.allow: `library/debug-info` is no rule and no group of rules: did you mean libraries/debug-info?
    "#]],
    );
    refused(
        "linker = 'gold'",
        &expect![[r#"
            error: tool.cuwheel.linker is "gold"
            fix: use "zig" or "system"
        "#]],
    );
}

#[test]
fn a_variant_does_not_take_the_lock_of_the_gpu_tests() {
    refused(
        "test.variants.gpu = ['numpy']",
        &expect![[r#"
            error: tool.cuwheel.test.variants.gpu would share its lock with test-gpu
            fix: give the variant another name
        "#]],
    );
}
