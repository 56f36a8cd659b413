//! What can go wrong while kernels are compiled, in words for the person who started the build.

use std::fmt;
use std::path::PathBuf;

use thiserror::Error;

use super::JOBS_VARIABLE;
use super::host_compiler::HOST_COMPILER_VARIABLE;
use super::toolkit::CUDA_MAJOR_VARIABLE;

/// Why kernels could not be compiled.
///
/// Its debug format is the message too, since that is what Cargo shows when `main` of a build script returns an error.
#[derive(Error)]
#[non_exhaustive]
pub enum KernelsError {
    /// There is no compiler in any of the places.
    #[error(
        "no CUDA compiler found: neither CUDA_PATH nor CUDA_HOME is set, and there is no nvcc in Python packages of the \
         build's interpreter, on PATH, or in /usr/local/cuda, /opt/cuda and /usr/lib/nvidia-cuda-toolkit.{hints}\n\
         Add it to the build requirements in pyproject.toml, beside the build backend:\n\n    \
         [build-system]\n    requires = [\"maturin>=1.16,<2\", \"nvidia-cuda-nvcc>=13\", \"nvidia-cuda-runtime>=13\", \
         \"nvidia-cuda-cccl>=13\"]\n\n\
         or install a CUDA toolkit and set CUDA_HOME to it."
    )]
    NoToolkit {
        /// What was found that is not enough.
        hints: String,
    },

    /// There is no compiler of the major version that the build is for.
    #[error(
        "no compiler of CUDA {major} found, which {CUDA_MAJOR_VARIABLE} asks for.{}\n{}",
        if found.is_empty() { String::new() } else { format!(" Others are there:\n    {}", found.join("\n    ")) },
        if *major < 13 {
            format!(
                "NVIDIA's Python packages have no compiler before CUDA 13: install a toolkit of CUDA {major}, and set CUDA_PATH \
                 or CUDA_HOME to it."
            )
        } else {
            format!("Add \"nvidia-cuda-nvcc=={major}.*\" to [build-system] requires of pyproject.toml, or set CUDA_PATH to such a toolkit.")
        }
    )]
    NoToolkitOfMajor {
        /// The major version.
        major: u32,
        /// Compilers of other versions.
        found: Vec<String>,
    },

    /// The major version that the build is for is no number.
    #[error("{CUDA_MAJOR_VARIABLE} is set to {value:?}: set it to a major version of CUDA, such as 12, or unset it")]
    NotAMajorVersion {
        /// The value.
        value: String,
    },

    /// A variable names a folder that is no toolkit.
    #[error("{variable} is set to {}, and there is no program bin/nvcc in it: correct it, or unset it", root.display())]
    NoCompilerThere {
        /// The variable.
        variable: &'static str,
        /// Its value.
        root: PathBuf,
    },

    /// The compiler does not do what compilers do.
    #[error("{} cannot be used: {reason}\nInstall it again, or set CUDA_HOME to another toolkit.", nvcc.display())]
    BrokenCompiler {
        /// The compiler.
        nvcc: PathBuf,
        /// What it did.
        reason: String,
    },

    /// Several toolkits are there, of different versions, and the build is strict.
    #[error(
        "there are CUDA compilers of different versions, and the build is strict:\n    {chosen}\n    {}\n\
         Set CUDA_HOME to the one that is meant and take the others away from the build, or do not ask for `strict`.",
        others.join("\n    ")
    )]
    Disagreement {
        /// The one that would be used.
        chosen: String,
        /// Those of other versions.
        others: Vec<String>,
    },

    /// A part of the toolkit is not installed.
    #[error(
        "{file} is missing, a part of {toolkit}.\nAdd \"{package}\" to [build-system] requires of pyproject.toml, or \
         install that part of the toolkit."
    )]
    MissingComponent {
        /// The file, or the header as it is included.
        file: String,
        /// The requirement that has it.
        package: String,
        /// The toolkit.
        toolkit: String,
    },

    /// There is no C++ compiler for nvcc to call.
    #[error(
        "no C++ compiler found: there is no g++ on PATH. Install g++, or set {HOST_COMPILER_VARIABLE} to a compiler."
    )]
    NoHostCompiler,

    /// The C++ compiler does not work.
    #[error("the C++ compiler {} cannot be used: {reason}\nSet {HOST_COMPILER_VARIABLE} to another.", path.display())]
    BrokenHostCompiler {
        /// The compiler.
        path: PathBuf,
        /// What it did.
        reason: String,
    },

    /// nvcc refuses compilers newer than it knows.
    #[error(
        "{compiler} is newer than {newest}, the newest that {toolkit} takes.\n{}",
        match candidates.as_slice() {
            [] => format!("Install an older one and set {HOST_COMPILER_VARIABLE} to it, or use a newer CUDA compiler."),
            [first, ..] => format!("Set {HOST_COMPILER_VARIABLE}={} and build again.", first.display()),
        }
    )]
    HostCompilerTooNew {
        /// What was found.
        compiler: String,
        /// The bound.
        newest: String,
        /// The toolkit.
        toolkit: String,
        /// Compilers that would do, the newest first.
        candidates: Vec<PathBuf>,
    },

    /// Not the name of an architecture.
    #[error("{entry:?} is no architecture: give it as \"80\" or \"90a\", or \"all-major\" or \"native\"")]
    NotAnArchitecture {
        /// What was given.
        entry: String,
    },

    /// The compiler does not know what was asked for.
    #[error(
        "{compiler} does not compile for: {unsupported}.\nIt knows: {known}.\nTake them out of the list, use another compiler, \
         or ask for `Unsupported::Intersect` to leave out what it does not know."
    )]
    UnsupportedArchitectures {
        /// What was asked for.
        unsupported: String,
        /// The compiler.
        compiler: String,
        /// Its own list.
        known: String,
    },

    /// `native` was asked for and there is no GPU.
    #[error("the architecture \"native\" needs a GPU that can be seen here: {reason}\nName architectures instead.")]
    NoGpu {
        /// What was tried.
        reason: String,
    },

    /// A pattern leads to no file.
    #[error("no file matches {pattern:?}, relative to {}: correct it, or take it out of the build script", folder.display())]
    NoFiles {
        /// The pattern.
        pattern: String,
        /// The folder of the crate.
        folder: PathBuf,
    },

    /// A pattern that cannot be read.
    #[error("{pattern:?} is no pattern of files: {reason}")]
    BadPattern {
        /// The pattern.
        pattern: String,
        /// Why not.
        reason: String,
    },

    /// Two files would have one module.
    #[error("{first} and {second} would both be the module `{module}`: rename one of them")]
    SameModule {
        /// One file.
        first: String,
        /// The other.
        second: String,
        /// The module.
        module: String,
    },

    /// The compiler refused a file.
    #[error("{file} does not compile:\n{messages}")]
    Compile {
        /// The source.
        file: String,
        /// What the compiler said.
        messages: String,
    },

    /// The system ended the compiler, even when it ran alone.
    #[error(
        "a CUDA compiler was killed, even with one at a time: there is probably too little memory.\n\
         Compile for fewer architectures, divide the source, or give the build more memory."
    )]
    Killed,

    /// The number of jobs is none.
    #[error("{JOBS_VARIABLE} is set to {value:?}: set it to the number of CUDA compilers that may run at once")]
    NotANumberOfJobs {
        /// The value.
        value: String,
    },

    /// Data of the package would not be in the wheel.
    #[error(
        "{file} is written as data of the package, and {} does not say that it belongs to the wheel; a .gitignore that \
         matches it would keep it out.\nAdd this:\n\n    [tool.maturin]\n    \
         include = [{{ path = \"{pattern}\", format = \"wheel\" }}]", pyproject.display()
    )]
    DataNotDeclared {
        /// The file, relative to pyproject.toml.
        file: String,
        /// The pattern to add.
        pattern: String,
        /// Where to add it.
        pyproject: PathBuf,
    },

    /// No place for the output, as when this is not called from a build script.
    #[error(
        "the environment variable {variable} is not set: kernels can be compiled only in a build script that Cargo runs"
    )]
    NotInBuildScript {
        /// The variable that Cargo sets.
        variable: &'static str,
    },

    /// A file could not be read or written.
    #[error("cannot read or write {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },

    /// The interpreter that should say where packages are does not work.
    #[error(transparent)]
    Interpreter(#[from] crate::Error),

    /// The objects of host code could not be put into a library.
    #[error("cannot make a library of the host code: {0}")]
    Archive(#[from] cc::Error),
}

impl KernelsError {
    pub(super) fn file(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }
}

impl fmt::Debug for KernelsError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}
