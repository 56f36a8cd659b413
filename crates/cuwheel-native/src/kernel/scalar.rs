//! Numbers of Python and NumPy as parameters: converted exactly, or to the nearest number of a floating-point type, or
//! refused.

use cuwheel_device_array::DType;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt, PyString, PyType};

use super::small_float::{BFLOAT16, FLOAT16, Format};
use crate::buffer::{Access, BufferSlot};
use crate::exception;

/// The bytes of a parameter, at most those of two 64-bit numbers.
pub(super) type Packed = ([u8; 16], usize);

/// Why a value is no number for a parameter.
pub(super) enum Refusal {
    /// It is of another kind than the parameter.
    Type(String),
    /// It is beyond the range of the parameter, or between the numbers that it has.
    Value(String),
    /// It is no number at all.
    NoNumber,
    /// An exception of the value's own.
    Raised(PyErr),
}

impl From<PyErr> for Refusal {
    fn from(error: PyErr) -> Self {
        Self::Raised(error)
    }
}

impl Refusal {
    /// The exception, with the place of the argument before what is wrong.
    pub(super) fn exception(self, value: &Bound<'_, PyAny>, place: &str, parameter: &str) -> PyErr {
        let py = value.py();
        match self {
            Self::Type(message) => exception::new::<PyTypeError>(py, format!("{place}: {message}")),
            Self::Value(message) => exception::new::<PyOverflowError>(py, format!("{place}: {message}")),
            Self::Raised(error) => error,
            Self::NoNumber => {
                let class = exception::type_name(value);
                exception::new::<PyTypeError>(
                    py,
                    format!("{place}: {class} is no number, and the parameter is {parameter}"),
                )
            }
        }
    }
}

/// A number, as far as it matters how it is converted.
enum Number {
    Bool(bool),
    /// From -2⁶³ to 2⁶⁴ - 1.
    Integer(i128),
    Float(f64),
    Complex(f64, f64),
}

/// The value of a parameter of a known type.
#[inline]
pub(super) fn pack(value: &Bound<'_, PyAny>, dtype: DType) -> Result<Packed, Refusal> {
    match usual(value, dtype) {
        Some(Usual::Wide(bits)) => Ok(packed(&bits.to_ne_bytes())),
        Some(Usual::Narrow(bits)) => Ok(packed(&bits.to_ne_bytes())),
        None => pack_any(value, dtype),
    }
}

/// A parameter of 64 or of 32 bits.
#[derive(Clone, Copy)]
pub(super) enum Usual {
    Wide(u64),
    Narrow(u32),
}

/// What programs mostly pass: Python's own numbers, to parameters of 32 or 64 bits that have them. `None` for anything else.
#[inline]
pub(super) fn usual(value: &Bound<'_, PyAny>, dtype: DType) -> Option<Usual> {
    let value = value.as_ptr();
    // SAFETY: the thread is attached, and `value` is a live object, whose class is looked at before it is read; the pointer
    // is to a local variable. Of objects of exactly these classes nothing is raised.
    unsafe {
        if ffi::PyFloat_CheckExact(value) != 0 {
            let number = ffi::PyFloat_AsDouble(value);
            return match dtype {
                DType::Float64 => Some(Usual::Wide(number.to_bits())),
                DType::Float32 => Some(narrow(number))
                    .filter(|narrowed| narrowed.is_finite())
                    .map(|narrowed| Usual::Narrow(narrowed.to_bits())),
                _ => None,
            };
        }
        if ffi::PyLong_CheckExact(value) == 0 {
            return None;
        }
        let mut overflow = 0;
        let number = ffi::PyLong_AsLongLongAndOverflow(value, &raw mut overflow);
        if overflow != 0 {
            return None;
        }
        let is_signed = matches!(dtype, DType::Int64 | DType::Int32);
        if matches!(dtype, DType::Int64 | DType::UInt64) {
            return (is_signed || number >= 0).then(|| Usual::Wide(number.cast_unsigned()));
        }
        let bits = if is_signed { i32::try_from(number).ok()?.cast_unsigned() } else { u32::try_from(number).ok()? };
        matches!(dtype, DType::Int32 | DType::UInt32).then_some(Usual::Narrow(bits))
    }
}

/// Whether a value is one of the numbers that [`usual`] reads.
#[inline]
pub(super) fn is_usual(value: &Bound<'_, PyAny>) -> bool {
    // SAFETY: the thread is attached, and `value` is a live object, of which the class is looked at.
    is_float(value) || unsafe { ffi::PyLong_CheckExact(value.as_ptr()) } != 0
}

/// Whether a value is a number of Python's own class `float`.
#[inline]
pub(super) fn is_float(value: &Bound<'_, PyAny>) -> bool {
    // SAFETY: as above.
    unsafe { ffi::PyFloat_CheckExact(value.as_ptr()) != 0 }
}

/// Any value.
#[inline(never)]
fn pack_any(value: &Bound<'_, PyAny>, dtype: DType) -> Result<Packed, Refusal> {
    match (number(value, dtype)?, dtype) {
        (Number::Bool(value), DType::Bool) => Ok(packed(&[value.into()])),
        (_, DType::Bool) => Err(wrong_kind(value, dtype, "bool(x)")),
        (number, DType::Complex64) => {
            let (real, imaginary) = complex(&number, value, dtype)?;
            let (real, imaginary) = (float32(real, value, dtype)?, float32(imaginary, value, dtype)?);
            Ok(pair(real.to_ne_bytes(), imaginary.to_ne_bytes()))
        }
        (number, DType::Complex128) => {
            let (real, imaginary) = complex(&number, value, dtype)?;
            Ok(pair(real.to_ne_bytes(), imaginary.to_ne_bytes()))
        }
        (Number::Complex(..), _) => Err(wrong_kind(value, dtype, "x.real")),
        (number, DType::Float16 | DType::BFloat16 | DType::Float32 | DType::Float64) => float(&number, value, dtype),
        (Number::Float(_), _) => Err(wrong_kind(value, dtype, "int(x)")),
        (Number::Integer(integer), _) => pack_integer(integer, value, dtype),
        (Number::Bool(is_true), _) => pack_integer(is_true.into(), value, dtype),
    }
}

/// The value of a parameter of which only the size is known.
#[inline]
pub(super) fn pack_unknown(value: &Bound<'_, PyAny>, size_bytes: usize) -> Result<Packed, Refusal> {
    if is_numpy_scalar(value)? {
        return numpy_bytes(value, size_bytes);
    }
    let dtype = if value.is_instance_of::<PyInt>() {
        return pack_sized_integer(value, size_bytes);
    } else if value.is_instance_of::<PyFloat>() {
        match size_bytes {
            2 => Some(DType::Float16),
            4 => Some(DType::Float32),
            8 => Some(DType::Float64),
            _ => None,
        }
    } else if value.is_instance_of::<PyComplex>() {
        match size_bytes {
            8 => Some(DType::Complex64),
            16 => Some(DType::Complex128),
            _ => None,
        }
    } else {
        return Err(Refusal::NoNumber);
    };
    match dtype {
        Some(dtype) => pack(value, dtype),
        None => Err(no_such_size(value, size_bytes)),
    }
}

/// Two halves of a parameter.
fn pair<const N: usize>(first: [u8; N], second: [u8; N]) -> Packed {
    let mut all = [0; 16];
    all[..N].copy_from_slice(&first);
    all[N..2 * N].copy_from_slice(&second);
    (all, 2 * N)
}

#[inline]
fn packed(bytes: &[u8]) -> Packed {
    let mut all = [0; 16];
    all[..bytes.len()].copy_from_slice(bytes);
    (all, bytes.len())
}

/// What a Python or NumPy object is as a number.
#[inline]
fn number(value: &Bound<'_, PyAny>, dtype: DType) -> Result<Number, Refusal> {
    // SAFETY: the thread is attached, and `value` is a live object; the checks only look at its type.
    let (is_float, is_integer) =
        unsafe { (ffi::PyFloat_Check(value.as_ptr()) != 0, ffi::PyLong_Check(value.as_ptr()) != 0) };
    if is_integer {
        if let Ok(truth) = value.cast_exact::<PyBool>() {
            return Ok(Number::Bool(truth.is_true()));
        }
        return integer(value, dtype).map(Number::Integer);
    }
    if is_float {
        return real(value).map(Number::Float);
    }
    other_number(value, dtype)
}

#[cold]
fn other_number(value: &Bound<'_, PyAny>, dtype: DType) -> Result<Number, Refusal> {
    if value.is_instance_of::<PyComplex>() {
        return complex_parts(value);
    }
    if !is_numpy_scalar(value)? {
        return Err(Refusal::NoNumber);
    }
    let py = value.py();
    let kind: String = value.getattr(intern!(py, "dtype"))?.getattr(intern!(py, "kind"))?.extract()?;
    match kind.as_str() {
        "b" => Ok(Number::Bool(value.is_truthy()?)),
        "i" | "u" => integer(&value.call_method0(intern!(py, "__int__"))?, dtype).map(Number::Integer),
        "c" => complex_parts(&py.get_type::<PyComplex>().call1((value,))?),
        // `V` is the kind of the types of `ml_dtypes`, and of records, which are not numbers and say so.
        "f" | "V" if value.hasattr(intern!(py, "__float__"))? => real(value).map(Number::Float),
        _ => Err(Refusal::NoNumber),
    }
}

fn complex_parts(value: &Bound<'_, PyAny>) -> Result<Number, Refusal> {
    let py = value.py();
    let (real, imaginary) = (value.getattr(intern!(py, "real"))?, value.getattr(intern!(py, "imag"))?);
    Ok(Number::Complex(real.extract()?, imaginary.extract()?))
}

/// The value of an `int`; beyond 64 bits it is out of every range.
#[inline]
fn integer(value: &Bound<'_, PyAny>, dtype: DType) -> Result<i128, Refusal> {
    let mut overflow = 0;
    // SAFETY: the thread is attached, `value` is an `int`, and the pointer is to a local variable.
    let signed = unsafe { ffi::PyLong_AsLongLongAndOverflow(value.as_ptr(), &raw mut overflow) };
    if overflow == 0 {
        if signed == -1
            && let Some(error) = PyErr::take(value.py())
        {
            return Err(error.into());
        }
        return Ok(signed.into());
    }
    if overflow > 0
        && let Ok(unsigned) = value.extract::<u64>()
    {
        return Ok(unsigned.into());
    }
    Err(out_of_range(value, dtype))
}

#[inline]
fn real(value: &Bound<'_, PyAny>) -> Result<f64, Refusal> {
    // SAFETY: the thread is attached, and `value` is a live object.
    let number = unsafe { ffi::PyFloat_AsDouble(value.as_ptr()) };
    // The number that stands for an error may be meant.
    if number.to_bits() == (-1.0_f64).to_bits()
        && let Some(error) = PyErr::take(value.py())
    {
        return Err(error.into());
    }
    Ok(number)
}

fn complex(number: &Number, value: &Bound<'_, PyAny>, dtype: DType) -> Result<(f64, f64), Refusal> {
    match *number {
        Number::Complex(real, imaginary) => Ok((real, imaginary)),
        Number::Float(real) => Ok((real, 0.0)),
        Number::Bool(is_true) => Ok((f64::from(u8::from(is_true)), 0.0)),
        Number::Integer(integer) => {
            let real = exact(integer, value, dtype)?;
            // Precise enough for each half of it.
            if dtype == DType::Complex64 && exact_integer(f64::from(narrow(real))) != Some(integer) {
                return Err(not_exact(value, dtype));
            }
            Ok((real, 0.0))
        }
    }
}

/// A floating-point parameter.
#[inline]
fn float(number: &Number, value: &Bound<'_, PyAny>, dtype: DType) -> Result<Packed, Refusal> {
    let (wide, integer) = match *number {
        Number::Float(number) => (number, None),
        Number::Integer(integer) => (exact(integer, value, dtype)?, Some(integer)),
        Number::Bool(is_true) => (f64::from(u8::from(is_true)), None),
        Number::Complex(..) => return Err(wrong_kind(value, dtype, "x.real")),
    };
    let (packed, narrowed) = match dtype {
        DType::Float64 => return Ok(packed(&wide.to_ne_bytes())),
        DType::Float32 => {
            let narrowed = float32(wide, value, dtype)?;
            (packed(&narrowed.to_ne_bytes()), f64::from(narrowed))
        }
        DType::Float16 => small_float(FLOAT16, wide, value, dtype)?,
        _ => small_float(BFLOAT16, wide, value, dtype)?,
    };
    // What was written as an integer is meant to be one.
    if integer.is_some() && exact_integer(narrowed) != integer {
        return Err(not_exact(value, dtype));
    }
    Ok(packed)
}

fn small_float(format: Format, wide: f64, value: &Bound<'_, PyAny>, dtype: DType) -> Result<(Packed, f64), Refusal> {
    let bits = format.encode(wide);
    if format.is_infinite(bits) && wide.is_finite() {
        return Err(out_of_range(value, dtype));
    }
    Ok((packed(&bits.to_ne_bytes()), format.decode(bits)))
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "it rounds to nearest, and to infinity beyond the largest")]
fn narrow(wide: f64) -> f32 {
    wide as f32
}

#[inline]
fn float32(wide: f64, value: &Bound<'_, PyAny>, dtype: DType) -> Result<f32, Refusal> {
    let narrowed = narrow(wide);
    if narrowed.is_infinite() && wide.is_finite() { Err(out_of_range(value, dtype)) } else { Ok(narrowed) }
}

/// An integer as a number of 64 bits, unless it falls between two.
#[inline]
#[expect(clippy::cast_precision_loss, reason = "a loss is what is looked for")]
fn exact(integer: i128, value: &Bound<'_, PyAny>, dtype: DType) -> Result<f64, Refusal> {
    let wide = integer as f64;
    if exact_integer(wide) == Some(integer) { Ok(wide) } else { Err(not_exact(value, dtype)) }
}

#[expect(clippy::cast_possible_truncation, reason = "what does not fit is not looked at")]
fn exact_integer(number: f64) -> Option<i128> {
    (number.abs() < 1e30 && number.fract() == 0.0).then_some(number as i128)
}

fn pack_integer(integer: i128, value: &Bound<'_, PyAny>, dtype: DType) -> Result<Packed, Refusal> {
    let (minimum, maximum) = range(dtype).ok_or(Refusal::NoNumber)?;
    if !(minimum..=maximum).contains(&integer) {
        return Err(out_of_range(value, dtype));
    }
    // The lowest bytes, in the order of this machine, which is that of the device.
    Ok((integer.to_le_bytes(), dtype.size_bytes().unwrap_or(0)))
}

/// Signed or not is for the kernel to say: what is in either range is taken.
fn pack_sized_integer(value: &Bound<'_, PyAny>, size_bytes: usize) -> Result<Packed, Refusal> {
    let (signed, unsigned) = match size_bytes {
        1 => (DType::Int8, DType::UInt8),
        2 => (DType::Int16, DType::UInt16),
        4 => (DType::Int32, DType::UInt32),
        8 => (DType::Int64, DType::UInt64),
        _ => return Err(no_such_size(value, size_bytes)),
    };
    let beyond = || {
        Refusal::Value(format!("{} does not fit an integer of {size_bytes} bytes, signed or unsigned", shown(value)))
    };
    let integer = integer(value, unsigned).map_err(|refusal| match refusal {
        Refusal::Raised(error) => Refusal::Raised(error),
        _ => beyond(),
    })?;
    let dtype = if integer < 0 { signed } else { unsigned };
    pack_integer(integer, value, dtype).map_err(|_| beyond())
}

/// The bytes of a NumPy scalar, which has the size of its type.
#[cold]
fn numpy_bytes(value: &Bound<'_, PyAny>, size_bytes: usize) -> Result<Packed, Refusal> {
    let mut slot = BufferSlot::new();
    let buffer = slot.request(value, Access::ReadOnly)?;
    let itemsize = usize::try_from(buffer.itemsize()).unwrap_or(0);
    if itemsize != size_bytes || itemsize > 16 {
        let class = exception::type_name(value);
        let message = format!(
            "{class} takes {itemsize} bytes, and the parameter {size_bytes}; pass a scalar of the kernel's type"
        );
        return Err(Refusal::Type(message));
    }
    let mut bytes = [0; 16];
    // SAFETY: a scalar is one item, of the size that was compared, and is not changed.
    unsafe {
        let source = std::ptr::with_exposed_provenance::<u8>(buffer.address());
        std::ptr::copy_nonoverlapping(source, bytes.as_mut_ptr(), itemsize);
    }
    Ok((bytes, itemsize))
}

/// Whether the value is an instance of `numpy.generic`. NumPy is not imported for it: without it there are none.
#[inline]
fn is_numpy_scalar(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    static GENERIC: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let py = value.py();
    let generic = if let Some(generic) = GENERIC.get(py) {
        generic
    } else {
        let modules = py.import(intern!(py, "sys"))?.getattr(intern!(py, "modules"))?;
        let numpy = modules.call_method1(intern!(py, "get"), (intern!(py, "numpy"),))?;
        let Some(generic) = numpy.getattr_opt(intern!(py, "generic"))? else { return Ok(false) };
        let generic = generic.cast_into::<PyType>()?.unbind();
        GENERIC.get_or_init(py, || generic)
    };
    // SAFETY: the thread is attached, and both are live types.
    Ok(unsafe { ffi::PyType_IsSubtype(value.get_type_ptr(), generic.as_ptr().cast()) } != 0)
}

/// The type of a scalar of NumPy; `None` for anything else.
pub(super) fn numpy_type(value: &Bound<'_, PyAny>) -> PyResult<Option<DType>> {
    /// The classes of the usual scalars, by address.
    static CLASSES: PyOnceLock<Vec<(Py<PyType>, DType)>> = PyOnceLock::new();
    if !is_numpy_scalar(value)? {
        return Ok(None);
    }
    let py = value.py();
    let classes = CLASSES.get_or_try_init(py, || {
        let numpy = py.import(intern!(py, "numpy"))?;
        let class = |dtype: &DType| {
            let name = if *dtype == DType::Bool { "bool_" } else { dtype.name() };
            let class = numpy.getattr_opt(name).transpose()?;
            Some(class.and_then(|class| Ok((class.cast_into::<PyType>()?.unbind(), *dtype))))
        };
        DType::ALL.iter().filter_map(class).collect::<PyResult<_>>()
    })?;
    let class = value.get_type_ptr();
    if let Some((_, dtype)) = classes.iter().find(|(known, _)| std::ptr::eq(known.as_ptr().cast(), class)) {
        return Ok(Some(*dtype));
    }
    // Those of `ml_dtypes`, and second names such as `numpy.longlong`. What has no type here is refused when it is packed.
    let name = value.getattr(intern!(py, "dtype"))?.getattr(intern!(py, "name"))?;
    Ok(DType::from_name(&name.cast::<PyString>()?.to_string_lossy()).ok())
}

/// The integers of a type.
fn range(dtype: DType) -> Option<(i128, i128)> {
    Some(match dtype {
        DType::Int8 => (i8::MIN.into(), i8::MAX.into()),
        DType::Int16 => (i16::MIN.into(), i16::MAX.into()),
        DType::Int32 => (i32::MIN.into(), i32::MAX.into()),
        DType::Int64 => (i64::MIN.into(), i64::MAX.into()),
        DType::UInt8 => (0, u8::MAX.into()),
        DType::UInt16 => (0, u16::MAX.into()),
        DType::UInt32 => (0, u32::MAX.into()),
        DType::UInt64 => (0, u64::MAX.into()),
        _ => return None,
    })
}

#[cold]
fn out_of_range(value: &Bound<'_, PyAny>, dtype: DType) -> Refusal {
    let holds =
        range(dtype).map(|(minimum, maximum)| format!(", which holds {minimum} to {maximum}")).unwrap_or_default();
    Refusal::Value(format!("{} does not fit {dtype}{holds}", shown(value)))
}

#[cold]
fn not_exact(value: &Bound<'_, PyAny>, dtype: DType) -> Refusal {
    Refusal::Value(format!("{} is no number that {dtype} has; pass float(x) to have it rounded", shown(value)))
}

#[cold]
fn wrong_kind(value: &Bound<'_, PyAny>, dtype: DType, conversion: &str) -> Refusal {
    let class = exception::type_name(value);
    Refusal::Type(format!(
        "{} is {class}, and the parameter is {dtype}; pass {conversion} if that is meant",
        shown(value)
    ))
}

#[cold]
fn no_such_size(value: &Bound<'_, PyAny>, size_bytes: usize) -> Refusal {
    let class = exception::type_name(value);
    Refusal::Type(format!(
        "{class} is not passed in {size_bytes} bytes; give the kernel a signature, or pass a NumPy scalar of that size"
    ))
}

/// The value for a message, in at most 40 characters.
fn shown(value: &Bound<'_, PyAny>) -> String {
    const MOST: usize = 40;
    let Ok(text) = value.repr() else { return "the value".to_owned() };
    let text = text.to_string_lossy();
    if text.chars().count() <= MOST {
        return text.into_owned();
    }
    text.chars().take(MOST).chain(['…']).collect()
}
