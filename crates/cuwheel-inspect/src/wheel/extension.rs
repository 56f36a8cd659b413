//! Native files of a wheel: what their paths say about the module they hold and the ABI they were built for.
//!
//! Only names are judged here; [`crate::elf`] tells what is in the files.

use std::fmt;

/// A file that Python would load as an extension module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtensionModule {
    path: String,
    module: String,
    abi: ExtensionAbi,
}

impl ExtensionModule {
    /// The file in the wheel.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The dotted name to import it under, such as `cuwheel._native`.
    #[must_use]
    pub fn module(&self) -> &str {
        &self.module
    }

    /// What the suffix says.
    #[must_use]
    pub fn abi(&self) -> &ExtensionAbi {
        &self.abi
    }

    /// Reads a path in a wheel; `None` when no `import` statement could load it.
    ///
    /// Files below `<name>-<version>.data/platlib` and `purelib` are named as they are installed. A shared library that
    /// merely lies in a package, such as `pkg/libhelper.so`, cannot be told apart by its name and is given as
    /// [`ExtensionAbi::Bare`].
    #[must_use]
    pub fn from_path(path: &str) -> Option<Self> {
        let installed = installed_path(path)?;
        let (package, file) = installed.rsplit_once('/').map_or(("", installed), |(package, file)| (package, file));
        let stem = file.strip_suffix(".so").or_else(|| file.strip_suffix(".pyd"))?;
        let (name, suffix) = stem.split_once('.').unwrap_or((stem, ""));
        let mut parts: Vec<&str> = package.split('/').filter(|part| !part.is_empty()).collect();
        if name != "__init__" || parts.is_empty() {
            parts.push(name);
        }
        // `libdemo.core.so` is a library: no interpreter has such a suffix.
        let abi = ExtensionAbi::from_suffix(suffix)?;
        let is_importable = parts.iter().all(|part| is_identifier(part));
        is_importable.then(|| Self { path: path.to_owned(), module: parts.join("."), abi })
    }
}

/// The ABI that the suffix of an extension module names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ExtensionAbi {
    /// `.abi3.so`: the stable ABI.
    Abi3,
    /// `.abi3t.so`: the stable ABI of free-threaded interpreters (PEP 803).
    Abi3t,
    /// `.cpython-312-….so`: one minor version of Python 3.
    CPython {
        /// The minor version, 12 for 3.12.
        minor: u32,
        /// Whether it is for free-threaded interpreters (`313t`).
        free_threaded: bool,
    },
    /// `.so` alone, which every interpreter accepts.
    Bare,
    /// Another interpreter or a debug build, as it is spelled.
    Other(String),
}

impl ExtensionAbi {
    /// `None` for a suffix that is no interpreter's.
    fn from_suffix(suffix: &str) -> Option<Self> {
        const INTERPRETERS: &[&str] = &["cpython-", "cp3", "pypy", "graalpy"];
        let other = || INTERPRETERS.iter().any(|name| suffix.starts_with(name)).then(|| Self::Other(suffix.to_owned()));
        match suffix {
            "" => return Some(Self::Bare),
            "abi3" => return Some(Self::Abi3),
            "abi3t" => return Some(Self::Abi3t),
            _ => {}
        }
        // `cpython-312-x86_64-linux-gnu` on Unix, `cp312-win_amd64` on Windows.
        let Some(rest) = suffix.strip_prefix("cpython-3").or_else(|| suffix.strip_prefix("cp3")) else {
            return other();
        };
        let version = rest.split('-').next().unwrap_or_default();
        let (digits, free_threaded) = version.strip_suffix('t').map_or((version, false), |digits| (digits, true));
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        match digits.parse() {
            Ok(minor) if is_number => Some(Self::CPython { minor, free_threaded }),
            _ => other(),
        }
    }
}

impl fmt::Display for ExtensionAbi {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Abi3 => formatter.write_str("abi3"),
            Self::Abi3t => formatter.write_str("abi3t"),
            Self::CPython { minor, free_threaded } => {
                write!(formatter, "cpython-3{minor}{}", if *free_threaded { "t" } else { "" })
            }
            Self::Bare => formatter.write_str("bare"),
            Self::Other(suffix) => formatter.write_str(suffix),
        }
    }
}

/// Whether the name is that of a shared library: `x.so`, `x.so.1.2`, `x.pyd`, `x.dylib`, `x.dll`.
pub(super) fn is_shared_library(path: &str) -> bool {
    let file = path.rsplit('/').next().unwrap_or(path);
    let versioned = file.split_once(".so.").is_some_and(|(stem, version)| {
        !stem.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
    });
    versioned || [".so", ".pyd", ".dylib", ".dll"].iter().any(|suffix| file.ends_with(suffix))
}

/// The path below `site-packages`; `None` for what is installed elsewhere or not at all.
pub(crate) fn installed_path(path: &str) -> Option<&str> {
    let Some((first, rest)) = path.split_once('/') else { return Some(path) };
    if first.ends_with(".dist-info") {
        return None;
    }
    if first.strip_suffix(".data").is_none() {
        return Some(path);
    }
    rest.strip_prefix("platlib/").or_else(|| rest.strip_prefix("purelib/"))
}

/// Close to Python's rule: letters, digits and `_`, no digit first. The full rule needs Unicode's tables.
fn is_identifier(name: &str) -> bool {
    let mut characters = name.chars();
    let first = characters.next().is_some_and(|first| first.is_alphabetic() || first == '_');
    first && characters.all(|character| character.is_alphanumeric() || character == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpython(minor: u32, free_threaded: bool) -> ExtensionAbi {
        ExtensionAbi::CPython { minor, free_threaded }
    }

    #[test]
    fn paths_give_module_and_abi() {
        for (path, module, abi) in [
            ("cuwheel/_native.abi3.so", "cuwheel._native", ExtensionAbi::Abi3),
            ("cuwheel/_native.abi3t.so", "cuwheel._native", ExtensionAbi::Abi3t),
            ("top.so", "top", ExtensionAbi::Bare),
            ("pkg/libhelper.so", "pkg.libhelper", ExtensionAbi::Bare),
            ("a/b/c.cpython-312-x86_64-linux-gnu.so", "a.b.c", cpython(12, false)),
            ("a/c.cpython-313t-aarch64-linux-gnu.so", "a.c", cpython(13, true)),
            ("a/c.cpython-39-x86_64-linux-gnu.so", "a.c", cpython(9, false)),
            ("a/c.cp313t-win_amd64.pyd", "a.c", cpython(13, true)),
            ("a/__init__.cpython-312-x86_64-linux-gnu.so", "a", cpython(12, false)),
            ("d-1.0.data/platlib/a/c.abi3.so", "a.c", ExtensionAbi::Abi3),
            ("a/größe.so", "a.größe", ExtensionAbi::Bare),
            (
                "a/c.cpython-312d-x86_64-linux-gnu.so",
                "a.c",
                ExtensionAbi::Other("cpython-312d-x86_64-linux-gnu".into()),
            ),
            (
                "a/c.pypy310-pp73-x86_64-linux-gnu.so",
                "a.c",
                ExtensionAbi::Other("pypy310-pp73-x86_64-linux-gnu".into()),
            ),
            ("a/c.cpython-3-x.so", "a.c", ExtensionAbi::Other("cpython-3-x".into())),
        ] {
            let found = ExtensionModule::from_path(path).unwrap_or_else(|| panic!("{path}"));
            assert_eq!((found.module(), found.abi(), found.path()), (module, &abi, path));
        }
    }

    #[test]
    fn files_that_no_import_could_load_are_none() {
        for path in [
            "pkg.libs/libz-1a2b.so",
            "pkg/libz.so.1",
            "pkg/my-lib.so",
            "pkg/libdemo.core.so",
            "pkg/1abc.so",
            "pkg/module.py",
            "d-1.0.dist-info/x.so",
            "d-1.0.data/scripts/x.so",
            ".so",
        ] {
            assert_eq!(ExtensionModule::from_path(path), None, "{path}");
        }
    }

    #[test]
    fn shared_libraries_are_known_by_name() {
        for path in ["a.so", "p.libs/libz.so.1", "p/libz-0a1b.so.1.2.11", "a.pyd", "a.dylib", "a.dll"] {
            assert!(is_shared_library(path), "{path}");
        }
        for path in ["a.py", "so", "a.so.txt", "a.sos", "lib.so.d/x"] {
            assert!(!is_shared_library(path), "{path}");
        }
    }

    #[test]
    fn abis_are_shown_as_in_suffixes() {
        let shown =
            [ExtensionAbi::Abi3, cpython(13, true), cpython(9, false), ExtensionAbi::Bare].map(|abi| abi.to_string());
        assert_eq!(shown, ["abi3", "cpython-313t", "cpython-39", "bare"]);
    }
}
