//! What `build.rs` compiles of the old CUDA sources, and with which options.

use super::cuda::Use;
use super::existing::ExistingProject;
use super::layout::Layout;

/// Kernels of all extension modules.
#[derive(Clone, Debug, Default)]
pub(super) struct Kernels {
    /// Files with kernels only, by old path.
    pub(super) images: Vec<String>,
    /// Files that launch their kernels.
    pub(super) host_files: Vec<String>,
    /// Files that are bound to Python or torch, with the headers that bind them.
    pub(super) bound: Vec<(String, Vec<String>)>,
    pub(super) includes: Vec<String>,
    pub(super) flags: Vec<String>,
    pub(super) architectures: Vec<String>,
    /// Whether an extension module of Python's and NumPy's C API is among the old ones.
    pub(super) has_shim: bool,
}

impl Kernels {
    pub(super) fn has_any(&self) -> bool {
        !self.images.is_empty() || !self.host_files.is_empty()
    }
}

pub(super) fn of(existing: &ExistingProject, layout: &Layout) -> Kernels {
    let mut kernels = Kernels::default();
    if layout.existing_crate.is_some() {
        return kernels;
    }
    let add = |list: &mut Vec<String>, item: &String| {
        if !list.contains(item) {
            list.push(item.clone());
        }
    };
    for extension in &existing.extensions {
        for source in &extension.cuda {
            match source.usage {
                Use::Image => add(&mut kernels.images, &source.path),
                Use::Host => add(&mut kernels.host_files, &source.path),
                Use::Bound if kernels.bound.iter().any(|(path, _)| *path == source.path) => {}
                Use::Bound => kernels.bound.push((source.path.clone(), source.headers.clone())),
            }
        }
        kernels.has_shim |= extension.uses_numpy && extension.kind != super::Kind::Cython;
        let is_compiled = extension.cuda.iter().any(|source| source.usage != Use::Bound);
        if is_compiled {
            for directory in extension.include_dirs.iter().filter(|path| existing.tree.has(path)) {
                add(&mut kernels.includes, directory);
            }
            for flag in flags(&extension.nvcc_args).iter().chain(&defines(&extension.macros)) {
                add(&mut kernels.flags, flag);
            }
            for architecture in &extension.architectures {
                add(&mut kernels.architectures, architecture);
            }
        }
    }
    kernels
}

fn defines(macros: &[String]) -> Vec<String> {
    macros.iter().map(|definition| format!("-D{definition}")).collect()
}

/// Arguments of nvcc that stay: those that say what the code means, and not for which machine or how fast to compile.
fn flags(arguments: &[String]) -> Vec<String> {
    /// Their value follows, or is joined to them.
    const WITH_VALUE: &[&str] = &[
        "-gencode",
        "-arch",
        "--generate-code",
        "--gpu-architecture",
        "-code",
        "-ccbin",
        "-Xcompiler",
        "--compiler-options",
        "--threads",
        "-t",
    ];
    const DROPPED: &[&str] = &["-O", "-G", "-g", "--ptxas-options", "-Xptxas", "-I", "-c", "-shared"];
    let (mut kept, mut skip) = (Vec::new(), false);
    for argument in arguments.iter().flat_map(|argument| argument.split_whitespace()) {
        if std::mem::take(&mut skip) {
            continue;
        }
        if WITH_VALUE.contains(&argument) || argument == "-j" {
            skip = true;
        } else if !WITH_VALUE.iter().chain(DROPPED).any(|start| argument.starts_with(start)) {
            kept.push(argument.to_owned());
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_that_name_machines_are_left_out() {
        let arguments = [
            "-O3",
            "--use_fast_math",
            "-gencode",
            "arch=compute_80,code=sm_80",
            "-std=c++17",
            "-Xcompiler=-fPIC",
            "-DA=1 -DB",
        ];
        assert_eq!(flags(&arguments.map(str::to_owned)), ["--use_fast_math", "-std=c++17", "-DA=1", "-DB"]);
    }
}
