//! Integers out of Python numbers, with Python's own exceptions.

use std::ffi::c_int;

use cuwheel_dispatcher::TypeCode;
use pyo3::exceptions::PyOverflowError;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::exception;

/// The value of an integer argument, by `__index__`, as the format `i` of Python's C API takes it.
pub(crate) fn int_argument(value: &Bound<'_, PyAny>) -> PyResult<c_int> {
    let py = value.py();
    // SAFETY: the thread is attached, as the type of `value` witnesses.
    let long = unless_error(py, unsafe { ffi::PyLong_AsLong(value.as_ptr()) })?;
    c_int::try_from(long).map_err(|_| {
        let (side, limit) = if long < 0 { ("less", "minimum") } else { ("greater", "maximum") };
        exception::new::<PyOverflowError>(py, format!("signed integer is {side} than {limit}"))
    })
}

/// The value of a size argument, by `__index__`, as the format `n` of Python's C API takes it.
pub(crate) fn size_argument(value: &Bound<'_, PyAny>) -> PyResult<isize> {
    let py = value.py();
    // SAFETY: the thread is attached, as `py` witnesses; the result is a new reference or null with an exception set.
    let Some(number) = (unsafe { Bound::from_owned_ptr_or_opt(py, ffi::PyNumber_Index(value.as_ptr())) }) else {
        return Err(exception::fetch(py));
    };
    // SAFETY: the thread is attached, and `number` is an `int`.
    unless_error(py, unsafe { ffi::PyLong_AsSsize_t(number.as_ptr()) })
}

/// The value of an item, by `__index__`.
pub(crate) fn size(value: &Bound<'_, PyAny>) -> PyResult<isize> {
    // SAFETY: the thread is attached, as the type of `value` witnesses, and the exception class is alive as long as the
    // interpreter.
    unless_error(value.py(), unsafe { ffi::PyNumber_AsSsize_t(value.as_ptr(), ffi::PyExc_OverflowError) })
}

/// The address that a number stands for, by `int()`; negative numbers count from the end of the address space.
pub(crate) fn address(value: &Bound<'_, PyAny>) -> PyResult<usize> {
    let py = value.py();
    // SAFETY: the thread is attached, as `py` witnesses; the result is a new reference or null with an exception set.
    let Some(number) = (unsafe { Bound::from_owned_ptr_or_opt(py, ffi::PyNumber_Long(value.as_ptr())) }) else {
        return Err(exception::fetch(py));
    };
    // SAFETY: the thread is attached, and `number` is an `int`.
    let address = unsafe { ffi::PyLong_AsVoidPtr(number.as_ptr()) };
    if address.is_null()
        && let Some(error) = PyErr::take(py)
    {
        return Err(error);
    }
    Ok(address.addr())
}

/// The result of a conversion whose error is -1 with an exception set.
fn unless_error<T: PartialEq + From<i8>>(py: Python<'_>, result: T) -> PyResult<T> {
    if result == T::from(-1)
        && let Some(error) = PyErr::take(py)
    {
        return Err(error);
    }
    Ok(result)
}

/// The handle that an integer argument is, by `__index__`.
pub(crate) fn handle(value: &Bound<'_, PyAny>) -> PyResult<usize> {
    let py = value.py();
    // SAFETY: the thread is attached, as `py` witnesses; the result is a new reference or null with an exception set.
    let Some(number) = (unsafe { Bound::from_owned_ptr_or_opt(py, ffi::PyNumber_Index(value.as_ptr())) }) else {
        return Err(exception::fetch(py));
    };
    number.extract()
}

/// The code of a type, by `__index__`.
pub(crate) fn type_code(value: &Bound<'_, PyAny>) -> PyResult<TypeCode> {
    // SAFETY: the thread is attached, as the type of `value` witnesses.
    let number = unless_error(value.py(), unsafe { ffi::PyLong_AsLongLong(value.as_ptr()) })?;
    TypeCode::try_from(number).map_err(|error| exception::new::<PyOverflowError>(value.py(), error.to_string()))
}

/// The codes of the types of a signature: any iterable of integers.
pub(crate) fn type_codes(signature: &Bound<'_, PyAny>) -> PyResult<Vec<TypeCode>> {
    signature.try_iter()?.map(|code| type_code(&code?)).collect()
}
