//! Where a new project takes cuwheel's crates from: a registry, or a checkout.

use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toml_edit::InlineTable;

use crate::error::{Failure, Result};
use crate::files;

/// Where the crates come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The root of a checkout of cuwheel, absolute.
    Checkout(PathBuf),
    /// A version of all of them.
    Version(String),
}

/// The crates of a new project, as templates name them.
const CRATES: [(&str, &str); 4] = [
    ("build", "cuwheel-build"),
    ("dispatcher", "cuwheel-dispatcher"),
    ("exchange", "cuwheel-exchange"),
    ("toolkit", "cuwheel"),
];

impl Origin {
    /// What was asked for; else the checkout that this program was compiled in, while it is there; else this program's
    /// version.
    pub fn choose(given: Option<&str>) -> Result<Self> {
        let Some(given) = given else {
            let own = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).filter(|root| is_checkout(root));
            return Ok(own.map_or_else(|| Self::Version(env!("CARGO_PKG_VERSION").to_owned()), Self::checkout));
        };
        let path = Path::new(given);
        if is_checkout(path) {
            return Ok(Self::checkout(&files::absolute(path)?));
        }
        let is_version = given.split(['.', '-', '+']).all(|part| !part.is_empty())
            && given.starts_with(|first: char| first.is_ascii_digit())
            && given.chars().all(|letter| letter.is_ascii_alphanumeric() || ".-+".contains(letter));
        if is_version && !path.exists() {
            return Ok(Self::Version(given.to_owned()));
        }
        Err(Failure::usage(format!("{given} is neither a version nor a checkout of cuwheel"))
            .remedy("name a version such as 0.1.0, or the root of a checkout: the directory with crates/cuwheel-build")
            .into())
    }

    fn checkout(root: &Path) -> Self {
        Self::Checkout(files::resolved(root))
    }

    /// What each crate is in a Cargo.toml, by the names of the templates.
    pub fn dependencies(&self) -> Result<Value> {
        let mut dependencies = json!({});
        for (name, package) in CRATES {
            let mut table = InlineTable::new();
            match self {
                Self::Checkout(root) => table.insert("path", files::utf8(&root.join("crates").join(package))?.into()),
                Self::Version(version) => table.insert("version", version.into()),
            };
            dependencies[name] = json!(table.to_string().trim());
        }
        Ok(dependencies)
    }

    /// The root, if it is a checkout.
    pub fn root(&self) -> Option<&Path> {
        match self {
            Self::Checkout(root) => Some(root),
            Self::Version(_) => None,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Checkout(root) => write!(formatter, "by path from the checkout {}", root.display()),
            Self::Version(version) => write!(formatter, "version {version}"),
        }
    }
}

fn is_checkout(root: &Path) -> bool {
    CRATES.iter().all(|(_, package)| root.join("crates").join(package).join("Cargo.toml").is_file())
}
