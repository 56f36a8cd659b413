//! Flags for rustc that take this machine's paths out of what is compiled, added to the flags that the user set.
//!
//! Not for choosing optimisation or a target: profiles in Cargo.toml do that.

use std::path::{Path, PathBuf};

use toml_edit::{DocumentMut, Item};

use crate::env_vars;
use crate::error::{Failure, Result};
use crate::output::Output;
use crate::process::Process;
use crate::project::Project;

/// What separates flags in `CARGO_ENCODED_RUSTFLAGS`.
const SEPARATOR: &str = "\x1f";

/// The compiler that cargo will use, as it describes itself.
#[derive(Clone, Debug)]
pub struct Rustc {
    /// The whole text of `rustc -vV`: it is part of a build's fingerprint.
    pub verbose_version: String,
}

impl Rustc {
    /// Asks the compiler. `RUSTC` is respected, as cargo does.
    pub fn probe(directory: &Path) -> Result<Self> {
        let finished = Self::process(directory).arg("-vV").capture()?;
        if !finished.status.success() {
            return Err(Failure::machine("rustc does not run")
                .details(finished.tail(4))
                .remedy("install a Rust toolchain, or select one with rustup")
                .into());
        }
        Ok(Self { verbose_version: finished.stdout })
    }

    fn process(directory: &Path) -> Process {
        Process::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())).directory(directory)
    }

    fn field(&self, name: &str) -> Option<&str> {
        self.verbose_version.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    /// The first line, such as `rustc 1.95.0 (…)`.
    #[must_use]
    pub fn short_version(&self) -> &str {
        self.verbose_version.lines().next().unwrap_or_default()
    }

    /// The triple that is compiled for.
    #[must_use]
    pub fn host(&self) -> &str {
        self.field("host").unwrap_or("x86_64-unknown-linux-gnu")
    }

    /// Where the compiled standard library is; empty when the compiler does not say.
    pub fn standard_library_objects(&self) -> PathBuf {
        let finished = Self::process(Path::new(".")).args(["--print", "target-libdir"]).capture();
        finished.map(|finished| PathBuf::from(finished.stdout.trim())).unwrap_or_default()
    }

    /// Where an installed copy of the standard library's sources is, and the path that it has in released binaries.
    fn standard_library(&self, directory: &Path) -> Result<Option<(PathBuf, String)>> {
        let finished = Self::process(directory).args(["--print", "sysroot"]).capture()?;
        let sources = Path::new(finished.stdout.trim()).join("lib/rustlib/src/rust");
        Ok(self.field("commit-hash").map(|hash| (sources, format!("/rustc/{hash}"))))
    }
}

/// The value of `CARGO_ENCODED_RUSTFLAGS` for a build of the project.
pub fn encoded(project: &Project, rustc: &Rustc, output: &Output) -> Result<String> {
    let mut flags = users_flags(project, rustc.host(), output)?;
    let cargo_home = env_vars::CARGO_HOME.get().map(PathBuf::from);
    let cargo_home = cargo_home.or_else(|| env_vars::HOME.get().map(|home| Path::new(&home).join(".cargo")));
    let mut prefixes: Vec<(PathBuf, String)> = Vec::new();
    prefixes.extend(cargo_home.map(|home| (home, "/cargo".to_owned())));
    prefixes.extend(rustc.standard_library(&project.root)?);
    prefixes.push((project.target_directory(), "/target".to_owned()));
    // The last prefix that matches wins, so the project goes before the target directory inside it.
    prefixes.insert(0, (project.manifest.workspace_root().to_path_buf(), format!("/{}", project.distribution())));
    for directory in project.manifest.crate_directories()? {
        if !directory.starts_with(project.manifest.workspace_root()) {
            let name = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
            prefixes.push((directory, format!("/{name}")));
        }
    }
    flags.extend(prefixes.into_iter().map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display())));
    Ok(flags.join(SEPARATOR))
}

/// The flags that cargo would use without us. Cargo takes them from the first of these places that has any.
fn users_flags(project: &Project, host: &str, output: &Output) -> Result<Vec<String>> {
    let text = |variable: &env_vars::Variable| variable.get().map(|value| value.to_string_lossy().into_owned());
    if let Some(encoded) = text(&env_vars::CARGO_ENCODED_RUSTFLAGS) {
        return Ok(encoded.split(SEPARATOR).map(str::to_owned).collect());
    }
    if let Some(flags) = text(&env_vars::RUSTFLAGS) {
        return Ok(flags.split_whitespace().map(str::to_owned).collect());
    }
    let (mut of_target, mut of_build) = (Vec::new(), Vec::new());
    for path in config_files(&project.root) {
        let document: DocumentMut = fs_err::read_to_string(&path)?.parse().map_err(|error| {
            Failure::usage(format!("{} is not valid TOML", path.display())).detail(format!("{error}").trim())
        })?;
        if let Some(targets) = document.get("target").and_then(Item::as_table_like) {
            let conditional =
                targets.iter().any(|(name, item)| name.starts_with("cfg(") && item.get("rustflags").is_some());
            if conditional {
                output.warn(format!("rustflags under a cfg(…) target in {} are not applied to wheels", path.display()));
            }
            of_target.extend(targets.get(host).and_then(|item| item.get("rustflags")).map(flags).unwrap_or_default());
        }
        of_build.extend(document.get("build").and_then(|item| item.get("rustflags")).map(flags).unwrap_or_default());
    }
    Ok(if of_target.is_empty() { of_build } else { of_target })
}

/// A string of flags or an array of them.
fn flags(item: &Item) -> Vec<String> {
    match item.as_str() {
        Some(text) => text.split_whitespace().map(str::to_owned).collect(),
        None => item.as_array().into_iter().flatten().filter_map(|flag| flag.as_str().map(str::to_owned)).collect(),
    }
}

/// Cargo's configuration files for a directory, the most general first.
fn config_files(root: &Path) -> Vec<PathBuf> {
    let home = env_vars::CARGO_HOME.get().map(|home| PathBuf::from(home).join("config.toml"));
    let mut files: Vec<PathBuf> = root.ancestors().map(|directory| directory.join(".cargo/config.toml")).collect();
    files.extend(home.filter(|path| !files.contains(path)));
    files.reverse();
    files.retain(|path| path.is_file());
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_read_from_strings_and_arrays() {
        let document: DocumentMut = "a = '-C x=1  -g'\nb = ['-C', 'link-arg=sp ace']".parse().unwrap();
        assert_eq!(flags(&document["a"]), ["-C", "x=1", "-g"]);
        assert_eq!(flags(&document["b"]), ["-C", "link-arg=sp ace"]);
    }

    #[test]
    fn the_compiler_is_described_by_its_fields() {
        let rustc = Rustc { verbose_version: "rustc 1.95.0 (abc)\nhost: aarch64-unknown-linux-gnu\n".into() };
        assert_eq!((rustc.host(), rustc.short_version()), ("aarch64-unknown-linux-gnu", "rustc 1.95.0 (abc)"));
    }
}
