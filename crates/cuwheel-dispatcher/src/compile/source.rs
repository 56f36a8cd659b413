//! A source, with everything that decides what becomes of it; and the way from it to an image.

use std::path::PathBuf;

use cuwheel_device_array::Device;

use super::find::Toolchain;
use super::includes::Places;
use super::{Architecture, Cache, CompileError, Search, key, program};
use crate::launch::Image;
use crate::specialize::capability;

/// CUDA C++ in memory, and how it is to be compiled.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Source {
    /// The text.
    pub code: String,
    /// What it is called in messages and line tables.
    pub filename: String,
    /// Options of NVRTC, such as `--std=c++20`.
    pub options: Vec<String>,
    /// Where headers are looked for first.
    pub include_dirs: Vec<PathBuf>,
    /// Headers in memory: the name that they are included by, and the text.
    pub headers: Vec<(String, String)>,
    /// C++ expressions that name kernels, such as `saxpy<float>`. Templates are instantiated for them.
    pub names: Vec<String>,
    /// What it is compiled for; by default a device.
    pub architecture: Option<Architecture>,
    /// The compute capability of that device, 90 for 9.0; by default that of the current one.
    pub capability: Option<u32>,
}

/// What became of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compiled {
    /// The code.
    pub image: Image,
    /// The expressions of the source with their names in the image.
    pub names: Vec<(String, String)>,
    /// What the compiler said, warnings for the most part.
    pub log: String,
}

/// Compiles a source, or takes what the cache has of it.
///
/// The driver is asked only what the current device is, and not even that where the source says what to compile for.
pub fn compile(source: &Source, search: &Search, cache: &Cache) -> Result<Compiled, CompileError> {
    check_options(&source.options)?;
    let Toolchain { nvrtc, include_dirs: of_cuda } = search.toolchain()?;
    let for_device = || {
        let capability = source.capability.map_or_else(current_capability, Ok)?;
        Architecture::for_device(capability, &nvrtc.architectures, &nvrtc.name())
    };
    let architecture = source.architecture.map_or_else(for_device, Ok)?;
    let include_dirs: Vec<PathBuf> = [source.include_dirs.as_slice(), &search.include_dirs, &of_cuda].concat();
    let places = Places { include_dirs: &include_dirs, of_cuda: &of_cuda };
    let key = if cache.is_on() { key::key(source, architecture, places, nvrtc) } else { None };
    if let Some(compiled) = key.and_then(|key| cache.get(&key)) {
        return Ok(compiled);
    }
    let made = program::make(nvrtc, source, architecture, &include_dirs)?;
    let image = Image::new(&made.image).map_err(|error| CompileError::Image { compiler: nvrtc.name(), error })?;
    let compiled = Compiled { image, names: made.names, log: made.log };
    // A header that was changed while the compiler read it belongs to neither key.
    if let Some(key) = key.filter(|key| key::key(source, architecture, places, nvrtc).as_ref() == Some(key)) {
        cache.put(&key, &compiled);
    }
    Ok(compiled)
}

/// The compute capability of the device whose context is current.
fn current_capability() -> Result<u32, CompileError> {
    Device::current().and_then(capability).map_err(CompileError::Device)
}

/// Options that say what is said elsewhere, or ask for what is not taken from the compiler.
fn check_options(options: &[String]) -> Result<(), CompileError> {
    const ELSEWHERE: [(&str, &str); 5] = [
        ("gpu-architecture", "name the architecture by `architecture`"),
        ("arch", "name the architecture by `architecture`"),
        ("dlto", "code for optimisation at link time cannot be loaded"),
        ("relocatable-device-code=true", "code that is to be linked cannot be loaded"),
        ("rdc=true", "code that is to be linked cannot be loaded"),
    ];
    for option in options {
        let name = option.trim().trim_start_matches('-');
        let says =
            |elsewhere: &str| name.strip_prefix(elsewhere).is_some_and(|rest| rest.is_empty() || rest.starts_with('='));
        if let Some((_, remedy)) = ELSEWHERE.iter().find(|(elsewhere, _)| says(elsewhere)) {
            return Err(CompileError::Option { option: option.clone(), remedy });
        }
    }
    Ok(())
}
