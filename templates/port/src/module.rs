//! The module `{= module =}`, which was {= kind =}{= of =}.

use pyo3::prelude::*;

use crate::not_ported::{self, Entry};

/// What the old module offers and this one does not yet. To port a function, write it in this file as a `#[pyfunction]`, add it in
/// `populate`, and take its entry out.
const NOT_PORTED: &[Entry] = &[
{% for entry in entries %}
    Entry {
        name: {= entry.name =},
        native: {= entry.native =},
        place: {= entry.place =},
        doc: {= entry.doc =},
    },
{% endfor %}
];

/// Adds functions and classes to the module.
pub(crate) fn populate(module: &Bound<'_, PyModule>) -> PyResult<()> {
    not_ported::add(module, NOT_PORTED)
}
