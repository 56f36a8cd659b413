//! Arguments by position, by name and by default, brought into the order of the parameters.

use pyo3::Borrowed;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::exception;

/// The parameters of a function.
pub(super) struct Parameters {
    /// The names; the last is that of further positional arguments, if there may be any.
    pub(super) names: Py<PyTuple>,
    /// The defaults of the last named parameters.
    pub(super) defaults: Py<PyTuple>,
    pub(super) has_further: bool,
}

impl Parameters {
    pub(super) fn clone_ref(&self, py: Python<'_>) -> Self {
        let (names, defaults) = (self.names.clone_ref(py), self.defaults.clone_ref(py));
        Self { names, defaults, has_further: self.has_further }
    }

    /// One argument for each parameter; further positional ones make a tuple.
    pub(super) fn fold<'py>(
        &self,
        py: Python<'py>,
        arguments: &[Borrowed<'_, 'py, PyAny>],
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let names = self.names.bind(py);
        let count = if self.has_further { names.len().saturating_sub(1) } else { names.len() };
        let keyword_count = keywords.map_or(0, PyDictMethods::len);
        self.check_count(py, count, arguments.len() + keyword_count)?;

        let mut folded = Vec::with_capacity(names.len());
        let mut keywords_used = 0;
        for (position, name) in names.iter().take(count).enumerate() {
            if let Some(argument) = arguments.get(position) {
                folded.push(Bound::clone(argument));
                continue;
            }
            let by_name = keywords.map(|keywords| keywords.get_item(&name)).transpose()?.flatten();
            if let Some(argument) = by_name {
                keywords_used += 1;
                folded.push(argument);
            } else {
                folded.push(self.default(position, count, &name)?);
            }
        }
        if keywords_used != keyword_count {
            return Err(exception::new::<PyTypeError>(py, "some keyword arguments unexpected"));
        }
        if self.has_further && count < names.len() {
            folded.push(PyTuple::new(py, arguments.get(count..).unwrap_or_default())?.into_any());
        }
        Ok(folded)
    }

    fn check_count(&self, py: Python<'_>, count: usize, actual: usize) -> PyResult<()> {
        if actual > count && !self.has_further {
            let message = format!("too many arguments: expected {count}, got {actual}");
            return Err(exception::new::<PyTypeError>(py, message));
        }
        let least = count.saturating_sub(self.defaults.bind(py).len());
        if actual < least {
            let at_least = if self.has_further || !self.defaults.bind(py).is_empty() { "at least " } else { "" };
            let message = format!("not enough arguments: expected {at_least}{least}, got {actual}");
            return Err(exception::new::<PyTypeError>(py, message));
        }
        Ok(())
    }

    fn default<'py>(&self, position: usize, count: usize, name: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let defaults = self.defaults.bind(name.py());
        // The last default belongs to the last parameter, however many there are.
        let Some(index) = (position + defaults.len()).checked_sub(count) else {
            let message = format!("missing argument '{}'", name.str()?.to_string_lossy());
            return Err(exception::new::<PyTypeError>(name.py(), message));
        };
        defaults.get_item(index)
    }
}
