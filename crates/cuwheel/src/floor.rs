//! Why a wheel cannot keep the promise of its platform tag: which symbol, of which glibc, pulled in by which crate.
//!
//! Not for choosing the promise: `compatibility` in the settings does that.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use cuwheel_inspect::elf::{ElfFile, ExportedVersions, GlibcVersion, exported_versions};
use cuwheel_inspect::objects::{self, Reference};
use cuwheel_inspect::wheel::Wheel;

use crate::error::{Failure, Result};
use crate::inspection;
use crate::maturin::Compilation;
use crate::settings::Linker;

/// Refuses a wheel whose libraries need symbols of a newer glibc than the tag promises.
pub fn check(wheel: &Wheel, promised: GlibcVersion, compilation: &Compilation<'_>) -> Result<()> {
    let glibc = MachineGlibc::read();
    let glibc = glibc.symbols();
    let mut above: Vec<Newer> = Vec::new();
    for entry in wheel.entries().iter().filter(|entry| entry.is_elf()) {
        let content = wheel.read_entry(entry)?;
        let library = ElfFile::parse(&content)?;
        for newer in library.symbols_above(promised) {
            // A version without a symbol is a feature of the loader, such as compact relocations.
            let symbol = newer.symbol().unwrap_or("compact relocations");
            above.push(Newer { symbol: symbol.to_owned(), version: newer.version(), user: entry.path().to_owned() });
        }
        // A linker that knows only older symbols leaves a newer one without a version, for the loader to find or not.
        for symbol in
            library.undefined_symbols().iter().filter(|symbol| symbol.version().is_none() && !symbol.is_weak())
        {
            if let Some(version) = glibc.introduced_in(symbol.name()).filter(|version| *version > promised) {
                above.push(Newer { symbol: symbol.name().to_owned(), version, user: entry.path().to_owned() });
            }
        }
    }
    if above.is_empty() { Ok(()) } else { Err(failure(promised, &above, compilation).into()) }
}

/// Explains a link that failed because symbols are newer than the glibc that is linked against.
pub fn explain_link_failure(stderr: &str, compilation: &Compilation<'_>) -> Option<Failure> {
    let promised = inspection::glibc_of(compilation.compatibility)?;
    let undefined = undefined_symbols(stderr);
    if undefined.is_empty() {
        return None;
    }
    let glibc = MachineGlibc::read();
    let glibc = glibc.symbols();
    let newer: Vec<Newer> = undefined
        .into_iter()
        .filter_map(|symbol| {
            let version = glibc.introduced_in(&symbol)?;
            (version > promised).then(|| Newer { symbol, version, user: "the library".to_owned() })
        })
        .collect();
    (!newer.is_empty()).then(|| failure(promised, &newer, compilation))
}

/// A symbol that a promised glibc does not have.
struct Newer {
    symbol: String,
    version: GlibcVersion,
    user: String,
}

fn failure(promised: GlibcVersion, above: &[Newer], compilation: &Compilation<'_>) -> Failure {
    let names: Vec<&str> = above.iter().map(|newer| newer.symbol.as_str()).collect();
    let references = references(compilation, &names);
    let details = above.iter().map(|Newer { symbol, version, user }| {
        let origins: Vec<String> =
            references.iter().filter(|reference| reference.symbol() == symbol).map(describe_origin).collect();
        let origin = if origins.is_empty() { "an object that was not found".to_owned() } else { origins.join(", ") };
        format!("{user} uses {symbol} of glibc {version}, pulled in by {origin}")
    });
    let newest = above.iter().map(|newer| newer.version).max();
    let mut remedy = String::from("replace what uses the symbol");
    if compilation.linker == Linker::System {
        remedy += ", link with zig (tool.cuwheel.linker = \"zig\")";
    }
    if let Some(newest) = newest {
        let _ = write!(remedy, ", or promise less: --compatibility manylinux_{}_{}", newest.major, newest.minor);
    }
    let count = above.len();
    let subject = if count == 1 { "1 symbol is".to_owned() } else { format!("{count} symbols are") };
    Failure::failed(format!("{subject} newer than glibc {promised}, which {} promises", compilation.compatibility))
        .details(details)
        .remedy(remedy)
}

fn describe_origin(reference: &Reference) -> String {
    let file = reference.file().file_name().unwrap_or_default().to_string_lossy().into_owned();
    let member = reference.member().map_or_else(String::new, |member| format!(", member {member}"));
    match reference.crate_name() {
        Some(name) => format!("crate {name} ({file}{member})"),
        None => format!("{file}{member}"),
    }
}

/// Symbols that a linker did not find: in lld's words, in zig's, and in GNU ld's.
fn undefined_symbols(stderr: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for line in stderr.lines() {
        let rest = line
            .split_once("undefined symbol: ")
            .or_else(|| line.split_once("undefined reference to `"))
            .or_else(|| line.split_once("undefined reference to "));
        let Some((_, rest)) = rest else { continue };
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.' || c == '$')).unwrap_or(rest.len());
        let symbol = rest[..end].to_owned();
        if !symbol.is_empty() && !found.contains(&symbol) {
            found.push(symbol);
        }
    }
    found
}

/// The libraries of this machine's glibc, read once; none where there is no glibc.
struct MachineGlibc(Vec<Vec<u8>>);

impl MachineGlibc {
    fn read() -> Self {
        const DIRECTORIES: &[&str] =
            &["/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu", "/lib64", "/usr/lib64", "/usr/lib", "/lib"];
        const LIBRARIES: &[&str] = &["libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1"];
        let directory = DIRECTORIES.iter().map(Path::new).find(|directory| directory.join(LIBRARIES[0]).is_file());
        let paths = directory.into_iter().flat_map(|directory| LIBRARIES.iter().map(|library| directory.join(library)));
        Self(paths.filter_map(|path| std::fs::read(path).ok()).collect())
    }

    fn symbols(&self) -> MachineSymbols<'_> {
        MachineSymbols(self.0.iter().filter_map(|library| exported_versions(library).ok()).collect())
    }
}

/// What those libraries export.
struct MachineSymbols<'data>(Vec<ExportedVersions<'data>>);

impl MachineSymbols<'_> {
    fn introduced_in(&self, symbol: &str) -> Option<GlibcVersion> {
        self.0.iter().find_map(|library| library.introduced_in(symbol))
    }
}

/// Where the symbols are used, among everything that was compiled for the wheel.
fn references(compilation: &Compilation<'_>, symbols: &[&str]) -> Vec<Reference> {
    let target = compilation.project.target_directory.clone();
    let triple = target.join(compilation.rustc.host());
    let base = if triple.is_dir() { triple } else { target };
    let mut files = Vec::new();
    collect_objects(&base.join("release/deps"), &mut files);
    collect_objects(&base.join("release/build"), &mut files);
    // The standard library comes compiled; the archives beside it belong to sanitizers.
    let mut compiled = Vec::new();
    collect_objects(&compilation.rustc.standard_library_objects(), &mut compiled);
    files.extend(compiled.into_iter().filter(|file| file.extension().is_some_and(|extension| extension == "rlib")));
    // A file that cannot be read is no place that can be named.
    files.iter().flat_map(|file| objects::find_references(file, symbols).unwrap_or_default()).collect()
}

fn collect_objects(directory: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            collect_objects(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rlib" || extension == "a" || extension == "o")
        {
            files.push(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn undefined_symbols_are_read_from_every_linker() {
        let text = "ld.lld: error: undefined symbol: arc4random\n>>> referenced by lib.rs\n\
                    error: undefined symbol: __isoc23_strtol@GLIBC\n\
                    /usr/bin/ld: x.o: undefined reference to `gettid'\n\
                    rust-lld: error: undefined symbol: arc4random\n";
        assert_eq!(undefined_symbols(text), ["arc4random", "__isoc23_strtol", "gettid"]);
    }
}
