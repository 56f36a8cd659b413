//! `[tool.cuwheel]` in pyproject.toml: the schema, its validation, and the documentation made from it.
//!
//! Not for other tables of pyproject.toml, which [`crate::project`] reads.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use cuwheel_inspect::rules::RuleSelector;
use toml_edit::{Item, TableLike, Value};

use crate::byte_size;
use crate::error::{Failure, Result};
use crate::files;
use crate::wheel_check;

/// What a setting holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Flag,
    Count,
    Texts,
    TextsByName,
}

impl Kind {
    const fn describe(self) -> &'static str {
        match self {
            Self::Text => "a string",
            Self::Flag => "true or false",
            Self::Count => "a positive integer",
            Self::Texts => "an array of strings",
            Self::TextsByName => "a table of arrays of strings",
        }
    }
}

/// One setting: the schema is the single source for validation and documentation.
struct Setting {
    key: &'static str,
    kind: Kind,
    default: &'static str,
    doc: &'static str,
}

const SCHEMA: &[Setting] = &[
    Setting {
        key: "artifacts",
        kind: Kind::Texts,
        default: "[]",
        doc: "Files that the wheel must hold, as patterns of paths inside it, such as `pkg/kernels/*.fatbin`: generated \
              files that git ignores are left out without a word otherwise.",
    },
    Setting {
        key: "build-requires",
        kind: Kind::Texts,
        default: "[]",
        doc: "Requirements of the build beside `build-system.requires`: tools that only `build-wheel` uses, such as \
              `ziglang`. Locked and installed with them.",
    },
    Setting {
        key: "check.deny",
        kind: Kind::Texts,
        default: "[]",
        doc: "Rules of `check-wheel`, or groups such as `libraries/`, whose breaches are errors.",
    },
    Setting {
        key: "check.allow",
        kind: Kind::Texts,
        default: "[]",
        doc: "Rules of `check-wheel`, or groups, whose breaches are not reported.",
    },
    Setting {
        key: "check.budget",
        kind: Kind::Text,
        default: "\"\"",
        doc: "The most that a wheel may have, such as `100 MB`; empty for no limit.",
    },
    Setting {
        key: "compatibility",
        kind: Kind::Text,
        default: "\"manylinux_2_28\"",
        doc: "The platform tag and with it the oldest glibc that the wheel runs on; `linux` for this machine's.",
    },
    Setting {
        key: "linker",
        kind: Kind::Text,
        default: "\"zig\"",
        doc: "`zig` links against the glibc of `compatibility` whatever this machine has; `system` uses the machine's linker.",
    },
    Setting {
        key: "modules",
        kind: Kind::Texts,
        default: "[]",
        doc: "Modules that are imported to prove the wheel, beside its packages and the extension modules found in it.",
    },
    Setting {
        key: "requirements",
        kind: Kind::Text,
        default: "\"requirements\"",
        doc: "The directory of the requirement locks, relative to the project.",
    },
    Setting {
        key: "test.paths",
        kind: Kind::Texts,
        default: "[\"tests\"]",
        doc: "Directories and files with Python tests, relative to the project. They are copied out of it to be run.",
    },
    Setting {
        key: "test.group",
        kind: Kind::Text,
        default: "\"test\"",
        doc: "The dependency group with the requirements of the tests.",
    },
    Setting {
        key: "test.requires",
        kind: Kind::Texts,
        default: "[]",
        doc: "Requirements of the tests beside the group.",
    },
    Setting {
        key: "test.requires-without-dependencies",
        kind: Kind::Texts,
        default: "[]",
        doc: "Requirements of the tests of which only the named packages are installed.",
    },
    Setting {
        key: "test.variants",
        kind: Kind::TextsByName,
        default: "{}",
        doc: "Further runs of the Python tests by name, each with requirements that narrow the others, such as the oldest \
              versions that the project supports.",
    },
    Setting {
        key: "test.libraries",
        kind: Kind::Texts,
        default: "[]",
        doc: "Packages of the cargo workspace that make shared libraries for the Python tests, such as a stand-in for a \
              driver. They are found by their file names and their SONAMEs before the system's libraries.",
    },
    Setting { key: "test.pytest-args", kind: Kind::Texts, default: "[]", doc: "Arguments for every pytest run." },
    Setting {
        key: "test.timeout-s",
        kind: Kind::Count,
        default: "120",
        doc: "Seconds that one Python test may take before the run is ended.",
    },
    Setting {
        key: "test.total-timeout-s",
        kind: Kind::Count,
        default: "3600",
        doc: "Seconds that a whole run of the Python tests may take.",
    },
    Setting { key: "test.rust", kind: Kind::Flag, default: "true", doc: "Whether `test` runs `cargo test` first." },
    Setting {
        key: "test.cargo-args",
        kind: Kind::Texts,
        default: "[\"--workspace\"]",
        doc: "Arguments for `cargo test`.",
    },
    Setting {
        key: "test-gpu.paths",
        kind: Kind::Texts,
        default: "[\"tests/gpu\"]",
        doc: "Directories and files with the tests that need a GPU, relative to the project.",
    },
    Setting {
        key: "test-gpu.group",
        kind: Kind::Text,
        default: "\"test-gpu\"",
        doc: "The dependency group with the requirements of the GPU tests.",
    },
    Setting {
        key: "test-gpu.requires",
        kind: Kind::Texts,
        default: "[]",
        doc: "Requirements of the GPU tests beside the group.",
    },
    Setting {
        key: "test-gpu.pytest-args",
        kind: Kind::Texts,
        default: "[]",
        doc: "Arguments for every pytest run of the GPU tests.",
    },
    Setting {
        key: "test-gpu.timeout-s",
        kind: Kind::Count,
        default: "300",
        doc: "Seconds that one GPU test may take before its process is replaced.",
    },
    Setting {
        key: "test-gpu.total-timeout-s",
        kind: Kind::Count,
        default: "3600",
        doc: "Seconds that a whole run of the GPU tests may take.",
    },
];

/// The largest number that a setting may be: four months, where it counts seconds.
pub const LARGEST_COUNT: u64 = 10_000_000;

/// How the native library is linked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Linker {
    /// zig, which brings the symbol versions of every glibc.
    Zig,
    /// The linker that cargo finds.
    System,
}

/// The validated settings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `artifacts`.
    pub artifacts: Vec<String>,
    /// `build-requires`.
    pub build_requires: Vec<String>,
    /// `compatibility`.
    pub compatibility: String,
    /// `linker`.
    pub linker: Linker,
    /// `modules`.
    pub modules: Vec<String>,
    /// `requirements`.
    pub requirements: String,
    /// `[tool.cuwheel.check]`.
    pub check: CheckSettings,
    /// `[tool.cuwheel.test]`.
    pub test: TestSettings,
    /// `[tool.cuwheel.test-gpu]`.
    pub test_gpu: TestGpuSettings,
}

/// The settings of `check-wheel`.
#[derive(Clone, Debug)]
pub struct CheckSettings {
    /// `check.deny`.
    pub deny: Vec<RuleSelector>,
    /// `check.allow`.
    pub allow: Vec<RuleSelector>,
    /// `check.budget`.
    pub budget_bytes: Option<u64>,
}

/// The settings of `test`.
#[derive(Clone, Debug)]
pub struct TestSettings {
    /// `test.paths`.
    pub paths: Vec<String>,
    /// `test.group`.
    pub group: String,
    /// Whether the group was named: then it has to exist.
    pub group_is_given: bool,
    /// `test.requires`.
    pub requires: Vec<String>,
    /// `test.requires-without-dependencies`.
    pub requires_without_dependencies: Vec<String>,
    /// `test.variants`.
    pub variants: BTreeMap<String, Vec<String>>,
    /// `test.libraries`.
    pub libraries: Vec<String>,
    /// `test.pytest-args`.
    pub pytest_args: Vec<String>,
    /// `test.timeout-s`.
    pub timeout_s: u64,
    /// `test.total-timeout-s`.
    pub total_timeout_s: u64,
    /// `test.rust`.
    pub rust: bool,
    /// `test.cargo-args`.
    pub cargo_args: Vec<String>,
}

/// The settings of `test-gpu`.
#[derive(Clone, Debug)]
pub struct TestGpuSettings {
    /// `test-gpu.paths`.
    pub paths: Vec<String>,
    /// `test-gpu.group`.
    pub group: String,
    /// Whether the group was named: then it has to exist.
    pub group_is_given: bool,
    /// `test-gpu.requires`.
    pub requires: Vec<String>,
    /// `test-gpu.pytest-args`.
    pub pytest_args: Vec<String>,
    /// `test-gpu.timeout-s`.
    pub timeout_s: u64,
    /// `test-gpu.total-timeout-s`.
    pub total_timeout_s: u64,
}

impl TestGpuSettings {
    fn read(values: &Values, group_is_given: bool) -> Self {
        Self {
            paths: values.texts("test-gpu.paths"),
            group: values.text("test-gpu.group"),
            group_is_given,
            requires: values.texts("test-gpu.requires"),
            pytest_args: values.texts("test-gpu.pytest-args"),
            timeout_s: values.count("test-gpu.timeout-s"),
            total_timeout_s: values.count("test-gpu.total-timeout-s"),
        }
    }
}

impl Settings {
    /// Reads and validates `[tool.cuwheel]`; an absent table gives the defaults.
    pub fn from_item(item: Option<&Item>) -> Result<Self> {
        let mut given = BTreeMap::new();
        if let Some(item) = item {
            let table = item.as_table_like();
            collect(
                "",
                table.ok_or_else(|| Failure::usage("tool.cuwheel is not a table").remedy("write [tool.cuwheel]"))?,
                &mut given,
            )?;
        }
        let is_given = |key: &str| given.contains_key(key);
        let (group_is_given, gpu_group_is_given) = (is_given("test.group"), is_given("test-gpu.group"));
        let values = Values(given);
        for (key, path) in values.paths() {
            if !files::is_inside(&path) {
                return Err(Failure::usage(format!("tool.cuwheel.{key} leads out of the project: {path}"))
                    .remedy("give paths relative to the project, without ..")
                    .into());
            }
        }
        values.check_variants()?;
        let linker = match values.text("linker").as_str() {
            "zig" => Linker::Zig,
            "system" => Linker::System,
            other => {
                return Err(Failure::usage(format!("tool.cuwheel.linker is \"{other}\""))
                    .remedy("use \"zig\" or \"system\"")
                    .into());
            }
        };
        Ok(Self {
            artifacts: values.texts("artifacts"),
            build_requires: values.texts("build-requires"),
            compatibility: values.text("compatibility"),
            linker,
            modules: values.texts("modules"),
            requirements: values.text("requirements"),
            check: CheckSettings {
                deny: values.rules("check.deny")?,
                allow: values.rules("check.allow")?,
                budget_bytes: values.size("check.budget")?,
            },
            test: TestSettings {
                paths: values.texts("test.paths"),
                group: values.text("test.group"),
                group_is_given,
                requires: values.texts("test.requires"),
                requires_without_dependencies: values.texts("test.requires-without-dependencies"),
                variants: values.texts_by_name("test.variants"),
                libraries: values.texts("test.libraries"),
                pytest_args: values.texts("test.pytest-args"),
                timeout_s: values.count("test.timeout-s"),
                total_timeout_s: values.count("test.total-timeout-s"),
                rust: values.flag("test.rust"),
                cargo_args: values.texts("test.cargo-args"),
            },
            test_gpu: TestGpuSettings::read(&values, gpu_group_is_given),
        })
    }
}

/// The settings that were given, each of the kind that the schema asks for.
struct Values(BTreeMap<&'static str, Item>);

impl Values {
    fn item(&self, key: &str) -> Item {
        if let Some(item) = self.0.get(key) {
            return item.clone();
        }
        let setting = SCHEMA.iter().find(|setting| setting.key == key).expect("the schema has every key that is read");
        Item::Value(setting.default.parse().expect("defaults in the schema are TOML"))
    }

    /// Every setting that names a place in the project.
    fn paths(&self) -> Vec<(&'static str, String)> {
        let mut paths = vec![("requirements", self.text("requirements"))];
        for key in ["test.paths", "test-gpu.paths"] {
            paths.extend(self.texts(key).into_iter().map(|path| (key, path)));
        }
        paths
    }

    /// Refuses a variant of `test` whose lock would be that of another command.
    fn check_variants(&self) -> Result<()> {
        if self.texts_by_name("test.variants").contains_key("gpu") {
            return Err(Failure::usage("tool.cuwheel.test.variants.gpu would share its lock with test-gpu")
                .remedy("give the variant another name, or use tool.cuwheel.test-gpu")
                .into());
        }
        Ok(())
    }

    fn text(&self, key: &str) -> String {
        self.item(key).as_str().expect("checked against the schema").to_owned()
    }

    fn flag(&self, key: &str) -> bool {
        self.item(key).as_bool().expect("checked against the schema")
    }

    fn count(&self, key: &str) -> u64 {
        self.item(key).as_integer().and_then(|count| u64::try_from(count).ok()).expect("checked against the schema")
    }

    fn rules(&self, key: &str) -> Result<Vec<RuleSelector>> {
        let unknown = |error: String| Failure::usage(format!("tool.cuwheel.{key}: {error}")).into();
        self.texts(key).iter().map(|text| wheel_check::parse_selector(text).map_err(unknown)).collect()
    }

    fn size(&self, key: &str) -> Result<Option<u64>> {
        let text = self.text(key);
        if text.is_empty() {
            return Ok(None);
        }
        let size = byte_size::parse(&text).map_err(|error| Failure::usage(format!("tool.cuwheel.{key}: {error}")))?;
        Ok(Some(size))
    }

    fn texts(&self, key: &str) -> Vec<String> {
        texts(&self.item(key)).expect("checked against the schema")
    }

    fn texts_by_name(&self, key: &str) -> BTreeMap<String, Vec<String>> {
        let item = self.item(key);
        let table = item.as_table_like().expect("checked against the schema");
        table.iter().map(|(name, item)| (name.to_owned(), texts(item).expect("checked against the schema"))).collect()
    }
}

fn texts(item: &Item) -> Option<Vec<String>> {
    item.as_array()?.iter().map(|value| value.as_str().map(str::to_owned)).collect()
}

/// Flattens the table into dotted keys, refusing what the schema does not know.
fn collect(prefix: &str, table: &dyn TableLike, given: &mut BTreeMap<&'static str, Item>) -> Result<()> {
    for (name, item) in table.iter() {
        let key = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") };
        if let Some(setting) = SCHEMA.iter().find(|setting| setting.key == key) {
            if !is_of_kind(item, setting.kind) {
                return Err(Failure::usage(format!("tool.cuwheel.{key} is {}", describe_item(item)))
                    .remedy(format!("it takes {}; the default is {}", setting.kind.describe(), setting.default))
                    .into());
            }
            given.insert(setting.key, item.clone());
        } else if SCHEMA.iter().any(|setting| setting.key.starts_with(&format!("{key}."))) && item.is_table_like() {
            collect(&key, item.as_table_like().expect("just checked"), given)?;
        } else {
            let failure = Failure::usage(format!("tool.cuwheel.{key} is not a setting"));
            let known: Vec<&str> = SCHEMA.iter().map(|setting| setting.key).collect();
            return Err(match nearest(&key, &known) {
                Some(known) => failure.remedy(format!("did you mean tool.cuwheel.{known}?")),
                None => failure.remedy(format!("the settings are {}", known.join(", "))),
            }
            .into());
        }
    }
    Ok(())
}

fn is_of_kind(item: &Item, kind: Kind) -> bool {
    match kind {
        Kind::Text => item.is_str(),
        Kind::Flag => item.is_bool(),
        Kind::Count => item
            .as_integer()
            .and_then(|count| u64::try_from(count).ok())
            .is_some_and(|count| (1..=LARGEST_COUNT).contains(&count)),
        Kind::Texts => texts(item).is_some(),
        Kind::TextsByName => {
            item.as_table_like().is_some_and(|table| table.iter().all(|(_, item)| texts(item).is_some()))
        }
    }
}

fn describe_item(item: &Item) -> String {
    match item {
        Item::Value(Value::Array(_)) => "an array with other things than strings".to_owned(),
        Item::Value(value) => value.clone().decorated("", "").to_string(),
        _ => "a table".to_owned(),
    }
}

/// The known name that is nearest to a wrong one, if any is near.
pub fn nearest<'a>(wrong: &str, known: &[&'a str]) -> Option<&'a str> {
    known
        .iter()
        .map(|name| (strsim::jaro_winkler(wrong, name), *name))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|left, right| left.0.total_cmp(&right.0))
        .map(|(_, name)| name)
}

/// The page of settings, as Markdown.
pub fn markdown() -> String {
    let mut text = String::from("| setting | takes | default | meaning |\n|---|---|---|---|\n");
    for Setting { key, kind, default, doc } in SCHEMA {
        let _ = writeln!(text, "| `{key}` | {} | `{default}` | {doc} |", kind.describe());
    }
    text
}

#[cfg(test)]
mod tests;
