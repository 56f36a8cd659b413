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
    let mut depth = directory.split('/').filter(|part| !part.is_empty()).count();
    for part in relative.split('/') {
        match part {
            "" | "." => {}
            ".." => match depth.checked_sub(1) {
                Some(less) => depth = less,
                None => return true,
            },
            _ => depth += 1,
        }
    }
    false
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
}
