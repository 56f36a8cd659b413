//! The files in `templates`, which are part of the binary, and how they are rendered.
//!
//! Not for deciding what is rendered: see [`crate::commands`].

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior};
use serde::Serialize;

use crate::error::Result;

macro_rules! embedded {
    ($($path:literal,)*) => {
        &[$(Template { path: $path, source: include_str!(concat!("../templates/", $path)) }),*]
    };
}

/// Every template, in the order of paths.
const TEMPLATES: &[Template] = embedded![
    "ci/github/actions/setup/action.yml",
    "ci/github/build.yml",
    "ci/github/ci.yml",
    "ci/github/copy-pr-bot.yaml",
    "ci/github/test-gpu.yml",
    "ci/gitlab-ci.yml",
    "ci/head.txt",
    "ci/matrix.yml",
    "ci/slurm.sh",
    "ci/snippets/junit.sh",
    "ci/snippets/toolkits.sh",
    "extension/.cargo/config.toml",
    "extension/.gitignore",
    "extension/Cargo.toml.template",
    "extension/README.md",
    "extension/build.rs",
    "extension/kernels/saxpy.cu",
    "extension/kernels/sum.cu",
    "extension/pyproject.toml",
    "extension/python/__package__/__init__.py",
    "extension/python/__package__/_native.pyi",
    "extension/python/__package__/py.typed",
    "extension/src/device.rs",
    "extension/src/grid.rs",
    "extension/src/host.rs",
    "extension/src/kernels.rs",
    "extension/src/lib.rs",
    "extension/src/shim.c",
    "extension/tests/cpu/test_host_sum.py",
    "extension/tests/cpu/test_package.py",
    "extension/tests/gpu/conftest.py",
    "extension/tests/gpu/test_kernels.py",
    "extension/tests/grid.rs",
    "extension/xtask/Cargo.toml.template",
    "extension/xtask/src/main.rs",
    "licenses/Apache-2.0.txt",
    "licenses/BSD-3-Clause.txt",
    "licenses/MIT.txt",
    "port/.cargo/config.toml",
    "port/.gitignore",
    "port/PORTING.md",
    "port/build.rs",
    "port/crate.toml",
    "port/pyproject.toml",
    "port/python/module.py",
    "port/src/lib.rs",
    "port/src/module.rs",
    "port/src/not_ported.rs",
    "port/src/numpy_shim.c",
    "port/src/numpy_shim.rs",
    "port/tests/test_native_modules.py",
    "port/workspace.toml",
    "port/xtask/Cargo.toml.template",
    "port/xtask/src/main.rs",
];

/// A text with places to fill in.
#[derive(Clone, Copy, Debug)]
pub struct Template {
    /// Its path in `templates`.
    pub path: &'static str,
    source: &'static str,
}

impl Template {
    /// The template at this path.
    ///
    /// # Panics
    /// If there is none: paths are those of files in this repository.
    pub fn named(path: &str) -> Self {
        *TEMPLATES.iter().find(|template| template.path == path).expect("the template is embedded")
    }

    /// The templates in a directory and those below it, in the order of paths.
    pub fn below(directory: &str) -> impl Iterator<Item = Self> {
        TEMPLATES
            .iter()
            .copied()
            .filter(move |template| template.path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/')))
    }

    /// The text with values filled in. A value that is missing is a mistake in the template, and an error.
    pub fn render(&self, values: &impl Serialize) -> Result<String> {
        Ok(environment().render_named_str(self.path, self.source, Serde(values))?)
    }
}

/// Marks that none of the languages of the templates use, and no escaping: they are no web pages.
fn environment() -> Environment<'static> {
    let syntax = SyntaxConfig::builder()
        .block_delimiters("{%", "%}")
        .variable_delimiters("{=", "=}")
        .comment_delimiters("{##", "##}")
        .trim_blocks(true)
        .lstrip_blocks(true)
        .keep_trailing_newline(true)
        .build()
        .expect("the marks differ");
    let mut environment = Environment::new();
    environment.set_syntax(syntax);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    // Texts of JSON are texts of YAML, whatever is in them.
    environment.add_filter("yaml", |text: String| serde_json::Value::String(text).to_string());
    environment
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn every_file_in_templates_is_embedded() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("templates");
        let mut files: Vec<String> = ignore::WalkBuilder::new(&root)
            .standard_filters(false)
            .sort_by_file_path(Ord::cmp)
            .build()
            .map(|entry| entry.unwrap().into_path())
            .filter(|path| path.is_file())
            .map(|path| path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned())
            .filter(|path| path != "README.md")
            .collect();
        files.sort();
        assert_eq!(files, TEMPLATES.iter().map(|template| template.path).collect::<Vec<_>>());
    }

    #[test]
    fn languages_that_use_braces_stay_as_they_are() {
        let source = "[[tool.x]] ${{ matrix.os }} ${#list} k<<<1, 2>>>(); {= name =}\n{% if a %}\nyes\n{% endif %}\n";
        let template = Template { path: "x", source };
        let rendered = template.render(&serde_json::json!({ "name": "<&>", "a": true })).unwrap();
        assert_eq!(rendered, "[[tool.x]] ${{ matrix.os }} ${#list} k<<<1, 2>>>(); <&>\nyes\n");
        assert!(template.render(&serde_json::json!({ "a": true })).is_err());
    }
}
