//! For tests written in Rust: finds the stand-in that cargo built, loads it, and steers it.

use std::ffi::{CStr, CString, c_char};
use std::ops::Range;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use libloading::Library;
use object::read::elf::ElfFile64;
use object::{Endianness, Object as _, ObjectSection as _};

use crate::settings::base_name;

/// Why there is no stand-in to steer.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// Cargo did not leave the library where this test's executable is.
    #[error("there is no libcuda.so beside {0} or above it; make cuda-stub a dev-dependency of the crate under test")]
    NotBuilt(PathBuf),
    /// The loader refused it, or it is not the stand-in.
    #[error("{path} cannot be loaded as the stand-in driver: {source}")]
    NotLoaded {
        /// The file that was tried.
        path: PathBuf,
        /// What the loader says.
        source: libloading::Error,
    },
    /// It is the stand-in, but of other sources than the test.
    #[error("{0} was built from other sources than this test; run `cargo build -p cuda-stub` in the same profile")]
    OtherBuild(PathBuf),
    /// A text of settings was refused; the reason is on stderr.
    #[error("the stand-in refuses the settings `{0}`; the reason is on stderr")]
    Refused(String),
    /// A function that is to be missing is missing anyway.
    #[error("the stand-in has no function {0} that a copy could lack")]
    NoSuchFunction(String),
    /// The file could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
}

/// The library that cargo built for this test: `libcuda.so` in the directory of the running executable, or in `deps` of it or
/// of the directory above.
pub fn path() -> Result<PathBuf, ControlError> {
    let executable = std::env::current_exe()
        .map_err(|source| ControlError::File { path: PathBuf::from("/proc/self/exe"), source })?;
    let directories = executable.ancestors().skip(1).take(2).flat_map(|above| [above.to_owned(), above.join("deps")]);
    let mut candidates = directories.map(|directory| directory.join("libcuda.so"));
    candidates.find(|candidate| candidate.is_file()).ok_or(ControlError::NotBuilt(executable.clone()))
}

/// Makes `target/<profile>/libcuda.so` the library at `current`, if it is another file. The loader finds it first when a test
/// under cargo asks for `libcuda.so`, and only `cargo build` renews it. Another file with the same content will not do: the
/// loader would load it beside.
fn renew_the_built_one(current: &Path) -> Result<(), ControlError> {
    let Some(profile) = current.parent().filter(|deps| deps.ends_with("deps")).and_then(Path::parent) else {
        return Ok(());
    };
    let built = profile.join("libcuda.so");
    let file = |path: &Path, source| ControlError::File { path: path.to_owned(), source };
    let Ok(old) = std::fs::metadata(&built) else { return Ok(()) };
    let new = std::fs::metadata(current).map_err(|source| file(current, source))?;
    if (old.dev(), old.ino()) == (new.dev(), new.ino()) {
        return Ok(());
    }
    // Tests of several processes may do this at once; each gives its link a name of its own and moves it into place.
    let link = profile.join(format!("libcuda.so.{}", std::process::id()));
    std::fs::hard_link(current, &link).map_err(|source| file(&link, source))?;
    std::fs::rename(&link, &built).map_err(|source| file(&built, source))
}

/// Writes a copy of the stand-in, `libcuda.so.1` in `directory`, in which the loader does not find the functions `names`, in any
/// of their versions: how an old driver looks to `dlsym`. `cuGetProcAddress` is told by the setting `missing`.
pub fn copy_without(names: &[&str], directory: &Path) -> Result<PathBuf, ControlError> {
    let original = path()?;
    let file = |path: &Path, source| ControlError::File { path: path.to_owned(), source };
    let mut bytes = std::fs::read(&original).map_err(|source| file(&original, source))?;
    for name in names {
        let mut hidden = 0;
        for symbol in symbol_names(&bytes).map_err(|source| file(&original, source))? {
            if bytes[symbol.clone()].first() == Some(&b'c')
                && std::str::from_utf8(&bytes[symbol.clone()]).is_ok_and(|symbol| base_name(symbol) == *name)
            {
                // The hash of the name is as it was, so that the loader looks here and finds another name.
                bytes[symbol.start] = b'-';
                hidden += 1;
            }
        }
        if hidden == 0 {
            return Err(ControlError::NoSuchFunction((*name).to_owned()));
        }
    }
    let copy = directory.join("libcuda.so.1");
    std::fs::write(&copy, bytes).map_err(|source| file(&copy, source))?;
    Ok(copy)
}

/// Where in a library the names of its dynamic symbols are.
fn symbol_names(library: &[u8]) -> std::io::Result<Vec<Range<usize>>> {
    let broken = || std::io::Error::from(std::io::ErrorKind::InvalidData);
    let elf = ElfFile64::<Endianness>::parse(library).map_err(|_| broken())?;
    let section = elf.section_by_name(".dynstr").and_then(|section| section.file_range()).ok_or_else(broken)?;
    let (start, length) = (crate::index(section.0), crate::index(section.1));
    let table = library.get(start..start + length).ok_or_else(broken)?;
    let mut at = start;
    let names = table.split(|byte| *byte == 0).map(|name| {
        let range = at..at + name.len();
        at = range.end + 1;
        range
    });
    Ok(names.collect())
}

/// The loaded stand-in. It stays loaded for the rest of the process, as a driver does.
pub struct Stub {
    library: &'static Library,
}

impl Stub {
    /// Loads the library that [`path`] finds.
    pub fn load() -> Result<Self, ControlError> {
        let path = path()?;
        renew_the_built_one(&path)?;
        Self::load_from(&path)
    }

    /// The stand-in with two devices and an empty record, for one test at a time: the driver and its record are of the
    /// process. The first call comes before anything looks for a driver.
    ///
    /// # Panics
    /// If the stand-in cannot be loaded.
    pub fn alone() -> (&'static Self, MutexGuard<'static, ()>) {
        static ALONE: Mutex<()> = Mutex::new(());
        static STUB: OnceLock<Stub> = OnceLock::new();
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let stub = STUB.get_or_init(|| {
            let stub = Self::load().expect("cargo builds the stand-in for the tests that depend on it");
            stub.configure("devices=2").expect("the setting is one of the stand-in's");
            stub
        });
        stub.reset();
        (stub, alone)
    }

    /// Loads the library at an absolute path. Whoever asks the loader for `libcuda.so.1` afterwards gets it too.
    pub fn load_from(path: &Path) -> Result<Self, ControlError> {
        let not_loaded = |source| ControlError::NotLoaded { path: path.to_owned(), source };
        // SAFETY: the stand-in runs no code when it is loaded.
        let library = unsafe { Library::new(path) }.map_err(not_loaded)?;
        // It is never unloaded: threads and exit handlers of the process hold on to it.
        let library: &'static Library = Box::leak(Box::new(library));
        // SAFETY: only the stand-in has a function of this name, and it gives a text that lasts.
        let build = unsafe {
            let build =
                library.get::<unsafe extern "C" fn() -> *const c_char>(b"cudaStubBuild\0").map_err(not_loaded)?;
            CStr::from_ptr(build())
        };
        if build.to_bytes_with_nul() != crate::BUILD.as_bytes() {
            return Err(ControlError::OtherBuild(path.to_owned()));
        }
        Ok(Self { library })
    }

    /// Applies settings, in the grammar of the variable `CUDA_STUB`.
    pub fn configure(&self, settings: &str) -> Result<(), ControlError> {
        let refused = || ControlError::Refused(settings.to_owned());
        let text = CString::new(settings).map_err(|_| refused())?;
        // SAFETY: the stand-in exports the function with this signature, and the text outlives the call.
        let answer = unsafe {
            self.function::<unsafe extern "C" fn(*const c_char) -> i32>(b"cudaStubConfigure\0")(text.as_ptr())
        };
        if answer == 0 { Ok(()) } else { Err(refused()) }
    }

    /// Forgets the record, disarms faults and revives contexts. What is alive stays alive.
    pub fn reset(&self) {
        // SAFETY: the stand-in exports the function with this signature.
        unsafe { self.function::<unsafe extern "C" fn()>(b"cudaStubReset\0")() }
    }

    /// The record; null in a forked child. `docs/stand-in-driver.md` describes its fields.
    pub fn report(&self) -> serde_json::Value {
        // SAFETY: the stand-in exports the function with this signature; the text is copied before anyone can ask again,
        // unless another thread does so at once, which tests that share a report have to prevent anyway.
        let text = unsafe {
            let text = self.function::<unsafe extern "C" fn() -> *const c_char>(b"cudaStubReport\0")();
            if text.is_null() { String::new() } else { CStr::from_ptr(text).to_string_lossy().into_owned() }
        };
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// A function of the library.
    ///
    /// # Panics
    /// When there is no function called `symbol`.
    ///
    /// # Safety
    /// `T` is the type of the function pointer that `symbol`, ended by a zero, has in `cuda.h`.
    pub unsafe fn function<T: Copy>(&self, symbol: &[u8]) -> T {
        // SAFETY: the caller's promise.
        let found = unsafe { self.library.get::<T>(symbol) };
        *found.unwrap_or_else(|error| panic!("the stand-in lacks a function: {error}"))
    }
}
