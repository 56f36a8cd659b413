//! Element types: a closed set, their sizes, and their spellings in DLPack.
//!
//! Names and NumPy's type strings are in `dtype/spelling.rs`. Nothing here knows how to compute with elements.

mod spelling;

use std::fmt;
use std::num::NonZeroU32;

use thiserror::Error;

use crate::{Classified, ErrorKind};

/// The type of an array's elements.
///
/// Floats of eight bits and fewer are named as in DLPack 1.3 and `ml_dtypes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DType {
    /// Truth values of one byte.
    Bool,
    /// Signed integers of 8 bits.
    Int8,
    /// Signed integers of 16 bits.
    Int16,
    /// Signed integers of 32 bits.
    Int32,
    /// Signed integers of 64 bits.
    Int64,
    /// Unsigned integers of 8 bits.
    UInt8,
    /// Unsigned integers of 16 bits.
    UInt16,
    /// Unsigned integers of 32 bits.
    UInt32,
    /// Unsigned integers of 64 bits.
    UInt64,
    /// IEEE 754 half precision.
    Float16,
    /// IEEE 754 single precision.
    Float32,
    /// IEEE 754 double precision.
    Float64,
    /// The upper half of a `Float32`.
    BFloat16,
    /// 3 bits of exponent, 4 of mantissa.
    Float8E3M4,
    /// 4 bits of exponent, 3 of mantissa, with infinities.
    Float8E4M3,
    /// 4 bits of exponent with bias 11, finite, one NaN, no negative zero.
    Float8E4M3B11Fnuz,
    /// 4 bits of exponent, finite, with NaNs.
    Float8E4M3Fn,
    /// 4 bits of exponent, finite, one NaN, no negative zero.
    Float8E4M3Fnuz,
    /// 5 bits of exponent, 2 of mantissa, with infinities.
    Float8E5M2,
    /// 5 bits of exponent, finite, one NaN, no negative zero.
    Float8E5M2Fnuz,
    /// 8 bits of exponent and nothing else: powers of two, as scales of blocks use.
    Float8E8M0Fnu,
    /// 6 bits, packed four to three bytes: 2 of exponent, 3 of mantissa.
    Float6E2M3Fn,
    /// 6 bits, packed four to three bytes: 3 of exponent, 2 of mantissa.
    Float6E3M2Fn,
    /// 4 bits, packed two to a byte: 2 of exponent, 1 of mantissa.
    Float4E2M1Fn,
    /// Two [`Float4E2M1Fn`](Self::Float4E2M1Fn) as one element of one byte, as in torch.
    Float4E2M1FnX2,
    /// Two `Float32`.
    Complex64,
    /// Two `Float64`.
    Complex128,
    /// Bytes of which only the number is known: datetimes, records, text.
    Opaque(NonZeroU32),
}

/// Why something does not name an element type.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DTypeError {
    /// No type of the set has this code, number of bits and number of lanes.
    #[error(
        "an element type of DLPack code {code}, {bits} bits and {lanes} lanes is not supported; convert the array to a \
         type that NumPy or ml_dtypes has before passing it on"
    )]
    UnknownDlpack {
        /// `DLDataType.code`.
        code: u8,
        /// `DLDataType.bits`.
        bits: u8,
        /// `DLDataType.lanes`.
        lanes: u16,
    },
    /// No type of the set has this name.
    #[error("there is no element type named {name:?}; names are those of NumPy and ml_dtypes, such as \"float32\"")]
    UnknownName {
        /// The name given.
        name: String,
    },
    /// A type string of NumPy's that no type of the set stands for.
    #[error("the type string {typestr:?} is not supported; convert the array to a type of fixed size without objects")]
    UnknownTypestr {
        /// The string given.
        typestr: String,
    },
    /// The bytes of each element are in the other order than this machine's.
    #[error(
        "elements of type {typestr:?} are in the byte order of another machine; convert them first, for example with \
         `a.astype(a.dtype.newbyteorder('='))`"
    )]
    ForeignByteOrder {
        /// The string given.
        typestr: String,
    },
    /// Opaque elements must have at least one byte, and at most 4 GiB.
    #[error("elements of {size_bytes} bytes are not supported; an element has between 1 and 4294967295 bytes")]
    OpaqueSize {
        /// The size asked for.
        size_bytes: usize,
    },
    /// The bytes of so many elements cannot be counted.
    #[error("{elements} elements of type {dtype} are more than the address space holds; ask for a smaller array")]
    TooManyElements {
        /// The number of elements.
        elements: usize,
        /// Their type.
        dtype: DType,
    },
}

impl Classified for DTypeError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::UnknownDlpack { .. } => ErrorKind::Buffer,
            Self::TooManyElements { .. } | Self::OpaqueSize { .. } => ErrorKind::Value,
            Self::UnknownName { .. } | Self::UnknownTypestr { .. } | Self::ForeignByteOrder { .. } => ErrorKind::Type,
        }
    }
}

impl DType {
    /// Every type but the opaque ones.
    pub const ALL: [Self; 27] = [
        Self::Bool,
        Self::Int8,
        Self::Int16,
        Self::Int32,
        Self::Int64,
        Self::UInt8,
        Self::UInt16,
        Self::UInt32,
        Self::UInt64,
        Self::Float16,
        Self::Float32,
        Self::Float64,
        Self::BFloat16,
        Self::Float8E3M4,
        Self::Float8E4M3,
        Self::Float8E4M3B11Fnuz,
        Self::Float8E4M3Fn,
        Self::Float8E4M3Fnuz,
        Self::Float8E5M2,
        Self::Float8E5M2Fnuz,
        Self::Float8E8M0Fnu,
        Self::Float6E2M3Fn,
        Self::Float6E3M2Fn,
        Self::Float4E2M1Fn,
        Self::Float4E2M1FnX2,
        Self::Complex64,
        Self::Complex128,
    ];

    /// Elements of `size_bytes` bytes whose meaning is not known here.
    pub fn opaque(size_bytes: usize) -> Result<Self, DTypeError> {
        u32::try_from(size_bytes)
            .ok()
            .and_then(NonZeroU32::new)
            .map(Self::Opaque)
            .ok_or(DTypeError::OpaqueSize { size_bytes })
    }

    /// The type that DLPack's `DLDataType` describes.
    #[inline]
    pub const fn from_dlpack(code: u8, bits: u8, lanes: u16) -> Result<Self, DTypeError> {
        Ok(match (code, bits, lanes) {
            (2, 32, 1) => Self::Float32,
            (2, 16, 1) => Self::Float16,
            (2, 64, 1) => Self::Float64,
            (4, 16, 1) => Self::BFloat16,
            (0, 8, 1) => Self::Int8,
            (0, 16, 1) => Self::Int16,
            (0, 32, 1) => Self::Int32,
            (0, 64, 1) => Self::Int64,
            (1, 8, 1) => Self::UInt8,
            (1, 16, 1) => Self::UInt16,
            (1, 32, 1) => Self::UInt32,
            (1, 64, 1) => Self::UInt64,
            (5, 64, 1) => Self::Complex64,
            (5, 128, 1) => Self::Complex128,
            (6, 8, 1) => Self::Bool,
            (7, 8, 1) => Self::Float8E3M4,
            (8, 8, 1) => Self::Float8E4M3,
            (9, 8, 1) => Self::Float8E4M3B11Fnuz,
            (10, 8, 1) => Self::Float8E4M3Fn,
            (11, 8, 1) => Self::Float8E4M3Fnuz,
            (12, 8, 1) => Self::Float8E5M2,
            (13, 8, 1) => Self::Float8E5M2Fnuz,
            (14, 8, 1) => Self::Float8E8M0Fnu,
            (15, 6, 1) => Self::Float6E2M3Fn,
            (16, 6, 1) => Self::Float6E3M2Fn,
            (17, 4, 1) => Self::Float4E2M1Fn,
            (17, 4, 2) => Self::Float4E2M1FnX2,
            _ => return Err(DTypeError::UnknownDlpack { code, bits, lanes }),
        })
    }

    /// Code, bits and lanes for DLPack's `DLDataType`; `None` for opaque elements, which DLPack cannot describe.
    #[inline]
    pub const fn dlpack(self) -> Option<(u8, u8, u16)> {
        Some(match self {
            Self::Bool => (6, 8, 1),
            Self::Int8 => (0, 8, 1),
            Self::Int16 => (0, 16, 1),
            Self::Int32 => (0, 32, 1),
            Self::Int64 => (0, 64, 1),
            Self::UInt8 => (1, 8, 1),
            Self::UInt16 => (1, 16, 1),
            Self::UInt32 => (1, 32, 1),
            Self::UInt64 => (1, 64, 1),
            Self::Float16 => (2, 16, 1),
            Self::Float32 => (2, 32, 1),
            Self::Float64 => (2, 64, 1),
            Self::BFloat16 => (4, 16, 1),
            Self::Float8E3M4 => (7, 8, 1),
            Self::Float8E4M3 => (8, 8, 1),
            Self::Float8E4M3B11Fnuz => (9, 8, 1),
            Self::Float8E4M3Fn => (10, 8, 1),
            Self::Float8E4M3Fnuz => (11, 8, 1),
            Self::Float8E5M2 => (12, 8, 1),
            Self::Float8E5M2Fnuz => (13, 8, 1),
            Self::Float8E8M0Fnu => (14, 8, 1),
            Self::Float6E2M3Fn => (15, 6, 1),
            Self::Float6E3M2Fn => (16, 6, 1),
            Self::Float4E2M1Fn => (17, 4, 1),
            Self::Float4E2M1FnX2 => (17, 4, 2),
            Self::Complex64 => (5, 64, 1),
            Self::Complex128 => (5, 128, 1),
            Self::Opaque(_) => return None,
        })
    }

    /// The bits of one element, of all its lanes together.
    #[inline]
    pub const fn bits(self) -> u64 {
        match self {
            Self::Opaque(size_bytes) => size_bytes.get() as u64 * 8,
            Self::Float4E2M1Fn => 4,
            Self::Float6E2M3Fn | Self::Float6E3M2Fn => 6,
            Self::Bool
            | Self::Int8
            | Self::UInt8
            | Self::Float8E3M4
            | Self::Float8E4M3
            | Self::Float8E4M3B11Fnuz
            | Self::Float8E4M3Fn
            | Self::Float8E4M3Fnuz
            | Self::Float8E5M2
            | Self::Float8E5M2Fnuz
            | Self::Float8E8M0Fnu
            | Self::Float4E2M1FnX2 => 8,
            Self::Int16 | Self::UInt16 | Self::Float16 | Self::BFloat16 => 16,
            Self::Int32 | Self::UInt32 | Self::Float32 => 32,
            Self::Int64 | Self::UInt64 | Self::Float64 | Self::Complex64 => 64,
            Self::Complex128 => 128,
        }
    }

    /// Whether elements have a real and an imaginary part.
    #[inline]
    pub const fn is_complex(self) -> bool {
        matches!(self, Self::Complex64 | Self::Complex128)
    }

    /// The bytes of one element; `None` when elements are packed and share bytes.
    #[inline]
    pub const fn size_bytes(self) -> Option<usize> {
        let bits = self.bits();
        // At most 4 GiB, so the cast keeps the value on every machine that has CUDA.
        if bits.is_multiple_of(8) { Some((bits / 8) as usize) } else { None }
    }

    /// The bytes that `elements` adjacent elements take; packed ones are rounded up to whole bytes.
    #[inline]
    pub fn bytes_for(self, elements: usize) -> Result<usize, DTypeError> {
        let bits = elements as u128 * u128::from(self.bits());
        usize::try_from(bits.div_ceil(8)).map_err(|_| DTypeError::TooManyElements { elements, dtype: self })
    }
}

impl fmt::Display for DType {
    /// The name, with the number of bytes for opaque elements: `float32`, `opaque[12]`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Opaque(size_bytes) => write!(formatter, "{}[{size_bytes}]", self.name()),
            _ => formatter.write_str(self.name()),
        }
    }
}
