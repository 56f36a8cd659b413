//! One file through nvcc, unless what came of it last time still holds.
//!
//! What was compiled is remembered by content: of the source, of every header that the compiler read, and of what it was
//! called with. Times of modification decide nothing. A folder with a result appears by a rename.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::jobs::Ended;
use super::ptx::{self, Entry};
use super::record::{Contents, Digest, Record, dependencies};
use super::{HostCompiler, KernelsError, Toolkit};

/// Variables that nvcc and the host compiler read.
pub(crate) const COMPILER_VARIABLES: [&str; 4] =
    ["NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "CPATH", "CPLUS_INCLUDE_PATH"];

/// Since this major version, the compiler can be told the path that it makes names from.
const NAMES_FROM_PATHS_SINCE: u32 = 13;

/// What a file becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A fatbin, which the driver loads.
    Image,
    /// An object file with host code and the GPU code that it launches.
    Object,
}

/// A file to compile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unit {
    pub(super) kind: Kind,
    /// Relative to the crate.
    pub(super) source: PathBuf,
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Product {
    pub(super) output: PathBuf,
    /// The kernels of an image.
    pub(super) entries: Vec<Entry>,
    /// What the source includes and is not of the toolkit or the system.
    pub(super) headers: Vec<PathBuf>,
    pub(super) was_compiled: bool,
}

/// How files are compiled.
#[derive(Debug)]
pub(super) struct Compiler<'a> {
    pub(super) toolkit: &'a Toolkit,
    pub(super) host: &'a HostCompiler,
    /// Options that hold no path of the machine.
    pub(super) options: Vec<OsString>,
    /// More of them, for object files.
    pub(super) object_options: Vec<OsString>,
    /// Values of [`COMPILER_VARIABLES`].
    pub(super) variables: Vec<OsString>,
    /// The folder of the crate.
    pub(super) crate_folder: &'a Path,
    /// Where results are kept.
    pub(super) cache: &'a Path,
    pub(super) contents: Contents,
}

impl Compiler<'_> {
    /// The result, from the last time or made now.
    pub(super) fn product(&self, unit: &Unit) -> Ended<Product> {
        match self.attempt(unit) {
            Ok(Some(product)) => Ended::Done(product),
            Ok(None) => Ended::Killed,
            Err(error) => Ended::Failed(error),
        }
    }

    /// Nothing, if the compiler was killed.
    fn attempt(&self, unit: &Unit) -> Result<Option<Product>, KernelsError> {
        let options = self.options_of(unit);
        let key = self.key(&options);
        let folder = self.folder_of(unit);
        let toolkit_root = self.toolkit.roots[0].canonicalize().unwrap_or_else(|_| self.toolkit.roots[0].clone());
        if let Some(record) = Record::read(&folder.join("record"))
            && record.key == key
            && record.holds(self.crate_folder, &toolkit_root, &self.contents)
        {
            return product(unit, &folder, &record, self.crate_folder, false).map(Some);
        }
        let new = folder.with_extension("new");
        let _ = fs::remove_dir_all(&new);
        let kept = new.join("kept");
        fs::create_dir_all(&kept).map_err(KernelsError::file(&kept))?;
        if !self.compile(unit, &options, &new, &kept)? {
            return Ok(None);
        }
        if unit.kind == Kind::Image {
            let text = texts(&kept)?;
            fs::write(new.join("kernels.ptx"), text).map_err(KernelsError::file(new.join("kernels.ptx")))?;
        }
        let list = new.join("dependencies");
        let files = dependencies(&fs::read(&list).map_err(KernelsError::file(&list))?);
        let record = Record::of(key, &files, self.crate_folder, &toolkit_root, &self.contents)
            .map_err(KernelsError::file(&list))?;
        fs::remove_dir_all(&kept).map_err(KernelsError::file(&kept))?;
        record.write(&new.join("record")).map_err(KernelsError::file(new.join("record")))?;
        let _ = fs::remove_dir_all(&folder);
        fs::rename(&new, &folder).map_err(KernelsError::file(&folder))?;
        product(unit, &folder, &record, self.crate_folder, true).map(Some)
    }

    fn folder_of(&self, unit: &Unit) -> PathBuf {
        let mut digest = Digest::new();
        digest.add(unit.source.as_os_str().as_bytes());
        digest.add(&[u8::from(unit.kind == Kind::Image)]);
        self.cache.join(&digest.finish()[..16])
    }

    fn options_of(&self, unit: &Unit) -> Vec<OsString> {
        let mut options = self.options.clone();
        match unit.kind {
            Kind::Image => options.push("-fatbin".into()),
            Kind::Object => {
                options.push("-c".into());
                options.extend(self.object_options.iter().cloned());
            }
        }
        if self.toolkit.version.0 >= NAMES_FROM_PATHS_SINCE {
            // The compiler derives names of what is private to a file from the file's whole path. A name that is made of the
            // path in the crate gives the same bytes in every folder.
            let mut digest = Digest::new();
            digest.add(unit.source.as_os_str().as_bytes());
            options.push("-Xcudafe".into());
            options.push(format!("--orig_src_path_name=/{}", &digest.finish()[..16]).into());
        }
        options
    }

    fn key(&self, options: &[OsString]) -> String {
        let mut digest = Digest::new();
        for text in ["1", &self.toolkit.identity, &self.host.identity] {
            digest.add(text.as_bytes());
        }
        for text in options.iter().chain(&self.variables) {
            digest.add(text.as_bytes());
        }
        digest.finish()
    }

    /// Whether the compiler came to its end.
    fn compile(&self, unit: &Unit, options: &[OsString], new: &Path, kept: &Path) -> Result<bool, KernelsError> {
        let nvcc = &self.toolkit.nvcc;
        let mut command = Command::new(nvcc);
        command.current_dir(self.crate_folder).stdin(Stdio::null()).args(options);
        command.arg("-ccbin").arg(&self.host.path);
        for folder in self.toolkit.include_folders() {
            command.arg("-isystem").arg(folder);
        }
        if let Some(flag) = prefix_map(nvcc) {
            command.arg("-Xcompiler").arg(flag);
        }
        // Files in between have names of the process unless they are kept, and objects hold such names.
        command.arg("--keep").arg("--keep-dir").arg(kept);
        command.arg("-MD").arg("-MF").arg(new.join("dependencies"));
        command.arg("-o").arg(new.join("output")).arg(&unit.source);
        println!("running: {command:?}");
        let output = command.output().map_err(|error| KernelsError::BrokenCompiler {
            nvcc: nvcc.clone(),
            reason: format!("it cannot be started: {error}"),
        })?;
        self.judge(unit, &output)
    }

    fn judge(&self, unit: &Unit, output: &Output) -> Result<bool, KernelsError> {
        let messages =
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        if output.status.success() {
            // The same warning comes once for each architecture.
            let mut seen = BTreeSet::new();
            for line in messages.lines().filter(|line| !line.trim().is_empty() && seen.insert(*line)) {
                println!("cargo:warning={line}");
            }
            return Ok(true);
        }
        let was_killed = output.status.signal() == Some(9)
            || output.status.code() == Some(137)
            || messages.contains("died due to signal 9")
            || messages.contains("Killed signal terminated program");
        if was_killed {
            return Ok(false);
        }
        if let Some((header, package)) = missing_header(&messages) {
            let (file, toolkit) = (format!("the header {header}"), self.toolkit.to_string());
            return Err(KernelsError::MissingComponent { file, package: self.toolkit.package(package), toolkit });
        }
        let file = unit.source.display().to_string();
        Err(KernelsError::Compile { file, messages: messages.trim_end().to_owned() })
    }
}

fn product(
    unit: &Unit,
    folder: &Path,
    record: &Record,
    crate_folder: &Path,
    was_compiled: bool,
) -> Result<Product, KernelsError> {
    let entries = if unit.kind == Kind::Image {
        let path = folder.join("kernels.ptx");
        let text = fs::read_to_string(&path).map_err(KernelsError::file(&path))?;
        ptx::entries(&text).map_err(|reason| KernelsError::Compile {
            file: unit.source.display().to_string(),
            messages: format!("the PTX that the compiler made cannot be read: {reason}"),
        })?
    } else {
        Vec::new()
    };
    let mut entries = entries;
    // One text for each architecture, most of them with the same kernels.
    entries.dedup_by(|one, other| one.symbol == other.symbol);
    let headers = record.headers_of_the_project(crate_folder);
    Ok(Product { output: folder.join("output"), entries, headers, was_compiled })
}

/// The PTX of each architecture, one after the other.
fn texts(kept: &Path) -> Result<Vec<u8>, KernelsError> {
    let entries = fs::read_dir(kept).map_err(KernelsError::file(kept))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension() == Some(OsStr::new("ptx")));
    files.sort();
    let mut text = Vec::new();
    for file in files {
        text.extend(fs::read(&file).map_err(KernelsError::file(&file))?);
    }
    Ok(text)
}

/// Takes the toolkit's place on this machine out of messages in the code. nvcc divides the option at commas and spaces, and
/// compilers end a path at `=`: a toolkit in such a place is left as it is.
fn prefix_map(nvcc: &Path) -> Option<OsString> {
    let folder = nvcc.parent()?;
    let is_plain = !folder.as_os_str().as_bytes().iter().any(|byte| b" ,=\"'\\".contains(byte));
    is_plain.then(|| {
        let mut flag = OsString::from("-ffile-prefix-map=");
        flag.push(folder);
        flag.push("/../=cuda/");
        flag
    })
}

/// Headers that come in packages of their own, by how their names begin.
const PACKAGES: [(&str, &str); 12] = [
    ("nv/", "nvidia-cuda-cccl"),
    ("cuda/", "nvidia-cuda-cccl"),
    ("cub/", "nvidia-cuda-cccl"),
    ("thrust/", "nvidia-cuda-cccl"),
    ("crt/", "nvidia-cuda-crt"),
    ("cuda_", "nvidia-cuda-runtime"),
    ("cooperative_groups", "nvidia-cuda-runtime"),
    ("curand", "nvidia-curand"),
    ("cublas", "nvidia-cublas"),
    ("cufft", "nvidia-cufft"),
    ("cusparse", "nvidia-cusparse"),
    ("nvtx3/", "nvidia-nvtx"),
];

/// The header that the compiler did not find, and the package that has it.
fn missing_header(messages: &str) -> Option<(&str, &'static str)> {
    let header = messages.lines().find_map(|line| {
        let of_gcc = line.split_once("fatal error: ").and_then(|(_, rest)| rest.split(": No such file").next());
        let of_clang = line.split_once("fatal error: '").and_then(|(_, rest)| rest.split("' file not found").next());
        let of_edg = line.split_once("cannot open source file \"").and_then(|(_, rest)| rest.split('"').next());
        of_clang.or(of_gcc).or(of_edg)
    })?;
    PACKAGES.iter().find(|(start, _)| header.starts_with(start)).map(|(_, package)| (header, *package))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pk_21_headers_lead_to_the_package_that_has_them() {
        let cases = [
            ("a.cu:1:10: fatal error: nv/target: No such file or directory\n", Some(("nv/target", "nvidia-cuda-cccl"))),
            ("a.cu:1:10: fatal error: 'cub/cub.cuh' file not found", Some(("cub/cub.cuh", "nvidia-cuda-cccl"))),
            ("catastrophic error: cannot open source file \"curand.h\"", Some(("curand.h", "nvidia-curand"))),
            ("a.cu:1:10: fatal error: mine.h: No such file or directory", None),
            ("error: expected a \";\"", None),
        ];
        for (messages, expected) in cases {
            assert_eq!(missing_header(messages), expected, "{messages}");
        }
    }

    #[test]
    fn toolkits_in_places_that_options_cannot_name_are_left_alone() {
        assert_eq!(prefix_map(Path::new("/c/bin/nvcc")), Some("-ffile-prefix-map=/c/bin/../=cuda/".into()));
        assert_eq!(prefix_map(Path::new("/c, d/bin/nvcc")), None);
    }
}
