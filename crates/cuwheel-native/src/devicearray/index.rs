//! Keys of `array[key]` as the library's indices.

use cuwheel_device_array::Index;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PySlice, PyTuple};
use pyo3::{ffi, intern};

use crate::exception;

/// The indices in a key: one, or a tuple of them.
pub(super) fn indices(key: &Bound<'_, PyAny>) -> PyResult<Vec<Index>> {
    match key.cast::<PyTuple>() {
        Ok(keys) => keys.iter().map(|key| index(&key)).collect(),
        Err(_) => Ok(vec![index(key)?]),
    }
}

fn index(key: &Bound<'_, PyAny>) -> PyResult<Index> {
    if key.is_none() {
        return Ok(Index::NewAxis);
    }
    if key.is_instance_of::<PyEllipsis>() {
        return Ok(Index::Ellipsis);
    }
    if let Ok(slice) = key.cast::<PySlice>() {
        return range(slice);
    }
    // True and False are masks to NumPy, and integers to Python.
    // SAFETY: the thread is attached, as the type of `key` witnesses.
    if key.is_instance_of::<PyBool>() || unsafe { ffi::PyIndex_Check(key.as_ptr()) } == 0 {
        let message = format!(
            "a device array cannot be indexed with {}; only integers, slices (`:`), ellipsis (`...`) and None (a new axis) are \
             indices. For masks and lists of indices, hand the array to CuPy or torch: cupy.from_dlpack(array)",
            exception::type_name(key)
        );
        return Err(exception::new::<PyIndexError>(key.py(), message));
    }
    Ok(Index::Integer(integer(key)?))
}

fn range(slice: &Bound<'_, PySlice>) -> PyResult<Index> {
    let py = slice.py();
    let part = |name| {
        let value: Bound<'_, PyAny> = slice.getattr(name)?;
        if value.is_none() { Ok(None) } else { clipped(&value).map(Some) }
    };
    Ok(Index::Slice {
        start: part(intern!(py, "start"))?,
        stop: part(intern!(py, "stop"))?,
        step: part(intern!(py, "step"))?,
    })
}

/// An index of an element: too large a number is out of bounds.
fn integer(value: &Bound<'_, PyAny>) -> PyResult<i64> {
    // SAFETY: the thread is attached, and the exception class lives as long as the interpreter.
    let number = unsafe { ffi::PyNumber_AsSsize_t(value.as_ptr(), ffi::PyExc_IndexError) };
    match PyErr::take(value.py()) {
        Some(error) if number == -1 => Err(error),
        _ => Ok(number as i64),
    }
}

/// A bound of a slice: too large a number is as good as the largest.
fn clipped(value: &Bound<'_, PyAny>) -> PyResult<i64> {
    // SAFETY: the thread is attached; without an exception class numbers are clipped.
    let number = unsafe { ffi::PyNumber_AsSsize_t(value.as_ptr(), std::ptr::null_mut()) };
    match PyErr::take(value.py()) {
        Some(error) if number == -1 => Err(error),
        _ => Ok(number as i64),
    }
}

/// An integer, or a sequence of them.
pub(super) fn axis_or_axes(object: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    // SAFETY: the thread is attached, as the type of `object` witnesses.
    if unsafe { ffi::PyIndex_Check(object.as_ptr()) } != 0 {
        return Ok(vec![integer(object)?]);
    }
    object.try_iter()?.map(|item| integer(&item?)).collect()
}

/// Integers as separate arguments, or as one sequence.
pub(super) fn integers(arguments: &Bound<'_, PyTuple>) -> PyResult<Vec<i64>> {
    match arguments.len() {
        1 => axis_or_axes(&arguments.get_item(0)?),
        _ => axis_or_axes(arguments.as_any()),
    }
}

/// As [`integers`]; none if there is no argument, or it is None.
pub(super) fn axes(arguments: &Bound<'_, PyTuple>) -> PyResult<Option<Vec<i64>>> {
    if arguments.is_empty() || (arguments.len() == 1 && arguments.get_item(0)?.is_none()) {
        return Ok(None);
    }
    integers(arguments).map(Some)
}

/// The leading axes of one element that a value has and the place that it is assigned to has not: they are left out, as
/// NumPy does.
pub(super) fn surplus_axes(value: &[i64], place: &[i64]) -> Option<Vec<i64>> {
    let surplus = value.len().checked_sub(place.len()).filter(|surplus| *surplus > 0)?;
    value[..surplus].iter().all(|size| *size == 1).then(|| (0..).take(surplus).collect())
}
