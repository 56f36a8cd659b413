//! NVRTC's library, loaded: its version, what it makes code for, and what tells it from other builds of it.

use std::collections::BTreeMap;
use std::ffi::{CStr, OsStr, c_int};
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use libloading::Library;
use sha2::{Digest as _, Sha256};

use super::functions::Functions;

/// The oldest NVRTC that is used: it has what the oldest driver that is supported has.
const OLDEST: (i32, i32) = (12, 2);

/// A library of NVRTC. It stays loaded for good: it keeps threads and caches of its own.
#[derive(Debug)]
pub(super) struct Nvrtc {
    pub(super) functions: Functions,
    /// Major and minor, such as (13, 0).
    pub(super) version: (i32, i32),
    /// The file, if the loader tells.
    pub(super) path: Option<PathBuf>,
    /// What it makes code for, such as 90 for 9.0.
    pub(super) architectures: Box<[u32]>,
    identity: OnceLock<Option<[u8; 32]>>,
}

impl Nvrtc {
    /// The library under a name or a path, loaded once; the error is why it cannot be used.
    pub(super) fn load(name: &OsStr) -> Result<&'static Self, String> {
        static LOADED: Mutex<BTreeMap<Box<OsStr>, &Nvrtc>> = Mutex::new(BTreeMap::new());
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = loaded.get(name) {
            return Ok(known);
        }
        let nvrtc: &'static Self = Box::leak(Box::new(Self::open(name)?));
        loaded.insert(name.into(), nvrtc);
        Ok(nvrtc)
    }

    fn open(name: &OsStr) -> Result<Self, String> {
        // SAFETY: the initialisers of the library expect nothing of who loads it; that is its makers' promise.
        let library = unsafe { Library::new(name) }.map_err(|error| {
            std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string)
        })?;
        let library: &'static Library = Box::leak(Box::new(library));
        let functions = Functions::load(library)?;
        let (mut major, mut minor) = (0, 0);
        // SAFETY: the pointers are to local variables.
        let code = unsafe { (functions.nvrtcVersion)(&raw mut major, &raw mut minor) };
        if code != 0 {
            return Err(format!("it does not tell its version: {}", functions.name_of(code)));
        }
        if (major, minor) < OLDEST {
            return Err(format!("it is of CUDA {major}.{minor}, and 12.2 or newer is needed"));
        }
        let architectures = architectures(&functions)?;
        let path = file_of(functions.nvrtcVersion as *const ());
        Ok(Self { functions, version: (major, minor), path, architectures, identity: OnceLock::new() })
    }

    /// The name for messages.
    pub(super) fn name(&self) -> String {
        format!("NVRTC {}.{}", self.version.0, self.version.1)
    }

    /// What differs between two builds of the same version. `None` if the file cannot be read: then nothing that it made
    /// can be told from what another made.
    pub(super) fn identity(&self) -> Option<[u8; 32]> {
        *self.identity.get_or_init(|| {
            let path = self.path.as_deref()?;
            let mut hash = Sha256::new();
            sample(path, &mut hash)?;
            // What the compiler declares by itself is in a library of its own beside it.
            let directory = std::fs::read_dir(path.parent()?).ok()?.filter_map(Result::ok).map(|entry| entry.path());
            let is_builtins = |path: &PathBuf| {
                path.file_name().is_some_and(|name| name.as_bytes().starts_with(b"libnvrtc-builtins.so"))
            };
            let mut beside: Vec<PathBuf> = directory.filter(is_builtins).collect();
            beside.sort();
            for path in beside {
                sample(&path, &mut hash)?;
            }
            Some(hash.finalize().into())
        })
    }
}

/// Blocks from everywhere in a file. Two builds of a compiler are of different length or differ nearly everywhere; reading
/// all of a hundred megabytes would take longer than to compile.
fn sample(path: &Path, hash: &mut Sha256) -> Option<()> {
    const BLOCKS: u64 = 512;
    const BLOCK_BYTES: usize = 4096;
    let mut file = File::open(path).ok()?;
    let size = file.metadata().ok()?.len();
    hash.update(size.to_le_bytes());
    let step = size.div_ceil(BLOCKS).max(BLOCK_BYTES as u64);
    let mut block = [0; BLOCK_BYTES];
    for start in (0..size).step_by(usize::try_from(step).ok()?) {
        file.seek(SeekFrom::Start(start)).ok()?;
        let length = usize::try_from(size - start).unwrap_or(usize::MAX).min(BLOCK_BYTES);
        file.read_exact(&mut block[..length]).ok()?;
        hash.update(&block[..length]);
    }
    Some(())
}

fn architectures(functions: &Functions) -> Result<Box<[u32]>, String> {
    let no_list = |code| format!("it does not tell its architectures: {}", functions.name_of(code));
    let mut count = 0;
    // SAFETY: the pointer is to a local variable.
    let code = unsafe { (functions.nvrtcGetNumSupportedArchs)(&raw mut count) };
    if code != 0 {
        return Err(no_list(code));
    }
    let mut found: Vec<c_int> = vec![0; usize::try_from(count).unwrap_or(0)];
    // SAFETY: there is room for as many as is said.
    let code = unsafe { (functions.nvrtcGetSupportedArchs)(found.as_mut_ptr()) };
    if code != 0 {
        return Err(no_list(code));
    }
    Ok(found.into_iter().filter_map(|number| u32::try_from(number).ok()).collect())
}

/// The file that an address of a library is mapped from.
fn file_of(address: *const ()) -> Option<PathBuf> {
    // SAFETY: zeros are valid for a structure of addresses.
    let mut found: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: any address may be asked for, and the pointer is to a local variable.
    if unsafe { libc::dladdr(address.cast(), &raw mut found) } == 0 || found.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the loader's text ends in a zero, and lasts as long as the library, which is never unloaded.
    let name = unsafe { CStr::from_ptr(found.dli_fname) };
    std::fs::canonicalize(OsStr::from_bytes(name.to_bytes())).ok()
}
