//! Files of CUDA C++: which are kernels only, which launch them, and which are bound to Python or torch.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::reading::tokens::{self, Language, Token};
use crate::reading::tree::Tree;

/// What a file is, and with that, what is made of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Use {
    /// Kernels only: they become images that Rust launches.
    Image,
    /// It launches its own kernels: it becomes an object that is linked.
    Host,
    /// It includes headers of Python or torch: somebody has to part the kernels from the binding.
    Bound,
}

/// A file of CUDA C++.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CudaSource {
    /// Relative to the root.
    pub path: String,
    /// What it is.
    #[serde(rename = "use")]
    pub usage: Use,
    /// Names of the kernels in it.
    pub kernels: Vec<String>,
    /// Headers that bind it, such as `torch/extension.h`.
    pub headers: Vec<String>,
}

/// Starts of the names of headers that only belong to a binding.
const BINDING: &[&str] =
    &["torch/", "ATen/", "c10/", "pybind11/", "nanobind/", "Python.h", "numpy/", "jax", "xla/", "tensorflow/"];

impl CudaSource {
    pub(super) fn read(tree: &Tree, path: &str, text: &str, include_dirs: &[String]) -> Self {
        let (headers, has_launches) = included(tree, path, text, include_dirs);
        let usage = match (headers.is_empty(), has_launches) {
            (false, _) => Use::Bound,
            (true, true) => Use::Host,
            (true, false) => Use::Image,
        };
        Self { path: path.to_owned(), usage, kernels: kernels(text), headers }
    }
}

fn launches(text: &str) -> bool {
    let tokens = tokens::tokens(text, Language::C);
    tokens.windows(3).any(|three| three.iter().all(|placed| placed.is_mark('<')))
        || tokens.iter().any(|placed| {
            ["cudaLaunchKernel", "cudaLaunchKernelEx", "cudaLaunchCooperativeKernel"]
                .iter()
                .any(|word| placed.is_word(word))
        })
}

/// Functions with `__global__`.
fn kernels(text: &str) -> Vec<String> {
    let tokens = tokens::tokens(text, Language::C);
    let mut found: Vec<String> = Vec::new();
    for (index, _) in tokens.iter().enumerate().filter(|(_, placed)| placed.is_word("__global__")) {
        // `__launch_bounds__(256)` has parentheses too.
        let mut position = index + 1;
        while let Some(placed) = tokens.get(position) {
            let calls = tokens.get(position + 1).is_some_and(|next| next.is_mark('('));
            match placed.token {
                Token::Word("__launch_bounds__" | "__cluster_dims__" | "__attribute__") if calls => {
                    position = tokens::closing(&tokens, position + 1) + 1;
                }
                Token::Word(name) if calls => {
                    if !found.iter().any(|known| known == name) {
                        found.push(name.to_owned());
                    }
                    break;
                }
                Token::Mark(';' | '{') => break,
                _ => position += 1,
            }
        }
    }
    found
}

/// Headers of bindings that a file includes, itself or through headers of the project; and whether kernels are launched in it or
/// in one of these.
fn included(tree: &Tree, path: &str, text: &str, include_dirs: &[String]) -> (Vec<String>, bool) {
    let mut has_launches = false;
    let (mut bound, mut seen) = (BTreeSet::new(), BTreeSet::from([path.to_owned()]));
    let mut open = vec![(path.to_owned(), text.to_owned())];
    while let Some((path, text)) = open.pop() {
        has_launches |= launches(&text);
        let own = path.rsplit_once('/').map_or("", |(directory, _)| directory).to_owned();
        for name in includes(&text) {
            if BINDING.iter().any(|start| name.starts_with(start)) {
                bound.insert(name);
                continue;
            }
            let places = std::iter::once(own.as_str()).chain(include_dirs.iter().map(String::as_str)).chain([""]);
            let found = places.map(|place| normal(place, &name)).find(|path| tree.has(path));
            if let Some(path) = found.filter(|path| seen.len() < 500 && seen.insert(path.clone()))
                && let Some(text) = tree.text(&path)
            {
                open.push((path, text));
            }
        }
    }
    (bound.into_iter().collect(), has_launches)
}

fn includes(text: &str) -> Vec<String> {
    let header = |line: &str| {
        let rest = line.trim_start().strip_prefix('#')?.trim_start().strip_prefix("include")?.trim_start();
        let end = if rest.starts_with('<') { '>' } else { '"' };
        rest.get(1..)?.split(end).next().map(str::to_owned)
    };
    text.lines().filter_map(header).collect()
}

/// `place/name` with `..` taken away.
fn normal(place: &str, name: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in place.split('/').chain(name.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Architectures that arguments of nvcc name, in their order.
pub(super) fn architectures<'a>(arguments: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for argument in arguments {
        for marker in ["sm_", "compute_"] {
            for (start, _) in argument.match_indices(marker) {
                let rest = &argument[start + marker.len()..];
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
                let is_new = !found.iter().any(|known| *known == rest[..end]);
                if is_new && rest.starts_with(|c: char| c.is_ascii_digit()) {
                    found.push(rest[..end].to_owned());
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_functions_after_global() {
        let text = "template <class T> __global__ void __launch_bounds__(256) a(T *x) {}\nextern \"C\" __global__ void b(int n);\n// __global__ void c()\n";
        assert_eq!(kernels(text), ["a", "b"]);
        assert!(launches("f<<<1, 2>>>(x);") && !launches("x << 3; // <<<"));
    }

    #[test]
    fn architectures_are_read_from_arguments() {
        let arguments = ["-gencode=arch=compute_80,code=sm_80", "-gencode", "arch=compute_90a,code=compute_90a", "-O3"]
            .map(str::to_owned);
        assert_eq!(architectures(arguments.iter()), ["80", "90a"]);
    }
}
