//! Requirements: the oldest and the newest release that they let in, and the names of distributions that modules come from.
//!
//! Not a resolver.

use std::str::FromStr as _;

use pep440_rs::{Operator, Version, VersionSpecifiers};

use crate::requirements::requirement_name;

/// A requirement as it is written, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Requirement {
    pub(crate) text: String,
    /// Normalised.
    pub(crate) name: String,
    pub(crate) specifiers: Option<VersionSpecifiers>,
    pub(crate) has_marker: bool,
}

impl Requirement {
    /// `None` for what begins with no name, such as a URL or a comment.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (requirement, marker) = text.split_once(';').map_or((text, None), |(left, right)| (left, Some(right)));
        let requirement = requirement.trim();
        let name = requirement_name(requirement);
        if name.is_empty() {
            return None;
        }
        let end = requirement.find(|c: char| !(c.is_ascii_alphanumeric() || "._-".contains(c)));
        let rest = end.map_or("", |end| &requirement[end..]).trim();
        let rest = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')).map_or(rest, |(_, rest)| rest);
        let rest = rest.trim().trim_start_matches('(').trim_end_matches(')');
        let specifiers = VersionSpecifiers::from_str(rest).ok().filter(|_| !rest.is_empty() && !rest.starts_with('@'));
        Some(Self { text: text.trim().to_owned(), name, specifiers, has_marker: marker.is_some() })
    }

    fn bounds(&self) -> impl Iterator<Item = (&Operator, &Version)> {
        self.specifiers.iter().flat_map(|all| all.iter()).map(|one| (one.operator(), one.version()))
    }

    /// The oldest release that is let in, as major and minor.
    pub(crate) fn floor(&self) -> Option<(u64, u64)> {
        let is_floor = |operator: &Operator| {
            matches!(
                operator,
                Operator::GreaterThanEqual
                    | Operator::GreaterThan
                    | Operator::TildeEqual
                    | Operator::Equal
                    | Operator::EqualStar
                    | Operator::ExactEqual
            )
        };
        self.bounds().filter(|(operator, _)| is_floor(operator)).map(|(_, version)| pair(version)).max()
    }

    /// Whether releases of this major version or a newer one are kept out.
    pub(crate) fn is_below_major(&self, major: u64) -> bool {
        self.bounds().any(|(operator, version)| match operator {
            Operator::LessThan => pair(version) <= (major, 0),
            Operator::LessThanEqual | Operator::Equal | Operator::EqualStar | Operator::ExactEqual => {
                pair(version).0 < major
            }
            Operator::TildeEqual => pair(version).0 < major,
            _ => false,
        })
    }
}

fn pair(version: &Version) -> (u64, u64) {
    let release = version.release();
    (release.first().copied().unwrap_or(0), release.get(1).copied().unwrap_or(0))
}

/// The oldest version that a specifier such as `>=3.9,<4` lets in.
pub(crate) fn floor_of_specifier(text: &str) -> Option<(u64, u64)> {
    Requirement::parse(&format!("python{text}"))?.floor()
}

/// Distributions whose modules have other names.
const DISTRIBUTIONS: &[(&str, &str)] = &[
    ("Cython", "cython"),
    ("OpenSSL", "pyopenssl"),
    ("PIL", "pillow"),
    ("attr", "attrs"),
    ("cuda.bindings", "cuda-bindings"),
    ("cuda.core", "cuda-core"),
    ("cuda.pathfinder", "cuda-pathfinder"),
    ("cv2", "opencv-python"),
    ("dateutil", "python-dateutil"),
    ("git", "gitpython"),
    ("google.protobuf", "protobuf"),
    ("jinja2", "jinja2"),
    ("mesonpy", "meson-python"),
    ("pkg_resources", "setuptools"),
    ("rapids_build_backend", "rapids-build-backend"),
    ("setuptools_scm", "setuptools-scm"),
    ("skbuild", "scikit-build"),
    ("sklearn", "scikit-learn"),
    ("tvm_ffi", "apache-tvm-ffi"),
    ("yaml", "pyyaml"),
];

/// The distribution that an imported module comes from, as far as names tell.
pub(crate) fn distribution_of(module: &str) -> String {
    let is_or_is_in =
        |known: &str| module == known || module.strip_prefix(known).is_some_and(|rest| rest.starts_with('.'));
    match DISTRIBUTIONS.iter().find(|(known, _)| is_or_is_in(known)) {
        Some((_, distribution)) => (*distribution).to_owned(),
        None => requirement_name(module.split('.').next().unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floors_and_ceilings_are_those_of_the_specifiers() {
        let floor = |text| Requirement::parse(text).unwrap().floor();
        assert_eq!(floor("NumPy >= 1.26, < 3"), Some((1, 26)));
        assert_eq!(floor("numpy[x]==2.*; python_version > '3'"), Some((2, 0)));
        assert_eq!(floor("numpy"), None);
        assert_eq!(floor("numpy<2"), None);
        let below = |text| Requirement::parse(text).unwrap().is_below_major(2);
        assert_eq!(
            ["numpy<2", "numpy<2.0", "numpy==1.26.4", "numpy~=1.26", "numpy<=1.26", "numpy", "numpy<3", "numpy>=1"]
                .map(below),
            [true, true, true, true, true, false, false, false]
        );
        assert_eq!(floor_of_specifier(">=3.9,<4"), Some((3, 9)));
        assert_eq!(Requirement::parse("# x"), None);
    }

    #[test]
    fn modules_have_distributions() {
        assert_eq!(distribution_of("torch.utils.cpp_extension"), "torch");
        assert_eq!(distribution_of("cuda.pathfinder"), "cuda-pathfinder");
        assert_eq!(distribution_of("Cython.Build"), "cython");
    }
}
