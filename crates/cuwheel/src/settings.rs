//! `[tool.cuwheel]` in pyproject.toml, read and validated against [`crate::settings_schema`].
//!
//! Not for other tables of pyproject.toml, which [`crate::project`] reads.

use std::collections::BTreeMap;
use std::path::PathBuf;

use cuwheel_inspect::fatbin::InvalidArchitecture;
use cuwheel_inspect::rules::{DeclaredArchitecture, RuleSelector};
use toml_edit::{Item, TableLike, Value};

use crate::byte_size;
use crate::ci::settings::CiSettings;
use crate::cuda::{CudaSettings, parse_major};
use crate::doctor;
use crate::error::{Failure, Result};
use crate::files;
use crate::overlay::entry::OverlayEntry;
use crate::repair::graft::GraftPattern;
use crate::settings_schema::{Kind, SCHEMA};
use crate::wheel_check;

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
    /// `[tool.cuwheel.cuda]`.
    pub cuda: CudaSettings,
    /// `linker`.
    pub linker: Linker,
    /// `modules`.
    pub modules: Vec<String>,
    /// `[tool.cuwheel.overlay]`, in the order of names.
    pub overlays: Vec<OverlayEntry>,
    /// `requirements`.
    pub requirements: String,
    /// `[tool.cuwheel.check]`.
    pub check: CheckSettings,
    /// `[tool.cuwheel.ci]`.
    pub ci: CiSettings,
    /// `[tool.cuwheel.doctor]`.
    pub doctor: DoctorSettings,
    /// `[tool.cuwheel.repair]`.
    pub repair: RepairSettings,
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
    /// `check.architectures`.
    pub architectures: Vec<DeclaredArchitecture>,
    /// `check.budget`.
    pub budget_bytes: Option<u64>,
}

/// The settings of `doctor`.
#[derive(Clone, Debug)]
pub struct DoctorSettings {
    /// `doctor.deny`.
    pub deny: Vec<RuleSelector>,
    /// `doctor.allow`.
    pub allow: Vec<RuleSelector>,
    /// `doctor.baseline`.
    pub baseline: Option<String>,
}

impl DoctorSettings {
    fn read(values: &Values) -> Result<Self> {
        let baseline = Some(values.text("doctor.baseline")).filter(|path| !path.is_empty());
        if let Some(path) = &baseline {
            check_path("doctor.baseline", path)?;
        }
        let selectors = |key| values.rules(key, doctor::parse_selector);
        Ok(Self { deny: selectors("doctor.deny")?, allow: selectors("doctor.allow")?, baseline })
    }
}

/// The settings of the repairs of `build-wheel`.
#[derive(Clone, Debug)]
pub struct RepairSettings {
    /// `repair.graft`.
    pub grafts: Vec<GraftPattern>,
    /// `repair.library-paths`.
    pub library_paths: Vec<PathBuf>,
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
    /// Every key that is no setting, below `tool.cuwheel`, with what may have been meant.
    pub fn unknown_keys(item: &Item) -> Vec<(String, String)> {
        let mut given = Given::default();
        if let Some(table) = item.as_table_like() {
            // Another mistake ends the reading; what was found until then is.
            let _ = given.collect("", "", table);
        }
        given.unknown.into_iter().map(|(key, failure)| (key, failure.advice().unwrap_or_default().to_owned())).collect()
    }

    /// Reads and validates `[tool.cuwheel]`; an absent table gives the defaults.
    pub fn from_item(item: Option<&Item>) -> Result<Self> {
        let mut given = Given::default();
        if let Some(item) = item {
            let table = item.as_table_like();
            let table =
                table.ok_or_else(|| Failure::usage("tool.cuwheel is not a table").remedy("write [tool.cuwheel]"))?;
            given.collect("", "", table)?;
        }
        if let Some((_, unknown)) = given.unknown.into_iter().next() {
            return Err(unknown.into());
        }
        let is_given = |key: &str| given.settings.contains_key(key);
        let (group_is_given, gpu_group_is_given) = (is_given("test.group"), is_given("test-gpu.group"));
        let overlays = given.overlays.into_iter().map(|(name, given)| OverlayEntry::read(&name, &Values(given)));
        let overlays = overlays.collect::<Result<_>>()?;
        let values = Values(given.settings);
        for (key, path) in values.paths() {
            check_path(key, &path)?;
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
            cuda: CudaSettings::read(&values)?,
            linker,
            modules: values.texts("modules"),
            overlays,
            requirements: values.text("requirements"),
            check: CheckSettings {
                deny: values.rules("check.deny", wheel_check::parse_selector)?,
                allow: values.rules("check.allow", wheel_check::parse_selector)?,
                architectures: values.architectures("check.architectures")?,
                budget_bytes: values.size("check.budget")?,
            },
            ci: CiSettings::read(&values)?,
            doctor: DoctorSettings::read(&values)?,
            repair: RepairSettings {
                grafts: values.grafts("repair.graft")?,
                library_paths: values.texts("repair.library-paths").into_iter().map(PathBuf::from).collect(),
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

/// Refuses a path that leads out of the project.
pub(crate) fn check_path(key: &str, path: &str) -> Result<()> {
    if files::is_inside(path) {
        return Ok(());
    }
    Err(Failure::usage(format!("tool.cuwheel.{key} leads out of the project: {path}"))
        .remedy("give paths relative to the project, without ..")
        .into())
}

/// The settings that were given, each of the kind that the schema asks for.
pub(crate) struct Values(BTreeMap<&'static str, Item>);

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

    /// Refuses a variant of `test` whose lock would be that of another command, or of another wheel.
    fn check_variants(&self) -> Result<()> {
        for name in self.texts_by_name("test.variants").keys() {
            let of_cuda = name.strip_prefix("cu").is_some_and(|major| parse_major(major).is_ok());
            if of_cuda || name == "gpu" {
                let other = if of_cuda { "the wheel for that version of CUDA" } else { "test-gpu" };
                return Err(Failure::usage(format!(
                    "tool.cuwheel.test.variants.{name} would share its lock with {other}"
                ))
                .remedy("give the variant another name")
                .into());
            }
        }
        Ok(())
    }

    pub(crate) fn text(&self, key: &str) -> String {
        self.item(key).as_str().expect("checked against the schema").to_owned()
    }

    pub(crate) fn flag(&self, key: &str) -> bool {
        self.item(key).as_bool().expect("checked against the schema")
    }

    fn count(&self, key: &str) -> u64 {
        self.item(key).as_integer().and_then(|count| u64::try_from(count).ok()).expect("checked against the schema")
    }

    pub(crate) fn rules(
        &self,
        key: &str,
        parse: fn(&str) -> Result<RuleSelector, String>,
    ) -> Result<Vec<RuleSelector>> {
        let unknown = |error: String| Failure::usage(format!("tool.cuwheel.{key}: {error}")).into();
        self.texts(key).iter().map(|text| parse(text).map_err(unknown)).collect()
    }

    fn architectures(&self, key: &str) -> Result<Vec<DeclaredArchitecture>> {
        let mistake = |error: InvalidArchitecture| Failure::usage(format!("tool.cuwheel.{key}: {error}")).into();
        self.texts(key).iter().map(|text| text.parse().map_err(mistake)).collect()
    }

    fn grafts(&self, key: &str) -> Result<Vec<GraftPattern>> {
        let mistake = |error: String| Failure::usage(format!("tool.cuwheel.{key}: {error}")).into();
        self.texts(key).iter().map(|text| text.parse().map_err(mistake)).collect()
    }

    fn size(&self, key: &str) -> Result<Option<u64>> {
        let text = self.text(key);
        if text.is_empty() {
            return Ok(None);
        }
        let size = byte_size::parse(&text).map_err(|error| Failure::usage(format!("tool.cuwheel.{key}: {error}")))?;
        Ok(Some(size))
    }

    pub(crate) fn texts(&self, key: &str) -> Vec<String> {
        texts(&self.item(key)).expect("checked against the schema")
    }

    pub(crate) fn texts_by_name(&self, key: &str) -> BTreeMap<String, Vec<String>> {
        let item = self.item(key);
        let table = item.as_table_like().expect("checked against the schema");
        table.iter().map(|(name, item)| (name.to_owned(), texts(item).expect("checked against the schema"))).collect()
    }
}

fn texts(item: &Item) -> Option<Vec<String>> {
    item.as_array()?.iter().map(|value| value.as_str().map(str::to_owned)).collect()
}

/// What stands for the name of an overlay in the keys of the schema.
const OVERLAYS: &str = "overlay";
const ANY_OVERLAY: &str = "overlay.NAME";

/// The settings of pyproject.toml by the keys of the schema; those of each overlay apart.
#[derive(Default)]
struct Given {
    settings: BTreeMap<&'static str, Item>,
    overlays: BTreeMap<String, BTreeMap<&'static str, Item>>,
    /// Keys that are no settings, below `tool.cuwheel`.
    unknown: Vec<(String, Failure)>,
}

impl Given {
    /// Flattens a table into dotted keys, refusing what the schema does not know. `prefix` is what the schema calls the
    /// table, `shown` what the user does.
    fn collect(&mut self, prefix: &str, shown: &str, table: &dyn TableLike) -> Result<()> {
        let dotted =
            |prefix: &str, name: &str| if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") };
        for (name, item) in table.iter() {
            let (key, shown) = (dotted(prefix, name), dotted(shown, name));
            if key == OVERLAYS {
                self.collect_overlays(item)?;
            } else if let Some(setting) = SCHEMA.iter().find(|setting| setting.key == key) {
                if !is_of_kind(item, setting.kind) {
                    return Err(Failure::usage(format!("tool.cuwheel.{shown} is {}", describe_item(item)))
                        .remedy(format!("it takes {}; the default is {}", setting.kind.describe(), setting.default))
                        .into());
                }
                let place = match shown.strip_prefix("overlay.").and_then(|rest| rest.rsplit_once('.')) {
                    Some((overlay, _)) => self.overlays.entry(overlay.to_owned()).or_default(),
                    None => &mut self.settings,
                };
                place.insert(setting.key, item.clone());
            } else if SCHEMA.iter().any(|setting| setting.key.starts_with(&format!("{key}."))) && item.is_table_like() {
                self.collect(&key, &shown, item.as_table_like().expect("just checked"))?;
            } else {
                let failure = unknown(&key, &shown);
                self.unknown.push((shown, failure));
            }
        }
        Ok(())
    }

    fn collect_overlays(&mut self, item: &Item) -> Result<()> {
        let not_a_table = |name: &str| {
            Failure::usage(format!("tool.cuwheel.{name} is not a table")).remedy("write [tool.cuwheel.overlay.NAME]")
        };
        let overlays = item.as_table_like().ok_or_else(|| not_a_table(OVERLAYS))?;
        for (name, item) in overlays.iter() {
            let shown = format!("{OVERLAYS}.{name}");
            self.overlays.entry(name.to_owned()).or_default();
            self.collect(ANY_OVERLAY, &shown, item.as_table_like().ok_or_else(|| not_a_table(&shown))?)?;
        }
        Ok(())
    }
}

fn unknown(key: &str, shown: &str) -> Failure {
    let failure = Failure::usage(format!("tool.cuwheel.{shown} is not a setting"));
    let known: Vec<&str> = SCHEMA.iter().map(|setting| setting.key).collect();
    match nearest(key, &known) {
        Some(known) => failure.remedy(format!("did you mean tool.cuwheel.{known}?")),
        None => failure.remedy(format!("the settings are {}", known.join(", "))),
    }
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

#[cfg(test)]
mod tests;
