//! Every environment variable that the tool reads or sets, in one table.
//!
//! Not for the environment of child processes, which [`crate::process::Process`] builds from these names.

use std::ffi::OsString;
use std::fmt::Write as _;

/// An environment variable with its documentation.
#[derive(Debug)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// One sentence: what it does.
    pub doc: &'static str,
}

impl Variable {
    /// Its value; an empty value counts as unset.
    pub fn get(&self) -> Option<OsString> {
        std::env::var_os(self.name).filter(|value| !value.is_empty())
    }
}

macro_rules! variables {
    ($($(#[doc = $doc:literal])+ $name:ident;)+) => {
        $($(#[doc = $doc])+ pub static $name: Variable = Variable { name: stringify!($name), doc: concat!($($doc),+) };)+
        /// All of them, in the order of the documentation.
        pub static ALL: &[&Variable] = &[$(&$name),+];
    };
}

variables! {
    /// The interpreter to build and test with, where `--python` is not given.
    CUWHEEL_PYTHON;
    /// Where the tool keeps build environments and its own uv, and the library kernels that it compiled;
    /// default `$XDG_CACHE_HOME/cuwheel` or `~/.cache/cuwheel`.
    CUWHEEL_CACHE_DIR;
    /// Set to the header directory of NumPy while crates are compiled; read by `cuwheel-build`, with the next or not at all.
    CUWHEEL_NUMPY_INCLUDE;
    /// Set to the header directory of Python while crates are compiled; read by `cuwheel-build`.
    CUWHEEL_PYTHON_INCLUDE;
    /// The GPU architectures that kernels are compiled for, in place of those of the build script; read by `cuwheel-build`.
    CUWHEEL_KERNEL_ARCHITECTURES;
    /// The one major version of CUDA that kernels are compiled by; set for each of `cuda.majors`, and read by `cuwheel-build`.
    CUWHEEL_CUDA_MAJOR;
    /// How many CUDA compilers a build script may run at once; read by `cuwheel-build`.
    CUWHEEL_KERNEL_JOBS;
    /// Set to 0: importing a project that was installed by `develop --rebuild-on-import` builds nothing.
    CUWHEEL_REBUILD_ON_IMPORT;
    /// Set while tests run: the file that tells the proof plugin what to check.
    CUWHEEL_PROOF;
    /// Set while GPU tests run: the file that tells a worker its devices and the policy.
    CUWHEEL_GPU_WORKER;
    /// The devices that GPU tests may use; set for each worker to those that it is given.
    CUDA_VISIBLE_DEVICES;
    /// Where the loader looks for shared libraries first; while tests run, those of `test.libraries` come before the rest.
    LD_LIBRARY_PATH;
    /// The seconds since 1970 that files in the wheel are stamped with; default 1980-01-01.
    SOURCE_DATE_EPOCH;
    /// The active virtual environment, used for its interpreter; it wins over `CONDA_PREFIX`.
    VIRTUAL_ENV;
    /// The active conda environment, used for its interpreter.
    CONDA_PREFIX;
    /// Where pyenv keeps its interpreters; default `~/.pyenv`.
    PYENV_ROOT;
    /// Set to anything: no colours.
    NO_COLOR;
    /// The base directory of caches.
    XDG_CACHE_HOME;
    /// The home directory.
    HOME;
    /// Where programs are looked for.
    PATH;
    /// Where cargo keeps sources of dependencies; their paths are removed from what is compiled.
    CARGO_HOME;
    /// Where cargo puts what it compiles; default `target` in the workspace.
    CARGO_TARGET_DIR;
    /// The same, with less weight.
    CARGO_BUILD_TARGET_DIR;
    /// Where a CUDA toolkit is looked for first; read by `doctor`, and second by `cuwheel-build`.
    CUDA_HOME;
    /// The same, second; read by `doctor`, and first by `cuwheel-build`.
    CUDA_PATH;
    /// The host compiler that nvcc is told to use; read by `doctor` and `cuwheel-build`.
    NVCC_CCBIN;
    /// The host compiler that `CMake` has nvcc use; read by `doctor`.
    CUDAHOSTCXX;
    /// How many compilers torch's builds run at once; read by `doctor`.
    MAX_JOBS;
    /// How many jobs builds of `CMake` run at once; read by `doctor`.
    CMAKE_BUILD_PARALLEL_LEVEL;
    /// How many jobs cargo runs at once; read by `doctor`.
    CARGO_BUILD_JOBS;
    /// Where temporary files go; its free space is looked at by `doctor`.
    TMPDIR;
    /// Flags for rustc, separated by the unit separator; kept, and added to.
    CARGO_ENCODED_RUSTFLAGS;
    /// Flags for rustc, separated by spaces; kept, and added to.
    RUSTFLAGS;
}

/// Variables with these prefixes change what is compiled, so they are part of the fingerprint of a build.
const BUILD_PREFIXES: &[&str] = &[
    "CARGO_",
    "RUST",
    "CC",
    "CXX",
    "CFLAGS",
    "CXXFLAGS",
    "LDFLAGS",
    "AR",
    "PYO3_",
    "MATURIN_",
    "CUDA_",
    "NVCC_",
    "CUWHEEL_KERNEL_ARCHITECTURES",
    "CUWHEEL_CUDA_MAJOR",
    "SOURCE_DATE_EPOCH",
    "CPATH",
    "C_INCLUDE_PATH",
    "CPLUS_INCLUDE_PATH",
    "LIBRARY_PATH",
    "PKG_CONFIG",
    "CMAKE_",
    "ZIG_",
    "TARGET_",
    "HOST_",
];

/// Set by cargo for whatever it runs, such as this tool: they say nothing about the build.
const SET_BY_CARGO_RUN: &[&str] = &["CARGO_MANIFEST_", "CARGO_PKG_", "CARGO_BIN_", "CARGO_PRIMARY_", "CARGO_CRATE_"];

/// Set by rustup and cargo for whatever they run. They choose a compiler, which is known by its own word; where crates are
/// kept changes nothing that is compiled from them.
const CHOOSE_THE_COMPILER: &[&str] = &["CARGO", "CARGO_HOME", "RUSTUP_", "RUST_BACKTRACE", "RUST_RECURSION_COUNT"];

/// Read by the driver and by tests: they change nothing that is compiled.
const READ_BY_THE_DRIVER: &[&str] = &[
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_MODULE_LOADING",
    "CUDA_CACHE_",
    "CUDA_FORCE_",
    "CUDA_DISABLE_",
    "CUDA_STUB",
];

/// The variables that change what is compiled, sorted by name.
pub fn build_variables() -> Vec<(String, OsString)> {
    let mut variables: Vec<_> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
        .filter(|(name, _)| BUILD_PREFIXES.iter().any(|prefix| name.starts_with(prefix)))
        .filter(|(name, _)| !is_set_by_cargo_run(name) && !says_nothing_of_the_build(name))
        .collect();
    variables.sort();
    variables
}

/// Whether cargo sets the variable for a program that it runs. Such variables are taken out of the environment of every
/// build: seeing or not seeing them would be the only difference between `cargo xtask` and the installed binary.
pub fn is_set_by_cargo_run(name: &str) -> bool {
    SET_BY_CARGO_RUN.iter().any(|prefix| name.starts_with(prefix))
}

fn says_nothing_of_the_build(name: &str) -> bool {
    CHOOSE_THE_COMPILER
        .iter()
        .chain(READ_BY_THE_DRIVER)
        .any(|known| if known.ends_with('_') { name.starts_with(known) } else { name == *known })
}

/// The table for the documentation, as Markdown.
pub fn markdown() -> String {
    let mut text = String::from("| variable | meaning |\n|---|---|\n");
    for variable in ALL {
        let _ = writeln!(text, "| `{}` | {} |", variable.name, variable.doc.trim());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_the_driver_or_rustup_read_is_no_input_of_a_build() {
        let of_no_build = ["CARGO", "CARGO_HOME", "RUSTUP_TOOLCHAIN", "CUDA_LAUNCH_BLOCKING", "CUDA_CACHE_PATH"];
        assert!(of_no_build.into_iter().all(says_nothing_of_the_build));
        let of_builds = ["CARGO_TARGET_DIR", "RUSTFLAGS", "CUDA_HOME", "CUDA_PATH", "CARGO_PROFILE_DEV_DEBUG"];
        assert!(!of_builds.into_iter().any(says_nothing_of_the_build));
    }
}
