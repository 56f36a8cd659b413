//! Images in the hands of the driver: loaded at first use, for all devices at once, and unloaded after the last.

use std::ffi::{CStr, CString, c_char, c_void};
use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use cudarc::driver::sys;
use cuwheel_device_array::{Device, DriverError, defer_error, unaffected_by_captures};

use super::driver::Api;
use super::{Code, Image, Kernel, LaunchError, Signature};

/// An image, and once it is used what the driver made of it. Clones are the same module.
///
/// Work that is under way when the last user is gone is waited for by the driver. A graph does not count as a user: who
/// keeps a captured launch keeps its kernel.
#[derive(Clone)]
pub struct Module(Arc<Inner>);

struct Inner {
    image: Image,
    names: Box<[(String, String)]>,
    library: OnceLock<Library>,
    /// Held while the image is loaded, so that this happens once.
    loading: Mutex<()>,
}

/// A loaded image.
struct Library {
    handle: usize,
    /// The driver may write to it for as long as the library is loaded, since it compiles for a device when a kernel is
    /// first used there.
    log: Option<Log>,
}

impl Module {
    /// The module of an image. The driver is not asked yet.
    pub fn new(image: Image) -> Self {
        Self::with_names(image, Vec::new())
    }

    /// The module of an image whose kernels have other names too, such as the C++ expressions that stand for them: each with
    /// the one in the image.
    pub fn with_names(image: Image, names: Vec<(String, String)>) -> Self {
        let names = names.into_boxed_slice();
        Self(Arc::new(Inner { image, names, library: OnceLock::new(), loading: Mutex::new(()) }))
    }

    /// The image.
    pub fn image(&self) -> &Image {
        &self.0.image
    }

    /// Other names of kernels, each with the one in the image.
    pub fn names(&self) -> &[(String, String)] {
        &self.0.names
    }

    /// The kernel with this name, which is looked for when it is first used. C++ mangles names unless a kernel is declared
    /// `extern "C"`.
    ///
    /// Without a signature the driver tells the number and the sizes of the parameters, from CUDA 12.4 on.
    pub fn kernel(&self, name: &str, signature: Option<Signature>) -> Kernel {
        Kernel::new(self.clone(), name, signature)
    }

    /// The names of all kernels, sorted. Needs a driver for CUDA 12.4 or newer.
    pub fn kernel_names(&self) -> Result<Vec<String>, LaunchError> {
        let api = Api::get()?;
        let library = self.library(api)?;
        let mut count = 0;
        // SAFETY: the pointer is to a local variable, and the library is loaded.
        unsafe { api.cuLibraryGetKernelCount(&raw mut count, library as sys::CUlibrary) }?;
        let mut kernels = vec![std::ptr::null_mut(); count as usize];
        // SAFETY: there is room for as many handles as is said.
        unsafe { api.cuLibraryEnumerateKernels(kernels.as_mut_ptr(), count, library as sys::CUlibrary) }?;
        let mut names = Vec::with_capacity(kernels.len());
        for kernel in kernels {
            let mut name: *const c_char = std::ptr::null();
            // SAFETY: the kernel is one of a library that is loaded, and the pointer is to a local variable.
            unsafe { api.cuKernelGetName(&raw mut name, kernel) }?;
            if !name.is_null() {
                // SAFETY: the driver gives a text that ends in a zero and lasts as long as the library.
                names.push(unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned());
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// The library, loaded by the first call.
    fn library(&self, api: Api) -> Result<usize, LaunchError> {
        let Inner { image, library, loading, .. } = &*self.0;
        if let Some(library) = library.get() {
            return Ok(library.handle);
        }
        let _alone = loading.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(library) = library.get() {
            return Ok(library.handle);
        }
        // The image is not tied to a device, but the driver wants one to be in use.
        let device = Device::current()?;
        let _guard = device.enter()?;
        let log = matches!(image.kind(), super::ImageKind::Ptx | super::ImageKind::Fatbin).then(Log::new);
        let mut handle: sys::CUlibrary = std::ptr::null_mut();
        let (count, keys, values) = log.as_ref().map_or((0, 0, 0), Log::options);
        let loaded = unaffected_by_captures(|| {
            let none = std::ptr::null_mut::<c_void>();
            // SAFETY: the image was checked to be as long as its headers say, and PTX ends in a zero. The options are as
            // many as is said; their memory stays as long as the library.
            unsafe {
                api.cuLibraryLoadData(
                    &raw mut handle,
                    image.as_ptr().cast(),
                    keys as *mut sys::CUjit_option,
                    values as *mut *mut c_void,
                    count,
                    none.cast(),
                    none.cast(),
                    0,
                )
            }
        });
        if let Err(error) = loaded {
            let log = log.map(|log| log.text()).unwrap_or_default();
            return Err(self.not_loaded(error, device, &log));
        }
        Ok(library.get_or_init(|| Library { handle: handle as usize, log }).handle)
    }

    /// The kernel's handle.
    pub(super) fn find(&self, api: Api, name: &str) -> Result<usize, LaunchError> {
        let library = self.library(api)?;
        let mut kernel: sys::CUkernel = std::ptr::null_mut();
        let other = self.names().iter().find(|(other, _)| other == name);
        let text = CString::new(other.map_or(name, |(_, in_image)| in_image)).unwrap_or_default();
        // SAFETY: the pointer is to a local variable, the library is loaded, and the text ends in a zero.
        let found = unsafe { api.cuLibraryGetKernel(&raw mut kernel, library as sys::CUlibrary, text.as_ptr()) };
        match found {
            Ok(()) => Ok(kernel as usize),
            // A driver that loads lazily says only now that it cannot.
            Err(error) if error.cuda().is_some_and(|error| error.code != NOT_FOUND) => {
                Err(self.not_loaded(error, Device::current()?, &self.log()))
            }
            Err(error) => {
                let what = || format!("there is no kernel {name:?} in the {}", self.image().kind().name());
                Err(LaunchError::refused(error, what, || self.name_remedy(name)))
            }
        }
    }

    /// Names that there are, the likeliest first.
    fn name_remedy(&self, name: &str) -> String {
        const MOST: usize = 8;
        let Ok(mut names) = self.kernel_names() else {
            return "C++ mangles names: declare the kernel extern \"C\", or ask `cuobjdump -elf` for its name"
                .to_owned();
        };
        // A mangled name contains the one that was written.
        names.sort_by_key(|known| !known.contains(name));
        // One with another name is shown by that.
        for name in &mut names {
            if let Some((other, _)) = self.names().iter().find(|(_, in_image)| in_image == name) {
                name.clone_from(other);
            }
        }
        let more = if names.len() > MOST { ", …" } else { "" };
        names.truncate(MOST);
        match names.as_slice() {
            [] => "the image has no kernels".to_owned(),
            names => format!("the image has {}{more}; C++ mangles names that are not extern \"C\"", names.join(", ")),
        }
    }

    /// What the driver's refusal of the image for `device` means.
    pub(super) fn not_loaded(&self, error: DriverError, device: Device, log: &str) -> LaunchError {
        let image = self.image();
        let what = || format!("the {} was not loaded", image.kind().name());
        let code = error.cuda().map_or(0, |error| error.code);
        let remedy = || match log.trim_end() {
            "" => explain(image, device),
            // The text is wrong, not what it is for.
            log if code == INVALID_PTX => format!("the driver says: {log}"),
            log => format!("{}; the driver says: {log}", explain(image, device)),
        };
        LaunchError::refused(error, what, remedy)
    }

    /// What the driver's compiler has said so far.
    pub(super) fn log(&self) -> String {
        self.0.library.get().and_then(|library| library.log.as_ref()).map(Log::text).unwrap_or_default()
    }

    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.image == other.0.image && self.0.names == other.0.names
    }
}

/// `CUDA_ERROR_INVALID_PTX`.
const INVALID_PTX: u32 = 218;
/// `CUDA_ERROR_NOT_FOUND`.
const NOT_FOUND: u32 = 500;

/// What is inside, and what the device needs.
fn explain(image: &Image, device: Device) -> String {
    let codes: Vec<String> = image.codes().iter().map(Code::to_string).collect();
    let inside = if codes.is_empty() { "no code that can be told".to_owned() } else { codes.join(", ") };
    match device.compute_capability() {
        Ok((major, minor)) => format!(
            "the image has {inside}, and {device} needs machine code for sm_{major}{minor} or an older sm_{major}x, or PTX \
             for compute_{major}{minor} or older; compile with -arch=sm_{major}{minor}"
        ),
        Err(_) => format!("the image has {inside}"),
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Module").field(self.image()).finish()
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        let unload = || {
            let api = Api::get()?;
            // SAFETY: the library was loaded here, and this is the last that knows it; kernels keep their module.
            unaffected_by_captures(|| unsafe { api.cuLibraryUnload(self.handle as sys::CUlibrary) })
        };
        defer_error("unloading an image", unload());
    }
}

const LOG_BYTES: usize = 8192;

/// A place for what the driver's compiler says, with the options that tell the driver of it.
struct Log {
    buffer: *mut [u8; LOG_BYTES],
    options: *mut ([sys::CUjit_option; 2], [usize; 2]),
}

// SAFETY: the memory belongs to the value; only the driver writes to it, which sees to its own threads.
unsafe impl Send for Log {}
// SAFETY: as above; reading text that is being written gives part of it.
unsafe impl Sync for Log {}

impl Log {
    fn new() -> Self {
        let buffer = Box::into_raw(Box::new([0; LOG_BYTES]));
        let keys = [sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER, sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
        let options = Box::into_raw(Box::new((keys, [buffer.expose_provenance(), LOG_BYTES])));
        Self { buffer, options }
    }

    /// The number of options, and the addresses of their keys and values.
    fn options(&self) -> (u32, usize, usize) {
        // SAFETY: the memory lives as long as this value; only addresses are taken.
        let (keys, values) = unsafe { (&raw mut (*self.options).0, &raw mut (*self.options).1) };
        (2, keys.expose_provenance(), values.expose_provenance())
    }

    fn text(&self) -> String {
        // SAFETY: the memory lives as long as this value, and the index is within it. The driver may be writing.
        let byte = |index| unsafe { AtomicU8::from_ptr(self.buffer.cast::<u8>().add(index)) }.load(Ordering::Relaxed);
        let bytes: Vec<u8> = (0..LOG_BYTES).map(byte).take_while(|byte| *byte != 0).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        // SAFETY: both were boxes, and the library that the driver knew them for is unloaded: fields are dropped after it.
        unsafe {
            drop(Box::from_raw(self.buffer));
            drop(Box::from_raw(self.options));
        }
    }
}
