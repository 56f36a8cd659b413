//! `[tool.cuwheel.overlay.NAME]`: one overlay, and the choice among several.
//!
//! Not for reading wheels: that a wheel is what an entry says is checked by [`super::compose`].

use std::str::FromStr as _;

use cuwheel_inspect::wheel::normalize_distribution;
use globset::{Glob, GlobSet, GlobSetBuilder};
use pep440_rs::{Version, VersionSpecifiers};

use crate::error::{Failure, Result};
use crate::settings::{Values, check_path, nearest};

/// What replaces the native modules of some versions of a distribution.
#[derive(Clone, Debug)]
pub struct OverlayEntry {
    /// Its name in the settings.
    pub name: String,
    /// The distribution, in normal form: `numba-cuda`.
    pub distribution: String,
    /// The versions that it is for.
    pub versions: VersionSpecifiers,
    /// The directory of the package in the wheel, without a slash at its end.
    pub package: String,
    /// The native modules, by their names in the package, sorted.
    pub modules: Vec<String>,
    /// The directory of the files that take their place, relative to the project.
    pub files: String,
    /// The cargo package of the native library; `None` for the project's.
    pub crate_name: Option<String>,
    /// Names of files that go with the native modules.
    pub sources: GlobSet,
    /// What the full proof imports.
    pub imports: Vec<String>,
    /// What the full proof installs beside the wheel's own requirements.
    pub requires: Vec<String>,
}

impl OverlayEntry {
    pub(crate) fn read(name: &str, values: &Values) -> Result<Self> {
        let key = |key: &str| format!("overlay.{name}.{key}");
        let required = |field: &str| {
            let text = values.text(&format!("overlay.NAME.{field}"));
            if text.is_empty() { Err(missing(&key(field))) } else { Ok(text) }
        };
        let range = required("versions")?;
        let versions = VersionSpecifiers::from_str(&range).map_err(|error| {
            Failure::usage(format!("tool.cuwheel.{} is no range of versions: {range}", key("versions")))
                .detail(error.to_string())
                .remedy("write it as in PEP 440: >=0.30.0,<0.31")
        })?;
        let package = required("package")?.trim_end_matches('/').to_owned();
        if !package.split('/').all(is_identifier) {
            return Err(Failure::usage(format!(
                "tool.cuwheel.{} is no directory of a package: {package}",
                key("package")
            ))
            .remedy("give its path in the wheel, with slashes: numba_cuda/numba/cuda/cext")
            .into());
        }
        let mut modules = values.texts("overlay.NAME.modules");
        modules.sort();
        modules.dedup();
        if modules.is_empty() {
            return Err(missing(&key("modules")));
        }
        if let Some(module) = modules.iter().find(|module| !is_identifier(module)) {
            return Err(Failure::usage(format!("tool.cuwheel.{} names {module}, which is no module", key("modules")))
                .remedy("give names inside the package, without dots")
                .into());
        }
        let files = required("files")?;
        check_path(&key("files"), &files)?;
        let crate_name = values.text("overlay.NAME.crate");
        Ok(Self {
            distribution: normalize_distribution(&required("distribution")?),
            versions,
            package,
            modules,
            files,
            crate_name: (!crate_name.is_empty()).then_some(crate_name),
            sources: patterns(&key("sources"), &values.texts("overlay.NAME.sources"))?,
            imports: values.texts("overlay.NAME.imports"),
            requires: values.texts("overlay.NAME.requires"),
            name: name.to_owned(),
        })
    }

    /// The package's import path in the wheel: `numba_cuda.numba.cuda.cext`.
    pub fn package_name(&self) -> String {
        self.package.replace('/', ".")
    }

    /// What one line says of it: for which versions it replaces what.
    fn describe(&self) -> String {
        format!("{}: {} {}, replaces {}", self.name, self.distribution, self.versions, self.modules.join(", "))
    }
}

fn missing(key: &str) -> anyhow::Error {
    Failure::usage(format!("tool.cuwheel.{key} is not set"))
        .remedy(
            "an overlay needs distribution, versions, package, modules and files; docs/settings.md has an entry each",
        )
        .into()
}

fn is_identifier(name: &str) -> bool {
    let mut characters = name.chars();
    let first = characters.next().is_some_and(|first| first.is_alphabetic() || first == '_');
    first && characters.all(|character| character.is_alphanumeric() || character == '_')
}

fn patterns(key: &str, patterns: &[String]) -> Result<GlobSet> {
    let unreadable = |error: globset::Error| {
        Failure::usage(format!("tool.cuwheel.{key} holds a pattern that cannot be read: {error}"))
            .remedy("write patterns of file names, such as *.cpp")
    };
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        set.add(Glob::new(pattern).map_err(unreadable)?);
    }
    Ok(set.build().map_err(unreadable)?)
}

/// The entry for a version of a distribution.
pub fn choose<'a>(entries: &'a [OverlayEntry], distribution: &str, version: &Version) -> Result<&'a OverlayEntry> {
    let distribution = normalize_distribution(distribution);
    let of_it: Vec<&OverlayEntry> = entries.iter().filter(|entry| entry.distribution == distribution).collect();
    let known = |entries: &[&OverlayEntry]| entries.iter().map(|entry| entry.describe()).collect::<Vec<_>>();
    if of_it.is_empty() {
        let names: Vec<&str> = entries.iter().map(|entry| entry.distribution.as_str()).collect();
        let remedy = match nearest(&distribution, &names) {
            Some(name) => format!("did you mean {name}?"),
            None => "describe it in [tool.cuwheel.overlay.NAME] in pyproject.toml".to_owned(),
        };
        let failure = Failure::usage(format!("no overlay is known for {distribution}"));
        return Err(failure.details(known(&entries.iter().collect::<Vec<_>>())).remedy(remedy).into());
    }
    match of_it.iter().filter(|entry| entry.versions.contains(version)).collect::<Vec<_>>()[..] {
        [entry] => Ok(entry),
        [] => Err(Failure::usage(format!("no overlay is known for {distribution} {version}"))
            .details(known(&of_it))
            .remedy(
                "take a version of these ranges; a range may only grow once the modules do what that version asks of them",
            )
            .into()),
        ref several => Err(Failure::usage(format!("several overlays are for {distribution} {version}"))
            .details(several.iter().map(|entry| entry.describe()))
            .remedy("make their ranges of versions exclude each other")
            .into()),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use toml_edit::DocumentMut;

    use super::*;
    use crate::error::render;
    use crate::settings::Settings;

    const PLAIN: &str = "distribution = 'Nb_Cuda'\nversions = '>=0.23,<0.30'\npackage = 'nb/cext'\n\
                         modules = ['_b', '_a']\nfiles = 'overlay/plain'\n";

    fn entries(text: &str) -> Result<Vec<OverlayEntry>> {
        let document: DocumentMut = text.parse().unwrap();
        Settings::from_item(Some(document.as_item())).map(|settings| settings.overlays)
    }

    #[track_caller]
    fn refused<T>(result: Result<T>, expected: &Expect) {
        expected.assert_eq(&render(&result.err().expect("a refusal")));
    }

    fn two() -> Vec<OverlayEntry> {
        let old = PLAIN.replace(">=0.23,<0.30", ">=0.21,<0.23");
        entries(&format!("[overlay.plain]\n{PLAIN}[overlay.old]\n{old}")).unwrap()
    }

    #[test]
    fn variants_are_entries_chosen_by_version() {
        let entries = two();
        let chosen = |version: &str| choose(&entries, "nb.cuda", &version.parse().unwrap()).map(|entry| &*entry.name);
        let found = ["0.21.0", "0.22.2", "0.23.0", "0.29.9+local"].map(|version| chosen(version).unwrap());
        assert_eq!(found, ["old", "old", "plain", "plain"]);
        assert_eq!((entries[0].modules.join(" "), entries[0].package_name()), ("_a _b".into(), "nb.cext".into()));
        assert!(entries[0].sources.is_match("x.cpp") && !entries[0].sources.is_match("x.py"));
    }

    #[test]
    fn a_version_outside_of_the_ranges_is_refused_with_what_is_known() {
        refused(
            choose(&two(), "nb-cuda", &"0.31.0".parse().unwrap()),
            &expect![[r#"
                error: no overlay is known for nb-cuda 0.31.0
                  old: nb-cuda >=0.21, <0.23, replaces _a, _b
                  plain: nb-cuda >=0.23, <0.30, replaces _a, _b
                fix: take a version of these ranges; a range may only grow once the modules do what that version asks of them
            "#]],
        );
        refused(
            choose(&two(), "nb-cudaa", &"0.31.0".parse().unwrap()),
            &expect![[r#"
                error: no overlay is known for nb-cudaa
                  old: nb-cuda >=0.21, <0.23, replaces _a, _b
                  plain: nb-cuda >=0.23, <0.30, replaces _a, _b
                fix: did you mean nb-cuda?
            "#]],
        );
        let both = entries(&format!("[overlay.a]\n{PLAIN}[overlay.b]\n{PLAIN}")).unwrap();
        refused(
            choose(&both, "nb-cuda", &"0.24".parse().unwrap()),
            &expect![[r#"
                error: several overlays are for nb-cuda 0.24
                  a: nb-cuda >=0.23, <0.30, replaces _a, _b
                  b: nb-cuda >=0.23, <0.30, replaces _a, _b
                fix: make their ranges of versions exclude each other
            "#]],
        );
    }

    #[test]
    fn an_entry_that_is_wrong_says_what_it_takes() {
        let with = |from: &str, to: &str| entries(&format!("[overlay.'a.b']\n{}", PLAIN.replace(from, to)));
        refused(
            with("versions = '>=0.23,<0.30'", ""),
            &expect![[r#"
                error: tool.cuwheel.overlay.a.b.versions is not set
                fix: an overlay needs distribution, versions, package, modules and files; docs/settings.md has an entry each
            "#]],
        );
        refused(
            with("<0.30", "<zero"),
            &expect![[r#"
            error: tool.cuwheel.overlay.a.b.versions is no range of versions: >=0.23,<zero
              Failed to parse version: expected version to start with a number, but no leading ASCII digits were found:
              >=0.23,<zero
                     ^^^^^
            fix: write it as in PEP 440: >=0.30.0,<0.31
        "#]],
        );
        refused(
            with("nb/cext", "/nb"),
            &expect![[r#"
            error: tool.cuwheel.overlay.a.b.package is no directory of a package: /nb
            fix: give its path in the wheel, with slashes: numba_cuda/numba/cuda/cext
        "#]],
        );
        refused(
            with("'_b'", "'x._b'"),
            &expect![[r#"
            error: tool.cuwheel.overlay.a.b.modules names x._b, which is no module
            fix: give names inside the package, without dots
        "#]],
        );
        refused(
            with("overlay/plain", "../plain"),
            &expect![[r#"
            error: tool.cuwheel.overlay.a.b.files leads out of the project: ../plain
            fix: give paths relative to the project, without ..
        "#]],
        );
        refused(
            with("modules", "module"),
            &expect![[r#"
            error: tool.cuwheel.overlay.a.b.module is not a setting
            fix: did you mean tool.cuwheel.overlay.NAME.modules?
        "#]],
        );
        refused(
            with("'nb/cext'", "1"),
            &expect![[r#"
            error: tool.cuwheel.overlay.a.b.package is 1
            fix: it takes a string; the default is ""
        "#]],
        );
        refused(
            entries("overlay = 5"),
            &expect![[r#"
            error: tool.cuwheel.overlay is not a table
            fix: write [tool.cuwheel.overlay.NAME]
        "#]],
        );
    }
}
