//! Entries of RPATH and RUNPATH, and where they lead from a file in site-packages.

/// What is wrong with an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// It names a directory of the machine.
    Absolute,
    /// It depends on the directory that the process was started in.
    WorkingDirectory,
    /// It leads above site-packages.
    Escapes,
    /// It names a directory of link-time stubs.
    Stubs,
}

/// What is wrong with `entry` in a file at `installed`, a path below site-packages; `None` for a file that is installed
/// elsewhere, which then may lead anywhere relative to itself.
pub(super) fn fault(entry: &str, installed: Option<&str>) -> Option<Fault> {
    if entry.split('/').any(|part| part == "stubs") {
        return Some(Fault::Stubs);
    }
    let relative = ["$ORIGIN", "${ORIGIN}"].iter().find_map(|origin| entry.strip_prefix(origin));
    match relative {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => {
            let directory = installed?.rsplit_once('/').map_or("", |(directory, _)| directory);
            escapes(directory, rest).then_some(Fault::Escapes)
        }
        _ if entry.starts_with('/') => Some(Fault::Absolute),
        _ => Some(Fault::WorkingDirectory),
    }
}

fn escapes(directory: &str, relative: &str) -> bool {
    join(directory, relative).is_none()
}

/// The directory that `relative` leads to from `directory`; `None` when that is above where both began.
fn join(directory: &str, relative: &str) -> Option<String> {
    let mut parts: Vec<&str> = directory.split('/').filter(|part| !part.is_empty()).collect();
    for part in relative.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// The directory below site-packages that `entry` of the file at `installed` leads to; `None` when it is elsewhere.
pub(super) fn resolve(entry: &str, installed: &str) -> Option<String> {
    let rest = ["$ORIGIN", "${ORIGIN}"].iter().find_map(|origin| entry.strip_prefix(origin))?;
    let directory = installed.rsplit_once('/').map_or("", |(directory, _)| directory);
    (rest.is_empty() || rest.starts_with('/')).then(|| join(directory, rest)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_judged_from_where_the_file_is_installed() {
        for (entry, installed, expected) in [
            ("$ORIGIN", Some("a.so"), None),
            ("${ORIGIN}/../nvidia/cu13/lib", Some("pkg/a.so"), None),
            ("$ORIGIN/../../nvidia/cu13/lib", Some("pkg/a.so"), Some(Fault::Escapes)),
            ("$ORIGIN/../../nvidia/cu13/lib", Some("pkg/sub/a.so"), None),
            ("$ORIGIN/../../../../lib", Some("pkg/a.so"), Some(Fault::Escapes)),
            ("$ORIGIN/x/../../..", Some("pkg/sub/a.so"), None),
            ("$ORIGIN/../../lib", None, None),
            ("/usr/local/cuda/lib64", Some("pkg/a.so"), Some(Fault::Absolute)),
            ("/usr/local/cuda/lib64/stubs", Some("pkg/a.so"), Some(Fault::Stubs)),
            ("$ORIGIN/stubs", Some("pkg/a.so"), Some(Fault::Stubs)),
            ("", Some("pkg/a.so"), Some(Fault::WorkingDirectory)),
            ("lib", Some("pkg/a.so"), Some(Fault::WorkingDirectory)),
            ("$ORIGINAL", Some("pkg/a.so"), Some(Fault::WorkingDirectory)),
        ] {
            assert_eq!(fault(entry, installed), expected, "{entry} in {installed:?}");
        }
    }

    #[test]
    fn entries_lead_to_directories_below_site_packages() {
        for (entry, installed, expected) in [
            ("$ORIGIN", "a.so", Some("")),
            ("$ORIGIN/../nvidia/cu13/lib/", "pkg/a.so", Some("nvidia/cu13/lib")),
            ("${ORIGIN}/./lib//x", "pkg/sub/a.so", Some("pkg/sub/lib/x")),
            ("$ORIGIN/../..", "pkg/a.so", None),
            ("/opt/lib", "pkg/a.so", None),
            ("$ORIGINAL", "pkg/a.so", None),
            ("lib", "pkg/a.so", None),
        ] {
            assert_eq!(resolve(entry, installed).as_deref(), expected, "{entry} in {installed}");
        }
    }
}
