//! Which object file wants a symbol: a search through `.o`, `.a` and `.rlib` files.
//!
//! It serves the message that a symbol needs a newer C library, by naming the crate or the object that pulled it in.
//! Nothing is linked or disassembled: a reference that the linker would have dropped is found as well.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use object::read::archive::ArchiveFile;
use object::{Object as _, ObjectSymbol as _};

/// An undefined reference to a symbol in an object file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    file: PathBuf,
    member: Option<String>,
    symbol: String,
}

impl Reference {
    /// The object file or archive.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The object within the archive.
    #[must_use]
    pub fn member(&self) -> Option<&str> {
        self.member.as_deref()
    }

    /// The symbol.
    #[must_use]
    pub fn symbol(&self) -> &str {
        &self.symbol
    }

    /// The Rust crate whose `.rlib` the file is.
    #[must_use]
    pub fn crate_name(&self) -> Option<&str> {
        crate_name(self.file.file_name()?.to_str()?)
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.file_name().unwrap_or_default().to_string_lossy();
        match (self.crate_name(), &self.member) {
            (Some(name), Some(member)) => {
                write!(formatter, "{} is pulled in by crate {name} ({file}, member {member})", self.symbol)
            }
            (_, Some(member)) => write!(formatter, "{} is pulled in by {file}, member {member}", self.symbol),
            (_, None) => write!(formatter, "{} is pulled in by {file}", self.symbol),
        }
    }
}

/// Why a search failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectsError {
    /// A file or directory could not be read.
    #[error("cannot read {}: {source}", .path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is neither an object file nor an archive of them.
    #[error("{} is no ELF object and no archive: {reason}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

/// Finds undefined references to `symbols` in the file at `path`, or in every `.o`, `.a` and `.rlib` file below the
/// directory `path`. Symbols are given without a version.
///
/// Members that are no ELF objects, such as a crate's metadata, are passed over. So are, below a directory, files that
/// cannot be read as what their name says: a build that was stopped leaves some. Symbolic links are not followed.
pub fn find_references(path: &Path, symbols: &[&str]) -> Result<Vec<Reference>, ObjectsError> {
    let mut references = Vec::new();
    if path.is_dir() {
        for file in object_files(path)? {
            match search_file(&file, symbols, &mut references) {
                Err(ObjectsError::Unreadable { .. }) => {}
                result => result?,
            }
        }
    } else {
        search_file(path, symbols, &mut references)?;
    }
    references.sort();
    references.dedup();
    Ok(references)
}

/// The crate that rustc compiled into a file with this name: `foo` for `libfoo-0123456789abcdef.rlib`.
#[must_use]
pub fn crate_name(rlib: &str) -> Option<&str> {
    let stem = rlib.strip_prefix("lib")?.strip_suffix(".rlib")?;
    let name = stem.split('-').next().unwrap_or(stem);
    (!name.is_empty()).then_some(name)
}

fn object_files(directory: &Path) -> Result<Vec<PathBuf>, ObjectsError> {
    let mut files = Vec::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        let error = |source| ObjectsError::Io { path: directory.clone(), source };
        for entry in fs::read_dir(&directory).map_err(error)? {
            let entry = entry.map_err(error)?;
            let kind = entry.file_type().map_err(error)?;
            let path = entry.path();
            if kind.is_dir() {
                directories.push(path);
            } else if kind.is_file() && path.extension().is_some_and(|end| end == "o" || end == "a" || end == "rlib") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

fn search_file(path: &Path, symbols: &[&str], references: &mut Vec<Reference>) -> Result<(), ObjectsError> {
    let data = fs::read(path).map_err(|source| ObjectsError::Io { path: path.to_owned(), source })?;
    let unreadable =
        |error: object::read::Error| ObjectsError::Unreadable { path: path.to_owned(), reason: error.to_string() };
    let mut note = |member: Option<&str>, symbol: &str| {
        let (member, symbol) = (member.map(str::to_owned), symbol.to_owned());
        references.push(Reference { file: path.to_owned(), member, symbol });
    };
    if !data.starts_with(b"!<") {
        let object = object::File::parse(&*data).map_err(unreadable)?;
        undefined(&object, symbols).for_each(|symbol| note(None, symbol));
        return Ok(());
    }
    let archive = ArchiveFile::parse(&*data).map_err(unreadable)?;
    for member in archive.members() {
        let member = member.map_err(unreadable)?;
        // The members of a thin archive are files of their own.
        if member.is_thin() {
            continue;
        }
        let Ok(object) = object::File::parse(member.data(&*data).map_err(unreadable)?) else { continue };
        let name = String::from_utf8_lossy(member.name());
        undefined(&object, symbols).for_each(|symbol| note(Some(&name), symbol));
    }
    Ok(())
}

/// Those of `symbols` that `object` leaves to others. A version after `@` is ignored.
fn undefined<'data>(object: &object::File<'data>, symbols: &[&str]) -> impl Iterator<Item = &'data str> {
    object.symbols().filter(object::ObjectSymbol::is_undefined).filter_map(|symbol| {
        let name = symbol.name().ok()?;
        let name = name.split('@').next().unwrap_or(name);
        symbols.contains(&name).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_are_named_by_their_rlib() {
        for (file, name) in [
            ("libfoo-0123456789abcdef.rlib", Some("foo")),
            ("libfoo_bar-1a2b.rlib", Some("foo_bar")),
            ("libfoo.rlib", Some("foo")),
            ("liblib-1.rlib", Some("lib")),
            ("libfoo.a", None),
            ("foo-1.rlib", None),
            ("lib.rlib", None),
            ("lib-1.rlib", None),
        ] {
            assert_eq!(crate_name(file), name, "{file}");
        }
    }

    #[test]
    fn messages_name_crate_file_and_member() {
        let reference = |file: &str, member: Option<&str>| {
            let member = member.map(str::to_owned);
            Reference { file: Path::new("/t").join(file), member, symbol: "arc4random".to_owned() }.to_string()
        };
        assert_eq!(
            reference("libfoo-12.rlib", Some("foo.o")),
            "arc4random is pulled in by crate foo (libfoo-12.rlib, member foo.o)"
        );
        assert_eq!(reference("libz.a", Some("z.o")), "arc4random is pulled in by libz.a, member z.o");
        assert_eq!(reference("z.o", None), "arc4random is pulled in by z.o");
    }
}
