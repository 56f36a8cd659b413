//! Cargo's configuration for a directory: the files that cargo would merge, and the variables that win over them.
//!
//! Not the whole of it: flags for rustc and the target directory, which the tool has to know before cargo runs.

use std::path::{Path, PathBuf};

use toml_edit::{DocumentMut, Item};

use crate::env_vars::{self, Variable};
use crate::error::{Failure, Result};

/// The configuration files of a directory, the nearest first.
#[derive(Debug)]
pub struct CargoConfig {
    files: Vec<(PathBuf, DocumentMut)>,
}

/// The flags that cargo would give to rustc, with what could not be understood of them.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Rustflags {
    /// The flags.
    pub flags: Vec<String>,
    /// Files with flags under a `cfg(…)` target, which only cargo can evaluate.
    pub conditional: Vec<PathBuf>,
}

/// What separates flags in `CARGO_ENCODED_RUSTFLAGS`.
pub const SEPARATOR: &str = "\x1f";

/// Where cargo keeps what it downloads.
pub fn cargo_home() -> Option<PathBuf> {
    let home = env_vars::CARGO_HOME.get().map(PathBuf::from);
    home.or_else(|| env_vars::HOME.get().map(|home| Path::new(&home).join(".cargo")))
}

impl CargoConfig {
    /// Reads the files of a directory, of those above it, and of cargo's home.
    pub fn read(directory: &Path) -> Result<Self> {
        let mut paths: Vec<PathBuf> = Vec::new();
        let above = directory.ancestors().map(|directory| directory.join(".cargo"));
        for place in above.chain(cargo_home()) {
            // Cargo still reads the name without an extension, and prefers it.
            let candidates = [place.join("config"), place.join("config.toml")];
            paths.extend(candidates.into_iter().find(|path| path.is_file()).filter(|path| !paths.contains(path)));
        }
        let mut files = Vec::new();
        for path in paths {
            let document: DocumentMut = fs_err::read_to_string(&path)?.parse().map_err(|error| {
                Failure::usage(format!("{} is not valid TOML", path.display())).detail(format!("{error}").trim())
            })?;
            files.push((path, document));
        }
        Ok(Self { files })
    }

    /// The files.
    pub fn into_paths(self) -> impl Iterator<Item = PathBuf> {
        self.files.into_iter().map(|(path, _)| path)
    }

    /// The target directory, if it is set: by a variable, relative to `directory`, or in a file, relative to the place of
    /// its `.cargo`.
    pub fn target_directory(&self, directory: &Path) -> Option<PathBuf> {
        let variables = [&env_vars::CARGO_TARGET_DIR, &env_vars::CARGO_BUILD_TARGET_DIR];
        match variables.into_iter().find_map(Variable::get) {
            Some(target) => Some(directory.join(target)),
            None => self.target_directory_in_files(),
        }
    }

    fn target_directory_in_files(&self) -> Option<PathBuf> {
        self.files.iter().find_map(|(path, document)| {
            let target = document.get("build")?.get("target-dir")?.as_str()?;
            Some(path.parent()?.parent()?.join(target))
        })
    }

    /// The flags for a target. Cargo takes them from the first of these places that has any: `CARGO_ENCODED_RUSTFLAGS`,
    /// `RUSTFLAGS`, those of the target, those of every build.
    pub fn rustflags(&self, triple: &str) -> Rustflags {
        let text = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let words = |value: String| value.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        if let Some(encoded) = text(env_vars::CARGO_ENCODED_RUSTFLAGS.name) {
            let flags = encoded.split(SEPARATOR).map(str::to_owned).collect();
            return Rustflags { flags, ..Rustflags::default() };
        }
        if let Some(flags) = text(env_vars::RUSTFLAGS.name) {
            return Rustflags { flags: words(flags), ..Rustflags::default() };
        }
        let (mut of_target, mut of_build, mut conditional) = (Vec::new(), Vec::new(), Vec::new());
        for (path, document) in self.files.iter().rev() {
            let targets = document.get("target").and_then(Item::as_table_like);
            let is_conditional =
                |(name, item): (&str, &Item)| name.starts_with("cfg(") && item.get("rustflags").is_some();
            if targets.is_some_and(|targets| targets.iter().any(is_conditional)) {
                conditional.push(path.clone());
            }
            let target = targets.and_then(|targets| targets.get(triple)?.get("rustflags"));
            of_target.extend(target.map(flags_of).unwrap_or_default());
            let build = document.get("build").and_then(|build| build.get("rustflags"));
            of_build.extend(build.map(flags_of).unwrap_or_default());
        }
        let variable = format!("CARGO_TARGET_{}_RUSTFLAGS", triple.to_uppercase().replace(['-', '.'], "_"));
        of_target.extend(text(&variable).map(words).unwrap_or_default());
        of_build.extend(text("CARGO_BUILD_RUSTFLAGS").map(words).unwrap_or_default());
        Rustflags { flags: if of_target.is_empty() { of_build } else { of_target }, conditional }
    }
}

/// A string of flags or an array of them.
fn flags_of(item: &Item) -> Vec<String> {
    match item.as_str() {
        Some(text) => text.split_whitespace().map(str::to_owned).collect(),
        None => item.as_array().into_iter().flatten().filter_map(|flag| flag.as_str().map(str::to_owned)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(texts: &[&str]) -> CargoConfig {
        let file = |(index, text): (usize, &&str)| {
            (PathBuf::from(format!("/{index}/.cargo/config.toml")), text.parse().unwrap())
        };
        CargoConfig { files: texts.iter().enumerate().map(file).collect() }
    }

    #[test]
    fn flags_of_the_target_win_over_those_of_every_build() {
        let near = "[build]\nrustflags = '-C x=1  -g'\n[target.'cfg(unix)']\nrustflags = ['-h']\n";
        let far = "[target.x86_64-unknown-linux-gnu]\nrustflags = ['-C', 'link-arg=sp ace']\n";
        let conditional = vec![PathBuf::from("/0/.cargo/config.toml")];
        let of_target = vec!["-C".to_owned(), "link-arg=sp ace".to_owned()];
        let of_build = vec!["-C".to_owned(), "x=1".to_owned(), "-g".to_owned()];
        let config = config(&[near, far]);
        assert_eq!(
            config.rustflags("x86_64-unknown-linux-gnu"),
            Rustflags { flags: of_target, conditional: conditional.clone() }
        );
        assert_eq!(config.rustflags("aarch64-unknown-linux-gnu"), Rustflags { flags: of_build, conditional });
    }

    #[test]
    fn a_target_directory_is_relative_to_the_place_of_its_file() {
        let config = config(&["", "[build]\ntarget-dir = 'out'\n"]);
        assert_eq!(config.target_directory_in_files(), Some(PathBuf::from("/1/out")));
    }
}
