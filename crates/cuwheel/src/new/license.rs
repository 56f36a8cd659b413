//! The licences that a new project can be put under.
//!
//! Not for licences in general: any other is written by hand afterwards.

use serde::Serialize;

use crate::error::Result;
use crate::templates::Template;

/// A licence by its SPDX expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct License {
    /// The expression, as pyproject.toml and Cargo.toml have it.
    pub expression: &'static str,
    /// How it is called on the command line.
    pub name: &'static str,
    /// The files of its text, each with the template that it is made from.
    files: &'static [(&'static str, &'static str)],
}

const APACHE: &str = "licenses/Apache-2.0.txt";
const MIT: &str = "licenses/MIT.txt";

/// All of them; the first is the default.
pub const LICENSES: &[License] = &[
    License {
        expression: "Apache-2.0 OR MIT",
        name: "Apache-2.0 OR MIT",
        files: &[("LICENSE-APACHE", APACHE), ("LICENSE-MIT", MIT)],
    },
    License { expression: "Apache-2.0", name: "Apache-2.0", files: &[("LICENSE", APACHE)] },
    License { expression: "BSD-3-Clause", name: "BSD-3-Clause", files: &[("LICENSE", "licenses/BSD-3-Clause.txt")] },
    License { expression: "MIT", name: "MIT", files: &[("LICENSE", MIT)] },
    License { expression: "LicenseRef-Proprietary", name: "Proprietary", files: &[] },
];

impl License {
    /// The licence of a name, for the command line.
    pub fn parse(name: &str) -> Result<Self, String> {
        let wanted = name.to_lowercase();
        let is_it =
            |license: &&Self| [license.name, license.expression].iter().any(|known| known.to_lowercase() == wanted);
        LICENSES.iter().find(is_it).copied().ok_or_else(|| {
            let known: Vec<&str> = LICENSES.iter().map(|license| license.name).collect();
            format!("the known licences are {}; any other is written into the files afterwards", known.join(", "))
        })
    }

    /// The names of the files with its text.
    pub fn file_names(self) -> impl Iterator<Item = &'static str> {
        self.files.iter().map(|(name, _)| *name)
    }

    /// The files with its text.
    pub fn render(self, values: &impl Serialize) -> Result<Vec<(String, String)>> {
        let render =
            |(name, template): &(&str, &str)| Ok(((*name).to_owned(), Template::named(template).render(values)?));
        self.files.iter().map(render).collect()
    }
}
