//! How the arguments of a kernel become its parameters: by the types that numba-cuda compiled it for.

use cuwheel_device_array::DType;
use cuwheel_dispatcher::launch::{ParameterType, Signature};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// The parameters of one argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// An array: two null pointers, the number of elements, their size, the address, shape and strides; all of 8 bytes.
    Array {
        ndim: usize,
    },
    /// An integer, cut to so many bytes.
    Integer {
        size_bytes: usize,
    },
    /// A pointer as a number.
    Pointer,
    Boolean,
    Float16,
    Float32,
    Float64,
    Complex64,
    Complex128,
    /// A tuple: the parameters of its items.
    Tuple(Box<[Step]>),
}

/// The parameters that come before shape and strides of an array.
pub(super) const WORDS_BEFORE_SHAPE: usize = 5;

/// The steps of all arguments, and the parameters that they make.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) steps: Box<[Step]>,
    pub(super) signature: Signature,
}

impl Plan {
    /// The plan for arguments of the types in `argument_types`; `None` if Python has to pass one of them on. `types` is
    /// numba-cuda's module of types.
    pub(super) fn new(types: &Bound<'_, PyAny>, argument_types: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let Some(steps) = steps(types, argument_types)? else { return Ok(None) };
        let mut parameters = Vec::new();
        steps.iter().for_each(|step| step.add_parameters(&mut parameters));
        let signature = Signature::new(parameters.into_iter().map(|dtype| (ParameterType::Scalar(dtype), None)));
        Ok(Some(Self { steps, signature }))
    }
}

fn steps(types: &Bound<'_, PyAny>, of: &Bound<'_, PyAny>) -> PyResult<Option<Box<[Step]>>> {
    let mut steps = Vec::new();
    for item in of.try_iter()? {
        match Step::new(types, &item?)? {
            Some(step) => steps.push(step),
            None => return Ok(None),
        }
    }
    Ok(Some(steps.into()))
}

impl Step {
    /// The kinds of types are looked at in the order of numba-cuda: some are several.
    fn new(types: &Bound<'_, PyAny>, of: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let py = of.py();
        let is_a = |class: &str| -> PyResult<bool> { of.is_instance(&types.getattr(class)?) };
        let is = |name: &str| -> PyResult<bool> { of.eq(types.getattr(name)?) };
        if is_a("Array")? {
            return Ok(Some(Self::Array { ndim: of.getattr(intern!(py, "ndim"))?.extract()? }));
        }
        if is_a("CPointer")? {
            return Ok(Some(Self::Pointer));
        }
        if is_a("Integer")? {
            return Ok(integer_size(&of.str()?.to_string_lossy()).map(|size_bytes| Self::Integer { size_bytes }));
        }
        for (name, step) in [
            ("float16", Self::Float16),
            ("float64", Self::Float64),
            ("float32", Self::Float32),
            ("boolean", Self::Boolean),
            ("complex64", Self::Complex64),
            ("complex128", Self::Complex128),
        ] {
            if is(name)? {
                return Ok(Some(step));
            }
        }
        if is_a("NPDatetime")? || is_a("NPTimedelta")? || is_a("Record")? || !is_a("BaseTuple")? {
            return Ok(None);
        }
        Ok(steps(types, of)?.map(Self::Tuple))
    }

    /// Adds the types of the parameters, in their order.
    fn add_parameters(&self, parameters: &mut Vec<DType>) {
        let dtypes: &[DType] = match self {
            Self::Array { ndim } => {
                return parameters.resize(parameters.len() + WORDS_BEFORE_SHAPE + 2 * ndim, DType::Int64);
            }
            Self::Tuple(items) => return items.iter().for_each(|item| item.add_parameters(parameters)),
            Self::Integer { size_bytes: 1 } => &[DType::Int8],
            Self::Integer { size_bytes: 2 } => &[DType::Int16],
            Self::Integer { size_bytes: 4 } => &[DType::Int32],
            Self::Integer { .. } | Self::Pointer => &[DType::Int64],
            Self::Boolean => &[DType::Bool],
            Self::Float16 => &[DType::Float16],
            Self::Float32 => &[DType::Float32],
            Self::Float64 => &[DType::Float64],
            Self::Complex64 => &[DType::Float32, DType::Float32],
            Self::Complex128 => &[DType::Float64, DType::Float64],
        };
        parameters.extend_from_slice(dtypes);
    }
}

/// The bytes of the integer type that `ctypes` has under the name of a type of numba-cuda.
fn integer_size(name: &str) -> Option<usize> {
    let bits = name.strip_prefix("int").or_else(|| name.strip_prefix("uint"))?;
    match bits {
        "8" => Some(1),
        "16" => Some(2),
        "32" => Some(4),
        "64" => Some(8),
        _ => None,
    }
}

/// Whether `value` has as many items as the tuple that a kernel takes.
pub(super) fn has_items(value: &Bound<'_, PyTuple>, items: &[Step]) -> bool {
    value.len() == items.len()
}
