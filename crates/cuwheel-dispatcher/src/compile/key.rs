//! What a cached image is known by: a hash over everything that decides what the compiler makes.

use sha2::{Digest as _, Sha256};

use super::includes::{self, Places};
use super::nvrtc::Nvrtc;
use super::{Architecture, Source};

/// Changes whenever what is kept, or how it is made, does.
const FORMAT: &str = "cuwheel kernel 1";

/// Options by which the compiler reads or writes files that are not looked at here, by the beginning of their names
/// without hyphens. What they do must not be left out because an image is known.
const FILE_OPTIONS: [&str; 10] = [
    "I",
    "create-pch",
    "fdevice-time-trace",
    "include",
    "instantiate-templates-in-pch",
    "isystem",
    "pch",
    "pre-include",
    "time",
    "use-pch",
];

/// The key of a source; `None` if there is something about it that cannot be known.
pub(super) fn key(source: &Source, architecture: Architecture, places: Places<'_>, nvrtc: &Nvrtc) -> Option<[u8; 32]> {
    if source.options.iter().any(|option| names_files(option)) {
        return None;
    }
    let mut hash = Fields(Sha256::new());
    hash.add(FORMAT);
    hash.add(env!("CARGO_PKG_VERSION"));
    hash.add(nvrtc.name());
    hash.add(nvrtc.identity()?);
    hash.add(architecture.to_string());
    hash.add(&source.filename);
    hash.add(&source.code);
    hash.add_all(&source.options);
    hash.add_all(&source.names);
    hash.add_all(source.headers.iter().flat_map(|(name, content)| [name, content]));
    // Names of files are in what is compiled, by __FILE__ and line tables.
    hash.add_all(places.include_dirs.iter().map(|directory| directory.as_os_str().as_encoded_bytes()));
    for header in includes::headers(source, places)? {
        hash.add(header.path.as_os_str().as_encoded_bytes());
        hash.add(header.hash);
    }
    Some(hash.0.finalize().into())
}

fn names_files(option: &str) -> bool {
    let name = option.trim().trim_start_matches('-');
    // A file of options may hold any of them.
    name.starts_with('@') || FILE_OPTIONS.iter().any(|other| name.starts_with(other))
}

/// A hash over fields, none of which can end where another begins.
struct Fields(Sha256);

impl Fields {
    fn add(&mut self, field: impl AsRef<[u8]>) {
        let field = field.as_ref();
        self.0.update((field.len() as u64).to_le_bytes());
        self.0.update(field);
    }

    fn add_all(&mut self, fields: impl IntoIterator<Item = impl AsRef<[u8]>>) {
        let fields: Vec<_> = fields.into_iter().collect();
        self.add((fields.len() as u64).to_le_bytes());
        for field in fields {
            self.add(field);
        }
    }
}
