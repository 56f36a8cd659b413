//! The rule on the C++ and GCC runtime: what the tag promises of the system's is enough.

use std::collections::BTreeMap;
use std::fmt;

use super::catalog::CXX_FLOOR;
use super::native::CxxNeed;
use super::{ExaminedWheel, Finding, listed};
use crate::elf::GlibcVersion;

/// A part of the runtime whose symbols have versions of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    /// The compiler's own library, `libgcc_s`.
    Gcc,
    /// The standard library, `libstdc++`.
    Glibcxx,
    /// The ABI, in `libstdc++`.
    Cxxabi,
}

/// A version of a part of the runtime, such as `GLIBCXX_3.4.22`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CxxVersion {
    part: Part,
    numbers: Vec<u32>,
}

impl CxxVersion {
    /// Reads the name of a symbol version; `None` for names of other libraries, and for those without a number.
    pub(super) fn from_symbol_version(name: &str) -> Option<Self> {
        let parts = [("GCC_", Part::Gcc), ("GLIBCXX_", Part::Glibcxx), ("CXXABI_", Part::Cxxabi)];
        let (part, numbers) = parts.into_iter().find_map(|(prefix, part)| Some((part, name.strip_prefix(prefix)?)))?;
        let numbers = numbers.split('.').map(|number| number.parse().ok()).collect::<Option<_>>()?;
        Some(Self { part, numbers })
    }
}

impl fmt::Display for CxxVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.part {
            Part::Gcc => "GCC",
            Part::Glibcxx => "GLIBCXX",
            Part::Cxxabi => "CXXABI",
        };
        let numbers: Vec<String> = self.numbers.iter().map(u32::to_string).collect();
        write!(formatter, "{name}_{}", numbers.join("."))
    }
}

/// What the oldest systems with a glibc have. Where processors differ, the newest counts: an error has to be one on
/// every system.
struct Promise {
    glibc: GlibcVersion,
    gcc: &'static [u32],
    glibcxx: &'static [u32],
    cxxabi: &'static [u32],
}

const fn promise(minor: u32, gcc: &'static [u32], glibcxx: &'static [u32], cxxabi: &'static [u32]) -> Promise {
    Promise { glibc: GlibcVersion::new(2, minor), gcc, glibcxx, cxxabi }
}

const PROMISED: &[Promise] = &[
    promise(5, &[4, 2, 0], &[3, 4, 8], &[1, 3, 1]),
    promise(12, &[4, 3, 0], &[3, 4, 13], &[1, 3, 3]),
    promise(17, &[4, 8, 0], &[3, 4, 19], &[1, 3, 7]),
    promise(24, &[4, 8, 0], &[3, 4, 22], &[1, 3, 10]),
    promise(26, &[7, 0, 0], &[3, 4, 24], &[1, 3, 11]),
    promise(31, &[7, 0, 0], &[3, 4, 28], &[1, 3, 12]),
    promise(34, &[11, 0], &[3, 4, 29], &[1, 3, 13]),
    promise(35, &[12, 0, 0], &[3, 4, 30], &[1, 3, 13]),
    promise(39, &[14, 0, 0], &[3, 4, 33], &[1, 3, 15]),
];
/// Nothing is known of newer systems than the last row.
const NEWEST_KNOWN: GlibcVersion = GlibcVersion::new(2, 41);

/// What a platform tag with this glibc promises of `part`; `None` when that is not known.
fn promised(glibc: GlibcVersion, part: Part) -> Option<CxxVersion> {
    let promise = PROMISED.iter().rfind(|promise| promise.glibc <= glibc)?;
    let numbers = match part {
        Part::Gcc => promise.gcc,
        Part::Glibcxx => promise.glibcxx,
        Part::Cxxabi => promise.cxxabi,
    };
    (glibc <= NEWEST_KNOWN).then(|| CxxVersion { part, numbers: numbers.to_vec() })
}

/// The oldest glibc whose systems have the runtime that `need` asks for; the newest that is known where none has.
fn oldest_with(need: &CxxVersion) -> GlibcVersion {
    let has = |glibc: &GlibcVersion| promised(*glibc, need.part).is_some_and(|version| version >= *need);
    PROMISED.iter().map(|promise| promise.glibc).find(has).unwrap_or(NEWEST_KNOWN)
}

/// The oldest glibc whose systems have the C++ and GCC runtime that the wheel takes from the system.
pub(super) fn floor(examined: &ExaminedWheel) -> Option<GlibcVersion> {
    let needs = examined.libraries().flat_map(|(_, native)| &native.cxx);
    needs.filter(|need| !is_inside(examined, &need.library)).map(|need| oldest_with(&need.version)).max()
}

/// A runtime that is inside is as new as what was built with it.
fn is_inside(examined: &ExaminedWheel, library: &str) -> bool {
    examined.libraries().any(|(entry, native)| {
        native.soname.as_deref() == Some(library) || entry.path().rsplit('/').next() == Some(library)
    })
}

pub(super) fn check(examined: &ExaminedWheel, findings: &mut Vec<Finding>) {
    let platforms = examined.wheel().name().platform_tags();
    let floors = platforms.iter().filter_map(|platform| Some((GlibcVersion::from_platform_tag(platform)?, platform)));
    let Some((glibc, platform)) = floors.min() else { return };
    for (entry, native) in examined.libraries() {
        let above = |need: &&CxxNeed| promised(glibc, need.version.part).is_some_and(|floor| need.version > floor);
        let mut by_part: BTreeMap<Part, Vec<&CxxNeed>> = BTreeMap::new();
        for need in native.cxx.iter().filter(above).filter(|need| !is_inside(examined, &need.library)) {
            by_part.entry(need.version.part).or_default().push(need);
        }
        for needs in by_part.into_values() {
            let Some(newest) = needs.iter().max_by_key(|need| &need.version) else { continue };
            let what: Vec<String> = needs
                .iter()
                .flat_map(|need| match &need.symbols[..] {
                    [] => vec![format!("the file ({})", need.version)],
                    symbols => symbols.iter().map(|symbol| format!("{symbol} ({})", need.version)).collect(),
                })
                .collect();
            let (version, library) = (&newest.version, &newest.library);
            let message =
                format!("it needs {version} of {library}, and {platform} does not promise it: {}", listed(&what));
            let symbol = newest.symbols.first().map(String::as_str);
            findings.push(Finding::new(&CXX_FLOOR, message).at(entry.path()).symbol(symbol));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_number_within_their_part() {
        let version = |name: &str| CxxVersion::from_symbol_version(name).unwrap();
        assert!(version("GLIBCXX_3.4.9") < version("GLIBCXX_3.4.22"));
        assert!(version("GCC_4.8.0") < version("GCC_11.0"));
        assert!(version("CXXABI_1.3") < version("CXXABI_1.3.1"));
        assert_eq!(version("GLIBCXX_3.4.22").to_string(), "GLIBCXX_3.4.22");
        for name in ["GLIBC_2.17", "CXXABI_TM_1", "CXXABI_FLOAT128", "GCC_", "OTHER_1"] {
            assert_eq!(CxxVersion::from_symbol_version(name), None, "{name}");
        }
    }

    #[test]
    fn tags_promise_what_the_oldest_system_has() {
        let promised = |glibc: GlibcVersion, part| promised(glibc, part).map(|version| version.to_string());
        assert_eq!(promised(GlibcVersion::new(2, 17), Part::Glibcxx).as_deref(), Some("GLIBCXX_3.4.19"));
        assert_eq!(promised(GlibcVersion::new(2, 28), Part::Cxxabi).as_deref(), Some("CXXABI_1.3.11"));
        assert_eq!(promised(GlibcVersion::new(2, 4), Part::Gcc), None);
        assert_eq!(promised(GlibcVersion::new(2, 42), Part::Gcc), None);
    }
}
