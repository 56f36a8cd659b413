//! Requirements of METADATA, enough of them to tell which projects a wheel asks for.
//!
//! Not a resolver's requirement: markers are kept as text, and specifiers are only asked for the major version that they
//! lead to. Source: "Dependency specifiers".

use super::normalize_distribution;

/// A requirement such as `nvidia-cublas-cu12>=12.4; extra == "cuda"`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    name: String,
    extras: Vec<String>,
    specifier: String,
    marker: Option<String>,
}

impl Requirement {
    /// Reads a value of `Requires-Dist`; `None` when it begins with no name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (requirement, marker) = match text.split_once(';') {
            Some((requirement, marker)) => (requirement, Some(marker.trim().to_owned())),
            None => (text, None),
        };
        let requirement = requirement.trim();
        let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
        let (name, rest) = requirement.split_at(requirement.bytes().take_while(|byte| is_of_name(byte)).count());
        if !name.starts_with(|first: char| first.is_ascii_alphanumeric()) {
            return None;
        }
        let rest = rest.trim_start();
        let (extras, specifier) = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((extras, specifier)) => (extras, specifier),
            None => ("", rest),
        };
        let extras = extras.split(',').map(str::trim).filter(|extra| !extra.is_empty()).map(normalize_distribution);
        let specifier = specifier.trim().trim_start_matches('(').trim_end_matches(')').to_owned();
        Some(Self { name: normalize_distribution(name), extras: extras.collect(), specifier, marker })
    }

    /// The project, normalised.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The extras that are asked for, normalised.
    #[must_use]
    pub fn extras(&self) -> &[String] {
        &self.extras
    }

    /// When it counts, such as `extra == "cuda"`.
    #[must_use]
    pub fn marker(&self) -> Option<&str> {
        self.marker.as_deref()
    }

    /// The major version that the specifier leads to, from `==13.*`, `~=13.0` or `>=13`.
    #[must_use]
    pub fn major_version(&self) -> Option<u32> {
        self.specifier.split(',').find_map(|clause| {
            let clause = clause.trim();
            let version = ["===", "==", "~=", ">="].iter().find_map(|operator| clause.strip_prefix(operator))?;
            version.trim().split('.').next()?.parse().ok()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_have_a_name_extras_a_version_and_a_marker() {
        for (text, name, extras, major, marker) in [
            ("numpy", "numpy", &[][..], None, None),
            ("NVIDIA.cublas_CU12 (>=12.4,<13)", "nvidia-cublas-cu12", &[], Some(12), None),
            (
                "cuda-toolkit[nvrtc, cuBLAS]==13.*; extra == 'cu13'",
                "cuda-toolkit",
                &["nvrtc", "cublas"],
                Some(13),
                Some("extra == 'cu13'"),
            ),
            ("a<3,~=2.1", "a", &[], Some(2), None),
            ("a @ https://example.org/a.whl", "a", &[], None, None),
        ] {
            let found = Requirement::parse(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!((found.name(), found.major_version(), found.marker()), (name, major, marker), "{text}");
            assert_eq!(found.extras(), extras, "{text}");
        }
        for text in ["", "; extra == 'a'", "[a]", "-a"] {
            assert_eq!(Requirement::parse(text), None, "{text:?}");
        }
    }
}
