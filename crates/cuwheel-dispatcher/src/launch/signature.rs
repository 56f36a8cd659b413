//! Types of a kernel's parameters, as they are written, and where each lies in the block of parameters.

use std::fmt;

use cuwheel_device_array::DType;
use thiserror::Error;

/// The type of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ParameterType {
    /// A pointer to elements, of any type for `void*`.
    Pointer {
        /// The type of the elements.
        dtype: Option<DType>,
        /// Whether the kernel only reads them.
        is_const: bool,
    },
    /// A number.
    Scalar(DType),
    /// An array as `cuwheel::array_view` of the C++ header: pointer, shape and strides.
    View {
        /// The type of the elements.
        dtype: DType,
        /// The number of dimensions.
        ndim: usize,
        /// Whether the kernel only reads the elements.
        is_const: bool,
    },
    /// Bytes of which only the number is known.
    Unknown {
        /// The number.
        size_bytes: usize,
    },
}

/// Types that a number may have.
const SCALARS: [DType; 15] = [
    DType::Bool,
    DType::Int8,
    DType::Int16,
    DType::Int32,
    DType::Int64,
    DType::UInt8,
    DType::UInt16,
    DType::UInt32,
    DType::UInt64,
    DType::Float16,
    DType::BFloat16,
    DType::Float32,
    DType::Float64,
    DType::Complex64,
    DType::Complex128,
];

const POINTER_BYTES: usize = 8;

impl ParameterType {
    /// The most dimensions of a view.
    pub const MOST_DIMENSIONS: usize = 32;

    /// The bytes that the parameter takes.
    pub fn size_bytes(self) -> usize {
        match self {
            Self::Pointer { .. } => POINTER_BYTES,
            // All of them have whole bytes.
            Self::Scalar(dtype) => dtype.size_bytes().unwrap_or(0),
            // Shape and strides are 64-bit integers.
            Self::View { ndim, .. } => POINTER_BYTES + ndim * 16,
            Self::Unknown { size_bytes } => size_bytes,
        }
    }

    /// What its address is a multiple of. Of `Unknown` the driver says the offset, and nothing follows from this.
    fn alignment(self) -> usize {
        match self {
            Self::Pointer { .. } | Self::View { .. } => POINTER_BYTES,
            Self::Scalar(dtype) => dtype.size_bytes().unwrap_or(1),
            Self::Unknown { .. } => 1,
        }
    }

    /// Reads a type: `float32*`, `const float32*`, `void*`, `int32`, `view[float32, 2]`, `view[const float32, 2]`.
    pub fn parse(text: &str) -> Result<Self, SignatureError> {
        let unknown = || SignatureError::UnknownType { text: text.to_owned() };
        let text = text.trim();
        if let Some(inside) = text.strip_prefix("view[").and_then(|rest| rest.strip_suffix(']')) {
            let (element, ndim) = inside.rsplit_once(',').ok_or_else(unknown)?;
            let (element, is_const) = without_const(element);
            let dtype = DType::from_name(element).map_err(|_| unknown())?;
            let ndim = ndim.trim().parse().ok().filter(|ndim| *ndim <= Self::MOST_DIMENSIONS).ok_or_else(unknown)?;
            return Ok(Self::View { dtype, ndim, is_const });
        }
        if let Some(element) = text.strip_suffix('*') {
            let (element, is_const) = without_const(element);
            let dtype = match element {
                "void" => None,
                name => Some(DType::from_name(name).map_err(|_| unknown())?),
            };
            return Ok(Self::Pointer { dtype, is_const });
        }
        let dtype = DType::from_name(text).ok().filter(|dtype| SCALARS.contains(dtype)).ok_or_else(unknown)?;
        Ok(Self::Scalar(dtype))
    }
}

/// An element type, and whether `const` was before it.
fn without_const(text: &str) -> (&str, bool) {
    let text = text.trim();
    match text.strip_prefix("const").filter(|rest| rest.starts_with(char::is_whitespace)) {
        Some(rest) => (rest.trim(), true),
        None => (text, false),
    }
}

impl fmt::Display for ParameterType {
    /// As [`parse`](ParameterType::parse) reads it; bytes of which only the number is known as `8 bytes`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let constant = |is_const: &bool| if *is_const { "const " } else { "" };
        match self {
            Self::Pointer { dtype: Some(dtype), is_const } => write!(formatter, "{}{dtype}*", constant(is_const)),
            Self::Pointer { dtype: None, is_const } => write!(formatter, "{}void*", constant(is_const)),
            Self::Scalar(dtype) => write!(formatter, "{dtype}"),
            Self::View { dtype, ndim, is_const } => write!(formatter, "view[{}{dtype}, {ndim}]", constant(is_const)),
            Self::Unknown { size_bytes } => write!(formatter, "{size_bytes} bytes"),
        }
    }
}

/// A parameter, and where it lies.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Parameter {
    /// The type.
    pub kind: ParameterType,
    /// The name for messages, where the signature gives one.
    pub name: Option<Box<str>>,
    /// The bytes before it.
    pub offset_bytes: usize,
}

/// The parameters of a kernel, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Signature {
    parameters: Box<[Parameter]>,
    size_bytes: usize,
}

/// A signature that cannot be read, or that is not the kernel's.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SignatureError {
    /// A type that cannot be read.
    #[error(
        "{text:?} is no type of a parameter; write a pointer (\"float32*\", \"const float32*\", \"void*\"), a number \
         (\"int32\", \"float64\"), or an array with shape and strides (\"view[float32, 2]\")"
    )]
    UnknownType {
        /// The text.
        text: String,
    },
    /// A name that is none.
    #[error("{text:?} does not end in a name; write the type, and then a name if you like: \"float32* out\"")]
    Name {
        /// The text.
        text: String,
    },
    /// Another number of parameters than the kernel has.
    #[error("the signature of kernel {kernel:?} has {given} parameters, and the kernel has {actual} ({sizes})")]
    Count {
        /// The kernel.
        kernel: String,
        /// The number in the signature.
        given: usize,
        /// The number that the kernel has.
        actual: usize,
        /// The sizes of the kernel's.
        sizes: String,
    },
    /// A parameter of another size than the kernel's.
    #[error(
        "parameter {position} of kernel {kernel:?} is {kind} in the signature, which takes {given} bytes, and {actual} in \
         the kernel; write the type that the kernel declares"
    )]
    Size {
        /// The kernel.
        kernel: String,
        /// The position, from 0 on.
        position: usize,
        /// The type in the signature.
        kind: ParameterType,
        /// Its size.
        given: usize,
        /// The size of the kernel's.
        actual: usize,
    },
}

impl Signature {
    /// Lays parameters out as a C compiler does: each at the next multiple of its alignment.
    pub fn new(parameters: impl IntoIterator<Item = (ParameterType, Option<Box<str>>)>) -> Self {
        let mut end: usize = 0;
        let place = |(kind, name): (ParameterType, Option<Box<str>>)| {
            let offset_bytes = end.next_multiple_of(kind.alignment().max(1));
            end = offset_bytes + kind.size_bytes();
            Parameter { kind, name, offset_bytes }
        };
        let parameters = parameters.into_iter().map(place).collect();
        Self { parameters, size_bytes: end }
    }

    /// Reads parameters: a type each, with a name behind it or not.
    pub fn parse<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Self, SignatureError> {
        Ok(Self::new(texts.into_iter().map(parse_parameter).collect::<Result<Vec<_>, _>>()?))
    }

    /// The parameters at the offsets and of the sizes, in bytes, that the driver says.
    pub(super) fn from_layout(layout: &[(usize, usize)]) -> Self {
        let parameters = layout.iter().map(|&(offset_bytes, size_bytes)| Parameter {
            kind: ParameterType::Unknown { size_bytes },
            name: None,
            offset_bytes,
        });
        let end = layout.last().map_or(0, |(offset, size)| offset + size);
        Self { parameters: parameters.collect(), size_bytes: end }
    }

    /// The same parameters at the offsets that the driver says, if their sizes are those of the kernel.
    pub(super) fn at(&self, layout: &[(usize, usize)], kernel: &str) -> Result<Self, SignatureError> {
        if self.parameters.len() != layout.len() {
            let sizes: Vec<String> = layout.iter().map(|(_, size)| size.to_string()).collect();
            let sizes = if sizes.is_empty() { "none".to_owned() } else { format!("bytes: {}", sizes.join(", ")) };
            let (given, actual) = (self.parameters.len(), layout.len());
            return Err(SignatureError::Count { kernel: kernel.to_owned(), given, actual, sizes });
        }
        let mut placed = self.clone();
        for (position, (parameter, &(offset, actual))) in placed.parameters.iter_mut().zip(layout).enumerate() {
            let (kind, given) = (parameter.kind, parameter.kind.size_bytes());
            if given != actual {
                return Err(SignatureError::Size { kernel: kernel.to_owned(), position, kind, given, actual });
            }
            parameter.offset_bytes = offset;
        }
        placed.size_bytes = layout.last().map_or(0, |(offset, size)| offset + size);
        Ok(placed)
    }

    /// The parameters.
    #[inline]
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// The bytes that all parameters take, up to the end of the last.
    #[inline]
    pub fn size_bytes(&self) -> usize {
        self.size_bytes
    }
}

fn parse_parameter(text: &str) -> Result<(ParameterType, Option<Box<str>>), SignatureError> {
    let (kind, name) = split_name(text)?;
    Ok((ParameterType::parse(kind)?, name))
}

/// The text of a parameter's type, and the name behind it.
pub(crate) fn split_name(text: &str) -> Result<(&str, Option<Box<str>>), SignatureError> {
    let text = text.trim();
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let start = text.rfind(|letter| !is_letter(letter)).map_or(0, |at| at + 1);
    let (kind, name) = text.split_at(start);
    let kind = kind.trim();
    // A single word is a type, and so is what ends in a star or a bracket, or follows `const`.
    if kind.is_empty() || name.is_empty() || kind == "const" {
        return Ok((text, None));
    }
    if name.starts_with(|letter: char| letter.is_ascii_digit()) {
        return Err(SignatureError::Name { text: text.to_owned() });
    }
    Ok((kind, Some(name.into())))
}
