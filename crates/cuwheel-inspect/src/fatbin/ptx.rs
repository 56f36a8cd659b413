//! The directives at the beginning of PTX: for which architecture it is, and in which version of the language.
//!
//! Source: "Parallel Thread Execution ISA", section "PTX Module Directives".

use super::Architecture;

/// What a PTX file says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Directives {
    pub(crate) version: (u16, u16),
    pub(crate) architecture: Architecture,
}

/// Reads `text`, the beginning of a file; `None` when it is no PTX.
pub(crate) fn directives(text: &[u8]) -> Option<Directives> {
    let text = String::from_utf8_lossy(text);
    let mut version = None;
    for line in text.lines().map(str::trim) {
        let code = line.split("//").next().unwrap_or_default();
        if let Some(rest) = code.strip_prefix(".version") {
            let (major, minor) = rest.trim().split_once('.')?;
            version = Some((major.parse().ok()?, minor.parse().ok()?));
        }
        if let (Some(rest), Some(version)) = (code.strip_prefix(".target"), version) {
            let target = rest.split(',').next()?.trim();
            return Some(Directives { version, architecture: target.parse().ok()? });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_and_target_are_read_and_comments_are_not() {
        let read =
            |text: &str| directives(text.as_bytes()).map(|found| (found.version, found.architecture.to_string()));
        let text = "//\n// .version 1.0\n\n.version 8.5\n.target sm_90a, debug // for all\n.address_size 64\n";
        assert_eq!(read(text), Some(((8, 5), "90a".to_owned())));
        for text in ["", ".target sm_90\n", ".version 8\n.target sm_90", ".version 8.5\n", ".version 8.5\n.target all"]
        {
            assert_eq!(read(text), None, "{text:?}");
        }
    }
}
