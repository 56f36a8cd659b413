//! Flags for rustc that take this machine's paths out of what is compiled, added to the flags that the user set.
//!
//! Not for choosing optimisation or a target: profiles in Cargo.toml do that.

use std::path::{Path, PathBuf};

use crate::cargo_config::{self, CargoConfig, SEPARATOR};
use crate::error::{Failure, Result};
use crate::output::Output;
use crate::process::Process;
use crate::project::Project;

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
    pub fn short_version(&self) -> &str {
        self.verbose_version.lines().next().unwrap_or_default()
    }

    /// The triple that is compiled for.
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

/// The value of `CARGO_ENCODED_RUSTFLAGS` for a build of the project: the user's flags, and ours.
pub fn encoded(project: &Project, rustc: &Rustc, output: &Output) -> Result<String> {
    let users = CargoConfig::read(&project.root)?.rustflags(rustc.host());
    for path in &users.conditional {
        output.warn(format!("rustflags under a cfg(…) target in {} are not applied to wheels", path.display()));
    }
    let mut flags = users.flags;
    let root = project.manifest.workspace_root();
    // Of several prefixes that match, the last one wins: what lies inside comes after what it lies in.
    let mut prefixes: Vec<(PathBuf, String)> = vec![(root.to_path_buf(), format!("/{}", project.distribution()))];
    prefixes.extend(cargo_config::cargo_home().map(|home| (home, "/cargo".to_owned())));
    prefixes.extend(rustc.standard_library(&project.root)?);
    prefixes.push((project.target_directory.clone(), "/target".to_owned()));
    for directory in project.manifest.crate_directories()? {
        if !directory.starts_with(root) {
            let name = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
            prefixes.push((directory, format!("/{name}")));
        }
    }
    flags.extend(prefixes.into_iter().map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display())));
    Ok(flags.join(SEPARATOR))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compiler_is_described_by_its_fields() {
        let rustc = Rustc { verbose_version: "rustc 1.95.0 (abc)\nhost: aarch64-unknown-linux-gnu\n".into() };
        assert_eq!((rustc.host(), rustc.short_version()), ("aarch64-unknown-linux-gnu", "rustc 1.95.0 (abc)"));
    }
}
