//! What a device array of numba-cuda says of itself, as the words that kernels take.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::described::Words;

/// The words of a device array: out of `_strided_memory_view_shim`, which numba-cuda makes once for each and keeps.
pub(super) fn words(array: &Bound<'_, PyAny>) -> PyResult<Words> {
    let py = array.py();
    let view = array.getattr(intern!(py, "_strided_memory_view_shim"))?;
    let (shape, pointer) = (view.getattr(intern!(py, "shape"))?, view.getattr(intern!(py, "ptr"))?);
    let strides = view.getattr(intern!(py, "_layout"))?.getattr(intern!(py, "strides_in_bytes"))?;
    let number = |value: Bound<'_, PyAny>| value.extract::<i64>().map(i64::cast_unsigned);
    let mut words = Words::new();
    words.extend([0, 0]);
    words.push(number(view.getattr(intern!(py, "size"))?)?);
    words.push(number(view.getattr(intern!(py, "dtype"))?.getattr(intern!(py, "itemsize"))?)?);
    words.push(pointer.extract()?);
    for value in shape.cast::<PyTuple>()?.iter().chain(strides.cast::<PyTuple>()?.iter()) {
        words.push(number(value)?);
    }
    Ok(words)
}
